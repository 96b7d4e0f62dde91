//! Keeps code of the server's users out of this session.
//!
//! A superuser's session runs any code that a statement leads to with all rights. So statements on
//! tables call only the server's own functions, and the tables do not change while they are read:
//!
//! - Names keep referring to the same tables: the tables are locked against changes, and so are the
//!   names of schemas if other users own schemas or tables and this user is a superuser. The
//!   catalogue is read after that.
//! - The planner evaluates constant parts of expressions in indexes and statistics. Those with code
//!   of other users are refused, and none can be added while the tables are locked.
//! - The rewriter refuses to read views and foreign tables, in server versions with that setting.

use crate::postgres::Client;
use postgres::error::SqlState;

use super::qualified;
use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};

const RELATIONS: &str = include_str!("../../../sql/subset/postgres/relations.sql");
const HELD: &str = include_str!("../../../sql/subset/postgres/held.sql");
const PLANNED: &str = include_str!("../../../sql/subset/postgres/planned.sql");
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
const TABLES_ONLY: &str = "SELECT set_config(name, 'view,foreign-table', false) FROM pg_settings \
    WHERE name = 'restrict_nonsystem_relation_kind'";
const ROLE: &str =
    "SELECT rolsuper, pg_is_in_recovery() FROM pg_roles WHERE rolname = current_user";
const LOCK: &str = "lock the tables against changes of their columns";
/// Names per statement.
const BATCH: usize = 500;

/// Restricts a session to reading tables.
pub fn read_tables_only(link: &mut Client) -> Result<(), SqlError> {
    link.batch_execute(TABLES_ONLY).during("set up the session")
}

/// A table or partition, as it was before anything was locked.
struct Relation {
    name: String,
    is_partition: bool,
    is_trusted: bool,
    may_read: bool,
}

/// The relations to lock.
pub struct Relations {
    all: Vec<Relation>,
    /// Also locks tables of other owners against new indexes, because this user is a superuser.
    is_strict: bool,
    /// Whether other users could rename a schema.
    are_schemas_theirs: bool,
    server: String,
}

impl Relations {
    /// Lists the relations, before any of them is read.
    pub fn list(link: &mut Client, server: &str) -> Result<Self, SqlError> {
        let (mut all, mut are_schemas_theirs) = (Vec::new(), false);
        for row in link.query(RELATIONS, &[]).during("list the tables")? {
            let (schema, name): (String, String) = (value(&row, 0)?, value(&row, 1)?);
            let is_trusted: bool = value(&row, 3)?;
            are_schemas_theirs |= !value::<bool>(&row, 4)?;
            let (is_partition, may_read) = (value(&row, 2)?, value(&row, 5)?);
            all.push(Relation {
                name: qualified(&schema, &name),
                is_partition,
                is_trusted,
                may_read,
            });
        }
        let row = link.query_one(ROLE, &[]).during("query the rights of this user")?;
        let is_strict: bool = value(&row, 0)?;
        let are_theirs = are_schemas_theirs || all.iter().any(|it: &Relation| !it.is_trusted);
        if is_strict && are_theirs && value::<bool>(&row, 1)? {
            return Err(SqlError::unsuitable(
                server,
                "this user is a superuser, tables or schemas belong to others, and a standby \
                 cannot keep them from putting code in place of a table",
                "name a role without superuser that may read all tables, or the primary server",
            ));
        }
        Ok(Self { all, is_strict, are_schemas_theirs, server: server.to_owned() })
    }

    /// Begins a transaction in which they cannot change. Its snapshot is taken afterwards.
    pub fn begin(&self, link: &mut Client) -> Result<(), SqlError> {
        link.batch_execute(BEGIN).during("begin a snapshot")?;
        if self.is_strict {
            link.batch_execute("SET LOCAL lock_timeout = '30s'").during(LOCK)?;
            if self.are_schemas_theirs {
                lock(link, &["pg_catalog.pg_namespace"], "SHARE")?;
            }
            let others = self.all.iter().filter(|relation| !relation.is_trusted);
            lock(link, &names(others), "SHARE UPDATE EXCLUSIVE")?;
            link.batch_execute("SET LOCAL lock_timeout = 0").during(LOCK)?;
        }
        let tables = self.all.iter().filter(|it| it.may_read && !it.is_partition);
        lock(link, &names(tables), "ACCESS SHARE")
    }

    /// Checks that these tables and partitions, as seen by the snapshot, are locked, and that the
    /// server can plan reading them without code of others.
    pub fn check(&self, link: &mut Client, oids: &[u32]) -> Result<(), SqlError> {
        let ask = link.query(HELD, &[&oids, &self.is_strict]);
        if let Some(row) = ask.during("look at the locks of tables")?.first() {
            let name = qualified(&value::<String>(row, 0)?, &value::<String>(row, 1)?);
            return Err(SqlError::unsuitable(
                &self.server,
                format!("{name} was made or changed meanwhile"),
                "take the subset again",
            ));
        }
        let found = link.query_opt(PLANNED, &[&oids]).during("look at expressions of indexes")?;
        let Some(row) = found else { return Ok(()) };
        let (table, what): (String, String) = (value(&row, 0)?, value(&row, 1)?);
        let (code, owner): (String, String) = (value(&row, 2)?, value(&row, 3)?);
        Err(SqlError::unsuitable(
            &self.server,
            format!(
                "the server may run {code} of the role {owner} to read {table}, for its {what}"
            ),
            format!("name {owner} as the user, or have a superuser own {code}"),
        ))
    }
}

fn names<'r>(relations: impl Iterator<Item = &'r Relation>) -> Vec<&'r str> {
    relations.map(|relation| relation.name.as_str()).collect()
}

fn lock(link: &mut Client, names: &[&str], mode: &str) -> Result<(), SqlError> {
    for names in names.chunks(BATCH) {
        let text = format!("LOCK TABLE {} IN {mode} MODE", names.join(", "));
        link.batch_execute(&text).map_err(|error| {
            let hint = match error.code() {
                Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    "wait until nobody vacuums, indexes or changes the tables, or takes a subset"
                }
                Some(code) if *code == SqlState::UNDEFINED_TABLE => "take the subset again",
                _ => return SqlError::statement(LOCK, &error),
            };
            match SqlError::statement(LOCK, &error) {
                SqlError::Statement { what, why, .. } => {
                    SqlError::Statement { what, why, hint: hint.to_owned() }
                }
                other => other,
            }
        })?;
    }
    Ok(())
}
