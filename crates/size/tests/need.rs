//! From rows of a history to a need: clusters with missing instances, gaps, peaks of sums.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use blockstone_base::column::{Cell, Origin, Schema};
use blockstone_base::database::LOAD;
use blockstone_figures::{History, ProbeInfo};
use blockstone_size::hours::{Filter, clock};
use blockstone_size::need::Need;
use blockstone_size::{Database, Observation, Question, Source, databases, observations};

const HOUR_S: u64 = 3_600;
/// 2026-11-23, a Monday, 0:00.
const MONDAY_S: i128 = 1_795_392_000;
const DOUBLED: Question = Question {
    penalty: 2.0,
    filter: Filter { hours: None, weekdays: false, month_end_days: None },
};

fn history() -> History {
    let mut history = History::new(vec![ProbeInfo::of(&LOAD)]);
    history.set_clock(0, MONDAY_S * 1_000_000_000);
    history
}

/// Adds a row of `object` at an hour: seconds counted, reads, writes; `None` leaves a cell empty.
fn row(
    history: &mut History,
    object: &str,
    hour: u64,
    counted: [Option<i64>; 3],
    most: Option<i64>,
) {
    let cells = LOAD.columns.iter().map(|column| {
        let value = match column.name {
            "elapsed_ns" => counted[0].map(|s| s * 1_000_000_000),
            "read_ios" => counted[1],
            "write_ios" => counted[2],
            "most_averaging_ns" => most.map(|_| 60_000_000_000),
            "most_read_ios" => most.map(|rate| rate * 60),
            "most_write_ios" => most.map(|_| 0),
            _ => None,
        };
        value.map_or(Cell::Unmeasured, Cell::Value)
    });
    let (cells, t_ns) = (cells.collect(), hour * HOUR_S * 1_000_000_000);
    history.push(LOAD.probe, t_ns, object, cells);
}

/// Adds hours from `from` on, each with these reads and writes per second.
fn hours(history: &mut History, object: &str, from: u64, rates: &[(i64, i64)]) {
    let (mut seconds, mut reads, mut writes) = (0, 0, 0);
    row(history, object, from, [Some(0); 3], None);
    for (hour, (read, write)) in (from + 1..).zip(rates) {
        seconds += HOUR_S as i64;
        reads += read * HOUR_S as i64;
        writes += write * HOUR_S as i64;
        row(history, object, hour, [seconds, reads, writes].map(Some), Some(read * 3));
    }
}

fn observed(history: &History) -> Vec<Observation> {
    let (source, found) = observations(history, &[], &[], "");
    assert_eq!(source, Source::Load);
    found
}

fn sized(history: &History) -> (Vec<Database>, Need) {
    let databases = databases(&observed(history));
    let need = Need::of(&databases, &DOUBLED).unwrap();
    (databases, need)
}

#[test]
fn rates_are_increases_by_the_exact_time_and_a_gap_is_no_interval() {
    let mut history = history();
    row(&mut history, "A/1", 0, [Some(0); 3], None);
    // The snapshots are an hour apart, but the database counted 3,500 s.
    row(&mut history, "A/1", 1, [Some(3_500), Some(35_000), Some(7_000)], None);
    row(&mut history, "A/1", 2, [None; 3], None);
    row(&mut history, "A/1", 5, [Some(3_500), Some(35_000), Some(7_000)], None);
    row(&mut history, "A/1", 6, [Some(7_100), Some(34_000), Some(14_200)], None);
    let found = observed(&history);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].reads_per_s, found[0].writes_per_s), (Some(10.0), Some(2.0)));
    assert_eq!(
        (found[0].seconds, clock(found[0].begin_s)),
        (3_500.0, "2026-11-23T00:01:40".into())
    );
    assert_eq!(found[1].reads_per_s, None, "the counter was set back");
    assert_eq!(found[1].writes_per_s, Some(2.0));
    assert_eq!((found[0].name(), found[0].most), ("A/1".to_owned(), None));
}

#[test]
fn instances_add_up_and_a_missing_one_makes_a_lower_bound() {
    let mut history = history();
    hours(&mut history, "RAC/1", 0, &[(100, 10), (100, 10), (500, 10)]);
    hours(&mut history, "RAC/2", 0, &[(900, 0), (50, 0)]);
    let (databases, need) = sized(&history);
    let sums: Vec<f64> =
        databases[0].snapshots.iter().filter_map(|it| it.load.hardware_iops(2.0)).collect();
    assert_eq!(sums, [1_020.0, 170.0, 520.0]);
    assert_eq!(need.partial, (1, 3));
    let together = need.consolidation.unwrap();
    assert_eq!((together.of, together.sum_of_peaks), ("instances", 520.0 + 900.0));
    assert_eq!((together.peak_of_sums, together.parts[0].name.as_str()), (1_020.0, "2"));
    assert_eq!(together.most, Some(3_000.0), "300 + 2,700 in the first hour");
    assert_eq!(need.hardware_iops.max, Some(1_020.0));
    assert_eq!(need.hardware_iops.p50, None, "of three intervals");
}

#[test]
fn a_report_of_the_whole_cluster_is_not_added_to_its_instances() {
    let mut history = history();
    hours(&mut history, "RAC/*", 0, &[(300, 0), (400, 0)]);
    hours(&mut history, "RAC/1", 0, &[(100, 0)]);
    hours(&mut history, "RAC/2", 0, &[(200, 0)]);
    let (databases, need) = sized(&history);
    let sums: Vec<f64> =
        databases[0].snapshots.iter().filter_map(|it| it.load.hardware_iops(2.0)).collect();
    assert_eq!(sums, [300.0, 400.0]);
    assert_eq!(need.partial.0, 0, "the whole cluster lacks none");
}

