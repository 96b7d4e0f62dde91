//! The recent past of a watch as a recording of its own, made while the watch goes on.

use blockstone_base::units::Nanos;
use blockstone_record::RecordError;
use blockstone_record::manifest::{End, ProbeInfo};
use blockstone_view::History;

use crate::recorder::RecordingSink;
use crate::{Destination, Watch, WatchError};

/// How much of the past is kept on request. The history in memory reaches back further.
pub const KEPT: Nanos = Nanos::millis(300_000);

/// A copy of the recent past, with the recording that it will become.
pub struct Kept {
    sink: RecordingSink,
    history: History,
    from_ns: u64,
}

impl Watch {
    /// Copies the last [`KEPT`], and creates the recording for it. Returns `None` before the second
    /// tick.
    pub fn keep(&self, destination: &Destination) -> Result<Option<Kept>, WatchError> {
        let history = self.history();
        let Some(last_ns) = history.ticks().next_back() else { return Ok(None) };
        let from_ns = last_ns.saturating_sub(KEPT.get());
        let ticks: Vec<u64> = history.ticks().filter(|tick| *tick >= from_ns).collect();
        let [from_ns, _, ..] = ticks[..] else { return Ok(None) };
        let series: Vec<ProbeInfo> = history.probes().cloned().collect();
        let sink = self.begin_recording(destination, &series)?;
        Ok(Some(Kept { sink, history: history.clone(), from_ns }))
    }
}

impl Kept {
    /// Writes the recording.
    pub fn write(mut self) -> Result<(), RecordError> {
        let mut ticks = self.history.ticks().filter(|tick| *tick >= self.from_ns).peekable();
        for (t_ns, series, object, cells) in self.history.rows_since(self.from_ns) {
            while let Some(tick) = ticks.next_if(|tick| *tick < t_ns) {
                self.sink.ticked(tick)?;
            }
            self.sink.row(series, t_ns, object, cells)?;
        }
        for tick in ticks {
            self.sink.ticked(tick)?;
        }
        self.sink.close(End::Complete)
    }
}
