//! Misleading lines, each as some release wrote it.

use blockstone_trace::Component;

use super::support::{
    call, calls, has_note, parsing, parsing_with, statement, trace, try_read, us, wait,
};

#[test]
fn recursive_calls_are_not_counted_twice() {
    let text = call("EXEC", 2, (300, 400), 2, 1_400)
        + &wait(1, "db file sequential read", 500, 1_950)
        + &call("FETCH", 1, (500, 1_200), 1, 2_000)
        + &call("EXEC", 3, (1_000, 2_000), 0, 2_500);
    let trace = trace(text);
    assert!((us(&trace, "CPU") - 1_000.0).abs() < 1e-9);
    let part = |cursor: &str| {
        let part = &statement(&trace, cursor).parts[0];
        (part.cpu_ns / 1000.0, part.elapsed_ns / 1000.0)
    };
    assert_eq!(part("cursor 2"), (300.0, 400.0));
    assert_eq!(part("cursor 1"), (200.0, 800.0));
    assert_eq!(part("cursor 3"), (500.0, 800.0));
    let span = trace.span_ns.unwrap() / 1000.0;
    assert!((span - 2_000.0).abs() < 1e-9, "{span}");
    assert!((us(&trace, "unaccounted") - 500.0).abs() < 1e-9);
}

#[test]
fn a_call_takes_only_what_ended_since_it_began() {
    // The caller of the first call is not in the trace.
    let text = call("EXEC", 1, (100, 100), 1, 1_000) + &call("EXEC", 2, (300, 300), 0, 2_000);
    let trace = trace(text);
    assert!((us(&trace, "CPU") - 400.0).abs() < 1e-9);
    assert!((statement(&trace, "cursor 2").parts[0].cpu_ns - 300_000.0).abs() < 1e-9);
}

#[test]
fn a_trace_may_begin_and_end_inside_a_call() {
    let text = call("FETCH", 7, (10, 10), 2, 1_000)
        + "CLOSE #9:c=1,e=1,dep=2,type=3,tim=1010\n"
        + &call("EXEC", 8, (200, 700), 1, 1_100)
        + &wait(8, "log file sync", 5, 1_200);
    let partial = trace(text.clone() + "FETCH #8:c=1,e=2,p=0,cr=0,cu=0,mis=");
    assert!((us(&partial, "CPU") - 200.0).abs() < 1e-9);
    assert!(has_note(&partial, "line that has no end"), "{:?}", partial.notes);
    assert_eq!(partial.skipped_lines, 0);
    assert!(partial.statements.iter().all(|it| it.id != "cursor 9"), "a stray CLOSE");
}

#[test]
fn recursive_calls_of_a_logoff_are_apart() {
    let text = call("EXEC", 1, (100, 100), 0, 1_000)
        + "XCTEND rlbk=0, rd_only=1\n"
        + &call("EXEC", 2, (30, 40), 1, 2_000);
    let trace = trace(text);
    assert!((us(&trace, "CPU") - 100.0).abs() < 1e-9);
    assert!((trace.outside_cpu_ns - 30_000.0).abs() < 1e-9);
    assert_eq!((trace.commits, trace.rollbacks), (Some(1.0), Some(0.0)));
}

#[test]
fn work_after_a_commit_within_a_call_belongs_to_it() {
    let text = "XCTEND rlbk=0, rd_only=0\n".to_owned()
        + &call("EXEC", 2, (30, 40), 1, 2_000)
        + &call("EXEC", 1, (100, 900), 0, 2_100);
    let trace = trace(text);
    assert!((us(&trace, "CPU") - 100.0).abs() < 1e-9);
    assert!(trace.outside_cpu_ns.abs() < 1e-9);
}

