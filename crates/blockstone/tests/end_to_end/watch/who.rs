//! `blockstone watch --who`: which process writes to a disk, and to which file.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_testkit::{
    DeviceSpec, FileSystem, LoopDevice, ScratchDir, blockstone_binary, require, run,
};
use serde_json::Value;

use super::terminal::Terminal;
use super::{Ended, Turn, keeps_to_its_schema, watch};

const WRITTEN: u64 = 16 << 20;

fn rows(document: &Value) -> &[Value] {
    document["views"]["who"].as_array().unwrap_or_else(|| panic!("{document:#}"))
}

/// Writes a file again and again, each time by another process, until `watched` ends. Returns the
/// ids of these processes, and what it printed.
fn write_until_it_ends(watched: Child, path: &Path, options: &[&str]) -> (BTreeSet<u32>, String) {
    let mut watched = Ended(watched);
    // A document is larger than a pipe.
    let mut output = watched.0.stdout.take().unwrap();
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let mut pids = BTreeSet::new();
    while watched.0.try_wait().unwrap().is_none() {
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/zero", "bs=1M", "count=16"]).args(options);
        dd.arg(format!("of={}", path.display())).stderr(Stdio::null());
        let mut dd = Ended(dd.spawn().unwrap());
        pids.insert(dd.0.id());
        dd.0.wait().unwrap();
        // Only the file system with the file; its pages are written by a thread of the kernel.
        run(Command::new("sync").arg("-f").arg(path));
        std::thread::sleep(Duration::from_millis(50));
    }
    (pids, text.join().unwrap().unwrap())
}

#[test]
fn the_writer_of_a_known_number_of_bytes_is_named_with_its_file_although_it_has_ended() {
    require!(Root, Bpf, Loop);
    let _turn = Turn::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(128),
        file_system: Some(FileSystem::Ext4),
        ..DeviceSpec::default()
    });
    let device = device.unwrap();
    let disk = device.device().file_name().unwrap().to_str().unwrap().to_owned();
    let direct = ["conv=notrunc", "oflag=direct"];
    for (options, by_kernel) in [(&direct[..], false), (&direct[..1], true)] {
        let path = device.mount_point().unwrap().join(format!("known-{by_kernel}"));
        let mut once = watch(&["--who", "--once", "--for", "6s", "--json"]);
        let once = once.stdout(Stdio::piped()).spawn().unwrap();
        let (pids, text) = write_until_it_ends(once, &path, options);
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        keeps_to_its_schema(&document);
        let of_disk: Vec<&Value> =
            rows(&document).iter().filter(|row| row["disk"] == disk.as_str()).collect();
        // Where more than a thousand files are written, a sum of others may have moved more.
        let is_known = |row: &&&Value| row["file"] == path.to_str().unwrap();
        let first = of_disk.iter().find(is_known).unwrap_or_else(|| panic!("{document:#}"));
        assert_eq!(first["process"], "dd", "{first:#}");
        let is_its = |row: &&&Value| {
            let pid = row["pid"].as_str().and_then(|pid| pid.parse().ok());
            pid.is_some_and(|pid| pids.contains(&pid)) && row["file"] == first["file"]
        };
        let written = |row: &Value| row["write_bytes"].as_u64().unwrap();
        let own: Vec<&&Value> = of_disk.iter().filter(is_its).collect();
        if by_kernel {
            // Pages of several processes are written together.
            let mean = own.iter().map(|row| written(row)).sum::<u64>() / own.len() as u64;
            assert!((WRITTEN / 2..WRITTEN * 5 / 4).contains(&mean), "{mean} of {own:#?}");
        } else {
            let whole = own.iter().filter(|row| written(row) == WRITTEN).count();
            // The first and the last may have been cut by the edges of the interval.
            assert!(whole > 0 && whole + 2 >= own.len(), "{own:#?}");
            assert!(own.iter().all(|row| written(row) <= WRITTEN), "{own:#?}");
        }
        let share = first["write_back_share"].as_f64().unwrap();
        assert_eq!(share > 0.9, by_kernel, "{first:#?}");
        let bytes = |row: &&Value| row["moved_bytes"].as_u64().unwrap();
        assert!(of_disk.is_sorted_by(|a, b| bytes(a) >= bytes(b)), "{of_disk:#?}");
    }
}

