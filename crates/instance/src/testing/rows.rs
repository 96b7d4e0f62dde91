//! The rows of the small instance, the updates each has seen, and the steps of its sessions.

use crate::block::COLUMNS;
use crate::redo::Lsn;

pub const ROWS: u64 = 81;
pub const SESSIONS: u32 = 3;

/// The update that each column of a row comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowState {
    pub version: u64,
    pub columns: [u64; COLUMNS],
}

/// A row as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Whole {
        state: RowState,
        scn: Lsn,
    },
    /// It cannot be read, and the reader was informed.
    Damaged(String),
    /// It was served, but is not what it should be.
    Wrong(String),
}

/// A step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Change { row: u32, heavy: bool },
    Commit { number: u64 },
}

/// Information about the sessions at one point of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A session begins a transaction.
    Issued { session: u32, steps: Vec<Step> },
    /// A commit was acknowledged to its session; its redo ends at `end`.
    Acknowledged { session: u32, number: u64, end: u64 },
    /// The instance opened with these rows.
    Opened { rows: Vec<RowState> },
    /// The instance was shut down in order.
    Closed,
}

impl RowState {
    pub fn change(&mut self, heavy: bool) {
        self.version += 1;
        for (index, column) in self.columns.iter_mut().enumerate() {
            if heavy || index == 0 || index == COLUMNS - 1 {
                *column = self.version;
            }
        }
    }
}

/// Returns the rows that only this session changes.
pub fn rows_of(session: u32) -> std::ops::Range<usize> {
    let share = ROWS as usize / SESSIONS as usize;
    let first = session as usize * share;
    first..first + share
}
