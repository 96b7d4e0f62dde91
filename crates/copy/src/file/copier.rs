//! Copies one file after the other with the same memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use blockstone_base::units::Bytes;
use blockstone_sys::buffer::Arena;
use blockstone_sys::file::BlockFile;
use blockstone_sys::ring::{Ring, RingError};

use super::choose::{self, Moved, Pair};
use super::extents::Spans;
use super::finish::PartialFile;
use super::io::{End, Io, TARGET, Threads};
use super::mover::Mover;
use super::peers;
use super::plan::{CopyPlan, Durable, Progress};
use super::resume::Identity;
use super::serve::serve;
use super::verify;
use super::{Carry, Chunk, Copied, Job, Method, Options, Verified, Watch};
use crate::CopyError;

/// Chunks begin at multiples of this, whatever alignment direct requests need.
const PAGE_BYTES: u64 = 4096;
/// An interrupted copy of a smaller file starts over; nothing is hashed or kept for it.
const RESUMABLE_BYTES: u64 = 256 << 20;
pub(super) const REQUEST_MOST: u64 = 256 << 20;
const IN_FLIGHT_MOST: u32 = 1024;

/// Opens the two files for requests, with this number of slots of this many bytes; also returns the
/// reason if it is not an io_uring.
pub(super) type Open =
    fn([Arc<BlockFile>; 2], usize, usize) -> Result<(Box<dyn Io>, Option<String>), CopyError>;

