//! Files that are often mistaken for a log that is read. Each is named, with a hint.

use memchr::memmem;

use crate::error::TraceError;

/// Whether a file is of a kind although it looks like a supported format, or only if it does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    BeforeFormats,
    AfterFormats,
}

/// A kind of file that is recognised and rejected with a specific hint.
struct Refused {
    when: When,
    is: fn(Head) -> bool,
    what: &'static str,
    hint: &'static str,
}

/// The start of a file.
#[derive(Clone, Copy)]
struct Head<'a>(&'a [u8]);

impl Head<'_> {
    fn has(self, mark: &str) -> bool {
        memmem::find(self.0, mark.as_bytes()).is_some()
    }

    fn any(self, marks: &[&str]) -> bool {
        marks.iter().any(|mark| self.has(mark))
    }

    fn all(self, marks: &[&str]) -> bool {
        marks.iter().all(|mark| self.has(mark))
    }

    /// Returns whether one line has all of these.
    fn line(self, marks: &[&str]) -> bool {
        let mut lines = self.0.split(|byte| *byte == b'\n');
        lines.any(|line| marks.iter().all(|mark| memmem::find(line, mark.as_bytes()).is_some()))
    }

    fn starts(self, start: &str) -> bool {
        self.0.starts_with(start.as_bytes())
    }

    /// Returns what follows this first byte and white space.
    fn after(self, first: u8) -> Option<Self> {
        self.0.strip_prefix(&[first]).map(|rest| Head(rest.trim_ascii_start()))
    }

    /// Returns whether it is JSON whose objects take several lines, or are in a list.
    fn is_long_json(self) -> bool {
        let listed = self.after(b'[').is_some_and(|it| it.starts("{") || it.starts("\""));
        let spread = self.starts("{\n") || self.starts("{\r\n");
        // In csvlog a plan begins like this too, with its quotes doubled.
        let keyed = |it: Head| it.starts("\"") && !it.starts("\"\"");
        listed || (spread && self.after(b'{').is_some_and(keyed))
    }

    /// Returns whether it is one object of JSON with a list of entries, as services export them.
    fn is_listed_json(self) -> bool {
        let entries = |it: Head| it.starts("\"events\"") || it.starts("\"records\"");
        self.after(b'{').is_some_and(entries)
    }

    /// Returns whether it is the table `mysql.slow_log`, exported with or without a heading.
    fn is_slow_table(self) -> bool {
        let line = self.0.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let heading = ["start_time", "query_time", "sql_text"];
        let has = |mark: &str| memmem::find(line, mark.as_bytes()).is_some();
        let fields: Vec<&[u8]> = line.split(|byte| b",\t".contains(byte)).take(4).collect();
        let at = |index: usize| {
            let text = fields.get(index).copied().unwrap_or_default();
            String::from_utf8_lossy(text).trim_matches('"').to_owned()
        };
        let is_clock = |text: &str| text.split('.').next().is_some_and(is_clock);
        let row = crate::instant::iso(&at(0)).is_some()
            && at(1).contains("] @ ")
            && is_clock(&at(2))
            && is_clock(&at(3));
        heading.into_iter().all(has) || row
    }
}

/// Returns whether the text is `00:00:02`, as the table has times.
fn is_clock(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let digits = |it: &&str| it.len() >= 2 && it.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(digits)
}

/// Returns the error for a file of a kind that is refused at this point.
pub fn check(head: &[u8], when: When) -> Result<(), TraceError> {
    let mut kinds = REFUSED.iter().filter(|it| it.when == when);
    match kinds.find(|it| (it.is)(Head(head))) {
        Some(it) => Err(TraceError::Other { what: it.what, hint: it.hint }),
        None => Ok(()),
    }
}

