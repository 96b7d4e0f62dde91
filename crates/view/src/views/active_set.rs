//! The active data set: how much of each device and file is used repeatedly, and how much of the
//! accesses a cache would hold.

use blockstone_base::Bytes as Size;
use blockstone_figures::{Interval, Known, Missing, ratio};

use crate::table::{Bytes, Count, Shape, Share, Value, View, count, level, sorted, text, unmerged};

pub const VIEW: View = View {
    name: "active-set",
    title: "Active data set",
    doc: "How much of each device and file is read or written in a window, from one tick to the \
          next: means over the windows. Units of 4 KiB count as used or not; what the page cache \
          answers is not seen.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("object", "device or file", "The device or file."),
        level("size_bytes", "size", Bytes, "Its size."),
        unmerged("touched_bytes", "touched", Bytes, "Bytes read or written in a window."),
        unmerged("touched_share", "share", Share, "Their share of the size."),
        unmerged("margin_share", "±", Share, "Sampling error of them (95 % confidence)."),
        unmerged(
            "again_share",
            "again",
            Share,
            "The share of them that was read or written in the window before too.",
        ),
        unmerged(
            "hot_p50_bytes",
            "for 50 %",
            Bytes,
            "The fewest bytes that took half of the accesses of a window.",
        ),
        unmerged("hot_p90_bytes", "for 90 %", Bytes, "The same for 90 % of the accesses."),
        unmerged("hot_p99_bytes", "for 99 %", Bytes, "The same for 99 % of the accesses."),
        unmerged(
            "written_bytes",
            "written",
            Bytes,
            "Bytes written in a window, each counted once.",
        ),
        count("accesses_per_s", "units/s", "Units of 4 KiB read or written per second."),
        unmerged("windows", "windows", Count, "Windows behind these figures."),
    ],
    rows,
};

pub const CURVE: View = View {
    name: "cache-curve",
    title: "What a cache would hold",
    doc: "The share of bytes read and written that a cache of the given size, in front of each \
          device separately, would have held, if it always replaced what was used longest ago \
          (LRU). Derived from the times between two uses (AET model); what is used for the first \
          time is a miss.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("device", "device", "The device."),
        text("cache", "cache", "The size of the cache."),
        unmerged("held_share", "held", Share, "The share of bytes that it would have held."),
    ],
    rows: curves,
};

const PROBE: &str = "active_set";
/// The object with the counters of the tracing itself.
const TOTALS: &str = "tracing";
const UNIT_BYTES: f64 = 4096.0;
/// Maximum number of rows in a table; the rest is left out.
const ROWS_MAX: usize = 40;
/// The smallest cache of a curve, in units: 1 MiB.
const CACHE_MIN: u64 = 256;
/// The largest: 16 TiB.
const CACHE_MAX: u64 = CACHE_MIN << 24;
/// A curve begins where a cache holds this share of accesses, and ends where one comes within this
/// share of the most that any cache holds.
const HELD_MIN: f64 = 0.005;

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let windows = interval.moved(PROBE, TOTALS, "windows");
    let objects = interval.objects(PROBE).into_iter().filter(|object| *object != TOTALS);
    let rows = objects.map(|object| row(interval, object, windows));
    let used = rows.filter(|row| !matches!(row[2], Value::Number(touched) if touched == 0.0));
    let mut rows = sorted(used.collect(), 2);
    rows.truncate(ROWS_MAX);
    rows
}

/// Returns the growth of a sum over windows; `NoEvidence` if it is too low because data was lost.
fn moved(interval: &Interval<'_>, object: &str, column: &str) -> Known {
    if interval.moved(PROBE, TOTALS, "lost").is_ok_and(|lost| lost > 0.0) {
        return Err(Missing::NoEvidence);
    }
    interval.moved_from_zero(PROBE, object, column)
}

fn row(interval: &Interval<'_>, object: &str, windows: Known) -> Vec<Value> {
    let mean = |column: &str| ratio(moved(interval, object, column), windows);
    let size = interval.level(PROBE, object, "size_bytes");
    let touched = mean("touched_bytes");
    let again =
        ratio(moved(interval, object, "again_bytes"), moved(interval, object, "compared_bytes"));
    let accesses = interval.moved_from_zero(PROBE, object, "accesses");
    vec![
        Value::from(object),
        size.into(),
        touched.into(),
        ratio(touched, size).into(),
        margin(interval, object).into(),
        again.into(),
        mean("hot_half_bytes").into(),
        mean("hot_nine_tenths_bytes").into(),
        mean("hot_all_but_one_percent_bytes").into(),
        mean("written_bytes").into(),
        accesses.map(|accesses| accesses / interval.seconds()).into(),
        windows.into(),
    ]
}

/// Returns the sampling error of the touched units. Each unit is either in the sample or not: the
/// normal approximation of the binomial distribution.
fn margin(interval: &Interval<'_>, object: &str) -> Known {
    let sampled = moved(interval, object, "sampled_units")?;
    let units = moved(interval, object, "touched_bytes")? / UNIT_BYTES;
    if sampled <= 0.0 {
        return Err(Missing::Nothing);
    }
    Ok(1.96 * ((1.0 - sampled / units).max(0.0) / sampled).sqrt())
}

fn curves(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let is_device = |object: &&str| interval.text(PROBE, object, "kind") == Some("device");
    let devices = interval.objects(PROBE).into_iter().filter(is_device);
    devices.flat_map(|device| curve(interval, device)).collect()
}

