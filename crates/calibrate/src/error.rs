//! Why a calibration could not run or could not go on.

use std::path::PathBuf;

use blockstone_base::units::Bytes;

/// An error of a calibration. Each names what it is about and what helps.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The path does not exist or cannot be looked at.
    #[error(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] blockstone_sys::file::FileError),
    /// The load could not be started or went wrong as a whole.
    #[error(transparent)]
    Engine(#[from] blockstone_engine::EngineError),
    /// The recording could not be written.
    #[error(transparent)]
    Record(#[from] blockstone_record::RecordError),
    /// What was asked for is refused, or cannot be given back.
    #[error(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    /// A write phase was asked for on a file that somebody else wrote.
    #[error(
        "reuse {}: it was not written by Blockstone, and only such a file may be overwritten\n\
         hint: give it as PATH to read it only, or make one with --keep",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// `--file` on something that is no regular file.
    #[error(
        "reuse {}: it is not a regular file\nhint: --file takes a file that an earlier run kept; a \
         device is named with --destroy",
        path.display()
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A kept file has blocks of another size.
    #[error(
        "reuse {}: its blocks are {written}, not {block}\n\
         hint: use --block-size {written}, or make another file with --keep",
        path.display()
    )]
    OtherBlocks {
        /// The file.
        path: PathBuf,
        /// What it was written with.
        written: Bytes,
        /// What was asked for.
        block: Bytes,
    },
    /// `--destroy` on something that is no device.
    #[error(
        "destroy {}: it is not a block device\n\
         hint: leave out --destroy; a directory or file needs no permission",
        path.display()
    )]
    NotADevice {
        /// The path.
        path: PathBuf,
    },
    /// The block size cannot be used.
    #[error("use a block size of {block}: {why}\nhint: take a multiple of {align}, such as 8K")]
    BlockSize {
        /// What was asked for.
        block: Bytes,
        /// Why it cannot be.
        why: String,
        /// What it must be a multiple of.
        align: Bytes,
    },
    /// `--size` makes no sense for what is measured.
    #[error(
        "set the size of {}: it is not a directory, so nothing is created\n\
         hint: leave out --size; the whole file or device is measured",
        path.display()
    )]
    SizeOfExisting {
        /// The path.
        path: PathBuf,
    },
    /// `--keep` makes no sense for what is measured.
    #[error(
        "keep the test file: none is created when {} is measured\n\
         hint: leave out --keep, or name a directory",
        path.display()
    )]
    NothingToKeep {
        /// The path.
        path: PathBuf,
    },
    /// `--require` names something unknown.
    #[error(transparent)]
    Capability(#[from] blockstone_measure::capability::UnknownCapability),
    /// An I/O of the load failed.
    #[error(
        "{label}: {why}\n\
         hint: the recording holds what was measured until then; see dmesg for the device's side"
    )]
    Io {
        /// The phase.
        label: String,
        /// Operation, place and cause.
        why: String,
    },
    /// The test file, or the directory that holds it, is gone.
    #[error(
        "{label}: the test file {} vanished\n\
         hint: something removed it while it was measured; was the file system unmounted?",
        path.display()
    )]
    Vanished {
        /// The phase.
        label: String,
        /// The file.
        path: PathBuf,
    },
}
