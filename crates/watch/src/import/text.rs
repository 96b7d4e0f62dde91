//! Reads a file line by line, decompressed, and detects a missing end.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read};

use blockstone_input::{Foreign, Source, Unpacked};

use super::{Failure, ImportError, foreign, found};

/// A zero byte among these first bytes means a binary file.
const HEAD_BYTES: usize = 512;
/// Bytes at the start of a file that suffice to recognise its format.
const SHOWN_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 256 << 10;
/// No tool writes longer lines.
const LINE_BYTES: u64 = 64 << 20;
const HINT: &str = "copy it again; a truncated file would be read up to its end";
const BINARY: &str = "it is binary; sar's binary files become JSON with sadf -j";
/// The first two bytes of sar's binary files, and those of the formats whose header has a version,
/// by the byte order of the machine.
const SAR: [u8; 2] = [0xd5, 0x96];
const SAR_FORMAT: u8 = 0x21;
/// Bytes of the header up to the version.
const SAR_BYTES: u64 = 8;

pub struct Text {
    file: Source,
    from: BufReader<Unpacked>,
    is_packed: bool,
    line: Vec<u8>,
    number: usize,
    /// Whether the compressed stream is truncated.
    is_stream_cut: bool,
    /// Whether the last line read has no line ending.
    is_line_cut: bool,
}

impl Text {
    /// Opens a file, compressed or not.
    pub fn open(file: &Source) -> Result<Self, ImportError> {
        let path = file.name();
        let head = magic(file);
        if let Some(version) = sar_version(&head) {
            return Err(ImportError::Load {
                path: path.to_owned(),
                what: format!("this is sar's binary file of sysstat {version}"),
                hint: "sadf -j FILE -- -A makes JSON of it, which is read".to_owned(),
            });
        }
        let unreadable = |source| found::unreadable(path, source);
        let unpacked = file.open(|| true).map_err(unreadable)?;
        let failed = |error: Error| match error.raw_os_error() {
            Some(_) => unreadable(error),
            None if Foreign::in_error(&error).is_some() => unreadable(error),
            None => ImportError::Damaged {
                path: path.to_owned(),
                line: 1,
                what: error.to_string(),
                hint: HINT.to_owned(),
            },
        };
        let is_packed = unpacked.compression().is_some();
        let text = unpacked.decoded().map_err(failed)?;
        let mut from = BufReader::with_capacity(BUFFER_BYTES, text);
        if !is_packed {
            let head = from.fill_buf().map_err(failed)?;
            if head.iter().take(HEAD_BYTES).any(|&byte| byte == 0) {
                return Err(foreign(path, BINARY));
            }
        }
        Ok(Self {
            file: file.clone(),
            from,
            is_packed,
            line: Vec::new(),
            number: 0,
            is_stream_cut: false,
            is_line_cut: false,
        })
    }

    /// Opens the same file once more, from its beginning.
    pub fn again(&self) -> Result<Self, ImportError> {
        Self::open(&self.file)
    }

    /// Returns the first lines of a file, or as many as can be read.
    pub fn head(file: &Source) -> Result<String, ImportError> {
        let mut text = Self::open(file)?;
        let mut head = String::new();
        while head.len() < SHOWN_BYTES {
            match text.next_line() {
                Ok(Some(line)) => head.push_str(line),
                Err(Failure::File(error)) if head.trim().is_empty() => return Err(error),
                // An error after the first lines is found again when the whole file is read.
                Ok(None) | Err(_) => break,
            }
            head.push('\n');
        }
        Ok(head)
    }

    /// Returns the next line, without its line ending. A truncated compressed file is read as far
    /// as it can be decompressed.
    pub fn next_line(&mut self) -> Result<Option<&str>, Failure> {
        Ok(self.next_numbered()?.map(|(_, _, line)| line))
    }

    /// Returns the next line, preceded by its number and whether it is incomplete.
    pub fn next_numbered(&mut self) -> Result<Option<(usize, bool, &str)>, Failure> {
        self.line.clear();
        match (&mut self.from).take(LINE_BYTES).read_until(b'\n', &mut self.line) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.is_stream_cut = true,
            // Decompressors use different error kinds, but only the kernel sets an errno.
            Err(error) if self.is_packed && error.raw_os_error().is_none() => {
                self.number += 1;
                return Err(self.damaged(error.to_string()));
            }
            Err(source) => {
                return Err(Failure::File(found::unreadable(self.file.name(), source)));
            }
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() as u64 == LINE_BYTES {
            return Err(self.damaged(format!("a line of more than {} MiB", LINE_BYTES >> 20)));
        }
        self.is_line_cut = self.line.pop_if(|byte| *byte == b'\n').is_none();
        self.line.pop_if(|byte| *byte == b'\r');
        if let Err(error) = str::from_utf8(&self.line) {
            if error.error_len().is_some() || !self.is_line_cut {
                return Err(self.binary("a byte is not UTF-8"));
            }
            self.line.truncate(error.valid_up_to());
        }
        if self.line.contains(&0) {
            return Err(self.binary("a byte is zero"));
        }
        let line = str::from_utf8(&self.line).unwrap_or_default();
        Ok(Some((self.number, self.is_line_cut, line)))
    }

    /// Returns the number of the last line read, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whether the end of the file is missing, once all of it was read.
    pub fn is_cut(&self) -> bool {
        self.is_stream_cut || self.is_line_cut
    }

    /// Whether the compressed stream is truncated.
    pub fn is_stream_cut(&self) -> bool {
        self.is_stream_cut
    }

    fn binary(&self, why: &str) -> Failure {
        let step = if self.is_packed { "decompress: " } else { "" };
        self.damaged(format!("{step}it is not text: {why}"))
    }

    fn damaged(&self, what: String) -> Failure {
        let path = self.file.name().to_owned();
        let (line, hint) = (self.number, HINT.to_owned());
        Failure::File(ImportError::Damaged { path, line, what, hint })
    }
}

/// Returns the first bytes of a file, unpacked, or as many as can be read.
fn magic(file: &Source) -> Vec<u8> {
    let mut head = Vec::new();
    if let Ok(unpacked) = file.open(|| true) {
        // An error is found again when the lines are read.
        let _ = unpacked.take(SAR_BYTES).read_to_end(&mut head);
    }
    head
}

/// Returns the version of sysstat in the header of one of sar's binary files.
fn sar_version(head: &[u8]) -> Option<String> {
    let [a, b, c, d, version, patch, sub, _, ..] = *head else { return None };
    let is_sar = [a, b] == SAR && c == SAR_FORMAT || [b, a] == SAR && d == SAR_FORMAT;
    is_sar.then(|| format!("{version}.{patch}.{sub}"))
}
