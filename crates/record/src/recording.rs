//! Reads a recording: one that is finished, one that is still being written, or the remains of one
//! after a crash.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{io, iter, thread};

use blockstone_base::units::Bytes;
use blockstone_sys::held;

use crate::error::RecordError;
use crate::levels::{self, Level};
use crate::manifest::{ColumnInfo, End, MANIFEST, Manifest, ProbeInfo};
use crate::parquet_file::{KEY_COLUMNS, Reader};
use crate::rows::{self, EVENTS, Event, HISTOGRAMS, HistogramRow, LatencyClock, SECOND};
use crate::segments::{Found, TableFiles, check_format};
use crate::series::Series;
use crate::table::{T_NS, Table};

/// Attempts to find a table whose segments vanish: a recorder that closes removes them once, after
/// the file that replaces them is there.
const LOOKS: usize = 3;
/// The manifest of a recording with 300 disks takes 2 MiB.
const MANIFEST_MAX: Bytes = Bytes::mib(64);
/// Threads that read a file: each holds a row group in memory.
const READERS: usize = 2;
/// Number of a table's newest segments that opening verifies: a watch of a week has thousands.
const NEWEST: usize = 64;
/// Maximum of phases times the kinds of latencies in each; ours have a few hundred.
const MOST_KINDS: usize = 1 << 14;

/// A recording on disk. Opening reads the manifest and verifies every file's checksum, except that
/// among thousands of segments only the newest are verified; rows are read on request. Nothing is
/// ever written.
#[derive(Debug)]
pub struct Recording {
    pub manifest: Manifest,
    pub dir: PathBuf,
    warnings: Mutex<BTreeSet<String>>,
}

