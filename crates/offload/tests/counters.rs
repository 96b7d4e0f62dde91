//! Tables of counters: which are read, and why others are refused.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use std::fmt::Write as _;

use blockstone_offload::{CountersError, Unit, counters};
use proptest::prelude::*;

const READ: &str = "physical read total bytes";
const ELIGIBLE: &str = "cell physical IO bytes eligible for predicate offload";
const WIRE: &str = "cell physical IO interconnect bytes";

/// A run of one instance between two snapshots.
fn table(before: [f64; 3], after: [f64; 3]) -> String {
    let mut text = "time,instance,statistic,value\n".to_owned();
    for (time, values) in [(0, before), (10, after)] {
        for (name, value) in [READ, ELIGIBLE, WIRE].iter().zip(values) {
            writeln!(text, "{time},1,{name},{value}").unwrap();
        }
    }
    text
}

fn refused(text: &str) -> CountersError {
    counters::read(text, Unit::Bytes).unwrap_err()
}

#[test]
fn a_run_is_what_its_counters_grew_by() {
    let text = table([100.0, 90.0, 10.0], [1100.0, 1080.0, 20.0]);
    let read = counters::read(&text, Unit::Gib).unwrap();
    let run = &read.ledgers[0];
    assert_eq!(run.read_bytes, 1000 << 30);
    assert_eq!(run.not_eligible_bytes(), Some(10 << 30));
    assert_eq!((run.seconds, run.hosts), (Some(10.0), Some(1)));
    assert_eq!(run.returned_of_eligible(), Some(10.0 / 990.0));
    assert_eq!(run.saved_of_all(), Some(0.98));
    assert!(run.is_returned_all_wire && run.copies().measured().is_none());
}

#[test]
fn what_disks_moved_takes_the_place_of_what_was_read() {
    let text =
        table([100.0, 90.0, 10.0], [1100.0, 1080.0, 20.0]).replace(READ, "physical IO disk bytes");
    let run = &counters::read(&text, Unit::Gib).unwrap().ledgers[0];
    assert_eq!((run.read_bytes, run.is_read_with_writes), (1000 << 30, true));
    let written = "0,1,physical write total bytes,5\n10,1,physical write total bytes,9\n";
    let run = &counters::read(&(text.clone() + written), Unit::Gib).unwrap().ledgers[0];
    assert_eq!((run.read_bytes, run.is_read_with_writes), (996 << 30, false));
    let both = format!("{text}0,1,{READ},1\n10,1,{READ},992\n");
    let run = &counters::read(&both, Unit::Gib).unwrap().ledgers[0];
    assert_eq!((run.read_bytes, run.is_read_with_writes), (991 << 30, false));
}

#[test]
fn a_counter_that_falls_is_not_subtracted_over() {
    let error = refused(&table([1841.58, 1841.0, 1727.15], [1841.60, 1841.02, 43.18]));
    let CountersError::Decreasing { line, from, to, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*line, *from, *to), (7, 1727.15, 43.18));
}

#[test]
fn what_is_missing_is_named() {
    let good = table([0.0; 3], [1000.0, 990.0, 10.0]);
    let numbered = good.replace(READ, "43");
    assert!(matches!(refused(&numbered), CountersError::Numbered { line: 2, .. }));
    let without = good.replace("instance,", "").replace(",1,", ",");
    assert_eq!(refused(&without), CountersError::NoColumn { name: "instance" });
    let empty = good.replacen(",1,", ",,", 1);
    assert_eq!(refused(&empty), CountersError::NoInstance { line: 2 });
    let last = good.trim_end().rfind('\n').unwrap();
    assert!(matches!(refused(&good[..last]), CountersError::Missing { .. }));
    let one = good.lines().take(4).collect::<Vec<_>>().join("\n");
    assert!(matches!(refused(&one), CountersError::OneSnapshot { .. }));
    let unnamed = good.replace(WIRE, "physical write total bytes");
    assert!(matches!(refused(&unnamed), CountersError::NoCounter { .. }));
    assert_eq!(refused(""), CountersError::Empty);
    assert_eq!(refused("time,instance,statistic,value\n"), CountersError::Empty);
}

#[test]
fn units_that_are_mixed_are_found() {
    // Eligible bytes in GB, the rest in GiB.
    let error = refused(&table([0.0; 3], [613.7, 613.6 * 1.073_741_824, 1.7]));
    assert!(error.to_string().contains("GiB and GB"), "{error}");
    // The other way round it may be intended, so it only causes a note.
    let text = table([0.0; 3], [613.7 * 1.073_741_824, 613.6, 1.7]);
    let notes = counters::read(&text, Unit::Gib).unwrap().notes;
    assert!(notes[0].contains("as 1 GB is of 1 GiB"), "{notes:?}");
    assert!(
        counters::read(&table([0.0; 3], [613.7, 613.6, 1.7]), Unit::Gib).unwrap().notes.is_empty()
    );
    let mut text = table([0.0; 3], [613.7, 613.6, 1.7]).replace("value\n", "value,unit\n");
    text = text.replace('\n', ",GiB\n").replacen("unit,GiB", "unit", 1);
    assert!(counters::read(&text, Unit::Bytes).is_ok());
    let last = text.trim_end().rfind("GiB").unwrap();
    let error = refused(&format!("{}GB\n", &text[..last]));
    assert!(matches!(error, CountersError::MixedUnits { line: 7, first: 2, .. }), "{error:?}");
}

