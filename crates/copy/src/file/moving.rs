//! One read or write of a chunk, which the kernel may answer in parts.

use std::io;
use std::time::Duration;

use blockstone_sys::ring::{FileOffset, SlotRange};
use rustix::io::Errno;

use super::extents::Span;
use super::io::{End, Request};
use crate::CopyError;

/// Maximum number of repeats of requests that move no bytes.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub span: Span,
    pub write: bool,
    /// Index of the file that is read or written.
    file: usize,
    /// Requested bytes: the span, rounded up to the alignment.
    pub want: u32,
    moved: u32,
    tries: u32,
}

impl Moving {
    pub(super) fn of(span: Span, write: bool, file: usize, end: &End) -> Self {
        let want = u64::from(span.len).next_multiple_of(end.align) as u32;
        Self { span, write, file, want, moved: 0, tries: 0 }
    }

    /// Returns the request for the rest.
    pub(super) fn request(&self, slot: usize, end: &End) -> Request {
        let part = SlotRange {
            within_bytes: self.moved,
            len_bytes: self.want - self.moved,
            uncached: end.uncached,
        };
        let at =
            FileOffset { file: self.file, offset_bytes: self.span.offset + u64::from(self.moved) };
        Request { slot, write: self.write, part, at }
    }

    /// Handles an answer. Returns false if there is more to request.
    pub(super) fn take(&mut self, end: &End, result: Result<u32, i32>) -> Result<bool, CopyError> {
        let needed = if self.write { self.want } else { self.span.len };
        self.tries += 1;
        match result {
            Ok(bytes) if self.moved + bytes >= needed => return Ok(true),
            Ok(0) if !self.write && self.tries < 3 => {}
            Ok(0) if !self.write => return Err(self.shorter(end)),
            Ok(bytes) if self.tries < TRIES => {
                // The next request must be aligned too.
                let moved = u64::from(self.moved + bytes) / end.align * end.align;
                self.moved = moved as u32;
            }
            Err(errno) if is_again(errno) && self.tries < TRIES => std::thread::sleep(PAUSE),
            failed => {
                let errno = failed.err().unwrap_or_else(|| Errno::IO.raw_os_error());
                let operation = if self.write { "write" } else { "read" };
                let source = io::Error::from_raw_os_error(errno);
                return Err(CopyError::io(operation, end.file.path())(source));
            }
        }
        Ok(false)
    }

    fn shorter(&self, end: &End) -> CopyError {
        let at = self.span.offset + u64::from(self.moved);
        let what = format!("it became shorter than {at} bytes");
        CopyError::Changed { path: end.file.path().to_owned(), what }
    }
}

fn is_again(errno: i32) -> bool {
    [Errno::INTR, Errno::AGAIN].map(Errno::raw_os_error).contains(&errno)
}
