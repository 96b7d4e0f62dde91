//! The recording of a watched host: one phase, from the first tick to the last.

use std::collections::VecDeque;

use blockstone_base::column::{Cell, Unmeasured};
use blockstone_base::units::Nanos;
use blockstone_measure::{Opening, capability};
use blockstone_record::manifest::{End, Group, Manifest, Phase, ProbeInfo, Stop};
use blockstone_record::parameters::{WatchParameters, stored};
use blockstone_record::{Parameters, RecordError, Recorder};
use blockstone_servers::monitor::Server;
use blockstone_sys::{clock, survey};
use jiff::{SignedDuration, Timestamp};

use crate::database::Database;
use crate::settings::{Destination, Settings};

/// The index of the only phase.
pub const PHASE: i32 = 0;
const SEGMENT: Nanos = Nanos::millis(10_000);
/// A longer recording has longer segments: a crash loses at most one part in this many.
const SEGMENT_SHARE: u64 = 20;
const SEGMENT_MAX: Nanos = Nanos::millis(300_000);

pub struct RecordingSink {
    recorder: Recorder,
    keep: Option<Nanos>,
    segment_since_ns: u64,
    /// The first ticks of the segments that are kept, including the one being written.
    segments: VecDeque<u64>,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl RecordingSink {
    /// Creates a recording of these series, which include those of the databases. Its instants
    /// count from `origin_ns` on the monotonic clock.
    pub fn begin(
        destination: &Destination,
        settings: &Settings,
        (databases, series): (&[Database], &[ProbeInfo]),
        origin_ns: u64,
    ) -> Result<Self, RecordError> {
        let root = std::path::Path::new("/");
        let mut stored = stored(&settings.options);
        stored.retain(|_, value| !value.is_null());
        let facts = WatchParameters {
            server: (!databases.is_empty()).then(|| named(databases)),
            ..WatchParameters::default()
        };
        stored.extend(facts.settings());
        let manifest = Opening {
            id: &destination.id,
            verb: "watch",
            argv: &settings.argv,
            settings: stored,
            seed: 0,
            rank: None,
            host: &survey::host(root),
            target: &survey::whole_host(root),
            capabilities: &[capability::privilege()],
        };
        // Instants count from the start of the watch, which was before the databases answered.
        let before = SignedDuration::from_nanos((clock::now_ns() - origin_ns) as i64);
        let began = Timestamp::now().checked_sub(before);
        let manifest = manifest.manifest();
        let started_at = began.map_or(manifest.started_at.clone(), |began| began.to_string());
        let manifest = Manifest { started_at, probes: series.to_vec(), ..manifest };
        let recorder = Recorder::create_of(&destination.dir, manifest)?;
        Ok(Self {
            recorder,
            keep: settings.options.keep_ns,
            segment_since_ns: 0,
            segments: VecDeque::new(),
            first_ns: None,
            last_ns: 0,
        })
    }

    pub fn row(
        &mut self,
        probe: &str,
        t_ns: u64,
        object: &str,
        cells: &[Cell],
    ) -> Result<(), RecordError> {
        self.recorder.row(probe, t_ns, PHASE, object, cells)
    }

    pub fn event(&mut self, t_ns: u64, kind: &str, detail: &str) -> Result<(), RecordError> {
        self.recorder.event(t_ns, PHASE, kind, detail)
    }

    pub fn missed(&mut self, probe: &str, missed: u64) {
        self.recorder.missed_ticks(probe, missed);
    }

    pub fn unmeasured(&mut self, probe: &str, column: &str, why: &Unmeasured) {
        let infos = self.recorder.manifest().probes.iter_mut().filter(|info| info.probe == probe);
        for info in infos.flat_map(|info| &mut info.columns).filter(|info| info.name == column) {
            info.unmeasured = Some(why.clone());
        }
    }

    /// Completes a tick: writes a segment to disk when one is due.
    pub fn ticked(&mut self, t_ns: u64) -> Result<(), RecordError> {
        self.first_ns.get_or_insert(t_ns);
        self.last_ns = t_ns;
        if self.segments.back().is_none_or(|first_ns| *first_ns < self.segment_since_ns) {
            self.segments.push_back(t_ns);
        }
        let recorded_ns = self.keep.map_or(t_ns, |keep| keep.get().min(t_ns));
        let length_ns = (recorded_ns / SEGMENT_SHARE).clamp(SEGMENT.get(), SEGMENT_MAX.get());
        if t_ns < self.segment_since_ns + length_ns {
            return Ok(());
        }
        // A row between two ticks belongs to the later one.
        self.segment_since_ns = t_ns + 1;
        self.recorder.end_segment()?;
        let outdated = self.outdated(t_ns);
        self.note_phase(Stop::TimeLimit);
        match outdated {
            Some(t_ns) => self.recorder.drop_before(t_ns),
            None => self.recorder.save(),
        }
    }

    /// Drops the segments that are not needed to reach back from `t_ns` as far as is kept. Returns
    /// the first remaining tick, if it has changed.
    fn outdated(&mut self, t_ns: u64) -> Option<u64> {
        let from_ns = t_ns.checked_sub(self.keep?.get())?;
        let outdated = self.segments.partition_point(|first_ns| *first_ns <= from_ns);
        self.segments.drain(..outdated.checked_sub(1).filter(|count| *count > 0)?);
        self.first_ns = self.segments.front().copied();
        self.first_ns
    }

    pub fn close(mut self, end: End) -> Result<(), RecordError> {
        let stop = match end {
            End::Complete | End::Running => Stop::TimeLimit,
            End::Interrupted { .. } => Stop::Interrupted,
            End::Failed { .. } => Stop::Failed,
        };
        self.note_phase(stop);
        self.recorder.close(end)
    }

    fn note_phase(&mut self, stop: Stop) {
        let Some(start_ns) = self.first_ns else { return };
        let end_ns = self.last_ns;
        self.recorder.manifest().phases = vec![whole_phase(start_ns, end_ns, stop)];
    }
}

/// Returns products and versions, with names if there are several databases.
fn named(databases: &[Database]) -> String {
    let server = |database: &Database| {
        let Server { product, version, .. } = database.server();
        let name = database.name().map_or(String::new(), |name| format!("{name} "));
        format!("{name}{product} {version}")
    };
    databases.iter().map(server).collect::<Vec<_>>().join(", ")
}

/// Returns the only phase: from the first tick to the last.
pub fn whole_phase(start_ns: u64, end_ns: u64, stop: Stop) -> Phase {
    Phase {
        label: "watch".to_owned(),
        group: Group::Watch,
        repeat: 0,
        load: None,
        background: None,
        start_ns,
        window_start_ns: start_ns,
        window_end_ns: end_ns,
        end_ns,
        stop,
        settled: None,
        processors: None,
        first_error: None,
        note: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use blockstone_base::column::{Column, Kind, Schema, Unit};
    use blockstone_record::Recording;

    use super::*;
    use crate::options::{KEEP_MIN, WatchOptions};

    const SECOND_NS: u64 = 1_000_000_000;

    static HOST: Schema = Schema {
        probe: "host",
        doc: "A host.",
        columns: &[Column {
            name: "cpu_ns",
            unit: Unit::Nanoseconds,
            kind: Kind::Counter,
            source: "the test",
            doc: "A column of the test.",
        }],
    };

    fn sink(dir: &Path, keep: Option<Nanos>) -> RecordingSink {
        let destination = Destination { dir: dir.to_owned(), id: "abcdef".to_owned() };
        let settings = Settings {
            options: WatchOptions { keep_ns: keep, ..WatchOptions::default() },
            argv: Vec::new(),
            history: Nanos(0),
            record: None,
            databases: Vec::new(),
            who: false,
            active_set: None,
        };
        let series = [ProbeInfo::of(&HOST)];
        RecordingSink::begin(&destination, &settings, (&[], &series), clock::now_ns()).unwrap()
    }

    /// Adds a tick each second, from 1 to `last`.
    fn record(sink: &mut RecordingSink, last: u64) {
        for second in 1..=last {
            let t_ns = second * SECOND_NS;
            sink.row("host", t_ns, "", &[Cell::from(second)]).unwrap();
            sink.ticked(t_ns).unwrap();
        }
    }

    fn seconds(dir: &Path) -> (u64, u64, u64) {
        let recording = Recording::open(dir).unwrap();
        assert_eq!(recording.warnings(), Vec::<String>::new());
        let instants = recording.instants("host").unwrap();
        let phase = &recording.manifest.phases[0];
        assert!(instants.windows(2).all(|two| two[1] == two[0] + SECOND_NS), "{instants:?}");
        let [start, first, last] =
            [phase.window_start_ns, instants[0], instants[instants.len() - 1]];
        (start / SECOND_NS, first / SECOND_NS, last / SECOND_NS)
    }

    #[test]
    fn only_what_is_kept_stays_on_disk() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("run");
        let mut sink = sink(&dir, Some(KEEP_MIN));
        record(&mut sink, 600);
        let (start, first, last) = seconds(&dir);
        assert_eq!(start, first);
        assert!(last >= 590 && last - 60 >= first && last - first < 75, "{first} to {last}");
        let segments = std::fs::read_dir(dir.join("series")).unwrap().count();
        assert!(segments < 10, "{segments} segments");
        sink.close(End::Complete).unwrap();
        assert_eq!(seconds(&dir), (first, first, 600));
    }

    #[test]
    fn without_a_limit_all_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("run");
        let mut sink = sink(&dir, None);
        record(&mut sink, 600);
        sink.close(End::Complete).unwrap();
        assert_eq!(seconds(&dir), (1, 1, 600));
    }
}
