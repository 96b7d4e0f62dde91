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
mod dool;
mod found;
mod instant;
mod iostat;
mod ledger;
mod load;
mod nmon;
mod perfmon;
mod plot;
mod sar;
mod stamp;
mod steps;
mod sysstat;
mod text;
mod unread;
mod vmstat;
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
use blockstone_input::{Foreign, LeftOut, Source as File};
use blockstone_probe::host;
use blockstone_record::RecordError;
use blockstone_record::manifest::{End, Imported, ProbeInfo};
use blockstone_sys::thread;
use blockstone_view::History;

use crate::settings::Destination;
use found::Found;
pub use load::Databases;
use load::Load;
pub use stamp::NO_TIMES;
use text::Text;
use writer::{Contents, Writer, empty_row};

/// Every supported format, in the order in which they are tried on a file.
const ALL: &[&Format] = &[
    &plot::FORMAT,
    &collectl::FORMAT,
    &sar::FORMAT,
    &iostat::JSON,
    &sar::XML,
    &sar::CSV,
    &iostat::TEXT,
    &sar::TEXT,
    &nmon::FORMAT,
    &dool::FORMAT,
    &perfmon::FORMAT,
    &vmstat::FORMAT,
];

/// Tools whose files in a directory or an archive are read, the first that is there: those that
/// tell most of each disk first.
const PREFERRED: [&str; 8] =
    ["collectl", "iostat", "perfmon", "nmon", "sar", "dstat", "collectl -P", "vmstat"];

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
    #[hint("what can be imported: {known}; blockstone help import.md says how each is made")]
    Foreign { path: PathBuf, why: &'static str, known: String },
    /// A kind of file that is not read.
    #[error("import {path}: {kind}")]
    #[hint(kind)]
    Kind { path: PathBuf, kind: Foreign },
    /// A directory or an archive in which no file is read.
    #[error("import {path}: {why}")]
    #[hint("unpack it and name the files that are meant")]
    NoneFound { path: PathBuf, why: String },
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
    let mut tools: Vec<&str> = ALL.iter().map(|format| format.tool).collect();
    tools.sort_unstable();
    tools.dedup();
    let known = format!("files of {}, {}", tools.join(", "), load::MADE_BY);
    ImportError::Foreign { path: path.to_owned(), why, known }
}

/// Files of another tool, read and checked; a truncated one up to its end.
pub struct Import {
    source: Source,
    host: Host,
    imported: Imported,
    contents: Contents,
    left_out: Vec<LeftOut>,
}

const OVERLAP: &str = "their times overlap";

enum Source {
    Files(Vec<ImportedFile>),
    /// The rows of the load statistics, and the names of their databases.
    Load(Vec<Snapshot>, Vec<String>),
}

struct ImportedFile {
    file: File,
    /// Whether the user named it.
    is_named: bool,
    format: &'static Format,
    origin: Origin,
    contents: Contents,
}

