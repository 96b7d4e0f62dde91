//! One step of the plan: its load is started, held, stopped and recorded as a phase.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::histogram::LatencyHistogram;
use blockstone_base::identity::ProcessorUse;
use blockstone_base::load::{self, LoadSpec, SHARES};
use blockstone_base::stats;
use blockstone_base::stats::bursts::{self, Seen};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_engine::{Content, Length, Load, Medium, Outcome, Running, Totals};
use blockstone_measure::claim::ClaimError;
use blockstone_measure::hold::{self, Loaded, Progress, Stage};
use blockstone_measure::{Live, Observer, Rate, Session};
use blockstone_record::manifest::{Group, Phase, Stop};
use blockstone_record::{HistogramRow, LatencyClock, RecordError};
use blockstone_sys::processors::{Counts, Watch};

use crate::error::CalibrateError;
use crate::plan::{FileRole, INTERVAL, Step};

/// How long workers may take to return after the stop request.
const GRACE: Duration = Duration::from_secs(10);
/// Every stamp is verified, but the checksum of only one read in this many. A checksum of 8 KiB
/// takes about a microsecond: verifying all of them would distort the measurement.
const CHECKSUM_EVERY: u64 = 16;
/// However slow the storage, the layout writes at least this much: less would only test the
/// device's own memory.
const LEAST_LAYOUT: u64 = Bytes::mib(16).get();
/// Progress shows the mean rate of a step, and only after this time. A throttle releases requests
/// in bursts, above its limit after an idle period, so that the rate of a single tick is
/// misleading.
const RATED_FROM: Nanos = Nanos::millis(250);

#[derive(Clone)]
pub struct Backing {
    /// The file or files; nothing for the null engine.
    pub medium: Medium,
    pub content: Arc<dyn Content>,
    /// Names of several files in the recording.
    pub targets: Vec<String>,
}

/// Results of a finished step that later steps need.
#[derive(Clone, Debug)]
pub struct Measured {
    pub group: Group,
    pub load: LoadSpec,
    pub iops: f64,
    /// Mean latency in nanoseconds.
    pub latency_ns_mean: f64,
    /// 99th percentile in nanoseconds.
    pub latency_ns_p99: u64,
    /// Whether it completed in bursts, with nothing in between, as behind a limiter.
    pub in_bursts: bool,
    /// Bytes completed in the whole phase, warm-up included.
    pub completed_bytes: u64,
    pub interrupted: Option<&'static str>,
}

/// Holds the load of `step` and records it as the next phase. Fails when the load cannot be
/// started, an operation fails for good, or the recording cannot be written. Measurements up to an
/// error are recorded.
pub fn hold(
    session: &mut Session,
    observer: &mut dyn Observer,
    step: &Step,
    backing: &Backing,
    left: Nanos,
) -> Result<Measured, CalibrateError> {
    observer.phase(&step.label);
    let phase = session.phase();
    let start_ns = session.now_ns();
    let begin = |spec: &LoadSpec| {
        blockstone_engine::start(Load {
            content: Arc::clone(&backing.content),
            // A second lap through the page cache would read what the first one cached.
            length: if step.is_pass() || step.file == FileRole::BufferedCold {
                Length::Once
            } else {
                Length::Endless
            },
            first_sequence: first_sequence(phase),
            checksum_every: CHECKSUM_EVERY,
            origin_ns: session.origin_ns(),
            // A layout may take hours, and its windows are long enough for seconds.
            paged: !step.is_pass(),
            ..Load::new(spec.clone(), backing.medium.clone())
        })
    };
    let running = begin(&step.load)?;
    let background = step.background.as_ref().map(begin).transpose()?;
    let mut generated = Generated {
        step,
        running: &running,
        background: background.as_ref(),
        targets: &backing.targets,
        start_ns,
        left,
        window: Vec::new(),
        processors: Watched::in_session(session),
    };
    let window = hold::hold(session, observer, &mut generated);
    let Generated { window: ticks, processors, .. } = generated;
    let (interrupted, rated) = (observer.interrupted(), bursts::track(&ticks));
    let main = running.stop(GRACE);
    let background = background.map(|background| background.stop(GRACE));
    let (window, end_ns) = (window?, session.now_ns());
    let outcomes = [Some(&main), background.as_ref()];
    let failure = outcomes.into_iter().flatten().find_map(|outcome| failure(step, outcome));
    let histogram = record_histograms(session, phase, &main, background.as_ref())?;
    record_unfinished(session, phase, step, (window.end_ns, &main))?;
    session.recorder().manifest().phases.push(Phase {
        label: step.label.clone(),
        group: step.group,
        repeat: step.repeat,
        load: Some(step.load.clone()),
        background: step.background.clone(),
        start_ns,
        window_start_ns: window.start_ns,
        window_end_ns: window.end_ns,
        end_ns,
        stop: if failure.is_some() { Stop::Failed } else { window.stop },
        settled: window.settled,
        processors: processors.used,
        first_error: main.first_error.clone().or_else(|| background.and_then(|b| b.first_error)),
        note: note(&main, window.settled),
    });
    session.end_phase()?;
    match failure {
        Some(error) => Err(error),
        None => Ok(Measured {
            group: step.group,
            load: step.load.clone(),
            iops: stats::rate_per_s(&rated).map_or(0.0, |rate| rate.value),
            in_bursts: rated.len() < ticks.len(),
            latency_ns_mean: histogram.mean_ns(),
            latency_ns_p99: histogram.quantile_ns(0.99),
            completed_bytes: main.totals.completed_bytes,
            interrupted,
        }),
    }
}

