//! JSON documents of `flash`. Schema, version and tables are added by the renderer.

use blockstone_flash::device::Device;
use blockstone_flash::estimate::{Cliff, Fall, Life};
use blockstone_flash::fit::Fit;
use blockstone_flash::ftl::Totals;
use blockstone_flash::simulate::{Outcome, Percentiles, Point};
use blockstone_flash::sweep::Swept;
use blockstone_flash::toy::Step;
use blockstone_flash::trace::{BadLine, Format, Trace};
use blockstone_report::render::json::schema::{Document, title};
use schemars::JsonSchema;
use serde::Serialize;

use super::words;

/// Every document of `flash`.
pub const ALL: &[Document] = &[
    Document::of::<SimDocument<'_>>(SIM, "A simulated flash device").with_names(&[&[
        "programs",
        "latencies",
        "figures",
        "over-time",
        "bad-lines",
    ]]),
    Document::of::<SweepDocument<'_>>("flash-sweep", "Write amplification over parameters")
        .with_names(&[&["points", "wear"]]),
    Document::of::<CliffDocument<'_>>("flash-cliff", "When the write cliff comes, by formulas")
        .with_names(&[&["cliff"]]),
    Document::of::<FitDocument<'_>>("flash-fit", "What a measured curve of writes tells")
        .with_names(&[&["fit"]]),
    Document::of::<LifeDocument<'_>>("flash-life", "How long a device lives")
        .with_names(&[&["life"]]),
    Document::of::<ExplainDocument<'_>>("flash-explain", "Garbage collection, step by step")
        .with_names(&[&["steps"]]),
];
const SIM: &str = "flash-sim";
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, JsonSchema)]
pub struct SimDocument<'a> {
    #[serde(flatten)]
    simulation: Simulation<'a>,
    /// The simulation without background collection; absent unless it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Active<'_>")]
    active: Option<Active<'a>>,
    /// The simulation without throttling; absent unless writes were throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Active<'_>")]
    unthrottled: Option<Active<'a>>,
}

/// A second simulation. Its tables are part of those of the whole document.
#[derive(Serialize, JsonSchema)]
struct Active<'a> {
    #[serde(flatten)]
    simulation: Simulation<'a>,
    schema: String,
}

#[derive(Serialize, JsonSchema)]
struct Simulation<'a> {
    tool_version: &'static str,
    seed: u64,
    #[schemars(extend("enum" = ["exact", "counts"]))]
    engine: &'static str,
    /// Digest in hexadecimal; equal for equal plans.
    digest: String,
    summary: Summary,
    latency: Latency,
    pages: Pages<'a>,
    steady: Steady,
    device: FlashDevice<'a>,
    /// The workload and how it arrives, in words.
    load: String,
    /// 1/`scale` of the device was simulated.
    scale: u64,
    /// Simulated time in nanoseconds.
    elapsed_ns: u64,
    /// Writes that waited to be admitted; zero unless writes are throttled.
    throttled_writes: u64,
    /// Those of them that still waited at the end.
    waiting_writes: u64,
    /// Memory that the tables of the simulation take, in bytes.
    memory_bytes: u64,
    /// Reads of pages that do not hold data; the controller answers them.
    unmapped_reads: u64,
    /// Number of blocks for each number of erases: pairs of erases and blocks, in ascending order.
    erases: &'a [(u32, u64)],
    /// Figures of the run over time.
    points: &'a [Point],
    /// Recorded requests that were replayed; null if no trace was replayed.
    trace: Option<Replayed<'a>>,
    /// Reason why the simulation ended early, if it did.
    ended_by: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Summary {
    /// Write amplification in the last quarter: programs ÷ host pages.
    wa: Option<f64>,
    /// Write amplification by formula, if there is one.
    wa_analytic: Option<f64>,
    /// (Simulated − analytic) ÷ analytic.
    wa_error: Option<f64>,
    /// Raw ÷ visible − 1.
    over_provisioning: f64,
    /// Spare part of the raw capacity.
    spare_factor: f64,
    /// Spare that collection can use ÷ pages it can use.
    effective_spare: f64,
    /// Requests per second before anything was collected.
    iops_fresh: Option<f64>,
    /// Requests per second in the last quarter, while any arrived.
    iops_steady: f64,
    iops_steady_analytic: Option<f64>,
    /// Amount written when a write first had to wait for collection, in visible capacities.
    cliff_drive_fills: Option<f64>,
    cliff_drive_fills_analytic: f64,
    /// Whether the end passes SNIA's steady-state test.
    is_settled: bool,
}

