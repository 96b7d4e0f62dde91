//! Servers that run on this machine: found by their processes, reached through a socket that they
//! listen on, without a password.
//!
//! Anybody can start a process called `postgres`, or bind a socket where a server's would be. A
//! socket is used only if its owner is root, this user, or the user of the process that listens on
//! it. When the connection is made, the kernel says who listens at its other end; if that is
//! another user, it is closed before anything is sent but what begins a session. Passwords are
//! neither asked for nor taken from the environment.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blockstone_sys::account::{self, Process};
use blockstone_sys::{child, path, proc, unix_sockets};

use super::{Opened, mariadb, postgres};
use crate::sql::error::SqlError;
use crate::sql::trust::Trust;

/// Scheme of the addresses of servers that were found.
pub const SCHEME: &str = "local";
const PROGRAMS: [(&str, Product); 4] = [
    ("postgres", Product::Postgres),
    ("postmaster", Product::Postgres),
    ("mariadbd", Product::Mariadb),
    ("mysqld", Product::Mariadb),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    Postgres,
    Mariadb,
}

/// A server that runs on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    pub product: Product,
    pub pid: u32,
    /// User of the process.
    pub uid: u32,
    pub socket: PathBuf,
    /// Major version, if the path of the program has it.
    pub version: Option<u32>,
}

/// A server, or a line that says why one cannot be watched unless its address is given.
pub type Found = Result<LocalServer, String>;

/// Looks for servers on the machine at `root`.
pub fn find(root: &Path) -> Vec<Found> {
    let pids = account::all(root);
    let processes: Vec<Process> =
        pids.into_iter().filter_map(|pid| account::process(root, pid)).collect();
    let servers: Vec<(&Process, Product)> =
        processes.iter().filter_map(|it| Some((it, product(it)?))).collect();
    let mains: BTreeSet<u32> = servers.iter().map(|(process, _)| process.pid).collect();
    // A new process of a server still has the title of its parent.
    let of_main = |(process, _): &&(&Process, Product)| !mains.contains(&process.parent);
    servers.iter().filter(of_main).map(|(it, product)| reach(root, it, *product)).collect()
}

fn product(process: &Process) -> Option<Product> {
    let (name, is_postgres) = (program(&process.title), process.title.starts_with("postgres: "));
    let known = PROGRAMS.iter().find(|(program, _)| *program == name);
    known.filter(|_| !is_postgres).map(|(_, product)| *product)
}

fn program(title: &str) -> &str {
    let path = title.split(' ').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or(path)
}

/// Finds a socket of the server through which it can be watched.
fn reach(root: &Path, process: &Process, product: Product) -> Found {
    let pid = process.pid;
    let why_not = |why: &str| format!("{} (pid {pid}): {why}", product.name());
    let dir = proc::under(root, format!("/proc/{pid}"));
    let gone = |_| why_not("it has just ended");
    let uid = path::look(&dir).map_err(gone)?.uid();
    // If this user may see which program a process executes, its title need not be trusted.
    if let Ok(executed) = proc::link_target(&dir.join("exe"))
        && !PROGRAMS.iter().any(|(name, of)| *of == product && program_file(&executed) == *name)
    {
        return Err(why_not(&format!("it only calls itself so: it is {}", executed.display())));
    }
    let listens = unix_sockets::of_process(root, pid);
    let is_known = listens.is_some();
    let candidates = listens.unwrap_or_else(|| unix_sockets::all(root));
    let candidates: Vec<PathBuf> =
        candidates.into_iter().filter(|path| product.is_socket(path)).collect();
    let owner = |path: &PathBuf| unix_sockets::owner(path).ok();
    let is_trusted = |path: &&PathBuf| {
        let owner = owner(path);
        // Of a process that this user may not look into, only the owner connects the two.
        let of_process = owner == Some(uid);
        of_process || is_known && [Some(0), Some(child::own_uid())].contains(&owner)
    };
    let Some(socket) = candidates.iter().find(is_trusted) else {
        let url = product.url("USER", Path::new("/SOCKET/DIRECTORY"));
        return Err(match candidates.first() {
            None => why_not(&format!("it listens on no socket that is seen here; --db {url}")),
            Some(path) => why_not(&format!(
                "{} is not the socket of its user; --db {url} if it is the server",
                path.display()
            )),
        });
    };
    let version = version(&process.title).filter(|_| product == Product::Postgres);
    Ok(LocalServer { product, pid, uid, socket: socket.clone(), version })
}

fn program_file(executed: &Path) -> String {
    let name = executed.file_name().unwrap_or_default().to_string_lossy();
    // The program was replaced by an update while it ran.
    name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
}

/// Returns the version in a path like `/usr/lib/postgresql/15/bin/postgres`.
fn version(title: &str) -> Option<u32> {
    title.split(' ').next()?.split('/').rev().nth(2)?.parse().ok()
}

impl Product {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
        }
    }

    const fn scheme(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
        }
    }

    fn is_socket(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            Self::Postgres => port(&name).is_some(),
            Self::Mariadb => name.ends_with(".sock") && !name.contains("mysqlx"),
        }
    }

    /// Returns the address to give with `--db`.
    fn url(self, user: &str, socket: &Path) -> String {
        let quoted = |path: &Path| path.to_string_lossy().replace('%', "%25").replace('/', "%2F");
        match self {
            Self::Postgres => {
                let name = socket.file_name().unwrap_or_default().to_string_lossy();
                let (dir, port) = match port(&name) {
                    Some(port) => (socket.parent().unwrap_or(socket), format!(":{port}")),
                    None => (socket, String::new()),
                };
                format!("postgres://{user}@{}{port}/postgres", quoted(dir))
            }
            Self::Mariadb => format!("mysql://{user}@localhost?socket={}", socket.display()),
        }
    }
}

