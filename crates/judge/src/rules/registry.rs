//! All rules, in the order in which verdicts are listed: first what makes a number mean something
//! else, then what makes it weaker.

use super::Rule;

/// Every rule, one line each.
pub const ALL: &[Rule] = &[
    super::memory_test::RULE,
    super::hole::RULE,
    super::unwritten::RULE,
    super::not_direct::RULE,
    super::above_link::RULE,
    super::lying_flush::RULE,
    super::compressible::RULE,
    super::corrupt::RULE,
    super::io_errors::RULE,
    super::throttled::RULE,
    super::burst::RULE,
    super::unsteady::RULE,
    super::noisy_neighbour::RULE,
    super::run_queue_delay::RULE,
    super::generator_bound::RULE,
    super::cache_suspected::RULE,
];
