//! A file that is read at every tick, or the reason why it is not.

use std::io;
use std::path::Path;

use blockstone_base::Column;
use blockstone_sys::proc::{PseudoFile, numbers};

use crate::pages::Pages;
use crate::{Context, Schema, Scope, Unmeasured};

/// An open file below `/proc` or `/sys`, or the reason why it could not be opened.
#[derive(Debug)]
pub struct Source {
    path: String,
    /// Meaning of a missing file.
    absent: &'static str,
    state: Result<File, Unmeasured>,
}

#[derive(Debug)]
enum File {
    /// A file of this machine.
    Open(PseudoFile),
    /// A saved file, and its text as of the last look.
    Saved { pages: Pages, text: Vec<u8>, is_there: bool },
}

impl Source {
    /// Opens `path` where the context says. `absent` explains why it may be missing.
    pub fn of(context: &Context, path: &str, absent: &'static str) -> Self {
        match &context.scope {
            Scope::Pages(pages) => Self::saved(pages, path),
            Scope::Target(_) | Scope::Host(_) => Self::open(&context.root, path, absent),
        }
    }

    /// Opens a saved file. It may be missing from one page and be on the next.
    pub fn saved(pages: &Pages, path: &str) -> Self {
        let file = File::Saved { pages: pages.clone(), text: Vec::new(), is_there: false };
        Self { path: path.to_owned(), absent: "", state: Ok(file) }
    }

    /// Opens `path` below `root` and reads it once. `absent` explains why it may be missing.
    pub fn open(root: &Path, path: &str, absent: &'static str) -> Self {
        let opened =
            PseudoFile::open(root, path).and_then(|mut file| file.read().map(drop).and(Ok(file)));
        let state = opened.map(File::Open).map_err(|error| reason(path, absent, &error));
        Self { path: path.to_owned(), absent, state }
    }

    pub fn off(path: &str, why: String) -> Self {
        Self { path: path.to_owned(), absent: "", state: Err(Unmeasured::Off(why)) }
    }

    /// Returns the current content; `None` from the first failure on.
    pub fn read(&mut self) -> Option<&[u8]> {
        match &mut self.state {
            Ok(File::Open(file)) => {
                if let Err(error) = file.read() {
                    self.state = Err(reason(&self.path, self.absent, &error));
                }
            }
            Ok(File::Saved { pages, text, is_there }) => *is_there = pages.read(&self.path, text),
            Err(_) => {}
        }
        self.content()
    }

    /// Returns the result of the last [`Self::read`].
    pub fn content(&self) -> Option<&[u8]> {
        match self.state.as_ref().ok()? {
            File::Open(file) => Some(file.content()),
            File::Saved { text, is_there, .. } => is_there.then_some(text),
        }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn unmeasured(&self) -> Option<&Unmeasured> {
        self.state.as_ref().err()
    }
}

/// Meaning of a missing `/proc/pressure`.
pub const NO_PSI: &str = "the kernel is built without CONFIG_PSI, or was booted without psi=1";

/// Returns the stalled time in nanoseconds: the total, in µs, of the line `some avg10=0.00
/// avg60=0.00 avg300=0.00 total=14093239` or `full …` of a file below `/proc/pressure`.
pub fn stalled_ns(pressure: Option<&[u8]>, kind: &str) -> Option<u64> {
    let line = pressure?.split(|&b| b == b'\n').find(|line| line.starts_with(kind.as_bytes()))?;
    Some(numbers(line).last()?.saturating_mul(1000))
}

/// Returns the columns from files that could not be read, and why.
pub fn unread(schema: &Schema, sources: &[&Source]) -> Vec<(&'static str, Unmeasured)> {
    let why = |column: &Column| {
        let source = sources.iter().find(|source| column.source.starts_with(source.path()))?;
        Some((column.name, source.unmeasured()?.clone()))
    };
    schema.columns.iter().filter_map(why).collect()
}

/// Returns every column of a probe as unmeasured for one reason.
pub fn all_unmeasured(schema: &Schema, why: &Unmeasured) -> Vec<(&'static str, Unmeasured)> {
    schema.columns.iter().map(|column| (column.name, why.clone())).collect()
}

pub fn reason(path: &str, absent: &str, error: &io::Error) -> Unmeasured {
    match error.kind() {
        io::ErrorKind::NotFound => Unmeasured::NotInVersion(format!("no {path}: {absent}")),
        io::ErrorKind::PermissionDenied => {
            Unmeasured::NotPermitted(format!("read {path}: {error}; root may"))
        }
        io::ErrorKind::Unsupported => Unmeasured::Off(format!("read {path}: {error}; {absent}")),
        _ => Unmeasured::NoEvidence(format!("read {path}: {error}")),
    }
}
