//! The connection: its user, and the information available to that user on this server.

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, Row, Statement};

use crate::mariadb::counters;
use crate::mariadb::{Address, FAMILY, MARIADB_MIN, answer, process_of, product};
use crate::sql::error::{During, SqlError};
use crate::sql::host::ServerAddress;

/// Settings of a monitor's session: it changes nothing and never waits long.
const SESSION: [&str; 3] = [
    "SET SESSION max_statement_time = 5",
    "SET SESSION lock_wait_timeout = 1",
    "SET SESSION TRANSACTION READ ONLY",
];

pub struct Link {
    client: Conn,
    pub release: String,
    port: Option<u16>,
    pub settings: Vec<(String, String)>,
    pub user: String,
    /// Whether the user sees the activity of other users.
    pub sees_all: bool,
    /// Whether the performance schema is enabled, and whether the user may read it.
    pub schema: Schema,
    /// The server's process, if it is on this machine.
    pub pid: Option<u32>,
    pub own_thread: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    pub is_on: bool,
    pub is_readable: bool,
    /// It records what sessions wait for.
    pub has_waits: bool,
    /// It records the digests of statements in progress.
    pub has_statements: bool,
}

impl Schema {
    /// Whether its tables are available to us.
    pub fn is_usable(self) -> bool {
        self.is_on && self.is_readable
    }
}

impl Link {
    pub fn open(address: &Address) -> Result<Self, SqlError> {
        const ASK: &str = "SELECT @@version, CURRENT_USER(), @@performance_schema,
            (SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID())";
        let mut client = address.connect()?;
        let version: Option<String> =
            answer::first(&mut client, "SELECT @@version").during("query its version")?;
        check(&address.name, &version.unwrap_or_default())?;
        for setting in SESSION {
            client.query_drop(setting).during("set up the session")?;
        }
        let asked: Option<(String, String, bool, Option<u32>)> =
            answer::first(&mut client, ASK).during("query its version")?;
        let (release, user, is_on, own_thread) = asked.unwrap_or_default();
        let port = answer::first(&mut client, "SELECT @@port").during("query its port")?;
        let settings = counters::settings(&mut client)?;
        let sees_all =
            client.query_drop("SELECT trx_id FROM information_schema.INNODB_TRX").is_ok();
        let schema = schema(&mut client, is_on);
        let pid = process_of(address, &mut client);
        let own_thread = own_thread.filter(|_| pid.is_some());
        Ok(Self { client, release, port, settings, user, sees_all, schema, pid, own_thread })
    }

    /// Returns the server's name.
    pub fn instance(&self, address: &Address) -> String {
        // Without networking, it has no port.
        match self.port.filter(|port| self.pid.is_some() && *port > 0) {
            Some(port) => format!("{}@{port}", FAMILY.name),
            None => super::super::instance(FAMILY.name, &address.peers(), self.pid.is_some()),
        }
    }

    /// Returns a statement that would let this user see more.
    pub fn hint(&self) -> String {
        format!("GRANT PROCESS ON *.* TO {}", self.user)
    }

    /// Returns a statement that would let this user read the performance schema.
    pub fn schema_hint(&self) -> String {
        format!("GRANT SELECT ON performance_schema.* TO {}", self.user)
    }

    /// Returns the rows of a query; none if it timed out.
    pub fn ask<T: FromRow>(&mut self, query: &str) -> Result<Vec<T>, SqlError> {
        answer::rows(&mut self.client, query).or_else(|error| excused(&error))
    }

    /// Prepares a query that is sent repeatedly.
    pub fn prepare(&mut self, query: &str) -> Result<Statement, SqlError> {
        self.client.prep(query).during("read counters")
    }

    /// Returns the rows of a prepared query; none if it timed out.
    pub fn send(&mut self, prepared: &Statement) -> Result<Vec<Row>, SqlError> {
        self.client.exec(prepared, ()).or_else(|error| excused(&error))
    }
}

/// Returns no rows if the query timed out; every other error is passed on.
fn excused<T>(error: &mysql::Error) -> Result<Vec<T>, SqlError> {
    const TOO_LONG: [u16; 2] = [1969, 1205];
    match error {
        mysql::Error::MySqlError(said) if TOO_LONG.contains(&said.code) => Ok(Vec::new()),
        error => Err(SqlError::statement("read counters", error)),
    }
}

fn check(server: &str, version: &str) -> Result<(), SqlError> {
    let (is_mariadb, numbers) = product(version);
    let why = match (is_mariadb, numbers >= MARIADB_MIN) {
        (true, true) => return Ok(()),
        (true, false) => format!("it is version {version}"),
        (false, _) => format!("it is MySQL {version}, whose views differ"),
    };
    Err(SqlError::unsuitable(server, why, "MariaDB 10.11 and later can be watched"))
}

fn schema(client: &mut Conn, is_on: bool) -> Schema {
    const CONSUMERS: &str = "SELECT NAME FROM performance_schema.setup_consumers
        WHERE ENABLED = 'YES'";
    let consumers: Result<Vec<String>, _> = answer::rows(client, CONSUMERS);
    let threads = client.query_drop("SELECT THREAD_ID FROM performance_schema.threads LIMIT 1");
    let is_readable = consumers.is_ok() && threads.is_ok();
    let on = consumers.unwrap_or_default();
    let has = |name: &str| is_on && is_readable && on.iter().any(|known| known == name);
    let (waits, statements) = (has("events_waits_current"), has("events_statements_current"));
    Schema { is_on, is_readable, has_waits: waits, has_statements: statements }
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn what_cannot_be_watched_is_refused_with_a_hint() {
        assert!(check("mysql://h", "10.11.19-MariaDB-0+deb12u1").is_ok());
        assert!(check("mysql://h", "11.4.2-MariaDB").is_ok());
        for other in ["8.4.0", "10.6.1-MariaDB"] {
            let error = check("mysql://h", other).unwrap_err().told();
            assert!(error.contains(other) && error.contains("\nhint: "), "{error}");
        }
    }
}
