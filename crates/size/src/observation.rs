//! Observations: one interval of one instance, in the units used for sizing.

mod host;
mod load;

use blockstone_base::database::LOAD;
use blockstone_figures::{History, Interval};

use crate::hours::{self, Filter};

/// Load of one interval. Rates are means over the interval. Unknown values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    pub database: String,
    /// Empty for the whole cluster, or for a host.
    pub instance: String,
    /// Kind of the report or tool: `awr`, `statspack`, `iostat`; `recording` for a recording of
    /// Blockstone itself.
    pub kind: String,
    /// Name of the pluggable database, if it is of one.
    pub container: Option<String>,
    /// Wall-clock time of the server, in seconds since 1970 as if it were UTC.
    pub begin_s: f64,
    /// Whether this time is unknown.
    pub is_undated: bool,
    /// Exact length.
    pub seconds: f64,
    pub reads_per_s: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub redo_bytes_per_s: Option<f64>,
    pub redo_writes_per_s: Option<f64>,
    pub commits_per_s: Option<f64>,
    /// Requests to the tablespaces of each class, in the order of [`CLASSES`].
    pub class_ios_per_s: [Option<f64>; CLASSES.len()],
    /// Processor time of the database, foreground and background, in cores.
    pub database_cores: Option<f64>,
    /// Busy processors of the host.
    pub busy_processors: Option<f64>,
    /// Highest values inside the interval, with their averaging time.
    pub most: Option<Most>,
    pub levels: Levels,
    /// The ticks of the history at its start and end.
    pub ticks_ns: (u64, u64),
}

/// Columns of [`LOAD`] for the classes of tablespaces.
pub const CLASSES: [&str; 5] = ["data_ios", "index_ios", "undo_ios", "temporary_ios", "system_ios"];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Most {
    pub averaging_s: f64,
    pub reads_per_s: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub redo_bytes_per_s: Option<f64>,
}

/// Levels at the end of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    pub size_bytes: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub sessions: Option<f64>,
    pub cores: Option<f64>,
    pub processors: Option<f64>,
}

/// Maximum number of intervals of a history that does not define intervals itself.
const SLICES: usize = 10_000;
/// A run has ticks of 100 ms, in which a database writer sends what it collected in a second: the
/// peaks of such intervals are not a need of the storage.
const SHORTEST_NS: u64 = 1_000_000_000;

/// Source of observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Statistics kept by the databases themselves.
    Load,
    /// The requests of the processes of one database.
    Database,
    /// The requests of the devices that the load used.
    Devices,
    /// The requests of the host's disks.
    Host,
}

/// Extracts the load from a history. `spans_ns` are the selected parts, or all of it if empty;
/// `devices` are those of the load, if others on the host are not part of it; `name` is the name to
/// give a host.
pub fn observations(
    history: &History,
    spans_ns: &[(u64, u64)],
    devices: &[&str],
    name: &str,
) -> (Source, Vec<Observation>) {
    let (source, mut found) = of_kind(history, spans_ns, devices, name);
    let imported = history.imported();
    for observation in &mut found {
        imported.map_or("recording", |it| &it.tool).clone_into(&mut observation.kind);
        let mut databases = imported.iter().flat_map(|it| &it.objects);
        if let Some(database) = databases.find(|it| it.name == observation.database) {
            observation.kind.clone_from(&database.kind);
            observation.container.clone_from(&database.container);
            observation.is_undated = database.undated;
        }
    }
    (source, found)
}

fn of_kind(
    history: &History,
    spans_ns: &[(u64, u64)],
    devices: &[&str],
    name: &str,
) -> (Source, Vec<Observation>) {
    if history.has(LOAD.probe) {
        return (Source::Load, load::observations(history));
    }
    let whole = history.whole();
    let all: Vec<(u64, u64)> = whole.iter().map(|it| (it.from_ns, it.to_ns)).collect();
    let spans = if spans_ns.is_empty() { &all } else { spans_ns };
    let slices = spans.iter().flat_map(|&(from, to)| {
        let seconds = to.saturating_sub(from).div_ceil(SHORTEST_NS).max(1) as usize;
        history.interval(from, to).slices(seconds.min(SLICES))
    });
    host::observations(&slices.collect::<Vec<_>>(), devices, name)
}

/// A device whose requests are not counted by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    pub why: &'static str,
}

