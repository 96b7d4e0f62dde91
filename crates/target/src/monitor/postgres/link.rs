//! The connection: what is asked over it, and what is not because it cannot be answered.

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

/// By it, our own statements are known among those of others.
pub const MARK: &str = "/* blockstone watch */";

/// What a session of a monitor is like: it changes nothing, waits for nothing, and asks no other
/// process for help.
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
    /// The user, and the database.
    pub user: String,
    pub database: String,
    /// Whether the user sees what other users do.
    pub sees_all: bool,
    /// Our own process, where the server is on this machine.
    pub own_process: Option<Member>,
    /// The server's main process, likewise.
    pub postmaster: Option<u32>,
    pub own: Own,
}

/// A query in the form that the server's version has, and why it is not sent any more.
#[derive(Default)]
pub struct Query {
    text: Option<String>,
    prepared: Option<Statement>,
    /// Why it is not answered, if it is not.
    pub unanswered: Option<Unmeasured>,
}

impl Query {
    /// The one among `forms` that `version` has.
    pub fn new(forms: &Forms, version: u32) -> Self {
        Self::from_text(form(forms, version).map(str::to_owned))
    }

    /// One that is the same in all versions.
    pub fn from_text(text: Option<String>) -> Self {
        // Behind the first word: a comment in front of all is not kept with the statement.
        let text = text.map(|text| text.trim().replacen(' ', &format!(" {MARK} "), 1));
        Self { text, ..Self::default() }
    }

    /// Whether this version has it, and nothing kept it from being answered.
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

    /// What would let this user see more.
    pub fn hint(&self) -> String {
        format!("GRANT pg_monitor TO {}", self.user)
    }

    /// The rows of `query`; none of one that is not answered, which is then not sent again.
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

    /// Why a query is not answered while the server is well; none when it may be the next time.
    fn excused(&self, error: &postgres::Error) -> Result<Option<Unmeasured>, SqlError> {
        let Some(said) = error.as_db_error() else {
            return Err(SqlError::statement("read counters", error));
        };
        let is_any = |states: &[SqlState]| states.contains(said.code());
        if is_any(&[SqlState::INSUFFICIENT_PRIVILEGE]) {
            let why = format!("{}: {}", said.message(), self.hint());
            return Ok(Some(Unmeasured::NotPermitted(why)));
        }
        // An extension that is not loaded, or is of another version than the server.
        let lacking = [
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::UNDEFINED_COLUMN,
        ];
        if is_any(&lacking) {
            return Ok(Some(Unmeasured::Off(said.message().to_owned())));
        }
        // It took too long, or a standby had to end it.
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
