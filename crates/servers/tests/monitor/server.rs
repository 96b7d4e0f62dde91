//! Database servers set up as by users, and sessions on them.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_sys::child::{self, Signal};
use mysql::prelude::Queryable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// PostgreSQL of this version; 15 is the distribution's.
    Postgres(u32),
    /// MariaDB, with or without its performance schema.
    Mariadb { performance_schema: bool },
}

/// A server with a port, which is stopped when the value is dropped.
pub struct Server {
    pub product: Product,
    child: Child,
    dir: tempfile::TempDir,
    port: u16,
    settings: Vec<String>,
}

impl Product {
    /// Returns the users that may run it.
    fn user(self) -> &'static [&'static str] {
        match self {
            Self::Postgres(_) => &["postgres"],
            Self::Mariadb { .. } => &["mysql", "nobody"],
        }
    }

    pub fn is_postgres(self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    fn program(self, name: &str) -> PathBuf {
        match self {
            Self::Postgres(15) => Path::new("/usr/lib/postgresql/15/bin").join(name),
            Self::Postgres(major) => blockstone_testkit::postgres_programs(major).join(name),
            Self::Mariadb { .. } => {
                let places = ["/usr/sbin", "/usr/bin"].map(|dir| Path::new(dir).join(name));
                places.into_iter().find(|path| path.is_file()).unwrap()
            }
        }
    }

    fn command(self, name: &str, dir: &Path) -> Command {
        let mut command = Command::new(self.program(name));
        let user = child::user(Path::new("/"), self.user()).unwrap();
        child::confine(&mut command, Some(&user), Signal::KILL);
        command.current_dir(dir).env("LC_ALL", "C").env("TMPDIR", dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Server {
    /// Creates and starts a server; `settings` have the form `name=value`.
    pub fn start(product: Product, settings: &[&str]) -> Self {
        let open = std::fs::Permissions::from_mode(0o755);
        let dir = tempfile::Builder::new().permissions(open).tempdir_in("/var/tmp").unwrap();
        let user = child::user(Path::new("/"), product.user()).unwrap();
        std::os::unix::fs::chown(dir.path(), Some(user.uid), Some(user.gid)).unwrap();
        let data = format!("{}/data", dir.path().display());
        let mut make = match product {
            Product::Postgres(_) => {
                let mut make = product.command("initdb", dir.path());
                make.args(["--no-sync", "--auth=trust", "--username=admin", "--locale=C"]);
                make.args(["--encoding=UTF8", "--pgdata", &data]);
                make
            }
            Product::Mariadb { .. } => {
                let mut make = product.command("mariadb-install-db", dir.path());
                make.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
                make.args(["--skip-test-db", "--skip-name-resolve"]);
                make.arg(format!("--datadir={data}"));
                make
            }
        };
        assert!(make.status().unwrap().success());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        let child = serve(product, dir.path(), port, &settings);
        let server = Self { product, child, dir, port, settings };
        server.wait();
        server
    }

    pub fn address(&self, user: &str) -> String {
        let port = self.port;
        match self.product {
            Product::Postgres(_) => format!("postgres://{user}@127.0.0.1:{port}/postgres"),
            Product::Mariadb { .. } => format!("mysql://{user}@127.0.0.1:{port}"),
        }
    }

    /// Returns the address of the superuser.
    pub fn admin(&self) -> String {
        self.address(if self.product.is_postgres() { "admin" } else { "root" })
    }

    /// Returns its main process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Opens a user's session.
    pub fn session(&self) -> Session {
        Session::open(&self.admin()).unwrap()
    }

    fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err()
            || Session::open(&self.admin()).is_none()
        {
            assert!(Instant::now() < until, "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills it, as the kernel does when memory runs out.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(500));
    }

    pub fn start_again(&mut self) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let _ = std::fs::remove_file(self.dir.path().join("data/postmaster.pid"));
            self.child = serve(self.product, self.dir.path(), self.port, &self.settings);
            std::thread::sleep(Duration::from_millis(500));
            if self.child.try_wait().unwrap().is_none() {
                break;
            }
            assert!(Instant::now() < until, "the server does not start again");
        }
        self.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(product: Product, dir: &Path, port: u16, settings: &[String]) -> Child {
    let data = dir.join("data");
    let mut command = match product {
        Product::Postgres(_) => {
            let mut command = product.command("postgres", dir);
            command.arg("-D").arg(&data).args(["-c", "listen_addresses=127.0.0.1"]);
            command.args(["-c", "unix_socket_directories=", "-c", "shared_buffers=16MB"]);
            command.args(["-c", &format!("port={port}")]);
            command
        }
        Product::Mariadb { performance_schema } => {
            let mut command = product.command("mariadbd", dir);
            command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
            command.args(["--bind-address=127.0.0.1", "--skip-name-resolve"]);
            command.arg(format!("--port={port}"));
            command.arg(format!("--socket={}", dir.join("socket").display()));
            let switch = if performance_schema { "ON" } else { "OFF" };
            command.arg(format!("--performance-schema={switch}"));
            if performance_schema {
                for consumer in ["waits", "statements"] {
                    let name = format!("--performance-schema-consumer-events-{consumer}-current");
                    command.arg(format!("{name}=ON"));
                }
            }
            command
        }
    };
    for setting in settings {
        match product {
            Product::Postgres(_) => command.args(["-c", setting]),
            Product::Mariadb { .. } => command.arg(format!("--{setting}")),
        };
    }
    command.spawn().unwrap()
}

/// A user's session.
pub enum Session {
    Postgres(Box<postgres::Client>),
    Mariadb(Box<mysql::Conn>),
}

impl Session {
    fn open(address: &str) -> Option<Self> {
        if address.starts_with("postgres") {
            let link = postgres::Client::connect(address, postgres::NoTls).ok()?;
            return Some(Self::Postgres(Box::new(link)));
        }
        let opts = mysql::OptsBuilder::from_opts(mysql::Opts::from_url(address).unwrap());
        Some(Self::Mariadb(Box::new(mysql::Conn::new(opts.prefer_socket(false)).ok()?)))
    }

    /// Executes statements, one transaction each.
    pub fn run(&mut self, statement: &str) {
        match self {
            Self::Postgres(link) => link.batch_execute(statement).unwrap(),
            Self::Mariadb(link) => link.query_drop(statement).unwrap(),
        }
    }

    /// Returns the first cell of an answer.
    pub fn ask(&mut self, query: &str) -> String {
        match self {
            Self::Postgres(link) => {
                let said = link.simple_query(query).unwrap();
                let cell = said.iter().find_map(|message| match message {
                    postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                });
                cell.unwrap_or_default()
            }
            Self::Mariadb(link) => link.query_first(query).unwrap().unwrap_or_default(),
        }
    }

    /// Returns the database's number of the session.
    pub fn number(&mut self) -> String {
        self.ask(match self {
            Self::Postgres(_) => "SELECT pg_backend_pid()",
            Self::Mariadb(_) => "SELECT CONNECTION_ID()",
        })
    }

    /// Sleeps inside the server.
    pub fn sleep(&mut self, seconds: f64) {
        let sleep = if matches!(self, Self::Postgres(_)) { "pg_sleep" } else { "SLEEP" };
        self.ask(&format!("SELECT {sleep}({seconds})"));
    }

    /// Creates a table of 1,000 rows.
    pub fn make_table(&mut self) {
        if matches!(self, Self::Mariadb(_)) {
            self.run("CREATE DATABASE bench");
            self.run("USE bench");
        }
        self.run("CREATE TABLE t (k int PRIMARY KEY, v int)");
        let rows: Vec<String> = (0..1000).map(|key| format!("({key}, 0)")).collect();
        self.run(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    }

    /// Selects the table that another session created.
    pub fn use_table(&mut self) {
        if matches!(self, Self::Mariadb(_)) {
            self.run("USE bench");
        }
    }
}
