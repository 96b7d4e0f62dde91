//! Recently active sessions, with the resource usage charged to each by the operating system.

use std::collections::BTreeMap;
use std::path::Path;

use blockstone_base::column::Cell;
use blockstone_sys::account;

use crate::sql::Member;

/// Number of looks for which a session is reported after it was last active.
const LOOKS: u32 = 60;
const SESSIONS_MAX: usize = 200;

/// Sessions by the database's number.
#[derive(Debug, Default)]
pub struct Recent(BTreeMap<u32, RecentSession>);

#[derive(Debug)]
struct RecentSession {
    member: Option<Member>,
    left: u32,
}

impl Recent {
    /// Records that session `number`, which is `member` in the operating system, is working.
    pub fn works(&mut self, number: u32, member: Option<Member>) {
        if self.0.len() < SESSIONS_MAX || self.0.contains_key(&number) {
            self.0.insert(number, RecentSession { member, left: LOOKS });
        }
    }

    pub fn take(&mut self) -> Vec<(u32, Option<Member>)> {
        self.0.retain(|_, seen| {
            seen.left = seen.left.saturating_sub(1);
            seen.left > 0
        });
        self.0.iter().map(|(number, seen)| (*number, seen.member)).collect()
    }

    /// Forgets all sessions, because none exists any longer.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

/// Returns what the operating system charges to `member`, by column of the series
/// `session_statistics`; `None` if it has ended.
pub fn charged(member: Member) -> Option<Vec<(&'static str, Cell)>> {
    let account = account::account(Path::new("/"), member.pid, member.thread)?;
    let io = account.io;
    Some(vec![
        ("cpu_ns", Cell::from(account.cpu_ns)),
        ("run_queue_ns", Cell::from(account.run_queue_ns)),
        ("requested_read_bytes", Cell::from(io.map(|io| io.requested_read_bytes))),
        ("requested_write_bytes", Cell::from(io.map(|io| io.requested_write_bytes))),
        ("charged_read_bytes", Cell::from(io.map(|io| io.read_bytes))),
        ("charged_write_bytes", Cell::from(io.map(|io| io.write_bytes))),
    ])
}

/// Columns of [`charged`] that need a privilege.
pub const CHARGED_IO: [&str; 4] =
    ["requested_read_bytes", "requested_write_bytes", "charged_read_bytes", "charged_write_bytes"];
/// Columns of [`charged`] that do not.
pub const CHARGED_TIME: [&str; 2] = ["cpu_ns", "run_queue_ns"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_told_for_a_while_after_it_worked() {
        let mut recent = Recent::default();
        recent.works(7, None);
        assert_eq!(recent.take(), [(7, None)]);
        for _ in 2..LOOKS {
            recent.take();
        }
        assert_eq!(recent.take(), []);
    }

    #[test]
    fn a_process_is_charged_for_what_it_took() {
        let cells = charged(Member { pid: std::process::id(), thread: None }).unwrap();
        assert!(cells.iter().all(|(_, cell)| matches!(cell, Cell::Value(_))), "{cells:?}");
    }
}
