#![allow(clippy::float_cmp, reason = "sums of whole microseconds and counts are exact")]

use super::*;
use crate::model::{Spent, Statement};
use crate::{Limits, Reader, TraceError};

fn read(text: &str) -> Trace {
    let mut reader = Reader::new(Options::default());
    for piece in text.as_bytes().chunks(7) {
        reader.feed(piece).unwrap();
    }
    reader.finish().unwrap()
}

fn seconds(trace: &Trace, component: &Component) -> Option<f64> {
    trace.components.get(component).map(|spent| (spent.ns / 1e3).round() / 1e6)
}

fn statement<'a>(trace: &'a Trace, text: &str) -> &'a Statement {
    trace.statements.iter().find(|it| it.text == text).expect(text)
}

const PERCONA: &str = "\
/usr/sbin/mysqld, Version: 5.7.20-19-log (Percona Server). started with:
Tcp port: 3306  Unix socket: /var/run/mysqld/mysqld.sock
Time                 Id Command    Argument
# Time: 2026-11-26T02:00:00.500000Z
# User@Host: app[app] @ localhost []  Id:     8
# Schema: shop  Last_errno: 0  Killed: 0
# Query_time: 0.500000  Lock_time: 0.010000  Rows_sent: 3  Rows_examined: 9  Rows_affected: 0
# Bytes_sent: 60
# Log_slow_rate_type: query  Log_slow_rate_limit: 2
#   InnoDB_IO_r_ops: 4  InnoDB_IO_r_bytes: 65536  InnoDB_IO_r_wait: 0.200000
#   InnoDB_rec_lock_wait: 0.000000  InnoDB_queue_wait: 0.000000
#   InnoDB_pages_distinct: 20
use shop;
SET timestamp=1795000000;
SELECT * FROM t
# Time: is not here
WHERE a = 1;
# User@Host: app[app] @ localhost []  Id:     9
# Query_time: 0.100000  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 1
# No InnoDB statistics available for this query
SET timestamp=1795000000;
select * from t where a = 2;
/usr/sbin/mysqld, Version: 5.7.20-19-log (Percona Server). started with:
Tcp port: 3306  Unix socket: /var/run/mysqld/mysqld.sock
Time                 Id Command    Argument
# Time: 2026-11-26T02:00:02.000000Z
# User@Host: app[app] @ localhost []  Id:     9
# Query_time: 0.000100  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
# administrator command: Quit;
";

#[test]
fn entries_count_as_many_times_as_the_rate_limit_says() {
    let text = PERCONA.replace("# Time: is not here", "# a comment");
    let trace = read(&text);
    assert_eq!(trace.kind, Some(Kind::SlowLog));
    assert_eq!(trace.product, "5.7.20-19-log (Percona Server)");
    let select = statement(&trace, "select * from t where a = ?");
    assert_eq!(
        (select.executions, select.rows, select.logical_reads),
        (3.0, Some(7.0), Some(40.0))
    );
    assert_eq!(select.ns.round(), 1.1e9);
    assert_eq!(statement(&trace, "administrator command: quit").executions, 1.0);
    let reads: &Spent = &trace.components[&Component::StorageRead];
    assert_eq!((reads.calls, reads.ns.round(), reads.bytes), (8.0, 4e8, Some(131_072.0)));
    assert!(reads.is_averaged);
    // 50 ms per read: from 2^15 to 2^16 µs.
    assert_eq!(reads.histogram.calls.iter().position(|calls| *calls > 0.0), Some(16));
    assert_eq!(seconds(&trace, &Component::Lock), Some(0.02));
    assert_eq!(seconds(&trace, &Component::Unaccounted), Some(0.6801));
    assert_eq!(seconds(&trace, &Component::Cpu), None);
    assert!(trace.absent.iter().any(|(component, _)| *component == Component::Cpu));
    assert_eq!(trace.span_ns.map(f64::round), Some(2e9));
    assert_eq!(trace.sessions.len(), 2);
    assert_eq!(trace.skipped_lines, 0);
}

#[test]
fn mariadb_has_other_keys_and_old_times() {
    let trace = read(
        "# Time: 261126  2:05:31\n# User@Host: root[root] @ localhost []\n\
         # Thread_id: 3  Schema:   QC_hit: No\n\
         # Query_time: 1.000000  Lock_time: 0.100000  Rows_sent: 0  Rows_examined: 0\n\
         # Rows_affected: 2  Bytes_sent: 13\n\
         # Pages_accessed: 184  Pages_read: 10  Pages_updated: 0  Old_rows_read: 1\n\
         # Pages_read_time: 250.0000  Engine_time: 248.1297\n\
         #\n# explain: id\tselect_type\ttable\n# explain: 1\tSIMPLE\tt\n#\n\
         SET timestamp=1795000000;\nINSERT INTO t VALUES (1,'# Query_time: 9'),\n(2,'x');\n",
    );
    let insert = statement(&trace, "insert into t values (?+)");
    assert_eq!((insert.physical_reads, insert.logical_reads), (Some(10.0), Some(184.0)));
    assert_eq!(seconds(&trace, &Component::StorageRead), Some(0.25));
    assert_eq!(trace.sessions[0].id, "thread 3");
    assert_eq!(trace.span_ns.map(f64::round), Some(1e9));
}

