//! Reading a recording: one that is finished, one that is still being written, or what a crash
//! left of one.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use blockstone_base::units::Bytes;
use blockstone_sys::held;

use crate::error::RecordError;
use crate::manifest::{ColumnInfo, End, MANIFEST, Manifest};
use crate::parquet_file::{KEY_COLUMNS, Reader};
use crate::rows::{self, EVENTS, Event, HISTOGRAMS, HistogramRow, LatencyClock};
use crate::segments::{Found, TableFiles, check_format};
use crate::series::Series;

/// How often a table is looked for again when its segments vanish: a recorder that closes removes
/// them once, after the file that replaces them is there.
const LOOKS: usize = 3;
/// One of 300 disks has 2 MiB.
const MANIFEST_MAX: Bytes = Bytes::mib(64);
/// Phases times what was timed in each; ours have a few hundred.
const MOST_KINDS: usize = 1 << 14;

/// A recording on disk. Opening reads the manifest and verifies every file's checksum; rows are
/// read when asked for. Nothing is ever written.
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
            recording.each_file(&files, |_, _| Ok(()))?;
        }
        for table in [HISTOGRAMS, EVENTS] {
            recording.each_file(&recording.plain_files(table), |_, _| Ok(()))?;
        }
        Ok(recording)
    }

    /// What is missing or unreadable although the recording as a whole is readable, a sentence
    /// each. Opening finds it; what is damaged after that is added when it is read.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.iter().cloned().collect()
    }

    /// The rows of a probe. Fails when the probe was not recorded, and when a file is damaged.
    pub fn series(&self, probe: &str) -> Result<Series, RecordError> {
        let probes = &self.manifest.probes;
        let Some(info) = probes.iter().find(|info| info.probe == probe) else {
            let known = probes.iter().map(|info| info.probe.clone()).collect();
            return Err(RecordError::UnknownProbe { probe: probe.to_owned(), known });
        };
        let files = self.series_files(probe);
        let mut parts = self.each_file(&files, |path, reader| {
            let columns = reader.get(KEY_COLUMNS).unwrap_or_default();
            let columns: Vec<ColumnInfo> = serde_json::from_str(columns)
                .map_err(|e| RecordError::damaged(path, format!("its columns: {e}")))?;
            let table = reader.read(path)?;
            Ok((path.to_owned(), columns, table))
        })?;
        let Some((path, columns, mut table)) = parts.pop() else {
            return Ok(Series::empty(info.columns.clone()));
        };
        for (path, _, part) in &parts {
            if part.fields != table.fields {
                return Err(RecordError::damaged(path, "its columns differ from other segments'"));
            }
            table.append(part);
        }
        let same = |a: &ColumnInfo, b: &ColumnInfo| a.name == b.name && a.kind == b.kind;
        if columns.len() != info.columns.len()
            || !columns.iter().zip(&info.columns).all(|(a, b)| same(a, b))
        {
            return Err(RecordError::damaged(&path, "its columns are not those of the manifest"));
        }
        Series::new(columns, table).map_err(|why| RecordError::damaged(&path, why))
    }

    /// Hands on the latencies one by one, in the order in which they were recorded.
    pub fn each_histogram(&self, mut each: impl FnMut(HistogramRow)) -> Result<(), RecordError> {
        let files = self.plain_files(HISTOGRAMS);
        let tables =
            self.each_file(&files, |path, reader| Ok((path.to_owned(), reader.read(path)?)))?;
        let mut kinds = Kinds::default();
        let mut counted = |row: HistogramRow| {
            kinds.add(&row)?;
            each(row);
            Ok(())
        };
        for (path, table) in tables {
            match rows::histograms(&table, &path, &mut counted) {
                Err(error) if !self.is_finished() => self.warn(&error),
                read => read?,
            }
        }
        Ok(())
    }

    /// All of [`Recording::each_histogram`]: 40 KiB each.
    pub fn histograms(&self) -> Result<Vec<HistogramRow>, RecordError> {
        let mut rows = Vec::new();
        self.each_histogram(|row| rows.push(row))?;
        Ok(rows)
    }

    /// The events, in the order in which they were recorded.
    pub fn events(&self) -> Result<Vec<Event>, RecordError> {
        let files = self.plain_files(EVENTS);
        let parts =
            self.each_file(&files, |path, reader| rows::events(&reader.read(path)?, path))?;
        Ok(parts.into_iter().flatten().collect())
    }

    fn is_finished(&self) -> bool {
        matches!(self.manifest.end, End::Complete | End::Interrupted { .. })
    }

    /// Applies `read` to the file or the segments of a table.
    fn each_file<T>(
        &self,
        files: &TableFiles,
        read: impl Fn(&Path, &Reader) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let mut result = self.try_each_file(files, &read);
        for _ in 1..LOOKS {
            if !result.as_ref().is_err_and(RecordError::is_vanished) {
                break;
            }
            result = self.try_each_file(files, &read);
        }
        result
    }

    fn try_each_file<T>(
        &self,
        files: &TableFiles,
        read: impl Fn(&Path, &Reader) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let read = |path: &Path| read(path, &files.open(path)?);
        let segments = match files.find()? {
            Found::Compacted(path) => return Ok(vec![read(&path)?]),
            Found::Segments(segments) => segments,
        };
        if self.is_finished() {
            return Err(RecordError::damaged(&files.compacted(), "it is missing"));
        }
        let mut parts = Vec::new();
        let mut expected = 1;
        for (number, path) in segments {
            for missing in expected..number {
                self.warn(&RecordError::damaged(&files.segment(missing), "it is missing"));
            }
            expected = number + 1;
            match read(&path) {
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

/// What was timed, by phase and clock. A reader adds up the rows of each, which takes 40 KiB.
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

/// Reads a recording's manifest, whatever state its tables are in. Fields this version does not
/// know are ignored. Fails when there is none, when it is no manifest, or one of a later version.
pub fn read_manifest(dir: &Path) -> Result<Manifest, RecordError> {
    let path = dir.join(MANIFEST);
    let file = held::open_file(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound if dir.is_dir() => {
            RecordError::NotARecording { path: dir.to_owned() }
        }
        io::ErrorKind::NotFound => RecordError::io("open recording", dir)(source),
        _ => RecordError::io("read", &path)(source),
    })?;
    parse_manifest(file, &path)
}

/// Reads `file`, which `path` names in errors.
pub(crate) fn parse_manifest(file: File, path: &Path) -> Result<Manifest, RecordError> {
    let text = held::read_whole(file, MANIFEST_MAX).map_err(RecordError::io("read", path))?;
    let damaged = |e: serde_json::Error| RecordError::damaged(path, e.to_string());
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
    check_format(path, value["format"].as_str().unwrap_or_default())?;
    serde_json::from_value(value).map_err(damaged)
}
