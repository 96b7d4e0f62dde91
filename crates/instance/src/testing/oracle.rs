//! Decides which states are allowed after a recovery.
//!
//! A session appends its changes to the redo one after the other, and there is no undo. So recovery
//! finds the work of a session up to some point, which is not before its last acknowledged commit
//! and not after the last step it had started. That point determines for every row exactly which
//! update it has seen, in each of its columns.

use std::collections::BTreeSet;
use std::fmt;

use super::history::Event;
use super::rows::{Mark, Row, RowState, SESSIONS, Step, rows_of};
use super::setting::block_of;
use crate::recovery::Recovery;
use crate::redo::Lsn;

/// Work of one session that a recovery may find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Every step that it began since `Expected::rows` were found.
    pub steps: Vec<Step>,
    /// Number of these steps that are acknowledged.
    pub sure: usize,
    /// Number and end of the last acknowledged commit.
    pub last: Option<(u64, u64)>,
}

/// State that a recovery may find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Rows when the instance was last opened.
    pub rows: Vec<RowState>,
    pub sessions: Vec<Promise>,
    /// Whether the instance has been shut down since.
    pub closed: bool,
}

/// A violated condition: the oracle that reports it, and its finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub oracle: &'static str,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oracle \"{}\": {}", self.oracle, self.what)
    }
}

impl Violation {
    pub fn new(oracle: &'static str, what: String) -> Self {
        Self { oracle, what }
    }
}

impl Expected {
    pub fn new(rows: Vec<RowState>) -> Self {
        Self { rows, sessions: vec![Promise::default(); SESSIONS as usize], closed: false }
    }

    /// Updates the expectation with `events`, which began with `self`.
    pub(super) fn follow(&mut self, events: &[Event]) {
        for event in events {
            let Event::Mark(mark) = event else { continue };
            match mark {
                Mark::Opened { rows } => *self = Self::new(rows.clone()),
                Mark::Closed => self.closed = true,
                Mark::Issued { session, steps } => {
                    self.sessions[*session as usize].steps.extend(steps);
                }
                Mark::Acknowledged { session, number, end } => {
                    let promise = &mut self.sessions[*session as usize];
                    let commit = Step::Commit { number: *number };
                    let at = promise.steps.iter().rposition(|step| *step == commit);
                    promise.sure = at.expect("what is acknowledged was issued") + 1;
                    promise.last = Some((*number, *end));
                }
            }
        }
    }

    /// Checks the result of a recovery. Rows in `may_be_damaged` may be refused. The error is the
    /// first oracle that is violated.
    pub fn check(
        &self,
        rows: &[Row],
        recovery: &Recovery,
        may_be_damaged: &BTreeSet<u32>,
    ) -> Result<(), Violation> {
        for (key, row) in (0..).zip(rows) {
            match row {
                Row::Wrong(what) => {
                    return Err(Violation::new("served", format!("row {key}: {what}")));
                }
                Row::Damaged(what) if !may_be_damaged.contains(&key) => {
                    return Err(Violation::new("damage", format!("row {key}: {what}")));
                }
                Row::Whole { scn, .. } if *scn > recovery.to.max(recovery.from) => {
                    let what = format!("row {key} is of {scn}, the redo ends at {}", recovery.to);
                    return Err(Violation::new("ahead", what));
                }
                Row::Whole { .. } | Row::Damaged(_) => {}
            }
        }
        let blocks: BTreeSet<u64> =
            may_be_damaged.iter().map(|key| block_of(u64::from(*key))).collect();
        if let Some(block) = recovery.damaged.iter().find(|block| !blocks.contains(block)) {
            return Err(Violation::new("damage", format!("recovery calls block {block} damaged")));
        }
        if self.closed && recovery.records > 0 {
            let what = format!("after a shutdown {} records were replayed", recovery.records);
            return Err(Violation::new("shutdown", what));
        }
        for (session, promise) in self.sessions.iter().enumerate() {
            self.check_session(session as u32, promise, rows, recovery)?;
        }
        Ok(())
    }

    fn check_session(
        &self,
        session: u32,
        promise: &Promise,
        rows: &[Row],
        recovery: &Recovery,
    ) -> Result<(), Violation> {
        let seen = recovery.last_commits.get(&u64::from(session)).copied();
        if let Some((number, end)) = promise.last
            && recovery.from.0 < end
            && seen.is_none_or(|seen| seen < number)
        {
            let what = format!(
                "session {session}: commit {number} ends at {} and was acknowledged; recovery \
                 from {} to {} saw {seen:?}",
                Lsn(end),
                recovery.from,
                recovery.to
            );
            return Err(Violation::new("commits", what));
        }
        let commit = |number| promise.steps.iter().rposition(|s| *s == Step::Commit { number });
        let recovered = match seen.map(|number| (number, commit(number))) {
            Some((number, None)) if !promise.steps.is_empty() => {
                let what = format!("session {session}: commit {number} was never issued");
                return Err(Violation::new("commits", what));
            }
            Some((_, Some(at))) => at + 1,
            Some((_, None)) | None => 0,
        };
        let least = promise.sure.max(recovered);
        let mut expected = self.rows.clone();
        let mut nearest = None;
        for length in 0..=promise.steps.len() {
            if length > 0
                && let Step::Change { row, heavy } = promise.steps[length - 1]
            {
                expected[row as usize].change(heavy);
            }
            if length < least {
                continue;
            }
            let wrong: Vec<usize> =
                rows_of(session).filter(|row| !is_seen(&expected[*row], &rows[*row])).collect();
            if wrong.is_empty() {
                return Ok(());
            }
            if nearest.as_ref().is_none_or(|(_, _, most)| wrong.len() < *most) {
                nearest = Some((wrong[0], expected[wrong[0]], wrong.len()));
            }
        }
        let (row, state, count) = nearest.expect("at least one length was tried");
        let what = format!(
            "session {session}: no point from step {least} to {} explains its rows; at the \
             nearest {count} differ, row {row} should be {} and is {}",
            promise.steps.len(),
            show(&state),
            show_row(&rows[row]),
        );
        Err(Violation::new("rows", what))
    }
}

fn is_seen(expected: &RowState, row: &Row) -> bool {
    match row {
        Row::Whole { state, .. } => state == expected,
        Row::Damaged(_) => true,
        Row::Wrong(_) => false,
    }
}

fn show(state: &RowState) -> String {
    let versions: BTreeSet<u64> = state.columns.iter().copied().collect();
    format!("version {} with columns of {versions:?}", state.version)
}

fn show_row(row: &Row) -> String {
    match row {
        Row::Whole { state, .. } => show(state),
        Row::Damaged(what) => format!("damaged ({what})"),
        Row::Wrong(what) => format!("wrong ({what})"),
    }
}

/// Checks that two recoveries found the same rows; those that may be damaged may differ in that.
/// The error is the first row that differs.
pub fn same(
    oracle: &'static str,
    first: &[Row],
    second: &[Row],
    may_be_damaged: &BTreeSet<u32>,
) -> Result<(), Violation> {
    for (key, (first, second)) in (0..).zip(first.iter().zip(second)) {
        let equal = match (first, second) {
            (Row::Whole { state: first, .. }, Row::Whole { state: second, .. }) => first == second,
            (Row::Damaged(_), Row::Damaged(_)) => true,
            (Row::Damaged(_), _) | (_, Row::Damaged(_)) => may_be_damaged.contains(&key),
            _ => false,
        };
        if !equal {
            let what = format!("row {key} was {} and is {}", show_row(first), show_row(second));
            return Err(Violation::new(oracle, what));
        }
    }
    Ok(())
}