#[test]
fn without_statistics_reads_are_not_in_the_log() {
    let trace = read(
        "# User@Host: a[a] @ h []\n# Query_time: 2  Lock_time: 0  Rows_sent: 1  Rows_examined: 0\n\
         select sleep(2) from n;\n",
    );
    assert_eq!(seconds(&trace, &Component::StorageRead), None);
    assert!(trace.absent.iter().any(|(component, _)| *component == Component::StorageRead));
    assert_eq!(trace.span_ns, None);
}

#[test]
fn a_log_that_begins_or_ends_inside_an_entry_is_read() {
    let whole = read(PERCONA).statements.iter().map(|it| it.ns).sum::<f64>();
    let mut before = 0.0;
    for end in 0..PERCONA.len() {
        let mut reader = Reader::new(Options::default());
        reader.feed(&PERCONA.as_bytes()[..end]).unwrap();
        let trace = match reader.finish() {
            Ok(trace) => trace,
            Err(error) => {
                use TraceError::{Empty, Nothing, Other, Unknown};
                let cut = matches!(error, Empty | Unknown | Nothing { .. } | Other { .. });
                assert!(cut, "{error}");
                continue;
            }
        };
        let ns = trace.statements.iter().map(|it| it.ns).sum::<f64>();
        assert!(ns >= before - 1.0 && ns <= whole + 1.0, "{ns} after {before} at {end}");
        before = ns;
        read(&format!("{}\n# User@Host: a[a] @ h []\n# Query_time: 1 x", &PERCONA[end..]));
    }
}

#[test]
fn what_is_too_much_to_tell_apart_is_counted_together() {
    let limits = Limits { statements: 2, sessions: 3, ..Limits::default() };
    let mut reader = Reader::new(Options { limits, ..Options::default() });
    for number in 0..5 {
        let entry = format!(
            "# User@Host: a[a] @ h []  Id: {number}\n# Query_time: 1.0  Lock_time: 0.0\n\
             select a{number};\n"
        );
        reader.feed(entry.as_bytes()).unwrap();
    }
    let trace = reader.finish().unwrap();
    let others = trace.statements.iter().find(|it| it.id == "others").unwrap();
    assert_eq!((others.executions, trace.statements.len()), (3.0, 3));
    assert!(trace.notes[0].contains("more than 2 different statements"), "{:?}", trace.notes);
    assert_eq!((trace.merges_statements, trace.merges_sessions), (true, true));
    assert_eq!(trace.sessions.len(), 4);
    assert!(trace.notes[1].contains("more than 3 sessions"), "{:?}", trace.notes);
}

#[test]
fn a_number_that_no_log_has_is_unknown() {
    for bad in ["# Query_time: 1e300", "# Query_time: 0 Log_slow_rate_limit: 1e308"] {
        let of = |times: &str| format!("# User@Host: a[a] @ localhost []\n{times}\nselect 1;\n");
        let good = of("# Query_time: 1.5  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1");
        let trace = read(&(good + &of(bad)));
        assert!(trace.components.values().all(|spent| spent.ns.is_finite()), "{bad}");
    }
}

/// An entry of this length and with this other time.
fn entry(query: &str, other: &str, sql: &str) -> String {
    format!(
        "# Time: 2026-11-26T02:00:01.000000Z\n# User@Host: a[a] @ h []  Id:     5\n\
         # Query_time: {query}  {other} Rows_sent: 0  Rows_examined: 0\n\
         SET timestamp=1795000001;\n{sql}\n"
    )
}

#[test]
fn a_time_that_wrapped_around_is_unknown_and_said_to_be() {
    let good = entry("0.250000", "Lock_time: 0.100000", "select 1 from c;");
    for bad in [
        "9223372036.854776",
        "9223372036854.775391",
        "18446744073709.550781",
        "18446744073708.796870.000036",
        "18446744073.709551",
        "4294967295",
        "-0.000001",
        "nan",
    ] {
        let lost = entry(bad, "Lock_time: 0.000000", "select 1 from a\nwhere b;");
        let trace = read(&(lost + &good));
        assert_eq!(trace.statements.len(), 1, "{bad}");
        assert_eq!(trace.statements[0].ns, 2.5e8, "{bad}");
        assert_eq!((trace.span_ns, trace.skipped_lines), (Some(2.5e8), 0), "{bad}");
        assert!(trace.notes[0].starts_with("1 entries have a time"), "{:?}", trace.notes);
        assert!(trace.notes[0].contains(bad), "{:?}", trace.notes);

        let locked = entry("0.500000", &format!("Lock_time: {bad}"), "select 1 from b;");
        let trace = read(&(locked + &good));
        assert_eq!(seconds(&trace, &Component::Lock), Some(0.1), "{bad}");
        assert_eq!(seconds(&trace, &Component::Unaccounted), Some(0.65), "{bad}");
        assert!(trace.notes[0].contains("is unknown"), "{:?}", trace.notes);
    }
}

