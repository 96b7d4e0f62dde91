//! Comparisons on the command line: pairs, sets and parts of recordings, and refusals. The
//! recordings are copies of those in tests/fixtures, shifted in time.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use blockstone_testkit::{Ran, blockstone_binary, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory for recordings.
struct Recordings(TempDir);

impl Recordings {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Copies the fixture `from` to `name`, as if it had started at `minute`.
    fn copy(&self, from: &str, name: &str, minute: u8) -> String {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recording-1");
        let to = self.0.path().join(name);
        copy(&fixtures.join(from), &to);
        let mut manifest: Value =
            serde_json::from_slice(&fs::read(to.join("manifest.json")).unwrap()).unwrap();
        manifest["started_at"] = json!(format!("2026-11-22T20:{minute:02}:00.5Z"));
        fs::write(to.join("manifest.json"), manifest.to_string()).unwrap();
        to.to_str().unwrap().to_owned()
    }

    /// Two sets of two: runs alone and runs with noise, which alternate in time.
    fn sets(&self) -> [String; 4] {
        [("run", "run1", 1), ("run", "run2", 3), ("noise", "noise1", 2), ("noise", "noise2", 4)]
            .map(|(from, name, minute)| self.copy(from, name, minute))
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(path, to).unwrap();
        }
    }
}

fn compare(arguments: &[&str]) -> Ran {
    run(Command::new(blockstone_binary()).arg("compare").args(arguments).env("COLUMNS", "150"))
}

