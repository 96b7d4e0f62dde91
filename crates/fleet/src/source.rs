//! The recording of one rank, and its clock.

use std::path::{Path, PathBuf};

use blockstone_base::units::Nanos;
use blockstone_figures::WallClock;
use blockstone_record::manifest::{End, Phase, Rank};
use blockstone_record::ranks::{RANKS_MAX, is_agreed};
use blockstone_record::{Manifest, Recording, read_manifest};

use crate::FleetError;

/// Verbs whose recordings have a load.
const VERBS: [&str; 3] = ["calibrate", "run", "noise"];

pub struct Source {
    pub dir: PathBuf,
    pub rank: u32,
    pub manifest: Manifest,
    /// Time of the wall clock at the beginning, in nanoseconds since 1970.
    began_ns: i128,
    /// How far the wall clock may have been from UTC; `None` if unknown.
    pub clock_bound_ns: Option<u64>,
    /// Time from the beginning of the merged recording to that of this one.
    pub shift_ns: u64,
}

impl Source {
    /// Reads the manifest in `dir`. `number` is its rank if the recording does not say one.
    pub fn read(dir: &Path, number: usize) -> Result<Self, FleetError> {
        let manifest = read_manifest(dir)?;
        let path = || dir.to_owned();
        if manifest.merged.is_some() {
            return Err(FleetError::Merged { path: path() });
        }
        if !VERBS.contains(&manifest.verb.as_str()) {
            return Err(FleetError::Verb { path: path(), verb: manifest.verb });
        }
        let rank = manifest.rank.as_ref();
        if let Some(rank) = rank.filter(|it| it.rank >= it.ranks || it.ranks > RANKS_MAX) {
            return Err(FleetError::Rank { path: path(), rank: rank.rank, ranks: rank.ranks });
        }
        if let Some(phase) = manifest.phases.iter().find(|phase| !is_in_order(phase)) {
            return Err(FleetError::Times { path: path(), phase: phase.label.clone() });
        }
        // The clock may have been set while files were written: it counts when the load began.
        let windows = manifest.phases.iter().filter(|it| it.window_end_ns > it.window_start_ns);
        let at_ns = windows.map(|phase| phase.window_start_ns).max().unwrap_or(0);
        let began_ns = WallClock::of(&manifest).realtime_ns(at_ns);
        let began_ns = began_ns.ok_or_else(|| FleetError::Undated { path: path() })?;
        Ok(Self {
            dir: path(),
            rank: rank.map_or(number as u32, |rank| rank.rank),
            clock_bound_ns: rank.and_then(|rank| rank.clock_bound_ns),
            began_ns: began_ns - i128::from(at_ns),
            shift_ns: 0,
            manifest,
        })
    }

    /// Returns the identity of the machine, and of its clock: containers have host names of their
    /// own, and cloned machines have the same.
    pub fn machine(&self) -> String {
        let host = &self.manifest.host;
        host.boot_id.clone().unwrap_or_else(|| format!("{} of unknown boot", host.hostname))
    }

    pub fn recording(&self) -> Result<Recording, FleetError> {
        let recording = Recording::open(&self.dir)?;
        if recording.manifest.id != self.manifest.id {
            let why = "it was replaced while it was read".to_owned();
            return Err(FleetError::Different { path: self.dir.clone(), why });
        }
        Ok(recording)
    }

    /// Returns why it cannot be part of a whole, if its measurement did not come to its end.
    pub fn unfinished(&self) -> Option<String> {
        let what = match &self.manifest.end {
            End::Complete => return None,
            End::Running => "did not end".to_owned(),
            End::Interrupted { signal } => format!("was interrupted by {signal}"),
            End::Failed { error, .. } => format!("failed: {error}"),
        };
        Some(format!("rank {} on {} {what}", self.rank, self.manifest.host.hostname))
    }

    /// Returns why this is not a rank of the same load as `first`, if it is not.
    pub fn differs(&self, first: &Self) -> Option<String> {
        let (here, there) = (&self.manifest, &first.manifest);
        let of_rank = |manifest: &Manifest, what: fn(&Rank) -> String| {
            manifest.rank.as_ref().map_or_else(|| "none".to_owned(), what)
        };
        let ranks = |manifest: &Manifest| of_rank(manifest, |rank| rank.ranks.to_string());
        let plan = |manifest: &Manifest| of_rank(manifest, |rank| rank.plan.clone());
        // Ranks that know of each other have seeds of their own, drawn from one that the plan has.
        let seed = |manifest: &Manifest| match &manifest.rank {
            Some(_) => String::new(),
            None => manifest.seed.to_string(),
        };
        let parts = [
            ("verb", here.verb.clone(), there.verb.clone()),
            ("version", here.tool_version.clone(), there.tool_version.clone()),
            ("number of ranks", ranks(here), ranks(there)),
            ("seed", seed(here), seed(there)),
        ];
        if let Some((what, a, b)) = parts.iter().find(|(_, a, b)| a != b) {
            return Some(format!("its {what} is {a}, that of {} is {b}", first.dir.display()));
        }
        let keys = here.settings.keys().chain(there.settings.keys());
        let mut differing = keys
            .filter(|key| is_agreed(key) && here.settings.get(*key) != there.settings.get(*key));
        let Some(key) = differing.next() else {
            // Only the seed from which those of the ranks were drawn is left.
            let differ = plan(here) != plan(there);
            return differ.then(|| format!("its plan is not that of {}", first.dir.display()));
        };
        let shown = |manifest: &Manifest| {
            manifest.settings.get(key).map_or_else(|| "unset".to_owned(), ToString::to_string)
        };
        let (a, b) = (shown(here), shown(there));
        Some(format!("its setting {key} is {a}, that of {} is {b}", first.dir.display()))
    }

    /// Returns the phases that have a window.
    pub fn windows(&self) -> impl Iterator<Item = (usize, &Phase)> {
        let phases = self.manifest.phases.iter().enumerate();
        phases.filter(|(_, phase)| phase.window_end_ns > phase.window_start_ns)
    }
}

/// Longest time between the beginnings of two ranks.
const DAY_NS: i128 = 86_400_000_000_000;

fn is_in_order(phase: &Phase) -> bool {
    let times = [phase.start_ns, phase.window_start_ns, phase.window_end_ns, phase.end_ns];
    times.is_sorted() && phase.end_ns <= u64::MAX >> 2
}

/// Places all sources on one time axis, which begins with the first of them. All ranks of one
/// machine have one clock. Fails if they did not begin on one day.
pub fn align(sources: &mut [Source]) -> Result<(), FleetError> {
    let is_one = sources.windows(2).all(|pair| pair[0].machine() == pair[1].machine());
    let is_one = is_one && sources.iter().all(|it| it.manifest.host.boot_id.is_some());
    let first = sources.iter().min_by_key(|source| source.began_ns);
    let Some((began_ns, other)) = first.map(|it| (it.began_ns, it.dir.clone())) else {
        return Ok(());
    };
    for source in sources {
        let shift_ns = source.began_ns - began_ns;
        source.shift_ns = u64::try_from(shift_ns).unwrap_or(u64::MAX);
        if shift_ns > DAY_NS {
            let apart = Nanos(source.shift_ns);
            return Err(FleetError::Apart { path: source.dir.clone(), other, apart });
        }
        if is_one {
            source.clock_bound_ns = Some(0);
        }
    }
    Ok(())
}
