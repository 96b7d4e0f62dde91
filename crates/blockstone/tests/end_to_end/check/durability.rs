//! `check durability` on devices whose power is cut: with an honest cache, with one that ignores
//! flushes, and with none. The device is nbdkit's.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{
    CpuHog, Ran, ScratchDir, VolatileDevice, WriteCache, ZramDevice, blockstone_binary, require,
    run,
};
use serde_json::Value;

use super::super::bad_input::refused;
use super::super::turn::Turn;
use super::super::{Place, keeps_to_its_schema, names, signal};
use super::{class, outcome, row, rows};

const SIZE: Bytes = Bytes::mib(64);

fn check() -> Command {
    let mut command = Command::new(blockstone_binary());
    command.args(["check", "durability", "--json"]);
    command
}

/// A witness, which ends when it is dropped.
pub struct Witness {
    pub child: Child,
    pub address: String,
    scratch: ScratchDir,
}

impl Witness {
    pub fn start() -> Self {
        let scratch = ScratchDir::on_disk().unwrap();
        let mut command = check();
        command.args(["--serve", "127.0.0.1:0", "--log"]).arg(scratch.path().join("log"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        let (_, rest) = said.split_once("listens at ").expect("it says where it listens");
        let address = rest.split_once(',').unwrap().0.to_owned();
        Self { child, address, scratch }
    }

    fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.scratch.path().join("log")).map_or(0, |found| found.len())
    }

