//! The description of a load: what is sent, where to, and when it is done.

use std::sync::Arc;

use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};

use crate::content::{Content, NoContent};
use crate::engine::{EngineError, Medium};
use crate::stripes::STRIPE_BYTES;

#[derive(Clone, Debug)]
pub struct Load {
    /// The operations to send. `span_bytes` is visited in whole blocks; a remainder at its end is
    /// not visited.
    pub spec: LoadSpec,
    pub medium: Medium,
    pub content: Arc<dyn Content>,
    pub length: Length,
    /// Sequence number of the first write; each write of the load gets its own, ascending.
    pub first_sequence: u64,
    /// One read in this many has its checksum verified; every read's stamp is verified. Not zero.
    pub checksum_every: u64,
    /// Time on the engine's clock from which histogram seconds are counted.
    pub origin_ns: u64,
    /// Keep the latencies of the window in pages of 50 ms instead of by second.
    pub paged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Runs until stopped. A sequential worker starts its part of the span over. An append still
    /// ends at the end of the span: continuing would overwrite, not append.
    Endless,
    /// Ends when every block of the span has been visited once (sequential or append).
    Once,
    /// Ends when every worker has performed this many operations, including failed ones.
    Operations(u64),
}

impl Load {
    /// Creates an endless load without content; set the other fields as needed.
    pub fn new(spec: LoadSpec, medium: Medium) -> Self {
        Self {
            spec,
            medium,
            content: Arc::new(NoContent),
            length: Length::Endless,
            first_sequence: 1,
            checksum_every: 64,
            origin_ns: 0,
            paged: false,
        }
    }

    /// Refuses contradictions, so the worker loop need not check for them. `depth_max` is the
    /// number of requests the engine can have in flight per worker.
    pub(crate) fn check(&self, depth_max: u32) -> Result<(), EngineError> {
        let spec = &self.spec;
        let problems = [
            (spec.workers == 0, "the load has no workers", "use at least one worker"),
            (
                spec.depth_per_worker == 0 || spec.depth_per_worker > depth_max,
                "the engine does not support this queue depth",
                "psync has a depth of 1: use more workers; the others go up to 4096",
            ),
            (
                spec.block_bytes == 0 || spec.block_bytes > 1 << 30,
                "a block must be 1 byte to 1 GiB",
                "choose another block size",
            ),
            (
                spec.block_bytes.saturating_mul(u64::from(spec.workers)) > spec.span_bytes,
                "the span is shorter than one block for each worker",
                "use a larger span, a smaller block or fewer workers",
            ),
            (
                (spec.op == Op::Commit) != spec.sync.is_some(),
                "commits need a sync method, and nothing else may have one",
                "set the sync method for commits only",
            ),
            (
                spec.flush_alone && !has_flush_alone(spec),
                "a flush is timed alone only where it follows a write, in a closed loop",
                "use fdatasync or fsync, and no rate",
            ),
            (
                (spec.op == Op::Mixed) != spec.read_pct.is_some_and(|pct| (1..100).contains(&pct)),
                "mixed operations need a share of reads of 1 to 99, nothing else may have one",
                "set the share of reads for mixed operations only",
            ),
            (
                spec.access == Access::Random && self.length == Length::Once,
                "random access does not visit every block once",
                "use sequential access, or a number of operations",
            ),
            (
                spec.access == Access::Append && spec.op == Op::Read,
                "a read cannot append",
                "use sequential access",
            ),
            (
                matches!(self.medium, Medium::Files(_))
                    && spec.block_bytes > 0
                    && !STRIPE_BYTES.is_multiple_of(spec.block_bytes),
                "a block of several files does not fit their turns of 1 MiB",
                "use a block size that divides 1 MiB",
            ),
            (
                self.checksum_every == 0,
                "one read in zero cannot be verified",
                "use 1 to verify every read",
            ),
            (
                matches!(spec.pacing, Pacing::Open { rate_per_s, .. }
                    if !(rate_per_s.is_finite() && rate_per_s > 0.0)),
                "the rate is not a positive number",
                "use a rate above zero",
            ),
        ];
        match problems.into_iter().find(|(wrong, ..)| *wrong) {
            None => Ok(()),
            Some((_, problem, hint)) => Err(EngineError::Contradiction {
                medium: self.medium.name(),
                problem: problem.to_owned(),
                hint,
            }),
        }
    }
}

/// Whether a flush follows each write, and no commit waits for an intended time: that wait would
/// be lost.
fn has_flush_alone(spec: &LoadSpec) -> bool {
    let is_apart = matches!(spec.sync, Some(SyncMethod::Fdatasync | SyncMethod::Fsync));
    is_apart && spec.pacing == Pacing::Closed
}
