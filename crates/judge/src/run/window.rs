//! The windows of a run: the intervals between their edges, with what the manifest says of them.

use std::ops::Deref;

use blockstone_figures::{CPU_USES, Grown, History, Interval, Missing};
use blockstone_record::manifest::{Group, Manifest, Phase};
use blockstone_record::parameters::RunParameters;

use crate::window::{Growth, PROCESS, Window};

pub const PROBES: [&str; 15] = [
    "operation",
    "event",
    "role",
    "disk",
    "instance",
    "server",
    "blocked",
    "sql",
    "process",
    "host",
    "block",
    "load",
    "page_cache",
    "memory",
    "cached_files",
];

/// The window with everything that was recorded in it, as an [`Interval`].
pub struct RunWindow<'a> {
    pub manifest: &'a Manifest,
    pub phase: &'a Phase,
    interval: Interval<'a>,
}

impl<'a> Deref for RunWindow<'a> {
    type Target = Interval<'a>;

    fn deref(&self) -> &Interval<'a> {
        &self.interval
    }
}

impl<'a> RunWindow<'a> {
    /// Returns the windows in which sessions ran, in order of time; empty if the run did not get
    /// that far.
    pub fn all(manifest: &'a Manifest, history: &'a History) -> Vec<Self> {
        let held = |(_, phase): &(usize, &Phase)| {
            matches!(phase.group, Group::Workload | Group::Scan)
                && phase.window_end_ns > phase.window_start_ns
        };
        let phases = manifest.phases.iter().enumerate().filter(held);
        let window = |(index, phase)| {
            let interval = history.window(index, phase);
            Self { manifest, phase, interval }
        };
        phases.map(window).collect()
    }

    /// Returns a part of the window, with only what was recorded in it.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Self {
        Self { interval: self.interval.part(from_ns, to_ns), ..*self }
    }

    pub fn scans(&self) -> bool {
        self.phase.group == Group::Scan
    }

    pub fn writes_tables(&self) -> bool {
        self.parameters().profile.as_deref() == Some("bulk-write")
    }

    pub fn duration_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Returns the number of sessions: that of the point, or that of the settings.
    pub fn sessions(&self) -> u64 {
        let of_point = self.phase.load.as_ref().map(|load| u64::from(load.workers));
        of_point.or_else(|| self.parameters().sessions.map(u64::from)).unwrap_or(0)
    }

    pub fn parameters(&self) -> RunParameters {
        self.manifest.parameters()
    }

    /// Returns what was charged to all roles of a server. Missing if one was not measured. A role
    /// without a row before the window began in it, at zero, with its first process or thread.
    pub fn charged_to_server(&self, column: &str) -> Grown {
        let roles = self.objects("server");
        if roles.is_empty() {
            return Err(Missing::Unknown);
        }
        roles.into_iter().map(|role| self.grown_from_zero("server", role, column)).sum()
    }

    /// Returns what the machine and the processes of the database spent. The kernel does not say
    /// which part of a server's time was spent in the window; the run's own share decides little.
    pub fn machine(&self) -> Window {
        let mut process = Growth::of(self, ("process", ""), &PROCESS);
        if self.parameters().is_apart() {
            process.add("cpu_user_ns", self.charged_to_server("cpu_ns").unwrap_or(0));
        }
        let host = Growth::of(self, ("host", ""), &CPU_USES);
        Window { process, host, ..Window::default() }
    }

    pub fn statistic(&self, column: &str) -> Grown {
        self.grown("instance", "", column)
    }
}
