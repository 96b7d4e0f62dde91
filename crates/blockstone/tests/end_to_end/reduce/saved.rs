//! Saved scans: no count is lost however the process ends, and scans of parts add up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::{blockstone_binary, run};
use serde_json::Value;

use super::super::{names, signal};
use super::{COUNTS, Place, document, generate, grids, number, ratio, reduce, rows, same, scanned};

/// Starts a slow scan that saves itself often, and waits until it has saved a part.
pub fn started(arguments: &[&str], paths: &[&Path], save: &Path) -> Child {
    started_at("8M", arguments, paths, save)
}

fn started_at(rate: &str, arguments: &[&str], paths: &[&Path], save: &Path) -> Child {
    let slow = ["--json", "--rate", rate, "--save-every", "100ms", "--save"];
    let mut command = reduce(&slow);
    command.arg(save).args(arguments).args(paths);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let patience = Instant::now() + Duration::from_mins(1);
    while kept(save).is_none_or(|kept| bytes_counted(&kept) == 0) {
        assert!(Instant::now() < patience, "it saves nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// Returns the description in a saved scan.
fn kept(save: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(save.join("scan.json")).ok()?).ok()
}

fn bytes_counted(kept: &Value) -> u64 {
    let files = kept["scanned"]["files"].as_array().unwrap();
    files.iter().map(|file| number(file, "bytes")).sum()
}

/// Returns a document without the values that vary from run to run.
fn figures(document: &Value) -> Value {
    let mut figures = document.clone();
    for name in ["time_ns", "cpu_ns", "memory_bytes"] {
        figures[name] = Value::Null;
    }
    figures
}

const SET_BYTES: u64 = 12 << 20;

/// Generates a data set, and returns it with the figures of an undisturbed scan.
fn set(place: &Place) -> (PathBuf, Value) {
    let dir = generate(place, "mixed", 2, "6M");
    let whole = figures(&scanned(&[], &[&dir]));
    (dir, whole)
}

#[test]
fn a_killed_scan_is_resumed_and_says_what_an_undisturbed_one_says() {
    let place = Place::beside();
    let (dir, whole) = set(&place);
    let save = place.runs().join("saved");
    let mut child = started(&[], &[&dir], &save);
    signal(&child, "KILL");
    assert_eq!(child.wait().unwrap().code(), None);
    let part = kept(&save).unwrap();
    let counted = bytes_counted(&part);
    assert!(part["complete"] == false && counted < SET_BYTES, "it was killed in the middle");

    // An incomplete scan can be reported, and the report says that it is incomplete.
    let looked = document(&run(reduce(&["--json", "--merge"]).arg(&save)), 3);
    assert!(looked["whole"] == false && looked["ended_by"].is_string());
    let resumed = document(&run(reduce(&["--json", "--resume"]).arg(&save)), 0);
    assert_eq!(figures(&resumed), whole);
    let again = document(&run(reduce(&["--json", "--merge"]).arg(&save)), 0);
    assert_eq!(figures(&again), whole);
    let left = names(&save);
    assert_eq!(left.len(), 3, "earlier states are removed: {left:?}");
    let shown = document(&run(reduce(&["--json", "--resume"]).arg(&save)), 0);
    assert_eq!(figures(&shown), whole, "a complete scan is shown again");
}

#[test]
fn an_interrupted_scan_is_saved_and_says_how_to_go_on() {
    let place = Place::beside();
    let (dir, whole) = set(&place);
    let save = place.runs().join("saved");
    let child = started(&[], &[&dir], &save);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let part: Value = serde_json::from_slice(&output.stdout).unwrap();
    super::keeps_to_its_schema(&part);
    assert_eq!(part["ended_by"], "interrupted");
    let counted: u64 = rows(&part, "files").iter().map(|f| number(f, "bytes")).sum();
    assert_eq!(bytes_counted(&kept(&save).unwrap()), counted, "all that was counted is saved");
    assert!(counted < SET_BYTES);
    let note = String::from_utf8(output.stderr).unwrap();
    let advice = format!("blockstone reduce --resume {}\n", save.display());
    assert!(note.ends_with(&advice) && note.lines().count() == 1, "{note}");
    let resumed = document(&run(reduce(&["--json", "--resume"]).arg(&save)), 0);
    assert_eq!(figures(&resumed), whole);
}

#[test]
fn whoever_reads_slowly_is_interrupted_at_once() {
    let place = Place::beside();
    let dir = generate(&place, "mixed", 1, "4M");
    let save = place.runs().join("saved");
    // A segment of one megabyte is read every sixteen seconds.
    let child = started_at("64K", &["--quiet"], &[&dir], &save);
    let started = Instant::now();
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(output.stderr.is_empty(), "how to go on is a remark, too");
    let part = kept(&save).unwrap();
    assert!(part["complete"] == false && bytes_counted(&part) == 1 << 20, "{part:#}");
}

#[test]
fn a_scan_that_cannot_be_saved_is_told_all_the_same() {
    let place = Place::beside();
    let dir = generate(&place, "mixed", 1, "4M");
    let expected = figures(&scanned(&[], &[&dir]));
    let save = place.runs().join("saved");
    // Files of at most 8 KiB, and no signal for exceeding that: each write beyond it fails.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"]);
    limited.arg(blockstone_binary()).args(["reduce", "--json", "--save"]).args([&save, &dir]);
    let ran = run(&mut limited);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_eq!(figures(&ran.json()), expected, "what was counted is not lost");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("saved/fingerprints"), "{ran:#?}");
    assert_eq!(names(&save), Vec::<String>::new(), "half a scan is none");
}

#[test]
fn a_file_that_changed_since_is_not_gone_on_with() {
    let place = Place::beside();
    let dir = generate(&place, "mixed", 2, "4M");
    let save = place.runs().join("saved");
    let mut child = started(&[], &[&dir], &save);
    signal(&child, "KILL");
    child.wait().unwrap();
    let last = dir.join("mixed-2.dbf");
    fs::OpenOptions::new().write(true).open(&last).unwrap().set_len(1 << 20).unwrap();
    let before = kept(&save);
    let ran = run(reduce(&["--json", "--resume"]).arg(&save));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
    assert!(ran.stderr.contains("mixed-2.dbf has changed since"), "{ran:#?}");
    assert_eq!(kept(&save), before, "the saved scan stays as it was");
}

#[test]
fn two_scans_merged_are_one_scan_of_both() {
    let place = Place::beside();
    let mixed = generate(&place, "mixed", 2, "4M");
    // The second set has contents of the first, of itself, and zeros.
    let other = place.file("other");
    fs::create_dir(&other).unwrap();
    let whole = fs::read(mixed.join("mixed-1.dbf")).unwrap();
    fs::write(other.join("half"), &whole[1 << 20..3 << 20]).unwrap();
    fs::write(
        other.join("twice"),
        [&whole[..100_000], &vec![0; 200_000], &whole[..777_777]].concat(),
    )
    .unwrap();
    let sets = [&mixed, &other];
    let saved = ["a", "b"].map(|name| place.runs().join(name));
    for (set, save) in sets.iter().zip(&saved) {
        scanned(&["--save", save.to_str().unwrap()], &[set]);
    }
    let merged = document(&run(reduce(&["--json", "--merge"]).args(&saved)), 0);
    let both = scanned(&[], &[&mixed, &other]);
    let (ours, theirs) = (grids(&merged), grids(&both));
    assert!(ours.keys().eq(theirs.keys()));
    for (grid, row) in &ours {
        let counts = |row| COUNTS.map(|name| number(row, name));
        assert_eq!(counts(row), counts(theirs[grid]), "{grid:?}");
        assert!(counts(row)[4] > 0, "{grid:?} shows nothing across files");
        assert_eq!(row["share"], 1);
        same(ratio(row, "dedup_ratio"), ratio(theirs[grid], "dedup_ratio"));
        same(ratio(row, "compression_ratio"), ratio(theirs[grid], "compression_ratio"));
    }
    for name in ["occurrences", "shared"] {
        assert!(!rows(&merged, name).is_empty(), "{name}");
        assert_eq!(rows(&merged, name), rows(&both, name), "{name}");
    }
    for (merged, both) in rows(&merged, "files").iter().zip(rows(&both, "files")) {
        for name in ["file", "bytes", "hole_bytes", "contents", "format", "state"] {
            assert_eq!(merged[name], both[name], "{name}");
        }
    }
    assert_eq!(rows(&merged, "files").len(), rows(&both, "files").len());
    let swapped = document(&run(reduce(&["--json", "--merge"]).args(saved.iter().rev())), 0);
    for (grid, row) in grids(&swapped) {
        let counts = |row| COUNTS.map(|name| number(row, name));
        assert_eq!(counts(row), counts(theirs[&grid]), "the order of scans changes no count");
    }
}

/// A complete scan in a directory of its own.
fn complete(place: &Place, data: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let save = place.runs().join(name);
    scanned(&[arguments, &["--save", save.to_str().unwrap()]].concat(), &[data]);
    save
}

/// Returns the file of a saved scan whose name begins with `beginning`.
fn part(save: &Path, beginning: &str) -> PathBuf {
    let all = names(save);
    save.join(all.iter().find(|name| name.starts_with(beginning)).unwrap())
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

type Damage = fn(&Path);

#[test]
fn a_damaged_saved_scan_is_named_and_never_counted() {
    let place = Place::beside();
    let data = generate(&place, "mixed", 1, "1M");
    let damages: &[(&str, Damage)] = &[
        ("flipped", |save| flip(&part(save, "fingerprints"), 5000)),
        ("flipped-sets", |save| flip(&part(save, "file_sets"), 100)),
        ("flipped-footer", |save| {
            let path = part(save, "fingerprints");
            let len = fs::metadata(&path).unwrap().len() as usize;
            flip(&path, len - 200);
        }),
        ("truncated", |save| {
            let path = part(save, "fingerprints");
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(fs::metadata(&path).unwrap().len() / 2).unwrap();
        }),
        ("without-document", |save| fs::remove_file(save.join("scan.json")).unwrap()),
        ("without-sets", |save| fs::remove_file(part(save, "file_sets")).unwrap()),
        ("half-document", |save| {
            let path = save.join("scan.json");
            let text = fs::read(&path).unwrap();
            fs::write(path, &text[..text.len() / 2]).unwrap();
        }),
        ("other-number", |save| {
            let path = save.join("scan.json");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains("\"blocks\":128,"), "{text}");
            fs::write(path, text.replacen("\"blocks\":128,", "\"blocks\":129,", 1)).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let save = complete(&place, &data, name, &[]);
        damage(&save);
        for verb in ["--merge", "--resume"] {
            let ran = run(reduce(&["--json", verb]).arg(&save));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{name}: {ran:#?}");
            let lines: Vec<&str> = ran.stderr.lines().collect();
            assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{name}: {ran:#?}");
            assert!(lines[0].contains(name), "{name} is not named: {ran:#?}");
        }
    }
}

#[test]
fn scans_that_do_not_fit_together_are_not_merged() {
    let place = Place::beside();
    let data = generate(&place, "mixed", 1, "1M");
    let one = complete(&place, &data, "one", &[]);
    for (name, arguments) in [
        ("other-sizes", ["--block-size", "4K,8K"]),
        ("other-offsets", ["--offset", "0,1K"]),
        ("other-codec", ["--codec", "zstd:3"]),
        ("other-model", ["--model", "vdo"]),
    ] {
        let other = complete(&place, &data, name, &arguments);
        let ran = run(reduce(&["--json", "--merge"]).args([&one, &other]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{name}: {ran:#?}");
        assert!(ran.stderr.contains(name) && ran.stderr.contains("\nhint: "), "{ran:#?}");
    }
    let ran = run(reduce(&["--json", "--merge"]).args([&one, &place.file("nowhere")]));
    assert!(ran.code == Some(2) && ran.stderr.contains("nowhere"), "{ran:#?}");
    let other = fs::canonicalize(&one).unwrap().join("../one");
    let ran = run(reduce(&["--json", "--merge"]).args([&one, &other]));
    assert!(ran.code == Some(2) && ran.stderr.contains("named twice"), "{ran:#?}");
    let ran = run(reduce(&["--json", "--model", "vdo", "--merge"]).arg(&one));
    assert!(ran.code == Some(2) && ran.stderr.contains("vdo"), "{ran:#?}");
}
