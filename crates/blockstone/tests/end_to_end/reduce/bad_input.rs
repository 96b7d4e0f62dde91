//! Calls that are refused: one line for the error, one line for the hint, exit code 2, nothing
//! written or lost.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::run;

use super::super::bad_input::refused;
use super::super::{names, signal};
use super::{Place, reduce};

#[test]
fn options_that_make_no_sense_are_refused() {
    let place = Place::beside();
    fs::write(place.file("some"), vec![7; 100_000]).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["--memory", "1M"], "1 MiB"),
        (&["--memory", "0"], "0 B"),
        (&["--memory", "much"], "much"),
        (&["--block-size", "12K"], "12 KiB"),
        (&["--block-size", "512B"], "512 B"),
        (&["--block-size", "2M"], "2 MiB"),
        (&["--offset", "100B"], "100"),
        (&["--offset", "512"], "`512B`"),
        (&["--offset", "1M"], "1048576"),
        (&["--offset", "-512"], "-5"),
        (&["--codec", "rar"], "rar"),
        (&["--codec", "zstd:99"], "zstd:99"),
        (&["--codec", "lz4,zstd:1,zstd:2,zstd:3,zstd:4"], "4"),
        (&["--model", "magic"], "magic"),
        (&["--model", "./no-such.toml"], "no-such.toml"),
        (&["--rate", "0"], "--rate 0"),
        (&["--threads", "0"], "--threads"),
        (&["--save", "x", "--resume", "y"], "cannot be used with"),
        (&["--merge", "--save", "x"], "cannot be used with"),
        (&["--size", "1M"], "--generate"),
        (&["--generate", "nonsense"], "nonsense"),
    ];
    for (arguments, expected) in cases {
        let what = refused(&place, reduce(arguments).arg(place.file("some")));
        assert!(what.contains(expected), "{arguments:?}: {what}");
    }
    refused(&place, &mut reduce(&[]));
}

#[test]
fn paths_that_hold_nothing_to_scan_are_refused() {
    let place = Place::beside();
    let (fifo, empty) = (place.file("a-fifo"), place.file("empty"));
    assert_eq!(run(Command::new("mkfifo").arg(&fifo)).code, Some(0));
    fs::create_dir(&empty).unwrap();
    let cases = [
        (place.file("nowhere"), "nowhere"),
        (fifo, "it is a FIFO"),
        ("/dev/null".into(), "character device"),
        (empty, "empty"),
    ];
    for (path, expected) in cases {
        let what = refused(&place, reduce(&[]).arg(&path));
        assert!(what.contains(expected), "{what}");
        // One path among others that cannot be scanned is an error too, and does not give a partial
        // answer.
        if !expected.starts_with("empty") {
            refused(&place, reduce(&[]).arg(place.scratch.path()).arg(&path));
        }
    }
}

#[test]
fn models_that_no_array_has_are_refused() {
    let place = Place::beside();
    let file = place.file("mine.toml");
    fs::write(place.file("some"), vec![7; 100_000]).unwrap();
    let good = "about = \"mine\"\nblock_size = \"8K\"\ncodec = \"lz4\"\ngranule = \"512B\"\n";
    let cases = [
        ("", "about"),
        ("\u{0}\u{1}", "mine.toml"),
        (&good.replace("8K", "6000B"), "block_size"),
        (&good.replace("8K", "2M"), "block_size"),
        (&good.replace("512B", "0"), "steps"),
        (&good.replace("512B", "64K"), "steps"),
        (&good.replace("lz4", "rar"), "rar"),
        (&good.replace("granule", "grain"), "grain"),
        (&format!("{good}smallest = \"1M\"\n"), "at least"),
        (&format!("{good}counted_below = 0.0\n"), "counted_below"),
        (&format!("{good}counted_below = 1.5\n"), "1.5"),
        (&format!("{good}counted_below = nan\n"), "counted_below"),
        (&format!("{good}zeros = \"gone\"\n"), "gone"),
        (&format!("{good}deduplicates = \"maybe\"\n"), "deduplicates"),
        (&good.replace("\"mine\"", "[["), "mine.toml"),
    ];
    for (text, expected) in cases {
        fs::write(&file, text).unwrap();
        let what = refused(&place, reduce(&["--model"]).arg(&file).arg(place.file("some")));
        assert!(what.contains("mine.toml"), "{text}: {what}");
        assert!(what.contains(expected), "{text}: {what}");
    }
    let what = refused(&place, reduce(&["--model"]).arg(place.data()).arg(place.file("some")));
    assert!(what.contains("data"), "{what}");
}

#[test]
fn nothing_is_written_where_something_is() {
    let place = Place::beside();
    let full = place.file("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "dear to me").unwrap();
    let dear = || {
        assert_eq!(names(&full), ["mine"]);
        assert_eq!(fs::read_to_string(full.join("mine")).unwrap(), "dear to me");
    };
    let what = refused(&place, reduce(&["--save"]).arg(&full).arg(place.data()));
    assert!(what.contains("full") && what.contains("not empty"), "{what}");
    dear();
    let what = refused(&place, reduce(&["--generate", "mixed"]).arg(&full));
    assert!(what.contains("full"), "{what}");
    dear();
    let what = refused(&place, reduce(&["--generate", "mixed"]).arg(full.join("mine")));
    assert!(what.contains("mine"), "{what}");
    dear();
    let what = refused(&place, reduce(&["--save"]).arg(full.join("mine")).arg(place.data()));
    assert!(what.contains("mine"), "{what}");
    dear();
    let new = place.file("new");
    let cases: &[(&[&str], &str)] = &[
        (&["--size", "100B"], "100 B"),
        (&["--size", "900T"], "are free"),
        (&["--files", "0"], "--files"),
    ];
    for (arguments, expected) in cases {
        let what = refused(&place, reduce(&["--generate", "random"]).args(*arguments).arg(&new));
        assert!(what.contains(expected), "{what}");
    }
    let what = refused(&place, reduce(&["--generate", "random"]).arg(&new).arg(place.file("b")));
    assert!(what.contains("one directory"), "{what}");
    let empty = place.file("empty");
    fs::create_dir(&empty).unwrap();
    refused(&place, reduce(&["--generate", "random", "--size", "900T"]).arg(&empty));
}

#[test]
fn a_data_set_that_is_interrupted_is_removed_and_the_directory_of_others_is_not() {
    let place = Place::beside();
    let (new, mine) = (place.file("new"), place.file("mine"));
    fs::create_dir(&mine).unwrap();
    for dir in [&new, &mine] {
        let mut command = reduce(&["--generate", "random", "--size", "512M"]);
        let mut child = command.arg(dir).stderr(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_mins(1);
        while !dir.exists() || names(dir).is_empty() {
            assert!(Instant::now() < patience, "nothing is written");
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(&child, "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    assert_eq!(place.left_in_data(), ["mine"]);
    assert_eq!(names(&mine), Vec::<String>::new());
}
