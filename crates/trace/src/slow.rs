//! The slow query log of MySQL, Percona Server and MariaDB.
//!
//! An entry is a block of lines that begin with `#`, followed by the statement, which ends where
//! the next block begins. The servers write the same keys with different units and omit what they
//! do not know.

use crate::format::{Format, Options};
use crate::instant;
use crate::lines::{Lined, Lines, is_sane};
use crate::model::{Component, Kind, Trace};
use crate::normal::{self, Dialect};
use crate::tally::{Cost, Execution, Named, Tally};

pub const FORMAT: Format = Format {
    kind: Kind::SlowLog,
    recognises: |head| {
        ["# Query_time: ", "# User@Host: "]
            .iter()
            .any(|mark| memchr::memmem::find(head, mark.as_bytes()).is_some())
    },
    name: "a slow query log",
    reader: |options| Box::new(Lined::new(Log::new(options))),
    if_nothing: "log with slow_query_log=ON, log_output=FILE and a long_query_time that statements \
                 exceed",
};

/// Bytes kept of the text of one statement: INSERTs may be larger than memory.
const SQL_BYTES: usize = 64 << 10;
/// No statement takes ten years. A longer time is the difference of two readings of a clock that
/// went back, in unsigned numbers of 32 or 64 bits.
const LONGEST_S: f64 = 10.0 * 366.0 * 86_400.0;
/// A part of a statement's time may exceed it by this much, which is due to rounding.
const ROUNDING_S: f64 = 0.001;
/// Time in the `InnoDB` thread queue, which Percona Server reports separately.
const QUEUE: &str = "InnoDB queue";

struct Log {
    options: Options,
    tally: Tally,
    product: String,
    entry: Entry,
    /// The last `# Time:`. Since 5.7 every entry has one; before, servers omit it while the second
    /// is the same.
    time_s: Option<f64>,
    local_s: Option<f64>,
    /// Whether entries have `SET timestamp`, which may be in another time zone than the old `#
    /// Time:`.
    has_stamps: bool,
    /// Number of entries with and without the time that `InnoDB` waited for reads.
    with_reads: u64,
    without_reads: u64,
    is_weighted: bool,
    /// Entries left out because their time is impossible, and those of which another time is.
    untimed: Odd,
    doubtful: Odd,
    skipped_lines: u64,
}

/// Entries with an impossible time, and the first such time.
#[derive(Default)]
struct Odd {
    entries: u64,
    first: String,
}

impl Odd {
    fn note(&mut self, time: &str) {
        if self.entries == 0 {
            self.first = time.chars().take(60).collect();
        }
        self.entries += 1;
    }
}

/// The entry being read.
#[derive(Default)]
struct Entry {
    session: String,
    /// Whether it has a `Query_time`, which may be impossible.
    is_timed: bool,
    query_s: Option<f64>,
    /// Key and value of the first other time that is impossible.
    odd: Option<String>,
    lock_s: Option<f64>,
    row_lock_s: Option<f64>,
    read_s: Option<f64>,
    reads: Option<f64>,
    read_bytes: Option<f64>,
    queue_s: Option<f64>,
    pages: Option<f64>,
    rows: Option<f64>,
    weight: Option<f64>,
    /// `SET timestamp`: when the entry was written, or, beside an ISO time, when it began.
    stamp_s: Option<f64>,
    sql: String,
    /// Whether its block of lines with `#` has ended.
    has_text: bool,
}

impl Log {
    fn new(options: Options) -> Self {
        Self {
            options,
            tally: Tally::new(options.limits),
            product: String::new(),
            entry: Entry::default(),
            time_s: None,
            local_s: None,
            has_stamps: false,
            with_reads: 0,
            without_reads: 0,
            is_weighted: false,
            untimed: Odd::default(),
            doubtful: Odd::default(),
            skipped_lines: 0,
        }
    }

    /// Handles a line of the block before a statement; returns false if it is not one.
    fn header(&mut self, line: &str) -> bool {
        let Some(rest) = line.strip_prefix('#') else { return false };
        if self.entry.has_text {
            if !starts_entry(rest) {
                return false;
            }
            self.close();
        }
        let rest = rest.trim_start();
        if let Some(time) = rest.strip_prefix("Time: ") {
            self.close();
            self.time_s = instant::iso(time);
            self.local_s = instant::short(time).or(self.local_s);
        } else if let Some(user) = rest.strip_prefix("User@Host: ") {
            self.close();
            if let Some((_, id)) = user.rsplit_once(" Id:") {
                self.entry.session = session(id);
            }
        } else if let Some(command) = rest.strip_prefix("administrator command: ") {
            self.entry.has_text = true;
            self.entry.sql = format!("administrator command: {}", command.trim_end_matches(';'));
        } else if !rest.starts_with("explain:") {
            if rest.starts_with("Query_time:") && self.entry.is_timed {
                self.close();
            }
            self.entry.keys(rest);
        }
        true
    }

