//! The step that writes sequentially through the page cache, and past it.

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;

use super::{FileRole, LARGE, LOG_SIZE, Planner, Step};

/// Maximum number of rounds.
pub const ROUNDS: u64 = 8;
/// No round starts later than this.
const LIMIT: Nanos = Nanos::millis(5_000);
/// Seconds that each way may take in a round, at the rate of the layout.
const EACH_S: f64 = 0.4;

impl Planner<'_> {
    /// Returns the step that writes the redo log, which is already laid out: neither way has to
    /// allocate.
    pub(super) fn buffered_writes(&self) -> Option<Step> {
        let load = LoadSpec {
            op: Op::Write,
            access: Access::Sequential,
            block_bytes: LARGE.get(),
            span_bytes: LOG_SIZE.get(),
            ..self.random_read("psync", 1)
        };
        let step = Step::new("buffered-write".to_owned(), Group::BufferedWrite, load, LIMIT);
        self.settings.options.buffered_writes.then_some(Step { file: FileRole::Log, ..step })
    }
}

/// Returns the step with as many bytes in a round as the storage can write in the time, given its
/// rate in the layout.
pub fn sized(step: &Step, bytes_per_s: f64) -> Step {
    let most = LOG_SIZE.get() as f64;
    let bytes = (bytes_per_s * EACH_S).clamp(Bytes::mib(4).get() as f64, most) as u64;
    let load = LoadSpec { span_bytes: bytes / LARGE.get() * LARGE.get(), ..step.load.clone() };
    Step { load, ..step.clone() }
}
