//! Files of a table: short numbered segments while it is recorded, a single file afterwards.
//!
//! A Parquet file cannot be read without its footer, so rows that must survive a crash have to be
//! in a file that is complete. `series/host.0001.parquet`, `series/host.0002.parquet` … each appear
//! whole, by rename. Closing writes `series/host.parquet` from all of them, by rename again, and
//! then removes them. A reader that finds `series/host.parquet` therefore finds all rows in it and
//! ignores any remaining segments; otherwise it reads the segments.

use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::{held, path};

use crate::disk::{Disk, publish};
use crate::error::RecordError;
use crate::levels::{self, Level};
use crate::manifest::{ColumnInfo, FORMAT};
use crate::parquet_file::{Meta, Reader, Writer};
use crate::table::{Field, T_NS, Table};

/// Rows per row group in a compacted file: one unit of work for DuckDB.
const GROUP_ROWS: usize = 122_880;

/// Footer keys that identify a file and where it belongs.
const KEY_FORMAT: &str = "blockstone.format";
const KEY_RECORDING: &str = "blockstone.recording";
const KEY_TABLE: &str = "blockstone.table";

/// Takes the rows of a table to write them into a file.
type Take<'a> = dyn FnMut(&Table) -> Result<(), RecordError> + 'a;

#[derive(Clone, Debug)]
pub(crate) struct TableFiles {
    dir: PathBuf,
    stem: String,
    /// Id of the recording and name of the table within it, as repeated in every footer.
    recording: String,
    table: String,
}

pub(crate) enum Found {
    Compacted(PathBuf),
    /// The table is in these segments, by ascending number; empty if nothing has been recorded yet.
    Segments(Vec<(u32, PathBuf)>),
}

impl TableFiles {
    /// Returns the table `series/<probe>` of the recording in `dir`.
    pub fn series(dir: &Path, recording: &str, probe: &str) -> Self {
        let files = Self::plain(&dir.join("series"), recording, probe);
        Self { table: format!("series/{probe}"), ..files }
    }

    /// Returns the table `histograms` or `events` of the recording in `dir`.
    pub fn plain(dir: &Path, recording: &str, table: &str) -> Self {
        let [stem, table, recording] = [table, table, recording].map(str::to_owned);
        Self { dir: dir.to_owned(), stem, recording, table }
    }

    /// Returns the table's name within the recording: `series/host`.
    pub fn table(&self) -> &str {
        &self.table
    }

    pub fn compacted(&self) -> PathBuf {
        self.dir.join(format!("{}.parquet", self.stem))
    }

    /// Returns the files of a level of this series; at level 0, those of the series itself.
    pub fn level(&self, level: Level) -> Self {
        if level == 0 {
            return self.clone();
        }
        let [stem, table] = [&self.stem, &self.table];
        let every = levels::ticks_of(level);
        let (stem, table) = (format!("{stem}.every{every}"), format!("{table}.every{every}"));
        Self { stem, table, ..self.clone() }
    }

    pub fn segment(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{}.{number:04}.parquet", self.stem))
    }

    pub fn find(&self) -> Result<Found, RecordError> {
        let names = path::names(&self.dir).map_err(RecordError::io("list", &self.dir))?;
        let mut segments = Vec::new();
        let mut compacted = false;
        for name in names {
            let middle = name
                .to_str()
                .and_then(|name| name.strip_prefix(&self.stem)?.strip_suffix(".parquet"));
            match middle {
                Some("") => compacted = true,
                Some(middle) => {
                    if let Some(number) = middle.strip_prefix('.').and_then(|n| n.parse().ok()) {
                        segments.push((number, self.dir.join(&name)));
                    }
                }
                None => {}
            }
        }
        if compacted {
            return Ok(Found::Compacted(self.compacted()));
        }
        segments.sort_unstable();
        Ok(Found::Segments(segments))
    }

    /// Opens one of the table's files and checks that it belongs to it.
    pub fn open(&self, path: &Path) -> Result<Reader, RecordError> {
        self.checked(Reader::open(path)?, path)
    }

    /// Returns the first and last instant in one of the table's files, from its footer.
    pub fn range(&self, path: &Path) -> Result<Option<(i64, i64)>, RecordError> {
        let file = held::open_no_link(path).map_err(RecordError::io("open", path))?;
        let reader = self.checked(Reader::of_large(file, path, Bytes(0))?, path)?;
        let ranges = (0..reader.groups()).map(|group| reader.range(group, T_NS));
        let ranges: Option<Vec<(i64, i64)>> = ranges.collect();
        Ok(ranges.and_then(|all| {
            Some((all.iter().map(|it| it.0).min()?, all.iter().map(|it| it.1).max()?))
        }))
    }

