//! Targets that an earlier copy completed: the source is read for the hashes of a manifest, and the
//! target is compared with them.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use super::choose;
use super::extents::{Span, Spans};
use super::manifest::{Entry, end_for, with_zeros};
use super::mover::{Done, Mover, Plan, Work};
use super::resume::Identity;
use super::{Chunk, Copier, Job, Verified, Watch, verify};
use crate::CopyError;

const PAGE_BYTES: u64 = 4096;

/// A target that stays as it is.
#[derive(Clone, Debug)]
pub struct Kept {
    pub bytes: u64,
    /// Chunks of the source.
    pub chunks: Vec<Chunk>,
    pub verified: Verified,
}

/// Plan that reads all data of a file to hash it.
struct Hashes<'a> {
    spans: Spans<'a>,
    path: &'a Path,
    chunks: Vec<Chunk>,
    watch: &'a dyn Watch,
}

impl Plan for Hashes<'_> {
    fn next(&mut self) -> Result<Option<(Span, Work)>, CopyError> {
        let span = self.spans.next().map_err(CopyError::io("find the data of", self.path))?;
        Ok(span.map(|span| (span, Work::Look)))
    }

    fn done(&mut self, done: Done) -> Result<ControlFlow<()>, CopyError> {
        let Span { offset, len } = done.span;
        let chunk = |xxh3_128| Chunk { offset_bytes: offset, len_bytes: len, xxh3_128 };
        self.chunks.extend(done.hash.map(chunk));
        Ok(self.watch.moved(u64::from(len)))
    }
}

impl Copier {
    /// Hashes the source of an existing target, and reads the target again if it is to be verified:
    /// [`CopyError::NotKept`] if they differ.
    pub fn keep(&mut self, job: &Job<'_>, watch: &dyn Watch) -> Result<Kept, CopyError> {
        let kept = self.read_again(job, watch);
        self.let_go();
        kept
    }

    fn read_again(&mut self, job: &Job<'_>, watch: &dyn Watch) -> Result<Kept, CopyError> {
        let look = |file: &File| Identity::of(file).map_err(CopyError::io("look at", job.source));
        let source = job.open()?;
        let before = look(&source)?;
        let chunks = self.hashes(&source, job.source, &before, watch)?;
        let verified = if self.options.verify {
            self.compared(job, (before.size_bytes, &chunks), watch)?
        } else {
            Verified::NotAsked
        };
        if let Some(what) = before.difference(&look(&source)?) {
            return Err(CopyError::Changed { path: job.source.to_owned(), what });
        }
        Ok(Kept { bytes: before.size_bytes, chunks, verified })
    }

    fn hashes(
        &mut self,
        source: &File,
        path: &Path,
        before: &Identity,
        watch: &dyn Watch,
    ) -> Result<Vec<Chunk>, CopyError> {
        let (_, end, _) = choose::source(source, path, &self.options)?;
        let (request, align) = (self.options.request.get(), end.align.max(PAGE_BYTES));
        let ends = [end.clone(), end];
        let io = self.io(&ends, before.size_bytes)?;
        let spans = Spans::of(source, before.size_bytes, request, align);
        let mut plan = Hashes { spans, path, chunks: Vec::new(), watch };
        if (Mover { io, ends: &ends, hash: true, watch }).run(&mut plan)?.is_break() {
            return Err(CopyError::Interrupted);
        }
        let mut chunks = plan.chunks;
        chunks.sort_unstable_by_key(|chunk| chunk.offset_bytes);
        Ok(chunks)
    }

    fn compared(
        &mut self,
        job: &Job<'_>,
        (size_bytes, chunks): (u64, &[Chunk]),
        watch: &dyn Watch,
    ) -> Result<Verified, CopyError> {
        let path = job.target_dir.path().join(job.name);
        let target = job.target_dir.read(job.name).map_err(CopyError::io("open", &path))?;
        let found = target.metadata().map_err(CopyError::io("look at", &path))?.len();
        if found != size_bytes {
            let why = "has another size than its source".to_owned();
            return Err(CopyError::NotKept { path, why });
        }
        let entry = Entry { path: job.name.to_owned(), size_bytes, chunks: chunks.to_vec() };
        let all = with_zeros(&entry, &target, self.options.request.get());
        let all = all.map_err(CopyError::io("find the data of", &path))?;
        let end = end_for(&target, &path, &all, &self.options)?;
        let io = self.io(&[end.clone(), end.clone()], size_bytes)?;
        verify::compare(io, &end, &all, watch)?.map_err(|difference| {
            let at = difference.offset;
            let why = format!("has other bytes than its source, in the chunk at offset {at}");
            CopyError::NotKept { path, why }
        })
    }
}
