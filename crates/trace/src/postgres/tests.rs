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
fn a_plan_and_a_later_execution_are_two() {
    let later = PARALLEL.replacen(
        ":01.000 UTC [77] LOG:  duration: 61",
        ":04.000 UTC [77] LOG:  duration: 61",
        1,
    );
    let trace = read(&later);
    assert_eq!(only(&trace).executions, 1.0);
    assert!(trace.notes[0].starts_with("1 executions of 0.061 s have a duration but no plan"));
}

/// A log of two processes whose lines alternate, with this prefix for each of them.
fn prefixed(first: &str, second: &str) -> String {
    format!(
        "{first}LOG:  statement: select 1 from a\n{second}LOG:  statement: select 1 from b\n\
         {first}LOG:  duration: 2.000 ms\n{second}LOG:  duration: 5.000 ms\n\
         {first}LOG:  duration: 7.000 ms  statement: select 1\n\tfrom c\n\
         {first}ERROR:  no\n{first}STATEMENT:  select 1\n\tfrom d\n"
    )
}

#[test]
fn the_parts_of_a_prefix_are_inferred() {
    for (first, second) in [
        ("2026-03-01 08:00:00.5 UTC [7] ", "2026-03-01 08:00:00.5 UTC [8] "),
        (
            "2026-03-01 08:00:00 UTC:10.0.0.1(5):u@d:[7]:",
            "2026-03-01 08:00:00 UTC:[local]:u@d:[8]:",
        ),
        (
            "2026-03-01 08:00:00 UTC [7]: [3-1] user=u,db=d ",
            "2026-03-01 08:00:00 UTC [8]: [9-1] user= ",
        ),
        ("2026-03-01 08:00:00 UTC-65923f10.7-", "2026-03-01 08:00:00 UTC-65923f11.8-"),
        ("65923f10.7 00000 0 ", "65923f11.8 00000 0 "),
        ("{\"pid\":7,\"at\":\"2026-03-01 08:00:00 UTC\"} ", "{\"pid\":8,\"at\":\"\"} "),
        ("1767225600.123 p=7 ", "1767225600.124 p=8 "),
        ("2026-03-01 08:00:00 UTC u@d[7]: [3-1] ", "2026-03-01 08:00:00 UTC v@d[8]: [1-1] "),
    ] {
        let trace = read(&prefixed(first, second));
        let ns = |text: &str| trace.statements.iter().find(|it| it.text == text).map(|it| it.ns);
        assert_eq!(ns("select ? from a"), Some(2e6), "{first}");
        assert_eq!(ns("select ? from b"), Some(5e6), "{first}");
        assert_eq!(ns("select ? from c"), Some(7e6), "{first}");
        assert_eq!((trace.statements.len(), trace.sessions.len()), (3, 2), "{first}");
        assert_eq!(trace.sessions.iter().filter(|it| it.id == "pid 7").count(), 1, "{first}");
        assert!(trace.notes.is_empty(), "{first}: {:?}", trace.notes);
    }
}

#[test]
fn without_a_process_nothing_is_paired() {
    let trace = read(&prefixed("", ""));
    assert_eq!(only(&trace).text, "select ? from c");
    assert!(
        trace.notes.iter().any(|it| it.starts_with("2 durations of 0.007 s")),
        "{:?}",
        trace.notes
    );
    assert!(trace.notes.iter().any(|it| it.contains("log_line_prefix = ")), "{:?}", trace.notes);
}

#[test]
fn spaces_may_have_been_reduced() {
    let trace = read(
        "2026-03-01 08:00:00 UTC:10.0.0.1:u@d:[7]:LOG: duration: 0.5 ms statement: select 1\n",
    );
    assert_eq!((only(&trace).ns, trace.sessions[0].id.as_str()), (5e5, "pid 7"));
}

#[test]
fn durations_without_statements_are_named() {
    let log = "2026-03-01 08:00:00 UTC [7] LOG:  duration: 2.000 ms\n";
    let mut reader = Reader::new(Options::default());
    reader.feed(log.as_bytes()).unwrap();
    let error = reader.finish().unwrap_err();
    assert!(error.to_string().contains("without their statements"), "{error}");
}

#[test]
fn a_log_in_another_language_is_named() {
    for line in ["LOG:  Dauer: 2,000 ms  Anweisung: x", "СООБЩЕНИЕ:  продолжительность: 2.0 мс"]
    {
        let mut reader = Reader::new(Options::default());
        reader.feed(format!("2026-03-01 08:00:00 UTC [7] {line}\n").as_bytes()).unwrap();
        let error = reader.finish().unwrap_err();
        assert!(error.to_string().contains("in another language"), "{error}");
    }
}

