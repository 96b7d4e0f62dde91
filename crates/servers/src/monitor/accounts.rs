//! Resource usage that the operating system charges to a server's processes or threads on this
//! machine.

use blockstone_base::column::{Cell, Reading, Unmeasured};
use blockstone_base::database::{SERVER, SESSION_STATISTICS};

use super::recent::{CHARGED_IO, CHARGED_TIME, charged};
use crate::sql::Member;
use crate::sql::processes::{Processes, SESSION};
use crate::unmeasured::{Missing, numbers, some};

/// Charges by column of the series `session_statistics`.
pub type Charges = Vec<(&'static str, Cell)>;

#[derive(Debug, Default)]
pub struct Accounts {
    processes: Processes,
    members: Vec<(Member, String)>,
    /// Whether the system reported the I/O of all members; `None` before the first look.
    has_io: Option<bool>,
}

impl Accounts {
    /// Appends charges by role; `list` is called for all members with their roles when they are
    /// due.
    pub fn look(
        &mut self,
        readings: &mut Vec<Reading>,
        list: impl FnOnce() -> Vec<(Member, String)>,
    ) {
        let members = &mut self.members;
        let seen = self.processes.look(false, || {
            *members = list();
            members.clone()
        });
        let rows = seen.iter().filter(|row| row.probe == SERVER.probe);
        let reported = rows.map(|row| !row.cells.contains(&Cell::Unmeasured));
        self.has_io = reported.reduce(|one, other| one && other).or(self.has_io);
        readings.extend(seen);
    }

    /// Returns the running background members, each with its role and charges.
    pub fn background(&self) -> impl Iterator<Item = (Member, &str, Charges)> {
        let background = self.members.iter().filter(|(_, role)| role != SESSION);
        background.filter_map(|(member, role)| Some((*member, role.as_str(), charged(*member)?)))
    }

    /// Returns the columns that are not charged: all, if the server is `elsewhere`, on another
    /// machine, or those of I/O, which is `hidden` from some users.
    pub fn missing(&self, elsewhere: Option<Unmeasured>, hidden: &str) -> Missing {
        let charged_io = |why| some(&SESSION_STATISTICS, &CHARGED_IO, why);
        if let Some(why) = elsewhere {
            let time = some(&SESSION_STATISTICS, &CHARGED_TIME, &why);
            return [numbers(&SERVER, &why), time, charged_io(&why)].concat();
        }
        if self.has_io != Some(false) {
            return Missing::new();
        }
        let why = Unmeasured::NotPermitted(hidden.to_owned());
        let io = ["requested_read_bytes", "requested_write_bytes", "read_bytes", "write_bytes"];
        [some(&SERVER, &io, &why), charged_io(&why)].concat()
    }
}
