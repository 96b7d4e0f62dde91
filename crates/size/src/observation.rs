//! One interval of one instance, in the units in which people size.

mod host;
mod load;

use blockstone_base::database::LOAD;
use blockstone_figures::History;

/// Rates are means over the interval. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    pub database: String,
    /// Empty: the whole cluster, or a host.
    pub instance: String,
    /// Wall-clock time of the server, in seconds since 1970 as if it were UTC.
    pub begin_s: f64,
    /// Exact length.
    pub seconds: f64,
    pub reads_per_s: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub redo_bytes_per_s: Option<f64>,
    pub redo_writes_per_s: Option<f64>,
    pub commits_per_s: Option<f64>,
    /// Requests of the tablespaces of each class, in the order of [`CLASSES`].
    pub class_ios_per_s: [Option<f64>; CLASSES.len()],
    /// Processor time of the database, foreground and background, in cores.
    pub database_cores: Option<f64>,
    /// Processors of the host that were busy.
    pub busy_processors: Option<f64>,
    /// Highest values inside the interval, and the time over which they are means.
    pub most: Option<Most>,
    pub levels: Levels,
    /// The ticks of the history that it lies between.
    pub ticks_ns: (u64, u64),
}

/// Columns of [`LOAD`] of classes of tablespaces.
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

/// At the end of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    pub size_bytes: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub sessions: Option<f64>,
    pub cores: Option<f64>,
    pub processors: Option<f64>,
}

/// Intervals of a history at most, where it does not say itself what its intervals are.
const SLICES: usize = 10_000;

/// Where observations come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// What databases kept of themselves.
    Load,
    /// The requests of the processes of one database.
    Database,
    /// The requests of the host's disks.
    Host,
}

/// What a history says of a load. `spans_ns` are the parts that are meant, all of it if there are
/// none; `name` is what a host is called.
pub fn observations(
    history: &History,
    spans_ns: &[(u64, u64)],
    name: &str,
) -> (Source, Vec<Observation>) {
    if history.has(LOAD.probe) {
        return (Source::Load, load::observations(history));
    }
    let whole = history.whole();
    let all: Vec<(u64, u64)> = whole.iter().map(|it| (it.from_ns, it.to_ns)).collect();
    let spans = if spans_ns.is_empty() { &all } else { spans_ns };
    let slices = spans.iter().flat_map(|&(from, to)| history.interval(from, to).slices(SLICES));
    host::observations(&slices.collect::<Vec<_>>(), name)
}

impl Observation {
    /// Requests that reach the disks: a redundancy writes everything `penalty` times.
    pub fn hardware_iops(&self, penalty: f64) -> Option<f64> {
        Some(self.reads_per_s? + penalty * self.writes_per_s?)
    }

    /// The same of the highest values inside the interval. They need not be of one instant, so it
    /// is an upper bound.
    pub fn most_hardware_iops(&self, penalty: f64) -> Option<f64> {
        let most = self.most?;
        Some(most.reads_per_s? + penalty * most.writes_per_s?)
    }

    pub fn end_s(&self) -> f64 {
        self.begin_s + self.seconds
    }

    /// `database/instance`, or the database.
    pub fn name(&self) -> String {
        match self.instance.as_str() {
            "" => self.database.clone(),
            instance => format!("{}/{instance}", self.database),
        }
    }

    /// The load of instances of a cluster, or of databases, together over the same time: unknown
    /// where that of one is. `None` of nothing.
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
