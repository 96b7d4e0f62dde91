//! Direct I/O that a file system serves through the page cache is detected by counting in the
//! kernel, and the same load on the same file system is not suspected if it is direct.

use std::process::Command;

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, FileSystem, LoopDevice, require, run};
use serde_json::Value;

use super::Place;

fn mounted(file_system: FileSystem) -> LoopDevice {
    let size = Bytes::mib(512);
    LoopDevice::create(DeviceSpec { size, file_system: Some(file_system), ..DeviceSpec::default() })
        .unwrap()
}

#[track_caller]
fn verdict(document: &Value) -> &Value {
    let mut verdicts = document["verdicts"].as_array().unwrap().iter();
    verdicts.find(|verdict| verdict["rule"] == "not-direct").unwrap()
}

#[track_caller]
fn counted(document: &Value, outcome: &str, evidence: &str) {
    let verdict = verdict(document);
    assert_eq!(verdict["outcome"], outcome, "{verdict}");
    assert!(verdict["evidence"].as_str().unwrap().contains(evidence), "{verdict}");
}

#[test]
fn a_calibration_counts_what_btrfs_puts_into_the_page_cache() {
    require!(Bpf, Loop, Btrfs);
    let place = Place::beside();
    let device = mounted(FileSystem::Btrfs);
    let dir = device.mount_point().unwrap();
    let plain = dir.join("no-checksums");
    std::fs::create_dir(&plain).unwrap();
    assert!(Command::new("chattr").arg("+C").arg(&plain).status().unwrap().success());
    let document = place.calibrate(&["--size", "64M"], &plain).json();
    counted(&document, "pass", "the kernel counted 0 pages");

    let document = place.calibrate(&["--size", "64M"], &dir).json();
    // Older kernels write directly, and then there is nothing to detect.
    if verdict(&document)["outcome"] == "fail" {
        counted(&document, "fail", "btrfs accepted O_DIRECT and used the page cache");
        // Which headlines exist depends on how much there was time for.
        let concerns = verdict(&document)["concerns"].to_string();
        assert!(!concerns.contains("max_iops"), "reads are direct: {concerns}");
    }
}

#[test]
fn a_run_counts_what_its_instance_puts_into_the_page_cache() {
    require!(Bpf, Loop, Btrfs, Xfs);
    let place = Place::beside();
    for (file_system, outcome) in [(FileSystem::Xfs, "pass"), (FileSystem::Btrfs, "fail")] {
        let device = mounted(file_system);
        let sizes = ["--scale", "32M", "--schemas", "1", "--cache", "16M"];
        let mut command = place.command("run");
        command.args(["--run-time", "2s", "--update-pct", "50", "--json"]).args(sizes);
        let ran = run(command.arg(device.mount_point().unwrap()));
        assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
        let document = ran.json();
        let found = verdict(&document);
        let evidence = found["evidence"].as_str().unwrap();
        assert!(evidence.contains("the kernel counted"), "{found}");
        assert!(found["outcome"] == outcome || evidence.contains("counted 0 pages"), "{found}");
    }
}