#[test]
fn a_cursor_number_is_used_for_another_statement() {
    let text = parsing_with(4, "select 1", 8, "aaaaaaaaaaaaa")
        + &call("EXEC", 4, (1, 10), 0, 1_000)
        + &parsing_with(4, "select 2", 8, "bbbbbbbbbbbbb")
        + &call("EXEC", 4, (1, 20), 0, 2_000);
    let trace = trace(text);
    assert!((statement(&trace, "aaaaaaaaaaaaa").ns - 10_000.0).abs() < 1e-9);
    assert!((statement(&trace, "bbbbbbbbbbbbb").ns - 20_000.0).abs() < 1e-9);
}

#[test]
fn statements_without_id_are_one_if_they_differ_in_literals() {
    let header = |cursor: u64, text: &str| {
        let len = text.len();
        format!("PARSING IN CURSOR #{cursor} len={len} dep=0 tim=1 hv=7\n{text}\nEND OF STMT\n")
    };
    let text = header(1, "select a from t where b = 5")
        + &call("EXEC", 1, (1, 10), 0, 1_000)
        + &header(2, "select a  from t where b = 77")
        + &call("EXEC", 2, (1, 10), 0, 2_000);
    let trace = trace(text);
    assert_eq!(trace.statements.len(), 1);
    assert!((trace.statements[0].executions - 2.0).abs() < 1e-9);
}

#[test]
fn texts_may_contain_lines_like_records() {
    let text = "select '\nEND OF STMT\nPARSE #1:c=9,e=9,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,tim=9\n\
                WAIT #1: nam='db file sequential read' ela= 9 file#=1 block#=1 blocks=1 tim=9\n' x";
    let trace = trace(parsing(1, text) + &call("EXEC", 1, (1, 10), 0, 1_000));
    assert_eq!(trace.statements.len(), 1);
    assert_eq!(trace.statements[0].text, text);
    assert_eq!(calls(&trace, "db file sequential read"), 0.0);
    assert_eq!(trace.statements[0].parts.len(), 1);
}

#[test]
fn a_wrong_length_of_a_text_costs_nothing() {
    for len in [0, 3, 9, 60, 5_000_000_000] {
        let text = parsing_with(1, "select 1", len, "aaaaaaaaaaaaa")
            + &call("EXEC", 1, (1, 10), 0, 1_000)
            + &parsing_with(2, "select 2\nfrom dual", len, "bbbbbbbbbbbbb")
            + &call("EXEC", 2, (2, 20), 0, 2_000)
            + &call("FETCH", 2, (2, 20), 0, 3_000);
        let trace = trace(text);
        assert!((us(&trace, "CPU") - 5.0).abs() < 1e-9, "length {len}");
        assert_eq!(statement(&trace, "aaaaaaaaaaaaa").text, "select 1", "length {len}");
        assert_eq!(statement(&trace, "bbbbbbbbbbbbb").text, "select 2\nfrom dual", "length {len}");
    }
}

#[test]
fn the_text_of_a_failed_parse_has_no_end_mark() {
    let head =
        |len: usize| format!("PARSE ERROR #5:len={len} dep=0 uid=1 oct=3 lid=1 tim=900 err=942\n");
    let text = "select x\nWAIT #5: from t";
    let after = call("EXEC", 6, (1, 10), 0, 1_000) + "ERROR #6:err=1555 tim=1001\n";
    let exact = trace(head(text.len()) + text + "\n" + &after);
    assert_eq!((us(&exact, "CPU"), exact.skipped_lines), (1.0, 0));
    assert!(has_note(&exact, "2 errors"), "{:?}", exact.notes);
    for len in [0, 8, 12, 400] {
        let wrong = trace(head(len) + "select x\nfrom t\n" + &after);
        assert!((us(&wrong, "CPU") - 1.0).abs() < 1e-9, "length {len}");
    }
}

