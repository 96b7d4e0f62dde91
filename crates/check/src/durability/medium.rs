//! Storage for the blocks of a run: files below one directory, or parts of a device.
//!
//! The directory may be in a place where other users write. It belongs to this user alone and is
//! held by its descriptor, from which its contents are reached.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use crate::durability::findings::{Method, Pattern, Stream};
use blockstone_base::load::SyncFlag;
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{Access, BlockFile, FileError};
use blockstone_sys::held::HeldDir;

use super::layout::{self, BLOCK_MAX, Extent, HEADER, HEADER_STREAM, SLOTS};
use super::stamp::{self, SECTOR, Sector, Stamp};
use crate::CheckError;

/// Size of the header, so that it can be read past the page cache.
const HEADER_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub enum Medium {
    Directory {
        above: Arc<HeldDir>,
        /// Directory in it that holds all files; none if there is no run.
        dir: Option<Arc<HeldDir>>,
    },
    Device(Arc<BlockFile>),
}

impl Medium {
    /// Finds what a run left at a path. Fails if the path cannot be read, or another user could
    /// write to what is there.
    pub fn find(path: &Path, is_device: bool) -> Result<Self, CheckError> {
        if is_device {
            return Ok(Self::Device(Arc::new(BlockFile::open(path, Access::Read, false)?)));
        }
        let error = |source| CheckError::Foreign { path: path.join(layout::DIRECTORY), source };
        let above = HeldDir::hold(path).map_err(error)?;
        let dir = match above.open_own_dir(layout::DIRECTORY.as_ref()) {
            Ok(dir) => Some(Arc::new(dir)),
            Err(source) if source.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(error(source)),
        };
        Ok(Self::Directory { above: Arc::new(above), dir })
    }

    /// Makes the directory at a path, or takes the claimed device, and writes the header that names
    /// the run.
    pub fn begin(
        path: &Path,
        device: Option<Arc<BlockFile>>,
        run: u64,
    ) -> Result<Self, CheckError> {
        let medium = match device {
            Some(device) => Self::Device(device),
            None => Self::make(path)?,
        };
        let written = medium.write_header(run);
        if written.is_err() {
            let _ = medium.remove();
        }
        written.map(|()| medium)
    }