    fn text(&mut self, line: &str) {
        let entry = &mut self.entry;
        if !entry.is_timed {
            self.skipped_lines += 1;
            return;
        }
        entry.has_text = true;
        if entry.sql.is_empty() {
            if line.starts_with("use ") && line.ends_with(';') {
                return;
            }
            if let Some(set) = line.strip_prefix("SET ")
                && let Some((_, stamp)) = set.rsplit_once("timestamp=")
            {
                entry.stamp_s = stamp.trim_end_matches(';').parse().ok();
                return;
            }
        } else {
            entry.sql.push('\n');
        }
        let room = SQL_BYTES.saturating_sub(entry.sql.len());
        let end = (0..=line.len().min(room)).rev().find(|at| line.is_char_boundary(*at));
        entry.sql.push_str(&line[..end.unwrap_or(0)]);
    }

    /// Handles the lines that a server writes when it opens the log.
    fn banner(&mut self, line: &str) -> bool {
        if let Some((program, version)) = line.split_once(", Version: ")
            && program.starts_with(['/', '.'])
                | program.contains("mysqld")
                | program.contains("mariadbd")
            && line.contains("started with")
        {
            self.close();
            let version = version.split("started with").next().unwrap_or(version);
            let version = version.trim_end_matches([' ', '.', ',']);
            self.product = version.trim().chars().take(80).collect();
            return true;
        }
        let is_port = line.get(..10).is_some_and(|it| it.eq_ignore_ascii_case("tcp port: "));
        is_port || (line.starts_with("Time") && line.contains(" Id Command"))
    }

    /// Counts the completed entry.
    fn close(&mut self) {
        let mut entry = std::mem::take(&mut self.entry);
        let Some(query_s) = entry.query_s else {
            if entry.is_timed {
                self.untimed.note(entry.odd.as_deref().unwrap_or_default());
            }
            return;
        };
        entry.check_parts(query_s);
        if let Some(time) = &entry.odd {
            self.doubtful.note(time);
        }
        let normalised = normal::normalised(&entry.sql, Dialect::MySql);
        let normalised = if normalised.is_empty() { "(no text)".to_owned() } else { normalised };
        let id = normal::id(&normalised);
        self.is_weighted |= entry.weight.is_some();
        if entry.read_s.is_some() {
            self.with_reads += 1;
        } else {
            self.without_reads += 1;
        }
        self.has_stamps |= entry.stamp_s.is_some();
        let ended_s = self
            .time_s
            // Servers that write no ISO time set the timestamp to the time of writing.
            .or(entry.stamp_s)
            .or(self.local_s.filter(|_| !self.has_stamps));
        let execution = entry.execution(query_s, ended_s, self.options.weight);
        let keep_text = self.options.keep_text;
        let named = || Named {
            id: id.clone(),
            text: normal::shown(if keep_text { &entry.sql } else { &normalised }),
        };
        self.tally.add(&entry.session, &id, named, &execution);
    }
}

impl Entry {
    /// Parses the `Key: value` pairs of one line.
    fn keys(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace().peekable();
        while let Some(word) = words.next() {
            let Some(key) = word.strip_suffix(':') else { continue };
            // A value may be empty, such as the schema of a session that has not chosen one.
            let Some(value) = words.next_if(|next| !next.ends_with(':')) else { continue };
            let number = value.parse::<f64>().ok();
            let count = number.filter(|it| is_sane(*it));
            if is_time(key) {
                let unit_s = if key == "Pages_read_time" { 1e-3 } else { 1.0 };
                let seconds = number.map(|it| it * unit_s);
                self.time(key, seconds.filter(|it| (0.0..LONGEST_S).contains(it)), value);
                continue;
            }
            let field = match key {
                "Thread_id" | "Conn_ID" => {
                    self.session = session(value);
                    continue;
                }
                "InnoDB_IO_r_ops" | "Pages_read" => &mut self.reads,
                "InnoDB_IO_r_bytes" => &mut self.read_bytes,
                "InnoDB_pages_distinct" | "Pages_accessed" => &mut self.pages,
                "Rows_sent" => &mut self.rows,
                "Log_slow_rate_limit" => &mut self.weight,
                _ => continue,
            };
            *field = count;
        }
    }

    /// Keeps a time; `None` if it is impossible.
    fn time(&mut self, key: &str, seconds: Option<f64>, value: &str) {
        if seconds.is_none() {
            self.odd.get_or_insert_with(|| format!("{key}: {value}"));
        }
        let field = match key {
            "Query_time" => {
                self.is_timed = true;
                &mut self.query_s
            }
            "Lock_time" => &mut self.lock_s,
            "InnoDB_rec_lock_wait" => &mut self.row_lock_s,
            "InnoDB_queue_wait" => &mut self.queue_s,
            _ => &mut self.read_s,
        };
        *field = seconds;
    }

