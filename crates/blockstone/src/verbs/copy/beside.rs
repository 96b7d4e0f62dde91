//! The rounds of a comparison, and the rates of a database meanwhile: its counters before and after
//! each round.

use std::time::{Duration, Instant};

use anyhow::Result;
use blockstone_base::column::{Cell, Reading};
use blockstone_copy::against::{Round, Tool};
use blockstone_servers::monitor::{self, Monitor};

use super::args::Peer;

/// Time for which the database is observed without a copy.
pub const ALONE: Duration = Duration::from_secs(5);
/// Servers publish their counters about once a second: a shorter round says nothing about them.
const LEAST: Duration = Duration::from_secs(3);
const READ: &str = "session/db file sequential read";

/// Figures of a database over a round. `None` if the database does not count them, or the round is
/// shorter than three seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Got {
    pub commits_per_s: Option<f64>,
    pub physical_reads_per_s: Option<f64>,
    pub read_latency_ns_mean: Option<f64>,
    pub commit_latency_ns_mean: Option<f64>,
}

/// Rounds of a comparison; empty without `--against`.
#[derive(Debug, Default)]
pub struct Against {
    /// The name of the other way, and a description if the name does not say it all.
    pub name: String,
    pub about: Option<String>,
    pub rounds: Vec<(Round, Option<Got>)>,
    /// Figures of the database before the first round.
    pub alone: Option<Got>,
}

impl Against {
    pub fn with(peer: &Peer) -> Self {
        Self { name: peer.name(), about: peer.about(), ..Self::default() }
    }

    /// Returns what the rows of a tool are called.
    pub fn program(&self, tool: Tool) -> &str {
        match tool {
            Tool::Ours => "blockstone",
            Tool::Peer => &self.name,
        }
    }
}

pub struct Beside {
    monitor: Box<dyn Monitor>,
    before: Vec<Reading>,
    began: Instant,
}

impl Beside {
    /// Connects to the database at `address`; the first round starts now.
    pub fn start(address: &str) -> Result<Self> {
        let mut beside =
            Self { monitor: monitor::open(address)?, before: Vec::new(), began: Instant::now() };
        beside.begin()?;
        Ok(beside)
    }

    pub fn begin(&mut self) -> Result<()> {
        self.before.clear();
        self.monitor.counters(&mut self.before)?;
        self.began = Instant::now();
        Ok(())
    }

    /// Returns the figures since the round started.
    pub fn end(&mut self) -> Result<Got> {
        let mut now = Vec::new();
        self.monitor.counters(&mut now)?;
        let passed = self.began.elapsed();
        if passed < LEAST {
            return Ok(Got::default());
        }
        let grew = |probe: &str, object: &str, column: &str| {
            let at = |of: &[Reading]| self.value(of, (probe, object, column));
            at(&now)?.checked_sub(at(&self.before)?).filter(|grew| *grew >= 0)
        };
        let rate = |column| Some(grew("instance", "", column)? as f64 / passed.as_secs_f64());
        let each = |time: Option<i64>, count: Option<i64>| {
            Some(time? as f64 / count.filter(|count| *count > 0)? as f64)
        };
        let of_reads = grew("instance", "", "physical_reads");
        let by_event = each(grew("event", READ, "time_ns"), grew("event", READ, "waits"));
        Ok(Got {
            commits_per_s: rate("commits"),
            physical_reads_per_s: rate("physical_reads"),
            read_latency_ns_mean: by_event
                .or_else(|| each(grew("database", "", "read_ns"), of_reads)),
            commit_latency_ns_mean: each(
                grew("sql", "", "commit_ns"),
                grew("instance", "", "commits"),
            ),
        })
    }

    fn value(&self, of: &[Reading], (probe, object, column): (&str, &str, &str)) -> Option<i64> {
        let schema = self.monitor.series().iter().find(|schema| schema.probe == probe)?;
        let index = schema.columns.iter().position(|it| it.name == column)?;
        let reading = of.iter().find(|it| it.probe == probe && it.object == object)?;
        match reading.cells.get(index)? {
            Cell::Value(value) => Some(*value),
            Cell::Text(_) | Cell::Unmeasured => None,
        }
    }
}
