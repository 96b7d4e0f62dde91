//! A MariaDB server that accepts every client.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::Sender;

use super::{Mode, drip, flood, long_text, stay, zeros};

/// The protocol since 4.1, passwords by plugins, connection attributes; no TLS.
const CAPABILITIES: u32 = 0x0018_a201;
const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
const END: [u8; 5] = [0xfe, 0, 0, 2, 0];
const FILE: &[u8] = b"\xfb/etc/passwd";

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32).to_le_bytes();
    [&len[..3], &[sequence], body].concat()
}

fn read(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok((head[3], body))
}

fn greeting(plugin: &str) -> Vec<u8> {
    let [low, high] = [CAPABILITIES as u16, (CAPABILITIES >> 16) as u16].map(u16::to_le_bytes);
    let mut body = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0saltsalt\0".to_vec();
    body.extend([low[0], low[1], 33, 2, 0, high[0], high[1], 21]);
    body.extend([0; 10]);
    body.extend([b"saltsaltsalt\0", plugin.as_bytes(), b"\0"].concat());
    packet(0, &body)
}

fn error() -> Vec<u8> {
    [&[0xff, 0x15, 0x04][..], b"#28000", &long_text()].concat()
}

/// Returns the definition of a text column.
fn column() -> Vec<u8> {
    const TEXT: u8 = 253;
    let mut body = b"\x03def\0\0\0\x01c\0\x0c".to_vec();
    body.extend([33, 0, 255, 0, 0, 0, TEXT, 0, 0, 0, 0, 0]);
    body
}

fn value(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8][..], bytes].concat()
}

pub fn serve(stream: &mut TcpStream, mode: Mode, sent: &Sender<Vec<u8>>) -> io::Result<()> {
    match mode {
        Mode::Silent => return stay(stream),
        Mode::Closes => return Ok(()),
        Mode::Drip => return drip(stream, &greeting("mysql_native_password")),
        Mode::BadPasswordRequest => return asks_for_password(stream),
        _ => stream.write_all(&greeting("mysql_native_password"))?,
    }
    let (sequence, _) = read(stream)?;
    if mode == Mode::LongError {
        stream.write_all(&packet(sequence + 1, &error()))?;
        return stay(stream);
    }
    stream.write_all(&packet(sequence + 1, &OK))?;
    if mode == Mode::SilentLater {
        return stay(stream);
    }
    loop {
        const QUIT: u8 = 1;
        const QUERY: u8 = 3;
        const PREPARE: u8 = 0x16;
        let (sequence, body) = read(stream)?;
        let (command, text) = body.split_first().unwrap_or((&QUIT, &[]));
        let next = sequence.wrapping_add(1);
        match *command {
            QUIT => return Ok(()),
            // Settings succeed, so that queries follow.
            QUERY if text.starts_with(b"SET") || text.starts_with(b"USE") => {
                stream.write_all(&packet(next, &OK))?;
            }
            QUERY | PREPARE => answer(stream, mode, next, sent)?,
            _ => stream.write_all(&packet(next, &OK))?,
        }
    }
}

/// Requests the password encrypted with a malformed key.
fn asks_for_password(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&greeting("caching_sha2_password"))?;
    let (sequence, _) = read(stream)?;
    stream.write_all(&packet(sequence + 1, &[1, 4]))?;
    let (sequence, _) = read(stream)?;
    let key = b"\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
    stream.write_all(&packet(sequence + 1, key))?;
    stay(stream)
}

fn answer(stream: &mut TcpStream, mode: Mode, first: u8, sent: &Sender<Vec<u8>>) -> io::Result<()> {
    let two = [value(b"10.11.6-MariaDB"), value(b"0")].concat();
    let row = match mode {
        Mode::HugeMessage => {
            for sequence in (first..=u8::MAX).chain(0..=u8::MAX).cycle() {
                stream.write_all(&[0xff, 0xff, 0xff, sequence])?;
                zeros(stream, 0xff_ffff)?;
            }
            return Ok(());
        }
        Mode::EmptyMessages => {
            stream.write_all(&packet(first, b""))?;
            return stay(stream);
        }
        Mode::WrongKind => return stream.write_all(&packet(first, &OK)),
        Mode::AsksForFile => {
            stream.write_all(&packet(first, FILE))?;
            let (sequence, content) = read(stream)?;
            let _ = sent.send(content);
            return stream.write_all(&packet(sequence.wrapping_add(1), &OK));
        }
        Mode::HugeCounts => {
            let largest = [&[0xfe][..], &[0xff; 8]].concat();
            stream.write_all(&packet(first, &largest))?;
            return stay(stream);
        }
        Mode::EndlessColumns => {
            let many = [&[0xfd][..], &[0xff; 3]].concat();
            stream.write_all(&packet(first, &many))?;
            let all: Vec<u8> = (0..=255)
                .flat_map(|at| packet(first.wrapping_add(1).wrapping_add(at), &column()))
                .collect();
            return flood(stream, &all);
        }
        Mode::TruncatedRow => vec![100, b'x'],
        Mode::MoreValues => two.repeat(2),
        Mode::FewerValues => value(b"0"),
        Mode::Null => vec![0xfb; 2],
        Mode::InvalidUtf8 => [value(b"\xff\xfe"), value(b"\xc0")].concat(),
        _ => two,
    };
    let mut sequence = first;
    let mut out = Vec::new();
    let mut put = |out: &mut Vec<u8>, body: &[u8]| {
        out.extend(packet(sequence, body));
        sequence = sequence.wrapping_add(1);
    };
    put(&mut out, &[2]);
    for body in [&column()[..], &column(), &END] {
        put(&mut out, body);
    }
    if mode == Mode::EndlessRows {
        stream.write_all(&out)?;
        let mut all = Vec::new();
        for _ in 0..=255 {
            put(&mut all, &row);
        }
        return flood(stream, &all);
    }
    for body in [&row[..], &END] {
        put(&mut out, body);
    }
    stream.write_all(&out)
}
