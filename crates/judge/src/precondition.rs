//! The phases of preconditioning → the bytes written and whether the rate of the rounds settled.

use blockstone_base::stats::{self, Estimate, SETTLED_ROUNDS};
use blockstone_figures::rate;
use blockstone_record::manifest::{Group, Manifest, Phase};
use serde::Serialize;

use crate::window::Window;

/// Writes before anything was measured that bring flash to its steady state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Precondition {
    /// Bytes written, in order and at random.
    pub written_bytes: u64,
    /// Bytes written in order, in two passes over the whole device or file.
    pub pass_bytes: u64,
    /// Rounds of random writes, in their order.
    pub rounds: Vec<Round>,
    /// Whether the last five rounds were steady, as SNIA's Performance Test Specification defines
    /// it: their range is at most 20 % of their mean, that of the line fitted through them 10 %.
    pub settled: bool,
}

/// A round of random writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Bytes written in the round.
    pub written_bytes: u64,
    /// Writes a second.
    pub iops: Estimate,
}

/// Derives the preconditioning of a recording, `None` if there was none.
pub fn find(manifest: &Manifest, windows: &[Window]) -> Option<Precondition> {
    let group = |window: &Window| manifest.phases[window.phase].group;
    if !windows.iter().any(|window| group(window) == Group::Precondition) {
        return None;
    }
    let (mut pass_bytes, mut rounds) = (0_u64, Vec::new());
    for window in windows {
        let (phase, written_bytes) = (&manifest.phases[window.phase], window.completed_bytes());
        if is_pass(phase) {
            pass_bytes = written_bytes.saturating_add(pass_bytes);
        } else if phase.group == Group::Precondition {
            let iops = rate(&window.rated_ops()).ok();
            rounds.extend(iops.map(|iops| Round { written_bytes, iops }));
        }
    }
    let rates: Vec<f64> = rounds.iter().map(|round| round.iops.value).collect();
    let written = rounds.iter().map(|round| round.written_bytes);
    Some(Precondition {
        written_bytes: written.fold(pass_bytes, u64::saturating_add),
        pass_bytes,
        rounds,
        settled: stats::settled(&rates),
    })
}

/// Returns whether a phase wrote the whole device or test file in order.
pub(crate) fn is_pass(phase: &Phase) -> bool {
    phase.label == "precondition/fill" || phase.label == "layout"
}

impl Precondition {
    /// Returns the outcome in words: `settled after 7 rounds`.
    pub fn outcome(&self) -> String {
        match (self.rounds.len(), self.settled) {
            (0, _) => "no round of random writes".to_owned(),
            (n, true) => format!("settled after {n} rounds"),
            (1, false) => "not settled after 1 round".to_owned(),
            (n, false) => format!("not settled after {n} rounds"),
        }
    }

    /// Returns the rounds over which the rate must have settled.
    pub fn last_rounds(&self) -> &[Round] {
        &self.rounds[self.rounds.len().saturating_sub(SETTLED_ROUNDS)..]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Fixture;

    #[test]
    fn passes_and_rounds_are_counted_and_only_the_last_five_must_agree() {
        assert_eq!(Fixture::healthy().find().precondition, None);
        let rates = [9e4, 6e4, 3e4, 2e4, 1.02e4, 1e4, 0.99e4, 1.01e4];
        let found = Fixture::healthy().preconditioned(4 << 30, &rates).find().precondition.unwrap();
        assert!(!found.settled);
        assert_eq!(found.outcome(), "not settled after 8 rounds");
        let settled = [&rates[..], &[1e4]].concat();
        let found = Fixture::healthy().preconditioned(4 << 30, &settled).find().precondition;
        let found = found.unwrap();
        assert!(found.settled && found.outcome() == "settled after 9 rounds", "{found:?}");
        let written: u64 = found.rounds.iter().map(|round| round.written_bytes).sum();
        assert_eq!(found.written_bytes, found.pass_bytes + written);
        assert!(found.pass_bytes.abs_diff(4 << 30) < 64 << 20, "{found:?}");
        assert_eq!(found.last_rounds().len(), 5);
    }
}
