//! A file that is read at every tick, or the reason why it is not.

use std::io;
use std::path::Path;

use blockstone_sys::proc::PseudoFile;

use crate::Unmeasured;

/// A file below `/proc` or `/sys`, open, or the reason why not.
#[derive(Debug)]
pub struct Source {
    path: String,
    /// What it means when the file is not there.
    absent: &'static str,
    state: Result<PseudoFile, Unmeasured>,
}

impl Source {
    /// Opens `path` below `root` and reads it once. `absent` says why it may be missing.
    pub fn open(root: &Path, path: &str, absent: &'static str) -> Self {
        let opened =
            PseudoFile::open(root, path).and_then(|mut file| file.read().map(drop).and(Ok(file)));
        let state = opened.map_err(|error| reason(path, absent, &error));
        Self { path: path.to_owned(), absent, state }
    }

    /// A source that is off.
    pub fn off(path: &str, why: String) -> Self {
        Self { path: path.to_owned(), absent: "", state: Err(Unmeasured::Off(why)) }
    }

    /// The present content; none from the first failure on.
    pub fn read(&mut self) -> Option<&[u8]> {
        if let Ok(file) = &mut self.state
            && let Err(error) = file.read()
        {
            self.state = Err(reason(&self.path, self.absent, &error));
        }
        self.state.as_ref().ok().map(PseudoFile::content)
    }

    /// What the last [`Self::read`] gave.
    pub fn content(&self) -> Option<&[u8]> {
        self.state.as_ref().ok().map(PseudoFile::content)
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Why it is not read.
    pub fn unmeasured(&self) -> Option<&Unmeasured> {
        self.state.as_ref().err()
    }
}

/// The reason behind an error.
pub fn reason(path: &str, absent: &str, error: &io::Error) -> Unmeasured {
    match error.kind() {
        io::ErrorKind::NotFound => Unmeasured::NotInVersion(format!("no {path}: {absent}")),
        io::ErrorKind::PermissionDenied => {
            Unmeasured::NotPermitted(format!("read {path}: {error}; root may"))
        }
        io::ErrorKind::Unsupported => Unmeasured::Off(format!("read {path}: {error}; {absent}")),
        _ => Unmeasured::NotInVersion(format!("read {path}: {error}")),
    }
}
