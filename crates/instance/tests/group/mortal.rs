//! A disk that dies after a number of operations, in the middle of whatever is going on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use blockstone_instance::disk::{Disk, DiskError};

const EIO: i32 = 5;

/// Operations left before death; several disks may share one.
pub type Fuse = Arc<AtomicI64>;

/// Dies when its fuse has burnt down. The write that it dies of is on its way, not durable, and
/// reported as failed. Reads do not burn the fuse.
#[derive(Debug)]
pub struct Mortal {
    inner: Arc<dyn Disk>,
    fuse: Fuse,
}

impl Mortal {
    pub fn new(inner: Arc<dyn Disk>, fuse: &Fuse) -> Self {
        Self { inner, fuse: Arc::clone(fuse) }
    }

    /// Whether the operation may be done; `dying` is done when it is the last.
    fn burn(
        &self,
        operation: &'static str,
        offset: u64,
        dying: impl FnOnce() -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let left = self.fuse.fetch_sub(1, Ordering::Relaxed);
        if left > 0 {
            return Ok(());
        }
        if left == 0 {
            dying()?;
        }
        Err(DiskError::new(self, operation, offset, EIO))
    }
}

pub fn fuse(operations: i64) -> Fuse {
    Arc::new(AtomicI64::new(operations))
}

impl Disk for Mortal {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        if self.fuse.load(Ordering::Relaxed) < 0 {
            return Err(DiskError::new(self, "read", offset, EIO));
        }
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.burn("write", offset, || self.inner.write_at(offset, data))?;
        self.inner.write_at(offset, data)
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.burn("write", offset, || self.inner.write_at(offset, data))?;
        self.inner.write_dsync_at(offset, data)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.burn("sync", 0, || Ok(()))?;
        self.inner.sync()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