/// Returns the devices of a host that [`observations`] leave out, and why.
pub fn left_out(history: &History, devices: &[&str]) -> Vec<LeftOut> {
    let left_out = |whole: Interval<'_>| host::left_out(&whole, &whole.slices(SLICES), devices);
    history.whole().map(left_out).unwrap_or_default()
}

impl Observation {
    /// Returns the requests that reach the disks: a redundancy writes everything `penalty` times.
    pub fn hardware_iops(&self, penalty: f64) -> Option<f64> {
        Some(self.reads_per_s? + penalty * self.writes_per_s?)
    }

    /// Like [`Self::hardware_iops`], for the highest values inside the interval. They need not
    /// coincide, so it is an upper bound.
    pub fn most_hardware_iops(&self, penalty: f64) -> Option<f64> {
        let most = self.most?;
        Some(most.reads_per_s? + penalty * most.writes_per_s?)
    }

    /// Returns when it began, by the clock of the server.
    pub fn begin(&self) -> Option<String> {
        (!self.is_undated).then(|| hours::clock(self.begin_s))
    }

    /// Whether its middle is in these hours. A time that is unknown is in none.
    pub fn is_in(&self, filter: Filter) -> bool {
        let is_known = || !self.is_undated && filter.admits(self.begin_s + self.seconds / 2.0);
        filter == Filter::default() || is_known()
    }

    pub fn end_s(&self) -> f64 {
        self.begin_s + self.seconds
    }

    /// Returns `database/instance`, or the database.
    pub fn name(&self) -> String {
        match self.instance.as_str() {
            "" => self.database.clone(),
            instance => format!("{}/{instance}", self.database),
        }
    }

    /// Returns the load of instances of a cluster, or of databases, together over the same time:
    /// unknown if it is unknown for one of them. `None` if `parts` is empty.
    pub fn sum(parts: &[Self]) -> Option<Self> {
        let (first, rest) = parts.split_first()?;
        let mut sum = first.clone();
        for part in rest {
            sum.add(part);
        }
        Some(sum)
    }

    fn add(&mut self, other: &Self) {
        let end_s = self.end_s().max(other.end_s());
        self.begin_s = self.begin_s.min(other.begin_s);
        self.is_undated |= other.is_undated;
        self.seconds = self.seconds.max(other.seconds).min(end_s - self.begin_s);
        self.ticks_ns.0 = self.ticks_ns.0.min(other.ticks_ns.0);
        self.ticks_ns.1 = self.ticks_ns.1.max(other.ticks_ns.1);
        let pairs = [
            (&mut self.reads_per_s, other.reads_per_s),
            (&mut self.writes_per_s, other.writes_per_s),
            (&mut self.read_bytes_per_s, other.read_bytes_per_s),
            (&mut self.write_bytes_per_s, other.write_bytes_per_s),
            (&mut self.redo_bytes_per_s, other.redo_bytes_per_s),
            (&mut self.redo_writes_per_s, other.redo_writes_per_s),
            (&mut self.commits_per_s, other.commits_per_s),
            (&mut self.database_cores, other.database_cores),
            (&mut self.busy_processors, other.busy_processors),
            (&mut self.levels.memory_bytes, other.levels.memory_bytes),
            (&mut self.levels.sessions, other.levels.sessions),
            (&mut self.levels.cores, other.levels.cores),
            (&mut self.levels.processors, other.levels.processors),
        ];
        for (sum, part) in pairs {
            *sum = plus(*sum, part);
        }
        for (sum, part) in self.class_ios_per_s.iter_mut().zip(other.class_ios_per_s) {
            *sum = plus(*sum, part);
        }
        // The instances of a cluster share its files.
        let sizes = (self.levels.size_bytes, other.levels.size_bytes);
        self.levels.size_bytes = match sizes {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        self.most = self.most.zip(other.most).map(|(a, b)| a.plus(&b));
    }
}

impl Most {
    fn plus(&self, other: &Self) -> Self {
        Self {
            averaging_s: self.averaging_s.max(other.averaging_s),
            reads_per_s: plus(self.reads_per_s, other.reads_per_s),
            writes_per_s: plus(self.writes_per_s, other.writes_per_s),
            read_bytes_per_s: plus(self.read_bytes_per_s, other.read_bytes_per_s),
            write_bytes_per_s: plus(self.write_bytes_per_s, other.write_bytes_per_s),
            redo_bytes_per_s: plus(self.redo_bytes_per_s, other.redo_bytes_per_s),
        }
    }
}

fn plus(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}