    fn make(path: &Path) -> Result<Self, CheckError> {
        let above = HeldDir::hold(path).map_err(|source| scratch(path, source))?;
        let dir = path.join(layout::DIRECTORY);
        let made = match above.make_new_dir(layout::DIRECTORY.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(CheckError::Unverified { path: dir });
            }
            made => made.map_err(|source| scratch(&dir, source))?,
        };
        Ok(Self::Directory { above: Arc::new(above), dir: Some(Arc::new(made)) })
    }

    fn write_header(&self, run: u64) -> Result<(), CheckError> {
        let header = match self {
            Self::Device(device) => device.reopen(Access::ReadWrite, false)?,
            Self::Directory { .. } => BlockFile::create_in(self.dir()?, HEADER.as_ref(), false)?,
        };
        let mut block = vec![0; HEADER_BYTES];
        header_stamp(run).fill(&mut block);
        write_all(&header, 0, &block)?;
        Ok(header.fsync().map_err(|errno| failed(&header, "flush", errno))?)
    }

    /// Returns the run that the header names; `None` if there is no header.
    pub fn run(&self) -> Result<Option<u64>, CheckError> {
        let Some(file) = self.open_uncached(HEADER)? else { return Ok(None) };
        let mut block = Slot::new(HEADER_BYTES)?;
        let bytes = file.read_at(0, &mut block).map_err(|errno| failed(&file, "read", errno))?;
        let first = block[..bytes.min(SECTOR)].to_vec();
        Ok(match stamp::read(&first) {
            Sector::Stamped(stamp, 0) if stamp == header_stamp(stamp.run) => Some(stamp.run),
            _ => None,
        })
    }

    /// Has everything written to the device, together with the directories above it.
    pub fn settle(&self) -> Result<(), CheckError> {
        match self {
            Self::Device(device) => {
                let file = device.reopen(Access::ReadWrite, false)?;
                Ok(file.fsync().map_err(|errno| failed(&file, "flush", errno))?)
            }
            Self::Directory { above, .. } => {
                let synced = rustix::fs::syncfs(above.as_fd());
                synced.map_err(|errno| scratch(above.path(), errno.into()))
            }
        }
    }

    /// Removes the directory; a device keeps its contents.
    pub fn remove(&self) -> io::Result<()> {
        let Self::Directory { above, dir: Some(dir) } = self else { return Ok(()) };
        dir.remove_all()?;
        above.remove_dir(layout::DIRECTORY.as_ref(), dir)
    }

    fn dir(&self) -> Result<&Arc<HeldDir>, CheckError> {
        let path = match self {
            Self::Directory { dir: Some(dir), .. } => return Ok(dir),
            Self::Directory { above, dir: None } => above.path(),
            Self::Device(device) => device.path(),
        };
        Err(CheckError::NoTrace { path: path.to_owned() })
    }

    /// Opens a file of the run, or the device, to read what is on the device: past the page cache
    /// if possible. `None` if there is no such file.
    fn open_uncached(&self, file: &str) -> Result<Option<BlockFile>, FileError> {
        let open = |direct| match self {
            Self::Device(device) => device.reopen(Access::Read, direct).map(Some),
            Self::Directory { dir: None, .. } => Ok(None),
            Self::Directory { dir: Some(dir), .. } => {
                match BlockFile::open_in(dir, file.as_ref(), Access::Read, direct) {
                    Err(FileError::Open { source, .. })
                        if source.kind() == io::ErrorKind::NotFound =>
                    {
                        Ok(None)
                    }
                    opened => opened.map(Some),
                }
            }
        };
        if let Ok(file) = open(true) {
            return Ok(file);
        }
        let file = open(false)?;
        // Pages that are not dropped were read after the cut, unless only the device lost power.
        let _ = file.as_ref().map(BlockFile::drop_cached);
        Ok(file)
    }
}

fn header_stamp(run: u64) -> Stamp {
    Stamp { run, stream: HEADER_STREAM, sequence: 0, offset_bytes: 0 }
}

fn scratch(dir: &Path, source: io::Error) -> CheckError {
    let hint = "free some space, or choose another directory";
    CheckError::Scratch { dir: dir.to_owned(), source, hint }
}

pub fn failed(file: &BlockFile, operation: &'static str, errno: i32) -> FileError {
    file.error(operation, io::Error::from_raw_os_error(errno))
}

fn write_all(file: &BlockFile, offset_bytes: u64, data: &[u8]) -> Result<(), FileError> {
    let mut done = 0;
    while done < data.len() {
        let written = file.write_at(offset_bytes + done as u64, &data[done..]);
        match written.map_err(|errno| failed(file, "write", errno))? {
            0 => return Err(file.error("write", io::ErrorKind::WriteZero.into())),
            bytes => done += bytes,
        }
    }
    Ok(())
}

/// Writes the blocks of one stream.
#[derive(Debug)]
pub struct StreamWriter {
    /// Directory of its files; none on a device.
    dir: Option<Arc<HeldDir>>,
    run: u64,
    number: u16,
    stream: Stream,
    /// The file that it is currently writing to, with its name.
    open: Option<(String, BlockFile)>,
    memory: Slot,
}

