//! Input files of users: files, pipes and standard input, compressed or not, in UTF-8 or UTF-16,
//! and archives of them.
//!
//! [`Unpacked`] decompresses and decodes while it reads; [`text`] and [`report`] read a whole file
//! of limited size; [`members`] reads the files of an archive. This crate must not know what text
//! contains; it names the kinds of files that are not text ([`Foreign`]).
//!
//! ```
//! use blockstone_base::units::Bytes;
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("load.csv.zst");
//! # std::fs::write(&path, zstd::encode_all(&b"time,reads_per_s\n"[..], 1)?)?;
//! let text = blockstone_input::text(&path, Bytes::mib(1), || true)?;
//! assert_eq!(text, "time,reads_per_s\n");
//! # std::io::Result::Ok(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod archive;
mod decoded;
mod foreign;
mod unpacked;
mod zip;

use std::io::{self, Read};
use std::path::Path;

use blockstone_base::units::Bytes;

pub use archive::{LeftOut, Members, Source, members};
pub use foreign::Foreign;
pub use unpacked::{Compression, GoOn, Unpacked};

/// Reads a whole text file; `-` is standard input. Fails with `FileTooLarge` if the text is longer
/// than `at_most`, with `InvalidData` if it is neither UTF-8 nor UTF-16, and with `Interrupted` if
/// `go_on` returned false.
pub fn text(path: &Path, at_most: Bytes, go_on: GoOn) -> io::Result<String> {
    let text = String::from_utf8(bytes(path, at_most, go_on)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// Like [`text`], for a report, which may use the character set of a database or a terminal. Bytes
/// that are not UTF-8 become U+FFFD.
pub fn report(path: &Path, at_most: Bytes, go_on: GoOn) -> io::Result<String> {
    bytes(path, at_most, go_on).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn bytes(path: &Path, at_most: Bytes, go_on: GoOn) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let source = Unpacked::open_or_stdin(path, go_on)?.decoded()?;
    source.take(at_most.get() + 1).read_to_end(&mut bytes)?;
    if !go_on() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    if bytes.len() as u64 > at_most.get() {
        let why = format!("it is larger than {at_most}, the most that is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ALWAYS: GoOn = || true;

    #[test]
    fn a_text_has_a_limit_and_an_encoding() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        fs::write(&path, "12345").unwrap();
        assert_eq!(text(&path, Bytes(5), ALWAYS).unwrap(), "12345");
        let kind = |at_most| text(&path, at_most, ALWAYS).unwrap_err().kind();
        assert_eq!(kind(Bytes(4)), io::ErrorKind::FileTooLarge);
        fs::write(&path, b"caf\xe9").unwrap();
        assert_eq!(kind(Bytes(5)), io::ErrorKind::InvalidData);
        assert_eq!(report(&path, Bytes(9), ALWAYS).unwrap(), "caf\u{fffd}");
        let refused = |path: &str| text(Path::new(path), Bytes(9), ALWAYS).unwrap_err().kind();
        assert_eq!(refused("/dev/zero"), io::ErrorKind::FileTooLarge);
        assert_eq!(refused("/"), io::ErrorKind::IsADirectory);
    }
}
