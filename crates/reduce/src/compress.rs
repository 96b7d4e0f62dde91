//! Compressors, and the sizes of blocks they produce.

use std::fmt;
use std::str::FromStr;

use blockstone_base::hint::Hint;
use serde::{Deserialize, Serialize};

/// Maximum number of compressors that one scan can compare.
pub const CODECS_MAX: usize = 4;

/// A compressor and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Codec {
    /// LZ4, block format; used inline by most arrays.
    Lz4,
    /// Zstandard.
    Zstd {
        /// Compression level, 1 (fast) to 22.
        level: i32,
    },
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum CodecError {
    #[error("find compressor `{name}`: no such compressor")]
    #[hint("use lz4, or zstd:1 to zstd:22")]
    Unknown { name: String },
    #[error("compare {count} compressors: at most {CODECS_MAX} in one scan")]
    #[hint("name fewer")]
    TooMany { count: usize },
    /// Its library failed, which only happens for lack of memory.
    #[error("start compressor {codec}: {source}")]
    #[hint("there may be too little memory")]
    Start { codec: Codec, source: std::io::Error },
}

impl Codec {
    /// Approximate memory in bytes to compress blocks of up to `block_bytes`: measured for level 22
    /// of Zstandard, which has the largest tables, plus a small margin.
    pub const fn memory_bytes(self, block_bytes: u64) -> u64 {
        match self {
            Self::Lz4 => 64 << 10,
            Self::Zstd { .. } => (256 << 10) + 20 * block_bytes,
        }
    }
}

impl FromStr for Codec {
    type Err = CodecError;

    fn from_str(text: &str) -> Result<Self, CodecError> {
        let (name, level) = text.split_once(':').unwrap_or((text, "3"));
        match (name, level.parse()) {
            _ if text == "lz4" => Ok(Self::Lz4),
            ("zstd", Ok(level @ 1..=22)) => Ok(Self::Zstd { level }),
            _ => Err(CodecError::Unknown { name: text.to_owned() }),
        }
    }
}

impl From<Codec> for String {
    fn from(codec: Codec) -> Self {
        codec.to_string()
    }
}

impl TryFrom<String> for Codec {
    type Error = CodecError;

    fn try_from(text: String) -> Result<Self, CodecError> {
        text.parse()
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd { level } => write!(f, "zstd:{level}"),
        }
    }
}

/// Bytes of a block under each compressor of a scan; a block that does not shrink keeps its size.
pub type Sizes = [u32; CODECS_MAX];

/// Compressors with their working memory; one per thread.
pub struct Compressors {
    codecs: Vec<Worker>,
    out: Vec<u8>,
}

enum Worker {
    Lz4,
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Compressors {
    /// Creates these compressors, at most [`CODECS_MAX`].
    pub fn new(codecs: &[Codec]) -> Result<Self, CodecError> {
        if codecs.len() > CODECS_MAX {
            return Err(CodecError::TooMany { count: codecs.len() });
        }
        let start = |&codec: &Codec| match codec {
            Codec::Lz4 => Ok(Worker::Lz4),
            Codec::Zstd { level } => zstd::bulk::Compressor::new(level)
                .map(|worker| Worker::Zstd(Box::new(worker)))
                .map_err(|source| CodecError::Start { codec, source }),
        };
        Ok(Self { codecs: codecs.iter().map(start).collect::<Result<_, _>>()?, out: Vec::new() })
    }

    /// Returns the size of `block` under each of the first `count` compressors.
    pub fn sizes(&mut self, block: &[u8], count: usize) -> Sizes {
        let bound = lz4_flex::block::get_maximum_output_size(block.len());
        let bound = bound.max(zstd::zstd_safe::compress_bound(block.len()));
        if self.out.len() < bound {
            self.out.resize(bound, 0);
        }
        let mut sizes = [block.len() as u32; CODECS_MAX];
        for (size, worker) in sizes.iter_mut().zip(&mut self.codecs).take(count) {
            let compressed = match worker {
                Worker::Lz4 => lz4_flex::block::compress_into(block, &mut self.out).ok(),
                Worker::Zstd(worker) => worker.compress_to_buffer(block, &mut self.out[..]).ok(),
            };
            // The buffer is large enough for any result, so `None` means that the block did not
            // shrink.
            *size = compressed.map_or(*size, |bytes| (*size).min(bytes as u32));
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_shrink_to_little_and_random_bytes_not_at_all() {
        let codecs = ["lz4", "zstd:1", "zstd:9"].map(|name| name.parse().unwrap());
        let mut compressors = Compressors::new(&codecs).unwrap();
        let mut block = vec![0; 8192];
        let zeros = compressors.sizes(&block, 3);
        assert_eq!(compressors.sizes(&block, 1)[1], 8192, "only the first was asked");
        assert!(zeros[..3].iter().all(|&size| size < 100), "{zeros:?}");
        assert_eq!(zeros[3], 8192, "there is no fourth");
        blockstone_base::rng::fill(1, &mut block);
        assert_eq!(compressors.sizes(&block, 3), [8192; 4]);
        block[2048..].fill(b'X');
        let some = compressors.sizes(&block, 3);
        assert!(some[..3].iter().all(|&size| (2048..2300).contains(&size)), "{some:?}");
    }

    #[test]
    fn names_are_read_and_written_alike_and_nonsense_is_refused() {
        for name in ["lz4", "zstd:1", "zstd:22"] {
            assert_eq!(name.parse::<Codec>().unwrap().to_string(), name);
        }
        assert_eq!("zstd".parse::<Codec>().unwrap(), Codec::Zstd { level: 3 });
        for name in ["", "gzip", "zstd:0", "zstd:23", "zstd:x", "lz4:1"] {
            let error = name.parse::<Codec>().unwrap_err().told();
            assert!(error.contains("hint: "), "{error}");
        }
        let many = vec![Codec::Lz4; 5];
        assert!(Compressors::new(&many).is_err_and(|e| e.told().contains("at most 4")));
    }
}
