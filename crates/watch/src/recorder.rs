//! The recording of a watched host: one phase, from the first tick to the last.

use blockstone_base::column::{Cell, Unmeasured};
use blockstone_base::units::Nanos;
use blockstone_measure::{Opening, capability};
use blockstone_record::manifest::{End, Group, Manifest, Phase, ProbeInfo, Stop};
use blockstone_record::parameters::WatchParameters;
use blockstone_record::{Parameters, RecordError, Recorder};
use blockstone_sys::{clock, survey};
use blockstone_target::monitor::Server;
use jiff::{SignedDuration, Timestamp};

use crate::database::Database;
use crate::settings::{Destination, Settings};

/// The index of the only phase.
pub const PHASE: i32 = 0;
const SEGMENT: Nanos = Nanos::millis(10_000);
/// A longer recording has longer segments: a crash loses at most one part in this many of it.
const SEGMENT_SHARE: u64 = 20;
const SEGMENT_MAX: Nanos = Nanos::millis(300_000);

pub struct RecordingSink {
    recorder: Recorder,
    segment_since_ns: u64,
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
        let parameters = WatchParameters {
            interval_ns: Some(settings.interval),
            server: (!databases.is_empty()).then(|| named(databases)),
            ..WatchParameters::default()
        };
        let manifest = Opening {
            id: &destination.id,
            verb: "watch",
            argv: &settings.argv,
            settings: parameters.settings(),
            seed: 0,
            host: &survey::host(root),
            target: &survey::whole_host(root),
            capabilities: &[capability::privilege()],
        };
        // Instants count from when the watch began, which was before the databases answered.
        let before = SignedDuration::from_nanos((clock::now_ns() - origin_ns) as i64);
        let began = Timestamp::now().checked_sub(before);
        let manifest = manifest.manifest();
        let started_at = began.map_or(manifest.started_at.clone(), |began| began.to_string());
        let manifest = Manifest { started_at, probes: series.to_vec(), ..manifest };
        let recorder = Recorder::create_of(&destination.dir, manifest)?;
        Ok(Self { recorder, segment_since_ns: 0, first_ns: None, last_ns: 0 })
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

    /// A tick is complete: puts a segment on disk when one is due.
    pub fn ticked(&mut self, t_ns: u64) -> Result<(), RecordError> {
        self.first_ns.get_or_insert(t_ns);
        self.last_ns = t_ns;
        let length_ns = (t_ns / SEGMENT_SHARE).clamp(SEGMENT.get(), SEGMENT_MAX.get());
        if t_ns < self.segment_since_ns + length_ns {
            return Ok(());
        }
        self.segment_since_ns = t_ns;
        self.recorder.end_segment()?;
        self.note_phase(Stop::TimeLimit);
        self.recorder.save()
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

/// Products and versions; of several each with its name.
fn named(databases: &[Database]) -> String {
    let server = |database: &Database| {
        let Server { product, version, .. } = database.server();
        let name = database.name().map_or(String::new(), |name| format!("{name} "));
        format!("{name}{product} {version}")
    };
    databases.iter().map(server).collect::<Vec<_>>().join(", ")
}

/// The only phase: from the first tick to the last.
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