impl Import {
    /// Reads these files of one tool on one host, or the load statistics of one database, in any
    /// order. Of directories and archives, the files that can be read. Does not write anything.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ImportError> {
        Self::read_any(paths, false, Databases::One)
    }

    /// Like [`Self::read`]. Host names of databases are replaced by a hash unless `keep_names` is
    /// set.
    pub fn read_any(
        paths: &[PathBuf],
        keep_names: bool,
        databases: Databases,
    ) -> Result<Self, ImportError> {
        let found = found::find(paths)?;
        if found.files.iter().any(|file| load::holds(&file.source)) {
            return Self::of_loads(found, keep_names, databases);
        }
        Self::of_monitors(found)
    }

    fn of_monitors(mut found: Found) -> Result<Self, ImportError> {
        let mut parts = ImportedFile::read_all(&mut found)?;
        parts.sort_by_key(|part| part.contents.first_ns);
        let parts = ImportedFile::following(parts, &mut found)?;
        let mut contents = Contents::default();
        for part in &parts {
            contents.extend(&part.contents);
        }
        let mut notes = notes(&parts);
        notes.extend(found::told(&found.left_out));
        let Some(last) = parts.last() else {
            let left_out = found.left_out.first();
            let path = left_out.map(|it| it.name.clone()).unwrap_or_default();
            let why = left_out.map_or("no file is named", |it| it.why.as_str()).to_owned();
            return Err(ImportError::NoneFound { path, why });
        };
        let files: Vec<File> = parts.iter().map(|part| part.file.clone()).collect();
        let imported = Imported {
            tool: last.format.tool.to_owned(),
            tool_version: last.origin.tool_version.clone(),
            file: load::files_named(&files),
            holds: last.format.holds.to_owned(),
            notes,
            objects: Vec::new(),
        };
        let host = last.origin.host.clone();
        let left_out = found.left_out;
        Ok(Self { source: Source::Files(parts), host, imported, contents, left_out })
    }

    /// Reads the load statistics of databases, from these files and those in these directories, in
    /// any order. The objects of their series begin with the name of the database. Host names are
    /// replaced by a hash unless `keep_names` is set.
    pub fn read_loads(
        paths: &[PathBuf],
        keep_names: bool,
        databases: Databases,
    ) -> Result<Self, ImportError> {
        Self::of_loads(found::find(paths)?, keep_names, databases)
    }

    fn of_loads(found: Found, keep_names: bool, databases: Databases) -> Result<Self, ImportError> {
        let left_out = found.left_out;
        let files: Vec<File> = found.files.into_iter().map(|file| file.source).collect();
        let Load { snapshots, host, imported, databases } =
            Load::read(&files, &left_out, keep_names, databases)?;
        let mut contents = Contents::default();
        for snapshot in &snapshots {
            contents.add(snapshot);
        }
        let source = Source::Load(snapshots, databases);
        Ok(Self { source, host, imported, contents, left_out })
    }

    /// Returns the history that the recording would contain, without writing one.
    pub fn history(&self) -> Result<History, ImportError> {
        let mut history = History::new(self.probes());
        let first_ns = self.contents.first_ns;
        history.set_clock(0, i128::from(first_ns));
        history.set_imported(self.imported.clone());
        let has_ticks = self.contents.has(host::SCHEMA.probe);
        let mut add = |snapshot: &Snapshot| {
            let t_ns = snapshot.at_ns - first_ns;
            // The rows of the host define the ticks of a history.
            if !has_ticks {
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
                    let read = (part.format.read)(&mut Text::open(&part.file)?, &mut sink);
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

    /// Returns the files in directories and archives that were not read, with the reasons. They are
    /// also in the notes.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    pub fn summary(&self) -> String {
        let of = match &self.source {
            Source::Files(_) if self.host.hostname.is_empty() => "of one host".to_owned(),
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

/// Whether a file, or one in a directory or an archive, contains the load of a database.
pub fn is_load(path: &Path) -> bool {
    let found = found::find(&[path.to_owned()]);
    found.is_ok_and(|found| found.files.iter().any(|file| load::holds(&file.source)))
}

/// Returns the notes of all files; one that several have is named once.
fn notes(parts: &[ImportedFile]) -> Vec<String> {
    let mut all: Vec<(&String, Vec<&ImportedFile>)> = Vec::new();
    for part in parts {
        for note in &part.origin.notes {
            match all.iter_mut().find(|(known, _)| *known == note) {
                Some((_, of)) => of.push(part),
                None => all.push((note, vec![part])),
            }
        }
    }
    let told = |(note, of): (&String, Vec<&ImportedFile>)| {
        let name = |part: &&ImportedFile| {
            part.file.name().file_name().unwrap_or_default().to_string_lossy().into_owned()
        };
        match of[..] {
            _ if of.len() == parts.len() => note.clone(),
            [only] => format!("{}: {note}", name(&only)),
            _ => format!("{} and {} more: {note}", name(&of[0]), of.len() - 1),
        }
    };
    all.into_iter().map(told).collect()
}

impl ImportedFile {
    /// Reads several files concurrently. Those in directories and archives that are of another
    /// tool, or damaged, are left out.
    fn read_all(found: &mut Found) -> Result<Vec<Self>, ImportError> {
        let mut wanted: Vec<(found::File, &'static Format)> = Vec::new();
        for file in std::mem::take(&mut found.files) {
            match Self::format(&file.source) {
                Ok(format) => wanted.push((file, format)),
                Err(error) if file.is_named => return Err(error),
                Err(error) => found.leave_out(file.source.name(), error.to_string()),
            }
        }
        let rank =
            |tool: &str| PREFERRED.iter().position(|it| *it == tool).unwrap_or(PREFERRED.len());
        let named = wanted.iter().find(|(file, _)| file.is_named).map(|(_, format)| format.tool);
        let best = || wanted.iter().map(|(_, format)| format.tool).min_by_key(|tool| rank(tool));
        let tool = named.or_else(best).unwrap_or_default();
        let is_other =
            |(file, format): &(found::File, &Format)| !file.is_named && format.tool != tool;
        for (file, format) in wanted.extract_if(.., |it| is_other(it)) {
            let other = format.tool;
            let why = format!("it is of {other}; {tool} is read: unpack it and name it instead");
            found.leave_out(file.source.name(), why);
        }
        let threads = available_parallelism().map_or(1, NonZero::get).min(READERS_MAX);
        let mut parts = Vec::new();
        for some in wanted.chunks(threads) {
            let read =
                thread::each("import", some, |(file, format)| Self::read(&file.source, format));
            for (part, (file, _)) in read.into_iter().zip(some) {
                match part {
                    Ok(part) => parts.push(Self { is_named: file.is_named, ..part }),
                    Err(error) if file.is_named || wanted.len() == 1 => return Err(error),
                    Err(error) => found.leave_out(file.source.name(), error.to_string()),
                }
            }
        }
        Ok(parts)
    }

    /// Checks whether each may follow the one before it. Of those in directories and archives, one
    /// that overlaps another is left out.
    fn following(parts: Vec<Self>, found: &mut Found) -> Result<Vec<Self>, ImportError> {
        let mut all: Vec<Self> = Vec::new();
        for part in parts {
            match all.last().map_or(Ok(()), |last| part.follows(last)) {
                Ok(()) => all.push(part),
                Err(ImportError::Differ { other, what: OVERLAP, .. }) if !part.is_named => {
                    let why = format!("{OVERLAP}: {}", other.display());
                    found.leave_out(part.file.name(), why);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    fn format(file: &File) -> Result<&'static Format, ImportError> {
        let head = Text::head(file)?;
        if head.trim().is_empty() {
            return Err(foreign(file.name(), "it is empty"));
        }
        let format = ALL.iter().find(|format| (format.recognises)(&head));
        format.copied().ok_or_else(|| found::unknown(file.name(), &head))
    }

    fn read(file: &File, format: &'static Format) -> Result<Self, ImportError> {
        let (origin, contents) = (Origin::default(), Contents::default());
        let mut part = Self { file: file.clone(), is_named: true, format, origin, contents };
        let mut contents = Contents::default();
        let mut sink = |snapshot: Snapshot| {
            contents.add(&snapshot);
            Ok(())
        };
        let mut text = Text::open(file)?;
        let read = (format.read)(&mut text, &mut sink);
        part.origin = read.map_err(|failure| part.failed(failure))?;
        part.contents = contents;
        if part.contents.instants < 2 {
            let what = if text.is_cut() {
                "the file ends before its first interval is complete"
            } else {
                "it has at most one report, and an interval needs two"
            };
            let line = text.number().max(1);
            return Err(part.failed(Failure::Damage { line, what: what.to_owned() }));
        }
        Ok(part)
    }

    /// Reads the file again in its own thread and writes its contents.
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), ImportError> {
        let (send, receive) = sync_channel::<Vec<Snapshot>>(BATCHES);
        // Small allocations made by one thread and freed by another make both wait.
        let (give_back, used) = channel::<Vec<Snapshot>>();
        let mut text = Text::open(&self.file)?;
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
                ImportError::Damaged { path: self.file.name().to_owned(), line, what, hint }
            }
            Failure::File(error) => error,
            Failure::Stopped => {
                let source = ErrorKind::BrokenPipe.into();
                ImportError::Read { path: self.file.name().to_owned(), source }
            }
        }
    }

    /// Checks whether it may follow another file in one recording.
    fn follows(&self, other: &Self) -> Result<(), ImportError> {
        let differ = |what| {
            let (path, other) = (self.file.name().to_owned(), other.file.name().to_owned());
            Err(ImportError::Differ { path, other, what })
        };
        if self.format.tool != other.format.tool {
            return differ("they were written by different tools");
        }
        if self.origin.host.hostname != other.origin.host.hostname {
            return differ("they are of different hosts");
        }
        if self.contents.first_ns <= other.contents.last_ns {
            return differ(OVERLAP);
        }
        Ok(())
    }
}
