//! A scan for duplicates in every rendering.

mod scans;

use std::collections::BTreeSet;

use blockstone_reduce::scanned::{FileState, Skipped};
use blockstone_report::render::terminal::{self, Style};
use blockstone_report::render::{csv, html, json};
use blockstone_report::{Block, Report};
use serde_json::Value;

use super::super::earlier;
use super::report;
use crate::testing::{keeps_to_its_schema, schema};
use scans::Scan;

fn of(scan: &Scan) -> Report {
    report(&scan.findings, &scan.scanned, None)
}

fn document_of(scan: &Scan) -> Value {
    json::document(&of(scan))
}

fn screen(scan: &Scan, width: usize) -> String {
    terminal::text(&of(scan), false, &Style { color: false, width })
}

/// Returns a row of a table of the document.
fn row<'a>(document: &'a Value, table: &str, index: usize) -> &'a Value {
    &document["tables"][table][index]
}

#[test]
fn documents_of_all_scans_keep_to_the_schema() {
    for (name, scan) in Scan::all() {
        let document = document_of(scan);
        keeps_to_its_schema(&document);
        let grids = document["tables"]["grids"].as_array().unwrap();
        assert_eq!(grids.len(), scan.findings.grids.len(), "{name}");
        for grid in grids {
            let is_estimate = grid["unique_blocks"].is_object();
            assert_eq!(is_estimate, grid["share"] != 1, "{name}: {grid:#}");
            let parts =
                ["zero_blocks", "unique_blocks", "same_file_duplicates", "cross_file_duplicates"];
            let number = |part: &Value| part.as_f64().or_else(|| part["value"].as_f64()).unwrap();
            let sum: f64 = parts.iter().map(|part| number(&grid[*part])).sum();
            let blocks = grid["blocks"].as_f64().unwrap();
            assert!((sum - blocks).abs() < 0.001, "{name}: {sum} of {blocks}");
        }
        assert!(document["tables"].get("steps").is_none(), "{name}: its rows are in compression");
    }
}

#[test]
fn what_was_counted_is_a_whole_number_and_what_is_unknown_says_why() {
    let scan = Scan::of("reduce-few");
    let document = document_of(&scan);
    assert_eq!((&document["block_bytes"], &document["offset_bytes"]), (&8192.into(), &0.into()));
    let is_of_model = |grid: &&Value| grid["grid"] == "8K";
    let mut grids = document["tables"]["grids"].as_array().unwrap().iter();
    let grid = grids.find(is_of_model).unwrap();
    for count in ["unique_blocks", "same_file_duplicates", "cross_file_duplicates"] {
        assert!(grid[count].is_u64(), "{count}: {}", grid[count]);
    }
    assert!(document["dedup_ratio"].is_number() && document["dedup_ratio"] == grid["dedup_ratio"]);
    let document = document_of(&Scan::of("reduce-sampled"));
    let ratio = &document["dedup_ratio"];
    assert!(ratio["low"].as_f64() < ratio["value"].as_f64(), "{ratio:#}");
    assert!(ratio["samples"].as_u64() > Some(100), "{ratio:#}");
    let document = document_of(&Scan::of("reduce-empty"));
    for figure in ["reduction_ratio", "stored_bytes", "chunk_ratio"] {
        assert_eq!(document[figure]["unmeasured"], "nothing happened", "{figure}");
    }
}

#[test]
fn the_document_says_how_each_file_ended() {
    let mut scan = Scan::of("reduce-few");
    scan.scanned.files[0].state = FileState::Grew { bytes: 512 };
    scan.scanned.files[1].state = FileState::Unreadable { why: "an I/O error".to_owned() };
    scan.scanned.skipped =
        vec![Skipped { path: "/data/socket".to_owned(), why: "no file".to_owned(), matters: true }];
    let document = document_of(&scan);
    keeps_to_its_schema(&document);
    let file = row(&document, "files", 0);
    assert_eq!((&file["state"], &file["changed_bytes"]), (&"grew".into(), &512.into()));
    assert!(file["bytes"].as_u64().unwrap() > 512, "bytes counted, not bytes grown");
    assert_eq!(row(&document, "files", 1)["why"], "an I/O error");
    assert_eq!((&document["whole"], &document["directory"]), (&false.into(), &"/data".into()));
}

