//! Figures whose correct value is known.

use blockstone_trace::{
    Component, array_size, cache_hits, disk_time, memory_cost, mib_per_second, own_disk_time,
    round_trip, row_disk_time, single_block_reads,
};

use super::support::{call, has_note, parsing, statement, trace, wait};

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 0.05, "{value} is not {expected}");
}

/// A key lookup through an index, 100,001 times.
const LOOKUP: &str = "\
FETCH #1:c=5380000,e=114560000,p=37085,cr=418332,cu=0,mis=0,r=100001,dep=0,og=1,tim=200000000
STAT #1 id=1 cnt=100001 pid=0 pos=1 obj=1 op='TABLE ACCESS BY INDEX ROWID GENE \
(cr=418332 pr=37085 pw=0 time=114797430 us)'
STAT #1 id=2 cnt=100001 pid=1 pos=1 obj=142926 op='INDEX UNIQUE SCAN GENE_PK \
(cr=300003 pr=6875 pw=0 time=21453148 us)'
";

#[test]
fn a_row_source_is_corrected_for_its_children_and_for_memory() {
    let trace = trace(LOOKUP);
    let [table, index] = trace.row_sources.as_slice() else { panic!("{:?}", trace.row_sources) };
    assert_eq!((table.depth, index.depth, index.object), (0, 1, Some(142_926)));
    assert_eq!(table.own_logical_reads, Some(118_329.0));
    assert_eq!(table.own_physical_reads, Some(30_210.0));
    near(table.own_ns.unwrap() / 1e3, 93_344_282.0);
    let cost = 30_000.0;
    let whole = row_disk_time(table, cost).unwrap();
    near(whole.total_ns / 1e3, 102_247_470.0);
    near(whole.per_read_ns / 1e3, 2_757.1);
    assert!((mib_per_second(16_384.0, whole.per_read_ns).unwrap() - 5.667).abs() < 0.0005);
    let own = own_disk_time(table, cost).unwrap();
    near(own.total_ns / 1e3, 89_794_412.0);
    near(own.per_read_ns / 1e3, 2_972.3);
    near(own_disk_time(index, cost).unwrap().per_read_ns / 1e3, 1_811.4);
    near(table.logical_reads.unwrap() / table.rows * 100.0, 418.3);
}

#[test]
fn disk_time_is_not_made_up() {
    assert_eq!(disk_time(100.0, 0.0, 1.0, 0.0), None, "nothing was read");
    assert_eq!(disk_time(100.0, 200.0, 1.0, 5.0), None, "memory took longer than all");
    assert_eq!(mib_per_second(8192.0, 0.0), None);
}

#[test]
fn the_cost_of_memory_comes_from_statements_that_read_nothing() {
    let fetch = |cursor: u32, elapsed: u64, reads: u64, physical: u64, tim: u64| {
        format!(
            "FETCH #{cursor}:c={elapsed},e={elapsed},p={physical},cr={reads},cu=0,mis=0,r=1,dep=0,\
             og=1,tim={tim}\n"
        )
    };
    let text = fetch(1, 30_000, 1_000, 0, 1_000_000)
        + &fetch(2, 900_000, 1_000, 100, 2_000_000)
        + &fetch(3, 900, 1, 0, 3_000_000)
        + &wait(4, "latch free", 50_000, 3_900_000)
        + &fetch(4, 110_000, 2_000, 0, 4_000_000);
    let cost = memory_cost(&trace(text)).unwrap();
    assert_eq!((cost.statements, cost.logical_reads), (2, 3_000.0));
    near(cost.ns, 30_000.0);
    assert_eq!(memory_cost(&trace(fetch(2, 900, 1_000, 100, 2_000))), None);
}

#[test]
fn plans_are_added_up_from_11g_on_and_replaced_before() {
    let dump = |time: u32| {
        format!(
            "STAT #1 id=1 cnt=2 pid=0 pos=1 obj=7 op='TABLE ACCESS FULL T (cr=5 pr=1 pw=0 \
             time={time} us)'\n"
        ) + &call("EXEC", 1, (1, 10), 0, 1_000)
    };
    let text = call("EXEC", 1, (1, 10), 0, 1_000) + &dump(100) + &dump(250);
    let of = |release: &str| {
        let head = format!("Oracle Database Release {release}.2.0.1.0 - Production\n");
        let trace = trace(head + &text);
        (trace.row_sources[0].ns, trace.row_sources[0].executions)
    };
    assert_eq!(of("11"), (Some(350_000.0), 2.0));
    assert_eq!(of("10"), (Some(250_000.0), 1.0));
}

#[test]
fn times_that_leave_children_out_have_no_own_part() {
    let text = call("EXEC", 1, (1, 10), 0, 1_000)
        + "STAT #1 id=1 cnt=2 pid=0 pos=1 obj=0 op='HASH GROUP BY (cr=5 pr=1 pw=0 time=79 us)'\n\
           STAT #1 id=2 cnt=2 pid=1 pos=1 obj=7 op='TABLE ACCESS FULL T (cr=5 pr=1 pw=0 \
           time=4756 us)'\n";
    let trace = trace(text);
    assert!(trace.row_sources.iter().all(|row| row.own_ns.is_none()));
    assert_eq!(trace.row_sources[0].own_logical_reads, Some(0.0));
    assert!(has_note(&trace, "own time is missing"), "{:?}", trace.notes);
}

