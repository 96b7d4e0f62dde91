//! Copies on file systems that each have their own method.

use blockstone_base::hint::Hint as _;
use std::time::{Duration, Instant};

use blockstone_sys::cached::{self, Look};
use blockstone_testkit::{DeviceSpec, FileSystem, FuseCache, FuseMounts, LoopDevice};

use blockstone_sys::held;

use super::super::choose::Pair;
use super::super::finish::PartialFile;
use super::super::resume::Identity;
use super::super::serve::serve;
use super::*;

const SIZE: u64 = 40 * REQUEST + 123;

fn device(file_system: FileSystem, size: Bytes) -> LoopDevice {
    let file_system = Some(file_system);
    LoopDevice::create(DeviceSpec { size, file_system, ..DeviceSpec::default() }).unwrap()
}

/// Makes a file whose bytes are only on its medium.
fn make(path: &Path, seed: u64) {
    fs::write(path, random(SIZE, seed)).unwrap();
    let file = BlockFile::open(path, blockstone_sys::file::Access::Read, false).unwrap();
    file.fsync().unwrap();
    file.drop_cached().unwrap();
}

fn cached(path: &Path) -> u64 {
    match cached::look(path, 1 << 30, Instant::now() + Duration::from_mins(1)).unwrap() {
        Look::Cached(found) => found.cached_bytes,
        other => panic!("{other:?}"),
    }
}

fn copy_at(at: &Path, options: Options) -> Result<Copied, CopyError> {
    let dir = HeldDir::open(at).unwrap();
    let source = at.join("source");
    let job = Job { source: &source, from: &dir, target_dir: &dir, name: Path::new(NAME) };
    copy(&job, &options, NOTHING, &Until::default())
}

fn is_equal(at: &Path) {
    assert!(fs::read(at.join("source")).unwrap() == fs::read(at.join(NAME)).unwrap());
}

fn leaves_the_cache_alone(file_system: FileSystem, size: Bytes, methods: &[Method]) {
    let device = device(file_system, size);
    let at = device.mount_point().unwrap();
    let (source, third) = (at.join("source"), at.join("third"));
    make(&third, 2);
    fs::read(&third).unwrap();
    let of_others = cached(&third);
    for &method in methods {
        make(&source, 1);
        let options = Options { method: Some(method), force: true, verify: true, ..options() };
        let copied = copy_at(&at, options).unwrap();
        assert!(matches!(copied.verified, Verified::Equal { .. }), "{:?}", copied.verified);
        let left = [source.clone(), at.join(NAME)].map(|path| cached(&path));
        assert_eq!(left, [0, 0], "{method:?} on {file_system:?}");
        // Another reader's pages.
        let file = File::open(&source).unwrap();
        file.read_exact_at(&mut vec![0; 4 * REQUEST as usize], 8 * REQUEST).unwrap();
        let others = cached(&source);
        copy_at(&at, options).unwrap();
        assert_eq!((cached(&source), others > 0), (others, true), "{method:?}");
        is_equal(&at);
    }
    // The kernel evicts a page of it now and then, even if nothing is copied.
    let stays = cached(&third);
    assert!(of_others > 0 && stays.abs_diff(of_others) <= of_others / 50, "{stays} of {of_others}");
}

#[test]
fn ext4_and_xfs_cache_nothing_of_a_copy() {
    require!(Root, Loop, Uring, Xfs, Cachestat);
    let methods = [Method::Direct, Method::Dontcache, Method::Buffered];
    leaves_the_cache_alone(FileSystem::Ext4, Bytes::mib(64), &methods);
    leaves_the_cache_alone(FileSystem::Xfs, Bytes::mib(300), &methods);
}

