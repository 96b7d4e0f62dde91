//! Writes a recording while the measurement runs.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};

use blockstone_base::column::{Cell, Kind, Schema};
use blockstone_base::verdict::Verdict;
use jiff::Timestamp;

use crate::disk::{Disk, System, create_dir_on, publish};
use crate::error::RecordError;
use crate::levels::{self, Level, TICKS};
use crate::manifest::{ColumnInfo, End, FORMAT, Figure, MANIFEST, Manifest, ProbeInfo};
use crate::parquet_file::{KEY_COLUMNS, Meta};
use crate::recording::parse_manifest;
use crate::rows::{self, EVENTS, HISTOGRAMS, HistogramRow};
use crate::runs::lock;
use crate::segments::TableFiles;
use crate::table::{Field, OBJECT, PHASE, T_NS, Table, Type, Value, column_type};

/// A recording being written.
///
/// Rows are buffered until [`Recorder::end_segment`] writes them to disk, completely and synced; a
/// crash loses the buffered rows. Call it when a short disturbance does no harm: between phases,
/// and every few seconds in long phases.
pub struct Recorder {
    dir: PathBuf,
    manifest: Manifest,
    disk: Box<dyn Disk>,
    series: Vec<ProbeTable>,
    histograms: Open,
    events: Open,
    /// Locked for the lifetime of this process, so that a reader can tell running from killed.
    _lock: File,
}

/// Stores the judgement of an ended recording in its manifest, so that a listing of many recordings
/// need not judge each of them again. Fails when there is no recording in `dir`, or its manifest
/// cannot be written.
pub fn keep_judgement(
    dir: &Path,
    summary: BTreeMap<String, Figure>,
    verdicts: Vec<Verdict>,
) -> Result<(), RecordError> {
    let disk = System::hold(dir)?;
    let path = dir.join(MANIFEST);
    let file = disk.open(&path).map_err(RecordError::io("read", &path))?;
    let manifest = Manifest { summary, verdicts, ..parse_manifest(file, &path)? };
    write_manifest(&disk, dir, &manifest)
}

