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
const CALLS: [&str; 15] = [
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
    "aio",
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
    /// The system call, `io_uring`, `aio` or `page fault`; empty in the other layers.
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
const OPTIONAL: [&str; 6] = [
    "page_fault_user",
    "page_fault_kernel",
    "writeback_dirty_folio",
    "mm_filemap_fault",
    "io_uring_complete",
    "io_uring_submit_req",
];

/// Counts as long as it lives.
#[derive(Debug)]
pub struct SizeTracer {
    sizes: Table<SizeKey, Sum>,
    files: Files,
    followed: Followed,
    dropped: Table<u32, u64>,
    /// Whether page faults are seen, writes to mapped pages, and requests to a ring.
    pub sees_faults: bool,
    pub sees_mapped_writes: bool,
    pub sees_rings: bool,
    _loaded: Loaded,
}

impl SizeTracer {
    /// Starts with no process. Fails when the kernel does not take the programs.
    pub fn start() -> Result<Self, BpfError> {
        let mut loaded = Loaded::new(object!("iosize"))?;
        let programs = [&follow::PROGRAMS, &PROGRAMS[..]].concat();
        let [users, kernels, dirtied, faults, ends, submits] =
            loaded.attach(&programs, OPTIONAL)?;
        Ok(Self {
            sizes: open(&loaded, "sizes")?,
            files: Files::open(&loaded)?,
            followed: Followed::open(&loaded)?,
            dropped: open(&loaded, "dropped")?,
            sees_faults: faults && users && kernels,
            sees_mapped_writes: dirtied && users,
            sees_rings: ends && submits,
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
mod tests;
