//! The ledger's arithmetic, and the balance of a machine.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use blockstone_offload::fit::{FitError, Measured, fit};
use blockstone_offload::model::{Consumed, Machine, Resource, Shared};
use blockstone_offload::{Copies, Ledger};
use proptest::prelude::*;

fn ledger(wire: u64, written: u64) -> Ledger {
    Ledger {
        read_bytes: 1000,
        eligible_bytes: Some(600),
        returned_bytes: Some(100),
        wire_bytes: Some(wire),
        written_bytes: Some(written),
        ..Ledger::default()
    }
}

#[test]
fn copies_are_named_only_where_the_arithmetic_allows() {
    // 400 bytes are not eligible and 100 are returned; the rest of the wire is writes.
    assert!(matches!(ledger(1100, 200).copies(), Copies::Whole { copies: 3, .. }));
    assert!(matches!(ledger(1105, 200).copies(), Copies::Whole { copies: 3, .. }));
    assert!(matches!(ledger(1112, 200).copies(), Copies::Odd { .. }));
    assert!(matches!(ledger(520, 200).copies(), Copies::Odd { .. }));
    assert_eq!(ledger(600, 30).copies(), Copies::Unknown("writes are 5 % of the wire at most"));
    let less = Copies::Unknown("reads alone are more than the wire carried");
    assert_eq!(ledger(499, 200).copies(), less);
    let unknown = Copies::Unknown("bytes of the wire are not counted");
    assert_eq!(Ledger::default().copies(), unknown);
    let unwritten = Ledger { written_bytes: None, ..ledger(1100, 200) };
    assert_eq!(unwritten.copies(), Copies::Unknown("writes are not counted"));
    let all_wire = Ledger { is_returned_all_wire: true, ..ledger(1100, 200) };
    assert!(all_wire.copies().measured().is_none());
    assert_eq!(ledger(1100, 200).writes_and_rest(), Some((600, 0)));
    assert_eq!(ledger(1000, 200).writes_and_rest(), Some((200, 300)));
}

#[test]
fn what_comes_back_larger_than_it_was_is_saved_below_zero() {
    let unpacked = Ledger { returned_bytes: Some(900), ..ledger(1300, 0) };
    assert!((unpacked.saved_of_all().unwrap() + 0.3).abs() < 1e-12);
    assert_eq!(Ledger::default().saved_of_all(), None);
}

fn machine() -> Machine {
    Machine {
        cells: 6,
        scan_rate: Some(1000.0),
        consume: vec![
            Consumed { hosts: 1, bytes_per_s: 330.0 },
            Consumed { hosts: 4, bytes_per_s: 300.0 },
        ],
        ..Machine::default()
    }
}

#[test]
fn hosts_bind_until_the_cells_do() {
    let machine = machine();
    let at = |hosts: u32| machine.bound(f64::from(hosts), 0.94).unwrap();
    assert_eq!(
        (at(1).binding, at(18).binding, at(19).binding),
        (Resource::Hosts, Resource::Hosts, Resource::Cells)
    );
    assert!((at(19).bytes_per_s - 6000.0).abs() < 1e-9);
    // Between the known numbers of hosts the rate is linear.
    assert!((machine.consume_rate(2.0).unwrap() - 320.0).abs() < 1e-9);
    assert_eq!(machine.consume_rate(100.0), Some(300.0));
    let crossings = machine.crossings(0.94);
    assert!((crossings[0].hosts - 6000.0 * 0.94 / 330.0).abs() < 1e-9);
    assert!((crossings[1].hosts - 6000.0 * 0.94 / 300.0).abs() < 1e-9);
    assert!((machine.crossing_returned(1.0).unwrap() - 330.0 / 6000.0).abs() < 1e-12);
}

#[test]
fn each_part_binds_where_it_is_the_least() {
    let of = |change: &dyn Fn(&mut Machine)| {
        let mut machine = machine();
        change(&mut machine);
        machine.bound(100.0, 0.5).unwrap().binding
    };
    assert_eq!(of(&|_| ()), Resource::Cells);
    assert_eq!(of(&|it| it.cell_cpu_rate = Some(900.0)), Resource::CellCpu);
    assert_eq!(of(&|it| it.cell_link = Some(499.0)), Resource::CellLinks);
    assert_eq!(of(&|it| it.host_link = Some(29.0)), Resource::HostLinks);
    assert_eq!(of(&|it| it.fabric = Some(2999.0)), Resource::Fabric);
    let shared = Some(Shared { processors: 2, s_per_byte: 0.001 });
    assert_eq!(of(&|it| it.shared = shared), Resource::Processors);
    assert!(Machine::default().bound(1.0, 1.0).is_none());
}

