//! Latencies by second: taken from the sessions and the target at the end of each second and at the
//! edges of the window, so that no row spans an edge.

use blockstone_base::LatencyHistogram;
use blockstone_base::load::Op;
use blockstone_measure::Session;
use blockstone_record::{HistogramRow, LatencyClock, RecordError};
use blockstone_servers::{Latencies, Target};
use blockstone_workload::{Running, SessionLatencies};

const SECOND_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub struct Collector {
    /// The current second, counted from the start of the recording.
    second: u64,
}

/// Latencies measured by sessions and target since the last time.
pub struct Taken {
    sent: Vec<SessionLatencies>,
    /// Operations that had not ended, at the end of a window.
    unfinished: Vec<(&'static str, Op, LatencyHistogram)>,
    waited: Vec<Latencies>,
}

impl Taken {
    /// Takes the latencies. Called right where counters are read, so that the two agree.
    pub fn now(running: &Running, target: &dyn Target) -> Self {
        let (sent, waited) = (running.take_latencies(), target.take_latencies());
        Self { sent, unfinished: Vec::new(), waited }
    }

    /// Like [`Taken::now`], at the end of a window.
    pub fn at_end(running: &Running, target: &dyn Target) -> Self {
        let taken = Self::now(running, target);
        Self { unfinished: running.unfinished().collect(), ..taken }
    }
}

impl Collector {
    pub fn new(now_ns: u64) -> Self {
        Self { second: now_ns / SECOND_NS }
    }

    /// Returns whether a second is over, so that its latencies must be taken.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns / SECOND_NS > self.second
    }

    /// Records the latencies taken at `t_ns`, inside or outside the window.
    pub fn record(
        &mut self,
        session: &mut Session,
        t_ns: u64,
        taken: Taken,
        windowed: bool,
    ) -> Result<(), RecordError> {
        let (phase, second) = (session.phase(), self.second as u32);
        let mut row = |role: &str, op, clock, histogram| {
            let role = role.to_owned();
            let page = None;
            let row = HistogramRow { phase, second, page, op, role, windowed, clock, histogram };
            session.recorder().histogram(row)
        };
        for sent in taken.sent {
            row(sent.name, sent.op, LatencyClock::Intended, sent.latency)?;
            if let Some(service) = sent.service {
                row(sent.name, sent.op, LatencyClock::Submitted, service)?;
            }
        }
        for (name, op, lasted) in taken.unfinished {
            row(name, op, LatencyClock::Unfinished, lasted)?;
        }
        for Latencies { name, op, histogram } in taken.waited {
            row(&name, op, LatencyClock::Submitted, histogram)?;
        }
        self.second = t_ns / SECOND_NS;
        Ok(())
    }
}