#[test]
fn waits_have_odd_names_and_times() {
    let text = wait(1, "enq: TX - row lock contention", 5, 10_000)
        + &wait(0, "it's a 'quoted' name", 6, 10_010)
        + &wait(0, "events in waitclass Other", -7, 10_020)
        + "WAIT #3: nam='db file sequential read' ela=8 file#=4 block#=2 blocks=1\n"
        + "WAIT #3: nam='db file sequential read' ela= 8 p1=4 p2=2 p3=1\n"
        + "WAIT #3: nam='name|mode' ela= x\n"
        + "WAIT #3: nam='cut off\n";
    let trace = trace(text);
    assert!((us(&trace, "enq: TX - row lock contention") - 5.0).abs() < 1e-9);
    assert!((us(&trace, "it's a 'quoted' name") - 6.0).abs() < 1e-9);
    assert_eq!(calls(&trace, "events in waitclass Other"), 1.0);
    assert!(us(&trace, "events in waitclass Other").abs() < 1e-9);
    assert!(has_note(&trace, "1 waits have negative times"), "{:?}", trace.notes);
    assert!((us(&trace, "db file sequential read") - 16.0).abs() < 1e-9);
    assert_eq!(trace.by_file.len(), 1);
    assert_eq!((trace.by_file[0].key, trace.by_file[0].spent.blocks), (Some(4), Some(2.0)));
    assert_eq!(trace.skipped_lines, 2);
}

#[test]
fn more_cpu_than_a_call_took_makes_the_unaccounted_negative() {
    let text = wait(1, "db file sequential read", 90, 990) + &call("FETCH", 1, (40, 100), 0, 1_000);
    assert!((us(&trace(text), "unaccounted") + 30.0).abs() < 1e-9);
}

#[test]
fn cpu_in_clock_ticks_is_uncertain() {
    let ticks = |values: &[u64]| {
        let lines = values.iter().enumerate();
        let call = |(at, &c): (usize, &u64)| call("EXEC", 1, (c, 900_000), 0, 1_000 + at as u64);
        trace(lines.map(call).collect::<String>())
    };
    let fine = ticks(&[7, 1_130, 44]);
    assert_eq!((fine.tick_ns, fine.components[&Component::Cpu].uncertain_ns), (None, 0.0));
    let coarse = ticks(&[999, 3_999, 0, 23_997]);
    assert_eq!(coarse.tick_ns, Some(1e6));
    let cpu = &coarse.components[&Component::Cpu];
    assert!((cpu.uncertain_ns - 4e6).abs() < 1e-3);
    assert_eq!(ticks(&[10_000, 30_000, 0, 120_000]).tick_ns, Some(1e7));
}

#[test]
fn times_are_hundredths_of_a_second_before_9i() {
    let text = "Oracle8i Enterprise Edition Release 8.1.7.4.0 - Production\n".to_owned()
        + &call("EXEC", 1, (3, 5), 0, 2_000)
        + "WAIT #1: nam='db file scattered read' ela= 2 p1=3 p2=100 p3=8\n";
    let trace = trace(text);
    assert!((us(&trace, "CPU") - 30_000.0).abs() < 1e-9);
    assert!((us(&trace, "db file scattered read") - 20_000.0).abs() < 1e-9);
    assert_eq!(trace.tick_ns, Some(1e7));
}

#[test]
fn binds_may_hold_anything() {
    let string = "\nWAIT #1: nam='x' ela= 9 p1=1 tim=1\n*** SESSION ID:(9.9)\nEND OF STMT\n";
    let avl = string.len();
    let text = parsing(1, "select 1")
        + "BINDS #1:\n Bind#0\n  oacdty=01 mxl=32(28)\n"
        + &format!("  kxsbbbfp=7f51  bln=32  avl={avl:02}  flg=05\n  value=\"{string}\"\n")
        + " Bind#1\n  kxsbbbfp=7f52  bln=22  avl=00  flg=05\n  value=\n"
        + "\n*** 2026-03-01T08:00:00.000001-07:00\n"
        + " Bind#2\n  bfp=2a96 bln=50 avl=16 flg=05\n  value=\n"
        + "Dump of memory from 0x2A96B8B270 to 0x2A96B8B280\n"
        + "2A96B8B270 00000000 00000000 00000000 00000000  [................]\n"
        + " Bind#3\n  kxsbbbfp=7f  bln=32  avl=05  flg=05\n  value=\"never closed\n"
        + &call("EXEC", 1, (1, 10), 0, 1_000);
    let trace = trace(text);
    assert_eq!(calls(&trace, "x"), 0.0);
    assert!((us(&trace, "CPU") - 1.0).abs() < 1e-9);
    assert_eq!(trace.sessions.len(), 1);
    assert_eq!(trace.skipped_lines, 0);
}

