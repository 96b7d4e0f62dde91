//! Where the blocks of a run lie: files below one directory, or parts of a device.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use blockstone_base::direct::SyncFlag;
use blockstone_base::durability::{Method, Pattern, Stream};
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{Access, BlockFile, FileError};

use super::layout::{self, BLOCK_MAX, HEADER, HEADER_STREAM, Place, SLOTS};
use super::stamp::{self, SECTOR, Sector, Stamp};
use crate::CheckError;

/// What the header takes, so that it can be read past the page cache.
const HEADER_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub enum Medium {
    /// The directory that holds all files.
    Directory(PathBuf),
    Device(PathBuf),
}

impl Medium {
    pub fn of(path: &Path, is_device: bool) -> Self {
        if is_device {
            Self::Device(path.to_owned())
        } else {
            Self::Directory(path.join(layout::DIRECTORY))
        }
    }

    /// Makes the directory, and writes the header that names the run.
    pub fn begin(&self, run: u64) -> Result<(), CheckError> {
        let header = match self {
            Self::Device(path) => BlockFile::open(path, Access::ReadWrite, false)?,
            Self::Directory(dir) => {
                match DirBuilder::new().mode(0o700).create(dir) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(CheckError::Unverified { path: dir.clone() });
                    }
                    made => made.map_err(|source| scratch(dir, source))?,
                }
                BlockFile::create_new(&dir.join(HEADER), false)?
            }
        };
        let mut block = vec![0; HEADER_BYTES];
        header_stamp(run).fill(&mut block);
        write_all(&header, 0, &block)?;
        Ok(header.fsync().map_err(|errno| failed(&header, "flush", errno))?)
    }

    /// The run that its header names; none where there is no header.
    pub fn run(&self) -> Result<Option<u64>, CheckError> {
        let path = match self {
            Self::Device(path) => path.clone(),
            Self::Directory(dir) => dir.join(HEADER),
        };
        let file = match open_uncached(&path) {
            Ok(file) => file,
            Err(FileError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let mut block = Slot::new(HEADER_BYTES)?;
        let bytes = file.read_at(0, &mut block).map_err(|errno| failed(&file, "read", errno))?;
        let first = block[..bytes.min(SECTOR)].to_vec();
        Ok(match stamp::read(&first) {
            Sector::Stamped(stamp, 0) if stamp == header_stamp(stamp.run) => Some(stamp.run),
            _ => None,
        })
    }

    /// Has all of it written to the device, with the directories above it.
    pub fn settle(&self) -> Result<(), CheckError> {
        match self {
            Self::Device(path) => {
                let file = BlockFile::open(path, Access::ReadWrite, false)?;
                Ok(file.fsync().map_err(|errno| failed(&file, "flush", errno))?)
            }
            Self::Directory(dir) => {
                let held = File::open(dir).map_err(|source| scratch(dir, source))?;
                rustix::fs::syncfs(&held).map_err(|errno| scratch(dir, errno.into()))
            }
        }
    }

    /// Removes the directory; a device keeps what is on it.
    pub fn remove(&self) -> io::Result<()> {
        match self {
            Self::Device(_) => Ok(()),
            Self::Directory(dir) => fs::remove_dir_all(dir),
        }
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

/// Opens to read what is on the device, past the page cache where that can be.
fn open_uncached(path: &Path) -> Result<BlockFile, FileError> {
    if let Ok(file) = BlockFile::open(path, Access::Read, true) {
        return Ok(file);
    }
    let file = BlockFile::open(path, Access::Read, false)?;
    // What it does not drop was read after the cut, unless only the device lost power.
    let _ = file.drop_cached();
    Ok(file)
}

/// Writes the blocks of one stream.
#[derive(Debug)]
pub struct StreamWriter {
    medium: Medium,
    run: u64,
    number: u16,
    stream: Stream,
    /// The file that it goes on writing to, by its name.
    open: Option<(String, BlockFile)>,
    memory: Slot,
}

impl StreamWriter {
    /// Makes what there must be before the first write.
    pub fn prepare(
        medium: &Medium,
        run: u64,
        (number, stream): (u16, Stream),
    ) -> Result<Self, CheckError> {
        let memory = Slot::new(BLOCK_MAX)?;
        let (medium, open) = (medium.clone(), None);
        let mut writer = Self { medium, run, number, stream, open, memory };
        if stream.pattern == Pattern::Overwrite {
            writer.fill_circle()?;
        } else if let Medium::Directory(dir) = &writer.medium {
            let dir = dir.join(format!("{number:02}"));
            fs::create_dir(&dir).map_err(|source| scratch(&dir, source))?;
        }
        Ok(writer)
    }

    /// Writes every block of the circle, so that later writes find blocks that were written.
    fn fill_circle(&mut self) -> Result<(), CheckError> {
        let first = layout::place(self.number, Pattern::Overwrite, 0);
        let path = self.path(&first.file);
        let file = match &self.medium {
            Medium::Device(path) => BlockFile::open(path, Access::ReadWrite, false)?,
            Medium::Directory(_) => BlockFile::create_new(&path, false)?,
        };
        for slot in 0..SLOTS {
            let place = layout::place(self.number, Pattern::Overwrite, slot);
            let data = &mut self.memory[..place.bytes as usize];
            stamp_of(self.run, self.number, &place, 0).fill(data);
            write_all(&file, base(&self.medium, self.number) + place.offset_bytes, data)?;
        }
        file.fsync().map_err(|errno| failed(&file, "flush", errno))?;
        drop(file);
        self.open = Some((first.file, self.open_as_asked(&path)?));
        Ok(())
    }

    /// Writes the block with this sequence, and returns its hash when the write is acknowledged.
    pub fn write(&mut self, sequence: u64) -> Result<u64, FileError> {
        let Stream { method, pattern } = self.stream;
        let place = layout::place(self.number, pattern, sequence);
        if let Some(file) = layout::outdated(self.number, pattern, sequence) {
            let _ = fs::remove_file(self.path(&file));
        }
        let is_open = self.open.as_ref().is_some_and(|(name, _)| *name == place.file);
        let is_new = pattern == Pattern::Create || pattern == Pattern::Rename || !is_open;
        let path = self.path(&place.file);
        let made =
            if pattern == Pattern::Rename { path.with_file_name("new") } else { path.clone() };
        if is_new {
            // Closed before it is replaced.
            self.open = None;
            drop(BlockFile::create_new(&made, false)?);
            self.open = Some((place.file.clone(), self.open_as_asked(&made)?));
        }
        let data = &mut self.memory[..place.bytes as usize];
        stamp_of(self.run, self.number, &place, sequence).fill(data);
        let hash = stamp::hash(data);
        let Some((_, file)) = &self.open else { return Ok(hash) };
        put(file, method, base(&self.medium, self.number) + place.offset_bytes, data)?;
        if pattern == Pattern::Rename {
            fs::rename(&made, &path).map_err(|source| file.error("rename", source))?;
        }
        if is_new && !method.is_control() {
            sync_directory_of(&path)
                .map_err(|source| file.error("flush the directory of", source))?;
        }
        Ok(hash)
    }

    fn open_as_asked(&self, path: &Path) -> Result<BlockFile, FileError> {
        let method = self.stream.method;
        let flag = match method {
            Method::Dsync | Method::DirectDsync => SyncFlag::Dsync,
            Method::Sync => SyncFlag::Sync,
            _ => SyncFlag::None,
        };
        BlockFile::open_synchronous(path, method.is_direct(), flag)
    }

    fn path(&self, file: &str) -> PathBuf {
        match &self.medium {
            Medium::Device(path) => path.clone(),
            Medium::Directory(dir) => dir.join(file),
        }
    }
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes `data` and does what the method asks for.
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

/// Where the offsets of a stream begin.
fn base(medium: &Medium, number: u16) -> u64 {
    match medium {
        Medium::Device(_) => layout::part_offset(number),
        Medium::Directory(_) => 0,
    }
}

pub fn stamp_of(run: u64, number: u16, place: &Place, sequence: u64) -> Stamp {
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

    /// What lies in a place; fewer bytes where its file ends, or does not exist.
    pub fn read(&mut self, place: &Place) -> Result<&[u8], FileError> {
        let path = match self.medium {
            Medium::Device(path) => path.clone(),
            Medium::Directory(dir) => dir.join(&place.file),
        };
        let is_open = self.open.as_ref().is_some_and(|(name, _)| *name == place.file);
        if !is_open {
            self.open = match open_uncached(&path) {
                Ok(file) => Some((place.file.clone(), file)),
                Err(FileError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    None
                }
                Err(error) => return Err(error),
            };
        }
        let Some((_, file)) = &self.open else { return Ok(&[]) };
        let offset_bytes = base(self.medium, self.number) + place.offset_bytes;
        let data = &mut self.memory[..place.bytes as usize];
        let mut done = 0;
        while done < data.len() {
            let read = file.read_at(offset_bytes + done as u64, &mut data[done..]);
            match read.map_err(|errno| failed(file, "read", errno))? {
                // An end that is no multiple of a block cannot be read on from past the cache.
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
        let medium = Medium::of(dir.path(), false);
        assert_eq!(medium.run().unwrap(), None);
        medium.begin(77).unwrap();
        assert!(matches!(medium.begin(78), Err(CheckError::Unverified { .. })));
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
        assert_eq!(medium.run().unwrap(), Some(77));
        medium.remove().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
