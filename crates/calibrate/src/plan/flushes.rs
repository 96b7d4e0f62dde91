//! The step that measures flush time by the amount written before the flush.

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;

use super::{Facts, FileRole, LARGE, LOG_SIZE, Planner, Step};

/// Amounts written before a flush.
pub const SIZES: [Bytes; 4] = [Bytes(0), Bytes::kib(64), Bytes::mib(1), Bytes::mib(8)];
/// Turns of each size: enough for the interval of a slope, and on fast storage the time would allow
/// thousands.
pub const ROUNDS: u64 = 25;
/// Longest time for all rounds.
const LIMIT: Nanos = Nanos::millis(1_200);

impl Planner<'_> {
    /// Returns flushes of the redo log, or of a device in place of its blocks. Through the page
    /// cache they would flush the page cache, and each of several targets has its own cache. The
    /// step's load describes the writes; the flushes between them have their own sizes.
    pub(super) fn flushes(&self) -> Option<Step> {
        let Facts { writable, has_log, direct, span, targets, .. } = self.facts;
        let (file, span, block) = if has_log {
            (FileRole::Log, LOG_SIZE, Bytes(1))
        } else {
            (FileRole::Main, span, self.settings.options.block_bytes)
        };
        let load = LoadSpec {
            op: Op::Write,
            access: Access::Sequential,
            block_bytes: LARGE.get(),
            span_bytes: span.get(),
            ..self.random_read("psync", 1)
        };
        let measured = writable
            && direct
            && targets == 1
            && self.choose([false, false, true])
            && fits(span, block);
        let step = Step::new("flush-slope".to_owned(), Group::FlushSlope, load, LIMIT);
        measured.then_some(Step { file, ..step })
    }
}

/// Returns whether a file of `span` with blocks of `block` can be written in these sizes: writing
/// part of a block would break its stamp.
fn fits(span: Bytes, block: Bytes) -> bool {
    let holds = |size: &Bytes| *size <= span && size.get().is_multiple_of(block.get());
    SIZES.iter().all(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_fit_the_file_and_its_blocks() {
        assert!(fits(Bytes::mib(32), Bytes::kib(64)));
        assert!(!fits(Bytes::mib(4), Bytes::kib(8)), "8 MiB have no room");
        assert!(!fits(Bytes::mib(32), Bytes::mib(1)), "64 KiB would break a block");
    }
}
