//! Files that a user names for reading. Links are followed: a user who may read the command line's
//! files may read what they lead to. Opening never blocks, and no device is read by mistake.

use std::fs::File;
use std::io;
use std::path::Path;

use blockstone_base::units::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open as open_path};

use crate::held::read_whole;

/// Opens a regular file, a pipe, or a character device such as a terminal. For a pipe, waits until
/// it has a writer; `Interrupted` if a signal arrives first. Fails for directories and block
/// devices.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = open_path(path, flags, Mode::empty())?;
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile | FileType::CharacterDevice => {}
        FileType::Fifo => {
            // Neither data nor end-of-file until there has been a writer.
            let mut waiting = [PollFd::new(&file, PollFlags::IN)];
            poll(&mut waiting, None)?;
        }
        FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
        FileType::BlockDevice => return refused("it is a block device"),
        _ => return refused("it is neither a file nor a pipe"),
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(File::from(file))
}

/// Reads everything from what [`open`] opens. Fails when there are more than `at_most` bytes.
pub fn read(path: &Path, at_most: Bytes) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    // A file known to be too long is not read first.
    let found = file.metadata()?;
    if found.is_file() && found.len() > at_most.get() {
        let why = format!("it is larger than {at_most}, the most that is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    read_whole(file, at_most)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::fs::{CWD, mkfifoat};

    use super::*;

    #[test]
    fn files_are_read_up_to_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, Bytes(5)).unwrap(), b"12345");
        let refused = read(&path, Bytes(4)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        let endless = read(Path::new("/dev/zero"), Bytes(1 << 16)).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(open(dir.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_pipe_is_read_from_its_first_writer_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let writing = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, "from a pipe").unwrap()
        });
        let mut text = String::new();
        open(&path).unwrap().read_to_string(&mut text).unwrap();
        writing.join().unwrap();
        assert_eq!(text, "from a pipe");
    }
}
