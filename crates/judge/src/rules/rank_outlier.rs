//! A rank that got much less, or much more, than the others.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{Manifest, MergedRank};

use super::{CalibrationRule, RunRule};

const ABOUT: About = About {
    id: "rank-outlier",
    weight: Weight::Warns,
    doc: "A rank got a rate that is far from those of the others: the sum of all is not what as \
          many equal hosts would get.",
    threshold: "Its operations a second differ from the median of all ranks by more than 20 %, and \
                by more than five times their median absolute deviation, scaled to a normal \
                distribution. Inconclusive with fewer than three ranks whose rate is known.",
    cause: "A host with a slower path, a cap on its volume, other load on it, or another kind of \
            disk.",
    next: "Look at the recording of that rank by itself: `blockstone report` names what limited \
           it.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| check(case.manifest));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| check(case.manifest));

/// Fewest ranks of which one can be apart from the others.
const FEWEST: usize = 3;
/// Ranks that the evidence names.
const NAMED: usize = 3;

fn check(manifest: &Manifest) -> Judgement {
    let Some(merged) = &manifest.merged else { return Judgement::not_applicable() };
    let known = merged.ranks.iter().filter(|rank| rank.ops_per_s.is_some()).count();
    if merged.ranks.len() < FEWEST {
        return Judgement::not_applicable();
    }
    if known < FEWEST {
        return Judgement::inconclusive(format!("the rate of {known} ranks is known"));
    }
    let mut apart: Vec<(&MergedRank, f64)> =
        merged.ranks.iter().filter_map(|rank| Some((rank, rank.outlier_ratio?))).collect();
    if apart.is_empty() {
        return Judgement::pass(format!("none of {known} ranks is far from their median"));
    }
    apart.sort_by(|a, b| b.1.ln().abs().total_cmp(&a.1.ln().abs()));
    let named = apart.iter().take(NAMED).map(|(rank, ratio)| {
        format!("rank {} on {} got {ratio:.2} × the median", rank.rank, rank.host)
    });
    let mut named = named.collect::<Vec<_>>().join(", ");
    if apart.len() > NAMED {
        let more = apart.len() - NAMED;
        named = format!("{named}, and {more} more ranks are outliers");
    }
    Judgement::fail(named, Vec::new())
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};
    use blockstone_record::manifest::{Merged, MergedRank};

    use crate::testing::Fixture;

    fn of(ratios: &[Option<f64>]) -> Verdict {
        let mut fixture = Fixture::healthy();
        let ranks = ratios.iter().zip(0..).map(|(&outlier_ratio, rank)| MergedRank {
            rank,
            host: format!("db{rank}"),
            ops_per_s: Some(100.0),
            outlier_ratio,
            ..MergedRank::default()
        });
        let merged = Merged { overlap_ratio: 1.0, ranks: ranks.collect(), ..Merged::default() };
        fixture.manifest.merged = Some(merged);
        fixture.verdict("rank-outlier")
    }

    #[test]
    fn the_rank_that_is_furthest_is_named_first() {
        let verdict = of(&[None, Some(1.5), None, Some(0.1)]);
        assert!(verdict.warns(), "{}", verdict.evidence);
        assert!(verdict.evidence.starts_with("rank 3 on db3 got 0.10 ×"), "{}", verdict.evidence);
    }

    #[test]
    fn equal_ranks_pass() {
        assert_eq!(of(&[None; 3]).outcome, Outcome::Pass);
    }
}
