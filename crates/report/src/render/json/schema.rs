//! The JSON schema of a document: its single figures, tables and other keys, and those that
//! [`super::document`] adds. It is closed, so that a missing or new key is noticed.

use blockstone_base::stats::Estimate;
use blockstone_base::table::{Heading, Measure, Table, Unmeasured};
use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::End;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value as Json, json};

use crate::expected::{EXPECTATIONS, Expected};
use crate::report::is_meant;

/// The key of the tables, unless a document has another.
pub const TABLES: &str = "tables";

/// A JSON document that a verb prints.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Name, as in `blockstone.NAME/VERSION`.
    pub name: &'static str,
    /// Version, within which keys are only added.
    pub version: u32,
    /// Description in one line.
    pub about: &'static str,
    tables_key: &'static str,
    tables: &'static [Tables],
    names: &'static [&'static [&'static str]],
    objects: Option<fn(&mut SchemaGenerator) -> Schema>,
    scalars: &'static [Heading],
    figures: &'static [(&'static str, &'static str)],
}

/// Names of tables with their columns, of which none are declared where they differ by report. A
/// name that ends in `*` stands for all that begin with it.
pub type Tables = &'static [(&'static str, &'static [Heading])];

/// Returns the name by which a document refers to its schema.
pub fn title(name: &str, version: u32) -> String {
    format!("blockstone.{name}/{version}")
}

impl Document {
    /// A document of single figures and tables.
    pub const fn of_tables(
        (name, version): (&'static str, u32),
        about: &'static str,
        scalars: &'static [Heading],
        tables: &'static [Tables],
    ) -> Self {
        Self {
            name,
            version,
            about,
            tables_key: TABLES,
            tables,
            names: &[],
            objects: None,
            scalars,
            figures: &[],
        }
    }

    /// Returns the same document with the keys of `Objects` besides its single figures and tables.
    #[must_use]
    pub const fn with_keys<Objects: JsonSchema>(self) -> Self {
        Self { objects: Some(Objects::json_schema), ..self }
    }

    /// Returns the same document, whose key `figures` has these names, each with its meaning.
    #[must_use]
    pub const fn with_figures(self, figures: &'static [(&'static str, &'static str)]) -> Self {
        Self { figures, ..self }
    }

    /// Returns the same document with its tables under another key.
    #[must_use]
    pub const fn tables_under(self, tables_key: &'static str) -> Self {
        Self { tables_key, ..self }
    }

    /// Returns the same document with tables of these names, too, whose columns are not declared. A
    /// name that ends in `*` stands for all that begin with it.
    #[must_use]
    pub const fn with_names(self, names: &'static [&'static [&'static str]]) -> Self {
        Self { names, ..self }
    }

    /// Returns the figures that its verb knows, each with its meaning.
    pub const fn figures(&self) -> &'static [(&'static str, &'static str)] {
        self.figures
    }

    /// Returns its single figures.
    pub const fn scalars(&self) -> &'static [Heading] {
        self.scalars
    }