#[test]
fn the_ways_of_other_programs_copy_every_shape_and_their_pages_are_dropped() {
    let place = Place::new();
    let shapes = [(0, vec![]), (1, vec![(0, 1)]), (SIZE, vec![(0, SIZE)])];
    let holes = (SIZE, vec![(0, 4096), (8 * REQUEST + 4096, REQUEST), (SIZE - 41, 41)]);
    for (method, request) in [
        (Method::Mmap, REQUEST),
        (Method::Mmap, 4096),
        (Method::CopyFileRange, REQUEST),
        (Method::CopyFileRange, 8 << 20),
    ] {
        let wanted =
            Options { method: Some(method), request: Bytes(request), force: true, ..options() };
        for (size, data) in shapes.iter().chain([&holes]) {
            place.make(*size, data);
            let file = File::open(place.source()).unwrap();
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            let was_cached = cached::of_part(&file, 0, (*size).max(1));
            let done = place.copy(wanted).unwrap();
            assert_eq!((done.method, done.bytes), (method, *size), "{request}");
            assert!(done.data_bytes <= *size && done.why.is_empty());
            if let (Ok(0), Ok(after)) = (was_cached, cached::of_part(&file, 0, (*size).max(1))) {
                assert_eq!(after, 0, "{method:?} by {request}");
            }
            place.is_equal();
        }
        let verified = place.copy(Options { verify: true, ..wanted }).unwrap().verified;
        assert_eq!(verified, Verified::NotCompared, "{method:?}");
    }
}

#[test]
fn xfs_shares_blocks() {
    require!(Root, Loop, Uring, Xfs);
    let device = device(FileSystem::Xfs, Bytes::mib(300));
    let at = device.mount_point().unwrap();
    make(&at.join("source"), 1);
    let copied = copy_at(&at, options()).unwrap();
    assert_eq!((copied.method, copied.why.as_str()), (Method::Reflink, ""));
    assert_eq!(copied.data_bytes, SIZE);
    let shared = blockstone_sys::fiemap::map(&File::open(at.join(NAME)).unwrap()).unwrap();
    assert!(shared.shared_bytes >= SIZE, "{shared:?}");
    is_equal(&at);

    let reflink = Options { method: Some(Method::Reflink), force: true, ..options() };
    let copied = copy_at(&at, Options { verify: true, ..reflink }).unwrap();
    assert_eq!(copied.verified, Verified::NotCompared);
    let copied = copy_at(&at, Options { verify: true, force: true, ..options() }).unwrap();
    assert!(copied.method == Method::Direct && copied.why.contains("hashes"), "{}", copied.why);

    let place = Place::new();
    place.make(5, &[(0, 5)]);
    let error = place.copy(reflink).unwrap_err().told();
    assert!(error.contains("--method reflink") && error.contains("\nhint: "), "{error}");
    assert_eq!(place.left(), [""; 0]);
    let error = place.copy(Options { method: Some(Method::Server), ..options() }).unwrap_err();
    assert!(error.told().contains("no server has both"), "{error}");
}

#[test]
fn btrfs_is_not_written_directly() {
    require!(Root, Loop, Uring, Btrfs, Cachestat);
    let device = device(FileSystem::Btrfs, Bytes::mib(128));
    let at = device.mount_point().unwrap();
    make(&at.join("source"), 1);
    assert_eq!(copy_at(&at, options()).unwrap().method, Method::Reflink);
    let copied = copy_at(&at, Options { verify: true, force: true, ..options() }).unwrap();
    // Linux 6.18 has no RWF_DONTCACHE for btrfs; a later one may have it.
    assert!([Method::Dontcache, Method::Buffered].contains(&copied.method), "{}", copied.why);
    assert!(copied.why.contains("target: btrfs has checksums"), "{}", copied.why);
    assert!(matches!(copied.verified, Verified::Equal { .. }), "{:?}", copied.verified);
    assert_eq!([at.join("source"), at.join(NAME)].map(|path| cached(&path)), [0, 0]);
    is_equal(&at);
    let direct = Options { method: Some(Method::Direct), force: true, ..options() };
    assert!(copy_at(&at, direct).unwrap_err().to_string().contains("checksums"));
}

struct Flips<'a>(&'a Path, AtomicU64);

impl Watch for Flips<'_> {
    fn moved(&self, bytes: u64) -> ControlFlow<()> {
        if bytes > 0 && self.1.fetch_add(bytes, Relaxed) + bytes == SIZE {
            let part = OpenOptions::new().read(true).write(true).open(self.0).unwrap();
            let mut byte = [0];
            part.read_exact_at(&mut byte, 3 * REQUEST + 5).unwrap();
            part.write_all_at(&[byte[0] ^ 4], 3 * REQUEST + 5).unwrap();
        }
        ControlFlow::Continue(())
    }

    fn pace(&self, _: u64) {}
}

