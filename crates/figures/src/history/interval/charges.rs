//! Whether the bytes that the kernel charged to a process as written are evidence.
//!
//! A buffered write is charged when it makes pages dirty. A file system with large folios (XFS,
//! ext4 from Linux 6.16) charges the whole folio for each page, up to 2 MiB for a write of 4 KiB.
//! Such a charge exceeds both what the process wrote and what the devices did. One that exceeds the
//! calls alone may be right: `io_uring` and Linux AIO write without the calls that are counted.

use blockstone_base::column::Kind;
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
/// Why such bytes are no evidence, for people.
pub const OVERCHARGED: &str = "\
    charged for writing are more bytes than system calls wrote and disks moved: the kernel charges \
    a buffered write with the whole folio of each page it makes dirty";
/// A charge may be greater than what happened by this factor: pages that are written in part.
const SLACK: f64 = 1.1;

impl<'a> Interval<'a> {
    /// Disks and others beneath which the kernel knows no device: together they moved what all
    /// devices did.
    pub fn disks(&self) -> Vec<&'a str> {
        let is_end = |name: &&str| {
            let text = |column| self.text("block", name, column);
            text("device_kind") == Some("disk") && text("beneath").is_none_or(str::is_empty)
        };
        self.objects("block").into_iter().filter(is_end).collect()
    }

    /// Whether a column of the probe counts such bytes for any of its objects.
    pub(super) fn has_overcharged(&self, probe: &str) -> bool {
        let columns = CHARGED.iter().filter(|(of, ..)| *of == probe);
        let mut objects =
            columns.flat_map(|&(_, column, _)| self.names(probe).map(move |o| (o, column)));
        objects.any(|(object, column)| self.is_overcharged(probe, object, column))
    }

    /// What a column grew by, unless it counts bytes charged as written that are no evidence.
    pub(super) fn believed(&self, grown: u64, of: (&str, &str, &str)) -> Grown {
        if self.is_overcharged(of.0, of.1, of.2) { Err(Missing::NoEvidence) } else { Ok(grown) }
    }

    /// All that is recorded decides, or the window, so that the parts of either are judged alike.
    fn is_overcharged(&self, probe: &str, object: &str, column: &str) -> bool {
        let Some(&(_, _, calls)) = CHARGED.iter().find(|(p, c, _)| (*p, *c) == (probe, column))
        else {
            return false;
        };
        let exceeds = |charged: u64, by: u64| charged as f64 > SLACK * by as f64;
        let known = |object| Some((self.whole(probe, object, column)?, object));
        let Some((charged, _)) = known(object) else { return false };
        // What the instance sent to its disks is known where its calls are not counted.
        let sent = || self.names("disk").filter_map(|disk| self.whole("disk", disk, "write_bytes"));
        let Some(called) = self.whole(probe, object, calls) else { return false };
        if !exceeds(charged, called.max(sent().sum())) {
            return false;
        }
        let all: u64 = self.names(probe).filter_map(known).map(|(charged, _)| charged).sum();
        let moved = self.disks().into_iter().filter_map(|d| self.whole("block", d, "write_bytes"));
        exceeds(all, moved.sum())
    }

    fn names(&self, probe: &str) -> impl Iterator<Item = &'a str> {
        let objects = self.probe(probe).into_iter().flat_map(|probe| &probe.objects);
        objects.map(|(name, _)| name.as_str())
    }

    /// By how much a counter grew from its first row in the recording, or in the window, to the
    /// last.
    fn whole(&self, probe: &str, object: &str, column: &str) -> Option<u64> {
        let (track, index) = self.find(probe, object, column, Kind::Counter).ok()?;
        let (from_ns, to_ns) = self.held.map_or((0, u64::MAX), |held| held.window_ns);
        let mut rows = self.rows_of(track, from_ns, to_ns).filter_map(|row| number(row, index));
        let (_, first) = rows.next()?;
        let (_, last) = rows.next_back()?;
        last.checked_sub(first).and_then(|by| u64::try_from(by).ok())
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Unmeasured};
    use blockstone_record::testing;

    use super::*;
    use crate::History;

    /// A process that in ten seconds wrote so much by calls and was charged so much, and a disk
    /// that wrote so much.
    fn charged(calls: i64, charged: i64, disk: Option<i64>) -> History {
        let counter = |name| (Kind::Counter, name);
        let server = testing::probe("server", &[CALLS, "write_bytes"].map(counter));
        let states = ["device_kind", "beneath"].map(|name| (Kind::State, name));
        let [kind, beneath] = states;
        let block = testing::probe("block", &[counter("write_bytes"), kind, beneath]);
        let mut history = History::new(vec![server, block]);
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
        let reasons: Vec<_> = interval.reasons("server").collect();
        assert!(matches!(reasons[..], [Unmeasured::NoEvidence(_)]), "{reasons:?}");
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
        assert_eq!(interval.interval(0, 10).reasons("server").count(), 0);
    }
}
