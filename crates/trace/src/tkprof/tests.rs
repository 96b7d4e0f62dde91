#![allow(clippy::float_cmp, reason = "hundredths of a second are compared with what is printed")]

use super::*;
use crate::{Reader, TraceError};

fn read(text: &str) -> Trace {
    let mut reader = Reader::new(Options::default());
    for piece in text.as_bytes().chunks(7) {
        reader.feed(piece).unwrap();
    }
    reader.finish().unwrap()
}

fn seconds(components: &BTreeMap<Component, Spent>, component: &Component) -> Option<f64> {
    components.get(component).map(|spent| (spent.ns / 1e3).round() / 1e6)
}

fn waited(event: &str) -> Component {
    Component::Wait(event.to_owned())
}

const RULE: &str =
    "********************************************************************************\n";
const DASHES: &str =
    "--------------------------------------------------------------------------------\n";
const TABLE: &str = "\
call     count       cpu    elapsed       disk      query    current        rows
------- ------  -------- ---------- ---------- ---------- ----------  ----------
";
const WAITS: &str = "
Elapsed times include waiting on following events:
  Event waited on                             Times   Max. Wait  Total Waited
  ----------------------------------------   Waited  ----------  ------------
";

/// A report: its statements are separated by `rule`.
fn report(rule: &str) -> String {
    format!(
        "
TKPROF: Release 19.0.0.0.0 - Development on Sun Mar 1 08:00:00 2026

Trace file: t1_ora_7.trc
Sort options: default

{RULE}count    = number of times OCI procedure was executed
cpu      = cpu time in seconds executing
{RULE}
SQL ID: aaaaaaaaaaaa1
Plan Hash: 7

select c
from
 t where k = 3
{DASHES} and c = 4


{TABLE}Parse        1      0.00       0.01          0          0          0           0
Execute      2      0.00       0.00          0          0          0           0
Fetch        4      0.10       1.00       1000       2000          1         400
------- ------  -------- ---------- ---------- ---------- ----------  ----------
total        7      0.11       1.01       1000       2000          1         400

Misses in library cache during parse: 1
Optimizer mode: ALL_ROWS
Parsing user id: 33

Rows (1st) Rows (avg) Rows (max)  Row Source Operation
---------- ---------- ----------  ---------------------------------------------------
       200        200        200  TABLE ACCESS FULL T (cr=1000 pr=500 pw=0 time=499 us)

{WAITS}  db file scattered read                        100        0.05          0.80
  SQL*Net message to client                       4        0.00          0.00
  SQL*Net message from client                     4        1.50          2.00
{rule}
select o from obj$ where n=:1

{TABLE}Parse        1      0.00       0.00          0          0          0           0
Execute      1      0.00       0.02          1          3          0           0
Fetch        1      0.00       0.00          0          0          0           1
------- ------  -------- ---------- ---------- ---------- ----------  ----------
total        3      0.00       0.02          1          3          0           1

Parsing user id: SYS   (recursive depth: 1)
{WAITS}  db file sequential read                         1        0.02          0.02
{RULE}
OVERALL TOTALS FOR ALL NON-RECURSIVE STATEMENTS

{TABLE}Parse        1      0.00       0.01          0          0          0           0
Execute      2      0.00       0.00          0          0          0           0
Fetch        4      0.10       1.00       1000       2000          1         400
------- ------  -------- ---------- ---------- ---------- ----------  ----------
total        7      0.11       1.01       1000       2000          1         400

Misses in library cache during parse: 1
{WAITS}  db file scattered read                        100        0.05          0.80
  SQL*Net message from client                     4        1.50          2.00


OVERALL TOTALS FOR ALL RECURSIVE STATEMENTS

{TABLE}Parse        3      0.00       0.00          0          0          0           0
Execute      3      0.01       0.05          3          9          0           0
Fetch        3      0.00       0.00          0          0          0           3
------- ------  -------- ---------- ---------- ---------- ----------  ----------
total        9      0.02       0.06          3          9          0           3

{WAITS}  db file sequential read                         3        0.02          0.04

    1  user  SQL statements in session.
{RULE}Trace file: t1_ora_7.trc
       4  unique SQL statements in trace file.
     123  lines in trace file.
       3  elapsed seconds in trace file.
"
    )
}

