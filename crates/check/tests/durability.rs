//! A witness, writers and verifications as called from outside.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_base::rng::Rng;
use blockstone_check::CheckError;
use blockstone_check::durability::findings::{
    Class, DurabilityFindings, Method, Pattern, StreamFindings,
};
use blockstone_check::durability::{Serving, Writing, serve, verify, write};
use blockstone_measure::Observer;
use blockstone_testkit::{
    DeviceSpec, Fault, LoopDevice, Request, VolatileDevice, WriteCache, require,
};

struct Quiet;

impl Observer for Quiet {}

struct Stopping {
    stop: Arc<AtomicBool>,
    notes: Sender<String>,
}

impl Observer for Stopping {
    fn note(&mut self, text: &str) {
        let _ = self.notes.send(text.to_owned());
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.stop.load(Ordering::Relaxed).then_some("INT")
    }
}

struct Witness {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Witness {
    fn start(log: &Path) -> Self {
        let (stop, log) = (Arc::<AtomicBool>::default(), log.to_owned());
        let (notes, said) = channel();
        let mut observer = Stopping { stop: Arc::clone(&stop), notes };
        let thread = thread::spawn(move || {
            let serving = Serving { address: "127.0.0.1:0", log: &log, cycles: None, seed: 1 };
            serve(&serving, &mut observer).unwrap();
        });
        let note = said.recv().unwrap();
        let address = note.split(' ').nth(3).unwrap().trim_end_matches(',').to_owned();
        Self { address, stop, thread: Some(thread) }
    }

    fn write(&self, path: &Path, id: u64) {
        let patterns = &[Pattern::Overwrite, Pattern::Append, Pattern::Create];
        let duration = Duration::from_millis(200);
        let found = self.write_as((path, false), id, (&[Method::Fdatasync], patterns), duration);
        assert!(found.acknowledged() > 0, "{found:?}");
    }

    fn write_as(
        &self,
        (path, destroy): (&Path, bool),
        id: u64,
        (methods, patterns): (&[Method], &[Pattern]),
        duration: Duration,
    ) -> DurabilityFindings {
        let witness = &self.address;
        let writing = Writing { path, destroy, witness, methods, patterns, duration, id };
        write(&writing, &mut Quiet).unwrap()
    }

