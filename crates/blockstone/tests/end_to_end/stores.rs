//! `--for STORE`: the load of a store, its limits, and the answer.

use std::path::Path;
use std::time::Duration;

use blockstone_base::units::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, Fault, FileSystem, LoopDevice, Ran, VolatileDevice, WriteCache,
    blockstone_binary, require, run,
};
use serde_json::Value;

use super::{Place, keeps_to_its_schema};

/// A small load of PostgreSQL, for a few seconds.
const POSTGRESQL: [&str; 7] =
    ["run", "--for", "postgresql", "--for=5s", "--json", "--scale=16M", "--cache=16M"];

#[track_caller]
fn outcome(ran: &Ran, name: &str) -> String {
    let document = ran.json();
    keeps_to_its_schema(&document);
    let all = document["expectations"].as_array().unwrap();
    let found = all.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{all:#?}"));
    assert!(found["origin"].is_string(), "{found:#}");
    found["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn a_capped_disk_fails_with_the_limit_and_the_cap_named() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(512),
        file_system: Some(FileSystem::Ext4),
        caps: Caps { read_iops: Some(500), write_iops: Some(500), ..Caps::default() },
    })
    .unwrap();
    let mut command = place.within(device.command(blockstone_binary()), POSTGRESQL[0]);
    let ran = run(command.args(&POSTGRESQL[1..]).arg(device.mount_point().unwrap()));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(outcome(&ran, "hardware_read_iops"), "fail");

    let xml = place.scratch.path().join("limits.xml");
    let again = run(place.command("report").args(["last", "--junit"]).arg(&xml));
    assert_eq!(again.code, Some(1), "the recording knows what it is for: {again:#?}");
    let top = again.stdout.lines().take(3).collect::<Vec<_>>().join(" ");
    assert!(top.contains("not OK for PostgreSQL"), "{top}");
    assert!(top.contains("500 read IOPS"), "{top}");
    let written = std::fs::read_to_string(&xml).unwrap();
    assert!(written.contains("tests=\"3\""), "{written}");
}

#[test]
fn a_ladder_ends_where_a_limit_is_not_kept_and_says_what_was_carried() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(512),
        file_system: Some(FileSystem::Ext4),
        caps: Caps { read_iops: Some(500), ..Caps::default() },
    })
    .unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "run");
    command.args([
        "--ladder",
        "--expect=read.mean<25ms",
        "--schemas=4",
        "--update-pct=0",
        // Of 2 s, beside other load, the interval of a mean is too wide to decide.
        "--for=5s",
    ]);
    command.args(["--scale=4M", "--cache=4M", "--work-unit=8", "--json"]);
    let ran = run(command.arg(device.mount_point().unwrap()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let sessions = |key: &str| document["ladder"][key].as_str().unwrap().parse::<u32>().unwrap();
    let (kept, beyond) = (sessions("sessions"), sessions("fails_at"));
    // 500 reads a second: 12 sessions wait for 24 ms each.
    assert!(kept < beyond && (4..=8).contains(&kept) && beyond <= 32, "{document:#}");
    let rungs = document["tables"]["limits"].as_array().unwrap();
    assert_eq!(rungs.last().unwrap()["outcome"], "FAIL", "{rungs:#?}");
    let again = run(place.command("report").args(["last", "--expect=read.mean<25ms"]));
    assert_eq!(again.code, Some(0), "{again:#?}");
    let shown = again.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&format!("with {kept} sessions · not with {beyond}: ")), "{shown}");
}

#[test]
fn a_ladder_without_a_limit_or_below_its_schemas_is_refused() {
    let place = Place::beside();
    for (words, expected) in [
        (&["--ladder"][..], "climb without a limit"),
        (&["--ladder=2", "--for", "postgresql"], "climb to 2 sessions"),
        (&["--ladder", "--sessions=4", "--for", "postgresql"], "cannot be used with"),
        (&["--ladder", "--for", "etcd"], "--ladder is an option of the miniature"),
        (&["--ladder", "--profile=scan", "--expect=iops>=1"], "--ladder varies the sessions"),
    ] {
        let ran = run(place.command("run").args(words).arg(place.data()));
        assert_eq!(ran.code, Some(2), "{words:?}: {ran:#?}");
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn a_disk_whose_flush_takes_long_fails_at_the_commit() {
    require!(Root, Loop, Nbdkit);
    let slow = WriteCache::Own(Fault::SlowFlush(Duration::from_millis(20)));
    let device = VolatileDevice::with_cache(Bytes::mib(512), slow).unwrap();
    let path = device.device().unwrap();
    let place = Place::throttled();
    let mut command = place.command(POSTGRESQL[0]);
    let ran = run(command.args(&POSTGRESQL[1..]).arg("--destroy").args([path, path]));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(outcome(&ran, "commit.p99"), "fail");
}

#[test]
fn memory_establishes_nothing() {
    require!(Tmpfs);
    let place = Place::beside();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut command = place.command(POSTGRESQL[0]);
    let ran = run(command.args(&POSTGRESQL[1..]).arg(dir.path()));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(outcome(&ran, "commit.p99"), "not-established");
}

#[test]
fn a_store_that_is_no_database_has_its_loads_measured_alone() {
    let place = Place::beside();
    let calibrated = |arguments: &[&str], path: &Path| -> Value {
        let ran =
            run(place.command("calibrate").args(["--brief", "--json"]).args(arguments).arg(path));
        assert!(matches!(ran.code, Some(0 | 1 | 3)), "{ran:#?}");
        let document = ran.json();
        keeps_to_its_schema(&document);
        document
    };
    let data = place.data();
    let document = calibrated(&["--for", "etcd", "--size=64M"], &data);
    let load = &document["tables"]["store"][0];
    assert_eq!((&load["load"], &load["operation"]), (&"wal".into(), &"2,300 B + fdatasync".into()));
    assert_eq!(document["expectations"][0]["name"], "store[wal].p99");
    let other = document["verdicts"].as_array().unwrap().iter();
    let direct = other.clone().find(|it| it["rule"] == "not-direct").unwrap();
    assert_ne!(direct["outcome"], "fail", "a flushed log is a load of its own: {direct:#}");

    let document = calibrated(&["--for=kafka", "--size=64M"], &data);
    let names: Vec<&str> = document["tables"]["store"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["load"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["segment-write", "segment-read"]);
    assert!(document.get("expectations").is_none(), "Kafka publishes no limit");
}

#[test]
fn options_that_the_load_of_a_store_leaves_no_room_for_are_refused() {
    let place = Place::beside();
    for (words, expected) in [
        (&["--for", "etcd", "--sessions=4"][..], "--sessions is an option of the miniature"),
        (&["--for", "postgresql", "--noise=redo"], "cannot be used with"),
        (&["--for", "dbase"], "invalid value 'dbase'"),
    ] {
        let ran = run(place.command("run").args(words).arg(place.data()));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    }
    let list = run(place.command("run").args(["--for", "help"]));
    assert_eq!(list.code, Some(0), "{list:#?}");
    assert!(list.stdout.contains("store[wal].p99<10ms"), "{}", list.stdout);
}