/// Returns the document of a comparison, which must conform to its schema.
fn document(arguments: &[&str]) -> Value {
    let ran = compare(&[&["--json"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    let name = document["schema"].as_str().and_then(|name| name.strip_prefix("blockstone."));
    let (name, _) = name.unwrap().split_once('/').unwrap();
    let schema = run(Command::new(blockstone_binary()).args(["schema", name])).json();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    document
}

/// The row of a document whose keys have these values.
fn row<'a>(document: &'a Value, keys: &Value) -> &'a Value {
    let is_it = |row: &&Value| keys.as_object().unwrap().iter().all(|(key, v)| row[key] == *v);
    let rows = document["tables"]["rows"].as_array().unwrap();
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{keys} in {document:#}"))
}

/// Returns the recordings of both sides.
fn recordings(document: &Value) -> &Vec<Value> {
    document["tables"]["recordings"].as_array().unwrap()
}

/// Returns the message of a refusal: one line for the error, one line for the hint.
fn refused(arguments: &[&str]) -> String {
    let ran = compare(arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:#?}");
    assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{ran:#?}");
    ran.stderr
}

#[test]
fn sets_that_alternate_are_compared_by_the_estimates_of_all_recordings() {
    let kept = Recordings::new();
    let [run1, run2, noise1, noise2] = kept.sets();
    let [pair, sets] =
        [document(&[&run1, &noise1]), document(&[&run1, &run2, "--with", &noise1, &noise2])];
    let commits = json!({ "label": "commits_per_s", "figure": "" });
    let (one, both) = (row(&pair, &commits), row(&sets, &commits));
    assert_eq!(
        (&both["n_a"], &both["n_b"], &both["outcome"], &both["warned_by"]),
        (&json!(2), &json!(2), &json!("higher"), &json!("noisy-neighbour, unsteady"))
    );
    // Copies do not vary: two have the same mean as one, and an interval narrower by √2.
    for side in ["a", "b"] {
        let [one, both] = [one, both].map(|row| {
            let [value, high] = ["value", "high"].map(|end| row[side][end].as_f64().unwrap());
            (value, high - value)
        });
        assert!((both.0 / one.0 - 1.0).abs() < 1e-9, "{side}: {one:?} {both:?}");
        assert!((one.1 / both.1 - 2_f64.sqrt()).abs() < 1e-9, "{side}: {one:?} {both:?}");
    }
    let samples = |row: &Value| row["a"]["samples"].as_u64().unwrap();
    assert_eq!(samples(both), 2 * samples(one));
    let caveat =
        |document: &Value| document["tables"]["caveats"][0]["caveat"].as_str().unwrap().to_owned();
    assert!(caveat(&pair).contains("not interleaved"), "{pair:#}");
    assert!(caveat(&sets).contains("were interleaved"), "{sets:#}");
    let named: Vec<_> =
        recordings(&sets).iter().map(|it| [&it["side"], &it["recording"]]).collect();
    assert_eq!(named, [["a", &run1], ["a", &run2], ["b", &noise1], ["b", &noise2]]);
    let rows = |document: &Value| document["tables"]["rows"].as_array().unwrap().len();
    assert_eq!(rows(&sets), rows(&pair));
    let ran = compare(&[&run1, &run2, "--with", &noise1, &noise2]);
    assert!(ran.stdout.contains("were interleaved") && ran.stderr.is_empty(), "{ran:#?}");
    let in_order = document(&[&run1, &noise1, "--with", &run2, &noise2]);
    assert!(caveat(&in_order).contains("not interleaved"), "{in_order:#}");
    assert_eq!(row(&in_order, &commits)["outcome"], "not-established", "each set varies most");
}

#[test]
fn a_recording_that_a_rule_condemns_condemns_the_figures_of_its_set() {
    let kept = Recordings::new();
    let [run1, run2, noise1, _] = kept.sets();
    let sqlite = kept.copy("sqlite", "sqlite", 9);
    let document = document(&[&run1, &sqlite, "--with", &run2, &noise1]);
    let found = row(&document, &json!({ "label": "physical_reads_per_s" }));
    assert_eq!((&found["outcome"], &found["n_a"]), (&json!("condemned"), &json!(2)));
    assert_eq!(found["condemned_by"], json!(["memory-test"]));
    let trusted = recordings(&document).iter().map(|it| it["trustworthy"].as_bool().unwrap());
    assert_eq!(trusted.collect::<Vec<_>>(), [true, false, true, true]);
    let warnings = document["tables"]["warnings"].to_string();
    assert!(
        warnings.contains("target differs: /srv/demo/data and /srv/demo/sq in A"),
        "{warnings}"
    );
}

#[test]
fn parts_of_several_recordings_and_watches_are_sets_of_layers() {
    let kept = Recordings::new();
    let [run1, run2, ..] = kept.sets();
    let part = |run: &str, times: &str| format!("{run}@{times}");
    let (early, late) = ("..2500ms", "2500ms..");
    let [a, b] = [early, late].map(|times| [part(&run1, times), part(&run2, times)]);
    let sets = document(&[&a[0], &a[1], "--with", &b[0], &b[1]]);
    assert_eq!(sets["schema"], "blockstone.difference/2");
    let reads = json!({ "view": "disks", "row": "vda", "figure": "read_ios_per_s" });
    let (both, one) = (row(&sets, &reads), document(&[&a[0], &b[0]]));
    assert_eq!((&both["n_a"], &both["n_b"]), (&json!(2), &json!(2)));
    assert_eq!(both["a"]["value"], row(&one, &reads)["a"]["value"]);
    assert!(
        sets["tables"]["caveats"][0]["caveat"].as_str().unwrap().contains("were interleaved"),
        "{sets:#}"
    );
    let length_ns = |it: &Value| it["to_ns"].as_u64().unwrap() - it["from_ns"].as_u64().unwrap();
    assert_eq!(length_ns(&recordings(&sets)[1]), length_ns(&recordings(&one)[0]));
    let watches = [1, 2, 3].map(|at| kept.copy("watch", &format!("watch{at}"), at));
    let sets = document(&[&watches[0], &watches[2], "--with", &watches[1]]);
    let rows = sets["tables"]["rows"].as_array().unwrap().len();
    assert_eq!(sets["not_established"], json!(rows));
    let ran = compare(&[&watches[0], &watches[2], "--with", &watches[1]]);
    assert!(ran.stdout.contains("B is a single recording"), "{ran:#?}");
}

#[test]
fn what_are_not_two_sets_is_refused_with_a_hint() {
    let kept = Recordings::new();
    let [run1, run2, noise1, noise2] = kept.sets();
    let three = refused(&[&run1, &run2, &noise1]);
    assert!(
        three.contains("the second set is missing") && three.contains("A1 A2 --with B1 B2"),
        "{three}"
    );
    let alone = refused(&[&run1]);
    assert!(alone.contains("no earlier run of") && alone.contains("\nhint: "), "{alone}");
    assert!(refused(&[&run1, "--with"]).contains("--with <B>"));
    assert!(refused(&["--with", &run1]).contains("<A>"));
    let watch = kept.copy("watch", "watch", 7);
    let mixed = refused(&[&run1, &run2, "--with", &noise1, &watch]);
    assert!(mixed.contains("one is a run, the other a watch"), "{mixed}");
    assert!(
        refused(&[&run1, "--with", &noise1, "no-such-recording"]).contains("no-such-recording")
    );
    let copied = kept.0.path().join("copied");
    copy(Path::new(&run2), &copied);
    for twice in [
        [&run1, &run1, "--with", &noise1, &noise2],
        [&run1, &run2, "--with", &noise1, &run1],
        [&run1, &run2, "--with", &noise1, copied.to_str().unwrap()],
    ] {
        let message = refused(&twice);
        assert!(message.contains("are the same recording"), "{message}");
    }
    let [early, late] = ["@..2s", "@1500ms.."].map(|times| format!("{run1}{times}"));
    let overlap = refused(&[&early, &run2, "--with", &noise1, &late]);
    assert!(overlap.contains("overlap by"), "{overlap}");
    let pair = compare(&[&run1, &run1]);
    assert_eq!(pair.code, Some(0), "{pair:#?}");
    assert!(pair.stderr.contains("warning: A and B are the same recording"), "{pair:#?}");
}