/// The lines of a message, each with what `wrap` puts around it.
fn wrapped(wrap: impl Fn(&str) -> String) -> String {
    let lines = json_log().trim_end().lines().map(wrap).collect::<Vec<_>>();
    lines.join("\n") + "\n"
}

#[test]
fn what_services_put_around_lines_is_removed() {
    let stderr = read(&json_log());
    let quoted = |line: &str| serde_json::Value::from(line).to_string();
    let whole = quoted(json_log().trim_end());
    let without_severity = json_log().replacen("2026-11-26 02:00:01 UTC [7] LOG:  ", "", 1);
    let message = quoted(&without_severity.replace("\n\t", "\n"));
    let logs = [
        // journalctl -o short, short-iso, short-monotonic and with-unit.
        wrapped(|line| format!("Nov 26 02:00:01 host postgres[7]: {line}")),
        wrapped(|line| format!("2026-11-26T02:00:01+0000 host postgres[7]: {line}")),
        wrapped(|line| format!("[ 1234.567890] host postgres[7]: {line}")),
        wrapped(|line| format!("Thu 2026-11-26 02:00:01 UTC host pg@16.service[7]: {line}")),
        // One entry of several lines, which journalctl indents.
        format!("Nov 26 02:00:01 host postgres[7]: {}", json_log().replace("\n\t", "\n       ")),
        // syslog without numbers, and with escaped line ends.
        wrapped(|line| {
            format!("<134>Nov 26 02:00:01 h postgres[7]: {}", line.replace('\t', "#011"))
        }),
        format!(
            "Nov 26 02:00:01 h postgres[7]: [5-1] LOG:  {}\n",
            without_severity.trim_end().replace('\n', "#012").replace('\t', "#011")
        ),
        format!(
            "<134>1 2026-11-26T02:00:01Z h postgres 7 - - [5-1] LOG:  {}\n",
            without_severity.trim_end().replace('\n', "#012").replace('\t', "#011")
        ),
        // Containers.
        wrapped(|line| format!("2026-11-26T02:00:01.5Z stderr F {line}")),
        wrapped(|line| format!("db-1  | {line}")),
        wrapped(|line| {
            let line = quoted(&format!("{line}\n"));
            format!("{{\"log\":{line},\"stream\":\"stderr\",\"time\":\"2026-11-26T02:00:01Z\"}}")
        }),
        // Cloud SQL, CloudWatch, Azure.
        format!("{{\"insertId\":\"x\",\"textPayload\":{whole}}}\n"),
        format!("{{\"timestamp\":1795658401000,\"message\":{whole}}}\n"),
        format!(
            "{{\"category\":\"PostgreSQLLogs\",\"properties\":{{\"errorLevel\":\"LOG\",\
             \"message\":{whole}}}}}\n"
        ),
        // CloudNativePG, parsed and as the server wrote it.
        format!(
            "{{\"level\":\"info\",\"logger\":\"postgres\",\"msg\":\"record\",\"record\":{{\
             \"log_time\":\"2026-11-26 02:00:01 UTC\",\"process_id\":\"7\",\
             \"error_severity\":\"LOG\",\"message\":{message}}}}}\n"
        ),
        wrapped(|line| {
            format!("{{\"level\":\"info\",\"logger\":\"postgres\",\"msg\":{}}}", quoted(line))
        }),
        // journalctl -o json, json-seq and json-sse.
        format!(
            "{{\"MESSAGE\":{whole},\"_PID\":\"7\",\"__REALTIME_TIMESTAMP\":\"1795658401000000\"}}\n"
        ),
        format!("\u{1e}{{\"MESSAGE\":{whole},\"_PID\":\"7\",\"__REALTIME_TIMESTAMP\":\"1\"}}\n"),
        format!("data: {{\"MESSAGE\":{whole},\"_PID\":\"7\",\"__REALTIME_TIMESTAMP\":\"1\"}}\n\n"),
        // log_error_verbosity = verbose.
        json_log().replace("LOG:  ", "LOG:  00000: ") + "2026 [7] LOCATION:  f, a.c:1\n",
    ];
    for log in logs {
        // Lines of other programs do not belong to a message.
        let others = "Nov 26 02:00:02 host sshd[9]: Accepted\n\
                      {\"level\":\"info\",\"msg\":\"Starting\"}\n";
        for log in [log.clone(), log.clone() + others] {
            let trace = read(&log);
            let statement = only(&trace);
            assert_eq!((&statement.id, statement.ns), (&only(&stderr).id, 1.05e7), "{log}");
            assert_eq!(statement.components, only(&stderr).components, "{log}");
            assert_eq!(trace.row_sources.len(), 3, "{log}");
            assert_eq!(trace.sessions[0].id, "pid 7", "{log}");
        }
    }
}