    /// Returns the columns of a table; none if they are not declared.
    pub fn columns_of(&self, table: &str) -> &'static [Heading] {
        let found = self.tables.iter().copied().flatten().find(|(name, _)| is_meant(name, table));
        found.map_or(&[], |(_, columns)| columns)
    }

    /// Returns the names that its tables can have; none if they are not declared.
    pub fn table_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let with_columns = self.tables.iter().copied().flatten().map(|(name, _)| *name);
        with_columns.chain(self.names.iter().copied().flatten().copied())
    }

    /// Returns whether it declares a table of this name.
    pub fn declares_table(&self, name: &str) -> bool {
        self.table_names().any(|known| is_meant(known, name))
    }

    /// Returns whether one of its tables can have this name, which any can if no names are
    /// declared.
    pub fn may_have_table(&self, name: &str) -> bool {
        let declares_none = self.table_names().next().is_none();
        declares_none || name == EXPECTATIONS || self.declares_table(name)
    }

    /// Returns its schema, in draft 2020-12.
    pub fn schema(&self) -> Json {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut keys = Common::json_schema(&mut generator);
        let title = title(self.name, self.version);
        let mut properties = Map::from_iter([
            property("schema", "The name of this schema.", json!({ "const": title })),
            property(
                "version",
                "Within one, keys are only added.",
                json!({ "const": self.version }),
            ),
        ]);
        if let Some(Json::Object(own)) = keys.remove("properties") {
            properties.extend(own);
        }
        for heading in self.scalars {
            let cell = cell_schema(heading.measure, &mut generator);
            properties.extend([property(&heading.key, &heading.doc, cell)]);
        }
        let expectations = generator.subschema_for::<Vec<Expected>>();
        let about = "Limits that --expect names, and what became of each; only with --expect.";
        properties.extend([property(EXPECTATIONS, about, json!(expectations))]);
        let about = "What else is to be said, as people read it; only if there is something.";
        let notes = generator.subschema_for::<Vec<String>>();
        properties.extend([property(super::NOTES, about, json!(notes))]);
        let about = "Every table of the report by name, the same that --csv=NAME prints.";
        let tables = self.tables_schema(&mut generator);
        properties.extend([property(self.tables_key, about, tables)]);
        let mut required = vec![json!("schema"), json!("version"), json!(self.tables_key)];
        required.extend(self.scalars.iter().map(|heading| json!(heading.key)));
        if let Some(Json::Array(own)) = keys.remove("required") {
            required.extend(own);
        }
        let mut objects = self.objects.map(|objects| objects(&mut generator)).unwrap_or_default();
        if let Some(Json::Object(own)) = objects.remove("properties") {
            properties.extend(own);
        }
        if let Some(Json::Array(own)) = objects.remove("required") {
            for key in own {
                if !required.contains(&key) {
                    required.push(key);
                }
            }
        }
        let mut root = json_schema!({
            "$schema": generator.settings().meta_schema,
            "$id": format!("urn:blockstone:{}:{}", self.name, self.version),
            "title": title,
            "description": self.about,
            "type": "object",
            "properties": properties,
            "required": required,
            "$defs": generator.take_definitions(true),
        });
        for keys in [keys, objects] {
            for (key, part) in keys.as_object().cloned().unwrap_or_default() {
                root.ensure_object().entry(key).or_insert(part);
            }
        }
        self.list_figures(&mut root);
        Finish.transform(&mut root);
        LeaveOutNulls.transform(&mut root);
        root.to_value()
    }

    /// Lists the figures that the verb knows instead of any.
    fn list_figures(&self, root: &mut Schema) {
        let Some(Json::Object(figures)) = root.pointer_mut("/properties/figures") else { return };
        let Some(any) = figures.remove("additionalProperties") else { return };
        let figure = |(name, about): &(&str, &str)| property(name, about, any.clone());
        let listed: Map<String, Json> = self.figures.iter().map(figure).collect();
        figures.insert("required".to_owned(), listed.keys().cloned().collect());
        figures.insert("properties".to_owned(), listed.into());
    }

    fn tables_schema(&self, generator: &mut SchemaGenerator) -> Json {
        if self.tables.is_empty() {
            let table = generator.subschema_for::<Table>();
            return json!({ "type": "object", "additionalProperties": table });
        }
        let rows = Table::json_schema(generator);
        let undeclared = generator.subschema_for::<Table>();
        let table = |&(name, columns): &(&str, &[Heading])| {
            if columns.is_empty() {
                return (name.to_owned(), json!(undeclared));
            }
            let mut rows = json!(rows);
            let row = &mut rows["items"];
            row["required"] = columns.iter().map(|column| json!(column.key)).collect();
            row["additionalProperties"] = false.into();
            for column in columns {
                let cell = cell_schema(column.measure, generator);
                let (key, cell) = property(&column.key, &column.doc, cell);
                row["properties"][key] = cell;
            }
            (name.to_owned(), rows)
        };
        // A table of the single figures, for people and CSV, is not written again.
        let written = |(_, columns): &&(&str, &[Heading])| {
            self.scalars.is_empty() || *columns != self.scalars
        };
        let undescribed = self.names.iter().copied().flatten().map(|name| (*name, &[][..]));
        let undescribed: Vec<(&str, &[Heading])> = undescribed.collect();
        let tables = self.tables.iter().copied().flatten().chain(&undescribed);
        let tables = tables.filter(written).map(table);
        let (families, tables): (Map<String, Json>, Map<String, Json>) =
            tables.partition(|(name, _)| name.ends_with('*'));
        let families = families.into_iter();
        let families: Map<String, Json> = families
            .map(|(name, rows)| (format!("^{}", name.trim_end_matches('*')), rows))
            .collect();
        let mut all = json!({ "type": "object", "properties": tables });
        if !families.is_empty() {
            all["patternProperties"] = Json::Object(families);
        }
        all
    }
}

