//! Random reads and writes together, on a device whose rates in a mix follow from its limits for
//! reads and writes alone.

use std::path::Path;

use blockstone_base::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, FileSystem, LoopDevice, blockstone_binary, require, run,
};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema};

/// The kernel throttles reads and writes separately, so the slower of the two sets the pace of a
/// mix.
#[test]
fn a_device_that_caps_reads_and_writes_apart_is_told_from_the_formula() {
    require!(Root, Loop, Blkio);
    let place = Place::throttled();
    let caps = Caps { read_iops: Some(1_000), write_iops: Some(500), ..Caps::default() };
    let spec = DeviceSpec { size: Bytes::mib(512), file_system: Some(FileSystem::Ext4), caps };
    let device = LoopDevice::create(spec).unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "calibrate");
    command.args(["--brief", "--json", "--size", "128M", "--mix", "70:30,20:80"]);
    let ran = run(command.arg(device.mount_point().unwrap()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    // Reads alone and writes alone precede the mixes.
    let mixes = &document["tables"]["mixes"].as_array().unwrap()[2..];
    let shares: Vec<&str> = mixes.iter().map(|mix| mix["mix"].as_str().unwrap()).collect();
    assert_eq!(shares, ["70:30", "20:80"]);
    let number = |mix: &Value, key: &str| mix[key]["value"].as_f64().unwrap();
    // 1,000 ÷ 0.7 and 500 ÷ 0.8. Tokens saved while the generator stalls are used afterwards; if it
    // stalls for long, the interval shows it.
    for (mix, limit) in mixes.iter().zip([1_428.6, 625.0]) {
        println!("{mix}");
        for key in ["iops", "separate_iops"] {
            let [low, high] = ["low", "high"].map(|end| mix[key][end].as_f64().unwrap());
            let is_met = low < 1.25 * limit && high > 0.75 * limit;
            assert!(is_met, "{key} {low} to {high} is not {limit}");
        }
    }
    let (first, formula) = (number(&mixes[0], "iops"), number(&mixes[0], "formula_iops"));
    assert!(first > 1.3 * formula, "{first} is the rate of the formula, {formula}");
    let text = run(place.command("report").arg("last"));
    assert!(text.stdout.contains("70:30"), "{}", text.stdout);
}

#[test]
fn mixes_that_are_none_are_refused() {
    let place = Place::beside();
    let calibrate = |mix: &str, path: &Path| {
        refused(&place, place.command("calibrate").args(["--mix", mix]).arg(path))
    };
    for (mix, why) in [
        ("70", "no colon"),
        ("70:40", "do not add up to 100"),
        ("4294967295:2", "do not add up to 100"),
        ("100:0", "measured beside any mix"),
        ("70:30,50:50,70:30", "70:30 is named twice"),
    ] {
        let error = calibrate(mix, &place.data());
        assert!(error.contains(why), "{mix}: {error}");
    }
    let foreign = place.file("foreign");
    std::fs::write(&foreign, vec![0; 4 << 20]).unwrap();
    let error = calibrate("70:30", &foreign);
    assert!(error.contains("it is only read"), "{error}");
}
