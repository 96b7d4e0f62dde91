//! The window that all ranks have in common, by phase.

use blockstone_base::load::{LoadSpec, Pacing};
use blockstone_record::manifest::{Group, Phase, Stop};

use crate::source::Source;

/// Longest interval between two instants of the merged series.
const TICK_NS: u64 = 100_000_000;
/// Most intervals of a window.
const MOST: u64 = 3_600;

/// A phase that all ranks went through.
pub struct Common {
    /// As the first rank has it, on the axis of the merged recording.
    pub phase: Phase,
    /// Index of the phase in each source.
    pub indices: Vec<usize>,
    /// Window of each source on the merged axis.
    pub windows: Vec<(u64, u64)>,
    /// Share of its own window that the common window covers, by source.
    pub overlaps: Vec<f64>,
    /// Instants of the merged series: the edges of the window, and those between.
    pub instants: Vec<u64>,
}

impl Common {
    pub fn window_ns(&self) -> u64 {
        self.phase.window_end_ns - self.phase.window_start_ns
    }

    /// Returns the source whose window ends first, and the one whose window begins last.
    pub fn first_and_last(&self) -> (usize, usize) {
        let windows = || self.windows.iter().enumerate();
        let first = windows().min_by_key(|(_, window)| window.1).map_or(0, |(at, _)| at);
        let last = windows().max_by_key(|(_, window)| window.0).map_or(0, |(at, _)| at);
        (first, last)
    }

    /// Returns the time between the end of the first window and the beginning of the last.
    pub fn apart_ns(&self) -> u64 {
        let (first, last) = self.first_and_last();
        self.windows[last].0.saturating_sub(self.windows[first].1)
    }

    pub fn overlap(&self) -> f64 {
        self.overlaps.iter().copied().fold(1.0, f64::min)
    }
}

/// Describes the phases of the first source that another one lacks.
pub fn lacking(sources: &[Source], phases: &[Common]) -> Vec<String> {
    let Some(first) = sources.first() else { return Vec::new() };
    let known = |label: &str| phases.iter().any(|common| common.phase.label == label);
    let lacking = first.windows().filter(|(_, phase)| phase.group != Group::Overhead);
    let lacking = lacking.filter(|(_, phase)| !known(&phase.label));
    lacking.map(|(_, phase)| format!("{}: not measured by all ranks", phase.label)).collect()
}

/// Returns the phases with a window in every source, in the order of the first.
pub fn phases(sources: &[Source]) -> Vec<Common> {
    let Some((first, others)) = sources.split_first() else { return Vec::new() };
    let same =
        |a: &Phase, b: &Phase| (&a.label, a.group, a.repeat) == (&b.label, b.group, b.repeat);
    let of = |(index, phase): (usize, &Phase)| {
        let mut indices = vec![index];
        for other in others {
            indices.push(other.windows().find(|(_, it)| same(it, phase))?.0);
        }
        Some(common(sources, indices))
    };
    first.windows().filter(|(_, phase)| phase.group != Group::Overhead).filter_map(of).collect()
}

/// Intersects the windows. A clock that may be wrong by its bound moves each edge of a window by
/// as much, so both edges of the common window are that much further inside.
fn common(sources: &[Source], indices: Vec<usize>) -> Common {
    let of = |(source, index): (&Source, &usize)| {
        let phase = &source.manifest.phases[*index];
        let map = |t_ns: u64| t_ns.saturating_add(source.shift_ns);
        (map(phase.window_start_ns), map(phase.window_end_ns))
    };
    let windows: Vec<(u64, u64)> = sources.iter().zip(&indices).map(of).collect();
    let bounds = || sources.iter().map(|source| source.clock_bound_ns.unwrap_or(0));
    let from = windows.iter().zip(bounds()).map(|(window, bound)| window.0.saturating_add(bound));
    let to = windows.iter().zip(bounds()).map(|(window, bound)| window.1.saturating_sub(bound));
    let from = from.max().unwrap_or(0);
    let to = to.min().unwrap_or(0).max(from);
    let share = |(start, end): &(u64, u64)| (to - from) as f64 / (end - start).max(1) as f64;
    let overlaps = windows.iter().map(share).collect();
    let phases = || sources.iter().zip(&indices).map(|(it, at)| (it, &it.manifest.phases[*at]));
    let model = &sources[0].manifest.phases[indices[0]];
    let mut phase = Phase {
        start_ns: phases().map(|(it, phase)| phase.start_ns + it.shift_ns).min().unwrap_or(from),
        window_start_ns: from,
        window_end_ns: to,
        end_ns: phases().map(|(it, phase)| phase.end_ns + it.shift_ns).max().unwrap_or(to),
        settled: phases().map(|(_, phase)| phase.settled).reduce(both).flatten(),
        first_error: phases().find_map(|(_, phase)| phase.first_error.clone()),
        processors: None,
        ..model.clone()
    };
    let loads = || phases().filter_map(|(_, phase)| phase.load.as_ref());
    phase.load = phase.load.map(|load| together(load, loads()));
    let beside = || phases().filter_map(|(_, phase)| phase.background.as_ref());
    phase.background = phase.background.map(|load| together(load, beside()));
    let stops = [Stop::Failed, Stop::Interrupted];
    let gravest = stops.into_iter().find(|stop| phases().any(|(_, phase)| phase.stop == *stop));
    phase.stop = gravest.unwrap_or(phase.stop);
    Common { phase, indices, windows, overlaps, instants: instants(from, to) }
}

/// Returns the load of all ranks together.
fn together<'a>(load: LoadSpec, all: impl Iterator<Item = &'a LoadSpec> + Clone) -> LoadSpec {
    let workers = all.clone().map(|it| it.workers).fold(0, u32::saturating_add);
    let rate = |it: &LoadSpec| match it.pacing {
        Pacing::Open { rate_per_s, .. } => rate_per_s,
        Pacing::Closed => 0.0,
    };
    let pacing = match load.pacing {
        Pacing::Open { poisson, .. } => Pacing::Open { rate_per_s: all.map(rate).sum(), poisson },
        Pacing::Closed => Pacing::Closed,
    };
    LoadSpec { workers, pacing, ..load }
}

/// Returns whether both ranks had settled: unknown if one is unknown, false if one had not.
fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (a, b) => Some(a? && b?),
    }
}

fn instants(from: u64, to: u64) -> Vec<u64> {
    let parts = ((to - from) / TICK_NS).clamp(1, MOST);
    let mut all: Vec<u64> = (0..=parts)
        .map(|part| from + ((u128::from(to - from) * u128::from(part)) / u128::from(parts)) as u64)
        .collect();
    all.dedup();
    all
}
