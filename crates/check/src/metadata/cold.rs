//! Drops metadata caches.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::proc;
use rustix::fs::syncfs;

/// Caches to drop on the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caches {
    /// Directory entries and inodes.
    Metadata,
    /// The page cache too: btrfs keeps its metadata there.
    All,
}

/// Writes dirty data, then drops the caches of the machine and the cached blocks of `device`: ext4
/// keeps its inode tables and directories there.
pub fn drop_caches(dir: BorrowedFd, device: Option<&str>, caches: Caches) -> io::Result<()> {
    syncfs(dir)?;
    let what = match caches {
        Caches::Metadata => "2\n",
        Caches::All => "3\n",
    };
    proc::write(Path::new("/proc/sys/vm/drop_caches"), what)?;
    if let Some(name) = device {
        // If it cannot be opened, or keeps them, what is read afterwards shows that.
        let device = BlockFile::open(&Path::new("/dev").join(name), Access::Read, false);
        let _ = device.and_then(|device| device.drop_cached());
    }
    Ok(())
}
