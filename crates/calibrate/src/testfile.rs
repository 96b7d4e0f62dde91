//! The file under test: created, reused, or only read; locked while in use, removed afterwards.
//!
//! A test file has an exclusive lock (flock) for as long as its run lives. A killed run leaves a
//! file whose lock is free: the next run in that directory removes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::Capability;
use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_engine::stamp::{self, Identity};
use blockstone_measure::{contents, scratch};
use blockstone_sys::clock;
use blockstone_sys::file::{Access, BlockFile, FileError, open_direct};

use crate::error::CalibrateError;

/// Reason recorded when the page cache was requested; the verdict `not-direct` then invalidates the
/// numbers, as when the file system does not support `O_DIRECT`.
const BUFFERED: &str = "--buffered asks for the page cache";

/// Size of the reads that bring a file into the page cache.
const CACHED_AT_ONCE: Bytes = Bytes::mib(1);

#[derive(Debug)]
pub struct TestFile {
    main: Arc<BlockFile>,
    kind: Kind,
    /// Whether the page cache is bypassed, and if not, the reason.
    pub direct: Capability,
    /// Identity written into every block's stamp; zero if they have none.
    pub file_id: u64,
    /// Part of the names of further files that this run creates next to it.
    run_id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Created by this run, removed at its end.
    Created,
    /// Created by this run, to be kept.
    Kept,
    /// Created by an earlier run, which kept or holds it.
    Reused,
    /// A device that may be overwritten; its first and last blocks are cleared afterwards.
    Device,
    /// Not created by Blockstone: read-only.
    Foreign,
}

impl TestFile {
    /// Creates a new file in `dir`.
    pub fn create(dir: &Path, run_id: u64, direct: bool) -> Result<Self, FileError> {
        let path = dir.join(scratch::name(run_id, ""));
        let (main, direct) =
            open_direct(direct, BUFFERED, |direct| BlockFile::create_new(&path, direct))?;
        main.lock_exclusive()?;
        let main = Arc::new(main);
        Ok(Self { main, kind: Kind::Created, direct, file_id: run_id, run_id })
    }

    /// Opens a file that an earlier run kept; read-only unless `writable`.
    pub fn reuse(
        path: &Path,
        block: Bytes,
        run_id: u64,
        direct: bool,
        writable: bool,
    ) -> Result<Self, CalibrateError> {
        let access = if writable { Access::ReadWrite } else { Access::Read };
        let open = |direct| BlockFile::open(path, access, direct);
        let (main, direct) = open_direct(direct, BUFFERED, open)?;
        let identity = stamped_by_us(&main)?
            .ok_or_else(|| CalibrateError::NotOurs { path: path.to_owned() })?;
        let written = Bytes(u64::from(identity.block_bytes));
        if written != block {
            return Err(CalibrateError::OtherBlocks { path: path.to_owned(), written, block });
        }
        main.lock_exclusive()?;
        let (main, file_id) = (Arc::new(main), identity.file_id);
        Ok(Self { main, kind: Kind::Reused, direct, file_id, run_id })
    }

    /// Opens a device that may be overwritten.
    pub fn device(path: &Path, run_id: u64, direct: bool) -> Result<Self, CalibrateError> {
        let open = |direct| BlockFile::open_device(path, direct);
        let (main, direct) = open_direct(direct, BUFFERED, open)?;
        main.lock_exclusive()?;
        let main = Arc::new(main);
        Ok(Self { main, kind: Kind::Device, direct, file_id: run_id, run_id })
    }

    /// Opens a file or device that Blockstone did not create, read-only.
    pub fn foreign(path: &Path, direct: bool) -> Result<Self, CalibrateError> {
        let open = |direct| BlockFile::open(path, Access::Read, direct);
        let (main, direct) = open_direct(direct, BUFFERED, open)?;
        Ok(Self { main: Arc::new(main), kind: Kind::Foreign, direct, file_id: 0, run_id: 0 })
    }

    pub fn main(&self) -> &Arc<BlockFile> {
        &self.main
    }

    pub fn path(&self) -> &Path {
        self.main.path()
    }

    /// Returns whether Blockstone wrote its content, so that it may be written and its stamps
    /// verified.
    pub fn ours(&self) -> bool {
        self.kind != Kind::Foreign
    }

    /// Returns whether this run created it and removes it at its end.
    pub fn is_created(&self) -> bool {
        self.kind == Kind::Created
    }

    /// Returns whether it has to be laid out before it can be read.
    pub fn needs_layout(&self) -> bool {
        matches!(self.kind, Kind::Created | Kind::Device)
    }

    /// Opens the same file through the page cache and evicts it from there, then reads its first
    /// `cached` bytes back.
    pub fn buffered(&self, cached: Bytes) -> Result<Arc<BlockFile>, FileError> {
        let buffered = self.main.reopen(Access::Read, false)?;
        buffered.drop_cached()?;
        let mut block = vec![0; CACHED_AT_ONCE.get() as usize];
        for offset in (0..cached.get()).step_by(block.len()) {
            buffered.read_at(offset, &mut block).map_err(|errno| self.io_error("read", errno))?;
        }
        Ok(Arc::new(buffered))
    }

    /// Opens the same file for another calibration, which only reads it.
    pub fn again(&self, direct: bool) -> Result<Self, FileError> {
        let open = |direct| self.main.reopen(Access::Read, direct);
        let (main, direct) = open_direct(direct, BUFFERED, open)?;
        let kind = if self.file_id == 0 { Kind::Foreign } else { Kind::Reused };
        let (file_id, run_id) = (self.file_id, self.run_id);
        Ok(Self { main: Arc::new(main), kind, direct, file_id, run_id })
    }

