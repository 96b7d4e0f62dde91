//! Checks the test devices by means independent of Blockstone: dd, the clock and the kernel's own
//! files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{
    Caps, CpuHog, DeviceSpec, DiskArray, FileKind, FileSystem, LoopDevice, ScratchDir, ZramDevice,
    require, run,
};

/// Set in a child process of a test below; holds the path to write the backing file's name to.
const HOLD: &str = "BLOCKSTONE_TEST_HOLD";

fn small(size_mib: u64) -> DeviceSpec {
    DeviceSpec { size: Bytes::mib(size_mib), ..DeviceSpec::default() }
}

/// Returns the rate of direct 4 KiB reads or writes per second, as dd issues them one at a time.
fn dd_iops(device: &LoopDevice, arguments: &[&str], count: u64) -> f64 {
    let start = Instant::now();
    let ran = run(device
        .command("dd")
        .args(["bs=4k", "status=none", &format!("count={count}")])
        .args(arguments));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    count as f64 / start.elapsed().as_secs_f64()
}

#[test]
fn a_read_cap_is_kept_and_a_changed_one_too() {
    require!(Root, Loop, Blkio);
    let caps = Caps { read_iops: Some(200), ..Caps::default() };
    let mut device = LoopDevice::create(DeviceSpec { caps, ..small(64) }).unwrap();
    let input = format!("if={}", device.device().display());
    let read = [&input, "of=/dev/null", "iflag=direct"];

    let capped = dd_iops(&device, &read, 400);
    assert!((capped - 200.0).abs() < 20.0, "the cap is 200, dd saw {capped:.0}");

    // Even a busy machine reaches this rate with one request at a time.
    device.set_caps(Caps { read_iops: Some(500), ..Caps::default() }).unwrap();
    let raised = dd_iops(&device, &read, 1_000);
    assert!((raised - 500.0).abs() < 50.0, "the cap is 500, dd saw {raised:.0}");

    let start = Instant::now();
    let outside = run(Command::new("dd").args(["bs=4k", "count=1000", "status=none"]).args(read));
    assert_eq!(outside.code, Some(0), "{}", outside.stderr);
    assert!(start.elapsed() < Duration::from_millis(1_800), "only the group's members are capped");
}

#[test]
fn disks_of_an_array_keep_each_its_own_cap() {
    require!(Root, Loop, Blkio);
    let capped = |read_iops| {
        let caps = Caps { read_iops: Some(read_iops), ..Caps::default() };
        LoopDevice::create(DeviceSpec { caps, ..small(16) }).unwrap()
    };
    let array = DiskArray::new(vec![capped(300), capped(600)]).unwrap();
    for (device, cap) in array.disks().iter().zip([300.0, 600.0]) {
        let input = format!("if={}", device.device().display());
        let start = Instant::now();
        let read = ["bs=4k", "count=600", "status=none", "of=/dev/null", "iflag=direct"];
        let ran = run(array.command("dd").args(read).arg(input));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let seen = 600.0 / start.elapsed().as_secs_f64();
        assert!((seen / cap - 1.0).abs() < 0.15, "the cap is {cap}, dd saw {seen:.0}");
    }
}

#[test]
fn a_blank_device_holds_zeros_that_were_written() {
    require!(Root, Loop);
    let device = LoopDevice::create(small(4)).unwrap();
    device.blank().unwrap();
    let bytes = fs::read(device.device()).unwrap();
    assert!(bytes.len() == 4 << 20 && bytes.iter().all(|&byte| byte == 0));
    let backing = fs::metadata(device.backing_file()).unwrap();
    assert!(backing.blocks() * 512 >= 4 << 20, "no holes: {}", backing.blocks());
}

#[test]
fn a_write_cap_holds_on_a_file_system() {
    require!(Root, Loop, Blkio, Xfs);
    let caps = Caps { write_iops: Some(500), ..Caps::default() };
    let file_system = Some(FileSystem::Xfs);
    let device = LoopDevice::create(DeviceSpec { caps, file_system, ..small(320) }).unwrap();
    let target = device.mount_point().unwrap().join("file");
    FileKind::Real.create(&target, Bytes::mib(8)).unwrap();
    let output = format!("of={}", target.display());
    let seen = dd_iops(&device, &["if=/dev/zero", &output, "oflag=direct", "conv=notrunc"], 1_000);
    assert!((seen - 500.0).abs() < 50.0, "the cap is 500, dd saw {seen:.0}");
}

#[test]
fn the_backing_file_is_written_in_full_and_read_past_the_page_cache() {
    require!(Root, Loop);
    let device = LoopDevice::create(small(64)).unwrap();
    let backing = device.backing_file();
    let map = run(Command::new("filefrag").arg("-v").arg(&backing));
    assert_eq!(map.code, Some(0), "{}", map.stderr);
    assert!(!map.stdout.contains("unwritten"), "{}", map.stdout);
    let name = device.device().file_name().unwrap().to_str().unwrap().to_owned();
    let direct = fs::read_to_string(format!("/sys/block/{name}/loop/dio")).unwrap();
    assert_eq!(direct.trim(), "1");
}

