//! The prefix of a line, which `log_line_prefix` determines: any parts in any order.

use std::collections::VecDeque;

use crate::instant;

use super::header::is_number;

/// Bytes in which the severity is looked for.
const PREFIX_MAX: usize = 400;
const SEVERITIES: [&str; 18] = [
    "LOG",
    "ERROR",
    "STATEMENT",
    "DETAIL",
    "HINT",
    "CONTEXT",
    "WARNING",
    "NOTICE",
    "INFO",
    "FATAL",
    "PANIC",
    "QUERY",
    "LOCATION",
    "DEBUG1",
    "DEBUG2",
    "DEBUG3",
    "DEBUG4",
    "DEBUG5",
];
/// The word for LOG in other languages. Elsewhere it is the same.
pub const LOGS: [&str; 6] = ["СООБЩЕНИЕ", "LOGG", "日志", "로그", "ЗАПИСУВАННЯ", "ჟურნალი"];
/// How a duration begins in other languages.
pub const DURATIONS: [&str; 13] = [
    "Dauer: ",
    "duración: ",
    "durée : ",
    "durata: ",
    "duração: ",
    "期間: ",
    "ხანგრძლივობა: ",
    "실행시간: ",
    "продолжительность: ",
    "varaktighet ",
    "тривалість: ",
    "执行时间: ",
    "süre: ",
];
/// The highest process id of Linux; other systems have lower ones.
const PID_MAX: u32 = 1 << 22;
const PID_MIN: u32 = 100;
/// Number of prefixes with which one is compared.
const RECENT_MAX: usize = 16;
const REFUSED_MAX: usize = 64;

/// A line that begins a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start<'a> {
    pub prefix: &'a str,
    pub is_log: bool,
    pub text: &'a str,
}

/// Splits a line at its severity.
pub fn start(line: &str) -> Option<Start<'_>> {
    let head = &line[..line.floor_char_boundary(PREFIX_MAX)];
    for (at, _) in head.match_indices(": ") {
        let before = &head[..at];
        let after = &line[at + 1..];
        // Some services reduce the two spaces to one.
        if !after.starts_with("  ") && !after.starts_with(" duration: ") {
            continue;
        }
        if let Some(prefix) = LOGS.iter().find_map(|word| before.strip_suffix(word)) {
            return Some(Start { prefix, is_log: true, text: after.trim_start() });
        }
        let word = |word: &&&str| {
            let prefix = before.strip_suffix(**word);
            prefix.is_some_and(|it| !it.ends_with(|last: char| last.is_ascii_uppercase()))
        };
        if let Some(word) = SEVERITIES.iter().find(word) {
            let prefix = &before[..before.len() - word.len()];
            let text = without_state(after.trim_start_matches(' '));
            return Some(Start { prefix, is_log: *word == "LOG", text });
        }
    }
    None
}

/// Removes the SQLSTATE that `log_error_verbosity = verbose` adds.
fn without_state(text: &str) -> &str {
    match text.split_at_checked(5) {
        Some((state, rest))
            if state.bytes().all(|it| it.is_ascii_digit() || it.is_ascii_uppercase()) =>
        {
            rest.strip_prefix(": ").unwrap_or(text)
        }
        _ => text,
    }
}

/// Returns the time of a message. If the start of the session is there too, it is earlier.
pub fn time(prefix: &str) -> Option<f64> {
    let iso = instant::latest(prefix);
    iso.or_else(|| words(prefix).find_map(epoch))
}

/// Parses `1767225600.123`, as written for `%n`.
fn epoch(word: &str) -> Option<f64> {
    let (seconds, fraction) = word.split_once('.')?;
    let valid = seconds.len() == 10 && fraction.len() == 3;
    (valid && is_number(seconds) && is_number(fraction)).then(|| word.parse().ok())?
}

/// Finds the process in the prefixes of one file.
#[derive(Debug, Default)]
pub struct Processes {
    /// Prefixes before, as words.
    recent: VecDeque<Vec<String>>,
    /// Column of the process and number of words, if nothing marks it.
    found: Option<Column>,
    /// Columns that are not the process: they have been zero, as the id of a transaction is.
    refused: Vec<Column>,
}

/// A word of a prefix. Parts may be empty, so a column is that of prefixes with as many words.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    at: usize,
    words: usize,
}

