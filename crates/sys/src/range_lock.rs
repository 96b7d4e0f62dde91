//! Locks on part of a file, held by an open file and not by a process (`F_OFD_SETLK`, fcntl(2)):
//! two descriptors in one process exclude each other as two processes do, and a server treats both
//! alike.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeLock {
    Shared,
    Exclusive,
    None,
}

/// Takes, or with [`RangeLock::None`] releases, the lock on `bytes` bytes from `offset_bytes` on;
/// does not wait. Returns false when another open file holds it.
pub fn set(
    file: impl AsFd,
    lock: RangeLock,
    offset_bytes: u64,
    bytes: u64,
) -> Result<bool, io::Error> {
    let kind = match lock {
        RangeLock::Shared => libc::F_RDLCK,
        RangeLock::Exclusive => libc::F_WRLCK,
        RangeLock::None => libc::F_UNLCK,
    };
    let range = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: offset_bytes as libc::off_t,
        l_len: bytes as libc::off_t,
        l_pid: 0,
    };
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel only reads the
    // structure, which has the layout that this command expects.
    let done = unsafe { libc::fcntl(file, libc::F_OFD_SETLK, &raw const range) };
    if done == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_exclude_each_other_where_their_ranges_meet() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let other = named.reopen().unwrap();
        assert!(set(named.as_file(), RangeLock::Exclusive, 0, 8).unwrap());
        assert!(!set(&other, RangeLock::Shared, 4, 8).unwrap());
        assert!(set(&other, RangeLock::Exclusive, 8, 8).unwrap());
        assert!(set(named.as_file(), RangeLock::None, 0, 8).unwrap());
        assert!(set(&other, RangeLock::Shared, 4, 4).unwrap());
    }
}
