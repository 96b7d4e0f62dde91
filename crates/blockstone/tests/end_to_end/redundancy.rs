//! The cost of mirroring, on disks whose limits the kernel enforces: the claims of `cargo xtask lab
//! redundancy`, smaller and shorter.

use blockstone_base::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, DiskArray, LoopDevice, blockstone_binary, require, run,
};
use serde_json::Value;

use super::Place;

const DISKS: usize = 4;
const DISK_IOPS: u64 = 400;
const SESSIONS: u32 = 64;

fn array() -> DiskArray {
    let iops = Some(DISK_IOPS);
    let caps = Caps { read_iops: iops, write_iops: iops, ..Caps::default() };
    let spec = DeviceSpec { size: Bytes::mib(96), file_system: None, caps };
    let disk = |_| {
        let disk = LoopDevice::create(spec).unwrap();
        // A run leaves its devices empty, so once is enough.
        disk.blank().unwrap();
        disk
    };
    DiskArray::new((0..DISKS).map(disk).collect()).unwrap()
}

/// The JSON document of a run with this number of sessions of one kind.
fn measured(place: &Place, array: &DiskArray, kind: &str, redundancy: &str) -> Value {
    let mut command = place.within(array.command(blockstone_binary()), "run");
    command.args([
        "--json",
        kind,
        &SESSIONS.to_string(),
        "--redundancy",
        redundancy,
        "--run-time",
        "4s",
    ]);
    // Four times as many rows as fit in the cache, and little redo next to the blocks.
    command.args(["--scale", "1M", "--cache", "8M", "--work-unit", "16", "--redo-size", "4M"]);
    command.args(["--torn-protection", "none", "--database-writers", "4"]);
    for disk in array.disks() {
        command.arg("--destroy").arg(disk.device()).arg(disk.device());
    }
    let ran = run(&mut command);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    ran.json()
}

#[track_caller]
fn figure(document: &Value, name: &str) -> f64 {
    document["figures"][name]["value"].as_f64().unwrap_or_else(|| panic!("{name}: {document:#}"))
}

/// Asserts equality within a tenth: a window of four seconds holds forty of the slices in which the
/// kernel admits I/O, and the tests may share the processors.
#[track_caller]
fn near(what: &str, seen: f64, aim: f64) {
    println!("{what}: {seen:.3}, should be {aim:.3}");
    assert!((seen / aim - 1.0).abs() <= 0.1, "{what}: {seen:.3} is not {aim:.3} within 10 %");
}

#[test]
fn readers_keep_all_disks_and_writers_share_them_with_their_copies() {
    require!(Root, Loop, Blkio);
    let (place, array) = (Place::throttled(), array());
    let readers = measured(&place, &array, "--readers", "high");
    let disks_iops = (DISKS as u64 * DISK_IOPS) as f64;
    near("reads a second with three copies", figure(&readers, "hardware_read_iops"), disks_iops);
    let latency_s = figure(&readers, "read_latency_ns_mean") / 1e9;
    let expected_s = f64::from(SESSIONS) / figure(&readers, "read_iops");
    near("latency of a read, by Little's law", latency_s, expected_s);

    let [external, normal] =
        ["external", "normal"].map(|name| measured(&place, &array, "--writers", name));
    let ratio = |name| figure(&normal, name) / figure(&external, name);
    // On a shared machine, a window completes more or fewer writes; the number of copies of each
    // write stays the same.
    let copies = |ran: &Value| figure(ran, "hardware_write_iops") / figure(ran, "write_iops");
    near("copies of a write, normal beside external", copies(&normal) / copies(&external), 2.0);
    let hardware = ratio("hardware_write_iops");
    assert!((0.8..1.25).contains(&hardware), "hardware writes, normal beside external: {hardware}");
    let share = ratio("write_iops");
    assert!((0.4..0.65).contains(&share), "workload writes, normal beside external: {share}");
    let [fewer, more] = [&external, &normal].map(free_buffer_waits_ns);
    assert!(more > fewer, "free buffer waits grow: {fewer} ns, then {more} ns");
}

/// Returns 0 where no session waited: events without time are not in the table.
fn free_buffer_waits_ns(document: &Value) -> u64 {
    let mut events = document["tables"]["database-time"].as_array().unwrap().iter();
    let wait = events.find(|wait| wait["event"] == "free buffer waits");
    wait.map_or(0, |wait| wait["time_ns"].as_u64().unwrap())
}
