//! Files in a known state: a real one, and three that make a benchmark report wrong results.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use blockstone_base::Bytes;
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

use crate::error::TestkitError;
use crate::lease::{self, Lease};

/// How the contents of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Written in full with incompressible data: the only kind whose reads reach the device.
    Real,
    /// Has a length but no blocks.
    Hole,
    /// Has blocks that were never written: the file system answers reads with zeros.
    Fallocated,
    /// Written in full with zeros: the device may compress or drop them.
    Zero,
}

impl FileKind {
    /// Creates the file, on stable storage and not in the page cache. It must not exist.
    pub fn create(self, path: &Path, size: Bytes) -> Result<(), TestkitError> {
        let mut file = File::create_new(path).map_err(TestkitError::file("create", path))?;
        self.write(&mut file, size.get())
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(fadvise(&file, 0, None, Advice::DontNeed)?))
            .map_err(TestkitError::file("write", path))
    }

    fn write(self, file: &mut File, size: u64) -> io::Result<()> {
        match self {
            Self::Real => {
                // Allocates the blocks first, contiguously, so that tests measure the device, not
                // the allocator of the file system.
                fallocate(&*file, FallocateFlags::empty(), 0, size)?;
                copy(&mut File::open("/dev/urandom")?, file, size)
            }
            Self::Hole => file.set_len(size),
            Self::Fallocated => Ok(fallocate(&*file, FallocateFlags::empty(), 0, size)?),
            Self::Zero => copy(&mut io::repeat(0), file, size),
        }
    }
}

/// Copies in pieces of 1 MiB; `io::copy` would use 8 KiB.
pub(crate) fn copy(source: &mut impl Read, target: &mut impl Write, size: u64) -> io::Result<()> {
    let mut piece = vec![0; 1 << 20];
    let mut left = size;
    while left > 0 {
        let length = left.min(piece.len() as u64) as usize;
        source.read_exact(&mut piece[..length])?;
        target.write_all(&piece[..length])?;
        left -= length as u64;
    }
    Ok(())
}

/// A private directory that is removed when it goes out of scope.
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
    _lease: Lease,
}

impl ScratchDir {
    /// Creates a directory on the disk that holds /var/tmp; /tmp may be in memory.
    pub fn on_disk() -> Result<Self, TestkitError> {
        Self::under(lease::DISK_ROOT)
    }

    /// Creates a directory in memory, on /dev/shm, where `O_DIRECT` succeeds but reaches no device.
    pub fn in_memory() -> Result<Self, TestkitError> {
        Self::under(lease::MEMORY_ROOT)
    }

    fn under(root: &str) -> Result<Self, TestkitError> {
        let lease = Lease::acquire(Path::new(root))?;
        let path = lease.dir().join("files");
        fs::create_dir(&path).map_err(TestkitError::file("create", &path))?;
        Ok(Self { path, _lease: lease })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// Returns the bytes in blocks allocated to the file.
    fn allocated(path: &Path) -> u64 {
        fs::metadata(path).unwrap().blocks() * 512
    }

    #[test]
    fn each_kind_lies_as_it_says() {
        let dir = ScratchDir::on_disk().unwrap();
        let size = Bytes::mib(4);
        let make = |kind: FileKind| {
            let path = dir.path().join(format!("{kind:?}"));
            kind.create(&path, size).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), size.get());
            path
        };
        let zeros = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            bytes.into_iter().filter(|&byte| byte == 0).count()
        };

        let hole = make(FileKind::Hole);
        assert_eq!(allocated(&hole), 0);
        let fallocated = make(FileKind::Fallocated);
        assert!(allocated(&fallocated) >= size.get());
        let zero = make(FileKind::Zero);
        assert!(allocated(&zero) >= size.get());
        assert_eq!(zeros(&zero), 4 << 20);
        let real = make(FileKind::Real);
        assert!(allocated(&real) >= size.get());
        // One byte in 256 of random data is zero: 16,384 in 4 MiB, with a standard deviation of
        // 128.
        assert!(zeros(&real).abs_diff(16_384) < 1_000);
    }

    #[test]
    fn a_file_is_never_overwritten() {
        let dir = ScratchDir::on_disk().unwrap();
        let path = dir.path().join("taken");
        fs::write(&path, "mine").unwrap();
        assert!(FileKind::Zero.create(&path, Bytes::kib(4)).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }
}
