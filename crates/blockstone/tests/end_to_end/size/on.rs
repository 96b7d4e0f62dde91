//! `size --on`: whether a storage carries a need.

use blockstone_base::units::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, FileSystem, LoopDevice, PostgresServer, Ran, blockstone_binary, require, run,
};
use serde_json::Value;

use crate::bad_input::refused;
use crate::{Place, keeps_to_its_schema};

#[track_caller]
fn answer(ran: &Ran) -> Value {
    let document = ran.json();
    keeps_to_its_schema(&document);
    document["answer"].clone()
}

#[test]
fn a_need_is_driven_and_a_cap_binds() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::gib(3),
        file_system: Some(FileSystem::Ext4),
        caps: Caps { read_iops: Some(500), ..Caps::default() },
    })
    .unwrap();
    let on = device.mount_point().unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "size");
    command.args(["--json", "--reads=100%", "--drive-for=3s", "--iops=100", "--on"]);
    let ran = run(command.arg(&on));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = answer(&ran);
    assert_eq!(found["outcome"], "carries", "{found:#}");
    let headroom = found["headroom"].as_f64().unwrap();
    assert!((4.0..6.0).contains(&headroom), "of 500 IOPS 100 are needed: {found:#}");
    assert!(found["binds"].as_str().unwrap().contains("500 read IOPS"), "{found:#}");
    let loads = ran.json()["tables"]["loads"].as_array().unwrap().len();
    assert_eq!(loads, 2, "the need and the ceiling");

    // The recording of the ceiling says the same, and nothing is driven.
    let again = ["--json", "--reads=100%", "--on=last", "--iops"];
    for (iops, outcome, code) in [("100", "carries", 0), ("2000", "does-not-carry", 1)] {
        let ran = run(place.command("size").args(again).arg(iops));
        assert_eq!((ran.code, &answer(&ran)["outcome"]), (Some(code), &outcome.into()), "{ran:#?}");
    }
    // The same storage buys nothing.
    let ran = run(place.command("size").args(["--json", "last", "--on=last", "--db-time"]));
    let document = ran.json();
    keeps_to_its_schema(&document);
    let ends = ["before", "low", "high"].map(|end| document["db_time"][end].as_f64().unwrap());
    assert!(ends[1] <= ends[0] * 1.05 && ends[0] <= ends[2] * 1.05, "{ends:?}");
    // Reads behind a throttle wait for its next slice.
    let ran = run(place.command("size").args(again).args(["100", "--p99=1us"]));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let found = answer(&ran);
    assert!(found["why"].as_str().unwrap().contains("p99 of a read"), "{found:#}");
}

#[test]
fn a_calibration_bounds_a_mix_and_memory_establishes_nothing() {
    require!(Tmpfs);
    let place = Place::beside();
    crate::completed(&place.calibrate(&["--size=64M"], &place.data()));
    let ask = |iops: &str| {
        run(place.command("size").args(["--json", "--reads=70%", "--on=last", "--iops", iops]))
    };
    let few = answer(&ask("0.01"));
    assert!(few["outcome"] == "carries" || few["why"].is_string(), "{few:#}");
    let many = ask("1000000000");
    assert_ne!(answer(&many)["outcome"], "carries");
    assert!(matches!(many.code, Some(1 | 3)), "{many:#?}");

    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    crate::completed(&place.calibrate(&["--size=64M"], dir.path()));
    let ran = ask("0.01");
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let found = answer(&ran);
    assert_eq!(found["outcome"], "not-established");
    assert!(found["why"].as_str().unwrap().contains("condemned"), "{found:#}");
}

#[test]
fn a_storage_that_is_not_there_is_refused() {
    let place = Place::beside();
    let mut command = place.command("size");
    let what = refused(&place, command.args(["--iops=10", "--on", "/nowhere/at/all"]));
    assert!(what.contains("/nowhere/at/all"), "{what}");
    let mut command = place.command("size");
    let what = refused(&place, command.args(["--iops=10", "--drive-for=5s"]));
    assert!(what.contains("--on"), "{what}");
}

#[test]
fn a_live_database_is_watched_and_sized() {
    require!(Root, Postgres);
    let place = Place::beside();
    let server = PostgresServer::start(15, &["shared_buffers=1MB"]).unwrap();
    server.run(&["CREATE TABLE t AS SELECT g AS id, 0 AS n FROM generate_series(1, 9) g"]).unwrap();
    let refused = |arguments: &[&str]| refused(&place, place.command("size").args(arguments));
    let address = server.address();
    let what = refused(&["--db", &address, "--db-time", "--on", "."]);
    assert!(what.contains("--db-time"), "{what}");
    let what = refused(&["--db", &address, "--disk", "no-such-unit"]);
    assert!(what.contains("no-such-unit"), "told before the time is spent: {what}");
    // A server counts a transaction when its statement has ended, so that a loop would not do.
    let mut session = server.session(&vec!["UPDATE t SET n = n + 1 WHERE id = 1"; 20_000]).unwrap();
    let mut command = place.command("size");
    let ran = run(command.args(["--json", "--db", &server.address(), "--for=4s"]));
    session.kill().unwrap();
    session.wait().unwrap();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let need = document["tables"]["need"].as_array().unwrap();
    let commits = need.iter().find(|row| row["quantity"] == "commits/s").unwrap();
    assert!(commits["max"].as_f64().is_some_and(|max| max > 1.0), "{commits:#}");
    assert!(ran.stderr.contains("-watch-"), "the recording is named: {}", ran.stderr);
}
