//! The rules for a claim, and the answer derived from their verdicts.

mod above_disk;
mod above_link;
mod contradiction;
mod memory_test;
#[cfg(test)]
mod tests;
mod wrong_unit;

use blockstone_base::rule::{Judged, RuleOf, judge};
use blockstone_base::verdict::{Outcome, Verdict};

use super::stated::{Answer, Claim};

pub const ALL: &[RuleOf<Claim>] =
    &[memory_test::RULE, above_link::RULE, wrong_unit::RULE, contradiction::RULE, above_disk::RULE];

impl Judged for Claim {
    const VERB: &'static str = "claim";
}

/// Judges a claim. Memory and a wrong unit take precedence as explanations of a rate above the
/// link.
pub fn answer(claim: &Claim) -> (Answer, Vec<Verdict>) {
    let verdicts = judge(ALL, claim);
    let failed = |rule: &str| verdicts.iter().any(|it| it.rule == rule && it.failed());
    let answer = if failed("memory-test") {
        Answer::Memory
    } else if failed("wrong-unit") {
        Answer::WrongUnit
    } else if failed("above-link") {
        Answer::AboveLink
    } else if failed("contradiction") {
        Answer::Contradiction
    } else if failed("above-disk") {
        Answer::Doubtful
    } else if verdicts.iter().any(|it| it.outcome == Outcome::Pass) {
        Answer::Possible
    } else {
        Answer::Unknown
    };
    (answer, verdicts)
}
