//! Declaration of one recorded column. Schema, rate rule, terminal heading, chart axis and
//! documentation all derive from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named;

named! {
    /// Behaviour of a column over time.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Kind {
        /// Cumulative: only differences between two ticks are meaningful.
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
    /// Name everywhere: Rust field, Parquet column, JSON key; unit, then qualifier, last.
    pub name: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    /// Origin of the value, as an administrator would look it up.
    pub source: &'static str,
    /// Meaning of the value, and where it wraps.
    pub doc: &'static str,
}

/// Origin of columns, as an administrator would look it up.
#[derive(Clone, Copy, Debug)]
pub struct Origin(pub &'static str);

impl Origin {
    /// Declares a cumulative number of things.
    pub const fn count(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Count, Kind::Counter, doc)
    }

    /// Declares a cumulative number of bytes.
    pub const fn bytes(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Bytes, Kind::Counter, doc)
    }

    /// Declares cumulative time in nanoseconds.
    pub const fn time(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Nanoseconds, Kind::Counter, doc)
    }

    /// Declares a number that rises and falls.
    pub const fn level(self, name: &'static str, unit: Unit, doc: &'static str) -> Column {
        self.column(name, unit, Kind::Gauge, doc)
    }

    pub const fn state(self, name: &'static str, doc: &'static str) -> Column {
        self.column(name, Unit::Text, Kind::State, doc)
    }

    const fn column(self, name: &'static str, unit: Unit, kind: Kind, doc: &'static str) -> Column {
        Column { name, unit, kind, source: self.0, doc }
    }
}

/// Name and columns of a probe. Each recorded row also carries `t_ns` (nanoseconds since the
/// recording began), `phase` (index into the manifest's phases, −1 between them) and `object` (what
/// the row is about, such as a device name; empty if there is only one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Name of the probe, and of its file in a recording.
    pub probe: &'static str,
    /// Observed object, in one sentence.
    pub doc: &'static str,
    pub columns: &'static [Column],
}

/// A cell of a recorded row; unmeasured is not zero. In JSON a number, a text, or null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A measured number, of a [`Kind::Counter`] or [`Kind::Gauge`].
    Value(i64),
    /// A measured state, of a [`Kind::State`].
    Text(String),
    /// Not measured; the reason is in the manifest's `unmeasured` list.
    Unmeasured,
}

/// State of a measured object at one tick: one row of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub probe: &'static str,
    /// The object that the row is about; empty if there is only one.
    pub object: String,
    /// One cell for each column of the schema, in the same order.
    pub cells: Vec<Cell>,
}

/// Reason why a column was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum Unmeasured {
    /// Could be measured, but is switched off.
    Off(String),
    /// This kernel or server does not have it.
    NotInVersion(String),
    /// This user may not read it.
    NotPermitted(String),
    /// It could not be read, or other counters contradict it.
    NoEvidence(String),
}

/// Prefix of reasons that concern an imported file.
const NOT_IMPORTED: &str = "not in this import";

impl Unmeasured {
    /// Returns the reason why columns are empty that a tool's imported file does not contain.
    pub fn not_imported(tool: &str, columns: &[String]) -> Self {
        let columns = columns.join(", ");
        Self::NotInVersion(format!("{NOT_IMPORTED}: {tool} did not keep {columns}"))
    }

    /// Returns whether this is the reason of [`Self::not_imported`].
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
