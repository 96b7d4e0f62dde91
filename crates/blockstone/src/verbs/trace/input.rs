//! Files, compressed or not → a trace.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, anyhow};
use blockstone_base::units::Bytes;
use blockstone_copy::tree::shown;
use blockstone_trace::{Options, Reader, Trace};

use crate::progress::Progress;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 1 << 20;
/// Memory that xz and zstd may use for a window; larger ones are for files that nobody unpacks.
const WINDOW_LOG_MAX: u32 = 27;
const WINDOW_KIB_MAX: u32 = 1 << (WINDOW_LOG_MAX - 10);

/// A trace, and what of it could not be read.
pub struct Input {
    pub trace: Trace,
    pub bytes: u64,
    pub warnings: Vec<String>,
    pub signal: Option<&'static str>,
}

/// Reads the files as one trace.
pub fn read(paths: &[PathBuf], options: Options, bar: &mut Progress) -> Result<Input> {
    let mut reader = Reader::new(options);
    let all: u64 = paths.iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
    let (mut bytes, mut before) = (0, 0);
    let mut warnings = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    for path in paths {
        let name = shown(path);
        let refused = |error| refused(&name, &error);
        let mut source = Source::open(path).map_err(|error| unreadable(&name, &error))?;
        let mut has_any = false;
        loop {
            match source.unpacked.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => {
                    has_any = true;
                    bytes += count as u64;
                    reader.feed(&piece[..count]).map_err(refused)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if !has_any => return Err(unreadable(&name, &error)),
                Err(error) => {
                    warnings.push(format!("{name}: only its beginning could be read: {error}"));
                    break;
                }
            }
            let done = before + source.packed.get();
            let text = format!("{} of {}  {name}", Bytes(done), Bytes(all));
            if !bar.step(done as f64 / all.max(1) as f64, &text) {
                break;
            }
        }
        before += source.packed.get();
        reader.end_of_file().map_err(refused)?;
        if bar.signal().is_some() {
            break;
        }
    }
    let name = paths.first().map(|path| shown(path)).unwrap_or_default();
    let trace = reader.finish().map_err(|error| refused(&name, &error))?;
    Ok(Input { trace, bytes, warnings, signal: bar.signal() })
}

fn refused(name: &str, error: &blockstone_trace::TraceError) -> anyhow::Error {
    anyhow!("{}", error.to_string().replacen("read trace", &format!("read trace {name}"), 1))
}

fn unreadable(name: &str, error: &io::Error) -> anyhow::Error {
    anyhow!("read trace {name}: {error}\nhint: name a trace or a log, or `-` for standard input")
}

/// A file whose bytes are counted as they lie on the disk.
struct Source {
    packed: Rc<Cell<u64>>,
    unpacked: Box<dyn Read>,
}

struct Counted {
    file: Box<dyn Read>,
    count: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

impl Source {
    fn open(path: &Path) -> io::Result<Self> {
        let file: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path)?)
        };
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
}
