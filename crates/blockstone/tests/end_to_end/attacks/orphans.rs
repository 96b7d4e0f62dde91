//! Files that killed runs leave, and a directory owner who turns them into a trap.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use blockstone_testkit::{Sleeper, require, run};

use super::databases::SMALL;
use super::{Place, STRANGER, refused};

const LEFT: &str = "blockstone-test-left.tmp";
const REFUSED: &[&str] = &["--block-size", "3K"];

/// Writes a file of rows at `path`, too old for an unlocked file of a live run.
fn leave(path: &Path) {
    fs::write(path, "rows").unwrap();
    File::open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

/// Keeps the file locked until the program has opened it, then gives its name to a link to a
/// directory.
fn replaced_by_a_link(place: &Place, verb: &str, options: &[&str], link: &Path) {
    let path = place.file(LEFT);
    leave(&path);
    chown(&path, Some(STRANGER), Some(STRANGER)).unwrap();
    let held = File::open(&path).unwrap();
    held.lock().unwrap();
    let mut command = place.command(verb);
    command.args(options).arg(place.data()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let descriptors = PathBuf::from(format!("/proc/{}/fd", child.id()));
    let opened = || {
        let open = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        open.flat_map(|entry| fs::read_link(entry.path())).any(|target| target == path)
    };
    while child.try_wait().unwrap().is_none() && !opened() {}
    fs::remove_file(&path).unwrap();
    symlink(link, &path).unwrap();
    drop(held);
    child.wait().unwrap();
    let _ = fs::remove_file(&path);
}

#[test]
fn a_link_that_takes_the_name_of_a_left_file_ends_no_process() {
    require!(Root);
    let place = Place::new();
    chown(place.data(), Some(STRANGER), Some(STRANGER)).unwrap();
    let elsewhere = place.scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "the administrator's").unwrap();
    let mut worker = Sleeper::start(Path::new("/bin/sleep"), &elsewhere).unwrap();
    for (verb, options) in [("calibrate", REFUSED), ("run", &SMALL)] {
        replaced_by_a_link(&place, verb, options, &elsewhere);
        assert!(worker.runs(), "{verb} {options:?}");
        assert!(elsewhere.join("file").exists(), "{verb} {options:?}");
    }
}

#[test]
fn a_call_that_is_refused_removes_nothing() {
    require!(Root);
    let place = Place::beside();
    let left = place.file(LEFT);
    leave(&left);
    let theirs = place.file("blockstone-test-theirs.tmp");
    fs::create_dir(&theirs).unwrap();
    leave(&theirs.join("file"));
    chown(&theirs, Some(STRANGER), Some(STRANGER)).unwrap();
    for (verb, options) in [
        ("calibrate", REFUSED),
        ("calibrate", &["--read-only", "--block-size", "3K"]),
        ("calibrate", &["--size", "900T"]),
        ("calibrate", &["--streams", "64", "--size", "4M"]),
        ("noise", &["--area", "900T"]),
        ("run", &["--scale", "900T"]),
    ] {
        refused(&place, place.command(verb).args(options).arg(place.data()));
        assert!(left.exists() && theirs.join("file").exists(), "{verb} {options:?}");
    }
    // A run that is not refused removes what killed runs of this user left, and nothing else.
    let ran = run(place.command("run").args(SMALL).arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert!(!left.exists() && theirs.join("file").exists());
}

#[test]
fn a_link_that_a_server_put_in_place_of_its_log_is_not_written_to() {
    require!(Root, Postgres);
    let place = Place::beside();
    let victim = place.runs().join("victim");
    fs::write(&victim, "the administrator's").unwrap();
    let programs = place.scratch.path().join("bin");
    fs::create_dir(&programs).unwrap();
    fs::set_permissions(place.scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let real = "/usr/lib/postgresql/15/bin";
    for (name, then) in [
        ("initdb", format!("{real}/initdb \"$@\" && ln -s {} server.log", victim.display())),
        ("postgres", format!("exec {real}/postgres \"$@\"")),
    ] {
        let path = programs.join(name);
        fs::write(&path, format!("#!/bin/sh\n{then}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = place.command("run");
    command.args(["--target", "postgres:scratch", "--pg-bin"]).arg(&programs).args(SMALL);
    let ran = run(command.arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "the administrator's");
}