#[test]
fn a_log_with_nothing_but_errors_is_a_log() {
    for line in [
        "2018-05-21 06:00:02 UTC [29170-1] u@d ERROR:  invalid input syntax\r\n",
        "2018-10-31 14:06:26.143 CDT [37368] FATAL:  database files are incompatible\n",
        "2018-10-31 14:06:26.143 CDT [37368] DETAIL:  The data directory was initialized\n",
        "< 2018-10-31 14:06:26.143 CDT >STATEMENT:  select 1\n",
    ] {
        assert!((FORMAT.recognises)(line.as_bytes()), "{line}");
    }
    for line in [
        "psql:demo2.sql:1: ERROR:  syntax error\n",
        "ERROR:  syntax error at 3\n",
        "2024-05-14 10:00:00 psql:demo2.sql:1: ERROR:  syntax error\n",
        "E, [2024-05-14T10:00:00.123456 #77] ERROR -- : PG::UniqueViolation: ERROR:  duplicate\n",
        "2024-05-14 10:00:00,123 ERROR app psycopg2.errors.UniqueViolation: ERROR:  duplicate\n",
    ] {
        assert!(!(FORMAT.recognises)(line.as_bytes()), "{line}");
    }
}

#[test]
fn plans_in_other_formats_count_by_their_durations() {
    let xml = "duration: 9.0 ms  plan:\n\t<explain xmlns=\"http://x\">\n\t  <Query-Text>select 1 \
               from a</Query-Text>\n\t  <Plan>\n\t  </Plan>\n\t</explain>";
    let yaml = "duration: 9.0 ms  plan:\n\tQuery Text: \"select 1 from a\"\n\tPlan: \n\t  Node \
                Type: \"Result\"";
    let line = |text: &str| format!("2026-03-01 08:00:00 UTC [7] LOG:  {text}\n");
    let duration = line("duration: 9.5 ms  statement: select 2 from a");
    for plan in [line(xml), line(yaml)] {
        for (log, ns) in [
            (plan.clone(), 9e6),
            (plan.clone() + &duration, 9e6),
            (duration.clone() + &plan, 9.5e6),
        ] {
            let trace = read(&log);
            assert_eq!((only(&trace).executions, only(&trace).ns), (1.0, ns), "{log}");
            assert_eq!(trace.kind, Some(Kind::PostgresDurations));
            assert!(trace.notes[0].contains("XML or YAML"), "{:?}", trace.notes);
        }
    }
}

#[test]
fn csvlog_that_begins_or_breaks_inside_a_record_is_read() {
    let record = |pid: u32, sql: &str| {
        format!(
            "2026-11-26 02:00:01.5 UTC,\"u\",\"d\",{pid},\"[local]\",1.7,3,\"SELECT\",2026-11-26 \
             02:00:00 UTC,3/5,0,LOG,00000,\"duration: 2.0 ms  statement: {sql}\",,,,,,,,,\"psql\",\
             \"client backend\",,0\n"
        )
    };
    let (whole, broken) = (record(7, "select 1\nfrom a"), record(8, "select 2\nfrom b"));
    let end = &broken[broken.find("from b").unwrap()..];
    let begin = &broken[..broken.find("from b").unwrap()];
    let trace = read(&format!("{end}{whole}{begin}{whole}"));
    assert_eq!((only(&trace).executions, only(&trace).text.as_str()), (2.0, "select ? from a"));
    assert_eq!(trace.skipped_lines, 1);
    // Written by another program.
    let quoted = whole.replacen("2026-11-26 02:00:01.5 UTC", "\"2026-11-26 02:00:01.5 UTC\"", 1);
    assert_eq!(only(&read(&quoted)).ns, 2e6);
    // Of other severities.
    let error = record(9, "x").replace(",LOG,", ",ERROR,");
    assert_eq!(only(&read(&(error + &whole))).executions, 1.0);
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
                use TraceError::{Empty, Nothing, Unknown, Unread};
                let cut = matches!(error, Empty | Unknown | Nothing { .. } | Unread { .. });
                assert!(cut, "{error}");
            }
        }
    }
}