impl StreamWriter {
    /// Makes what must exist before the first write.
    pub fn prepare(
        medium: &Medium,
        run: u64,
        (number, stream): (u16, Stream),
    ) -> Result<Self, CheckError> {
        let mut writer =
            Self { dir: None, run, number, stream, open: None, memory: Slot::new(BLOCK_MAX)? };
        let first = layout::place(number, Pattern::Overwrite, 0).file;
        if let Medium::Device(device) = medium {
            let file = device.reopen(Access::ReadWrite, false)?;
            writer.fill_circle(first, &file)?;
            return Ok(writer);
        }
        let dir = medium.dir()?;
        if stream.pattern == Pattern::Overwrite {
            let file = BlockFile::create_in(dir, first.as_ref(), false)?;
            // The next stream may get its number, and therefore its name.
            writer.fill_circle(first, &file).inspect_err(|_| drop(file.remove()))?;
            writer.dir = Some(Arc::clone(dir));
        } else {
            let name = format!("{number:02}");
            let made = dir.make_new_dir(name.as_ref());
            let made = made.map_err(|source| scratch(&dir.path().join(name), source))?;
            writer.dir = Some(Arc::new(made));
        }
        Ok(writer)
    }

    /// Writes every block of the circle, so that later writes overwrite written blocks.
    fn fill_circle(&mut self, name: String, file: &BlockFile) -> Result<(), CheckError> {
        let base = base(file.is_device(), self.number);
        for slot in 0..SLOTS {
            let place = layout::place(self.number, Pattern::Overwrite, slot);
            let data = &mut self.memory[..place.bytes as usize];
            stamp_of(self.run, self.number, &place, 0).fill(data);
            write_all(file, base + place.offset_bytes, data)?;
        }
        file.fsync().map_err(|errno| failed(file, "flush", errno))?;
        self.open = Some((name, self.open_as_asked(file)?));
        Ok(())
    }

    /// Writes the block with this sequence, and returns its hash once the write is acknowledged.
    pub fn write(&mut self, sequence: u64) -> Result<u64, FileError> {
        let Stream { method, pattern } = self.stream;
        let place = layout::place(self.number, pattern, sequence);
        let outdated = layout::outdated(self.number, pattern, sequence);
        if let (Some(file), Some(dir)) = (outdated, &self.dir) {
            let _ = dir.remove(Path::new(name_of(&file)));
        }
        let is_open = self.open.as_ref().is_some_and(|(name, _)| *name == place.file);
        let is_new = pattern == Pattern::Create || pattern == Pattern::Rename || !is_open;
        let name = name_of(&place.file);
        if let (true, Some(dir)) = (is_new, &self.dir) {
            // It is closed before it is replaced.
            self.open = None;
            let made = if pattern == Pattern::Rename { OsStr::new("new") } else { name };
            let made = BlockFile::create_in(dir, made, false)?;
            self.open = Some((place.file.clone(), self.open_as_asked(&made)?));
        }
        let data = &mut self.memory[..place.bytes as usize];
        stamp_of(self.run, self.number, &place, sequence).fill(data);
        let hash = stamp::hash(data);
        let Some((_, file)) = &mut self.open else { return Ok(hash) };
        put(file, method, base(self.dir.is_none(), self.number) + place.offset_bytes, data)?;
        if pattern == Pattern::Rename {
            file.rename(name)?;
        }
        if let (true, Some(dir)) = (is_new && !method.is_control(), &self.dir) {
            dir.sync(Path::new(""))
                .map_err(|source| file.error("flush the directory of", source))?;
        }
        Ok(hash)
    }

    fn open_as_asked(&self, file: &BlockFile) -> Result<BlockFile, FileError> {
        let method = self.stream.method;
        let flag = match method {
            Method::Dsync | Method::DirectDsync => SyncFlag::Dsync,
            Method::Sync => SyncFlag::Sync,
            _ => SyncFlag::None,
        };
        file.reopen_synchronous(method.is_direct(), flag)
    }
}

/// Returns the name of a file in its directory.
fn name_of(file: &str) -> &OsStr {
    Path::new(file).file_name().unwrap_or_default()
}

/// Writes `data` and does what the method requires.
fn put(file: &BlockFile, method: Method, offset_bytes: u64, data: &[u8]) -> Result<(), FileError> {
    let error = |operation| move |errno| failed(file, operation, errno);
    if method == Method::RwfDsync {
        let written = file.write_dsync_at(offset_bytes, data).map_err(error("write"))?;
        if written == data.len() {
            return Ok(());
        }
        return Err(file.error("write", io::ErrorKind::WriteZero.into()));
    }
    write_all(file, offset_bytes, data)?;
    match method {
        Method::Fsync => file.fsync().map_err(error("flush")),
        Method::Fdatasync => file.fdatasync().map_err(error("flush")),
        Method::SyncFileRange => {
            file.write_out(offset_bytes, data.len() as u64).map_err(error("write out"))
        }
        _ => Ok(()),
    }
}

