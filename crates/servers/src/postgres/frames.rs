//! Checks messages of a PostgreSQL server before the driver sees them. Each begins with its kind
//! and its length, and the driver buffers a message until it is complete, however long it claims to
//! be. Here, an oversized message is refused as soon as its length is known.

use std::io::{self, ErrorKind};

use blockstone_base::units::Bytes;

/// Maximum length of messages other than rows of COPY: statements, notices and rows of queries.
const MESSAGE_MOST: Bytes = Bytes::mib(64);
/// Maximum length of a row of COPY: the server's own limit for a message.
const COPY_MOST: Bytes = Bytes::mib(1024);
/// Maximum size of all rows of the answers to one request, which the driver collects. Rows of COPY
/// are passed on and do not count.
const ROWS_MOST: Bytes = Bytes::mib(256);
/// Memory of the driver for a row, in addition to its bytes.
const ROW_BYTES: u64 = 128;

const ROW: u8 = b'D';
const COPY_DATA: u8 = b'd';
const READY: u8 = b'Z';
/// Bytes of the kind and of the length, which does not include the kind.
const HEAD: usize = 5;

/// Position of a connection in the stream of messages.
#[derive(Debug, Default)]
pub struct Frames {
    head: [u8; HEAD],
    /// Bytes of the head received so far.
    known: usize,
    /// Bytes of the message still to be received.
    left: u64,
    rows_bytes: u64,
}

impl Frames {
    /// Checks received bytes. Fails if a message exceeds the maximum of its kind, or the rows of an
    /// answer exceed theirs.
    pub fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let part = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                self.left -= part as u64;
                bytes = &bytes[part..];
                continue;
            }
            let part = (HEAD - self.known).min(bytes.len());
            self.head[self.known..][..part].copy_from_slice(&bytes[..part]);
            self.known += part;
            bytes = &bytes[part..];
            if self.known == HEAD {
                self.known = 0;
                self.left = self.announced()?;
            }
        }
        Ok(())
    }

    /// Returns the length of the message whose head is complete, without the head.
    fn announced(&mut self) -> io::Result<u64> {
        let [kind, length @ ..] = self.head;
        let refused = |why: String| Err(io::Error::new(ErrorKind::InvalidData, why));
        let Some(bytes) = u32::from_be_bytes(length).checked_sub(4).map(u64::from) else {
            return refused("a message is shorter than its own length".to_owned());
        };
        let most = if kind == COPY_DATA { COPY_MOST } else { MESSAGE_MOST };
        if bytes > most.get() {
            let said = Bytes(bytes);
            return refused(format!("a message of {said} is announced; {most} is the most"));
        }
        match kind {
            READY => self.rows_bytes = 0,
            ROW => self.rows_bytes += bytes + ROW_BYTES,
            _ => {}
        }
        if self.rows_bytes > ROWS_MOST.get() {
            return refused(format!("the rows of an answer take more than {ROWS_MOST}"));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: u8, len: u32) -> Vec<u8> {
        [&[kind][..], &len.to_be_bytes()].concat()
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [head(kind, body.len() as u32 + 4), body.to_vec()].concat()
    }

    #[test]
    fn messages_are_counted_however_they_are_cut() {
        let stream = [message(b'T', b"dZ"), message(READY, b"I"), message(b'C', b"")].concat();
        let too_long = [stream.clone(), head(b'T', 65 << 20)].concat();
        for cut in 1..too_long.len() {
            let mut frames = Frames::default();
            let fed: io::Result<()> = too_long.chunks(cut).try_for_each(|part| frames.feed(part));
            let error = fed.unwrap_err().to_string();
            assert!(error.contains("65") && error.contains("64"), "{error}");
            let mut frames = Frames::default();
            stream.chunks(cut).try_for_each(|part| frames.feed(part)).unwrap();
        }
    }

    #[test]
    fn a_length_that_is_none_is_refused_and_a_row_of_copy_may_be_long() {
        for (kind, len, fits) in [
            (b'R', 3, false),
            (b'R', 4, true),
            (b'E', u32::MAX, false),
            (COPY_DATA, 1 << 30, true),
            (COPY_DATA, u32::MAX, false),
        ] {
            assert_eq!(Frames::default().feed(&head(kind, len)).is_ok(), fits, "{kind} {len}");
        }
    }

    #[test]
    fn rows_without_end_are_refused_and_those_of_many_answers_are_not() {
        let row = message(ROW, &vec![0; 1 << 20]);
        let mut frames = Frames::default();
        for _ in 0..10 {
            (0..200).try_for_each(|_| frames.feed(&row)).unwrap();
            frames.feed(&message(READY, b"I")).unwrap();
        }
        assert!((0..300).try_for_each(|_| frames.feed(&row)).is_err());
        let least = message(ROW, &[0; 2]);
        let mut frames = Frames::default();
        let refused = (0..3_000_000).try_for_each(|_| frames.feed(&least));
        assert!(refused.is_err(), "the driver keeps more for a row than its bytes");
    }
}
