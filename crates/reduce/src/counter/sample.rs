//! Sizes of contents under compressors: of all contents while they are few, then of a share of hash
//! space, as in a table of contents.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::compress::Sizes;
use crate::digest::Fingerprint;
use crate::table::in_share;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    #[serde(skip)]
    sizes: HashMap<Fingerprint, Option<Sizes>>,
    contents_max: usize,
    share_log2: u32,
}

impl Sample {
    /// Samples all contents up to this number; none at all if it is zero.
    pub fn new(contents_max: usize) -> Self {
        Self { sizes: HashMap::new(), contents_max, share_log2: 0 }
    }

    /// Returns whether its share is one that a scan can reach.
    pub(super) fn is_sound(&self) -> bool {
        self.share_log2 <= u128::BITS
    }

    /// Returns whether this content, which is new, is to be compressed.
    #[inline]
    pub(super) fn wants(&mut self, print: Fingerprint) -> bool {
        if self.contents_max == 0 || !self.keeps(print) {
            return false;
        }
        while self.sizes.len() >= self.contents_max {
            self.limit_share(self.share_log2 + 1);
        }
        self.keeps(print) && self.sizes.insert(print, None).is_none()
    }

    /// Keeps no more than a share of 2^-`share_log2`.
    pub(super) fn limit_share(&mut self, share_log2: u32) {
        if share_log2 > self.share_log2 {
            self.share_log2 = share_log2;
            self.sizes.retain(|&print, _| in_share(print, share_log2));
        }
    }

    pub fn put(&mut self, print: Fingerprint, sizes: Sizes) {
        if self.contents_max > 0 && self.keeps(print) {
            self.sizes.insert(print, Some(sizes));
        }
    }

    /// Returns whether this content has to be compressed and has not been.
    pub(super) fn lacks(&self, print: Fingerprint) -> bool {
        matches!(self.sizes.get(&print), Some(None))
    }

    /// Returns the contents and their sizes, in no particular order.
    pub fn sizes(&self) -> impl Iterator<Item = (Fingerprint, &Sizes)> {
        self.sizes.iter().filter_map(|(&print, sizes)| Some((print, sizes.as_ref()?)))
    }

    pub fn get(&self, print: Fingerprint) -> Option<&Sizes> {
        self.sizes.get(&print)?.as_ref()
    }

    /// Returns n, where 2^-n is the share of hash space whose contents are compressed.
    pub fn share_log2(&self) -> u32 {
        self.share_log2
    }

    fn keeps(&self, print: Fingerprint) -> bool {
        in_share(print, self.share_log2)
    }
}
