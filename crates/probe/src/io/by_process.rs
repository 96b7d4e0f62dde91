//! The probe `io_by_process`: bytes moved by disk, role, process and file, or the bytes that the
//! kernel charges to processes where I/O is not counted.

use std::sync::{Arc, Mutex, PoisonError};

use blockstone_base::column::Schema;

use super::accounts::Accounts;
use super::board::Board;
use super::process_columns::SCHEMA;
use crate::{Probe, Row, Unmeasured};

/// The board, which the probe that reads the kernel's sums shares with the probe that reports it.
pub(super) type Shared = Arc<Mutex<Board>>;

/// The probe: it reports the board, or what the kernel charges to processes if I/O is not counted.
#[derive(Debug)]
pub(super) struct ByProcess {
    source: Source,
    /// Reason why what kernel threads write back is not charged to processes.
    uncharged: Option<Unmeasured>,
}

#[derive(Debug)]
enum Source {
    Board(Shared),
    Accounts(Accounts),
}

impl ByProcess {
    pub fn of_board(board: Shared, uncharged: Option<Unmeasured>) -> Self {
        Self { source: Source::Board(board), uncharged }
    }

    pub fn of_accounts(accounts: Accounts) -> Self {
        Self { source: Source::Accounts(accounts), uncharged: None }
    }
}

impl Probe for ByProcess {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        match &mut self.source {
            Source::Board(board) => {
                board.lock().unwrap_or_else(PoisonError::into_inner).rows(rows);
            }
            Source::Accounts(accounts) => accounts.sample(rows),
        }
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        match &self.source {
            Source::Board(_) => {
                self.uncharged.iter().map(|why| ("write_back_bytes", why.clone())).collect()
            }
            Source::Accounts(accounts) => accounts.unmeasured(),
        }
    }
}
