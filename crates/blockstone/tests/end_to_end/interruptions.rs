//! Nothing is lost: however a run ends, it leaves a readable recording and no test file.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, FileSystem, LoopDevice, Ran, require, run};
use serde_json::Value;

use super::{Place, completed, names, phases, signal};

/// Starts a calibration and waits until its recording holds a measured random read.
fn start(place: &Place, path: &Path) -> Child {
    let mut command = place.command("calibrate");
    place.start(command.args(["--size", "256M"]).arg(path), |manifest| phases(manifest) >= 5)
}

/// The newest recording, reported as JSON.
fn report(place: &Place) -> Ran {
    run(place.command("report").args(["--json", "last"]))
}

#[test]
fn a_signal_closes_the_recording_and_removes_the_file() {
    for name in ["INT", "TERM"] {
        let place = Place::beside();
        let mut child = start(&place, &place.data());
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(place.left_in_data(), Vec::<String>::new(), "no test file is left");
        let document = report(&place).json();
        assert_eq!(document["end"]["signal"], format!("SIG{name}"));
        assert!(
            document["tables"]["rates"].as_array().unwrap().len() >= 4,
            "what was measured is there"
        );
    }
}

#[test]
fn a_killed_run_is_readable_and_the_next_removes_its_file() {
    let place = Place::beside();
    let mut child = start(&place, &place.data());
    signal(&child, "KILL");
    child.wait().unwrap();
    assert!(!place.left_in_data().is_empty(), "a killed run cannot remove its file");
    let document = report(&place).json();
    assert_eq!(document["end"]["state"], "running", "it never ended");
    assert!(document["tables"]["rates"].as_array().unwrap().len() >= 3);
    completed(&place.calibrate(&["--size", "64M"], &place.data()));
    assert_eq!(place.left_in_data(), Vec::<String>::new(), "the next run cleans up");
}

#[test]
fn a_vanished_directory_ends_the_run_with_what_was_measured() {
    let place = Place::beside();
    let mut child = start(&place, &place.data());
    std::fs::remove_dir_all(place.data()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let document = report(&place).json();
    let error = document["end"]["error"].as_str().unwrap();
    assert!(error.contains("vanished"), "{error}");
}

#[test]
fn a_device_that_fails_ends_the_run_with_what_was_measured() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(512),
        file_system: Some(FileSystem::Ext4),
        ..DeviceSpec::default()
    })
    .unwrap();
    let mut child = start(&place, &device.mount_point().unwrap());
    device.fail_beyond(Bytes::mib(1)).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let document = report(&place).json();
    let error = document["end"]["error"].as_str().unwrap();
    assert!(error.contains("Input/output error"), "{error}");
}

/// Runs on a device that works in some phase, and fails in a later one or between two.
fn fails_after(place: &Place, phase: &str) -> (Option<i32>, Value) {
    let size = Bytes::mib(256);
    let device = LoopDevice::create(DeviceSpec { size, ..DeviceSpec::default() }).unwrap();
    let mut command = place.command("calibrate");
    command.args(["--quick", "--read-only"]).arg(device.device());
    let done = |phases: &Value| {
        phases.as_array().is_some_and(|all| all.iter().any(|done| done["label"] == phase))
    };
    let mut child = place.start(&mut command, |manifest| done(&manifest["phases"]));
    device.fail_beyond(Bytes::mib(1)).unwrap();
    let code = child.wait().unwrap().code();
    (code, report(place).json())
}

#[test]
fn errors_are_judged_in_the_map_of_the_cache_and_between_two_phases() {
    require!(Root, Loop);
    for phase in ["cache-map/4M", "overhead/null"] {
        let (code, document) = fails_after(&Place::beside(), phase);
        let mut verdicts = document["verdicts"].as_array().unwrap().iter();
        let verdict = verdicts.find(|verdict| verdict["rule"] == "io-errors").unwrap();
        assert_eq!(verdict["outcome"], "fail", "{phase}: {document:#}");
        let evidence = verdict["evidence"].as_str().unwrap();
        assert!(evidence.contains("Input/output error"), "{phase}: {evidence}");
        assert_eq!(document["trustworthy"], false, "{phase}: {document:#}");
        // If fewer than half of the operations of a phase fail, the run continues.
        assert!(matches!(code, Some(2 | 3)), "{phase}: {code:?}");
        let measured = &document["tables"]["rates"];
        assert!(measured.as_array().is_some_and(|points| !points.is_empty()), "{phase}");
    }
}

#[test]
fn a_full_disk_under_the_test_file_is_a_clear_error() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(256),
        file_system: Some(FileSystem::Ext4),
        ..DeviceSpec::default()
    })
    .unwrap();
    let mount = device.mount_point().unwrap();
    // Another program takes the space between the check and the layout: from inside, a sparse file
    // that fills up looks like a quota or a second writer.
    let mut command = place.command("calibrate");
    command.args(["--size", "150M"]).arg(&mount);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    while names(&mount).iter().all(|name| !name.starts_with("blockstone-test")) {
        assert!(Instant::now() < patience, "no test file was created");
    }
    device.fill(Bytes::mib(1)).unwrap();
    let code = child.wait().unwrap().code();
    let left = names(&mount);
    assert!(left.iter().all(|name| !name.starts_with("blockstone-test")), "{left:?}");
    // The layout may have been faster than the filler; then the run goes through.
    if code != Some(0) {
        assert_eq!(code, Some(2));
        let document = report(&place).json();
        let error = document["end"]["error"].as_str().unwrap();
        assert!(error.contains("No space left"), "{error}");
    }
}
