//! Several sessions and several files.

use blockstone_trace::{Limits, Reader, Trace};

use super::support::{call, has_note, parsing, parsing_with, statement, trace, us, wait};

fn session(id: &str) -> String {
    format!("*** SESSION ID:({id}) 2026-03-01T08:00:00.000001+01:00\n")
}

fn files(texts: &[&str]) -> Trace {
    let mut reader = Reader::new(Limits::default());
    for text in texts {
        reader.feed(text.as_bytes()).unwrap();
        reader.end_of_file().unwrap();
    }
    reader.finish().unwrap()
}

fn seconds(trace: &Trace) -> Vec<(&str, f64)> {
    let sessions = trace.sessions.iter();
    sessions.map(|it| (it.id.as_str(), it.span_ns.unwrap() / 1e9)).collect()
}

#[test]
fn sessions_of_a_shared_server_are_kept_apart() {
    // The same cursor number in both, each inside its own call.
    let text = session("10.1")
        + &parsing_with(1, "select 1", 8, "aaaaaaaaaaaaa")
        + &call("EXEC", 1, (10, 500_000), 1, 1_000_000)
        + &session("20.2")
        + &parsing_with(1, "select 2", 8, "bbbbbbbbbbbbb")
        + &call("EXEC", 1, (20, 900_000), 0, 90_000_000)
        + &session("10.1")
        + &wait(1, "db file sequential read", 100_000, 1_200_000)
        + &call("EXEC", 2, (50, 1_000_000), 0, 1_500_000);
    let trace = trace(text);
    assert_eq!(seconds(&trace), [("10.1", 1.0), ("20.2", 0.9)]);
    assert!((us(&trace, "CPU") - 70.0).abs() < 1e-9);
    let first = statement(&trace, "aaaaaaaaaaaaa");
    assert!((first.parts[0].cpu_ns - 10_000.0).abs() < 1e-9);
    assert_eq!(first.components.len(), 3);
    assert_eq!(statement(&trace, "bbbbbbbbbbbbb").components.len(), 2);
    for session in &trace.sessions {
        let sum: f64 = session.components.values().map(|it| it.ns).sum();
        assert!((sum - session.span_ns.unwrap()).abs() < 1.0, "{}", session.id);
    }
}

#[test]
fn a_call_goes_on_in_another_file() {
    let head = "*** TRACE CONTINUED FROM FILE /u01/orcl_ora_1.trc ***\n";
    let first = session("10.1")
        + &parsing_with(1, "select 1", 8, "aaaaaaaaaaaaa")
        + &call("EXEC", 2, (10, 400), 1, 1_000);
    let second = session("10.1") + head + &call("EXEC", 1, (15, 800), 0, 1_200);
    let trace = files(&[&first, &second]);
    assert!((us(&trace, "CPU") - 15.0).abs() < 1e-9);
    assert!((statement(&trace, "aaaaaaaaaaaaa").parts[0].cpu_ns - 5_000.0).abs() < 1e-9);
    assert_eq!(seconds(&trace), [("10.1", 8e-4)]);
}

#[test]
fn a_file_twice_is_twice_the_time() {
    let text = "Trace file /u01/orcl_ora_1.trc\n".to_owned()
        + &session("10.1")
        + &call("EXEC", 1, (15, 800), 0, 1_000_000)
        + &call("EXEC", 1, (15, 800), 0, 9_000_000);
    let once = trace(&text).span_ns.unwrap();
    assert!((files(&[&text, &text]).span_ns.unwrap() - 2.0 * once).abs() < 1.0);
    assert!((trace(text.clone() + &text).span_ns.unwrap() - 2.0 * once).abs() < 1.0);
}

#[test]
fn what_trcsess_merged_is_the_sum_of_its_sources() {
    let part = |sid: &str, cpu: u64, tim: u64| {
        session(sid)
            + &parsing(1, "select 1")
            + &call("EXEC", 1, (cpu, 500), 0, tim)
            + &wait(1, "SQL*Net message from client", 300, tim + 400)
    };
    let rest = |cpu: u64, tim: u64| call("FETCH", 1, (cpu, 200), 0, tim);
    // Clocks of two instances: one started long after the other.
    let (a, b) = (part("10.1", 10, 1_000), part("20.2", 20, 7_000_000_000));
    let (more_a, more_b) = (rest(30, 9_000), rest(40, 7_000_009_000));
    let merged = trace(format!(
        "*** [ Unix process pid: 11 ]\n{a}*** [ Unix process pid: 22 ]\n{b}\
         *** [ Unix process pid: 11 ]\n{more_a}*** [ Unix process pid: 22 ]\n{more_b}"
    ));
    let sources = [trace(a + &more_a), trace(b + &more_b)];
    assert_eq!(seconds(&merged), [seconds(&sources[0]), seconds(&sources[1])].concat());
    for event in ["CPU", "SQL*Net message from client", "unaccounted"] {
        let sum: f64 = sources.iter().map(|it| us(it, event)).sum();
        assert!((us(&merged, event) - sum).abs() < 1e-6, "{event}");
    }
}

fn read_of(number: u64) -> String {
    format!(
        "WAIT #{number}: nam='db file sequential read' ela= 5 file#={number} block#=2 blocks=1 \
         obj#={number} tim=1100\n"
    )
}

#[test]
fn what_is_beyond_the_bounds_is_merged_and_counted() {
    let limits = Limits { statements: 10, sessions: 3, keys: 2, ..Limits::default() };
    let mut text = String::new();
    for number in 0..100_u64 {
        let id = format!("{number:013}");
        text += &session(&format!("{}.1", number % 6));
        text += &parsing_with(number, "select 1", 8, &id);
        text += &call("EXEC", number, (1, if number == 3 { 900 } else { 10 }), 0, 1_000);
        text += &read_of(number);
    }
    let trace = blockstone_trace::read(text.as_bytes(), limits).unwrap();
    assert!(trace.statements.len() <= 12, "{}", trace.statements.len());
    let executions: f64 = trace.statements.iter().map(|it| it.executions).sum();
    assert!((executions - 100.0).abs() < 1e-9);
    assert_eq!(trace.statements[0].id, "(others)");
    assert!((statement(&trace, "0000000000003").executions - 1.0).abs() < 1e-9, "the longest");
    assert!((us(&trace, "CPU") - 100.0).abs() < 1e-9);
    assert!((us(&trace, "db file sequential read") - 500.0).abs() < 1e-9);
    assert_eq!(trace.sessions.len(), 4);
    let by_file: f64 = trace.by_file.iter().map(|it| it.spent.calls).sum();
    assert_eq!((trace.by_file.len(), by_file), (3, 100.0));
    assert!(has_note(&trace, "statements that took little"), "{:?}", trace.notes);
    assert!(has_note(&trace, "beyond the bound"), "{:?}", trace.notes);
}
