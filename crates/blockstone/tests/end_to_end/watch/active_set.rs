//! `blockstone watch --active-set`.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, LoopDevice, ScratchDir, require, run};
use serde_json::Value;

use super::{O_DIRECT, Turn, keeps_to_its_schema, watch};

const BLOCK: u64 = 4096;
const HOT_BLOCKS: u64 = 1024;

/// Reads the blocks of a range of the device over and over, in an order without repetition.
fn read(path: &std::path::Path, done: &AtomicBool) {
    let file = File::options().read(true).custom_flags(O_DIRECT).open(path).unwrap();
    let mut memory = vec![0; 2 * BLOCK as usize];
    let start = memory.as_ptr().align_offset(BLOCK as usize);
    let block = &mut memory[start..start + BLOCK as usize];
    for index in (0..).take_while(|_| !done.load(Ordering::Relaxed)) {
        let at = 5000 + index * 389 % HOT_BLOCKS;
        file.read_exact_at(block, at * BLOCK).unwrap();
    }
}

fn row<'a>(document: &'a Value, view: &str, key: &str, name: &str) -> &'a Value {
    let rows = document["views"][view].as_array().unwrap();
    rows.iter().find(|row| row[key] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn a_hot_range_is_measured_within_two_percent_live_and_replayed() {
    require!(Root, Bpf, Loop);
    let _turn = Turn::alone();
    let size = Bytes::mib(64);
    let device = LoopDevice::create(DeviceSpec { size, ..DeviceSpec::default() }).unwrap();
    let path = device.device().to_str().unwrap();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let dir = dir.to_str().unwrap();
    let done = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| read(device.device(), &done));
        let options = ["--once", "--json", "--interval", "1s", "--for", "3s", "--no-bpf"];
        let ran = run(watch(&options).args(["--record", dir, "--active-set", path]));
        done.store(true, Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let live = ran.json();
    keeps_to_its_schema(&live);

    let disk = row(&live, "active-set", "object", path);
    println!("{disk}");
    let hot_bytes = (HOT_BLOCKS * BLOCK) as f64;
    // A machine that is too slow to read the range in a second shows less of it.
    let per_window = number(disk, "accesses_per_s") / number(disk, "windows") * 3.0;
    if per_window > 2.0 * HOT_BLOCKS as f64 {
        assert!((number(disk, "touched_bytes") / hot_bytes - 1.0).abs() < 0.02, "{disk}");
        assert!(number(disk, "again_share") > 0.98, "{disk}");
        // If a range is read in a loop, a cache holds all of the repeated reads, or none.
        let held = |cache: &str| number(row(&live, "cache-curve", "cache", cache), "held_share");
        assert!(held("8 MiB") > 0.5, "{:?}", live["views"]["cache-curve"]);
    }
    assert_eq!(disk["size_bytes"].as_f64(), Some(size.get() as f64));
    assert_eq!(disk["written_bytes"].as_f64(), Some(0.0));
    assert_eq!(disk["margin_share"].as_f64(), Some(0.0), "nothing is sampled");
    let curve = live["views"]["cache-curve"].as_array().unwrap();
    assert!(curve.iter().all(|row| row["device"] == path), "{curve:?}");

    let replayed = run(&mut watch(&["--replay", dir, "--once", "--json"])).json();
    for view in ["active-set", "cache-curve"] {
        assert_eq!(replayed["views"][view], live["views"][view], "the replay differs");
    }
}

#[test]
fn a_path_that_is_nowhere_is_refused() {
    let _turn = Turn::beside();
    let ran = run(&mut watch(&["--active-set", "/nowhere", "--once"]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("watch the active set of /nowhere"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
}
