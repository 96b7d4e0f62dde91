//! Limits on the cost of reading a Parquet file. Its pages claim lengths and counts that the
//! library believes: a few bytes of dictionary or run-length encoding can stand for gigabytes of
//! rows.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};

/// Memory that any file may take: a week of an idle machine, with every second the same, encodes
/// into a few kilobytes.
const FLOOR_BYTES: u64 = 512 << 20;
/// Additional memory that a large file may take per byte of its length: a row of unchanging
/// counters takes a few bytes in the file and sixteen per column in memory.
const EXPANSION: u64 = 1024;
/// Memory for a cell of any type: a number, its validity, and its copy during decoding.
const CELL_BYTES: u64 = 16;
/// Upper limit on a reader's memory per byte of text or histogram.
const BYTE_BYTES: u64 = 16;
/// Minimum size of a dictionary entry.
const WORD_BYTES: usize = 4;

/// Memory that rows may still take.
pub(crate) struct Budget(u64);

impl Budget {
    /// Creates the budget for a file of `file_bytes`.
    pub fn new(file_bytes: u64) -> Self {
        Self(file_bytes.saturating_mul(EXPANSION).saturating_add(FLOOR_BYTES))
    }

    /// Takes the `bytes` of a text or an encoding from the budget.
    pub fn take_bytes(&mut self, bytes: usize) -> Result<(), ParquetError> {
        self.take((bytes as u64).saturating_mul(BYTE_BYTES))
    }

    fn take(&mut self, bytes: u64) -> Result<(), ParquetError> {
        let left = self.0.checked_sub(bytes);
        self.0 = left.ok_or_else(|| refused("its rows take more memory than its length allows"))?;
        Ok(())
    }
}

/// A file with a limit on reads that depends on its length. A page header that claims nothing would
/// otherwise be read again forever.
pub(crate) struct BoundedFile {
    file: Arc<File>,
    bytes: u64,
    reads_left: AtomicU64,
}

/// Minimum size of a page.
const PAGE_BYTES: u64 = 4;
/// Reads allowed for a file of any length.
const READS: u64 = 4096;

impl BoundedFile {
    pub fn new(file: File, bytes: u64) -> Self {
        let reads_left = AtomicU64::new(bytes / PAGE_BYTES + READS);
        Self { file: Arc::new(file), bytes, reads_left }
    }

    fn take_read(&self) -> Result<(), ParquetError> {
        let left = |left: u64| left.checked_sub(1);
        let taken = self.reads_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        taken.map(drop).map_err(|_| refused("it has more pages than its length allows"))
    }
}

impl Length for BoundedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for BoundedFile {
    type T = Ending;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.take_read()?;
        let from = FileFrom { file: Arc::clone(&self.file), at: start };
        Ok(Ending { inner: BufReader::new(from), ends: 0 })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.take_read()?;
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(refused("a page lies beyond its end"));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A file read from a given offset, independently of reads by other threads.
pub(crate) struct FileFrom<F> {
    pub file: F,
    pub at: u64,
}

impl<F: Deref<Target = File>> Read for FileFrom<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(out, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

/// A reader that fails if it keeps being read after its end: a list in a page header may claim
/// billions of elements, and the library looks for each.
pub(crate) struct Ending {
    inner: BufReader<FileFrom<Arc<File>>>,
    ends: u32,
}

const ENDS: u32 = 16;

impl Read for Ending {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(out)?;
        if bytes == 0 && !out.is_empty() {
            self.ends += 1;
            if self.ends > ENDS {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(bytes)
    }
}

/// Checks that the rows and offsets claimed by `metadata` fit a file of `file_bytes`.
pub(crate) fn check(metadata: &ParquetMetaData, file_bytes: u64) -> Result<(), ParquetError> {
    let mut budget = Budget::new(file_bytes);
    let columns = metadata.file_metadata().schema_descr().num_columns();
    for group in metadata.row_groups() {
        let rows =
            u64::try_from(group.num_rows()).map_err(|_| refused("it has fewer than no rows"))?;
        budget.take(rows.saturating_mul(columns as u64).saturating_mul(CELL_BYTES))?;
        if group.num_columns() != columns || !group.columns().iter().all(|c| lies_in(c, file_bytes))
        {
            return Err(refused("its columns lie beyond its end"));
        }
    }
    Ok(())
}

fn lies_in(chunk: &ColumnChunkMetaData, file_bytes: u64) -> bool {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let (Ok(start), Ok(len)) = (u64::try_from(start), u64::try_from(chunk.compressed_size()))
    else {
        return false;
    };
    start.checked_add(len).is_some_and(|end| end <= file_bytes)
}

/// Pages of a column chunk, each checked before it is decoded.
pub(crate) struct BoundedPages {
    pages: Box<dyn PageReader>,
    rows_left: u64,
}

impl BoundedPages {
    /// Reads the pages of a chunk of `rows` rows.
    pub fn new(pages: Box<dyn PageReader>, rows: i64) -> Self {
        Self { pages, rows_left: u64::try_from(rows).unwrap_or(0) }
    }

    fn check(&mut self, page: &Page) -> Result<(), ParquetError> {
        // The encodings of our writer. Others repeat parts of one value in the next.
        let known = [
            Encoding::PLAIN,
            Encoding::PLAIN_DICTIONARY,
            Encoding::RLE,
            Encoding::RLE_DICTIONARY,
            Encoding::DELTA_BINARY_PACKED,
        ];
        if !known.contains(&page.encoding()) {
            return Err(refused("a page has an encoding that is not Blockstone's"));
        }
        if page.is_dictionary_page() {
            let most = page.buffer().len() / WORD_BYTES;
            return match usize::try_from(page.num_values()) {
                Ok(words) if words <= most => Ok(()),
                _ => Err(refused("a dictionary claims more values than it has bytes for")),
            };
        }
        let left = self.rows_left.checked_sub(u64::from(page.num_values()));
        self.rows_left = left.ok_or_else(|| refused("its pages claim more rows than it has"))?;
        Ok(())
    }
}

impl Iterator for BoundedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

fn refused(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_often_as_its_length_allows() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(400).unwrap();
        let bounded = BoundedFile::new(file, 400);
        assert_eq!(bounded.get_bytes(392, 8).unwrap().len(), 8);
        assert!(bounded.get_bytes(393, 8).is_err());
        for _ in 0..READS + 400 / PAGE_BYTES - 2 {
            bounded.get_read(0).unwrap();
        }
        assert!(bounded.get_read(0).is_err());
    }

    #[test]
    fn its_end_is_read_some_times_only() {
        let file = tempfile::tempfile().unwrap();
        let mut reader = BoundedFile::new(file, 0).get_read(0).unwrap();
        for _ in 0..ENDS {
            assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        }
        assert!(reader.read(&mut [0]).is_err());
    }
}