impl Recording {
    /// Opens the recording in `dir`. Fails when there is none, when a later version wrote it, when
    /// the manifest is damaged, and when a table of a finished recording is missing, damaged or
    /// from elsewhere. A damaged segment of an unfinished recording is a warning.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        let manifest = read_manifest(dir)?;
        let recording =
            Self { manifest, dir: dir.to_owned(), warnings: Mutex::new(BTreeSet::new()) };
        let probes = recording.manifest.probes.iter();
        for files in probes.map(|info| recording.series_files(&info.probe)) {
            recording.each_file(&files, Wanted::Newest, |_, _| Ok(()))?;
        }
        for table in [HISTOGRAMS, EVENTS] {
            let files = recording.plain_files(table);
            recording.each_file(&files, Wanted::Newest, |_, _| Ok(()))?;
        }
        Ok(recording)
    }

    /// Returns what is missing or unreadable although the recording as a whole is readable, one
    /// sentence each. Opening finds such problems; later damage is added when it is read.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.iter().cloned().collect()
    }

    /// Reads the rows of a probe. Fails when the probe was not recorded, and when a file is
    /// damaged.
    pub fn series(&self, probe: &str) -> Result<Series, RecordError> {
        let info = self.info(probe)?;
        let files = self.series_files(probe);
        let mut parts = self.each_file(&files, Wanted::All, |path, reader| {
            check_columns(path, &reader, &info.columns)?;
            Ok((path.to_owned(), reader.read(path)?))
        })?;
        let Some((path, mut table)) = parts.pop() else {
            return Ok(Series::empty(info.columns.clone()));
        };
        for (path, part) in &parts {
            if part.fields != table.fields {
                return Err(RecordError::damaged(path, "its columns differ from other segments'"));
            }
            table.append(part);
        }
        Series::new(info.columns.clone(), table).map_err(|why| RecordError::damaged(&path, why))
    }

    /// Returns the distinct instants of a series, ascending; empty if it was not recorded.
    pub fn instants(&self, probe: &str) -> Result<Vec<u64>, RecordError> {
        if !self.manifest.probes.iter().any(|info| info.probe == probe) {
            return Ok(Vec::new());
        }
        let parts = self.each_file(&self.series_files(probe), Wanted::All, |path, reader| {
            let groups = 0..reader.groups();
            let table = reader.read_columns(path, groups, |column| column == T_NS)?;
            Ok(table.instants().collect::<Vec<u64>>())
        })?;
        let mut instants = parts.concat();
        instants.sort_unstable();
        instants.dedup();
        Ok(instants)
    }

    /// Returns the coarsest available level of a series.
    pub fn coarsest(&self, probe: &str) -> Level {
        let files = self.series_files(probe);
        let is_there = |level: &Level| files.level(*level).compacted().is_file();
        (1..Level::BITS).take_while(is_there).last().unwrap_or(0)
    }

    /// Reads the rows of a probe within a part of its time, in pieces: the rows of an object are in
    /// order of time within each piece, and from piece to piece.
    pub fn part(&self, probe: &str, part: &TimeRange<'_>) -> Result<Vec<Series>, RecordError> {
        let columns = &self.info(probe)?.columns;
        let files = self.series_files(probe).level(part.level);
        let pieces = self.each_file(&files, Wanted::Within(part), |path, reader| {
            check_columns(path, &reader, columns)?;
            let met = (0..reader.groups()).filter(|&group| {
                reader.range(group, T_NS).is_none_or(|(first, last)| part.meets(first, last))
            });
            let read = |group: usize| {
                let mut table = reader.read_groups(path, group..group + 1)?;
                table.sort();
                let rows = part.rows(&table, columns);
                Series::new(columns.clone(), table.picked(&rows))
                    .map_err(|why| RecordError::damaged(path, why))
            };
            side_by_side(&met.collect::<Vec<usize>>(), read)
        })?;
        Ok(pieces.into_iter().flatten().collect())
    }

    /// Passes on the latencies one by one, in the order in which they were recorded.
    pub fn each_histogram(&self, each: impl FnMut(HistogramRow)) -> Result<(), RecordError> {
        self.each_histogram_within(0..=u32::MAX, each)
    }

    /// The same for a range of seconds.
    pub fn each_histogram_within(
        &self,
        seconds: RangeInclusive<u32>,
        mut each: impl FnMut(HistogramRow),
    ) -> Result<(), RecordError> {
        let files = self.plain_files(HISTOGRAMS);
        let (first, last) = (i64::from(*seconds.start()), i64::from(*seconds.end()));
        // A file stays readable after a recorder removes it, but there may be thousands of
        // segments.
        let found = self.each_file(&files, Wanted::All, |path, reader| {
            let small = reader.groups() < 2;
            let table = small.then(|| reader.read(path)).transpose()?;
            Ok((path.to_owned(), table.map_or(Rows::InFile(reader), Rows::Read)))
        })?;
        let mut kinds = Kinds::default();
        let mut counted = |row: HistogramRow| {
            kinds.add(&row)?;
            if seconds.contains(&row.second) {
                each(row);
            }
            Ok(())
        };
        for (path, found) in found {
            let read = match found {
                Rows::Read(table) => rows::histograms(&table, &path, &mut counted),
                Rows::InFile(reader) => (0..reader.groups())
                    .filter(|&group| {
                        let noted = reader.range(group, SECOND);
                        noted.is_none_or(|(least, most)| least <= last && most >= first)
                    })
                    .try_for_each(|group| {
                        let table = reader.read_groups(&path, group..group + 1)?;
                        rows::histograms(&table, &path, &mut counted)
                    }),
            };
            match read {
                Err(error) if !self.is_finished() => self.warn(&error),
                read => read?,
            }
        }
        Ok(())
    }

    /// Returns all rows of [`Recording::each_histogram`], which take 40 KiB each.
    pub fn histograms(&self) -> Result<Vec<HistogramRow>, RecordError> {
        let mut rows = Vec::new();
        self.each_histogram(|row| rows.push(row))?;
        Ok(rows)
    }

    /// Returns the events, in the order in which they were recorded.
    pub fn events(&self) -> Result<Vec<Event>, RecordError> {
        let files = self.plain_files(EVENTS);
        let read = |path: &Path, reader: Reader| rows::events(&reader.read(path)?, path);
        let parts = self.each_file(&files, Wanted::All, read)?;
        Ok(parts.into_iter().flatten().collect())
    }

    fn info(&self, probe: &str) -> Result<&ProbeInfo, RecordError> {
        let probes = &self.manifest.probes;
        probes.iter().find(|info| info.probe == probe).ok_or_else(|| {
            let known = probes.iter().map(|info| info.probe.clone()).collect();
            RecordError::UnknownProbe { probe: probe.to_owned(), known }
        })
    }

    fn is_finished(&self) -> bool {
        matches!(self.manifest.end, End::Complete | End::Interrupted { .. })
    }

    /// Applies `read` to the file of a table, or to those of its segments that are wanted.
    fn each_file<T>(
        &self,
        files: &TableFiles,
        wanted: Wanted<'_>,
        read: impl Fn(&Path, Reader) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let mut result = self.try_each_file(files, wanted, &read);
        for _ in 1..LOOKS {
            if !result.as_ref().is_err_and(RecordError::is_vanished) {
                break;
            }
            result = self.try_each_file(files, wanted, &read);
        }
        result
    }

    fn try_each_file<T>(
        &self,
        files: &TableFiles,
        wanted: Wanted<'_>,
        read: impl Fn(&Path, Reader) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let read = |path: &Path| read(path, files.open(path)?);
        let segments = match files.find()? {
            Found::Compacted(path) => return Ok(vec![read(&path)?]),
            Found::Segments(segments) => segments,
        };
        if self.is_finished() {
            return Err(RecordError::damaged(&files.compacted(), "it is missing"));
        }
        let dropped = self.manifest.dropped_before_ns.and(segments.first());
        let mut expected = dropped.map_or(1, |(number, _)| *number);
        for (number, _) in &segments {
            for missing in expected..*number {
                self.warn(&RecordError::damaged(&files.segment(missing), "it is missing"));
            }
            expected = number + 1;
        }
        let mut parts = Vec::new();
        for (_, path) in wanted.of(files, &segments) {
            match read(path) {
                Ok(part) => parts.push(part),
                Err(error) if error.is_vanished() => return Err(error),
                Err(error) => self.warn(&error),
            }
        }
        Ok(parts)
    }

    fn warn(&self, error: &RecordError) {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.insert(format!("{line}; its rows are omitted"));
    }

    fn series_files(&self, probe: &str) -> TableFiles {
        TableFiles::series(&self.dir, &self.manifest.id, probe)
    }

    fn plain_files(&self, table: &str) -> TableFiles {
        TableFiles::plain(&self.dir, &self.manifest.id, table)
    }
}

