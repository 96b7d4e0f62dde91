//! Devices that `--destroy` must refuse, each used or filled in a different way, and that stay
//! unchanged.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use blockstone_base::{Bytes, rng};
use blockstone_testkit::{
    DeviceSpec, LoopDevice, ScratchDir, blockstone_binary, require, run, unmount,
};

use super::Place;
use super::bad_input::refused;

const SIZE: u64 = 64 << 20;

fn blank() -> LoopDevice {
    let spec = DeviceSpec { size: Bytes(SIZE), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    device.blank().unwrap();
    device
}

fn tool<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    let ran = run(Command::new(program).args(arguments));
    assert_eq!(ran.code, Some(0), "{program}: {ran:#?}");
    ran.stdout.trim().to_owned()
}

fn path(device: &Path) -> &str {
    device.to_str().unwrap()
}

/// Returns the common refusal of `calibrate`, `run` and `noise`, which must leave the device
/// unchanged.
#[track_caller]
fn refused_for(place: &Place, device: &Path) -> String {
    let before = std::fs::read(device).unwrap();
    let said = ["calibrate", "run", "noise"]
        .map(|verb| refused(place, place.command(verb).arg(device).arg("--destroy").arg(device)));
    // Each draws its own blocks, so each names another block that holds data.
    let what = |said: &str| said.split_once(", at byte").map_or(said, |(what, _)| what).to_owned();
    for other in &said[1..] {
        assert_eq!(what(&said[0]), what(other));
    }
    assert!(std::fs::read(device).unwrap() == before, "something was written");
    said[0].clone()
}

/// A loop device over a device or file, detached when it goes out of scope.
struct Over(PathBuf);

impl Over {
    fn new(arguments: &[&str], backing: &Path) -> Self {
        let words = [&["--find", "--show"], arguments, &[path(backing)]].concat();
        Self(PathBuf::from(tool("losetup", &words)))
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        run(Command::new("losetup").arg("--detach").arg(&self.0));
    }
}

/// A process that is ended when it goes out of scope.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        // Either call fails only if the process has already ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Expects that the device passes the guards, and that a later check fails.
#[track_caller]
fn accepted(place: &Place, device: &Path) {
    let mut command = place.command("calibrate");
    let said = refused(
        place,
        command.args(["--block-size", "3K"]).arg(device).arg("--destroy").arg(device),
    );
    assert!(said.contains("3 KiB"), "{said}");
}

#[test]
fn data_only_in_the_middle_are_found() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = blank();
    accepted(&place, device.device());
    let mut data = vec![0; 4 << 20];
    rng::fill(5, &mut data);
    let file = OpenOptions::new().write(true).open(device.device()).unwrap();
    file.write_all_at(&data, 29 << 20).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let said = refused_for(&place, device.device());
    assert!(said.contains("not empty: it holds data, at byte 3"), "{said}");
}

#[test]
fn file_systems_swap_and_partition_tables_are_named() {
    require!(Root, Loop, Xfs, Btrfs);
    let place = Place::beside();
    // XFS needs at least 300 MiB.
    let spec = DeviceSpec { size: Bytes::mib(320), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    for (arguments, name) in [
        (&["mkfs.ext4", "-q", "-F"][..], "ext2, ext3 or ext4"),
        (&["mkfs.xfs", "-q", "-f"], "XFS"),
        (&["mkfs.btrfs", "-q", "-f"], "btrfs"),
        (&["mkswap", "-q"], "a swap area"),
    ] {
        device.blank().unwrap();
        let words = [&arguments[1..], &[path(device.device())]].concat();
        tool(arguments[0], &words);
        let said = refused_for(&place, device.device());
        assert!(said.ends_with(&format!("not empty: it holds {name}")), "{said}");
    }
    device.blank().unwrap();
    let file = OpenOptions::new().write(true).open(device.device()).unwrap();
    file.write_all_at(&[0x55, 0xaa], 510).unwrap();
    drop(file);
    let said = refused_for(&place, device.device());
    assert!(said.contains("a partition table or boot sector"), "{said}");
}

#[test]
fn file_systems_with_files_that_begin_in_the_middle_are_found() {
    require!(Root, Loop, Xfs, Btrfs);
    let place = Place::beside();
    let spec = DeviceSpec { size: Bytes::mib(512), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    let mount = ScratchDir::on_disk().unwrap();
    let mut data = vec![0; 32 << 20];
    rng::fill(6, &mut data);
    for (program, force) in [("mkfs.ext4", "-F"), ("mkfs.xfs", "-f"), ("mkfs.btrfs", "-f")] {
        device.blank().unwrap();
        let inner = Over::new(&["--offset", "100M"], device.device());
        tool(program, &["-q", force, path(&inner.0)]);
        tool("mount", &[inner.0.as_path(), mount.path()]);
        let written = std::fs::write(mount.path().join("data"), &data);
        unmount(mount.path()).unwrap();
        written.unwrap();
        drop(inner);
        let said = refused_for(&place, device.device());
        assert!(said.contains("not empty: it holds data"), "{program}: {said}");
    }
}

#[test]
fn a_process_that_only_reads_it_keeps_a_device() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = blank();
    let reader =
        Command::new("sleep").arg("600").stdin(File::open(device.device()).unwrap()).spawn();
    let reader = Beside(reader.unwrap());
    let said = refused_for(&place, device.device());
    assert!(said.ends_with(&format!("open in process {} (sleep)", reader.0.id())), "{said}");
    drop(reader);
    accepted(&place, device.device());
}

#[test]
fn loop_devices_over_a_device_and_over_its_file_keep_it() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = blank();
    let upper = Over::new(&[], device.device());
    let said = refused_for(&place, device.device());
    let name = upper.0.file_name().unwrap().to_str().unwrap();
    assert!(said.ends_with(&format!("the loop device {name} stands on it")), "{said}");
    accepted(&place, &upper.0);
    drop(upper);
    let twin = Over::new(&[], &device.backing_file());
    let said = refused_for(&place, device.device());
    assert!(said.contains("stands on the same"), "{said}");
    drop(twin);
    accepted(&place, device.device());
}