/// Instances in listed order, each with bytes read, eligible and on the wire.
fn listed(before: &[[f64; 3]], after: &[[f64; 3]]) -> String {
    let mut text = "time,instance,statistic,value\n".to_owned();
    for (time, rows) in [(0, before), (10, after)] {
        for (instance, values) in rows.iter().enumerate() {
            for (name, value) in [READ, ELIGIBLE, WIRE].iter().zip(values) {
                writeln!(text, "{time},{instance},{name},{value}").unwrap();
            }
        }
    }
    text
}

#[test]
fn instances_that_changed_places_are_assigned_by_selectivity() {
    let before = [[0.0, 0.0, 100.0], [5.0, 5.0, 103.0]];
    // By position, a counter of the second would decrease; exchanged, they are 2 % and 2.2 %
    // selective.
    let after = [[110.0, 105.0, 105.2], [100.0, 100.0, 102.0]];
    let read = counters::read(&listed(&before, &after), Unit::Bytes).unwrap();
    let assigned = &read.assigned[0];
    assert!(assigned.is_decided);
    assert_eq!(assigned.candidates[0].shares[0].listed_as, "1");
    assert_eq!(assigned.candidates[0].shares[1].listed_as, "0");
    assert!(assigned.candidates[0].spread < 1.2, "{assigned:?}");
    assert!((assigned.listed[1].wire_bytes + 1.0).abs() < 1e-9);
    assert_eq!((read.ledgers[0].read_bytes, read.ledgers[0].wire_bytes), (205, Some(4)));
}

#[test]
fn instances_that_only_did_their_own_business_are_no_hosts() {
    let before = [[0.0; 3], [0.0; 3], [0.0; 3]];
    let after = [[1000.0, 1000.0, 900.0], [9.0, 0.0, 8.0], [1000.0, 1000.0, 910.0]];
    let read = counters::read(&listed(&before, &after), Unit::Bytes).unwrap();
    assert_eq!(read.ledgers[0].hosts, Some(2));
}

#[test]
fn a_restart_is_not_taken_for_another_order() {
    // A counter decreases in every assignment.
    let before = [[100.0, 100.0, 50.0], [100.0, 100.0, 50.0]];
    let after = [[1.0, 1.0, 0.5], [300.0, 300.0, 52.0]];
    let error = refused(&listed(&before, &after));
    assert!(matches!(error, CountersError::Decreasing { .. }), "{error:?}");
    // One row could continue the other, but their selectivities would differ.
    let before = [[100.0, 100.0, 50.0], [0.0, 0.0, 0.0]];
    let error = refused(&listed(&before, &after));
    assert!(matches!(error, CountersError::Decreasing { .. }), "{error:?}");
}

#[test]
fn what_selectivity_does_not_decide_is_said() {
    let before = [[0.0, 0.0, 10.0], [0.0, 0.0, 10.0], [0.0, 0.0, 20.0]];
    let after = [[100.0, 100.0, 12.0], [100.0, 100.0, 22.0], [100.0, 100.0, 12.0]];
    let read = counters::read(&listed(&before, &after), Unit::Bytes).unwrap();
    assert_eq!((read.assigned[0].is_decided, read.assigned[0].candidates.len()), (false, 2));
    assert_eq!((read.ledgers[0].read_bytes, read.ledgers[0].wire_bytes), (300, Some(6)));
}

proptest! {
    /// Totals and the chosen assignment equal those of instances that kept their positions.
    #[test]
    fn totals_do_not_depend_on_the_order(
        starts in proptest::collection::vec(0_u32..1000, 2..6),
        turn in 0_usize..6,
    ) {
        let counted = |at: &u32| [3e6, 3e6, 1e4].map(|each| f64::from(*at) * each);
        let before: Vec<[f64; 3]> = starts.iter().map(counted).collect();
        let after: Vec<[f64; 3]> =
            before.iter().map(|it| [it[0] + 1e9, it[1] + 1e9, it[2] + 5e6]).collect();
        let mut turned = after.clone();
        turned.rotate_left(turn % after.len());
        let straight = counters::read(&listed(&before, &after), Unit::Bytes).unwrap();
        let read = counters::read(&listed(&before, &turned), Unit::Bytes).unwrap();
        prop_assert_eq!(&read.ledgers, &straight.ledgers);
    }

    /// Any file is either read or refused, without a panic.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,300}") {
        let _ = counters::read(&text, Unit::Bytes);
        let _ = counters::read(&format!("time,instance,statistic,value\n{text}"), Unit::Gib);
    }
}