#[test]
fn totals_are_those_of_all_statements() {
    let trace = read(&report(RULE));
    assert_eq!(
        (trace.kind, trace.product.as_str()),
        (Some(Kind::Tkprof), "tkprof Release 19.0.0.0.0")
    );
    let of = |component: &Component| seconds(&trace.components, component);
    assert_eq!(of(&Component::Cpu), Some(0.13));
    assert_eq!(of(&waited("db file scattered read")), Some(0.8));
    assert_eq!(of(&waited("db file sequential read")), Some(0.04));
    assert_eq!(of(&waited("SQL*Net message from client")), Some(2.0));
    // 1.07 s of calls less 0.13 s and 0.84 s.
    assert_eq!(of(&Component::Unaccounted), Some(0.1));
    let read = &trace.components[&waited("db file scattered read")];
    assert_eq!((read.calls, read.max_ns), (100.0, Some(5e7)));
    assert!(read.histogram.calls.is_empty() && !read.is_averaged);
    assert_eq!((trace.span_ns, trace.cut_files, trace.skipped_lines), (None, 0, 0));
    assert!(trace.notes.iter().any(|it| it.contains("2 of 4 statements")), "{:?}", trace.notes);
}

#[test]
fn statements_have_calls_waits_and_depth() {
    for rule in [RULE, DASHES] {
        let trace = read(&report(rule));
        let [select, recursive] = &trace.statements[..] else { panic!("{:?}", trace.statements) };
        assert_eq!(select.id, "aaaaaaaaaaaa1");
        assert!(select.text.starts_with("select c from t where k = ?"), "{}", select.text);
        assert_eq!((select.executions, select.rows, select.depth), (2.0, Some(400.0), Some(0)));
        assert_eq!(select.ns.round(), 3.01e9);
        assert_eq!((select.logical_reads, select.physical_reads), (Some(2001.0), Some(1000.0)));
        assert_eq!((select.parts.len(), select.parts[0].misses), (3, 1.0));
        assert_eq!(seconds(&select.components, &Component::Cpu), Some(0.11));
        assert_eq!(
            (recursive.depth, recursive.text.as_str()),
            (Some(1), "select o from obj$ where n=:1")
        );
    }
}

#[test]
fn statements_of_several_sessions_are_summed() {
    let text = report(RULE);
    let trace = read(&text.repeat(2));
    assert_eq!(trace.statements.len(), 2);
    assert_eq!(trace.statements[0].executions, 4.0);
    assert_eq!(seconds(&trace.components, &Component::Cpu), Some(0.26));
}

#[test]
fn a_report_without_totals_is_the_sum_of_its_statements() {
    let text = report(RULE);
    for mark in ["OVERALL TOTALS FOR ALL NON", "OVERALL TOTALS FOR ALL REC"] {
        let trace = read(&text[..text.find(mark).unwrap()]);
        assert_eq!(seconds(&trace.components, &Component::Cpu), Some(0.11), "{mark}");
        assert_eq!(trace.cut_files, 1);
        assert!(trace.notes.iter().any(|it| it.contains("lacks its totals")), "{mark}");
    }
    for end in 0..text.len() {
        let mut reader = Reader::new(Options::default());
        reader.feed(&text.as_bytes()[..end]).unwrap();
        match reader.finish() {
            Ok(trace) => assert!(trace.components.values().all(|it| it.ns.is_finite())),
            Err(error) => {
                use TraceError::{Empty, Nothing, Unknown};
                assert!(matches!(error, Empty | Unknown | Nothing { .. }), "{error}");
            }
        }
    }
}

#[test]
fn rows_of_a_table_that_are_not_numbers_are_skipped() {
    let text = report(RULE).replace("Fetch        4      0.10", "Fetch        4      ####");
    let trace = read(&text);
    assert_eq!(trace.skipped_lines, 2);
    assert_eq!(seconds(&trace.components, &Component::Cpu), Some(0.13));
}
