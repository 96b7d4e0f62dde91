//! The sections of reports that are read, and their names in each layout.

use crate::table::Table;

#[derive(Debug)]
pub struct ReportSection {
    pub name: &'static str,
    /// Beginnings of the summary of its HTML table.
    html: &'static [&'static str],
    /// Headings in text; one that ends in `*` is a prefix.
    text: &'static [&'static str],
}

pub const IDENTITY: ReportSection =
    section("identity", &["This table displays database instance information"], &[]);
pub const HOST: ReportSection = section("host", &["This table displays host information"], &[]);
pub const SNAPSHOTS: ReportSection =
    section("snapshots", &["This table displays snapshot information"], &[]);
pub const MEMORY: ReportSection =
    section("memory", &["This table displays memory statistics"], &[]);
pub const IO_PROFILE: ReportSection =
    section("I/O profile", &["This table displays IO profile"], &[]);
pub const TIME_MODEL: ReportSection = section(
    "time model",
    &["This table displays different time model statistics"],
    &["Time Model Statistics", "Time Model System Stats"],
);
pub const OS: ReportSection = section(
    "operating system",
    &["This table displays operating systems statistics"],
    &["Operating System Statistics", "OS Statistics"],
);
pub const WAITS: ReportSection = section(
    "waits",
    &["This table displays foreground wait class statistics"],
    &["Foreground Wait Class", "Foreground Wait Events", "Wait Class", "Wait Events"],
);
/// The waits of [`WAITS`] by event.
pub const EVENTS: ReportSection = section(
    "waits by event",
    &["This table displays Foreground Wait Events"],
    &["Foreground Wait Events", "Wait Events"],
);
/// The part of [`ACTIVITY`] that is complete only with another.
pub const KEY_ACTIVITY: ReportSection = section(
    "key instance activity",
    &["This table displays Key Instance activity statistics"],
    &["Key Instance Activity Stats"],
);
pub const BACKGROUND_WAITS: ReportSection =
    section("waits of background processes", &[], &["Background Wait Events"]);
/// In 11.2.0.4 and 12.1.0.1 it is two tables; later on, key statistics are in both.
pub const ACTIVITY: ReportSection = section(
    "instance activity",
    &[
        "This table displays Instance activity statistics",
        "This table displays Key Instance activity statistics",
        "This table displays non-key Instance activity statistics",
    ],
    &["Instance Activity Stats", "Key Instance Activity Stats", "Other Instance Activity Stats"],
);
pub const FUNCTION_IO: ReportSection = section(
    "I/O by function",
    &["This table displays the IO Statistics for different functions"],
    &["IOStat by Function summary", "IO Stat by Function - summary"],
);
pub const FILE_IO: ReportSection = section(
    "I/O by type of file",
    &["This table displays IO Statistics for different file types"],
    &["IOStat by Filetype summary"],
);
pub const TABLESPACE_IO: ReportSection = section(
    "I/O by tablespace",
    &["This table displays IO Statistics for different tablespaces"],
    &["Tablespace IO Stats", "Tablespace IO Summary"],
);
/// The summary of its HTML table may name another section.
pub const ADVICE: ReportSection = section(
    "buffer pool advisory",
    &["This table displays MTTR advisory", "This table displays buffer pool advisory"],
    &["Buffer Pool Advisory"],
);
pub const STATEMENTS: ReportSection =
    section("top statements", &["This table displays top SQL by"], &["SQL ordered by*"]);
/// Used in the report of a cluster.
pub const GLOBAL_STATEMENTS: ReportSection = section("top statements", &["SQL ordered by"], &[]);
pub const STATEMENT_TEXTS: ReportSection =
    section("statement texts", &["This table displays the text of the SQL statements"], &[]);

const fn section(
    name: &'static str,
    html: &'static [&'static str],
    text: &'static [&'static str],
) -> ReportSection {
    ReportSection { name, html, text }
}

impl ReportSection {
    /// How the summary of its HTML table begins.
    pub fn summary(&self) -> &'static str {
        self.html.first().copied().unwrap_or_default()
    }

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
