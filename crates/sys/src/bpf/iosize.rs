//! Sizes in which some processes request I/O, and sizes in which it reaches the page cache and the
//! device, counted inside the kernel. docs/bpf.md has the definitions.

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

/// Sources of I/O requests, indexed by the number that the program uses.
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

// SAFETY: its fields fill 40 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for SizeKey {}

/// Cumulative counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Calls that did not fail.
    pub calls: u64,
    /// Successful calls that moved data: a read at the end of a file moves none.
    pub moved: u64,
    pub failed: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Calls that moved data and began where the previous one on this file ended.
    pub sequential: u64,
    /// Calls that moved data and began and ended at a multiple of 4 KiB.
    pub aligned: u64,
}

// SAFETY: u64 throughout, and any bytes are valid numbers.
unsafe impl Plain for Sum {}

/// A file, a device, or I/O that belongs to no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoObject {
    file: FileKey,
    kind: u8,
}

impl IoObject {
    pub fn subject(&self) -> Subject {
        self.file.subject(self.kind)
    }

    /// Returns the device, or the one that holds the file.
    pub fn device(&self) -> Device {
        self.file.device()
    }
}

/// I/O of one exact size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfSize {
    pub place: IoObject,
    /// The process that asked, by its ID in the initial PID namespace, if processes are told apart;
    /// 0 otherwise, and in the other layers.
    pub tgid: u32,
    pub layer: Layer,
    pub is_write: bool,
    /// The system call, `io_uring`, `aio` or `page fault`; empty in the other layers.
    pub call: &'static str,
    /// Bytes requested; the bytes moved are in `sum`.
    pub size_bytes: u64,
    pub sum: Sum,
}

/// Attached in this order, so that the end of a call or request is seen if its start is.
const PROGRAMS: [&str; 6] = [
    "block_rq_merge",
    "block_rq_issue",
    "block_io_start",
    "mm_filemap_add_to_page_cache",
    "sys_exit",
    "sys_enter",
];
/// Programs whose tracepoints not every kernel has.
const OPTIONAL: [&str; 6] = [
    "page_fault_user",
    "page_fault_kernel",
    "writeback_dirty_folio",
    "mm_filemap_fault",
    "io_uring_complete",
    "io_uring_submit_req",
];

/// Counts I/O until it is dropped.
#[derive(Debug)]
pub struct SizeTracer {
    sizes: Table<SizeKey, Sum>,
    files: Files,
    followed: Followed,
    apart: Table<u32, u32>,
    dropped: Table<u32, u64>,
    /// Whether page faults, writes to mapped pages and requests to a ring are seen.
    pub sees_faults: bool,
    pub sees_mapped_writes: bool,
    pub sees_rings: bool,
    _loaded: Loaded,
}

impl SizeTracer {
    /// Starts without any process. Fails when the kernel does not accept the programs.
    pub fn start() -> Result<Self, BpfError> {
        let mut loaded = Loaded::new(object!("iosize"))?;
        let programs = [&follow::PROGRAMS, &PROGRAMS[..]].concat();
        let [users, kernels, dirtied, faults, ends, submits] =
            loaded.attach(&programs, OPTIONAL)?;
        Ok(Self {
            sizes: open(&loaded, "sizes")?,
            files: Files::open(&loaded)?,
            followed: Followed::open(&loaded)?,
            apart: open(&loaded, "apart")?,
            dropped: open(&loaded, "dropped")?,
            sees_faults: faults && users && kernels,
            sees_mapped_writes: dirtied && users,
            sees_rings: ends && submits,
            _loaded: loaded,
        })
    }

    /// Tells apart which process asks, from now on.
    pub fn tell_processes_apart(&self) -> Result<(), BpfError> {
        self.apart.set(&0, &1).map_err(on("write", "apart"))
    }

    /// Counts this process from now on, by its ID in the initial PID namespace, and its future
    /// children.
    pub fn want(&self, tgid: u32) -> Result<(), BpfError> {
        self.followed.want([&tgid])
    }

    /// Stops counting this process; the children that it already has are still counted.
    pub fn forget(&self, tgid: u32) -> Result<(), BpfError> {
        self.followed.forget([&tgid])
    }

    /// Returns the counted processes that have not ended.
    pub fn living(&mut self) -> Result<BTreeSet<u32>, BpfError> {
        self.followed.living()
    }

    /// Returns the counts, by place, layer, operation, call and size.
    pub fn sizes(&mut self) -> Result<Vec<OfSize>, BpfError> {
        let mut found = BTreeMap::new();
        let each = self.sizes.each(|key, sum| {
            found.insert(*key, *sum);
        });
        each.map_err(on("read", "sizes"))?;
        let of = |(key, sum): (SizeKey, Sum)| OfSize {
            place: IoObject { file: key.file, kind: key.kind },
            tgid: key.tgid,
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

    /// Returns the path of a file within its file system when first seen; `None` if it has no name.
    pub fn path_of(&self, place: &IoObject) -> Result<Option<String>, BpfError> {
        self.files.path_of(&place.file, place.kind)
    }

    /// Returns the number of calls, requests, files and processes not counted because a table was
    /// full.
    pub fn dropped(&self) -> u64 {
        count(&self.dropped)
    }
}

#[cfg(test)]
mod tests;
