//! `blockstone check coherence`: pairs for which it is known what they see of each other.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{
    DeviceSpec, FileSystem, LoopDevice, Ran, ScratchDir, blockstone_binary, require, run,
};
use serde_json::Value;

use super::super::bad_input::refused;
use super::super::{Place, failed_rules, keeps_to_its_schema, names};
use super::{class, row, rows};

/// Cleanup of one test: a mount or a loop device.
pub struct Undo(&'static str, Vec<PathBuf>);

impl Drop for Undo {
    fn drop(&mut self) {
        let words: &[&str] = if self.0 == "losetup" { &["--detach"] } else { &[] };
        run(Command::new(self.0).args(words).args(&self.1));
    }
}

pub fn mounted(options: &str, what: &Path, at: &Path) -> Undo {
    fs::create_dir_all(at).unwrap();
    let ran = run(Command::new("mount").args(options.split(' ')).arg(what).arg(at));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    Undo("umount", vec![at.to_owned()])
}

/// A second loop device over the same file.
fn twin(device: &LoopDevice) -> (PathBuf, Undo) {
    let words = ["--find", "--show", "--direct-io=on"];
    let ran = run(Command::new("losetup").args(words).arg(device.backing_file()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let twin = PathBuf::from(ran.stdout.trim());
    (twin.clone(), Undo("losetup", vec![twin]))
}

fn checked(paths: &[&Path], more: &[&str]) -> Ran {
    let mut check = Command::new(blockstone_binary());
    check.args(["check", "coherence", "--json", "--rounds", "5", "--patience", "200ms"]);
    run(check.args(more).args(paths))
}

/// Asserts that everything that could be tried is linearizable.
#[track_caller]
fn is_linearizable(document: &Value) {
    assert!(rows(document, "coherence-cases").next().is_some());
    for cell in rows(document, "coherence-cases") {
        let fine = cell["class"] == "linearizable" || cell["error"].is_string();
        assert!(fine, "{cell:#}");
    }
}

#[test]
fn one_file_system_on_two_mounts_and_for_two_processes_is_linearizable() {
    require!(Root, Loop);
    let _turn = Place::new();
    let device = super::mounted(FileSystem::Ext4, 64);
    let dir = device.mount_point().unwrap();
    let scratch = ScratchDir::on_disk().unwrap();
    let other = scratch.path().join("bound");
    let bound = mounted("--bind", &dir, &other);
    let ran = checked(&[&dir, &other], &[]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    is_linearizable(&document);
    let wanted = [
        "ping-pong/buffered/held",
        "ping-pong/direct/direct",
        "ping-pong/mapped/mapped",
        "truncate/mapped",
        "free-run/buffered/held",
        "free-run/direct/direct",
        "false-sharing/fdatasync",
        "lock/exclusion",
        "lock/counter",
        "name/list",
        "name/rename-over",
        "name/list-removed",
        "name/open-removed",
        "name/replace",
        "name/list-renamed",
        "name/list-removed-elsewhere",
        "name/open-removed-elsewhere",
        "name/held-removed",
        "name/append",
    ];
    for case in wanted {
        assert_eq!(class(&document, case), "linearizable", "{case}: {document:#}");
    }
    let cell = row(&document, "coherence-cases", "ping-pong/buffered/held");
    assert!(cell["lag_ns_p99"].as_u64().is_some(), "{cell}");
    assert!(rows(&document, "coherence-witness").next().is_none(), "{document:#}");

    // The same with two processes that meet.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ranked = |rank: &str, dir: &Path| {
        let mut check = Command::new(blockstone_binary());
        check.args(["check", "coherence", "--json", "--rounds", "5", "--patience", "200ms"]);
        check.args(["--witness", &free, "--ranks", "2", "--rank", rank]).arg(dir);
        check
    };
    let second = ranked("1", &other).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = run(&mut ranked("0", &dir));
    let second = second.wait_with_output().unwrap();
    assert_eq!((first.code, second.status.code()), (Some(0), Some(0)), "{first:#?} {second:#?}");
    is_linearizable(&first.json());
    let second: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(second["tables"], first.json()["tables"], "all ranks say the same");
    let classes = |document: &Value| {
        let cells = rows(document, "coherence-cases");
        cells.map(|cell| cell["class"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(classes(&second), classes(&document), "as threads");
    assert_eq!(names(&dir), ["lost+found"], "nothing is left");
    drop(bound);
}

#[test]
fn two_devices_over_one_file_are_coherent_only_past_the_page_cache() {
    require!(Root, Loop);
    let place = Place::new();
    let spec = DeviceSpec { size: Bytes::mib(32), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    device.blank().unwrap();
    let (other, _undo) = twin(&device);
    let (a, b) = (device.device(), other.as_path());
    let (a_name, b_name) = (a.to_str().unwrap(), b.to_str().unwrap());
    let said = refused(&place, place.command("check").args(["coherence", a_name, b_name]));
    assert!(said.contains("would destroy"), "{said}");
    // Afterwards they are as empty as before.
    for _ in 0..2 {
        let ran = checked(&[a, b], &["--destroy", a_name, "--destroy", b_name]);
        assert_eq!(ran.code, Some(3), "{ran:#?}");
        let document = ran.json();
        keeps_to_its_schema(&document);
        for write in ["fdatasync", "dsync", "direct", "mapped"] {
            let of = |read: &str| class(&document, &format!("ping-pong/{write}/{read}")).to_owned();
            let found = [of("held"), of("reopened"), of("mapped"), of("direct")];
            assert_eq!(found, ["never", "never", "never", "linearizable"], "{write}: {document:#}");
        }
        assert_eq!(class(&document, "ping-pong/buffered/held"), "never");
        assert_eq!(class(&document, "free-run/buffered/held"), "never", "{document:#}");
        assert_eq!(class(&document, "free-run/direct/direct"), "linearizable", "{document:#}");
        assert_eq!(class(&document, "false-sharing/fdatasync"), "torn", "{document:#}");
        assert_eq!(class(&document, "false-sharing/direct"), "linearizable", "{document:#}");
        assert_eq!(failed_rules(&document), ["incoherent"]);
        let name = "ping-pong/direct/held";
        let cell = row(&document, "coherence-cases", name);
        let witness = rows(&document, "coherence-witness").filter(|it| it["case"] == name);
        let [first, second] = witness.collect::<Vec<_>>()[..] else { panic!("{document:#}") };
        assert_eq!((&first["operation"], &second["operation"]), (&"write".into(), &"read".into()));
        assert!(first["end_ns"].as_u64() < second["start_ns"].as_u64(), "{document:#}");
        assert!(first["version"].as_u64() > second["version"].as_u64(), "{cell}");
        let cure = "dropping the reader's pages shows it";
        assert!(cell["evidence"].as_str().unwrap().contains(cure), "{cell}");
    }
}

#[test]
fn a_mount_that_does_not_know_of_the_other_sees_old_names_and_old_data() {
    require!(Root, Loop);
    let _turn = Place::new();
    let device = super::mounted(FileSystem::Ext4, 64);
    let dir = device.mount_point().unwrap();
    let mut prepare = Command::new(blockstone_binary());
    let made = run(prepare.args(["check", "coherence", "--json", "--prepare"]).arg(&dir));
    assert_eq!(made.code, Some(0), "{made:#?}");
    let file = PathBuf::from(made.json()["subject"].as_str().unwrap());
    assert_eq!(run(&mut Command::new("sync")).code, Some(0));
    let (other, _detach) = twin(&device);
    let scratch = ScratchDir::on_disk().unwrap();
    let at = scratch.path().join("read-only");
    let _undo = mounted("-t ext4 -o ro,noload", &other, &at);

    let there = at.join(file.file_name().unwrap());
    let document = checked(&[&file, &there], &[]).json();
    for (case, expected) in [
        ("ping-pong/fdatasync/held", "never"),
        ("ping-pong/direct/reopened", "never"),
        ("ping-pong/fdatasync/direct", "linearizable"),
        ("ping-pong/direct/direct", "linearizable"),
        ("ping-pong/mapped/mapped", "never"),
    ] {
        assert_eq!(class(&document, case), expected, "{case}: {document:#}");
    }
    let ran = checked(&[&dir, &at], &[]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let document = ran.json();
    for case in ["open", "name/create", "name/list", "name/remove"] {
        assert_eq!(class(&document, case), "never", "{case}: {document:#}");
    }
    fs::remove_file(file).unwrap();
    assert_eq!(names(&dir), ["lost+found"], "nothing is left");
}

#[test]
fn checks_of_coherence_that_cannot_be_made_are_refused() {
    let place = Place::beside();
    let data = place.data().display().to_string();
    let small = place.file("small");
    fs::write(&small, "small").unwrap();
    let small = small.display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&[], "required"),
        (&["/no/such/path"], "nothing exists"),
        (&[&small], "not made for this check"),
        (&[&data, "--patience", "0s"], "more than nothing"),
        (&[&data, "--patience", "1h"], "at most 10min"),
        (&[&data, "--rank", "0"], "--witness"),
        (&[&data, "--witness", "127.0.0.1:1"], "which rank this is"),
        (&[&data, "--witness", "127.0.0.1:1", "--rank", "2", "--ranks", "2"], "count from 0"),
        (&[&data, &data, "--witness", "127.0.0.1:1"], "one rank there"),
        (&[&data, "--witness", "no-port", "--rank", "0", "--ranks", "2"], "listen on no-port"),
        (&["--prepare", "/no/such/path"], "No such file"),
    ];
    for (arguments, said) in cases {
        let what = refused(&place, place.command("check").arg("coherence").args(*arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
    let (one, other) = (place.file("one"), place.file("other"));
    for dir in [&one, &other] {
        fs::create_dir(dir).unwrap();
    }
    let began = Instant::now();
    let mut check = place.command("check");
    let what = refused(&place, check.arg("coherence").args([&one, &other]));
    assert!(what.contains("nothing to do with the first"), "{what}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(names(&one).is_empty() && names(&other).is_empty());
    assert_eq!(place.left_in_data(), ["one", "other", "small"]);
}
