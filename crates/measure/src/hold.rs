//! Holding a running load: read it at every tick, wait until its rate has settled, open the window,
//! close it when enough is known. Both edges are read while the load still runs.
//!
//! This is the only place where a window opens and closes. The differences between a calibration
//! and a workload (what is read, when it has settled, when enough is known) are in [`Loaded`].

use blockstone_base::units::Nanos;
use blockstone_record::manifest::Stop;

use crate::{Observer, Session, settling};

pub trait Loaded {
    type Error;

    /// Fewest ticks over which the rate must be level for the warm-up to end.
    const SETTLED_TICKS: usize;

    /// Returns the longest warm-up; zero opens the window immediately.
    fn warm_up(&self) -> Nanos;

    /// Returns whether the warm-up takes its whole length, so that the windows of several ranks
    /// open together.
    fn is_whole(&self) -> bool {
        false
    }

    /// Returns how much longer the warm-up may take while the rate still moves. The window is
    /// shorter by that much.
    fn overtime(&self) -> Nanos {
        Nanos(0)
    }

    /// Reads and records everything with one timestamp.
    fn tick(
        &mut self,
        session: &mut Session,
        observer: &mut dyn Observer,
        stage: Stage,
    ) -> Result<Progress, Self::Error>;

    /// Called before the window opens: its first edge is the next tick.
    fn open_window(&mut self) {}

    /// Called after the window has closed: its last edge was the last tick.
    fn close_window(&mut self) {}

    /// Returns whether the load failed, which ends the window.
    fn failed(&self) -> bool {
        false
    }

    /// Returns whether work has run out, so that the rate falls from now on.
    fn finished(&self) -> bool;

    /// Returns the reason to stop if a window of this length is long enough after a warm-up that
    /// exceeded its limit by `overtime`.
    fn enough(&self, length: Nanos, overtime: Nanos) -> Option<Stop>;
}

/// Position of a tick in the life of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    WarmUp,
    /// First edge of the window.
    Start,
    Inside,
    /// Last edge of the window.
    End,
    After,
}

impl Stage {
    /// Returns whether the window's counts begin or end here.
    pub fn is_edge(self) -> bool {
        matches!(self, Self::Start | Self::End)
    }

    /// Returns whether the time since the previous tick belongs to the window.
    pub fn ends_windowed(self) -> bool {
        matches!(self, Self::Inside | Self::End)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time of the tick, in nanoseconds since the recording began.
    pub t_ns: u64,
    /// Cumulative count from which the rate is computed.
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Whether the rate was level, before the window or in it; false if it moved in the window.
    /// `None` without a warm-up, or if neither showed enough.
    pub settled: Option<bool>,
    pub start_ns: u64,
    pub end_ns: u64,
    pub stop: Stop,
}

/// Warms `loaded` up and measures it in one window. Fails when the load cannot be read or recorded.
pub fn hold<L: Loaded>(
    session: &mut Session,
    observer: &mut dyn Observer,
    loaded: &mut L,
) -> Result<Window, L::Error> {
    session.start_ticks();
    let warm_up = warm_up(session, observer, loaded)?;
    loaded.open_window();
    let start = loaded.tick(session, observer, Stage::Start)?;
    let start_ns = start.t_ns;
    let mut ticks = vec![(start.t_ns, start.count)];
    loop {
        session.wait_for_tick();
        // Decided before the tick, so that the tick is read as an edge if it is one.
        let length = Nanos(session.now_ns() - start_ns);
        let stop = stop(length, warm_up.overtime, observer, loaded);
        let stage = if stop.is_some() { Stage::End } else { Stage::Inside };
        let Progress { t_ns: end_ns, count } = loaded.tick(session, observer, stage)?;
        ticks.push((end_ns, count));
        if let Some(stop) = stop {
            loaded.close_window();
            let settled = warm_up.settled.and_then(|settled| settling::in_window(&ticks, settled));
            return Ok(Window { settled, start_ns, end_ns, stop });
        }
    }
}

struct WarmUp {
    /// Whether the rate was shown to be level; `None` if no warm-up was requested.
    settled: Option<bool>,
    overtime: Nanos,
}

/// Warms up until the rate is level or the limit is reached.
fn warm_up<L: Loaded>(
    session: &mut Session,
    observer: &mut dyn Observer,
    loaded: &mut L,
) -> Result<WarmUp, L::Error> {
    if loaded.warm_up() == Nanos(0) {
        return Ok(WarmUp { settled: None, overtime: Nanos(0) });
    }
    let limit_ns = session.now_ns() + loaded.warm_up().get();
    let last_ns = limit_ns + loaded.overtime().get();
    let mut ticks = Vec::new();
    let mut settled = false;
    let goes_on = |now_ns: u64, ticks: &[(u64, u64)]| {
        now_ns < limit_ns || now_ns < last_ns && settling::still_moves(ticks)
    };
    while (!settled || loaded.is_whole()) && goes_on(session.now_ns(), &ticks) {
        session.wait_for_tick();
        let Progress { t_ns, count } = loaded.tick(session, observer, Stage::WarmUp)?;
        ticks.push((t_ns, count));
        settled = settling::in_warm_up(&ticks, L::SETTLED_TICKS);
        if loaded.finished() || loaded.failed() || observer.interrupted().is_some() {
            break;
        }
    }
    let overtime = Nanos(session.now_ns().saturating_sub(limit_ns));
    Ok(WarmUp { settled: Some(settled), overtime })
}

fn stop<L: Loaded>(
    length: Nanos,
    overtime: Nanos,
    observer: &dyn Observer,
    loaded: &L,
) -> Option<Stop> {
    if loaded.failed() {
        Some(Stop::Failed)
    } else if observer.interrupted().is_some() {
        Some(Stop::Interrupted)
    } else if loaded.finished() {
        Some(Stop::WorkDone)
    } else {
        loaded.enough(length, overtime)
    }
}

#[cfg(test)]
mod tests;
