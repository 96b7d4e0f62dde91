use blockstone_base::hint::Hint as _;
use std::process::Command;

use blockstone_base::{Bytes, identity::CapKind};
use blockstone_testkit::Caps;
use blockstone_testkit::{DeviceSpec, FileSystem, LoopDevice, ScratchDir, require};

use super::*;

const HERE: &str = "/";

#[test]
fn this_machine_is_what_uname_says_it_is() {
    let host = host(Path::new(HERE));
    let uname = rustix::system::uname();
    assert_eq!(host.kernel, uname.release().to_str().unwrap());
    assert_eq!(host.hostname, uname.nodename().to_str().unwrap());
    assert_eq!(host.architecture, uname.machine().to_str().unwrap());
    let allowed = std::thread::available_parallelism().unwrap().get() as u32;
    // The library rounds a quota down to whole processors.
    assert!((host.cpus_allowed_milli / 1000).abs_diff(allowed) <= 1, "{host:?}");
    assert!(host.memory_bytes > mem_available_bytes(Path::new(HERE)).unwrap());
}

#[test]
fn this_directory_is_where_findmnt_and_df_say_it_is() {
    let scratch = ScratchDir::on_disk().unwrap();
    let target = target(Path::new(HERE), scratch.path()).unwrap();
    let answer = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(scratch.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let file_system = target.file_system.as_ref().unwrap();
    let found = format!("{} {}", file_system.kind, file_system.mount_point);
    assert_eq!(
        found,
        answer("findmnt", &["-no", "FSTYPE,TARGET", "-T"])
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    );
    let free: u64 =
        answer("df", &["-B1", "--output=avail"]).lines().last().unwrap().trim().parse().unwrap();
    assert!(
        target.free_bytes.abs_diff(free) < 1 << 30,
        "{} against df's {free}",
        target.free_bytes
    );
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "the survey left something");
}

#[test]
fn a_mounted_loop_device_is_traced_to_the_disk_and_its_cap_is_found() {
    require!(Root, Loop, Blkio);
    // The cap holds for the processes that testkit starts, so this test starts itself there.
    if let Some(mount) = std::env::var_os("BLOCKSTONE_SURVEY_CHILD") {
        let target = target(Path::new(HERE), Path::new(&mount)).unwrap();
        println!("{:?}", target.caps);
        let kinds: Vec<_> = target.caps.iter().map(|cap| (cap.kind, cap.limit)).collect();
        assert_eq!(kinds, [(CapKind::ReadIops, 437)]);
        return;
    }
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(64),
        file_system: Some(FileSystem::Ext4),
        caps: Caps { read_iops: Some(437), ..Caps::default() },
    })
    .unwrap();
    let mount = device.mount_point().unwrap();
    let test =
        "survey::tests::real::a_mounted_loop_device_is_traced_to_the_disk_and_its_cap_is_found";
    let child = device
        .command(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("BLOCKSTONE_SURVEY_CHILD", &mount)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("1 passed"), "{said}");

    let whole = target(Path::new(HERE), &mount).unwrap();
    let below = target(Path::new(HERE), &device.backing_file()).unwrap();
    assert_eq!(whole.devices[0].beneath, [device.backing_file().display().to_string()]);
    assert_eq!(whole.devices[1..], below.devices);
    assert_eq!(whole.devices[0].size_bytes, 64 << 20);
    assert!(user_of(Path::new(HERE), device.device()).unwrap().unwrap().contains("mounted at"));
}

#[test]
fn an_unused_device_has_no_user_and_its_size() {
    require!(Root, Loop);
    let spec = DeviceSpec { size: Bytes::mib(8), file_system: None, caps: Caps::default() };
    let device = LoopDevice::create(spec).unwrap();
    assert_eq!(user_of(Path::new(HERE), device.device()).unwrap(), None);
    let target = target(Path::new(HERE), device.device()).unwrap();
    assert_eq!((target.kind, target.free_bytes), (PathKind::BlockDevice, 8 << 20));
}

#[test]
fn paths_that_are_no_storage_are_refused_with_a_hint() {
    let message = |path: &str| target(Path::new(HERE), Path::new(path)).unwrap_err().told();
    let missing = message("/nowhere/at/all");
    assert!(missing.starts_with("use /nowhere/at/all: nothing exists"), "{missing}");
    let null = message("/dev/null");
    assert!(null.contains("character device") && null.contains("\nhint: "), "{null}");
    let error = user_of(Path::new(HERE), Path::new("/")).unwrap_err().told();
    assert!(error.contains("not a block device"), "{error}");
}

#[test]
fn a_directory_in_memory_is_degraded() {
    require!(Tmpfs);
    let scratch = ScratchDir::in_memory().unwrap();
    let target = target(Path::new(HERE), scratch.path()).unwrap();
    assert_eq!(target.file_system.unwrap().kind, "tmpfs");
    assert!(!target.direct_io.capability.is_full());
}
