//! The sessions of a workload: started, held and stopped, with each window recorded as a phase. The
//! same sessions can run in several windows: first alone, then with noise.

use std::sync::Arc;
use std::time::Duration;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{INSTANCE, SERVER};
use blockstone_base::load::{self, LoadSpec};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_measure::claim::ClaimError;
use blockstone_measure::hold::{self, Loaded, Progress, Stage, Window};
use blockstone_measure::{Live, Observer, Rate, Session};
use blockstone_record::manifest::{Group, Phase, Stop};
use blockstone_record::{HistogramRow, LatencyClock, RecordError};
use blockstone_servers::live::Teller;
use blockstone_servers::{ScanHow, Target};
use blockstone_workload::noise::{Areas, Noise, NoiseOutcome};
use blockstone_workload::{Outcome, Parameters, Population, Running, Totals};

use crate::error::RunError;
use crate::latencies::{Collector, Taken};

/// How long all sessions together may take to end after the stop request.
const GRACE: Duration = Duration::from_secs(10);
/// Grace period of sessions that create or scan tables: a database may take long to undo what was
/// cancelled, or may not be able to cancel it.
const GRACE_OF_TABLES: Duration = Duration::from_mins(10);
/// A warm-up takes at most one part in this many of the window's length.
const WARM_UP_SHARE: u64 = 2;
/// Longest warm-up.
const WARM_UP_MOST: Nanos = Nanos::millis(15_000);
/// Interval over which progress shows rates.
const SHOW_NS: u64 = 900_000_000;
const BACKGROUND: &str = "background";
/// How often rows are written to disk: a crash loses no more than this.
const SEGMENT_NS: u64 = 30_000_000_000;

pub struct Load<'a> {
    pub target: &'a Arc<dyn Target>,
    pub parameters: &'a Parameters,
    /// Length of a window, unless a number of loops ends it.
    pub run_time: Nanos,
    pub block: Bytes,
    /// Publishes its counters to `watch --db run:…`.
    pub teller: Option<&'a Teller>,
    /// Whether other processes apply the load too.
    pub is_rank: bool,
}

pub struct Step<'a> {
    pub label: String,
    pub group: Group,
    /// The load in terms of block I/O, if it has any.
    pub load: Option<LoadSpec>,
    /// Areas to which noise is written alongside the sessions.
    pub noise: Option<&'a Areas>,
}

impl Load<'_> {
    /// Returns the longest warm-up: zero before loops, which are counted from the start.
    fn warm_up(&self) -> Nanos {
        match self.parameters.loops {
            Some(_) => Nanos(0),
            None => WARM_UP_MOST.min(Nanos(self.run_time.get() / WARM_UP_SHARE)),
        }
    }

    /// Returns the longest time of one step, warm-up and window.
    pub fn longest(&self) -> Nanos {
        Nanos(self.warm_up().get() + self.run_time.get())
    }

    fn grace(&self) -> Duration {
        let is_long = self.parameters.bulk_write || self.scans_by_statement();
        if is_long { GRACE_OF_TABLES } else { GRACE }
    }

    fn scans_by_statement(&self) -> bool {
        matches!(self.parameters.scan_how, Some(ScanHow::Statement { .. }))
    }

    fn only_scans(&self) -> bool {
        matches!(self.parameters.population, Population::Scanning { .. })
    }
}

/// Runs the sessions and records each step as a phase, until their work or the run ends; `left` is
/// the longest time for these steps and everything after them. Measurements up to an error are
/// recorded. Fails when a session or the noise cannot start, fails, or does not return.
pub fn hold(
    session: &mut Session,
    observer: &mut dyn Observer,
    load: &Load<'_>,
    steps: &[Step<'_>],
    left: Nanos,
) -> Result<(), RunError> {
    observer.phase("connect");
    let ends_ns = session.now_ns() + left.get();
    let mut interrupted = || observer.interrupted().is_some();
    let running = blockstone_workload::start(load.target, load.parameters, &mut interrupted)?;
    let mut running = Some(running);
    for (index, step) in steps.iter().enumerate() {
        let Some(sessions) = running.as_ref() else { break };
        let start_ns = session.now_ns();
        let noise = step.noise.map(|areas| areas.start(session.origin_ns())).transpose();
        let noise = noise.map_err(blockstone_workload::noise::NoiseError::from)?;
        let mut held = Held {
            label: &step.label,
            running: sessions,
            noise: noise.as_ref(),
            load,
            latencies: Collector::new(start_ns),
            ends_ns,
            segment_ns: start_ns + SEGMENT_NS,
            shown: Moment { t_ns: start_ns, ..Moment::default() },
            rates: Vec::new(),
        };
        let window = held.measure(session, observer);
        let noise = noise.map(|noise| noise.stop(GRACE)).unwrap_or_default();
        let goes_on = matches!(&window, Ok(window) if window.stop == Stop::TimeLimit);
        let outcome = if goes_on && index + 1 < steps.len() && noise.first_error.is_none() {
            None
        } else {
            observer.phase("stop the sessions");
            running.take().map(|running| running.stop(load.grace()))
        };
        let window = window?;
        record_noise(session, &noise)?;
        let ended = Ended { step, start_ns, window, outcome, noise };
        ended.push(session)?;
    }
    Ok(())
}

struct Ended<'a> {
    step: &'a Step<'a>,
    start_ns: u64,
    window: Window,
    /// Outcome of the sessions, if they were stopped.
    outcome: Option<Outcome>,
    noise: NoiseOutcome,
}

