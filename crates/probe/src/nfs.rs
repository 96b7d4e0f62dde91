//! NFS as its client sees it: the reads, writes and commits of each mount, and how their time was
//! spent.

use std::collections::BTreeMap;

use blockstone_base::column::Origin;
use blockstone_sys::proc::numbers;

use crate::rising::{self, Rising};
use crate::source::{Source, all_unmeasured};
use crate::{Context, Probe, Row, Schema, Unmeasured};

/// The schema: one row per mount point.
pub const SCHEMA: Schema = Schema {
    probe: "nfs",
    doc: "Each NFS mount: requests, bytes, time waiting to be sent and time at the server.",
    columns: &[
        STATS.count("read_ios", "READ requests completed."),
        STATS.bytes("read_bytes", "Bytes read from the server."),
        STATS_TIME.time("read_queue_ns", "Time READ requests waited to be sent, summed."),
        STATS_TIME
            .time("read_server_ns", "Time from sending a READ request to its answer, summed."),
        STATS_TIME.time("read_ns", "Time from creating a READ request to its completion, summed."),
        STATS.count("write_ios", "WRITE requests completed."),
        STATS.bytes("write_bytes", "Bytes written to the server."),
        STATS_TIME.time("write_queue_ns", "Time WRITE requests waited to be sent, summed."),
        STATS_TIME
            .time("write_server_ns", "Time from sending a WRITE request to its answer, summed."),
        STATS_TIME
            .time("write_ns", "Time from creating a WRITE request to its completion, summed."),
        STATS.count("flush_ios", "COMMIT requests completed."),
        STATS_TIME
            .time("flush_ns", "Time from creating a COMMIT request to its completion, summed."),
        STATS.count("retransmits", "READ, WRITE and COMMIT requests retransmitted."),
        STATS.count("timeouts", "READ, WRITE and COMMIT requests that timed out."),
    ],
};

const SOURCE: &str = "/proc/self/mountstats";
const STATS: Origin = Origin(SOURCE);
const STATS_TIME: Origin = Origin("/proc/self/mountstats (resolution 1 ms)");
const COLUMNS: usize = SCHEMA.columns.len();
const MILLISECOND_NS: u64 = 1_000_000;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let absent = "the kernel is built without an NFS client";
    let stats = Source::open(&context.root, SOURCE, absent);
    Box::new(Nfs { stats, counters: BTreeMap::new(), lacking: Vec::new() })
}

#[derive(Debug)]
struct Nfs {
    stats: Source,
    counters: BTreeMap<String, [Rising; COLUMNS]>,
    /// Columns that no mount has, if there are any mounts.
    lacking: Vec<usize>,
}

impl Probe for Nfs {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let text = self.stats.read().unwrap_or_default();
        let mounts = mounts(&String::from_utf8_lossy(text));
        let lacks = |index: &usize| mounts.values().all(|row| row[*index].is_none());
        self.lacking = (0..COLUMNS).filter(|index| !mounts.is_empty() && lacks(index)).collect();
        rising::rows(&mut self.counters, mounts, rows);
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let lacking = |index: &usize| {
            let why = format!("{SOURCE} of this kernel does not report it for any mount");
            (SCHEMA.columns[*index].name, Unmeasured::NotInVersion(why))
        };
        let some = || self.lacking.iter().map(lacking).collect();
        self.stats.unmeasured().map_or_else(some, |why| all_unmeasured(&SCHEMA, why))
    }
}

/// Returns the columns of each NFS mount, by mount point, from the text of mountstats: a line
/// `device SERVER:/PATH mounted on /MOUNT with fstype nfs4 statvers=1.1` begins a mount; `bytes:`
/// has six totals before the pages, of which the fifth and sixth are the bytes that the server read
/// and wrote; an operation has requests, transmissions, timeouts, bytes sent, bytes received, and
/// ms in the queue, at the server and in total.
fn mounts(text: &str) -> BTreeMap<String, [Option<u64>; COLUMNS]> {
    let mut found = BTreeMap::new();
    let mut current: Option<(String, [Option<u64>; COLUMNS])> = None;
    for line in text.lines() {
        if line.starts_with("device ") {
            found.extend(current.take());
            let rest = line.split_once(" mounted on ").map_or("", |(_, rest)| rest);
            let parts = rest.split_once(" with fstype ");
            let nfs =
                parts.filter(|(_, kind)| kind.starts_with("nfs") && kind.contains("statvers"));
            current = nfs.map(|(mount, _)| (mount.to_owned(), [None; COLUMNS]));
            continue;
        }
        let Some((_, row)) = &mut current else { continue };
        let Some((name, values)) = line.trim().split_once(':') else { continue };
        let values: Vec<u64> = numbers(values.as_bytes()).collect();
        let ms = |index: usize| values.get(index).map(|ms| ms * MILLISECOND_NS);
        match name {
            "bytes" => (row[1], row[6]) = (values.get(4).copied(), values.get(5).copied()),
            "READ" => row_of(&mut row[0..5], values.first().copied(), [ms(5), ms(6), ms(7)]),
            "WRITE" => row_of(&mut row[5..10], values.first().copied(), [ms(5), ms(6), ms(7)]),
            "COMMIT" => (row[10], row[11]) = (values.first().copied(), ms(7)),
            _ => {}
        }
        if let ("READ" | "WRITE" | "COMMIT", [requests, sent, timeouts, ..]) = (name, &values[..]) {
            row[12] = Some(row[12].unwrap_or(0) + sent.saturating_sub(*requests));
            row[13] = Some(row[13].unwrap_or(0) + timeouts);
        }
    }
    found.extend(current);
    found
}

/// Fills in requests and times of one operation, around its bytes, which come from another line.
fn row_of(row: &mut [Option<u64>], requests: Option<u64>, times: [Option<u64>; 3]) {
    row[0] = requests;
    row[2..5].copy_from_slice(&times);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nfs_mount_is_read_and_others_are_not() {
        let text = "device proc mounted on /proc with fstype proc\n\
            device filer:/vol/ora mounted on /u02/ora data with fstype nfs4 statvers=1.1\n\
            \topts:\trw,vers=4.1\n\tage:\t12\n\
            \tbytes:\t1 2 3 4 81920 16384 20 4\n\
            \tper-op statistics\n\
            \t        READ: 10 11 1 2000 82000 5 70 80 0\n\
            \t       WRITE: 2 2 0 17000 300 1 9 11 0\n\
            \t      COMMIT: 1 1 0 200 200 0 4 4 0\n\
            device tmpfs mounted on /tmp with fstype tmpfs\n";
        let found = mounts(text);
        let row = found["/u02/ora data"].map(Option::unwrap);
        assert_eq!(found.len(), 1);
        assert_eq!(row[..5], [10, 81_920, 5_000_000, 70_000_000, 80_000_000]);
        assert_eq!(row[5..10], [2, 16_384, 1_000_000, 9_000_000, 11_000_000]);
        assert_eq!(row[10..], [1, 4_000_000, 1, 1]);
    }
}
