//! Fingerprints in documents: 32 hexadecimal digits, as a number of JSON has too few.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use crate::digest::Fingerprint;

/// A fingerprint, or one that may be missing.
pub(crate) trait Text: Copy + Sized {
    /// What is written.
    fn print(self) -> Option<Fingerprint>;
    /// What was read; nothing if it must not be missing.
    fn of(print: Option<Fingerprint>) -> Option<Self>;
}

impl Text for Fingerprint {
    fn print(self) -> Option<Fingerprint> {
        Some(self)
    }

    fn of(print: Option<Fingerprint>) -> Option<Self> {
        print
    }
}

impl Text for Option<Fingerprint> {
    fn print(self) -> Option<Fingerprint> {
        self
    }

    fn of(print: Option<Fingerprint>) -> Option<Self> {
        Some(print)
    }
}

pub(crate) fn serialize<S: Serializer, T: Text>(all: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(|text| text.print().map(|print| format!("{print:032x}"))))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Text>(from: D) -> Result<Vec<T>, D::Error> {
    let texts: Vec<Option<String>> = Vec::deserialize(from)?;
    let print = |text: Option<String>| {
        let number = |text: String| Fingerprint::from_str_radix(&text, 16).map_err(Error::custom);
        let print = text.map(number).transpose()?;
        T::of(print).ok_or_else(|| Error::custom("a fingerprint is missing"))
    };
    texts.into_iter().map(print).collect()
}
