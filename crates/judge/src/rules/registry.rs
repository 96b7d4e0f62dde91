//! All rules, in the order in which the verdicts on any recording are listed: first what makes a
//! number mean something else, then what makes it weaker.

use super::Rule;

/// Rules whose failure tells what the storage is or how it varies. A figure that one of them warns
/// of may be called faster or slower: under a cap a volume *is* slower. What another rule warns of
/// may come from other programs, the processors or the measurement itself. `unsteady` is here
/// because intervals contain that variation already.
const OF_STORAGE: &[&str] = &[
    super::burst::RULE.id,
    super::cloud_volume::RULE.id,
    super::degraded::RULE.id,
    super::link_trained_down::RULE.id,
    super::multipath_leg::RULE.id,
    super::network_file_system::RULE.id,
    super::raid_degraded::RULE.id,
    super::throttled::RULE.id,
    super::unsteady::RULE.id,
];

/// Whether a difference in a figure that the rule with this id warns of is one of the storage.
pub fn is_of_storage(id: &str) -> bool {
    OF_STORAGE.contains(&id)
}

pub const ALL: &[Rule] = &[
    super::failed_session::RULE,
    super::work_unit::RULE,
    super::plan_changed::RULE,
    super::memory_test::RULE,
    super::memory_backed::RULE,
    super::unsafe_commits::RULE,
    super::hole::RULE,
    super::unwritten::RULE,
    super::compressible::RULE,
    super::not_direct::RULE,
    super::flags_contradict_settings::RULE,
    super::alignment_refused::RULE,
    super::cached_metadata::RULE,
    super::incoherent::RULE,
    super::writers_wait::RULE,
    super::appends_lost::RULE,
    super::above_link::RULE,
    super::wrong_unit::RULE,
    super::lying_flush::RULE,
    super::lost_after_cut::RULE,
    super::corrupt::RULE,
    super::io_errors::RULE,
    super::above_calibration::RULE,
    super::db_time_remainder::RULE,
    super::littles_law::RULE,
    super::mostly_cached::RULE,
    super::silent_writes::RULE,
    super::maintenance::RULE,
    super::throttled::RULE,
    super::cloud_volume::RULE,
    super::degraded::RULE,
    super::burst::RULE,
    super::not_preconditioned::RULE,
    super::import_adds_up::RULE,
    super::source_saturated::RULE,
    super::prediction_held::RULE,
    super::unsteady::RULE,
    super::noisy_neighbour::RULE,
    super::double_caching::RULE,
    super::run_queue_delay::RULE,
    super::processor_frequency::RULE,
    super::device_locality::RULE,
    super::generator_bound::RULE,
    super::late_start::RULE,
    super::clock_pause::RULE,
    super::clock_step::RULE,
    super::cache_suspected::RULE,
    super::cache_displaced::RULE,
    super::trace_truncated::RULE,
    super::unaccounted_time::RULE,
    super::file_may_fit_cache::RULE,
    super::network_file_system::RULE,
    super::raid_degraded::RULE,
    super::multipath_leg::RULE,
    super::link_trained_down::RULE,
    super::never_used_blocks::RULE,
    super::compressible_filler::RULE,
    super::block_sampling::RULE,
    super::shifted_copy::RULE,
    super::orphans::RULE,
    super::ratio_misleading::RULE,
    super::not_offloaded::RULE,
    super::sent_back::RULE,
    super::wire_disagrees::RULE,
    super::bound_by_host::RULE,
];
