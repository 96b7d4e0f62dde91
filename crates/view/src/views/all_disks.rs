//! The disks of a host together, as monitors count them that do not tell them apart.

use crate::table::{Shape, View, count, derived, flow};

pub const VIEW: View = View {
    name: "all-disks",
    title: "All disks together",
    doc: "The disks of a host together, from monitors that count them so: vmstat, sar -b, dstat.",
    probe: "disks",
    shape: Shape::Record,
    columns: &[
        count("read_ios_per_s", "r/s", "Reads completed per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        count("write_ios_per_s", "w/s", "Writes completed per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
    ],
    rows: |interval| {
        let cell = |heading| derived(interval, VIEW.probe, &[""], heading);
        vec![VIEW.columns.iter().map(cell).collect()]
    },
};

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_base::table::Value;
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    #[test]
    fn totals_of_a_monitor_that_does_not_tell_disks_apart_are_shown() {
        let probe = testing::probe(VIEW.probe, &[(Kind::Counter, "read_bytes write_bytes")]);
        let mut history = History::new(vec![probe]);
        for by in [0_u64, 1] {
            let cells = [4096, 512].map(|bytes| Cell::from(by * bytes)).into();
            history.push(VIEW.probe, by * 1_000_000_000, "", cells);
        }
        let rows = (VIEW.rows)(&history.interval(0, 1_000_000_000));
        let of = |key| rows[0][VIEW.column(key).unwrap()].clone();
        assert_eq!(of("read_bytes_per_s"), Value::Number(4096.0));
        assert_eq!(of("write_bytes_per_s"), Value::Number(512.0));
        assert!(matches!(of("read_ios_per_s"), Value::Missing(_)));
    }
}
