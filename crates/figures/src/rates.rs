//! Rates and slopes: how fast a counter grew, with the 95 % interval that its ticks support.

use std::collections::BTreeMap;

use blockstone_base::column::Kind;
use blockstone_base::stats::{self, Estimate};
use blockstone_base::table::Missing;

use crate::history::interval::{Interval, number};

/// A counter at consecutive ticks: (`t_ns`, count), ascending in time.
pub type Track = Vec<(u64, u64)>;

/// Returns the rate of a counter per second, with a finite interval: ticks that all fall on two
/// instants bound nothing, and an infinite interval cannot be written down. [`Missing::Unknown`]
/// with fewer than three ticks.
pub fn rate(ticks: &[(u64, u64)]) -> Result<Estimate, Missing> {
    stats::rate_per_s(ticks)
        .filter(|rate| rate.value.is_finite() && rate.high.is_finite())
        .ok_or(Missing::Unknown)
}

/// Returns the growth of one counter for each unit of another, at the ticks at which the other
/// moved, with the interval of the slices between them. Its number of samples is the count of the
/// slower counter: commits rather than nanoseconds. [`Missing::Unknown`] with fewer than three such
/// ticks.
pub fn slope(of: &[(u64, u64)], by: &[(u64, u64)]) -> Result<Estimate, Missing> {
    let of: BTreeMap<u64, u64> = of.iter().copied().collect();
    let pairs = by.iter().filter_map(|(t_ns, by)| Some((*by, *of.get(t_ns)?)));
    let mut pairs: Vec<(u64, u64)> = pairs.collect();
    // With thousands of threads, processor time is read less often than the rest.
    pairs.dedup_by_key(|(by, _)| *by);
    let per_unit = rate(&pairs)?.scaled(1e-9);
    let grown = pairs.first().zip(pairs.last()).map_or(0, |(first, last)| last.0 - first.0);
    Ok(Estimate { samples: per_unit.samples.min(grown), ..per_unit })
}