/// Returns the offset at which a stream begins.
fn base(is_device: bool, number: u16) -> u64 {
    if is_device { layout::part_offset(number) } else { 0 }
}

pub fn stamp_of(run: u64, number: u16, place: &Extent, sequence: u64) -> Stamp {
    Stamp { run, stream: number, sequence, offset_bytes: place.offset_bytes }
}

/// Reads the blocks of one stream.
#[derive(Debug)]
pub struct StreamReader<'a> {
    medium: &'a Medium,
    number: u16,
    open: Option<(String, BlockFile)>,
    memory: Slot,
}

impl<'a> StreamReader<'a> {
    pub fn new(medium: &'a Medium, number: u16) -> Result<Self, CheckError> {
        Ok(Self { medium, number, open: None, memory: Slot::new(BLOCK_MAX)? })
    }

    /// Reads the content of a place; returns fewer bytes if its file ends there, or does not exist.
    pub fn read(&mut self, place: &Extent) -> Result<&[u8], FileError> {
        let is_open = self.open.as_ref().is_some_and(|(name, _)| *name == place.file);
        if !is_open {
            let opened = self.medium.open_uncached(&place.file)?;
            self.open = opened.map(|file| (place.file.clone(), file));
        }
        let Some((_, file)) = &self.open else { return Ok(&[]) };
        let offset_bytes = base(file.is_device(), self.number) + place.offset_bytes;
        let data = &mut self.memory[..place.bytes as usize];
        let mut done = 0;
        while done < data.len() {
            let read = file.read_at(offset_bytes + done as u64, &mut data[done..]);
            match read.map_err(|errno| failed(file, "read", errno))? {
                // Past the cache, reading cannot continue after an end that is not a multiple of a
                // sector.
                0 => break,
                bytes if !bytes.is_multiple_of(SECTOR) => {
                    done += bytes;
                    break;
                }
                bytes => done += bytes,
            }
        }
        Ok(&data[..done])
    }
}

#[cfg(test)]
mod tests {
    use super::super::found::{Content, content};
    use super::super::layout::{KEPT, streams};
    use super::*;

    #[test]
    fn every_stream_reads_what_it_wrote() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Medium::find(dir.path(), false).unwrap().run().unwrap(), None);
        let medium = Medium::begin(dir.path(), None, 77).unwrap();
        let again = Medium::begin(dir.path(), None, 78);
        assert!(matches!(again, Err(CheckError::Unverified { .. })));
        let methods = [Method::Fdatasync, Method::Sync, Method::RwfDsync, Method::SyncFileRange];
        let last = 2 * KEPT + 3;
        for (number, stream) in (0..).zip(streams(&methods, Pattern::ALL)) {
            let mut writer = StreamWriter::prepare(&medium, 77, (number, stream)).unwrap();
            let hashes: Vec<u64> = (1..=last).map(|n| writer.write(n).unwrap()).collect();
            let mut reader = StreamReader::new(&medium, number).unwrap();
            for sequence in layout::first_checked(stream.pattern, last)..=last {
                let place = layout::place(number, stream.pattern, sequence);
                let stamp = stamp_of(77, number, &place, 0);
                let bytes = place.bytes as usize;
                let found = content(reader.read(&place).unwrap(), bytes, &stamp);
                let hash = hashes[sequence as usize - 1];
                assert_eq!(found, Content::Whole { sequence, hash }, "{} {place:?}", stream.case());
            }
        }
        medium.settle().unwrap();
        let medium = Medium::find(dir.path(), false).unwrap();
        assert_eq!(medium.run().unwrap(), Some(77));
        medium.remove().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
