//! The same load at rising concurrency, and the plateau at its upper end.

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::stats::{self, Estimate};
use blockstone_record::manifest::Group;

use super::{Case, iops_text};
use crate::findings::Point;

/// Shortest plateau, in doublings. Natural curves flatten over one or two doublings before they
/// bend.
pub const DOUBLINGS_MIN: f64 = 3.0;
/// The level is the median of the points that have at least a quarter of the most in flight.
const UPPER_END: u32 = 4;
/// Points within this ratio of a level belong to it.
const NEAR_RATIO: f64 = 0.02;
/// Interval of a throttle's releases. A window may contain one release more or less, so a point
/// whose interval holds the level may be off by that share of its window. Source: `throtl_slice`,
/// HZ / 10 in the kernel's block/blk-throttle.c.
const RELEASE_NS: f64 = 100e6;

/// Block size from which rates are stated in bytes.
const LARGE_BYTES: u64 = 128 << 10;

/// Minimum rise over the last doubling for a ladder that is not near any limit.
const STILL_RISING_RATIO: f64 = 1.10;

/// Half width of the intervals from which neighbouring rungs of a natural curve can no longer be
/// told apart.
const NOISY_HALF_WIDTH: f64 = 0.2;

/// Points of one direction, block size and order at rising concurrency.
pub struct Ladder<'a> {
    /// Name used in evidence: `random reads`.
    pub name: &'static str,
    pub op: Op,
    /// Bytes per operation.
    pub block_bytes: u64,
    /// Points by operations in flight, ascending.
    pub points: Vec<&'a Point>,
}

/// The upper end of a ladder, where concurrency no longer helps.
pub struct Plateau<'a> {
    /// Points by operations in flight, ascending.
    pub members: Vec<&'a Point>,
    pub level: Estimate,
}

