//! An attacker between a client and its server who removes TLS, or stays silent within it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use super::servers::{ASKS_FOR_TLS, all, fails_clearly, message, server};
use super::{Place, signal, within};

const SECRET: &str = "T0PSECRET";
/// The packet with which the MariaDB driver ends a connection.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];
const PATIENCE: Duration = Duration::from_secs(30);

/// Records everything that a client sends from here on.
fn overhear(stream: &mut TcpStream, heard: &Sender<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(len @ 1..) = stream.read(&mut bytes) {
        let _ = heard.send(bytes[..len].to_vec());
    }
}

/// A PostgreSQL server without TLS that requests the password in clear text.
fn postgres() -> (u16, Receiver<Vec<u8>>) {
    let (tell, heard) = mpsc::channel();
    let port = server(move |stream| {
        let mut bytes = [0; 4096];
        if matches!(stream.read(&mut bytes), Ok(len) if bytes[..len] == ASKS_FOR_TLS) {
            let _ = stream.write_all(b"N");
            let _ = stream.read(&mut bytes);
        }
        let _ = stream.write_all(&message(b'R', &[0, 0, 0, 3]));
        overhear(stream, &tell);
    });
    (port, heard)
}

const WITH_TLS: u32 = 0x0018_aa01;
const WITHOUT_TLS: u32 = 0x0018_a201;

/// Returns the first packet of a MariaDB server.
fn greeting(capabilities: u32) -> Vec<u8> {
    let [low, high] = [capabilities as u16, (capabilities >> 16) as u16].map(u16::to_le_bytes);
    let mut body = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0saltsalt\0".to_vec();
    body.extend([low[0], low[1], 33, 2, 0, high[0], high[1], 21]);
    body.extend([0; 10]);
    body.extend(b"saltsaltsalt\0mysql_native_password\0");
    let len = (body.len() as u32).to_le_bytes();
    [&len[..3], &[0], &body].concat()
}

/// A MariaDB server without TLS.
fn mariadb() -> (u16, Receiver<Vec<u8>>) {
    let (tell, heard) = mpsc::channel();
    let port = server(move |stream| {
        let _ = stream.write_all(&greeting(WITHOUT_TLS));
        overhear(stream, &tell);
    });
    (port, heard)
}

#[test]
fn who_takes_tls_away_gets_no_password() {
    let place = Place::beside();
    // This address leads to this machine but is not one of its own, so it counts as another
    // machine.
    for (host, parameters, environment) in [
        ("127.0.0.1", "sslmode=require", None),
        ("127.0.0.1", "sslmode=verify-ca", None),
        ("127.0.0.1", "sslmode=verify-full", None),
        ("127.0.0.1", "", Some(("PGSSLMODE", "verify-full"))),
        ("0.0.0.0", "", None),
        ("0.0.0.0", "sslmode=prefer", None),
        ("0.0.0.0", "", Some(("PGSSLMODE", "allow"))),
    ] {
        let (port, heard) = postgres();
        let address = format!("postgres://u:{SECRET}@{host}:{port}/d?{parameters}");
        for mut command in all(&place, &address) {
            let ran = within(PATIENCE, command.envs(environment));
            fails_clearly(&ran);
            assert!(ran.stderr.contains("does not offer TLS"), "{address}: {ran:#?}");
            assert!(ran.stderr.contains("sslmode=disable"), "{address}: {ran:#?}");
        }
        assert_eq!(heard.try_iter().count(), 0, "{address}");
    }
    for (host, parameters) in
        [("127.0.0.1", "ssl-mode=REQUIRED"), ("0.0.0.0", ""), ("0.0.0.0", "ssl-mode=preferred")]
    {
        let (port, heard) = mariadb();
        let address = format!("mysql://u:{SECRET}@{host}:{port}?{parameters}");
        for mut command in all(&place, &address) {
            let ran = within(PATIENCE, &mut command);
            fails_clearly(&ran);
            assert!(ran.stderr.contains("does not offer TLS"), "{address}: {ran:#?}");
        }
        assert!(heard.try_iter().all(|said| said == QUIT), "{address}");
    }
}

#[test]
fn a_password_travels_in_the_clear_only_if_that_was_asked_for() {
    let place = Place::beside();
    let (port, heard) = postgres();
    let address = format!("postgres://u:{SECRET}@0.0.0.0:{port}/d?sslmode=disable");
    let mut watch = place.command("watch");
    let mut child = watch
        .args(["--once", "--for", "1s", "--db", &address])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = heard.recv_timeout(PATIENCE).unwrap();
    assert!(said.windows(SECRET.len()).any(|it| it == SECRET.as_bytes()));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Servers that offer TLS, and then stay silent.
fn silent_in_tls() -> [String; 2] {
    let postgres = server(|stream| {
        let _ = stream.read(&mut [0; 8]);
        let _ = stream.write_all(b"S");
    });
    let mariadb = server(|stream| {
        let _ = stream.write_all(&greeting(WITH_TLS));
    });
    [
        format!("postgres://u:p@127.0.0.1:{postgres}/d?sslmode=require"),
        format!("mysql://u:p@127.0.0.1:{mariadb}?ssl-mode=REQUIRED"),
    ]
}

#[test]
fn a_server_that_falls_silent_in_tls_is_an_error_soon() {
    let place = Place::beside();
    let addresses = silent_in_tls();
    std::thread::scope(|scope| {
        for mut command in addresses.iter().flat_map(|address| all(&place, address)) {
            scope.spawn(move || {
                // Eight seconds for an answer, plus some time for a busy machine.
                let ran = within(PATIENCE, &mut command);
                fails_clearly(&ran);
                assert!(ran.stderr.contains("did not answer within 8 s"), "{ran:#?}");
            });
        }
    });
}

#[test]
fn the_first_interrupt_is_heard_in_a_silent_handshake() {
    let place = Place::beside();
    for mut command in silent_in_tls().iter().flat_map(|address| all(&place, address)) {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        signal(&child, "INT");
        let asked = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(asked.elapsed() < PATIENCE, "{command:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
