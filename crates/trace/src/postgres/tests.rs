#![allow(clippy::float_cmp, reason = "sums of whole microseconds and counts are exact")]

use std::fmt::Write as _;

use super::*;
use crate::model::{RowSource, Statement};
use crate::{Reader, TraceError};

fn read(text: &str) -> Trace {
    let mut reader = Reader::new(Options::default());
    for piece in text.as_bytes().chunks(11) {
        reader.feed(piece).unwrap();
    }
    reader.finish().unwrap()
}

fn seconds(trace: &Trace, component: &Component) -> Option<f64> {
    trace.components.get(component).map(|spent| (spent.ns / 1e3).round() / 1e6)
}

fn only(trace: &Trace) -> &Statement {
    assert_eq!(trace.statements.len(), 1);
    &trace.statements[0]
}

fn source<'a>(trace: &'a Trace, operation: &str) -> &'a RowSource {
    trace.row_sources.iter().find(|it| it.operation == operation).expect(operation)
}

const PARALLEL: &str = "\
2026-11-26 02:00:01.000 UTC [77] LOG:  duration: 60.000 ms  plan:
\tQuery Text: select count(*)
\tfrom t where k = 3;
\tAggregate  (cost=1.0..2.0 rows=1 width=8) (actual time=53.0..55.000 rows=1.00 loops=1)
\t  Buffers: shared hit=10 read=90
\t  I/O Timings: shared read=30.000 write=0.500
\t  ->  Gather  (cost=1.0..2.0 rows=2 width=8) (actual time=52.0..54.000 rows=3.00 loops=1)
\t        Workers Planned: 2
\t        Workers Launched: 2
\t        Buffers: shared hit=10 read=90
\t        I/O Timings: shared read=30.000
\t        ->  Parallel Seq Scan on t  (cost=0.0..7.0 rows=820 width=0) \
(actual time=3.0..45.000 rows=5.00 loops=3)
\t              Filter: (k = 3)
\t              Buffers: shared hit=8 read=90
\t              I/O Timings: shared read=30.000
2026-11-26 02:00:01.000 UTC [77] LOG:  duration: 61.000 ms  statement: select count(*)
\tfrom t where k = 4;
";

#[test]
fn a_plan_and_the_duration_of_one_execution_count_once() {
    let trace = read(PARALLEL);
    assert_eq!(trace.kind, Some(Kind::AutoExplain));
    let select = only(&trace);
    assert_eq!(select.text, "select count(*) from t where k = ?");
    assert_eq!((select.executions, select.ns), (1.0, 6e7));
    assert!(trace.notes.is_empty(), "{:?}", trace.notes);
}

#[test]
fn what_is_off_is_told_by_what_plans_show() {
    let without = |starts: &[&str]| -> String {
        let kept = PARALLEL.lines().filter(|line| {
            let line = line.trim_start();
            !starts.iter().any(|start| line.starts_with(start))
        });
        kept.flat_map(|line| [line, "\n"]).collect()
    };
    let estimated = without(&["I/O Timings", "Buffers"])
        .replace(" (actual", " (then")
        .lines()
        .fold(String::new(), |text, line| {
            let (plan, _) = line.split_once(" (then").unwrap_or((line, ""));
            text + plan + "\n"
        });
    for (log, expected) in [
        (without(&["I/O Timings"]), "track_io_timing is off"),
        (without(&["I/O Timings"]).replace("read=90", "dirtied=1"), "no plan read a block"),
        (without(&["I/O Timings", "Buffers"]), "auto_explain.log_buffers is off"),
        (estimated, "auto_explain.log_analyze is off"),
    ] {
        let trace = read(&log);
        let (_, why) = trace.absent.iter().find(|(it, _)| *it == Component::StorageRead).unwrap();
        assert_eq!(*why, expected, "{log}");
    }
}

#[test]
fn a_plan_may_follow_the_duration_of_its_execution() {
    let (plan, duration) = PARALLEL.split_at(PARALLEL.rfind("2026").unwrap());
    let trace = read(&format!("{duration}{plan}"));
    assert_eq!((only(&trace).executions, only(&trace).ns), (1.0, 6e7));
    assert!(trace.notes.is_empty(), "{:?}", trace.notes);
}

#[test]
fn processes_that_wait_at_the_same_time_wait_once() {
    let trace = read(PARALLEL);
    assert_eq!(seconds(&trace, &Component::StorageRead), Some(0.01));
    assert_eq!(seconds(&trace, &Component::StorageWrite), Some(0.0005));
    assert_eq!(seconds(&trace, &Component::Unaccounted), Some(0.0495));
    let scan = source(&trace, "Parallel Seq Scan on t");
    assert_eq!((scan.ns, scan.own_ns, scan.rows), (Some(45e6), Some(45e6), 15.0));
    let gather = source(&trace, "Gather");
    assert_eq!((gather.own_ns, gather.own_physical_reads), (Some(9e6), Some(0.0)));
    assert_eq!((gather.parent, scan.parent, scan.depth), (1, 2, 2));
    assert_eq!(source(&trace, "Aggregate").own_ns, Some(1e6));
}

