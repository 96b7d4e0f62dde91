//! One phase, with or without the writers.

use std::cell::Cell as Counter;
use std::time::Duration;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::load;
use blockstone_base::units::Nanos;
use blockstone_measure::claim::ClaimError;
use blockstone_measure::hold::{self, Loaded, Progress, Stage, Window};
use blockstone_measure::{Live, Observer, Rate, Session};
use blockstone_record::manifest::{Group, Phase, Stop};
use blockstone_record::{HistogramRow, LatencyClock, RecordError};
use blockstone_watch::{Answer, Database};
use blockstone_workload::noise::{Areas, Noise, NoiseError as WriterError, NoiseOutcome};

use super::error::NoiseError;

/// How long writers may take to return after the stop request.
const GRACE: Duration = Duration::from_secs(10);
/// How often rows are written to disk: a crash loses no more than this.
const SEGMENT_NS: u64 = 30_000_000_000;
/// Interval over which progress shows rates, approximately.
const SHOW_NS: u64 = 900_000_000;

#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub areas: &'a Areas,
    pub database: Option<&'a Database>,
    /// End of the last phase, in nanoseconds since the recording began.
    pub ends_ns: u64,
}

pub struct Step {
    /// Phase with or without noise.
    pub group: Group,
    pub repeat: u32,
    pub warm_up: Nanos,
    /// Length including the warm-up.
    pub length: Nanos,
}

impl Step {
    fn label(&self) -> &'static str {
        if self.group == Group::Noise { "noise" } else { "quiet" }
    }
}

/// Holds one phase and records it; returns whether it must be the last. Fails when the writers
/// cannot start, fail, or do not return.
pub fn hold(
    session: &mut Session,
    observer: &mut dyn Observer,
    context: Context<'_>,
    step: &Step,
) -> Result<bool, NoiseError> {
    observer.phase(step.label());
    let start_ns = session.now_ns();
    let start = || context.areas.start(session.origin_ns()).map_err(WriterError::from);
    let noise = (step.group == Group::Noise).then(start).transpose()?;
    let mut held = Held {
        step,
        context,
        noise: noise.as_ref(),
        asked: Counter::new(start_ns),
        start_ns,
        opened_ns: start_ns,
        segment_ns: start_ns + SEGMENT_NS,
        shown: Written { t_ns: start_ns, writes: 0, bytes: 0 },
        rates: Vec::new(),
    };
    let window = hold::hold(session, observer, &mut held);
    let outcome = noise.map(|noise| noise.stop(GRACE));
    let window = window?;
    if outcome.is_some() {
        // Otherwise writing back dirty pages would disturb the quiet phase.
        context.areas.flush()?;
    }
    let goes_on = window.stop == Stop::TimeLimit;
    push(session, context.areas, step, (start_ns, window), outcome.unwrap_or_default())?;
    Ok(!goes_on)
}

fn push(
    session: &mut Session,
    areas: &Areas,
    step: &Step,
    (start_ns, window): (u64, Window),
    outcome: NoiseOutcome,
) -> Result<(), NoiseError> {
    record_latencies(session, &outcome)?;
    let end_ns = session.now_ns();
    let failed = outcome.first_error.is_some() || outcome.stuck_writers > 0;
    session.recorder().manifest().phases.push(Phase {
        label: step.label().to_owned(),
        group: step.group,
        repeat: step.repeat,
        load: (step.group == Group::Noise).then(|| areas.load()),
        background: None,
        start_ns,
        window_start_ns: window.start_ns,
        window_end_ns: window.end_ns,
        end_ns,
        stop: if failed { Stop::Failed } else { window.stop },
        settled: window.settled.filter(|_| step.group == Group::Noise),
        processors: None,
        first_error: outcome.first_error.clone(),
        note: None,
    });
    session.end_phase()?;
    if outcome.stuck_writers > 0 {
        let waiting = format!("{} writers", outcome.stuck_writers);
        return Err(ClaimError::Stuck { waiting }.into());
    }
    outcome.first_error.map_or(Ok(()), |why| Err(NoiseError::Failed { why }))
}

fn record_latencies(session: &mut Session, outcome: &NoiseOutcome) -> Result<(), RecordError> {
    let phase = session.phase();
    for part in &outcome.histograms {
        session.recorder().histogram(HistogramRow {
            phase,
            second: part.second,
            page: part.page,
            op: part.op,
            role: String::new(),
            windowed: part.windowed,
            clock: LatencyClock::Intended,
            histogram: part.latency.clone(),
        })?;
    }
    Ok(())
}

