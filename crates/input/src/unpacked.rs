//! gzip, bzip2, xz and zstd, recognised by their first bytes.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Cursor, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockstone_sys::input;
use blockstone_sys::waiting::Waiting;

use crate::foreign::{Foreign, is_zip};
use crate::{decoded, zip};

/// Returns false when reading should stop. Called repeatedly while a pipe is silent.
pub type GoOn = fn() -> bool;

/// Size of one read in bytes.
const PIECE_BYTES: usize = 1 << 20;
/// Base-2 logarithm of the largest window that xz and zstd may use; files that need more memory are
/// refused.
const WINDOW_LOG_MAX: u32 = 27;
const WINDOW_KIB_MAX: u32 = 1 << (WINDOW_LOG_MAX - 10);

/// Compression format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

/// A file that is decompressed as it is read.
pub struct Unpacked {
    compression: Option<Compression>,
    packed: Arc<AtomicU64>,
    bytes: Box<dyn Read + Send>,
}

struct Counted {
    from: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Compression {
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match *head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

/// A decompressor whose errors name the compression format.
struct Decompressed {
    compression: Compression,
    from: Box<dyn Read + Send>,
}

impl Decompressed {
    fn new(compression: Compression, packed: BufReader<Counted>) -> io::Result<Self> {
        let from: Box<dyn Read + Send> = match compression {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
            Compression::Xz => {
                Box::new(lzma_rust2::XzReader::new_mem_limit(packed, true, WINDOW_KIB_MAX))
            }
            Compression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(packed)?;
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Box::new(decoder)
            }
        };
        Ok(Self { compression, from })
    }
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer).map_err(|error| {
            if error.raw_os_error().is_some() {
                return error;
            }
            let why = format!("decompress with {}: {error}", self.compression.name());
            io::Error::new(error.kind(), why)
        })
    }
}

impl Unpacked {
    /// Opens a file as [`input::open`] does. It ends early once `go_on` returns false. Of a zip
    /// archive, its only file is opened.
    pub fn open(path: &Path, go_on: GoOn) -> io::Result<Self> {
        Self::of_file(input::open(path)?, go_on)
    }

    /// Like [`Self::open`]; `-` is standard input.
    pub fn open_or_stdin(path: &Path, go_on: GoOn) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::of_file(io::stdin().as_fd().try_clone_to_owned()?.into(), go_on);
        }
        Self::open(path, go_on)
    }

    fn of_file(file: File, go_on: GoOn) -> io::Result<Self> {
        let again = file.try_clone()?;
        let waiting = Box::new(Waiting::new(file, go_on));
        let mut buffered = Self::counted(waiting);
        if is_zip(buffered.fill_buf()?) && again.metadata()?.is_file() {
            let foreign = Foreign::of(buffered.fill_buf()?);
            return match foreign {
                Some(foreign) => Err(foreign.into()),
                None => Self::of(Self::counted(zip::only(again)?)),
            };
        }
        Self::of(buffered)
    }

    /// Opens bytes in memory.
    pub(crate) fn of_bytes(bytes: Cursor<impl AsRef<[u8]> + Send + 'static>) -> io::Result<Self> {
        Self::of(Self::counted(Box::new(bytes)))
    }

    fn counted(from: Box<dyn Read + Send>) -> BufReader<Counted> {
        let counted = Counted { from, count: Arc::default() };
        BufReader::with_capacity(PIECE_BYTES, counted)
    }

    fn of(mut buffered: BufReader<Counted>) -> io::Result<Self> {
        let packed = Arc::clone(&buffered.get_ref().count);
        let compression = Compression::of(buffered.fill_buf()?);
        let bytes: Box<dyn Read + Send> = match compression {
            None => Box::new(buffered),
            Some(compression) => Box::new(Decompressed::new(compression, buffered)?),
        };
        Ok(Self { compression, packed, bytes })
    }

    /// Also decodes UTF-16 and removes a byte order mark; all other bytes pass unchanged. Fails
    /// with [`Foreign`] if the file is of a known kind that is not text.
    pub fn decoded(self) -> io::Result<Self> {
        Ok(Self { bytes: decoded::decoded(self.bytes)?, ..self })
    }

    /// Returns the number of compressed bytes read so far.
    pub fn packed(&self) -> u64 {
        self.packed.load(Ordering::Relaxed)
    }

    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    const TEXT: &str = "one line\nand another\n";

    fn packed(compression: Compression) -> Vec<u8> {
        let text = TEXT.as_bytes();
        match compression {
            Compression::Gzip => {
                let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                to.write_all(text).unwrap();
                to.finish().unwrap()
            }
            Compression::Bzip2 => {
                let mut to = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                to.write_all(text).unwrap();
                to.finish().unwrap()
            }
            Compression::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(1);
                let mut to = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
                to.write_all(text).unwrap();
                to.finish().unwrap()
            }
            Compression::Zstd => zstd::encode_all(text, 1).unwrap(),
        }
    }

    /// Returns the text read from a file with these bytes, and its compression.
    fn read(bytes: &[u8]) -> (io::Result<String>, Option<Compression>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, bytes).unwrap();
        let mut unpacked = Unpacked::open(&path, || true).unwrap();
        let (mut text, compression) = (String::new(), unpacked.compression());
        let result = unpacked.read_to_string(&mut text);
        if result.is_ok() {
            assert_eq!(unpacked.packed(), bytes.len() as u64);
        }
        (result.map(|_| text), compression)
    }

    #[test]
    fn every_compression_is_told_by_its_first_bytes() {
        let all = [Compression::Gzip, Compression::Bzip2, Compression::Xz, Compression::Zstd];
        for compression in all {
            let bytes = packed(compression);
            assert_eq!(read(&bytes).1, Some(compression));
            assert_eq!(read(&bytes).0.unwrap(), TEXT, "{compression:?}");
            // Two files joined with cat.
            assert_eq!(read(&[&bytes[..], &bytes].concat()).0.unwrap(), TEXT.repeat(2));
            let cut = read(&bytes[..bytes.len() - 5]).0;
            assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{compression:?}");
        }
        assert_eq!(read(TEXT.as_bytes()).1, None);
        assert_eq!(read(b"").0.unwrap(), "");
    }
}
