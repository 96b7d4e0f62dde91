//! ClickHouse's HTTP interface: one connection that stays open, one statement after the other.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};

/// An answer that is larger is none of these statements'.
const ANSWER_MAX: u64 = 64 << 20;
const HEADS_MAX: usize = 100;
const LINE_MAX: u64 = 8 << 10;

#[derive(Debug)]
pub struct Link {
    stream: BufReader<TcpStream>,
    password: String,
}

impl Link {
    pub fn connect(port: u16, password: &str) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), password: password.to_owned() })
    }

    /// Ends what waits for an answer.
    pub fn breaker(&self) -> io::Result<Breaker> {
        self.stream.get_ref().try_clone().map(Breaker)
    }

    /// Sends `body` as the statement, or as the data of the one among `parameters`; their values
    /// are letters, digits and what a query string may have. What the server answers: `Err` with
    /// its words where it refuses.
    pub fn post(&mut self, parameters: &str, body: &[u8]) -> io::Result<Result<String, String>> {
        let head = format!(
            "POST /?{parameters} HTTP/1.1\r\nHost: localhost\r\nX-ClickHouse-User: default\r\n\
             X-ClickHouse-Key: {}\r\nContent-Length: {}\r\n\r\n",
            self.password,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let (status, answer) = read_answer(&mut self.stream)?;
        let answer = String::from_utf8_lossy(&answer).trim_end().to_owned();
        Ok(if status == 200 { Ok(answer) } else { Err(answer) })
    }
}

#[derive(Debug)]
pub struct Breaker(TcpStream);

impl Breaker {
    pub fn end(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the answer over HTTP has {what}"))
}

fn read_answer(from: &mut impl io::BufRead) -> io::Result<(u32, Vec<u8>)> {
    let status = line(from)?;
    let status = status.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status: u32 = status.ok_or_else(|| bad("no status"))?;
    let (mut len, mut is_chunked) = (None, false);
    for _ in 0..HEADS_MAX {
        let text = line(from)?;
        if text.is_empty() {
            break;
        }
        let Some((name, value)) = text.split_once(':') else { return Err(bad("no head")) };
        match (name.to_ascii_lowercase().as_str(), value.trim()) {
            ("content-length", value) => len = value.parse::<u64>().ok(),
            ("transfer-encoding", value) => is_chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if !is_chunked {
        let len = len.filter(|it| *it <= ANSWER_MAX).ok_or_else(|| bad("no length"))?;
        from.take(len).read_to_end(&mut body)?;
        return if body.len() as u64 == len { Ok((status, body)) } else { Err(bad("no end")) };
    }
    loop {
        let size = line(from)?;
        let size = size.split(';').next().and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
        let size = size.ok_or_else(|| bad("no size of a part"))?;
        if body.len() as u64 + size > ANSWER_MAX {
            return Err(bad("too many bytes"));
        }
        from.take(size).read_to_end(&mut body)?;
        // After the last part too.
        if !line(from)?.is_empty() {
            return Err(bad("a part that is too long"));
        }
        if size == 0 {
            return Ok((status, body));
        }
    }
}

/// Without its end.
fn line(from: &mut impl io::BufRead) -> io::Result<String> {
    let mut text = String::new();
    from.take(LINE_MAX).read_line(&mut text)?;
    match text.strip_suffix('\n') {
        Some(text) => Ok(text.trim_end_matches('\r').to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_parts_or_as_a_whole() {
        let whole = b"HTTP/1.1 500 Internal\r\nContent-Length: 3\r\n\r\nno\n".as_slice();
        assert_eq!(read_answer(&mut &*whole).unwrap(), (500, b"no\n".to_vec()));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let parts = format!("{head}2\r\n1\n\r\nA;x\r\n0123456789\r\n0\r\n\r\n");
        assert_eq!(read_answer(&mut parts.as_bytes()).unwrap(), (200, b"1\n0123456789".to_vec()));
        for bad in [
            "",
            "HTTP/1.1\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            &format!("{head}zz\r\n"),
            &format!("{head}ffffffffff\r\n"),
            &format!("{head}2\r\n123\r\n0\r\n\r\n"),
        ] {
            assert!(read_answer(&mut bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
