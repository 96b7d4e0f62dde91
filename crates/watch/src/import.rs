//! Files of other monitors as recordings of ours.
//!
//! A [`Format`] turns a tool's file into [`Look`]s: rows of the probes that a watch has, at the
//! instants at which the tool looked. Where the tool kept counters they are taken as they are, by
//! the probes themselves; where it printed rates, [`ledger`] makes counters of them that move by
//! just these. What a file does not hold is unmeasured, never zero, and says so.
//!
//! The file is read twice: once to see that all of it makes sense, before anything is written, and
//! once to write it.
//!
//! To read another tool's files: one module with its `FORMAT`, one line in [`ALL`].

mod collectl;
mod iostat;
mod ledger;
mod sar;
mod stamp;
mod sysstat;
mod text;
mod writer;

use std::path::{Path, PathBuf};

use blockstone_base::column::Reading;
use blockstone_base::identity::Host;
use blockstone_record::RecordError;
use blockstone_record::manifest::Imported;

use crate::recorder::Destination;
use text::Text;
use writer::{Contents, Writer};

/// Every format that is read, in the order in which a file is offered to them.
const ALL: &[&Format] = &[&collectl::FORMAT, &sar::FORMAT, &iostat::JSON, &iostat::TEXT];

/// A kind of file.
struct Format {
    /// The tool that writes it.
    tool: &'static str,
    /// What it holds, for people.
    holds: &'static str,
    /// How it is made.
    made_by: &'static str,
    /// Whether a file that begins so is one.
    recognises: fn(&str) -> bool,
    /// Reads it from its beginning to its end, or to where it was cut.
    read: fn(&Text, &mut Sink<'_>) -> Result<Origin, Failure>,
}

/// Takes what was looked at, in the order of time.
type Sink<'a> = dyn FnMut(Look) -> Result<(), Failure> + 'a;

/// What was seen at one instant.
#[derive(Clone, Debug)]
struct Look {
    /// Nanoseconds since 1970. Never before that of the look before; the same instant may have
    /// rows that are added later.
    at_ns: u64,
    /// One row of each object.
    readings: Vec<Reading>,
}

/// What a file says about itself.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// The tool's version.
    tool_version: Option<String>,
    /// The machine, so far as the file describes it.
    host: Host,
    /// What a reader of the recording should know.
    notes: Vec<String>,
}

/// Why reading ended.
#[derive(Debug)]
enum Failure {
    /// The file is damaged in this line, counted from 1.
    Damage { line: usize, what: String },
    /// The recording could not be written.
    Record(RecordError),
}

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("read {path}: {source}\nhint: is it the right path, and may this user read it?")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// No format fits.
    #[error("import {path}: {why}\nhint: what can be imported: {known}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: &'static str,
        /// What would fit.
        known: String,
    },
    /// It is what it seems to be, but not whole.
    #[error("import {path}: line {line}: {what}\nhint: {hint}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, of the decompressed text.
        line: usize,
        /// What is wrong there.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The recording could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// The error about a file that no format fits.
fn foreign(path: &Path, why: &'static str) -> ImportError {
    let known = ALL.iter().map(|format| format.made_by).collect::<Vec<_>>().join(" · ");
    ImportError::Foreign { path: path.to_owned(), why, known }
}

/// A file of another tool, read and found whole, or whole up to where it was cut.
pub struct Import {
    path: PathBuf,
    format: &'static Format,
    text: Text,
    host: Host,
    imported: Imported,
    contents: Contents,
}

impl Import {
    /// Reads all of a file. Nothing is written.
    ///
    /// # Errors
    /// When it cannot be read, is of no known format, is damaged, or holds no interval.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let text = Text::read(path)?;
        if text.as_str().trim().is_empty() {
            return Err(foreign(path, "it is empty"));
        }
        let format = ALL.iter().find(|format| (format.recognises)(text.as_str()));
        let Some(&format) = format else {
            return Err(foreign(path, "no known tool wrote such a file"));
        };
        let damaged = |line, what| ImportError::Damaged {
            path: path.to_owned(),
            line,
            what,
            hint: format!("it is read as: {}", format.made_by),
        };
        let mut contents = Contents::default();
        let mut sink = |look: Look| {
            contents.add(&look);
            Ok(())
        };
        let origin = (format.read)(&text, &mut sink).map_err(|failure| match failure {
            Failure::Damage { line, what } => damaged(line, what),
            Failure::Record(error) => error.into(),
        })?;
        if contents.instants < 2 {
            let what = "the file ends before one interval was told".to_owned();
            return Err(damaged(text.last_line(), what));
        }
        let imported = Imported {
            tool: format.tool.to_owned(),
            tool_version: origin.tool_version,
            file: path.display().to_string(),
            holds: format.holds.to_owned(),
            notes: origin.notes,
        };
        let path = path.to_owned();
        Ok(Self { path, format, text, host: origin.host, imported, contents })
    }

    /// What a reader of the recording should know: what was left out, and what was taken for what.
    pub fn notes(&self) -> &[String] {
        &self.imported.notes
    }

    /// In one line: tool, host, how many instants.
    pub fn summary(&self) -> String {
        format!(
            "{} on {}: {} instants over {}",
            self.imported.told_by(),
            self.host.hostname,
            self.contents.instants,
            blockstone_base::Nanos(self.contents.length_ns()),
        )
    }

    /// Writes the recording.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record(&self, to: &Destination, argv: &[String]) -> Result<(), ImportError> {
        let mut writer = Writer::begin(to, argv, self)?;
        let mut sink = |look: Look| writer.add(look).map_err(Failure::Record);
        (self.format.read)(&self.text, &mut sink).map_err(|failure| match failure {
            Failure::Record(error) => ImportError::Record(error),
            Failure::Damage { line, what } => ImportError::Damaged {
                path: self.path.clone(),
                line,
                what,
                hint: "it was whole a moment ago: does somebody write to it?".to_owned(),
            },
        })?;
        Ok(writer.close()?)
    }
}
