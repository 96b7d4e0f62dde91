//! Adapters for pipes: reads and writes the files of `… | gzip | …` in large direct requests.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use blockstone_sys::held::{self, HeldDir};
use blockstone_sys::process;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use twox_hash::XxHash3_128;

use super::choose;
use super::copier::set_size;
use super::extents::Span;
use super::finish::PartialFile;
use super::io::{End, Io, SOURCE, TARGET};
use super::moving::Moving;
use super::resume::Identity;
use super::{Carry, Chunk, Copier, Method, Options, Verified, Watch};
use crate::{CopyError, device};

/// Largest pipe that the kernel grants any user by default (/proc/sys/fs/pipe-max-size).
const PIPE_BYTES: usize = 1 << 20;
/// Least and most bytes reserved in one step for a file that grows.
const ROOM: (u64, u64) = (64 << 20, 4 << 30);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piped {
    pub bytes: u64,
    pub method: Method,
    /// Why no cheaper method was used.
    pub why: String,
    /// Whether the reader of the pipe closed it before the end.
    pub broken: bool,
    /// Empty if no hashes were requested.
    pub chunks: Vec<Chunk>,
    pub verified: Verified,
}

/// Requests in flight on one file.
struct Lane<'a> {
    io: &'a mut dyn Io,
    end: &'a End,
    flights: Vec<Option<Moving>>,
}

impl<'a> Lane<'a> {
    fn of(io: &'a mut dyn Io, end: &'a End) -> Self {
        let flights = vec![None; io.slots()];
        Self { io, end, flights }
    }

    fn push(&mut self, slot: usize, moving: Moving) {
        self.io.push(&moving.request(slot, self.end));
        self.flights[slot] = Some(moving);
    }

