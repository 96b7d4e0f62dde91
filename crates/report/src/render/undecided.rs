//! Verdicts that could not be decided, in one line: on a virtual machine there are several, most of
//! them for the same reason. That reason counts them instead of their names.

use blockstone_base::verdict::{Outcome, Verdict};

/// A reason is common if the evidence of two rules has a clause that begins with this many words.
const COMMON_WORDS: usize = 5;
/// Fewer rules with a common reason are named.
const MANY: usize = 3;

pub fn undecided(verdicts: &[Verdict]) -> Vec<&Verdict> {
    verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Inconclusive).collect()
}

/// Counts the rules with a common reason, and lists the others by name: `7 because KVM is between
/// this machine and its hardware; for other reasons: throttled`.
pub fn by_reason(verdicts: &[&Verdict]) -> String {
    let names = |of: &[&Verdict]| of.iter().map(|v| v.rule.as_str()).collect::<Vec<_>>().join(", ");
    let Some(reason) = common_reason(verdicts) else { return names(verdicts) };
    let (same, other): (Vec<_>, Vec<_>) =
        verdicts.iter().copied().partition(|verdict| has(verdict, &reason));
    if same.len() < MANY {
        return names(verdicts);
    }
    let because = format!("because {}", reason.join(" "));
    if other.is_empty() {
        return format!("all {because}");
    }
    format!("{} {because}; for other reasons: {}", same.len(), names(&other))
}

/// Returns the beginning of a clause that most rules share; if there are several, the longest.
fn common_reason<'a>(verdicts: &[&'a Verdict]) -> Option<Vec<&'a str>> {
    let mut best: Option<(usize, Vec<&str>)> = None;
    for (index, verdict) in verdicts.iter().enumerate() {
        let others = || verdicts[index + 1..].iter().flat_map(|other| clauses(other));
        let pairs = clauses(verdict).flat_map(|clause| others().map(move |o| (clause.clone(), o)));
        for (clause, other) in pairs {
            let same = clause.iter().zip(&other).take_while(|(a, b)| a == b).count();
            let reason = clause[..same].to_vec();
            let count = verdicts.iter().filter(|verdict| has(verdict, &reason)).count();
            let rank = (count, reason.len());
            if same >= COMMON_WORDS && best.as_ref().is_none_or(|b| rank > (b.0, b.1.len())) {
                best = Some((count, reason));
            }
        }
    }
    best.map(|(_, reason)| reason)
}

fn has(verdict: &Verdict, reason: &[&str]) -> bool {
    clauses(verdict).any(|clause| clause.starts_with(reason))
}

fn clauses(verdict: &Verdict) -> impl Iterator<Item = Vec<&str>> {
    let parts = verdict.evidence.split("; ").flat_map(|part| part.split(": "));
    parts.flat_map(|part| part.split(", ")).map(|clause| clause.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::Weight;

    use super::*;

    fn verdict(rule: &str, evidence: &str) -> Verdict {
        Verdict {
            rule: rule.to_owned(),
            outcome: Outcome::Inconclusive,
            weight: Weight::Warns,
            concerns: Vec::new(),
            evidence: evidence.to_owned(),
            cause: String::new(),
            next: String::new(),
        }
    }

    #[test]
    fn rules_with_the_same_reason_are_named_after_it() {
        let all = [
            verdict("above-link", "the speed of the link is unknown; set it with --link-mbps"),
            verdict(
                "lying-flush",
                "vda: 9 flushes; KVM is between this machine and its hardware \
                                    and may acknowledge what only its memory holds",
            ),
            verdict("burst", "no step down in 10 s: KVM is between this machine and its hardware"),
            verdict(
                "cache-suspected",
                "2 ms; KVM is between this machine and its hardware, and a \
                                        cache there looks the same",
            ),
        ];
        assert_eq!(
            by_reason(&undecided(&all)),
            "3 because KVM is between this machine and its hardware; for other reasons: above-link"
        );
        assert_eq!(by_reason(&undecided(&all[..2])), "above-link, lying-flush");
        assert_eq!(by_reason(&undecided(&all[2..3])), "burst");
        assert_eq!(by_reason(&undecided(&all[2..])), "burst, cache-suspected");
        let reason = "all because KVM is between this machine and its hardware";
        assert_eq!(by_reason(&undecided(&all[1..])), reason);
    }
}