#[test]
fn one_more_of_what_does_not_bind_gains_nothing() {
    let gains = machine().gains(1, 0.94);
    let of = |what: &str| gains.iter().find(|gain| gain.what == what).unwrap().gained;
    assert!(of("cell").abs() < 1e-12);
    assert!((of("host") - (2.0 * 320.0 / 330.0 - 1.0)).abs() < 1e-9);
    let gains = machine().gains(30, 0.94);
    let of = |what: &str| gains.iter().find(|gain| gain.what == what).unwrap().gained;
    assert!(of("host").abs() < 1e-12);
    assert!((of("cell") - 1.0 / 6.0).abs() < 1e-9);
}

fn measured(name: &str, hosts: u32, cells: u32, seconds: f64, wire: f64) -> Measured {
    Measured {
        name: name.to_owned(),
        seconds: Some(seconds),
        hosts: Some(hosts),
        cells: Some(cells),
        disk_bytes: Some(1e6),
        wire_bytes: Some(wire),
        ..Measured::default()
    }
}

#[test]
fn runs_bound_by_cells_say_nothing_of_hosts() {
    // Twice the cells are twice as fast, so four are predicted to be four times as fast.
    let runs = [measured("1", 1, 1, 100.0, 1e3), measured("2", 1, 2, 50.0, 1e3)];
    let (machine, fitted) = fit(&runs, 4, None, None).unwrap();
    assert_eq!((fitted.len(), machine.consume.len()), (2, 0));
    let bound = machine.bound(1.0, 1e-3).unwrap();
    assert_eq!((bound.binding, bound.bytes_per_s), (Resource::Cells, 40_000.0));
}

#[test]
fn processors_that_all_share_bind() {
    let with_cpu = |run: Measured, cell: f64| Measured {
        cell_cpu_s: Some(cell),
        host_cpu_s: Some(1.0),
        ..run
    };
    let runs = [
        with_cpu(measured("1", 1, 1, 100.0, 1e3), 99.0),
        with_cpu(measured("2", 1, 2, 50.0, 1e3), 99.0),
    ];
    let (machine, _) = fit(&runs, 4, Some(2), None).unwrap();
    let bound = machine.bound(1.0, 1e-3).unwrap();
    assert_eq!(bound.binding, Resource::Processors);
    assert!((bound.bytes_per_s - 20_000.0).abs() < 1e-6, "{bound:?}");
}

#[test]
fn runs_that_say_nothing_of_rates_are_refused() {
    assert_eq!(fit(&[], 1, None, None), Err(FitError::NoRun));
    let untimed = Measured { seconds: None, ..measured("a", 1, 1, 1.0, 1.0) };
    assert_eq!(fit(&[untimed], 1, None, None), Err(FitError::NoRun));
    for (seconds, wire) in
        [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, f64::INFINITY)]
    {
        let error = fit(&[measured("a", 1, 1, seconds, wire)], 1, None, None).unwrap_err();
        assert!(matches!(error, FitError::Value { .. }), "{seconds} {wire}: {error:?}");
    }
}

proptest! {
    #[test]
    fn more_hosts_are_never_slower_and_the_crossing_is_where_they_stop_to_gain(
        cells in 1_u32..50,
        scan in 1.0_f64..1e10,
        consume in 1.0_f64..1e10,
        returned in 1e-6_f64..1.0,
    ) {
        let consume = vec![Consumed { hosts: 1, bytes_per_s: consume }];
        let machine = Machine { cells, scan_rate: Some(scan), consume, ..Machine::default() };
        let rate = |hosts: f64| machine.bound(hosts, returned).unwrap().bytes_per_s;
        for crossing in machine.crossings(returned) {
            let (below, above) = (crossing.hosts * 0.999, crossing.hosts * 1.001);
            prop_assert!(rate(below) < rate(above));
            prop_assert!((rate(above) / rate(2.0 * above) - 1.0).abs() < 1e-9);
            let share = machine.crossing_returned(crossing.hosts).unwrap();
            prop_assert!((share / returned - 1.0).abs() < 1e-9);
        }
        for hosts in 1..20 {
            prop_assert!(rate(f64::from(hosts)) <= rate(f64::from(hosts + 1)) * (1.0 + 1e-12));
        }
    }

    /// Fitting the runs of a machine recovers that machine.
    #[test]
    fn fitting_finds_the_rates_of_a_machine(
        scan in 1e3_f64..1e9,
        slow in 0.001_f64..0.5,
        returned in 0.1_f64..1.0,
    ) {
        let consume = slow * scan * returned;
        let cells_bind = measured("filtered", 1, 1, 1e6 / scan, 1.0);
        let hosts_bind = Measured {
            returned_of_read: Some(returned),
            ..measured("all", 1, 1, 1e6 * returned / consume, 1.0)
        };
        let (machine, _) = fit(&[cells_bind, hosts_bind], 1, None, None).unwrap();
        prop_assert!((machine.scan_rate.unwrap() / scan - 1.0).abs() < 1e-9);
        prop_assert!((machine.consume[0].bytes_per_s / consume - 1.0).abs() < 1e-9);
    }
}