const JSON: &str = r#"{"Query Text": "select 'a' from c", "Plan": {"Node Type": "Aggregate",
 "Parallel Aware": false, "Actual Total Time": 10.0, "Actual Rows": 1, "Actual Loops": 1,
 "Shared Hit Blocks": 5, "Shared Read Blocks": 4, "I/O Read Time": 6.0, "I/O Write Time": 0.0,
 "Plans": [
  {"Node Type": "Seq Scan", "Relation Name": "t", "Alias": "x", "Subplan Name": "CTE c",
   "Actual Total Time": 7.0, "Actual Rows": 9, "Actual Loops": 1, "Shared Hit Blocks": 5,
   "Shared Read Blocks": 4, "I/O Read Time": 6.0, "I/O Write Time": 0.0},
  {"Node Type": "CTE Scan", "CTE Name": "c", "Alias": "c", "Actual Total Time": 8.0,
   "Actual Rows": 9, "Actual Loops": 1, "Shared Hit Blocks": 5, "Shared Read Blocks": 4,
   "I/O Read Time": 6.0, "I/O Write Time": 0.0}]}}"#;

fn json_log() -> String {
    let body = JSON.replace('\n', "\n\t");
    format!("2026-11-26 02:00:01 UTC [7] LOG:  duration: 10.5 ms  plan:\n\t{body}\n")
}

#[test]
fn a_cte_is_part_of_the_node_that_scans_it() {
    let trace = read(&json_log());
    assert_eq!(seconds(&trace, &Component::StorageRead), Some(0.006));
    assert_eq!(source(&trace, "Aggregate").own_ns, Some(2e6));
    assert_eq!(source(&trace, "CTE Scan on c").own_ns, Some(1e6));
    assert_eq!(source(&trace, "CTE c: Seq Scan on t x").own_ns, Some(7e6));
    let sum: f64 = trace.row_sources.iter().map(|it| it.own_ns.unwrap()).sum();
    assert_eq!(sum, 10e6);
    let reads: f64 = trace.row_sources.iter().map(|it| it.own_physical_reads.unwrap()).sum();
    assert_eq!(reads, 4.0);
}

#[test]
fn csvlog_jsonlog_and_syslog_say_the_same() {
    let stderr = only(&read(&json_log())).clone();
    let message = format!("duration: 10.5 ms  plan:\n{JSON}");
    let quoted = message.replace('"', "\"\"");
    let csv = format!(
        "2026-11-26 02:00:01 UTC,\"u\",\"d\",7,\"[local]\",1.7,3,\"SELECT\",2026-11-26 \
         02:00:00 UTC,3/5,0,LOG,00000,\"{quoted}\",,,,,,,,,\"psql\",\"client backend\",,0\n"
    );
    let json = serde_json::json!({
        "timestamp": "2026-11-26 02:00:01 UTC", "pid": 7, "error_severity": "LOG",
        "message": message,
    });
    let mut syslog = String::new();
    let text = format!("LOG:  {}", message.replace('\n', "\n\t"));
    let mut index = 0;
    for line in text.split('\n') {
        for part in line.as_bytes().chunks(50) {
            index += 1;
            let part = String::from_utf8_lossy(part).replace('\t', "#011");
            writeln!(syslog, "Nov 26 02:00:01 host postgres[7]: [4-{index}] {part}").unwrap();
            writeln!(syslog, "Nov 26 02:00:01 host postgres[8]: [9-{index}] LOG:  other").unwrap();
        }
    }
    for log in [csv, format!("{json}\n"), syslog] {
        let trace = read(&log);
        let statement = only(&trace);
        assert_eq!((&statement.id, statement.ns), (&stderr.id, stderr.ns), "{log}");
        assert_eq!(statement.components, stderr.components);
        assert_eq!((trace.sessions[0].id.as_str(), trace.row_sources.len()), ("pid 7", 3));
    }
}

#[test]
fn durations_alone_rank_statements_and_make_no_profile() {
    let trace = read(
        "2026-11-26 02:00:00.000 UTC [1] LOG:  duration: 0.500 ms  parse <unnamed>: select $1\n\
         2026-11-26 02:00:00.001 UTC [1] LOG:  duration: 2.000 ms  execute <unnamed>: select $1\n\
         2026-11-26 02:00:00.001 UTC [1] DETAIL:  Parameters: $1 = '5'\n\
         2026-11-26 02:00:00.002 UTC [2] LOG:  statement: select 7\n\
         2026-11-26 02:00:00.003 UTC [1] ERROR:  duration: 9.0 ms  statement: no\n\
         2026-11-26 02:00:00.004 UTC [2] LOG:  duration: 1.500 ms\n\
         2026-11-26 02:00:00.005 UTC [2] LOG:  duration: x ms  statement: select 1\n",
    );
    assert_eq!(trace.kind, Some(Kind::PostgresDurations));
    let select = only(&trace);
    assert_eq!((select.executions, select.ns, select.text.as_str()), (2.0, 4e6, "select ?"));
    assert!(trace.components.is_empty() && select.components.is_empty());
    assert_eq!((trace.absent.len(), trace.skipped_lines, trace.sessions.len()), (4, 1, 2));
}

#[test]
fn a_sample_counts_for_all() {
    let mut reader = Reader::new(Options { weight: 10.0, ..Options::default() });
    reader.feed(PARALLEL.as_bytes()).unwrap();
    let trace = reader.finish().unwrap();
    assert_eq!((only(&trace).executions, only(&trace).ns), (10.0, 6e8));
    assert_eq!(seconds(&trace, &Component::StorageRead), Some(0.1));
}

#[test]
fn a_log_that_is_cut_is_read_to_its_end() {
    for text in [PARALLEL.to_owned(), json_log()] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let mut reader = Reader::new(Options::default());
            reader.feed(&text.as_bytes()[..end]).unwrap();
            if let Err(error) = reader.finish() {
                use TraceError::{Empty, Nothing, Unknown};
                assert!(matches!(error, Empty | Unknown | Nothing { .. }), "{error}");
            }
        }
    }
}