#[test]
fn waits_are_in_powers_of_two() {
    let read = |ela: i64, blocks: u32| {
        format!(
            "WAIT #1: nam='db file scattered read' ela= {ela} file#=4 block#=9 blocks={blocks} \
             obj#=77 tim=1000000\n"
        )
    };
    let trace = trace(read(0, 8) + &read(1, 8) + &read(127, 8) + &read(128, 5) + &read(255, 8));
    let spent = &trace.components[&Component::Wait("db file scattered read".to_owned())];
    let mut expected = [0.0; 9];
    (expected[0], expected[1], expected[7], expected[8]) = (1.0, 1.0, 1.0, 2.0);
    assert_eq!(spent.histogram.calls, expected);
    near(spent.histogram.ns[8], 383_000.0);
    assert_eq!((spent.max_ns, spent.blocks), (Some(255_000.0), Some(37.0)));
    let keys: Vec<_> = trace.by_blocks.iter().map(|it| (it.key, it.spent.calls)).collect();
    assert_eq!(keys, [(Some(8), 4.0), (Some(5), 1.0)]);
    assert_eq!((trace.by_object[0].key, trace.by_object[0].spent.calls), (Some(77), 5.0));
}

#[test]
fn parts_of_a_statement_are_as_tkprof_lists_them() {
    let text = parsing(1, "select 1")
        + "PARSE #1:c=7,e=9,p=0,cr=1,cu=0,mis=1,r=0,dep=0,og=1,tim=1000\n\
           EXEC #1:c=1,e=2,p=0,cr=0,cu=4,mis=1,r=0,dep=0,og=1,tim=2000\n\
           FETCH #1:c=5,e=6,p=3,cr=9,cu=0,mis=0,r=10,dep=0,og=1,tim=3000\n\
           FETCH #1:c=5,e=6,p=3,cr=9,cu=0,mis=0,r=2,dep=0,og=1,tim=4000\n";
    let trace = trace(text);
    let statement = statement(&trace, "4y53369cbbaqf");
    let part = |name: &str| statement.parts.iter().find(|it| it.name == name).unwrap();
    let fetch = part("fetch");
    assert_eq!((fetch.calls, fetch.rows, fetch.physical_reads), (2.0, 12.0, 6.0));
    assert_eq!((fetch.consistent_reads, fetch.cpu_ns, fetch.elapsed_ns), (18.0, 1e4, 1.2e4));
    assert_eq!((part("parse").misses, part("execute").misses), (1.0, 1.0));
    assert_eq!(part("execute").current_reads, 4.0);
    assert_eq!((statement.logical_reads, statement.physical_reads), (Some(23.0), Some(6.0)));
    assert_eq!(statement.depth, Some(0));
}

#[test]
fn waits_between_calls_belong_to_the_response_time_of_their_statement() {
    let text = parsing(1, "update t")
        + &wait(1, "db file sequential read", 60, 950)
        + &call("EXEC", 1, (10, 100), 0, 1_000)
        + &wait(1, "log file sync", 500, 1_600)
        + &wait(1, "SQL*Net message from client", 300, 2_000)
        + &call("EXEC", 1, (10, 100), 0, 2_500);
    let trace = trace(text);
    let statement = statement(&trace, "4y53369cbbaqf");
    near(statement.ns / 1e3, 1_000.0);
    near(statement.components[&Component::Unaccounted].ns / 1e3, 120.0);
    let trips = statement.round_trips.unwrap();
    assert_eq!((trips.calls, trips.wait_ns / 1e3, trips.gap_ns / 1e3), (1.0, 300.0, 1_400.0));
}

/// 1,000 rows, fetched in pieces, with a round trip of 12 ms after each.
fn fetched(size: u64, trip_us: u64) -> blockstone_trace::Trace {
    let mut text = parsing(1, "select a from t") + &call("EXEC", 1, (50, 50), 0, 1_000_000);
    let mut tim = 1_000_000;
    for left in (0..=1_000 / size).rev() {
        let rows = if left == 0 { 0 } else { size };
        let elapsed = 20 + rows;
        tim += elapsed + trip_us + 40;
        text += &wait(1, "SQL*Net message from client", trip_us as i64, tim - elapsed);
        let used = format!("c={elapsed},e={elapsed},p=0,cr=1,cu=0,mis=0,r={rows}");
        text = text + "FETCH #1:" + &used + &format!(",dep=0,og=1,tim={tim}\n");
    }
    trace(text)
}

#[test]
fn predictions_hold_when_the_trace_is_made_again() {
    let now = fetched(10, 12_000);
    let near = |predicted: f64, made: &blockstone_trace::Trace| {
        let share = predicted / made.span_ns.unwrap();
        assert!((share - 1.0).abs() < 0.05, "{share}");
    };
    for rows in [20, 100, 200] {
        let predicted = array_size(&now, &now.statements[0], rows).unwrap();
        near(predicted.predicted_ns, &fetched(u64::from(rows), 12_000));
        assert_eq!(Some(predicted.now_ns), now.span_ns);
    }
    near(round_trip(&now, 6e6).unwrap().predicted_ns, &fetched(10, 6_000));
    assert_eq!(array_size(&now, &now.statements[0], 0), None);
    assert_eq!(single_block_reads(&now, 0.5), None, "there are none");
}

#[test]
fn reads_may_be_faster_or_not_needed() {
    let text = (0..10)
        .map(|at| wait(1, "db file sequential read", 1_000, 1_000_000 + at * 5_000))
        .collect::<String>();
    let trace = trace(text);
    let saved = |it: &blockstone_trace::Prediction| (it.now_ns - it.predicted_ns) / 1e3;
    near(saved(&single_block_reads(&trace, 0.5).unwrap()), 5_000.0);
    near(saved(&cache_hits(&trace, 0.8, 10_000.0).unwrap()), 7_920.0);
}
