//! Latency distributions of an interval: how many operations fell between which bounds. Requests
//! and system calls are counted in the kernel; waits of a run are in the recording's histograms.

use blockstone_base::column::Cell;
use blockstone_base::histogram::least_samples;
use blockstone_base::table::{Known, Missing};

use super::interval::{Interval, ratio};
use crate::focus::{Focus, INSTANCE};

/// The probe that counts in the kernel.
const KERNEL: &str = "kernel_io";
const OPERATIONS: [&str; 5] = ["read", "write", "flush", "discard", "submit"];
/// Waits of sessions that are one kind of system call: the event, the type of file, the operation.
/// The name is `WAL` or `Wal`, depending on the version. Writes of data are not among them, since
/// extending a file is one too.
const CALLS: [(&str, &str, &str); 6] = [
    ("DataFileRead", "data", "read"),
    ("WALSync", "redo", "flush"),
    ("WALWrite", "redo", "write"),
    ("DataFileSync", "data", "flush"),
    ("BufFileRead", "temp", "read"),
    ("BufFileWrite", "temp", "write"),
];
const FIRST_NS: u64 = 1_024;

/// Number of latency octaves. The first ends at 1.024 µs, each of the others at twice the end of
/// the one before; the last, from 17.2 s on, is unbounded.
pub const OCTAVES: usize = 26;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// Operation that was timed: `read`, `write`, `flush`, `discard`, `submit` or `wait`.
    pub operation: String,
    /// Distribution of the latencies, shortest first.
    pub buckets: Vec<Bucket>,
    /// Sum of their times, in nanoseconds; `None` if only buckets are known.
    pub sum_ns: Option<f64>,
    /// Part of the sum that requests waited to be sent to the device, in nanoseconds; `None` for
    /// anything but requests.
    pub queue_ns: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Lower bound of the latencies, in nanoseconds.
    pub from_ns: u64,
    /// Upper bound in nanoseconds: exclusive, or inclusive if it equals `from_ns`. `None` for the
    /// last bucket.
    pub to_ns: Option<u64>,
    pub count: f64,
}

/// A source of operations that are timed one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timed {
    /// Operations counted in the kernel, for objects whose columns have these values.
    Counted {
        /// Columns of the probe `kernel_io` with their required values.
        states: Vec<(&'static str, String)>,
        /// Whether only client sessions count, of any database.
        of_sessions: bool,
    },
    /// An event of a run, `session/db file sequential read`.
    Event(String),
}

impl Timed {
    /// Returns what times a wait, `None` if nothing does.
    pub fn of_wait(class: &str, event: &str) -> Option<Self> {
        let known = |(name, ..): &&(&str, &str, &str)| name.eq_ignore_ascii_case(event);
        let (_, file_type, operation) = CALLS.iter().filter(|_| class == "IO").find(known)?;
        let states = vec![
            ("layer", "system call".to_owned()),
            ("file_type", (*file_type).to_owned()),
            ("operation", (*operation).to_owned()),
        ];
        Some(Self::Counted { states, of_sessions: true })
    }

    /// Returns what times the wait that samples are narrowed down to.
    pub fn of_focus(focus: &Focus) -> Option<Self> {
        let wait = Self::of_wait(focus.value("wait_class")?, focus.value("event")?)?;
        let instance = focus.value(INSTANCE);
        Some(instance.map_or(wait.clone(), |instance| wait.of_sessions_of(instance)))
    }

    /// The same for the sessions of one of several instances.
    #[must_use]
    pub fn of_sessions_of(self, instance: &str) -> Self {
        match self {
            Self::Counted { mut states, .. } => {
                states.push(("role", format!("{instance}/session")));
                Self::Counted { states, of_sessions: false }
            }
            event @ Self::Event(_) => event,
        }
    }