impl Interval<'_> {
    /// Returns a counter at each tick, both edges included. If two rows are at one instant, the
    /// later one counts: it was read for the edge.
    pub fn track(&self, probe: &str, object: &str, column: &str) -> Result<Track, Missing> {
        let (rows, index) = self.find(probe, object, column, Kind::Counter)?;
        let mut track = Track::new();
        let mut rows = self.rows_of(rows, self.from_ns, self.to_ns).peekable();
        rows.peek().ok_or(Missing::Unknown)?;
        for row in rows {
            let Some((t_ns, count)) = number(row, index) else { continue };
            let Ok(count) = u64::try_from(count) else { continue };
            match track.last_mut() {
                Some(last) if last.0 == t_ns => last.1 = count,
                _ => track.push((t_ns, count)),
            }
        }
        if track.is_empty() { Err(self.why(probe, column, true)) } else { Ok(track) }
    }

    /// Returns a counter summed over all objects of a probe, at the instants at which all were
    /// read. An object that appears later, such as a server's role with its first process, counts
    /// as zero until then: its counters begin with it. Missing for the reason of the first object
    /// that lacks it; [`Missing::Unknown`] without an object.
    pub fn track_of_all(&self, probe: &str, column: &str) -> Result<Track, Missing> {
        let objects = self.objects(probe);
        let mut sums: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        let mut begins = Vec::new();
        for object in &objects {
            let track = self.track(probe, object, column)?;
            let (rows, _) = self.find(probe, object, column, Kind::Counter)?;
            let is_new = self.rows_of(rows, 0, self.from_ns).next().is_none();
            begins.extend(track.first().filter(|_| is_new).map(|&(t_ns, _)| t_ns));
            for (t_ns, count) in track {
                let sum = sums.entry(t_ns).or_default();
                *sum = (sum.0 + 1, sum.1 + count);
            }
        }
        let later = |t_ns: u64| begins.iter().filter(|&&begin| begin > t_ns).count();
        let whole =
            sums.into_iter().filter(|&(t_ns, (read, _))| read + later(t_ns) == objects.len());
        let track: Track = whole.map(|(t_ns, (_, sum))| (t_ns, sum)).collect();
        if track.is_empty() { Err(Missing::Unknown) } else { Ok(track) }
    }

    /// Returns the rate of a counter per second. In a part of a window, this is its growth ÷ the
    /// length of the part: a part is too short for an interval, and parts must add up.
    pub fn rate(&self, probe: &str, object: &str, column: &str) -> Result<Estimate, Missing> {
        if self.is_part() {
            return Ok(self.plain(self.grown(probe, object, column)?));
        }
        rate(&self.track(probe, object, column)?)
    }

    /// Returns the rate of a counter summed over all objects of a probe.
    pub fn rate_of_all(&self, probe: &str, column: &str) -> Result<Estimate, Missing> {
        if self.is_part() {
            return Ok(self.plain(self.grown_of_all(probe, column)?));
        }
        rate(&self.track_of_all(probe, column)?)
    }

    /// Returns this growth in the whole interval as a rate per second.
    fn plain(&self, grown: u64) -> Estimate {
        let value = grown as f64 / self.seconds();
        let duration_ns = self.to_ns.saturating_sub(self.from_ns);
        Estimate { value, low: value, high: value, samples: grown, duration_ns }
    }

    /// Returns the [`slope`] of two tracks of this interval, with the interval's length.
    pub fn slope(&self, of: &[(u64, u64)], by: &[(u64, u64)]) -> Result<Estimate, Missing> {
        let duration_ns = self.to_ns.saturating_sub(self.from_ns);
        Ok(Estimate { duration_ns, ..slope(of, by)? })
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::Cell;
    use blockstone_record::testing;

    use crate::History;

    use super::*;

    #[test]
    fn two_ticks_bound_nothing_and_a_steady_counter_has_its_rate() {
        assert_eq!(rate(&[(0, 0), (1_000_000_000, 10)]), Err(Missing::Unknown));
        assert_eq!(rate(&[(5, 0), (5, 1), (5, 2)]), Err(Missing::Unknown), "one instant");
        let ticks: Track = (0..10).map(|i| (i * 100_000_000, i * 50)).collect();
        let steady = rate(&ticks).unwrap();
        assert!((steady.value - 500.0).abs() < 1e-6, "{steady:?}");
        assert_eq!((steady.samples, steady.duration_ns), (450, 900_000_000));
    }

    #[test]
    fn what_appears_within_a_window_counts_from_zero_and_hides_no_earlier_tick() {
        let columns = [(Kind::Counter, "ns")];
        let mut history = History::new(vec![testing::probe("server", &columns)]);
        for (t_ns, role, ns) in [
            (0, "session", 5),
            (10, "session", 10),
            (20, "session", 20),
            (30, "session", 30),
            (30, "autovacuum", 4),
            (40, "session", 40),
            (40, "autovacuum", 6),
            (50, "session", 50),
        ] {
            history.push("server", t_ns, role, vec![Cell::Value(ns)]);
        }
        let all = |from, to| history.interval(from, to).track_of_all("server", "ns").unwrap();
        assert_eq!(all(10, 40), [(10, 10), (20, 20), (30, 34), (40, 46)]);
        assert_eq!(all(30, 50), [(30, 34), (40, 46)], "not read at 50");
    }

    #[test]
    fn a_slope_is_taken_where_the_other_counter_moved() {
        let by: Track = (0..20).map(|i| (i, i / 2 * 10)).collect();
        let of: Track = (0..20).map(|i| (i, i / 2 * 70)).collect();
        let seven = slope(&of, &by).unwrap();
        assert!((seven.value - 7.0).abs() < 1e-9 && seven.samples == 90, "{seven:?}");
        assert_eq!(slope(&of, &[(0, 1), (1, 1), (2, 1)]), Err(Missing::Unknown), "it stood still");
    }
}
