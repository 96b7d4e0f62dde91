//! A running recording: its clock, probes and ticks, and what is written to disk between phases.

use std::ops::Range;
use std::path::{Path, PathBuf};

use blockstone_base::clock::{Clock, ClockOffsets};
use blockstone_base::column::{Reading, Schema, Unmeasured};
use blockstone_base::units::Nanos;
use blockstone_probe::cached_files::{self, DatabaseFiles};
use blockstone_probe::nvme::log;
use blockstone_probe::page_cache::{self, WatchedFiles};
use blockstone_probe::{Context, Probe, Row, memory, registry};
use blockstone_record::manifest::{ClockReading, DriveReading, End, Manifest};
use blockstone_record::{RecordError, Recorder};
use blockstone_sys::clock::MonotonicClock;
use blockstone_sys::nvme;

use crate::ticks::Ticks;

const ROOT: &str = "/";

pub struct Session {
    recorder: Recorder,
    probes: Vec<Box<dyn Probe>>,
    watched: WatchedFiles,
    database: DatabaseFiles,
    /// `NVMe` controllers beneath the target, by their kernel names.
    controllers: Vec<String>,
    /// Probes that only know what they cannot measure after the first look.
    waiting: Range<usize>,
    /// Series for which missed ticks are counted.
    ticked: Option<&'static str>,
    rows: Vec<Row>,
    readings: Vec<Reading>,
    tick: Nanos,
    clock: Box<dyn Clock>,
    origin_ns: u64,
    ticks: Ticks,
}

pub struct SessionSpec<'a> {
    /// Directory of the recording, which must be empty or not exist.
    pub dir: &'a Path,
    /// Manifest of the recording, without phases.
    pub manifest: Manifest,
    /// Kernel names of the devices that the probes observe.
    pub devices: Vec<String>,
    /// Series of the measured object, read at each tick. Missed ticks count for the first.
    pub series: &'a [&'static Schema],
    /// Whether the measured database reads through the page cache: then the cached part of its
    /// files and memory pressure are observed too.
    pub through_page_cache: bool,
    pub tick: Nanos,
}

impl Session {
    /// Starts a recording; its clock begins now.
    pub fn start(spec: SessionSpec<'_>) -> Result<Self, RecordError> {
        Self::start_on(Box::new(MonotonicClock), spec)
    }

    /// Starts a recording that takes its time from `clock`.
    pub fn start_on(clock: Box<dyn Clock>, spec: SessionSpec<'_>) -> Result<Self, RecordError> {
        let SessionSpec { dir, mut manifest, devices, series, through_page_cache, tick } = spec;
        let controllers = nvme::controllers(Path::new(ROOT)).into_iter();
        let its = |it: &nvme::Controller| it.disks.iter().any(|disk| devices.contains(disk));
        let controllers = controllers.filter(its).map(|it| it.name).collect();
        let context = Context::of_target(Path::new(ROOT), devices);
        let (watched, database) = (WatchedFiles::default(), DatabaseFiles::default());
        let mut probes: Vec<_> =
            registry::of(&context).map(|entry| (entry.open)(&context)).collect();
        let first = probes.len();
        if through_page_cache {
            probes.extend([memory::open(&context), cached_files::open_beside(&database)]);
        }
        probes.push(page_cache::open(&watched));
        let waiting = first..probes.len();
        let schemas: Vec<_> =
            series.iter().copied().chain(probes.iter().map(|probe| probe.schema())).collect();
        // The same instant on both clocks: recordings of several hosts are compared by it.
        manifest.started_at = jiff::Timestamp::now().to_string();
        let origin_ns = clock.now_ns();
        let recorder = Recorder::create(dir, manifest, &schemas)?;
        let (rows, readings) = (Vec::new(), Vec::new());
        let ticks = Ticks::start(clock.as_ref(), tick);
        let mut session = Self {
            recorder,
            probes,
            watched,
            database,
            controllers,
            waiting,
            ticked: series.first().map(|first| first.probe),
            rows,
            readings,
            tick,
            clock,
            origin_ns,
            ticks,
        };
        (0..session.probes.len()).for_each(|index| session.note_unmeasured(index));
        session.read_clocks();
        session.read_drives();
        Ok(session)
    }

    /// Asks the drives for their heat and power. Outside of any window: some stop other commands
    /// for a moment while they answer.
    fn read_drives(&mut self) {
        let t_ns = self.now_ns();
        let read = |name: &String| {
            let page = nvme::read(Path::new(ROOT), name, nvme::Log::Health).ok()?;
            let health = log::health(&page)?;
            // In another state it saves power until the next I/O.
            let power = nvme::power_state(Path::new(ROOT), name).ok().filter(|it| !it.is_idle);
            Some(DriveReading {
                t_ns,
                controller: name.clone(),
                temperature_kelvin: health.temperature_kelvin,
                is_hot: health.is_hot(),
                warm_minutes: health.warm_minutes,
                critical_minutes: health.critical_minutes,
                throttled: health.throttled,
                throttled_s: health.throttled_s,
                power_state: power.map(|power| power.number),
                power_mw_max: power.and_then(|power| power.most_mw),
            })
        };
        let readings: Vec<_> = self.controllers.iter().filter_map(read).collect();
        self.recorder.manifest().drives.extend(readings);
    }

