//! Write rates that fall once a certain amount is written, as on a drive whose fast cells are full,
//! and writing until they no longer fall.

use std::thread::sleep;
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, FileSystem, LoopDevice, blockstone_binary, require, run,
};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema, measured, phases, signal};

/// Write rates of the fast cells and of those behind them, in bytes per second.
const FAST: u64 = 80_000_000;
const SLOW: u64 = 10_000_000;

fn caps(write_bytes_per_s: u64) -> Caps {
    Caps { write_bytes_per_s: Some(write_bytes_per_s), ..Caps::default() }
}

fn rule(document: &Value) -> &Value {
    let mut verdicts = document["verdicts"].as_array().unwrap().iter();
    verdicts.find(|verdict| verdict["rule"] == "not-preconditioned").unwrap()
}

/// Returns the verdict on a layout during which the write rate falls.
fn cliff(place: &Place) -> Value {
    let spec =
        DeviceSpec { size: Bytes::mib(512), file_system: Some(FileSystem::Ext4), caps: caps(FAST) };
    let mut device = LoopDevice::create(spec).unwrap();
    let path = device.mount_point().unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "calibrate");
    command.args(["--brief", "--size", "288M"]).arg(path);
    // The layout follows the first phase.
    let mut child = place.start(&mut command, |manifest| phases(manifest) >= 1);
    sleep(Duration::from_secs(2));
    device.set_caps(caps(SLOW)).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    rule(&run(place.command("report").args(["--json", "last"])).json()).clone()
}

#[test]
fn a_write_rate_that_falls_in_the_layout_is_named() {
    require!(Root, Loop, Blkio);
    // A machine with other load may stay below the first cap all the time.
    let verdicts = (0..3).map(|_| cliff(&Place::throttled()));
    let verdict = verdicts.inspect(|v| println!("{v}")).find(|v| v["outcome"] == "fail").unwrap();
    assert_eq!(verdict["weight"], "warns", "{verdict:#}");
    assert!(verdict["evidence"].as_str().unwrap().starts_with("layout: "), "{verdict:#}");
    let concerns = verdict["concerns"].as_array().unwrap();
    assert!(concerns.iter().any(|name| name == "max_write_iops"), "{verdict:#}");
    assert!(!concerns.iter().any(|name| name == "max_iops"), "{verdict:#}");
}

#[test]
fn a_write_rate_that_stays_is_no_cliff() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let spec = DeviceSpec {
        size: Bytes::mib(512),
        file_system: Some(FileSystem::Ext4),
        caps: caps(SLOW * 5),
    };
    let device = LoopDevice::create(spec).unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "calibrate");
    let path = device.mount_point().unwrap();
    let ran = run(command.args(["--json", "--brief", "--size", "256M"]).arg(path));
    let document = ran.json();
    // Unknown for a virtual machine; a rotating disk passes.
    assert_ne!(rule(&document)["outcome"], "fail", "{document:#}");
}

#[test]
fn a_device_is_written_twice_and_then_in_rounds_until_it_settles() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let size = Bytes::mib(64);
    let caps = Caps { write_iops: Some(500), ..Caps::default() };
    let device = LoopDevice::create(DeviceSpec { size, file_system: None, caps }).unwrap();
    device.blank().unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "calibrate");
    command.args(["--json", "--brief", "--precondition", "--precondition-round", "3s"]);
    let ran = run(command.arg(device.device()).arg("--destroy").arg(device.device()));
    let document = ran.json();
    keeps_to_its_schema(&document);
    let rounds = document["tables"]["precondition-rounds"].as_array().unwrap();
    assert_eq!(document["precondition_pass_bytes"], 2 * size.get(), "{rounds:#?}");
    assert_eq!(document["precondition_settled"], true, "{rounds:#?}");
    assert!((5..=25).contains(&rounds.len()), "{rounds:#?}");
    let random: u64 = rounds.iter().map(|round| round["written_bytes"].as_u64().unwrap()).sum();
    let written = &document["precondition_written_bytes"];
    assert_eq!(*written, 2 * size.get() + random, "{rounds:#?}");
    measured(&document["figures"]["max_write_iops"]);
    // The disk behind a virtual disk is unknown, and a loop device is only a part of its disk.
    let verdict = rule(&document);
    let evidence = verdict["evidence"].as_str().unwrap();
    assert_ne!(verdict["outcome"], "fail", "{verdict:#}");
    assert!(evidence.contains("settled after") || evidence.contains("rotates"), "{evidence}");
    assert_eq!(ran.stderr.matches("writes the test file only").count(), 0, "{}", ran.stderr);
}

#[test]
fn beneath_a_file_system_only_the_test_file_is_preconditioned_and_its_limit_holds() {
    let place = Place::beside();
    let mut command = place.command("calibrate");
    command.args(["--json", "--brief", "--size", "64M", "--precondition"]);
    let ran = run(command.args(["--precondition-limit", "1ms"]).arg(place.data()));
    assert!(ran.stderr.contains("writes the test file only"), "{}", ran.stderr);
    assert!(ran.stderr.contains("time limit was reached"), "{}", ran.stderr);
    let document = ran.json();
    assert!(document["tables"].get("precondition-rounds").is_none(), "{document:#}");
    assert_eq!(document["precondition_settled"], false);
    // The limit does not apply to the layout of the requested size.
    let pass_bytes = document["precondition_pass_bytes"].as_u64().unwrap();
    assert!((64 << 20..128 << 20).contains(&pass_bytes), "{pass_bytes}");
    measured(&document["figures"]["max_iops"]);
}

#[test]
fn a_signal_keeps_the_rounds_that_were_recorded() {
    let place = Place::beside();
    let mut command = place.command("calibrate");
    command.args(["--brief", "--size", "64M", "--precondition", "--precondition-round", "1s"]);
    let is_round = |phase: &Value| phase["label"] == "precondition/round";
    let rounds = |manifest: &Value| {
        let phases = manifest["phases"].as_array();
        phases.map_or(0, |phases| phases.iter().filter(|phase| is_round(phase)).count())
    };
    let mut child = place.start(command.arg(place.data()), |manifest| rounds(manifest) >= 1);
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.left_in_data(), Vec::<String>::new(), "no test file is left");
    let report = run(place.command("report").args(["--json", "last"])).json();
    let rounds = report["tables"]["precondition-rounds"].as_array();
    assert!(!rounds.unwrap().is_empty(), "{report:#}");
}

#[test]
fn what_is_only_read_is_not_preconditioned() {
    let place = Place::beside();
    let file = place.file("data.dat");
    std::fs::write(&file, vec![1; 8 << 20]).unwrap();
    let said = refused(&place, place.command("calibrate").arg("--precondition").arg(&file));
    assert!(said.contains("it is only read"), "{said}");
    for words in [["--precondition", "--read-only"], ["--precondition", "--buffered"]] {
        let ran = run(place.command("calibrate").args(words).arg(place.data()));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
    }
    for round in ["0s", "2h", "10"] {
        let mut command = place.command("calibrate");
        let ran = run(command.args(["--precondition", "--precondition-round", round]).arg(&file));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
    }
}
