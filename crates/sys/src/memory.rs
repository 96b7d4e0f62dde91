//! How much memory is available to this process, and huge pages: tables that are accessed in random
//! order are faster with them, because the processor finds most pages without walking the page
//! tables.

use std::io;
use std::path::Path;

use blockstone_base::units::Bytes;
use rustix::mm::Advice;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::heap::{self, Limit};
use crate::proc::own_status;
use crate::survey::mem_available_bytes;

/// Limit for reading a user's files, whatever they contain.
pub const READING: Bytes = Bytes::mib(480);
/// Reserve for what else the kernel charges to the control group, such as page tables.
const SPARE: u64 = 8 << 20;
/// Amounts below this are not checked.
const SMALL: u64 = 1 << 20;

/// There is less memory than needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed} of memory are needed, and {left} are left in the control group or on the machine"
)]
pub struct Short {
    pub needed: Bytes,
    pub left: Bytes,
}

impl From<Short> for io::Error {
    fn from(short: Short) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, short)
    }
}

/// Refuses an amount of memory for which the kernel would kill this process, or another one in its
/// control group.
pub fn ask(needed: Bytes) -> Result<(), Short> {
    if needed.get() < SMALL {
        return Ok(());
    }
    ask_of(needed, left())
}

fn ask_of(needed: Bytes, left: Option<Bytes>) -> Result<(), Short> {
    match left {
        Some(left) if left < needed => Err(Short { needed, left }),
        _ => Ok(()),
    }
}

/// Returns what is left in the control group and on the machine, minus the kernel's own needs;
/// `None` if the kernel does not report it.
pub fn left() -> Option<Bytes> {
    mem_available_bytes(Path::new("/")).map(|left| Bytes(left.saturating_sub(SPARE)))
}

/// Limits memory from now on to `most`, and to what is left in the control group: allocating more
/// ends the program as [`heap::Ending`] does. Child processes inherit this limit (`RLIMIT_DATA`).
pub fn hold_to(most: Option<Bytes>) {
    let group = left();
    let limit = match (most, group) {
        (Some(most), Some(group)) if group < most => Some((group, Limit::Group)),
        (Some(most), _) => Some((most, Limit::Reading)),
        (None, Some(group)) => Some((group, Limit::Group)),
        (None, None) => None,
    };
    let Some((bytes, limit)) = limit else { return };
    let held = own_status(Path::new("/"), "VmData:");
    let held = held.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let bytes = bytes.get().saturating_add(held.unwrap_or(0) * 1024);
    let Rlimit { current, maximum } = getrlimit(Resource::Data);
    if current.is_some_and(|current| current <= bytes) {
        return;
    }
    if setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum }).is_ok() {
        heap::end_at(limit);
    }
}

/// Returns the size of the pages in which this kernel counts memory.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Asks the kernel for huge pages, which it may ignore. Best called before the table is first
/// touched.
pub fn advise_huge_pages(table: &mut [u32]) {
    let page = rustix::param::page_size();
    let (start, bytes) = (table.as_mut_ptr() as usize, size_of_val(table));
    let first = start.next_multiple_of(page);
    let end = (start + bytes) / page * page;
    if first >= end {
        return;
    }
    // SAFETY: the range consists of whole pages inside `table`, which is borrowed exclusively; the
    // advice changes only which pages back it, never its content.
    let _ = unsafe {
        let at = table.as_mut_ptr().cast::<u8>().add(first - start);
        rustix::mm::madvise(at.cast(), end - first, Advice::LinuxHugepage)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_left_is_refused() {
        let (needed, left) = (Bytes::mib(64), Bytes::mib(63));
        assert_eq!(ask_of(needed, Some(left)), Err(Short { needed, left }));
        assert_eq!(ask_of(left, Some(left)), Ok(()));
        assert_eq!(ask_of(needed, None), Ok(()), "where the kernel says nothing");
        let refused = ask(Bytes(u64::MAX)).map_err(io::Error::from);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(ask(Bytes(1)), Ok(()));
    }

    #[test]
    fn a_table_of_any_size_keeps_its_content() {
        for len in [0, 1, 1000, 3_000_000] {
            let mut table: Vec<u32> = (0..len).collect();
            advise_huge_pages(&mut table);
            assert!(table.iter().copied().eq(0..len));
        }
    }
}
