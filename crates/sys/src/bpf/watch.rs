//! This process as the programs identify it, and the files that it registers with them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use super::file::Device;
use super::load::Loaded;
use super::table::{Plain, Table};
use super::{BpfError, on, open};

/// Files that can be watched at the same time.
const FILES_MAX: usize = 2048;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Owner {
    namespace_device: u64,
    namespace_inode: u64,
    tgid: u32,
    counts: u32,
}

// SAFETY: its fields fill 24 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for Owner {}

/// Makes the programs recognise this process, by its ID in its own PID namespace; `counts` says
/// whether its own I/O is counted when only that of selected processes is.
pub(super) fn own(loaded: &Loaded, counts: bool) -> Result<(), BpfError> {
    let namespace = std::fs::metadata("/proc/self/ns/pid");
    let namespace = namespace.map_err(|error| BpfError::Missing { why: error.to_string() })?;
    let owner = Owner {
        namespace_device: Device::of_stat(namespace.dev()).number().into(),
        namespace_inode: namespace.ino(),
        tgid: std::process::id(),
        counts: counts.into(),
    };
    open(loaded, "owner")?.set(&0_u32, &owner).map_err(on("write", "owner"))
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Introduction {
    fd: i32,
    /// Number of the file being introduced, from 1; zero if there is none.
    number: u32,
}

// SAFETY: its fields fill 8 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for Introduction {}

/// Files that the programs know by number for as long as this holds them open.
#[derive(Debug)]
pub(super) struct Watched {
    introduction: Table<u32, Introduction>,
    numbers: Table<u64, u32>,
    files: Vec<File>,
}

impl Watched {
    pub(super) fn open(loaded: &Loaded) -> Result<Self, BpfError> {
        Ok(Self {
            introduction: open(loaded, "introduction")?,
            numbers: open(loaded, "watched")?,
            files: Vec::new(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Registers a file or device and returns its number. Fails when there are too many, or when
    /// the kernel's program did not see it.
    pub(super) fn add(&mut self, file: File) -> Result<usize, BpfError> {
        let number = self.files.len();
        if number == FILES_MAX {
            let why = format!("{FILES_MAX} files are watched already");
            return Err(BpfError::Missing { why });
        }
        let introduce = |number| {
            let introduction = Introduction { fd: file.as_raw_fd(), number };
            self.introduction.set(&0, &introduction).map_err(on("write", "introduction"))
        };
        introduce(number as u32 + 1)?;
        // The program at the entry of this call reads the file's identity from the descriptor.
        let _ = rustix::fs::seek(&file, rustix::fs::SeekFrom::Current(0));
        let left = self.introduction.get(&0).map_err(on("read", "introduction"))?;
        introduce(0)?;
        if left.is_none_or(|left| left.number != 0) {
            let why = "the program at lseek(2) did not see a file of this process".to_owned();
            return Err(BpfError::Missing { why });
        }
        self.files.push(file);
        Ok(number)
    }

    /// Forgets all files.
    pub(super) fn clear(&mut self) -> Result<(), BpfError> {
        let mut known = Vec::new();
        self.numbers.each(|inode, _| known.push(*inode)).map_err(on("read", "watched"))?;
        for inode in known {
            self.numbers.remove(&inode).map_err(on("write", "watched"))?;
        }
        self.files.clear();
        Ok(())
    }
}