fn port(socket: &str) -> Option<u16> {
    socket.strip_prefix(".s.PGSQL.")?.parse().ok()
}

impl LocalServer {
    /// Returns where it is, for people: `PostgreSQL 15 at /var/run/postgresql:5432`.
    pub fn shown(&self) -> String {
        let Self { product, socket, version, .. } = self;
        let version = version.map_or(String::new(), |version| format!(" {version}"));
        let name = socket.file_name().unwrap_or_default().to_string_lossy();
        let place = match (port(&name), socket.parent()) {
            (Some(port), Some(dir)) => format!("{}:{port}", dir.display()),
            _ => socket.display().to_string(),
        };
        format!("{}{version} at {place}", product.name())
    }

    /// Returns the address for [`super::open`].
    pub fn address(&self) -> String {
        let Self { product, uid, socket, .. } = self;
        format!("{SCHEME}:{}:{uid}:{}", product.scheme(), socket.display())
    }

    fn parse(rest: &str) -> Option<Self> {
        let mut parts = rest.splitn(3, ':');
        let (scheme, uid) = (parts.next()?, parts.next()?.parse().ok()?);
        let socket = PathBuf::from(parts.next()?);
        let product = [Product::Postgres, Product::Mariadb].into_iter();
        let product = product.into_iter().find(|product| product.scheme() == scheme)?;
        let is_socket = product.is_socket(&socket) && socket.is_absolute();
        is_socket.then_some(Self { product, pid: 0, uid, socket, version: None })
    }

    /// Connects, as this user; root connects to PostgreSQL as the user of the server, who is its
    /// administrator.
    fn monitor(&self) -> Opened {
        let as_owner = self.product == Product::Postgres && child::is_superuser();
        let uid = if as_owner { self.uid } else { child::own_uid() };
        let user = child::name_of(Path::new("/"), uid).unwrap_or_else(|| uid.to_string());
        let url = self.product.url(&user, &self.socket);
        let trust = Trust { uid: self.uid, as_user: as_owner.then_some(uid) };
        let (_, rest) = url.split_once(':').unwrap_or_default();
        let opened = match self.product {
            Product::Postgres => postgres::open_trusted(rest, trust),
            Product::Mariadb => mariadb::open_trusted(rest, trust),
        };
        opened.map_err(|error| match error {
            SqlError::Connect { server, why, .. } => {
                let url = self.product.url("USER", &self.socket);
                let hint = format!("--db {url} watches it as another user, with a password");
                SqlError::Connect { server, why, hint }
            }
            error => error,
        })
    }
}

/// Connects to a server that was found, by its address.
pub(super) fn connect(rest: &str) -> Opened {
    match LocalServer::parse(rest) {
        Some(server) => server.monitor(),
        None => Err(SqlError::Address {
            address: format!("{SCHEME}:{rest}"),
            why: "it names no server of this host".to_owned(),
            hint: "--db auto finds the servers of this host",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(product: Product, socket: &str) -> LocalServer {
        LocalServer { product, pid: 0, uid: 110, socket: socket.into(), version: None }
    }

    #[test]
    fn an_address_leads_back_to_its_server() {
        for server in [
            server(Product::Postgres, "/var/run/postgresql/.s.PGSQL.5433"),
            server(Product::Mariadb, "/run/my sql:d/mysqld.sock"),
        ] {
            let address = server.address();
            let (_, rest) = address.split_once(':').unwrap();
            assert_eq!(LocalServer::parse(rest), Some(server));
        }
        for wrong in [
            "",
            "postgres:1",
            "postgres:x:/run/.s.PGSQL.1",
            "mariadb:1:etc/x.sock",
            "postgres:0:/etc/passwd",
            "oracle:1:/x.sock",
        ] {
            assert_eq!(LocalServer::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn people_see_where_a_server_is_and_how_to_name_it() {
        let mut postgres = server(Product::Postgres, "/var/run/postgresql/.s.PGSQL.5433");
        postgres.version = version("/usr/lib/postgresql/15/bin/postgres -D /x");
        assert_eq!(postgres.shown(), "PostgreSQL 15 at /var/run/postgresql:5433");
        assert_eq!(
            postgres.product.url("me", &postgres.socket),
            "postgres://me@%2Fvar%2Frun%2Fpostgresql:5433/postgres"
        );
        let mariadb = server(Product::Mariadb, "/run/mysqld.sock");
        assert_eq!(mariadb.shown(), "MariaDB at /run/mysqld.sock");
        assert_eq!(version("/usr/local/bin/postgres"), None);
    }

    #[test]
    fn only_main_processes_of_servers_count() {
        let process = |title: &str| Process { pid: 7, parent: 1, title: title.to_owned() };
        let of = |title: &str| product(&process(title));
        assert_eq!(of("/usr/lib/postgresql/15/bin/postgres -D /data"), Some(Product::Postgres));
        assert_eq!(of("/usr/sbin/mariadbd"), Some(Product::Mariadb));
        assert_eq!(of("postgres: checkpointer"), None);
        assert_eq!(of("vim postgres"), None);
    }
}