/// Latencies in the last quarter; null if there were no such requests.
#[derive(Serialize, JsonSchema)]
struct Latency {
    read: Option<Percentiles>,
    write: Option<Percentiles>,
}

/// Operations on pages and blocks.
#[derive(Serialize, JsonSchema)]
struct Pages<'a> {
    /// Totals of the last quarter.
    steady: &'a Totals,
    /// Totals since the first fill.
    all: &'a Totals,
}

/// The last quarter of the run.
#[derive(Serialize, JsonSchema)]
struct Steady {
    /// Start of the last quarter, in visible capacities written.
    from_drive_fills: f64,
    /// Simulated time in nanoseconds.
    duration_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct FlashDevice<'a> {
    #[serde(flatten)]
    device: &'a Device,
    /// Method of garbage collection, in words.
    collection: String,
    blocks_simulated: u64,
}

#[derive(Serialize, JsonSchema)]
struct Replayed<'a> {
    format: Format,
    lines: u64,
    requests: usize,
    /// Number of lines that could not be read.
    bad_lines: u64,
    /// The first of those lines.
    bad: &'a [BadLine],
}

/// Returns the document of a simulation, and of the one that it is compared with.
pub fn sim<'a>(
    first: &'a Outcome,
    beside: Option<&'a Outcome>,
    trace: Option<&'a Trace>,
) -> SimDocument<'a> {
    let other = |outcome| Active { simulation: simulation(outcome, trace), schema: title(SIM, 1) };
    let (throttled, others) = (first.plan.throttle.is_some(), beside.map(other));
    let (active, unthrottled) = if throttled { (None, others) } else { (others, None) };
    SimDocument { simulation: simulation(first, trace), active, unthrottled }
}

fn simulation<'a>(outcome: &'a Outcome, trace: Option<&'a Trace>) -> Simulation<'a> {
    let (plan, steady) = (&outcome.plan, &outcome.steady);
    Simulation {
        tool_version: VERSION,
        seed: plan.seed,
        engine: outcome.engine,
        digest: format!("{:016x}", outcome.digest),
        summary: summary(outcome),
        latency: Latency {
            read: Percentiles::of(&steady.reads),
            write: Percentiles::of(&steady.writes),
        },
        pages: Pages { steady: &steady.totals, all: &outcome.totals },
        steady: Steady {
            from_drive_fills: steady.from_drive_fills,
            duration_ns: steady.duration_ns,
        },
        device: FlashDevice {
            device: &plan.device,
            collection: words::collection_alone(outcome),
            blocks_simulated: outcome.config.blocks(),
        },
        load: words::load(outcome),
        scale: plan.scale.into(),
        elapsed_ns: outcome.elapsed_ns,
        throttled_writes: outcome.throttled_writes,
        waiting_writes: outcome.waiting_writes,
        memory_bytes: outcome.memory_bytes,
        unmapped_reads: outcome.unmapped_reads,
        erases: &outcome.erases,
        points: &outcome.points,
        trace: trace.map(|trace| Replayed {
            format: trace.format,
            lines: trace.lines,
            requests: trace.requests.len(),
            bad_lines: trace.bad_lines,
            bad: &trace.bad,
        }),
        ended_by: outcome.ended_by.map(|full| full.to_string()),
    }
}

fn summary(outcome: &Outcome) -> Summary {
    let (device, steady) = (&outcome.plan.device, &outcome.steady);
    Summary {
        wa: steady.wa,
        wa_analytic: outcome.wa_analytic,
        wa_error: outcome.wa_error(),
        over_provisioning: device.over_provisioning(),
        spare_factor: device.spare_factor(),
        effective_spare: outcome.effective_spare(),
        iops_fresh: outcome.iops_fresh,
        iops_steady: steady.iops,
        iops_steady_analytic: outcome.iops_analytic,
        cliff_drive_fills: outcome.cliff_drive_fills,
        cliff_drive_fills_analytic: outcome.cliff_drive_fills_analytic,
        is_settled: steady.is_settled,
    }
}

