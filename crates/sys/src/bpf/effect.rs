//! What becomes of the reads and writes of some processes to some files: which calls added pages to
//! the page cache, and how often the kernel entered its direct path. docs/bpf.md has the
//! definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use super::io::Aligned;
use super::load::Loaded;
use super::table::{Plain, Table};
use super::{BpfError, on, open};

/// Files that can be watched by one tracer.
pub const FILES_MAX: usize = 2048;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Settings {
    namespace_device: u64,
    namespace_inode: u64,
    tgid: u32,
    fd: i32,
    /// The number of the file that is being introduced, from 1; zero when none is.
    index: u32,
    own: u32,
}

// SAFETY: its fields fill 32 bytes without a gap, and any bytes are numbers.
unsafe impl Plain for Settings {}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Key {
    file: u32,
    operation: u8,
    direct: u8,
    zero: [u8; 2],
}

// SAFETY: its fields fill 8 bytes without a gap, and any bytes are numbers.
unsafe impl Plain for Key {}

/// Reads or writes of one file through descriptors with `O_DIRECT`, or through others.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Those that succeeded.
    pub calls: u64,
    pub bytes: u64,
    /// Those of them that added pages to the page cache.
    pub cached_calls: u64,
    pub added_pages: u64,
    pub failed_calls: u64,
}

// SAFETY: u64 throughout, and any bytes are numbers.
unsafe impl Plain for Calls {}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct OfFile {
    direct_ios: u64,
    other_pages: u64,
}

// SAFETY: u64 throughout, and any bytes are numbers.
unsafe impl Plain for OfFile {}

/// What was counted of a file, all cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Through descriptors with `O_DIRECT`: reads, writes.
    pub direct: [Calls; 2],
    /// Through others.
    pub buffered: [Calls; 2],
    /// Times the kernel entered its direct path (iomap) for the file, by system calls, `io_uring`
    /// or AIO; none where this kernel does not tell. Entering it is no proof: it may fall back.
    pub direct_ios: Option<u64>,
    /// Pages added outside of read and write calls: by AIO, `io_uring`, page faults, sendfile.
    pub other_pages: u64,
}

static OBJECT: &[u8] = &Aligned(*include_bytes!("../../bpf/effect.bpf.o")).0;

/// What must be there for a call to find its end is attached first.
const PROGRAMS: [&str; 5] = [
    "sched_process_exit",
    "sched_process_fork",
    "mm_filemap_add_to_page_cache",
    "sys_exit",
    "sys_enter",
];
/// Older kernels do not have its tracepoint.
const DIRECT_PATH: &str = "iomap_dio_rw_begin";

/// Counts as long as it lives, of the files that it holds open.
#[derive(Debug)]
pub struct EffectTracer {
    settings: Table<u32, Settings>,
    effects: Table<Key, Calls>,
    paths: Table<u32, OfFile>,
    dropped: Table<u32, u64>,
    sees_direct_path: bool,
    owner: Settings,
    files: Vec<File>,
    _loaded: Loaded,
}

impl EffectTracer {
    /// Watches these processes (by their ids in the initial PID namespace) and the children they
    /// will have; with none, this process. Fails when the kernel does not take the programs.
    pub fn start(tgids: &BTreeSet<u32>) -> Result<Self, BpfError> {
        let missing = |error: io::Error| BpfError::Missing { why: error.to_string() };
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_err(missing)?;
        let (major, minor) =
            (rustix::fs::major(namespace.dev()), rustix::fs::minor(namespace.dev()));
        let mut loaded = Loaded::new(OBJECT)?;
        let wanted: Table<u32, u8> = open(&loaded, "wanted")?;
        for tgid in tgids {
            wanted.set(tgid, &1).map_err(on("write", "wanted"))?;
        }
        let sees_direct_path = loaded.attach_with(&PROGRAMS, DIRECT_PATH)?;
        let tracer = Self {
            settings: open(&loaded, "settings")?,
            effects: open(&loaded, "effects")?,
            paths: open(&loaded, "paths")?,
            dropped: open(&loaded, "dropped")?,
            sees_direct_path,
            owner: Settings {
                // The kernel's own form, not that of stat(2): linux/kdev_t.h.
                namespace_device: u64::from(major) << 20 | u64::from(minor),
                namespace_inode: namespace.ino(),
                tgid: std::process::id(),
                fd: -1,
                index: 0,
                own: u32::from(tgids.is_empty()),
            },
            files: Vec::new(),
            _loaded: loaded,
        };
        tracer.set(&tracer.owner)?;
        Ok(tracer)
    }

    /// From now on counts this file or device too; returns its number. Fails when there are too
    /// many, or when the kernel's program did not see it.
    pub fn watch(&mut self, file: File) -> Result<usize, BpfError> {
        let number = self.files.len();
        if number == FILES_MAX {
            let why = format!("{FILES_MAX} files are watched already");
            return Err(BpfError::Missing { why });
        }
        let settings = Settings { fd: file.as_raw_fd(), index: number as u32 + 1, ..self.owner };
        self.set(&settings)?;
        // The program at the entry of this call takes the file's identity from the descriptor.
        let _ = rustix::fs::seek(&file, rustix::fs::SeekFrom::Current(0));
        let left = self.settings.get(&0).map_err(on("read", "settings"))?;
        let seen = left.is_some_and(|left| left.index == 0);
        self.set(&self.owner)?;
        if !seen {
            let why = "the program at lseek(2) did not see a file of this process".to_owned();
            return Err(BpfError::Missing { why });
        }
        self.files.push(file);
        Ok(number)
    }

