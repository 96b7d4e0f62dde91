//! A table in JSON: a list of rows, each with its cells under the keys of their columns.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Missing, Row, Table, UNIT, Value};

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.rows.iter().map(|row| Keyed { table: self, row }))
    }
}

impl JsonSchema for Table {
    fn schema_name() -> Cow<'static, str> {
        "Table".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut rules = generator.subschema_for::<Vec<String>>();
        let about = "Rules that condemn the numbers of this row; absent when they stand.";
        rules.insert("description".to_owned(), about.into());
        let mut keys = generator.subschema_for::<Vec<String>>();
        let about = "Keys of the cells that these rules condemn; absent when they condemn all.";
        keys.insert("description".to_owned(), about.into());
        let mut unit = generator.subschema_for::<String>();
        let about = "Unit of this row's numbers, in tables whose rows have different units.";
        unit.insert("description".to_owned(), about.into());
        json_schema!({
            "description": "Rows, each with its cells by the keys of their columns.",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "unit": unit, "condemned_by": rules, "condemned_columns": keys,
                },
                "additionalProperties": generator.subschema_for::<Value>(),
            },
        })
    }
}

struct Keyed<'a> {
    table: &'a Table,
    row: &'a Row,
}

impl Serialize for Keyed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (column, value) in self.table.columns.iter().zip(&self.row.cells) {
            map.serialize_entry(&column.key, value)?;
        }
        if self.table.has_units_of_rows() {
            map.serialize_entry(UNIT, self.row.unit())?;
        }
        if !self.row.condemned_by.is_empty() {
            map.serialize_entry("condemned_by", &self.row.condemned_by)?;
        }
        if !self.row.condemned_columns.is_empty() {
            map.serialize_entry("condemned_columns", &self.row.condemned_columns)?;
        }
        map.end()
    }
}

/// Why a number was not measured.
#[derive(Serialize, JsonSchema)]
pub struct Unmeasured {
    #[schemars(extend("enum" = Missing::ALL.map(Missing::word)))]
    unmeasured: &'static str,
}

impl From<Missing> for Option<Unmeasured> {
    fn from(missing: Missing) -> Self {
        (missing != Missing::Nothing).then(|| Unmeasured { unmeasured: missing.word() })
    }
}
