//! Servers that are not what they seem: each answer must lead to one clear error, and soon.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::Ran;

use super::{Place, signal, within};

/// Starts a server on the loopback that runs `serve` for each connection, and returns its port.
pub fn server(serve: impl Fn(&mut TcpStream) + Send + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                serve(&mut stream);
                // Keep it open until the other side leaves.
                let _ = stream.read(&mut [0; 1024]);
                std::thread::sleep(Duration::from_mins(1));
            });
        }
    });
    port
}

/// The first message of a PostgreSQL client that wants TLS.
pub const ASKS_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Reads a request of a client, and declines TLS.
fn asked(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    if matches!(stream.read(&mut bytes), Ok(len) if bytes[..len] == ASKS_FOR_TLS) {
        let _ = stream.write_all(b"N");
        let _ = stream.read(&mut bytes);
    }
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// Accepts a PostgreSQL client.
fn let_in(stream: &mut TcpStream) {
    asked(stream);
    let _ = stream.write_all(&message(b'R', &[0; 4]));
    let _ = stream.write_all(&message(b'K', &[0; 8]));
    let _ = stream.write_all(&message(b'Z', b"I"));
}

/// Returns the commands that connect to a database, with this address.
pub fn all(place: &Place, address: &str) -> Vec<Command> {
    let mut run = place.command("run");
    run.args(["--target", address, "--scale", "1M"]);
    let mut watch = place.command("watch");
    watch.args(["--once", "--for", "1s", "--db", address]);
    let mut teardown = place.command("teardown");
    teardown.args([address, "--destroy", address]);
    vec![run, watch, teardown]
}

#[track_caller]
pub fn fails_clearly(ran: &Ran) {
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{ran:#?}");
    let is_raw = |c: char| c.is_control() && c != '\n';
    assert!(!ran.stderr.contains(is_raw) && ran.stderr.len() < 3_000, "{ran:#?}");
}

#[test]
fn a_server_that_is_no_database_is_an_error_within_ten_seconds() {
    let place = Place::beside();
    let postgres: [fn(&mut TcpStream); 7] = [
        |_| {},
        asked,
        // Accepts the client and stays silent.
        let_in,
        // An error longer than any screen, with terminal control sequences.
        |stream| {
            asked(stream);
            let text = format!("\x1b]0;owned\x07\x1b[2J{}", "x".repeat(1 << 20));
            let body = format!("SFATAL\0C28000\0M{text}\0\0");
            let _ = stream.write_all(&message(b'E', body.as_bytes()));
        },
        // The length of a message that never arrives.
        |stream| {
            asked(stream);
            let _ = stream.write_all(&[b'R', 0x7f, 0xff, 0xff, 0xff]);
        },
        |stream| {
            asked(stream);
            let _ = stream.write_all(&vec![0xff; 65_536]);
        },
        // Another type than requested, in the answer to each query.
        |stream| {
            let_in(stream);
            loop {
                let mut bytes = [0; 4096];
                if !matches!(stream.read(&mut bytes), Ok(1..)) {
                    return;
                }
                let _ = stream.write_all(&message(b'C', b"SET\0"));
                let _ = stream.write_all(&message(b'Z', b"I"));
            }
        },
    ];
    let mysql: [fn(&mut TcpStream); 3] = [
        |_| {},
        |stream| {
            let _ = stream.write_all(&vec![0xff; 65_536]);
        },
        |stream| {
            let text = format!("\x1b]0;owned\x07{}", "x".repeat(1 << 20));
            let body = [&[0xff, 0x15, 0x04][..], b"#28000", text.as_bytes()].concat();
            let len = (body.len() as u32).to_le_bytes();
            let _ = stream.write_all(&[&len[..3], &[0], &body].concat());
        },
    ];
    let postgres = postgres.map(|serve| format!("postgres://u:p@127.0.0.1:{}/d", server(serve)));
    let mysql = mysql.map(|serve| format!("mysql://u:p@127.0.0.1:{}", server(serve)));
    for addresses in [&postgres[..], &mysql] {
        std::thread::scope(|scope| {
            for mut command in addresses.iter().flat_map(|address| all(&place, address)) {
                // Eight seconds for an answer, plus some time for a busy machine.
                scope.spawn(move || fails_clearly(&within(Duration::from_secs(20), &mut command)));
            }
        });
    }
}

#[test]
fn the_first_interrupt_is_heard_while_a_server_is_silent() {
    let place = Place::beside();
    let address = format!("postgres://u@127.0.0.1:{}/d", server(let_in));
    for mut command in all(&place, &address) {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(800));
        signal(&child, "INT");
        let asked = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(asked.elapsed() < Duration::from_secs(12), "{command:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