/// Returns the sequence number of a phase's first write: all writes of a run have different ones.
pub fn first_sequence(phase: i32) -> u64 {
    ((phase as u64) << 32) + 1
}

/// Returns remarks that a reader of the phase's numbers should see.
fn note(outcome: &Outcome, settled: Option<bool>) -> Option<String> {
    let mut notes = Vec::new();
    notes.extend(outcome.first_mismatch.clone());
    if outcome.overdue_ops > 0 {
        notes.push(format!(
            "the rate was not sustained: {} operations were due and not yet sent at the end, so \
             latency grows with the length of the window",
            outcome.overdue_ops
        ));
    }
    if settled == Some(false) {
        notes.push("the rate never settled: it still moved in the window".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

struct Generated<'a> {
    step: &'a Step,
    running: &'a Running,
    background: Option<&'a Running>,
    targets: &'a [String],
    start_ns: u64,
    /// Remaining time from the start of the step; if it is a pass, without the pass itself.
    left: Nanos,
    /// Completed operations at each tick since the window opened.
    window: Vec<Seen>,
    processors: Watched,
}

/// Processor counters, read outside both edges of the window.
struct Watched {
    watch: Watch,
    before: Counts,
    /// Processor use in the window, once it has closed.
    used: Option<ProcessorUse>,
}

impl Watched {
    fn in_session(session: &mut Session) -> Self {
        let devices = &session.recorder().manifest().target.devices;
        let watch = Watch::new(Path::new("/"), devices);
        Self { watch, before: Counts::default(), used: None }
    }

    fn open_window(&mut self) {
        self.before = self.watch.counts();
    }

    fn close_window(&mut self) {
        self.used = Some(self.watch.between(&self.before, &self.watch.counts()));
    }
}

impl Generated<'_> {
    fn running(&self) -> impl Iterator<Item = &Running> {
        std::iter::once(self.running).chain(self.background)
    }

    fn show(&self, session: &Session, observer: &mut dyn Observer, tick: &(u64, Totals)) {
        let (passed_ns, totals) = (tick.0 - self.start_ns, &tick.1);
        let rate = |total: u64, scale: f64, unit| Rate {
            value: total as f64 / (passed_ns.max(1) as f64 / 1e9) / scale,
            unit,
        };
        let rates =
            [rate(totals.completed_ops, 1.0, "IOPS"), rate(totals.completed_bytes, 1e6, "MB/s")];
        let is_rate = passed_ns >= RATED_FROM.get() && totals.completed_ops > 0;
        let pass = self.step.is_pass().then(|| self.pass_left(tick)).flatten();
        let label = match (pass, self.step.group) {
            (Some((bytes, _)), _) => format!("{}, {bytes} left", self.step.label),
            (None, Group::Precondition) => format!("{} {}", self.step.label, self.step.repeat + 1),
            _ => self.step.label.clone(),
        };
        observer.tick(&Live {
            label: &label,
            rates: if is_rate { &rates } else { &[] },
            elapsed: session.elapsed(),
            left: match pass {
                Some((_, left)) => Nanos(left.get() + self.left.get()),
                None => Nanos(self.left.get().saturating_sub(passed_ns)),
            },
            is_estimate: pass.is_some(),
        });
    }

    /// Returns the bytes that a pass and the layout after it still have to write, and how long that
    /// takes at the mean rate so far.
    fn pass_left(&self, (now_ns, totals): &(u64, Totals)) -> Option<(Bytes, Nanos)> {
        let passes = if self.step.group == Group::Precondition { 2 } else { 1 };
        let left = (passes * self.step.load.span_bytes).checked_sub(totals.completed_bytes)?;
        let ratio = left as f64 / totals.completed_bytes as f64;
        let left_ns = (now_ns - self.start_ns) as f64 * ratio;
        (totals.completed_bytes > 0).then_some((Bytes(left), Nanos(left_ns as u64)))
    }
}

impl Loaded for Generated<'_> {
    type Error = CalibrateError;

    const SETTLED_TICKS: usize = 10;

    /// Returns zero for a layout, which runs once.
    fn warm_up(&self) -> Nanos {
        self.step.warm_up
    }

    fn overtime(&self) -> Nanos {
        Nanos(self.step.window.1.get() / 2)
    }

    fn tick(
        &mut self,
        session: &mut Session,
        observer: &mut dyn Observer,
        stage: Stage,
    ) -> Result<Progress, CalibrateError> {
        let loads = [("", Some(self.running)), ("background", self.background)];
        let tick = session.tick(|readings| {
            let [main, _] = loads.map(|(object, running)| {
                let totals = running?.totals();
                readings.push(reading(object, &totals));
                Some(totals)
            });
            let shares = self.targets.iter().zip(self.running.shares());
            readings.extend(shares.map(|(target, share)| Reading {
                probe: SHARES.probe,
                object: target.clone(),
                cells: share.values().map(Cell::from).into(),
            }));
            main.unwrap_or_default()
        })?;
        self.show(session, observer, &tick);
        let progress = Progress { t_ns: tick.0, count: tick.1.completed_ops };
        if stage != Stage::WarmUp {
            let Progress { t_ns, count } = progress;
            self.window.push(Seen { t_ns, count, reached_ns: Some(tick.1.last_completed_ns) });
        }
        Ok(progress)
    }

    fn open_window(&mut self) {
        self.processors.open_window();
        self.running().for_each(Running::open_window);
    }

    fn close_window(&mut self) {
        self.running().for_each(Running::close_window);
        self.processors.close_window();
    }

    fn finished(&self) -> bool {
        self.running.finished()
    }

    fn enough(&self, length: Nanos, overtime: Nanos) -> Option<Stop> {
        let (least, most) = self.step.window;
        if self.step.is_pass() && self.running.totals().completed_bytes < LEAST_LAYOUT {
            None
        } else if length.get() + overtime.get() >= most.get() {
            Some(Stop::TimeLimit)
        } else {
            let enough =
                length >= least && stats::is_narrow(&bursts::track(&self.window), INTERVAL);
            enough.then_some(Stop::IntervalReached)
        }
    }
}

