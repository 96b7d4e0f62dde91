//! Copies of files of all shapes, with faults injected between them and the kernel.

use blockstone_base::hint::Hint as _;
use std::fs::{self, File, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use blockstone_base::rng::Rng;
use blockstone_base::units::Bytes;
use blockstone_sys::file::BlockFile;
use blockstone_sys::held::HeldDir;
use blockstone_sys::memory::Short;
use blockstone_testkit::{ScratchDir, require};

use rustix::io::Errno;

use super::copier::open_io;
use super::io::{Answer, Io, Request, Threads};
use super::*;

mod kills;
mod others;
mod places;

const REQUEST: u64 = 64 << 10;
const NAME: &str = "target";

/// Never ends the copy, or ends it after this many bytes.
#[derive(Default)]
struct Until(Option<u64>, AtomicU64);

impl Watch for Until {
    fn moved(&self, bytes: u64) -> ControlFlow<()> {
        let moved = self.1.fetch_add(bytes, Relaxed) + bytes;
        if self.0.is_some_and(|most| moved >= most) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn pace(&self, _: u64) {}
}

const NOTHING: Carry<'static> = &|_, _| Ok(());

fn options() -> Options {
    Options { request: Bytes(REQUEST), in_flight: 4, ..Options::default() }
}

/// A source and the directory of its target.
struct Place {
    scratch: ScratchDir,
    from: HeldDir,
    dir: HeldDir,
}

impl Place {
    fn new() -> Self {
        let scratch = ScratchDir::on_disk().unwrap();
        let from = HeldDir::hold(scratch.path()).unwrap();
        let dir = HeldDir::make(&scratch.path().join("to")).unwrap();
        Self { scratch, from, dir }
    }

    fn source(&self) -> PathBuf {
        self.scratch.path().join("source")
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join(NAME)
    }

    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != NAME).collect();
        names.sort();
        names
    }

    /// Makes a source with data in these ranges.
    fn make(&self, size: u64, data: &[(u64, u64)]) {
        let file = File::create(self.source()).unwrap();
        file.set_len(size).unwrap();
        for (number, &(offset, len)) in data.iter().enumerate() {
            file.write_all_at(&random(len, number as u64), offset).unwrap();
        }
        file.sync_all().unwrap();
    }

    fn copy_by(&self, copier: &mut Copier, watch: &Until) -> Result<Copied, CopyError> {
        let source = self.source();
        let job =
            Job { source: &source, from: &self.from, target_dir: &self.dir, name: Path::new(NAME) };
        copier.copy(&job, NOTHING, watch)
    }

    fn copy(&self, options: Options) -> Result<Copied, CopyError> {
        self.copy_by(&mut Copier::new(options).unwrap(), &Until::default())
    }

    #[track_caller]
    fn is_equal(&self) {
        assert!(fs::read(self.source()).unwrap() == fs::read(self.target()).unwrap(), "it differs");
        assert_eq!(self.left(), [""; 0], "nothing is left");
    }
}

