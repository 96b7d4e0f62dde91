//! `blockstone check iosize`: known sizes, with a command, a process and installed tools.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use blockstone_base::Bytes;
use blockstone_testkit::{FileKind, FileSystem, Ran, require, run};
use serde_json::Value;

use super::{mounted, rows};
use crate::bad_input::refused;
use crate::{Place, keeps_to_its_schema};

/// Returns the row of a file in one direction.
#[track_caller]
fn row<'a>(document: &'a Value, table: &str, file: &Path, direction: &str) -> &'a Value {
    let is_of =
        |row: &&Value| row["file"] == file.to_str().unwrap() && row["direction"] == direction;
    rows(document, table).find(is_of).unwrap_or_else(|| panic!("{document:#}"))
}

#[track_caller]
fn flow<'a>(document: &'a Value, file: &Path, direction: &str) -> &'a Value {
    row(document, "iosize-flows", file, direction)
}

#[track_caller]
fn evidence<'a>(document: &'a Value, file: &Path, direction: &str) -> &'a Value {
    row(document, "iosize-evidence", file, direction)
}

fn exit_codes(document: &Value) -> Vec<u64> {
    rows(document, "iosize-commands").map(|row| row["exit_code"].as_u64().unwrap()).collect()
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
    let direct = flow(&document, &path, "read");
    assert_eq!(direct["class"], "as-asked");
    assert_eq!(evidence(&document, &path, "read")["requests"], 50);
    assert_eq!(direct["asked_bytes_mean"], 8192.0, "{direct}");
    assert_eq!(direct["device_bytes_mean"], 8192.0, "{direct}");
    assert_eq!((&direct["added_pages"], exit_codes(&document)), (&0.into(), vec![0]));

    // Read-ahead makes larger requests, unless it is prevented.
    let tar = ["tar", "-cf", "/dev/stdout", path.to_str().unwrap()];
    drop_cached(&path);
    let document = sized(&place, &tar).json();
    let merged = flow(&document, &path, "read");
    assert_eq!(merged["class"], "merged", "{merged}");
    // All calls but the first and the last request this size.
    let mean = merged["asked_bytes_mean"].as_f64().unwrap();
    assert!((10_200.0..=10_240.0).contains(&mean), "{merged}");
    let document = sized(&place, &tar).json();
    assert_eq!(flow(&document, &path, "read")["class"], "cached");
    let name = device.device().file_name().unwrap().to_str().unwrap().to_owned();
    fs::write(format!("/sys/block/{name}/queue/read_ahead_kb"), "8").unwrap();
    drop_cached(&path);
    let document = sized(&place, &tar).json();
    let unmerged = flow(&document, &path, "read");
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
    let read = flow(&document, &path, "read");
    let said = evidence(&document, &path, "read")["evidence"].as_str().unwrap();
    assert!(said.contains("copy_file_range no bound"), "{said}");
    assert!(read["asked_bytes_mean"].as_f64().unwrap() >= f64::from(1 << 20), "{read}");
    let written = evidence(&document, &copy, "write");
    assert!(written["device_requests"].as_u64().unwrap() > 0, "written back: {written}");

    // The exit code is that of the command.
    let document =
        sized(&place, &["sh", "-c", "cat < \"$0\" > /dev/null; exit 7", names[0]]).json();
    assert!(evidence(&document, &path, "read")["requests"].as_u64() > Some(0));
    assert_eq!(exit_codes(&document), [7]);
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
    let read = flow(&document, &path, "read");
    assert_eq!(read["asked_bytes_mean"], 8192.0, "{read}");
    assert!(evidence(&document, &path, "read")["requests"].as_u64() > Some(0), "{document:#}");
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
    let dd = Path::new("dd");
    assert_eq!(flow(&document, dd, "read")["asked_bytes_mean"], 512.0);
    // 8,192 reads with data and one at the end of the file.
    assert_eq!(evidence(&document, dd, "read")["requests"], 8193);
    assert_eq!(evidence(&document, dd, "write")["requests"], 8192);
    // Its calls past the page cache, as they are and as 4 of 1 MiB.
    let costs = rows(&document, "iosize-direct-costs");
    let cost = costs.filter(|row| row["file"] == "dd").find(|row| row["direction"] == "read");
    let cost = cost.unwrap_or_else(|| panic!("{document:#}"));
    let [calls, asked] = ["calls", "asked_bytes_mean"].map(|key| cost[key].as_f64().unwrap());
    assert_eq!((calls, asked), (8192.0, 512.0));
    let ns = |key: &str| cost[key]["value"].as_f64().unwrap_or_else(|| panic!("{cost:#}"));
    assert!((ns("call_ns") * 8192.0 / ns("direct_ns") - 1.0).abs() < 1e-6, "{cost:#}");
    assert!(ns("large_ns") > 0.0, "{cost:#}");
    let tar = rows(&document, "iosize-tools").find(|row| row["tool"] == "tar").unwrap();
    assert_eq!(tar["published_bytes"], 10_240);
    let notes = document["notes"].to_string();
    assert!(notes.contains("Not run: pg_dump, which needs a server"), "{notes}");
    let codes = exit_codes(&document);
    assert!(!codes.is_empty() && codes.iter().all(|code| *code == 0), "{document:#}");
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
        (&["--pid", "1", "--db", "postgres://me@h/db"], "cannot be used with"),
        (&["--db", "postgres://me@h/db"], "--tools"),
        (&["--db", "mysql://me@h/db", "--tools"], "not a PostgreSQL database"),
        (&["--db", "postgres://me:secret@h/db", "--tools"], "must not contain the password"),
    ];
    for (arguments, said) in cases {
        let what = refused(&place, place.command("check").arg("iosize").args(*arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0);
}