struct Held<'a> {
    step: &'a Step,
    context: Context<'a>,
    noise: Option<&'a Noise>,
    /// Number of the last query to the database.
    asked: Counter<u64>,
    start_ns: u64,
    /// Time at which the window opened.
    opened_ns: u64,
    segment_ns: u64,
    /// The state to which the displayed rates are relative.
    shown: Written,
    rates: Vec<Rate>,
}

/// Work of the noise up to an instant.
struct Written {
    t_ns: u64,
    writes: u64,
    bytes: u64,
}

impl Held<'_> {
    /// Returns the database's counters if it answers in time: a late answer belongs to no tick.
    fn of_database(&self) -> Option<Answer> {
        let database = self.context.database?;
        self.asked.set(self.asked.get() + 1);
        database.ask(self.asked.get());
        let answers = database.answers(Database::patience());
        answers.into_iter().find(|answer| answer.t_ns == self.asked.get())
    }

    fn show(&mut self, session: &Session, observer: &mut dyn Observer, now: Written) {
        let left = Nanos(self.context.ends_ns.saturating_sub(now.t_ns));
        let elapsed_ns = now.t_ns.saturating_sub(self.shown.t_ns);
        if elapsed_ns >= SHOW_NS {
            let rate =
                |count: u64, unit| Rate { value: count as f64 * 1e9 / elapsed_ns as f64, unit };
            let mb = rate(now.bytes.saturating_sub(self.shown.bytes), "MB/s");
            let writes = rate(now.writes.saturating_sub(self.shown.writes), "writes/s");
            let mb = Rate { value: mb.value / 1e6, ..mb };
            self.rates = if self.noise.is_some() { vec![mb, writes] } else { Vec::new() };
            self.shown = now;
        }
        observer.tick(&Live {
            label: self.step.label(),
            rates: &self.rates,
            elapsed: session.elapsed(),
            left,
            is_estimate: false,
        });
    }
}

impl Loaded for Held<'_> {
    type Error = NoiseError;

    const SETTLED_TICKS: usize = 10;

    fn warm_up(&self) -> Nanos {
        self.step.warm_up
    }

    fn tick(
        &mut self,
        session: &mut Session,
        observer: &mut dyn Observer,
        stage: Stage,
    ) -> Result<Progress, NoiseError> {
        let held = &*self;
        let (t_ns, (totals, answer)) = session.tick(|readings| {
            let totals = held.noise.map(Noise::totals);
            readings.extend(totals.iter().map(|totals| Reading {
                probe: load::SERIES.probe,
                object: String::new(),
                cells: totals.values().map(Cell::from).into(),
            }));
            let mut answer = held.of_database();
            readings.extend(answer.iter_mut().flat_map(|it| std::mem::take(&mut it.readings)));
            (totals.unwrap_or_default(), answer)
        })?;
        for (probe, column, why) in answer.iter().flat_map(|answer| &answer.unmeasured) {
            session.unmeasured(probe, column, why);
        }
        if stage == Stage::Start {
            self.opened_ns = t_ns;
        }
        if stage == Stage::Inside && t_ns >= self.segment_ns {
            session.recorder().end_segment()?;
            self.segment_ns = t_ns + SEGMENT_NS;
        }
        let (writes, bytes) = (totals.completed_ops, totals.completed_bytes);
        self.show(session, observer, Written { t_ns, writes, bytes });
        Ok(Progress { t_ns, count: totals.completed_ops })
    }

    fn open_window(&mut self) {
        self.noise.iter().for_each(|noise| noise.open_window());
    }

    fn close_window(&mut self) {
        self.noise.iter().for_each(|noise| noise.close_window());
    }

    fn failed(&self) -> bool {
        self.noise.is_some_and(|noise| noise.first_error().is_some())
    }

    fn finished(&self) -> bool {
        false
    }

    /// Ends the window with the phase: it gets what the warm-up left.
    fn enough(&self, length: Nanos, _: Nanos) -> Option<Stop> {
        let passed_ns = self.opened_ns - self.start_ns + length.get();
        (passed_ns >= self.step.length.get()).then_some(Stop::TimeLimit)
    }
}