/// The files of a table that are read, if they are segments.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    All,
    Newest,
    /// Segments with rows in this part.
    Within(&'a TimeRange<'a>),
}

impl Wanted<'_> {
    fn of<'s>(self, files: &TableFiles, segments: &'s [(u32, PathBuf)]) -> &'s [(u32, PathBuf)] {
        let part = match self {
            Self::All => return segments,
            Self::Newest => return &segments[segments.len().saturating_sub(NEWEST)..],
            Self::Within(part) => part,
        };
        // They are in order of time, except for rows at their edges. An unreadable one counts as
        // included, so that reading it reports the reason.
        let range = |path: &Path| files.range(path).ok().flatten();
        let is_before = |path: &Path| range(path).is_some_and(|(_, last)| last < part.from());
        let first = segments.partition_point(|(_, path)| is_before(path));
        let reaches = |path: &Path| range(path).is_none_or(|(first, _)| first <= part.to());
        let met = segments[first..].partition_point(|(_, path)| reaches(path));
        &segments[first.saturating_sub(1)..segments.len().min(first + met + 1)]
    }
}

/// Latencies as found: the table of a segment, or a file that is read group by group.
enum Rows {
    Read(Table),
    InFile(Reader),
}

/// A part of a recording's time, from one instant to another, both inclusive, and the level at
/// which it is read.
#[derive(Clone, Copy, Debug)]
pub struct TimeRange<'a> {
    pub from_ns: u64,
    pub to_ns: u64,
    pub level: Level,
    /// Restricts the rows to those that determine intervals between two of these edges, ascending;
    /// `None` for all rows.
    pub edges: Option<&'a [u64]>,
}

