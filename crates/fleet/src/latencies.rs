//! Latencies of several ranks: histograms with the same buckets, which add up exactly.

use std::collections::BTreeMap;

use blockstone_base::LatencyHistogram;
use blockstone_base::load::Op;
use blockstone_record::{HistogramRow, LatencyClock, Recorder, Recording};

use crate::FleetError;
use crate::common::Common;
use crate::source::Source;

const SECOND_NS: u64 = 1_000_000_000;
const PAGE_NS: u64 = 50_000_000;

/// All but the times of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    phase: usize,
    second: u32,
    page: Option<u8>,
    op: Op,
    role: String,
    windowed: bool,
    clock: LatencyClock,
}

/// Occupied buckets, which take less memory than a histogram.
#[derive(Debug, Default)]
struct Counted {
    buckets: BTreeMap<u64, u64>,
    sum_ns: u128,
}

#[derive(Default)]
pub struct Latencies(BTreeMap<Key, Counted>);

impl Latencies {
    /// Adds the latencies of a source, and returns those of the operations of its main load that
    /// completed in the common window of phase `main`.
    pub fn add(
        &mut self,
        (number, source): (usize, &Source),
        recording: &Recording,
        phases: &[Common],
        main: usize,
    ) -> Result<LatencyHistogram, FleetError> {
        let mut own = LatencyHistogram::new();
        recording.each_histogram(|row| {
            let phase = phases.iter().position(|it| it.indices[number] as i32 == row.phase);
            let Some(phase) = phase else { return };
            let (at_ns, windowed) = placed(&row, &phases[phase], (number, source));
            let second = u32::try_from(at_ns / SECOND_NS).unwrap_or(u32::MAX);
            let page = row.page.map(|_| ((at_ns % SECOND_NS) / PAGE_NS) as u8);
            if windowed && phase == main && is_main(&row) {
                own.merge(&row.histogram);
            }
            let HistogramRow { op, role, clock, histogram, .. } = row;
            let key = Key { phase, second, page, op, role, windowed, clock };
            let counted = self.0.entry(key).or_default();
            counted.sum_ns += histogram.sum_ns();
            for (ns, count) in histogram.buckets() {
                *counted.buckets.entry(ns).or_default() += count;
            }
        })?;
        Ok(own)
    }

    pub fn write(self, recorder: &mut Recorder) -> Result<(), FleetError> {
        for (key, counted) in self.0 {
            let Key { phase, second, page, op, role, windowed, clock } = key;
            let histogram = LatencyHistogram::of_buckets(counted.buckets, counted.sum_ns);
            let phase = phase as i32;
            recorder.histogram(HistogramRow {
                phase,
                second,
                page,
                op,
                role,
                windowed,
                clock,
                histogram,
            })?;
        }
        Ok(())
    }
}

/// Returns the middle of a row's time on the merged axis, and whether it is in the common window.
/// A second that an edge of the rank's window cuts counts with the part of it inside.
fn placed(row: &HistogramRow, common: &Common, of: (usize, &Source)) -> (u64, bool) {
    let in_second = row.page.map_or(SECOND_NS / 2, |page| u64::from(page) * PAGE_NS + PAGE_NS / 2);
    if row.clock == LatencyClock::Unfinished {
        // They had not ended when the window of the rank did: nor when the common window did.
        return (common.phase.window_end_ns, row.windowed);
    }
    let mut at_ns = u64::from(row.second) * SECOND_NS + in_second + of.1.shift_ns;
    if row.windowed {
        let (start, end) = common.windows[of.0];
        at_ns = at_ns.clamp(start + 1, end);
    }
    let inside = common.phase.window_start_ns < at_ns && at_ns <= common.phase.window_end_ns;
    (at_ns, row.windowed && inside)
}

/// Whether a row is of the operations of the main load: not a wait event, and not the load that
/// runs beside.
fn is_main(row: &HistogramRow) -> bool {
    row.clock == LatencyClock::Intended && !row.role.contains('/') && row.role != "background"
}
