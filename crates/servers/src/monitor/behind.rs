//! A wrapper that passes all calls to a monitor across the border to its server.

use blockstone_base::column::{Reading, Schema};

use super::{Monitor, Server};
use crate::sql::Member;
use crate::sql::border::Border;
use crate::sql::error::SqlError;
use crate::sql::host::ServerAddress;
use crate::unmeasured::Missing;

pub struct Behind<A, M> {
    address: A,
    border: Border,
    monitor: M,
    /// Whether it has returned counters since connecting. Until then, the time limit of a
    /// connection applies.
    has_answered: bool,
}

impl<A: ServerAddress, M: Monitor> Behind<A, M> {
    pub fn new(address: A, monitor: M) -> Self {
        let border = address.border();
        Self { address, border, monitor, has_answered: false }
    }
}

impl<A: ServerAddress, M: Monitor> Monitor for Behind<A, M> {
    fn series(&self) -> &'static [&'static Schema] {
        self.monitor.series()
    }

    fn counters(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        if self.has_answered {
            return self.border.cross(|| self.monitor.counters(readings));
        }
        self.address.within_limit(|| self.monitor.counters(readings))?;
        self.has_answered = true;
        Ok(())
    }

    fn sessions(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        if self.has_answered {
            return self.border.cross(|| self.monitor.sessions(readings));
        }
        self.address.within_limit(|| self.monitor.sessions(readings))
    }

    fn unmeasured(&self) -> Missing {
        self.monitor.unmeasured()
    }

    fn describe(&self) -> Server {
        self.monitor.describe()
    }

    fn processes(&mut self) -> Vec<(Member, String)> {
        // If the server's answer makes no sense, no processes are known; `counters` reports the
        // error.
        let asked = self.border.cross(|| Ok::<_, SqlError>(self.monitor.processes()));
        asked.unwrap_or_default()
    }

    fn reconnect(&mut self) -> Result<(), SqlError> {
        self.has_answered = false;
        self.monitor.reconnect()
    }
}
