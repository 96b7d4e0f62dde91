//! Why a run could not start, or ended early.

use std::path::PathBuf;

use blockstone_base::units::Bytes;

/// Each message names what failed, where, and a hint.
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
    /// Storage cannot be claimed, or a load did not return.
    #[error(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    #[error("run: no disk is named\nhint: blockstone run . uses the storage of this directory")]
    NoDisk,
    /// A disk is named beside a target that has its own.
    #[error(
        "use {} as a disk: {target} keeps its data elsewhere\n\
         hint: omit the path",
        path.display()
    )]
    DiskElsewhere { path: PathBuf, target: String },
    /// The file is not a disk that an earlier run kept.
    #[error(
        "use {} as a disk: it was not kept by an earlier run, and no file is overwritten\n\
         hint: name a directory, or a block device together with --destroy",
        path.display()
    )]
    NotADisk { path: PathBuf },
    /// What an earlier run kept is not what this one asks for.
    #[error(
        "reuse {}: it was made with {option} {is}, not {asked}\n\
         hint: use {option} {is}, or omit {option}; to start from scratch, name a directory",
        path.display()
    )]
    KeptOther {
        /// The first of the disks.
        path: PathBuf,
        option: &'static str,
        is: String,
        asked: String,
    },
    /// `--destroy` names something that is not used.
    #[error(
        "destroy {}: it is not one of the disks of this run\n\
         hint: name the same device as PATH and with --destroy",
        path.display()
    )]
    DestroyOther { path: PathBuf },
    /// A window of no length.
    #[error(
        "run for no time: nothing would be measured\n\
         hint: use --run-time 1s or more"
    )]
    NoTime,
    /// A list of the matrix names nothing that could be measured.
    #[error("measure {what}: {why}\nhint: {hint}")]
    Matrix {
        /// The option with its value.
        what: String,
        /// What is wrong with it.
        why: String,
        hint: &'static str,
    },
    /// The target decides by itself how it scans.
    #[error(
        "scan {target} past the buffer cache: clients cannot choose how this target reads\n\
         hint: use --target instance"
    )]
    NoDirectScan { target: String },
    /// The table is too small for its readers.
    #[error(
        "scan {size} with {parallel} sessions: each has less than the {least} that its outstanding \
         reads cover\n\
         hint: use a larger --scan-size, or a smaller --multiblock, --parallel or --slots"
    )]
    ScanSize {
        size: Bytes,
        parallel: u32,
        /// Bytes of all slots of a session.
        least: Bytes,
    },
    /// `--noise` asks for no writer or for too many.
    #[error("add noise of {writers} writers: it must be 1 to {most}\nhint: --noise redo:2")]
    NoiseWriters { writers: u32, most: u32 },
    /// The data directory belongs to a database server.
    #[error(
        "add noise beside a {target} server: no file is created in its directory\n\
         hint: use --target {target}:scratch with a directory of yours"
    )]
    NoiseAtServer {
        /// The target, without its address.
        target: String,
    },
    /// Noise writes files, so it needs a directory.
    #[error(
        "add noise on {}: noise writes files, and this is a device\n\
         hint: name a directory on this storage as PATH",
        path.display()
    )]
    NoiseOnDevice { path: PathBuf },
    /// Too little room for the noise.
    #[error(
        "add noise in {}: less than {least} per writer is free beside the data\n\
         hint: free some space, or use fewer writers or a smaller --scale",
        path.display()
    )]
    NoiseRoom { path: PathBuf, least: Bytes },
    #[error(
        "write noise: {why}\n\
         hint: the recording has everything measured so far; see dmesg"
    )]
    NoiseFailed {
        /// Writer, operation, offset and cause.
        why: String,
    },
    /// A session failed, and with it the run.
    #[error(
        "{why}\n\
         hint: one failed session ends a run; the recording has everything measured so far"
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
    Keep { path: PathBuf, source: std::io::Error },
}
