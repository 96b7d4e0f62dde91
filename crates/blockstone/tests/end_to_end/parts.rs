//! Parts of a file, and numbers of streams.

use std::fs::File;
use std::os::unix::fs::FileExt;

use blockstone_base::rng;
use blockstone_testkit::run;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema};

const MIB: u64 = 1 << 20;

#[test]
fn only_the_part_that_was_named_is_read() {
    let place = Place::beside();
    let path = place.file("half");
    let file = File::create_new(&path).unwrap();
    // A hole of 64 MiB, then 64 MiB of data.
    let mut data = vec![0; MIB as usize];
    for at in 64..128 {
        rng::fill(at, &mut data);
        file.write_all_at(&data, at * MIB).unwrap();
    }
    file.sync_all().unwrap();
    let part = ["--offset", "64M", "--span", "48M", "--streams", "1,3"];
    let ran = place.calibrate(&part, &path);
    let document = ran.json();
    keeps_to_its_schema(&document);
    assert_eq!(document["settings"]["offset_bytes"], 64 * MIB);
    assert_eq!(document["settings"]["size_bytes"], 48 * MIB);
    let sample = &document["file"]["sample"];
    assert_eq!(sample["zero_bytes"], 0, "no block of the hole is in the sample: {sample:#}");
    let loads = document["tables"]["loads"].as_array().unwrap();
    let of = |group: &'static str| loads.iter().filter(move |load| load["group"] == group);
    assert!(of("random-read").count() > 2);
    for load in loads.iter().filter(|load| load["group"] != "overhead") {
        assert_eq!(load["offset_bytes"], 64 * MIB, "{load:#}");
        assert!(load["span_bytes"].as_u64().unwrap() <= 48 * MIB, "{load:#}");
    }
    let streams: Vec<u64> =
        of("large-read").map(|load| load["workers"].as_u64().unwrap()).collect();
    assert_eq!(streams, [1, 3, 1, 3]);
    let text = run(place.command("report").arg("last")).stdout;
    assert!(text.contains("Only 48 MiB from 64 MiB on were measured"), "{text}");
    assert!(text.contains("Streams of 1 MiB reads"), "{text}");
}

#[test]
fn parts_and_streams_that_cannot_be_measured_are_refused() {
    let place = Place::beside();
    let path = place.file("foreign");
    std::fs::write(&path, vec![1; 64 << 20]).unwrap();
    for (arguments, path, why) in [
        (&["--span", "1G"][..], place.data(), "it is a directory"),
        (&["--offset", "1M"], place.data(), "it is a directory"),
        (&["--offset", "4K"], path.clone(), "not a multiple of 1 MiB"),
        (&["--offset", "64M"], path.clone(), "at least"),
        (&["--streams", "16,32", "--span", "20M"], path.clone(), "read 32 streams from 20 MiB"),
        (&["--streams", "1,2,3,4,5"], path.clone(), "5 numbers are named"),
        (&["--streams", "2,2"], path.clone(), "2 numbers are named"),
    ] {
        let error = refused(&place, place.command("calibrate").args(arguments).arg(&path));
        assert!(error.contains(why), "{arguments:?}: {error}");
    }
}
