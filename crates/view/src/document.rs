//! Keys of the JSON document of an interval besides its single figures and tables: the change or
//! value of every recorded column under its own name, and where the numbers come from.

use std::collections::BTreeMap;

use blockstone_base::column::{Kind, Unit};
use blockstone_figures::{Interval, Missing};
use blockstone_record::manifest::Imported;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::table::Value;

/// A JSON object in its own key order.
type Keys = Map<String, Json>;

/// Columns of the probes, origin of the data and conditions. A key without a value is left out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Objects {
    /// Every recorded column, by probe, object and column: for a counter its growth per second; for
    /// a time counter the share of the interval; for a level or a state the last value.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>")]
    pub probes: Keys,
    /// Origin of imported data; absent if Blockstone measured it itself.
    pub imported: Option<Imported>,
    /// The conditions that narrow the session samples, by column; absent if there are none.
    #[serde(rename = "where")]
    pub conditions: Option<BTreeMap<&'static str, String>>,
}

/// Returns these keys of an interval. With a focus, they state its conditions.
pub fn objects(interval: &Interval<'_>) -> Objects {
    let probes = interval.probes().map(|probe| (probe.to_owned(), of_probe(interval, probe)));
    let conditions = interval.focus().map(|focus| {
        let conditions = focus.conditions().iter();
        conditions.map(|it| (it.column, it.value.clone())).collect()
    });
    Objects {
        probes: probes.collect(),
        imported: interval.history().imported().cloned(),
        conditions,
    }
}

fn of_probe(interval: &Interval<'_>, probe: &str) -> Json {
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
