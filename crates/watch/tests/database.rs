//! A watch of a database: what its sessions wait for, and a server that goes away and comes back.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::units::Nanos;
use blockstone_probe::Roles;
use blockstone_record::{End, Recording};
use blockstone_sys::child::{self, Signal};
use blockstone_testkit::require;
use blockstone_view::{History, Value, document, registry};
use blockstone_watch::{Destination, Kernel, Settings, Watch};

/// The distribution's PostgreSQL on a port of its own; ends with its value.
struct Server {
    dir: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Server {
    fn start() -> Self {
        let open = std::fs::Permissions::from_mode(0o755);
        let dir = tempfile::Builder::new().permissions(open).tempdir_in("/var/tmp").unwrap();
        let user = child::user(Path::new("/"), &["postgres"]).unwrap();
        chown(dir.path(), Some(user.uid), Some(user.gid)).unwrap();
        let mut make = program("initdb", dir.path());
        make.args(["--no-sync", "--auth=trust", "--username=admin", "--locale=C", "-D", "data"]);
        assert!(make.status().unwrap().success());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = serve(dir.path(), port);
        Self { dir, port, child }
    }

    fn address(&self) -> String {
        format!("postgres://admin@127.0.0.1:{}/postgres", self.port)
    }

    /// A session that sleeps inside the database.
    fn sleeper(&self) -> Child {
        let mut psql = program("psql", self.dir.path());
        psql.arg(self.address()).args(["-c", "SELECT pg_sleep(60)"]).spawn().unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        let _ = std::fs::remove_file(self.dir.path().join("data/postmaster.pid"));
        self.child = serve(self.dir.path(), self.port);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(PathBuf::from("/usr/lib/postgresql/15/bin").join(name));
    let user = child::user(Path::new("/"), &["postgres"]).unwrap();
    child::confine(&mut command, Some(&user), Signal::KILL);
    command.current_dir(dir).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn serve(dir: &Path, port: u16) -> Child {
    let mut command = program("postgres", dir);
    command.args(["-D", "data", "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
    command.args(["-c", "unix_socket_directories="]).arg("-p").arg(port.to_string());
    let child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    let answers = || {
        let mut psql = program("psql", dir);
        let address = format!("postgres://admin@127.0.0.1:{port}/postgres");
        TcpStream::connect(("127.0.0.1", port)).is_ok()
            && psql.arg(address).args(["-c", "SELECT 1"]).status().unwrap().success()
    };
    while !answers() {
        assert!(Instant::now() < until, "the server does not answer");
        thread::sleep(Duration::from_millis(50));
    }
    child
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => *number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sessions_are_seen_while_the_server_is_there_and_it_may_go_and_come_back() {
    require!(Root, Postgres);
    let mut server = Server::start();
    let mut sleepers: Vec<Child> = (0..3).map(|_| server.sleeper()).collect();
    thread::sleep(Duration::from_millis(500));
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("recording");
    let mut watch = Watch::start(&Settings {
        argv: Vec::new(),
        interval: Nanos::millis(250),
        keep: Nanos::millis(60_000),
        roles: Roles::default(),
        record: Some(Destination { dir: dir.clone(), id: "db".to_owned() }),
        database: Some(server.address()),
        samples: Nanos::millis(50),
        kernel: Kernel::Off,
        profile_per_second: None,
    })
    .unwrap();
    for _ in 0..6 {
        watch.wait_and_look().unwrap();
    }
    assert_eq!(watch.silent(), None);
    let whole = watch.history().whole().unwrap();
    let table = |name: &str| registry::find(name).unwrap().table(&whole).unwrap();
    let waits = table("active-sessions");
    let asleep = waits.rows.iter().find(|row| row[1] == Value::Text("PgSleep".to_owned())).unwrap();
    assert_eq!(asleep[0], Value::Text("Timeout".to_owned()));
    let average = number(&asleep[2]);
    assert!((2.9..=3.0).contains(&average), "{average} of 3: {:?}", waits.rows);
    assert_eq!(number(&asleep[4]).round() as u64, 3, "and no session of our own");
    assert_eq!(table("sessions").rows.len(), 3);
    let load = table("load");
    let told = |name: &str| load.rows.iter().any(|row| row[0] == Value::Text(name.to_owned()));
    assert!(told("commits") && told("redo (bytes)"), "{:?}", load.rows);
    let processes = table("processes");
    let is_role = |row: &Vec<Value>, role: &str| row[0] == Value::Text(role.to_owned());
    for role in ["postgres/checkpointer", "postgres/session"] {
        assert!(processes.rows.iter().any(|row| is_role(row, role)), "{:?}", processes.rows);
    }

    server.kill();
    let gone = Instant::now() + Duration::from_secs(20);
    while watch.silent().is_none() {
        assert!(Instant::now() < gone, "nobody misses the server");
        watch.wait_and_look().unwrap();
    }
    server.start_again();
    let back = Instant::now() + Duration::from_secs(20);
    while watch.silent().is_some() {
        assert!(Instant::now() < back, "it is not found again: {:?}", watch.silent());
        watch.wait_and_look().unwrap();
    }
    for _ in 0..4 {
        watch.wait_and_look().unwrap();
    }
    let latest = watch.history().latest().unwrap();
    assert!(latest.moved("instance", "", "commits").is_ok());
    let last = document(&latest);
    watch.close(End::Complete).unwrap();
    for sleeper in &mut sleepers {
        let _ = sleeper.kill();
        let _ = sleeper.wait();
    }
    let recording = Recording::open(&dir).unwrap();
    let events = recording.events().unwrap();
    assert!(events.iter().any(|event| event.kind == "database-gone"), "{events:?}");
    let history = History::read(&recording).unwrap();
    assert_eq!(document(&history.latest().unwrap()), last, "a replay shows the same");
}
