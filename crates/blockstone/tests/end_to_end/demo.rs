//! `blockstone demo`: on a disk with and without privileges, in memory, refused, interrupted and
//! killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, FileSystem, LoopDevice, Ran, ScratchDir, require, run};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, copy_binary, keeps_to_its_schema, names, signal};

/// The promise, with what a busy machine adds.
const LIMIT: Duration = Duration::from_mins(1);

fn way<'a>(document: &'a Value, name: &str) -> &'a Value {
    let mut ways = document["tables"]["ways"].as_array().unwrap().iter();
    ways.find(|way| way["way"] == name).unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

fn condemned_by(document: &Value, name: &str) -> Vec<String> {
    let rules = way(document, name)["condemned_by"].as_array();
    rules.into_iter().flatten().map(|rule| rule.as_str().unwrap().to_owned()).collect()
}

/// Expects an honest figure and two that are condemned, for the reasons that they have.
#[track_caller]
fn shown(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    assert_eq!(document["shown"], true, "{document:#}");
    assert_eq!(condemned_by(&document, "honest"), [""; 0]);
    let sparse = condemned_by(&document, "sparse");
    assert!(sparse.iter().any(|rule| rule == "hole"), "{sparse:?}");
    let cached = condemned_by(&document, "page-cache");
    assert!(cached.iter().any(|rule| rule == "not-direct"), "{cached:?}");
    document
}

/// Groups that the program makes to cap itself.
fn caps() -> Vec<String> {
    let blkio = Path::new("/sys/fs/cgroup/blkio");
    let dir = if blkio.exists() { blkio } else { Path::new("/sys/fs/cgroup") };
    names(dir).into_iter().filter(|name| name.starts_with("blockstone-cap-")).collect()
}

#[test]
fn a_cap_that_root_may_set_is_named_and_lifted_again() {
    require!(Root, Loop, Blkio);
    let place = Place::new();
    let (_device, mount) = mounted(Bytes::mib(1024));
    let began = Instant::now();
    let ran = run(place.command("demo").arg("--json").arg(&mount));
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    let document = shown(&ran);
    let cap = way(&document, "cap");
    assert!(cap["warned_by"].as_str().unwrap().contains("throttled"), "{cap:#}");
    let of = |figure: &Value| figure["value"].as_f64().unwrap();
    assert!(of(&cap["iops"]) * 5.0 < of(&document["honest_iops"]), "{document:#}");
    assert_eq!(names(&mount), ["lost+found"]);
    assert_eq!(caps(), [""; 0]);
    let sparse = way(&document, "sparse");
    let id = sparse["recording"].as_str().unwrap();
    let again = run(place.command("report").args(["--json", id])).json();
    assert_eq!(again["figures"]["max_iops"]["condemned_by"], sparse["condemned_by"]);
    assert_eq!(names(&place.runs()).len(), 4);
}

#[test]
fn without_privileges_the_load_keeps_a_rate_and_says_so() {
    require!(Root);
    let _turn = Place::new();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("open");
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::chown(&dir, Some(65534), Some(65534)).unwrap();
    let modes = run(Command::new("chmod").arg("a+rx").arg(scratch.path()));
    assert_eq!(modes.code, Some(0));
    let program = dir.join("blockstone");
    copy_binary(&program);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    // Root's home is of no use to another user.
    command.args(["demo", "--json"]).current_dir(&dir).env_remove("HOME");
    let document = shown(&run(&mut command));
    let given = way(&document, "given-rate");
    let what = given["what"].as_str().unwrap();
    assert!(what.contains("not a cap") && what.contains("denied"), "{what}");
    assert_eq!(names(&dir), ["blockstone", "blockstone-runs"]);
}

#[test]
fn in_memory_nothing_stands() {
    require!(Tmpfs);
    let place = Place::beside();
    let memory = ScratchDir::in_memory().unwrap();
    let page = place.file("demo.html");
    let ran = run(place.command("demo").arg(memory.path()).arg("--html").arg(&page));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "no figure stands: the files are in memory",
        "This file is memory too",
        "O_DIRECT, which has no effect here",
        "no block device lies beneath it",
        "memory-backed condemns honest",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(names(memory.path()), [""; 0]);
    assert!(fs::read_to_string(page).unwrap().contains("memory-backed"));
}

#[test]
fn an_interruption_leaves_recordings_and_no_files() {
    let place = Place::beside();
    let mut command = place.command("demo");
    command.arg(place.data());
    let is_second = |_: &Value| names(&place.runs()).len() >= 2;
    let mut child = place.start(&mut command, is_second);
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.left_in_data(), [""; 0]);
    assert_eq!(place.manifest().unwrap()["end"]["signal"], "SIGINT");
}

#[test]
fn what_a_killed_demo_leaves_is_removed_by_the_next() {
    let place = Place::beside();
    let mut command = place.command("demo");
    command.arg(place.data()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let patience = Instant::now() + LIMIT;
    // The second file is the one that is a hole.
    while place.left_in_data().len() < 2 {
        assert!(Instant::now() < patience, "{:?}", place.left_in_data());
        thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "KILL");
    child.wait().unwrap();
    assert_eq!(place.left_in_data().len(), 2);
    let ran = run(&mut command);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert_eq!(place.left_in_data(), [""; 0]);
}

#[test]
fn where_no_file_can_be_made_it_says_so_and_leaves_nothing() {
    let place = Place::beside();
    let file = place.file("file");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let error = refused(&place, place.command("demo").arg(&file));
    assert!(error.contains("it is not a directory"), "{error}");
    let error = refused(&place, place.command("demo").arg(place.file("nowhere")));
    assert!(error.contains("nowhere"), "{error}");
    assert_eq!(names(&place.runs()), [""; 0]);
}

/// A new file system of this size.
fn mounted(size: Bytes) -> (LoopDevice, PathBuf) {
    let file_system = Some(FileSystem::Ext4);
    let device = LoopDevice::create(DeviceSpec { size, file_system, ..DeviceSpec::default() });
    let device = device.unwrap();
    let mount = device.mount_point().unwrap();
    (device, mount)
}

#[test]
fn a_full_and_a_read_only_file_system_are_clear_errors() {
    require!(Root, Loop);
    let place = Place::beside();
    let (_small, mount) = mounted(Bytes::mib(24));
    let error = refused(&place, place.command("demo").arg(&mount));
    assert!(error.contains("are free"), "{error}");
    let told = run(place.command("demo").arg(&mount)).stderr;
    assert!(told.contains("32 MiB are needed") && !told.contains("--size"), "{told}");
    let (_fixed, mount) = mounted(Bytes::mib(64));
    let remounted = run(Command::new("mount").args(["-o", "remount,ro"]).arg(&mount));
    assert_eq!(remounted.code, Some(0), "{remounted:#?}");
    let error = refused(&place, place.command("demo").arg(&mount));
    assert!(error.contains("Read-only file system"), "{error}");
}