#[test]
fn penalties_come_before_percentiles() {
    let mut history = history();
    // Hours that read and hours that write: p95 of reads + 2 × p95 of writes would be 2,900.
    let rates: Vec<(i64, i64)> =
        (0..100).map(|hour| if hour % 2 == 0 { (900, 0) } else { (0, 1_000) }).collect();
    hours(&mut history, "A/1", 0, &rates);
    let (databases, need) = sized(&history);
    assert_eq!(need.hardware_iops.p95.map(|it| it.value), Some(2_000.0));
    let demand = need.demand(&databases, &DOUBLED, "p95");
    assert_eq!((demand.reads_per_s, demand.writes_per_s), (Some(0.0), Some(1_000.0)));
    let p50 = need.hardware_iops.p50.unwrap();
    assert_eq!((p50.low, p50.value, p50.high), (900.0, 1_450.0, 2_000.0));
    let at_night = Filter { hours: Some((0, 6)), weekdays: true, month_end_days: None };
    let night = Need::of(&databases, &Question { penalty: 2.0, filter: at_night }).unwrap();
    assert_eq!((night.hardware_iops.samples, night.filtered), (28, 72));
}

#[test]
fn the_peak_of_sums_is_less_than_the_sum_of_peaks_of_databases_with_other_hours() {
    let mut history = history();
    // One is busy at noon, the other at midnight a year later.
    let day = |at: usize| (0..24).map(|hour| (if hour == at { 1_000 } else { 100 }, 0)).collect();
    let noon: Vec<(i64, i64)> = day(12);
    let midnight: Vec<(i64, i64)> = day(0);
    hours(&mut history, "NOON/1", 0, &noon);
    hours(&mut history, "NIGHT/1", 52 * 168, &midnight);
    let (_, need) = sized(&history);
    let together = need.consolidation.unwrap();
    assert_eq!((together.of, together.sum_of_peaks), ("databases", 2_000.0));
    assert_eq!((together.peak_of_sums, together.at.as_str()), (1_100.0, "Monday 0:00"));
    assert_eq!(together.parts[0].name, "NIGHT");
    assert_eq!(need.hardware_iops.samples, 24);
    assert_eq!(need.hardware_iops.max, Some(1_100.0));
}

#[test]
fn the_peak_factor_is_that_of_the_median_interval() {
    let mut history = history();
    hours(&mut history, "A/1", 0, &[(100, 10), (100, 10), (100, 10), (10, 0), (100, 10)]);
    let (_, need) = sized(&history);
    assert_eq!(need.peak_factor, Some(300.0 / 120.0));
}

/// Returns a history of block devices without rows.
fn of_devices() -> History {
    const STAT: Origin = Origin("test");
    const BLOCK: Schema = Schema {
        probe: "block",
        doc: "Devices.",
        columns: &[
            STAT.state("device_kind", "Kind."),
            STAT.state("beneath", "Below it."),
            STAT.count("read_ios", "Reads."),
            STAT.bytes("read_bytes", "Bytes read."),
            STAT.count("write_ios", "Writes."),
            STAT.bytes("write_bytes", "Bytes written."),
        ],
    };
    let mut history = History::new(vec![ProbeInfo::of(&BLOCK)]);
    history.set_clock(0, MONDAY_S * 1_000_000_000);
    history
}

#[test]
fn the_load_of_a_run_is_that_of_its_devices() {
    let mut history = of_devices();
    for s in 0..=10 {
        history.push("host", s as u64 * 1_000_000_000, "", Vec::new());
        for (device, kind, beneath, reads) in
            [("loop0", "loop", "vda", 1_000), ("vda", "disk", "", 9_000)]
        {
            let [kind, beneath] = [kind, beneath].map(|text| Cell::Text(text.into()));
            let counts = [reads, 4096 * reads, 10, 4096].map(|per_s| Cell::Value(per_s * s));
            let cells = [kind, beneath].into_iter().chain(counts).collect();
            history.push("block", s as u64 * 1_000_000_000, device, cells);
        }
    }
    let reads = |devices: &[&str]| {
        let (source, found) = observations(&history, &[], devices, "run");
        (source, found[0].reads_per_s)
    };
    assert_eq!(reads(&["loop0", "vda"]), (Source::Devices, Some(1_000.0)));
    assert_eq!(reads(&[]), (Source::Host, Some(9_000.0)));
}

#[test]
fn a_device_that_moves_more_than_all_disks_does_not_lie_on_them() {
    let mut history = of_devices();
    for s in 0..=10 {
        let t_ns = s as u64 * 1_000_000_000;
        history.push("host", t_ns, "", Vec::new());
        for (device, kind, reads) in [
            ("sda", Some("disk"), 100),
            ("sda1", Some("partition"), 100),
            ("own", None, 900),
            ("vg-a", None, 90),
        ] {
            let kind = kind.map_or(Cell::Unmeasured, |kind| Cell::Text(kind.into()));
            let counts = [reads, 4096 * reads, 1, 4096].map(|per_s| Cell::Value(per_s * s));
            let cells = [kind, Cell::Unmeasured].into_iter().chain(counts).collect();
            history.push("block", t_ns, device, cells);
        }
    }
    let (_, found) = observations(&history, &[], &[], "host");
    assert_eq!(found[0].reads_per_s, Some(1_000.0));
    let left_out = blockstone_size::left_out(&history, &[]);
    let names: Vec<&str> = left_out.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["sda1", "vg-a"]);
    assert_eq!(left_out[0].why, "a part of a disk that is counted");
}