impl Ended<'_> {
    fn push(self, session: &mut Session) -> Result<(), RunError> {
        let Self { step, start_ns, window, outcome, noise } = self;
        let failure = failure(outcome.as_ref(), &noise);
        let first_error = outcome.and_then(|outcome| outcome.first_error).or(noise.first_error);
        let end_ns = session.now_ns();
        session.recorder().manifest().phases.push(Phase {
            label: step.label.clone(),
            group: step.group,
            repeat: 0,
            load: step.load.clone(),
            background: step.noise.map(Areas::load),
            start_ns,
            window_start_ns: window.start_ns,
            window_end_ns: window.end_ns,
            end_ns,
            stop: if failure.is_some() { Stop::Failed } else { window.stop },
            settled: window.settled,
            processors: None,
            first_error,
            note: None,
        });
        session.end_phase()?;
        failure.map_or(Ok(()), Err)
    }
}

fn failure(outcome: Option<&Outcome>, noise: &NoiseOutcome) -> Option<RunError> {
    if let Some(why) = outcome.and_then(|outcome| outcome.first_error.clone()) {
        return Some(RunError::Session { why });
    }
    if let Some(why) = noise.first_error.clone() {
        return Some(RunError::NoiseFailed { why });
    }
    let sessions = outcome.map_or(0, |outcome| outcome.stuck_sessions) + noise.stuck_writers;
    let waiting = format!("{sessions} sessions");
    (sessions > 0).then(|| ClaimError::Stuck { waiting }.into())
}