/// Returns all ladders that were measured: small reads and writes, large reads in either order, and
/// the layout as the only rung of large writes.
pub fn all<'a>(case: &Case<'a>) -> Vec<Ladder<'a>> {
    let ladder = |name, group, access| {
        let mut of_group = case.group(group);
        let first = &of_group.find(|point| access == point.load.access)?.load;
        let same = |load: &LoadSpec| {
            (load.op, load.access, load.block_bytes) == (first.op, first.access, first.block_bytes)
        };
        let mut points: Vec<&Point> = case
            .points
            .iter()
            .filter(|point| point.group == group || point.group == Group::Confirm)
            .filter(|point| same(&point.load))
            .collect();
        points.sort_by_key(|point| point.load.in_flight());
        Some(Ladder { name, op: first.op, block_bytes: first.block_bytes, points })
    };
    [
        ladder("random reads", Group::RandomRead, Access::Random),
        ladder("random writes", Group::RandomWrite, Access::Random),
        ladder("large sequential reads", Group::LargeRead, Access::Sequential),
        ladder("large random reads", Group::LargeRead, Access::Random),
        ladder("layout", Group::Layout, Access::Sequential),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl<'a> Ladder<'a> {
    /// Returns the fastest point.
    ///
    /// # Panics
    /// Never: a ladder is made from at least one point.
    pub fn best(&self) -> &'a Point {
        self.points
            .iter()
            .max_by(|a, b| a.iops.value.total_cmp(&b.iops.value))
            .expect("a ladder is made from at least one point")
    }

    /// Returns the point that represents the ladder's upper end: the confirmed one unless another
    /// was certainly faster. Its window is several times as long, and the fastest of many short
    /// windows is fast partly by luck.
    pub fn top(&self) -> &'a Point {
        let best = self.best();
        let as_fast = |point: &&'a Point| {
            point.iops.high >= best.iops.low || point.iops.value >= 0.95 * best.iops.value
        };
        self.confirmed().filter(as_fast).unwrap_or(best)
    }

    /// Returns the confirmed point with the longest window.
    pub fn confirmed(&self) -> Option<&'a Point> {
        let confirmed = self.points.iter().copied().filter(|p| p.group == Group::Confirm);
        confirmed.max_by_key(|point| point.iops.duration_ns)
    }

    /// Returns the doublings of concurrency between its ends.
    pub fn doublings(&self) -> f64 {
        doublings(&self.points)
    }

    /// Returns the points from some concurrency up that have one rate, if they span enough
    /// doublings. A quarter of them may be slower, disturbed by something else. None may certainly
    /// be faster.
    pub fn plateau(&self) -> Option<Plateau<'a>> {
        let most = self.points.last()?.load.in_flight();
        let upper = self.points.iter().filter(|p| p.load.in_flight() * UPPER_END >= most);
        let level = stats::median(&upper.map(|point| point.iops.value).collect::<Vec<_>>());
        if self.points.iter().any(|point| point.iops.low > level * (1.0 + NEAR_RATIO)) {
            return None;
        }
        let (members, _) = (0..self.points.len())
            .filter(|&at| belongs(&self.points[at].iops, level))
            .map(|at| self.points[at..].iter().partition(|point| belongs(&point.iops, level)))
            .find(|(members, strays): &(Vec<&Point>, Vec<&Point>)| {
                strays.len() * 3 <= members.len()
            })?;
        if doublings(&members) < DOUBLINGS_MIN {
            return None;
        }
        let confirmed = members.iter().filter(|member| member.group == Group::Confirm);
        let level = match confirmed.max_by_key(|member| member.iops.duration_ns) {
            Some(longest) => longest.iops,
            None => stats::pool(&members.iter().map(|member| member.iops).collect::<Vec<_>>())?,
        };
        Some(Plateau { members, level })
    }

    /// Returns the rate at the upper end: that of the plateau, or without one that of the top.
    pub fn level(&self) -> Estimate {
        self.plateau().map_or_else(|| self.top().iops, |plateau| plateau.level)
    }

    /// Returns whether the upper half rises by so much with the last doubling that no limit was
    /// reached.
    pub fn still_rises(&self) -> bool {
        let top = self.top();
        let half = |point: &&&Point| point.load.in_flight() * 2 <= top.load.in_flight();
        let below = self.points.iter().filter(half).max_by_key(|point| point.load.in_flight());
        below.is_some_and(|below| top.iops.value > below.iops.value * STILL_RISING_RATIO)
    }

    /// Returns whether most intervals are so wide that neither a plateau nor its absence can be
    /// seen.
    pub fn too_noisy(&self) -> bool {
        let widths: Vec<f64> =
            self.points.iter().map(|point| point.iops.relative_half_width()).collect();
        stats::median(&widths) > NOISY_HALF_WIDTH
    }

    /// Returns a rate of this ladder in the unit in which its block size is usually stated.
    pub fn rate_text(&self, rate: &Estimate) -> String {
        let megabytes = rate.scaled(self.block_bytes as f64 / 1e6);
        if self.block_bytes >= LARGE_BYTES {
            format!("{:.1} MB/s ({:.1} to {:.1})", megabytes.value, megabytes.low, megabytes.high)
        } else {
            format!("{}, {:.2} MB/s", iops_text(rate), megabytes.value)
        }
    }
}

impl Plateau<'_> {
    /// Returns the least and the most operations in flight.
    pub fn in_flight(&self) -> (u32, u32) {
        let of = |point: Option<&&Point>| point.map_or(0, |point| point.load.in_flight());
        (of(self.members.first()), of(self.members.last()))
    }

    /// Returns (greatest − least) ÷ level over the members.
    pub fn spread_ratio(&self) -> f64 {
        let rates = || self.members.iter().map(|member| member.iops.value);
        let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
        (most - least) / self.level.value
    }

    pub fn doublings(&self) -> f64 {
        doublings(&self.members)
    }
}

fn belongs(rate: &Estimate, level: f64) -> bool {
    let off = (rate.value - level).abs() / level;
    let one_release = RELEASE_NS / rate.duration_ns.max(1) as f64;
    off <= NEAR_RATIO || (off <= one_release && (rate.low..=rate.high).contains(&level))
}

/// Returns the doublings from the first to the last of points in ascending order.
fn doublings(points: &[&Point]) -> f64 {
    match (points.first(), points.last()) {
        (Some(first), Some(last)) => {
            (f64::from(last.load.in_flight()) / f64::from(first.load.in_flight())).log2()
        }
        _ => 0.0,
    }
}
