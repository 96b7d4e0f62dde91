//! One file, as it was read.

use std::collections::BTreeMap;

use blockstone_base::database::LOAD;

/// The layouts that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    AwrText,
    AwrHtml,
    /// The reports of all instances of a cluster.
    AwrGlobalHtml,
    AwrGlobalText,
    Statspack,
    AwrMiner,
    Csv,
}

impl Kind {
    /// The tool that made it, as a recording names it.
    pub fn tool(self) -> &'static str {
        match self {
            Self::AwrText | Self::AwrHtml | Self::AwrGlobalHtml | Self::AwrGlobalText => {
                "oracle-awr"
            }
            Self::Statspack => "oracle-statspack",
            Self::AwrMiner => "awr-miner",
            Self::Csv => "csv",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::AwrText => "AWR text",
            Self::AwrHtml => "AWR HTML",
            Self::AwrGlobalHtml => "AWR global HTML",
            Self::AwrGlobalText => "AWR global text",
            Self::Statspack => "Statspack",
            Self::AwrMiner => "AWR-Miner",
            Self::Csv => "CSV",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Database {
    pub name: String,
    pub id: Option<u64>,
    /// As printed: `11.2.0.3.0`.
    pub release: Option<String>,
    pub cluster: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// `None`: the whole cluster together.
    pub number: Option<u32>,
    pub name: String,
    /// A salted hash unless names are kept.
    pub host: String,
}

impl Instance {
    /// How objects of series name it.
    pub fn object(&self) -> String {
        match self.number {
            Some(number) => number.to_string(),
            None => "*".to_owned(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Report {
    pub kind: Kind,
    pub database: Database,
    pub intervals: Vec<Interval>,
    /// What was found of the sections that are read: for the table of what a file has.
    pub sections: Vec<Section>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: &'static str,
    pub found: bool,
}

/// The time between two snapshots of one instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    pub instance: Instance,
    pub snapshots: Option<(u64, u64)>,
    /// Wall-clock time of the server, in seconds since 1970 as if it were UTC.
    pub begin_s: i64,
    pub end_s: i64,
    /// When the instance was started, if known.
    pub started_s: Option<i64>,
    pub totals: Totals,
    pub statements: Vec<Statement>,
    pub advice: Vec<Advice>,
    /// Statistics about I/O by the database's names.
    pub statistics: BTreeMap<String, f64>,
}

/// What was counted in an interval, and levels at its end, by the names of the columns of
/// [`LOAD`]. What a file does not say is absent, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals(BTreeMap<&'static str, f64>);

impl Totals {
    pub fn get(&self, column: &str) -> Option<f64> {
        self.0.get(column).copied()
    }

    /// Sets what is known of a column of [`LOAD`]; what is no such column, unknown, negative or
    /// too large for a recording is left out.
    pub fn set(&mut self, column: &str, value: impl Into<Option<f64>>) {
        const LARGEST: f64 = 1e18;
        let known = LOAD.columns.iter().find(|known| known.name == column);
        debug_assert!(known.is_some(), "no column {column}");
        let value = value.into().filter(|value| (0.0..=LARGEST).contains(value));
        if let (Some(known), Some(value)) = (known, value) {
            self.0.insert(known.name, value);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    pub id: String,
    /// Only if names are kept.
    pub text: Option<String>,
    pub executions: Option<f64>,
    pub elapsed_s: Option<f64>,
    pub cpu_s: Option<f64>,
    pub physical_reads: Option<f64>,
    pub read_ios: Option<f64>,
    pub logical_reads: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    pub pool: String,
    pub size_bytes: f64,
    /// Of the present size.
    pub size_factor: f64,
    pub physical_reads: f64,
}
