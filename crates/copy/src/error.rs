//! Why something could not be copied.

use std::io;
use std::path::{Path, PathBuf};

use blockstone_base::hint::Hint;
use blockstone_sys::buffer::ArenaError;
use blockstone_sys::file::FileError;
use blockstone_sys::ring::RingError;
use rustix::fs::FileType;
use rustix::io::Errno;

#[derive(Debug, thiserror::Error, Hint)]
pub enum CopyError {
    #[error("{operation} {}: {source}", path.display())]
    #[hint("{hint}")]
    Io { operation: &'static str, path: PathBuf, source: io::Error, hint: &'static str },
    #[error("copy: interrupted")]
    #[hint("the same command with --resume goes on from there")]
    Interrupted,
    #[error("copy to {}: it exists", path.display())]
    #[hint("--force replaces it")]
    Exists { path: PathBuf },
    #[error("copy to {}: an interrupted copy left {}", path.display(), part.display())]
    #[hint("--resume goes on with it, --force starts over")]
    LeftOver { path: PathBuf, part: PathBuf },
    #[error("copy to {}: another copy is writing {}", path.display(), part.display())]
    #[hint("wait until it has ended")]
    Busy { path: PathBuf, part: PathBuf },
    #[error("copy {}: {what} while it was copied", path.display())]
    #[hint("copy it when nothing writes to it, or a snapshot of it")]
    Changed { path: PathBuf, what: String },
    #[error("copy {}: not possible with --method {method}: {why}", path.display())]
    #[hint("without --method, the best one that is possible is chosen")]
    Method { path: PathBuf, method: &'static str, why: String },
    #[error(
        "verify {}: the chunk at offset {offset_bytes} has the hash {found:032x}, and had \
         {expected:032x} when it was read from the source",
        path.display()
    )]
    #[hint(
        "the storage returns other bytes than were written; the copy is left as {}",
        part.display()
    )]
    Differs { path: PathBuf, part: PathBuf, offset_bytes: u64, expected: u128, found: u128 },
    #[error("copy to {}: it exists and {why}", path.display())]
    #[hint("look at it; --force replaces it")]
    NotKept { path: PathBuf, why: String },
    #[error("copy to {}: it is {what}, which a copy never replaces", path.display())]
    #[hint("{hint}")]
    Special { path: PathBuf, what: &'static str, hint: &'static str },
    #[error("copy: {what}")]
    #[hint("{hint}")]
    Usage { what: String, hint: &'static str },
    #[error("read the manifest: line {line}: {why}")]
    #[hint("name a manifest that copy wrote")]
    Manifest { line: u64, why: String },
    #[error(transparent)]
    #[hint(transparent)]
    Memory(#[from] ArenaError),
    #[error(transparent)]
    #[hint(transparent)]
    Ring(#[from] RingError),
    #[error(transparent)]
    #[hint(transparent)]
    Device(#[from] FileError),
}

impl CopyError {
    /// Fails if a file of this type at `path` is never replaced.
    pub(crate) fn unless_replaceable(found: FileType, path: &Path) -> Result<(), Self> {
        match special(found) {
            Some((what, hint)) => Err(Self::Special { path: path.to_owned(), what, hint }),
            None => Ok(()),
        }
    }

    /// Returns the error for a name that leads to something other than what this copy made or
    /// planned.
    pub(crate) fn replaced(operation: &'static str, path: &Path) -> Self {
        Self::Io {
            operation,
            path: path.to_owned(),
            source: io::Error::other("something else has its name now"),
            hint: "copy it when nobody changes names in these directories",
        }
    }

    /// Returns whether the requested memory is not available.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Makes an I/O error with a suitable hint.
    pub(crate) fn io<'a, E: Into<io::Error>>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> Self + use<'a, E> {
        move |source| {
            let source = source.into();
            let hint = hint(&source);
            Self::Io { operation, path: path.to_owned(), source, hint }
        }
    }
}

/// Describes a file type that a copy never replaces, and what the user may want instead; `None` for
/// files, links and directories.
pub(crate) fn special(found: FileType) -> Option<(&'static str, &'static str)> {
    let to_pipe = "`blockstone copy FILE - > TARGET` writes to it";
    match found {
        FileType::BlockDevice => {
            Some(("a block device", "named a second time with --destroy, it is overwritten"))
        }
        FileType::CharacterDevice => Some((
            "a character device",
            "`blockstone copy FILE - > /dev/null` only reads, for a file or a block device",
        )),
        FileType::Fifo => Some(("a pipe", to_pipe)),
        FileType::Socket => Some(("a socket", "name another target")),
        _ => None,
    }
}

fn hint(source: &io::Error) -> &'static str {
    let errno = |errno: Errno| source.raw_os_error() == Some(errno.raw_os_error());
    if errno(Errno::MFILE) || errno(Errno::NFILE) {
        return "raise the limit on open files (ulimit -n), or copy fewer --jobs at once";
    }
    if errno(Errno::NAMETOOLONG) {
        return "copy from a directory further down: the kernel takes paths of 4095 bytes";
    }
    match source.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "run as a user who may",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space; --resume goes on with a copy of a file"
        }
        io::ErrorKind::InvalidInput => "name a regular file",
        io::ErrorKind::ReadOnlyFilesystem => "choose a file system that can be written to",
        _ => "see the kernel's log (dmesg) for the cause",
    }
}