    /// A part of a statement's time is not longer than all of it. Whole seconds are rounded.
    fn check_parts(&mut self, query_s: f64) {
        let is_whole = self.lock_s.is_some_and(|it| it.fract() == 0.0) && query_s.fract() == 0.0;
        let most = query_s + if is_whole { 1.0 } else { ROUNDING_S };
        let parts = [
            (&mut self.lock_s, "Lock_time"),
            (&mut self.row_lock_s, "InnoDB_rec_lock_wait"),
            (&mut self.read_s, "the time of reads"),
            (&mut self.queue_s, "InnoDB_queue_wait"),
        ];
        for (part, name) in parts {
            if let Some(seconds) = part.take_if(|seconds| *seconds > most) {
                self.odd.get_or_insert_with(|| format!("{name}: {seconds} of {query_s}"));
            }
        }
    }

    fn execution(&self, query_s: f64, ended_s: Option<f64>, weight: f64) -> Execution {
        // Lock_time includes waits for rows too, if the server is new enough to count them.
        let lock_s = match (self.lock_s, self.row_lock_s) {
            (Some(all), Some(rows)) => Some(all.max(rows)),
            (all, rows) => all.or(rows),
        };
        let read = self.read_s.map(|seconds| Cost {
            calls: self.reads,
            bytes: self.read_bytes,
            ..Cost::of(Component::StorageRead, seconds * 1e9)
        });
        let queue_s = self.queue_s.filter(|seconds| *seconds > 0.0);
        let costs = [
            lock_s.map(|seconds| Cost::of(Component::Lock, seconds * 1e9)),
            read,
            queue_s.map(|seconds| Cost::of(Component::Wait(QUEUE.to_owned()), seconds * 1e9)),
        ];
        Execution {
            ns: query_s * 1e9,
            weight: self.weight.filter(|it| *it >= 1.0).unwrap_or(1.0) * weight,
            ended_s,
            rows: self.rows,
            logical_reads: self.pages,
            physical_reads: self.reads,
            costs: costs.into_iter().flatten().collect(),
        }
    }
}

/// Returns whether the text after `#` begins a block, rather than being a comment of the previous
/// statement. Logs that other programs wrote leave out some of its lines.
fn starts_entry(rest: &str) -> bool {
    let digit = |it: &str| it.starts_with(|first: char| first.is_ascii_digit());
    let user = |it: &str| it.contains('@') && it.contains('[');
    let clock =
        |it: &str| it.matches(':').count() >= 2 && it.contains(|it: char| it.is_ascii_digit());
    let has = |start: &str, is: &dyn Fn(&str) -> bool| rest.strip_prefix(start).is_some_and(is);
    has(" Time: ", &clock)
        || has(" User@Host: ", &user)
        || has(" User: ", &user)
        || has(" Thread_id: ", &digit)
        || has(" Query_time: ", &|it| digit(it) && it.contains("Lock_time: "))
}

/// Returns whether a key has a time.
fn is_time(key: &str) -> bool {
    const TIMES: [&str; 6] = [
        "Query_time",
        "Lock_time",
        "InnoDB_rec_lock_wait",
        "InnoDB_IO_r_wait",
        "InnoDB_queue_wait",
        "Pages_read_time",
    ];
    TIMES.contains(&key)
}

fn session(id: &str) -> String {
    let digits: String = id.trim().chars().take_while(char::is_ascii_digit).take(20).collect();
    if digits.is_empty() { digits } else { format!("thread {digits}") }
}

impl Lines for Log {
    fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if !self.header(&line) && !self.banner(&line) {
            self.text(&line);
        }
    }

    fn end_of_file(&mut self) {
        self.close();
        (self.time_s, self.local_s, self.has_stamps) = (None, None, false);
    }

    fn found(&self) -> bool {
        !self.tally.is_empty() || self.untimed.entries > 0
    }

    fn finish(self) -> Trace {
        let mut trace = self.tally.finish();
        let mut absent = vec![
            (Component::Cpu, "a slow log does not have it"),
            (Component::StorageWrite, "a slow log does not have it"),
        ];
        if !trace.components.contains_key(&Component::Lock) {
            absent.push((Component::Lock, "no entry has a possible Lock_time"));
        }
        let because = "the clock of the server went back, or the log is damaged";
        for (odd, what) in [
            (&self.untimed, "entries have a time that no statement takes and are left out"),
            (
                &self.doubtful,
                "entries have a part of their time that is not possible; it is unknown",
            ),
        ] {
            if odd.entries > 0 {
                trace.notes.push(format!("{} {what} ({}): {because}", odd.entries, odd.first));
            }
        }
        if self.with_reads == 0 {
            absent.push((
                Component::StorageRead,
                "log_slow_verbosity has no `innodb` (Percona Server, MariaDB); MySQL has none",
            ));
        } else if self.without_reads > 0 {
            trace.notes.push(format!(
                "{} of {} entries have no statistics of InnoDB: their reads are unaccounted",
                self.without_reads,
                self.without_reads + self.with_reads
            ));
        }
        if self.is_weighted {
            trace.notes.push(
                "the server logged a part of all statements: each entry counts as many times as \
                 Log_slow_rate_limit says"
                    .to_owned(),
            );
        }
        Trace { product: self.product, absent, skipped_lines: self.skipped_lines, ..trace }
    }
}

#[cfg(test)]
mod tests;
