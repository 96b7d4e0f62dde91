//! Heads of requests, as bytes of a stranger.

use std::io;

/// A head may have this many bytes.
pub const HEAD_MAX: usize = 16 << 10;

#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub is_head: bool,
    pub target: String,
    pub keeps_alive: bool,
    range: Option<String>,
    if_range: Option<String>,
}

/// What of a file is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Whole,
    /// From the first byte to behind the last.
    Range(u64, u64),
    /// The range lies behind the end.
    Nothing,
}

impl Request {
    /// Of the bytes before the empty line. Fails with the status of the answer.
    pub fn parse(head: &[u8]) -> Result<Self, &'static str> {
        const BAD: &str = "400 Bad Request";
        let head = std::str::from_utf8(head).map_err(|_| BAD)?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BAD);
        };
        let is_head = match method {
            "HEAD" => true,
            "GET" => false,
            _ => return Err("405 Method Not Allowed"),
        };
        let mut keeps_alive = match version {
            "HTTP/1.1" => true,
            "HTTP/1.0" => false,
            _ => return Err("505 HTTP Version Not Supported"),
        };
        let (mut range, mut if_range) = (None, None);
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(BAD)?;
            if name.is_empty() || name.contains([' ', '\t', '\r', '\n']) {
                return Err(BAD);
            }
            let value = value.trim_matches([' ', '\t']);
            match name.to_ascii_lowercase().as_str() {
                // Two of them would be read in two ways.
                "range" if range.is_some() => return Err(BAD),
                "range" => range = Some(value.to_owned()),
                "if-range" => if_range = Some(value.to_owned()),
                "connection" => {
                    let has = |word: &str| {
                        value.split(',').any(|it| it.trim().eq_ignore_ascii_case(word))
                    };
                    keeps_alive = (keeps_alive || has("keep-alive")) && !has("close");
                }
                "transfer-encoding" => return Err(BAD),
                "content-length" if value != "0" => return Err("413 Content Too Large"),
                _ => {}
            }
        }
        Ok(Self { is_head, target: target.to_owned(), keeps_alive, range, if_range })
    }

    /// What of a file with `len` bytes and this tag. A range that is none, of another unit, or of
    /// several parts is ignored, as RFC 9110 allows.
    pub fn wanted(&self, len: u64, tag: &str) -> Wanted {
        let Some(range) = self.range.as_deref().filter(|_| !self.is_head) else {
            return Wanted::Whole;
        };
        if self.if_range.as_deref().is_some_and(|given| given != tag) {
            return Wanted::Whole;
        }
        parse_range(range, len).unwrap_or(Wanted::Whole)
    }
}

/// The next head, without its empty line; none where the reader has closed. A head that is too long
/// is one that is refused. `buffered` keeps what came behind it.
pub fn read_head(
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    buffered: &mut Vec<u8>,
) -> io::Result<Option<Result<Vec<u8>, &'static str>>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut looked = 0;
    loop {
        let found = buffered[looked..].windows(END.len()).position(|it| it == END);
        let end = found.map(|at| looked + at);
        if end.unwrap_or(buffered.len()) > HEAD_MAX {
            return Ok(Some(Err("431 Request Header Fields Too Large")));
        }
        if let Some(at) = end {
            let rest = buffered.split_off(at + END.len());
            let mut head = std::mem::replace(buffered, rest);
            head.truncate(at);
            return Ok(Some(Ok(head)));
        }
        looked = buffered.len().saturating_sub(END.len() - 1);
        let mut more = [0; 4096];
        let read = read(&mut more)?;
        if read == 0 {
            return Ok(None);
        }
        buffered.extend(&more[..read]);
    }
}

/// None where it is no single range of bytes.
fn parse_range(range: &str, len: u64) -> Option<Wanted> {
    let (unit, set) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than a number has lie behind any end.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    if first.is_empty() {
        let suffix = number(last)?;
        let range = Wanted::Range(len.saturating_sub(suffix), len);
        return Some(if suffix == 0 || len == 0 { Wanted::Nothing } else { range });
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    let end = last.saturating_add(1).min(len);
    Some(if first < len { Wanted::Range(first, end) } else { Wanted::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(range: &str) -> Wanted {
        let head = format!("GET /a HTTP/1.1\r\nHost: x\r\nRange: {range}");
        Request::parse(head.as_bytes()).unwrap().wanted(1000, "\"t\"")
    }

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        for (range, expected) in [
            ("bytes=0-499", Wanted::Range(0, 500)),
            ("bytes=500-999", Wanted::Range(500, 1000)),
            ("bytes=-500", Wanted::Range(500, 1000)),
            ("bytes=9500-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=-5000", Wanted::Range(0, 1000)),
            ("bytes=990-5000", Wanted::Range(990, 1000)),
            ("Bytes=0-0", Wanted::Range(0, 1)),
            ("bytes=1000-", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=0-99999999999999999999999", Wanted::Range(0, 1000)),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=0-1,5-6", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes", Wanted::Whole),
            ("rows=0-1", Wanted::Whole),
            ("", Wanted::Whole),
        ] {
            assert_eq!(wanted(range), expected, "{range}");
        }
        assert_eq!(parse_range("bytes=-5", 0), Some(Wanted::Nothing));
    }

    #[test]
    fn a_range_of_another_state_or_of_a_head_is_the_whole_file() {
        let of = |head: &str| Request::parse(head.as_bytes()).unwrap().wanted(9, "\"t\"");
        assert_eq!(of("GET / HTTP/1.1\r\nRange: bytes=0-1\r\nIf-Range: \"u\""), Wanted::Whole);
        assert_eq!(
            of("GET / HTTP/1.1\r\nRange: bytes=0-1\r\nIf-Range: \"t\""),
            Wanted::Range(0, 2)
        );
        assert_eq!(of("HEAD / HTTP/1.1\r\nRange: bytes=0-1"), Wanted::Whole);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (head, status) in [
            ("", "400"),
            ("GET /a", "400"),
            ("GET  /a HTTP/1.1", "400"),
            ("GET /a HTTP/1.1 x", "400"),
            ("POST /a HTTP/1.1", "405"),
            ("GET /a HTTP/2.0", "505"),
            ("GET /a HTTP/1.1\r\nno colon", "400"),
            ("GET /a HTTP/1.1\r\nRange : bytes=0-1", "400"),
            ("GET /a HTTP/1.1\r\nRange: bytes=0-1\r\nRange: bytes=2-3", "400"),
            ("GET /a HTTP/1.1\r\nTransfer-Encoding: chunked", "400"),
            ("GET /a HTTP/1.1\r\nContent-Length: 5", "413"),
        ] {
            let found = Request::parse(head.as_bytes()).unwrap_err();
            assert!(found.starts_with(status), "{head:?}: {found}");
        }
        assert!(Request::parse(&[0xff, 0xfe]).is_err());
        let closing = "GET /a HTTP/1.1\r\nConnection: Keep-Alive, Close";
        assert!(!Request::parse(closing.as_bytes()).unwrap().keeps_alive);
        assert!(!Request::parse(b"GET /a HTTP/1.0").unwrap().keeps_alive);
    }
}