#[test]
fn files_are_tied_by_their_names() {
    for (name, scan) in Scan::all() {
        let document = document_of(scan);
        let rows = |table: &str| document["tables"][table].as_array().cloned().unwrap_or_default();
        let files = rows("files");
        let files: BTreeSet<String> = files.iter().map(|it| it["file"].to_string()).collect();
        assert_eq!(files.len(), scan.scanned.files.len(), "{name}");
        for (table, keys) in [
            ("strips", &["file"][..]),
            ("shared", &["file", "other"]),
            ("runs", &["copy", "original"]),
            ("shifts", &["copy", "original"]),
        ] {
            for row in rows(table) {
                let is_tied = |key: &&str| files.contains(&row[*key].to_string());
                assert!(keys.iter().all(is_tied), "{name}: {table}: {row:#}");
            }
        }
        let parts: usize = scan.findings.strips.iter().map(|strip| strip.bins.len()).sum();
        assert_eq!(rows("strips").len(), parts, "{name}");
    }
}

#[test]
fn version_1_has_its_keys_and_its_columns() {
    for (name, scan) in Scan::all() {
        let mut report = of(scan);
        earlier::restore(&mut report, &scan.findings, &scan.scanned);
        let document = json::earlier(&report);
        assert_eq!(document["schema"], "blockstone.reduce/1", "{name}");
        let results = document["results"].as_array().unwrap();
        for (result, row) in results.iter().zip(document["tables"]["grids"].as_array().unwrap()) {
            for (in_results, column) in [
                ("dedup_ratio", "dedup_ratio"),
                ("reduction_ratio", "reduction_ratio"),
                ("unique_blocks", "unique_blocks"),
            ] {
                let (a, b) = (&result[in_results], &row[column]);
                assert!(a.as_f64() == b.as_f64(), "{name}: {column}: {a} {b}");
            }
            let low = &row["reduction_ratio_low"];
            assert!(low.is_null() || low == &result["reduction_ratio_low"], "{name}: {low}");
        }
        for (table, columns) in [
            ("compression", &["all", "occurs_once", "never_used", "contents"][..]),
            ("shifts", &["part_of_copy"]),
            ("occurrences", &["times"]),
            ("files", &["path", "state", "format"]),
            ("dedup", &["block", "zero"]),
        ] {
            for row in document["tables"][table].as_array().into_iter().flatten() {
                assert!(columns.iter().all(|key| row.get(key).is_some()), "{name}: {row:#}");
            }
        }
    }
}

#[test]
fn screens_keep_to_their_size_and_say_at_once_what_they_lack() {
    for (name, scan) in Scan::all() {
        for width in [80, 100] {
            let text = screen(scan, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{name}: {line}");
            }
            let first = text.lines().next().unwrap();
            assert_eq!(first.contains("Partial scan: "), !scan.scanned.is_whole(), "{first}");
            assert!(!text.contains("NaN") && !text.contains("inf:1"), "{text}");
        }
    }
}

#[test]
fn the_screen_says_what_the_ratio_rests_on() {
    let scan = Scan::of("reduce-few");
    let text = screen(&scan, 100);
    for said in [
        "counted exactly",
        "8K dedup ",
        "; without LSN",
        "base/16385/accounts.backup is base/16384/accounts +512 bytes",
        "1 file not read whole: /data/pg_wal/000000010000000000000001 grew by 16 KiB",
        "2 files skipped: /data/.s.PGSQL.5432 (a socket)",
        "of the blocks are zeros",
        "base/16384/accounts",
    ] {
        assert!(text.contains(said), "{said} in\n{text}");
    }
    let sampled = Scan::of("reduce-sampled");
    let text = screen(&sampled, 100);
    assert!(text.lines().next().unwrap().contains("99 %: "), "{text}");
}

