//! Keys of the JSON document of `size`; the renderer adds schema, version and tables. Byte rates
//! are decimal megabytes per second.

use blockstone_base::stats::Estimate;
use blockstone_base::verdict::Verdict;
use blockstone_size::consolidation::Consolidation;
use blockstone_size::hours::clock;
use blockstone_size::need::Quantity;
use blockstone_size::{Observation, Percentiles};
use schemars::JsonSchema;
use serde::Serialize;

use super::args::SizeArgs;
use super::{Sized, drive};

#[derive(Serialize, JsonSchema)]
pub struct SizeDocument {
    tool_version: &'static str,
    /// One entry per interval and instance or cluster; empty for a need that was stated.
    sources: Vec<SourceKeys>,
    need: NeedKeys,
    /// Consolidation of several databases, or of the instances of one; null for a single one.
    consolidation: Option<ConsolidationKeys>,
    ceilings: Vec<CeilingKeys>,
    answer: AnswerKeys,
    /// The command that drives the need, with `PATH` for the storage; null without requests.
    drive: Option<String>,
    /// Result of the run given by `--verify`.
    verified: Option<VerifiedKeys>,
    verdicts: Vec<Verdict>,
}

#[derive(Serialize, JsonSchema)]
struct VerifiedKeys {
    predicted_iops: Estimate,
    /// Null if a rule condemned it.
    iops: Option<Estimate>,
    wanted_latency_ns_p99: Option<f64>,
    /// The p99 that the curve measured at the loads just below and above the need; 0 if it has no
    /// load below.
    predicted_latency_ns_p99: Option<[f64; 2]>,
    latency_ns_p99: Option<Estimate>,
}

