//! The effect of reads and writes of some processes on some files: which calls added pages to the
//! page cache, and how often the kernel entered its direct path. docs/bpf.md has the definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use super::follow::{self, Followed};
use super::load::Loaded;
use super::table::{Plain, Table};
use super::watch::{Watched, own};
use super::{BpfError, count, object, on, open};

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Key {
    file: u32,
    operation: u8,
    direct: u8,
    zero: [u8; 2],
}

// SAFETY: its fields fill 8 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for Key {}

/// Reads or writes of one file, either through descriptors with `O_DIRECT` or through others.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls that succeeded.
    pub calls: u64,
    pub bytes: u64,
    /// Successful calls that added pages to the page cache.
    pub cached_calls: u64,
    pub added_pages: u64,
    pub failed_calls: u64,
}

// SAFETY: u64 throughout, and any bytes are valid numbers.
unsafe impl Plain for Calls {}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct OfFile {
    direct_ios: u64,
    other_pages: u64,
}

// SAFETY: u64 throughout, and any bytes are valid numbers.
unsafe impl Plain for OfFile {}

/// Counts for a file, all cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Reads and writes through descriptors with `O_DIRECT`.
    pub direct: [Calls; 2],
    /// Reads and writes through other descriptors.
    pub buffered: [Calls; 2],
    /// Times the kernel entered its direct path (iomap) for the file, by system calls, `io_uring`
    /// or AIO; `None` if this kernel does not report it. Entering the path does not prove direct
    /// I/O: it may fall back.
    pub direct_ios: Option<u64>,
    /// Pages added outside read and write calls: by AIO, `io_uring`, page faults or sendfile.
    pub other_pages: u64,
}

/// Attached in this order, so that the end of a call is seen if its start is.
const PROGRAMS: [&str; 3] = ["mm_filemap_add_to_page_cache", "sys_exit", "sys_enter"];
/// Older kernels do not have this tracepoint.
const DIRECT_PATH: &str = "iomap_dio_rw_begin";

/// Counts until it is dropped, for the files that it holds open.
#[derive(Debug)]
pub struct EffectTracer {
    effects: Table<Key, Calls>,
    paths: Table<u32, OfFile>,
    dropped: Table<u32, u64>,
    sees_direct_path: bool,
    watched: Watched,
    _loaded: Loaded,
}

impl EffectTracer {
    /// Watches these processes (by their IDs in the initial PID namespace) and their future
    /// children; this process if there are none. Fails when the kernel does not accept the
    /// programs.
    pub fn start(tgids: &BTreeSet<u32>) -> Result<Self, BpfError> {
        let mut loaded = Loaded::new(object!("effect"))?;
        Followed::open(&loaded)?.want(tgids)?;
        own(&loaded, tgids.is_empty())?;
        let programs = [&follow::PROGRAMS, &PROGRAMS[..]].concat();
        let [sees_direct_path] = loaded.attach(&programs, [DIRECT_PATH])?;
        Ok(Self {
            effects: open(&loaded, "effects")?,
            paths: open(&loaded, "paths")?,
            dropped: open(&loaded, "dropped")?,
            sees_direct_path,
            watched: Watched::open(&loaded)?,
            _loaded: loaded,
        })
    }

    /// Counts this file or device too from now on, and returns its number. Fails when there are too
    /// many, or when the kernel's program did not see it.
    pub fn watch(&mut self, file: File) -> Result<usize, BpfError> {
        self.watched.add(file)
    }

    /// Returns the counts of each file, in the order in which they were watched. If two descriptors
    /// are of the same file, the first has all of its counts.
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
        (0..self.watched.len() as u32).map(effect).collect()
    }

    /// Returns the counts of one file.
    pub fn effect(&mut self, number: usize) -> Result<Effect, BpfError> {
        Ok(self.effects()?.get(number).copied().unwrap_or_default())
    }

    /// Returns the number of calls that were not counted because a table was full.
    pub fn dropped(&self) -> u64 {
        count(&self.dropped)
    }
}

impl Effect {
    /// Returns the sum of reads and writes through descriptors with `O_DIRECT`.
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
        // The shell waits for a line before it reads in a child of its own.
        let mut shell = Command::new("sh");
        shell.args(["-c", "read go; dd bs=64K if=\"$0\" of=/dev/null"]).arg(&path);
        shell.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut shell = shell.spawn().unwrap();
        let mut tracer = EffectTracer::start(&BTreeSet::from([shell.id()])).unwrap();
        tracer.watch(File::open(&path).unwrap()).unwrap();
        std::fs::read(&path).unwrap();
        drop(shell.stdin.take().map(|mut stdin| std::io::Write::write_all(&mut stdin, b"go\n")));
        assert!(shell.wait().unwrap().success());
        let effect = tracer.effect(0).unwrap();
        let reads = effect.all_buffered();
        assert_eq!(reads.bytes, 1 << 20, "those of this process are not among them: {effect:?}");
        assert!(reads.calls >= 16 && effect.all_direct() == Calls::default(), "{effect:?}");
    }
}