#[test]
fn large_objects_and_remote_calls_use_time_too() {
    let text = "*** SESSION ID:(1.1) 2026-03-01\n\
                LOBREAD: type=PERSISTENT LOB,bytes=5,c=169,e=170,p=1,cr=2,cu=7,tim=2000\n\
                LOBPGSIZE: type=TEMPORARY LOB,bytes=16324,c=6,e=6,p=0,cr=0,cu=0,tim=2100\n\
                RPC CALL:PROCEDURE SYS.X(N NUMBER);\n\
                RPC EXEC:c=10,e=20\n";
    let unmaps = "SORT UNMAP #3:c=4,e=5,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=4,tim=2200\n\
                  UNMAP #3:c=1,e=2,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=4,tim=2300\n";
    let apart = trace(text.to_owned() + unmaps);
    assert!((us(&apart, "CPU") - 190.0).abs() < 1e-9);
    assert_eq!(apart.skipped_lines, 0);
    let within = trace(text.to_owned() + &call("EXEC", 4, (500, 900), 0, 2_400));
    assert!((us(&within, "CPU") - 500.0).abs() < 1e-9, "a call that includes them");
}

#[test]
fn lines_end_as_on_windows_and_text_is_not_utf_8() {
    let text = parsing_with(1, "select '\u{e9}'\nfrom t", 17, "aaaaaaaaaaaaa")
        + &call("EXEC", 1, (1, 10), 0, 1_000)
        + &wait(1, "log file sync", 4, 1_100);
    let unix = trace(&text);
    let dos = trace(text.replace('\n', "\r\n"));
    assert_eq!(unix.components, dos.components);
    assert_eq!(unix.statements[0].text, dos.statements[0].text);
    let latin: Vec<u8> = text.chars().map(|char| char as u8).collect();
    let latin = trace(latin);
    assert_eq!(latin.components, unix.components);
    assert_eq!(latin.statements[0].text, "select '\u{fffd}'\nfrom t");
}

#[test]
fn plans_may_be_malformed() {
    let text = call("EXEC", 1, (1, 10), 0, 1_000)
        + "STAT #1 (cr=0\n\
           STAT #1 id=1 cnt=5 pid=0 pos=1 obj=7 op='TABLE ACCESS FULL T (cr=0 pr=0\n\
           STAT #1 id=4294967296 cnt=5 pid=0 pos=1 obj=7 op='A'\n\
           STAT #1 id=1 cnt=5 pid=9 pos=1 obj=7 op='TABLE ACCESS FULL T'\n";
    let trace = trace(text);
    assert_eq!(trace.skipped_lines, 3);
    let [row] = trace.row_sources.as_slice() else { panic!("{:?}", trace.row_sources) };
    assert_eq!((row.operation.as_str(), row.rows), ("TABLE ACCESS FULL T", 5.0));
    assert_eq!((row.ns, row.own_ns, row.logical_reads), (None, None, None));
}

#[test]
fn what_the_file_is_limited_to_is_said() {
    let text = call("EXEC", 1, (1, 10), 0, 1_000)
        + "*** DUMP FILE SIZE IS LIMITED TO 10485760 BYTES ***\n";
    assert!(has_note(&trace(text), "max_dump_file_size"));
}

#[test]
fn a_trace_without_waits_says_so() {
    let trace = trace(call("EXEC", 1, (1, 10), 0, 1_000));
    let (component, why) = &trace.absent[0];
    assert_eq!(*component, Component::Wait(String::new()));
    assert_eq!(*why, "traced without waits");
}

