//! Turns files of other monitors into recordings.
//!
//! A [`Format`] turns a tool's file into [`Snapshot`]s: rows of the probes of a watch, at the
//! instants at which the tool sampled. Counters that the tool kept are parsed by the probes
//! themselves; rates that it printed are turned back into counters by [`ledger`]. Columns that a
//! file does not contain are unmeasured, never zero.
//!
//! Files are read twice: once to check all of it before anything is written, and once to write it.
//!
//! Reading another tool's files takes one module with its `FORMAT`, and one line in [`ALL`].
//!
//! Load statistics kept by databases are read as a whole by the crate `import` ([`load`]).

mod collectl;
mod iostat;
mod ledger;
mod load;
mod sar;
mod stamp;
mod sysstat;
mod text;
mod writer;

use std::io::ErrorKind;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel};
use std::thread::available_parallelism;

use blockstone_base::column::Reading;
use blockstone_base::hint::Hint;
use blockstone_base::identity::Host;
use blockstone_probe::host;
use blockstone_record::RecordError;
use blockstone_record::manifest::{End, Imported, ProbeInfo};
use blockstone_sys::thread;
use blockstone_view::History;

use crate::settings::Destination;
use load::Load;
pub use load::{Databases, is_load};
use text::Text;
use writer::{Contents, Writer, empty_row};

/// Every supported format, in the order in which they are tried on a file.
const ALL: &[&Format] = &[&collectl::FORMAT, &sar::FORMAT, &iostat::JSON, &iostat::TEXT];

/// Maximum number of files read concurrently. A compressed file may need 128 MiB of memory.
const READERS_MAX: usize = 4;
/// Snapshots in a batch from a reader, and the number of batches that it may be ahead.
const BATCH: usize = 64;
const BATCHES: usize = 4;