    fn checked(&self, reader: Reader, path: &Path) -> Result<Reader, RecordError> {
        let foreign = |why: String| RecordError::Foreign { path: path.to_owned(), why };
        check_format(path, reader.get(KEY_FORMAT).unwrap_or_default())?;
        for (key, mine) in [(KEY_TABLE, &self.table), (KEY_RECORDING, &self.recording)] {
            let its = reader.get(key).unwrap_or_default();
            if its != mine {
                let what = key.trim_start_matches("blockstone.");
                return Err(foreign(format!("it belongs to {what} `{its}`, not to `{mine}`")));
            }
        }
        Ok(reader)
    }

    /// Writes `table` as segment `number`. `meta` describes its columns.
    pub fn write_segment(
        &self,
        disk: &dyn Disk,
        number: u32,
        table: &Table,
        meta: &Meta,
    ) -> Result<(), RecordError> {
        let path = self.segment(number);
        publish(disk, &path, |out| {
            let mut writer = Writer::new(out, &path, &table.fields, self.meta(meta))?;
            writer.write(table)?;
            writer.finish()
        })
    }

    /// Merges these segments into one file and removes them.
    pub fn compact(
        &self,
        disk: &dyn Disk,
        segments: &[u32],
        fields: &[Field],
        meta: &Meta,
    ) -> Result<(), RecordError> {
        self.write_groups(disk, fields, meta, |write| {
            segments.iter().try_for_each(|&number| write(&self.read_segment(disk, number)?))
        })?;
        segments.iter().try_for_each(|&number| self.remove_segment(disk, number))
    }

    pub fn remove_segment(&self, disk: &dyn Disk, number: u32) -> Result<(), RecordError> {
        let path = self.segment(number);
        disk.remove(&path).map_err(RecordError::io("remove", &path))
    }

    /// Writes a level of this series from `finer`, its compacted file or the level below.
    pub fn write_level(
        &self,
        disk: &dyn Disk,
        finer: &Self,
        (columns, edges): (&[ColumnInfo], &[u64]),
        fields: &[Field],
        meta: &Meta,
    ) -> Result<(), RecordError> {
        let path = finer.compacted();
        let file = disk.open(&path).map_err(RecordError::io("open", &path))?;
        let reader = finer.checked(Reader::of(file, &path)?, &path)?;
        self.write_groups(disk, fields, meta, |write| {
            (0..reader.groups()).try_for_each(|group| {
                let table = reader.read_groups(&path, group..group + 1)?;
                write(&table.picked(&levels::decisive(&table, columns, edges)))
            })
        })
    }

    /// Returns the instants of a series that has no compacted file yet, ascending.
    pub fn instants(&self, disk: &dyn Disk, segments: &[u32]) -> Result<Vec<u64>, RecordError> {
        let mut instants = Vec::new();
        for &number in segments {
            instants.extend(self.read_segment(disk, number)?.instants());
        }
        instants.sort_unstable();
        instants.dedup();
        Ok(instants)
    }

    fn read_segment(&self, disk: &dyn Disk, number: u32) -> Result<Table, RecordError> {
        let segment = self.segment(number);
        let file = disk.open(&segment).map_err(RecordError::io("open", &segment))?;
        self.checked(Reader::of(file, &segment)?, &segment)?.read(&segment)
    }

    /// Writes the compacted file from the tables that `each` provides, in sorted groups of about
    /// [`GROUP_ROWS`].
    fn write_groups(
        &self,
        disk: &dyn Disk,
        fields: &[Field],
        meta: &Meta,
        each: impl FnOnce(&mut Take<'_>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let path = self.compacted();
        publish(disk, &path, |out| {
            let mut writer = Writer::new(out, &path, fields, self.meta(meta))?;
            let mut pending = Table::new(fields.to_vec());
            each(&mut |table| {
                pending.append(table);
                if pending.len() >= GROUP_ROWS {
                    pending.sort();
                    writer.write(&pending)?;
                    pending.clear();
                }
                Ok(())
            })?;
            if !pending.is_empty() {
                pending.sort();
                writer.write(&pending)?;
            }
            writer.finish()
        })
    }

    fn meta(&self, more: &Meta) -> Meta {
        let own = [
            (KEY_FORMAT, FORMAT),
            (KEY_RECORDING, self.recording.as_str()),
            (KEY_TABLE, self.table.as_str()),
        ];
        let own = own.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        own.chain(more.iter().cloned()).collect()
    }
}

/// Rejects a format that is newer than ours, or not one of ours at all.
pub(crate) fn check_format(path: &Path, format: &str) -> Result<(), RecordError> {
    let version = |text: &str| text.strip_prefix("blockstone.recording/")?.parse::<u32>().ok();
    match (version(format), version(FORMAT)) {
        (Some(its), Some(ours)) if its > ours => {
            Err(RecordError::NewerFormat { path: path.to_owned(), format: format.to_owned() })
        }
        (Some(_), Some(_)) => Ok(()),
        _ => Err(RecordError::Foreign {
            path: path.to_owned(),
            why: format!("its format is `{format}`, not {FORMAT}"),
        }),
    }
}