const REFUSED: &[Refused] = &[
    Refused {
        when: When::BeforeFormats,
        is: |head| head.has("PG_10046 TRACE"),
        what: "a trace of pg_10046 for PostgreSQL",
        hint: "log plans with auto_explain: their times are read",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| head.is_listed_json(),
        what: "JSON over several lines, or of several entries in one",
        hint: "jq -c '(.events // .records)[]' FILE | blockstone trace -",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| head.is_long_json(),
        what: "JSON over several lines",
        hint: "jq -c 'if type == \"array\" then .[] else . end' FILE | blockstone trace -",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| head.starts("__CURSOR=") || head.has("\n__REALTIME_TIMESTAMP="),
        what: "an export of journald",
        hint: "give what `journalctl -o json` prints of the same entries",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| head.has("\n    __REALTIME") || head.has("\n    _BOOT_ID="),
        what: "the verbose output of journalctl",
        hint: "give what `journalctl -o json` prints of the same entries",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| head.starts("LPKSHHRH"),
        what: "a journal of systemd, which is binary",
        hint: "journalctl --file FILE -o json | blockstone trace -",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| {
            head.has("DURATION")
                && (head.line(&["DURATION", "CALLS", "MEAN", "MIN", "MAX"])
                    || head.line(&["CALL-NAME", "DURATION", "CALLS"]))
        },
        what: "a report of mrskew",
        hint: "give the SQL trace that mrskew read",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| {
            head.any(&[
                "TVD$XTAT",
                "TriVaDis eXtended",
                "OraSRP",
                "Method R Profiler",
                "Method R Workbench",
                "TRCA Trace Analyzer",
                "trcanlzr",
                "ESQLTRCPROF",
            ])
        },
        what: "a report of another profiler",
        hint: "give the SQL trace that it was made from",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| head.any(&["# Rank Query ID", "# Overall: "]) && head.has("unique, "),
        what: "a report of pt-query-digest",
        hint: "give the log that it was made from",
    },
    Refused {
        when: When::BeforeFormats,
        is: |head| head.has("pgBadger") && head.any(&["<html", "<!DOCTYPE"]),
        what: "a report of pgBadger",
        hint: "give the log that it was made from",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| {
            head.any(&[
                "TNSLSNR for",
                "Listener completed notification",
                "* (CONNECT_DATA=",
                "<msg_text>TNS",
            ])
        },
        what: "a log of an Oracle listener",
        hint: "the trace of a session is in the directory of v$diag_info 'Diag Trace'",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| {
            head.any(&[
                "DEADLOCK DETECTED ( ORA-00060 )",
                "Global Wait-For-Graph",
                "ENQUEUE DUMP REQUEST",
                "(LMD0)",
                "_lmd0_",
            ])
        },
        what: "a dump of a deadlock",
        hint: "give the SQL trace (event 10046) of a session that waited",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| {
            head.any(&[
                "BASE STATISTICAL INFORMATION",
                "QUERY BLOCK SIGNATURE",
                "Considering Query Transformations",
                "SINGLE TABLE ACCESS PATH",
                "Predicate Move-Around (PM)",
            ])
        },
        what: "a trace of the optimizer (event 10053)",
        hint: "give a trace of event 10046, which says where time went",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| {
            head.any(&["ORA-00600: ", "ORA-07445: ", "Dump continued from file"])
                && head.any(&["*** SESSION ID:(", "Dump file", "Incident"])
        },
        what: "a dump of an internal error of Oracle",
        hint: "give the SQL trace (event 10046) of a session",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| {
            head.any(&["Thread 1 advanced to log sequence", "LGWR switch", "ALTER DATABASE OPEN"])
        },
        what: "an alert log of Oracle",
        hint: "the trace of a session is in the directory of v$diag_info 'Diag Trace'",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| head.any(&["WORKLOAD REPOSITORY", "STATSPACK report for"]),
        what: "a report of AWR or Statspack",
        hint: "blockstone size FILE reads it",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| head.is_slow_table(),
        what: "the table mysql.slow_log",
        hint: "log with log_output=FILE; the file is named by slow_query_log_file",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| head.any(&["Count: "]) && head.line(&["Count: ", "Time=", "Lock=", "Rows="]),
        what: "a report of mysqldumpslow",
        hint: "give the slow log that it was made from",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| {
            let words = [" Query", "\tQuery", " Connect", "\tConnect", " Init DB", " Execute"];
            let tabbed = [" Query\t", "\tQuery\t", " Connect\t", "\tConnect\t"];
            head.any(&tabbed) || (head.has("Id Command") && head.any(&words))
        },
        what: "a general query log of MySQL or MariaDB, which has no times",
        hint: "set slow_query_log=ON and long_query_time=0, and give the slow log",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| head.all(&["started with:", "Id Command"]),
        what: "a log of MySQL or MariaDB in which no statement was logged",
        hint: "set slow_query_log=ON and a long_query_time that statements exceed",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| head.any(&["[Note] InnoDB:", "[System] [MY-", "[Warning] [MY-", "[Note] [MY-"]),
        what: "an error log of MySQL or MariaDB",
        hint: "set slow_query_log=ON and long_query_time=0, and give the slow log",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| {
            head.starts("\u{fffd}bin") || head.0.starts_with(b"\xfebin") || head.has("end_log_pos ")
        },
        what: "a binary log of MySQL or MariaDB",
        hint: "set slow_query_log=ON and long_query_time=0, and give the slow log",
    },
    Refused {
        when: When::AfterFormats,
        is: |head| head.any(&[" LOG C-0x", " LOG S-0x", " LOG stats: "]),
        what: "a log of PgBouncer",
        hint: "give the log of the PostgreSQL server",
    },
];
