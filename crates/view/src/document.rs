//! An interval as one JSON document: what every recorded column did, under the column's own name,
//! and every view's table.

use blockstone_base::column::{Kind, Unit};
use serde_json::{Map, Value as Json, json};

use crate::registry;
use blockstone_base::table::Row;
use blockstone_figures::{Interval, Known, Missing};

use crate::table::{Table, Value};

/// The name of the document's schema.
const SCHEMA: &str = "blockstone.interval/1";

/// The document. Of a counter it says what it moved a second, of a time that grew what share of
/// the time that passed it grew, of a level and a state where they stood at the end. With a focus
/// it has the tables that follow it, and says what it is.
pub fn document(interval: &Interval<'_>) -> Json {
    let probes = interval.probes().map(|probe| (probe.to_owned(), objects(interval, probe)));
    let focus = interval.focus();
    let meant = registry::ALL.iter().filter(|view| focus.is_none() || view.is_sampled());
    let tables = meant.filter_map(|view| view.table(interval));
    let views = tables.map(|table| (table.name.to_string(), rows(&table)));
    let mut document = json!({
        "schema": SCHEMA,
        "from_ns": interval.from_ns,
        "to_ns": interval.to_ns,
        "probes": probes.collect::<Map<_, _>>(),
        "views": views.collect::<Map<_, _>>(),
    });
    if let Some(imported) = interval.history().imported() {
        document["imported"] = json!(imported);
    }
    if let Some(focus) = focus {
        let conditions = focus.conditions().iter();
        let conditions = conditions.map(|it| (it.column.to_owned(), Json::from(it.value.as_str())));
        document["where"] = Json::Object(conditions.collect());
    }
    document
}

fn objects(interval: &Interval<'_>, probe: &str) -> Json {
    let objects = interval.objects(probe).into_iter();
    let objects = objects.map(|object| (object.to_owned(), columns(interval, probe, object)));
    Json::Object(objects.collect())
}

fn columns(interval: &Interval<'_>, probe: &str, object: &str) -> Json {
    let columns = interval.columns(probe).iter().map(|column| {
        let name = column.name.as_str();
        let value = match column.kind {
            Kind::Counter if column.unit == Unit::Nanoseconds => {
                known(interval.share(probe, object, name))
            }
            Kind::Counter => known(interval.per_s(probe, object, name)),
            Kind::Gauge => known(interval.level(probe, object, name)),
            Kind::State => interval.text(probe, object, name).map_or(Json::Null, Json::from),
        };
        (name.to_owned(), value)
    });
    Json::Object(columns.collect())
}

fn rows(table: &Table) -> Json {
    let row = |row: &Row| {
        let cells = table.columns.iter().zip(&row.cells);
        let cells = cells.map(|(column, value)| (column.key.to_string(), cell(value)));
        Json::Object(cells.collect())
    };
    table.rows.iter().map(row).collect()
}

fn cell(value: &Value) -> Json {
    match value {
        Value::Number(number) => json!(number),
        Value::Estimate(estimate) => json!(estimate),
        Value::Text(text) => json!(text),
        Value::Missing(missing) => absent(*missing),
    }
}

fn known(value: Known) -> Json {
    value.map_or_else(absent, |number| json!(number))
}

/// Null where nothing happened; an unmeasured value says why.
fn absent(missing: Missing) -> Json {
    match missing {
        Missing::Nothing => Json::Null,
        _ => json!({ "unmeasured": missing.word() }),
    }
}
