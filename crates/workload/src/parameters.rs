//! Parameters of the SLOB method, complete and checked. They are not the struct of the options:
//! of those each may be missing in the file and on the command line, and sizes are not yet rows.

use std::ops::Range;
use std::str::FromStr;

use blockstone_base::database::{STATEMENTS, TABLE_STEPS, TRANSACTIONS};
use blockstone_base::hint::Hint;
use blockstone_base::load::Pacing;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_servers::ScanHow;

use serde::Serialize;

use crate::counters::KINDS;
use crate::order_entry::{self, customers_and_products};

/// Complete parameters. A manifest stores them under the names of the fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameters {
    #[serde(flatten)]
    pub population: Population,
    /// `SCALE`: rows of a schema, one per block.
    pub rows_per_schema: u64,
    /// `WORK_UNIT`: rows that a select visits.
    pub work_unit: u32,
    /// `UPDATE_WORK_UNIT` of pgio: rows that an update changes.
    pub update_work_unit: u32,
    /// `UPDATE_PCT`: number of operations in 100 that update. For [`Population::Mixed`] only.
    pub update_pct: u32,
    /// `SCAN_PCT`: number of selects in 100 that scan the second table.
    pub scan_pct: u32,
    /// `SCAN_TABLE_SZ`: rows of that table.
    pub scan_rows: u64,
    /// Whether to send transactions of [`order_entry`](crate::order_entry) instead of single
    /// statements. For [`Population::Mixed`] only.
    #[serde(skip)]
    pub order_entry: bool,
    /// Whether to create tables from all rows of a schema, flush and drop them, instead of sending
    /// single statements. For [`Population::Mixed`] only.
    #[serde(skip)]
    pub bulk_write: bool,
    /// How sessions scan; `None` leaves it to the target.
    #[serde(skip)]
    pub scan_how: Option<ScanHow>,
    /// `DO_HOTSPOT`: a range of rows that is visited more often.
    #[serde(flatten)]
    pub hotspot: Option<Hotspot>,
    /// `HOT_SCHEMA_FREQUENCY`: one in this many operations goes to the first schema.
    pub hot_schema_every: Option<Every>,
    /// `THINK_TM_*`: pauses between operations.
    #[serde(flatten)]
    pub think: Option<Think>,
    /// `WORK_LOOP`: operations per session, or tables; `None` runs until stopped.
    pub loops: Option<u64>,
    /// Operations per second of all sessions together; `None` starts each when one completes.
    pub rate_per_s: Option<f64>,
    /// The manifest has a place of its own for it.
    #[serde(skip)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Population {
    /// `THREADS_PER_SCHEMA` sessions on each schema, all alike.
    Mixed { schemas: u32, threads: u32 },
    /// Sessions that only select and sessions that only update, each on its own schema.
    Apart { readers: u32, writers: u32 },
    /// Sessions that share one large scan and do nothing else: its table is cut into one part per
    /// schema, and session `i` of `n` takes the parts `i`, `i + n`, … in turn, over and over.
    Scanning {
        sessions: u32,
        /// Schemas, each with its part of the table.
        schemas: u32,
    },
}

/// On average one in N operations, drawn at random each time, so that no two frequencies become
/// synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Every(pub u32);

/// A range of rows that is visited more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hotspot {
    #[serde(rename = "hotspot_first_row")]
    pub first: u64,
    #[serde(rename = "hotspot_rows")]
    pub rows: u64,
    #[serde(rename = "hotspot_every")]
    pub every: Every,
}

/// Pauses, uniformly distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Think {
    #[serde(rename = "think_ns_min")]
    pub min: Nanos,
    #[serde(rename = "think_ns_max")]
    pub max: Nanos,
    #[serde(rename = "think_every")]
    pub every: Every,
}

/// Size of a schema or table: `10000` blocks, or `80M` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Blocks(u64),
    Bytes(Bytes),
}

