//! `blockstone watch --import`: another monitor's file as a recording.

use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_testkit::{ScratchDir, blockstone_binary, run};

use super::super::keeps_to_its_schema;
use super::{Turn, watch};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../watch/tests/fixtures").join(name)
}

fn blockstone(arguments: &[&str]) -> Command {
    let mut command = Command::new(blockstone_binary());
    command.args(arguments);
    command
}

#[test]
fn an_imported_recording_is_replayed_reported_and_compared_and_says_what_it_is() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let place = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (old, other) = (place("old"), place("other"));
    for (file, dir) in [("collectl.raw.gz", &old), ("sar.json", &other)] {
        let file = fixture(file);
        let ran = run(&mut watch(&["--import", file.to_str().unwrap(), "--record", dir]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:#?}");
        assert!(ran.stderr.contains("instants over"), "{ran:#?}");
    }
    let mark = "imported, not measured by Blockstone: collectl V4.3.1-1";
    let text = run(watch(&["--replay", &old, "--once", "--all"]).env("COLUMNS", "120"));
    let second = |text: &str| text.lines().nth(1).unwrap_or_default().to_owned();
    assert!(second(&text.stdout).starts_with(mark), "{text:#?}");
    assert!(text.stdout.contains("\nDisks\n"), "{text:#?}");
    assert!(text.stdout.contains("not in this import: collectl did not keep"), "{text:#?}");
    let report = run(blockstone(&["report", "--all", &old]).env("COLUMNS", "120")).stdout;
    assert!(second(&report).starts_with(mark), "{report}");
    let (_, tables) = text.stdout.split_once("\n\n").unwrap();
    assert!(report.ends_with(tables), "{report}");
    let page = run(&mut blockstone(&["report", "--html", "-", &old]));
    assert!(page.stdout.contains(mark), "{}", page.stderr);
    let document = run(&mut blockstone(&["report", "--json", &old])).json();
    keeps_to_its_schema(&document);
    assert_eq!(document["imported"]["tool"], "collectl");
    assert!(document["verdicts"].as_array().unwrap().is_empty(), "no rule has what it needs");
    let reads = &document["views"]["disks"][0]["read_ios_per_s"];
    assert!(reads.as_f64().is_some_and(|reads| reads > 1_000.0), "{reads}");
    let compared = run(&mut blockstone(&["compare", &old, &other]));
    assert_eq!(compared.code, Some(0), "{compared:#?}");
    assert!(compared.stdout.contains("old (imported from collectl)"), "{compared:#?}");
    assert!(compared.stdout.contains("other (imported from sar)"), "{compared:#?}");
}

#[test]
fn a_file_that_cannot_be_imported_leaves_nothing_behind() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let file = scratch.path().join("notes.txt");
    std::fs::write(&file, "what I did last night\n").unwrap();
    let dir = scratch.path().join("old");
    let (file, dir) = (file.to_str().unwrap(), dir.to_str().unwrap());
    let ran = run(&mut watch(&["--import", file, "--record", dir]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:#?}");
    assert!(lines[0].starts_with("error: import ") && lines[0].contains("notes.txt"), "{ran:#?}");
    assert!(lines[1].starts_with("hint: what can be imported: files of collectl"), "{ran:#?}");
    assert!(!Path::new(dir).exists());
    let missing = run(&mut watch(&["--import", "/no/such/file", "--record", dir]));
    assert!(
        missing.code == Some(2) && missing.stderr.contains("read /no/such/file"),
        "{missing:#?}"
    );
    let alone = run(&mut watch(&["--import", file]));
    assert!(alone.code == Some(2) && alone.stderr.contains("--record"), "{alone:#?}");
}
