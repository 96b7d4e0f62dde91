//! Seeded trials of intervals: loads that vary in known ways are measured with the functions that
//! reports use, to see how often the true value is inside the interval.
//!
//! `coverage TRIALS` prints one JSON document: for each load and way of measuring, the share of
//! intervals that hold the true value.

use blockstone_base::LatencyHistogram;
use blockstone_base::dist::normal;
use blockstone_base::histogram::Buckets;
use blockstone_base::rng::Rng;
use blockstone_base::stats::{self, Estimate};
use serde_json::{Map, Value, json};

/// Variation of the rate of a tick around 1.
const SCATTER: f64 = 0.04;
/// Mean operations per tick.
const TICK_OPS: f64 = 500.0;
/// Tick of `calibrate`, and how narrow an interval ends a window.
const CALIBRATE_TICK_NS: u64 = 20_000_000;
const NARROW: f64 = 0.02;
/// Tick of `run`.
const RUN_TICK_NS: u64 = 100_000_000;

/// Levels of a rate from tick to tick, whose long-run mean is 1.
type Levels = fn(&mut Rng, usize) -> Vec<f64>;

/// Rise of the rate of the load "drift" from the beginning of a window to its end.
const DRIFT: f64 = 0.1;

const LOADS: [(&str, Levels); 11] = [
    ("independent", |rng, ticks| correlated(rng, ticks, 0.0)),
    ("AR(1) 0.5", |rng, ticks| correlated(rng, ticks, 0.5)),
    ("AR(1) 0.9", |rng, ticks| correlated(rng, ticks, 0.9)),
    ("AR(1) 0.99", |rng, ticks| correlated(rng, ticks, 0.99)),
    ("bursts", bursts),
    ("throttle sawtooth", sawtooth),
    ("1/f wander", wander),
    ("drift", drift),
    ("wander 1 %", |rng, ticks| slow(rng, ticks, 0.01)),
    ("wander 3 %", |rng, ticks| slow(rng, ticks, 0.03)),
    ("wander 5 %", |rng, ticks| slow(rng, ticks, 0.05)),
];

/// `calibrate` keeps latencies in pages of this length.
const PAGE_NS: u64 = 50_000_000;
/// Ticks of a window that confirms a headline, and from its start to that of the next.
const CONFIRM_TICKS: usize = 40;
const SPACING_TICKS: usize = 250;
const WINDOWS: usize = 3;

/// Latencies timed per tick of a run: 1,000 per second.
const TICK_LATENCIES: usize = 100;
const QUANTILES: [f64; 2] = [0.5, 0.99];
/// Trials of rates per trial of percentiles, which takes longer.
const TRIALS_PER_TIMED: u32 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trials = std::env::args().nth(1).ok_or("usage: coverage TRIALS")?.parse()?;
    let rows: Vec<Value> = LOADS.iter().map(|load| row(load, trials)).collect();
    let document = json!({ "trials": trials, "loads": rows });
    let mut out = std::io::stdout().lock();
    Ok(std::io::Write::write_all(&mut out, format!("{document}\n").as_bytes())?)
}

/// Number of intervals, and of those that held the true value.
#[derive(Clone, Copy, Default)]
struct Held {
    inside: u32,
    of: u32,
}

impl Held {
    fn add(&mut self, inside: bool) {
        self.inside += u32::from(inside);
        self.of += 1;
    }

    fn share(self) -> Option<f64> {
        (self.of > 0).then(|| f64::from(self.inside) / f64::from(self.of))
    }
}

fn row((name, levels): &(&str, Levels), trials: u32) -> Value {
    let [mut fixed, mut long, mut adaptive, mut early] = [Held::default(); 4];
    for trial in 0..trials {
        let mut rng = Rng::new(u64::from(trial), 1);
        let second = ticks(&levels(&mut rng, 50), CALIBRATE_TICK_NS);
        fixed.add(holds_rate(&second, 1.0));
        let length = adaptive_length(&second);
        let missing = 1.0 - (length - 1) as f64 / (second.len() - 1) as f64;
        let truth = if *name == "drift" { 1.0 - DRIFT * missing / 2.0 } else { 1.0 };
        let inside = holds_rate(&second[..length], truth);
        adaptive.add(inside);
        if length < second.len() {
            early.add(inside);
        }
        long.add(holds_rate(&ticks(&levels(&mut rng, 300), RUN_TICK_NS), 1.0));
    }
    let columns = [
        ("mean_fixed_1s", fixed.share()),
        ("mean_run_30s", long.share()),
        ("mean_adaptive", adaptive.share()),
        ("mean_adaptive_early", early.share()),
        ("early", Some(f64::from(early.of) / f64::from(trials))),
    ];
    let spaced = [
        ("mean_one_window", one_window(*levels, trials)),
        ("mean_spaced", spaced_windows(*levels, trials)),
    ];
    let timed = percentiles(*levels, trials / TRIALS_PER_TIMED);
    let columns = columns.into_iter().chain(spaced).chain(timed);
    let shares = columns.map(|(key, share)| (key.to_owned(), json!(share)));
    let mut row = Map::from_iter([("load".to_owned(), json!(name))]);
    row.extend(shares);
    Value::Object(row)
}

