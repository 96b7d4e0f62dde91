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
                use TraceError::{Empty, Nothing, Unknown};
                assert!(matches!(error, Empty | Unknown | Nothing { .. }), "{error}");
                continue;
            }
        };
        let ns = trace.statements.iter().map(|it| it.ns).sum::<f64>();
        assert!(ns >= before - 1.0 && ns <= whole + 1.0, "{ns} after {before} at {end}");
        before = ns;
        read(&format!("{}\n# User@Host: a\n# Query_time: 1 x", &PERCONA[end..]));
    }
}

#[test]
fn what_is_too_much_to_tell_apart_is_counted_together() {
    let limits = Limits { statements: 2, ..Limits::default() };
    let mut reader = Reader::new(Options { limits, ..Options::default() });
    for number in 0..5 {
        let entry = format!(
            "# User@Host: a[a] @ h []\n# Query_time: 1.0  Lock_time: 0.0\nselect a{number};\n"
        );
        reader.feed(entry.as_bytes()).unwrap();
    }
    let trace = reader.finish().unwrap();
    let others = trace.statements.iter().find(|it| it.id == "others").unwrap();
    assert_eq!((others.executions, trace.statements.len()), (3.0, 3));
    assert!(trace.notes[0].contains("more than 2"));
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
