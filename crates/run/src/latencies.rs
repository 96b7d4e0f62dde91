//! Latencies by the second: taken from the sessions and from the target when a second is over and
//! at the edges of the window, so that no row lies on both sides of an edge.

use blockstone_base::LatencyHistogram;
use blockstone_base::load::Op;
use blockstone_measure::Session;
use blockstone_record::{HistogramRow, LatencyClock, RecordError};
use blockstone_target::{Latencies, Target};
use blockstone_workload::{Running, SessionLatencies};

const SECOND_NS: u64 = 1_000_000_000;

/// Collects them during a phase.
#[derive(Debug, Default)]
pub struct Collector {
    /// The second whose latencies were not taken yet, since the recording began.
    second: u64,
    windowed: bool,
}

/// What sessions and target measured since the last time.
pub struct Taken {
    sent: Vec<SessionLatencies>,
    waited: Vec<Latencies>,
}

impl Taken {
    /// Takes it. Done next to where counters are read, so that the two agree.
    pub fn now(running: &Running, target: &dyn Target) -> Self {
        Self { sent: running.take_latencies(), waited: target.take_latencies() }
    }
}

impl Collector {
    /// A collector for a phase that starts now, outside of its window.
    pub fn new(now_ns: u64) -> Self {
        Self { second: now_ns / SECOND_NS, windowed: false }
    }

    /// Whether a second is over, so that its latencies are to be taken.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns / SECOND_NS > self.second
    }

    /// What is taken from now on lies inside the window, or outside.
    pub fn set_windowed(&mut self, windowed: bool) {
        self.windowed = windowed;
    }

    /// Records what was taken at `t_ns`.
    pub fn record(
        &mut self,
        session: &mut Session,
        t_ns: u64,
        taken: Taken,
    ) -> Result<(), RecordError> {
        for sent in taken.sent {
            self.row(session, sent.name, sent.op, LatencyClock::Intended, sent.latency)?;
            if let Some(service) = sent.service {
                self.row(session, sent.name, sent.op, LatencyClock::Submitted, service)?;
            }
        }
        for Latencies { name, op, histogram } in taken.waited {
            self.row(session, &name, op, LatencyClock::Submitted, histogram)?;
        }
        self.second = t_ns / SECOND_NS;
        Ok(())
    }

    fn row(
        &self,
        session: &mut Session,
        name: &str,
        op: Op,
        clock: LatencyClock,
        histogram: LatencyHistogram,
    ) -> Result<(), RecordError> {
        let phase = session.phase();
        session.recorder().histogram(HistogramRow {
            phase,
            second: self.second as u32,
            op,
            role: name.to_owned(),
            windowed: self.windowed,
            clock,
            histogram,
        })
    }
}