/// Keys of every document from version 2 on.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Common {
    /// Version of Blockstone that made the measurement.
    tool_version: String,
    /// How the measurement ended.
    end: End,
    /// Conclusions of the rules.
    verdicts: Vec<Verdict>,
}

/// From version 2 on, a key without a value is left out, such as an open end of an interval.
struct LeaveOutNulls;

impl Transform for LeaveOutNulls {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(Json::Object(properties)) = schema.get_mut("properties") else { return };
        let nullable =
            properties.iter_mut().filter_map(|(key, part)| remove_null(part).then_some(key));
        let nullable: Vec<String> = nullable.cloned().collect();
        if let Some(Json::Array(required)) = schema.get_mut("required") {
            required.retain(|key| !nullable.iter().any(|nullable| key == nullable));
        }
    }
}

/// Removes null from what a property may be, and returns whether it could be null.
fn remove_null(property: &mut Json) -> bool {
    let mut removed = false;
    for (key, null) in
        [("type", json!("null")), ("enum", Json::Null), ("anyOf", json!({ "type": "null" }))]
    {
        if let Some(Json::Array(choices)) = property.get_mut(key) {
            let count = choices.len();
            choices.retain(|choice| *choice != null);
            removed |= choices.len() < count;
        }
    }
    removed
}

/// Returns the schema of a cell of this measure: a value, or the reason why there is none.
fn cell_schema(measure: Measure, generator: &mut SchemaGenerator) -> Json {
    let why = generator.subschema_for::<Unmeasured>();
    match measure {
        Measure::Text => json!({ "anyOf": [{ "type": "string" }, why] }),
        Measure::Flag => json!({ "anyOf": [{ "type": "boolean" }, why] }),
        _ => {
            let estimate = generator.subschema_for::<Estimate>();
            json!({ "anyOf": [{ "type": "number" }, estimate, why] })
        }
    }
}

fn property(name: &str, about: &str, mut schema: Json) -> (String, Json) {
    schema["description"] = about.into();
    (name.to_owned(), schema)
}

/// Closes every object whose keys are known, and turns doc comments into descriptions.
struct Finish;

impl Transform for Finish {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Json::String(about)) = schema.get_mut("description") {
            *about = about.replace('\n', " ").replace("[`", "`").replace("`]", "`");
        }
        if !schema.as_object().is_some_and(lists_its_keys) {
            return;
        }
        let mut is_composed = false;
        for key in ["oneOf", "anyOf", "allOf"] {
            // A part alone does not know the keys of the whole.
            for part in schema.get_mut(key).and_then(Json::as_array_mut).into_iter().flatten() {
                part.as_object_mut().map(|part| part.remove("additionalProperties"));
                is_composed = true;
            }
        }
        let key = if is_composed { "unevaluatedProperties" } else { "additionalProperties" };
        schema.insert(key.to_owned(), false.into());
    }
}

/// Returns whether an object lists its keys and says nothing about others.
fn lists_its_keys(object: &Map<String, Json>) -> bool {
    let others = ["additionalProperties", "unevaluatedProperties"];
    object.contains_key("properties") && !others.iter().any(|key| object.contains_key(*key))
}

#[cfg(test)]
mod tests {
    use blockstone_base::stats::Estimate;
    use blockstone_base::table::{Missing, Row, Rows as _, Value, count, flag, text, time};

    use crate::render::json;
    use crate::{Report, Section};

