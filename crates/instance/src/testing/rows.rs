//! The rows of the small instance, which update each has seen, and what its sessions do to them.

use crate::block::COLUMNS;
use crate::redo::Lsn;

pub const ROWS: u64 = 81;
pub const SESSIONS: u32 = 3;

/// Which update each column of a row is from.
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
    /// It cannot be read, and the reader was told.
    Damaged(String),
    /// It was served, and is not what it should be.
    Wrong(String),
}

/// A step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Change { row: u32, heavy: bool },
    Commit { number: u64 },
}

/// What is known of the sessions at a moment of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A session begins a transaction.
    Issued { session: u32, steps: Vec<Step> },
    /// A commit was acknowledged to its session; its redo ends at `end`.
    Acknowledged { session: u32, number: u64, end: u64 },
    /// The instance opened with these rows.
    Opened { rows: Vec<RowState> },
    /// It was shut down in order.
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

/// The rows that only this session changes.
pub fn rows_of(session: u32) -> std::ops::Range<usize> {
    let share = ROWS as usize / SESSIONS as usize;
    let first = session as usize * share;
    first..first + share
}