#[test]
fn a_statement_does_not_wait_longer_than_it_takes() {
    let trace = read(&entry("0.500000", "Lock_time: 3.000000", "select 1;"));
    assert_eq!(seconds(&trace, &Component::Lock), None);
    assert_eq!(seconds(&trace, &Component::Unaccounted), Some(0.5));
    assert!(trace.absent.iter().any(|(component, _)| *component == Component::Lock));
    assert!(trace.notes[0].contains("Lock_time: 3 of 0.5"), "{:?}", trace.notes);
    // Servers before 5.1 write whole seconds.
    let trace = read(&entry("2", "Lock_time: 3", "select 1;"));
    assert_eq!(seconds(&trace, &Component::Lock), Some(3.0));
}

#[test]
fn lines_of_a_server_that_starts_are_no_statement() {
    let good = entry("0.250000", "Lock_time: 0.100000", "select 1 from c;");
    for banner in [
        "/usr/sbin/mariadbd, Version: 11.4.2-MariaDB-log (MariaDB Server). started with:\n\
         Tcp port: 0  Unix socket: /run/mysqld.sock\nTime\t\t    Id Command\tArgument\n",
        "C:\\mysql\\bin\\mysqld.exe, Version: 8.4.0 (MySQL Community Server - GPL). started with:\n\
         TCP Port: 3306, Named Pipe: MySQL\nTime                 Id Command    Argument\n",
    ] {
        let trace = read(&format!("{banner}{good}{banner}{good}"));
        assert_eq!(trace.statements.len(), 1, "{banner}");
        assert_eq!(trace.statements[0].text, "select ? from c");
        assert_eq!(trace.skipped_lines, 0, "{banner}");
        assert!(!trace.product.is_empty());
    }
}

#[test]
fn the_extra_keys_of_mysql_8_are_read() {
    let trace = read(&entry(
        "0.5",
        "Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 5 Thread_id: 8 Errno: 0 Killed: 0 \
         Bytes_received: 0 Bytes_sent: 57 Read_first: 1 Sort_rows: 0 Created_tmp_tables: 0 \
         Start: 2026-11-26T02:00:00.500000Z End: 2026-11-26T02:00:01.000000Z",
        "select 1;",
    ));
    assert_eq!(trace.sessions[0].id, "thread 8");
    assert_eq!(trace.span_ns, Some(5e8));
}

#[test]
fn one_time_stands_for_the_entries_of_a_second() {
    let trace = read(
        "# Time: 261126  2:05:31\n# User@Host: r[r] @ h []\n# Query_time: 1  Lock_time: 0\n\
         select 1 from a;\n# User@Host: r[r] @ h []\n# Query_time: 2  Lock_time: 0\n\
         select 1 from b;\n# Time: 261126  2:05:41\n# User@Host: r[r] @ h []\n\
         # Query_time: 1  Lock_time: 0\nselect 1\n# User@Host: a comment\n# Time: is money\n\
         from c;\n",
    );
    assert_eq!((trace.statements.len(), trace.span_ns), (3, Some(1.2e10)));
    statement(&trace, "select ? from c");
}

#[test]
fn entries_may_lack_the_lines_of_time_and_user() {
    let query = "# Query_time: 0.5  Lock_time: 0.1  Rows_sent: 1  Rows_examined: 1\n";
    for start in [
        "",
        "# Thread_id: 7  Schema: d\n",
        "# User: u[u] @ [10.0.0.1]\n# Thread_id: 7 Schema: d\n",
        "# Time: 261126  2:05:31 # User@Host: u[u] @ h []\n",
        "# Time: 261126  2:05:31\n# Client: 10.0.0.1:5\n",
    ] {
        let entry = format!("{start}{query}select 1\n# Thread_id: a comment\nfrom t;\n");
        let trace = read(&entry.repeat(3));
        let select = statement(&trace, "select ? from t");
        assert_eq!((select.executions, select.ns, trace.skipped_lines), (3.0, 1.5e9, 0), "{start}");
    }
}

#[test]
fn a_log_may_begin_inside_a_long_statement() {
    let values = "(1,'a'),\n".repeat(20_000);
    let text = values + "(2,'b');\n" + &entry("0.5", "Lock_time: 0.0", "select 1;");
    assert_eq!(read(&text).statements[0].ns, 5e8);
}

#[test]
fn the_timestamp_beside_no_iso_time_is_that_of_the_end() {
    let entry = |at: u32, query_s: u32| {
        format!(
            "# User@Host: a[a] @ localhost []\n# Query_time: {query_s}.000000  Lock_time: 0.000000 \
             Rows_sent: 1  Rows_examined: 1\nSET timestamp={at};\nselect {at};\n"
        )
    };
    // The client waits for each: the second begins when the first has ended.
    let text = entry(1_795_000_010, 10) + &entry(1_795_000_013, 3);
    let trace = read(text.trim_end());
    assert_eq!((trace.span_ns, trace.cut_files), (Some(1.3e10), 0));
    assert_eq!(read(&text[..text.len() - 2]).cut_files, 1, "its last statement has no end");
}
