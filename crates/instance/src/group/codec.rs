//! Little-endian encoding of headers and maps, and the frame with length and checksum around each.

use xxhash_rust::xxh3::xxh3_64;

/// Magic, version, length, checksum of the bytes that follow.
pub(super) const FRAME_BYTES: usize = 8 + 4 + 4 + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Foreign,
    Version(u32),
    /// The length or checksum is wrong.
    Damaged,
}

#[derive(Debug, Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend(text.as_bytes());
    }

    pub fn words(&mut self, words: &[u64]) {
        self.u32(words.len() as u32);
        for word in words {
            self.u64(*word);
        }
    }

    /// Returns the frame, padded with zeros to a multiple of `align`.
    pub fn frame(self, magic: [u8; 8], version: u32, align: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(FRAME_BYTES + self.0.len() + align as usize);
        out.extend(magic);
        out.extend(version.to_le_bytes());
        out.extend((self.0.len() as u32).to_le_bytes());
        out.extend(xxh3_64(&self.0).to_le_bytes());
        out.extend(self.0);
        out.resize(out.len().next_multiple_of(align as usize), 0);
        out
    }
}

/// Reads the output of an [`Encoder`]; returns `None` if the bytes end too early.
#[derive(Debug)]
pub(super) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub fn open(bytes: &'a [u8], magic: [u8; 8], version: u32) -> Result<Self, Refusal> {
        let Some((frame, rest)) = bytes.split_at_checked(FRAME_BYTES) else {
            return Err(Refusal::Foreign);
        };
        if frame[..8] != magic {
            return Err(Refusal::Foreign);
        }
        let mut fields = Decoder(&frame[8..]);
        let found = fields.u32().ok_or(Refusal::Damaged)?;
        let len = fields.u32().ok_or(Refusal::Damaged)? as usize;
        let checksum = fields.u64().ok_or(Refusal::Damaged)?;
        if found != version {
            return Err(Refusal::Version(found));
        }
        match rest.get(..len) {
            Some(content) if xxh3_64(content) == checksum => Ok(Self(content)),
            _ => Err(Refusal::Damaged),
        }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn text(&mut self) -> Option<String> {
        let len = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    pub fn words(&mut self) -> Option<Vec<u64>> {
        let len = self.u32()? as usize;
        if self.0.len() < len.checked_mul(8)? {
            return None;
        }
        (0..len).map(|_| self.u64()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: [u8; 8] = *b"testtest";

    fn frame() -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.u8(3);
        encoder.text("disk");
        encoder.words(&[1, u64::MAX]);
        encoder.frame(MAGIC, 7, 512)
    }

    #[test]
    fn what_is_framed_is_read_back() {
        let bytes = frame();
        assert_eq!(bytes.len(), 512);
        let mut decoder = Decoder::open(&bytes, MAGIC, 7).unwrap();
        assert_eq!(decoder.u8(), Some(3));
        assert_eq!(decoder.text().as_deref(), Some("disk"));
        assert_eq!(decoder.words(), Some(vec![1, u64::MAX]));
        assert_eq!(decoder.u8(), None);
    }

    #[test]
    fn every_single_damage_is_noticed() {
        let bytes = frame();
        let used = FRAME_BYTES + 1 + 8 + 4 + 16;
        for at in 0..used {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let refusal = Decoder::open(&damaged, MAGIC, 7).unwrap_err();
            match at {
                0..8 => assert_eq!(refusal, Refusal::Foreign),
                8..12 => assert!(matches!(refusal, Refusal::Version(_))),
                _ => assert_eq!(refusal, Refusal::Damaged, "byte {at}"),
            }
        }
        assert_eq!(Decoder::open(&bytes[..10], MAGIC, 7).unwrap_err(), Refusal::Foreign);
    }
}
