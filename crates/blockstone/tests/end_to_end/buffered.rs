//! Sequential writes through the page cache, as returned and as flushed, on a device with a known
//! rate.

use blockstone_base::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, FileSystem, LoopDevice, blockstone_binary, require, run,
};

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema};

/// The cap limits what is flushed, not what is returned. Tokens that the bucket saved between
/// rounds are used by the next round.
#[test]
fn writes_return_faster_than_they_are_flushed() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let cap = Bytes::mib(50);
    let caps = Caps { write_bytes_per_s: Some(cap.get()), ..Caps::default() };
    let spec = DeviceSpec { size: Bytes::mib(512), file_system: Some(FileSystem::Ext4), caps };
    let device = LoopDevice::create(spec).unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "calibrate");
    let ran = run(command
        .args(["--brief", "--json", "--size", "64M", "--buffered-writes"])
        .arg(device.mount_point().unwrap()));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = ran.json();
    keeps_to_its_schema(&document);
    let writes = document["tables"]["buffered-writes"].as_array().unwrap();
    println!("{writes:#?}");
    assert!(document["buffered_written_bytes"].as_u64() > Some(0), "{document:#}");
    let cap = cap.get() as f64 / 1e6;
    let [returned, flushed, direct] =
        [0, 1, 2].map(|way| writes[way]["bytes_per_s"]["value"].as_f64().unwrap() / 1e6);
    assert!(flushed < returned, "{flushed} of {returned}");
    assert!(flushed > 0.3 * cap && flushed < 3.0 * cap, "{flushed} of {cap}");
    assert!(direct > 0.3 * cap && direct < 3.0 * cap, "{direct} of {cap}");
    let text = run(place.command("report").arg("last")).stdout;
    for way in ["buffered, as write(2) returned", "buffered, as fsync(2) returned", "direct, as"] {
        assert!(text.contains(way), "{text}");
    }
}

#[test]
fn there_must_be_one_directory_to_write_to() {
    let place = Place::beside();
    let file = place.file("foreign");
    std::fs::write(&file, vec![1; 8 << 20]).unwrap();
    let error = refused(&place, place.command("calibrate").arg("--buffered-writes").arg(&file));
    assert!(error.contains("it is not one directory"), "{error}");
}
