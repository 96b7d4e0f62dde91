//! Single figures of an interval.

use blockstone_base::rows;
use blockstone_base::table::{Measure, text, time, unmerged};
use blockstone_view::Interval;

rows! {
    /// Ends of an interval.
    pub(super) struct Summary {
        /// Start of the interval, since the start of the recording or the watch.
        from_ns: u64 = time("from"),
        /// End of the interval, likewise.
        to_ns: u64 = time("to"),
        /// Wall clock of the host at `from_ns`, ISO 8601 in UTC.
        from: Option<String> = text("from"),
        /// Wall clock of the host at `to_ns`, ISO 8601 in UTC.
        to: Option<String> = unmerged("to", Measure::Text),
    }
}

impl Summary {
    pub fn of(interval: &Interval<'_>, clocks: [Option<String>; 2]) -> Self {
        let [from, to] = clocks;
        Self { from_ns: interval.from_ns, to_ns: interval.to_ns, from, to }
    }
}