#[derive(Serialize, JsonSchema)]
pub struct SweepDocument<'a> {
    tool_version: &'static str,
    seed: u64,
    points: Vec<SweptPoint<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct SweptPoint<'a> {
    #[serde(flatten)]
    swept: &'a Swept,
    /// Writes of a page per second that the device sustains.
    iops_steady: Option<f64>,
}

pub fn sweep<'a>(points: &'a [Swept], iops: &[Option<f64>], seed: u64) -> SweepDocument<'a> {
    let points = points.iter().zip(iops);
    let points = points.map(|(swept, &iops_steady)| SweptPoint { swept, iops_steady });
    SweepDocument { tool_version: VERSION, seed, points: points.collect() }
}

#[derive(Serialize, JsonSchema)]
pub struct CliffDocument<'a> {
    tool_version: &'static str,
    summary: CliffSummary,
    cliff: &'a Cliff,
}

#[derive(Serialize, JsonSchema)]
struct CliffSummary {
    /// Always null, because nothing is simulated.
    wa: (),
    wa_analytic: f64,
    effective_spare: f64,
    iops_fresh: f64,
    iops_steady: f64,
    /// Amount written before the cliff, in visible capacities; null if the cliff never comes.
    cliff_drive_fills: Option<f64>,
    /// Hours until the cliff at the given rate, or at the rate that the device takes; null if the
    /// cliff never comes.
    hours_to_cliff: Option<f64>,
    /// `never`: background collection keeps up; `at`: the cliff comes; `too-slow`: the device
    /// cannot take this rate even before the cliff.
    outcome: Fall,
    /// Seconds until the cliff at the given rate; null unless `outcome` is `at`.
    cliff_after_s: Option<f64>,
}

pub fn cliff(cliff: &Cliff) -> CliffDocument<'_> {
    let summary = CliffSummary {
        wa: (),
        wa_analytic: cliff.wa,
        effective_spare: cliff.effective_spare,
        iops_fresh: cliff.iops_fresh,
        iops_steady: cliff.iops_steady,
        cliff_drive_fills: cliff.cliff_drive_fills,
        hours_to_cliff: cliff.seconds_to_cliff.map(|seconds| seconds / 3600.0),
        outcome: cliff.outcome,
        cliff_after_s: cliff.seconds_to_cliff.filter(|_| cliff.outcome == Fall::At),
    };
    CliffDocument { tool_version: VERSION, summary, cliff }
}

#[derive(Serialize, JsonSchema)]
pub struct FitDocument<'a> {
    tool_version: &'static str,
    summary: FitSummary,
    fit: &'a Fit,
}

#[derive(Serialize, JsonSchema)]
struct FitSummary {
    wa: Option<f64>,
    effective_spare: Option<f64>,
    cliff_drive_fills: Option<f64>,
    is_settled: bool,
    drive_fills_missing: f64,
}

pub fn fit(fit: &Fit) -> FitDocument<'_> {
    let summary = FitSummary {
        wa: fit.wa,
        effective_spare: fit.effective_spare,
        cliff_drive_fills: fit.cliff_drive_fills,
        is_settled: fit.is_settled,
        drive_fills_missing: fit.drive_fills_missing,
    };
    FitDocument { tool_version: VERSION, summary, fit }
}

#[derive(Serialize, JsonSchema)]
pub struct LifeDocument<'a> {
    tool_version: &'static str,
    summary: LifeSummary,
    life: &'a Life,
}

#[derive(Serialize, JsonSchema)]
struct LifeSummary {
    wa: f64,
    years: f64,
}

pub fn life(life: &Life) -> LifeDocument<'_> {
    let summary = LifeSummary { wa: life.wa, years: life.years };
    LifeDocument { tool_version: VERSION, summary, life }
}

#[derive(Serialize, JsonSchema)]
pub struct ExplainDocument<'a> {
    tool_version: &'static str,
    stories: Vec<Story<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Story<'a> {
    title: &'a str,
    steps: &'a [Step],
}

pub fn explain<'a>(stories: &[(&'a str, &'a [Step])]) -> ExplainDocument<'a> {
    let stories = stories.iter().map(|&(title, steps)| Story { title, steps });
    ExplainDocument { tool_version: VERSION, stories: stories.collect() }
}
