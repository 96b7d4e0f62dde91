//! Reads a file again from its medium and compares it with the hashes of its chunks.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use blockstone_base::units::Bytes;

use super::choose::is_served;
use super::extents::Span;
use super::io::{End, Io};
use super::mover::{Done, How, Mover, Plan, Work};
use super::{Chunk, Verified, Watch};
use crate::CopyError;

/// The first chunk that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub offset: u64,
    pub expected: u128,
    pub found: u128,
}

struct Looks<'a> {
    left: std::slice::Iter<'a, Chunk>,
    /// Chunks that are being read.
    read: VecDeque<&'a Chunk>,
    watch: &'a dyn Watch,
    difference: Option<Difference>,
}

impl Plan for Looks<'_> {
    fn next(&mut self) -> Result<Option<(Span, Work)>, CopyError> {
        Ok(self.left.next().map(|chunk| {
            self.read.push_back(chunk);
            (Span { offset: chunk.offset_bytes, len: chunk.len_bytes }, Work::Look)
        }))
    }

    fn done(&mut self, done: Done) -> Result<ControlFlow<()>, CopyError> {
        debug_assert_eq!(done.how, How::Found, "nothing is written");
        let at = self.read.iter().position(|chunk| chunk.offset_bytes == done.span.offset);
        let chunk = at.and_then(|at| self.read.remove(at));
        if let (Some(chunk), Some(found)) = (chunk, done.hash)
            && chunk.xxh3_128 != found
        {
            let (offset, expected) = (chunk.offset_bytes, chunk.xxh3_128);
            self.difference = Some(Difference { offset, expected, found });
            return Ok(ControlFlow::Break(()));
        }
        Ok(self.watch.moved(0))
    }
}

/// Reads all of these chunks and returns what shows that they came from the medium.
pub(super) fn compare(
    io: &mut dyn Io,
    end: &End,
    chunks: &[Chunk],
    watch: &dyn Watch,
) -> Result<Result<Verified, Difference>, CopyError> {
    let ends = [end.clone(), end.clone()];
    io.replace_files([&ends[0], &ends[1]].map(|end| end.file.clone()))?;
    let before = io.medium_bytes();
    let mut plan = Looks { left: chunks.iter(), read: VecDeque::new(), watch, difference: None };
    let ended = Mover { io, ends: &ends, hash: true, watch }.run(&mut plan);
    if let Some(difference) = plan.difference {
        return Ok(Err(difference));
    }
    if ended?.is_break() {
        return Err(CopyError::Interrupted);
    }
    let medium = io.medium_bytes().zip(before).map(|(now, then)| now.saturating_sub(then));
    if is_served(&*end.file) {
        // The kernel charges bytes received from the server as read from storage.
        let why = "a server answered, maybe from memory".to_owned();
        return Ok(Ok(Verified::Unproven { why }));
    }
    let read_bytes = chunks.iter().map(|chunk| u64::from(chunk.len_bytes)).sum();
    Ok(Ok(proven(read_bytes, medium)))
}

fn proven(read_bytes: u64, medium: Option<u64>) -> Verified {
    match medium {
        Some(medium_bytes) if medium_bytes >= read_bytes => {
            Verified::Equal { read_bytes, medium_bytes }
        }
        Some(medium_bytes) => {
            let (medium, read) = (Bytes(medium_bytes), Bytes(read_bytes));
            let why = format!(
                "of {read} that were read again, the kernel read {medium} from a \
                               device"
            );
            Verified::Unproven { why }
        }
        None => {
            let why = "the kernel does not say what it read from devices (/proc/PID/io)".to_owned();
            Verified::Unproven { why }
        }
    }
}