#[test]
fn damaged_calls_are_skipped() {
    let good = call("EXEC", 1, (1, 10), 0, 1_000);
    for (from, to) in [
        ("c=1", "c=-1"),
        ("c=1", "c="),
        ("e=10", "e=99999999999999999999"),
        ("dep=0", "dep=64"),
        ("dep=0,", ""),
        (",tim=1000", ",tim=1000 x"),
        ("#1:", "#:"),
        ("#1:", "#1 "),
    ] {
        let bad = good.replacen(from, to, 1);
        let trace = trace(bad.clone() + &good);
        assert_eq!(trace.skipped_lines, 1, "{bad}");
        assert!((us(&trace, "CPU") - 1.0).abs() < 1e-9, "{bad}");
        assert!(try_read(bad).is_err());
    }
}

/// Returns a line as `TraceAdjust` changes it.
fn adjusted(line: &str) -> String {
    let Some((before, rest)) = line.split_once("tim=") else { return line.to_owned() };
    let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    let (tim, after) = rest.split_at(digits);
    let tim: u64 = tim.parse().unwrap();
    let (seconds, us) = (tim / 1_000_000, tim % 1_000_000);
    let local = "local='2026 Mar 01 08:00:00.000001'";
    format!("{before}tim={seconds}.{us:06},delta=-5,dslt=7,{local}{after}")
}

#[test]
fn a_trace_that_went_through_traceadjust_is_the_same() {
    let text = "*** 2026-03-01 08:00:00.000\n*** SESSION ID:(1.2) 2026-03-01 08:00:00.000\n"
        .to_owned()
        + &parsing(7, "select c from t")
        + &call("PARSE", 7, (100, 120), 0, 1_000_000)
        + &call("EXEC", 7, (0, 50), 0, 1_000_100)
        + &wait(7, "db file sequential read", 5_000, 1_005_200)
        + &call("FETCH", 7, (200, 5_200), 0, 1_005_400)
        + &wait(7, "SQL*Net message from client", 100_000, 1_105_500)
        + "XCTEND rlbk=0, rd_only=1, tim=1105600\n"
        + "CLOSE #7:c=0,e=10,dep=0,type=0,tim=1105700\n";
    let plain = trace(&text);
    let with = trace(text.lines().map(adjusted).collect::<Vec<_>>().join("\n") + "\n");
    assert_eq!((with.components, with.skipped_lines), (plain.components, 0));
    assert_eq!((with.span_ns, with.statements[0].executions), (Some(1.0582e8), 1.0));
    assert_eq!(with.statements[0].ns, plain.statements[0].ns);
    // TraceAdjust drops what follows the time, which is the id.
    let cut = |line: &str| adjusted(line).split(" hv=").next().unwrap_or_default().to_owned();
    let cut = trace(text.lines().map(cut).collect::<Vec<_>>().join("\n") + "\n");
    assert_eq!(cut.statements[0].text, "select c from t");
    // Blanks at the ends of lines, as in a copy from a terminal.
    let padded = trace(text.replace('\n', "  \n"));
    assert_eq!(padded.span_ns, plain.span_ns);
}

#[test]
fn without_calls_the_processor_time_is_unknown() {
    let text = wait(1, "db file sequential read", 500, 1_000)
        + "EXEC #1:c=a,e=1,dep=0,tim=2000\n"
        + &wait(1, "db file sequential read", 500, 3_000);
    let trace = trace(text);
    assert!(!trace.components.contains_key(&Component::Cpu));
    assert!(trace.absent.iter().any(|(component, _)| *component == Component::Cpu));
    assert_eq!(trace.skipped_lines, 1);
}

#[test]
fn a_trace_of_several_files_says_so() {
    let text = "*** TRACE CONTINUED FROM FILE /u01/trace/t1_ora_7_1.trc ***\n".to_owned()
        + &call("EXEC", 1, (1, 2), 0, 1_000);
    assert!(has_note(&trace(text), "give it too"));
}