impl TimeRange<'_> {
    fn meets(&self, first: i64, last: i64) -> bool {
        last >= self.from() && first <= self.to()
    }

    fn from(&self) -> i64 {
        i64::try_from(self.from_ns).unwrap_or(i64::MAX)
    }

    fn to(&self) -> i64 {
        i64::try_from(self.to_ns).unwrap_or(i64::MAX)
    }

    fn rows(&self, table: &Table, columns: &[ColumnInfo]) -> Vec<u32> {
        let mut rows = match self.edges {
            Some(edges) => levels::decisive(table, columns, edges),
            None => (0..table.len() as u32).collect(),
        };
        let within = self.from_ns..=self.to_ns;
        let within: Vec<bool> = table.instants().map(|t_ns| within.contains(&t_ns)).collect();
        rows.retain(|&row| within[row as usize]);
        rows
    }
}

/// Returns the results of `read` for all groups, in order; a few threads read one group at a time
/// each.
fn side_by_side<T: Send>(
    groups: &[usize],
    read: impl Fn(usize) -> Result<T, RecordError> + Sync,
) -> Result<Vec<T>, RecordError> {
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, *groups.get(at)?))
        });
        taken.map(|(at, group)| (at, read(group))).collect::<Vec<_>>()
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut done = thread::scope(|scope| {
        let others = 1..threads.min(groups.len()).min(READERS);
        // Without a second thread, this one reads all.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = others.filter_map(spawn).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, read)| read).collect()
}

/// Checks that a file's columns match those of the manifest.
fn check_columns(path: &Path, reader: &Reader, known: &[ColumnInfo]) -> Result<(), RecordError> {
    let columns = reader.get(KEY_COLUMNS).unwrap_or_default();
    let columns: Vec<ColumnInfo> = serde_json::from_str(columns)
        .map_err(|e| RecordError::damaged(path, format!("its columns: {e}")))?;
    let same = |a: &ColumnInfo, b: &ColumnInfo| a.name == b.name && a.kind == b.kind;
    if columns.len() == known.len() && columns.iter().zip(known).all(|(a, b)| same(a, b)) {
        Ok(())
    } else {
        Err(RecordError::damaged(path, "its columns are not those of the manifest"))
    }
}

/// Kinds of latencies, by phase and clock. A reader adds up the rows of each, which takes 40 KiB.
#[derive(Default)]
pub(crate) struct Kinds(HashSet<(i32, LatencyClock, String)>);

impl Kinds {
    pub fn add(&mut self, row: &HistogramRow) -> Result<(), &'static str> {
        let is_new = self.0.insert((row.phase, row.clock, row.role.clone()));
        if is_new && self.0.len() > MOST_KINDS {
            return Err("it has latencies of too many kinds");
        }
        Ok(())
    }
}

/// Reads a recording's manifest, whatever state its tables are in. Fields unknown to this version
/// are ignored. Fails when there is none, when the file is not a manifest, or when it is of a later
/// version.
pub fn read_manifest(dir: &Path) -> Result<Manifest, RecordError> {
    let path = dir.join(MANIFEST);
    let file = held::open_no_link(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound if dir.is_dir() => {
            RecordError::NotARecording { path: dir.to_owned() }
        }
        io::ErrorKind::NotFound => RecordError::io("open recording", dir)(source),
        _ => RecordError::io("read", &path)(source),
    })?;
    parse_manifest(file, &path)
}

/// Parses `file`; `path` is used in errors.
pub(crate) fn parse_manifest(file: File, path: &Path) -> Result<Manifest, RecordError> {
    let text = held::read_whole(file, MANIFEST_MAX).map_err(RecordError::io("read", path))?;
    let damaged = |e: serde_json::Error| RecordError::damaged(path, e.to_string());
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
    check_format(path, value["format"].as_str().unwrap_or_default())?;
    serde_json::from_value(value).map_err(damaged)
}
