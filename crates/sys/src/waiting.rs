//! Reading from a pipe or terminal that may stay silent, so that the reader still notices a signal.

use std::fs::File;
use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How often the reader checks whether to go on.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A file that ends as soon as its reader should stop.
#[derive(Debug)]
pub struct Waiting<G> {
    file: File,
    go_on: G,
}

impl<G: Fn() -> bool> Waiting<G> {
    pub fn new(file: File, go_on: G) -> Self {
        Self { file, go_on }
    }
}

impl<G: Fn() -> bool> Read for Waiting<G> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while (self.go_on)() {
            let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut ready, Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => continue,
                polled => polled?,
            };
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_silent_pipe_ends_when_its_reader_is_to_end() {
        let (read, mut write) = io::pipe().unwrap();
        let read = File::from(std::os::fd::OwnedFd::from(read));
        let left = Cell::new(3);
        let go_on = || left.replace(left.get() - 1) > 0;
        let mut silent = Waiting::new(read.try_clone().unwrap(), go_on);
        assert_eq!(silent.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(left.get(), -1, "it was asked while it waited");
        let writer = std::thread::spawn(move || write.write_all(b"late").unwrap());
        let mut text = String::new();
        Waiting::new(read, || true).read_to_string(&mut text).unwrap();
        writer.join().unwrap();
        assert_eq!(text, "late");
    }
}
