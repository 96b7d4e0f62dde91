//! Errors of a group, with the name of the disk or file.

use blockstone_base::Bytes;
use blockstone_base::hint::Hint;
use blockstone_sys::file::FileError;
use blockstone_sys::survey::SurveyError;

use crate::disk::DiskError;

#[derive(Debug, thiserror::Error, Hint)]
pub enum GroupError {
    #[error(
        "create disk group: {redundancy} redundancy needs a disk for each of {copies} copies, but \
         the number of disks is {disks}"
    )]
    #[hint("name more disks, or use less redundancy")]
    TooFewDisks { redundancy: &'static str, copies: usize, disks: usize },
    #[error(
        "create disk group: {redundancy} redundancy keeps {copies} copies, but the disks form \
         {failure_groups} failure groups"
    )]
    #[hint("put the disks into more failure groups, or use less redundancy")]
    TooFewFailureGroups { redundancy: &'static str, copies: usize, failure_groups: usize },
    #[error("create disk group: {what}")]
    #[hint("{hint}")]
    Parameter { what: String, hint: &'static str },
    #[error(
        "create disk group: disk {disk} has room for {units} allocation units, and the files need \
         more"
    )]
    #[hint("use larger disks, more of them, a smaller scale or less redundancy")]
    NoRoom { disk: String, units: u32 },
    #[error("replace disk {disk}: it must hold {needed} and is too small")]
    #[hint("choose a disk at least as large as the one that is gone")]
    TooSmall { disk: String, needed: Bytes },
    #[error("use device {disk} as a disk: its first or last MiB holds data")]
    #[hint(
        "choose another, or clear it with `wipefs -a` and `blkdiscard` if its data are not needed"
    )]
    NotEmpty { disk: String },
    #[error("use device {disk} as a disk: it is in use by {usage}")]
    #[hint("name a directory on it instead, or unmount or detach it first")]
    InUse { disk: String, usage: String },
    #[error(transparent)]
    #[hint(transparent)]
    Survey(#[from] SurveyError),
    #[error(transparent)]
    #[hint(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    #[hint(transparent)]
    Disk(#[from] DiskError),
    #[error("open disk group: disk {disk} holds no Blockstone disk group")]
    #[hint("check the path, or create the group first")]
    NotADisk { disk: String },
    #[error("open disk group: both headers of disk {disk} are damaged")]
    #[hint("if its failure group has a mirror, open the group without this disk")]
    DamagedHeader { disk: String },
    #[error(
        "open disk group: disk {disk} is of version {found}, this program supports version {known}"
    )]
    #[hint("use the version that created the group, or create it again")]
    OtherVersion { disk: String, found: u32, known: u32 },
    #[error("open disk group: disk {disk} belongs to another group than disk {other}")]
    #[hint("name the disks of one group")]
    OtherGroup { disk: String, other: String },
    #[error(
        "open disk group: disks {disk} and {other} are the same disk of the group, or one is a \
         copy"
    )]
    #[hint("name every disk once")]
    Twice { disk: String, other: String },
    #[error("open disk group: no disk has an undamaged map")]
    #[hint("name the missing disks as well; a group without a map must be created again")]
    NoMap,
    #[error(
        "open disk group: disk {disk} and the other disks were changed independently of each other"
    )]
    #[hint("decide which disks to keep, and open the group without the others")]
    Diverged { disk: String },
    #[error("use disk group without {missing}: file {file} has data with no other copy")]
    #[hint("bring a missing disk back; {redundancy} redundancy survives {survives}")]
    CopiesMissing {
        missing: String,
        file: String,
        redundancy: &'static str,
        survives: &'static str,
    },
    /// A flush failed on a disk whose writes have no other copy.
    #[error(
        "sync disk group: disk {disk} failed to flush ({why}), and writes that it had taken may \
         be lost"
    )]
    #[hint("open the group again; recovery restores them from the redo")]
    WritesLost { disk: String, why: String },
    #[error(
        "return a disk to its group: a write failed on every copy that is online ({why}), and \
         what they hold is not known"
    )]
    #[hint("open the group again; recovery makes them whole")]
    WriteFailed { why: String },
    #[error("return disk {disk} to its group: it is {state}")]
    #[hint("only an offline disk returns")]
    NotOffline { disk: String, state: &'static str },
    #[error("return disk {disk} to its group: it is missing")]
    #[hint("reconnect or mount it; the group continues without it")]
    StillAway { disk: String },
    /// A disk failed while it was being given the data it missed.
    #[error("return disk {disk} to its group: it failed again")]
    #[hint("see the kernel's log (dmesg); the group continues without it")]
    FailedAgain { disk: String },
    /// The caller ended a layout or a resync through its progress function.
    #[error("disk group: aborted")]
    #[hint("the unfinished part restarts on the next attempt")]
    Aborted,
    #[error("write to disk group: it was closed")]
    #[hint("this is a bug in the caller; please report it")]
    Closed,
    #[error("open file {name}: the disk group has no such file")]
    #[hint("check that it was created completely")]
    NoSuchFile { name: String },
    #[error(
        "{operation} file {file}: {len} bytes at {offset} are not whole blocks of {block} inside \
         it"
    )]
    #[hint("this is a bug in the caller; please report it")]
    Range { operation: &'static str, file: String, offset: u64, len: usize, block: Bytes },
    #[error("read file {file} at byte {offset}: none of its {copies} readable copies is intact")]
    #[hint("the block is lost; a torn write without protection can cause this")]
    Corrupt { file: String, offset: u64, copies: usize },
}