struct Format {
    tool: &'static str,
    /// Description of its contents for the reader of a report.
    holds: &'static str,
    /// Whether counters continue in the next file. If not, the change between the two files is
    /// unknown.
    goes_on: bool,
    made_by: &'static str,
    /// Recognises the format by the first lines of a file.
    recognises: fn(&str) -> bool,
    /// Reads the file to its end, or to the point where it is truncated.
    read: fn(&mut Text, &mut Sink<'_>) -> Result<Origin, Failure>,
}

/// Receives snapshots in order of time.
type Sink<'a> = dyn FnMut(Snapshot) -> Result<(), Failure> + 'a;

/// The readings of one instant.
#[derive(Clone, Debug)]
struct Snapshot {
    /// Nanoseconds since 1970; never decreases, and further rows may have the same instant.
    at_ns: u64,
    readings: Vec<Reading>,
}

#[derive(Clone, Debug, Default)]
struct Origin {
    tool_version: Option<String>,
    /// The machine, as far as the file describes it.
    host: Host,
    notes: Vec<String>,
}

#[derive(Debug)]
enum Failure {
    /// The file is damaged in this line, counted from 1.
    Damage { line: usize, what: String },
    /// The file cannot be read, or is not text.
    File(ImportError),
    /// The receiver takes no more snapshots.
    Stopped,
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum ImportError {
    #[error("read {path}: {source}")]
    #[hint("check the path and that this user may read it")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("import {path}: {why}")]
    #[hint("what can be imported: {known}")]
    Foreign { path: PathBuf, why: &'static str, known: String },
    /// The format is known, but a line of it is damaged.
    #[error("import {path}: line {line}: {what}")]
    #[hint("{hint}")]
    Damaged {
        path: PathBuf,
        /// The line number in the decompressed text.
        line: usize,
        what: String,
        hint: String,
    },
    #[error("import {path} with {other}: {what}")]
    #[hint("import each into a recording of its own")]
    Differ { path: PathBuf, other: PathBuf, what: &'static str },
    #[error("import {path}: {what}")]
    #[hint("{hint}")]
    Load { path: PathBuf, what: String, hint: String },
    #[error("import several databases into one recording: {names}")]
    #[hint("import each by itself")]
    Databases { names: String },
    #[error("start a thread to read a file: {0}")]
    #[hint("raise ulimit -u")]
    Thread(std::io::Error),
    #[error(transparent)]
    #[hint(transparent)]
    Record(#[from] RecordError),
}

fn foreign(path: &Path, why: &'static str) -> ImportError {
    let made_by = ALL.iter().map(|format| format.made_by).chain([load::MADE_BY]);
    let known = made_by.collect::<Vec<_>>().join(" · ");
    ImportError::Foreign { path: path.to_owned(), why, known }
}

/// Files of another tool, read and checked; a truncated one up to its end.
pub struct Import {
    source: Source,
    host: Host,
    imported: Imported,
    contents: Contents,
}

enum Source {
    Files(Vec<ImportedFile>),
    /// The rows of the load statistics, and the names of their databases.
    Load(Vec<Snapshot>, Vec<String>),
}

struct ImportedFile {
    path: PathBuf,
    format: &'static Format,
    origin: Origin,
    contents: Contents,
}

impl Import {
    /// Reads these files of one tool on one host, or the load statistics of one database, in any
    /// order. Does not write anything.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ImportError> {
        if paths.iter().any(|path| is_load(path)) {
            return Self::read_loads(paths, false, Databases::One);
        }
        let mut parts = ImportedFile::read_all(paths)?;
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
            objects: Vec::new(),
        };
        let host = last.origin.host.clone();
        Ok(Self { source: Source::Files(parts), host, imported, contents })
    }

    /// Reads the load statistics of databases, from these files and those in these directories, in
    /// any order. The objects of their series begin with the name of the database. Host names are
    /// replaced by a hash unless `keep_names` is set.
    pub fn read_loads(
        paths: &[PathBuf],
        keep_names: bool,
        databases: Databases,
    ) -> Result<Self, ImportError> {
        let Load { snapshots, host, imported, databases } =
            Load::read(paths, keep_names, databases)?;
        let mut contents = Contents::default();
        for snapshot in &snapshots {
            contents.add(snapshot);
        }
        Ok(Self { source: Source::Load(snapshots, databases), host, imported, contents })
    }

    /// Returns the history that the recording would contain, without writing one.
    pub fn history(&self) -> Result<History, ImportError> {
        let mut history = History::new(self.probes());
        let first_ns = self.contents.first_ns;
        history.set_clock(0, i128::from(first_ns));
        history.set_imported(self.imported.clone());
        let mut add = |snapshot: &Snapshot| {
            let t_ns = snapshot.at_ns - first_ns;
            // The rows of the host define the ticks of a history.
            if !snapshot.readings.iter().any(|reading| reading.probe == host::SCHEMA.probe) {
                history.push(host::SCHEMA.probe, t_ns, "", empty_row(&host::SCHEMA));
            }
            for reading in &snapshot.readings {
                history.push(reading.probe, t_ns, &reading.object, reading.cells.clone());
            }
        };
        match &self.source {
            Source::Load(snapshots, _) => snapshots.iter().for_each(add),
            Source::Files(parts) => {
                for part in parts {
                    let mut sink = |snapshot: Snapshot| {
                        add(&snapshot);
                        Ok(())
                    };
                    let read = (part.format.read)(&mut Text::open(&part.path)?, &mut sink);
                    read.map_err(|failure| part.failed(failure))?;
                }
            }
        }
        Ok(history)
    }

    /// Returns its series, with the reasons for empty columns.
    fn probes(&self) -> Vec<ProbeInfo> {
        let schemas = self.contents.series();
        let mut probes: Vec<ProbeInfo> = schemas.into_iter().map(ProbeInfo::of).collect();
        self.contents.mark(&mut probes, &self.imported.tool);
        probes
    }

    /// Returns notes for the reader of the recording: what was skipped, and which assumptions were
    /// made.
    pub fn notes(&self) -> &[String] {
        &self.imported.notes
    }

    pub fn summary(&self) -> String {
        let of = match &self.source {
            Source::Files(_) => format!("on {}", self.host.hostname),
            Source::Load(_, databases) => format!("of {}", databases.join(", ")),
        };
        format!(
            "{} {of}: {} instants over {}",
            self.imported.told_by(),
            self.contents.instants,
            blockstone_base::Nanos(self.contents.length_ns()),
        )
    }

    /// Writes the recording.
    pub fn record(&self, to: &Destination, argv: &[String]) -> Result<(), ImportError> {
        let mut writer = Writer::begin(to, argv, self)?;
        let written = match &self.source {
            Source::Load(snapshots, _) => {
                snapshots.iter().try_for_each(|snapshot| Ok(writer.add(snapshot)?))
            }
            Source::Files(parts) => parts.iter().try_for_each(|part| {
                if !part.format.goes_on {
                    writer.interrupt(part.contents.first_ns)?;
                }
                part.write(&mut writer)
            }),
        };
        let end = match &written {
            Ok(()) => End::Complete,
            Err(error) => End::failed(error),
        };
        let closed = writer.close(end);
        written?;
        Ok(closed?)
    }
}

impl ImportedFile {
    /// Reads several files concurrently.
    fn read_all(paths: &[PathBuf]) -> Result<Vec<Self>, ImportError> {
        let threads = available_parallelism().map_or(1, NonZero::get).min(READERS_MAX);
        let mut parts = Vec::new();
        for some in paths.chunks(threads) {
            for part in thread::each("import", some, |path| Self::read(path)) {
                parts.push(part?);
            }
        }
        Ok(parts)
    }

    fn read(path: &Path) -> Result<Self, ImportError> {
        let head = Text::head(path)?;
        if head.trim().is_empty() {
            return Err(foreign(path, "it is empty"));
        }
        let format = ALL.iter().find(|format| (format.recognises)(&head));
        let Some(&format) = format else {
            return Err(foreign(path, "its format is unknown"));
        };
        let (origin, contents) = (Origin::default(), Contents::default());
        let mut part = Self { path: path.to_owned(), format, origin, contents };
        let mut contents = Contents::default();
        let mut sink = |snapshot: Snapshot| {
            contents.add(&snapshot);
            Ok(())
        };
        let mut text = Text::open(path)?;
        let read = (format.read)(&mut text, &mut sink);
        part.origin = read.map_err(|failure| part.failed(failure))?;
        part.contents = contents;
        if part.contents.instants < 2 {
            let what = "the file ends before its first interval is complete".to_owned();
            return Err(part.failed(Failure::Damage { line: text.number().max(1), what }));
        }
        Ok(part)
    }

    /// Reads the file again in its own thread and writes its contents.
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), ImportError> {
        let (send, receive) = sync_channel::<Vec<Snapshot>>(BATCHES);
        // Small allocations made by one thread and freed by another make both wait.
        let (give_back, used) = channel::<Vec<Snapshot>>();
        let mut text = Text::open(&self.path)?;
        let work = move || {
            let mut batch = Vec::new();
            let mut sink = |snapshot: Snapshot| {
                batch.push(snapshot);
                if batch.len() < BATCH {
                    return Ok(());
                }
                used.try_iter().for_each(drop);
                send.send(std::mem::take(&mut batch)).map_err(|_| Failure::Stopped)
            };
            (self.format.read)(&mut text, &mut sink)?;
            send.send(batch).map_err(|_| Failure::Stopped)
        };
        std::thread::scope(|scope| {
            let reader = thread::scoped(scope, "import", work).map_err(ImportError::Thread)?;
            let written = receive.iter().try_for_each(|batch| {
                batch.iter().try_for_each(|snapshot| writer.add(snapshot))?;
                // The send fails once the reader has finished.
                let _ = give_back.send(batch);
                Ok::<(), ImportError>(())
            });
            // The reader stops when its channel is closed.
            drop(receive);
            let read = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            written?;
            read.map_err(|failure| self.failed(failure))
        })
    }

    fn failed(&self, failure: Failure) -> ImportError {
        match failure {
            Failure::Damage { line, what } => {
                let hint = format!("the format was taken for {}", self.format.made_by);
                ImportError::Damaged { path: self.path.clone(), line, what, hint }
            }
            Failure::File(error) => error,
            Failure::Stopped => {
                let source = ErrorKind::BrokenPipe.into();
                ImportError::Read { path: self.path.clone(), source }
            }
        }
    }

    /// Checks whether it may follow another file in one recording.
    fn follows(&self, other: &Self) -> Result<(), ImportError> {
        let differ = |what| {
            let (path, other) = (self.path.clone(), other.path.clone());
            Err(ImportError::Differ { path, other, what })
        };
        if self.format.tool != other.format.tool {
            return differ("they were written by different tools");
        }
        if self.origin.host.hostname != other.origin.host.hostname {
            return differ("they are of different hosts");
        }
        if self.contents.first_ns <= other.contents.last_ns {
            return differ("their times overlap");
        }
        Ok(())
    }
}
