//! The rules for recordings: one file each, and a line in [`registry`] for each kind of recording
//! that the rule judges.

mod above_calibration;
pub mod above_link;
mod burst;
mod cache_suspected;
mod clock_pause;
mod clock_step;
mod cloud_volume;
mod common_window;
mod compressible;
#[cfg(test)]
mod contract;
mod corrupt;
mod db_time_remainder;
mod degraded;
mod device_locality;
mod double_caching;
mod drive_throttled;
mod evidence;
mod failed_session;
mod file_may_fit_cache;
mod generator_bound;
mod hole;
mod import_adds_up;
mod io_errors;
mod late_start;
mod link_trained_down;
mod littles_law;
pub mod lying_flush;
mod maintenance;
pub mod memory_backed;
pub mod memory_test;
mod mostly_cached;
mod multipath_leg;
mod network_file_system;
mod noisy_neighbour;
pub mod not_direct;
mod not_preconditioned;
mod plan_changed;
mod processor_frequency;
mod raid_degraded;
mod rank_condemned;
mod rank_outlier;
mod rank_warned;
pub mod registry;
mod run_queue_delay;
mod scale;
mod shingled;
mod silent_writes;
mod throttled;
mod unsafe_commits;
mod unsteady;
mod unwritten;
mod work_unit;

pub(crate) use blockstone_base::units::format_ns as time;
pub(crate) use blockstone_base::units::{megabytes, percent};
use blockstone_base::verdict::{Verdict, Weight};
use blockstone_record::manifest::Figure;

use crate::findings::Point;
use crate::run::FIGURES;
pub use evidence::{CalibrationRule, Case, Observed, RunCase, RunRule, WatchRule};
use evidence::{
    beyond_sight, direct_elsewhere, file_system, in_memory, is_served, kernel_version, virtualised,
};

/// Marks the points that a verdict warns of and the figures and points that it condemns, and
/// returns the verdicts.
pub(crate) fn mark(
    judged: Vec<(Verdict, Vec<String>)>,
    summary: &mut [(String, Figure)],
    points: &mut [Point],
) -> Vec<Verdict> {
    for (verdict, places) in judged.iter().filter(|(verdict, _)| verdict.failed()) {
        for point in points.iter_mut().filter(|point| places.contains(&point.label)) {
            let rules = match verdict.weight {
                Weight::Condemns => &mut point.condemned_by,
                Weight::Warns => &mut point.warned_by,
            };
            rules.push(verdict.rule.clone());
        }
        let concerned = summary
            .iter_mut()
            .filter(|(name, _)| verdict.condemns() && verdict.concerns.contains(name));
        for (_, figure) in concerned {
            figure.condemned_by.push(verdict.rule.clone());
        }
    }
    judged.into_iter().map(|(verdict, _)| verdict).collect()
}

fn all_figures() -> Vec<String> {
    FIGURES.map(str::to_owned).into()
}

fn read_figures() -> Vec<String> {
    // Figures of processes are the account of the kernel, not that of the database.
    let elsewhere = |name: &str| name.starts_with("logical") || name.starts_with("process");
    let about = |name: &&str| name.contains("read") && !elsewhere(name);
    FIGURES.iter().filter(|name| about(name)).map(|name| (*name).to_owned()).collect()
}

fn commit_figures() -> Vec<String> {
    FIGURES.iter().filter(|name| name.contains("commit")).map(|name| (*name).to_owned()).collect()
}

fn labels<'a>(points: impl IntoIterator<Item = &'a Point>) -> Vec<String> {
    points.into_iter().map(|point| point.label.clone()).collect()
}
