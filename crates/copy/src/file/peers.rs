//! Moves bytes in the ways of other programs, for comparisons.

use std::fs::File;
use std::io;

use blockstone_base::units::Bytes;
use blockstone_sys::mapped::Window;
use rustix::fs::copy_file_range;
use rustix::io::Errno;

use super::Watch;
use super::choose::Pair;
use super::extents::{Span, Spans};
use super::pages::{drop_pages, missing};
use super::resume::Identity;
use super::serve::{restart, shorter};
use crate::CopyError;

const PAGE_BYTES: u64 = 4096;
/// Few systems read ahead further than this. What they read is looked up before.
const AHEAD_BYTES: u64 = 32 << 20;

/// Moves a part of the source to the same place in the target, and returns how much; 0 at the end.
pub(super) type Move = fn(&File, &File, Span) -> io::Result<usize>;

/// Maps the part, and writes from the mapping: one write of many pages, each of which is a page
/// fault. The kernel copies from the mapping, so that a source that becomes shorter is an error
/// and no signal.
pub(super) fn mapped(source: &File, target: &File, span: Span) -> io::Result<usize> {
    Window::of(source, span.offset, span.len as usize)?.send(target, span.offset)
}

/// Has the kernel copy from file to file, which may also share blocks.
pub(super) fn in_kernel(source: &File, target: &File, span: Span) -> io::Result<usize> {
    let (mut from, mut to) = (span.offset, span.offset);
    Ok(copy_file_range(source, Some(&mut from), target, Some(&mut to), span.len as usize)?)
}

/// Moves the data of a file in parts of `request` bytes. Returns how many bytes that were.
pub(super) fn move_data(
    pair: &Pair<'_>,
    source: &Identity,
    (by, request): (Move, Bytes),
    watch: &dyn Watch,
) -> Result<u64, CopyError> {
    restart(pair, source.size_bytes)?;
    let failed = |error| CopyError::io("copy", pair.source_path)(error);
    let mut spans = Spans::of(pair.source, source.size_bytes, request.get(), PAGE_BYTES);
    let mut cache = Brought::none(pair.source, source.size_bytes);
    let mut data_bytes = 0;
    while let Some(span) = spans.next().map_err(|errno| failed(errno.into()))? {
        watch.pace(u64::from(span.len));
        cache.look(span);
        let mut left = span;
        while left.len > 0 {
            let moved = match by(pair.source, &pair.part.file, left) {
                Ok(0) => return Err(shorter(pair, left.offset)),
                Ok(moved) => moved as u32,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) if error.raw_os_error() == Some(Errno::FAULT.raw_os_error()) => {
                    return Err(shorter(pair, left.offset));
                }
                Err(error) => return Err(failed(error)),
            };
            data_bytes += u64::from(moved);
            left = Span { offset: left.offset + u64::from(moved), len: left.len - moved };
            if watch.moved(u64::from(moved)).is_break() {
                return Err(CopyError::Interrupted);
            }
        }
        cache.drop_up_to(span.offset + u64::from(span.len));
    }
    cache.drop_up_to(u64::MAX);
    Ok(data_bytes)
}

/// Pages of the source that only this copy brought into the page cache.
struct Brought<'a> {
    source: &'a File,
    size: u64,
    /// Offset up to which the page cache was looked at.
    looked: u64,
    spans: Vec<Span>,
}

impl<'a> Brought<'a> {
    fn none(source: &'a File, size: u64) -> Self {
        Self { source, size, looked: 0, spans: Vec::new() }
    }

    /// Looks at what is cached before this part is read.
    fn look(&mut self, span: Span) {
        let until = (span.offset + u64::from(span.len) + AHEAD_BYTES).min(self.size);
        let from = self.looked.max(span.offset);
        if let Some(len) = until.checked_sub(from).filter(|&len| len > 0) {
            self.spans.extend(missing(self.source, Span { offset: from, len: len as u32 }));
            self.looked = until;
        }
    }

    /// Drops pages; those beyond `offset` may be read once more, and are dropped then.
    fn drop_up_to(&mut self, offset: u64) {
        drop_pages(self.source, &self.spans);
        self.spans.retain(|span| span.offset + u64::from(span.len) > offset);
    }
}