/// Returns a counter of operations at the ticks.
fn ticks(levels: &[f64], tick_ns: u64) -> Vec<(u64, u64)> {
    let mut ops = 0.0;
    let mut ticks = vec![(0, 0)];
    for (tick, level) in (1..).zip(levels) {
        ops += level.max(0.0) * TICK_OPS;
        ticks.push((tick * tick_ns, ops as u64));
    }
    ticks
}

/// Returns whether the interval of these ticks holds a rate whose level is `truth`.
fn holds_rate(ticks: &[(u64, u64)], truth: f64) -> bool {
    let level = stats::rate_per_s(ticks).map(|rate| {
        let tick_ns = (ticks[1].0 - ticks[0].0) as f64;
        rate.scaled(tick_ns / 1e9 / TICK_OPS)
    });
    level.is_some_and(|level| (level.low..=level.high).contains(&truth))
}

/// Returns the number of ticks of a window that may end after half of its length.
fn adaptive_length(ticks: &[(u64, u64)]) -> usize {
    let mut lengths = ticks.len() / 2 + 1..ticks.len();
    lengths.find(|&length| stats::is_narrow(&ticks[..length], NARROW)).unwrap_or(ticks.len())
}

/// Returns how often the interval of a window as long as all that confirm a headline holds the
/// rate.
fn one_window(levels: Levels, trials: u32) -> Option<f64> {
    let mut held = Held::default();
    for trial in 0..trials {
        let mut rng = Rng::new(u64::from(trial), 4);
        let levels = levels(&mut rng, WINDOWS * CONFIRM_TICKS);
        held.add(holds_rate(&ticks(&levels, CALIBRATE_TICK_NS), 1.0));
    }
    held.share()
}

/// Returns the levels of the windows that confirm a headline.
fn confirming(levels: Levels, rng: &mut Rng) -> Vec<Vec<f64>> {
    let levels = levels(rng, WINDOWS * SPACING_TICKS);
    levels.chunks(SPACING_TICKS).map(|chunk| chunk[..CONFIRM_TICKS].to_vec()).collect()
}

/// Returns how often the interval of the windows' mean holds the rate.
fn spaced_windows(levels: Levels, trials: u32) -> Option<f64> {
    let mut held = Held::default();
    for trial in 0..trials {
        let mut rng = Rng::new(u64::from(trial), 5);
        let of = |window: Vec<f64>| {
            let rate = stats::rate_per_s(&ticks(&window, CALIBRATE_TICK_NS))?;
            Some(rate.scaled(CALIBRATE_TICK_NS as f64 / 1e9 / TICK_OPS))
        };
        let rates = confirming(levels, &mut rng).into_iter().map(of).collect::<Option<Vec<_>>>();
        let pooled = rates.and_then(|rates| stats::pool(&rates));
        held.add(pooled.is_some_and(|pooled| (pooled.low..=pooled.high).contains(&1.0)));
    }
    held.share()
}

/// Latencies of a window, whole and by its parts.
struct Timed {
    all: LatencyHistogram,
    parts: Vec<Buckets>,
}

impl Timed {
    /// Draws [`TICK_LATENCIES`] latencies in each tick, in parts of `part_ns`.
    fn new(rng: &mut Rng, levels: &[f64], (tick_ns, part_ns): (u64, u64)) -> Self {
        let mut parts = vec![LatencyHistogram::new(); 1];
        for (tick, &level) in (0..).zip(levels) {
            for each in 0..TICK_LATENCIES as u64 {
                let t_ns = tick * tick_ns + each * tick_ns / TICK_LATENCIES as u64;
                parts.resize_with((t_ns / part_ns) as usize + 1, LatencyHistogram::new);
                let part = parts.last_mut().expect("there is one");
                part.record(latency(rng, level) as u64);
            }
        }
        let mut all = LatencyHistogram::new();
        for part in &parts {
            all.merge(part);
        }
        Self { all, parts: parts.iter().map(|part| part.buckets().collect()).collect() }
    }

    fn quantile(&self, quantile: f64) -> Estimate {
        self.all.quantile(quantile, &self.parts.iter().collect::<Vec<_>>(), 1)
    }
}

/// Returns a quantile of several windows.
fn of_windows(windows: &[Timed], quantile: f64) -> Estimate {
    let mut all = LatencyHistogram::new();
    for window in windows {
        all.merge(&window.all);
    }
    let parts: Vec<&Buckets> = windows.iter().flat_map(|window| &window.parts).collect();
    let each: Vec<Estimate> = windows.iter().map(|window| window.quantile(quantile)).collect();
    stats::with_repeats(all.quantile(quantile, &parts, 1), &each)
}

