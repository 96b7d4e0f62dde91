//! Errors that prevent a calibration or end it early.

use std::path::PathBuf;

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;

#[derive(Debug, thiserror::Error, Hint)]
pub enum CalibrateError {
    /// The path does not exist or cannot be inspected.
    #[error(transparent)]
    #[hint(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    #[error(transparent)]
    #[hint(transparent)]
    File(#[from] blockstone_sys::file::FileError),
    /// The load could not be started, or its engine failed.
    #[error(transparent)]
    #[hint(transparent)]
    Engine(#[from] blockstone_engine::EngineError),
    #[error(transparent)]
    #[hint(transparent)]
    Record(#[from] blockstone_record::RecordError),
    /// Storage cannot be claimed, or a load did not return.
    #[error(transparent)]
    #[hint(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    /// A write phase was requested on a file that Blockstone did not create.
    #[error(
        "reuse {}: it was not written by Blockstone, and no other file is overwritten",
        path.display()
    )]
    #[hint("give it as PATH to read it only, or make one with --keep")]
    NotOurs { path: PathBuf },
    #[error("reuse {}: it is not a regular file", path.display())]
    #[hint("--file takes a file that an earlier run kept; a device is named with --destroy")]
    NotAFile { path: PathBuf },
    /// A kept file has a different block size.
    #[error("reuse {}: its block size is {written}, not {block}", path.display())]
    #[hint("use --block-size {written}, or make another file with --keep")]
    OtherBlocks { path: PathBuf, written: Bytes, block: Bytes },
    #[error("destroy {}: it is not a block device", path.display())]
    #[hint("omit --destroy; directories and files do not need it")]
    NotADevice { path: PathBuf },
    #[error("measure {} and {} together: {why}", first.display(), other.display())]
    #[hint(
        "name directories only, files and devices that are only read (--read-only), or empty \
         devices, each once more with --destroy"
    )]
    Together { first: PathBuf, other: PathBuf, why: &'static str },
    #[error(
        "keep the test files of {} and others: each has a part of what was written",
        path.display()
    )]
    #[hint("omit --keep, or name one directory")]
    KeepOfSeveral { path: PathBuf },
    #[error("use a block size of {block}: {why}")]
    #[hint("use a multiple of {align}, such as 8K")]
    BlockSize { block: Bytes, why: String, align: Bytes },
    #[error("set the size of {}: it is not a directory, so nothing is created", path.display())]
    #[hint("omit --size; the whole file or device is measured")]
    SizeOfExisting { path: PathBuf },
    #[error("keep the test file: none is created when {} is measured", path.display())]
    #[hint("omit --keep, or name a directory")]
    NothingToKeep { path: PathBuf },
    #[error("precondition {}: it is only read", path.display())]
    #[hint("name a directory, or an empty device twice (--destroy)")]
    NothingToPrecondition { path: PathBuf },
    #[error(
        "write {} through the page cache: it is not one directory that is written",
        path.display()
    )]
    #[hint("name one directory, without --read-only")]
    NothingToBuffer { path: PathBuf },
    #[error("mix reads and writes on {}: it is only read", path.display())]
    #[hint("name a directory, or an empty device twice (--destroy)")]
    NothingToMix { path: PathBuf },
    #[error("measure a part of {}: it is a directory", path.display())]
    #[hint(
        "--size is the size of its test file; name a file or a device, or omit --span and --offset"
    )]
    PartOfDirectory { path: PathBuf },
    #[error("measure a part of {}: a part is only read", path.display())]
    #[hint("add --read-only, or omit --span and --offset")]
    PartWritten { path: PathBuf },
    #[error("begin at {offset}: it is not a multiple of {unit}")]
    #[hint("round it to {unit}")]
    Offset { offset: Bytes, unit: Bytes },
    #[error("read {streams} streams from {span}: each needs a part of its own, together {least}")]
    #[hint("use fewer streams, or a larger file or --span")]
    Streams { streams: u32, span: Bytes, least: Bytes },
    #[error("visit cached blocks: {available} of memory are available, and {least} are needed")]
    #[hint("omit --cpu, or stop other programs")]
    Memory { available: Bytes, least: Bytes },
    /// Error of the miniature instance, whose cached blocks are visited.
    #[error(transparent)]
    #[hint(transparent)]
    Instance(#[from] blockstone_instance::InstanceError),
    #[error("calibrate: no path is named")]
    #[hint("blockstone calibrate .")]
    NoTarget,
    #[error(transparent)]
    #[hint(transparent)]
    Capability(#[from] blockstone_measure::capability::UnknownCapability),
    #[error("{label}: {why}")]
    #[hint("the recording has everything measured so far; dmesg may name the device error")]
    Io {
        label: String,
        /// Operation, place and cause.
        why: String,
    },
    /// The test file, or the directory that holds it, has disappeared.
    #[error("{label}: the test file {} vanished", path.display())]
    #[hint("it was removed during the run; was the file system unmounted?")]
    Vanished { label: String, path: PathBuf },
}
