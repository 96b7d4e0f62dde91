//! Deceptive files get their verdict and exit code 3, and no headline; the real file next to them
//! gets none of these verdicts.

use std::path::Path;

use blockstone_base::Bytes;
use blockstone_testkit::{FileKind, Ran, ScratchDir, require, run};

use super::{Place, completed, failed_rules, measured};

const SIZE: Bytes = Bytes::mib(256);
const LIES: [&str; 5] = ["memory-test", "hole", "unwritten", "not-direct", "compressible"];

/// Asserts that `rule` condemned it, and that no number is left as a headline.
#[track_caller]
fn condemned(ran: &Ran, rule: &str) {
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let document = ran.json();
    assert!(failed_rules(&document).iter().any(|failed| failed == rule), "{document:#}");
    assert_eq!(document["trustworthy"], false);
    for headline in ["max_iops", "max_mbps", "actual_latency_ns_mean"] {
        let figure = &document["figures"][headline];
        assert!(figure.get("value").is_none(), "{headline}: {figure:#}");
        assert!(figure["condemned"]["value"].is_number(), "{headline}: {figure:#}");
    }
}

fn lie(place: &Place, kind: FileKind, rule: &str) {
    let file = place.file("lie.dat");
    kind.create(&file, SIZE).unwrap();
    condemned(&place.calibrate(&[], &file), rule);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn files_without_real_data_are_caught() {
    let place = Place::new();
    lie(&place, FileKind::Hole, "hole");
    lie(&place, FileKind::Fallocated, "unwritten");
    lie(&place, FileKind::Zero, "compressible");
}

#[test]
fn memory_in_the_guise_of_a_disk_is_caught() {
    require!(Tmpfs);
    let place = Place::new();
    let memory = ScratchDir::in_memory().unwrap();
    let file = memory.path().join("lie.dat");
    FileKind::Real.create(&file, SIZE).unwrap();
    condemned(&place.calibrate(&[], &file), "memory-test");
    std::fs::remove_file(&file).unwrap();
    condemned(&place.calibrate(&["--size", "64M"], memory.path()), "memory-test");
}

#[test]
fn a_cached_file_is_caught_and_the_same_file_read_direct_is_not() {
    let place = Place::new();
    let file = place.file("real.dat");
    FileKind::Real.create(&file, SIZE).unwrap();
    warm(&file);
    let ran = place.calibrate(&["--buffered"], &file);
    condemned(&ran, "memory-test");

    let ran = place.calibrate(&[], &file);
    let document = ran.json();
    let failed = failed_rules(&document);
    assert!(LIES.iter().all(|lie| !failed.iter().any(|rule| rule == lie)), "{failed:?}");
    completed(&ran);
    measured(&document["figures"]["max_iops"]);
}

#[test]
fn a_condemned_number_is_struck_through_on_the_terminal() {
    let place = Place::beside();
    let file = place.file("hole.dat");
    FileKind::Hole.create(&file, SIZE).unwrap();
    let ran = run(place.command("calibrate").args(["--brief", "--color", "never"]).arg(&file));
    assert_eq!(ran.code, Some(3));
    assert!(ran.stdout.contains("~~"), "{}", ran.stdout);
    assert!(ran.stdout.contains("hole"), "{}", ran.stdout);
}

/// Reads the whole file into the page cache.
fn warm(file: &Path) {
    assert_eq!(std::fs::read(file).unwrap().len() as u64, SIZE.get());
}