/// Returns how often the interval of each quantile holds the long-run value: for 30 seconds, for a
/// window of one second, and for the windows that confirm a headline.
fn percentiles(levels: Levels, trials: u32) -> Vec<(&'static str, Option<f64>)> {
    const CALIBRATE: (u64, u64) = (CALIBRATE_TICK_NS, PAGE_NS);
    const RUN: (u64, u64) = (RUN_TICK_NS, 1_000_000_000);
    // Many short windows that do not depend on each other.
    let mut all = Vec::new();
    let mut rng = Rng::new(0, 2);
    for _ in 0..20_000 {
        let window = levels(&mut rng, 20);
        for level in window {
            (0..2).for_each(|_| all.push(latency(&mut rng, level)));
        }
    }
    all.sort_by(f64::total_cmp);
    let truths = QUANTILES.map(|quantile| all[(all.len() as f64 * quantile) as usize]);
    let mut held = [Held::default(); 6];
    for trial in 0..trials {
        let mut rng = Rng::new(u64::from(trial), 3);
        let mut timed = |ticks, of| {
            let levels = levels(&mut rng, ticks);
            Timed::new(&mut rng, &levels, of)
        };
        let (run, second) = (timed(300, RUN), timed(50, CALIBRATE));
        let windows = confirming(levels, &mut rng);
        let windows: Vec<Timed> =
            windows.iter().map(|levels| Timed::new(&mut rng, levels, CALIBRATE)).collect();
        for (at, (quantile, truth)) in QUANTILES.into_iter().zip(truths).enumerate() {
            let of =
                [run.quantile(quantile), second.quantile(quantile), of_windows(&windows, quantile)];
            for (way, of) in of.iter().enumerate() {
                held[2 * way + at].add((of.low..=of.high).contains(&truth));
            }
        }
    }
    let names = ["p50_run_30s", "p99_run_30s", "p50_1s", "p99_1s", "p50_spaced", "p99_spaced"];
    names.into_iter().zip(held.map(Held::share)).collect()
}

/// Returns the latency of an operation in nanoseconds: it includes the deviation of the level,
/// threefold.
fn latency(rng: &mut Rng, level: f64) -> f64 {
    200e3 * (3.0 * (level - 1.0)).min(2.0).exp() * (0.35 * normal(rng)).exp()
}

/// Returns a first-order autoregressive process.
fn process(rng: &mut Rng, ticks: usize, correlation: f64) -> Vec<f64> {
    let fresh = (1.0 - correlation * correlation).sqrt();
    let mut deviation = normal(rng);
    (0..ticks)
        .map(|_| {
            deviation = correlation * deviation + fresh * normal(rng);
            deviation
        })
        .collect()
}

fn correlated(rng: &mut Rng, ticks: usize, correlation: f64) -> Vec<f64> {
    process(rng, ticks, correlation).into_iter().map(|z| 1.0 + SCATTER * z).collect()
}

/// Returns levels that are 1.5 times as high for three ticks on average, one tick in eight.
fn bursts(rng: &mut Rng, ticks: usize) -> Vec<f64> {
    const BEGINS: f64 = 0.05;
    const ENDS: f64 = 1.0 / 3.0;
    const SHARE: f64 = BEGINS / (BEGINS + ENDS);
    let mut bursting = rng.unit() < SHARE;
    (0..ticks)
        .map(|_| {
            bursting = if bursting { rng.unit() >= ENDS } else { rng.unit() < BEGINS };
            let level = if bursting { 1.5 } else { 1.0 };
            (level + SCATTER * normal(rng)) / (1.0 + 0.5 * SHARE)
        })
        .collect()
}

/// Returns the levels of a throttle that releases everything it allows in 5.3 ticks in one go.
fn sawtooth(rng: &mut Rng, ticks: usize) -> Vec<f64> {
    const PERIOD: f64 = 5.3;
    let phase = rng.unit();
    let released = |tick: usize| (tick as f64 / PERIOD + phase).floor();
    (0..ticks).map(|tick| (released(tick + 1) - released(tick)) * PERIOD).collect()
}

/// Sums processes whose memory doubles from one to the next, from one tick to a thousand.
fn wander(rng: &mut Rng, ticks: usize) -> Vec<f64> {
    const OCTAVES: i32 = 11;
    let mut levels = vec![1.0; ticks];
    for octave in 0..OCTAVES {
        let one = process(rng, ticks, (-0.5_f64.powi(octave)).exp());
        let scatter = SCATTER / f64::from(OCTAVES).sqrt();
        levels.iter_mut().zip(one).for_each(|(level, z)| *level += scatter * z);
    }
    levels
}

/// Returns ticks that scatter independently around a level that drifts by `spread` over two
/// seconds.
fn slow(rng: &mut Rng, ticks: usize, spread: f64) -> Vec<f64> {
    let correlation = (-(CALIBRATE_TICK_NS as f64) / 2e9).exp();
    let level = process(rng, ticks, correlation);
    level.into_iter().map(|z| 1.0 + spread * z + SCATTER * normal(rng)).collect()
}

/// Returns levels that rise by [`DRIFT`]. A window that ends early is compared with the true rate
/// of its own time.
fn drift(rng: &mut Rng, ticks: usize) -> Vec<f64> {
    let at = |tick: usize| (tick as f64 + 0.5) / ticks as f64 - 0.5;
    (0..ticks).map(|tick| 1.0 + DRIFT * at(tick) + SCATTER * normal(rng)).collect()
}
