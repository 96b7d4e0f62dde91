//! What writers and their witness say to each other, and what the witness keeps: frames of 32
//! bytes, some of which a text follows. No length is trusted: frames are read one by one, and a
//! text is shorter than [`TEXT_MAX`].

use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

pub const FRAME: usize = 32;
/// The longest text: a testimony of all writers.
pub const TEXT_MAX: u64 = 1 << 20;
/// The longest that a writer may send.
pub const DESCRIPTION_MAX: u64 = 16 << 10;

blockstone_base::named! {
    Kind {
        /// A run begins; its description follows. `a`: the run, `b`: bytes of the text.
        Begin = "begin",
        /// A write was acknowledged. `stream`, `a`: its sequence, `b`: its hash.
        Point = "point",
        /// Nothing: the writer is still there.
        Idle = "idle",
        /// Asks what is known of the run `a`; of the last if it is 0.
        Ask = "ask",
        /// The run `a` was verified. `b`: whether the cut was conclusive, and whether it lost.
        Outcome = "outcome",
        /// Of the witness: `a` points of this connection are durable in its log.
        Durable = "durable",
        /// Of the witness: a testimony follows. `b`: bytes of the text.
        Testimony = "testimony",
        /// Of the witness: the reason of a refusal follows. `b`: bytes of the text.
        Refused = "refused",
        /// In a log: what follows is of the run `a`.
        Of = "of",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub stream: u32,
    pub a: u64,
    pub b: u64,
}

impl Frame {
    pub fn new(kind: Kind, a: u64, b: u64) -> Self {
        Self { kind, stream: 0, a, b }
    }

    pub fn bytes(&self) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        let code = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        bytes[0] = code as u8 + 1;
        bytes[4..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.a.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.b.to_le_bytes());
        let sum = xxh3_64(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// `None` for what is no frame.
    pub fn parse(bytes: &[u8; FRAME]) -> Option<Self> {
        let number = |at: usize| {
            let mut whole = [0; 8];
            whole.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(whole)
        };
        if number(24) != xxh3_64(&bytes[..24]) || bytes[1..4] != [0; 3] {
            return None;
        }
        let kind = *Kind::ALL.get(usize::from(bytes[0]).checked_sub(1)?)?;
        let stream = (number(0) >> 32) as u32;
        Some(Self { kind, stream, a: number(8), b: number(16) })
    }
}

/// A frame with a text, whose hash is in `stream`.
pub fn with_text(kind: Kind, a: u64, text: &str) -> Vec<u8> {
    let frame = Frame { kind, stream: xxh3_64(text.as_bytes()) as u32, a, b: text.len() as u64 };
    [&frame.bytes()[..], text.as_bytes()].concat()
}

/// Reads the next frame; `None` at an orderly end.
pub fn read_frame(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut bytes = [0; FRAME];
    let mut filled = 0;
    while filled < FRAME {
        match from.read(&mut bytes[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Frame::parse(&bytes).map(Some).ok_or_else(|| invalid("not a frame of a witness"))
}

/// Reads the text that follows `frame`, at most `most` bytes.
pub fn read_text(from: &mut impl Read, frame: &Frame, most: u64) -> io::Result<String> {
    if frame.b > most {
        return Err(invalid("a text is too long"));
    }
    let mut text = Vec::new();
    from.take(frame.b).read_to_end(&mut text)?;
    if text.len() as u64 != frame.b || xxh3_64(&text) as u32 != frame.stream {
        return Err(invalid("a text is damaged"));
    }
    String::from_utf8(text).map_err(|_| invalid("a text is not UTF-8"))
}

pub fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_and_texts_are_read_as_they_were_written() {
        for &kind in Kind::ALL {
            let frame = Frame { kind, stream: 7, a: u64::MAX, b: 1 << 40 };
            assert_eq!(Frame::parse(&frame.bytes()), Some(frame));
        }
        let bytes = with_text(Kind::Begin, 9, "äb");
        let mut from = &bytes[..];
        let frame = read_frame(&mut from).unwrap().unwrap();
        assert_eq!(read_text(&mut from, &frame, 10).unwrap(), "äb");
        assert_eq!(read_frame(&mut from).unwrap(), None);
        assert!(read_text(&mut &b"x"[..], &frame, 10).is_err(), "cut off");
        assert!(read_text(&mut &b"abc"[..], &frame, 2).is_err(), "too long");
        assert!(read_frame(&mut &bytes[..31]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut from = &bytes[..];
            if let Ok(Some(frame)) = read_frame(&mut from) {
                let _ = read_text(&mut from, &frame, TEXT_MAX);
            }
        }
    }
}
