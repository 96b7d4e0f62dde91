//! Storage I/O counted inside the kernel, where it is asked for and where it reaches a device, by
//! thread, file, operation and mode. docs/bpf.md has the definitions.

use std::collections::BTreeSet;

use super::load::Loaded;
use super::table::{Plain, Table};
use super::{BpfError, on, open};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Requests to block devices.
    Block,
    SystemCall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Read,
    Write,
    /// Has the device, or the system, make earlier writes durable.
    Flush,
    /// Gives blocks back to the device.
    Discard,
    /// Hands over requests that complete later: `io_uring_enter` and `io_submit`.
    Submit,
}

/// Whether a thread waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    Synchronous,
    /// No thread waits, or one waits for many at once.
    Asynchronous,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The generation changes when the inode's number goes to another file.
    File { inode: u64, generation: u32 },
    /// A block device, or a file on it that could not be determined.
    Device,
    /// What the file system on the device keeps beside its files.
    Metadata,
    /// Memory that was swapped out to the device.
    Swap,
    /// No file: a submission of several.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    pub major: u32,
    pub minor: u32,
}

impl Device {
    /// From the kernel's own form, which is not that of stat(2): `linux/kdev_t.h`.
    pub(super) fn of(number: u32) -> Self {
        Self { major: number >> 20, minor: number & 0xf_ffff }
    }

    pub(super) fn number(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// The block device at this path, or the one that holds the file system of the file there;
    /// none where that hides its devices.
    pub fn at(path: &std::path::Path) -> std::io::Result<Option<Self>> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let found = std::fs::metadata(path)?;
        let number = if found.file_type().is_block_device() { found.rdev() } else { found.dev() };
        let major = rustix::fs::major(number);
        Ok((major != 0).then(|| Self { major, minor: rustix::fs::minor(number) }))
    }
}

/// Whose I/O, and of which kind, as the kernel keeps it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoKey {
    file: FileKey,
    pub tgid: u32,
    pub tid: u32,
    layer: u8,
    operation: u8,
    mode: u8,
    kind: u8,
    zero: u32,
}

// SAFETY: its fields fill 32 bytes without a gap, and any bytes are numbers.
unsafe impl Plain for IoKey {}

/// Buckets of latencies: below 2¹⁰ ns, then four to each power of two, then from 2³⁴ ns (17 s) on.
pub const BUCKETS: usize = 98;

/// Sums of one key, all cumulative since the start.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoTotals {
    /// I/Os started; ahead of `ios` by those in flight.
    pub started: u64,
    pub ios: u64,
    pub bytes: u64,
    pub asked_bytes: u64,
    /// Requests handed over by calls that submit.
    pub submitted: u64,
    /// Nanoseconds from the start to the device's driver, summed.
    pub queue_ns: u64,
    /// Nanoseconds from the driver to the completion, summed.
    pub device_ns: u64,
    /// Nanoseconds from the start to the completion, summed.
    pub elapsed_ns: u64,
    /// I/Os by elapsed time; [`bucket_start_ns`] says which is where.
    pub buckets: [u64; BUCKETS],
    comm: [u8; 16],
}

// SAFETY: u64 throughout and 16 bytes at the end, so without a gap, and any bytes are numbers.
unsafe impl Plain for IoTotals {}

