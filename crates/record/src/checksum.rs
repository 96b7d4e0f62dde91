//! Checksum of a Parquet file, which the format itself lacks.
//!
//! It is stored in the footer, as `xxh3-64:` and sixteen hexadecimal digits, and covers every byte
//! of the file including the footer, with its own digits taken as zeros. It is verified before
//! anything else looks at a file: an altered byte must neither change a number nor mislead the
//! decoder.
//!
//! A large file is not read in full for its checksum. Its footer has a checksum of its own, with
//! both checksums taken as zeros, and one for each row group, which is verified when that group is
//! read.
//!
//! JSON documents that hold counts carry a checksum in the same way, under the key `checksum`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use blockstone_base::units::Bytes;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::bounds::FileFrom;
use crate::error::RecordError;

/// Placeholder that a writer puts into the footer for [`Summing::release`] to fill in.
pub(crate) const PLACEHOLDER: &str = "xxh3-64:0000000000000000";
const MARK: &[u8] = b"xxh3-64:";
const DIGITS: usize = 16;
/// Files above this are verified group by group.
pub(crate) const LARGE: Bytes = Bytes::mib(64);

const BUFFER_BYTES: usize = 256 << 10;

/// Magic at each end of a Parquet file; the last one is preceded by the footer's length in four
/// bytes.
const MAGIC: &[u8; 4] = b"PAR1";
const TAIL: u64 = 8;

/// Passes bytes on and computes their checksum; holds the footer back until the checksum is in it.
pub(crate) struct Summing<'a> {
    out: &'a mut (dyn Write + Send),
    hash: Xxh3Default,
    /// Checksum of the current row group so far, number of bytes written, and earlier groups.
    group: Xxh3Default,
    written: u64,
    groups: Vec<GroupSum>,
    held: Option<Vec<u8>>,
}

/// Checksum of a row group and of the bytes between it and the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupSum {
    /// Offset of its end in the file.
    pub end: u64,
    pub sum: u64,
}

impl<'a> Summing<'a> {
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        let (hash, group) = (Xxh3Default::new(), Xxh3Default::new());
        Self { out, hash, group, written: 0, groups: Vec::new(), held: None }
    }

    /// Ends a row group, which consists of the bytes since the last call.
    pub fn end_group(&mut self) {
        let sum = std::mem::take(&mut self.group).digest();
        self.groups.push(GroupSum { end: self.written, sum });
    }

    /// Returns the checksums of all row groups, for the footer.
    pub fn groups(&self) -> String {
        let each = self.groups.iter().map(|GroupSum { end, sum }| format!("{end}:{sum:016x}"));
        each.collect::<Vec<_>>().join(",")
    }

    /// Begins the footer: all further bytes belong to it.
    pub fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Fills the checksums into the footer and passes it on.
    pub fn release(&mut self) -> io::Result<()> {
        let mut footer = self.held.take().unwrap_or_default();
        let of_file = digits(&footer)
            .ok_or_else(|| io::Error::other("the footer has no place for its checksum"))?;
        if let Some(of_footer) = digits_before(&footer, &of_file) {
            // Page indexes precede it.
            let start = footer_start(&footer).unwrap_or(0);
            let own = hexadecimal(xxh3_64(&footer[start..]));
            footer[of_footer].copy_from_slice(own.as_bytes());
        }
        self.hash.update(&footer);
        footer[of_file].copy_from_slice(hexadecimal(self.hash.digest()).as_bytes());
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
        self.group.update(&buffer[..written]);
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The part of a file that was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    Whole,
    /// Its footer, which has the checksums of the row groups.
    Footer,
}

