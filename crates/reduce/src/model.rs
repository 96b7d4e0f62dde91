//! Models of arrays: the blocks in which an array looks for copies, and the space that a compressed
//! block takes.
//!
//! A model is a small TOML file; those of [`BUILT_IN`] are files of this crate.
//!
//! ```toml
//! about = "an array of mine"
//! block_size = "8K"      # what is deduplicated and compressed
//! codec = "lz4"          # lz4, zstd:1 … zstd:22, or none
//! granule = "1K"         # compressed blocks are stored in steps of this size
//! smallest = "1K"        # and take no less            [the granule]
//! counted_below = 0.75   # what does not shrink below this part stays whole   [1.0]
//! deduplicates = true    # whether a content is stored once                   [true]
//! zeros = "free"         # or "stored": as any other content                  [stored]
//! ```

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::compress::Codec;
use crate::grid::BLOCK_BYTES_MAX;

/// Models that need no file, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("generic", include_str!("../models/generic.toml")),
    ("vdo", include_str!("../models/vdo.toml")),
    ("xtremio", include_str!("../models/xtremio.toml")),
];

#[derive(Debug, thiserror::Error, Hint)]
pub enum ModelError {
    #[error("read model {name}: {why}")]
    #[hint("`blockstone reduce --help` describes models")]
    Unreadable { name: String, why: String },
    #[error("use model {name}: {what}")]
    #[hint("{hint}")]
    Nonsense { name: String, what: String, hint: &'static str },
}

/// How an array stores a block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    pub name: String,
    pub about: String,
    /// Block size for deduplication and compression, in bytes.
    #[serde(rename = "block_size")]
    pub block_bytes: u32,
    /// Compressor of blocks; null if the array does not compress.
    pub codec: Option<Codec>,
    /// Allocation granule of compressed blocks, in bytes.
    pub granule_bytes: u32,
    /// Minimum size of a compressed block, in bytes.
    pub smallest_bytes: u32,
    /// A block whose compressed size is not below this fraction of it is stored uncompressed.
    pub counted_below: f64,
    /// Whether a content is stored only once.
    pub deduplicates: bool,
    /// Whether blocks of zeros take no space.
    pub zeros_are_free: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    block_size: String,
    codec: String,
    granule: String,
    smallest: Option<String>,
    counted_below: Option<f64>,
    deduplicates: Option<bool>,
    #[serde(default)]
    zeros: Zeros,
}

#[derive(Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Zeros {
    #[default]
    Stored,
    Free,
}