    /// Returns a description in words: `block, role postgres/session`.
    pub fn name(&self) -> String {
        match self {
            Self::Event(event) => event.clone(),
            Self::Counted { states, of_sessions } => {
                let words = states.iter().map(|(column, value)| match *column {
                    "layer" if value == "block" => "requests to devices".to_owned(),
                    "layer" => "system calls".to_owned(),
                    "file_type" => format!("{value} files"),
                    _ => value.clone(),
                });
                let sessions = of_sessions.then(|| "sessions".to_owned());
                words.chain(sessions).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Returns the latencies by operation. Operations that never occurred are left out.
    pub fn latencies(&self, interval: &Interval<'_>) -> Vec<Latencies> {
        let (states, of_sessions) = match self {
            Self::Event(event) => return interval.history().waited(event, interval),
            Self::Counted { states, of_sessions } => (states, *of_sessions),
        };
        let said = |object: &str, column: &str| interval.text(KERNEL, object, column);
        let is_session = |role: &str| match (role.strip_suffix("/session"), interval.instance()) {
            (Some(of), Some(instance)) => of == instance,
            (of, _) => of.is_some(),
        };
        let meant = |object: &&str| {
            states.iter().all(|(column, value)| said(object, column) == Some(value))
                && (!of_sessions || said(object, "role").is_some_and(is_session))
        };
        let objects: Vec<&str> = interval.objects(KERNEL).into_iter().filter(meant).collect();
        let of = |operation: &&str| {
            let is_it = |object: &&str| said(object, "operation") == Some(operation);
            let objects: Vec<&str> = objects.iter().copied().filter(is_it).collect();
            (!objects.is_empty()).then(|| Latencies::counted(interval, operation, &objects))
        };
        OPERATIONS.iter().filter_map(of).collect()
    }
}

impl Latencies {
    /// Returns what the kernel counted of these objects, which are all of one operation.
    pub fn counted(interval: &Interval<'_>, operation: &str, objects: &[&str]) -> Self {
        let columns = interval.columns(KERNEL);
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let starts: Vec<(usize, u64)> = columns
            .iter()
            .enumerate()
            .filter_map(|(index, column)| {
                let start = column.name.strip_prefix("ios_from_")?.strip_suffix("ns")?;
                Some((index, start.parse().ok()?))
            })
            .collect();
        let ends = starts.iter().skip(1).map(|(_, start)| Some(*start)).chain([None]);
        let mut buckets: Vec<Bucket> = starts
            .iter()
            .zip(ends)
            .map(|((_, from_ns), to_ns)| Bucket { from_ns: *from_ns, to_ns, count: 0.0 })
            .collect();
        let (sum, queue) = (place("elapsed_ns"), place("queue_ns"));
        let (mut sum_ns, mut queue_ns) = (sum.map(|_| 0.0), None);
        for object in objects {
            let Some((first, last)) = interval.ends(KERNEL, object) else { continue };
            let zero = Cell::Value(0);
            let start = |index: usize| first.map_or(Some(&zero), |first| first.get(index));
            let moved = |index: usize| match (start(index)?, last.get(index)?) {
                (Cell::Value(first), Cell::Value(last)) if last >= first => {
                    Some((last - first) as f64)
                }
                _ => None,
            };
            for (bucket, (index, _)) in buckets.iter_mut().zip(&starts) {
                bucket.count += moved(*index).unwrap_or(0.0);
            }
            if let (Some(all), Some(moved)) = (&mut sum_ns, sum.and_then(moved)) {
                *all += moved;
            }
            if let Some(moved) = queue.and_then(moved) {
                *queue_ns.get_or_insert(0.0) += moved;
            }
        }
        Self { operation: operation.to_owned(), buckets, sum_ns, queue_ns }
    }

    pub fn count(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.count).sum()
    }

    /// Returns the mean in nanoseconds. Missing if their times were not summed.
    pub fn mean_ns(&self) -> Known {
        ratio(self.sum_ns.ok_or(Missing::NotInVersion), Ok(self.count()))
    }

    /// Returns the mean time in the queue before the device, in nanoseconds. Missing if nothing
    /// queues.
    pub fn mean_queue_ns(&self) -> Known {
        ratio(self.queue_ns.ok_or(Missing::NotInVersion), Ok(self.count()))
    }

    /// Returns the latency within which this fraction of the operations completed: the end of the
    /// bucket that holds it. Missing if there are too few operations to bound it
    /// ([`least_samples`]).
    pub fn quantile_ns(&self, part: f64) -> Known {
        let total = self.count();
        if total < least_samples(part).max(1) as f64 {
            return Err(Missing::Nothing);
        }
        let mut seen = 0.0;
        for bucket in &self.buckets {
            seen += bucket.count;
            if seen >= total * part {
                return Ok(bucket.to_ns.unwrap_or(bucket.from_ns) as f64);
            }
        }
        Err(Missing::Unknown)
    }

    pub fn octaves(&self) -> [f64; OCTAVES] {
        let mut octaves = [0.0; OCTAVES];
        for bucket in &self.buckets {
            octaves[octave(bucket.from_ns)] += bucket.count;
        }
        octaves
    }
}

/// Returns the bounds of an octave in nanoseconds; the last one has no end.
pub fn octave_bounds(octave: usize) -> (u64, Option<u64>) {
    let start = if octave == 0 { 0 } else { FIRST_NS << (octave - 1) };
    (start, (octave + 1 < OCTAVES).then(|| FIRST_NS << octave))
}

fn octave(ns: u64) -> usize {
    let doublings = (ns / FIRST_NS).checked_ilog2().map_or(0, |doublings| doublings as usize + 1);
    doublings.min(OCTAVES - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn octaves_lie_side_by_side() {
        assert_eq!(octave_bounds(0), (0, Some(1_024)));
        assert_eq!(octave_bounds(1), (1_024, Some(2_048)));
        assert_eq!(octave_bounds(OCTAVES - 1), (17_179_869_184, None));
    }

    proptest! {
        #[test]
        fn every_latency_lies_in_its_octave(ns in 0_u64..1 << 40) {
            let (from_ns, to_ns) = octave_bounds(octave(ns));
            prop_assert!(from_ns <= ns && to_ns.is_none_or(|end| ns < end));
        }
    }

    #[test]
    fn quantiles_are_ends_of_buckets_and_nothing_of_nothing() {
        let bucket = |from_ns, count| Bucket { from_ns, to_ns: Some(from_ns * 2), count };
        let buckets = vec![bucket(1_024, 9e4), bucket(2_048, 9e3), bucket(4_096, 1e3)];
        let some = Latencies { buckets, sum_ns: Some(2e8), ..Latencies::default() };
        assert_eq!(some.quantile_ns(0.5), Ok(2_048.0));
        assert_eq!(some.quantile_ns(0.99), Ok(4_096.0));
        assert_eq!(some.quantile_ns(0.999), Ok(8_192.0));
        assert_eq!(some.mean_ns(), Ok(2_000.0));
        let few = Latencies { buckets: vec![bucket(1_024, 367.0)], ..Latencies::default() };
        assert_eq!(
            (few.quantile_ns(0.5), few.quantile_ns(0.99)),
            (Ok(2_048.0), Err(Missing::Nothing))
        );
        assert_eq!(Latencies::default().quantile_ns(0.5), Err(Missing::Nothing));
    }

    #[test]
    fn a_wait_is_a_system_call_where_only_one_kind_of_call_is_that_wait() {
        assert!(Timed::of_wait("IO", "WalSync").is_some(), "as later versions write it");
        assert!(Timed::of_wait("LWLock", "WALWrite").is_none(), "somebody else's write");
        assert!(Timed::of_wait("IO", "DataFileWrite").is_none());
    }
}
