//! Bad input: one line for the error, one line for the hint, exit code 2, nothing written.

use std::process::Command;

use blockstone_base::Bytes;
use blockstone_testkit::{
    DeviceSpec, FileKind, FileSystem, LoopDevice, ScratchDir, blockstone_binary, require, run,
};

use super::{Place, completed, copy_binary, names};

/// Runs the command, checks the form of the refusal, and returns the line with the error.
#[track_caller]
pub fn refused(place: &Place, command: &mut Command) -> String {
    let before = place.left_in_data();
    let ran = run(command);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_eq!(ran.stdout, "", "a refusal is not an answer");
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "one line what, one line hint: {ran:#?}");
    assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{ran:#?}");
    assert_eq!(place.left_in_data(), before, "nothing is left in the directory under test");
    assert_eq!(names(&place.runs()), Vec::<String>::new(), "no recording is created");
    lines[0].to_owned()
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let place = Place::beside();
    let data = place.data();
    let cases: &[(&[&str], &str)] = &[
        (&["--size", "8Q"], "8Q"),
        (&["--block-size", "12K"], "power of two"),
        (&["--block-size", "100B"], "power of two"),
        (&["--block-size", "8192"], "`8192` has no unit; bytes are `8192B`"),
        (&["--block-size", "2M"], "largest"),
        (&["--block-size", "8K", "--size", "4K"], "at least"),
        (&["--size", "900T"], "are free"),
        (&["--max-latency", "20"], "`20` has no unit; seconds are `20s`"),
        (&["--quick", "--full"], "cannot be used with"),
        (&["--arrivals", "fixed"], "required"),
        (&["--rate", "0"], "greater than zero"),
        (&["--destroy", "/dev/null"], "PATH names another device"),
        (&["--read-only", "--keep", "--no-such-option"], "--no-such-option"),
        (&["--require", "flux-capacitor"], "no such capability"),
    ];
    for (arguments, expected) in cases {
        let what = refused(&place, place.command("calibrate").args(*arguments).arg(&data));
        assert!(what.contains(expected), "{arguments:?}: {what}");
    }
}

#[test]
fn every_verb_that_reads_a_file_names_one_of_another_kind() {
    let place = Place::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let (file, out) = (scratch.path().join("file"), scratch.path().join("out"));
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let expected = format!("@{file}");
    let commands: &[&[&str]] = &[
        &["size", file],
        &["watch", "--import", file, "--record", out],
        &["trace", file],
        &["offload", "account", file],
        &["offload", "model", "--cells", "2", "--fit", file],
        &["flash", "sim", "--raw", "2G", "--format-level", "44", "--trace", file],
        &["flash", "fit", file],
        &["reduce", "--model", file, out],
        &["run", "--target", "instance", "--conf", file, out],
        &["size", "--iops", "100", "--disk", "180iops", "--expect", &expected],
    ];
    let kinds: &[(&[u8], &str)] = &[
        (b"%PDF-1.7\n", "it is a PDF document"),
        (b"SQLite format 3\0", "it is an SQLite database"),
    ];
    for arguments in commands {
        for (bytes, expected) in kinds {
            std::fs::write(file, bytes).unwrap();
            let mut command = Command::new(blockstone_binary());
            let what = refused(&place, command.args(*arguments));
            assert!(what.contains(expected), "{arguments:?}: {what}");
        }
    }
}

