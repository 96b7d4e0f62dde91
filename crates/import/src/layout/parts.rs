//! The sections of reports that are read, and their names in each layout.

use crate::table::Table;

#[derive(Debug)]
pub struct Part {
    pub name: &'static str,
    /// Beginnings of the summary of its HTML table.
    html: &'static [&'static str],
    /// Headings in text; one that ends in `*` is a prefix.
    text: &'static [&'static str],
}

pub const IDENTITY: Part =
    part("identity", &["This table displays database instance information"], &[]);
pub const HOST: Part = part("host", &["This table displays host information"], &[]);
pub const SNAPSHOTS: Part = part("snapshots", &["This table displays snapshot information"], &[]);
pub const MEMORY: Part = part("memory", &["This table displays memory statistics"], &[]);
pub const IO_PROFILE: Part = part("I/O profile", &["This table displays IO profile"], &[]);
pub const TIME_MODEL: Part = part(
    "time model",
    &["This table displays different time model statistics"],
    &["Time Model Statistics", "Time Model System Stats"],
);
pub const OS: Part = part(
    "operating system",
    &["This table displays operating systems statistics"],
    &["Operating System Statistics", "OS Statistics"],
);
pub const WAITS: Part = part(
    "waits",
    &["This table displays foreground wait class statistics"],
    &["Foreground Wait Class", "Foreground Wait Events", "Wait Class", "Wait Events"],
);
pub const BACKGROUND_WAITS: Part =
    part("waits of background processes", &[], &["Background Wait Events"]);
pub const ACTIVITY: Part = part(
    "instance activity",
    &["This table displays Instance activity statistics"],
    &["Instance Activity Stats"],
);
pub const FUNCTION_IO: Part = part(
    "I/O by function",
    &["This table displays the IO Statistics for different functions"],
    &["IOStat by Function summary", "IO Stat by Function - summary"],
);
pub const TABLESPACE_IO: Part = part(
    "I/O by tablespace",
    &["This table displays IO Statistics for different tablespaces"],
    &["Tablespace IO Stats", "Tablespace IO Summary"],
);
/// The summary of its HTML table may name another section.
pub const ADVICE: Part = part(
    "buffer pool advisory",
    &["This table displays MTTR advisory", "This table displays buffer pool advisory"],
    &["Buffer Pool Advisory"],
);
pub const STATEMENTS: Part =
    part("top statements", &["This table displays top SQL by"], &["SQL ordered by*"]);
/// Used in the report of a cluster.
pub const GLOBAL_STATEMENTS: Part = part("top statements", &["SQL ordered by"], &[]);
pub const STATEMENT_TEXTS: Part =
    part("statement texts", &["This table displays the text of the SQL statements"], &[]);

const fn part(
    name: &'static str,
    html: &'static [&'static str],
    text: &'static [&'static str],
) -> Part {
    Part { name, html, text }
}

impl Part {
    pub fn is_html(&self, summary: &str) -> bool {
        self.html.iter().any(|begin| begins(summary, begin))
    }

    pub fn is_text(&self, heading: &str) -> bool {
        self.text.iter().any(|name| match name.strip_suffix('*') {
            Some(begin) => begins(heading, begin),
            None => heading.eq_ignore_ascii_case(name),
        })
    }

    pub fn is(&self, table: &Table<'_>) -> bool {
        self.is_html(&table.name) || self.is_text(&table.name)
    }
}

pub fn begins(text: &str, begin: &str) -> bool {
    let start = text.as_bytes().get(..begin.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(begin.as_bytes()))
}
