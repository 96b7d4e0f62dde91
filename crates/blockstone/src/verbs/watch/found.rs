//! Databases of this host that are watched without being named.

use std::path::Path;

use anyhow::{Result, bail};
use blockstone_base::hint::Hint as _;
use blockstone_servers::monitor;
use blockstone_servers::monitor::local::{self, LocalServer};

use crate::failure::Failure;

/// Stands for all databases of this host in `--db`.
pub const AUTO: &str = "auto";

/// Returns the addresses of the servers that let this user in, and why others do not, in a line
/// each. Fails if none does.
pub fn addresses() -> Result<(Vec<String>, Vec<String>)> {
    let (mut addresses, mut refused) = (Vec::new(), Vec::new());
    for found in local::find(Path::new("/")) {
        match found.and_then(|server| tried(&server)) {
            Ok(address) => addresses.push(address),
            Err(why) => refused.push(why),
        }
    }
    if !addresses.is_empty() {
        return Ok((addresses, refused));
    }
    if refused.is_empty() {
        bail!(Failure::new(
            "find a database on this host: no PostgreSQL or MariaDB runs",
            "--db URL watches one on another host"
        ));
    }
    let why = refused.join("; ");
    bail!(Failure::new(
        format!("watch the databases of this host: {why}"),
        "name one with --db URL"
    ));
}

/// Returns the address of a server if it lets this user in, otherwise the reason in a line.
fn tried(server: &LocalServer) -> Result<String, String> {
    let address = server.address();
    match monitor::open(&address) {
        Ok(_) => Ok(address),
        Err(error) => {
            let why = error.in_a_line();
            Err(format!("{} (pid {}): {why}", server.shown(), server.pid))
        }
    }
}

/// Returns a line on the servers that could be watched; `None` if there are none. Connects to
/// none of them.
pub fn notice() -> Option<String> {
    let found = local::find(Path::new("/")).into_iter().flatten();
    let shown: Vec<String> = found.map(|server| server.shown()).collect();
    let which = if shown.len() == 1 { "it" } else { "them" };
    let shown = Some(shown.join(", ")).filter(|shown| !shown.is_empty())?;
    Some(format!("found {shown}: press D or --db auto to watch {which}"))
}
