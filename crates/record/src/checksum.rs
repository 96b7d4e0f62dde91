//! The checksum of a Parquet file, which the format itself lacks.
//!
//! It stands in the footer, as `xxh3-64:` and sixteen hexadecimal digits, and covers every byte of
//! the file, the footer too, with its own digits taken as zeros. It is verified before anything
//! else looks at a file: an altered byte must neither change a number nor mislead the decoder.
//!
//! JSON documents that hold counts carry one in the same way, under the key `checksum`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3Default;

use crate::error::RecordError;

/// What a writer puts into the footer, for [`Summing::release`] to fill in.
pub(crate) const PLACEHOLDER: &str = "xxh3-64:0000000000000000";
const MARK: &[u8] = b"xxh3-64:";
const DIGITS: usize = 16;

/// Each end of a Parquet file; before the last one the footer's length in four bytes.
const MAGIC: &[u8; 4] = b"PAR1";
const TAIL: u64 = 8;

/// Passes bytes on and sums them up; holds the footer back until the sum is in it.
pub(crate) struct Summing<'a> {
    out: &'a mut (dyn Write + Send),
    hash: Xxh3Default,
    held: Option<Vec<u8>>,
}

impl<'a> Summing<'a> {
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, hash: Xxh3Default::new(), held: None }
    }

    /// From here on bytes belong to the footer.
    pub fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Fills the checksum into the footer and passes it on.
    pub fn release(&mut self) -> io::Result<()> {
        let mut footer = self.held.take().unwrap_or_default();
        let digits = digits(&footer)
            .ok_or_else(|| io::Error::other("the footer has no place for its checksum"))?;
        self.hash.update(&footer);
        footer[digits].copy_from_slice(hexadecimal(&self.hash).as_bytes());
        self.out.write_all(&footer)
    }
}

impl Write for Summing<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if let Some(held) = &mut self.held {
            return held.write(buffer);
        }
        let written = self.out.write(buffer)?;
        self.hash.update(&buffer[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Checks that `file`, at `path`, is a whole, unaltered Parquet file of Blockstone's.
pub(crate) fn verify(mut file: &File, path: &Path) -> Result<(), RecordError> {
    let error = || RecordError::io("read", path);
    let len = file.metadata().map_err(error())?.len();
    let not_whole = || RecordError::damaged(path, "it is truncated or not a Parquet file");
    let tail_at = len.checked_sub(TAIL).ok_or_else(not_whole)?;
    file.seek(SeekFrom::Start(tail_at)).map_err(error())?;
    let mut tail = [0; TAIL as usize];
    file.read_exact(&mut tail).map_err(error())?;
    let [a, b, c, d, magic @ ..] = tail;
    let footer_at = tail_at.checked_sub(u64::from(u32::from_le_bytes([a, b, c, d])));
    let Some(footer_at) = footer_at.filter(|_| &magic == MAGIC) else { return Err(not_whole()) };

    file.seek(SeekFrom::Start(footer_at)).map_err(error())?;
    let mut footer = Vec::new();
    file.read_to_end(&mut footer).map_err(error())?;
    let Some(digits) = digits(&footer) else {
        let why = "it is a Parquet file, but not written by Blockstone".to_owned();
        return Err(RecordError::Foreign { path: path.to_owned(), why });
    };
    let expected = footer[digits.clone()].to_vec();
    footer[digits].fill(b'0');

    file.rewind().map_err(error())?;
    let mut sink = io::sink();
    let mut sum = Summing::new(&mut sink);
    io::copy(&mut file.take(footer_at), &mut sum).map_err(error())?;
    sum.hash.update(&footer);
    if hexadecimal(&sum.hash).as_bytes() != expected {
        return Err(RecordError::damaged(path, "its checksum does not match its content"));
    }
    Ok(())
}

/// Fills the checksum of a JSON document in, which has [`PLACEHOLDER`] under `checksum`; whether it
/// has.
pub(crate) fn seal(document: &mut [u8]) -> bool {
    // Inside of a text, quotation marks have a backslash before them.
    let mark = [b"\"checksum\":\"", MARK].concat();
    let found = document.windows(mark.len()).position(|window| window == mark);
    let Some(start) = found.map(|at| at + mark.len()) else { return false };
    let digits = start..start + DIGITS;
    if digits.end > document.len() {
        return false;
    }
    document[digits.clone()].fill(b'0');
    let mut hash = Xxh3Default::new();
    hash.update(document);
    document[digits].copy_from_slice(hexadecimal(&hash).as_bytes());
    true
}

pub(crate) fn is_sealed(document: &[u8]) -> bool {
    let mut again = document.to_vec();
    seal(&mut again) && again == document
}

/// Where the checksum's digits are in a footer. The last mark counts: the column statistics, which
/// may contain anything, stand before it.
fn digits(footer: &[u8]) -> Option<Range<usize>> {
    let mark = footer.windows(MARK.len()).rposition(|window| window == MARK)?;
    let start = mark + MARK.len();
    (start + DIGITS <= footer.len()).then_some(start..start + DIGITS)
}

fn hexadecimal(hash: &Xxh3Default) -> String {
    format!("{:016x}", hash.digest())
}
