//! Rights of routines in a loaded schema. Owners are not restored, so code that ran with the rights
//! of a user of the source would run with those of the user who loads it.

use std::collections::HashSet;

use crate::postgres::Client;

use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};
use crate::subset::source::named;

const DEFINERS: &str = include_str!("../../../sql/subset/postgres/definers.sql");
/// The same as a script for psql.
pub const SCRIPT: &str = include_str!("../../../sql/subset/postgres/invokers.sql");
const ROLE: &str = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
const SUPERUSER: &str = "Warning: a superuser loaded it, and with all rights ran what users of the \
    source wrote into CHECK constraints, domains, defaults, generated columns and indexes. A role \
    that owns only the destination is enough.";

pub struct Rights {
    /// Routines that existed before the load.
    known: HashSet<u32>,
    is_superuser: bool,
    /// Routines that were changed to the rights of their callers.
    changed: Vec<String>,
}

impl Rights {
    /// Lists the routines. Call before anything is loaded.
    pub fn look(link: &mut Client) -> Result<Self, SqlError> {
        let known = link.query(DEFINERS, &[]).during("list the routines")?;
        let known = known.iter().map(|row| value(row, 0)).collect::<Result<_, _>>()?;
        let row = link.query_one(ROLE, &[]).during("query the rights of this user")?;
        Ok(Self { known, is_superuser: value(&row, 0)?, changed: Vec::new() })
    }

    /// Makes the new routines run with the rights of their callers.
    pub fn take(&mut self, link: &mut Client) -> Result<(), SqlError> {
        for row in link.query(DEFINERS, &[]).during("list the routines")? {
            if self.known.contains(&value(&row, 0)?) {
                continue;
            }
            let name: String = value(&row, 1)?;
            let text = format!("ALTER ROUTINE {name} SECURITY INVOKER");
            link.batch_execute(&text).during("take the rights of its owner from a routine")?;
            self.changed.push(name);
        }
        Ok(())
    }

    pub fn notes(&self) -> Vec<String> {
        let changed = named(
            "Routines that ran with the rights of their owner in the source, and now run with \
             those of their caller",
            &self.changed,
        );
        let warning = self.is_superuser.then(|| SUPERUSER.to_owned());
        changed.into_iter().chain(warning).collect()
    }
}