impl Processes {
    /// Returns the process, or another name of the session; empty if the prefix has none.
    pub fn of(&mut self, prefix: &str) -> String {
        let marked = marked(prefix).or_else(|| self.column(prefix)).or_else(|| client(prefix));
        marked.unwrap_or_default()
    }

    /// Returns the number that identifies the session: it is the only one that occurred in the same
    /// place before. It is not called a process, as this is likely but not certain.
    fn column(&mut self, prefix: &str) -> Option<String> {
        let all: Vec<String> = words(prefix).map(str::to_owned).collect();
        let column = |at: usize| Column { at, words: all.len() };
        for at in (0..all.len()).filter(|at| all[*at] == "0") {
            if self.refused.len() < REFUSED_MAX && !self.refused.contains(&column(at)) {
                self.refused.push(column(at));
            }
        }
        self.found = self.found.filter(|it| it.words == all.len() && !self.refused.contains(it));
        if self.found.is_none() {
            let repeats = |at: &usize| {
                let same = |it: &Vec<String>| it.len() == all.len() && it[*at] == all[*at];
                may_be_process(&all[*at])
                    && !self.refused.contains(&column(*at))
                    && self.recent.iter().any(same)
            };
            let mut found = (0..all.len()).filter(repeats);
            if let (Some(at), None) = (found.next(), found.next()) {
                self.found = Some(column(at));
            }
        }
        let name = self.found.map(|it| all[it.at].clone()).filter(|it| may_be_process(it));
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(all);
        name.map(|number| format!("session {number}"))
    }
}

/// Returns whether a word may be the id of a process. Lower numbers count lines.
fn may_be_process(word: &str) -> bool {
    is_number(word) && word.parse().is_ok_and(|pid: u32| (PID_MIN..=PID_MAX).contains(&pid))
}

/// Returns the process, if the prefix marks it.
pub fn marked(prefix: &str) -> Option<String> {
    let pid = bracketed(prefix).or_else(|| named(prefix)).map(|pid| format!("pid {pid}"));
    pid.or_else(|| words(prefix).find_map(session))
}

/// Returns the first number in brackets, also after a name: `[postgres.77]`.
fn bracketed(prefix: &str) -> Option<&str> {
    let inner = prefix.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    let number = |it: &str| match it.rsplit_once('.') {
        Some((name, number)) if name.starts_with(char::is_alphabetic) => number.len(),
        _ => it.len(),
    };
    inner.map(str::trim).map(|it| &it[it.len() - number(it)..]).find(|it| is_number(it))
}

