//! The step that writes in order through the page cache, and past it.

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;

use super::{FileRole, LARGE, LOG_SIZE, Planner, Step};

/// Rounds at most.
pub const ROUNDS: u64 = 8;
/// No round begins later.
const LIMIT: Nanos = Nanos::millis(5_000);
/// How long each way may take in a round, at the rate of the layout.
const EACH_S: f64 = 0.4;

impl Planner<'_> {
    /// Writes of the redo log, which is laid out: neither way has to allocate.
    pub(super) fn buffered_writes(&self) -> Option<Step> {
        let load = LoadSpec {
            op: Op::Write,
            access: Access::Sequential,
            block_bytes: LARGE.get(),
            span_bytes: LOG_SIZE.get(),
            ..self.random_read("psync", 1)
        };
        let step = Step::new("buffered-write".to_owned(), Group::BufferedWrite, load, LIMIT);
        self.settings.buffered_writes.then_some(Step { file: FileRole::Log, ..step })
    }
}

/// The step with as much in a round as storage can write in the time, which wrote the layout at
/// this rate.
pub fn sized(step: &Step, bytes_per_s: f64) -> Step {
    let most = LOG_SIZE.get() as f64;
    let bytes = (bytes_per_s * EACH_S).clamp(Bytes::mib(4).get() as f64, most) as u64;
    let load = LoadSpec { span_bytes: bytes / LARGE.get() * LARGE.get(), ..step.load.clone() };
    Step { load, ..step.clone() }
}