/// Returns what a load has completed, as a row of its series.
fn reading(object: &str, totals: &Totals) -> Reading {
    let cells = totals.values().map(Cell::from).into();
    Reading { probe: load::SERIES.probe, object: object.to_owned(), cells }
}

/// Returns an error that ends the run, if workers hang or at least half of the operations failed.
fn failure(step: &Step, outcome: &Outcome) -> Option<CalibrateError> {
    let label = step.label.clone();
    if outcome.stuck_workers > 0 {
        let waiting = format!("{label}: {} workers", outcome.stuck_workers);
        return Some(ClaimError::Stuck { waiting }.into());
    }
    let why = outcome.first_error.clone()?;
    let hopeless = outcome.totals.failed_ops >= outcome.totals.completed_ops;
    (step.is_pass() || hopeless).then_some(CalibrateError::Io { label, why })
}

/// Records the histograms, and returns those of the main load's window merged.
fn record_histograms(
    session: &mut Session,
    phase: i32,
    main: &Outcome,
    background: Option<&Outcome>,
) -> Result<LatencyHistogram, CalibrateError> {
    let mut merged = LatencyHistogram::new();
    let outcomes = [(Some(main), ""), (background, "background")];
    for (outcome, role) in outcomes.into_iter().filter_map(|(o, role)| Some((o?, role))) {
        for part in &outcome.histograms {
            if part.windowed && role.is_empty() {
                merged.merge(&part.latency);
            }
            let row = |clock, histogram: &LatencyHistogram| HistogramRow {
                phase,
                second: part.second,
                page: part.page,
                op: part.op,
                role: role.to_owned(),
                windowed: part.windowed,
                clock,
                histogram: histogram.clone(),
            };
            session.recorder().histogram(row(LatencyClock::Intended, &part.latency))?;
            if let Some(service) = &part.service {
                session.recorder().histogram(row(LatencyClock::Submitted, service))?;
            }
        }
    }
    Ok(merged)
}

/// Records what was not completed when the window closed, as a row even if there was nothing: that
/// shows that nothing was cut off.
fn record_unfinished(
    session: &mut Session,
    phase: i32,
    step: &Step,
    (end_ns, main): (u64, &Outcome),
) -> Result<(), RecordError> {
    session.recorder().histogram(HistogramRow {
        phase,
        second: u32::try_from(end_ns / 1_000_000_000).unwrap_or(u32::MAX),
        page: None,
        op: step.load.op,
        role: String::new(),
        windowed: true,
        clock: LatencyClock::Unfinished,
        histogram: main.unfinished.clone(),
    })
}