    fn read_clocks(&mut self) {
        let Some(ClockOffsets { realtime_ns, boottime_ns }) = self.clock.offsets() else { return };
        let t_ns = self.now_ns();
        self.recorder.manifest().clocks.push(ClockReading {
            t_ns,
            realtime_offset_ns: realtime_ns,
            boottime_offset_ns: boottime_ns,
        });
    }

    /// Counts the pages that this process adds to the page cache for this file, from now on.
    pub fn watch_pages(&mut self, path: &Path) {
        self.watched.watch(path);
        // That probe is the last.
        self.note_unmeasured(self.probes.len() - 1);
    }

    /// Observes from now on how much of this database's files is in the page cache, in these
    /// directories and next to these files.
    pub fn watch_database(&self, name: &str, places: &[PathBuf]) {
        self.database.set(name, places);
    }

    /// Stops watching a file that is about to be removed.
    pub fn forget_pages(&mut self, path: &Path) {
        self.watched.forget(path);
    }

    /// Records in the manifest that a column that is not filled by a probe is empty.
    pub fn unmeasured(&mut self, probe: &str, column: &str, why: &Unmeasured) {
        let infos = self.recorder.manifest().probes.iter_mut().filter(|info| info.probe == probe);
        for info in infos.flat_map(|info| &mut info.columns).filter(|info| info.name == column) {
            info.unmeasured = Some(why.clone());
        }
    }

    /// Records in the manifest which columns of a probe are not measured, and why.
    fn note_unmeasured(&mut self, index: usize) {
        let probe = &self.probes[index];
        let unmeasured = probe.unmeasured();
        let infos = self.recorder.manifest().probes.iter_mut();
        let infos = infos.filter(|info| info.probe == probe.schema().probe);
        for info in infos.flat_map(|info| &mut info.columns) {
            let why = unmeasured.iter().find(|(column, _)| *column == info.name);
            info.unmeasured = why.map(|(_, why)| why.clone());
        }
    }

    /// Returns the origin of all `_ns` values of the recording, on the monotonic clock.
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Returns the nanoseconds since the recording began.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns() - self.origin_ns
    }

    pub fn elapsed(&self) -> Nanos {
        Nanos(self.now_ns())
    }

    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Returns the index of the phase that is being measured.
    pub fn phase(&mut self) -> i32 {
        self.recorder.manifest().phases.len() as i32
    }

    pub fn start_ticks(&mut self) {
        self.ticks = Ticks::start(self.clock.as_ref(), self.tick);
    }

    /// Sleeps until the next tick is due, and counts missed deadlines.
    pub fn wait_for_tick(&mut self) {
        let missed = self.ticks.wait(self.clock.as_ref());
        if let Some(probe) = self.ticked {
            self.recorder.missed_ticks(probe, missed);
        }
    }

    /// Reads the measured object, whose counts determine the rates, and then every probe. Records
    /// everything with one timestamp, which is returned with the result of `read`. Fails when the
    /// rows cannot be written.
    pub fn tick<T>(
        &mut self,
        read: impl FnOnce(&mut Vec<Reading>) -> T,
    ) -> Result<(u64, T), RecordError> {
        let phase = self.phase();
        self.readings.clear();
        let t_ns = self.now_ns();
        let result = read(&mut self.readings);
        for Reading { probe, object, cells } in &self.readings {
            self.recorder.row(probe, t_ns, phase, object, cells)?;
        }
        for probe in &mut self.probes {
            self.rows.clear();
            probe.sample(&mut self.rows);
            for row in &self.rows {
                self.recorder.row(probe.schema().probe, t_ns, phase, &row.object, &row.cells)?;
            }
        }
        Ok((t_ns, result))
    }

    /// Writes the rows of the last phase. Called between phases, so that it is not in any window.
    /// Fails when the disk refuses.
    pub fn end_phase(&mut self) -> Result<(), RecordError> {
        self.read_clocks();
        self.waiting.clone().for_each(|index| self.note_unmeasured(index));
        self.recorder.end_segment()?;
        self.recorder.save()
    }

    /// Ends the recording. Fails when the disk refuses.
    pub fn close(mut self, end: End) -> Result<(), RecordError> {
        self.read_clocks();
        self.read_drives();
        self.recorder.close(end)
    }
}