    /// Creates a second file next to it, of the same size, that is one hole. It is removed when
    /// dropped.
    pub fn hole(&self) -> Result<Self, FileError> {
        let name = scratch::name(self.run_id, "hole");
        let main = self.main.create_beside(name.as_ref(), self.main.is_direct())?;
        let (main, kind, direct) = (Arc::new(main), Kind::Created, self.direct.clone());
        let hole = Self { main, kind, direct, file_id: 0, run_id: self.run_id };
        hole.main.lock_exclusive()?;
        hole.main.set_size(self.main.size_bytes()?)?;
        Ok(hole)
    }

    /// Creates a second file next to it that starts empty and is removed when dropped.
    pub fn appendable(&self, purpose: &str, direct: bool) -> Result<AppendFile, FileError> {
        let name = scratch::name(self.run_id, purpose);
        let file = self.main.create_beside(name.as_ref(), direct)?;
        file.lock_exclusive()?;
        Ok(AppendFile(Arc::new(file)))
    }

    /// Truncates the file to the size that was laid out; a device keeps its size.
    pub fn cut(&self, size: Bytes) -> Result<(), FileError> {
        if self.kind == Kind::Device { Ok(()) } else { self.main.set_size(size.get()) }
    }

    /// Creates an error of the file from the errno of an operation.
    pub fn io_error(&self, operation: &'static str, errno: i32) -> FileError {
        self.main.error(operation, std::io::Error::from_raw_os_error(errno))
    }

    /// Renames the file so that no later run removes it, and returns the new path.
    pub fn keep(&mut self) -> Result<PathBuf, FileError> {
        let mut kept = self.main.reopen(Access::Read, false)?;
        kept.rename_new(scratch::kept_name(self.file_id, "").as_ref())?;
        self.kind = Kind::Kept;
        Ok(kept.path().to_owned())
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        match self.kind {
            Kind::Created => drop(self.main.remove()),
            Kind::Device => contents::clear_open(&self.main),
            Kind::Kept | Kind::Reused | Kind::Foreign => {}
        }
    }
}

#[derive(Debug)]
pub struct AppendFile(pub Arc<BlockFile>);

impl Drop for AppendFile {
    fn drop(&mut self) {
        drop(self.0.remove());
    }
}

/// Returns the identity in the first block of a file or device, if Blockstone wrote it.
fn stamped_by_us(file: &BlockFile) -> Result<Option<Identity>, FileError> {
    let file = file.reopen(Access::Read, false)?;
    let mut head = vec![0_u8; 4096];
    let length = file
        .read_at(0, &mut head)
        .map_err(|errno| file.error("read", std::io::Error::from_raw_os_error(errno)))?;
    Ok(stamp::identify(&head[..length]))
}

/// Returns whether the ends of a device, and the places between them that a claim examines, hold
/// only zeros and the blocks of one killed calibration.
pub fn holds_nothing_but_ours(device: &Path) -> Result<bool, FileError> {
    let file = BlockFile::open(device, Access::Read, false)?;
    let Some(Identity { file_id, block_bytes }) = stamped_by_us(&file)? else { return Ok(false) };
    let size_bytes = file.size_bytes()?;
    // Whole blocks of the calibration, because each has a stamp.
    let unit = u64::from(block_bytes).max(contents::BLOCK_BYTES);
    let edge_bytes = contents::EDGE.get().min(size_bytes);
    let seed = rng::mix(clock::now_ns());
    let sampled = contents::places(size_bytes, seed).into_iter().map(|at| (at / unit * unit, unit));
    let mut bytes = Vec::new();
    for (offset_bytes, len) in
        [(0, edge_bytes), (size_bytes - edge_bytes, edge_bytes)].into_iter().chain(sampled)
    {
        bytes.resize(len as usize, 0_u8);
        let read = file
            .read_at(offset_bytes, &mut bytes)
            .map_err(|errno| file.error("read", std::io::Error::from_raw_os_error(errno)))?;
        let ours = |block: &[u8]| {
            block.iter().all(|&byte| byte == 0) || stamp::file_of(block) == Some(file_id)
        };
        if !bytes[..read].chunks(block_bytes as usize).all(ours) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_file_goes_with_its_run_and_a_kept_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = TestFile::create(dir.path(), 1, false).unwrap();
        assert!(file.path().exists());
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

        let mut file = TestFile::create(dir.path(), 2, false).unwrap();
        let kept = file.keep().unwrap();
        drop(file);
        assert!(kept.exists());
        let mut again = TestFile::create(dir.path(), 2, false).unwrap();
        assert!(again.keep().is_err(), "an earlier kept file is not replaced");
    }

    #[test]
    fn a_file_that_is_not_ours_is_refused_for_writing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("foreign.dat");
        std::fs::write(&path, vec![7; 65536]).unwrap();
        let error = TestFile::reuse(&path, Bytes::kib(8), 1, false, true).unwrap_err();
        assert!(matches!(error, CalibrateError::NotOurs { .. }), "{error}");
        assert!(!TestFile::foreign(&path, false).unwrap().ours());
    }

    #[test]
    fn only_zeros_and_blocks_of_one_calibration_count_as_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device");
        let mut data = vec![0_u8; 4 << 20];
        std::fs::write(&path, &data).unwrap();
        assert!(!holds_nothing_but_ours(&path).unwrap(), "empty, but nothing of ours");
        stamp::seal(&mut data[..8192], 9, 0, 1);
        stamp::seal(&mut data[8192..16384], 9, 8192, 2);
        std::fs::write(&path, &data).unwrap();
        assert!(holds_nothing_but_ours(&path).unwrap());
        // Something else was written later, but not over our first block.
        data[3 << 20] = 1;
        std::fs::write(&path, &data).unwrap();
        assert!(!holds_nothing_but_ours(&path).unwrap());
    }
}