#[test]
fn a_device_with_partitions_is_kept() {
    require!(Root, Loop);
    let place = Place::new();
    let device = blank();
    let divided = Over::new(&["--partscan"], &device.backing_file());
    // The first device is backed by the same file.
    tool("losetup", &[OsStr::new("--detach"), device.device().as_os_str()]);
    tool("addpart", &[path(&divided.0), "1", "2048", "65536"]);
    let said = refused_for(&place, &divided.0);
    assert!(said.contains("divided into partitions (") && said.ends_with("p1)"), "{said}");
    tool("delpart", &[path(&divided.0), "1"]);
    accepted(&place, &divided.0);
}

#[test]
fn swap_and_a_mount_in_another_namespace_keep_a_device() {
    require!(Root, Loop);
    let place = Place::new();
    let device = blank();
    let mount = ScratchDir::on_disk().unwrap();
    tool("mkfs.ext4", &["-q", "-F", path(device.device())]);
    let script = "mount \"$0\" \"$1\" && echo mounted && read -r end";
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "sh", "-c", script]).args([device.device(), mount.path()]);
    let inside = inside.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut inside = Beside(inside);
    let mut line = String::new();
    BufReader::new(inside.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "mounted\n");
    let mut command = place.command("calibrate");
    let said = refused(&place, command.arg(device.device()).arg("--destroy").arg(device.device()));
    assert!(said.contains("mounted at") && said.contains("in the mount namespace of"), "{said}");
    drop(inside);

    tool("mkswap", &["-q", path(device.device())]);
    tool("swapon", &[device.device()]);
    let mut command = place.command("calibrate");
    command.arg(device.device()).arg("--destroy").arg(device.device());
    let ran = run(&mut command);
    tool("swapoff", &[device.device()]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("it is in use: used as swap\n"), "{ran:#?}");
}

fn program(mut before: Command) -> Command {
    before.arg(blockstone_binary());
    before
}

#[test]
fn where_sysfs_or_processes_do_not_show_a_device_counts_as_used() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = blank();
    let hidden = |how: &[&str], script: &str| {
        let mut command = Command::new("unshare");
        command.args(how).args(["sh", "-c", &format!("{script} && exec \"$0\" \"$@\"")]);
        let mut command = place.within(program(command), "calibrate");
        command.arg(device.device()).arg("--destroy").arg(device.device());
        refused(&place, &mut command)
    };
    let said = hidden(&["--mount"], "mount -t tmpfs none /sys");
    assert!(said.contains("cannot tell whether it is in use: /sys/dev/block/"), "{said}");
    let said = hidden(&["--mount"], "mount -t tmpfs none /proc");
    assert!(said.contains("cannot tell whether it is in use: /proc/self/mountinfo"), "{said}");
    let said = hidden(&["--pid", "--fork", "--mount-proc"], "true");
    assert!(said.ends_with("processes outside of this container cannot be seen"), "{said}");
}

#[test]
fn a_device_without_bytes_is_refused() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = blank();
    OpenOptions::new().write(true).open(device.backing_file()).unwrap().set_len(0).unwrap();
    tool("losetup", &[OsStr::new("--set-capacity"), device.device().as_os_str()]);
    let said = refused_for(&place, device.device());
    assert!(said.ends_with("it has no bytes"), "{said}");
}

#[test]
fn what_a_calibration_leaves_may_be_overwritten_by_the_next() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = blank();
    let twice = [device.device().as_os_str(), OsStr::new("--destroy")];
    let mut command = place.command("calibrate");
    let ran = run(command.arg("--brief").args(twice).arg(device.device()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let bytes = std::fs::read(device.device()).unwrap();
    assert!(bytes[2 << 20..].chunks(4096).take(9000).all(|b| b.iter().any(|&byte| byte != 0)));
    let mut command = Command::new(blockstone_binary());
    command.args(["calibrate", "--block-size", "3K"]).args(twice).arg(device.device());
    let ran = run(command.arg("--runs-dir").arg(place.file("other")));
    assert!(ran.stderr.contains("3 KiB"), "{ran:#?}");
    // Another program uses a part of it.
    let file = OpenOptions::new().write(true).open(device.device()).unwrap();
    file.write_all_at(&vec![7; 4 << 20], 20 << 20).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let mut command = Command::new(blockstone_binary());
    command.arg("calibrate").args(twice).arg(device.device());
    let ran = run(command.arg("--runs-dir").arg(place.file("other")));
    assert!(ran.code == Some(2) && ran.stderr.contains("not empty"), "{ran:#?}");
}
