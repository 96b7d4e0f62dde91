//! A scratch file without a name: it disappears when it is closed, even if the process is killed.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::direct::findings::Operation;
use blockstone_base::rng;
use blockstone_measure::scratch;
use blockstone_sys::buffer::Slot;
use blockstone_sys::fiemap;
use blockstone_sys::file::{Access, BlockFile, FileError};
use blockstone_sys::held::HeldDir;
use blockstone_sys::survey::Layer;
use rustix::fs::IFlags;
use rustix::io::Errno;

use super::place::{Place, REQUESTS};
use crate::CheckError;

/// Descriptors of an unlinked file, for the three ways in which it is used.
#[derive(Debug)]
pub struct ScratchFile {
    /// Through the page cache, to prepare the file.
    buffered: BlockFile,
    /// The descriptor under test, or why it cannot be opened.
    pub direct: Result<BlockFile, FileError>,
    /// For queries about the file.
    pub plain: File,
    /// The file of another file system that has its pages, if it is one of an overlay.
    pub real: Option<File>,
    /// Another file that shares its blocks.
    twin: Option<Box<Self>>,
}

impl ScratchFile {
    /// Prepares a file on which `operation` can be tried in requests of up to `block` bytes; `None`
    /// if the file system does not support such a file.
    pub fn prepared(
        place: &Place<'_>,
        operation: Operation,
        block: usize,
    ) -> Result<Option<Self>, CheckError> {
        let mut file = Self::create(place, "check")?;
        let size = (REQUESTS * block) as u64;
        let failed = |source: io::Error| {
            let hint = "free some space, or choose another directory";
            CheckError::Scratch { dir: place.path.to_owned(), source, hint }
        };
        match operation {
            Operation::Read | Operation::Overwrite => file.fill(block, false)?,
            Operation::ReadCompressed => {
                if !file.compress() {
                    return Ok(None);
                }
                file.fill(block, true)?;
                // Some file systems keep the flag and compress nothing. The map is made after dirty
                // data was written.
                if !fiemap::map(&file.plain).is_ok_and(|map| map.encoded_bytes > 0) {
                    return Ok(None);
                }
            }
            Operation::OverwriteShared => {
                file.fill(block, false)?;
                let twin = Self::create(place, "check-twin")?;
                match rustix::fs::ioctl_ficlone(&twin.buffered, &file.plain) {
                    Ok(()) => {}
                    Err(Errno::NOSPC | Errno::DQUOT | Errno::IO) => {
                        return Err(failed(Errno::NOSPC.into()));
                    }
                    Err(_) => return Ok(None),
                }
                twin.buffered.fsync().map_err(|e| failed(io::Error::from_raw_os_error(e)))?;
                file.twin = Some(Box::new(twin));
            }
            Operation::Append => {}
            Operation::FillHole => file.buffered.set_size(size)?,
            Operation::Unwritten => {
                file.buffered.reserve(size)?;
                if file.buffered.size_bytes()? < size {
                    return Ok(None);
                }
            }
        }
        file.buffered.fsync().map_err(|e| failed(io::Error::from_raw_os_error(e)))?;
        // This fails if there is no cache to drop from, which does no harm.
        let _ = file.buffered.drop_cached();
        Ok(Some(file))
    }

    fn create(place: &Place<'_>, purpose: &str) -> Result<Self, CheckError> {
        let name = scratch::name(place.id, purpose);
        let path = place.path.join(&name);
        let buffered = BlockFile::create_new(&path, false)?;
        // From here until its name is gone, the next check finds it if this one is killed.
        let locked = buffered.lock_exclusive();
        let upper = |layer: &Layer| HeldDir::reach(&layer.path)?.read(Path::new(&name));
        let real = place.upper.and_then(|layer| upper(layer).ok());
        buffered.remove()?;
        locked?;
        let direct = buffered.reopen(Access::ReadWrite, true);
        let plain = buffered.plain()?;
        Ok(Self { buffered, direct, plain, real, twin: None })
    }

    /// Writes the whole file, with data that compresses or does not.
    fn fill(&self, block: usize, compressible: bool) -> Result<(), CheckError> {
        let mut data = Slot::new(block)?;
        for number in 0..REQUESTS as u64 {
            if !compressible {
                rng::fill(number, &mut data);
            }
            write_all(&self.buffered, number * block as u64, &data)?;
        }
        Ok(())
    }

    /// Asks the file system to compress what will be written; returns false if it does not.
    fn compress(&self) -> bool {
        let Ok(flags) = rustix::fs::ioctl_getflags(&self.plain) else { return false };
        let wanted = flags | IFlags::COMPRESSED;
        rustix::fs::ioctl_setflags(&self.plain, wanted).is_ok()
            && rustix::fs::ioctl_getflags(&self.plain).is_ok_and(|now| now == wanted)
    }
}

fn write_all(file: &BlockFile, offset: u64, data: &[u8]) -> Result<(), FileError> {
    let error = |errno| file.error("write", io::Error::from_raw_os_error(errno));
    let mut done = 0;
    while done < data.len() {
        match file.write_at(offset + done as u64, &data[done..]).map_err(error)? {
            0 => return Err(file.error("write", io::ErrorKind::WriteZero.into())),
            bytes => done += bytes,
        }
    }
    Ok(())
}

/// Removes files that killed checks left in the moment before they were unlinked.
pub fn remove_orphans(dir: &Path) {
    scratch::remove_orphans(dir, &[]);
}
