//! Several directories, files and devices that are measured as one.

use std::path::{Path, PathBuf};

use blockstone_base::{Bytes, rng};
use blockstone_testkit::{
    Caps, DeviceSpec, FileSystem, LoopDevice, blockstone_binary, require, run,
};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, failed_rules, keeps_to_its_schema, names};

/// Returns the `--json` document of a quick calibration of all `paths`.
fn calibrate(place: &Place, arguments: &[&str], paths: &[&Path]) -> Value {
    let mut command = place.command("calibrate");
    let ran = run(command.args(["--brief", "--json"]).args(arguments).args(paths));
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

fn verdict<'a>(document: &'a Value, rule: &str) -> &'a Value {
    let verdicts = document["verdicts"].as_array().unwrap();
    verdicts.iter().find(|verdict| verdict["rule"] == rule).unwrap()
}

fn rows<'a>(document: &'a Value, table: &str) -> &'a [Value] {
    document["tables"][table].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the targets of the rows of a table that `wanted` selects.
fn targets(document: &Value, table: &str, wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let wanted = rows(document, table).iter().filter(|row| wanted(row));
    wanted.map(|row| row["target"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn directories_are_measured_as_one_and_each_has_its_part() {
    let place = Place::beside();
    let dirs = ["a", "b", "c"].map(|name| place.file(name));
    for dir in &dirs {
        std::fs::create_dir(dir).unwrap();
    }
    let paths = dirs.each_ref().map(PathBuf::as_path);
    let orion = place.scratch.path().join("orion");
    let orion_name = orion.to_str().unwrap();
    let asked = ["--size", "32M", "--matrix", "--orion", orion_name];
    let document = calibrate(&place, &asked, &paths);
    // On a shared machine, every cell may be condemned.
    for file in ["iops.csv", "mbps.csv", "lat.csv"] {
        let text = std::fs::read_to_string(orion.join(file)).unwrap();
        assert!(text.starts_with("Large/Small"), "{file}: {text}");
    }
    assert_eq!(document["settings"]["size_bytes"], 96 << 20);
    assert!(dirs.iter().all(|dir| names(dir).is_empty()), "the test files are gone");
    let expected = paths.map(|path| path.to_str().unwrap().to_owned());
    for path in &expected {
        let shared = targets(&document, "shared-devices", |row| row["other"] == **path);
        let others: Vec<&String> = expected.iter().filter(|other| *other != path).collect();
        assert_eq!(shared.iter().collect::<Vec<_>>(), others);
    }
    assert_eq!(targets(&document, "target-evidence", |row| row["hole_bytes"] == 0), expected);
    assert_eq!(targets(&document, "target-files", |row| row["ours"] == true), expected);
    assert!(failed_rules(&document).iter().all(|rule| rule != "corrupt" && rule != "io-errors"));
    let groups = ["random-read", "random-write", "large-read", "commit", "matrix", "confirm"];
    let loads = rows(&document, "loads").iter().filter(|load| load["part"] == "measured");
    for load in loads {
        let label = &load["point"];
        let of = |table: &str| {
            rows(&document, table).iter().filter(|row| row["point"] == *label).collect::<Vec<_>>()
        };
        let of_all = of("rates")[0]["iops"]["value"].as_f64().unwrap();
        let parts = of("target-shares");
        let part = |one: &&Value| one["iops"]["value"].as_f64().unwrap_or(0.0);
        let sum: f64 = parts.iter().map(part).sum();
        if groups.iter().any(|group| load["group"] == *group) {
            assert_eq!(parts.len(), 3, "{label}");
            assert!((sum / of_all - 1.0).abs() < 0.1, "{label}: {sum} of {of_all}");
        }
        if load["group"] == "random-read" {
            let even = |one: &&Value| (part(one) * 3.0 / of_all - 1.0).abs() < 0.25;
            assert!(parts.iter().all(even), "{label}: {parts:#?}");
            assert!(of("evidence")[0]["stamps_verified"].as_u64().unwrap() > 0, "{label}");
        }
    }
    let text = run(place.command("report").arg("last")).stdout;
    assert!(text.contains("3 targets measured as one"), "{text}");
    assert!(text.contains("are on the same device"), "{text}");
}

/// The slow one sets the pace of all, because each gets the same share of the load.
#[test]
fn the_slowest_is_named_and_limits_the_others() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let device = |read_iops| {
        let caps = Caps { read_iops, ..Caps::default() };
        let spec = DeviceSpec { size: Bytes::mib(512), file_system: Some(FileSystem::Ext4), caps };
        LoopDevice::create(spec).unwrap()
    };
    let (slow, fast) = (device(Some(100)), device(None));
    let mounts = [&fast, &slow].map(|device| device.mount_point().unwrap());
    let mut command = place.within(slow.command(blockstone_binary()), "calibrate");
    let ran = run(command.args(["--quick", "--json", "--size", "64M"]).args(&mounts));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = ran.json();
    let slowest = mounts[1].to_str().unwrap();
    let shares = &document["tables"]["target-shares"];
    assert_eq!(document["slowest_target"], slowest, "{shares:#}");
    let most = document["figures"]["max_iops"]["value"].as_f64().unwrap();
    assert!((most / 200.0 - 1.0).abs() < 0.25, "{most} is not twice the 100 of the slower");
    let text = run(place.command("report").arg("last")).stdout;
    assert!(text.contains(&format!("The slowest is {slowest}")), "{text}");
}

#[test]
fn a_target_that_lies_spoils_all() {
    let place = Place::beside();
    let (data, hole) = (place.file("data"), place.file("hole"));
    let mut bytes = vec![0; 32 << 20];
    rng::fill(7, &mut bytes);
    std::fs::write(&data, bytes).unwrap();
    std::fs::File::create_new(&hole).unwrap().set_len(32 << 20).unwrap();
    let document = calibrate(&place, &[], &[&data, &hole]);
    let verdict = verdict(&document, "hole");
    assert_eq!(verdict["outcome"], "fail", "{verdict}");
    assert!(verdict["evidence"].as_str().unwrap().starts_with(hole.to_str().unwrap()), "{verdict}");
}

#[test]
fn main_memory_beside_a_disk_is_found() {
    let place = Place::beside();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let document = calibrate(&place, &["--size", "32M"], &[&place.data(), memory.path()]);
    let verdict = verdict(&document, "memory-backed");
    assert_eq!(verdict["outcome"], "fail", "{verdict}");
    let evidence = verdict["evidence"].as_str().unwrap();
    assert!(evidence.starts_with(memory.path().to_str().unwrap()), "{evidence}");
}

#[test]
fn devices_are_read_and_written_as_one() {
    require!(Root, Loop);
    let place = Place::beside();
    let spec = || DeviceSpec { size: Bytes::mib(64), file_system: None, caps: Caps::default() };
    let devices = [(); 2].map(|()| LoopDevice::create(spec()).unwrap());
    for device in &devices {
        device.blank().unwrap();
    }
    let paths = devices.each_ref().map(|device| device.device().to_owned());
    let again = |path: &Path| ["--destroy".to_owned(), path.to_str().unwrap().to_owned()];
    let twice = paths.each_ref().map(|path| again(path)).concat();
    let arguments: Vec<&str> = twice.iter().map(String::as_str).collect();
    let paths = paths.each_ref().map(PathBuf::as_path);
    let error = refused(&place, place.command("calibrate").args(&arguments[..2]).args(paths));
    assert!(error.contains(paths[1].to_str().unwrap()), "{error}");
    let document = calibrate(&place, &arguments, &paths);
    assert!(failed_rules(&document).iter().all(|rule| rule != "corrupt" && rule != "io-errors"));
    let mut loads = rows(&document, "loads").iter();
    let load = loads.find(|load| load["group"] == "random-write").unwrap();
    let shares = rows(&document, "target-shares").iter();
    assert_eq!(shares.filter(|share| share["point"] == load["point"]).count(), 2);
}

#[test]
fn targets_that_do_not_go_together_are_refused() {
    let place = Place::beside();
    let (data, other) = (place.data(), place.file("other"));
    std::fs::create_dir(&other).unwrap();
    let file = place.file("foreign");
    std::fs::write(&file, vec![1; 8 << 20]).unwrap();
    for (arguments, paths, why) in [
        (&[][..], [&data, &data], "they are the same"),
        (&[], [&other, &file], "are measured apart"),
        (&["--keep"], [&data, &other], "each has a part"),
    ] {
        let error = refused(&place, place.command("calibrate").args(arguments).args(paths));
        assert!(error.contains(why), "{error}");
    }
}