    use super::*;

    const COLUMNS: &[Heading] = &[text("name", "", "Its name."), count("reads", "", "Its reads.")];

    #[derive(serde::Serialize, JsonSchema)]
    struct Keys {
        /// Of a [`Report`].
        seed: u64,
        #[serde(flatten)]
        form: Form,
    }

    #[derive(serde::Serialize, JsonSchema)]
    #[serde(tag = "form", rename_all = "kebab-case")]
    enum Form {
        Round { radius: f64 },
        Flat,
    }

    fn rendered(form: Form) -> Json {
        let mut table = Table::new("all", "", COLUMNS);
        let estimate =
            Estimate { value: 1.0, low: 0.0, high: f64::NAN, samples: 1, duration_ns: 1 };
        let values = [
            Value::Number(2.5),
            Value::Number(f64::INFINITY),
            Value::Estimate(estimate),
            Value::Missing(Missing::Nothing),
        ];
        for value in values.into_iter().chain(Missing::REASONS.map(Value::Missing)) {
            table.push(Row::from([Value::from("x"), value]).condemned_by(&["hole".to_owned()]));
        }
        json::document(&Report {
            verb: "test".into(),
            version: 2,
            sections: vec![Section::new("all", "").with([table])],
            document: json::keys(Keys { seed: 1, form }),
            ..Report::default()
        })
    }

    #[test]
    fn what_the_renderer_writes_is_described_and_nothing_else() {
        let tables: [&[Tables]; 2] = [&[], &[&[("all", COLUMNS)]]];
        for tables in tables {
            let document =
                Document::of_tables(("test", 2), "A test", &[], tables).with_keys::<Keys>();
            let schema = document.schema();
            assert_eq!(schema["properties"]["seed"]["description"], "Of a `Report`.");
            let validator = jsonschema::validator_for(&schema).unwrap();
            for form in [Form::Round { radius: 1.0 }, Form::Flat] {
                let good: Json = serde_json::from_str(&rendered(form).to_string()).unwrap();
                let errors: Vec<_> = validator.iter_errors(&good).map(|e| e.to_string()).collect();
                assert!(errors.is_empty(), "{errors:#?}");
                for (at, key, bad) in [
                    ("", "version", json!(1)),
                    ("", "surprise", json!(1)),
                    ("", "form", json!("square")),
                    ("/tables/all/0", "reads", json!([1])),
                    ("/tables/all/0", "condemned_by", json!("hole")),
                    ("/tables/all/2/reads", "samples", json!(0.5)),
                    ("/tables/all/4/reads", "unmeasured", json!("perhaps")),
                ] {
                    let mut document = good.clone();
                    document.pointer_mut(at).unwrap()[key] = bad;
                    assert!(!validator.is_valid(&document), "{at}/{key} must be refused");
                }
                let mut document = good;
                document.as_object_mut().unwrap().remove("seed");
                assert!(!validator.is_valid(&document), "a missing key must be refused");
            }
        }
    }

    blockstone_base::rows! {
        /// Single figures.
        struct Scalars {
            /// Whether it is so.
            is_so: Value = flag("so"),
            /// Its name.
            name: Option<&'static str> = text("name"),
            /// How long it took.
            time_ns: Value = time("time"),
        }
    }

