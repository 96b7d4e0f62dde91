//! Verdicts that could not be decided, in one line: on a virtual machine there are several, most of
//! them for the same reason.

use blockstone_base::verdict::{Outcome, Verdict};

/// A reason is common if the evidence of two rules has a clause that begins with this many words.
const COMMON_WORDS: usize = 5;

pub fn undecided(verdicts: &[Verdict]) -> Vec<&Verdict> {
    verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Inconclusive).collect()
}

/// Lists the rules by name, those with a common reason after that reason: `KVM is between this
/// machine and its disks: lying-flush, burst; other reasons: above-link`.
pub fn by_reason(verdicts: &[&Verdict]) -> String {
    let names = |of: &[&Verdict]| of.iter().map(|v| v.rule.as_str()).collect::<Vec<_>>().join(", ");
    let Some(reason) = common_reason(verdicts) else { return names(verdicts) };
    let (same, other): (Vec<_>, Vec<_>) =
        verdicts.iter().copied().partition(|verdict| has(verdict, &reason));
    let reason = format!("{}: {}", reason.join(" "), names(&same));
    if other.is_empty() { reason } else { format!("{reason}; other reasons: {}", names(&other)) }
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
                "vda: 9 flushes; KVM is between this machine and its disks \
                                    and may acknowledge what only its memory holds",
            ),
            verdict("burst", "no step down in 10 s: KVM is between this machine and its disks"),
            verdict(
                "cache-suspected",
                "2 ms; KVM is between this machine and its disks, and a \
                                        cache there looks the same",
            ),
        ];
        assert_eq!(
            by_reason(&undecided(&all)),
            "KVM is between this machine and its disks: lying-flush, burst, cache-suspected; \
             other reasons: above-link"
        );
        assert_eq!(by_reason(&undecided(&all[..2])), "above-link, lying-flush");
        assert_eq!(by_reason(&undecided(&all[2..3])), "burst");
    }
}
