//! Headers that syslog, journald and containers put before the lines of a log.

/// Bytes in which a header is looked for.
const HEADER_MAX: usize = 300;

/// The header that syslog and journald put before a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header<'a> {
    /// Time and host.
    pub before: &'a str,
    pub pid: &'a str,
    pub rest: &'a str,
}

impl<'a> Header<'a> {
    /// Parses `Nov 26 02:23:22 host postgres[1234]: text`, whatever the form of the time, or the
    /// form of RFC 5424.
    pub fn of(line: &'a str) -> Option<Self> {
        if line.starts_with([' ', '\t']) {
            return None;
        }
        Self::of_5424(line).or_else(|| Self::of_3164(line))
    }

    fn of_3164(line: &'a str) -> Option<Self> {
        let end = line.floor_char_boundary(HEADER_MAX);
        let (before, _) = line[..end].split_once("]: ")?;
        let rest = &line[before.len() + 3..];
        let (before, pid) = before.rsplit_once('[')?;
        // A prefix such as `2026-03-01 08:00:00 UTC [77]: ` has no program before its process.
        let program =
            before.rsplit(' ').next().filter(|it| !it.is_empty() && !it.ends_with(':'))?;
        let time_and_host = before[..before.len() - program.len()].split_whitespace().count();
        (is_number(pid) && time_and_host >= 2).then_some(Self { before, pid, rest })
    }

    /// Parses `<134>1 2026-03-01T08:00:00.5+01:00 host postgres 1234 - - text`.
    fn of_5424(line: &'a str) -> Option<Self> {
        let line = match line.strip_prefix('<').and_then(|it| it.split_once('>')) {
            Some((priority, rest)) if is_number(priority) => rest,
            _ => line,
        };
        let mut words = line.strip_prefix("1 ")?.splitn(6, ' ');
        let time = words.next()?;
        crate::instant::iso(time)?;
        let (_host, _program, pid, _message) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let rest = words.next()?;
        let rest = match rest.strip_prefix('-') {
            Some(rest) => rest,
            None => after_elements(rest)?,
        };
        let rest = rest.strip_prefix(' ').unwrap_or(rest).trim_start_matches('\u{feff}');
        is_number(pid).then_some(Self { before: time, pid, rest })
    }
}

/// Skips the structured data of RFC 5424: `[id key="value"][…]`.
fn after_elements(mut text: &str) -> Option<&str> {
    while let Some(inner) = text.strip_prefix('[') {
        let (mut quoted, mut escaped) = (false, false);
        let end = inner.find(|char| {
            let closes = char == ']' && !quoted;
            quoted ^= char == '"' && !escaped;
            escaped = char == '\\' && !escaped;
            closes
        })?;
        text = &inner[end + 1..];
    }
    Some(text)
}

/// A piece of a message that PostgreSQL split for syslog.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fragment<'a> {
    pub number: &'a str,
    pub index: u32,
    pub text: &'a str,
}

impl<'a> Fragment<'a> {
    /// Parses `[5-1] text`.
    pub fn of(text: &'a str) -> Option<Self> {
        let (number, rest) = text.strip_prefix('[')?.split_once('-')?;
        let (index, text) = rest.split_once(']')?;
        let index = index.parse().ok().filter(|_| is_number(number))?;
        Some(Self { number, index, text: text.strip_prefix(' ').unwrap_or(text) })
    }
}

/// Removes what a container runtime or a stream of JSON puts before each line.
pub fn contained(line: &str) -> &str {
    if let Some(rest) = line.strip_prefix('\u{1e}') {
        return rest;
    }
    if let Some(rest) = line.strip_prefix("data: ")
        && rest.starts_with('{')
    {
        return rest;
    }
    runtime(line).or_else(|| compose(line)).unwrap_or(line)
}

/// Parses `2026-03-01T08:00:00.5Z stderr F text`, of Kubernetes, and the form without the stream.
fn runtime(line: &str) -> Option<&str> {
    let (time, rest) = line.split_once(' ')?;
    if !time.contains('T') || crate::instant::iso(time).is_none() {
        return None;
    }
    for stream in ["stdout F ", "stderr F ", "stdout P ", "stderr P "] {
        if let Some(rest) = rest.strip_prefix(stream) {
            return Some(rest);
        }
    }
    rest.starts_with('{').then_some(rest)
}

/// Parses `db-1  | text`, of Docker Compose.
fn compose(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once('|')?;
    let (name, rest) = (name.trim_end(), rest.strip_prefix(' ').unwrap_or(rest));
    let is_name = |it: &str| {
        !it.is_empty()
            && it.len() <= 64
            && it.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !it.starts_with(|first: char| first.is_ascii_digit())
    };
    (is_name(name) && line.as_bytes().get(name.len()) == Some(&b' ')).then_some(rest)
}

/// Undoes how rsyslog writes control characters.
pub fn unescaped(text: &str) -> String {
    text.replace("#011", "\t").replace("#012", "\n").replace("#015", "\r")
}

pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_syslog_and_journald_have_a_process() {
        for (line, before) in [
            ("Nov 26 02:23:22 host postgres[77]: text", "Nov 26 02:23:22 host postgres"),
            (
                "2026-11-26T02:23:22.5+01:00 host postgres[77]: text",
                "2026-11-26T02:23:22.5+01:00 host postgres",
            ),
            ("[ 1234.567890] host postgres[77]: text", "[ 1234.567890] host postgres"),
            (
                "Thu 2026-11-26 02:23:22 UTC host postgresql@16-main.service[77]: text",
                "Thu 2026-11-26 02:23:22 UTC host postgresql@16-main.service",
            ),
            ("<134>Nov 26 02:23:22 host postgres[77]: text", "<134>Nov 26 02:23:22 host postgres"),
            ("<134>1 2026-11-26T02:23:22.5Z host postgres 77 - - text", "2026-11-26T02:23:22.5Z"),
            (
                "1 2026-11-26T02:23:22.5Z host postgres 77 - [a b=\"]\\\"\"][c] \u{feff}text",
                "2026-11-26T02:23:22.5Z",
            ),
        ] {
            let header = Header { before, pid: "77", rest: "text" };
            assert_eq!(Header::of(line), Some(header), "{line}");
        }
        for line in [
            "2026-03-01 08:00:00 UTC [77]: [5-1] user=u LOG:  x",
            "\tfrom t where a[7]: b",
            "psql[77]: LOG:  x",
            "2026-03-01 08:00:00 UTC:10.0.0.1(5):u@d:[77]: LOG:  x",
            "1 2026",
        ] {
            assert_eq!(Header::of(line), None, "{line}");
        }
    }

    #[test]
    fn containers_are_unwrapped() {
        for line in [
            "2026-03-01T08:00:00.5Z stderr F {x",
            "2026-03-01T08:00:00.5Z {x",
            "db-1  | {x",
            "postgres | {x",
            "\u{1e}{x",
            "data: {x",
        ] {
            assert_eq!(contained(line), "{x", "{line}");
        }
        for line in ["2026-03-01 08:00:00 | x", "select a|b", "a||b", "\tx | y"] {
            assert_eq!(contained(line), line);
        }
    }
}