    #[test]
    fn from_version_2_on_nothing_is_null_and_the_earlier_one_is_made_of_it() {
        let mut table = Table::new("all", "", COLUMNS);
        table.push([Value::from("x"), Value::Missing(Missing::Nothing)]);
        table.push([Value::from("y"), f64::NAN.into()]);
        let open =
            Estimate { value: 1.0, low: 0.5, high: f64::INFINITY, samples: 1, duration_ns: 1 };
        table.push([Value::from("z"), open.into()]);
        let scalars = Scalars { is_so: true.into(), name: None, time_ns: 2_000_000_000_u64.into() };
        let scalars = Scalars::table("test", "", [scalars]);
        let report = Report {
            verb: "test".into(),
            version: 2,
            sections: vec![Section::new("all", "").with([table, scalars.clone()])],
            scalars: Some(scalars),
            earlier: Some(|mut document| {
                document["time_ns"] = "earlier".into();
                document
            }),
            ..Report::default()
        };
        let tables: &[Tables] = &[&[("all", COLUMNS), ("test", Scalars::COLUMNS)]];
        let document = Document::of_tables(("test", 2), "A test", Scalars::COLUMNS, tables);
        assert!(document.schema().pointer("/properties/tables/properties/test").is_none());
        let written = json::document(&report);
        let nothing = json!({ "unmeasured": "nothing happened" });
        assert_eq!(written["is_so"], true);
        assert!(written["tables"].get("test").is_none(), "single figures are not said again");
        assert_eq!(written["name"], json!({ "unmeasured": "unknown" }));
        assert_eq!(written["time_ns"].to_string(), "2000000000");
        assert_eq!(written["tables"]["all"][0]["reads"], nothing);
        assert_eq!(written["tables"]["all"][1]["reads"], nothing);
        let validator = jsonschema::validator_for(&document.schema()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        for (key, bad) in [("is_so", json!("yes")), ("name", json!(null)), ("end", json!(1))] {
            let mut document = written.clone();
            document[key] = bad;
            assert!(!validator.is_valid(&document), "{key} must be refused");
        }
        let earlier = json::earlier(&report);
        assert_eq!(
            (&earlier["schema"], &earlier["time_ns"]),
            (&"blockstone.test/1".into(), &"earlier".into())
        );
    }

    #[derive(serde::Serialize, JsonSchema)]
    struct Objects {
        /// Figures by name.
        figures: std::collections::BTreeMap<&'static str, Estimate>,
        /// Device that was measured.
        device: Device,
    }

    #[derive(serde::Serialize, JsonSchema)]
    struct Device {
        name: &'static str,
        model: Option<&'static str>,
        form: Option<Form>,
    }

    #[test]
    fn a_key_without_a_value_is_left_out_and_the_keys_of_version_1_are_kept() {
        let open =
            Estimate { value: 1.0, low: 0.5, high: f64::INFINITY, samples: 1, duration_ns: 1 };
        let mut table = Table::new("all", "", vec![COLUMNS[0].clone(), COLUMNS[1].clone().plain()]);
        table.push([Value::from("x"), open.into()]);
        let shown = Table::new("device", "", COLUMNS).with([[Value::from("a"), 1.0.into()]]);
        let report = Report {
            verb: "test".into(),
            version: 2,
            sections: vec![Section::new("all", "").with([table, shown])],
            document: json::keys(Objects {
                figures: [("iops", open)].into(),
                device: Device { name: "vda", model: None, form: None },
            }),
            shown_only: &["device"],
            first: json::keys(Device { name: "vda", model: None, form: None }),
            ..Report::default()
        };
        let about = &[("iops", "Operations a second.")];
        let document = Document::of_tables(("test", 2), "A test", &[], &[&[("all", COLUMNS)]])
            .with_keys::<Objects>()
            .with_figures(about);
        let written = json::document(&report);
        assert_eq!(written["device"], json!({ "name": "vda" }));
        assert!(written["figures"]["iops"].get("high").is_none());
        assert!(written["tables"].get("device").is_none(), "the key `device` says the same");
        let schema = document.schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<_> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let figure = "/properties/figures/properties/iops/description";
        assert_eq!(schema.pointer(figure), Some(&json!("Operations a second.")));
        for (at, key, bad) in [
            ("/device", "model", Json::Null),
            ("/device", "form", Json::Null),
            ("/figures", "reads", json!(1)),
            ("/figures", "iops", Json::Null),
        ] {
            let mut document = written.clone();
            document.pointer_mut(at).unwrap()[key] = bad;
            assert!(!validator.is_valid(&document), "{at}/{key} must be refused");
        }
        let first = json::earlier(&report);
        assert_eq!((&first["schema"], &first["model"]), (&"blockstone.test/1".into(), &Json::Null));
        assert_eq!(first["tables"]["all"][0]["reads"].to_string(), "1");
        assert!(first["tables"]["device"].is_array());
    }
}