/// Returns the number after `pid=` and the like.
fn named(prefix: &str) -> Option<&str> {
    const NAMES: [&str; 6] = ["pid", "process", "process_id", "processid", "proc", "p"];
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    prefix.match_indices(['=', ':']).find_map(|(at, _)| {
        let name = prefix[..at].trim_end_matches(['"', '\'', ' ']);
        let mut words = name.rsplit(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
        let name = words.next().unwrap_or_default();
        let start = name.len() - name.trim_start_matches(char::is_numeric).len();
        let value = prefix[at + 1..].trim_start_matches([' ', '"', '\'', '[', '(']);
        let value = &value[..digits(value)];
        let is_name = NAMES.iter().any(|it| it.eq_ignore_ascii_case(&name[start..]));
        (is_name && is_number(value)).then_some(value)
    })
}

/// Parses the session id of `%c`: the start of the session and its process, in hexadecimal.
fn session(word: &str) -> Option<String> {
    let word = word.rsplit('-').find(|it| it.contains('.'))?;
    let (start, pid) = word.split_once('.')?;
    if !(7..=9).contains(&start.len()) || !start.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let pid = u32::from_str_radix(pid, 16).ok().filter(|pid| *pid > 0)?;
    Some(format!("pid {pid}"))
}

/// Returns address and port of the client, which `%r` writes.
fn client(prefix: &str) -> Option<String> {
    words(prefix).find_map(|word| {
        let (host, port) = word.strip_suffix(')')?.rsplit_once('(')?;
        (!host.is_empty() && is_number(port)).then(|| format!("client {host}({port})"))
    })
}

/// Words between spaces and the usual separators.
fn words(prefix: &str) -> impl Iterator<Item = &str> {
    prefix
        .split(|char: char| char.is_whitespace() || ",;|<>=\"'{}@/".contains(char))
        .map(|word| word.trim_matches([':', '-', '[', ']']))
        .filter(|word| !word.is_empty() && !word.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_severity_ends_any_prefix() {
        for (line, prefix, text) in [
            ("LOG:  duration: 1 ms", "", "duration: 1 ms"),
            ("client=localhostLOG:  duration: 1 ms", "client=localhost", "duration: 1 ms"),
            ("2026-03-01 UTC:u@d:[7]:LOG:  x", "2026-03-01 UTC:u@d:[7]:", "x"),
            ("< 2026 >LOG:  00000: duration: 1 ms", "< 2026 >", "duration: 1 ms"),
            ("a LOG: duration: 1 ms", "a ", "duration: 1 ms"),
            ("a 日志:  执行时间: 1 ms", "a ", "执行时间: 1 ms"),
        ] {
            assert_eq!(start(line), Some(Start { prefix, is_log: true, text }), "{line}");
        }
        for line in ["a ERROR:  x", "STATEMENT:  select 1", "a DEBUG1:  x"] {
            assert!(!start(line).unwrap().is_log, "{line}");
        }
        for line in ["", "CATALOG:  x", "Log:  x", "x: y", "LOG: other"] {
            assert_eq!(start(line), None, "{line}");
        }
    }

    #[test]
    fn a_process_is_found_in_any_prefix() {
        for (prefix, process) in [
            ("2026-03-01 08:00:00.5 UTC [77] ", "pid 77"),
            ("2026-03-01 08:00:00 UTC:10.0.0.1(5432):u@d:[77]:", "pid 77"),
            ("2026-03-01 08:00:00 UTC [77]: [3-1] user=u,db=d ", "pid 77"),
            ("2026-03-01 08:00:00 UTC-65923f10.4d-", "pid 77"),
            ("65923f10.4d u d ", "pid 77"),
            ("pid=77 u=a 00000 ", "pid 77"),
            ("{\"at\":\"2026-03-01 08:00:00 UTC\",\"pid\":77,\"line\":4} ", "pid 77"),
            ("2026-03-01T08:00:00+00:00 app[postgres.77]: [GREEN] [15-1]  code = 00000 ", "pid 77"),
            ("10.0.0.1(54321) ", "client 10.0.0.1(54321)"),
            ("caf\u{e9}=1 \u{fffd}08:00 caf\u{e9}pid=77 ", "pid 77"),
            ("2026-03-01 08:00:00 UTC ", ""),
            ("12 77 u ", ""),
            ("", ""),
        ] {
            assert_eq!(Processes::default().of(prefix), process, "{prefix}");
        }
    }

    #[test]
    fn a_number_that_nothing_marks_may_be_the_session() {
        let mut processes = Processes::default();
        let mut read = |prefix: &str| processes.of(prefix);
        // Background processes have no user.
        assert_eq!(read("2026-03-01 08:00:00 UTC  00000 0 4700 "), "");
        assert_eq!(read("2026-03-01 08:00:00 UTC u 00000 752 4711 "), "");
        assert_eq!(read("2026-03-01 08:00:00 UTC u 00000 0 4712 "), "");
        assert_eq!(read("2026-03-01 08:00:00 UTC u 00000 752 4711 "), "session 4711");
        assert_eq!(read("2026-03-01 08:00:00 UTC u 00000 0 4712 "), "session 4712");
        assert_eq!(read("2026-03-01 08:00:00 UTC  00000 0 4700 "), "session 4700");
        let mut processes = Processes::default();
        for line in 1..50 {
            assert_eq!(processes.of(&format!("2026-03-01 08:00:00 UTC u {line} ")), "");
            assert_eq!(processes.of(&format!("2026-03-01 08:00:00 UTC u {line} ")), "");
        }
    }

    #[test]
    fn the_time_is_that_of_the_message() {
        assert_eq!(time("1970-01-01 00:00:01 UTC 1970-01-01 00:00:09 UTC "), Some(9.0));
        assert_eq!(time("1767225600.500 77 "), Some(1_767_225_600.5));
        assert_eq!(time("u d "), None);
    }
}
