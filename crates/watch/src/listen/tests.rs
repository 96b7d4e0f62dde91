use std::io::{Read, Write};
use std::net::{self, Shutdown};
use std::time::Instant;

use super::*;

fn started() -> Listener {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let access = Access::default();
    Listener::start(Listen { address, host: "host".to_owned(), access, paths: Paths::Hidden })
        .unwrap()
}

fn connect(listener: &Listener) -> net::TcpStream {
    let stream = net::TcpStream::connect(listener.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream
}

fn ask(listener: &Listener, request: &str) -> String {
    let mut stream = connect(listener);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_are_where_they_are_said_to_be() {
    let listener = started();
    let answer = ask(&listener, "GET /metrics?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
    assert!(ask(&listener, "GET / HTTP/1.0\nHost: ::1\n\n").contains(" 421 "));
    let root = ask(&listener, "GET / HTTP/1.0\nHost: localhost\n\n");
    assert!(root.contains("metrics are at /metrics"), "{root}");
    let nowhere = ask(&listener, "GET /favicon.ico HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(nowhere.starts_with("HTTP/1.1 404 "), "{nowhere}");
    let head = ask(&listener, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.contains("content-length: 42\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    for refused in ["", "Host: evil.example\r\n", "Host: localhost\r\nHost: evil.example\r\n"] {
        let answer = ask(&listener, &format!("GET /metrics HTTP/1.1\r\n{refused}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains("# EOF"), "{answer}");
    }
}

/// A server that allocated the announced length of a body would abort the whole program.
#[test]
fn a_length_that_a_request_claims_is_not_believed() {
    let listener = started();
    let post = |length: &str| {
        let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n");
        let mut stream = connect(&listener);
        stream.write_all(format!("{head}\r\nhello").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for length in ["400000000000", "9223372036854775807"] {
        assert!(post(length).starts_with("HTTP/1.1 405 "), "{}", post(length));
    }
    for length in ["18446744073709551616", "-1"] {
        assert!(post(length).starts_with("HTTP/1.1 400 "), "{}", post(length));
    }
}

#[test]
fn those_who_say_nothing_or_too_much_delay_nobody() {
    let listener = started();
    let silent: Vec<_> = (0..3 * CONNECTIONS_MAX).map(|_| connect(&listener)).collect();
    let mut endless = connect(&listener);
    let _ = endless.write_all(&vec![b'a'; 4 * HEAD_BYTES_MAX]);
    let answer = ask(&listener, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let mut said = Vec::new();
    let _ = endless.read_to_end(&mut said);
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 4"), "{said:?}");
    drop(silent);
}

#[test]
fn a_half_open_connection_ends_in_time() {
    let listener = started();
    let (mut stream, begin) = (connect(&listener), Instant::now());
    stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    assert!(begin.elapsed() >= PATIENCE / 2, "{:?}", begin.elapsed());
}