pub(super) fn open_io(
    files: [Arc<BlockFile>; 2],
    slots: usize,
    bytes: usize,
) -> Result<(Box<dyn Io>, Option<String>), CopyError> {
    match Ring::open(files.to_vec(), Arena::new(slots, bytes)?) {
        Ok(ring) => Ok((Box::new(ring), None)),
        Err(RingError::Setup { source, .. }) => {
            let threads = Threads::start(files, Arena::new(slots, bytes)?)?;
            Ok((Box::new(threads), Some(format!("threads, without io_uring: {source}"))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Copies files. It holds the memory for its requests and belongs to the thread that made it.
pub struct Copier {
    pub(super) options: Options,
    io: Option<Box<dyn Io>>,
    pub(super) open: Open,
    /// Why there is no io_uring, or why fewer requests are in flight than requested.
    lacks: Option<String>,
    lacks_memory: bool,
}

/// Result of filling a target that still has its temporary name.
pub(super) struct Filled {
    method: Method,
    why: String,
    progress: Progress,
    /// Whether this process read and wrote the bytes, so that there are hashes to verify.
    is_moved: bool,
}

impl Copier {
    pub fn new(options: Options) -> Result<Self, CopyError> {
        if !can_request(options.request) {
            let what = format!("requests of {} are not possible", options.request);
            return Err(CopyError::Usage { what, hint: "whole pages of 4 KiB, 256 MiB at most" });
        }
        if !(1..=IN_FLIGHT_MOST).contains(&options.in_flight) {
            let what = format!("{} requests cannot be in flight", options.in_flight);
            return Err(CopyError::Usage { what, hint: "1 to 1024 can" });
        }
        Ok(Self { options, io: None, open: open_io, lacks: None, lacks_memory: false })
    }

    /// Copies one regular file.
    pub fn copy(
        &mut self,
        job: &Job<'_>,
        carry: Carry<'_>,
        watch: &dyn Watch,
    ) -> Result<Copied, CopyError> {
        let source = job.open()?;
        let identity = Identity::of(&source).map_err(CopyError::io("look at", job.source))?;
        let part = PartialFile::open((job.target_dir, job.name), &self.options)?;
        let mut keeps = part.is_left;
        let pair = Pair { source: &source, source_path: job.source, part: &part };
        let asked = self.options.request;
        let left = part.request_of_left(&identity)?.map(Bytes);
        let in_flight = self.options.in_flight;
        self.use_request(left.filter(|it| can_request(*it)).unwrap_or(asked));
        // The request size of another copy takes no more memory than this one was given.
        let at_once = asked.get().saturating_mul(in_flight.into()) / self.options.request.get();
        self.options.in_flight = in_flight.min(at_once.max(1) as u32);
        let filled = self.fill(&pair, &identity, Some(&mut keeps), watch);
        let ended = filled.and_then(|filled| {
            let verified = self.complete(&pair, &identity, &filled, (carry, watch))?;
            part.rename()?;
            Ok(copied(identity.size_bytes, filled, verified))
        });
        self.let_go();
        self.use_request(asked);
        self.options.in_flight = in_flight;
        match ended {
            Ok(copied) => part.end(&mut Vec::new()).map(|()| copied),
            Err(error) => {
                let keeps = match &error {
                    CopyError::Changed { .. } => false,
                    CopyError::Differs { .. } => true,
                    _ => keeps,
                };
                if !keeps {
                    part.abandon();
                }
                Err(error)
            }
        }
    }

    /// Changes the request size; memory for requests is allocated again when it is needed.
    fn use_request(&mut self, request: Bytes) {
        if self.options.request != request {
            self.options.request = request;
            (self.io, self.lacks_memory) = (None, false);
        }
    }

    /// Copies the bytes of one file of a batch.
    pub(super) fn fill_one(
        &mut self,
        pair: &Pair<'_>,
        source: &Identity,
        watch: &dyn Watch,
    ) -> Result<Filled, CopyError> {
        self.fill(pair, source, None, watch)
    }

    /// Copies the bytes into the target. `keeps` is set once an interrupted copy could be resumed;
    /// it is `None` for a file of a batch.
    fn fill(
        &mut self,
        pair: &Pair<'_>,
        source: &Identity,
        keeps: Option<&mut bool>,
        watch: &dyn Watch,
    ) -> Result<Filled, CopyError> {
        let by = match self.options.method {
            Some(Method::Mmap) => Some((Method::Mmap, peers::mapped as peers::Move)),
            Some(Method::CopyFileRange) => Some((Method::CopyFileRange, peers::in_kernel as _)),
            _ => None,
        };
        if let Some((method, by)) = by {
            let data_bytes = peers::move_data(pair, source, (by, self.options.request), watch)?;
            let progress = Progress { data_bytes, ..Progress::default() };
            return Ok(Filled { method, why: String::new(), progress, is_moved: false });
        }
        let mut whys = Vec::new();
        for method in [Method::Reflink, Method::Server] {
            let asked = self.options.method;
            if asked.is_some_and(|asked| asked != method) {
                continue;
            }
            if asked.is_none() && (self.options.verify || self.options.hash) {
                continue;
            }
            let tried = match method {
                Method::Reflink => choose::reflink(pair).map(|()| data_of(pair.source, source)),
                _ => match choose::server(pair) {
                    // The chunks that the interrupted copy left need not be copied again.
                    Ok(()) if asked.is_none() && pair.part.has_claims(source)? => {
                        Err("no copy by the server: an interrupted copy goes on".to_owned())
                    }
                    Ok(()) => serve(pair, source, self.options.request, watch)?,
                    Err(why) => Err(why),
                },
            };
            match tried {
                Ok(data_bytes) => {
                    let progress = Progress { data_bytes, ..Progress::default() };
                    let why = whys.join("; ");
                    if method == Method::Reflink && watch.moved(data_bytes).is_break() {
                        return Err(CopyError::Interrupted);
                    }
                    return Ok(Filled { method, why, progress, is_moved: false });
                }
                Err(why) if asked.is_some() => {
                    let path = pair.part.path();
                    return Err(CopyError::Method { path, method: method.name(), why });
                }
                Err(why) => whys.push(why),
            }
        }
        if self.options.method.is_none() && whys.is_empty() {
            whys.push("no reflink: hashes are of bytes that are read".to_owned());
        }
        let moved = if keeps.is_none() && self.options.method.is_none() {
            choose::moved_together(pair, &self.options)?
        } else {
            choose::moved(pair, &self.options)?
        };
        self.move_bytes(pair, source, (moved, whys), keeps, watch)
    }

    fn move_bytes(
        &mut self,
        pair: &Pair<'_>,
        source: &Identity,
        (moved, mut whys): (Moved, Vec<String>),
        keeps: Option<&mut bool>,
        watch: &dyn Watch,
    ) -> Result<Filled, CopyError> {
        let is_alone = keeps.is_some();
        let request = self.options.request.get();
        let align = moved.ends.iter().map(|end| end.align).fold(PAGE_BYTES, u64::max);
        let worth_it = self.options.resume || source.size_bytes >= RESUMABLE_BYTES;
        let (claims, sidecar) = if let Some(keeps) = keeps.filter(|_| worth_it) {
            let (claims, sidecar) = pair.part.sidecar(source, request)?;
            *keeps = true;
            (claims.map(|claims| claims.chunks).unwrap_or_default(), Some(sidecar))
        } else {
            if pair.part.is_left {
                set_size(pair.part, 0)?;
            }
            (BTreeMap::new(), None)
        };
        let rounded = source.size_bytes.next_multiple_of(moved.ends[TARGET].align);
        set_size(pair.part, rounded)?;
        let hash = self.options.hash || self.options.verify || sidecar.is_some();
        let io = self.io(&moved.ends, source.size_bytes)?;
        let mut plan = CopyPlan {
            spans: Spans::of(pair.source, source.size_bytes, request, align),
            part: pair.part,
            watch,
            claims,
            sidecar,
            reserves: is_alone && moved.ends[TARGET].file.is_direct(),
            drops: is_alone && moved.ends[TARGET].drops,
            progress: Progress::default(),
            durable: Durable::default(),
        };
        let ended = Mover { io, ends: &moved.ends, hash, watch }.run(&mut plan);
        let kept = plan.keep();
        if ended?.is_break() {
            kept?;
            return Err(CopyError::Interrupted);
        }
        kept?;
        let mut progress = plan.progress;
        progress.chunks.sort_unstable_by_key(|chunk| chunk.offset_bytes);
        set_size(pair.part, source.size_bytes)?;
        whys.extend([moved.why].into_iter().filter(|why| !why.is_empty()));
        whys.extend(self.lacks.clone());
        Ok(Filled { method: moved.method, why: whys.join("; "), progress, is_moved: true })
    }

    /// Verifies the target, checks that the source did not change, and makes the target durable.
    /// The target keeps its temporary name.
    fn complete(
        &mut self,
        pair: &Pair<'_>,
        before: &Identity,
        filled: &Filled,
        (carry, watch): (Carry<'_>, &dyn Watch),
    ) -> Result<Verified, CopyError> {
        set_size(pair.part, before.size_bytes)?;
        let verified = self.verified(pair.part, filled, watch)?;
        unchanged(pair, before)?;
        pair.part.settle(pair.source, carry)?;
        Ok(verified)
    }

    pub(super) fn verified(
        &mut self,
        part: &PartialFile<'_>,
        filled: &Filled,
        watch: &dyn Watch,
    ) -> Result<Verified, CopyError> {
        if self.options.verify && !filled.is_moved {
            return Ok(Verified::NotCompared);
        }
        self.verify(part, &filled.progress.chunks, watch)
    }

    /// Reads the target again and compares it with the hashes of these chunks, if `--verify` was
    /// given.
    pub(super) fn verify(
        &mut self,
        part: &PartialFile<'_>,
        chunks: &[Chunk],
        watch: &dyn Watch,
    ) -> Result<Verified, CopyError> {
        if !self.options.verify {
            return Ok(Verified::NotAsked);
        }
        let path = part.part_path();
        part.file.sync_all().map_err(CopyError::io("fsync", &path))?;
        let end = choose::medium(&part.file, &path, &self.options)?;
        let size = part.file.metadata().map_or(0, |it| it.len());
        let io = self.io(&[end.clone(), end.clone()], size)?;
        verify::compare(io, &end, chunks, watch)?.map_err(|difference| {
            let verify::Difference { offset, expected, found } = difference;
            let (path, part) = (part.path(), part.part_path());
            CopyError::Differs { path, part, offset_bytes: offset, expected, found }
        })
    }

    /// Returns slots for a file of this size.
    pub(super) fn io(&mut self, ends: &[End; 2], size: u64) -> Result<&mut dyn Io, CopyError> {
        let request = self.options.request.get();
        let slots = size.div_ceil(request).clamp(1, u64::from(self.options.in_flight)) as usize;
        let files = [Arc::clone(&ends[0].file), Arc::clone(&ends[1].file)];
        let io = match self.io.take() {
            Some(mut io) if io.slots() >= slots => {
                io.replace_files(files)?;
                io
            }
            // As many slots as there was memory for.
            Some(mut io) if self.lacks_memory => {
                io.replace_files(files)?;
                io
            }
            _ => self.open(&files, slots)?,
        };
        Ok(&mut **self.io.insert(io))
    }

    /// Allocates memory for this number of requests, or for as many as there is memory for.
    fn open(
        &mut self,
        files: &[Arc<BlockFile>; 2],
        asked: usize,
    ) -> Result<Box<dyn Io>, CopyError> {
        let request = self.options.request;
        let mut slots = asked;
        loop {
            match (self.open)(files.clone(), slots, request.get() as usize) {
                Err(error) if error.is_memory() && slots > 1 => slots /= 2,
                Err(error) => return Err(error),
                Ok((io, without)) => {
                    let fewer = format!("memory for {slots} requests of {request} at once only");
                    self.lacks_memory = slots < asked;
                    let fewer = self.lacks_memory.then_some(fewer);
                    let lacks: Vec<String> = without.into_iter().chain(fewer).collect();
                    self.lacks = (!lacks.is_empty()).then(|| lacks.join("; "));
                    return Ok(io);
                }
            }
        }
    }

    /// Closes the files but keeps the memory.
    pub(super) fn let_go(&mut self) {
        let Some(io) = &mut self.io else { return };
        let nothing = BlockFile::nothing().map(Arc::new);
        let released =
            nothing.is_ok_and(|file| io.replace_files([Arc::clone(&file), file]).is_ok());
        if !released {
            self.io = None;
        }
    }

    /// Returns the size of the largest file that [`Copier::copy_batch`] takes: one request.
    pub fn small(&self) -> Bytes {
        self.options.request
    }
}

fn can_request(request: Bytes) -> bool {
    let bytes = request.get();
    bytes.is_multiple_of(PAGE_BYTES) && (1..=REQUEST_MOST).contains(&bytes)
}

pub(super) fn copied(bytes: u64, filled: Filled, verified: Verified) -> Copied {
    let Filled { method, why, progress, .. } = filled;
    Copied {
        bytes,
        data_bytes: progress.data_bytes,
        method,
        why,
        chunks: progress.chunks,
        resumed_bytes: progress.resumed_bytes,
        again_bytes: progress.again_bytes,
        verified,
    }
}

pub(super) fn set_size(part: &PartialFile<'_>, bytes: u64) -> Result<(), CopyError> {
    // XFS writes the last block even if the file already has this size, and that block may be
    // shared.
    if part.file.metadata().is_ok_and(|found| found.len() == bytes) {
        return Ok(());
    }
    part.file.set_len(bytes).map_err(CopyError::io("resize", &part.part_path()))
}

/// Fails if the source changed since `before`.
pub(super) fn unchanged(pair: &Pair<'_>, before: &Identity) -> Result<(), CopyError> {
    let now = Identity::of(pair.source).map_err(CopyError::io("look at", pair.source_path))?;
    match before.difference(&now) {
        Some(what) => Err(CopyError::Changed { path: pair.source_path.to_owned(), what }),
        None => Ok(()),
    }
}

fn data_of(source: &File, identity: &Identity) -> u64 {
    let mut spans = Spans::of(source, identity.size_bytes, REQUEST_MOST, PAGE_BYTES);
    std::iter::from_fn(|| spans.next().ok().flatten()).map(|span| u64::from(span.len)).sum()
}
