//! Every operation in every shape, each on its own file.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::direct::findings::{Cell, Operation, Shape};
use blockstone_base::rng;
use blockstone_measure::Observer;
use blockstone_sys::account;
use blockstone_sys::bpf::effect::Effect;
use blockstone_sys::buffer::{SLOT_ALIGN_BYTES, Slot};
use blockstone_sys::cached::{self, Look};
use blockstone_sys::file::{Access, BlockFile, FileError};
use blockstone_sys::survey::{Alignment, alignment_of};
use blockstone_sys::thread::scoped;

use super::classify::{Caching, CellEvidence, Counted, classify};
use super::place::{Place, REQUESTS};
use super::scratch::{self, ScratchFile};
use super::witness::Witness;
use crate::CheckError;

/// Smallest and largest block: a file system may have larger ones, which are never requested.
const BLOCKS: (usize, usize) = (4096, 65_536);
const SECTOR: usize = 512;
/// No cell starts after this time.
const LIMIT: Duration = Duration::from_secs(20);
/// Time limit for querying the page cache of a scratch file, which takes microseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Results on a place, and what statx(2) says there.
#[derive(Debug)]
pub struct Tried {
    pub cells: Vec<Cell>,
    pub statx: String,
    /// Whether there was no time for the rest.
    pub unfinished: bool,
}

/// Tries all cells of a directory.
pub fn all(
    place: &Place<'_>,
    witness: &mut Witness,
    observer: &mut dyn Observer,
) -> Result<Tried, CheckError> {
    scratch::remove_orphans(place.path);
    let block = rustix::fs::statvfs(place.path).map_or(0, |found| found.f_frsize as usize);
    let block = block.clamp(BLOCKS.0, BLOCKS.1);
    let mut tried = Tried { cells: Vec::new(), statx: String::new(), unfinished: false };
    let until = Instant::now() + LIMIT;
    for &operation in Operation::ALL {
        observer.phase(operation.name());
        for &shape in Shape::ALL {
            if observer.interrupted().is_some() {
                return Ok(tried);
            }
            if Instant::now() > until {
                tried.unfinished = true;
                return Ok(tried);
            }
            let Some(file) = ScratchFile::prepared(place, operation, block)? else { continue };
            let ScratchFile { direct, plain, real, .. } = &file;
            let (number, real) = (watched(plain, witness), real.as_ref());
            let real = real.map(|real| (real, watched(real, witness)));
            let trial = Trial { place, operation, shape, block, plain, number, real };
            if tried.statx.is_empty() {
                tried.statx = said_by(plain);
            }
            tried.cells.push(trial.run(direct.as_ref(), witness)?);
        }
    }
    Ok(tried)
}

/// Tries reads of a file or device, in every shape.
pub fn reads(place: &Place<'_>, witness: &mut Witness) -> Result<Tried, CheckError> {
    let plain = BlockFile::open(place.path, Access::Read, false)?;
    let (bytes, least) = (plain.size_bytes()?, (REQUESTS * BLOCKS.0) as u64);
    if bytes < least {
        return Err(CheckError::Short { path: place.path.to_owned(), bytes, least });
    }
    let direct = plain.reopen(Access::Read, true);
    let plain = plain.plain()?;
    let number = watched(&plain, witness);
    let trial = |shape| {
        let (operation, plain, real) = (Operation::Read, &plain, None);
        Trial { place, operation, shape, block: BLOCKS.0, plain, number, real }
    };
    let cells = Shape::ALL.iter().map(|&shape| trial(shape).run(direct.as_ref(), witness));
    let cells = cells.collect::<Result<_, _>>()?;
    Ok(Tried { cells, statx: said_by(&plain), unfinished: false })
}

/// Has the witness watch a file from now on; returns its number.
fn watched(file: &File, witness: &mut Witness) -> Option<usize> {
    witness.watch(file.try_clone().ok()?)
}

fn said_by(file: &File) -> String {
    match alignment_of(file) {
        Alignment::Known { offset_bytes, memory_bytes } => {
            format!("multiples of {offset_bytes} B in the file, {memory_bytes} B in memory")
        }
        Alignment::Refused => "no direct I/O".to_owned(),
        Alignment::Unknown => "nothing about direct I/O".to_owned(),
    }
}

/// One cell to try.
#[derive(Debug)]
struct Trial<'a> {
    place: &'a Place<'a>,
    operation: Operation,
    shape: Shape,
    block: usize,
    plain: &'a File,
    number: Option<usize>,
    /// File and number for the file that holds its pages, if that is another.
    real: Option<(&'a File, Option<usize>)>,
}

/// Where in the file and in memory the bytes of a request are.
#[derive(Clone, Copy, Debug)]
struct Request {
    offset: u64,
    length: usize,
    memory_offset: usize,
}

/// Result of the requests.
#[derive(Debug, Default)]
struct Done {
    requests: u64,
    asked_bytes: u64,
    error: Option<i32>,
}

