//! A rank whose own figures are condemned.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{Manifest, MergedRank};

use super::{CalibrationRule, RunRule, all_figures, labels};

const ABOUT: About = About {
    id: "rank-condemned",
    weight: Weight::Condemns,
    doc: "The figures of a rank are condemned, and so is every sum that contains them. The rules \
          that judge a recording of one process judged each rank by its own evidence; they are \
          not applied to the sum.",
    threshold: "A rule condemned a figure in the recording of a rank. Inconclusive if a recording \
                has no verdicts.",
    cause: "The rule that is named says what may cause it: `blockstone help RULE`.",
    next: "Look at the recording of that rank by itself: `blockstone report` has the evidence.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| check(case.manifest, || labels(case.points)));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| check(case.manifest, all_figures));

/// Ranks that the evidence names.
const NAMED: usize = 3;

fn check(manifest: &Manifest, all: impl Fn() -> Vec<String>) -> Judgement {
    let Some(merged) = &manifest.merged else { return Judgement::not_applicable() };
    if let Some(named) = named(&merged.ranks, |rank| &rank.condemned_by) {
        return Judgement::fail(named, all());
    }
    match merged.ranks.iter().filter(|rank| !rank.is_judged).count() {
        0 => Judgement::pass(format!("none of {} ranks is condemned", merged.ranks.len())),
        count => Judgement::inconclusive(format!("{count} recordings have no verdicts")),
    }
}

/// Returns the ranks that rules found something in, and the rules.
pub(super) fn named<'a>(
    ranks: &'a [MergedRank],
    rules: impl Fn(&'a MergedRank) -> &'a Vec<String>,
) -> Option<String> {
    let mut found = ranks.iter().filter(|rank| !rules(rank).is_empty());
    let of = |rank: &'a MergedRank| {
        format!("rank {} on {}: {}", rank.rank, rank.host, rules(rank).join(", "))
    };
    let named: Vec<String> = found.by_ref().take(NAMED).map(of).collect();
    if named.is_empty() {
        return None;
    }
    let more = match found.count() {
        0 => String::new(),
        count => format!("; and {count} more"),
    };
    Some(named.join("; ") + &more)
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};
    use blockstone_record::manifest::Merged;

    use super::*;
    use crate::testing::Fixture;

    fn of(change: impl FnOnce(&mut Vec<MergedRank>)) -> Vec<Verdict> {
        let mut fixture = Fixture::healthy();
        let rank = |rank| MergedRank { rank, is_judged: true, ..MergedRank::default() };
        let mut ranks: Vec<MergedRank> = (0..5).map(rank).collect();
        change(&mut ranks);
        let merged = Merged { overlap_ratio: 1.0, ranks, ..Merged::default() };
        fixture.manifest.merged = Some(merged);
        fixture.find().verdicts
    }

    fn rule<'a>(verdicts: &'a [Verdict], id: &str) -> &'a Verdict {
        verdicts.iter().find(|verdict| verdict.rule == id).expect("it is judged")
    }

    #[test]
    fn a_condemned_rank_condemns_the_sum_and_a_warned_one_warns() {
        let verdicts = of(|ranks| {
            ranks[1].condemned_by = vec!["memory-backed".into()];
            ranks[2].warned_by = vec!["unsteady".into()];
        });
        let condemned = rule(&verdicts, ABOUT.id);
        assert!(condemned.condemns() && condemned.evidence.contains("rank 1 on"), "{condemned:?}");
        assert!(condemned.evidence.ends_with("memory-backed"), "{}", condemned.evidence);
        assert!(rule(&verdicts, "rank-warned").warns());
    }

    #[test]
    fn only_rules_on_ranks_judge_a_sum() {
        let verdicts = of(|_| ());
        assert!(
            verdicts.iter().all(|it| it.rule.starts_with("rank-") || it.rule == "common-window")
        );
        assert_eq!(rule(&verdicts, ABOUT.id).outcome, Outcome::Pass);
        let unjudged = of(|ranks| ranks[4].is_judged = false);
        assert_eq!(rule(&unjudged, ABOUT.id).outcome, Outcome::Inconclusive);
    }
}
