//! An interval as one JSON document: the change or value of every recorded column under its own
//! name, and the table of every view.

use std::collections::BTreeMap;

use blockstone_base::column::{Kind, Unit};
use blockstone_base::verdict::Verdict;
use blockstone_figures::{Interval, Missing};
use blockstone_record::manifest::Imported;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::registry;
use crate::table::Value;

/// A JSON object in its own key order.
type Keys = Map<String, Json>;

/// The keys of the document.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Document {
    /// Start of the interval, in nanoseconds since the start of the recording or the watch.
    from_ns: u64,
    /// End of the interval, in nanoseconds since the start of the recording or the watch.
    to_ns: u64,
    /// The wall clock of the host at `from_ns`, ISO 8601 in UTC; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The wall clock at `to_ns`, ISO 8601 in UTC; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// Every recorded column, by probe, object and column: for a counter its growth per second; for
    /// a time counter the share of the interval; for a level or a state the last value.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>")]
    probes: Keys,
    /// Tables of every view that has something to show, by view name; the renderer of a report
    /// writes and describes them.
    #[schemars(skip)]
    views: Keys,
    /// Origin of imported data; absent if Blockstone measured it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Imported")]
    imported: Option<Imported>,
    /// The conditions that narrow the session samples, by column; absent if there are none.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    conditions: Option<Keys>,
    /// The rules that apply to the watched system, with their conclusions; empty if none applies.
    verdicts: Vec<Verdict>,
}

impl Document {
    /// Sets the wall clock at both ends, as ISO 8601.
    #[must_use]
    pub fn between(self, [from, to]: [Option<String>; 2]) -> Self {
        Self { from, to, ..self }
    }

    /// Sets the verdicts on the interval.
    #[must_use]
    pub fn judged(self, verdicts: Vec<Verdict>) -> Self {
        Self { verdicts, ..self }
    }
}

/// Returns the document of an interval. With a focus it has only the tables that follow the focus,
/// and states its conditions.
pub fn document(interval: &Interval<'_>) -> Document {
    let probes = interval.probes().map(|probe| (probe.to_owned(), objects(interval, probe)));
    let focus = interval.focus();
    let meant = registry::ALL.iter().filter(|view| focus.is_none() || view.is_sampled());
    let tables = meant.filter_map(|view| view.table(interval));
    let conditions = focus.map(|focus| {
        let conditions = focus.conditions().iter();
        conditions.map(|it| (it.column.to_owned(), Json::from(it.value.as_str()))).collect()
    });
    Document {
        from_ns: interval.from_ns,
        to_ns: interval.to_ns,
        from: None,
        to: None,
        probes: probes.collect(),
        views: tables.map(|table| (table.name.to_string(), json!(table))).collect(),
        imported: interval.history().imported().cloned(),
        conditions,
        verdicts: Vec::new(),
    }
}

fn objects(interval: &Interval<'_>, probe: &str) -> Json {
    let objects = interval.objects(probe).into_iter();
    let objects = objects.map(|object| (object.to_owned(), columns(interval, probe, object)));
    Json::Object(objects.collect())
}

fn columns(interval: &Interval<'_>, probe: &str, object: &str) -> Json {
    let columns = interval.columns(probe).iter().map(|column| {
        let name = column.name.as_str();
        let value: Value = match column.kind {
            Kind::Counter if column.unit == Unit::Nanoseconds => {
                interval.share(probe, object, name).into()
            }
            Kind::Counter => interval.per_s(probe, object, name).into(),
            Kind::Gauge => interval.level(probe, object, name).into(),
            Kind::State => {
                let text = interval.text(probe, object, name);
                text.map_or(Value::Missing(Missing::Nothing), Value::from)
            }
        };
        (name.to_owned(), json!(value))
    });
    Json::Object(columns.collect())
}
