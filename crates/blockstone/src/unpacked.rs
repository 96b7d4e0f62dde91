//! Files that may be compressed: gzip, bzip2, xz, zstd.

use std::cell::Cell;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;

use blockstone_sys::input;
use blockstone_sys::waiting::Waiting;

use crate::interrupt;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 1 << 20;
/// Memory that xz and zstd may use for a window; larger ones are for files that nobody unpacks.
const WINDOW_LOG_MAX: u32 = 27;
const WINDOW_KIB_MAX: u32 = 1 << (WINDOW_LOG_MAX - 10);

/// A file as its bytes were before it was compressed, if it was.
pub struct Unpacked {
    packed: Rc<Cell<u64>>,
    unpacked: Box<dyn Read>,
}

struct Counted {
    file: Waiting<fn() -> bool>,
    count: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

impl Unpacked {
    /// `-` is standard input. A signal that asks for the end is the end of what is read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let go_on: fn() -> bool = || interrupt::signal().is_none();
        let file = if path == Path::new("-") {
            io::stdin().as_fd().try_clone_to_owned()?.into()
        } else {
            input::open(path)?
        };
        let file = Waiting::new(file, go_on);
        let packed = Rc::new(Cell::new(0));
        let counted = Counted { file, count: Rc::clone(&packed) };
        let mut buffered = BufReader::with_capacity(PIECE_BYTES, counted);
        let head = buffered.fill_buf()?;
        let unpacked: Box<dyn Read> = if head.starts_with(b"\x1f\x8b") {
            Box::new(flate2::bufread::MultiGzDecoder::new(buffered))
        } else if head.starts_with(b"BZh") {
            Box::new(bzip2::bufread::MultiBzDecoder::new(buffered))
        } else if head.starts_with(b"\xfd7zXZ\0") {
            Box::new(lzma_rust2::XzReader::new_mem_limit(buffered, true, WINDOW_KIB_MAX))
        } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
            let mut decoder = zstd::Decoder::with_buffer(buffered)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(decoder)
        } else {
            Box::new(buffered)
        };
        Ok(Self { packed, unpacked })
    }

    /// Bytes read so far, as they lie on the disk.
    pub fn packed(&self) -> u64 {
        self.packed.get()
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.unpacked.read(buffer)
    }
}