    /// Waits until the kernel has answered for this slot. Its answers for others are taken too.
    fn wait(&mut self, slot: usize) -> Result<(), CopyError> {
        let mut answers = Vec::new();
        while self.flights[slot].is_some() {
            self.io.answers(true, &mut answers)?;
            let mut failed = None;
            for (slot, result) in answers.drain(..) {
                let Some(mut moving) = self.flights[slot].take() else { continue };
                match moving.take(self.end, result) {
                    Ok(true) => {}
                    Ok(false) => self.push(slot, moving),
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits for all requests, whatever their results.
    fn end(mut self) -> Result<(), CopyError> {
        let mut ended = Ok(());
        for slot in 0..self.flights.len() {
            while self.flights[slot].is_some() {
                ended = ended.and(self.wait(slot));
            }
        }
        ended
    }
}

/// Writes the bytes of a file or device to a pipe (or whatever standard output is), in order.
pub fn read(
    source: &Path,
    out: &File,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Piped, CopyError> {
    let mut copier = Copier::new(*options)?;
    let is_device = device::is_device(source);
    let file = if is_device {
        device::open(source)?
    } else {
        held::open_file(source).map_err(CopyError::io("open", source))?
    };
    let before = Identity::of(&file).map_err(CopyError::io("look at", source))?;
    let (method, end, why) = if is_device {
        (Method::Direct, choose::device(file.try_clone(), source)?, String::new())
    } else {
        choose::source(&file, source, options)?
    };
    widen(out);
    let size = if is_device { end.file.size_bytes()? } else { before.size_bytes };
    let io = copier.io(&[end.clone(), end.clone()], size)?;
    let mut lane = Lane::of(io, &end);
    let sent = send(&mut lane, (size, options.request.get()), out, watch);
    let ended = lane.end();
    let (bytes, broken) = sent?;
    if !broken {
        ended?;
    }
    if !broken && !is_device {
        let now = Identity::of(&file).map_err(CopyError::io("look at", source))?;
        if let Some(what) = before.difference(&now) {
            return Err(CopyError::Changed { path: source.to_owned(), what });
        }
    }
    let verified = Verified::NotAsked;
    Ok(Piped { bytes, method, why, broken, chunks: Vec::new(), verified })
}

/// Returns the number of bytes sent, and whether the pipe is broken.
fn send(
    lane: &mut Lane<'_>,
    (size, request): (u64, u64),
    mut out: &File,
    watch: &dyn Watch,
) -> Result<(u64, bool), CopyError> {
    let span = |chunk: u64| {
        let offset = chunk * request;
        Span { offset, len: (size - offset).min(request) as u32 }
    };
    let (chunks, slots) = (size.div_ceil(request), lane.flights.len() as u64);
    let mut pushed = 0;
    for chunk in 0..chunks {
        while pushed < chunks && pushed < chunk + slots {
            watch.pace(u64::from(span(pushed).len));
            let moving = Moving::of(span(pushed), false, SOURCE, lane.end);
            lane.push((pushed % slots) as usize, moving);
            pushed += 1;
        }
        let (slot, Span { offset, len }) = ((chunk % slots) as usize, span(chunk));
        lane.wait(slot)?;
        match out.write_all(&lane.io.buffer(slot)[..len as usize]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok((offset, true)),
            written => written.map_err(CopyError::io("write to", Path::new("the pipe")))?,
        }
        if watch.moved(u64::from(len)).is_break() {
            return Err(CopyError::Interrupted);
        }
    }
    Ok((size, false))
}

/// Makes a file from a pipe, read to its end; `carry` gets the pipe and the file.
pub fn write(
    input: &File,
    target: (&HeldDir, &Path),
    options: &Options,
    carry: Carry<'_>,
    watch: &dyn Watch,
) -> Result<Piped, CopyError> {
    if options.resume {
        let what = "a pipe cannot be read from where a copy was interrupted".to_owned();
        return Err(CopyError::Usage { what, hint: "leave out --resume" });
    }
    let mut copier = Copier::new(*options)?;
    let part = PartialFile::open(target, options)?;
    let made = make(&mut copier, input, &part, watch).and_then(|piped| {
        part.settle(input, carry)?;
        part.rename()?;
        Ok(piped)
    });
    match made {
        Ok(piped) => part.end(&mut Vec::new()).map(|()| piped),
        Err(error) => {
            if !matches!(error, CopyError::Differs { .. }) {
                part.abandon();
            }
            Err(error)
        }
    }
}

/// Gives a file the mode of any new file, as `> FILE` does: it was made for this user only.
pub fn share(file: &File, path: &Path) -> Result<(), CopyError> {
    let mode = Permissions::from_mode(0o666 & !process::umask());
    file.set_permissions(mode).map_err(CopyError::io("set the mode of", path))
}

fn make(
    copier: &mut Copier,
    input: &File,
    part: &PartialFile<'_>,
    watch: &dyn Watch,
) -> Result<Piped, CopyError> {
    let options = copier.options;
    let (method, end, why) = choose::target(part, &options)?;
    let is_direct = end.file.is_direct();
    let mut room = 0;
    let mut reserve = |end_bytes| {
        if is_direct && end_bytes > room {
            room = make_room(part, room)?;
        }
        Ok(())
    };
    let (bytes, chunks) = receive(copier, (input, &end), &mut reserve, watch)?;
    set_size(part, bytes)?;
    let verified = copier.verify(part, &chunks, watch)?;
    Ok(Piped { bytes, method, why, broken: false, chunks, verified })
}

/// Called with the size that the target will have before more is written.
pub(super) type Reserve<'a> = &'a mut dyn FnMut(u64) -> Result<(), CopyError>;

/// Writes the contents of a pipe, read to its end. Returns the bytes, and the chunks if they are to
/// be hashed.
pub(super) fn receive(
    copier: &mut Copier,
    (input, end): (&File, &End),
    reserve: Reserve<'_>,
    watch: &dyn Watch,
) -> Result<(u64, Vec<Chunk>), CopyError> {
    let options = copier.options;
    widen(input);
    let io = copier.io(&[end.clone(), end.clone()], u64::MAX)?;
    let mut lane = Lane::of(io, end);
    let taken = take(&mut lane, input, reserve, (&options, watch));
    let ended = lane.end();
    let taken = taken?;
    ended.map(|()| taken)
}

fn take(
    lane: &mut Lane<'_>,
    input: &File,
    reserve: Reserve<'_>,
    (options, watch): (&Options, &dyn Watch),
) -> Result<(u64, Vec<Chunk>), CopyError> {
    let (mut offset, mut chunks) = (0, Vec::new());
    for slot in (0..lane.flights.len()).cycle() {
        lane.wait(slot)?;
        let buffer = lane.io.buffer(slot);
        let len = fill(input, buffer).map_err(CopyError::io("read", Path::new("the pipe")))?;
        if len == 0 {
            break;
        }
        if options.hash || options.verify {
            let xxh3_128 = XxHash3_128::oneshot(&buffer[..len]);
            chunks.push(Chunk { offset_bytes: offset, len_bytes: len as u32, xxh3_128 });
        }
        let moving = Moving::of(Span { offset, len: len as u32 }, true, TARGET, lane.end);
        buffer[len..moving.want as usize].fill(0);
        let is_last = len < buffer.len();
        offset += len as u64;
        reserve(offset)?;
        lane.push(slot, moving);
        watch.pace(len as u64);
        if watch.moved(len as u64).is_break() {
            return Err(CopyError::Interrupted);
        }
        if is_last {
            break;
        }
    }
    Ok((offset, chunks))
}

/// Extends the file beyond its data, because requests that extend a file wait for each other.
fn make_room(part: &PartialFile<'_>, room: u64) -> Result<u64, CopyError> {
    let more = room.clamp(ROOM.0, ROOM.1);
    set_size(part, room + more)?;
    let free = fstatvfs(&part.file).map_or(0, |it| it.f_bavail.saturating_mul(it.f_frsize));
    if free / 2 > more {
        // Only an optimisation: without it, each write allocates its own blocks.
        let _ = fallocate(&part.file, FallocateFlags::empty(), room, more);
    }
    Ok(room + more)
}

/// Reads until the buffer is full or the pipe has ended.
fn fill(mut input: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match input.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(bytes) => len += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// Tries to enlarge a pipe. Failure is ignored: the file may not be a pipe, or the user may have
/// reached the limit on memory for pipes.
fn widen(pipe: &File) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}
