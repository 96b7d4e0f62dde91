//! In which sizes some processes ask for I/O, and in which sizes the page cache and the device get
//! it, counted inside the kernel. docs/bpf.md has the definitions.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{FileKey, Files};
use super::follow::{self, Followed};
use super::load::Loaded;
use super::table::{Plain, Table};
use super::{BpfError, Device, Subject, count, object, on, open};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// System calls, page faults and requests to a ring.
    Asked,
    /// Folios that are added to the page cache.
    Cache,
    /// Requests to block devices.
    Device,
}

/// What asks for I/O, by the number that the program has for it.
const CALLS: [&str; 14] = [
    "read",
    "pread",
    "readv",
    "preadv",
    "write",
    "pwrite",
    "writev",
    "pwritev",
    "copy_file_range",
    "sendfile",
    "splice",
    "page fault",
    "io_uring",
    "",
];

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct SizeKey {
    file: FileKey,
    tgid: u32,
    tid: u32,
    layer: u8,
    operation: u8,
    call: u8,
    kind: u8,
    zero: u32,
    size: u64,
}

// SAFETY: its fields fill 40 bytes without a gap, and any bytes are numbers.
unsafe impl Plain for SizeKey {}

/// All cumulative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Those that did not fail.
    pub calls: u64,
    /// Those of them that moved something: what is read at the end of a file moves nothing.
    pub moved: u64,
    pub failed: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// Of those that moved something, those that begin where the last of this file ended.
    pub sequential: u64,
    /// Of those that moved something, those that begin and end at a multiple of 4 KiB.
    pub aligned: u64,
}

// SAFETY: u64 throughout, and any bytes are numbers.
unsafe impl Plain for Sum {}

/// A file, a device, or what belongs to no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    file: FileKey,
    kind: u8,
}

impl Place {
    pub fn subject(&self) -> Subject {
        self.file.subject(self.kind)
    }

    /// The device, or the one that holds the file.
    pub fn device(&self) -> Device {
        self.file.device()
    }
}

/// I/O of one exact size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfSize {
    pub place: Place,
    pub layer: Layer,
    pub is_write: bool,
    /// The system call, `io_uring` or `page fault`; empty in the other layers.
    pub call: &'static str,
    /// What was asked for; what was moved is in the sum.
    pub size_bytes: u64,
    pub sum: Sum,
}

/// What must be there for a call or a request to find its end is attached first.
const PROGRAMS: [&str; 6] = [
    "block_rq_merge",
    "block_rq_issue",
    "block_io_start",
    "mm_filemap_add_to_page_cache",
    "sys_exit",
    "sys_enter",
];
/// Not every kernel has their tracepoints.
const OPTIONAL: [&str; 2] = ["mm_filemap_fault", "io_uring_submit_req"];

/// Counts as long as it lives.
#[derive(Debug)]
pub struct SizeTracer {
    sizes: Table<SizeKey, Sum>,
    files: Files,
    followed: Followed,
    dropped: Table<u32, u64>,
    /// Whether page faults and requests to a ring are seen.
    pub sees_faults: bool,
    pub sees_rings: bool,
    _loaded: Loaded,
}

impl SizeTracer {
    /// Starts with no process. Fails when the kernel does not take the programs.
    pub fn start() -> Result<Self, BpfError> {
        let mut loaded = Loaded::new(object!("iosize"))?;
        let programs = [&follow::PROGRAMS, &PROGRAMS[..]].concat();
        let [sees_faults, sees_rings] = loaded.attach(&programs, OPTIONAL)?;
        Ok(Self {
            sizes: open(&loaded, "sizes")?,
            files: Files::open(&loaded)?,
            followed: Followed::open(&loaded)?,
            dropped: open(&loaded, "dropped")?,
            sees_faults,
            sees_rings,
            _loaded: loaded,
        })
    }

    /// From now on counts this process, by its id in the initial PID namespace, and the children
    /// that it will have.
    pub fn want(&self, tgid: u32) -> Result<(), BpfError> {
        self.followed.want([&tgid])
    }

    /// From now on does not count this process; the children that it has are counted still.
    pub fn forget(&self, tgid: u32) -> Result<(), BpfError> {
        self.followed.forget([&tgid])
    }

    /// Processes that are counted and have not ended.
    pub fn living(&mut self) -> Result<BTreeSet<u32>, BpfError> {
        self.followed.living()
    }

    /// What was counted, by place, layer, operation, call and size.
    pub fn sizes(&mut self) -> Result<Vec<OfSize>, BpfError> {
        let mut found = BTreeMap::new();
        let each = self.sizes.each(|key, sum| {
            found.insert(*key, *sum);
        });
        each.map_err(on("read", "sizes"))?;
        let of = |(key, sum): (SizeKey, Sum)| OfSize {
            place: Place { file: key.file, kind: key.kind },
            layer: match key.layer {
                0 => Layer::Asked,
                1 => Layer::Cache,
                _ => Layer::Device,
            },
            is_write: key.operation != 0,
            call: CALLS.get(usize::from(key.call)).copied().unwrap_or_default(),
            size_bytes: key.size,
            sum,
        };
        Ok(found.into_iter().map(of).collect())
    }

    /// The path of a file within its file system when first seen; none without a name.
    pub fn path_of(&self, place: &Place) -> Result<Option<String>, BpfError> {
        self.files.path_of(&place.file, place.kind)
    }

    /// Calls, requests, files and processes that are not counted, because a table had no room.
    pub fn dropped(&self) -> u64 {
        count(&self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use blockstone_testkit::{ScratchDir, require};

    use super::*;

    #[test]
    fn calls_of_a_child_are_counted_by_exact_size() {
        require!(Bpf);
        let scratch = ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("counted");
        std::fs::write(&path, vec![7; 100 * 1024]).unwrap();
        let mut tracer = SizeTracer::start().unwrap();
        let own = std::process::id();
        tracer.want(own).unwrap();
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", path.display())).args(["of=/dev/null", "bs=3000", "count=20"]);
        let mut dd = dd.stderr(Stdio::null()).spawn().unwrap();
        tracer.forget(own).unwrap();
        assert!(dd.wait().unwrap().success());
        let sizes = tracer.sizes().unwrap();
        let of_file = |size: &&OfSize| {
            let inner = tracer.path_of(&size.place).unwrap().unwrap_or_default();
            inner.len() > 1 && path.to_str().unwrap().ends_with(&inner)
        };
        let asked: Vec<&OfSize> =
            sizes.iter().filter(|size| size.layer == Layer::Asked).filter(of_file).collect();
        let [asked] = asked[..] else { panic!("{asked:?} of {sizes:?}") };
        assert_eq!((asked.call, asked.size_bytes, asked.is_write), ("read", 3000, false));
        let sum = asked.sum;
        assert_eq!((sum.calls, sum.moved, sum.bytes, sum.failed), (20, 20, 60_000, 0));
        assert_eq!((sum.sequential, sum.aligned), (20, 0));
        assert_eq!((tracer.living().unwrap(), tracer.dropped()), (BTreeSet::new(), 0));
    }
}
