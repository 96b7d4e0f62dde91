//! A load that was cut off by the storage that served it.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::{counted, percent};
use blockstone_base::verdict::Weight;

use super::NeedFindings;

const ABOUT: About = About {
    id: "source-saturated",
    weight: Weight::Warns,
    doc: "The load spent much of its time at its maximum: the storage that served it could do no \
          more, so that the demand is at least what was measured.",
    threshold: "5 % of the time or more within 1 % of the highest rate of requests. Passes up to \
                1 %: a load that nothing limits reaches its maximum once. Inconclusive with fewer \
                than 100 intervals: one of them is the highest, whatever limits it.",
    cause: "The storage, its link or a limit of the volume was saturated. A batch at a constant \
            rate looks the same.",
    next: "Compare with what the storage can do: blockstone calibrate, or its data sheet. Take the \
           percentiles as lower bounds, and size with room above them.",
};

pub(super) const RULE: RuleOf<NeedFindings> =
    RuleOf::new(&ABOUT, |found| Judgement::when(found.intervals > 0, || check(found)));

const SHARE_MAX: f64 = 0.01;
const SHARE_SATURATED: f64 = 0.05;
const INTERVALS_MIN: u64 = 100;

fn check(findings: &NeedFindings) -> Judgement {
    let Some(share) = findings.at_max_share.filter(|_| findings.intervals >= INTERVALS_MIN) else {
        let intervals = counted(findings.intervals, "interval");
        return Judgement::inconclusive(format!("{intervals}: too few to tell"));
    };
    let evidence = format!("{} of the time within 1 % of the maximum", percent(share));
    if share >= SHARE_SATURATED {
        return Judgement::fail(evidence, vec!["hardware_iops".to_owned()]);
    }
    if share <= SHARE_MAX { Judgement::pass(evidence) } else { Judgement::inconclusive(evidence) }
}
