//! Growth of counters whose objects come and go within an interval, such as processes.

use blockstone_base::column::Kind;
use blockstone_base::table::{Known, Missing};

use super::{Interval, number};

impl Interval<'_> {
    /// Returns the growth of a counter that begins at zero with its object, also if the object
    /// ended and began again within the interval: each time, it counts from zero. One row is
    /// enough.
    pub fn moved_with_restarts(&self, probe: &str, object: &str, column: &str) -> Known {
        let (track, index) = self.find(probe, object, column, Kind::Counter)?;
        let (mut by, mut before) = (0, None);
        for row in self.rows_of(track, self.from_ns, self.to_ns) {
            let Some((t_ns, count)) = number(row, index) else {
                return Err(self.why(probe, column, before.is_none()));
            };
            by += match before {
                None if t_ns <= self.from_ns => 0,
                Some(before) if count >= before => count - before,
                None | Some(_) => count,
            };
            before = Some(count);
        }
        before.map(|_| by as f64).ok_or(Missing::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Unmeasured};
    use blockstone_record::testing;

    use super::*;
    use crate::History;

    #[test]
    fn an_object_that_begins_again_counts_from_zero() {
        let columns = [(Kind::Counter, "bytes")];
        let mut history = History::new(vec![testing::probe("who", &columns)]);
        for (t_ns, bytes) in [(2, 5), (3, 9), (6, 4), (7, 6)] {
            history.push("who", t_ns, "dd", vec![Cell::Value(bytes)]);
        }
        let moved = |from, to| history.interval(from, to).moved_with_restarts("who", "dd", "bytes");
        assert_eq!(moved(1, 3), Ok(9.0), "it began in the interval");
        assert_eq!(moved(2, 3), Ok(4.0));
        assert_eq!(moved(2, 7), Ok(10.0), "it began again");
        assert_eq!(moved(4, 7), Ok(6.0));
        assert_eq!(moved(3, 5), Ok(0.0), "it ended");
        assert_eq!(moved(8, 9), Err(Missing::Unknown));
        history.push("who", 8, "dd", vec![Cell::Unmeasured]);
        history.unmeasured("who", "bytes", &Unmeasured::Off("a test".to_owned()));
        let interval = history.interval(8, 9);
        assert_eq!(interval.moved_with_restarts("who", "dd", "bytes"), Err(Missing::Off));
    }
}
