//! Chunks of a file that are left to copy, and the record of those that are durable, for resume.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;

use super::extents::{Span, Spans};
use super::finish::PartialFile;
use super::mover::{Done, How, Plan, Work};
use super::pages::drop_pages;
use super::resume::Sidecar;
use super::{Chunk, Watch};
use crate::CopyError;

/// Chunks are made durable after this many, or after this much time.
const DURABLE_CHUNKS: usize = 256;
const DURABLE_EVERY: Duration = Duration::from_secs(1);

pub(super) struct CopyPlan<'a> {
    pub spans: Spans<'a>,
    pub part: &'a PartialFile<'a>,
    pub watch: &'a dyn Watch,
    pub claims: BTreeMap<u64, Chunk>,
    pub sidecar: Option<Sidecar>,
    /// Whether to reserve blocks for a range of data before it is written.
    pub reserves: bool,
    /// Whether to drop the target's pages once they are durable.
    pub drops: bool,
    pub progress: Progress,
    pub(super) durable: Durable,
}

/// Bytes moved so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub data_bytes: u64,
    pub resumed_bytes: u64,
    pub again_bytes: u64,
    pub chunks: Vec<Chunk>,
}

/// Chunks written since they were last made durable.
#[derive(Debug)]
pub(super) struct Durable {
    chunks: Vec<Chunk>,
    spans: Vec<Span>,
    at: Instant,
}

impl Default for Durable {
    fn default() -> Self {
        Self { chunks: Vec::new(), spans: Vec::new(), at: Instant::now() }
    }
}

impl CopyPlan<'_> {
    /// Makes the written chunks durable and records them in the sidecar.
    pub(super) fn keep(&mut self) -> Result<(), CopyError> {
        self.durable.at = Instant::now();
        if self.durable.spans.is_empty() || self.sidecar.is_none() && !self.drops {
            return Ok(());
        }
        let path = self.part.part_path();
        self.part.file.sync_data().map_err(CopyError::io("fdatasync", &path))?;
        if self.drops {
            drop_pages(&self.part.file, &self.durable.spans);
        }
        if let Some(sidecar) = &mut self.sidecar {
            let added = sidecar.add(&self.durable.chunks);
            added.map_err(CopyError::io("note progress of", &path))?;
        }
        self.durable.chunks.clear();
        self.durable.spans.clear();
        Ok(())
    }

    fn reserve(&mut self) -> Result<(), CopyError> {
        let Some((start, end)) = self.spans.new_range().filter(|_| self.reserves) else {
            return Ok(());
        };
        let path = self.part.part_path();
        let failed = |errno: Errno| CopyError::io("reserve room in", &path)(io::Error::from(errno));
        let file: &File = &self.part.file;
        // fallocate fills the file system before it fails, which affects all of its users, so free
        // space is checked first. A resumed copy may have reserved its blocks already.
        let found = fstatvfs(file).map_err(failed)?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if end - start > free && !self.part.is_left {
            return Err(failed(Errno::NOSPC));
        }
        match fallocate(file, FallocateFlags::KEEP_SIZE, start, end - start) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

impl Plan for CopyPlan<'_> {
    fn next(&mut self) -> Result<Option<(Span, Work)>, CopyError> {
        let found = self.spans.next();
        let found = found.map_err(|errno| {
            CopyError::io("find the data of the source of", &self.part.path())(errno)
        })?;
        let Some(span) = found else { return Ok(None) };
        self.reserve()?;
        self.progress.data_bytes += u64::from(span.len);
        let claim = self.claims.remove(&span.offset).filter(|chunk| chunk.len_bytes == span.len);
        Ok(Some((span, claim.map_or(Work::Copy, |chunk| Work::CopyUnless(chunk.xxh3_128)))))
    }

    fn done(&mut self, done: Done) -> Result<ControlFlow<()>, CopyError> {
        let Done { span: Span { offset, len }, hash, how } = done;
        let chunk = hash.map(|xxh3_128| Chunk { offset_bytes: offset, len_bytes: len, xxh3_128 });
        self.progress.chunks.extend(chunk);
        let bytes = u64::from(len);
        if how == How::Found {
            self.progress.resumed_bytes += bytes;
            return Ok(self.watch.moved(0));
        }
        if how == How::CopiedAgain {
            self.progress.again_bytes += bytes;
        }
        self.durable.chunks.extend(chunk);
        self.durable.spans.push(done.span);
        let go_on = self.watch.moved(bytes);
        let is_due = self.durable.spans.len() >= DURABLE_CHUNKS
            || self.durable.at.elapsed() >= DURABLE_EVERY;
        if is_due {
            self.keep()?;
        }
        Ok(go_on)
    }
}
