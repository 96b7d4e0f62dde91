//! Merges the verdicts of all windows of a run into one list.

use blockstone_base::verdict::{Outcome, Verdict, Weight};

use super::RunFindings;

/// Merges the verdicts of all windows into one list: the gravest for each rule, naming the window
/// if there are several. Figures of window `main` are named; another window is named as a whole, as
/// `scan/m4p16/*`.
pub fn united(each: &[RunFindings], main: usize) -> Vec<Verdict> {
    let Some((first, others)) = each.split_first() else { return Vec::new() };
    if others.is_empty() {
        return first.verdicts.clone();
    }
    let of = |rule: usize| {
        let all = each.iter().map(|window| (&window.label, &window.verdicts[rule]));
        let (label, gravest) = all.clone().rev().max_by_key(|(_, verdict)| gravity(verdict))?;
        let alike: Vec<_> =
            all.filter(|(_, verdict)| gravity(verdict) == gravity(gravest)).collect();
        let also = match alike.len() {
            n if n == each.len() => {
                format!("{label}: {}; the same in all {n} windows", gravest.evidence)
            }
            1 => format!("{label}: {}", gravest.evidence),
            n => format!("{label}: {}; the same in {} more windows", gravest.evidence, n - 1),
        };
        let mut concerns: Vec<String> = Vec::new();
        for &(label, verdict) in &alike {
            if label == &each[main].label {
                concerns.extend(verdict.concerns.iter().cloned());
            } else if !verdict.concerns.is_empty() {
                concerns.push(format!("{label}/*"));
            }
        }
        Some(Verdict { evidence: also, concerns, ..gravest.clone() })
    };
    (0..first.verdicts.len()).filter_map(of).collect()
}

fn gravity(verdict: &Verdict) -> u8 {
    match (verdict.outcome, verdict.weight) {
        (Outcome::Fail, Weight::Condemns) => 3,
        (Outcome::Fail, Weight::Warns) => 2,
        (Outcome::Inconclusive, _) => 1,
        (Outcome::Pass, _) => 0,
    }
}