/// The least latency of a bucket in nanoseconds.
pub const fn bucket_start_ns(bucket: usize) -> u64 {
    if bucket == 0 {
        return 0;
    }
    (4 + (bucket as u64 - 1) % 4) << (8 + (bucket - 1) / 4)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// I/Os, files and processes not counted: no room in a table, or the end was not seen.
    pub dropped: u64,
    /// Times a program ran; none where the kernel does not measure it for this user.
    pub runs: Option<u64>,
    pub own_ns: Option<u64>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileKey {
    inode: u64,
    device: u32,
    generation: u32,
}

// SAFETY: its fields fill 16 bytes without a gap, and any bytes are numbers.
unsafe impl Plain for FileKey {}

impl FileKey {
    pub(super) fn subject(&self, kind: u8) -> Subject {
        match kind {
            0 => Subject::File { inode: self.inode, generation: self.generation },
            1 => Subject::Device,
            2 => Subject::Metadata,
            3 => Subject::Swap,
            _ => Subject::Nothing,
        }
    }

    /// The device, or the one that holds the file.
    pub(super) fn device(&self) -> Device {
        Device::of(self.device)
    }
}

const NAMES: usize = 12;
const NAME_BYTES: usize = 64;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct FileNames([[u8; NAME_BYTES]; NAMES]);

// SAFETY: bytes throughout.
unsafe impl Plain for FileNames {}

impl FileNames {
    /// The path within its file system; none without a name.
    pub(super) fn path(&self) -> Option<String> {
        path(&self.0)
    }
}

static OBJECT: &[u8] = &Aligned(*include_bytes!("../../bpf/io.bpf.o")).0;

/// The parser wants the object where a u64 could be.
#[repr(C, align(8))]
pub(super) struct Aligned<T: ?Sized>(pub T);

/// What must be there for a request or a call to find its end is attached first.
const BLOCK_PROGRAMS: [&str; 6] = [
    "sched_process_exit",
    "sched_process_fork",
    "block_io_done",
    "block_rq_merge",
    "block_rq_issue",
    "block_io_start",
];
const CALL_PROGRAMS: [&str; 2] = ["sys_exit", "sys_enter"];

/// Counts as long as it lives.
#[derive(Debug)]
pub struct IoTracer {
    totals: Table<IoKey, IoTotals>,
    files: Table<FileKey, FileNames>,
    wanted: Table<u32, u8>,
    settings: Table<u32, u32>,
    dropped: Table<u32, u64>,
    /// What [`Self::want`] has set so far.
    set: BTreeSet<u32>,
    loaded: Loaded,
}

impl IoTracer {
    /// Starts to count block requests, and system calls if wanted, of the processes of `tgids`.
    /// Fails when the kernel does not take the programs.
    pub fn start(system_calls: bool, tgids: &BTreeSet<u32>) -> Result<Self, BpfError> {
        let loaded = Loaded::new(OBJECT)?;
        let mut tracer = Self {
            totals: open(&loaded, "totals")?,
            files: open(&loaded, "files")?,
            wanted: open(&loaded, "wanted")?,
            settings: open(&loaded, "settings")?,
            dropped: open(&loaded, "dropped")?,
            set: BTreeSet::new(),
            loaded,
        };
        tracer.want(tgids)?;
        let calls: &[&str] = if system_calls { &CALL_PROGRAMS } else { &[] };
        tracer.loaded.attach(&[&BLOCK_PROGRAMS, calls].concat())?;
        Ok(tracer)
    }

    /// From now on counts these processes and the children they will have, and threads of the
    /// kernel at the block layer; with an empty set, all processes. Fails when there is no room for
    /// that many.
    pub fn want(&mut self, tgids: &BTreeSet<u32>) -> Result<(), BpfError> {
        for tgid in self.set.difference(tgids) {
            self.wanted.remove(tgid).map_err(on("write", "wanted"))?;
        }
        for tgid in tgids {
            self.wanted.set(tgid, &1).map_err(on("write", "wanted"))?;
        }
        let filtered = u32::from(!tgids.is_empty());
        self.settings.set(&0, &filtered).map_err(on("write", "settings"))?;
        self.set.clone_from(tgids);
        Ok(())
    }

    /// Gives the sums of every key as they are now.
    pub fn each(&mut self, visit: impl FnMut(&IoKey, &IoTotals)) -> Result<(), BpfError> {
        self.totals.each(visit).map_err(on("read", "totals"))
    }

    /// Removes a key and returns its last sums.
    pub fn take(&self, key: &IoKey) -> Result<Option<IoTotals>, BpfError> {
        self.totals.take(key).map_err(on("read", "totals"))
    }

    /// The path of a key's file within its file system when first seen; none without a name.
    pub fn path_of(&self, key: &IoKey) -> Result<Option<String>, BpfError> {
        let Subject::File { .. } = key.subject() else { return Ok(None) };
        let found = self.files.get(&key.file).map_err(on("read", "files"))?;
        Ok(found.and_then(|names| names.path()))
    }

    pub fn audit(&self) -> Audit {
        let dropped = self.dropped.get(&0).ok().flatten().unwrap_or(0);
        let (runs, own_ns) = self.loaded.spent().unzip();
        Audit { dropped, runs, own_ns }
    }
}

impl IoKey {
    pub fn layer(&self) -> Layer {
        if self.layer == 0 { Layer::Block } else { Layer::SystemCall }
    }

    pub fn operation(&self) -> Operation {
        match self.operation {
            0 => Operation::Read,
            1 => Operation::Write,
            2 => Operation::Flush,
            3 => Operation::Discard,
            _ => Operation::Submit,
        }
    }

    pub fn mode(&self) -> Mode {
        if self.mode == 0 { Mode::Synchronous } else { Mode::Asynchronous }
    }

    pub fn subject(&self) -> Subject {
        self.file.subject(self.kind)
    }

    /// The device, or the one that holds the file.
    pub fn device(&self) -> Device {
        Device::of(self.file.device)
    }
}

impl IoTotals {
    /// The name of the thread when it was first seen.
    pub fn comm(&self) -> String {
        text(&self.comm)
    }
}

/// From the names of a file and the directories above it, the root of its file system last.
fn path(names: &[[u8; NAME_BYTES]]) -> Option<String> {
    let names: Vec<String> =
        names.iter().map(|name| text(name)).take_while(|name| !name.is_empty()).collect();
    let from_root: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    // Of a deeper path the upper end is not known.
    let start = if names.len() == NAMES { "…/" } else { "/" };
    (!names.is_empty()).then(|| format!("{start}{}", from_root.join("/")))
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bucket in which the kernel program counts a latency.
    fn bucket_of(ns: u64) -> usize {
        match ns {
            ..0x400 => 0,
            0x400..0x4_0000_0000 => {
                let octave = ns.ilog2();
                1 + (octave as usize - 10) * 4 + (ns >> (octave - 2) & 3) as usize
            }
            _ => BUCKETS - 1,
        }
    }

    #[test]
    fn each_latency_lies_within_its_bucket() {
        for bucket in 0..BUCKETS {
            let start_ns = bucket_start_ns(bucket);
            assert_eq!(bucket_of(start_ns), bucket);
            if bucket > 0 {
                assert_eq!(bucket_of(start_ns - 1), bucket - 1);
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!((bucket_start_ns(1), bucket_start_ns(2)), (1024, 1280));
        assert_eq!(bucket_start_ns(BUCKETS - 1), 1 << 34);
    }

    #[test]
    fn writes_of_this_thread_are_counted_under_its_name() {
        blockstone_testkit::require!(Bpf);
        let mut tracer = IoTracer::start(true, &BTreeSet::new()).unwrap();
        let scratch = blockstone_testkit::ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("counted");
        let written = path.clone();
        let writer = std::thread::Builder::new().name("the-writer".into());
        let writer = writer.spawn(move || std::fs::write(written, [7; 4321]).unwrap());
        writer.unwrap().join().unwrap();
        let mut seen = Vec::new();
        tracer.each(|key, totals| seen.push((*key, *totals))).unwrap();
        seen.retain(|(key, totals)| {
            key.operation() == Operation::Write
                && key.layer() == Layer::SystemCall
                && totals.comm() == "the-writer"
        });
        assert_eq!(seen.len(), 1, "{seen:?}");
        let (key, totals) = seen[0];
        assert_eq!((totals.ios, totals.bytes, totals.buckets.iter().sum()), (1, 4321, 1_u64));
        let inner = tracer.path_of(&key).unwrap().unwrap();
        assert!(path.to_str().unwrap().ends_with(&inner), "{inner}");
        assert_eq!(tracer.take(&key).unwrap(), Some(totals));
        assert_eq!(tracer.take(&key).unwrap(), None);
    }

    #[test]
    fn names_become_a_path() {
        let name = |text: &str| {
            let mut bytes = [0; NAME_BYTES];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            bytes
        };
        let mut names = [[0; NAME_BYTES]; NAMES];
        assert_eq!(path(&names), None);
        names[0] = name("16384");
        names[1] = name("base");
        assert_eq!(path(&names).as_deref(), Some("/base/16384"));
        assert!(path(&[name("d"); NAMES]).unwrap().starts_with("…/d/d"));
    }
}