#[test]
fn pages_hold_the_charts_that_there_is_something_to_draw_for() {
    for (name, scan) in Scan::all() {
        let report = of(scan);
        let blocks = report.sections.iter().flat_map(|section| &section.blocks);
        let titles: Vec<&str> = blocks
            .filter_map(|block| match block {
                Block::Chart(chart) => Some(&*chart.title),
                _ => None,
            })
            .collect();
        let has = |title: &str| titles.contains(&title);
        let has_blocks = *name != "reduce-empty";
        assert_eq!(has("What the blocks are"), has_blocks, "{name}");
        assert_eq!(has("Deduplication by block size and offset"), has_blocks, "{name}");
        let (few, many) = (*name == "reduce-few", *name == "reduce-many");
        assert_eq!(has("Contents that files share"), few || many || *name == "reduce-sampled");
        let has_cells = report.sections.iter().any(|section| section.id == "places");
        assert_eq!(has_cells, has_blocks, "{name}");
        assert_eq!(has("Deduplication without header fields"), few || many, "{name}");
        assert_eq!(report.partial, few || *name == "reduce-empty", "{name}");
    }
}

#[test]
fn every_table_is_csv_and_one_of_a_name() {
    for (name, scan) in Scan::all() {
        let report = of(scan);
        let mut names = csv::names(&report);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{name}: {names:?}");
        for table in report.tables() {
            let fits = table.rows.iter().all(|row| row.len() == table.columns.len());
            assert!(fits, "{name}: {}", table.name);
        }
    }
    let few = of(&Scan::of("reduce-few"));
    let grids = few.tables().find(|table| table.name == "grids").unwrap();
    assert_eq!(grids.rows.len(), Scan::of("reduce-few").findings.grids.len());
}

#[test]
fn paths_cannot_become_markup() {
    const EVIL: &str = "/tmp/<script>alert(1)</script>&\"'";
    let mut scan = Scan::of("reduce-few");
    EVIL.clone_into(&mut scan.scanned.files[1].path);
    EVIL.clone_into(&mut scan.scanned.skipped[0].path);
    scan.scanned.ended_by = Some(EVIL.to_owned());
    let page = html::page(&of(&scan)).unwrap();
    assert!(!page.contains("<script>alert"), "a path became a script");
    assert!(page.contains("&lt;script"));
}

#[test]
fn the_schema_refuses_what_is_not_a_scan() {
    let scan = Scan::of("reduce-few");
    let good = document_of(&scan);
    let validator = schema("reduce");
    assert!(validator.is_valid(&good));
    for (pointer, bad) in [
        ("/schema", "blockstone.reduce/1".into()),
        ("/tables/grids/0/dedup_ratio", "2.00:1".into()),
        ("/tables/files/0/state", 1.into()),
        ("/stored_bytes", Value::Null),
        ("/deduplicates", "yes".into()),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = bad;
        assert!(!validator.is_valid(&document), "{pointer} must be refused");
    }
    let mut more = good.clone();
    more["tables"]["grids"][0]["surprise"] = 1.into();
    assert!(!validator.is_valid(&more), "the schema is closed");
    let mut less = good;
    less["tables"]["grids"][0].as_object_mut().unwrap().remove("share");
    assert!(!validator.is_valid(&less), "a missing figure must be refused");
}

#[test]
fn a_model_that_does_not_deduplicate_has_no_product() {
    let mut scan = Scan::of("reduce-one");
    scan.findings.model.deduplicates = false;
    let text = screen(&scan, 100);
    assert!(text.starts_with("compression ") && text.contains("; dedup would be "), "{text}");
    assert!(text.contains("no deduplication"), "{text}");
    assert!(text.contains("does not deduplicate"), "{text}");
}
