//! Views that differ between versions, our names for their columns, and the roles of the server's
//! processes.

use std::fmt::Display;
use std::path::Path;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{DATABASE, INSTANCE, ROLE, SQL};
use blockstone_sys::account;
use postgres::Row;
use postgres::row::RowIndex;
use postgres::types::FromSql;

use super::Client;
use crate::sql::Member;
use crate::sql::error::{During, SqlError};
use crate::sql::processes::SESSION;

/// The versions of one view, each with the first server version that has it.
pub type Forms = [(u32, &'static str)];

/// Checkpoints, and the blocks written by each kind of process.
pub const CHECKPOINTS: &Forms = &[
    (13, include_str!("../../sql/postgres/checkpoints_13.sql")),
    (17, include_str!("../../sql/postgres/checkpoints_17.sql")),
    (18, include_str!("../../sql/postgres/checkpoints_18.sql")),
];
pub const WAL: &Forms = &[
    (14, include_str!("../../sql/postgres/wal_14.sql")),
    (16, include_str!("../../sql/postgres/wal_16.sql")),
    (18, include_str!("../../sql/postgres/wal_18.sql")),
];

const SETTINGS: &str = include_str!("../../sql/postgres/settings.sql");

/// Returns the form of a view for `version`; `None` if the view was added later.
pub fn form(forms: &Forms, version: u32) -> Option<&'static str> {
    forms.iter().rev().find(|(since, _)| *since <= version).map(|(_, text)| *text)
}

/// Reads a value of an answer. Answers may come from an unknown version, or from a server other
/// than PostgreSQL: the column may be missing or of another type.
pub fn value<'a, T: FromSql<'a>>(
    row: &'a Row,
    index: impl RowIndex + Display,
) -> Result<T, SqlError> {
    row.try_get(index).during("read the server's answer")
}

/// Returns the columns of a row that belong to a series for the whole server.
pub fn statistics(row: &Row) -> Vec<(&'static str, u64)> {
    let known = [&INSTANCE, &SQL, &DATABASE].into_iter().flat_map(|schema| schema.columns);
    known
        .filter_map(|column| {
            let index = row.columns().iter().position(|found| found.name() == column.name)?;
            Some((column.name, row.try_get::<_, Option<i64>>(index).ok()?? as u64))
        })
        .collect()
}

/// Returns I/O by role for versions without `pg_stat_io`: reads of all sessions, and blocks written
/// by each role.
pub fn old_transfers(statistics: &[(&str, u64)], block_bytes: u64) -> Vec<Reading> {
    let known = |name: &str| statistics.iter().find(|(known, _)| *known == name).map(|(_, n)| *n);
    let roles = [
        (SESSION, known("physical_reads"), known("session_written_blocks")),
        ("checkpointer", Some(0), known("checkpoint_written_blocks")),
        ("background writer", Some(0), known("writer_written_blocks")),
    ];
    let reading = |(role, reads, writes): (&str, Option<u64>, Option<u64>)| {
        let bytes = |ios: Option<u64>| ios.and_then(|ios| ios.checked_mul(block_bytes));
        let values = [reads, bytes(reads), None, writes, bytes(writes), None];
        Reading { probe: ROLE.probe, object: role.to_owned(), cells: values.map(Cell::from).into() }
    };
    roles.into_iter().map(reading).collect()
}

/// Returns the version as reported by the server, and its settings.
pub fn identity(link: &mut Client) -> Result<(String, Vec<(String, String)>), SqlError> {
    const READ: &str = "read settings";
    let row = link.query_one("SELECT current_setting('server_version')", &[]).during(READ)?;
    let rows = link.query(SETTINGS, &[]).during(READ)?;
    let settings = rows.iter().map(|row| Ok((value(row, 0)?, value(row, 1)?)));
    Ok((value(&row, 0)?, settings.collect::<Result<_, SqlError>>()?))
}

/// Returns the main process of the server to which the process `own` belongs.
pub fn postmaster(own: Option<Member>) -> Option<u32> {
    Some(account::process(Path::new("/"), own?.pid)?.parent)
}

/// Role of the processes that serve sessions.
pub const OTHERS: &str = "other sessions";

/// Returns the processes of a server with their roles, given its main process.
pub fn processes(postmaster: u32) -> Vec<(Member, &'static str)> {
    let children = account::children(Path::new("/"), postmaster).into_iter();
    children
        .map(|process| (Member { pid: process.pid, thread: None }, role(&process.title)))
        .collect()
}

/// Returns the role of a server process by its title, such as `postgres: 15/main: checkpointer `.
fn role(title: &str) -> &'static str {
    const ROLES: [&str; 17] = [
        "checkpointer",
        "background writer",
        "walwriter",
        "autovacuum launcher",
        "autovacuum worker",
        "logical replication launcher",
        "logical replication apply worker",
        "logical replication tablesync worker",
        "parallel worker",
        "io worker",
        "stats collector",
        "archiver",
        "startup",
        "walreceiver",
        "walsender",
        "walsummarizer",
        "slotsync worker",
    ];
    let last = title.rsplit(": ").next().unwrap_or_default();
    let whole = |role: &&str| {
        let rest = last.strip_prefix(role);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    ROLES.into_iter().find(whole).unwrap_or(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_views() {
        assert!(form(WAL, 13).is_none());
        assert!(form(CHECKPOINTS, 16).unwrap().contains("buffers_backend"));
        assert!(form(CHECKPOINTS, 17).unwrap().contains("pg_stat_checkpointer"));
        assert!(form(CHECKPOINTS, 18).unwrap().contains("num_done"));
    }

    #[test]
    fn roles_are_read_from_titles() {
        assert_eq!(role("postgres: 15/main: checkpointer "), "checkpointer");
        assert_eq!(role("postgres: io worker 2"), "io worker");
        assert_eq!(role("postgres: startup recovering 000000010000000000000001"), "startup");
        assert_eq!(role("postgres: me bench [local] SELECT"), OTHERS);
        assert_eq!(role("postgres: archiver_of_mine bench [local] idle"), OTHERS);
    }
}