#[test]
fn paths_that_cannot_be_measured_are_refused() {
    let place = Place::beside();
    let what = refused(&place, place.command("calibrate").arg(place.file("nowhere")));
    assert!(what.contains("nowhere"), "{what}");
    let what = refused(&place, place.command("calibrate").arg("/dev/null"));
    assert!(what.contains("/dev/null"), "{what}");
    FileKind::Real.create(&place.file("small"), Bytes(4096)).unwrap();
    let what = refused(&place, place.command("calibrate").arg(place.file("small")));
    assert!(what.contains("at least"), "{what}");
    let file = place.file("small");
    let what = refused(&place, place.command("calibrate").args(["--size", "1G"]).arg(&file));
    assert!(what.contains("size"), "{what}");
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_measured() {
    require!(Root);
    let place = Place::beside();
    let data = place.data();
    for page in ["/nowhere/at/all/page.html", "/tmp"] {
        let what = refused(&place, place.command("run").args(["--html", page]).arg(&data));
        assert!(what.contains("directory"), "{what}");
    }
    // A user without write permission, with a copy of the binary that it may execute.
    let binary = place.file("blockstone");
    copy_binary(&binary);
    let runs = place.runs();
    std::fs::create_dir_all(&runs).unwrap();
    std::os::unix::fs::chown(&runs, Some(65534), None).unwrap();
    for (path, mode) in [(place.scratch.path(), "a+rx"), (&runs, "a+rx"), (&data, "a+rx,go-w")] {
        assert_eq!(run(Command::new("chmod").arg(mode).arg(path)).code, Some(0));
    }
    for verb in ["run", "calibrate"] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        command.arg("--runs-dir").arg(&runs).arg(verb).arg(&data);
        let what = refused(&place, &mut command);
        assert!(what.contains("ermission denied"), "{verb}: {what}");
    }
}

#[test]
fn a_file_that_is_not_ours_is_never_written() {
    let place = Place::beside();
    let file = place.file("somebody.dat");
    FileKind::Real.create(&file, Bytes::mib(16)).unwrap();
    let before = std::fs::read(&file).unwrap();
    let what = refused(&place, place.command("calibrate").arg("--file").arg(&file));
    assert!(what.contains("not written by Blockstone"), "{what}");
    let ran = place.calibrate(&[], &file);
    completed(&ran);
    assert!(ran.json()["figures"]["max_write_iops"]["unmeasured"].is_string());
    assert!(std::fs::read(&file).unwrap() == before, "a foreign file keeps its content");
    assert_eq!(place.left_in_data(), ["somebody.dat"]);
}

#[test]
fn the_recording_stays_out_of_the_directory_under_test() {
    let place = Place::beside();
    let data = place.data();
    let what = refused(&place, place.command("calibrate").arg("--out").arg(&data).arg(&data));
    assert!(what.contains("directory under test"), "{what}");
    std::fs::write(place.file("full"), "x").unwrap();
    let occupied = place.data();
    let other = place.scratch.path();
    let what = refused(&place, place.command("calibrate").arg("--out").arg(&occupied).arg(other));
    assert!(what.contains("data"), "{what}");
}

#[test]
fn a_directory_without_space_or_permission_is_refused() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(64),
        file_system: Some(FileSystem::Ext4),
        ..DeviceSpec::default()
    })
    .unwrap();
    let mount = device.mount_point().unwrap();
    device.fill(Bytes::mib(2)).unwrap();
    let what = refused(&place, place.command("calibrate").arg(&mount));
    assert!(what.contains("are free"), "{what}");
    std::fs::remove_file(mount.join("filler")).unwrap();
    let remount = |how: &str| {
        let ran = run(Command::new("mount").args(["-o", how]).arg(&mount));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    };
    remount("remount,ro");
    let what = refused(&place, place.command("calibrate").arg(&mount));
    assert!(what.contains("create"), "{what}");
    remount("remount,rw");
}

#[test]
fn a_device_is_named_twice_unmounted_and_empty_or_refused() {
    require!(Root, Loop);
    let place = Place::beside();
    let spec = DeviceSpec { size: Bytes::mib(64), ..DeviceSpec::default() };
    let mounted =
        LoopDevice::create(DeviceSpec { file_system: Some(FileSystem::Ext4), ..spec }).unwrap();
    let full = LoopDevice::create(spec).unwrap();
    let twice = |device: &LoopDevice| {
        let mut command = place.command("calibrate");
        command.arg(device.device()).arg("--destroy").arg(device.device());
        command
    };
    let what = refused(&place, place.command("calibrate").arg(full.device()));
    assert!(what.contains("would destroy"), "{what}");
    let what = refused(&place, &mut twice(&mounted));
    assert!(what.contains("mounted"), "{what}");
    // The backing file of a device without a file system holds random data, whose first byte may be
    // zero.
    let what = refused(&place, &mut twice(&full));
    assert!(what.contains("not empty: it holds data, at byte "), "{what}");
}