/// Contradictions among the parameters, or with the size of the schemas.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Hint)]
pub enum ParameterError {
    #[error("set {parameter} to 0: nothing would run")]
    #[hint("give at least 1")]
    Zero { parameter: &'static str },
    #[error("set {parameter} to {value}: it is a percentage")]
    #[hint("give 0 to 100")]
    Percentage { parameter: &'static str, value: u32 },
    #[error("visit {work_unit} rows at a time: the {range} has only {rows}")]
    #[hint("enlarge it with {option}, or reduce the work unit")]
    WorkUnit { work_unit: u32, range: &'static str, rows: u64, option: &'static str },
    #[error("visit a hot range of {rows} rows from row {first} on: a schema has {scale}")]
    #[hint("give --hotspot a smaller size or offset, or a larger --scale")]
    Hotspot { first: u64, rows: u64, scale: u64 },
    #[error("think {min} to {max}: not a range")]
    #[hint("write --think MIN..MAX/N")]
    Think { min: Nanos, max: Nanos },
    #[error("think between operations at a fixed rate: the rate already says when each starts")]
    #[hint("omit --think or --rate")]
    ThinkAtRate,
    #[error("spread {sessions} sessions over {schemas} schemas: they do not divide evenly")]
    #[hint("make --sessions a multiple of --schemas")]
    Uneven { sessions: u32, schemas: u32 },
    #[error("run {schemas} x {threads} sessions: too many")]
    #[hint("ask for fewer --threads")]
    TooMany { schemas: u32, threads: u32 },
    #[error("start {rate_per_s} operations a second: not a rate")]
    #[hint("give more than 0")]
    Rate { rate_per_s: String },
}

impl Population {
    pub fn sessions(self) -> u32 {
        match self {
            Self::Mixed { schemas, threads } => schemas * threads,
            Self::Apart { readers, writers } => readers + writers,
            Self::Scanning { sessions, .. } => sessions,
        }
    }

    pub fn schemas(self) -> u32 {
        match self {
            Self::Mixed { schemas, .. } | Self::Scanning { schemas, .. } => schemas,
            Self::Apart { readers, writers } => readers + writers,
        }
    }
}

impl Parameters {
    /// Returns the schema of session `index`, and how many of 100 of its operations update.
    pub(crate) fn session(&self, index: u32) -> (u32, u32) {
        match self.population {
            Population::Mixed { threads, .. } => (index / threads, self.update_pct),
            Population::Apart { readers, .. } if index < readers => (index, 0),
            Population::Apart { .. } => (index, 100),
            Population::Scanning { schemas, .. } => (index % schemas, 0),
        }
    }

    pub fn updates(&self) -> bool {
        match self.population {
            Population::Mixed { .. } => self.update_pct > 0 || self.order_entry || self.bulk_write,
            Population::Apart { writers, .. } => writers > 0,
            Population::Scanning { .. } => false,
        }
    }

    /// Returns when operations start.
    pub fn pacing(&self) -> Pacing {
        self.rate_per_s
            .map_or(Pacing::Closed, |rate_per_s| Pacing::Open { rate_per_s, poisson: true })
    }

    /// Returns the kinds of operations that sessions send, as indices into [`KINDS`].
    pub fn kinds(&self) -> Range<usize> {
        const TRANSACTIONS_AT: usize = STATEMENTS.len();
        const TABLE_STEPS_AT: usize = TRANSACTIONS_AT + TRANSACTIONS.len();
        match (self.order_entry, self.bulk_write) {
            (true, _) => TRANSACTIONS_AT..TABLE_STEPS_AT,
            (false, true) => TABLE_STEPS_AT..KINDS.len(),
            (false, false) => 0..TRANSACTIONS_AT,
        }
    }

    /// Returns the number of operations of a session in `loops` loops.
    pub(crate) fn operations(&self, loops: u64) -> u64 {
        let each = if self.bulk_write { TABLE_STEPS.len() as u64 } else { 1 };
        loops.saturating_mul(each)
    }

    /// Returns how many tables the sessions of a schema create from its rows at the same time: one
    /// each.
    pub fn copies(&self) -> u32 {
        match self.population {
            Population::Mixed { threads, .. } if self.bulk_write => threads,
            _ => 0,
        }
    }

    /// Returns the number of rows of a schema that are room for orders.
    pub fn order_rows(&self) -> u64 {
        if self.order_entry { order_entry::order_rows(self.rows_per_schema) } else { 0 }
    }

    /// Returns the number of rows that the largest statement visits by key.
    pub fn most_rows(&self) -> u32 {
        self.work_unit.max(self.update_work_unit)
    }

    pub fn check(&self) -> Result<(), ParameterError> {
        self.check_population()?;
        for (parameter, value) in [
            ("--work-unit", self.work_unit.into()),
            ("--update-work-unit", self.update_work_unit.into()),
            ("--loops", self.loops.unwrap_or(1)),
            ("--scan-size", self.scan_rows),
            (
                "the frequency of --hot-schema",
                self.hot_schema_every.map_or(1, |every| every.0.into()),
            ),
        ] {
            nonzero(parameter, value)?;
        }
        for (parameter, value) in [("--update-pct", self.update_pct), ("--scan-pct", self.scan_pct)]
        {
            if value > 100 {
                return Err(ParameterError::Percentage { parameter, value });
            }
        }
        if self.order_entry {
            let (customers, products) = customers_and_products(self.rows_per_schema);
            nonzero("the customers of --scale", customers)?;
            self.check_range("products of a schema", products, "--scale")?;
        }
        self.check_range("schema", self.rows_per_schema, "--scale")?;
        self.check_hotspot()?;
        self.check_pauses()
    }

    fn check_population(&self) -> Result<(), ParameterError> {
        match self.population {
            Population::Mixed { schemas, threads } => {
                nonzero("--schemas", schemas.into())?;
                nonzero("--threads or --sessions", threads.into())?;
                let too_many = || ParameterError::TooMany { schemas, threads };
                schemas.checked_mul(threads).ok_or_else(too_many).map(drop)
            }
            Population::Apart { readers, writers } => {
                nonzero("--readers and --writers", u64::from(readers) + u64::from(writers))?;
                let too_many = || ParameterError::TooMany { schemas: readers, threads: writers };
                readers.checked_add(writers).ok_or_else(too_many).map(drop)
            }
            Population::Scanning { sessions, schemas } => {
                nonzero("--parallel", sessions.into())?;
                nonzero("--schemas", schemas.into())
            }
        }
    }

    fn check_range(
        &self,
        range: &'static str,
        rows: u64,
        option: &'static str,
    ) -> Result<(), ParameterError> {
        let work_unit = self.most_rows();
        if u64::from(work_unit) > rows {
            return Err(ParameterError::WorkUnit { work_unit, range, rows, option });
        }
        Ok(())
    }

    fn check_hotspot(&self) -> Result<(), ParameterError> {
        let Some(Hotspot { first, rows, every }) = self.hotspot else { return Ok(()) };
        nonzero("the frequency of --hotspot", every.0.into())?;
        if first.checked_add(rows).is_none_or(|end| end > self.rows_per_schema) {
            return Err(ParameterError::Hotspot { first, rows, scale: self.rows_per_schema });
        }
        self.check_range("hot range", rows, "--hotspot")
    }

    fn check_pauses(&self) -> Result<(), ParameterError> {
        if let Some(rate_per_s) = self.rate_per_s {
            if !(rate_per_s.is_finite() && rate_per_s > 0.0) {
                return Err(ParameterError::Rate { rate_per_s: rate_per_s.to_string() });
            }
            if self.think.is_some() {
                return Err(ParameterError::ThinkAtRate);
            }
        }
        let Some(Think { min, max, every }) = self.think else { return Ok(()) };
        nonzero("the frequency of --think", every.0.into())?;
        if min > max { Err(ParameterError::Think { min, max }) } else { Ok(()) }
    }
}

/// SLOB's shipped values, with one schema of 80 MiB in blocks of 8 KiB.
impl Default for Parameters {
    fn default() -> Self {
        Self {
            population: Population::Mixed { schemas: 1, threads: 1 },
            rows_per_schema: 10_240,
            work_unit: 64,
            update_work_unit: 64,
            update_pct: 10,
            scan_pct: 0,
            scan_rows: 128,
            order_entry: false,
            bulk_write: false,
            scan_how: None,
            hotspot: None,
            hot_schema_every: None,
            think: None,
            loops: None,
            rate_per_s: None,
            seed: 0,
        }
    }
}

impl Scale {
    pub fn blocks(self, block: Bytes) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Bytes(bytes) => bytes.get() / block.get(),
        }
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(blocks) = text.trim().parse() {
            return Ok(Self::Blocks(blocks));
        }
        let why = || {
            format!(
                "`{text}` is not a scale; write a number of blocks, or a size such as 80M or 10G"
            )
        };
        text.parse().map(Self::Bytes).map_err(|_| why())
    }
}

fn nonzero(parameter: &'static str, value: u64) -> Result<(), ParameterError> {
    if value == 0 { Err(ParameterError::Zero { parameter }) } else { Ok(()) }
}
