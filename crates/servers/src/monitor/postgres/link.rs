//! The connection: its queries, and why some of them are not answered.

use std::time::Instant;

use blockstone_base::column::Unmeasured;
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Row, Statement};

use crate::monitor::own::Own;
use crate::postgres::Client;
use crate::postgres::address::Address;
use crate::postgres::views::{Forms, form, identity, postmaster, value};
use crate::postgres::{VERSION_MIN, member};
use crate::sql::Member;
use crate::sql::error::{During, SqlError};
use crate::sql::host::ServerAddress;

/// Identifies our own statements among those of others.
pub const MARK: &str = "/* blockstone watch */";

/// Settings of a monitor's session: it changes nothing, waits for nothing, and uses no parallel
/// workers.
const SETTINGS: [&str; 5] = [
    "default_transaction_read_only = on",
    "statement_timeout = '5s'",
    "lock_timeout = '1s'",
    "max_parallel_workers_per_gather = 0",
    "jit = off",
];

pub struct Link {
    client: Client,
    pub version: u32,
    pub release: String,
    pub settings: Vec<(String, String)>,
    /// The user and the database of the session.
    pub user: String,
    pub database: String,
    /// Whether the user sees the activity of other users.
    pub sees_all: bool,
    /// Our own process, if the server is on this machine.
    pub own_process: Option<Member>,
    /// The server's main process, if it is on this machine.
    pub postmaster: Option<u32>,
    pub own: Own,
}

/// A query in the form for the server's version, and the reason if it is no longer sent.
#[derive(Default)]
pub struct Query {
    text: Option<String>,
    prepared: Option<Statement>,
    /// The reason why it is not answered, if any.
    pub unanswered: Option<Unmeasured>,
}

impl Query {
    /// Creates the query from the form for `version`.
    pub fn new(forms: &Forms, version: u32) -> Self {
        Self::from_text(form(forms, version).map(str::to_owned))
    }

    /// Creates a query that is the same in all versions.
    pub fn from_text(text: Option<String>) -> Self {
        // After the first word, because the server does not keep a leading comment with the
        // statement.
        let text = text.map(|text| text.trim().replacen(' ', &format!(" {MARK} "), 1));
        Self { text, ..Self::default() }
    }

    /// Whether this version has the query and it has not failed for good.
    pub fn is_answered(&self) -> bool {
        self.text.is_some() && self.unanswered.is_none()
    }
}

impl Link {
    pub fn open(address: &Address) -> Result<Self, SqlError> {
        const ASK: &str = "SELECT current_setting('server_version_num')::int,
            current_user::text, current_database()::text,
            pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')";
        let mut client = address.connect()?;
        for setting in SETTINGS {
            client.batch_execute(&format!("SET {MARK} {setting}")).during("set up the session")?;
        }
        let row = client.query_one(ASK, &[]).during("query its version")?;
        let version = u32::try_from(value::<i32>(&row, 0)?).unwrap_or(0) / 10_000;
        let (release, settings) = identity(&mut client)?;
        if version < VERSION_MIN {
            let hint = format!("PostgreSQL {VERSION_MIN} and later are supported");
            return Err(SqlError::unsuitable(
                &address.name,
                format!("it is version {release}"),
                hint,
            ));
        }
        let own_process = member(address, &mut client);
        Ok(Self {
            client,
            version,
            release,
            settings,
            user: value(&row, 1)?,
            database: value(&row, 2)?,
            sees_all: value(&row, 3)?,
            own_process,
            postmaster: postmaster(own_process),
            own: Own::default(),
        })
    }

    pub fn block_bytes(&self) -> u64 {
        let known = self.settings.iter().find(|(name, _)| name == "block_size");
        known.and_then(|(_, value)| value.parse().ok()).unwrap_or(8192)
    }

    /// Returns a statement that would let this user see more.
    pub fn hint(&self) -> String {
        format!("GRANT pg_monitor TO {}", self.user)
    }

    /// Returns the rows of `query`. A query that cannot be answered returns none and is not sent
    /// again.
    pub fn ask(
        &mut self,
        query: &mut Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, SqlError> {
        let Some(text) = query.text.as_deref().filter(|_| query.unanswered.is_none()) else {
            return Ok(Vec::new());
        };
        let started = Instant::now();
        let prepared = match &query.prepared {
            Some(prepared) => Ok(prepared.clone()),
            None => self.client.prepare(text),
        };
        if query.prepared.is_none() {
            self.own.sent(started);
        }
        let started = Instant::now();
        let rows = prepared.and_then(|prepared| {
            query.prepared = Some(prepared.clone());
            self.client.query(&prepared, parameters)
        });
        self.own.sent(started);
        rows.or_else(|error| {
            query.unanswered = self.excused(&error)?;
            Ok(Vec::new())
        })
    }

    /// Returns why a query can never be answered; `None` if it may succeed next time. Other errors
    /// are passed on.
    fn excused(&self, error: &postgres::Error) -> Result<Option<Unmeasured>, SqlError> {
        let Some(said) = error.as_db_error() else {
            return Err(SqlError::statement("read counters", error));
        };
        let is_any = |states: &[SqlState]| states.contains(said.code());
        if is_any(&[SqlState::INSUFFICIENT_PRIVILEGE]) {
            let why = format!("{}: {}", said.message(), self.hint());
            return Ok(Some(Unmeasured::NotPermitted(why)));
        }
        // The extension is not loaded, or its version does not match the server's.
        let lacking = [
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::UNDEFINED_COLUMN,
        ];
        if is_any(&lacking) {
            return Ok(Some(Unmeasured::Off(said.message().to_owned())));
        }
        // The query timed out, or a standby had to cancel it.
        let passing = [
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::T_R_SERIALIZATION_FAILURE,
        ];
        if is_any(&passing) {
            return Ok(None);
        }
        Err(SqlError::statement("read counters", error))
    }
}