    /// Waits until the witness knows of this many writes.
    fn await_points(&self, points: u64) {
        let patience = Instant::now() + Duration::from_secs(30);
        while self.log_bytes() < points * 32 {
            assert!(Instant::now() < patience, "{} bytes in its log", self.log_bytes());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn writer(&self, arguments: &[&str], path: &Path) -> Child {
        let mut command = check();
        command.args(["--witness", &self.address, "--for", "60s"]).args(arguments).arg(path);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn verify(&self, path: &Path) -> Ran {
        run(check().args(["--verify", "--witness", &self.address]).arg(path))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Writes to a device, cuts its power, and verifies the remaining data.
fn cut(cache: WriteCache, methods: &str) -> Value {
    let mut device = VolatileDevice::with_cache(SIZE, cache).unwrap();
    let witness = Witness::start();
    let path = device.device().unwrap().to_owned();
    let name = path.to_str().unwrap();
    let mut writer = witness.writer(&["--destroy", name, "--methods", methods], &path);
    witness.await_points(400);
    device.cut_under(&mut || drop(writer.wait())).unwrap();
    device.set_write_cache(WriteCache::Honest);
    device.power_on().unwrap();
    let ran = witness.verify(device.device().unwrap());
    let document = ran.json();
    keeps_to_its_schema(&document);
    let failed = if class(&document, "fsync/overwrite") == "durable" { 0 } else { 3 };
    assert_eq!(ran.code, Some(failed), "{ran:#?}");
    document
}

#[track_caller]
fn number(document: &Value, case: &str, key: &str) -> u64 {
    row(document, "durability-streams", case)[key].as_u64().unwrap()
}

#[test]
fn a_cut_loses_nothing_that_an_honest_device_flushed() {
    require!(Root, Loop, Nbdkit);
    let _turn = Turn::alone();
    let document = cut(WriteCache::Honest, "fsync,direct-dsync,rwf-dsync,direct-none");
    // A flush of another writer saves the control, unless the cut falls between the two.
    let proves = class(&document, "direct-none/overwrite") == "lost";
    let expected = if proves { ("durable", "pass") } else { ("inconclusive", "inconclusive") };
    for case in ["fsync/overwrite", "direct-dsync/overwrite", "rwf-dsync/overwrite"] {
        assert_eq!(class(&document, case), expected.0, "{document:#}");
        assert_eq!((number(&document, case, "lost"), number(&document, case, "torn")), (0, 0));
    }
    assert_eq!(outcome(&document, "lost-after-cut"), expected.1, "{document:#}");
}

#[test]
fn a_device_that_ignores_flushes_loses_what_it_acknowledged() {
    require!(Root, Loop, Nbdkit);
    let _turn = Turn::alone();
    let document = cut(WriteCache::Lying, "fsync,direct-none");
    assert_eq!(class(&document, "fsync/overwrite"), "lost", "{document:#}");
    let acknowledged = number(&document, "fsync/overwrite", "acknowledged");
    assert_eq!(number(&document, "fsync/overwrite", "lost"), acknowledged.min(128));
    assert_eq!(outcome(&document, "lost-after-cut"), "fail");
}

#[test]
fn a_cut_that_loses_nothing_at_all_is_inconclusive() {
    require!(Root, Loop, Nbdkit);
    let _turn = Turn::alone();
    let document = cut(WriteCache::Through, "fsync,direct-none");
    for case in ["fsync/overwrite", "direct-none/overwrite"] {
        assert_eq!(class(&document, case), "inconclusive", "{document:#}");
        assert_eq!(number(&document, case, "lost"), 0);
    }
    assert_eq!(outcome(&document, "lost-after-cut"), "inconclusive");
}

/// A file system on a device, unmounted when it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(device: &Path, at: &Path, options: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let ran = run(Command::new("mount").args(["-o", options]).arg(device).arg(at));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg("--lazy").arg(&self.0));
    }
}

fn make_ext4(device: &Path) {
    let ran = run(Command::new("mkfs.ext4").arg("-q").arg(device));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

/// Writes with every method and pattern to ext4 on a device, cuts its power, and verifies.
fn cut_below_ext4() -> Value {
    let mut device = VolatileDevice::create(SIZE).unwrap();
    make_ext4(device.device().unwrap());
    let witness = Witness::start();
    let at = witness.scratch.path().join("mnt");
    let mounted = Mounted::new(device.device().unwrap(), &at, "rw");
    let mut writer = witness.writer(&[], &at);
    witness.await_points(2_000);
    // The machine stops no later than its disk. Once a commit of its journal failed, ext4 reports
    // success for an fsync of a directory: nothing is left to commit.
    writer.kill().unwrap();
    let leave = &mut || {
        writer.wait().unwrap();
        let _ = run(Command::new("umount").arg("--lazy").arg(&at));
    };
    device.cut_under(leave).unwrap();
    drop(mounted);
    device.power_on().unwrap();
    let mounted = Mounted::new(device.device().unwrap(), &at, "rw");
    let ran = witness.verify(&at);
    assert_eq!(names(&at), ["lost+found"], "nothing is left: {ran:#?}");
    drop(mounted);
    ran.json()
}

#[test]
fn every_method_and_pattern_survives_a_cut_on_ext4() {
    require!(Root, Loop, Nbdkit);
    let _turn = Turn::alone();
    // A flush of another writer saves the controls, unless the cut falls between the two: on a busy
    // machine, a cut may prove nothing.
    let mut cuts = (0..3).map(|_| cut_below_ext4());
    let document = cuts.find(|document| outcome(document, "lost-after-cut") != "inconclusive");
    let document = document.expect("one of three cuts falls after a write that nobody flushed");
    assert_eq!(rows(&document, "durability-streams").count(), 36, "{document:#}");
    // Of the last block of a control, a part may have reached the device.
    let unpromised = ["lost", "torn", "inconclusive"];
    for cell in rows(&document, "durability-streams") {
        let class = cell["class"].as_str().unwrap();
        let method = cell["method"].as_str().unwrap();
        let is_control = ["none", "direct-none", "sync-file-range"].contains(&method);
        assert_eq!(cell["control"], is_control, "{cell}");
        if is_control {
            assert!(unpromised.contains(&class), "{cell}");
        } else {
            assert!(["durable", "unknown"].contains(&class), "{cell}");
        }
    }
    assert_eq!(outcome(&document, "lost-after-cut"), "pass");
}

#[track_caller]
fn flush(document: &Value) -> &Value {
    &document["tables"]["durability-flush"][0]["class"]
}

fn flushes(device: &Path, options: &str) -> Value {
    let scratch = ScratchDir::on_disk().unwrap();
    let at = scratch.path().join("mnt");
    let _mounted = Mounted::new(device, &at, options);
    let document = run(check().arg(&at)).json();
    assert_eq!(names(&at), ["lost+found"], "nothing is left");
    document
}

#[test]
fn flushes_of_an_honest_cache_take_longer_the_more_was_written() {
    require!(Root, Loop, Nbdkit);
    let _turn = Turn::alone();
    for (cache, options, expected, verdict) in [
        (WriteCache::Honest, "rw", "volatile", ["pass", "inconclusive"]),
        (WriteCache::Lying, "rw", "flat", ["inconclusive"; 2]),
        (WriteCache::Honest, "rw,nobarrier", "unflushed", ["fail"; 2]),
    ] {
        let device = VolatileDevice::with_cache(SIZE, cache).unwrap();
        make_ext4(device.device().unwrap());
        let _hog = CpuHog::start(1).unwrap();
        let document = flushes(device.device().unwrap(), options);
        keeps_to_its_schema(&document);
        assert_eq!(flush(&document), expected, "{document:#}");
        let found = outcome(&document, "lying-flush");
        assert!(verdict.contains(&found.as_str()), "{found}: {document:#}");
    }
}

#[test]
fn nothing_in_main_memory_is_durable() {
    require!(Root, Tmpfs, Zram);
    let _turn = Turn::beside();
    let memory = ScratchDir::in_memory().unwrap();
    let zram = ZramDevice::create(Bytes::mib(32)).unwrap();
    make_ext4(zram.device());
    let scratch = ScratchDir::on_disk().unwrap();
    let at = scratch.path().join("mnt");
    let mounted = Mounted::new(zram.device(), &at, "rw");
    for path in [memory.path(), &at] {
        let ran = run(check().arg(path));
        assert_eq!(ran.code, Some(3), "{ran:#?}");
        let document = ran.json();
        keeps_to_its_schema(&document);
        assert_eq!(flush(&document), "memory", "{document:#}");
        assert_eq!(outcome(&document, "lying-flush"), "fail");
    }
    drop(mounted);
    let ran = run(check().arg(zram.device()));
    assert_eq!(*flush(&ran.json()), "memory", "a device is not written to: {ran:#?}");
}

#[test]
fn writers_that_are_interrupted_leave_nothing_and_others_what_is_to_be_verified() {
    let place = Place::beside();
    let witness = Witness::start();
    let words = ["--methods", "fsync", "--patterns", "create,rename"];
    let mut writer = witness.writer(&words, &place.data());
    witness.await_points(40);
    signal(&writer, "INT");
    assert_eq!(writer.wait().unwrap().code(), Some(130));
    assert_eq!(place.left_in_data(), Vec::<String>::new());

    let known = witness.log_bytes() / 32;
    let mut writer = witness.writer(&words, &place.data());
    witness.await_points(known + 40);
    signal(&writer, "KILL");
    writer.wait().unwrap();
    let again = refused(
        &place,
        check().args(["--witness", &witness.address]).args(words).arg(place.data()),
    );
    assert!(again.contains("not verified yet"), "{again}");
    // A kill is not a power cut: nothing is lost, and no control shows that anything could be.
    let ran = witness.verify(&place.data());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(class(&ran.json(), "fsync/create"), "inconclusive", "{ran:#?}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let traceless = refused(
        &place,
        check().args(["--verify", "--witness", &witness.address]).arg(place.data()),
    );
    assert!(traceless.contains("no trace of a run"), "{traceless}");
}

#[test]
fn durability_checks_that_cannot_be_made_are_refused() {
    let place = Place::beside();
    let data = place.data().display().to_string();
    let file = place.file("file");
    std::fs::write(&file, "of the user").unwrap();
    let name = file.display().to_string();
    let nobody = ["--witness", "127.0.0.1:1"];
    let cases: &[(&[&str], &str)] = &[
        (&[], "required"),
        (&["--verify", &data], "required"),
        (&["--witness", "127.0.0.1:1", &data], "connect to"),
        (&["--witness", "no-port", &data], "connect to"),
        (&[nobody[0], nobody[1], &name], "a file is only read"),
        (&[nobody[0], nobody[1], "--for", "0s", &data], "more than nothing"),
        (&[nobody[0], nobody[1], "--methods", "hope", &data], "invalid value"),
        (&[nobody[0], nobody[1], "--destroy", "/dev/other", &data], "the path to write to"),
        (&["--serve", "127.0.0.1:0", &data], "cannot be used"),
        (&["--serve", "127.0.0.1:0", "--log", &name], "not a log of a witness"),
        (&["--serve", "nowhere"], "listen on"),
        (&["--serve", "127.0.0.1:0", "--cycles", "3"], "required"),
    ];
    for (arguments, said) in cases {
        let what = refused(&place, check().args(*arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"of the user");
}
