//! Answers of database servers, as the monitors read them. A server of a few lines speaks the
//! protocol as it should; its answers are the input.
//!
//! An input is text: `? ` and a part of a question, then the columns of its answer as `name:type`,
//! then one row per line, with `|` between values and `~` for NULL. In place of the columns, `! `
//! with a code and a message is an error. A question that contains none of the parts gets an empty
//! answer.

mod mysql;
mod postgres;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;

use blockstone_base::column::{Reading, Schema};
use blockstone_servers::monitor;

pub use mysql::answers as mysql_answers;
pub use postgres::answers as postgres_answers;

struct Answer<'a> {
    question: &'a str,
    columns: Vec<Column<'a>>,
    rows: Vec<Vec<Option<&'a str>>>,
    /// Code and message of an error.
    error: Option<(&'a str, &'a str)>,
}

#[derive(Clone, Copy)]
struct Column<'a> {
    name: &'a str,
    /// `b` for a boolean, `i`, `l` and `o` for integers of 4, 8 and 4 bytes, `f` for a double, and
    /// anything else for text.
    kind: char,
}

static EMPTY: Answer<'_> =
    Answer { question: "", columns: Vec::new(), rows: Vec::new(), error: None };

fn read(input: &str) -> Vec<Answer<'_>> {
    let blocks = input.split("? ").filter_map(|block| block.split_once('\n'));
    blocks.map(|(question, answer)| answer_of(question, answer)).collect()
}

fn answer_of<'a>(question: &'a str, answer: &'a str) -> Answer<'a> {
    let mut lines = answer.lines();
    let head = lines.next().unwrap_or_default();
    if let Some(error) = head.strip_prefix("! ") {
        let error = Some(error.split_once(' ').unwrap_or((error, "")));
        return Answer { question, error, ..answer_of(question, "") };
    }
    let column = |word: &'a str| {
        let (name, kind) = word.rsplit_once(':').unwrap_or((word, ""));
        Column { name, kind: kind.chars().next().unwrap_or('t') }
    };
    // Names end at a zero in both protocols.
    let columns: Vec<_> =
        head.split_whitespace().filter(|word| !word.contains('\0')).map(column).collect();
    let row = |line: &'a str| {
        let values = line.split('|').map(|value| (value != "~").then_some(value));
        values.chain(std::iter::repeat(None)).take(columns.len()).collect()
    };
    let rows = lines.filter(|line| !line.is_empty()).map(row).collect();
    Answer { question, rows, columns, error: None }
}

fn find<'a, 'b>(answers: &'b [Answer<'a>], question: &str) -> &'b Answer<'a> {
    answers.iter().find(|answer| question.contains(answer.question)).unwrap_or(&EMPTY)
}

type Serve = fn(TcpStream, &[Answer<'_>]) -> io::Result<()>;

fn number(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().or_else(|| Some(text.parse::<u64>().ok()? as i64))
}

thread_local! {
    /// One for all inputs, because ports are few.
    static LISTENER: TcpListener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
}

/// Watches a server that gives these answers; returns whether the monitor was content with all of
/// them.
fn watch(input: &[u8], scheme: &str, plain: &str, serve: Serve) -> bool {
    let text = String::from_utf8_lossy(input);
    let answers = read(&text);
    LISTENER.with(|listener| {
        let address = listener.local_addr().expect("the listener has an address");
        thread::scope(|scope| {
            scope.spawn(|| {
                let Ok((stream, _)) = listener.accept() else { return };
                // The monitor may have disconnected.
                let _ = stream.set_nodelay(true).and_then(|()| serve(stream, &answers));
            });
            look(&format!("{scheme}://me@{address}/?{plain}"))
        })
    })
}

fn look(address: &str) -> bool {
    let Ok(mut monitor) = monitor::open(address) else { return false };
    let mut readings = Vec::new();
    for _ in 0..2 {
        let seen = monitor.counters(&mut readings).and_then(|()| monitor.sessions(&mut readings));
        if seen.is_err() {
            return false;
        }
    }
    assert!(readings.iter().all(|reading| fits(reading, monitor.series())), "a row lacks cells");
    let _ = (monitor.unmeasured(), monitor.describe(), monitor.processes());
    true
}

fn fits(reading: &Reading, series: &[&Schema]) -> bool {
    let schema = series.iter().find(|schema| schema.probe == reading.probe);
    schema.is_some_and(|schema| schema.columns.len() == reading.cells.len())
}

pub fn postgres(input: &[u8]) -> bool {
    watch(input, "postgres", "sslmode=disable", postgres::serve)
}

pub fn mysql(input: &[u8]) -> bool {
    watch(input, "mysql", "ssl-mode=DISABLED", mysql::serve)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the same text with the columns of each answer changed in turn.
    fn changed(text: &str, change: impl Fn(&str) -> String) -> Vec<Vec<u8>> {
        let lines: Vec<&str> = text.lines().collect();
        let heads = (1..lines.len()).filter(|at| lines[at - 1].starts_with("? "));
        let with = |at: usize| {
            let line = change(lines[at]);
            let mut lines = lines.clone();
            lines[at] = &line;
            (lines.join("\n") + "\n").into_bytes()
        };
        heads.map(with).collect()
    }

    #[test]
    fn answers_with_other_columns_or_types_are_refused_and_never_a_panic() {
        // The MariaDB driver reads a number from any text, and a text from any column.
        for (seeds, watch, least) in [
            (postgres_answers as fn() -> _, postgres as fn(&[u8]) -> bool, 12),
            (mysql_answers, mysql, 2),
        ] {
            for seed in seeds() {
                let text = String::from_utf8(seed).unwrap();
                let mut inputs = changed(&text, |_| "one:f".to_owned());
                inputs.extend(changed(&text, |head| head.replace(":t", ":b").replace(":l", ":t")));
                inputs.extend(changed(&text, |head| head.replace(":i", ":l").replace(":b", ":i")));
                let refused = inputs.iter().filter(|input| !watch(input)).count();
                assert!(refused >= least, "{refused} of {}", inputs.len());
            }
        }
    }
}
