//! Files that are not as they should be: the rest is counted, and what is missing is reported.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use blockstone_testkit::{blockstone_binary, run};
use serde_json::Value;

use super::saved::started;
use super::{Place, document, generate, grids, number, of_model, reduce, rows};

/// Returns the row of `table` whose first column, a path, ends in `end`.
fn entry<'a>(document: &'a Value, table: &str, end: &str) -> &'a Value {
    let entries = rows(document, table);
    let key = if table == "files" { "file" } else { "path" };
    let found = entries.iter().find(|entry| entry[key].as_str().unwrap().ends_with(end));
    found.unwrap_or_else(|| panic!("no {end} among {entries:#?}"))
}

/// Returns the command for a scan that permissions apply to: root too, without the capabilities
/// that override them.
fn bound() -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut setpriv = Command::new("setpriv");
        let without = "-dac_override,-dac_read_search";
        setpriv.args(["--inh-caps", without, "--bounding-set", without, "--"]);
        setpriv.arg(blockstone_binary());
        setpriv
    } else {
        Command::new(blockstone_binary())
    };
    command.arg("reduce");
    command
}

#[test]
fn what_may_not_be_read_is_named_and_the_rest_is_counted() {
    let place = Place::beside();
    let open = place.file("open");
    let (secret, closed) = (place.file("secret"), place.file("closed"));
    fs::write(&open, vec![7; 80_000]).unwrap();
    fs::write(&secret, vec![7; 80_000]).unwrap();
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("inside"), vec![7; 80_000]).unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    mode(&secret, 0).unwrap();
    mode(&closed, 0).unwrap();
    let all = run(bound().args(["--json"]).arg(place.data()));
    let alone = run(bound().arg(&secret));
    let text = run(bound().arg(place.data()).env("COLUMNS", "140"));
    mode(&closed, 0o755).unwrap();

    let found = document(&all, 3);
    assert_eq!(number(of_model(&found), "blocks"), 10, "the file that is open");
    assert_eq!(found["whole"], false);
    for name in ["secret", "closed"] {
        let skipped = entry(&found, "skipped", name);
        assert_eq!(skipped["matters"], true);
        assert!(skipped["why"].as_str().unwrap().contains("ermission denied"), "{skipped:#}");
    }
    assert!(text.code == Some(3) && text.stdout.contains("secret"), "{text:#?}");
    assert_eq!((alone.code, alone.stdout.as_str()), (Some(2), ""), "{alone:#?}");
    assert!(alone.stderr.contains("secret") && alone.stderr.contains("\nhint: "), "{alone:#?}");
}

#[test]
fn loops_pipes_and_devices_on_the_way_are_left_out() {
    let place = Place::beside();
    let dir = place.file("tree");
    fs::create_dir_all(dir.join("below")).unwrap();
    fs::write(dir.join("file"), vec![7; 80_000]).unwrap();
    fs::hard_link(dir.join("file"), dir.join("below/hard")).unwrap();
    symlink("../file", dir.join("below/soft")).unwrap();
    symlink("..", dir.join("below/loop")).unwrap();
    symlink("/dev/zero", dir.join("endless")).unwrap();
    assert_eq!(run(Command::new("mkfifo").arg(dir.join("pipe"))).code, Some(0));
    let ran = run(reduce(&["--json"]).arg(&dir).stdin(Stdio::null()));
    let found = document(&ran, 0);
    assert_eq!(rows(&found, "files").len(), 1, "one file, under whatever names");
    assert_eq!(number(of_model(&found), "blocks"), 10);
    let skipped = ["loop", "endless", "pipe"];
    for (name, why) in skipped.iter().zip(["already scanned", "character device", "FIFO"]) {
        let skipped = entry(&found, "skipped", name);
        assert_eq!(skipped["matters"], false, "nothing is missing in the figures");
        assert!(skipped["why"].as_str().unwrap().contains(why), "{skipped:#}");
    }
    symlink("nowhere", dir.join("dangling")).unwrap();
    let found = document(&run(reduce(&["--json"]).arg(&dir)), 3);
    assert_eq!(entry(&found, "skipped", "dangling")["matters"], true);
    // The same directory twice, and a file from it.
    let found = document(&run(reduce(&["--json"]).args([&dir, &dir, &dir.join("file")])), 3);
    assert_eq!(number(of_model(&found), "blocks"), 10);
}

#[test]
fn files_that_grow_and_shrink_meanwhile_are_counted_as_far_as_they_go() {
    let place = Place::beside();
    let dir = generate(&place, "random", 2, "8M");
    let [grows, shrinks] = ["random-1.dbf", "random-2.dbf"].map(|name| dir.join(name));
    let save = place.runs().join("saved");
    let child = started(&[], &[&dir], &save);
    let mut file = OpenOptions::new().append(true).open(&grows).unwrap();
    file.write_all(&[7; 5000]).unwrap();
    let file = OpenOptions::new().write(true).open(&shrinks).unwrap();
    file.set_len((6 << 20) - 1000).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    super::keeps_to_its_schema(&found);
    let state = |name| {
        let file = entry(&found, "files", name);
        (file["state"].as_str().unwrap(), file["changed_bytes"].as_i64(), number(file, "bytes"))
    };
    assert_eq!(state("random-1.dbf"), ("grew", Some(5000), 8 << 20));
    let lost = (2 << 20) + 1000;
    assert_eq!(state("random-2.dbf"), ("shrank", Some(-lost), (8 << 20) - lost as u64));
    let blocks = number(grids(&found)[&(8192, 0)], "blocks");
    assert_eq!(blocks, 1024 + 768, "what was there is counted, what was missing is not");
    assert!(found["whole"] == false && !found["ended_by"].is_string());
}

#[test]
fn a_file_that_is_gone_before_its_turn_is_named() {
    let place = Place::beside();
    let dir = generate(&place, "random", 2, "8M");
    let save = place.runs().join("saved");
    // More threads would have opened the second file while they wait for their turn.
    let child = started(&["--threads", "1"], &[&dir], &save);
    fs::remove_file(dir.join("random-2.dbf")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let gone = entry(&found, "files", "random-2.dbf");
    assert_eq!((gone["state"].as_str(), number(gone, "bytes")), (Some("unreadable"), 0));
    assert!(gone["why"].as_str().unwrap().contains("random-2.dbf"), "{gone:#}");
    assert_eq!(number(of_model(&found), "blocks"), 1024);
    assert_eq!(entry(&found, "files", "random-1.dbf")["state"], "complete");
}
