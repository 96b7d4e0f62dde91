//! Slow disks, which make other threads wait for them.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use blockstone_instance::disk::{Disk, DiskError};

/// Duration of operations in addition to that of the underlying disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    pub read: Duration,
    pub write: Duration,
    pub durable_write: Duration,
}

#[derive(Debug)]
pub struct Slow {
    inner: Arc<dyn Disk>,
    delays: Delays,
}

impl Slow {
    pub fn disk(inner: Arc<dyn Disk>, delays: Delays) -> Arc<dyn Disk> {
        Arc::new(Self { inner, delays })
    }
}

impl Disk for Slow {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        thread::sleep(self.delays.read);
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        thread::sleep(self.delays.write);
        self.inner.write_at(offset, data)
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        thread::sleep(self.delays.durable_write);
        self.inner.write_dsync_at(offset, data)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.inner.sync()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
