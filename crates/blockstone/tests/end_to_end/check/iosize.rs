//! `blockstone check iosize`: known sizes, with a command, a process and installed tools.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use blockstone_base::Bytes;
use blockstone_testkit::{FileKind, FileSystem, Ran, require, run};
use serde_json::Value;

use super::mounted;
use crate::bad_input::refused;
use crate::{Place, keeps_to_its_schema};

/// Returns the cell of a file in one direction.
#[track_caller]
fn cell<'a>(document: &'a Value, path: &Path, direction: &str) -> &'a Value {
    let case = format!("{}: {direction}", path.display());
    let mut cells = document["cells"].as_array().unwrap().iter();
    cells.find(|cell| cell["case"] == case.as_str()).unwrap_or_else(|| panic!("{document:#}"))
}

fn sized(place: &Place, words: &[&str]) -> Ran {
    run(place.command("check").args(["iosize", "--json", "--"]).args(words))
}

/// Creates a fully written file, none of which is in the page cache.
fn file(path: &Path) {
    FileKind::Real.create(path, Bytes::mib(2)).unwrap();
    drop_cached(path);
}

fn drop_cached(path: &Path) {
    let mut dd = Command::new("dd");
    dd.arg(format!("of={}", path.display())).args(["oflag=nocache", "conv=notrunc,fdatasync"]);
    assert_eq!(run(dd.arg("count=0")).code, Some(0));
}

#[test]
fn sizes_of_calls_and_requests_are_those_that_are_known() {
    require!(Bpf, Loop);
    let place = Place::new();
    let device = mounted(FileSystem::Ext4, 64);
    let path = device.mount_point().unwrap().join("known");
    file(&path);
    let input = format!("if={}", path.display());
    let ran = sized(&place, &["dd", &input, "of=/dev/null", "bs=8K", "iflag=direct", "count=50"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let direct = cell(&document, &path, "read");
    assert_eq!((&direct["class"], &direct["requests"]), (&"as-asked".into(), &50.into()));
    assert_eq!(direct["asked_bytes_mean"], 8192.0, "{direct}");
    assert_eq!(direct["device_bytes_mean"], 8192.0, "{direct}");
    assert_eq!((&direct["added_pages"], &direct["exit_code"]), (&0.into(), &0.into()));

    // Read-ahead makes larger requests, unless it is prevented.
    let tar = ["tar", "-cf", "/dev/stdout", path.to_str().unwrap()];
    drop_cached(&path);
    let document = sized(&place, &tar).json();
    let merged = cell(&document, &path, "read");
    assert_eq!(merged["class"], "merged", "{merged}");
    // All calls but the first and the last request this size.
    let mean = merged["asked_bytes_mean"].as_f64().unwrap();
    assert!((10_200.0..=10_240.0).contains(&mean), "{merged}");
    let document = sized(&place, &tar).json();
    assert_eq!(cell(&document, &path, "read")["class"], "cached");
    let name = device.device().file_name().unwrap().to_str().unwrap().to_owned();
    fs::write(format!("/sys/block/{name}/queue/read_ahead_kb"), "8").unwrap();
    drop_cached(&path);
    let document = sized(&place, &tar).json();
    let unmerged = cell(&document, &path, "read");
    assert_ne!(unmerged["class"], "merged", "{unmerged}");
    assert!(unmerged["device_bytes_mean"].as_f64().unwrap() <= 12_288.0, "{unmerged}");
}

#[test]
fn what_moves_without_a_read_is_counted_too() {
    require!(Bpf);
    let place = Place::new();
    let (path, copy) = (place.file("original"), place.file("copy"));
    file(&path);
    let names = [path.to_str().unwrap(), copy.to_str().unwrap()];
    let ran = sized(&place, &["cp", names[0], names[1]]);
    let document = ran.json();
    let read = cell(&document, &path, "read");
    let evidence = read["evidence"].as_str().unwrap();
    assert!(evidence.contains("copy_file_range no bound"), "{read}");
    assert!(read["asked_bytes_mean"].as_f64().unwrap() >= f64::from(1 << 20), "{read}");
    let written = cell(&document, &copy, "write");
    assert!(written["device_requests"].as_u64().unwrap() > 0, "written back: {written}");

    // The exit code is that of the command.
    let document =
        sized(&place, &["sh", "-c", "cat < \"$0\" > /dev/null; exit 7", names[0]]).json();
    assert_eq!(cell(&document, &path, "read")["exit_code"], 7);
}

#[test]
fn a_process_that_runs_is_observed_for_a_time() {
    require!(Bpf);
    let place = Place::beside();
    let path = place.file("read");
    file(&path);
    let mut shell = Command::new("sh");
    shell.args(["-c", "while dd if=\"$0\" of=/dev/null bs=8K count=7; do :; done"]).arg(&path);
    let mut shell = shell.stderr(Stdio::null()).spawn().unwrap();
    let mut check = place.command("check");
    check.args(["iosize", "--json", "--for", "300ms", "--pid"]).arg(shell.id().to_string());
    let ran = run(&mut check);
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let read = cell(&document, &path, "read");
    assert_eq!(read["asked_bytes_mean"], 8192.0, "{read}");
    assert!(read["requests"].as_u64().unwrap() > 0, "{read}");
}

#[test]
fn a_command_ends_with_its_check() {
    let place = Place::beside();
    let mut check = place.command("check");
    check.args(["iosize", "--", "sh", "-c", "sleep 61 & sleep 62"]);
    let mut check = check.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sleeps = |title: &str| {
        let all = run(Command::new("pgrep").args(["-f", "-x", title]));
        all.code == Some(0)
    };
    let started = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        sleeps("sleep 61") && sleeps("sleep 62")
    });
    assert!(started, "the command runs within 10 s");
    let sent = run(Command::new("kill").args(["-s", "INT"]).arg(check.id().to_string()));
    assert_eq!(sent.code, Some(0));
    assert_eq!(check.wait().unwrap().code(), Some(130));
    assert!(!sleeps("sleep 61") && !sleeps("sleep 62"));
}

#[test]
fn installed_tools_are_run_and_leave_nothing() {
    require!(Bpf);
    let place = Place::new();
    let ran = run(place.command("check").args(["iosize", "--json", "--tools"]).arg(place.data()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let cells = document["cells"].as_array().unwrap();
    let of = |case: &str| cells.iter().find(|cell| cell["case"] == case).unwrap();
    assert_eq!(of("dd: read")["asked_bytes_mean"], 512.0);
    // 8,192 reads with data and one at the end of the file.
    assert_eq!(of("dd: read")["requests"], 8193);
    assert_eq!(of("dd: write")["requests"], 8192);
    assert!(cells.iter().all(|cell| cell["exit_code"] == 0), "{document:#}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn sizes_that_cannot_be_counted_are_refused_or_unknown() {
    let place = Place::beside();
    let cases: &[(&[&str], &str)] = &[
        (&[], "required"),
        (&["--", "/no/such/program"], "No such file"),
        (&["--pid", "4194304"], "no such process"),
        (&["--pid", "1", "--tools"], "cannot be used with"),
        (&["--pid", "1", "--for", "0s"], "more than nothing"),
    ];
    for (arguments, said) in cases {
        let what = refused(&place, place.command("check").arg("iosize").args(*arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0);
}
