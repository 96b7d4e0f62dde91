//! The contents of one file, as read.

use std::collections::BTreeMap;

use blockstone_base::database::LOAD;

/// The supported layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    AwrText,
    AwrHtml,
    AwrMarkdown,
    /// Report of all instances of a cluster.
    AwrGlobalHtml,
    AwrGlobalText,
    Statspack,
    AwrMiner,
    Csv,
}

impl Kind {
    /// Returns the tool that created it, as named in a recording.
    pub fn tool(self) -> &'static str {
        match self {
            Self::AwrText
            | Self::AwrHtml
            | Self::AwrMarkdown
            | Self::AwrGlobalHtml
            | Self::AwrGlobalText => "oracle-awr",
            Self::Statspack => "oracle-statspack",
            Self::AwrMiner => "awr-miner",
            Self::Csv => "csv",
        }
    }

    /// Returns its name in documents for scripts.
    pub fn key(self) -> &'static str {
        match self {
            Self::AwrText | Self::AwrHtml | Self::AwrMarkdown => "awr",
            Self::AwrGlobalHtml | Self::AwrGlobalText => "awr-global",
            Self::Statspack => "statspack",
            Self::AwrMiner => "awr-miner",
            Self::Csv => "csv",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::AwrText => "AWR text",
            Self::AwrHtml => "AWR HTML",
            Self::AwrMarkdown => "AWR Markdown",
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
    /// Release as printed: `11.2.0.3.0`.
    pub release: Option<String>,
    pub cluster: Option<bool>,
    /// The pluggable database, if the report is only of one.
    pub container: Option<Container>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Container {
    /// Empty if the report does not say it.
    pub name: String,
    pub id: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// `None` stands for the whole cluster.
    pub number: Option<u32>,
    pub name: String,
    /// A salted hash, unless names are kept.
    pub host: String,
}

impl Instance {
    /// Returns its name as an object of series.
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
    /// Sections found, for the table of a file's contents.
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
    /// Its times cannot be read: it begins in 1970.
    pub is_undated: bool,
    /// Time at which the instance was started, if known.
    pub started_s: Option<i64>,
    pub totals: Totals,
    pub statements: Vec<Statement>,
    pub advice: Vec<Advice>,
    /// I/O statistics under the database's names.
    pub statistics: BTreeMap<String, f64>,
}

/// Counters over an interval, by the column names of [`LOAD`], and levels: the highest of those at
/// its begin and its end. Values that a file does not contain are absent, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals(BTreeMap<&'static str, f64>);

impl Totals {
    pub fn get(&self, column: &str) -> Option<f64> {
        self.0.get(column).copied()
    }

    /// Sets a column of [`LOAD`]; an unknown column, and a value that is unknown, negative or too
    /// large for a recording, is left out.
    pub fn set(&mut self, column: &str, value: impl Into<Option<f64>>) {
        const LARGEST: f64 = 1e18;
        let known = LOAD.columns.iter().find(|known| known.name == column);
        debug_assert!(known.is_some(), "no column {column}");
        let value = value.into().filter(|value| (0.0..=LARGEST).contains(value));
        if let (Some(known), Some(value)) = (known, value) {
            self.0.insert(known.name, value);
        }
    }

    pub fn remove(&mut self, column: &str) {
        self.0.remove(column);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    pub id: String,
    /// Set only if names are kept.
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
    /// Size relative to the current size.
    pub size_factor: f64,
    pub physical_reads: f64,
}
