//! The password file, for verbs that connect to a database server.

use std::path::PathBuf;

use anyhow::{Result, bail};
use blockstone_servers::{password, without_password};
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::purpose::Purpose;

#[derive(Args, Clone, Debug, Default)]
pub struct PasswordFile {
    /// Take the password of the database from the first line of this file, which must not be
    /// readable by others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub password_file: Option<PathBuf>,
}

impl PasswordFile {
    /// Reads the password for the servers among `addresses`.
    pub fn read_for<'a>(&self, addresses: impl IntoIterator<Item = &'a str> + Clone) -> Result<()> {
        let Some(path) = &self.password_file else { return Ok(()) };
        let mut servers = addresses.clone().into_iter().filter(|it| password::is_asked_at(it));
        let Some(first) = servers.next() else {
            let all: Vec<String> = addresses.into_iter().map(without_password).collect();
            bail!(Failure::new(
                format!(
                    "use --password-file with {}: no server is named that asks for a password",
                    all.join(", ")
                ),
                "it applies to postgres://user@host/db and mysql://user@host"
            ));
        };
        for address in [first].into_iter().chain(servers) {
            password::read_for(address, path)?;
        }
        Ok(())
    }
}