/// Checks that `file`, at `path`, is a complete, unaltered Parquet file of Blockstone; above
/// `large` only its footer, if that has the checksums of the row groups.
pub(crate) fn verify(mut file: &File, path: &Path, large: Bytes) -> Result<Verified, RecordError> {
    let error = || RecordError::io("read", path);
    let len = file.metadata().map_err(error())?.len();
    let not_whole = || RecordError::damaged(path, "it is truncated or not a Parquet file");
    let tail_at = len.checked_sub(TAIL).ok_or_else(not_whole)?;
    file.seek(SeekFrom::Start(tail_at)).map_err(error())?;
    let mut tail = [0; TAIL as usize];
    file.read_exact(&mut tail).map_err(error())?;
    let footer_at = footer_len(tail).and_then(|len| tail_at.checked_sub(len));
    let Some(footer_at) = footer_at else { return Err(not_whole()) };

    file.seek(SeekFrom::Start(footer_at)).map_err(error())?;
    let mut footer = Vec::new();
    file.read_to_end(&mut footer).map_err(error())?;
    let Some(of_file) = digits(&footer) else {
        let why = "it is a Parquet file, but not written by Blockstone".to_owned();
        return Err(RecordError::Foreign { path: path.to_owned(), why });
    };
    let altered = || RecordError::damaged(path, "its checksum does not match its content");
    let expected = footer[of_file.clone()].to_vec();
    footer[of_file.clone()].fill(b'0');
    let of_footer = digits_before(&footer, &of_file).filter(|_| len > large.get());
    if let Some(of_footer) = of_footer {
        let expected = footer[of_footer.clone()].to_vec();
        footer[of_footer].fill(b'0');
        let is_sound = hexadecimal(xxh3_64(&footer)).as_bytes() == expected;
        return if is_sound { Ok(Verified::Footer) } else { Err(altered()) };
    }

    let mut hash = hash_of(file, 0..footer_at).map_err(error())?;
    hash.update(&footer);
    if hexadecimal(hash.digest()).as_bytes() != expected {
        return Err(altered());
    }
    Ok(Verified::Whole)
}

/// Parses the checksums of row groups from a footer.
pub(crate) fn parse_groups(text: &str) -> Option<Vec<GroupSum>> {
    let group = |text: &str| {
        let (end, sum) = text.split_once(':')?;
        Some(GroupSum { end: end.parse().ok()?, sum: u64::from_str_radix(sum, 16).ok()? })
    };
    text.split(',').filter(|text| !text.is_empty()).map(group).collect()
}

/// Checks the row group from `from` to the end given in `group`.
pub(crate) fn verify_group(
    file: &File,
    path: &Path,
    from: u64,
    group: GroupSum,
) -> Result<(), RecordError> {
    let hash = hash_of(file, from..group.end).map_err(RecordError::io("read", path))?;
    if hash.digest() != group.sum {
        return Err(RecordError::damaged(path, "its checksum does not match its content"));
    }
    Ok(())
}

fn hash_of(file: &File, bytes: Range<u64>) -> io::Result<Xxh3Default> {
    let (mut hash, mut buffer) = (Xxh3Default::new(), vec![0; BUFFER_BYTES]);
    let at = bytes.start;
    let mut bytes = FileFrom { file, at }.take(bytes.end.saturating_sub(at));
    loop {
        match bytes.read(&mut buffer)? {
            0 => return Ok(hash),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// Fills in the checksum of a JSON document that has [`PLACEHOLDER`] under `checksum`; returns
/// false if it has none.
pub(crate) fn seal(document: &mut [u8]) -> bool {
    // Inside a string, quotation marks are preceded by a backslash.
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
    document[digits].copy_from_slice(hexadecimal(hash.digest()).as_bytes());
    true
}

pub(crate) fn is_sealed(document: &[u8]) -> bool {
    let mut again = document.to_vec();
    seal(&mut again) && again == document
}

/// Returns the position of the checksum's digits in a footer. The last mark counts: the column
/// statistics, which may contain anything, precede it.
fn digits(footer: &[u8]) -> Option<Range<usize>> {
    let mark = footer.windows(MARK.len()).rposition(|window| window == MARK)?;
    let start = mark + MARK.len();
    (start + DIGITS <= footer.len()).then_some(start..start + DIGITS)
}

/// Returns the footer's length, as stored at the end of a Parquet file.
fn footer_len(tail: [u8; TAIL as usize]) -> Option<u64> {
    let [a, b, c, d, magic @ ..] = tail;
    (&magic == MAGIC).then(|| u32::from_le_bytes([a, b, c, d]).into())
}

/// Returns the position at which the footer begins in the last part of a file.
fn footer_start(end: &[u8]) -> Option<usize> {
    let len = footer_len(*end.last_chunk()?)?;
    end.len().checked_sub(TAIL as usize)?.checked_sub(usize::try_from(len).ok()?)
}

/// Returns the digits of the previous mark.
fn digits_before(footer: &[u8], digits: &Range<usize>) -> Option<Range<usize>> {
    self::digits(&footer[..digits.start - MARK.len()])
}

fn hexadecimal(sum: u64) -> String {
    format!("{sum:016x}")
}