/// Returns the manifest with the series of these probes.
pub(crate) fn declared(manifest: Manifest, probes: &[&'static Schema]) -> Manifest {
    Manifest { probes: probes.iter().map(|schema| ProbeInfo::of(schema)).collect(), ..manifest }
}

fn write_manifest(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), RecordError> {
    let path = dir.join(MANIFEST);
    // JSON has only null for both: an interval without this end, and not a number.
    let is_none = |figure: &&Figure| figure.estimate.low.is_nan() || figure.estimate.high.is_nan();
    if let Some(figure) = manifest.summary.values().find(is_none) {
        let why = format!("the interval of {:?} is not a number", figure.title);
        return Err(RecordError::rejected(MANIFEST, why));
    }
    let mut text = serde_json::to_vec_pretty(manifest)
        .map_err(|e| RecordError::rejected(MANIFEST, e.to_string()))?;
    serde_json::from_slice::<Manifest>(&text)
        .map_err(|e| RecordError::rejected(MANIFEST, format!("cannot be read back: {e}")))?;
    text.push(b'\n');
    publish(disk, &path, |out| out.write_all(&text).map_err(RecordError::io("write", &path)))
}

struct Open {
    files: TableFiles,
    buffer: Table,
    next: u32,
    /// Segments on disk, the oldest first.
    segments: VecDeque<Segment>,
}

struct Segment {
    number: u32,
    /// Upper bound of the instants of its rows.
    until_ns: u64,
}

struct ProbeTable {
    probe: String,
    open: Open,
    last_t_ns: Option<u64>,
    ticks: u64,
    missed_ticks: u64,
}

impl Recorder {
    /// Begins a recording in `dir`, which must not exist or be empty. The manifest's format and
    /// probes are filled in here, its other fields are up to the caller. Fails when `dir` is not
    /// empty, when another run is recording there, or when the manifest cannot be written.
    pub fn create(
        dir: &Path,
        manifest: Manifest,
        probes: &[&'static Schema],
    ) -> Result<Self, RecordError> {
        Self::create_of(dir, declared(manifest, probes))
    }

    /// The same for the series named in the manifest.
    pub fn create_of(dir: &Path, manifest: Manifest) -> Result<Self, RecordError> {
        Self::create_on(Box::new(System::default()), dir, manifest)
    }

    pub(crate) fn create_on(
        disk: Box<dyn Disk>,
        dir: &Path,
        mut manifest: Manifest,
    ) -> Result<Self, RecordError> {
        create_dir_on(disk.as_ref(), dir)?;
        let held = disk.held().map_err(RecordError::io("open", dir))?;
        let lock = lock(held)?;
        if !held.is_empty().map_err(RecordError::io("list", dir))? {
            return Err(RecordError::NotEmpty { path: dir.to_owned() });
        }
        FORMAT.clone_into(&mut manifest.format);
        manifest.end = End::Running;
        let id = &manifest.id;
        let plain = |table, fields| Open::new(TableFiles::plain(dir, id, table), fields);
        let (histograms, events) =
            (plain(HISTOGRAMS, rows::histogram_fields()), plain(EVENTS, rows::event_fields()));
        let series = manifest.probes.iter().map(|info| ProbeTable::new(dir, id, info)).collect();
        let path = dir.join("series");
        disk.create_dir(&path).map_err(RecordError::io("create directory", &path))?;
        let dir = dir.to_owned();
        let mut recorder = Self { dir, manifest, disk, series, histograms, events, _lock: lock };
        recorder.save()?;
        Ok(recorder)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the manifest for reading and extending; [`Recorder::save`] writes it.
    pub fn manifest(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Writes the manifest, replacing the previous one atomically, and syncs it.
    pub fn save(&mut self) -> Result<(), RecordError> {
        for series in &self.series {
            let mut infos = self.manifest.probes.iter_mut();
            if let Some(info) = infos.find(|info| info.probe == series.probe) {
                (info.ticks, info.missed_ticks) = (series.ticks, series.missed_ticks);
            }
        }
        write_manifest(self.disk.as_ref(), &self.dir, &self.manifest)
    }

    /// Records one row: `t_ns` is the time since the recording began, `phase` an index into the
    /// manifest's phases or −1, with one cell for each column of the probe's schema. Fails when the
    /// probe was not declared or the cells do not match its schema.
    pub fn row(
        &mut self,
        probe: &str,
        t_ns: u64,
        phase: i32,
        object: &str,
        cells: &[Cell],
    ) -> Result<(), RecordError> {
        let Some(series) = self.series.iter_mut().find(|series| series.probe == probe) else {
            let known = self.series.iter().map(|series| series.probe.clone()).collect();
            return Err(RecordError::UnknownProbe { probe: probe.to_owned(), known });
        };
        let table = &mut series.open.buffer;
        let fields = &table.fields[KEY_FIELDS..];
        if fields.len() != cells.len() {
            let why = format!("{} cells for {} columns", cells.len(), fields.len());
            return Err(RecordError::rejected(format!("a row of {probe}"), why));
        }
        if let Some((field, _)) = fields.iter().zip(cells).find(|(f, cell)| !fits(f.kind, cell)) {
            let what = format!("a row of {probe}");
            return Err(RecordError::rejected(what, format!("wrong type for `{}`", field.name)));
        }
        let instant = rows::number(probe, T_NS, t_ns)?;
        let key = [Value::Number(instant), Value::Index(phase), Value::Text(object)];
        table.push(key.into_iter().chain(cells.iter().map(value)));
        if series.last_t_ns != Some(t_ns) {
            series.last_t_ns = Some(t_ns);
            series.ticks += 1;
        }
        Ok(())
    }

    /// Records the latencies of one second. Fails when a sum exceeds 63 bits.
    pub fn histogram(&mut self, row: HistogramRow) -> Result<(), RecordError> {
        rows::push_histogram(&mut self.histograms.buffer, row)
    }

    /// Records an event. Fails when `t_ns` exceeds 63 bits.
    pub fn event(
        &mut self,
        t_ns: u64,
        phase: i32,
        kind: &str,
        detail: &str,
    ) -> Result<(), RecordError> {
        let t_ns = rows::number(EVENTS, T_NS, t_ns)?;
        self.events.buffer.push([
            Value::Number(t_ns),
            Value::Index(phase),
            Value::Text(kind),
            Value::Text(detail),
        ]);
        Ok(())
    }

    /// Counts ticks of a probe whose deadlines passed before they could be taken.
    pub fn missed_ticks(&mut self, probe: &str, missed: u64) {
        if let Some(series) = self.series.iter_mut().find(|series| series.probe == probe) {
            series.missed_ticks += missed;
        }
    }

    /// Writes all buffered rows to disk. If a table cannot be written, its rows stay buffered, the
    /// other tables are still written, and the first error is returned.
    pub fn end_segment(&mut self) -> Result<(), RecordError> {
        let until_ns = self.series.iter().filter_map(|series| series.last_t_ns).max();
        let until_ns = until_ns.unwrap_or_default();
        self.each_table(|open, disk, meta| open.end_segment(disk, until_ns, meta))
    }

    /// Removes the segments without rows at or after `t_ns`, once the manifest says so. Series of
    /// states are kept, because states are recorded only when first seen. Fails when the manifest
    /// cannot be written, or a segment cannot be removed.
    pub fn drop_before(&mut self, t_ns: u64) -> Result<(), RecordError> {
        self.manifest.dropped_before_ns = Some(t_ns);
        self.save()?;
        let states = |columns: &[ColumnInfo]| columns.iter().all(|c| c.kind == Kind::State);
        let mut result =
            self.each_series(
                |open, disk, _, columns| {
                    if states(columns) { Ok(()) } else { open.drop_before(disk, t_ns) }
                },
            );
        for open in [&mut self.histograms, &mut self.events] {
            result = result.and(open.drop_before(self.disk.as_ref(), t_ns));
        }
        result
    }

    /// Ends the recording: writes the last segment, one file per table in place of its segments,
    /// and the manifest with `end`. On an error the manifest says `failed` instead, if it can still
    /// be written; data on disk stays readable. The error returned is the first failure to write.
    pub fn close(mut self, end: End) -> Result<(), RecordError> {
        let written = self.compact();
        self.manifest.end = match &written {
            Ok(()) => end,
            Err(error) => End::failed(error),
        };
        // Imported data ended long ago.
        self.manifest.ended_at.get_or_insert_with(|| Timestamp::now().to_string());
        let saved = self.save();
        written.and(saved)
    }

    fn compact(&mut self) -> Result<(), RecordError> {
        self.end_segment()?;
        let ticks = self.series.iter().find(|series| series.probe == TICKS);
        let ticks = ticks.map(|series| series.open.instants(self.disk.as_ref())).transpose()?;
        self.each_table(|open, disk, meta| open.compact(disk, meta))?;
        for (level, edges) in (1..).zip(levels::edges(&ticks.unwrap_or_default())) {
            self.each_series(|open, disk, meta, columns| {
                open.write_level(disk, level, (columns, &edges), meta)
            })?;
        }
        Ok(())
    }

    /// Performs an action on every table and returns the first error.
    fn each_table(
        &mut self,
        mut act: impl FnMut(&mut Open, &dyn Disk, &Meta) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let mut result = self.each_series(|open, disk, meta, _| act(open, disk, meta));
        for open in [&mut self.histograms, &mut self.events] {
            result = result.and(act(open, self.disk.as_ref(), &Meta::new()));
        }
        result
    }

    fn each_series(
        &mut self,
        mut act: impl FnMut(&mut Open, &dyn Disk, &Meta, &[ColumnInfo]) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let mut result = Ok(());
        for series in &mut self.series {
            let mut infos = self.manifest.probes.iter();
            let columns = infos.find(|info| info.probe == series.probe);
            let columns = columns.map_or(&[][..], |info| &info.columns);
            let json = serde_json::to_string(columns)
                .map_err(|e| RecordError::rejected(series.open.files.table(), e.to_string()))?;
            let meta = vec![(KEY_COLUMNS.to_owned(), json)];
            result = result.and(act(&mut series.open, self.disk.as_ref(), &meta, columns));
        }
        result
    }
}

/// `t_ns`, `phase` and `object` precede a probe's own columns.
const KEY_FIELDS: usize = 3;

impl ProbeTable {
    fn new(dir: &Path, id: &str, info: &ProbeInfo) -> Self {
        let key = [
            Field::new(T_NS, Type::Number),
            Field::new(PHASE, Type::Index),
            Field::new(OBJECT, Type::Text),
        ];
        let columns = info.columns.iter().map(|c| Field::nullable(&c.name, column_type(c.kind)));
        let fields = key.into_iter().chain(columns).collect();
        let open = Open::new(TableFiles::series(dir, id, &info.probe), fields);
        Self { probe: info.probe.clone(), open, last_t_ns: None, ticks: 0, missed_ticks: 0 }
    }
}

impl Open {
    fn new(files: TableFiles, fields: Vec<Field>) -> Self {
        Self { files, buffer: Table::new(fields), next: 1, segments: VecDeque::new() }
    }

    fn end_segment(
        &mut self,
        disk: &dyn Disk,
        until_ns: u64,
        meta: &Meta,
    ) -> Result<(), RecordError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.buffer.sort();
        self.files.write_segment(disk, self.next, &self.buffer, meta)?;
        self.buffer.clear();
        self.segments.push_back(Segment { number: self.next, until_ns });
        self.next += 1;
        Ok(())
    }

    fn drop_before(&mut self, disk: &dyn Disk, t_ns: u64) -> Result<(), RecordError> {
        while let Some(oldest) = self.segments.front().filter(|oldest| oldest.until_ns < t_ns) {
            self.files.remove_segment(disk, oldest.number)?;
            self.segments.pop_front();
        }
        Ok(())
    }

    fn numbers(&self) -> Vec<u32> {
        self.segments.iter().map(|segment| segment.number).collect()
    }

    fn compact(&mut self, disk: &dyn Disk, meta: &Meta) -> Result<(), RecordError> {
        self.files.compact(disk, &self.numbers(), &self.buffer.fields, meta)
    }

    fn instants(&self, disk: &dyn Disk) -> Result<Vec<u64>, RecordError> {
        self.files.instants(disk, &self.numbers())
    }

    fn write_level(
        &self,
        disk: &dyn Disk,
        level: Level,
        edges: (&[ColumnInfo], &[u64]),
        meta: &Meta,
    ) -> Result<(), RecordError> {
        let (finer, files) = (self.files.level(level - 1), self.files.level(level));
        files.write_level(disk, &finer, edges, &self.buffer.fields, meta)
    }
}

fn fits(kind: Type, cell: &Cell) -> bool {
    match cell {
        Cell::Value(_) => kind == Type::Number,
        Cell::Text(_) => kind == Type::Text,
        Cell::Unmeasured => true,
    }
}

fn value(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Value(value) => Value::Number(*value),
        Cell::Text(text) => Value::Text(text),
        Cell::Unmeasured => Value::Empty,
    }
}
