//! The request that each operation of a worker starts with, and the request that follows it.

use blockstone_base::load::{LoadSpec, Op, SyncMethod};
use blockstone_base::rng;

use crate::request::RequestOp;

/// 2⁶⁴ ÷ golden ratio, to the nearest odd number.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Operations {
    first: RequestOp,
    /// Request that follows each operation before it counts as completed.
    pub then: Option<RequestOp>,
    mix: Option<Mix>,
}

/// Mix of reads and writes. Multiples of the golden ratio are equidistributed (H. Weyl, 1916), so
/// any run of operations has its share of reads to about one operation, without a period that a
/// device could fall into step with. Workers begin at different places.
#[derive(Clone, Copy, Debug)]
struct Mix {
    read_pct: u32,
    begin: u64,
}

impl Operations {
    /// Returns the operations of worker `index`.
    pub fn new(spec: &LoadSpec, index: u32) -> Self {
        let (first, then) = match (spec.op, spec.sync) {
            (Op::Read, _) => (RequestOp::Read, None),
            (Op::Commit, Some(SyncMethod::Dsync)) => (RequestOp::WriteDsync, None),
            (Op::Commit, Some(SyncMethod::Fdatasync)) => {
                (RequestOp::Write, Some(RequestOp::Fdatasync))
            }
            (Op::Commit, Some(SyncMethod::Fsync)) => (RequestOp::Write, Some(RequestOp::Fsync)),
            (Op::Write | Op::Commit | Op::Mixed, _) => (RequestOp::Write, None),
        };
        let begin = rng::mix(spec.seed ^ u64::from(index));
        Self { first, then, mix: spec.read_pct.map(|read_pct| Mix { read_pct, begin }) }
    }

    /// Returns the first request of the operation with this number.
    #[inline]
    pub fn first(&self, number: u64) -> RequestOp {
        match self.mix {
            Some(mix) if mix.reads(number) => RequestOp::Read,
            _ => self.first,
        }
    }
}

impl Mix {
    #[inline]
    fn reads(self, number: u64) -> bool {
        let turn = self.begin.wrapping_add(number.wrapping_mul(GOLDEN));
        (u128::from(turn) * 100) >> 64 < u128::from(self.read_pct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_operations_has_its_share_of_reads() {
        for read_pct in [1, 30, 50, 70, 99] {
            for seed in 0..20 {
                let mix = Mix { read_pct, begin: rng::mix(seed) };
                for begin in [0, 7, 1_000] {
                    let reads = (begin..begin + 200).filter(|&number| mix.reads(number)).count();
                    let off = reads.abs_diff(2 * read_pct as usize);
                    assert!(off <= 4, "{read_pct} %, seed {seed}: {reads} reads of 200");
                }
            }
        }
    }
}
