//! The declaration of one recorded column. Schema, rate rule, terminal heading, chart axis and
//! documentation all derive from it; there is no second place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named;

named! {
    /// How a column behaves in time.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Kind {
        /// Cumulative: only differences between two ticks mean anything.
        Counter = "counter",
        /// A level at the moment of the tick.
        Gauge = "gauge",
        /// A text that names a state.
        State = "state",
    }
}

named! {
    /// The unit of a column.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Unit {
        /// A number of things.
        Count = "count",
        Bytes = "bytes",
        Nanoseconds = "ns",
        /// Parts per million.
        Ppm = "ppm",
        /// No unit: a text.
        Text = "text",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name everywhere: Rust field, Parquet column, JSON key; unit, then qualifier, last.
    pub name: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    /// Where the value comes from, as an administrator would look it up.
    pub source: &'static str,
    /// What it means, where it wraps.
    pub doc: &'static str,
}

/// Where columns come from, as an administrator would look it up.
#[derive(Clone, Copy, Debug)]
pub struct Origin(pub &'static str);

impl Origin {
    /// A cumulative number of things.
    pub const fn count(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Count, Kind::Counter, doc)
    }

    /// Cumulative bytes.
    pub const fn bytes(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Bytes, Kind::Counter, doc)
    }

    /// Cumulative nanoseconds.
    pub const fn time(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Nanoseconds, Kind::Counter, doc)
    }

    /// A number that rises and falls.
    pub const fn level(self, name: &'static str, unit: Unit, doc: &'static str) -> Column {
        self.column(name, unit, Kind::Gauge, doc)
    }

    /// A text.
    pub const fn state(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Text, Kind::State, doc)
    }

    const fn column(self, name: &'static str, unit: Unit, kind: Kind, doc: &'static str) -> Column {
        Column { name, unit, kind, source: self.0, doc }
    }
}

/// A probe's name and columns. Each recorded row also carries `t_ns` (nanoseconds since the
/// recording began), `phase` (index into the manifest's phases, −1 between them) and `object`
/// (what the row is about, as a device name; empty when there is only one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The probe's name, and the name of its file in a recording.
    pub probe: &'static str,
    /// What it observes, in one sentence.
    pub doc: &'static str,
    pub columns: &'static [Column],
}

/// A cell of a recorded row: unmeasured is not zero. In JSON a number, a text, or null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A measured number, of a [`Kind::Counter`] or [`Kind::Gauge`].
    Value(i64),
    /// A measured state, of a [`Kind::State`].
    Text(String),
    /// Not measured; the reason stands in the manifest's `unmeasured` list.
    Unmeasured,
}

/// What a measured thing said about itself at one tick: one row of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub probe: &'static str,
    /// What it is about; empty when there is only one.
    pub object: String,
    /// One cell for each column of the schema, in its order.
    pub cells: Vec<Cell>,
}

/// Why a column was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum Unmeasured {
    /// Could be measured, but is switched off.
    Off(String),
    /// This kernel or server does not have it.
    NotInVersion(String),
    /// This user may not read it.
    NotPermitted(String),
    /// It could not be read, or it was and other counters contradict it.
    NoEvidence(String),
}

/// How a reason begins that is about an imported file.
const NOT_IMPORTED: &str = "not in this import";

impl Unmeasured {
    /// The reason why columns are empty of which the imported file of a tool says nothing.
    pub fn not_imported(tool: &str, columns: &[String]) -> Self {
        let columns = columns.join(", ");
        Self::NotInVersion(format!("{NOT_IMPORTED}: {tool} did not keep {columns}"))
    }

    /// Whether the reason is that.
    pub fn is_not_imported(&self) -> bool {
        matches!(self, Self::NotInVersion(why) if why.starts_with(NOT_IMPORTED))
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Value(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<Option<u64>> for Cell {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Unmeasured, Self::from)
    }
}
