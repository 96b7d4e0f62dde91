//! Whether the bytes that the kernel charged to a process as written can be used as evidence.
//!
//! A buffered write is charged when it makes pages dirty. A file system with large folios (XFS,
//! ext4 from Linux 6.16) charges the whole folio for each page, up to 2 MiB for a write of 4 KiB.
//! A charge above the bytes of the counted calls may still be right: `io_uring` and Linux AIO write
//! without those calls. In that case the disks moved as much. As others may have written to the
//! disks too, the database must also report that much as written, or the block layer must have
//! counted that much for these processes, where either is known.

use blockstone_base::column::{Cell, Kind};
use blockstone_base::table::Missing;

use super::{Grown, Interval, number};

/// Probes whose objects are processes: the column of the bytes charged, and that of the bytes
/// passed to system calls.
const CHARGED: [(&str, &str, &str); 4] = [
    ("process", "write_bytes", CALLS),
    ("processes", "write_bytes", CALLS),
    ("server", "write_bytes", CALLS),
    ("session_statistics", "charged_write_bytes", CALLS),
];
const CALLS: &str = "requested_write_bytes";
/// The series counted in the kernel.
const TRACED: &str = "kernel_io";
/// Why such bytes are not evidence, for people.
pub const OVERCHARGED: &str = "\
    more bytes are charged as written than system calls, the database or the disks account for: \
    the kernel charges a buffered write with the whole folio of each page it makes dirty";
/// Factor by which a charge may exceed what was written: pages may be written in part.
const SLACK: f64 = 1.1;

