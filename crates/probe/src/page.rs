//! Generates docs/probes.md from the schemas of the registry, of the load itself and of databases.

use std::fmt::Write;

use blockstone_base::{Column, Schema, database, load};

use crate::registry;

/// Returns the page, ending in one newline. `cargo xtask` writes it and checks that it is current.
pub fn columns_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for schema in schemas() {
        section(&mut page, schema);
    }
    page.push_str(ON_REQUEST);
    for schema in registry::ON_REQUEST {
        section(&mut page, schema);
    }
    page
}

/// The schemas of the load, its flushes, the probes, databases that are driven, and databases that
/// are watched.
fn schemas() -> impl Iterator<Item = &'static Schema> {
    let probes = registry::ALL.iter().map(|entry| entry.schema);
    let watched = database::MONITORED.iter().filter(|schema| !database::ALL.contains(schema));
    let databases = database::ALL.iter().chain(watched).copied();
    let databases = databases.chain([&database::SESSION_EVENT]);
    let loads = [&load::SERIES, &load::SHARES, &load::FLUSHES, &load::BUFFERED, &load::VISITS];
    loads.into_iter().chain(probes).chain(databases)
}

const INTRODUCTION: &str = "\
# Probes
<!-- Generated from the schemas of crates/probe and crates/base by `cargo xtask generate`. -->

Each probe is a file `series/<probe>.parquet` of a recording. In addition to the columns below,
each row has `t_ns` (nanoseconds since the recording started), `phase` (index into the manifest's
phases, -1 between them) and `object` (what the row is about, such as a device). A counter is
cumulative: only differences between two rows are meaningful. A gauge is a level at that moment. An
empty cell was not measured; the manifest gives the reason.
";

const ON_REQUEST: &str = "
The following probes run only on request, or beside a load whose files are known. Of the columns
of a histogram only the first and the last are listed; each counts values from the number in its
name up to that of the next column.
";

fn section(page: &mut String, schema: &Schema) {
    let Schema { probe, doc, columns } = schema;
    let heading = "| column | unit | kind | what | source |\n|---|---|---|---|---|\n";
    let _ = write!(page, "\n## {probe}\n{doc}\n\n{heading}");
    for (index, column) in columns.iter().enumerate() {
        if is_inner_bucket(columns, index) {
            continue;
        }
        let (unit, kind) = (column.unit.name(), column.kind.name());
        let (name, doc, source) = (column.name, column.doc, column.source);
        let _ = writeln!(page, "| `{name}` | {unit} | {kind} | {doc} | {source} |");
    }
}

/// Whether the column belongs to a histogram and is neither its first nor its last.
fn is_inner_bucket(columns: &[Column], index: usize) -> bool {
    let is_bucket =
        |index: usize| columns.get(index).is_some_and(|column| registry::is_bucket(column.name));
    index > 0 && is_bucket(index - 1) && is_bucket(index) && is_bucket(index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io;

    #[test]
    fn every_column_has_its_row() {
        let page = columns_page();
        for schema in schemas() {
            for column in schema.columns {
                assert!(page.contains(&format!("| `{}` |", column.name)), "{}", column.name);
            }
        }
    }

    #[test]
    fn of_a_histogram_the_ends_are_shown() {
        let page = columns_page();
        let shown = io::SCHEMA.columns.iter().map(|column| format!("| `{}` |", column.name));
        let shown: Vec<String> = shown.filter(|cell| page.contains(cell)).collect();
        assert_eq!(shown.len(), 19, "{shown:?}");
        assert_eq!(shown[17..], ["| `ios_from_0ns` |", "| `ios_from_17179869184ns` |"]);
    }
}
