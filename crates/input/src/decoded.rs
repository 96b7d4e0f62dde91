//! Decodes UTF-16 to UTF-8.

use std::io::{self, Cursor, Read};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;

/// Number of bytes needed to recognise UTF-16 without a byte order mark.
const HEAD_BYTES: u64 = 4;
const BUFFER_BYTES: usize = 64 << 10;

/// Decodes UTF-16, which PowerShell and SQL*Plus on Windows write, and removes a byte order mark.
/// All other bytes pass unchanged.
pub fn decoded(mut from: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    from.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    let decoder = DecodeReaderBytesBuilder::new()
        .encoding(unmarked(&head))
        .utf8_passthru(true)
        .strip_bom(true)
        .build_with_buffer(Cursor::new(head).chain(from), vec![0; BUFFER_BYTES]);
    Ok(Box::new(decoder.map_err(io::Error::other)?))
}

/// Recognises UTF-16 without a byte order mark: each of two ASCII characters has a zero byte.
fn unmarked(head: &[u8]) -> Option<&'static Encoding> {
    match *head {
        [first, 0, second, 0] if first != 0 && second != 0 => Some(UTF_16LE),
        [0, first, 0, second] if first != 0 && second != 0 => Some(UTF_16BE),
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
            prop_assume!(!is_marked && unmarked(&bytes[..bytes.len().min(4)]).is_none());
            prop_assert_eq!(decoded(&bytes), bytes);
        }
    }
}
