//! Servers that subsets are taken from and loaded into.

use serde::{Deserialize, Serialize};

use crate::sql::error::SqlError;
use crate::sql::host::without_password;

/// The server whose schema and rows a directory holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    #[default]
    Postgres,
    /// Also `MySQL`.
    Mariadb,
}

impl Engine {
    /// Returns the engine of an address, by its scheme.
    pub fn of(address: &str) -> Result<Self, SqlError> {
        let scheme = address.split_once(':').map_or(address, |(scheme, _)| scheme);
        match scheme {
            "postgres" | "postgresql" => Ok(Self::Postgres),
            "mariadb" | "mysql" => Ok(Self::Mariadb),
            _ => Err(SqlError::Address {
                address: without_password(address),
                why: format!("subsets of {scheme:?} are not supported"),
                hint: "postgres://user@host/database or mysql://user@host/database",
            }),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB or MySQL",
        }
    }
}