    /// What was counted of each file, in the order in which they were watched. Of two descriptors
    /// of one file, the first has all.
    pub fn effects(&mut self) -> Result<Vec<Effect>, BpfError> {
        let mut found: BTreeMap<(u32, u8, u8), Calls> = BTreeMap::new();
        let each = self.effects.each(|key, calls| {
            found.insert((key.file, key.operation, key.direct), *calls);
        });
        each.map_err(on("read", "effects"))?;
        let calls = |file, direct| {
            [0, 1].map(|op| found.get(&(file, op, direct)).copied().unwrap_or_default())
        };
        let effect = |file: u32| {
            let path = self.paths.get(&file).map_err(on("read", "paths"))?;
            let (direct_ios, other_pages) =
                path.map_or((0, 0), |path| (path.direct_ios, path.other_pages));
            Ok(Effect {
                direct: calls(file, 1),
                buffered: calls(file, 0),
                direct_ios: self.sees_direct_path.then_some(direct_ios),
                other_pages,
            })
        };
        (0..self.files.len() as u32).map(effect).collect()
    }

    /// What was counted of one file.
    pub fn effect(&mut self, number: usize) -> Result<Effect, BpfError> {
        Ok(self.effects()?.get(number).copied().unwrap_or_default())
    }

    /// Calls that are not counted, because a table had no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.get(&0).ok().flatten().unwrap_or(0)
    }

    fn set(&self, settings: &Settings) -> Result<(), BpfError> {
        self.settings.set(&0, settings).map_err(on("write", "settings"))
    }
}

impl Effect {
    /// Reads and writes through descriptors with `O_DIRECT` together.
    pub fn all_direct(&self) -> Calls {
        self.direct[0].plus(&self.direct[1])
    }

    pub fn all_buffered(&self) -> Calls {
        self.buffered[0].plus(&self.buffered[1])
    }
}

impl Calls {
    fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            bytes: self.bytes + other.bytes,
            cached_calls: self.cached_calls + other.cached_calls,
            added_pages: self.added_pages + other.added_pages,
            failed_calls: self.failed_calls + other.failed_calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    use blockstone_testkit::{ScratchDir, require};

    use super::*;
    use crate::buffer::Slot;
    use crate::file::{Access, BlockFile};

    #[test]
    fn calls_of_this_process_are_counted_by_file_and_descriptor() {
        require!(Bpf);
        let scratch = ScratchDir::on_disk().unwrap();
        let paths = ["one", "two"].map(|name| scratch.path().join(name));
        let mut tracer = EffectTracer::start(&BTreeSet::new()).unwrap();
        for (number, path) in paths.iter().enumerate() {
            std::fs::write(path, vec![7; 1 << 20]).unwrap();
            let file = BlockFile::open(path, Access::ReadWrite, false).unwrap();
            file.fsync().unwrap();
            file.drop_cached().unwrap();
            assert_eq!(tracer.watch(File::open(path).unwrap()).unwrap(), number);
        }
        let mut buffer = Slot::new(8192).unwrap();
        let direct = BlockFile::open(&paths[0], Access::Read, true).unwrap();
        for at in 0..5 {
            assert_eq!(direct.read_at(at * 8192, &mut buffer), Ok(8192));
        }
        let buffered = File::open(&paths[1]).unwrap();
        buffered.read_exact_at(&mut buffer, 0).unwrap();
        buffered.read_exact_at(&mut buffer, 0).unwrap();
        let [one, two] = tracer.effects().unwrap().try_into().unwrap();
        let [reads, writes] = one.direct;
        assert_eq!((reads.calls, reads.bytes, reads.cached_calls), (5, 40_960, 0), "{one:?}");
        assert_eq!((reads.added_pages, writes), (0, Calls::default()));
        assert_eq!(one.all_buffered(), Calls::default());
        assert!(one.direct_ios.is_none_or(|ios| ios >= 5), "{one:?}");
        let reads = two.buffered[0];
        assert_eq!((reads.calls, reads.cached_calls), (2, 1), "the second found them: {two:?}");
        assert!(reads.added_pages >= 2 && two.direct_ios.is_none_or(|ios| ios == 0), "{two:?}");
        assert_eq!(tracer.dropped(), 0);
    }

    #[test]
    fn calls_of_other_processes_are_counted_when_they_are_wanted() {
        require!(Bpf);
        let scratch = ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("wanted");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        // It waits for a line before it reads in a child of its own.
        let mut shell = Command::new("sh");
        shell.args(["-c", "read go; dd bs=64K if=\"$0\" of=/dev/null"]).arg(&path);
        shell.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut shell = shell.spawn().unwrap();
        let mut tracer = EffectTracer::start(&BTreeSet::from([shell.id()])).unwrap();
        tracer.watch(File::open(&path).unwrap()).unwrap();
        std::fs::read(&path).unwrap();
        drop(shell.stdin.take().map(|mut stdin| io::Write::write_all(&mut stdin, b"go\n")));
        assert!(shell.wait().unwrap().success());
        let effect = tracer.effect(0).unwrap();
        let reads = effect.all_buffered();
        assert_eq!(reads.bytes, 1 << 20, "those of this process are not among them: {effect:?}");
        assert!(reads.calls >= 16 && effect.all_direct() == Calls::default(), "{effect:?}");
    }
}
