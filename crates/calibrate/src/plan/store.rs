//! The loads of the store that the storage is measured for, each alone.

use blockstone_base::load::{LoadSpec, Op};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;
use blockstone_stores::{Load, Stream};

use super::{Facts, FileRole, Planner, Step, append_span, budget, seed_of};
use crate::settings::{Settings, Thoroughness};

/// Returns a step for each load of the store, without those that this target cannot have: a commit
/// needs a file of its own, and a sequential load two blocks.
pub fn streams(settings: &Settings, facts: Facts) -> Vec<Step> {
    let store = settings.options.store.as_deref().and_then(blockstone_stores::find);
    let Some(Load::Streams(streams)) = store.map(|store| &store.load) else { return Vec::new() };
    let planner = Planner { settings, facts, budget: budget(settings.options.thoroughness()) };
    let has_room = |stream: &&Stream| match stream.op {
        Op::Commit => facts.has_log,
        _ => facts.span.get() >= 2 * stream.block.get() * u64::from(stream.depth),
    };
    streams.iter().filter(has_room).map(|stream| planner.stream(stream)).collect()
}

impl Planner<'_> {
    fn stream(&self, stream: &Stream) -> Step {
        let label = format!("store/{}", stream.name);
        let is_commit = stream.op == Op::Commit;
        let engine = if !is_commit && self.facts.uring { "uring" } else { "psync" };
        let reserved = stream.reserved.map_or(0, Bytes::get);
        let grows = if reserved > 0 { reserved } else { append_span(self.facts.span) };
        let load = LoadSpec {
            op: stream.op,
            access: stream.access(),
            block_bytes: stream.block.get(),
            sync: stream.sync,
            flush_alone: stream.flush_alone,
            direct: self.facts.direct && !is_commit,
            span_bytes: if is_commit { grows } else { self.facts.span.get() },
            seed: seed_of(self.settings.seed, &label, 0),
            ..self.random_read(engine, stream.depth)
        };
        let file = if is_commit { FileRole::Buffered(reserved) } else { FileRole::Main };
        let step = Step::new(label, Group::Store, load, self.stream_window());
        Step { file, warm_up: self.budget.warm_up, ..step }
    }

    /// Returns the time for each load, all its windows together: enough for the 99th percentile of
    /// writes that take 10 ms.
    fn stream_window(&self) -> Nanos {
        Nanos::millis(match self.settings.options.thoroughness() {
            Thoroughness::Brief => 500,
            Thoroughness::Quick => 8_000,
            Thoroughness::Standard => 15_000,
            Thoroughness::Full => 30_000,
        })
    }
}
