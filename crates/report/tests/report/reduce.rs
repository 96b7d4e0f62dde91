//! A scan for duplicates in all three renderings.

mod scans;

use blockstone_reduce::scanned::{FileState, Skipped};
use blockstone_report::terminal::Style;
use blockstone_report::{html, json, terminal};

pub use scans::Scan;

#[test]
fn documents_of_all_scans_keep_to_the_schema() {
    for (name, scan) in Scan::all() {
        let document = json::reduce::document(&scan.findings, &scan.scanned);
        crate::json::check("reduce-1.json", &document);
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
    let document = json::reduce::document(&scan.findings, &scan.scanned);
    let summary = &document["summary"];
    assert_eq!((&summary["block_size"], &summary["offset"]), (&8192.into(), &0.into()));
    for count in ["unique_blocks", "same_file_duplicates", "cross_file_duplicates"] {
        assert!(summary[count].is_u64(), "{count}: {}", summary[count]);
    }
    assert_eq!(summary["dedup_ratio"], summary["dedup_ratio_high"]);
    let sampled = Scan::of("reduce-sampled");
    let document = json::reduce::document(&sampled.findings, &sampled.scanned);
    assert!(
        document["summary"]["dedup_ratio_low"].as_f64()
            < document["summary"]["dedup_ratio"].as_f64()
    );
    let empty = Scan::of("reduce-empty");
    let document = json::reduce::document(&empty.findings, &empty.scanned);
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
    let document = json::reduce::document(&scan.findings, &scan.scanned);
    crate::json::check("reduce-1.json", &document);
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
            let style = Style { color: false, width };
            let text = terminal::reduce::text(&scan.findings, &scan.scanned, &style);
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
    let style = Style { color: false, width: 100 };
    let text = terminal::reduce::text(&scan.findings, &scan.scanned, &style);
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
    let text = terminal::reduce::text(&sampled.findings, &sampled.scanned, &style);
    assert!(text.lines().next().unwrap().contains("99 %: "), "{text}");
}

/// The page of every scan.
pub fn pages() -> Vec<(&'static str, String)> {
    let page = |(name, scan): &(&'static str, Scan)| {
        (*name, html::reduce_page(&scan.findings, &scan.scanned).unwrap())
    };
    Scan::all().iter().map(page).collect()
}

#[test]
fn pages_hold_the_charts_that_there_is_something_to_draw_for() {
    for (name, page) in pages() {
        let has = |title: &str| page.contains(&format!("<h3>{title}</h3>"));
        let has_blocks = name != "reduce-empty";
        assert_eq!(has("What the blocks are"), has_blocks, "{name}");
        assert_eq!(has("Deduplication by block size and offset"), has_blocks, "{name}");
        let (few, many) = (name == "reduce-few", name == "reduce-many");
        assert_eq!(has("Contents that files share"), few || many || name == "reduce-sampled");
        assert_eq!(has("Where copies lie in each file"), few || many, "{name}");
        assert_eq!(has("Deduplication without header fields"), few || many, "{name}");
        let partial = page.contains("Not the whole scan.");
        assert_eq!(partial, few || name == "reduce-empty", "{name}");
    }
}

#[test]
fn paths_cannot_become_markup() {
    const EVIL: &str = "/tmp/<script>alert(1)</script>&\"'";
    let mut scan = Scan::of("reduce-few");
    EVIL.clone_into(&mut scan.scanned.files[1].path);
    EVIL.clone_into(&mut scan.scanned.skipped[0].path);
    scan.scanned.ended_by = Some(EVIL.to_owned());
    let page = html::reduce_page(&scan.findings, &scan.scanned).unwrap();
    assert!(!page.contains("<script>alert"), "a path became a script");
    assert!(page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn the_schema_refuses_what_is_not_a_scan() {
    let scan = Scan::of("reduce-few");
    let good = json::reduce::document(&scan.findings, &scan.scanned);
    let validator = crate::json::schema("reduce-1.json");
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
    let style = Style { color: false, width: 100 };
    scan.findings.model.deduplicates = false;
    let text = terminal::reduce::text(&scan.findings, &scan.scanned, &style);
    assert!(text.starts_with("compression ") && text.contains("; dedup would be "), "{text}");
    assert!(text.contains("no deduplication"), "{text}");
    let page = html::reduce_page(&scan.findings, &scan.scanned).unwrap();
    assert!(page.contains("does not deduplicate"));
}