    fn verify(&self, path: &Path) -> Result<DurabilityFindings, CheckError> {
        verify(path, &self.address, &mut Quiet)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A disk that ignores flushes may have nothing of a run, but all of the one before it.
#[test]
fn a_run_of_which_nothing_is_left_is_not_taken_for_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let (data, older) = (dir.path().join("data"), dir.path().join("older"));
    fs::create_dir(&data).unwrap();
    let blocks = data.join("blockstone-durability");
    let witness = Witness::start(&dir.path().join("log"));
    witness.write(&data, 5);
    copy(&blocks, &older);
    let found = witness.verify(&data).unwrap();
    assert!(found.streams.iter().all(|it| it.class == Class::Inconclusive), "{found:?}");
    assert_eq!((found.cuts.inconclusive, found.cuts.with_loss), (1, 0));

    witness.write(&data, 6);
    fs::remove_dir_all(&blocks).unwrap();
    fs::rename(&older, &blocks).unwrap();
    let found = witness.verify(&data).unwrap();
    for stream in &found.streams {
        assert_eq!((stream.class, stream.lost), (Class::Lost, stream.checked), "{stream:?}");
    }
    assert_eq!((found.cuts.inconclusive, found.cuts.with_loss), (1, 1));
    assert!(found.notes[0].contains("Not even the mark"), "{found:?}");
    assert!(matches!(witness.verify(&data), Err(CheckError::NoTrace { .. })));
}

const SIZE: Bytes = Bytes::mib(24);
/// Size of a point in the log of a witness.
const POINT_BYTES: u64 = 32;

/// Writes to a disk with this fault until the witness knows of that many writes, or the disk loses
/// power; then cuts it, and returns what is left of the flushed writes.
fn left_by(fault: Fault, points: u64) -> StreamFindings {
    let mut device = VolatileDevice::with_cache(SIZE, WriteCache::Own(fault)).unwrap();
    let path = device.device().unwrap().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let witness = Witness::start(&log);
    let methods = (&[Method::Fsync, Method::DirectNone][..], Pattern::ALL);
    let duration = Duration::from_secs(30);
    thread::scope(|scope| {
        let writing = scope.spawn(|| witness.write_as((&path, true), 7, methods, duration));
        let patience = Instant::now() + duration;
        while fs::metadata(&log).unwrap().len() < points * POINT_BYTES && !writing.is_finished() {
            assert!(Instant::now() < patience);
            thread::sleep(Duration::from_millis(5));
        }
        let mut writing = Some(writing);
        let leave = &mut || drop(writing.take().map(|it| it.join().unwrap()));
        device.cut_under(leave).unwrap();
    });
    device.set_write_cache(WriteCache::Own(Fault::None));
    device.power_on().unwrap();
    let found = witness.verify(device.device().unwrap()).unwrap();
    assert_eq!(found.cuts.with_loss, 1, "{found:?}");
    found.streams.into_iter().find(|it| it.stream.method == Method::Fsync).unwrap()
}

#[test]
fn each_fault_of_a_disk_is_named() {
    require!(Root, Loop, Nbdkit);
    // The run ends without a cut: power is lost after the flush that the disk loses.
    let lost = left_by(Fault::LosesFlush(100), u64::MAX / POINT_BYTES);
    assert_eq!((lost.class, lost.lost, lost.torn), (Class::Lost, 1, 0), "{lost:?}");
    let torn = left_by(Fault::TearsPage(20), 300);
    assert_eq!((torn.class, torn.lost, torn.misplaced), (Class::Torn, 0, 0), "{torn:?}");
    let reordered = left_by(Fault::Reorders, 300);
    assert_eq!((reordered.class, reordered.misplaced), (Class::Lost, 0), "{reordered:?}");
    assert!(reordered.reordered > 0 && reordered.lost < reordered.checked, "{reordered:?}");
}

/// A disk that loses its power at every flush, and between two, having written any part of the
/// later data: nothing that the witness knew then is missing.
#[test]
fn nothing_is_missing_after_any_flush_of_an_honest_disk() {
    require!(Root, Loop, Nbdkit);
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let requests = {
        let device = VolatileDevice::watching(SIZE, &log).unwrap();
        let witness = Witness::start(&log);
        let methods = &[Method::Fsync, Method::Dsync, Method::DirectDsync, Method::DirectNone];
        let path = (device.device().unwrap(), true);
        witness.write_as(path, 7, (methods, Pattern::ALL), Duration::from_millis(700));
        device.requests()
    };
    let log = fs::read(&log).unwrap();
    let disk = LoopDevice::create(DeviceSpec { size: SIZE, ..DeviceSpec::default() }).unwrap();
    let medium = OpenOptions::new().write(true).open(disk.device()).unwrap();
    let put = |offset_bytes, data: &[u8]| medium.write_all_at(data, offset_bytes).unwrap();
    let mut rng = Rng::new(1, 0);
    let mut verified = 0;
    let known = |request: &Request| match request {
        Request::Flush { watched_bytes } => Some(*watched_bytes),
        Request::Write { .. } => None,
    };
    // The witness knows of the run, and of some writes.
    let is_begun = |bytes: u64| bytes > 1024;
    let flushes = requests.iter().filter_map(known).filter(|&bytes| is_begun(bytes)).count();
    let each = (flushes / 12).max(1);
    let mut number = 0_usize;
    for (at, request) in requests.iter().enumerate() {
        match request {
            Request::Write { offset_bytes, data } => put(*offset_bytes, data),
            Request::Flush { watched_bytes } if is_begun(*watched_bytes) => {
                number += 1;
                if !number.is_multiple_of(each) {
                    continue;
                }
                for between in [false, true] {
                    let mut bytes = *watched_bytes;
                    for later in requests[at + 1..].iter().filter(|_| between) {
                        match later {
                            Request::Write { offset_bytes, data } => {
                                let pages = (*offset_bytes..).step_by(4096).zip(data.chunks(4096));
                                let kept = pages.filter(|_| rng.below(2) == 0);
                                kept.for_each(|(offset_bytes, page)| put(offset_bytes, page));
                            }
                            Request::Flush { watched_bytes } => {
                                bytes = *watched_bytes;
                                break;
                            }
                        }
                    }
                    medium.sync_all().unwrap();
                    verify_with(&log[..bytes as usize], disk.device(), dir.path());
                    verified += 1;
                }
            }
            Request::Flush { .. } => {}
        }
    }
    assert!(verified > 12, "{verified} of {flushes} flushes");
}

/// Verifies with a witness that knows no more than this.
fn verify_with(known: &[u8], device: &Path, dir: &Path) {
    let log = dir.join("known");
    fs::write(&log, known).unwrap();
    let witness = Witness::start(&log);
    let found = witness.verify(device).unwrap();
    assert!(found.notes.is_empty(), "{found:?}");
    let promised = || found.streams.iter().filter(|it| !it.stream.method.is_control());
    assert!(promised().map(|it| it.acknowledged).sum::<u64>() > 0, "{found:?}");
    for stream in promised() {
        let missing = (stream.lost, stream.torn, stream.misplaced);
        assert_eq!(missing, (0, 0, 0), "{stream:?}");
    }
}
