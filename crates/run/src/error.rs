//! Why a run could not start or could not go on.

use std::path::PathBuf;

use blockstone_base::units::Bytes;

/// An error of a run. Each names what it is about and what helps.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A path does not exist or cannot be looked at.
    #[error(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    /// The parameters contradict themselves.
    #[error(transparent)]
    Parameters(#[from] blockstone_workload::ParameterError),
    /// The sessions could not start.
    #[error(transparent)]
    Workload(#[from] blockstone_workload::WorkloadError),
    /// The target could not do what was asked.
    #[error(transparent)]
    Target(#[from] blockstone_target::TargetError),
    /// The recording could not be written.
    #[error(transparent)]
    Record(#[from] blockstone_record::RecordError),
    /// The noise could not be made.
    #[error(transparent)]
    Noise(#[from] blockstone_workload::noise::NoiseError),
    /// A disk's file could not be looked at.
    #[error(transparent)]
    File(#[from] blockstone_sys::file::FileError),
    /// `--require` names something unknown.
    #[error(transparent)]
    Capability(#[from] blockstone_measure::capability::UnknownCapability),
    /// What was asked for is refused, or cannot be given back.
    #[error(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    /// Nowhere to run.
    #[error("run: no disk is named\nhint: blockstone run . uses the storage of this directory")]
    NoDisk,
    /// A disk is named beside a target that has its own.
    #[error(
        "use {} as a disk: {target} has its data elsewhere\n\
         hint: leave the path away",
        path.display()
    )]
    DiskElsewhere {
        /// What was named.
        path: PathBuf,
        /// The target.
        target: String,
    },
    /// A file that somebody made.
    #[error(
        "use {} as a disk: it is a file that no run kept, and no file is overwritten\n\
         hint: name a directory, in which a file is made, or a block device with --destroy",
        path.display()
    )]
    NotADisk {
        /// The file.
        path: PathBuf,
    },
    /// What an earlier run kept is not what this one asks for.
    #[error(
        "run on {} as it was kept: it was made with {option} {is}, and {asked} is asked for\n\
         hint: give {option} {is}, or leave {option} out if it says otherwise; a directory is set \
         up anew",
        path.display()
    )]
    KeptOther {
        /// The first of the disks.
        path: PathBuf,
        /// The option that differs.
        option: &'static str,
        /// What was kept.
        is: String,
        /// What is asked for.
        asked: String,
    },
    /// `--destroy` names something that is not used.
    #[error(
        "destroy {}: it is none of the devices that are used\n\
         hint: name the same device as PATH and with --destroy",
        path.display()
    )]
    DestroyOther {
        /// What was named.
        path: PathBuf,
    },
    /// A window of no length.
    #[error("run for no time: nothing would be measured\nhint: give --run-time at least 1s")]
    NoTime,
    /// A list of the matrix names nothing that could be measured.
    #[error("measure {what}: {why}\nhint: {hint}")]
    Matrix {
        /// The option with its value.
        what: String,
        /// What is wrong with it.
        why: String,
        /// What helps.
        hint: &'static str,
    },
    /// The target scans as it likes.
    #[error(
        "scan {target} past the buffer cache: this target's scans cannot be told how to read\n\
         hint: use --target instance"
    )]
    NoDirectScan {
        /// Its name.
        target: String,
    },
    /// The table is too small for its readers.
    #[error(
        "scan {size} with {parallel} sessions: each has less than the {least} that its reads \
         outstanding hold\n\
         hint: ask for more with --scan-size, or for a smaller --multiblock, --parallel or --slots"
    )]
    ScanSize {
        /// The table.
        size: Bytes,
        /// Sessions at most.
        parallel: u32,
        /// Bytes of all slots of a session.
        least: Bytes,
    },
    /// A number of writers that makes no sense.
    #[error("add noise of {writers} writers: there can be 1 to {most}\nhint: --noise redo:2")]
    NoiseWriters {
        /// Asked for.
        writers: u32,
        /// The most.
        most: u32,
    },
    /// The data are a server's, and so is their directory.
    #[error(
        "add noise beside a {target} server: its directory is not for files of others\n\
         hint: --target {target}:scratch makes a server in a directory that you name, with noise"
    )]
    NoiseAtServer {
        /// The target, without its address.
        target: String,
    },
    /// Noise has no place beside devices.
    #[error(
        "add noise on {}: it writes files of its own, and a device has no room for files\n\
         hint: name a directory on this storage as PATH",
        path.display()
    )]
    NoiseOnDevice {
        /// The device.
        path: PathBuf,
    },
    /// Too little room for the noise.
    #[error(
        "add noise in {}: less than {least} a writer are free beside the data\n\
         hint: free some space, or ask for fewer writers or less --scale",
        path.display()
    )]
    NoiseRoom {
        /// The directory.
        path: PathBuf,
        /// What a writer needs.
        least: Bytes,
    },
    /// A noisy writer failed.
    #[error(
        "write noise: {why}\n\
         hint: what was measured until then is in the recording; see dmesg"
    )]
    NoiseFailed {
        /// Writer, operation, offset and cause.
        why: String,
    },
    /// A session failed, and with it the run.
    #[error(
        "{why}\n\
         hint: a run with a failed session is not what was asked for; the recording holds what \
         was measured until then"
    )]
    Session {
        /// The session, its operation and the target's answer.
        why: String,
    },
    /// A kept file could not be renamed.
    #[error(
        "keep {}: {source}\n\
         hint: is the directory still there and writable?",
        path.display()
    )]
    Keep {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}
