//! Decodes UTF-16 to UTF-8.

use std::io::{self, Cursor, Read};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

use crate::foreign::{self, Foreign, is_tar};

const BUFFER_BYTES: usize = 64 << 10;
const TAR: Foreign = Foreign {
    what: "a tar archive",
    hint: "unpack it (tar -xf FILE), and name the file that is meant",
};

/// Decodes UTF-16, which PowerShell and SQL*Plus on Windows write, and removes a byte order mark.
/// All other bytes pass unchanged. Fails if they are of a kind that is not text.
pub fn decoded(mut from: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    let read = from.by_ref().take(foreign::HEAD_BYTES as u64).read_to_end(&mut head);
    if let Some(foreign) = Foreign::of(&head).or_else(|| is_tar(&head).then_some(TAR)) {
        return Err(foreign.into());
    }
    // An error after the first bytes is found where it is: a reader may want those before it.
    let rest: Box<dyn Read + Send> = match read {
        Err(error) if head.is_empty() => return Err(error),
        Err(error) => Box::new(Failing(Some(error))),
        Ok(_) => from,
    };
    let encoding = unmarked(&head);
    Ok(Box::new(decoder(encoding, Cursor::new(head).chain(rest))?))
}

/// Decodes the beginning of a file.
pub fn whole(head: Vec<u8>) -> Vec<u8> {
    let mut text = Vec::new();
    let decoded = decoder(unmarked(&head), &head[..]);
    match decoded.and_then(|mut from| from.read_to_end(&mut text)) {
        Ok(_) => text,
        Err(_) => head,
    }
}

fn decoder<R: Read>(
    encoding: Option<&'static Encoding>,
    from: R,
) -> io::Result<DecodeReaderBytes<R, Vec<u8>>> {
    DecodeReaderBytesBuilder::new()
        .encoding(encoding)
        .utf8_passthru(true)
        .strip_bom(true)
        .build_with_buffer(from, vec![0; BUFFER_BYTES])
}

/// Fails once, then ends.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
/// Recognises UTF-16 without a byte order mark: each of two ASCII characters has a zero byte.
fn unmarked(head: &[u8]) -> Option<&'static Encoding> {
    match *head {
        [first, 0, second, 0, ..] if first != 0 && second != 0 => Some(UTF_16LE),
        [0, first, 0, second, ..] if first != 0 && second != 0 => Some(UTF_16BE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        let from = Box::new(Cursor::new(bytes.to_vec()));
        super::decoded(from).unwrap().read_to_end(&mut text).unwrap();
        text
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn utf_16_is_decoded_with_and_without_a_mark() {
        let text = "<html>caf\u{e9} \u{1f600}";
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(decoded(&utf16(text, bytes)), text.as_bytes());
            let marked = utf16(&format!("\u{feff}{text}"), bytes);
            assert_eq!(decoded(&marked), text.as_bytes());
        }
        assert_eq!(decoded(b"\xef\xbb\xbfa,b"), b"a,b");
    }

    proptest! {
        #[test]
        fn other_bytes_are_passed_on(bytes: Vec<u8>) {
            let is_marked = [&b"\xff\xfe"[..], b"\xfe\xff", b"\xef\xbb\xbf"]
                .iter()
                .any(|mark| bytes.starts_with(mark));
            prop_assume!(Foreign::of(&bytes).is_none());
            prop_assume!(!is_marked && unmarked(&bytes[..bytes.len().min(4)]).is_none());
            prop_assert_eq!(decoded(&bytes), bytes);
        }
    }
}
