//! docs/probes.md, generated from the schemas of the registry, of the load itself and of databases.

use std::fmt::Write;

use blockstone_base::{Kind, Schema, Unit, database, load};

use crate::registry;

/// The page, ending in one newline. `cargo xtask` writes it and checks that it is current.
pub fn columns_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for schema in schemas() {
        section(&mut page, schema);
    }
    page
}

/// The load, the probes, what a database says that is driven, and what one says that is watched.
fn schemas() -> impl Iterator<Item = &'static Schema> {
    let probes = registry::ALL.iter().map(|entry| entry.schema);
    let watched = database::MONITORED.iter().filter(|schema| !database::ALL.contains(schema));
    let databases = database::ALL.iter().chain(watched).copied();
    std::iter::once(&load::SERIES).chain(probes).chain(databases)
}

const INTRODUCTION: &str = "\
# Probes
<!-- Generated from the schemas of crates/probe and crates/base by `cargo xtask generate`. -->

Each probe is a file `series/<probe>.parquet` of a recording. Besides the columns below, each row
has `t_ns` (nanoseconds since the recording began), `phase` (index into the manifest's phases, -1
between them) and `object` (what the row is about, as a device name). A counter is cumulative: only
differences between two rows mean anything. A gauge is a level at that moment. An empty cell was
not measured; the manifest says why.
";

fn section(page: &mut String, schema: &Schema) {
    let Schema { probe, doc, columns } = schema;
    let heading = "| column | unit | kind | what | source |\n|---|---|---|---|---|\n";
    let _ = write!(page, "\n## {probe}\n{doc}\n\n{heading}");
    for column in *columns {
        let unit = match column.unit {
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::Nanoseconds => "ns",
            Unit::Ppm => "ppm",
            Unit::Text => "text",
        };
        let kind = match column.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::State => "state",
        };
        let (name, doc, source) = (column.name, column.doc, column.source);
        let _ = writeln!(page, "| `{name}` | {unit} | {kind} | {doc} | {source} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_its_row() {
        let page = columns_page();
        for schema in schemas() {
            for column in schema.columns {
                assert!(page.contains(&format!("| `{}` |", column.name)), "{}", column.name);
            }
        }
    }
}
