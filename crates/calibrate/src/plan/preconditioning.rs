//! Writes that bring flash to its steady state before it is measured, following SNIA's Solid State
//! Storage Performance Test Specification (version 2.0.2): the whole span twice in order with 128
//! KiB (workload-independent preconditioning), then rounds of the load until five of them are
//! steady. The second pass is the layout.

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;

use super::{Facts, Planner, Step, budget, layout, seed_of};
use crate::settings::Settings;

/// Rounds after which the specification's test ends, settled or not.
pub const ROUNDS_MAX: u32 = 25;
/// Block size of both passes.
const BLOCK: Bytes = Bytes::kib(128);
/// Queue depth that keeps as many bytes in flight as the large blocks of a layout.
const DEPTH: u32 = 32;

/// Returns the load of either pass. Blocks larger than those of the specification are written
/// whole, because their stamps would not be whole otherwise.
pub fn pass(settings: &Settings, facts: Facts) -> LoadSpec {
    let load = layout(settings, facts.span, facts.direct, facts.uring);
    let depth_per_worker = if facts.uring { DEPTH } else { 1 };
    LoadSpec {
        block_bytes: BLOCK.max(settings.options.block_bytes).get(),
        depth_per_worker,
        ..load
    }
}

/// Returns the first pass.
pub fn fill(settings: &Settings, facts: Facts, limit: Nanos) -> Step {
    let load = pass(settings, facts);
    Step::new("precondition/fill".to_owned(), Group::Precondition, load, limit)
}

/// Returns a round of random writes over the whole span.
pub fn round(settings: &Settings, facts: Facts, repeat: u32, length: Nanos) -> Step {
    let planner = Planner { settings, facts, budget: budget(settings.options.thoroughness()) };
    let label = "precondition/round";
    let engine = if facts.uring { "uring" } else { "psync" };
    let load = LoadSpec {
        op: Op::Write,
        access: Access::Random,
        seed: seed_of(settings.seed, label, repeat),
        ..planner.random_read(engine, DEPTH)
    };
    Step { repeat, ..Step::new(label.to_owned(), Group::Precondition, load, length) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Thoroughness;
    use crate::plan::LARGE;
    use crate::plan::tests::{FACTS, settings};

    #[test]
    fn preconditioning_writes_as_the_specification_has_it() {
        let settings = settings(Thoroughness::Quick);
        let fill = fill(&settings, FACTS, Nanos::millis(1));
        assert!(fill.is_pass());
        assert_eq!((fill.load.block_bytes, fill.load.span_bytes), (128 << 10, 4 << 30));
        let mut large = settings.clone();
        large.options.block_bytes = LARGE;
        assert_eq!(pass(&large, FACTS).block_bytes, LARGE.get(), "a stamp is written whole");
        let rounds = [0, 1].map(|n| round(&settings, FACTS, n, Nanos::millis(1)));
        assert!(rounds.iter().all(|round| !round.is_pass() && round.load.op == Op::Write));
        assert_eq!(rounds[0].load.block_bytes, settings.options.block_bytes.get());
        assert_ne!(rounds[0].load.seed, rounds[1].load.seed, "each visits other blocks");
    }
}