fn record_noise(session: &mut Session, noise: &NoiseOutcome) -> Result<(), RecordError> {
    let phase = session.phase();
    for part in &noise.histograms {
        session.recorder().histogram(HistogramRow {
            phase,
            second: part.second,
            page: part.page,
            op: part.op,
            role: BACKGROUND.to_owned(),
            windowed: part.windowed,
            clock: LatencyClock::Intended,
            histogram: part.latency.clone(),
        })?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    t_ns: u64,
    commits: u64,
    physical_reads: u64,
    physical_writes: u64,
}

struct Held<'a, 'b> {
    label: &'a str,
    running: &'a Running,
    noise: Option<&'a Noise>,
    load: &'a Load<'b>,
    latencies: Collector,
    ends_ns: u64,
    segment_ns: u64,
    /// Counts to which the displayed rates are relative; the rates follow.
    shown: Moment,
    rates: Vec<Rate>,
}

impl Held<'_, '_> {
    /// Holds the sessions for one window. Sessions that are still working through their loops are
    /// read after the window, until the last has ended: their counts belong to the phase.
    fn measure(
        &mut self,
        session: &mut Session,
        observer: &mut dyn Observer,
    ) -> Result<Window, RunError> {
        let window = hold::hold(session, observer, self)?;
        let mut ended = window.stop != Stop::WorkDone;
        while !ended {
            // Checked before the last tick, so that the tick includes the work of the last session.
            ended = self.running.all_ended() || observer.interrupted().is_some();
            self.tick(session, observer, Stage::After)?;
            if !ended {
                session.wait_for_tick();
            }
        }
        Ok(window)
    }

    /// Shows rates over about a second: those of single ticks fluctuate too much.
    fn show(&mut self, now: Moment, stage: Stage, session: &Session, observer: &mut dyn Observer) {
        let before = self.shown;
        let elapsed_ns = now.t_ns - before.t_ns;
        if elapsed_ns >= SHOW_NS {
            let rate = |now: u64, before: u64, unit| Rate {
                value: now.saturating_sub(before) as f64 * 1e9 / elapsed_ns as f64,
                unit,
            };
            let reads = rate(now.physical_reads, before.physical_reads, "reads/s");
            self.rates = if self.load.only_scans() {
                let mb = self.load.block.get() as f64 / 1e6;
                vec![Rate { value: reads.value * mb, unit: "MB/s" }]
            } else {
                let writes = rate(now.physical_writes, before.physical_writes, "writes/s");
                vec![reads, writes, rate(now.commits, before.commits, "commits/s")]
            };
            self.shown = now;
        }
        let warm_up = format!("warm up {}", self.label);
        observer.tick(&Live {
            label: match stage {
                Stage::WarmUp => &warm_up,
                Stage::Start | Stage::Inside | Stage::End => self.label,
                Stage::After => "last loops",
            },
            rates: &self.rates,
            elapsed: session.elapsed(),
            left: Nanos(self.ends_ns.saturating_sub(now.t_ns)),
            is_estimate: false,
        });
    }
}

impl Loaded for Held<'_, '_> {
    type Error = RunError;

    const SETTLED_TICKS: usize = 20;

    fn warm_up(&self) -> Nanos {
        self.load.warm_up()
    }

    fn is_whole(&self) -> bool {
        self.load.is_rank
    }

    /// Also takes latencies at the edges of the window and at the end of each second.
    fn tick(
        &mut self,
        session: &mut Session,
        observer: &mut dyn Observer,
        stage: Stage,
    ) -> Result<Progress, RunError> {
        let (running, target, noise) = (self.running, self.load.target.as_ref(), self.noise);
        let teller = self.load.teller;
        let due = stage.is_edge() || self.latencies.is_due(session.now_ns());
        let (t_ns, (totals, taken, [physical_reads, physical_writes])) =
            session.tick(|readings| {
                let totals: Totals = running.totals();
                let taken = match stage {
                    Stage::End => Some(Taken::at_end(running, target)),
                    _ => due.then(|| Taken::now(running, target)),
                };
                totals.readings(self.load.parameters.kinds(), readings);
                readings.extend(noise.map(noise_reading));
                target.sample(stage.is_edge(), readings);
                if let Some(teller) = teller {
                    teller.tell(readings);
                }
                let mut counted =
                    ["physical_reads", "physical_writes"].map(|n| counted(readings, n));
                if self.load.scans_by_statement() {
                    // A server only counts what a statement reads once it has ended.
                    let block = self.load.block.get().max(1);
                    counted[0] = counted[0].max(returned_bytes(readings) / block);
                }
                (totals, taken, counted)
            })?;
        if let Some(taken) = taken {
            self.latencies.record(session, t_ns, taken, stage.ends_windowed())?;
        }
        for news in target.take_news() {
            let phase = session.phase();
            session.recorder().event(t_ns, phase, "storage", &news)?;
            observer.note(&news);
        }
        if stage == Stage::Inside && t_ns >= self.segment_ns {
            session.recorder().end_segment()?;
            self.segment_ns = t_ns + SEGMENT_NS;
        }
        let (rows, commits) = (totals.rows(), totals.commits());
        let now = Moment { t_ns, commits, physical_reads, physical_writes };
        self.show(now, stage, session, observer);
        // Many sessions take long to complete a scan, so the blocks they read are counted.
        let count = if self.load.only_scans() { physical_reads } else { rows };
        Ok(Progress { t_ns, count })
    }

    fn open_window(&mut self) {
        self.noise.iter().for_each(|noise| noise.open_window());
    }

    fn close_window(&mut self) {
        self.noise.iter().for_each(|noise| noise.close_window());
    }

    fn failed(&self) -> bool {
        let noise_failed = self.noise.is_some_and(|noise| noise.first_error().is_some());
        noise_failed || self.running.first_error().is_some()
    }

    /// Returns whether a session has ended: the load is then no longer the requested one.
    fn finished(&self) -> bool {
        self.running.any_ended()
    }

    fn enough(&self, length: Nanos, _: Nanos) -> Option<Stop> {
        let over = self.load.parameters.loops.is_none() && length >= self.load.run_time;
        over.then_some(Stop::TimeLimit)
    }
}

fn noise_reading(noise: &Noise) -> Reading {
    let cells = noise.totals().values().map(Cell::from).into();
    Reading { probe: load::SERIES.probe, object: BACKGROUND.to_owned(), cells }
}

/// Returns the bytes that system calls returned to a server's processes.
fn returned_bytes(readings: &[Reading]) -> u64 {
    let column = SERVER.columns.iter().position(|column| column.name == "requested_read_bytes");
    let rows = readings.iter().filter(|reading| reading.probe == SERVER.probe);
    let cells = rows.filter_map(|row| row.cells.get(column?));
    cells.map(|cell| if let Cell::Value(value) = cell { *value as u64 } else { 0 }).sum()
}

fn counted(readings: &[Reading], name: &str) -> u64 {
    let column = INSTANCE.columns.iter().position(|column| column.name == name);
    let row = readings.iter().find(|reading| reading.probe == INSTANCE.probe);
    match row.zip(column).map(|(row, column)| &row.cells[column]) {
        Some(Cell::Value(value)) => *value as u64,
        _ => 0,
    }
}
