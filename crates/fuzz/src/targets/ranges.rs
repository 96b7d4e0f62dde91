//! Requests to the server of ranges of files.

use blockstone_pushdown::range::request::{HEAD_MAX, Request, Wanted, read_head};

const REQUESTS: [&str; 6] = [
    "GET /a HTTP/1.1\r\nHost: x\r\nRange: bytes=0-499\r\n\r\n",
    "GET /a HTTP/1.1\r\nRange: bytes=-500\r\nConnection: Keep-Alive, close\r\n\r\n",
    "HEAD /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
    "GET /a HTTP/1.1\r\nRange: bytes=18446744073709551615-18446744073709551615\r\n\r\n",
    "GET /a HTTP/1.1\r\nRange: bytes=5-\r\nIf-Range: \"0-9\"\r\n\r\n",
    "GET /../a HTTP/1.1\r\nRange: bytes=0-1,1-2\r\nContent-Length: 0\r\n\r\n",
];

pub fn requests() -> Vec<Vec<u8>> {
    REQUESTS.iter().map(|it| it.as_bytes().to_vec()).collect()
}

/// Reads all heads of a connection, in pieces, and what each wants of files of several sizes.
pub fn serve(input: &[u8]) -> bool {
    let (mut rest, mut buffered, mut is_valid) = (input, Vec::new(), false);
    let piece = input.first().map_or(1, |byte| usize::from(*byte) + 1);
    loop {
        let read = |more: &mut [u8]| {
            let len = rest.len().min(piece).min(more.len());
            more[..len].copy_from_slice(&rest[..len]);
            rest = &rest[len..];
            Ok(len)
        };
        let Ok(Some(Ok(head))) = read_head(read, &mut buffered) else { return is_valid };
        assert!(head.len() <= HEAD_MAX);
        let Ok(request) = Request::parse(&head) else { return is_valid };
        is_valid = true;
        for len in [0, 1, 1000, u64::MAX] {
            if let Wanted::Range(start, end) = request.wanted(len, "\"0-9\"") {
                assert!(start < end && end <= len && !request.is_head, "{request:?} of {len}");
            }
        }
    }
}
