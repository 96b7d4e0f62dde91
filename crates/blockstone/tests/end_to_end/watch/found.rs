//! `blockstone watch --db auto`: servers of this host, and processes that only seem to be servers.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::{PostgresServer, ScratchDir, require, run};
use serde_json::Value;

use super::terminal::Terminal;
use super::{Ended, Turn, keeps_to_its_schema, watch};

/// A program that listens on the socket `sys.argv[1]`, accepts every session, and keeps what it
/// receives in the file `sys.argv[2]`.
const IMPOSTOR: &str = "
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
open(sys.argv[2], 'wb').close()
while True:
    session, _ = server.accept()
    with open(sys.argv[2], 'ab', buffering=0) as received:
        received.write(b'[' + session.recv(65536))
        session.sendall(b'R\\0\\0\\0\\x08\\0\\0\\0\\0' + b'Z\\0\\0\\0\\x05I')
        while True:
            more = session.recv(65536)
            received.write(more)
            if not more:
                break
";

fn port(server: &PostgresServer) -> String {
    let address = server.address();
    address.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned()
}

#[test]
fn a_server_of_this_host_is_found_and_ties_a_process_to_its_statement() {
    require!(Root, Postgres, Bpf);
    // It connects to all servers, also to those of other tests.
    let _turn = Turn::alone();
    // Each statement ends with a flush of its redo by the session itself.
    let server = PostgresServer::start(15, &[]).unwrap();
    // Root connects as the user of the server.
    server.run(&["CREATE ROLE postgres SUPERUSER LOGIN"]).unwrap();
    server.run(&["CREATE TABLE busy (i bigint, t text)"]).unwrap();
    let insert = "INSERT INTO busy SELECT i, repeat('x', 500) FROM generate_series(1, 500) AS i";
    let statements = vec![insert; 1000];
    let _worker = Ended(server.session(&statements).unwrap());
    let once = ["--db", "auto", "--who", "--once", "--for", "5s", "--json"];
    // A server that ends while it is connected to is an error; servers of others may.
    let ran = (0..5).map(|_| run(&mut watch(&once))).find(|ran| ran.code == Some(0));
    let ran = ran.expect("it never worked");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let probes = document["probes"].as_object().unwrap();
    let named = format!("instance@postgres@{}", port(&server));
    assert!(probes.contains_key("instance") || probes.contains_key(&named), "{}", ran.stderr);
    let rows = document["views"]["who"].as_array().unwrap();
    let is_insert = |row: &&Value| {
        row["statement"].as_str().is_some_and(|text| text.contains("INSERT INTO busy"))
    };
    let row = rows.iter().find(is_insert).unwrap_or_else(|| panic!("{rows:#?}"));
    assert_eq!(row["process"], "postgres", "{row:#}");
    assert!(row["role"].as_str().unwrap().ends_with("/session"), "{row:#}");
    assert!(row["file"].as_str().unwrap().contains("/data/"), "{row:#}");
}

#[test]
fn a_terminal_shows_what_could_be_watched_and_connects_on_a_key() {
    require!(Root, Postgres);
    let _turn = Turn::alone();
    let server = PostgresServer::start(15, &["fsync=off"]).unwrap();
    server.run(&["CREATE ROLE postgres SUPERUSER LOGIN"]).unwrap();
    let mut screen = Terminal::start(&mut watch(&["--interval", "200ms", "--no-bpf"]), 24, 80);
    screen.until(|text| text.contains("found PostgreSQL"));
    screen.keys("D");
    screen.until(|text| text.contains("watching PostgreSQL") || text.contains("· PostgreSQL"));
    screen.keys("q");
    assert_eq!(screen.end(), Some(0));
    drop(server);
}

#[test]
fn an_impostor_gets_nothing_but_what_begins_a_session() {
    require!(Root);
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let (socket, received) =
        (scratch.path().join(".s.PGSQL.5999"), scratch.path().join("received"));
    // Its title is that of a server; it belongs to another user.
    let mut impostor = Command::new("setpriv");
    impostor.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig=KILL", "--"]);
    impostor.args(["bash", "-c", "exec -a postgres python3 -c \"$0\" \"$1\" \"$2\"", IMPOSTOR]);
    impostor.args([&socket, &received]).stdin(Stdio::null());
    let impostor = Ended(impostor.spawn().unwrap());
    let patience = Instant::now() + Duration::from_secs(20);
    while !received.exists() {
        assert!(Instant::now() < patience, "it does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let got = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    // Found by its title: the program is none of a server's.
    let ran = run(&mut watch(&["--db", "auto", "--once", "--for", "200ms", "--no-bpf"]));
    let pid = impostor.0.id();
    let refused = format!("PostgreSQL (pid {pid}): it only calls itself so");
    assert!(ran.stderr.contains(&refused), "{ran:#?}");
    assert_eq!(got(&received), "", "no connection was made");
    // In the place of a server of root's: the kernel says who listens there.
    let address = format!("local:postgres:0:{}", socket.display());
    let ran = run(&mut watch(&["--db", &address, "--once", "--no-bpf"]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("user 65534 listens there"), "{ran:#?}");
    let received = got(&received);
    assert!(received.contains("user\0root\0"), "{received:?}");
    for sent in ["SET", "SELECT", "password"] {
        assert!(!received.contains(sent), "{received:?}");
    }
}

#[test]
fn a_password_and_servers_that_are_found_exclude_each_other() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let file = scratch.path().join("secret");
    std::fs::write(&file, "secret\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    let ran = run(&mut watch(&["--db", "auto", "--once", "--password-file", file]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("--password-file"), "{ran:#?}");
}
