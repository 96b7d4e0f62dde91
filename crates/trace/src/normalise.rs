//! Statements that differ only in literals, white space and comments.

/// The text with `?` for literals, one space for white space and for comments but hints.
///
/// Case is kept: the text is also shown.
pub fn normalise(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let taken = match byte {
            b'\'' => literal(&mut out, quoted(rest)),
            b'"' => keep(&mut out, &rest[..quoted(rest)]),
            b'0'..=b'9' if !out.last().is_some_and(|&last| word(last)) => {
                literal(&mut out, number(rest))
            }
            b'-' if rest.starts_with(b"--") && !rest.starts_with(b"--+") => {
                space(&mut out, memchr::memchr(b'\n', rest).unwrap_or(rest.len()))
            }
            b'/' if rest.starts_with(b"/*") && !rest.starts_with(b"/*+") => {
                let end = memchr::memmem::find(&rest[2..], b"*/");
                space(&mut out, end.map_or(rest.len(), |end| end + 4))
            }
            _ if byte.is_ascii_whitespace() => space(&mut out, 1),
            _ => keep(&mut out, &rest[..1]),
        };
        at += taken;
    }
    while out.last().is_some_and(|&last| last == b' ' || last == b';') {
        out.pop();
    }
    out
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | b':' | b'.') || byte > 127
}

/// Length of what is in quotes, with them; a doubled quote does not end it.
fn quoted(rest: &[u8]) -> usize {
    let quote = rest[0];
    let mut at = 1;
    while let Some(end) = memchr::memchr(quote, &rest[at..]) {
        at += end + 1;
        if rest.get(at) != Some(&quote) {
            return at;
        }
        at += 1;
    }
    rest.len()
}

fn number(rest: &[u8]) -> usize {
    let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || *byte == b'.');
    rest.iter().position(ends).unwrap_or(rest.len())
}

fn literal(out: &mut Vec<u8>, taken: usize) -> usize {
    out.push(b'?');
    taken
}

fn keep(out: &mut Vec<u8>, bytes: &[u8]) -> usize {
    out.extend_from_slice(bytes);
    bytes.len()
}

fn space(out: &mut Vec<u8>, taken: usize) -> usize {
    if out.last().is_some_and(|&last| last != b' ') {
        out.push(b' ');
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::normalise;

    #[test]
    fn literals_white_space_and_comments_do_not_count() {
        let normal = |text: &str| String::from_utf8(normalise(text.as_bytes())).unwrap();
        assert_eq!(
            normal("select  a1\n from t where b = 'it''s' ;"),
            "select a1 from t where b = ?"
        );
        assert_eq!(normal("select 1.5e3, :1, t2 from \"a 'b\""), "select ?, :1, t2 from \"a 'b\"");
        assert_eq!(normal("a -- x\nb /* c */ d /*+ hint */"), "a b d /*+ hint */");
        assert_eq!(normal("'open"), "?");
        assert_eq!(normal("/* open"), "");
    }
}
