//! A file's text, decompressed, and whether its end is missing.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::{ImportError, foreign};

/// How a gzip file begins (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A zero among these first bytes means a binary file.
const HEAD_BYTES: usize = 512;
const BINARY: &str = "it is binary; sar's binary files become JSON with sadf -j";

#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    /// Whether the compressed stream ends in the middle.
    cut: bool,
}

impl Text {
    /// Reads a file, through gzip if it is compressed. A truncated gzip stream is read as far as it
    /// can be decompressed.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let failed = |source| ImportError::Read { path: path.to_owned(), source };
        let bytes = fs::read(path).map_err(failed)?;
        if !bytes.starts_with(&GZIP) {
            if bytes.iter().take(HEAD_BYTES).any(|&byte| byte == 0) {
                return Err(foreign(path, BINARY));
            }
            return Self::of(path, bytes, false);
        }
        let mut plain = Vec::new();
        let cut = match MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain) {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => true,
            Err(error) => {
                let line = lines(&plain);
                return Err(damaged(path, line, format!("decompress: {error}")));
            }
        };
        Self::of(path, plain, cut)
    }

    fn of(path: &Path, bytes: Vec<u8>, cut: bool) -> Result<Self, ImportError> {
        let binary = |line| damaged(path, line, "it is not text: a byte is not UTF-8".to_owned());
        if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
            return Err(binary(lines(&bytes[..at])));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { text, cut }),
            Err(error) => {
                let (at, partial) = (error.utf8_error().valid_up_to(), error.utf8_error());
                let mut bytes = error.into_bytes();
                if partial.error_len().is_some() {
                    return Err(binary(lines(&bytes[..at])));
                }
                bytes.truncate(at);
                Ok(Self { text: String::from_utf8_lossy(&bytes).into_owned(), cut: true })
            }
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether its end is missing: that of the compressed stream, or of the last line.
    pub fn is_cut(&self) -> bool {
        self.cut || !self.text.ends_with('\n')
    }

    /// The number of the incomplete last line, if there is one.
    pub fn cut_line(&self) -> Option<usize> {
        self.is_cut().then(|| self.last_line())
    }

    pub fn last_line(&self) -> usize {
        self.text.lines().count().max(1)
    }
}

fn lines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count()
}

fn damaged(path: &Path, line: usize, what: String) -> ImportError {
    let hint = "copy it again; a truncated file would be read up to its end".to_owned();
    ImportError::Damaged { path: path.to_owned(), line, what, hint }
}