#[derive(Serialize, JsonSchema)]
struct SourceKeys {
    name: String,
    /// Beginning of the interval, by the clock of the server.
    begin: String,
    seconds: f64,
    reads_per_s: Option<f64>,
    writes_per_s: Option<f64>,
    read_mbps: Option<f64>,
    write_mbps: Option<f64>,
    redo_mbps: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct NeedKeys {
    /// Writes to the storage per write of the database.
    penalty: f64,
    /// Percentile that hardware is sized for; `stated` for a need that was not observed.
    percentile: String,
    /// Reads and writes of the database per second at that percentile.
    reads_per_s: Option<f64>,
    writes_per_s: Option<f64>,
    /// Shortest and longest time that the values are averaged over; null for a stated need.
    averaging_seconds: Option<[f64; 2]>,
    /// Number of intervals, or of hours of the week for several databases, and of those that lack
    /// instances: the values of the latter are lower bounds.
    intervals: u64,
    partial_intervals: u64,
    hardware_iops: IopsKeys,
    /// All known quantities of a need that was observed, in the units that `name` gives: per
    /// second, bytes, cores; requests of tablespaces by their class.
    quantities: Vec<QuantityKeys>,
    /// Growth of the weekly p95; null if there are too few weeks, as `no_growth` explains.
    growth: Option<GrowthKeys>,
    no_growth: Option<String>,
}

/// Requests per second that reach the disks. Null if there are too few intervals.
#[derive(Default, Serialize, JsonSchema)]
struct IopsKeys {
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    /// 95th percentile of the time, not of the intervals.
    p95_weighted: Option<f64>,
    /// 95 % intervals by order statistics; the upper end is null if no value bounds it.
    p50_interval: Option<[Option<f64>; 2]>,
    p95_interval: Option<[Option<f64>; 2]>,
    p99_interval: Option<[Option<f64>; 2]>,
    /// Sum of the highest values within an interval: an upper bound.
    most: Option<f64>,
    /// Share of the time within 1 % of the maximum.
    at_max_share: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct QuantityKeys {
    name: &'static str,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct GrowthKeys {
    weeks: u64,
    /// Additional hardware IOPS per week.
    per_week: Estimate,
    /// The p95 after as many further weeks as were observed.
    after: Estimate,
}

#[derive(Serialize, JsonSchema)]
struct ConsolidationKeys {
    #[schemars(extend("enum" = ["databases", "instances"]))]
    of: &'static str,
    sum_of_peaks: f64,
    peak_of_sums: f64,
    /// Hour of the week for databases, point in time for instances.
    at: String,
    /// Largest sum of the highest values within intervals.
    sum_of_most: Option<f64>,
    parts: Vec<PartKeys>,
}

#[derive(Serialize, JsonSchema)]
struct PartKeys {
    name: String,
    peak: f64,
    /// IOPS of this part at the peak of sums; null if unknown at that time.
    at_peak: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct CeilingKeys {
    name: String,
    need: f64,
    unit_capacity: f64,
    units: u64,
    binding: bool,
    /// Units ÷ units of the binding ceiling.
    slack: f64,
    /// Utilisation of all units of the answer.
    utilisation: f64,
}

#[derive(Serialize, JsonSchema)]
struct AnswerKeys {
    unit: String,
    units: u64,
    /// The same capacity as larger units.
    packed: Vec<PackedKeys>,
    /// Ceilings that could not be checked, because the capability of a unit is not known.
    unchecked: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct PackedKeys {
    unit: String,
    units: u64,
    /// Number of units before rounding up.
    exact: f64,
}

pub fn document(sized: &Sized, args: &SizeArgs) -> SizeDocument {
    let answer = &sized.hardware.answer;
    let ceiling = |it: &blockstone_size::hardware::Ceiling| CeilingKeys {
        name: it.name.clone(),
        need: it.need,
        unit_capacity: it.unit_capacity,
        units: it.units,
        binding: it.binding,
        slack: it.slack,
        utilisation: it.utilisation,
    };
    let packed = |it: &blockstone_size::hardware::catalogue::Packed| PackedKeys {
        unit: it.unit.clone(),
        units: it.units,
        exact: it.exact,
    };
    let consolidation = sized.need.as_ref().and_then(|it| it.consolidation.as_ref());
    SizeDocument {
        tool_version: env!("CARGO_PKG_VERSION"),
        sources: sized.sources.observations.iter().map(source).collect(),
        need: need(sized),
        consolidation: consolidation.map(consolidated),
        ceilings: answer.ceilings.iter().map(ceiling).collect(),
        answer: AnswerKeys {
            unit: answer.unit.clone(),
            units: answer.units,
            packed: sized.hardware.packed.iter().map(packed).collect(),
            unchecked: answer.unchecked.iter().map(|it| (*it).to_owned()).collect(),
        },
        drive: drive::of(sized, args),
        verified: sized.verified.as_ref().map(|it| VerifiedKeys {
            predicted_iops: it.predicted_iops,
            iops: it.iops,
            wanted_latency_ns_p99: it.wanted_latency_ns_p99,
            predicted_latency_ns_p99: it.predicted_latency_ns_p99.map(Into::into),
            latency_ns_p99: it.latency_ns_p99,
        }),
        verdicts: sized.verdicts.clone(),
    }
}

fn source(it: &Observation) -> SourceKeys {
    let mbps = |bytes: Option<f64>| bytes.map(|bytes| bytes / 1e6);
    SourceKeys {
        name: it.name(),
        begin: clock(it.begin_s),
        seconds: it.seconds,
        reads_per_s: it.reads_per_s,
        writes_per_s: it.writes_per_s,
        read_mbps: mbps(it.read_bytes_per_s),
        write_mbps: mbps(it.write_bytes_per_s),
        redo_mbps: mbps(it.redo_bytes_per_s),
    }
}

fn need(sized: &Sized) -> NeedKeys {
    let growth = sized.need.as_ref().map(|it| &it.growth);
    NeedKeys {
        penalty: sized.question.penalty,
        percentile: if sized.need.is_some() { sized.named() } else { "stated" }.to_owned(),
        reads_per_s: sized.demand.reads_per_s,
        writes_per_s: sized.demand.writes_per_s,
        averaging_seconds: sized.need.as_ref().map(|it| it.averaging_s.into()),
        intervals: sized.need.as_ref().map_or(0, |it| it.hardware_iops.samples as u64),
        partial_intervals: sized.need.as_ref().map_or(0, |it| it.partial.0 as u64),
        hardware_iops: match &sized.need {
            Some(need) => iops(&need.hardware_iops, need.most_hardware_iops),
            None => IopsKeys { max: sized.hardware_iops(), ..IopsKeys::default() },
        },
        quantities: sized.need.iter().flat_map(|it| &it.quantities).map(quantity).collect(),
        growth: growth.and_then(|it| it.as_ref().ok()).map(|it| GrowthKeys {
            weeks: it.weeks as u64,
            per_week: it.per_week,
            after: it.after,
        }),
        no_growth: growth.and_then(|it| it.as_ref().err()).cloned(),
    }
}

fn quantity((quantity, found): &(Quantity, Percentiles)) -> QuantityKeys {
    let value = |it: Option<Estimate>| it.map(|it| it.value);
    QuantityKeys {
        name: quantity.key,
        p50: value(found.p50),
        p95: value(found.p95),
        p99: value(found.p99),
        max: found.max,
    }
}

fn iops(found: &Percentiles, most: Option<f64>) -> IopsKeys {
    let value = |it: Option<Estimate>| it.map(|it| it.value);
    let finite = |end: f64| end.is_finite().then_some(end);
    let interval = |it: Option<Estimate>| it.map(|it| [it.low, it.high].map(finite));
    IopsKeys {
        p50: value(found.p50),
        p95: value(found.p95),
        p99: value(found.p99),
        max: found.max,
        p95_weighted: found.p95_weighted,
        p50_interval: interval(found.p50),
        p95_interval: interval(found.p95),
        p99_interval: interval(found.p99),
        most,
        at_max_share: found.at_max_share,
    }
}

fn consolidated(it: &Consolidation) -> ConsolidationKeys {
    let part = |part: &blockstone_size::consolidation::Part| PartKeys {
        name: part.name.clone(),
        peak: part.peak,
        at_peak: part.at_peak,
    };
    ConsolidationKeys {
        of: it.of,
        sum_of_peaks: it.sum_of_peaks,
        peak_of_sums: it.peak_of_sums,
        at: it.at.clone(),
        sum_of_most: it.most,
        parts: it.parts.iter().map(part).collect(),
    }
}
