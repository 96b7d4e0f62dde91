//! The same bytes as counted by three layers: the database, the operating system for its processes,
//! and the block devices.

use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use crate::table::{Shape, Share, Value, View, flow, text, unmerged};

pub const VIEW: View = View {
    name: "ledger",
    title: "Ledger",
    doc: "The same bytes in three layers: as reported by the database, as requested by its \
          processes and charged to them, and as moved by the disks.",
    probe: "server",
    shape: Shape::Table,
    columns: &[
        text("direction", "", "Reads or writes."),
        flow(
            "claimed_bytes_per_s",
            "database",
            "Bytes that the database reports as read or written.",
        ),
        flow("requested_bytes_per_s", "system calls", "Bytes moved by its system calls."),
        flow(
            "charged_bytes_per_s",
            "charged",
            "Bytes of these that the kernel charged as storage I/O.",
        ),
        flow("device_bytes_per_s", "disks", "Bytes moved by the disks, for all processes."),
        // Clamped at zero in each slice, so slices do not add up to the whole.
        unmerged(
            "page_cache_share",
            "page cache",
            Share,
            "Share of the bytes of system calls that needed no storage I/O.",
        ),
        // Clamped at zero in each slice, so slices do not add up to the whole.
        unmerged(
            "foreign_share",
            "others",
            Share,
            "Share of the bytes of the disks that was not for this database.",
        ),
    ],
    rows,
};

const SERVER: &str = "server";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    if interval.objects(SERVER).is_empty() {
        return Vec::new();
    }
    vec![
        row(interval, "reads", ["read_bytes", "requested_read_bytes"], Ok(0.0)),
        row(interval, "writes", ["write_bytes", "requested_write_bytes"], redo(interval)),
    ]
}

fn redo(interval: &Interval<'_>) -> Known {
    // A server that does not count redo written at least counts redo generated.
    let redo = interval.moved("instance", "", "redo_written_bytes");
    redo.or_else(|_| interval.moved("instance", "", "redo_bytes")).or(Ok(0.0))
}

/// Returns the bytes that the database reports as written, and those that its processes passed to
/// write system calls.
pub(super) fn written(interval: &Interval<'_>) -> [Known; 2] {
    if !interval.has(SERVER) || interval.objects(SERVER).is_empty() {
        return [Err(Missing::Off); 2];
    }
    let claimed = sum([of_all(interval, "role", "write_bytes"), redo(interval)]);
    [claimed, of_all(interval, SERVER, "requested_write_bytes")]
}

fn of_all(interval: &Interval<'_>, probe: &str, column: &str) -> Known {
    sum(interval.objects(probe).iter().map(|object| interval.moved(probe, object, column)))
}

fn row(
    interval: &Interval<'_>,
    name: &str,
    [bytes, requested]: [&str; 2],
    redo: Known,
) -> Vec<Value> {
    let all = |probe, column| of_all(interval, probe, column);
    let claimed = sum([all("role", bytes), redo]);
    let (asked, charged) = (all(SERVER, requested), all(SERVER, bytes));
    let disks = sum(interval.disks().iter().map(|disk| interval.moved("block", disk, bytes)));
    // A charge without evidence says nothing about the disks; the system calls do.
    let ours = if charged == Err(Missing::NoEvidence) { asked } else { charged };
    let per_s = |moved: Known| Value::from(moved.map(|moved| moved / interval.seconds()));
    let rest = |part: Known, whole: Known| {
        let gone = whole.and_then(|whole| Ok((whole - part?).max(0.0)));
        Value::from(ratio(gone, whole))
    };
    vec![
        Value::from(name),
        per_s(claimed),
        per_s(asked),
        per_s(charged),
        per_s(disks),
        rest(charged, asked),
        rest(ours, disks),
    ]
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    #[test]
    fn charged_folios_are_no_evidence_and_the_calls_tell_what_was_for_others() {
        let counters =
            ["requested_read_bytes", "read_bytes", "requested_write_bytes", "write_bytes"];
        let server = testing::probe("server", &counters.map(|name| (Kind::Counter, name)));
        let moved = ["read_bytes", "write_bytes"].map(|name| (Kind::Counter, name));
        let states = ["device_kind", "beneath"].map(|name| (Kind::State, name));
        let block = testing::probe("block", &[moved, states].concat());
        let mut history = History::new(vec![server, block]);
        for (t_ns, by) in [(0, 0), (1_000_000_000, 1_000)] {
            let server = [4 * by, 3 * by, 48 * by, 526 * by].map(Cell::Value);
            history.push("server", t_ns, "session", server.into());
            let mut disk = vec![Cell::Value(6 * by), Cell::Value(64 * by)];
            disk.extend(["disk", ""].map(|text| Cell::Text(text.into())));
            history.push("block", t_ns, "vda", disk);
        }
        let rows = rows(&history.interval(0, 1_000_000_000));
        let no_evidence = Value::Missing(Missing::NoEvidence);
        let columns = |row: &[Value]| row[3..].to_vec();
        let number = Value::from;
        assert_eq!(columns(&rows[0]), [3_000.0, 6_000.0, 0.25, 0.5].map(number));
        let writes = [no_evidence.clone(), number(64_000.0), no_evidence, number(0.25)];
        assert_eq!(columns(&rows[1]), writes);
    }
}
