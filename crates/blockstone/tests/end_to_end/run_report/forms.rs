//! Forms of a run other than the plain method: the direct-path matrix, and noise alongside the
//! sessions.

use std::process::Command;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, FileSystem, LoopDevice, blockstone_binary, postgres_programs, require, run,
};
use serde_json::Value;

use super::super::bad_input::refused;
use super::super::{Place, keeps_to_its_schema, names, signal};

const MATRIX: [&str; 10] = [
    "--profile",
    "scan",
    "--scan-size",
    "32M",
    "--multiblock",
    "4,16",
    "--parallel",
    "1,4",
    "--run-time",
    "1s",
];
const NOISE: [&str; 8] =
    ["--noise", "redo:1", "--scale", "8M", "--cache", "4M", "--run-time", "2s"];

fn page(place: &Place) -> String {
    let id = names(&place.runs()).pop().unwrap();
    std::fs::read_to_string(place.runs().join(id).join("report.html")).unwrap()
}

#[test]
fn a_matrix_gives_a_point_for_every_size_and_number_of_sessions() {
    let place = Place::beside();
    let ran = run(place.command("run").arg("--json").args(MATRIX).arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let document = ran.json();
    keeps_to_its_schema(&document);
    let tables = &document["tables"];
    let counts = tables["scan-counts"].as_array().unwrap();
    let labels: Vec<&str> = counts.iter().map(|point| point["point"].as_str().unwrap()).collect();
    assert_eq!(labels, ["scan/m4p1", "scan/m16p1", "scan/m4p4", "scan/m16p4"]);
    for (point, counted) in tables["scan"].as_array().unwrap().iter().zip(counts) {
        let number = |pointer: &str| point.pointer(pointer).and_then(Value::as_f64).unwrap();
        assert!(number("/mb_per_s/value") > 0.0 && number("/io_ns_p99/value") > 0.0, "{point:#}");
        // A session waits at most once for each read, and at most as long as the read itself takes.
        assert!(number("/waits_ratio") <= 1.05, "{point:#}");
        let blocks = counted["read_bytes"].as_f64().unwrap() / 8192.0;
        assert!((blocks - number("/multiblock")).abs() < 1e-9, "{blocks} blocks a read");
    }
    let size_bytes = document["settings"]["scan_bytes"].as_f64().unwrap();
    let whole = tables["scan-whole"].as_array().unwrap();
    for (point, whole) in tables["scan"].as_array().unwrap().iter().zip(whole) {
        let number = |row: &Value, pointer: &str| row.pointer(pointer)?.as_f64();
        let rate = 1e6 * number(point, "/mb_per_s/value").unwrap();
        let elapsed_s = number(whole, "/elapsed_ns/value").unwrap() / 1e9;
        assert!((rate * elapsed_s / size_bytes - 1.0).abs() < 1e-9, "{whole:#}");
        let reads = number(whole, "/ios").unwrap();
        let blocks = reads * number(whole, "/multiblock").unwrap();
        assert!((blocks * 8192.0 / size_bytes - 1.0).abs() < 0.1, "the table once: {whole:#}");
        let (waits, total) = (number(whole, "/waits").unwrap(), number(whole, "/wait_ns").unwrap());
        let mean = number(whole, "/wait_ns_mean").unwrap_or(0.0);
        assert!((waits * mean - total).abs() <= 1e-6 * total, "{whole:#}");
    }
    assert_eq!(tables["scan-effects"].as_array().unwrap().len(), 2);
    assert!(tables.get("noise").is_none());
    assert_eq!(document["disk_files"][0]["map"]["hole_bytes"], 0);
    let passed = |rule: &str| {
        let verdicts = document["verdicts"].as_array().unwrap();
        verdicts.iter().any(|verdict| verdict["rule"] == rule && verdict["outcome"] == "pass")
    };
    assert!(passed("work-unit") && passed("hole") && passed("unwritten"), "{document:#}");
    let again = run(place.command("report").args(["--json", "last"]));
    assert_eq!((again.code, &again.json()["tables"]["scan"]), (ran.code, &tables["scan"]));
    let compared = run(place.command("compare").args(["--json", "last", "last"]));
    let rows = compared.json()["tables"]["rows"].as_array().unwrap().clone();
    assert!(rows.iter().any(|row| row["label"] == "scan/m16p4/mb_per_s"), "{rows:#?}");
    assert!(page(&place).contains("Scans past the buffer cache"));
}

/// Returns the points of a database that scans by a statement, each with the cost of its rows.
fn statements(place: &Place, target: &str, more: &[&str], labels: &[&str]) -> Value {
    let mut command = place.command("run");
    command.args(["--json", "--profile", "scan", "--target", target, "--scan-size", "8M"]);
    // PostgreSQL counts what a session reads once a second at most, and a rate needs three counts.
    command.args(["--cache", "2M", "--parallel", "1,2", "--run-time", "4s"]).args(more);
    let ran = run(&mut command);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let tables = &document["tables"];
    let counts = tables["scan-counts"].as_array().unwrap();
    let found: Vec<&str> = counts.iter().map(|point| point["point"].as_str().unwrap()).collect();
    assert_eq!(found, labels, "{:#}", tables["scan"]);
    for (point, counted) in tables["scan"].as_array().unwrap().iter().zip(counts) {
        let number = |pointer: &str| point.pointer(pointer).and_then(Value::as_f64);
        assert!(number("/mb_per_s/value").is_some_and(|rate| rate > 0.0), "{point:#}");
        assert!(number("/rows_per_s/value").is_some_and(|rate| rate > 0.0));
        assert!(number("/cpu_ns_per_row/value").is_some_and(|ns| ns > 0.0));
        assert_eq!(counted["slots"]["unmeasured"], "unknown", "{counted:#}");
        assert!(counted["io_ns"]["unmeasured"].is_string(), "{counted:#}");
    }
    let reasons = tables["scan-unmeasured"].as_array().unwrap();
    assert!(reasons.iter().any(|one| one["what"] == "slots"), "{reasons:#?}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    document
}

#[test]
fn sqlite_scans_by_a_statement() {
    let place = Place::beside();
    let target = format!("sqlite:{}", place.data().display());
    let document = statements(&place, &target, &[], &["scan/p1", "scan/p2"]);
    assert!(document["tables"]["scan"][0]["multiblock"]["unmeasured"].is_string());
    let shown = run(place.command("report").arg("last")).stdout;
    assert!(shown.contains("Scans by a statement") && shown.contains("CPU/row"), "{shown}");
    let compared = run(place.command("compare").args(["--json", "last", "last"]));
    let rows = compared.json()["tables"]["rows"].as_array().unwrap().clone();
    assert!(rows.iter().any(|row| row["label"] == "scan/p2/cpu_ns_per_row"), "{rows:#?}");
}

#[test]
fn postgres_scans_in_reads_of_the_size_that_is_asked_for_where_it_has_a_setting() {
    require!(Postgres, PostgresVersions);
    let place = Place::beside();
    let data = place.data();
    let data = data.to_str().unwrap();
    let refused = refused(
        &place,
        place.command("run").args(["--profile", "scan", "--target", "postgres:scratch"]).args([
            "--multiblock",
            "4",
            data,
        ]),
    );
    assert!(refused.contains("with --multiblock") && refused.contains("io_combine_limit"));
    let programs = postgres_programs(17);
    let more = ["--multiblock", "1,16", "--pg-bin", programs.to_str().unwrap(), data];
    let labels = ["scan/m1p1", "scan/m16p1", "scan/m1p2", "scan/m16p2"];
    let document = statements(&place, "postgres:scratch", &more, &labels);
    assert_eq!(document["tables"]["scan-counts"][1]["read_bytes"], 16 * 8192);
}

#[test]
fn noise_gives_both_windows_and_their_ratio() {
    let place = Place::beside();
    let ran = run(place.command("run").arg("--json").args(NOISE).arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let document = ran.json();
    let tables = &document["tables"];
    let noise = &tables["noise-writers"][0];
    assert_eq!((&noise["writers"], &noise["write_bytes"]), (&1.into(), &131_072.into()));
    assert!(noise["bytes_per_s"]["value"].as_f64().unwrap() > 0.0, "{noise:#}");
    let effect = tables["noise"].as_array().unwrap();
    for figure in
        ["Reads of the database", "Median single-block read", "Commits a second", "Median commit"]
    {
        let row = effect.iter().find(|row| row["figure"] == figure);
        let ratio = row.unwrap_or_else(|| panic!("{figure}"))["ratio"]["value"].as_f64();
        assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{figure}: {noise:#}");
    }
    assert_eq!(document["window"], "quiet");
    assert!(tables.get("scan").is_none());
    assert!(page(&place).contains("Effect of noise on the sessions"));
}

#[test]
fn an_interrupted_form_is_readable_and_leaves_no_file() {
    for (form, first) in [(&MATRIX[..], "scan/m4p1"), (&NOISE[..], "quiet")] {
        let place = Place::beside();
        let mut command = place.command("run");
        command.args(form).arg(place.data());
        let measured = |manifest: &Value| {
            let phases = manifest["phases"].as_array();
            phases.is_some_and(|all| all.iter().any(|phase| phase["label"] == first))
        };
        let mut child = place.start(&mut command, measured);
        signal(&child, "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(place.left_in_data(), Vec::<String>::new(), "no file is left");
        let manifest = place.manifest().unwrap();
        assert_eq!(manifest["end"]["signal"], "SIGINT");
        let again = run(place.command("report").args(["--json", "last"]));
        assert!(again.json()["verdicts"].as_array().is_some_and(|all| !all.is_empty()));
    }
}

/// The device becomes so slow that the statement would take 32 s.
#[test]
fn ctrl_c_cancels_the_statement_that_scans() {
    require!(Root, Loop, Blkio, Mariadb);
    let place = Place::beside();
    let (size, file_system) = (Bytes::gib(1), Some(FileSystem::Ext4));
    let caps = Caps { read_bytes_per_s: Some(Bytes::gib(4).get()), ..Caps::default() };
    let mut device = LoopDevice::create(DeviceSpec { size, file_system, caps }).unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "run");
    command.args(["--profile", "scan", "--target", "mariadb:scratch", "--scan-size", "16M"]);
    command.args(["--cache", "8M", "--parallel", "1"]).arg(device.mount_point().unwrap());
    let loaded =
        |manifest: &Value| manifest["phases"].as_array().is_some_and(|phases| !phases.is_empty());
    let mut child = place.start(&mut command, loaded);
    let tasks = format!("/proc/{}/task", child.id());
    let scans = || {
        let tasks = std::fs::read_dir(&tasks).unwrap().flatten();
        let mut named = tasks.filter_map(|task| std::fs::read(task.path().join("comm")).ok());
        named.any(|name| name.starts_with(b"session-"))
    };
    while !scans() {
        std::thread::sleep(Duration::from_millis(50));
    }
    device.set_caps(Caps { read_bytes_per_s: Some(Bytes::kib(512).get()), ..caps }).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, "INT");
    let asked = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(asked.elapsed() < Duration::from_secs(20), "after {:?}", asked.elapsed());
    let manifest = place.manifest().unwrap();
    let phase = manifest["phases"].as_array().unwrap().last().unwrap();
    let known = [&manifest["end"]["signal"], &phase["stop"], &phase["first_error"]];
    assert_eq!(known, [&"SIGINT".into(), &"interrupted".into(), &Value::Null], "{phase:#}");
}

#[test]
fn options_of_another_form_and_numbers_that_cannot_be_are_refused() {
    let place = Place::beside();
    let cases: &[(&[&str], &str)] = &[
        (&["--multiblock", "4"], "run with --multiblock"),
        (&["--parallel", "4"], "with --parallel"),
        (&["--slots", "4"], "with --slots"),
        (&["--profile", "dss"], "dss"),
        (&["--profile", "scan", "--update-pct", "5"], "scan with --update-pct"),
        (&["--profile", "scan", "--noise", "redo"], "scan with --noise"),
        (&["--profile", "scan", "--loops", "5"], "scan with --loops"),
        (&["--profile", "scan", "--readers", "5"], "scan with --readers"),
        (&["--profile", "scan", "--multiblock", "4,129"], "at most 1 MiB, which is 128 blocks"),
        (&["--profile", "scan", "--multiblock", "0"], "nothing would be read"),
        (&["--profile", "scan", "--multiblock", "four"], "four"),
        (&["--profile", "scan", "--parallel", "0"], "--parallel 0"),
        (&["--profile", "scan", "--parallel", "4,4"], "twice"),
        (&["--profile", "scan", "--parallel", "4000", "--slots", "2"], "not 8000"),
        (&["--profile", "scan", "--slots", "0"], "--slots 0"),
        (&["--profile", "scan", "--scan-size", "8M"], "each has less than"),
        (&["--profile", "scan", "--scan-size", "900T"], "are free"),
        (&["--profile", "scan", "--target", "null"], "scan null: this target has no rows"),
        (&["--noise", "dd"], "redo:4"),
        (&["--noise", "redo:0"], "noise of 0 writers"),
        (&["--noise", "redo:65"], "1 to 64"),
        (&["--noise", "direct", "--noise-write", "5000B"], "power of two"),
        (&["--noise-area", "1G"], "--noise <"),
        (&["--noise", "redo", "--loops", "5"], "the loops may end"),
    ];
    for (arguments, expected) in cases {
        let what = refused(&place, place.command("run").args(*arguments).arg(place.data()));
        assert!(what.contains(expected), "{arguments:?}: {what}");
    }
    for (option, value) in [("--slots", "2"), ("--row-cost", "9us"), ("--multiblock", "4")] {
        let mut command = place.command("run");
        command.current_dir(place.data()).args(["--profile", "scan", "--target", "sqlite:."]);
        let what = refused(&place, command.args([option, value]));
        assert!(what.contains(&format!("with {option}")), "{option}: {what}");
    }
}

#[test]
fn a_device_has_no_room_for_noise() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec { size: Bytes::mib(256), ..DeviceSpec::default() });
    let device = device.unwrap();
    let wiped = run(Command::new("blkdiscard").arg("-z").arg(device.device()));
    assert_eq!(wiped.code, Some(0), "{wiped:#?}");
    let mut command = place.command("run");
    command.args(NOISE).arg(device.device()).arg("--destroy").arg(device.device());
    let what = refused(&place, &mut command);
    assert!(what.contains("noise writes files, and this is a device"), "{what}");
}
