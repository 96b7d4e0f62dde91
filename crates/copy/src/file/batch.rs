//! Many small files: their data first, then what makes them durable, then their names, so that a
//! journal commits once for many of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use blockstone_sys::thread::scoped;

use super::choose::Pair;
use super::copier::{Filled, copied, unchanged};
use super::finish::PartialFile;
use super::resume::Identity;
use super::{Carry, Copied, Copier, Job, Verified, Watch};
use crate::CopyError;

const BATCH: usize = 256;
/// Threads that wait until files are durable.
const SYNCS: usize = 16;

/// A job of a batch and its `carry` function.
#[derive(Clone, Copy)]
pub struct BatchJob<'a> {
    pub job: Job<'a>,
    pub carry: Carry<'a>,
}

/// A file whose target does not have its name yet.
struct Small<'a> {
    index: usize,
    job: BatchJob<'a>,
    source: File,
    identity: Identity,
    part: PartialFile<'a>,
    filled: Filled,
    verified: Verified,
}

impl Copier {
    /// Copies small files, at most 256 at a time: the data of all, then what makes them durable,
    /// then their names. The results are in the order of `jobs`. A larger file is copied on its
    /// own. Source and target of each file in a batch stay open until its end.
    pub fn copy_batch(
        &mut self,
        jobs: &[BatchJob<'_>],
        watch: &dyn Watch,
    ) -> Vec<Result<Copied, CopyError>> {
        jobs.chunks(BATCH).flat_map(|jobs| self.batch(jobs, watch)).collect()
    }

    fn batch(
        &mut self,
        jobs: &[BatchJob<'_>],
        watch: &dyn Watch,
    ) -> Vec<Result<Copied, CopyError>> {
        let mut ends: Vec<Option<Result<Copied, CopyError>>> = jobs.iter().map(|_| None).collect();
        let mut smalls = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            match self.fill_small(index, *job, watch) {
                Ok(Some(small)) => drop(smalls.insert(index, small)),
                Ok(None) => ends[index] = Some(self.copy(&job.job, job.carry, watch)),
                Err(error) => ends[index] = Some(Err(error)),
            }
        }
        self.let_go();
        // Each step runs for all files before the next one.
        if self.options.verify {
            sync_all(&mut smalls, &mut ends);
        }
        each(&mut smalls, &mut ends, |small| {
            small.verified = self.verified(&small.part, &small.filled, watch)?;
            Ok(())
        });
        self.let_go();
        each(&mut smalls, &mut ends, |small| {
            unchanged(&small.pair(), &small.identity)?;
            (small.job.carry)(&small.source, &small.part.file)
        });
        sync_all(&mut smalls, &mut ends);
        each(&mut smalls, &mut ends, |small| small.part.rename());
        let mut synced = Vec::new();
        for (index, small) in smalls {
            let Small { identity, part, filled, verified, .. } = small;
            let ended = part.end(&mut synced);
            ends[index] = Some(ended.map(|()| copied(identity.size_bytes, filled, verified)));
        }
        ends.into_iter().flatten().collect()
    }

    /// Copies a source that fits into one request to its temporary name; `None` for larger ones.
    fn fill_small<'a>(
        &mut self,
        index: usize,
        job: BatchJob<'a>,
        watch: &dyn Watch,
    ) -> Result<Option<Small<'a>>, CopyError> {
        let Job { source: path, target_dir, name, .. } = job.job;
        let source = job.job.open()?;
        let identity = Identity::of(&source).map_err(CopyError::io("look at", path))?;
        if identity.size_bytes > self.small().get() {
            return Ok(None);
        }
        let part = PartialFile::open((target_dir, name), &self.options)?;
        let pair = Pair { source: &source, source_path: path, part: &part };
        match self.fill_one(&pair, &identity, watch) {
            Ok(filled) => {
                let verified = Verified::NotAsked;
                Ok(Some(Small { index, job, source, identity, part, filled, verified }))
            }
            Err(error) => {
                part.abandon();
                Err(error)
            }
        }
    }
}

impl Small<'_> {
    fn pair(&self) -> Pair<'_> {
        Pair { source: &self.source, source_path: self.job.job.source, part: &self.part }
    }
}

/// Makes all files durable, several at the same time: a device flushes its cache once for those
/// that are waiting.
fn sync_all(
    smalls: &mut BTreeMap<usize, Small<'_>>,
    ends: &mut [Option<Result<Copied, CopyError>>],
) {
    let files: Vec<(usize, &File)> =
        smalls.iter().map(|(index, small)| (*index, &small.part.file)).collect();
    let sync = |files: &[(usize, &File)]| {
        let failed =
            files.iter().filter_map(|(index, file)| Some((*index, file.sync_all().err()?)));
        failed.collect::<Vec<_>>()
    };
    let of_one = files.len().div_ceil(SYNCS).max(1);
    let mut failed: BTreeMap<usize, io::Error> = std::thread::scope(|scope| {
        let start = |files| (files, scoped(scope, "sync", move || sync(files)));
        let threads: Vec<_> = files.chunks(of_one).map(start).collect();
        let ended = threads.into_iter().flat_map(|(files, thread)| match thread {
            // A thread that panicked ends the program anyway: the scope propagates the panic.
            Ok(thread) => thread.join().unwrap_or_default(),
            Err(_) => sync(files),
        });
        ended.collect()
    });
    each(smalls, ends, |small| {
        if let Some(error) = failed.remove(&small.index) {
            return Err(CopyError::io("fsync", &small.part.part_path())(error));
        }
        small.part.drop_pages();
        Ok(())
    });
}

/// Calls `step` for each file; a file that fails is removed from `smalls`.
fn each(
    smalls: &mut BTreeMap<usize, Small<'_>>,
    ends: &mut [Option<Result<Copied, CopyError>>],
    mut step: impl FnMut(&mut Small<'_>) -> Result<(), CopyError>,
) {
    for (index, end) in ends.iter_mut().enumerate() {
        let Some(small) = smalls.get_mut(&index) else { continue };
        if let Err(error) = step(small) {
            if let Some(small) = smalls.remove(&index)
                && !matches!(error, CopyError::Differs { .. })
            {
                small.part.abandon();
            }
            *end = Some(Err(error));
        }
    }
}