#[test]
fn without_counts_in_the_kernel_the_writer_is_known_and_its_file_says_why_not() {
    require!(Root);
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    // Its children come and go between two readings, and count for the process that waits for them.
    let again = "while dd if=/dev/zero of=$0 bs=64k count=16 oflag=direct conv=notrunc; do :; done";
    let mut shell = Command::new("bash");
    shell.args(["-c", again]).arg(scratch.path().join("known")).stderr(Stdio::null());
    let shell = Ended(shell.spawn().unwrap());
    let pid = shell.0.id().to_string();
    let arguments = ["--who", "--once", "--for", "5s", "--no-bpf", "--json"];
    let document = run(&mut watch(&arguments)).json();
    keeps_to_its_schema(&document);
    let own: Vec<&Value> =
        rows(&document).iter().filter(|row| row["pid"] == pid.as_str()).collect();
    let written: u64 = own.iter().map(|row| row["write_bytes"].as_u64().unwrap()).sum();
    let account = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let charged = account.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    let charged: u64 = charged.unwrap().parse().unwrap();
    assert!((1 << 20..=charged).contains(&written), "{written} of {charged}: {own:#?}");
    assert!(own.iter().all(|row| row["file"]["unmeasured"] == "off"), "{own:#?}");
    let text = run(&mut watch(&["--who", "--once", "--for", "1s", "--no-bpf"]));
    assert!(text.stdout.contains("--no-bpf: I/O is not counted by disk and file"), "{text:#?}");
}

#[test]
fn it_is_recorded_replayed_and_reported_as_other_views() {
    require!(Root, Bpf);
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let dir = dir.to_str().unwrap();
    let ran = run(&mut watch(&["--who", "--record", dir, "--for", "2s", "--lines"]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let replayed = run(&mut watch(&["--replay", dir, "--who", "--once"]));
    assert_eq!(replayed.code, Some(0), "{replayed:#?}");
    assert!(replayed.stdout.contains("Who uses the disks"), "{replayed:#?}");
    let document = run(Command::new(blockstone_binary()).args(["report", "--json", dir])).json();
    keeps_to_its_schema(&document);
    rows(&document);
    let ran = run(&mut watch(&["--who", "--view", "disks", "--once"]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
}

#[test]
fn a_terminal_shows_process_bytes_and_file_on_80_columns() {
    require!(Root, Bpf);
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let path = scratch.path().join("a-file-whose-end-is-shown");
    let mut dd = Command::new("bash");
    let again = "while dd if=/dev/zero of=$0 bs=1M count=8 oflag=direct conv=notrunc; do :; done";
    dd.args(["-c", again]).arg(&path).stderr(Stdio::null());
    let _dd = Ended(dd.spawn().unwrap());
    let mut screen = Terminal::start(&mut watch(&["--interval", "500ms"]), 24, 80);
    screen.until(|text| text.contains("live") && text.contains("runnable"));
    screen.keys("w/dd\r");
    let text = screen.until(|text| text.contains("whose-end-is-shown"));
    for heading in ["disk", "role", "pid", "file", "written"] {
        assert!(text.contains(heading), "{heading} is not in\n{text}");
    }
    screen.keys("q");
    assert_eq!(screen.end(), Some(0));
}

#[test]
fn a_key_keeps_the_recent_past_as_a_recording_with_its_page() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let runs = scratch.path().join("runs");
    let mut command = watch(&["--interval", "200ms", "--no-bpf", "--runs-dir"]);
    let mut screen = Terminal::start(command.arg(&runs), 24, 160);
    screen.until(|text| text.contains("live") && text.contains("runnable"));
    for count in 1..=2 {
        screen.keys("K");
        screen.until(|text| {
            let kept = std::fs::read_dir(&runs).map_or(0, Iterator::count);
            kept == count && text.contains("kept: ")
        });
    }
    // It goes on watching.
    screen.until(|text| text.contains("live"));
    screen.keys("q");
    assert_eq!(screen.end(), Some(0));
    for dir in std::fs::read_dir(&runs).unwrap() {
        let dir = dir.unwrap().path();
        let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("id=\"host\""));
        let document = run(Command::new(blockstone_binary()).args(["report", "--json"]).arg(&dir));
        assert_eq!(document.code, Some(0), "{document:#?}");
        let document = document.json();
        keeps_to_its_schema(&document);
        assert!(document["to_ns"].as_u64() > document["from_ns"].as_u64(), "{document:#}");
        // A recording cannot be kept again.
        let mut replay = watch(&["--replay"]);
        let mut screen = Terminal::start(replay.arg(&dir), 24, 120);
        screen.until(|text| text.contains("replay"));
        screen.keys("K");
        screen.until(|text| text.contains("this is already a recording"));
    }
}
