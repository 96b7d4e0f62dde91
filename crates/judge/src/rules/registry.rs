//! All rules, in the order in which the verdicts on any recording are listed: first what makes a
//! number mean something else, then what makes it weaker.

use super::Rule;

pub const ALL: &[Rule] = &[
    super::failed_session::RULE,
    super::work_unit::RULE,
    super::plan_changed::RULE,
    super::memory_test::RULE,
    super::unsafe_commits::RULE,
    super::hole::RULE,
    super::unwritten::RULE,
    super::compressible::RULE,
    super::not_direct::RULE,
    super::above_link::RULE,
    super::lying_flush::RULE,
    super::corrupt::RULE,
    super::io_errors::RULE,
    super::above_calibration::RULE,
    super::db_time_remainder::RULE,
    super::littles_law::RULE,
    super::mostly_cached::RULE,
    super::silent_writes::RULE,
    super::maintenance::RULE,
    super::throttled::RULE,
    super::degraded::RULE,
    super::burst::RULE,
    super::unsteady::RULE,
    super::noisy_neighbour::RULE,
    super::run_queue_delay::RULE,
    super::generator_bound::RULE,
    super::late_start::RULE,
    super::cache_suspected::RULE,
    super::never_used_blocks::RULE,
    super::compressible_filler::RULE,
    super::block_sampling::RULE,
    super::shifted_copy::RULE,
];
