//! The step that times flushes by what was written before them.

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;

use super::{Facts, FileRole, LARGE, LOG_SIZE, Planner, Step};

/// What is written before a flush.
pub const SIZES: [Bytes; 4] = [Bytes(0), Bytes::kib(64), Bytes::mib(1), Bytes::mib(8)];
/// How often each size takes its turn: enough for the interval of a slope, and on fast storage the
/// time would allow thousands.
pub const ROUNDS: u64 = 25;
/// The longest that all may take.
const LIMIT: Nanos = Nanos::millis(1_200);

impl Planner<'_> {
    /// Flushes of the redo log, or of a device where it has blocks. Through the page cache they
    /// would be those of the page cache, and each of several targets has a cache of its own. The
    /// step's load is what is written; the flushes between have sizes of their own.
    pub(super) fn flushes(&self) -> Option<Step> {
        let Facts { writable, has_log, direct, span, targets, .. } = self.facts;
        let (file, span, block) = if has_log {
            (FileRole::Log, LOG_SIZE, Bytes(1))
        } else {
            (FileRole::Main, span, self.settings.block)
        };
        let load = LoadSpec {
            op: Op::Write,
            access: Access::Sequential,
            block_bytes: LARGE.get(),
            span_bytes: span.get(),
            ..self.random_read("psync", 1)
        };
        let measured = writable && direct && targets == 1 && !self.quick() && fits(span, block);
        let step = Step::new("flush-slope".to_owned(), Group::FlushSlope, load, LIMIT);
        measured.then_some(Step { file, ..step })
    }
}

/// Whether a file of `span` with blocks of `block` can be written in these sizes: a write of a part
/// of a block would break its stamp.
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
