//! Shrinks a case with a bad outcome, as long as the outcome stays bad.
//!
//! Delta debugging (Zeller and Hildebrandt 2002) on the lost sectors, on the damage and on the cuts
//! of recoveries; then the earliest cut; and finally everything that arrived becomes part of the
//! initial content of the disks, so that only writes remain that lost something.

use std::sync::Arc;

use super::case::{Case, Cut};
use super::history::{Choices, Event, History, Lost, Playback};
use super::oracle::Violation;
use super::rows::Step;

/// Maximum number of judgements spent on a case.
const PATIENCE: u32 = 600;

struct Shrinker {
    /// Whether the instance does not open, which is a different violation from one in its content.
    refuses: bool,
    left: u32,
    best: Case,
    violation: Violation,
}

/// Returns the smallest case found, and what is wrong with its outcome.
pub fn shrink(case: &Case, violation: &Violation) -> (Case, Violation) {
    let mut shrinker = Shrinker {
        refuses: violation.oracle == "opens",
        left: PATIENCE,
        best: case.clone(),
        violation: violation.clone(),
    };
    shrinker.recoveries();
    shrinker.hurt();
    shrinker.lost();
    if shrinker.earlier() {
        shrinker.lost();
    }
    shrinker.cuts_of_recoveries();
    shrinker.fold();
    (shrinker.best, shrinker.violation)
}

impl Shrinker {
    /// Accepts a smaller case if its outcome is as bad.
    fn take(&mut self, case: Case) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        match case.run() {
            // One cause may violate several oracles, depending on which one runs first.
            Err(violation) if (violation.oracle == "opens") == self.refuses => {
                (self.best, self.violation) = (case, violation);
                true
            }
            _ => false,
        }
    }

    /// Omits as much of a list as possible, in ever smaller pieces.
    fn reduce<T: Clone>(&mut self, items: Vec<T>, make: &dyn Fn(&Case, Vec<T>) -> Case) -> Vec<T> {
        let mut items = items;
        let mut piece = items.len();
        while piece > 0 && self.left > 0 {
            let mut at = 0;
            while at < items.len() {
                let end = (at + piece).min(items.len());
                let fewer: Vec<T> = [&items[..at], &items[end..]].concat();
                let case = make(&self.best, fewer.clone());
                if self.take(case) {
                    items = fewer;
                } else {
                    at = end;
                }
            }
            piece /= 2;
        }
        items
    }

    fn recoveries(&mut self) {
        let make = |best: &Case, recoveries: Vec<Cut>| Case { recoveries, ..best.clone() };
        self.reduce(self.best.recoveries.clone(), &make);
    }

    fn hurt(&mut self) {
        let make = |best: &Case, hurt| Case { hurt, ..best.clone() };
        self.reduce(self.best.hurt.clone(), &make);
    }

    fn lost(&mut self) {
        let make =
            |best: &Case, lost: Vec<Lost>| Case { cut: Cut { lost, ..best.cut }, ..best.clone() };
        self.reduce(self.best.cut.lost.clone(), &make);
    }

    /// Moves the power loss to an earlier event, by ever smaller steps.
    fn earlier(&mut self) -> bool {
        let mut moved = false;
        let mut step = self.best.cut.cut / 2;
        while step > 0 && self.left > 0 {
            if let Some(cut) = self.best.cut.cut.checked_sub(step) {
                let lost = self.best.cut.lost.clone();
                if self.take(Case { cut: Cut { cut, lost }, ..self.best.clone() }) {
                    moved = true;
                    continue;
                }
            }
            step /= 2;
        }
        moved
    }

    fn cuts_of_recoveries(&mut self) {
        for index in 0..self.best.recoveries.len() {
            let make = |best: &Case, lost: Vec<Lost>| {
                let mut case = best.clone();
                case.recoveries[index].lost = lost;
                case
            };
            self.reduce(self.best.recoveries[index].lost.clone(), &make);
            let mut step = self.best.recoveries[index].cut / 2;
            while step > 0 && self.left > 0 {
                let mut case = self.best.clone();
                let cut = &mut case.recoveries[index].cut;
                *cut = cut.saturating_sub(step);
                if !self.take(case) {
                    step /= 2;
                }
            }
        }
    }

    /// Makes the data that arrived part of the initial content, and drops what came after the cut.
    fn fold(&mut self) {
        let best = &self.best;
        let playback = Playback::until(&best.history, best.cut.cut);
        let choices = playback.choices();
        let in_doubt = |write: &super::history::Write| {
            let lost = |(at, writes): (&(u8, u32), &Vec<u32>)| {
                writes.contains(&write.number)
                    && best.cut.lost.iter().any(|lost| (lost.disk, lost.sector) == *at)
            };
            choices.iter().any(lost)
        };
        let kept: Vec<Event> = playback
            .pending()
            .filter(|(write, _)| in_doubt(write))
            .map(|(write, _)| Event::Write(Arc::new(write.clone())))
            .collect();
        // The fate of the lost sectors is decided when the case is run; the others are certain.
        let sure: Choices = choices
            .iter()
            .filter(|(at, _)| !best.cut.lost.iter().any(|l| (l.disk, l.sector) == **at))
            .map(|(at, writes)| (*at, writes.clone()))
            .collect();
        let base = playback.image(&sure, &[]);
        let mut expected = best.expected.clone();
        expected.follow(&best.history.events[..best.cut.cut]);
        for promise in &mut expected.sessions {
            let (sure, rest) = promise.steps.split_at(promise.sure);
            for step in sure {
                if let Step::Change { row, heavy } = step {
                    expected.rows[*row as usize].change(*heavy);
                }
            }
            let commits = sure.iter().filter(|step| matches!(step, Step::Commit { .. }));
            let steps: Vec<Step> = commits.chain(rest).copied().collect();
            promise.sure = steps.len() - rest.len();
            promise.steps = steps;
        }
        let cut = Cut { cut: kept.len(), lost: best.cut.lost.clone() };
        let history = Arc::new(History { base, events: kept });
        let torn = best.torn_by_failures();
        let folded = Case { history, cut, expected, torn, ..best.clone() };
        self.left = self.left.max(1);
        self.take(folded);
    }
}
