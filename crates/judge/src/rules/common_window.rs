//! Ranks of one load that did not run at the same time, or whose recordings are missing.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{Manifest, Merged};

use super::{CalibrationRule, RunRule, all_figures, labels, percent, time};

const ABOUT: About = About {
    id: "common-window",
    weight: Weight::Condemns,
    doc: "The ranks that were merged did not apply their load at the same time, or one of them is \
          missing: their sum is not what the storage gave to all of them together.",
    threshold: "The time that all windows have in common, less the bounds of the clocks, is \
                under 80 % of the window of a rank; or fewer ranks were merged than ran. \
                Inconclusive if it is not known how far the clocks of several hosts were apart.",
    cause: "Ranks that were not started together, phases that lasted longer on one host, clocks \
            that are not synchronised, or a rank that failed.",
    next: "Start all ranks at the same time (--start-at), keep the clocks of the hosts \
           synchronised with chrony or another NTP client, and see the row of each rank for the \
           one that was late.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, |case| {
    let all = || labels(case.points);
    let apart = |merged: &Merged| {
        let overlap =
            |label: &str| merged.overlaps.get(label).copied().unwrap_or(merged.overlap_ratio);
        let of = |label: &String| overlap(label) < LEAST_RATIO;
        all().into_iter().filter(of).collect()
    };
    check(case.manifest, all, apart)
});
pub(super) const RUN: RunRule =
    RunRule::new(&ABOUT, |case| check(case.manifest, all_figures, |_| all_figures()));

/// Smallest share of a rank's window that must be common to all.
const LEAST_RATIO: f64 = 0.8;

/// `all` returns what is judged, `apart` that for which the windows overlap too little.
fn check(
    manifest: &Manifest,
    all: impl Fn() -> Vec<String>,
    apart: impl Fn(&Merged) -> Vec<String>,
) -> Judgement {
    let Some(merged) = &manifest.merged else { return Judgement::not_applicable() };
    let (found, expected) = (merged.ranks.len(), merged.expected);
    let least = merged.overlaps.iter().min_by(|a, b| a.1.total_cmp(b.1));
    let phase = least.map_or_else(String::new, |(label, _)| format!(" ({label})"));
    let overlap = format!(
        "the windows of {found} ranks have at least {} of their time in common{phase}",
        percent(merged.overlap_ratio)
    );
    if let Some(missing) = missing(merged) {
        return Judgement::fail(format!("{missing} of {expected}; {overlap}"), all());
    }
    if merged.overlap_ratio < LEAST_RATIO {
        return Judgement::fail(overlap, apart(merged));
    }
    match merged.clock_bound_ns {
        None => Judgement::inconclusive(format!(
            "{overlap}, if their clocks agree: how far they are apart was not recorded for every \
             rank"
        )),
        Some(0) => Judgement::pass(format!("{overlap}, by one clock")),
        Some(bound) => Judgement::pass(format!(
            "{overlap}; their clocks were at most {} apart",
            time(bound as f64)
        )),
    }
}

fn missing(merged: &Merged) -> Option<String> {
    let first = merged.missing.first()?;
    Some(match merged.missing.len() {
        1 => first.clone(),
        more => format!("{first}, and {} more are missing", more - 1),
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};
    use blockstone_record::manifest::{Merged, MergedRank};

    use crate::testing::Fixture;

    fn of(change: impl FnOnce(&mut Merged)) -> Option<Verdict> {
        let mut fixture = Fixture::healthy();
        let ranks = vec![MergedRank::default(); 8];
        let mut merged = Merged {
            expected: 8,
            overlap_ratio: 0.97,
            clock_bound_ns: Some(2_000_000),
            ranks,
            ..Merged::default()
        };
        change(&mut merged);
        fixture.manifest.merged = Some(merged);
        let verdicts = fixture.find().verdicts;
        verdicts.into_iter().find(|verdict| verdict.rule == "common-window")
    }

    #[test]
    fn windows_that_hardly_overlap_and_missing_ranks_condemn() {
        let apart = of(|it| it.overlap_ratio = 0.79).unwrap();
        assert!(apart.condemns() && !apart.concerns.is_empty(), "{}", apart.evidence);
        let partial = of(|it| it.missing = vec!["rank 3 on db4 did not end".into()]).unwrap();
        assert!(partial.condemns(), "{}", partial.evidence);
        assert!(partial.evidence.starts_with("rank 3 on db4"), "{}", partial.evidence);
    }

    #[test]
    fn windows_of_known_clocks_pass_and_of_unknown_ones_are_open() {
        assert_eq!(of(|_| ()).unwrap().outcome, Outcome::Pass);
        assert_eq!(of(|it| it.clock_bound_ns = Some(0)).unwrap().outcome, Outcome::Pass);
        assert_eq!(of(|it| it.clock_bound_ns = None).unwrap().outcome, Outcome::Inconclusive);
    }

    #[test]
    fn a_recording_of_one_process_has_no_such_verdict() {
        let verdicts = Fixture::healthy().find().verdicts;
        assert!(verdicts.iter().all(|verdict| verdict.rule != "common-window"));
    }
}
