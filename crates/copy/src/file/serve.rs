//! Lets a server that has both files copy one to the other.

use std::io;

use blockstone_base::units::Bytes;
use blockstone_sys::cached;
use rustix::fs::{Advice, copy_file_range, fadvise};
use rustix::io::Errno;

use super::Watch;
use super::choose::Pair;
use super::extents::{Span, Spans};
use super::pages::{drop_pages, missing};
use super::resume::Identity;
use crate::CopyError;

const PAGE_BYTES: u64 = 4096;
/// The first call requests no more than this: if the client copies, that work is lost.
const FIRST_BYTES: u32 = 1 << 20;

/// Lets the server copy, in calls of `request` bytes. Returns the bytes of data, or the reason why
/// the server did not copy them.
pub(super) fn serve(
    pair: &Pair<'_>,
    source: &Identity,
    request: Bytes,
    watch: &dyn Watch,
) -> Result<Result<u64, String>, CopyError> {
    restart(pair, source.size_bytes)?;
    // A client that copies must not read ahead: those pages would look like those of other readers.
    let _ = fadvise(pair.source, 0, None, Advice::Random);
    let mut spans = Spans::of(pair.source, source.size_bytes, request.get(), PAGE_BYTES);
    let mut data_bytes = 0;
    while let Some(span) = spans.next().map_err(|errno| failed(pair, errno))? {
        watch.pace(u64::from(span.len));
        let mut left = span;
        while left.len > 0 {
            let most = if data_bytes == 0 { FIRST_BYTES } else { u32::MAX };
            let asked = Span { len: left.len.min(most), ..left };
            let moved = match call(pair, asked) {
                Ok(0) => return Err(shorter(pair, left.offset)),
                Ok(moved) => moved,
                Err(Errno::INTR) => {
                    if watch.moved(0).is_break() {
                        return Err(CopyError::Interrupted);
                    }
                    continue;
                }
                Err(errno) if data_bytes == 0 => {
                    return Ok(Err(format!("no copy by the server: {}", io::Error::from(errno))));
                }
                Err(errno) => return Err(failed(pair, errno)),
            };
            if let Some(why) = by_client(pair, Span { len: moved, ..asked }) {
                return Ok(Err(format!("no copy by the server: {why}")));
            }
            data_bytes += u64::from(moved);
            left = Span { offset: left.offset + u64::from(moved), len: left.len - moved };
            if watch.moved(u64::from(moved)).is_break() {
                return Err(CopyError::Interrupted);
            }
        }
    }
    Ok(Ok(data_bytes))
}

/// Gives the target its size, and nothing but holes.
pub(super) fn restart(pair: &Pair<'_>, size_bytes: u64) -> Result<(), CopyError> {
    let part_path = pair.part.part_path();
    let sizes = if pair.part.is_left { &[0, size_bytes][..] } else { &[size_bytes] };
    for size in sizes {
        // Data left by an older copy must not remain where the source has holes.
        pair.part.file.set_len(*size).map_err(CopyError::io("resize", &part_path))?;
    }
    Ok(())
}

fn failed(pair: &Pair<'_>, errno: Errno) -> CopyError {
    CopyError::io("copy", pair.source_path)(io::Error::from(errno))
}

pub(super) fn shorter(pair: &Pair<'_>, at: u64) -> CopyError {
    let what = format!("it became shorter than {} bytes", at + 1);
    CopyError::Changed { path: pair.source_path.to_owned(), what }
}

/// Makes one call; returns the bytes copied.
fn call(pair: &Pair<'_>, span: Span) -> Result<u32, Errno> {
    let (mut from, mut to) = (span.offset, span.offset);
    let brought = missing(pair.source, span);
    let (source, target) = (pair.source, &pair.part.file);
    let moved = copy_file_range(source, Some(&mut from), target, Some(&mut to), span.len as usize);
    // These were cached by a client that copies.
    drop_pages(source, &brought);
    moved.map(|moved| moved as u32)
}

/// Returns the reason if it was not the server that copied this part of the target. NFS and SMB
/// clients read and write themselves if the server refuses, and the call succeeds all the same;
/// what they wrote is in the page cache. Nothing else can have cached it: the file is new.
fn by_client(pair: &Pair<'_>, span: Span) -> Option<String> {
    let offset = span.offset / PAGE_BYTES * PAGE_BYTES;
    let len = span.offset - offset + u64::from(span.len);
    match cached::of_own_part(&pair.part.file, offset, len) {
        Ok(0) => None,
        Ok(_) => Some("it refused, and the kernel read and wrote in its place".to_owned()),
        Err(error) => Some(format!("nothing shows that it copies: {error}")),
    }
}