#[test]
fn a_full_file_system_says_so() {
    require!(Root, Loop);
    let file_system = Some(FileSystem::Ext4);
    let device = LoopDevice::create(DeviceSpec { file_system, ..small(64) }).unwrap();
    device.fill(Bytes::mib(1)).unwrap();
    let target = device.mount_point().unwrap().join("file");
    let error = fs::write(&target, vec![1; 4 << 20]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_broken_device_answers_with_an_io_error() {
    require!(Root, Loop);
    let device = LoopDevice::create(small(16)).unwrap();
    device.fail_beyond(Bytes::mib(8)).unwrap();
    let input = format!("if={}", device.device().display());
    let read = |skip: &str| {
        let last = ["of=/dev/null", "bs=1M", "count=1", "iflag=direct", skip];
        run(Command::new("dd").arg(&input).args(last))
    };
    assert_eq!(read("skip=7").code, Some(0));
    let broken = read("skip=8");
    assert!(broken.stderr.contains("Input/output error"), "{}", broken.stderr);
}

#[test]
fn nothing_is_left_behind() {
    require!(Root, Loop, Blkio, Zram);
    let caps = Caps { read_iops: Some(100), ..Caps::default() };
    let file_system = Some(FileSystem::Ext4);
    let device = LoopDevice::create(DeviceSpec { caps, file_system, ..small(32) }).unwrap();
    let zram = ZramDevice::create(Bytes::mib(16)).unwrap();
    let backing = device.backing_file();
    // A command that outlives the device must not keep the control group alive.
    let mut sleeper = device.command("sleep").arg("60").spawn().unwrap();
    let disk = zram.device().to_owned();
    assert!(disk.exists() && backing.exists());

    drop((device, zram));
    assert!(!disk.exists() && !backing.exists());
    let dir = backing.parent().unwrap();
    let name = dir.file_name().unwrap().to_str().unwrap();
    assert!(!PathBuf::from(format!("/sys/fs/cgroup/blkio/blockstone-{name}")).exists());
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains(dir.to_str().unwrap()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

/// The test runs itself again as a child that is killed while it holds a device.
#[test]
fn what_a_killed_run_left_is_removed_at_the_next_use() {
    require!(Root, Loop);
    if let Some(path) = std::env::var_os(HOLD) {
        let file_system = Some(FileSystem::Ext4);
        let device = LoopDevice::create(DeviceSpec { file_system, ..small(32) }).unwrap();
        fs::write(path, device.backing_file().to_str().unwrap()).unwrap();
        sleep(Duration::from_mins(1));
        return;
    }
    let dir = ScratchDir::on_disk().unwrap();
    let note = dir.path().join("held");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_a_killed_run_left_is_removed_at_the_next_use"])
        .env(HOLD, &note)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let backing = wait_for(&note);
    assert!(backing.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(backing.exists(), "a killed process removes nothing");
    drop(LoopDevice::create(small(16)).unwrap());
    assert!(!backing.exists(), "the next use does");
}

/// Waits for `note` to appear and returns the path in it.
fn wait_for(note: &Path) -> PathBuf {
    for _ in 0..300 {
        if let Ok(text) = fs::read_to_string(note)
            && !text.is_empty()
        {
            return PathBuf::from(text);
        }
        sleep(Duration::from_millis(100));
    }
    panic!("the child made no device in 30 s");
}

#[test]
fn a_kept_device_is_found_again_with_its_caps() {
    require!(Root, Loop, Blkio);
    let name = format!("kept-{}", std::process::id());
    let caps = Caps { read_bytes_per_s: Some(100 << 20), ..Caps::default() };
    let made = LoopDevice::create_kept(&name, DeviceSpec { caps, ..small(16) }).unwrap();
    let (device, backing) = (made.device().to_owned(), made.backing_file());
    drop(made);
    assert!(backing.exists(), "it is kept");

    let found = LoopDevice::find_kept(&name).unwrap();
    assert_eq!((found.device(), found.spec().caps), (device.as_path(), caps));
    assert!(LoopDevice::kept().unwrap().contains(&name));
    let group = run(found.command("cat").arg("/proc/self/cgroup"));
    assert!(group.stdout.contains(&format!("blockstone-{name}")), "{}", group.stdout);

    LoopDevice::remove_kept(&name).unwrap();
    assert!(!backing.exists() && LoopDevice::find_kept(&name).is_err());
}

#[test]
fn a_hog_keeps_a_processor_busy_and_stops() {
    let busy = || {
        let text = fs::read_to_string("/proc/self/stat").unwrap();
        // Fields 16 and 17: user and system ticks of reaped children.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[13].parse::<u64>().unwrap() + fields[14].parse::<u64>().unwrap()
    };
    let before = busy();
    let hog = CpuHog::start(1).unwrap();
    sleep(Duration::from_secs(1));
    drop(hog);
    let ticks = busy() - before;
    assert!(ticks >= 30, "a second of one hog is about 100 ticks, this was {ticks}");
}