#[test]
fn bytes_that_change_after_they_were_written_are_found() {
    require!(Fuse, Uring);
    let mounts = FuseMounts::create(&[FuseCache::NOTHING, FuseCache::NOTHING]).unwrap();
    let [at, other] = mounts.paths() else { panic!("two") };
    fs::write(at.join("source"), random(SIZE, 1)).unwrap();
    let dir = HeldDir::open(at).unwrap();
    let source = at.join("source");
    let job = Job { source: &source, from: &dir, target_dir: &dir, name: Path::new(NAME) };
    let part = other.join(".target.blockstone-part");
    let verify = Options { verify: true, ..options() };
    let flips = Flips(&part, AtomicU64::new(0));
    let error = copy(&job, &verify, NOTHING, &flips).unwrap_err();
    let CopyError::Differs { offset_bytes, expected, found, .. } = error else { panic!("{error}") };
    assert!(offset_bytes == 3 * REQUEST && expected != found);
    assert!(part.exists() && !at.join(NAME).exists(), "it keeps its temporary name");

    let force = Options { force: true, ..verify };
    let copied = copy(&job, &force, NOTHING, &Until::default()).unwrap();
    // Whether a server read from its device or from memory cannot be known here.
    let Verified::Unproven { why } = &copied.verified else { panic!("{:?}", copied.verified) };
    assert!(why.contains("from a device"), "{why}");
    is_equal(at);
    let error = copy(&job, &verify, NOTHING, &Until::default()).unwrap_err();
    assert!(matches!(error, CopyError::Exists { .. }), "{error}");
}

/// Copies a source with data, a hole and data by the server method, onto a part in which an older
/// copy left other data throughout.
fn served(file_system: FileSystem, size: Bytes) -> (Result<u64, String>, LoopDevice) {
    let device = device(file_system, size);
    let at = device.mount_point().unwrap();
    let [source, left] = ["source", ".target.blockstone-part"].map(|name| at.join(name));
    let file = File::create(&source).unwrap();
    file.write_all_at(&random(3 << 20, 1), 0).unwrap();
    file.write_all_at(&random((1 << 20) + 77, 2), 8 << 20).unwrap();
    fs::write(&left, random(12 << 20, 3)).unwrap();
    file.sync_all().unwrap();
    BlockFile::of(file, &source, false).drop_cached().unwrap();
    let (dir, source) = (HeldDir::open(&at).unwrap(), held::open_file(&source).unwrap());
    let options = Options { resume: true, ..options() };
    let part = PartialFile::open((&dir, Path::new(NAME)), &options).unwrap();
    part.drop_pages();
    let pair = Pair { source: &source, source_path: &at.join("source"), part: &part };
    let identity = Identity::of(&source).unwrap();
    let served = serve(&pair, &identity, options.request, &Until::default()).unwrap();
    drop(part);
    (served, device)
}

#[test]
fn copy_file_range_counts_as_the_servers_only_if_this_kernel_moved_nothing() {
    require!(Root, Loop, Xfs, Cachestat);
    // XFS shares the blocks, which looks to the caller like a server that copies.
    let (by_other, device) = served(FileSystem::Xfs, Bytes::mib(400));
    assert_eq!(by_other, Ok((4 << 20) + 77));
    let at = device.mount_point().unwrap();
    fs::rename(at.join(".target.blockstone-part"), at.join(NAME)).unwrap();
    is_equal(&at);
    drop(device);
    // ext4 lets the kernel copy through the page cache, like a client whose server refuses.
    let (by_kernel, device) = served(FileSystem::Ext4, Bytes::mib(64));
    let why = by_kernel.unwrap_err();
    assert!(why.contains("the kernel read and wrote in its place"), "{why}");
    assert_eq!(cached(&device.mount_point().unwrap().join("source")), 0, "what it brought is gone");
}
