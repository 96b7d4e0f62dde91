//! Rights of routines, views and triggers in a loaded schema.
//!
//! Without a definer, a created object has the rights of the user who loads it. So routines and
//! views are created with the rights of their callers. A trigger always has those of its definer,
//! and is only created if that account exists.

use super::Server;
use super::ddl::{Account, as_invoker, trigger};
use crate::mariadb::answer;
use crate::sql::error::{During, SqlError};
use crate::subset::source::named;

const OWN: &str = "SELECT CURRENT_USER()";
const KNOWN: &str = "SELECT count(*) FROM mysql.user WHERE User = ? AND Host = ?";
const INVOKERS: &str = "SELECT ROUTINE_NAME FROM information_schema.ROUTINES
    WHERE ROUTINE_SCHEMA = DATABASE() UNION ALL
    SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1";
/// Server-wide privileges, with which statements written by others may do anything.
const MIGHTY: [&str; 5] = ["ALL PRIVILEGES", "SUPER", "FILE", "CREATE USER", "SET USER"];
const ADMINISTRATOR: &str = "Warning: the user who loaded it has privileges on the whole server, \
    and ran statements of the source with them. All privileges on the two databases of a load \
    are enough.";

#[derive(Default)]
pub struct Rights {
    /// Triggers that were not created.
    left_out: Vec<String>,
}

impl Rights {
    /// Returns these statements, changed or left out so that nothing gets the rights of this user.
    pub fn allowed(
        &mut self,
        server: &mut Server,
        all: Vec<String>,
    ) -> Result<Vec<String>, SqlError> {
        let mut allowed = Vec::with_capacity(all.len());
        for text in all {
            if let Some((name, definer)) = trigger(&text) {
                if exists(server, definer)? {
                    allowed.push(text);
                } else {
                    self.left_out.push(name);
                }
                continue;
            }
            allowed.push(as_invoker(&text).ok_or_else(|| SqlError::Statement {
                what: "create a routine".to_owned(),
                why: "its definition is not understood".to_owned(),
                hint: "write the subset again".to_owned(),
            })?);
        }
        Ok(allowed)
    }

    /// Returns notes for the reader of a report, after the load.
    pub fn notes(&self, server: &mut Server) -> Result<Vec<String>, SqlError> {
        let invokers: Vec<String> =
            answer::rows(&mut server.link, INVOKERS).during("list the routines")?;
        let grants: Vec<String> = answer::rows(&mut server.link, "SHOW GRANTS")
            .during("query the rights of this user")?;
        let is_mighty = grants.iter().any(|grant| {
            let (privileges, rest) = grant.split_once(" ON ").unwrap_or_default();
            rest.starts_with("*.* ") && MIGHTY.iter().any(|word| privileges.contains(word))
        });
        let invokers =
            named("Routines and views that run with the rights of those who call them", &invokers);
        let left_out = named(
            "Triggers that were left out, because the account of their definer is not there",
            &self.left_out,
        );
        let warning = is_mighty.then(|| ADMINISTRATOR.to_owned());
        Ok(invokers.into_iter().chain(left_out).chain(warning).collect())
    }
}

/// Whether an account is this user's or is known to exist. Only administrators may look it up.
fn exists(server: &mut Server, definer: Option<Account>) -> Result<bool, SqlError> {
    let Some((user, Some(host))) = definer else { return Ok(false) };
    let own: Option<String> =
        answer::first(&mut server.link, OWN).during("query the name of this user")?;
    if own.as_deref() == Some(&format!("{user}@{host}")) {
        return Ok(true);
    }
    let known: Result<Option<u64>, _> = answer::executed(&mut server.link, KNOWN, (user, host));
    Ok(known.ok().flatten().is_some_and(|known| known > 0))
}
