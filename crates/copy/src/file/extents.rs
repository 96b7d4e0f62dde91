//! Location of a file's data, cut into chunks.

use std::fs::File;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub offset: u64,
    pub len: u32,
}

/// Chunks of a file that contain data, in ascending order. No chunk crosses a multiple of the
/// request size, and all but the last end at a multiple of the alignment.
#[derive(Debug)]
pub(super) struct Spans<'a> {
    file: &'a File,
    size: u64,
    request: u64,
    align: u64,
    /// Offset from which the file has not been searched.
    at: u64,
    /// Offset up to which chunks were cut.
    cut: u64,
    found: Option<(u64, u64)>,
    new: Option<(u64, u64)>,
}

impl<'a> Spans<'a> {
    /// Finds spans by seeking, which moves the file's current offset.
    pub(super) fn of(file: &'a File, size: u64, request: u64, align: u64) -> Self {
        Self { file, size, request, align, at: 0, cut: 0, found: None, new: None }
    }

    /// Returns the next range of data, rounded to the alignment, beyond what was cut.
    fn next_range(&mut self) -> Result<Option<(u64, u64)>, Errno> {
        while self.at < self.size {
            let start = match seek(self.file, SeekFrom::Data(self.at)) {
                Ok(start) => start,
                Err(Errno::NXIO) => break,
                // The file system does not report holes.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => self.at,
                Err(error) => return Err(error),
            };
            let end = match seek(self.file, SeekFrom::Hole(start)) {
                Ok(end) => end.min(self.size),
                Err(Errno::INVAL | Errno::OPNOTSUPP) => self.size,
                Err(Errno::NXIO) => break,
                Err(error) => return Err(error),
            };
            if start >= self.size {
                break;
            }
            self.at = end.max(start + 1);
            let start = (start / self.align * self.align).max(self.cut);
            let end = end.next_multiple_of(self.align).min(self.size);
            if start < end {
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }

    /// Returns the range that the last chunk begins, if it is the first of its range.
    pub(super) fn new_range(&mut self) -> Option<(u64, u64)> {
        self.new.take()
    }

    pub(super) fn next(&mut self) -> Result<Option<Span>, Errno> {
        let (start, end) = match self.found.take() {
            Some(range) => range,
            None => match self.next_range()? {
                Some(range) => *self.new.insert(range),
                None => return Ok(None),
            },
        };
        let border = (start / self.request + 1) * self.request;
        let until = end.min(border);
        if until < end {
            self.found = Some((until, end));
        }
        self.cut = until;
        Ok(Some(Span { offset: start, len: (until - start) as u32 }))
    }
}