impl Trial<'_> {
    fn run(
        &self,
        direct: Result<&BlockFile, &FileError>,
        witness: &mut Witness,
    ) -> Result<Cell, CheckError> {
        let promised = self.promised();
        let before = self.cached();
        let in_memory = cached::is_in_memory(self.with_pages()).unwrap_or(false);
        let counted_before = self.counted(witness);
        let charged_before = charged(self.operation);
        let (done, most) = match direct {
            Ok(file) => self.looked_at(file, witness.is_there())?,
            Err(error) => (Done { error: errno_of(error), ..Done::default() }, None),
        };
        let charged = charged(self.operation).zip(charged_before).map(|(now, then)| now - then);
        let counted = self.counted(witness).zip(counted_before);
        let after = self.cached();
        let seen = CellEvidence {
            requests: done.requests,
            error: done.error,
            in_memory,
            caching: self.caching(),
            says_refused: alignment_of(self.plain) == Alignment::Refused,
            before_cached_bytes: before,
            most_cached_bytes: most,
            after_cached_bytes: after,
            counted: counted.map(|(now, then)| Counted::of(self.operation, &now, &then)),
            unseen: witness.why().to_owned(),
            dropped: witness.dropped(),
        };
        let (class, evidence) = classify(&seen);
        let asked = done.asked_bytes as f64;
        Ok(Cell {
            operation: self.operation,
            shape: self.shape,
            class,
            evidence,
            requests: done.requests,
            error: done.error.map(crate::evidence::name_of),
            promised,
            added_pages: seen.counted.map(|counted| counted.added_pages),
            direct_ios: seen.counted.and_then(|counted| counted.direct_ios),
            before_cached_bytes: before,
            after_cached_bytes: after,
            charged_ratio: charged.filter(|_| asked > 0.0).map(|bytes| bytes as f64 / asked),
        })
    }

    fn request(&self, number: usize) -> Request {
        let offset = (number * self.block) as u64;
        let block = Request { offset, length: self.block, memory_offset: 0 };
        let sector = Request { length: SECTOR, ..block };
        match (self.shape, self.operation) {
            (Shape::Block, _) => block,
            // Consecutive, so that each extends the file.
            (Shape::Sector, Operation::Append) => {
                Request { offset: (number * SECTOR) as u64, ..sector }
            }
            (Shape::Sector, _) => Request { offset: offset + SECTOR as u64, ..sector },
            (Shape::Memory512, _) => Request { memory_offset: 512, ..block },
            (Shape::Memory4, _) => Request { memory_offset: 4, ..block },
        }
    }

    /// Returns whether statx(2) says that all these requests can be direct.
    fn promised(&self) -> Option<bool> {
        match alignment_of(self.plain) {
            Alignment::Unknown => None,
            Alignment::Refused => Some(false),
            Alignment::Known { offset_bytes, memory_bytes } => {
                let Request { offset, length, memory_offset } = self.request(1);
                let by = u64::from(offset_bytes);
                let fits = offset.is_multiple_of(by) && (length as u64).is_multiple_of(by);
                Some(fits && memory_offset.is_multiple_of(memory_bytes as usize))
            }
        }
    }

    /// Sends the requests. If the kernel does not count, another thread queries the page cache
    /// meanwhile: pages that are dropped at the end of a request are there in between.
    fn looked_at(
        &self,
        file: &BlockFile,
        is_counted: bool,
    ) -> Result<(Done, Option<u64>), CheckError> {
        let mut memory = Slot::new(self.block + SLOT_ALIGN_BYTES)?;
        if is_counted {
            return Ok((self.send(file, &mut memory), None));
        }
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let looking = scoped(scope, "look", || {
                let mut most = None;
                while !ended.load(Ordering::Relaxed) {
                    most = most.max(self.cached());
                }
                most
            })
            .map_err(|source| CheckError::Thread { source })?;
            let done = self.send(file, &mut memory);
            ended.store(true, Ordering::Relaxed);
            Ok((done, looking.join().ok().flatten()))
        })
    }

    fn send(&self, file: &BlockFile, memory: &mut [u8]) -> Done {
        let mut done = Done::default();
        for number in 0..REQUESTS {
            let Request { offset, length, memory_offset } = self.request(number);
            let data = &mut memory[memory_offset..memory_offset + length];
            let answer = if self.operation.reads() {
                file.read_at(offset, data)
            } else {
                rng::fill(number as u64, data);
                file.write_at(offset, data)
            };
            match answer {
                Ok(_) => {
                    done.requests += 1;
                    done.asked_bytes += length as u64;
                }
                Err(errno) => {
                    done.error = Some(errno);
                    break;
                }
            }
        }
        done
    }

    fn caching(&self) -> Caching {
        match (self.real, self.place.upper) {
            (Some(_), Some(upper)) => Caching::of(&upper.file_system, false),
            _ => Caching::of(self.place.file_system, self.place.is_device),
        }
    }

    fn with_pages(&self) -> &File {
        self.real.map_or(self.plain, |(file, _)| file)
    }

    fn cached(&self) -> Option<u64> {
        let bytes = (REQUESTS * self.block) as u64;
        match cached::look_at(self.with_pages(), bytes, Instant::now() + PATIENCE) {
            Ok(Look::Cached(found)) => Some(found.cached_bytes),
            _ => None,
        }
    }

    fn counted(&self, witness: &mut Witness) -> Option<Effect> {
        let effects = witness.effects()?;
        let mut effect = *effects.get(self.number?)?;
        if let Some((_, number)) = self.real {
            // The calls are to one file, but the kernel acts on the other on their behalf.
            let real = effects.get(number?)?;
            effect.direct_ios = real.direct_ios;
            effect.other_pages += real.other_pages;
        }
        Some(effect)
    }
}

/// Returns the bytes that the kernel has charged to this process so far.
fn charged(operation: Operation) -> Option<u64> {
    let io = account::account(Path::new("/"), std::process::id(), None)?.io?;
    Some(if operation.reads() { io.read_bytes } else { io.write_bytes })
}

fn errno_of(error: &FileError) -> Option<i32> {
    match error {
        FileError::Open { source, .. }
        | FileError::Create { source, .. }
        | FileError::Io { source, .. } => source.raw_os_error(),
        FileError::Locked { .. } => None,
    }
}
