//! A scan for duplicates in every rendering.

mod scans;

use blockstone_reduce::scanned::{FileState, Skipped};
use blockstone_report::render::terminal::{self, Style};
use blockstone_report::render::{csv, html, json};
use blockstone_report::{Block, Report};
use serde_json::Value;

use super::report;
use crate::testing::{keeps_to_its_schema, schema};
use scans::Scan;

fn of(scan: &Scan, width: usize) -> Report {
    let style = Style { color: false, width };
    report(&scan.findings, &scan.scanned, None, &style)
}

fn document_of(scan: &Scan) -> Value {
    json::document(&of(scan, 100))
}

fn screen(scan: &Scan, width: usize) -> String {
    terminal::text(&of(scan, width), false, &Style { color: false, width })
}

#[test]
fn documents_of_all_scans_keep_to_the_schema() {
    for (name, scan) in Scan::all() {
        let document = document_of(scan);
        keeps_to_its_schema(&document);
        let results = document["results"].as_array().unwrap();
        assert_eq!(results.len(), scan.findings.grids.len(), "{name}");
        for result in results {
            assert_eq!(result["exact"], result["share"] == 1.0, "{name}");
            let sum: f64 =
                ["zero_blocks", "unique_blocks", "same_file_duplicates", "cross_file_duplicates"]
                    .iter()
                    .map(|part| result[part].as_f64().unwrap())
                    .sum();
            let blocks = result["blocks"].as_f64().unwrap();
            assert!((sum - blocks).abs() < 0.001, "{name}: {sum} of {blocks}");
        }
    }
}

#[test]
fn what_was_counted_is_a_whole_number_and_what_is_unknown_is_null() {
    let scan = Scan::of("reduce-few");
    let document = document_of(&scan);
    let summary = &document["summary"];
    assert_eq!((&summary["block_size"], &summary["offset"]), (&8192.into(), &0.into()));
    for count in ["unique_blocks", "same_file_duplicates", "cross_file_duplicates"] {
        assert!(summary[count].is_u64(), "{count}: {}", summary[count]);
    }
    assert_eq!(summary["dedup_ratio"], summary["dedup_ratio_high"]);
    let sampled = Scan::of("reduce-sampled");
    let document = document_of(&sampled);
    assert!(
        document["summary"]["dedup_ratio_low"].as_f64()
            < document["summary"]["dedup_ratio"].as_f64()
    );
    let empty = Scan::of("reduce-empty");
    let document = document_of(&empty);
    assert!(document["summary"]["reduction_ratio"].is_null());
    assert!(document["summary"]["stored_bytes"].is_null());
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
    let file = &document["files"][0];
    assert_eq!((&file["state"], &file["changed_bytes"]), (&"grew".into(), &512.into()));
    assert!(file["bytes"].as_u64().unwrap() > 512, "bytes counted, not bytes grown");
    assert_eq!(document["files"][1]["why"], "an I/O error");
    assert_eq!(document["scan"]["whole"], false);
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
        let report = of(scan, 100);
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
        assert_eq!(has("Where copies lie in each file"), few || many, "{name}");
        assert_eq!(has("Deduplication without header fields"), few || many, "{name}");
        assert_eq!(report.partial, few || *name == "reduce-empty", "{name}");
    }
}

#[test]
fn every_table_is_csv_and_one_of_a_name() {
    for (name, scan) in Scan::all() {
        let report = of(scan, 100);
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
    let few = of(&Scan::of("reduce-few"), 100);
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
    let page = html::page(&of(&scan, 100)).unwrap();
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
        ("/schema", "blockstone.reduce/2".into()),
        ("/results/0/dedup_ratio", "2.00:1".into()),
        ("/results/0/blocks", 1.5.into()),
        ("/files/0/state", "lost".into()),
        ("/compression/0/class", "SameFile".into()),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = bad;
        assert!(!validator.is_valid(&document), "{pointer} must be refused");
    }
    let mut more = good.clone();
    more["results"][0]["surprise"] = 1.into();
    assert!(!validator.is_valid(&more), "the schema is closed");
    let mut less = good;
    less["results"][0].as_object_mut().unwrap().remove("share");
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
