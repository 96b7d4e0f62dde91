//! A PostgreSQL server that accepts every client.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::super::servers::{ASKS_FOR_TLS, message};
use super::{Mode, drip, flood, long_text, stay, zeros};

const READY: &[u8] = b"I";
const TEXT: u32 = 25;

/// Reads the first message, and declines TLS.
fn greeted(stream: &mut TcpStream) -> io::Result<()> {
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    if head == ASKS_FOR_TLS {
        stream.write_all(b"N")?;
        stream.read_exact(&mut head)?;
    }
    let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let mut rest = vec![0; (len as usize).saturating_sub(8).min(4096)];
    stream.read_exact(&mut rest)
}

fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'K', &[0; 8]), message(b'Z', READY)].concat()
}

/// Returns a description of rows, with columns of one kind.
fn description(columns: i16, described: usize) -> Vec<u8> {
    let column = [&b"c\0"[..], &[0; 6], &TEXT.to_be_bytes(), &[0xff; 2], &[0; 6]].concat();
    message(b'T', &[&columns.to_be_bytes()[..], &column.repeat(described)].concat())
}

/// Returns a row of `count` values, whose bytes are `values`.
fn row(count: i16, values: &[u8]) -> Vec<u8> {
    message(b'D', &[&count.to_be_bytes()[..], values].concat())
}

fn value(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as i32).to_be_bytes()[..], bytes].concat()
}

fn error() -> Vec<u8> {
    let text = long_text();
    message(b'E', &[b"SFATAL\0C28000\0M", &text[..], b"\0\0"].concat())
}

pub fn serve(stream: &mut TcpStream, mode: Mode) -> io::Result<()> {
    match mode {
        Mode::Silent => return stay(stream),
        Mode::Closes => return Ok(()),
        _ => greeted(stream)?,
    }
    match mode {
        Mode::Drip => return drip(stream, &welcome()),
        Mode::LongError => {
            stream.write_all(&error())?;
            return stay(stream);
        }
        Mode::BadPasswordRequest => {
            let sasl = [&10_u32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat();
            stream.write_all(&message(b'R', &sasl))?;
            let _ = stream.read(&mut [0; 4096])?;
            let nonsense = [&11_u32.to_be_bytes()[..], b"r=,s=\xff,i=-1"].concat();
            stream.write_all(&message(b'R', &nonsense))?;
            return stay(stream);
        }
        _ => stream.write_all(&welcome())?,
    }
    if mode == Mode::SilentLater {
        return stay(stream);
    }
    answer(stream, mode)
}

/// Answers each request that expects an answer.
fn answer(stream: &mut TcpStream, mode: Mode) -> io::Result<()> {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; len.saturating_sub(4).min(1 << 20)];
        stream.read_exact(&mut body)?;
        let said = String::from_utf8_lossy(&body).into_owned();
        let is_simple = head[0] == b'Q';
        // Settings succeed, so that queries follow.
        if is_simple && (said.starts_with("SET") || said.starts_with("BEGIN")) {
            if mode == Mode::WrongKind {
                stream.write_all(&message(b'T', &[0, 0]))?;
            }
            stream.write_all(&[message(b'C', b"SET\0"), message(b'Z', READY)].concat())?;
            continue;
        }
        match head[0] {
            b'P' => stream.write_all(&message(b'1', b""))?,
            b'B' => stream.write_all(&message(b'2', b""))?,
            b'C' => stream.write_all(&message(b'3', b""))?,
            b'D' => {
                stream.write_all(&message(b't', &[0, 0]))?;
                described(stream, mode)?;
            }
            b'E' | b'Q' => rows(stream, mode)?,
            b'X' => return Ok(()),
            _ => {}
        }
        if matches!(head[0], b'S' | b'Q') {
            stream.write_all(&message(b'Z', READY))?;
        }
    }
}

/// Sends the columns of the requested result.
fn described(stream: &mut TcpStream, mode: Mode) -> io::Result<()> {
    match mode {
        Mode::HugeCounts => stream.write_all(&description(-1, 1)),
        Mode::EmptyMessages => stream.write_all(&message(b'T', b"")),
        Mode::WrongKind => stream.write_all(&message(b'n', b"")),
        Mode::EndlessColumns => flood(stream, &description(i16::MAX, 32_767)),
        _ => stream.write_all(&description(2, 2)),
    }
}

fn rows(stream: &mut TcpStream, mode: Mode) -> io::Result<()> {
    let two = [value(b"170000"), value(b"x")].concat();
    let sent = match mode {
        Mode::HugeMessage => {
            stream.write_all(&[b'D', 0x7f, 0xff, 0xff, 0xff])?;
            return zeros(stream, u64::MAX);
        }
        Mode::TruncatedRow => row(2, &[0, 0, 0, 100, b'x']),
        Mode::MoreValues => row(4, &two.repeat(2)),
        Mode::FewerValues => row(1, &value(b"170000")),
        Mode::Null => row(2, &[0xff; 8]),
        Mode::HugeCounts => row(-1, &[0x80, 0, 0, 5]),
        Mode::InvalidUtf8 => row(2, &[value(b"\xff\xfe"), value(b"\xc0")].concat()),
        Mode::EndlessRows => return flood(stream, &row(2, &two)),
        Mode::AsksForFile => {
            stream.write_all(&message(b'H', &[0, 0, 0]))?;
            return flood(stream, &message(b'd', &[b'x'; 1024]));
        }
        Mode::EmptyMessages => message(b'D', b""),
        _ => row(2, &two),
    };
    stream.write_all(&[sent, message(b'C', b"SELECT 1\0")].concat())
}
