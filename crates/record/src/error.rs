//! Errors of recordings, each with the name of its file and a hint.

use std::io;
use std::path::{Path, PathBuf};

use blockstone_base::hint::Hint;
use blockstone_sys::held::Foreign;

#[derive(Debug, thiserror::Error, Hint)]
pub enum RecordError {
    #[error("{verb} {}: {source}", path.display())]
    #[hint("{}", io_hint(source))]
    Io {
        /// Attempted operation: `write`, `rename`, `read`.
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The directory for a new recording is not empty.
    #[error("create recording {}: the directory is not empty", path.display())]
    #[hint("name a directory that does not exist yet, or an empty one")]
    NotEmpty { path: PathBuf },
    #[error("create recording {}: another run is recording there", path.display())]
    #[hint("give each run its own --record, or none: the default directories never collide")]
    InUse { path: PathBuf },
    /// It is to be removed while it is being written.
    #[error("remove {}: it is still being recorded", path.display())]
    #[hint("interrupt the command that records it, or wait for its end")]
    Running { path: PathBuf },
    #[error("remove {}: it is a link", path.display())]
    #[hint("remove the link with rm; what it leads to stays")]
    Link { path: PathBuf },
    /// A directory that is to be removed has something that no recording has.
    #[error("remove {}: `{}` in it is not part of a recording", path.display(), found.display())]
    #[hint("move it elsewhere; nothing was removed")]
    Strange { path: PathBuf, found: PathBuf },
    #[error("open recording {}: it has no manifest.json", path.display())]
    #[hint("name the directory of one run; `blockstone runs` lists them")]
    NotARecording { path: PathBuf },
    #[error(
        "open recording {}: its format is {format}, this version reads up to {}",
        path.display(), crate::manifest::FORMAT
    )]
    #[hint("open it with the version of Blockstone that wrote it, or a later one")]
    NewerFormat {
        /// The manifest or table.
        path: PathBuf,
        format: String,
    },
    #[error("read {}: {why}", path.display())]
    #[hint("{hint}")]
    Damaged { path: PathBuf, why: String, hint: &'static str },
    #[error("read {}: {why}", path.display())]
    #[hint("copy a recording as a whole directory; put the file back where it belongs")]
    Foreign { path: PathBuf, why: String },
    /// A probe was requested that the recording does not have.
    #[error("read series {probe}: not in this recording")]
    #[hint("it has {}", known.join(", "))]
    UnknownProbe { probe: String, known: Vec<String> },
    /// A row, a schema or a manifest cannot be recorded as it is.
    #[error("record {what}: {why}")]
    #[hint("this is a bug in Blockstone; please report it")]
    Rejected {
        /// The table and row, or the file.
        what: String,
        why: String,
    },
}

impl RecordError {
    /// For use in `map_err`: an operating system error with its verb and path.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { verb, path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            why: why.into(),
            hint: "the file was truncated or changed after it was written; restore it from a copy \
                   or measure again",
        }
    }

    pub(crate) fn rejected(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Rejected { what: what.into(), why: why.into() }
    }

    /// Returns whether a file vanished, as segments do while a running recorder compacts them.
    pub(crate) fn is_vanished(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn io_hint(source: &io::Error) -> &'static str {
    match Foreign::of(source) {
        Some(Foreign::Owner(_)) => {
            return "name a directory of your own (--record, --runs-dir, or --save of a scan)";
        }
        Some(Foreign::Writable(_)) => {
            return "chmod go-w it, or name another directory (--record, --runs-dir, or --save of a \
                    scan)";
        }
        None => {}
    }
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space there or name another directory (--record, or --save of a scan); what \
             was recorded before stays readable"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "check the permissions, or name a directory that you may write to (--runs-dir or \
             BLOCKSTONE_RUNS_DIR, --record, --save)"
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "a file is in the way; name another directory"
        }
        io::ErrorKind::NotFound => "check the path; the directory may have been removed",
        _ => "check the file system that holds it (dmesg); what was recorded before stays readable",
    }
}
