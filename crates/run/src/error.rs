//! Errors that prevent a run or end it early.

use std::path::PathBuf;

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;
use blockstone_servers::IoRefused;

#[derive(Debug, thiserror::Error, Hint)]
pub enum RunError {
    #[error(transparent)]
    #[hint(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    #[error(transparent)]
    #[hint(transparent)]
    Parameters(#[from] blockstone_workload::ParameterError),
    #[error(transparent)]
    #[hint(transparent)]
    Workload(#[from] blockstone_workload::WorkloadError),
    #[error(transparent)]
    #[hint(transparent)]
    Target(#[from] blockstone_servers::TargetError),
    #[error(transparent)]
    #[hint(transparent)]
    Record(#[from] blockstone_record::RecordError),
    #[error(transparent)]
    #[hint(transparent)]
    Noise(#[from] blockstone_workload::noise::NoiseError),
    #[error(transparent)]
    #[hint(transparent)]
    File(#[from] blockstone_sys::file::FileError),
    #[error(transparent)]
    #[hint(transparent)]
    Capability(#[from] blockstone_measure::capability::UnknownCapability),
    #[error(transparent)]
    #[hint(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    #[error("run: it needs about {needed} of memory, and {available} are available here")]
    #[hint("ask for a smaller --cache or fewer sessions, or raise the limit of the control group")]
    Memory { needed: Bytes, available: Bytes },
    #[error("{io} I/O of {target}: {}", refused.why)]
    #[hint("{}", refused.hint)]
    Io { io: &'static str, target: String, refused: IoRefused },
    #[error("bound the page cache of {target}: {why}")]
    #[hint("{hint}")]
    PageCache { target: String, why: String, hint: &'static str },
    #[error("run: no disk is named")]
    #[hint("blockstone run . uses the storage of this directory")]
    NoDisk,
    #[error("use {} as a disk: {target} keeps its data elsewhere", path.display())]
    #[hint("omit the path")]
    DiskElsewhere { path: PathBuf, target: String },
    #[error(
        "use {} as a disk: it was not kept by an earlier run, and no file is overwritten",
        path.display()
    )]
    #[hint("name a directory, or a block device together with --destroy")]
    NotADisk { path: PathBuf },
    #[error("reuse {}: it was made with {option} {is}, not {asked}", path.display())]
    #[hint("use {option} {is}, or omit {option}; to start from scratch, name a directory")]
    KeptOther { path: PathBuf, option: &'static str, is: String, asked: String },
    #[error("make {asked} tables a schema on {}: its files have room for {room}", path.display())]
    #[hint("name a directory, or files that a run with --profile bulk-write kept")]
    NoRoomForTables { path: PathBuf, room: u64, asked: u32 },
    #[error("destroy {}: it is not one of the disks of this run", path.display())]
    #[hint("name the same device as PATH and with --destroy")]
    DestroyOther { path: PathBuf },
    #[error("accept a loss: these disks hold nothing that an earlier run kept")]
    #[hint("omit --accept-loss")]
    NoLoss,
    #[error("run for no time: nothing would be measured")]
    #[hint("use --for 1s or more")]
    NoTime,
    #[error("measure {what}: {why}")]
    #[hint("{hint}")]
    Matrix { what: String, why: String, hint: &'static str },
    #[error("scan {target}: this target has no rows")]
    #[hint("use --target instance, or a database")]
    NoScan { target: String },
    #[error("scan {target} with {option}: {why}")]
    #[hint("{hint}")]
    ScanOption { target: String, option: &'static str, why: String, hint: &'static str },
    #[error(
        "scan {size} with {parallel} sessions: each has less than the {least} that its \
         outstanding reads cover"
    )]
    #[hint("use a larger --scan-size, or a smaller --multiblock, --parallel or --slots")]
    ScanSize {
        size: Bytes,
        parallel: u32,
        /// Total size of a session's slots.
        least: Bytes,
    },
    #[error("add noise of {writers} writers: it must be 1 to {most}")]
    #[hint("--noise redo:2")]
    NoiseWriters { writers: u32, most: u32 },
    #[error("add noise in writes of {write}: it must be a power of two from 4K to 1M")]
    #[hint("log writers and dd bs=128k write 128K")]
    NoiseWrite { write: Bytes },
    #[error("add noise in an area of {area} for each writer: it must be whole MiB")]
    #[hint("--noise-area 1G is as large as many redo logs")]
    NoiseArea { area: Bytes },
    #[error("add noise beside a {target} server: no file is created in its directory")]
    #[hint("use --target {target}:scratch with a directory of yours")]
    NoiseAtServer { target: String },
    #[error("add noise on {}: noise writes files, and this is a device", path.display())]
    #[hint("name a directory on this storage as PATH")]
    NoiseOnDevice { path: PathBuf },
    #[error(
        "add noise in {}: less than {least} per writer is free beside the data",
        path.display()
    )]
    #[hint("free some space, or use fewer writers or a smaller --scale")]
    NoiseRoom { path: PathBuf, least: Bytes },
    #[error("write noise: {why}")]
    #[hint("the recording has everything measured so far; see dmesg")]
    NoiseFailed { why: String },
    #[error("{why}")]
    #[hint("one failed session ends a run; the recording has everything measured so far")]
    Session { why: String },
    #[error("keep {}: {source}", path.display())]
    #[hint("is the directory still there and writable?")]
    Keep { path: PathBuf, source: std::io::Error },
}
