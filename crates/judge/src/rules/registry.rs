//! All rules, in the order in which the verdicts on any recording are listed: first those that
//! change what a number means, then those that weaken it.

use super::{CalibrationRule, RunRule, WatchRule};

pub const CALIBRATION: &[CalibrationRule] = &[
    super::memory_test::CALIBRATION,
    super::memory_backed::CALIBRATION,
    super::hole::CALIBRATION,
    super::unwritten::CALIBRATION,
    super::compressible::CALIBRATION,
    super::not_direct::CALIBRATION,
    super::above_link::CALIBRATION,
    super::lying_flush::CALIBRATION,
    super::corrupt::CALIBRATION,
    super::io_errors::CALIBRATION,
    super::throttled::CALIBRATION,
    super::cloud_volume::CALIBRATION,
    super::burst::CALIBRATION,
    super::not_preconditioned::CALIBRATION,
    super::unsteady::CALIBRATION,
    super::noisy_neighbour::CALIBRATION,
    super::run_queue_delay::CALIBRATION,
    super::processor_frequency::CALIBRATION,
    super::device_locality::CALIBRATION,
    super::generator_bound::CALIBRATION,
    super::late_start::CALIBRATION,
    super::clock_pause::CALIBRATION,
    super::clock_step::CALIBRATION,
    super::cache_suspected::CALIBRATION,
    super::file_may_fit_cache::CALIBRATION,
    super::network_file_system::CALIBRATION,
    super::raid_degraded::CALIBRATION,
    super::multipath_leg::CALIBRATION,
    super::link_trained_down::CALIBRATION,
    super::shingled::CALIBRATION,
    super::drive_throttled::CALIBRATION,
];

pub const RUN: &[RunRule] = &[
    super::failed_session::RUN,
    super::work_unit::RUN,
    super::plan_changed::RUN,
    super::memory_test::RUN,
    super::memory_backed::RUN,
    super::unsafe_commits::RUN,
    super::hole::RUN,
    super::unwritten::RUN,
    super::compressible::RUN,
    super::not_direct::RUN,
    super::above_link::RUN,
    super::lying_flush::RUN,
    super::above_calibration::RUN,
    super::db_time_remainder::RUN,
    super::littles_law::RUN,
    super::mostly_cached::RUN,
    super::silent_writes::RUN,
    super::maintenance::RUN,
    super::throttled::RUN,
    super::cloud_volume::RUN,
    super::degraded::RUN,
    super::burst::RUN,
    super::unsteady::RUN,
    super::noisy_neighbour::RUN,
    super::double_caching::RUN,
    super::run_queue_delay::RUN,
    super::generator_bound::RUN,
    super::late_start::RUN,
    super::clock_step::RUN,
    super::cache_suspected::RUN,
    super::network_file_system::RUN,
    super::raid_degraded::RUN,
    super::multipath_leg::RUN,
    super::link_trained_down::RUN,
    super::shingled::RUN,
    super::drive_throttled::RUN,
];

/// Rules for what was merged from the recordings of several ranks, in place of all others: those
/// judged the evidence of each rank, and a sum must not be held against the limit of one.
pub const MERGED_CALIBRATION: &[CalibrationRule] = &[
    super::common_window::CALIBRATION,
    super::rank_condemned::CALIBRATION,
    super::rank_warned::CALIBRATION,
    super::rank_outlier::CALIBRATION,
];
pub const MERGED_RUN: &[RunRule] = &[
    super::common_window::RUN,
    super::rank_condemned::RUN,
    super::rank_warned::RUN,
    super::rank_outlier::RUN,
];

/// Rules for noise, which has one point: those that do not compare points with each other.
pub const NOISE: &[CalibrationRule] = &[
    super::memory_test::CALIBRATION,
    super::memory_backed::CALIBRATION,
    super::above_link::CALIBRATION,
    super::io_errors::CALIBRATION,
    super::throttled::CALIBRATION,
    super::cloud_volume::CALIBRATION,
    super::network_file_system::CALIBRATION,
    super::raid_degraded::CALIBRATION,
    super::multipath_leg::CALIBRATION,
    super::link_trained_down::CALIBRATION,
    super::shingled::CALIBRATION,
    super::drive_throttled::CALIBRATION,
];

pub const WATCH: &[WatchRule] = &[super::import_adds_up::WATCH, super::double_caching::WATCH];

/// Rules whose failure shows a property of the storage or its variation. A figure that one of them
/// warns of may be called faster or slower: under a cap a volume *is* slower. What another rule
/// warns of may be due to other programs, the processors or the measurement itself. `unsteady` is
/// listed because intervals contain that variation already.
const OF_STORAGE: &[&str] = &[
    super::burst::CALIBRATION.about.id,
    super::cloud_volume::CALIBRATION.about.id,
    super::degraded::RUN.about.id,
    super::drive_throttled::CALIBRATION.about.id,
    super::link_trained_down::CALIBRATION.about.id,
    super::multipath_leg::CALIBRATION.about.id,
    super::network_file_system::CALIBRATION.about.id,
    super::raid_degraded::CALIBRATION.about.id,
    super::shingled::CALIBRATION.about.id,
    super::throttled::CALIBRATION.about.id,
    super::unsteady::CALIBRATION.about.id,
];

/// Returns whether a difference in a figure that the rule with this id warns of is due to the
/// storage.
pub fn is_of_storage(id: &str) -> bool {
    OF_STORAGE.contains(&id)
}
