//! Parses tuples of COPY's binary format without trusting their lengths.

use std::io::{self, BufRead, Error, ErrorKind, Read};

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
const FIELD_MAX: usize = 1 << 30;
const FIELDS_MAX: i16 = 1664;

pub struct Tuples<R> {
    input: R,
    bytes: Vec<u8>,
    /// Range of each field in `bytes`; `None` if it is NULL.
    fields: Vec<Option<(usize, usize)>>,
}

fn broken(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the server sent a broken COPY stream: {why}"))
}

impl<R: BufRead> Tuples<R> {
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut head = [0; 19];
        input.read_exact(&mut head)?;
        if head[..11] != SIGNATURE[..] {
            return Err(broken("no signature"));
        }
        let extra = u32::from_be_bytes([head[15], head[16], head[17], head[18]]);
        let skipped = io::copy(&mut input.by_ref().take(u64::from(extra)), &mut io::sink())?;
        if skipped != u64::from(extra) {
            return Err(broken("it ends in its header"));
        }
        Ok(Self { input, bytes: Vec::new(), fields: Vec::new() })
    }

    /// Reads the next tuple. Returns false at the end.
    pub fn read(&mut self) -> io::Result<bool> {
        let mut count = [0; 2];
        self.input.read_exact(&mut count)?;
        let count = i16::from_be_bytes(count);
        if count == -1 {
            // Reads the stream to its end.
            io::copy(&mut self.input, &mut io::sink())?;
            return Ok(false);
        }
        if !(0..=FIELDS_MAX).contains(&count) {
            return Err(broken("a tuple has too many fields"));
        }
        self.bytes.clear();
        self.fields.clear();
        for _ in 0..count {
            let mut length = [0; 4];
            self.input.read_exact(&mut length)?;
            let length = i32::from_be_bytes(length);
            if length == -1 {
                self.fields.push(None);
                continue;
            }
            let length = usize::try_from(length).map_err(|_| broken("a field has no length"))?;
            let begin = self.bytes.len();
            if length > FIELD_MAX || begin > FIELD_MAX {
                return Err(broken("a field is too long"));
            }
            let read = self.input.by_ref().take(length as u64).read_to_end(&mut self.bytes)?;
            if read != length {
                return Err(broken("it ends within a field"));
            }
            self.fields.push(Some((begin, begin + length)));
        }
        Ok(true)
    }

    pub fn field(&self, at: usize) -> Option<&[u8]> {
        let (begin, end) = self.fields.get(at).copied().flatten()?;
        self.bytes.get(begin..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(tuples: &[u8]) -> Vec<u8> {
        [SIGNATURE, &[0; 8][..], tuples].concat()
    }

    #[test]
    fn tuples_are_read_and_broken_streams_are_refused() {
        let whole = stream(&[0, 2, 0, 0, 0, 1, b'x', 255, 255, 255, 255, 255, 255]);
        let mut tuples = Tuples::new(&whole[..]).unwrap();
        assert!(tuples.read().unwrap());
        assert_eq!(
            (tuples.field(0), tuples.field(1), tuples.field(2)),
            (Some(&b"x"[..]), None, None)
        );
        assert!(!tuples.read().unwrap());
        for broken in [
            &[0, 1, 127, 255, 255, 255][..],
            &[0, 1, 255, 255, 255, 254],
            &[0, 1, 0, 0, 0, 9, b'x'],
            &[127, 255],
            &[0],
            &[],
        ] {
            assert!(Tuples::new(&stream(broken)[..]).unwrap().read().is_err(), "{broken:?}");
        }
        assert!(Tuples::new(&b"PGCOPY"[..]).is_err());
        let long = [SIGNATURE, &[0, 0, 0, 0, 255, 255, 255, 255][..]].concat();
        assert!(Tuples::new(&long[..]).is_err(), "a header that is not there");
    }
}
