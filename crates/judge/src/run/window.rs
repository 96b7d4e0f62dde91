//! The windows of a run: every series between their edges, the latencies inside them.

use std::collections::BTreeMap;
use std::rc::Rc;

use blockstone_base::histogram::LatencyHistogram;
use blockstone_base::stats::Estimate;
use blockstone_record::manifest::{Group, Manifest, Phase};
use blockstone_record::parameters::RunParameters;
use blockstone_record::{LatencyClock, Recording, Series};

use crate::JudgeError;
use crate::derive;
use crate::window::{Growth, series};

/// The probes that are read.
const PROBES: [&str; 11] = [
    "operation",
    "event",
    "role",
    "disk",
    "instance",
    "server",
    "sql",
    "process",
    "host",
    "block",
    "load",
];

/// The window with all that was recorded in it.
pub struct RunWindow<'a> {
    /// The recording's manifest.
    pub manifest: &'a Manifest,
    /// The phase in which the sessions ran.
    pub phase: &'a Phase,
    row: i32,
    series: Rc<BTreeMap<&'static str, Series>>,
    /// Latencies inside the window by name and clock: an operation, or `role/event`.
    pub histograms: BTreeMap<(String, LatencyClock), LatencyHistogram>,
}

impl<'a> RunWindow<'a> {
    /// The windows in which sessions ran, in the order of time; none when the run did not come that
    /// far.
    pub fn all(recording: &'a Recording) -> Result<Vec<Self>, JudgeError> {
        let manifest = &recording.manifest;
        let mut recorded = BTreeMap::new();
        for probe in PROBES {
            if let Some(series) = series(recording, probe)? {
                recorded.insert(probe, series);
            }
        }
        let recorded = Rc::new(recorded);
        let held = |phase: &Phase| {
            matches!(phase.group, Group::Workload | Group::Scan)
                && phase.window_end_ns > phase.window_start_ns
        };
        let phases = manifest.phases.iter().enumerate().filter(|(_, phase)| held(phase));
        let mut windows: Vec<Self> = phases
            .map(|(row, phase)| Self {
                manifest,
                phase,
                row: row as i32,
                series: Rc::clone(&recorded),
                histograms: BTreeMap::new(),
            })
            .collect();
        for one in recording.histograms()?.into_iter().filter(|one| one.windowed) {
            if let Some(window) = windows.iter_mut().find(|window| window.row == one.phase) {
                let histograms = &mut window.histograms;
                histograms.entry((one.role, one.clock)).or_default().merge(&one.histogram);
            }
        }
        Ok(windows)
    }

    /// Whether sessions shared a scan in it.
    pub fn scans(&self) -> bool {
        self.phase.group == Group::Scan
    }

    /// Its length.
    pub fn duration_ns(&self) -> u64 {
        self.phase.window_end_ns - self.phase.window_start_ns
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.duration_ns() as f64 / 1e9
    }

    /// Sessions: those of the point, or as the settings have them.
    pub fn sessions(&self) -> u64 {
        let of_point = self.phase.load.as_ref().map(|load| u64::from(load.workers));
        of_point.or_else(|| self.parameters().sessions.map(u64::from)).unwrap_or(0)
    }

    /// What was asked for.
    pub fn parameters(&self) -> RunParameters {
        self.manifest.parameters()
    }

    /// The objects that `probe` has rows of.
    pub fn objects(&self, probe: &str) -> Vec<&str> {
        self.series.get(probe).map(|series| series.objects(self.row)).unwrap_or_default()
    }

    /// By how much a counter grew from edge to edge; none where it was not measured.
    pub fn grown(&self, probe: &str, object: &str, column: &str) -> Option<u64> {
        let (from_ns, to_ns) = (self.phase.window_start_ns, self.phase.window_end_ns);
        self.series.get(probe)?.delta(self.row, object, from_ns, to_ns, column)
    }

    /// The growth over all objects; none unless all were measured.
    pub fn grown_by_all(&self, probe: &str, column: &str) -> Option<u64> {
        let objects = self.objects(probe);
        if objects.is_empty() {
            return None;
        }
        objects.into_iter().map(|object| self.grown(probe, object, column)).sum()
    }

    /// What was charged to all roles of a server; none unless all were measured. A role that has no
    /// row before the window began in it, at zero: its first process or thread did.
    pub fn charged_to_server(&self, column: &str) -> Option<u64> {
        let objects = self.objects("server");
        let grown = |role| self.grown("server", role, column).or_else(|| self.born(role, column));
        (!objects.is_empty()).then(|| objects.into_iter().map(grown).sum())?
    }

    fn born(&self, role: &str, column: &str) -> Option<u64> {
        let rows = self.series.get("server")?.rows();
        let mut rows = rows.filter(|row| row.phase == self.row && row.object == role);
        if rows.any(|row| row.t_ns <= self.phase.window_start_ns) {
            return None;
        }
        self.track("server", role, column).last().map(|&(_, value)| value)
    }

    /// A statistic of the database.
    pub fn statistic(&self, column: &str) -> Option<u64> {
        self.grown("instance", "", column)
    }

    /// The growth of `columns` of one of the machine's probes.
    pub fn growth(&self, probe: &str, object: &str, columns: &[&'static str]) -> Growth {
        let column = |&name: &&'static str| Some((name, self.grown(probe, object, name)?));
        columns.iter().filter_map(column).collect()
    }

    /// A counter at each tick of the window, both edges included.
    pub fn track(&self, probe: &str, object: &str, column: &str) -> Vec<(u64, u64)> {
        let (from_ns, to_ns) = (self.phase.window_start_ns, self.phase.window_end_ns);
        let Some(series) = self.series.get(probe) else { return Vec::new() };
        let mut track = series.track(self.row, object, from_ns, to_ns, column);
        track.dedup_by_key(|(t_ns, _)| *t_ns);
        track
    }

    /// A counter summed over all objects, at the instants at which all were read.
    pub fn track_of_all(&self, probe: &str, column: &str) -> Vec<(u64, u64)> {
        let objects = self.objects(probe);
        let mut sums: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        for object in &objects {
            for (t_ns, value) in self.track(probe, object, column) {
                let sum = sums.entry(t_ns).or_default();
                *sum = (sum.0 + 1, sum.1 + value);
            }
        }
        let whole = sums.into_iter().filter(|(_, (parts, _))| *parts == objects.len());
        whole.map(|(t_ns, (_, sum))| (t_ns, sum)).collect()
    }

    /// Growth of one counter for each unit of another, at the ticks at which the other moved: its
    /// slope, with the interval of the slices between them.
    pub fn ratio(&self, of: &[(u64, u64)], by: &[(u64, u64)]) -> Option<Estimate> {
        let of: BTreeMap<u64, u64> = of.iter().copied().collect();
        let mut pairs: Vec<(u64, u64)> =
            by.iter().filter_map(|(t_ns, by)| Some((*by, *of.get(t_ns)?))).collect();
        // Processor time is read less often than the rest when there are thousands of threads.
        pairs.dedup_by_key(|(by, _)| *by);
        let estimate = derive::rate(&pairs)?.scaled(1e-9);
        Some(Estimate { duration_ns: self.duration_ns(), ..estimate })
    }
}
