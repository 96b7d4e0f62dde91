//! Fingerprints in documents: 32 hexadecimal digits, as JSON numbers have too few.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use crate::digest::Fingerprint;

pub(crate) fn serialize<S, T>(all: &[T], to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Copy + Into<Option<Fingerprint>>,
{
    to.collect_seq(all.iter().map(|&one| one.into().map(|print| format!("{print:032x}"))))
}

/// Deserializes fingerprints, some of which may be missing.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<Option<Fingerprint>>, D::Error> {
    let texts: Vec<Option<String>> = Vec::deserialize(from)?;
    let number = |text: String| Fingerprint::from_str_radix(&text, 16).map_err(Error::custom);
    texts.into_iter().map(|text| text.map(number).transpose()).collect()
}

pub(crate) fn all<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Fingerprint>, D::Error> {
    let prints: Option<Vec<Fingerprint>> = deserialize(from)?.into_iter().collect();
    prints.ok_or_else(|| Error::custom("a fingerprint is missing"))
}
