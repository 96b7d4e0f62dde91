//! `check write-order`: the file systems whose writers wait, and those whose writers do not.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{
    CpuHog, DeviceSpec, FileSystem, LoopDevice, Ran, ScratchDir, blockstone_binary, require, run,
};
use serde_json::Value;

use super::super::bad_input::refused;
use super::super::{Place, keeps_to_its_schema, names, signal};
use super::{class, mounted, outcome, row};

fn check(path: &Path, time: &str, options: &[&str]) -> Ran {
    let mut command = Command::new(blockstone_binary());
    command.args(["check", "write-order", "--json", "--for", time]).arg(path);
    run(command.args(options))
}

#[track_caller]
fn number(document: &Value, case: &str, key: &str) -> f64 {
    row(document, "write-order", case)[key].as_f64().unwrap()
}

const WRITTEN: [&str; 4] = ["overwrite", "unwritten", "sub-block", "second-pass"];
const CHANGED: [&str; 4] = ["hole", "append", "extend", "straddle"];

#[test]
fn writers_wait_on_ext4_where_they_change_where_blocks_lie() {
    require!(Bpf, Loop);
    let _turn = Place::new();
    let _hog = CpuHog::start(1).unwrap();
    let ext4 = mounted(FileSystem::Ext4, 160);
    let dir = ext4.mount_point().unwrap();
    let ran = check(&dir, "240ms", &[]);
    assert_eq!(ran.code, Some(0), "it warns: {ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    for mode in WRITTEN {
        assert_eq!(class(&document, mode), "scales", "{mode}: {document:#}");
    }
    for mode in CHANGED {
        assert_eq!(class(&document, mode), "serialises", "{mode}: {document:#}");
        assert!(number(&document, mode, "lock_time_share") >= 0.3, "{mode}: {document:#}");
        assert!(number(&document, mode, "own_lock_time_share") <= 0.02, "{mode}: {document:#}");
    }
    assert_eq!(class(&document, "readers"), "serialises", "{document:#}");
    assert_eq!(class(&document, "allocate-ahead"), "scales", "{document:#}");
    assert_eq!(outcome(&document, "appends-lost"), "pass", "{document:#}");
    assert_eq!(outcome(&document, "writers-wait"), "fail");
    assert_eq!(names(&dir), ["lost+found"], "nothing is left");
}

#[test]
fn writers_share_the_lock_of_a_file_on_xfs() {
    require!(Bpf, Loop, Xfs);
    let _turn = Place::new();
    let xfs = mounted(FileSystem::Xfs, 320);
    let document = check(&xfs.mount_point().unwrap(), "240ms", &[]).json();
    for mode in WRITTEN.iter().chain(&["hole", "straddle", "readers", "append", "allocate-ahead"]) {
        assert_eq!(class(&document, mode), "scales", "{mode}: {document:#}");
    }
    // A write that leaves a gap after the end of the file takes the lock exclusively.
    assert_eq!(class(&document, "extend"), "serialises", "{document:#}");
    assert!(number(&document, "append", "lock_time_share") <= 0.1, "{document:#}");
}

#[test]
fn without_privileges_no_class_of_writers_is_wrong() {
    require!(Root, Loop);
    let _turn = Place::new();
    let ext4 = mounted(FileSystem::Ext4, 160);
    let dir = ext4.mount_point().unwrap().join("open");
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::chown(&dir, Some(65534), Some(65534)).unwrap();
    let program = ScratchDir::on_disk().unwrap();
    let modes = run(Command::new("chmod").arg("a+rx").arg(program.path()));
    assert_eq!(modes.code, Some(0));
    let program = program.path().join("blockstone");
    fs::copy(blockstone_binary(), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.args(["check", "write-order", "--json", "--for", "120ms", "--writers", "4,1"]);
    let ran = run(command.arg(&dir));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let document = ran.json();
    for cells in document["tables"]["write-order-cells"].as_array().unwrap().chunks(2) {
        assert_eq!(cells[0]["mode"], cells[1]["mode"]);
        let writers = [&cells[0]["writers"], &cells[1]["writers"]];
        assert_eq!(writers, [1, 4], "{document:#}");
    }
    for mode in WRITTEN {
        assert_eq!(class(&document, mode), "unknown", "{mode}: {document:#}");
    }
    for mode in CHANGED {
        assert!(["serialises", "unknown"].contains(&class(&document, mode)), "{document:#}");
    }
    let share = &document["tables"]["write-order-writers"][0]["lock_time_share"];
    assert_eq!(share["unmeasured"], "unknown");
    assert_eq!(names(&dir), Vec::<String>::new());
}

#[test]
fn writers_that_cannot_be_tried_are_refused() {
    let place = Place::beside();
    let file = place.file("file");
    fs::write(&file, "small").unwrap();
    let file = file.display().to_string();
    let data = place.data().display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&[&file], "not written to"),
        (&[&data, "--writers", "0"], "0"),
        (&[&data, "--writers", "17"], "17"),
        (&[&data, "--writers", "2,0"], "0"),
        (&[&data, "--for", "0s"], "more than nothing"),
        (&[&data, "--for", "2min"], "at most 1min"),
        (&[], "required"),
    ];
    for (arguments, said) in cases {
        let mut command = place.command("check");
        let what = refused(&place, command.arg("write-order").args(*arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"small");
}

#[test]
fn writers_end_at_once_when_they_are_interrupted() {
    let place = Place::beside();
    let mut command = place.command("check");
    command.args(["write-order", "--json", "--for", "1min"]).arg(place.data());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Each side takes 20 s.
    std::thread::sleep(Duration::from_secs(1));
    let asked = Instant::now();
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn a_device_is_named_twice_and_its_writers_share_it() {
    require!(Bpf, Loop, Xfs);
    let _turn = Place::new();
    let spec = DeviceSpec { size: Bytes::mib(64), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    device.blank().unwrap();
    let path = device.device();
    let ran = check(path, "120ms", &[]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("would destroy"), "{ran:#?}");
    let name = path.display().to_string();
    for _ in 0..2 {
        let document = check(path, "120ms", &["--destroy", &name]).json();
        for mode in ["overwrite", "sub-block", "readers"] {
            assert_eq!(class(&document, mode), "scales", "{mode}: {document:#}");
        }
        let own = &document["tables"]["write-order"][0]["own_iops"];
        assert_eq!(own["unmeasured"], "unknown");
    }
    // The second check found the device cleared by the first.
    let xfs = mounted(FileSystem::Xfs, 320);
    let document = check(&xfs.mount_point().unwrap(), "60ms", &["--buffered"]).json();
    // If writers spin, on many processors, the result is undecided.
    let found = class(&document, "overwrite");
    assert!(["serialises", "unknown"].contains(&found), "{document:#}");
    assert_eq!(outcome(&document, "appends-lost"), "pass", "{document:#}");
}
