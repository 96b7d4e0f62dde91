//! `blockstone check metadata`: what was read from storage and what from memory, and what is left
//! behind.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use blockstone_testkit::{FileSystem, blockstone_binary, require, run};

use super::super::bad_input::refused;
use super::super::{Place, keeps_to_its_schema, names, signal};
use super::{class, mounted, outcome, row};

#[test]
fn only_what_was_read_is_called_storage() {
    require!(Root, Loop);
    let _turn = Place::new();
    let device = mounted(FileSystem::Ext4, 64);
    let dir = device.mount_point().unwrap();
    let mut check = Command::new(blockstone_binary());
    check.args(["check", "metadata", "--json", "--drop-caches", "--files", "2k"]).arg(&dir);
    let ran = run(&mut check);
    let document = ran.json();
    keeps_to_its_schema(&document);
    assert_eq!(class(&document, "stat/cold/one-directory/2000"), "storage", "{document:#}");
    assert_eq!(class(&document, "stat/one-directory/2000"), "cached", "{document:#}");
    assert_eq!(class(&document, "create-fsync/tree/2000"), "storage", "{document:#}");
    assert_eq!(outcome(&document, "cached-metadata"), "fail");
    let cold = row(&document, "metadata-details", "stat/cold/one-directory/2000");
    // Inodes of ext4 have 256 bytes.
    assert!(cold["read_bytes"].as_u64().unwrap() >= 2_000 * 256, "{cold}");
    assert_eq!(cold["operations"], 2_000, "{cold}");
    assert_eq!(names(&dir), ["lost+found"], "nothing is left");
}

#[test]
fn many_files_are_gone_after_an_interruption_and_after_a_kill() {
    let place = Place::new();
    for (name, code) in [("INT", Some(130)), ("KILL", None)] {
        let mut check = place.command("check");
        check.args(["metadata", "--files", "1M"]).arg(place.data());
        let check = check.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut check = check.unwrap();
        thread::sleep(Duration::from_millis(600));
        signal(&check, name);
        assert_eq!(check.wait().unwrap().code(), code);
    }
    assert_eq!(place.left_in_data().len(), 1, "what was killed is left");
    thread::sleep(Duration::from_millis(150));
    let mut next = place.command("check");
    next.args(["metadata", "--files", "100", "--shape", "tree"]).arg(place.data());
    assert_eq!(run(&mut next).code, Some(0));
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn metadata_of_what_is_no_directory_and_of_too_many_files_is_refused() {
    let place = Place::beside();
    let data = place.data().display().to_string();
    let file = place.file("file");
    fs::write(&file, "content").unwrap();
    let file = file.display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&["metadata"], "required"),
        (&["metadata", &file], "not a directory"),
        (&["metadata", &data, "--files", "99"], "from 100"),
        (&["metadata", &data, "--files", "101M"], "to 100M"),
        (&["metadata", &data, "--ranks", "0"], "0"),
        (&["metadata", &data, "--ranks", "4097"], "4096"),
        (&["metadata", &data, "--write", "2M"], "at most 1 MiB"),
        (&["metadata", &data, "--shape", "heap"], "heap"),
        (&["metadata", &data, "--drop-caches=none"], "none"),
    ];
    for (arguments, said) in cases {
        let what = refused(&place, place.command("check").args(*arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
    let check = place.command("check");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 1000; exec \"$@\"", "sh"]).arg(check.get_program());
    limited.args(check.get_args()).args(["metadata", &data, "--ranks", "4096"]);
    let what = refused(&place, &mut limited);
    assert!(what.contains("8192 open files, and this process may have 1000"), "{what}");
}
