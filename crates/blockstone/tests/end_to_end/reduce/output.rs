//! Destinations of the answer, and that reading leaves no trace in the page cache.

use std::fs;
use std::path::Path;
use std::process::Command;

use blockstone_base::Bytes;
use blockstone_testkit::{FileKind, require, run};

use super::super::bad_input::refused;
use super::{Place, document, generate, number, of_model, reduce, rows, scanned};

#[test]
fn the_answer_goes_to_standard_output_and_remarks_beside_it() {
    let place = Place::beside();
    let ran = run(reduce(&["--generate", "mixed", "--size", "1M"]).arg(place.file("mixed")));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "a data set is not an answer");
    assert!(ran.stderr.contains("4 files, 4 MiB") && ran.stderr.contains("mixed"), "{ran:#?}");
    let quiet = reduce(&["--quiet", "--generate", "mixed", "--size", "1M"])
        .arg(place.file("quiet"))
        .output()
        .unwrap();
    assert!(quiet.status.success() && quiet.stdout.is_empty() && quiet.stderr.is_empty());

    let dir = place.file("mixed");
    let ran = run(reduce(&[]).arg(&dir).env("COLUMNS", "100"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    for part in ["dedup ", "compression ", "reduction ", "32K", "zstd:1", "mixed-1"] {
        assert!(ran.stdout.contains(part), "{part} is not in {}", ran.stdout);
    }
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\x1b'), "no colour where nobody sees it");
}

#[test]
fn a_page_names_the_files_and_stands_beside_the_document() {
    let place = Place::beside();
    let dir = generate(&place, "oracle-like", 3, "1M");
    let page = place.file("page.html");
    let ran = run(reduce(&["--json", "--html"]).args([&page, &dir]));
    assert_eq!(number(of_model(&document(&ran, 0)), "blocks"), 3 * 128);
    let is_page = |text: &str| {
        let named = (1..=3).all(|number| text.contains(&format!("oracle-like-{number}.dbf")));
        text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>") && named
    };
    let written = fs::read_to_string(&page).unwrap();
    assert!(is_page(&written), "{written}");
    assert!(!written.contains("<script src") && !written.contains("<link"), "it is one file");
    let ran = run(reduce(&["--html", "-"]).arg(&dir));
    assert!(ran.code == Some(0) && is_page(&ran.stdout), "{ran:#?}");
    // Errors that can be known before hours of reading are reported before them.
    for (file, why) in [(place.file("nowhere/page.html"), "no such"), (place.data(), "directory")] {
        let what = refused(&place, reduce(&["--html"]).args([&file, &dir]));
        assert!(what.contains(file.to_str().unwrap()) && what.contains(why), "{what}");
    }
    // Every write to this device fails for lack of space.
    let ran = run(reduce(&["--json", "--html", "/dev/full"]).arg(&dir));
    assert!(ran.code == Some(2) && ran.stderr.contains("/dev/full"), "{ran:#?}");
    assert_eq!(number(of_model(&ran.json()), "blocks"), 3 * 128, "the answer is not lost");
}

/// Bytes of a file in the page cache.
fn cached_bytes(path: &Path) -> u64 {
    let mut fincore = Command::new("fincore");
    let ran = run(fincore.args(["--bytes", "--noheadings", "--output", "RES"]).arg(path));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.stdout.trim().parse().unwrap()
}

#[test]
fn a_direct_scan_leaves_nothing_in_the_page_cache() {
    require!(Fincore);
    let place = Place::beside();
    let (size, path) = (Bytes::mib(16), place.file("cold"));
    FileKind::Real.create(&path, size).unwrap();
    assert_eq!(cached_bytes(&path), 0, "it was not cached before");
    let found = scanned(&[], &[&path]);
    assert_eq!(found["direct"], true);
    assert_eq!(number(&found, "read_bytes"), size.get());
    assert_eq!(cached_bytes(&path), 0, "nor is it afterwards");
    let buffered = scanned(&["--buffered"], &[&path]);
    assert_eq!(buffered["direct"], false);
    assert_eq!(rows(&buffered, "grids"), rows(&found, "grids"));
    // The kernel may have reclaimed pages meanwhile.
    assert!(cached_bytes(&path) > size.get() / 2, "the tool sees what is cached");
}