impl Model {
    /// Returns a built-in model.
    pub fn built_in(name: &str) -> Result<Self, ModelError> {
        let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let why = format!("no such model; built in are {}", known.join(", "));
            return Err(ModelError::Unreadable { name: name.to_owned(), why });
        };
        Self::parse(name, text)
    }

    /// Parses a model; `name` is used in messages and reports.
    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let unreadable = |why: String| ModelError::Unreadable { name: name.to_owned(), why };
        let file: File = toml::from_str(text).map_err(|e| unreadable(one_line(&e.to_string())))?;
        let bytes = |key: &str, text: &str| {
            let bytes: Bytes = text.parse().map_err(|e| unreadable(format!("{key}: {e}")))?;
            Ok::<u64, ModelError>(bytes.0)
        };
        let codec = match file.codec.as_str() {
            "none" => None,
            name => Some(name.parse().map_err(|e| unreadable(one_line(&format!("codec: {e}"))))?),
        };
        let block_bytes = bytes("block_size", &file.block_size)?;
        let granule_bytes = bytes("granule", &file.granule)?;
        let smallest_bytes = match &file.smallest {
            Some(text) => bytes("smallest", text)?,
            None => granule_bytes,
        };
        let nonsense =
            |what: String, hint| ModelError::Nonsense { name: name.to_owned(), what, hint };
        let possible = (4096..=BLOCK_BYTES_MAX).contains(&block_bytes);
        if !possible || !block_bytes.is_power_of_two() {
            let what = format!("its block_size is {}", Bytes(block_bytes));
            return Err(nonsense(what, "4K times a power of two, up to 1M"));
        }
        if granule_bytes == 0 || granule_bytes > block_bytes || smallest_bytes > block_bytes {
            let (granule, smallest) = (Bytes(granule_bytes), Bytes(smallest_bytes));
            let what = format!("it stores steps of {granule}, at least {smallest}");
            return Err(nonsense(what, "from 1 byte to the size of a block"));
        }
        let counted_below = file.counted_below.unwrap_or(1.0);
        if !(counted_below > 0.0 && counted_below <= 1.0) {
            let what = format!("counted_below is {counted_below}");
            return Err(nonsense(what, "a part of the block above 0, at most 1.0"));
        }
        Ok(Self {
            name: name.to_owned(),
            about: file.about,
            block_bytes: block_bytes as u32,
            codec,
            granule_bytes: granule_bytes as u32,
            smallest_bytes: smallest_bytes as u32,
            counted_below,
            deduplicates: file.deduplicates.unwrap_or(true),
            zeros_are_free: file.zeros == Zeros::Free,
        })
    }

    /// Returns the space, in bytes, that a block of `block_bytes` takes after shrinking to
    /// `compressed_bytes`.
    pub fn stored_bytes(&self, block_bytes: u32, compressed_bytes: u32) -> u32 {
        if f64::from(compressed_bytes) >= f64::from(block_bytes) * self.counted_below {
            return block_bytes;
        }
        stepped(compressed_bytes, self.granule_bytes).max(self.smallest_bytes).min(block_bytes)
    }
}

pub fn stepped(bytes: u32, granule_bytes: u32) -> u32 {
    bytes.div_ceil(granule_bytes) * granule_bytes
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_models_are_sound_and_store_what_they_say() {
        for (name, _) in BUILT_IN {
            Model::built_in(name).unwrap();
        }
        let generic = Model::built_in("generic").unwrap();
        assert_eq!(
            [1, 512, 513, 8000].map(|b| generic.stored_bytes(8192, b)),
            [512, 512, 1024, 8192]
        );
        let vdo = Model::built_in("vdo").unwrap();
        assert_eq!(
            [10, 1000, 2047, 2048].map(|b| vdo.stored_bytes(4096, b)),
            [292, 1000, 2047, 4096]
        );
        // A real array reported initialised blocks without data, which compress to next to nothing,
        // as 4.0:1: it stores no less than 2 KiB of 8.
        let xtremio = Model::built_in("xtremio").unwrap();
        assert_eq!(
            [100, 2048, 2049, 8000].map(|b| xtremio.stored_bytes(8192, b)),
            [2048, 2048, 4096, 8192]
        );
    }

    #[test]
    fn nonsense_is_named_with_what_would_be_sensible() {
        let good = BUILT_IN[0].1;
        for (from, to, said) in [
            ("\"8K\"", "\"6000B\"", "block_size"),
            ("\"8K\"", "\"8192\"", "8192B"),
            ("\"8K\"", "\"many\"", "block_size"),
            ("\"512B\"", "\"0\"", "steps"),
            ("\"512B\"", "\"1M\"", "steps"),
            ("lz4", "rar", "rar"),
            ("granule", "grain", "grain"),
            ("about", "counted_below = 1.5\nabout", "1.5"),
            ("about", "zeros = \"gone\"\nabout", "gone"),
            ("=", ":", "expected"),
        ] {
            let error = Model::parse("mine", &good.replacen(from, to, 1)).unwrap_err().told();
            assert!(error.contains(said) && error.contains("\nhint: "), "{from} → {to}: {error}");
            assert_eq!(error.lines().count(), 2, "{error}");
        }
        assert!(Model::built_in("magic").unwrap_err().told().contains("generic"));
    }
}
