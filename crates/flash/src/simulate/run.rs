//! The simulation loop: a request arrives, its pages go to dies, latencies are recorded.

use std::collections::BTreeMap;

use blockstone_base::LatencyHistogram;
use blockstone_base::rng::Rng;
use blockstone_base::stats;

use super::outcome::{Frame, Outcome, Percentiles, Point, Steady};
use super::plan::{Pace, Plan, SimulationError, Start};
use super::throttle::{Throttle, Waiting};
use crate::cliff::Detector;
use crate::device::Placement;
use crate::dies::Dies;
use crate::ftl::{BATCH, Config, Exact, Ftl, Full, Mapping, Totals, Write};
use crate::tournament::Tournament;
use crate::trace::Trace;
use crate::workload::{Action, Request, Requests};

const STEADY_FROM: f64 = 0.75;

/// Runs a simulation. `advise` is shown the large tables before they are touched (see
/// [`Ftl::exact`]); `watch` receives the fraction done and stops the run by returning false.
pub fn simulate(
    plan: &Plan,
    advise: &dyn Fn(&mut [u32]),
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<Outcome, SimulationError> {
    let config = plan.check()?;
    let requests = plan.workload.requests(config.logical_pages, plan.seed)?;
    if plan.counts(&config) {
        let regions = plan.workload.regions(config.logical_pages);
        let classes: Vec<u32> = regions.iter().map(|&(_, pages)| pages).collect();
        let ftl = Ftl::counts(config, &classes)?;
        return Ok(Run::new(plan, ftl, requests).finish(watch));
    }
    let ftl: Ftl<Exact> = Ftl::exact(config, advise)?;
    Ok(Run::new(plan, ftl, requests).finish(watch))
}

/// Replays a trace on the whole device, each request at its recorded time.
pub fn replay(
    plan: &Plan,
    trace: &Trace,
    advise: &dyn Fn(&mut [u32]),
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<Outcome, SimulationError> {
    let plan = Plan { scale: 1, engine: super::Engine::Exact, ..plan.clone() };
    let config = plan.check()?;
    let requests = plan.workload.requests(config.logical_pages, plan.seed)?;
    let mut run = Run::new(&plan, Ftl::exact(config, advise)?, requests);
    run.trace = Some(Box::new(trace.paged(plan.device.page_bytes)));
    run.trace_left = trace.requests.len();
    Ok(run.finish(watch))
}

struct Arrivals {
    phases: Vec<super::plan::Phase>,
    phase: usize,
    phase_from_ns: u64,
    phase_until_ns: u64,
    /// Completion times of the requests in flight in a closed loop, and the first of them.
    under_way_ns: Vec<u64>,
    first: Tournament,
    /// The next arrival of an open loop.
    next_ns: f64,
    rng: Rng,
}

impl Arrivals {
    fn new(plan: &Plan) -> Self {
        let mut phases = plan.phases.clone();
        for phase in &mut phases {
            if phase.duration_ns < u64::MAX {
                phase.duration_ns = (phase.duration_ns / u64::from(plan.scale)).max(1);
            }
        }
        let mut arrivals = Self {
            phase: 0,
            phase_from_ns: 0,
            phase_until_ns: phases[0].duration_ns,
            phases,
            under_way_ns: vec![0; plan.queue_depth as usize],
            first: Tournament::new(plan.queue_depth),
            next_ns: 0.0,
            rng: Rng::new(plan.seed, 6),
        };
        arrivals.begin();
        arrivals
    }

    fn begin(&mut self) {
        self.next_ns = self.phase_from_ns as f64;
        if let Pace::Open(rate) = self.phases[self.phase].pace {
            self.next_ns += self.gap(rate);
        }
    }

    fn gap(&mut self, rate: f64) -> f64 {
        if rate > 0.0 { -(1.0 - self.rng.unit()).ln() * 1e9 / rate } else { f64::INFINITY }
    }

    /// Returns the time of the next arrival, if it is before `before_ns`. In a closed loop its
    /// completion must be reported for the slot returned.
    #[inline]
    fn next(&mut self, before_ns: u64) -> Option<(u64, Option<u32>)> {
        loop {
            let pace = self.phases[self.phase].pace;
            let at = match pace {
                Pace::Closed => {
                    self.under_way_ns[self.first.first() as usize].max(self.phase_from_ns)
                }
                Pace::Open(_) => self.next_ns.min(1.8e19) as u64,
            };
            if at.min(self.phase_until_ns) >= before_ns {
                return None;
            }
            if at < self.phase_until_ns {
                match pace {
                    Pace::Closed => return Some((at, Some(self.first.first()))),
                    Pace::Open(rate) => self.next_ns += self.gap(rate),
                }
                return Some((at, None));
            }
            self.phase = (self.phase + 1) % self.phases.len();
            self.phase_from_ns = self.phase_until_ns;
            self.phase_until_ns =
                self.phase_from_ns.saturating_add(self.phases[self.phase].duration_ns);
            self.begin();
        }
    }

    #[inline]
    fn completed(&mut self, slot: Option<u32>, at_ns: u64) {
        let Some(slot) = slot else { return };
        self.under_way_ns[slot as usize] = at_ns;
        self.first.set(slot, at_ns);
    }
}

#[derive(Default)]
struct Window {
    from_ns: u64,
    requests: u64,
    writes: u64,
    totals: Totals,
    read: LatencyHistogram,
    write: LatencyHistogram,
}

/// Collection by dies that are idle.
struct Background {
    /// Number of free blocks of each pool for which a die collects.
    free_wanted: u32,
    /// Time a die must be idle before it starts.
    idle_ns: u64,
    /// By die: earliest time of its next step.
    due: Tournament,
}

/// Time of the next step of a die that has nothing to collect.
const NEVER: u64 = u64::MAX;

impl Background {
    fn of(plan: &Plan, config: &Config) -> Option<Self> {
        let (free_wanted, idle_ns) = match plan.throttle {
            Some(_) => (Throttle::free_wanted(config), 0),
            None => (plan.device.background_blocks(config), plan.device.idle_ns),
        };
        let due = || Tournament::new(config.dies);
        (free_wanted > 0).then(|| Self { free_wanted, idle_ns, due: due() })
    }
}

struct Run<'a, M> {
    plan: &'a Plan,
    ftl: Ftl<M>,
    dies: Dies,
    requests: Requests,
    /// The trace replayed instead of `requests`, and the number of its requests left.
    trace: Option<Box<dyn Iterator<Item = (u64, Request)> + 'a>>,
    trace_left: usize,
    arrivals: Arrivals,
    apart: bool,
    background: Option<Background>,
    throttle: Option<Throttle>,
    now_ns: u64,
    window: Window,
    /// Work done before time began.
    before: Totals,
    points: Vec<Point>,
    frames: Vec<Frame>,
    /// Start of the last quarter: drive fills and time in nanoseconds, and the work done until
    /// then.
    steady: Option<(f64, u64, Totals)>,
    steady_requests: u64,
    /// Latencies of the last quarter.
    reads: LatencyHistogram,
    writes: LatencyHistogram,
    cliff: Detector,
    unmapped_reads: u64,
    ended_by: Option<Full>,
}

impl<'a, M: Mapping> Run<'a, M> {
    fn new(plan: &'a Plan, ftl: Ftl<M>, requests: Requests) -> Self {
        let device = &plan.device;
        let pages_per_block = ftl.config().pages_per_block;
        let cliff = Detector::new(&device.times.costs(), device.dies(), pages_per_block);
        Self {
            cliff,
            dies: Dies::new(&device.times, device.dies(), device.channels, pages_per_block),
            arrivals: Arrivals::new(plan),
            apart: device.placement != Placement::Mixed,
            background: Background::of(plan, ftl.config()),
            throttle: Throttle::of(plan, ftl.config()),
            plan,
            ftl,
            requests,
            trace: None,
            trace_left: 0,
            now_ns: 0,
            window: Window::default(),
            before: Totals::default(),
            points: Vec::new(),
            frames: Vec::new(),
            steady: None,
            steady_requests: 0,
            reads: LatencyHistogram::new(),
            writes: LatencyHistogram::new(),
            unmapped_reads: 0,
            ended_by: None,
        }
    }

    fn finish(mut self, watch: &mut dyn FnMut(f64) -> bool) -> Outcome {
        self.ended_by = self.fill().err();
        self.before = *self.ftl.totals();
        self.window.totals = self.before;
        self.take_frame(0.0);
        let logical = f64::from(self.ftl.config().logical_pages);
        let goal = logical * self.plan.drive_fills;
        let trace_requests = self.trace_left.max(1);
        let mut next_point = 1_u32;
        let points = f64::from(self.plan.points);
        while self.ended_by.is_none() {
            if let Err(full) = self.batch() {
                self.ended_by = Some(full);
            }
            let written = self.written();
            let whole_ns = self.now_ns as f64 * f64::from(self.plan.scale);
            let by_time = whole_ns / self.plan.time_limit_ns as f64;
            let done = match self.trace {
                Some(_) => 1.0 - self.trace_left as f64 / trace_requests as f64,
                None => (written / goal).max(by_time),
            };
            if self.steady.is_none() && done >= STEADY_FROM {
                self.steady = Some((written / logical, self.now_ns, *self.ftl.totals()));
            }
            if done * points >= f64::from(next_point) || self.ended_by.is_some() {
                self.take_point(written / logical);
                next_point = (done * points) as u32 + 1;
                if !watch(done.min(1.0)) {
                    break;
                }
            }
            if done >= 1.0 {
                break;
            }
        }
        self.into_outcome()
    }

    /// Where the cliff is, in visible capacities written.
    fn cliff(&self) -> Option<f64> {
        let pages = self.cliff.found()?.saturating_sub(self.before.host_pages);
        Some(pages as f64 / f64::from(self.ftl.config().logical_pages))
    }

    fn written(&self) -> f64 {
        (self.ftl.totals().host_pages - self.before.host_pages) as f64
    }

    fn fill(&mut self) -> Result<(), Full> {
        if self.plan.start == Start::Empty {
            return Ok(());
        }
        let logical = self.ftl.config().logical_pages;
        let regions = self.plan.workload.regions(logical);
        for (part, (first, pages)) in regions.into_iter().enumerate() {
            // With fast blocks, the first fill goes where all data ends up in the end.
            let streams = self.ftl.config().streams.len() as u32;
            let hosts = if self.plan.device.fast_blocks > 0.0 { streams / 2 } else { 0 };
            let stream = hosts + if self.apart { part as u32 } else { 0 };
            self.ftl.fill(first..first + pages, stream)?;
        }
        Ok(())
    }

    /// Serves a batch of requests, drawn together so that their table entries can be fetched
    /// together.
    fn batch(&mut self) -> Result<(), Full> {
        if self.trace.is_some() {
            return self.replay_batch();
        }
        let mut requests = [Request::default(); BATCH];
        let mut touched = [Write::default(); BATCH];
        for (request, write) in requests.iter_mut().zip(&mut touched) {
            *request = self.requests.draw();
            write.page = request.page;
        }
        self.ftl.prefetch(&touched);
        for request in requests {
            if request.action == Action::Trim {
                self.trim(request);
                continue;
            }
            let (arrived, slot) = loop {
                let admission_ns = self.next_admission_ns();
                match self.arrivals.next(admission_ns.unwrap_or(u64::MAX)) {
                    Some(next) => break next,
                    None => self.admit(admission_ns)?,
                }
            };
            self.arrive(Waiting { request, arrived_ns: arrived, slot })?;
        }
        Ok(())
    }

    #[inline]
    fn next_admission_ns(&self) -> Option<u64> {
        self.throttle.as_ref()?.next_admission_ns(self.now_ns)
    }

    /// Serves a request, or lets it wait.
    #[inline]
    fn arrive(&mut self, arrival: Waiting) -> Result<(), Full> {
        let at_ns = arrival.arrived_ns;
        if let (Some(throttle), Action::Write) = (&mut self.throttle, arrival.request.action) {
            if !throttle.admits(at_ns) {
                throttle.wait(arrival);
                self.arrivals.completed(arrival.slot, u64::MAX);
                return Ok(());
            }
            throttle.admitted(at_ns);
        }
        self.complete(arrival, at_ns)
    }

    /// Admits the first write in the queue.
    fn admit(&mut self, at_ns: Option<u64>) -> Result<(), Full> {
        let Some((at_ns, throttle)) = at_ns.zip(self.throttle.as_mut()) else { return Ok(()) };
        let Some(first) = throttle.take() else { return Ok(()) };
        throttle.admitted(at_ns);
        self.complete(first, at_ns)
    }

    #[inline]
    fn complete(&mut self, arrival: Waiting, at_ns: u64) -> Result<(), Full> {
        let outside_ns = at_ns - arrival.arrived_ns;
        let done = self.serve(arrival.request, at_ns, outside_ns)?;
        self.arrivals.completed(arrival.slot, done);
        self.now_ns = self.now_ns.max(at_ns);
        self.record(arrival.request.action, done - arrival.arrived_ns);
        Ok(())
    }

    fn replay_batch(&mut self) -> Result<(), Full> {
        for _ in 0..BATCH {
            let Some((arrived, request)) = self.trace.as_mut().and_then(Iterator::next) else {
                while let Some(at_ns) = self.next_admission_ns() {
                    self.admit(Some(at_ns))?;
                }
                break;
            };
            while let Some(at_ns) = self.next_admission_ns().filter(|&at_ns| at_ns <= arrived) {
                self.admit(Some(at_ns))?;
            }
            self.trace_left -= 1;
            if request.action == Action::Trim {
                self.trim(request);
                continue;
            }
            self.arrive(Waiting { request, arrived_ns: arrived, slot: None })?;
        }
        Ok(())
    }

    fn trim(&mut self, request: Request) {
        (request.page..request.page + request.pages).for_each(|page| self.ftl.trim(page));
    }

    #[inline]
    fn record(&mut self, action: Action, latency_ns: u64) {
        self.window.requests += 1;
        self.steady_requests += u64::from(self.steady.is_some());
        if action == Action::Write {
            self.window.writes += 1;
            self.window.write.record(latency_ns);
        } else {
            self.window.read.record(latency_ns);
        }
    }

    /// Serves a request that waited outside for `outside_ns`; returns when it is done.
    #[inline]
    fn serve(&mut self, request: Request, arrived: u64, outside_ns: u64) -> Result<u64, Full> {
        let mut done = arrived;
        self.work_while_idle(arrived);
        for page in request.page..request.page + request.pages {
            self.dies.at(arrived);
            let die = if request.action == Action::Read {
                let Some(die) = self.ftl.locate(page) else {
                    self.unmapped_reads += 1;
                    continue;
                };
                done = done.max(self.dies.read(die));
                die
            } else {
                let die = self.dies.first_free();
                let stream = if self.apart { request.part } else { 0 };
                let free_ns = self.dies.free_ns(die).max(arrived);
                self.ftl.keep_pace(stream, die, &mut self.dies);
                let placed = self.ftl.write(Write { page, stream }, die, &mut self.dies)?;
                let waited_ns = self.dies.free_ns(die).max(arrived) - free_ns;
                self.cliff.note(self.ftl.totals().host_pages, outside_ns + waited_ns);
                done = done.max(self.dies.program(die, placed));
                die
            };
            if let Some(background) = &mut self.background {
                background.due.set(die, self.dies.free_ns(die) + background.idle_ns);
                if let Some(throttle) = &mut self.throttle {
                    let collects = self.ftl.lacks_free_blocks(die, background.free_wanted);
                    throttle.set_collects(die, collects);
                }
            }
        }
        Ok(done)
    }

    /// Performs the background work of idle dies until `arrived`; an operation that has started is
    /// completed. It covers all dies, so that a write can go to one that is idle if there is one.
    #[inline]
    fn work_while_idle(&mut self, arrived: u64) {
        let Some(background) = &mut self.background else { return };
        while background.due.first_ns() < arrived {
            let die = background.due.first();
            self.dies.at(background.due.first_ns());
            let worked = self.ftl.background(die, background.free_wanted, &mut self.dies);
            background.due.set(die, if worked { self.dies.free_ns(die) } else { NEVER });
            if let Some(throttle) = &mut self.throttle {
                let lacks = self.ftl.lacks_free_blocks(die, background.free_wanted);
                throttle.set_collects(die, worked && lacks);
            }
        }
    }

    fn take_point(&mut self, drive_fills: f64) {
        let window = &mut self.window;
        let seconds = (self.now_ns.saturating_sub(window.from_ns)).max(1) as f64 / 1e9;
        let mut heat = BTreeMap::new();
        for (ns, count) in window.read.buckets().chain(window.write.buckets()) {
            *heat.entry(heat_bucket(ns)).or_insert(0) += count;
        }
        self.points.push(Point {
            t_ns: self.now_ns * u64::from(self.plan.scale),
            drive_fills,
            iops: window.requests as f64 / seconds,
            write_iops: window.writes as f64 / seconds,
            wa: self.ftl.totals().since(&window.totals).amplification(),
            read: Percentiles::of(&window.read),
            write: Percentiles::of(&window.write),
            free_blocks: self.ftl.free_blocks_min(),
            heat: heat.into_iter().collect(),
        });
        if self.steady.is_some() {
            self.reads.merge(&window.read);
            self.writes.merge(&window.write);
        }
        window.read.clear();
        window.write.clear();
        (window.requests, window.writes) = (0, 0);
        (window.from_ns, window.totals) = (self.now_ns, *self.ftl.totals());
        self.take_frame(drive_fills);
    }

    fn take_frame(&mut self, drive_fills: f64) {
        let (blocks, frames) = self.plan.frames;
        let due = self.plan.drive_fills * self.frames.len() as f64 / f64::from(frames.max(1));
        if frames > 0 && (drive_fills >= due || self.frames.is_empty()) {
            let drive_fills_millionth = (drive_fills * 1e6) as u64;
            let map = self.ftl.block_map(blocks as usize);
            self.frames.push(Frame { drive_fills_millionth, map });
        }
    }

    fn fresh(&self) -> Option<f64> {
        let until = self.cliff().map_or(0.1 * self.plan.drive_fills, |cliff| 0.9 * cliff);
        let before = self.points.iter().take_while(|point| point.drive_fills <= until);
        let (mut from_ns, mut requests) = (0, 0.0);
        for point in before {
            requests += point.iops * (point.t_ns - from_ns) as f64;
            from_ns = point.t_ns;
        }
        let first = || self.points.first().map(|point| point.iops);
        if from_ns > 0 { Some(requests / from_ns as f64) } else { first() }
    }

    fn rounds(&self) -> Vec<f64> {
        let rates: Vec<f64> = self.points.iter().map(|point| point.iops).collect();
        let round = (rates.len() / 20).max(1);
        let last = &rates[rates.len() - (5 * round).min(rates.len())..];
        last.chunks(round).map(|round| round.iter().sum::<f64>() / round.len() as f64).collect()
    }

    fn into_outcome(self) -> Outcome {
        let cliff_drive_fills = self.cliff();
        let config: Config = self.ftl.config().clone();
        let plan = self.plan;
        let scale = u64::from(plan.scale);
        let (from_drive_fills, from_ns, before) = self.steady.unwrap_or((0.0, 0, self.before));
        let duration_ns = self.now_ns.saturating_sub(from_ns);
        let totals = self.ftl.totals().since(&before);
        let mut erases = BTreeMap::new();
        self.ftl.erase_counts().for_each(|count| *erases.entry(count).or_insert(0) += 1);
        let filled = if plan.start == Start::Filled { 1.0 } else { 0.0 };
        Outcome {
            engine: self.ftl.name(),
            iops_fresh: self.fresh(),
            steady: Steady {
                from_drive_fills,
                duration_ns: duration_ns * scale,
                iops: self.steady_requests as f64 * 1e9 / duration_ns.max(1) as f64,
                wa: totals.amplification(),
                totals,
                is_settled: stats::settled(&self.rounds()),
                reads: self.reads,
                writes: self.writes,
            },
            totals: self.ftl.totals().since(&self.before),
            cliff_drive_fills,
            cliff_drive_fills_analytic: config.effective_alpha() - filled,
            wa_analytic: plan.analytic_amplification(&config),
            iops_analytic: plan.analytic_iops(&config, totals.amplification()),
            erases: erases.into_iter().collect(),
            unmapped_reads: self.unmapped_reads,
            throttled_writes: self.throttle.as_ref().map_or(0, |throttle| throttle.throttled),
            waiting_writes: self.throttle.as_ref().map_or(0, Throttle::waiting),
            elapsed_ns: self.now_ns * scale,
            memory_bytes: self.ftl.memory_bytes(),
            digest: self.ftl.digest(),
            ended_by: self.ended_by,
            points: self.points,
            frames: self.frames,
            plan: plan.clone(),
            config,
        }
    }
}

/// Index of a latency's bucket: eight buckets per doubling, starting at a microsecond.
fn heat_bucket(ns: u64) -> u16 {
    ((ns.max(1000) as f64 / 1000.0).log2() * 8.0) as u16
}

/// The latency at which a bucket of [`Point::heat`] begins, in nanoseconds.
pub fn heat_from_ns(bucket: u16) -> f64 {
    1000.0 * (f64::from(bucket) / 8.0).exp2()
}
