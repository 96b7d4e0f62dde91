//! Drops the pages that a copy brought into the page cache. Pages that were cached before belong to
//! other users and stay.

use std::os::fd::AsFd;

use blockstone_sys::cached;
use rustix::fs::{Advice, fadvise};

use super::extents::Span;

/// Granularity of the search if a chunk is partly cached.
const PART_BYTES: u32 = 128 << 10;

/// Returns the parts of a span of which no page is cached. Empty if the kernel does not say (before
/// Linux 6.5): pages of other users are not dropped on a guess.
pub(super) fn missing(file: impl AsFd, span: Span) -> Vec<Span> {
    let cached = |span: Span| cached::of_part(&file, span.offset, u64::from(span.len));
    match cached(span) {
        Ok(0) => return vec![span],
        Ok(bytes) if bytes < u64::from(span.len) => {}
        _ => return Vec::new(),
    }
    let mut missing: Vec<Span> = Vec::new();
    for within in (0..span.len).step_by(PART_BYTES as usize) {
        let len = PART_BYTES.min(span.len - within);
        let part = Span { offset: span.offset + u64::from(within), len };
        if !matches!(cached(part), Ok(0)) {
            continue;
        }
        match missing.last_mut() {
            Some(last) if last.offset + u64::from(last.len) == part.offset => last.len += len,
            _ => missing.push(part),
        }
    }
    missing
}

/// Drops clean pages; dirty ones stay.
pub(super) fn drop_pages(file: impl AsFd, spans: &[Span]) {
    for span in spans {
        let len = std::num::NonZeroU64::new(u64::from(span.len));
        // This is only advice: a file system without pages to drop may refuse it.
        let _ = fadvise(&file, span.offset, len, Advice::DontNeed);
    }
}