fn curve(interval: &Interval<'_>, device: &str) -> Vec<Vec<Value>> {
    let row = |cache: &str, held: Known| vec![Value::from(device), Value::from(cache), held.into()];
    let reuse = match Reuse::of(interval, device) {
        Ok(reuse) => reuse,
        Err(Missing::Nothing) => return Vec::new(),
        Err(why) => return vec![row("", Err(why))],
    };
    let mut rows = Vec::new();
    let mut cache = CACHE_MIN;
    while cache <= CACHE_MAX {
        let held = reuse.held(cache as f64);
        let is_last = held >= reuse.most() - HELD_MIN;
        if held >= HELD_MIN || is_last {
            rows.push(row(&Size(cache * UNIT_BYTES as u64).to_string(), Ok(held)));
        }
        if is_last {
            break;
        }
        cache *= 2;
    }
    rows
}

/// Distribution of the number of accesses to a device between two accesses to the same unit.
struct Reuse {
    /// The edges of buckets in ascending order, as numbers of accesses, each with the share of
    /// accesses whose unit was last used fewer accesses ago than the edge.
    edges: Vec<(f64, f64)>,
}

impl Reuse {
    fn of(interval: &Interval<'_>, device: &str) -> Result<Self, Missing> {
        let mut counts = Vec::new();
        for column in interval.columns(PROBE) {
            if let Some(start) = column.name.strip_prefix("again_after_") {
                let start: f64 = start.parse().map_err(|_| Missing::NotInVersion)?;
                counts.push((start, moved(interval, device, &column.name)?));
            }
        }
        let first = moved(interval, device, "first_accesses")?;
        Self::new(&counts, first).ok_or(Missing::Nothing)
    }

    /// Makes it from the buckets, each with its first number of accesses and its count, and the
    /// number of first accesses; `None` if there was no access.
    fn new(counts: &[(f64, f64)], first: f64) -> Option<Self> {
        let all = first + counts.iter().map(|(_, count)| count).sum::<f64>();
        if all <= 0.0 {
            return None;
        }
        let mut sum = 0.0;
        let mut edges: Vec<(f64, f64)> = Vec::new();
        for &(start, count) in counts {
            edges.push((start, sum / all));
            sum += count;
        }
        let end = counts.last().map_or(1.0, |(start, _)| start * 2.0);
        edges.push((end, sum / all));
        Some(Self { edges })
    }

    /// Returns the share of accesses that an unbounded cache would hold.
    fn most(&self) -> f64 {
        self.edges.last().map_or(0.0, |(_, share)| *share)
    }

    /// Returns the share of accesses that a cache of this number of units holds. A unit is evicted
    /// once as many others were inserted as the cache has units: after t accesses. The share of
    /// accesses that insert a unit is the share whose unit was not used within the accesses before.
    /// Hu et al., "Kinetic Modeling of Data Eviction in Cache", USENIX ATC 2016. Between two edges,
    /// shares are assumed to rise linearly.
    fn held(&self, cache: f64) -> f64 {
        // The first access always inserts a unit.
        let (mut t, mut share, mut filled) = (0.0, 0.0, 0.0);
        for &(edge, at_edge) in &self.edges {
            let length = edge - t;
            let (missed, missed_there) = (1.0 - share, 1.0 - at_edge);
            let more = f64::midpoint(missed, missed_there) * length;
            if filled + more >= cache {
                // The part x of the length at which it is full: a quadratic equation.
                let (a, b) = ((missed_there - missed) / 2.0 * length, missed * length);
                let rest = cache - filled;
                let part = if a.abs() < 1e-12 * b {
                    rest / b
                } else {
                    (-b + (b * b + 4.0 * a * rest).max(0.0).sqrt()) / (2.0 * a)
                };
                return share + (at_edge - share) * part.clamp(0.0, 1.0);
            }
            (t, share, filled) = (edge, at_edge, filled + more);
        }
        self.most()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts() -> Vec<f64> {
        let start = |bucket: u64| (4 + (bucket - 3) % 4) << ((bucket - 3) / 4);
        let starts = (0..128).map(|bucket| if bucket < 3 { bucket + 1 } else { start(bucket) });
        starts.map(|start| start as f64).collect()
    }

    /// Random reads with all units equally likely: after t accesses a unit has been read with
    /// probability 1 − (1 − 1/n)^t.
    fn uniform(units: f64) -> Reuse {
        let used = |t: f64| 1.0 - (1.0 - 1.0 / units).powf(t - 1.0);
        let starts = starts();
        let ends = starts[1..].iter().copied().chain([f64::INFINITY]);
        let counts: Vec<_> = starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| (start, 1e9 * (used(end) - used(start))))
            .collect();
        Reuse::new(&counts, 0.0).unwrap()
    }

    #[test]
    fn of_uniform_reads_a_cache_holds_its_share_of_the_range() {
        for units in [1_000.0, 65_536.0, 3e6] {
            let reuse = uniform(units);
            for share in [0.05, 0.25, 0.5, 0.9] {
                let held = reuse.held(units * share);
                assert!((held - share).abs() < 0.01, "{units} {share}: {held}");
            }
            assert!(reuse.held(units * 1.1) > 0.98);
        }
    }

    #[test]
    fn a_loop_is_held_as_a_whole_or_not_at_all() {
        let count = |start: f64| if (start - 10_240.0).abs() < 0.5 { 9.0 } else { 0.0 };
        let counts: Vec<_> = starts().into_iter().map(|start| (start, count(start))).collect();
        let reuse = Reuse::new(&counts, 1.0).unwrap();
        assert!(reuse.held(10_000.0) < 1e-9);
        assert!((reuse.held(20_000.0) - 0.9).abs() < 1e-9, "the first round is missed");
        assert!((reuse.most() - 0.9).abs() < 1e-9);
        assert!(Reuse::new(&[(1.0, 0.0)], 0.0).is_none());
    }
}
