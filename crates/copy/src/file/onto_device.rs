//! A block device as the target: the bytes of a file, of another device or of a pipe, written from
//! the start of the device, with holes as zeros. There is no name to give it last, so an
//! interrupted copy is not resumed.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_sys::held;

use super::extents::Span;
use super::io::End;
use super::mover::{Done, Mover, Plan, Work};
use super::pipe::{Piped, receive};
use super::resume::Identity;
use super::{Chunk, Copier, Options, Verified, Watch, choose, verify};
use crate::{CopyError, device};

/// Plan for all of a source, in order.
struct Whole<'a> {
    at: u64,
    size: u64,
    request: u64,
    chunks: Vec<Chunk>,
    watch: &'a dyn Watch,
}

impl Plan for Whole<'_> {
    fn next(&mut self) -> Result<Option<(Span, Work)>, CopyError> {
        let len = self.request.min(self.size - self.at);
        let span = Span { offset: self.at, len: len as u32 };
        self.at += len;
        Ok((len > 0).then_some((span, Work::Copy)))
    }

    fn done(&mut self, done: Done) -> Result<ControlFlow<()>, CopyError> {
        let Span { offset, len } = done.span;
        let chunk = |xxh3_128| Chunk { offset_bytes: offset, len_bytes: len, xxh3_128 };
        self.chunks.extend(done.hash.map(chunk));
        Ok(self.watch.moved(u64::from(len)))
    }
}

/// A device that the caller has claimed.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub path: &'a Path,
    /// Return value of [`device::number`] before the device was claimed.
    pub number: u64,
}

/// Overwrites a device with a file or another device.
pub fn write(
    source: &Path,
    target: &Target<'_>,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Piped, CopyError> {
    let Target { path: target, number } = *target;
    let mut copier = Copier::new(*options)?;
    let is_device = device::is_device(source);
    let file = if is_device {
        device::open(source)?
    } else {
        held::open_file(source).map_err(CopyError::io("open", source))?
    };
    let size_bytes = |path| device::size_bytes(path).map_err(CopyError::io("look at", path));
    let (size, room) = (size_bytes(source)?, size_bytes(target)?);
    if size > room {
        let (size, room) = (Bytes(size), Bytes(room));
        let what = format!("{} has {size}, and {} only {room}", source.display(), target.display());
        return Err(CopyError::Usage { what, hint: "name a larger device" });
    }
    let before = Identity::of(&file).map_err(CopyError::io("look at", source))?;
    let (method, from, why) = if is_device {
        (super::Method::Direct, choose::device(file.try_clone(), source)?, String::new())
    } else {
        choose::source(&file, source, options)?
    };
    let onto = choose::device(Ok(device::open_to_overwrite(target, number)?), target)?;
    let hash = options.hash || options.verify;
    let ends = [from, onto.clone()];
    let request = options.request.get();
    let mut plan = Whole { at: 0, size, request, chunks: Vec::new(), watch };
    let io = copier.io(&ends, size)?;
    if (Mover { io, ends: &ends, hash, watch }).run(&mut plan)?.is_break() {
        return Err(CopyError::Interrupted);
    }
    sync(&onto, target)?;
    if !is_device {
        let now = Identity::of(&file).map_err(CopyError::io("look at", source))?;
        if let Some(what) = before.difference(&now) {
            return Err(CopyError::Changed { path: source.to_owned(), what });
        }
    }
    let verified = verified(&mut copier, (&onto, target), &mut plan.chunks, (size, watch))?;
    Ok(Piped { bytes: size, method, why, broken: false, chunks: plan.chunks, verified })
}

/// Overwrites a device with the contents of a pipe. Fails if they exceed the size of the device.
pub fn write_pipe(
    input: &File,
    target: &Target<'_>,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Piped, CopyError> {
    let Target { path: target, number } = *target;
    let mut copier = Copier::new(*options)?;
    let onto = choose::device(Ok(device::open_to_overwrite(target, number)?), target)?;
    let room = onto.file.size_bytes()?;
    let mut reserve = |bytes| {
        if bytes <= room {
            return Ok(());
        }
        let what = format!("{} has {}, and the pipe gives more", target.display(), Bytes(room));
        Err(CopyError::Usage { what, hint: "name a larger device; its content is destroyed" })
    };
    let (bytes, mut chunks) = receive(&mut copier, (input, &onto), &mut reserve, watch)?;
    sync(&onto, target)?;
    let verified = verified(&mut copier, (&onto, target), &mut chunks, (bytes, watch))?;
    let (method, why) = (super::Method::Direct, String::new());
    Ok(Piped { bytes, method, why, broken: false, chunks, verified })
}

fn sync(onto: &End, target: &Path) -> Result<(), CopyError> {
    let synced = onto.file.fsync().map_err(std::io::Error::from_raw_os_error);
    synced.map_err(CopyError::io("fsync", target))
}

/// Reads the device again, if `--verify` was given. Sorts the chunks.
fn verified(
    copier: &mut Copier,
    (onto, target): (&End, &Path),
    chunks: &mut [Chunk],
    (size, watch): (u64, &dyn Watch),
) -> Result<Verified, CopyError> {
    chunks.sort_unstable_by_key(|chunk| chunk.offset_bytes);
    if !copier.options.verify {
        return Ok(Verified::NotAsked);
    }
    let io = copier.io(&[onto.clone(), onto.clone()], size)?;
    verify::compare(io, onto, chunks, watch)?.map_err(|difference| {
        let verify::Difference { offset, expected, found } = difference;
        let path = target.to_owned();
        CopyError::Differs { part: path.clone(), path, offset_bytes: offset, expected, found }
    })
}
