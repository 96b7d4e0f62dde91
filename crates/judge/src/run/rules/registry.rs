//! All rules of a run, in the order in which verdicts are listed: first what makes a number mean
//! something else, then what makes it weaker.

use super::RunRule;

/// Every rule, one line each.
pub const ALL: &[RunRule] = &[
    super::failed_session::RULE,
    super::work_unit::RULE,
    super::plan_changed::RULE,
    super::memory_test::RULE,
    super::unsafe_commits::RULE,
    super::hole::RULE,
    super::unwritten::RULE,
    super::compressible::RULE,
    super::not_direct::RULE,
    super::above_calibration::RULE,
    super::db_time_remainder::RULE,
    super::littles_law::RULE,
    super::mostly_cached::RULE,
    super::silent_writes::RULE,
    super::maintenance::RULE,
    super::cap_reached::RULE,
    super::degraded::RULE,
    super::unsteady::RULE,
    super::noisy_neighbour::RULE,
    super::run_queue_delay::RULE,
];
