use std::io::BufRead as _;
use std::io::BufReader;

use super::*;

/// A server of one file with 100,000 bytes, each of which says where it lies.
fn server() -> (tempfile::TempDir, RangeServer) {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(dir.path().join("data"), bytes).unwrap();
    let server = RangeServer::start(&[("a.parquet", &dir.path().join("data"))]).unwrap();
    (dir, server)
}

/// The status, the head and the body of each answer to what is sent at once.
fn exchange(server: &RangeServer, text: &str) -> Vec<(String, String, Vec<u8>)> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut reader = BufReader::new(stream);
    let mut answers = Vec::new();
    loop {
        let (mut status, mut head) = (String::new(), String::new());
        if reader.read_line(&mut status).unwrap_or(0) == 0 {
            return answers;
        }
        let mut len = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line == "\r\n" {
                break;
            }
            if let Some(found) = line.strip_prefix("Content-Length: ") {
                len = found.trim().parse().unwrap();
            }
            head += &line;
        }
        let mut body = vec![0; if text.starts_with("HEAD") { 0 } else { len }];
        reader.read_exact(&mut body).unwrap();
        answers.push((status.trim().to_owned(), head, body));
    }
}

#[test]
fn bytes_counted_are_the_bytes_of_the_sockets() {
    let (_dir, server) = server();
    let text = "GET /a.parquet HTTP/1.1\r\nRange: bytes=1000-1999\r\n\r\n\
                GET /a.parquet HTTP/1.1\r\nRange: bytes=-8\r\n\r\n\
                GET /a.parquet HTTP/1.1\r\n\r\n";
    let answers = exchange(&server, text);
    let statuses: Vec<&str> = answers.iter().map(|it| &it.0[9..12]).collect();
    assert_eq!(statuses, ["206", "206", "200"]);
    assert!(answers[0].1.contains("Content-Range: bytes 1000-1999/100000\r\n"), "{answers:?}");
    assert_eq!(answers[0].2[0], (1000 % 251) as u8);
    assert_eq!(answers[1].2.len(), 8);
    assert_eq!(answers[2].2.len(), 100_000);
    let sent = server.sent();
    assert_eq!((sent.requests, sent.body_bytes), (3, 101_008));
    assert_eq!(sent.socket_sent_bytes, sent.head_bytes + sent.body_bytes);
    // The kernel counts the end of the stream as a byte.
    let more = sent.socket_received_bytes - text.len() as u64;
    assert!(more <= 1, "{sent:?}");
    assert_eq!(sent.ranges, [vec![(1000, 2000), (99_992, 100_000), (0, 100_000)]]);
}

#[test]
fn a_head_has_no_body_and_what_is_not_listed_is_not_found() {
    let (_dir, server) = server();
    let head = exchange(&server, "HEAD /a.parquet HTTP/1.1\r\n\r\n");
    assert!(head[0].0.contains("200") && head[0].1.contains("Content-Length: 100000"), "{head:?}");
    assert_eq!(server.sent().body_bytes, 0);
    for target in ["/", "/a.parquet/", "/../a.parquet", "//a.parquet", "/etc/passwd", "a.parquet"] {
        let answer = exchange(&server, &format!("GET {target} HTTP/1.1\r\n\r\n"));
        assert!(answer[0].0.contains("404"), "{target}: {answer:?}");
    }
    let behind = exchange(&server, "GET /a.parquet HTTP/1.1\r\nRange: bytes=100000-\r\n\r\n");
    assert!(behind[0].0.contains("416"), "{behind:?}");
    assert!(behind[0].1.contains("Content-Range: bytes */100000\r\n"), "{behind:?}");
}

#[test]
fn strangers_are_refused_and_the_next_reader_is_served() {
    let (_dir, server) = server();
    let long = format!("GET /a.parquet HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(HEAD_MAX + 5000));
    assert!(exchange(&server, &long)[0].0.contains("431"));
    assert!(exchange(&server, "\r\n\r\n")[0].0.contains("400"));
    assert!(exchange(&server, "GET /a.parquet HTTP/1.1\r\nRange").is_empty());
    let next = exchange(&server, "GET /a.parquet HTTP/1.1\r\nRange: bytes=0-9\r\n\r\n");
    assert_eq!(next[0].2.len(), 10);
    assert_eq!(server.sent().refused, 2);
}

#[test]
fn one_who_sends_a_head_byte_by_byte_is_cut_off() {
    let (_dir, server) = server();
    let began = Instant::now();
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    slow.write_all(b"GET /a.parquet HTTP/1.1\r\n").unwrap();
    let is_over = |stream: &mut TcpStream| {
        let sent = stream.write_all(b"X: y\r\n");
        let mut answer = [0; 64];
        sent.is_err() || matches!(stream.read(&mut answer), Ok(0))
    };
    while !is_over(&mut slow) {
        assert!(began.elapsed() < 2 * PACE, "it is still read");
    }
    assert!(began.elapsed() > PACE / 2);
    assert_eq!(server.sent().requests, 0);
}

#[test]
fn more_connections_than_are_served_are_closed_and_the_others_go_on() {
    let (_dir, server) = server();
    let held = (0..CONNECTIONS_MAX).map(|_| TcpStream::connect(server.address()).unwrap());
    let held: Vec<TcpStream> = held.collect();
    let mut more = TcpStream::connect(server.address()).unwrap();
    more.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(!matches!(more.read(&mut [0; 8]), Ok(1..)), "it is closed");
    let mut first = &held[0];
    first.write_all(b"GET /a.parquet HTTP/1.1\r\nRange: bytes=0-3\r\n\r\n").unwrap();
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = [0; 12];
    first.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 206");
    drop(held);
    assert_eq!(server.sent().refused, 1);
    let next = exchange(&server, "GET /a.parquet HTTP/1.1\r\nRange: bytes=0-9\r\n\r\n");
    assert_eq!(next[0].2.len(), 10);
}

#[test]
fn ranges_stay_few_and_cover_what_was_sent() {
    let mut ranges = Vec::new();
    for _ in 0..=RANGES_MAX {
        note(&mut ranges, (5, 9));
    }
    assert_eq!(ranges, [(5, 9)]);
    for at in 0..=RANGES_MAX as u64 {
        note(&mut ranges, (20 + at * 2, 21 + at * 2));
    }
    assert!(ranges.len() < RANGES_MAX, "{}", ranges.len());
    for at in 0..=RANGES_MAX as u64 {
        let is_in = |(start, end): &(u64, u64)| (*start..*end).contains(&(20 + at * 2));
        assert!(ranges.iter().any(is_in), "{at}");
    }
}