fn random(len: u64, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(7, seed);
    let mut bytes: Vec<u8> =
        (0..len.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    bytes.truncate(len as usize);
    bytes
}

#[test]
fn every_size_is_copied_by_every_method() {
    require!(Uring);
    let place = Place::new();
    let sizes = [0, 1, 41, 4095, 4096, 4097, REQUEST - 1, REQUEST, REQUEST + 1, 8 * REQUEST];
    for method in [None, Some(Method::Direct), Some(Method::Dontcache), Some(Method::Buffered)] {
        let mut copier =
            Copier::new(Options { method, verify: true, force: true, ..options() }).unwrap();
        for size in sizes {
            place.make(size, &[(0, size)]);
            let done = place.copy_by(&mut copier, &Until::default()).unwrap();
            assert_eq!((done.bytes, done.data_bytes), (size, size), "{method:?}");
            assert_eq!(done.method, method.unwrap_or(Method::Direct), "{}", done.why);
            let Verified::Equal { read_bytes, medium_bytes } = done.verified else {
                panic!("{size}: {:?}", done.verified)
            };
            assert!(read_bytes == size && medium_bytes >= size);
            place.is_equal();
        }
    }
}

#[test]
fn holes_are_kept() {
    require!(Uring);
    let place = Place::new();
    place.make(1 << 40, &[(0, 5000), (1 << 39, 3 * REQUEST + 1), ((1 << 40) - 100, 100)]);
    let copied = place.copy(Options { verify: true, ..options() }).unwrap();
    let [source, target] = [place.source(), place.target()].map(|path| fs::metadata(path).unwrap());
    assert_eq!((copied.bytes, target.len()), (1 << 40, 1 << 40));
    assert!(copied.data_bytes < 5 * REQUEST, "{}", copied.data_bytes);
    assert!(target.blocks() <= source.blocks() + 16, "{} {}", target.blocks(), source.blocks());
    let [source, target] = [place.source(), place.target()].map(|path| File::open(path).unwrap());
    for offset in [0, 1 << 39, (1 << 40) - 4096] {
        let [mut expected, mut found] = [[0; 4096]; 2];
        source.read_exact_at(&mut expected, offset).unwrap();
        target.read_exact_at(&mut found, offset).unwrap();
        assert_eq!(expected, found);
    }
    place.make(3 << 30, &[]);
    let hole = place.copy(Options { force: true, ..options() }).unwrap();
    assert_eq!((hole.bytes, hole.data_bytes), (3 << 30, 0));
    assert_eq!(fs::metadata(place.target()).unwrap().len(), 3 << 30);
}

#[test]
fn a_target_that_exists_or_a_part_that_is_left_is_not_touched_unasked() {
    require!(Uring);
    let place = Place::new();
    place.make(10, &[(0, 10)]);
    fs::write(place.target(), "theirs").unwrap();
    assert!(matches!(place.copy(options()), Err(CopyError::Exists { .. })));
    assert_eq!((fs::read(place.target()).unwrap(), place.left()), (b"theirs".to_vec(), vec![]));
    place.copy(Options { force: true, ..options() }).unwrap();
    place.is_equal();
    fs::remove_file(place.target()).unwrap();

    place.make(20 * REQUEST, &[(0, 20 * REQUEST)]);
    let mut copier = Copier::new(Options { resume: true, ..options() }).unwrap();
    let some = Until(Some(9 * REQUEST), AtomicU64::new(0));
    assert!(matches!(place.copy_by(&mut copier, &some), Err(CopyError::Interrupted)));
    let left = [".target.blockstone-part", ".target.blockstone-resume"];
    assert_eq!((place.left(), place.target().exists()), (left.map(str::to_owned).into(), false));
    let error = place.copy(options()).unwrap_err();
    assert!(error.told().contains("--resume goes on"), "{error}");
    assert_eq!(place.left(), left);

    // Chunks are found again whatever the request size is now.
    let larger = Options { request: Bytes(2 * REQUEST), resume: true, ..options() };
    let resumed = place.copy(larger).unwrap();
    place.is_equal();
    assert!(resumed.resumed_bytes >= 9 * REQUEST && resumed.again_bytes == 0, "{resumed:?}");
    assert!(resumed.resumed_bytes <= 13 * REQUEST && resumed.chunks.len() == 20, "{resumed:?}");
}

#[test]
fn what_another_user_left_is_not_gone_on_with() {
    require!(Root, Uring);
    let place = Place::new();
    place.make(9, &[(0, 9)]);
    let part = place.dir.path().join(".target.blockstone-part");
    let refused = || {
        let error = place.copy(Options { resume: true, ..options() }).unwrap_err().to_string();
        assert!(error.contains("does not belong to this user alone"), "{error}");
        assert_eq!(fs::read(&part).unwrap(), b"theirs");
    };
    fs::write(&part, "theirs").unwrap();
    std::os::unix::fs::chown(&part, Some(65534), None).unwrap();
    refused();
    fs::remove_file(&part).unwrap();
    fs::write(place.scratch.path().join("victim"), "theirs").unwrap();
    fs::hard_link(place.scratch.path().join("victim"), &part).unwrap();
    refused();
}

#[test]
fn a_file_that_no_sidecar_names_is_not_written_to() {
    require!(Uring);
    let place = Place::new();
    place.make(20 * REQUEST, &[(0, 20 * REQUEST)]);
    let resume = Options { resume: true, ..options() };
    let [part, sidecar] =
        ["part", "resume"].map(|kind| place.dir.path().join(format!(".target.blockstone-{kind}")));
    for has_sidecar in [false, true] {
        if has_sidecar {
            let some = Until(Some(9 * REQUEST), AtomicU64::new(0));
            place.copy_by(&mut Copier::new(resume).unwrap(), &some).unwrap_err();
            assert!(sidecar.exists());
            fs::remove_file(&part).unwrap();
        }
        // Another file of this user is given the name of what a copy leaves.
        fs::write(place.scratch.path().join("other"), "not a copy's").unwrap();
        fs::rename(place.scratch.path().join("other"), &part).unwrap();
        let other = File::open(&part).unwrap();
        let copied = place.copy(resume).unwrap();
        assert_eq!(copied.resumed_bytes, 0);
        let mut text = [0; 12];
        other.read_exact_at(&mut text, 0).unwrap();
        assert_eq!((&text, other.metadata().unwrap().len()), (b"not a copy's", 12));
        place.is_equal();
        fs::remove_file(place.target()).unwrap();
    }
}

#[test]
fn what_a_sidecar_claims_is_looked_at() {
    require!(Uring);
    let place = Place::new();
    place.make(20 * REQUEST, &[(0, 20 * REQUEST)]);
    let resume = Options { resume: true, ..options() };
    let interrupt = || {
        let some = Until(Some(9 * REQUEST), AtomicU64::new(0));
        place.copy_by(&mut Copier::new(resume).unwrap(), &some).unwrap_err();
    };
    interrupt();
    let part = place.dir.path().join(".target.blockstone-part");
    let written = OpenOptions::new().write(true).open(&part).unwrap();
    written.write_all_at(b"x", REQUEST + 1).unwrap();
    drop(written);
    let resumed = place.copy(resume).unwrap();
    place.is_equal();
    assert_eq!(resumed.again_bytes, REQUEST);

    fs::remove_file(place.target()).unwrap();
    interrupt();
    let source = OpenOptions::new().write(true).open(place.source()).unwrap();
    source.write_all_at(b"new", 5).unwrap();
    let resumed = place.copy(resume).unwrap();
    place.is_equal();
    assert_eq!(resumed.resumed_bytes, 0, "the source is another");

    fs::remove_file(place.target()).unwrap();
    interrupt();
    fs::write(place.dir.path().join(".target.blockstone-resume"), "nonsense").unwrap();
    assert_eq!(place.copy(resume).unwrap().resumed_bytes, 0);
    place.is_equal();
}

#[test]
fn what_a_sidecar_asks_for_takes_no_more_memory() {
    require!(Uring);
    let place = Place::new();
    place.make(40 * REQUEST, &[(0, 40 * REQUEST)]);
    let large = Options { resume: true, request: Bytes(8 * REQUEST), ..options() };
    let some = Until(Some(9 * REQUEST), AtomicU64::new(0));
    place.copy_by(&mut Copier::new(large).unwrap(), &some).unwrap_err();
    let mut copier = Copier::new(Options { request: Bytes(2 * REQUEST), ..large }).unwrap();
    copier.open = |files, slots, bytes| {
        assert_eq!(
            (slots, bytes as u64),
            (1, 8 * REQUEST),
            "four of two requests are one of eight"
        );
        open_io(files, slots, bytes)
    };
    let resumed = place.copy_by(&mut copier, &Until::default()).unwrap();
    assert!(resumed.resumed_bytes > 0);
    place.is_equal();
}

#[test]
fn where_memory_is_short_fewer_requests_are_in_flight() {
    require!(Uring);
    let place = Place::new();
    place.make(20 * REQUEST, &[(0, 20 * REQUEST)]);
    let mut copier = Copier::new(Options { in_flight: 8, verify: true, ..options() }).unwrap();
    copier.open = |files, slots, bytes| {
        if slots > 2 {
            let short = Short { needed: Bytes(slots as u64 * REQUEST), left: Bytes(2 * REQUEST) };
            return Err(CopyError::Memory(short.into()));
        }
        open_io(files, slots, bytes)
    };
    let outcome = place.copy_by(&mut copier, &Until::default()).unwrap();
    assert!(outcome.why.contains("memory for 2 requests"), "{}", outcome.why);
    place.is_equal();
    fs::remove_file(place.target()).unwrap();
    let mut copier = Copier::new(options()).unwrap();
    copier.open =
        |_, _, _| Err(CopyError::Memory(Short { needed: Bytes(2), left: Bytes(1) }.into()));
    let refused = place.copy_by(&mut copier, &Until::default()).unwrap_err().told();
    assert!(
        refused.contains("2 B of memory are needed") && refused.contains("\nhint: "),
        "{refused}"
    );
}

/// Writes to the source.
struct Writes(PathBuf);

impl Watch for Writes {
    fn moved(&self, _: u64) -> ControlFlow<()> {
        let file = OpenOptions::new().write(true).open(&self.0).unwrap();
        file.write_all_at(b"changed", 0).unwrap();
        ControlFlow::Continue(())
    }

    fn pace(&self, _: u64) {}
}

#[test]
fn a_source_that_changes_gives_no_target() {
    require!(Uring);
    let place = Place::new();
    place.make(3 * REQUEST, &[(0, 3 * REQUEST)]);
    let source = place.source();
    let job =
        Job { source: &source, from: &place.from, target_dir: &place.dir, name: Path::new(NAME) };
    let error = copy(&job, &options(), NOTHING, &Writes(source.clone())).unwrap_err();
    assert!(matches!(error, CopyError::Changed { .. }), "{error}");
    assert_eq!((place.left(), place.target().exists()), (vec![], false));
}

/// Kind of fault.
#[derive(Clone, Copy)]
enum Fault {
    /// Reads and writes move only a part of the bytes.
    Short,
    Errno(u64, i32),
    /// Each request is refused once.
    Again,
}

thread_local! {
    static FAULT: std::cell::Cell<Fault> = const { std::cell::Cell::new(Fault::Short) };
}

struct Faulty {
    io: Box<dyn Io>,
    fault: Fault,
    requests: u64,
    answers: Vec<Answer>,
}

impl Faulty {
    fn open(
        files: [Arc<BlockFile>; 2],
        slots: usize,
        bytes: usize,
    ) -> Result<(Box<dyn Io>, Option<String>), CopyError> {
        let (io, why) = open_io(files, slots, bytes)?;
        let faulty = Self { io, fault: FAULT.get(), requests: 0, answers: Vec::new() };
        Ok((Box::new(faulty), why))
    }
}

impl Io for Faulty {
    fn slots(&self) -> usize {
        self.io.slots()
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.io.buffer(slot)
    }

    fn replace_files(&mut self, files: [Arc<BlockFile>; 2]) -> Result<(), CopyError> {
        self.io.replace_files(files)
    }

    fn push(&mut self, request: &Request) {
        self.requests += 1;
        let mut request = *request;
        match self.fault {
            Fault::Errno(at, errno) if self.requests == at => {
                return self.answers.push((request.slot, Err(errno)));
            }
            Fault::Again if self.requests % 2 == 1 => {
                let errno = [libc_eintr(), libc_eagain()][(self.requests / 2 % 2) as usize];
                return self.answers.push((request.slot, Err(errno)));
            }
            Fault::Short if request.part.len_bytes > 8192 => {
                let odd = 1 + (self.requests as u32 * 4096) % (request.part.len_bytes - 4096);
                request.part.len_bytes = odd.next_multiple_of(4096);
            }
            _ => {}
        }
        self.io.push(&request);
    }

    fn answers(&mut self, wait: bool, into: &mut Vec<Answer>) -> Result<(), CopyError> {
        into.append(&mut self.answers);
        let wait = wait && into.is_empty();
        self.io.answers(wait, into)
    }

    fn medium_bytes(&self) -> Option<u64> {
        self.io.medium_bytes()
    }
}

fn libc_eintr() -> i32 {
    Errno::INTR.raw_os_error()
}

fn libc_eagain() -> i32 {
    Errno::AGAIN.raw_os_error()
}

fn faulty(options: Options, fault: Fault) -> Copier {
    FAULT.set(fault);
    let mut copier = Copier::new(options).unwrap();
    copier.open = Faulty::open;
    copier
}

#[test]
fn short_and_refused_requests_go_on() {
    require!(Uring);
    let place = Place::new();
    let size = 9 * REQUEST + 77;
    place.make(size, &[(0, size)]);
    for fault in [Fault::Short, Fault::Again] {
        let mut copier = faulty(Options { force: true, verify: true, ..options() }, fault);
        let done = place.copy_by(&mut copier, &Until::default()).unwrap();
        assert!(matches!(done.verified, Verified::Equal { .. }), "{:?}", done.verified);
        place.is_equal();
    }
}

#[test]
fn an_error_at_any_request_leaves_what_can_be_resumed() {
    require!(Uring);
    let place = Place::new();
    let size = 6 * REQUEST + 1;
    place.make(size, &[(0, size)]);
    let before = fs::metadata(place.source()).unwrap();
    let errors = [Errno::IO, Errno::NOSPC].map(Errno::raw_os_error);
    for (at, errno) in (1..=14).zip(errors.into_iter().cycle()) {
        let resume = Options { resume: true, ..options() };
        let failed = place.copy_by(&mut faulty(resume, Fault::Errno(at, errno)), &Until::default());
        let error = failed.unwrap_err().told();
        assert!(error.contains("\nhint: ") && !place.target().exists(), "{error}");
        assert_eq!(place.left().len(), 2, "part and sidecar");
        let resumed = place.copy(resume).unwrap();
        assert_eq!(resumed.again_bytes, 0, "what was claimed is there");
        place.is_equal();
        fs::remove_file(place.target()).unwrap();
    }
    let after = fs::metadata(place.source()).unwrap();
    assert_eq!(
        (before.mtime_nsec(), before.ctime_nsec()),
        (after.mtime_nsec(), after.ctime_nsec())
    );
    let failed =
        place.copy_by(&mut faulty(options(), Fault::Errno(3, errors[0])), &Until::default());
    failed.unwrap_err();
    assert_eq!(place.left(), [""; 0], "a small file starts over");
}

#[test]
fn without_a_ring_threads_do_it() {
    let place = Place::new();
    let size = 20 * REQUEST + 5;
    place.make(size, &[(0, size)]);
    let mut copier = Copier::new(Options { verify: true, ..options() }).unwrap();
    copier.open = |files, slots, bytes| {
        let arena = blockstone_sys::buffer::Arena::new(slots, bytes)?;
        Ok((Box::new(Threads::start(files, arena)?), Some("threads".to_owned())))
    };
    let done = place.copy_by(&mut copier, &Until::default()).unwrap();
    assert!(done.why.ends_with("threads"), "{}", done.why);
    assert!(matches!(done.verified, Verified::Equal { .. }), "{:?}", done.verified);
    place.is_equal();
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
    #[test]
    fn any_layout_is_copied(
        size in 0_u64..20 * 65_536,
        data in proptest::collection::vec((0_u64..20 * 65_536, 1_u64..3 * 65_536), 0..6),
        pages in 1_u64..20,
    ) {
        let place = Place::new();
        let data: Vec<(u64, u64)> = data
            .into_iter()
            .filter(|(offset, _)| *offset < size)
            .map(|(offset, len)| (offset, len.min(size - offset)))
            .collect();
        place.make(size, &data);
        let copied = place.copy(Options { request: Bytes(pages * 4096), ..options() }).unwrap();
        proptest::prop_assert_eq!(copied.bytes, size);
        place.is_equal();
    }
}
