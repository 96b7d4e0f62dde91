//! Failures of servers: refused, lost, left behind. Each test starts its own server.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockstone_base::hint::Hint as _;
use blockstone_base::units::Bytes;
use blockstone_servers::registry::{self, Storage};
use blockstone_servers::{
    DatabaseOptions, Loading, Operation, Place, Target, TargetError, TargetSpec,
};

fn go_on(_: Loading) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Creates a directory that servers of another user can read.
fn directory() -> tempfile::TempDir {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    tempfile::Builder::new().permissions(open).tempdir_in("/var/tmp").unwrap()
}

/// A PostgreSQL server with a port, set up as by a user.
struct Server {
    child: Child,
    dir: tempfile::TempDir,
    port: u16,
    programs: PathBuf,
}

impl Server {
    fn start() -> Self {
        let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap().flatten();
        let programs = versions.map(|version| version.path().join("bin")).max().unwrap();
        let dir = directory();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        own(&data);
        let password = dir.path().join("password");
        std::fs::write(&password, "secret\n").unwrap();
        let made = as_postgres(&programs.join("initdb"))
            .args(["--no-sync", "--auth=scram-sha-256", "--username=admin", "--locale=C"])
            .arg(format!("--pwfile={}", password.display()))
            .arg("--pgdata")
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // A port that is free at present.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let child = Self::serve(&programs, &data, port);
        let server = Self { child, dir, port, programs };
        server.wait();
        server
    }