impl<'a> Interval<'a> {
    /// Returns the disks and other devices below which the kernel knows no further device. Together
    /// they moved what all devices did.
    pub fn disks(&self) -> Vec<&'a str> {
        let is_end = |name: &&str| {
            let text = |column| self.text("block", name, column);
            text("device_kind") == Some("disk") && text("beneath").is_none_or(str::is_empty)
        };
        self.objects("block").into_iter().filter(is_end).collect()
    }

    /// Returns those of the devices that lie on top of the others: their counters have each request
    /// once, before a layer beneath splits, mirrors or merges it.
    pub fn topmost<'b>(&self, devices: &[&'b str]) -> Vec<&'b str> {
        let beneath = |name: &str| self.text("block", name, "beneath").unwrap_or("");
        let is_beneath =
            |name: &str| devices.iter().any(|of| beneath(of).split(' ').any(|it| it == name));
        let known = self.objects("block");
        let is_top = |name: &&str| known.contains(name) && !is_beneath(name);
        devices.iter().copied().filter(is_top).collect()
    }

    /// Returns whether the probe has a column of such bytes that is overcharged for any of its
    /// objects.
    pub(super) fn has_overcharged(&self, probe: &str) -> bool {
        let columns = CHARGED.iter().filter(|(of, ..)| *of == probe);
        let mut objects =
            columns.flat_map(|&(_, column, _)| self.names(probe).map(move |o| (o, column)));
        objects.any(|(object, column)| self.is_overcharged(probe, object, column))
    }

    /// Returns the growth of a column, unless it counts bytes charged as written that are not
    /// evidence.
    pub(super) fn believed(&self, grown: u64, of: (&str, &str, &str)) -> Grown {
        if self.is_overcharged(of.0, of.1, of.2) { Err(Missing::NoEvidence) } else { Ok(grown) }
    }

    /// The whole recording decides, or the whole window, so that all parts of either are judged
    /// alike.
    fn is_overcharged(&self, probe: &str, object: &str, column: &str) -> bool {
        let Some(&(_, _, calls)) = CHARGED.iter().find(|(p, c, _)| (*p, *c) == (probe, column))
        else {
            return false;
        };
        let exceeds = |charged: u64, by: u64| charged as f64 > SLACK * by as f64;
        let Some(charged) = self.whole(probe, object, column) else { return false };
        let Some(called) = self.whole(probe, object, calls) else { return false };
        if !exceeds(charged, called) {
            return false;
        }
        let Some(all) = self.sum(probe, self.names(probe), column) else { return false };
        let explains = |by: Option<u64>| !exceeds(all, by.unwrap_or(0));
        let moved = explains(self.sum("block", self.disks().into_iter(), "write_bytes"));
        let written = match probe {
            // Bytes that the instance in the process sent to its disks.
            "process" => {
                let sent = self.sum("disk", self.names("disk"), "write_bytes");
                return !moved && !explains(sent);
            }
            "processes" => self.traced(probe),
            _ => self.reported(),
        };
        !moved || written.is_some_and(|written| !explains(Some(written)))
    }

    /// Returns the bytes that a database reports as written.
    fn reported(&self) -> Option<u64> {
        let blocks = self.sum("role", self.names("role"), "write_bytes")?;
        let redo = ["redo_written_bytes", "redo_bytes"];
        Some(blocks + redo.iter().find_map(|name| self.whole("instance", "", name)).unwrap_or(0))
    }

    /// Returns the bytes that the block layer counted for the objects of a probe, which are roles.
    fn traced(&self, probe: &str) -> Option<u64> {
        let state = |object: &'a str, column| {
            let (track, index) = self.find(TRACED, object, column, Kind::State).ok()?;
            match &self.rows_of(track, 0, u64::MAX).next_back()?.cells[index] {
                Cell::Text(text) => Some(text.as_ref()),
                _ => None,
            }
        };
        let is_ours = |object: &&'a str| {
            let role = state(object, "role");
            state(object, "layer") == Some("block")
                && state(object, "operation") == Some("write")
                && self.names(probe).any(|name| role == Some(name))
        };
        let counted = self.names(TRACED).filter(is_ours).filter_map(|object| {
            let (track, index) = self.find(TRACED, object, "bytes", Kind::Counter).ok()?;
            let (from_ns, to_ns) = self.judged();
            let stood = |from_ns, to_ns| {
                let mut rows = self.rows_of(track, from_ns, to_ns).rev();
                rows.find_map(|row| number(row, index)).map_or(0, |(_, count)| count)
            };
            // The counter was at zero before its first row.
            u64::try_from(stood(0, to_ns) - stood(0, from_ns)).ok()
        });
        let is_known = self.names(TRACED).any(|object| state(object, "layer") == Some("block"));
        is_known.then(|| counted.sum())
    }

    /// Returns the summed growth of a counter over all objects that have it.
    fn sum<'b>(
        &self,
        probe: &str,
        objects: impl Iterator<Item = &'b str>,
        column: &str,
    ) -> Option<u64> {
        objects.filter_map(|object| self.whole(probe, object, column)).reduce(|a, b| a + b)
    }

    fn judged(&self) -> (u64, u64) {
        self.held.map_or((0, u64::MAX), |held| held.window_ns)
    }

    fn names(&self, probe: &str) -> impl Iterator<Item = &'a str> {
        let objects = self.probe(probe).into_iter().flat_map(|probe| &probe.objects);
        objects.map(|(name, _)| name.as_str())
    }

    /// Returns the growth of a counter from its first row in the recording, or in the window, to
    /// its last.
    fn whole(&self, probe: &str, object: &str, column: &str) -> Option<u64> {
        let (track, index) = self.find(probe, object, column, Kind::Counter).ok()?;
        let (from_ns, to_ns) = self.judged();
        let mut rows = self.rows_of(track, from_ns, to_ns).filter_map(|row| number(row, index));
        let (_, first) = rows.next()?;
        let (_, last) = rows.next_back()?;
        last.checked_sub(first).and_then(|by| u64::try_from(by).ok())
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::Unmeasured;
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_record::testing;

    use super::*;
    use crate::History;

    /// A process that wrote `calls` bytes by system calls and was charged `charged` bytes in ten
    /// seconds, and a disk that wrote `disk` bytes.
    fn charged(calls: i64, charged: i64, disk: Option<i64>) -> History {
        with(Vec::new(), calls, charged, disk)
    }

    fn with(more: Vec<ProbeInfo>, calls: i64, charged: i64, disk: Option<i64>) -> History {
        let counter = |name| (Kind::Counter, name);
        let server = testing::probe("server", &[CALLS, "write_bytes"].map(counter));
        let states = ["device_kind", "beneath"].map(|name| (Kind::State, name));
        let [kind, beneath] = states;
        let block = testing::probe("block", &[counter("write_bytes"), kind, beneath]);
        let mut history = History::new([vec![server, block], more].concat());
        for s in 0..=10 {
            let part = |whole: i64| Cell::Value(whole * s / 10);
            let t_ns = s as u64 * 1_000_000_000;
            history.push("server", t_ns, "session", vec![part(calls), part(charged)]);
            if let Some(disk) = disk {
                let kind = Cell::Text("disk".into());
                history.push(
                    "block",
                    t_ns,
                    "vda",
                    vec![part(disk), kind, Cell::Text(String::new())],
                );
            }
        }
        history
    }

    fn grown(history: &History, from_s: u64, to_s: u64) -> Grown {
        let interval = history.interval(from_s * 1_000_000_000, to_s * 1_000_000_000);
        interval.grown("server", "session", "write_bytes")
    }

    #[test]
    fn a_charge_above_the_calls_and_the_disks_is_no_evidence() {
        // 200 writes of 8 KiB, as measured on XFS.
        let folios = charged(1_638_400, 201_392_128, Some(1_695_744));
        assert_eq!(grown(&folios, 0, 10), Err(Missing::NoEvidence));
        assert_eq!(grown(&folios, 3, 4), Err(Missing::NoEvidence), "nor is a part of it");
        assert_eq!(grown(&charged(100, 1_000, None), 0, 10), Err(Missing::NoEvidence));
        let interval = folios.interval(0, 10_000_000_000);
        let called = interval.grown("server", "session", CALLS);
        assert_eq!(called, Ok(1_638_400), "the calls are");
        let reasons = interval.reasons("server");
        assert!(matches!(reasons[..], [(Unmeasured::NoEvidence(_), _)]), "{reasons:?}");
    }

    #[test]
    fn what_others_wrote_explains_no_charge_where_the_database_reports_what_it_wrote() {
        let reports = |written: i64, charge: i64| {
            let role = testing::probe("role", &[(Kind::Counter, "write_bytes")]);
            let mut history = with(vec![role], 1_000, charge, Some(10_000_000));
            history.push("role", 0, "session", vec![Cell::Value(0)]);
            history.push("role", 10_000_000_000, "session", vec![Cell::Value(written)]);
            grown(&history, 0, 10)
        };
        assert_eq!(reports(1_100, 9_000_000), Err(Missing::NoEvidence));
        assert_eq!(reports(8_900_000, 9_000_000), Ok(9_000_000), "Linux AIO");
        let above_disks = reports(20_000_000, 12_000_000);
        assert_eq!(above_disks, Err(Missing::NoEvidence), "the page cache took most");
    }

    #[test]
    fn what_others_wrote_explains_no_charge_where_the_block_layer_counts_by_role() {
        let counts = |layer: &str, role: &str, written: i64| {
            let counter = |name| (Kind::Counter, name);
            let processes = testing::probe("processes", &[CALLS, "write_bytes"].map(counter));
            let states = ["layer", "role", "operation"].map(|name| (Kind::State, name));
            let traced = testing::probe(TRACED, &[&states[..], &[counter("bytes")]].concat());
            let mut history = with(vec![processes, traced], 0, 0, Some(10_000_000));
            for (s, of) in [(0, 0), (10, 1)] {
                let cells = [1_000 * of, 9_000_000 * of].map(Cell::Value);
                history.push("processes", s * 1_000_000_000, "fio", cells.into());
            }
            let mut cells: Vec<Cell> =
                [layer, role, "write"].map(|text| Cell::Text(text.into())).into();
            cells.push(Cell::Value(written));
            history.push(TRACED, 10_000_000_000, "one", cells);
            history.interval(0, 10_000_000_000).grown("processes", "fio", "write_bytes")
        };
        assert_eq!(counts("block", "fio", 2_000), Err(Missing::NoEvidence));
        assert_eq!(counts("block", "another", 9_000_000), Err(Missing::NoEvidence));
        assert_eq!(counts("block", "fio", 9_000_000), Ok(9_000_000), "io_uring");
        assert_eq!(counts("tracing", "fio", 9_000_000), Ok(9_000_000), "only the disks are known");
    }

    #[test]
    fn a_charge_that_calls_or_disks_explain_is_believed() {
        assert_eq!(
            grown(&charged(1_000, 1_000, Some(0)), 0, 10),
            Ok(1_000),
            "not yet written back"
        );
        assert_eq!(grown(&charged(0, 1_000, Some(990)), 0, 10), Ok(1_000), "io_uring");
        assert_eq!(grown(&charged(500, 0, Some(990)), 0, 10), Ok(0), "in the page cache");
        let interval = charged(0, 1_000, Some(990));
        assert_eq!(interval.interval(0, 10).reasons("server").len(), 0);
    }
    #[test]
    fn of_a_chain_the_device_on_top_counts() {
        let block = testing::probe("block", &[(Kind::State, "beneath")]);
        let mut history = History::new(vec![block]);
        for (device, beneath) in [("dm-0", "sda1 sdb1"), ("sda1", "sda"), ("sda", ""), ("sdc", "")]
        {
            history.push("block", 0, device, vec![Cell::Text(beneath.into())]);
        }
        let interval = history.interval(0, 1);
        assert_eq!(interval.topmost(&["sda1", "sda", "dm-0", "sdb1"]), ["dm-0"]);
        assert_eq!(interval.topmost(&["sda1", "sdc"]), ["sda1", "sdc"]);
        assert!(interval.topmost(&["nvme0n1"]).is_empty(), "not recorded");
    }
}
