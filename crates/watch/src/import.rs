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
use blockstone_record::manifest::{End, Imported};

use crate::settings::Destination;
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
    /// Whether its numbers go on in the file that comes after it. Where they do not, nobody knows
    /// what happened between the two.
    goes_on: bool,
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
    /// Two files do not belong together.
    #[error("import {path} with {other}: {what}\nhint: give each a recording of its own")]
    Differ {
        /// One of them.
        path: PathBuf,
        /// The other.
        other: PathBuf,
        /// Why not.
        what: &'static str,
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

/// Files of another tool, read and found whole, or whole up to where they were cut.
pub struct Import {
    parts: Vec<Part>,
    host: Host,
    imported: Imported,
    contents: Contents,
}

/// One of the files.
struct Part {
    path: PathBuf,
    format: &'static Format,
    origin: Origin,
    contents: Contents,
}

impl Import {
    /// Reads all of these files, which are of one tool on one host, in whatever order. Nothing is
    /// written.
    ///
    /// # Errors
    /// When one cannot be read, is of no known format, is damaged, or holds no interval; when they
    /// do not belong together.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ImportError> {
        let mut parts = paths.iter().map(|path| Part::read(path)).collect::<Result<Vec<_>, _>>()?;
        parts.sort_by_key(|part| part.contents.first_ns);
        let mut contents = Contents::default();
        for pair in parts.windows(2) {
            pair[1].follows(&pair[0])?;
        }
        let mut notes: Vec<String> = Vec::new();
        for part in &parts {
            contents.extend(&part.contents);
            let name = part.path.file_name().unwrap_or_default().to_string_lossy();
            let of = if paths.len() > 1 { format!("{name}: ") } else { String::new() };
            notes.extend(part.origin.notes.iter().map(|note| format!("{of}{note}")));
        }
        let Some(last) = parts.last() else {
            return Err(foreign(Path::new(""), "no file is named"));
        };
        let names: Vec<String> = parts.iter().map(|part| part.path.display().to_string()).collect();
        let imported = Imported {
            tool: last.format.tool.to_owned(),
            tool_version: last.origin.tool_version.clone(),
            file: names.join(", "),
            holds: last.format.holds.to_owned(),
            notes,
        };
        let host = last.origin.host.clone();
        Ok(Self { parts, host, imported, contents })
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
    /// When it cannot be written, or a file is no longer what it was.
    pub fn record(&self, to: &Destination, argv: &[String]) -> Result<(), ImportError> {
        let mut writer = Writer::begin(to, argv, self)?;
        let written = self.parts.iter().try_for_each(|part| {
            if !part.format.goes_on {
                writer.interrupt(part.contents.first_ns)?;
            }
            let text = Text::read(&part.path)?;
            let mut sink = |look: Look| writer.add(look).map_err(Failure::Record);
            let read = (part.format.read)(&text, &mut sink);
            read.map(drop).map_err(|failure| part.failed(failure))
        });
        let end = match &written {
            Ok(()) => End::Complete,
            Err(error) => End::Failed { error: error.to_string() },
        };
        let closed = writer.close(end);
        written?;
        Ok(closed?)
    }
}

impl Part {
    fn read(path: &Path) -> Result<Self, ImportError> {
        let text = Text::read(path)?;
        if text.as_str().trim().is_empty() {
            return Err(foreign(path, "it is empty"));
        }
        let format = ALL.iter().find(|format| (format.recognises)(text.as_str()));
        let Some(&format) = format else {
            return Err(foreign(path, "no known tool wrote such a file"));
        };
        let (origin, contents) = (Origin::default(), Contents::default());
        let mut part = Self { path: path.to_owned(), format, origin, contents };
        let mut contents = Contents::default();
        let mut sink = |look: Look| {
            contents.add(&look);
            Ok(())
        };
        part.origin = (format.read)(&text, &mut sink).map_err(|failure| part.failed(failure))?;
        part.contents = contents;
        if part.contents.instants < 2 {
            let what = "the file ends before one interval was told".to_owned();
            return Err(part.failed(Failure::Damage { line: text.last_line(), what }));
        }
        Ok(part)
    }

    fn failed(&self, failure: Failure) -> ImportError {
        match failure {
            Failure::Damage { line, what } => {
                let hint = format!("it is read as: {}", self.format.made_by);
                ImportError::Damaged { path: self.path.clone(), line, what, hint }
            }
            Failure::Record(error) => error.into(),
        }
    }

    /// Whether it may follow another file in one recording.
    fn follows(&self, other: &Self) -> Result<(), ImportError> {
        let differ = |what| {
            let (path, other) = (self.path.clone(), other.path.clone());
            Err(ImportError::Differ { path, other, what })
        };
        if self.format.tool != other.format.tool {
            return differ("they are of different tools");
        }
        if self.origin.host.hostname != other.origin.host.hostname {
            return differ("they are of different hosts");
        }
        if self.contents.first_ns <= other.contents.last_ns {
            return differ("they are of the same time");
        }
        Ok(())
    }
}
