//! A database next to the destination in which a subset is loaded and verified; one statement moves
//! its tables to the destination. Remains of a killed load are removed by the next one.

use mysql::prelude::Queryable;
use sha2::{Digest, Sha256};

use super::{Server, failed, quoted};
use crate::mariadb::answer;
use crate::sql::error::{During, SqlError};

const PREFIX: &str = "blockstone_subset_";
const NAME_CHARS: usize = 64;
/// The table that marks the database as created for a load.
const MARK: &str = "made_by_a_subset";
const LOOK: &str = "look for leftovers of a load";
/// Seconds that the session of a killed load may take to end.
const LOCK_SECONDS: u32 = 10;
const FIRST: &str = "SELECT TABLE_NAME FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() UNION ALL
    SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() LIMIT 1";
const DEFAULTS: &str = "SELECT @@character_set_database, @@collation_database";

/// Returns the name of the staging database of a destination.
pub fn name(database: &str) -> String {
    let room = NAME_CHARS - PREFIX.len();
    if database.chars().count() <= room {
        return format!("{PREFIX}{database}");
    }
    let hash = Sha256::digest(database.as_bytes());
    let hash = hash.iter().take(8).fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
    let begin: String = database.chars().take(room - 17).collect();
    format!("{PREFIX}{begin}_{hash:016x}")
}

/// Returns the privileges that this user needs for a load.
pub fn grant(server: &Server) -> String {
    let (own, staging) = (quoted(&server.database), quoted(&name(&server.database)));
    format!("GRANT ALL ON {own}.* and ON {staging}.* TO this user")
}

/// Takes the lock of a load, removes the remains of a killed one, creates the database, and selects
/// it.
pub fn make(server: &mut Server) -> Result<(), SqlError> {
    let staging = name(&server.database);
    let ask = format!("SELECT GET_LOCK(?, {LOCK_SECONDS})");
    let taken: Option<Option<u32>> =
        answer::executed(&mut server.link, ask, (&staging,)).during("take the lock of a load")?;
    if taken.flatten() != Some(1) {
        let why = format!("another subset is loaded into {}", quoted(&server.database));
        return Err(SqlError::unsuitable(&server.address.name, why, "wait for its end"));
    }
    remove_left(server, &staging)?;
    let first: Option<String> = answer::first(&mut server.link, FIRST).during("look for tables")?;
    if let Some(first) = first {
        let why = format!("the database {} has {} already", server.database, quoted(&first));
        let hint = "name an empty database: CREATE DATABASE …";
        return Err(SqlError::unsuitable(&server.address.name, why, hint));
    }
    let what = "make a database to load into";
    let grant = grant(server);
    let defaults: Option<(String, String)> =
        answer::first(&mut server.link, DEFAULTS).during(what)?;
    let (charset, collation) = defaults.unwrap_or_default();
    let quoted_name = quoted(&staging);
    for statement in [
        format!("CREATE DATABASE {quoted_name} CHARACTER SET {charset} COLLATE {collation}"),
        format!("CREATE TABLE {quoted_name}.{MARK} (n int)"),
        format!("USE {quoted_name}"),
    ] {
        server.link.query_drop(statement).map_err(failed(what, &grant))?;
    }
    Ok(())
}

fn remove_left(server: &mut Server, staging: &str) -> Result<(), SqlError> {
    let ask = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?";
    let found: Option<u32> = answer::executed(&mut server.link, ask, (staging,)).during(LOOK)?;
    if found.is_none() {
        return Ok(());
    }
    let ask = "SELECT count(*), coalesce(sum(TABLE_NAME = ?), 0) FROM information_schema.TABLES
        WHERE TABLE_SCHEMA = ?";
    let known: Option<(u64, u64)> =
        answer::executed(&mut server.link, ask, (MARK, staging)).during(LOOK)?;
    // A load killed between its first two statements leaves an empty database.
    if known.is_some_and(|(tables, marks)| tables > 0 && marks == 0) {
        return Err(SqlError::unsuitable(
            &server.address.name,
            format!("it has a database {staging} that no load made"),
            "rename or drop it, or name another destination",
        ));
    }
    remove(server)
}

/// Removes the database.
pub fn remove(server: &mut Server) -> Result<(), SqlError> {
    let staging = name(&server.database);
    let drop = format!(
        "SET foreign_key_checks = 0; DROP DATABASE IF EXISTS {}; SET foreign_key_checks = 1",
        quoted(&staging)
    );
    run(server, &drop, "remove the database of a load")
}

/// Executes statements sent in one request: the server executes all of them, whatever happens to
/// this program.
pub fn run(server: &mut Server, statements: &str, what: &str) -> Result<(), SqlError> {
    let grant = grant(server);
    let failed = failed(what, &grant);
    let mut result = server.link.query_iter(statements).map_err(&failed)?;
    while let Some(set) = result.iter() {
        for row in set {
            row.map_err(&failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        assert_eq!(name("shop"), "blockstone_subset_shop");
        let long = ["a", "b"].map(|end| name(&format!("{}{end}", "x".repeat(63))));
        assert!(long[0] != long[1] && long.iter().all(|name| name.len() <= NAME_CHARS));
    }
}
