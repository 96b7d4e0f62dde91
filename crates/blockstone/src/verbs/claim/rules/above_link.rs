//! A stated rate that the stated links cannot carry.

use blockstone_base::rule::{Judgement, RuleOf};
use blockstone_base::units::three_digits;
use blockstone_judge::rules::above_link::{ABOUT, TOLERANCE_RATIO};

use crate::verbs::claim::stated::{Claim, RATE};

pub(super) const RULE: RuleOf<Claim> = RuleOf::new(&ABOUT, check);

fn check(claim: &Claim) -> Judgement {
    let (rate, link) = (claim.bytes_per_s(), claim.link_bytes_per_s());
    let Some(rate) = rate else { return Judgement::inconclusive("no rate was stated") };
    let Some(link) = link else { return Judgement::inconclusive("no link was stated") };
    let evidence = format!(
        "{} MB/s; {} carries {} MB/s",
        three_digits(rate / 1e6),
        claim.link(),
        three_digits(link / 1e6)
    );
    let above = rate > link * (1.0 + TOLERANCE_RATIO);
    Judgement::decide(above, evidence, vec![RATE.to_owned()])
}