    fn serve(programs: &Path, data: &Path, port: u16) -> Child {
        as_postgres(&programs.join("postgres"))
            .arg("-D")
            .arg(data)
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="])
            .args(["-c", "shared_buffers=16MB", "-c", &format!("port={port}")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn address(&self) -> String {
        format!("//admin:secret@127.0.0.1:{}/postgres", self.port)
    }

    fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err()
            || storage(&self.address()).is_err()
        {
            assert!(Instant::now() < until, "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the server's main process, as the kernel does when memory runs out.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // Its children notice that it is gone and exit.
        std::thread::sleep(Duration::from_millis(500));
    }

    fn start_again(&mut self) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let _ = std::fs::remove_file(self.data().join("postmaster.pid"));
            self.child = Self::serve(&self.programs, &self.data(), self.port);
            std::thread::sleep(Duration::from_millis(500));
            if self.child.try_wait().unwrap().is_none() {
                break;
            }
            assert!(Instant::now() < until, "the server does not start again");
        }
        self.wait();
    }

    fn admin(&self, statements: &str) {
        let done = Command::new(self.programs.join("psql"))
            .args(["-q", "-v", "ON_ERROR_STOP=1", "-d"])
            .arg(format!("postgres:{}", self.address()))
            .args(["-c", statements])
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

fn storage(address: &str) -> Result<Storage, TargetError> {
    let spec = TargetSpec { address: address.to_owned(), ..TargetSpec::default() };
    (registry::find("postgres:").unwrap().storage)(&spec)
}

fn open(address: &str) -> Result<Arc<dyn Target>, TargetError> {
    let spec = TargetSpec {
        address: address.to_owned(),
        schemas: 1,
        rows: 200,
        scan_rows: 16,
        ..TargetSpec::default()
    };
    (registry::find("postgres:").unwrap().open)(&spec, &mut go_on)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn as_postgres(program: &Path) -> Command {
    let mut command = Command::new(program);
    let user = blockstone_sys::child::user(Path::new("/"), &["postgres"]).unwrap();
    let signal = blockstone_sys::child::Signal::KILL;
    blockstone_sys::child::confine(&mut command, Some(&user), signal);
    command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn own(path: &Path) {
    let user = blockstone_sys::child::user(Path::new("/"), &["postgres"]).unwrap();
    std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid)).unwrap();
}

#[track_caller]
fn refused<T>(result: Result<T, TargetError>, words: &[&str]) {
    let error = result.err().expect("it is refused").told();
    for word in words.iter().chain(&["\nhint: "]) {
        assert!(error.contains(word), "{word} is not in: {error}");
    }
    assert!(!error.contains("secret"), "a password is shown: {error}");
}

#[test]
fn a_server_that_cannot_be_used_is_refused_and_says_why() {
    blockstone_testkit::require!(Root, Postgres);
    let server = Server::start();
    let port = server.port;
    let wrong = format!("//admin:wrong-secret@127.0.0.1:{port}/postgres");
    refused(open(&wrong), &["password authentication failed", "PGPASSWORD"]);
    refused(open("//admin@127.0.0.1:1/postgres"), &["Connection refused", "listen"]);
    refused(open("//admin@/nowhere"), &["connect to postgres://admin@/nowhere"]);
    let nowhere = format!("//admin:secret@127.0.0.1:{port}/nowhere");
    refused(open(&nowhere), &["nowhere", "name a database that exists"]);
    server.admin("CREATE ROLE poor LOGIN PASSWORD 'secret'");
    let poor = format!("//poor:secret@127.0.0.1:{port}/postgres");
    refused(open(&poor), &["poor may not create a schema", "GRANT CREATE"]);
    // A user's own schema of that name is left alone.
    server.admin("CREATE SCHEMA blockstone; CREATE TABLE blockstone.precious (n int)");
    refused(open(&server.address()), &["no run made", "another database"]);
    server.admin("INSERT INTO blockstone.precious VALUES (1)");
}

#[test]
fn a_server_of_a_version_that_is_too_old_is_refused_and_leaves_nothing() {
    blockstone_testkit::require!(Root, Postgres, PostgresVersions);
    let dir = directory();
    let home = dir.path().join("scratch");
    let spec = TargetSpec {
        address: "scratch".to_owned(),
        places: vec![Place { path: home.clone(), name: "scratch".to_owned(), failure_group: None }],
        programs: Some(blockstone_testkit::postgres_programs(12)),
        ..TargetSpec::default()
    };
    let opened = (registry::find("postgres:").unwrap().open)(&spec, &mut go_on);
    refused(opened, &["it is version 12.22", "PostgreSQL 13 and later"]);
    assert!(!home.exists());
}

#[test]
fn a_server_in_recovery_takes_no_writes() {
    blockstone_testkit::require!(Root, Postgres);
    let mut server = Server::start();
    server.kill();
    let standby = server.data().join("standby.signal");
    std::fs::write(&standby, "").unwrap();
    own(&standby);
    server.start_again();
    refused(open(&server.address()), &["in recovery", "primary"]);
}

#[test]
fn one_run_at_a_time_uses_a_database_and_what_a_killed_one_left_is_removed() {
    blockstone_testkit::require!(Root, Postgres);
    let server = Server::start();
    let first = open(&server.address()).unwrap();
    refused(open(&server.address()), &["another run uses this database"]);
    // Dropped without shutdown, as in a killed run: the server sees its connections close.
    drop(first);
    std::thread::sleep(Duration::from_millis(200));
    let second = open(&server.address()).unwrap();
    let notes = second.describe().unwrap().notes;
    assert!(notes[0].contains("left by a killed run"), "{notes:?}");
    second.load(&mut go_on).unwrap();
    second.shutdown().unwrap();
    server.admin("CREATE SCHEMA blockstone; DROP SCHEMA blockstone");
    let third = open(&server.address()).unwrap();
    assert!(third.describe().unwrap().notes.is_empty());
    drop(third);
    std::thread::sleep(Duration::from_millis(200));
    let remove = registry::find("postgres:").unwrap().remove_left.unwrap();
    assert!(remove(&server.address()).unwrap());
    assert!(!remove(&server.address()).unwrap());
}

#[test]
fn a_server_killed_under_load_fails_the_session_and_is_cleaned_once_it_is_back() {
    blockstone_testkit::require!(Root, Postgres);
    let mut server = Server::start();
    let target = open(&server.address()).unwrap();
    target.load(&mut go_on).unwrap();
    let mut session = target.session(0).unwrap();
    let update = Operation::Update { schema: 0, first_key: 0, rows: 64 };
    session.execute(&update).unwrap();
    server.kill();
    let started = Instant::now();
    refused(session.execute(&update), &["begin a transaction", "the server ended"]);
    let mut readings = Vec::new();
    target.sample(true, &mut readings);
    assert!(started.elapsed() < Duration::from_secs(10), "a server that is gone is not waited for");
    drop(session);
    refused(target.shutdown(), &["could not be removed", "blockstone teardown"]);
    server.start_again();
    let next = open(&server.address()).unwrap();
    assert!(next.describe().unwrap().notes[0].contains("left by a killed run"));
    next.shutdown().unwrap();
}

#[test]
fn a_load_into_a_full_disk_says_so_and_leaves_nothing() {
    blockstone_testkit::require!(Root, Loop, Postgres);
    let spec = blockstone_testkit::DeviceSpec {
        size: Bytes::mib(160),
        file_system: Some(blockstone_testkit::FileSystem::Ext4),
        ..blockstone_testkit::DeviceSpec::default()
    };
    let device = blockstone_testkit::LoopDevice::create(spec).unwrap();
    let mount = device.mount_point().unwrap();
    let place =
        |name: &str| Place { path: mount.join(name), name: name.to_owned(), failure_group: None };
    let spec = TargetSpec {
        places: vec![place("cluster")],
        address: "scratch".to_owned(),
        schemas: 1,
        rows: 20_000,
        scan_rows: 16,
        options: DatabaseOptions { cache_bytes: Bytes::mib(4), ..DatabaseOptions::default() },
        ..TargetSpec::default()
    };
    let target = (registry::find("postgres:").unwrap().open)(&spec, &mut go_on).unwrap();
    refused(target.load(&mut go_on), &["load blockstone.rows_0", "No space left", "free some"]);
    target.shutdown().unwrap();
    assert!(!mount.join("cluster").exists());
}

#[test]
fn a_private_server_dies_with_its_run() {
    blockstone_testkit::require!(Root, Postgres);
    let dir = directory();
    let place =
        Place { path: dir.path().join("cluster"), name: "cluster".to_owned(), failure_group: None };
    let spec =
        TargetSpec { places: vec![place], address: "scratch".to_owned(), ..TargetSpec::default() };
    let entry = registry::find("postgres:").unwrap();
    let target = (entry.open)(&spec, &mut go_on).unwrap();
    let real = dir.path().canonicalize().unwrap();
    assert!(!blockstone_sys::account::working_in(Path::new("/"), &real).is_empty());
    drop(target);
    assert!(blockstone_sys::account::working_in(Path::new("/"), &real).is_empty());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let wrong = TargetSpec { settings: vec![("shared_buffers".into(), "a lot".into())], ..spec };
    refused((entry.open)(&wrong, &mut go_on), &["start a private cluster", "shared_buffers"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
