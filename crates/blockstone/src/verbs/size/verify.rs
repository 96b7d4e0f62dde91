//! Compares a run with a need.

use crate::failure::Failure;
use crate::verbs::size::rules::RunOfNeed;
use anyhow::{Result, bail};
use blockstone_base::stats::Estimate;
use blockstone_judge::RunFindings;
use blockstone_size::hardware::Demand;
use blockstone_size::need::Need;

use super::args::SizeArgs;
use super::hardware::Hardware;
use crate::recordings;
use crate::verb::Context;

/// The need and hardware that a run is compared with.
pub struct Held<'a> {
    pub demand: &'a Demand,
    /// `None` for a need that was stated.
    pub need: Option<&'a Need>,
    pub hardware: &'a Hardware,
}

pub fn verify(
    name: &str,
    held: &Held<'_>,
    args: &SizeArgs,
    context: &Context,
) -> Result<RunOfNeed> {
    let recording = recordings::open(name, &context.global.runs_dir)?;
    let dir = recording.dir.display().to_string();
    if recording.manifest.verb != "run" {
        bail!(Failure::new(
            format!("verify with {dir}: it was made by {}", recording.manifest.verb),
            "name a recording of blockstone run"
        ));
    }
    let findings = blockstone_judge::find_run(&recording, None)?;
    let Some(predicted_iops) = predicted(held.demand, held.need, args) else {
        bail!(Failure::new(
            format!("verify with {dir}: the need has no requests"),
            "size a load that has some"
        ));
    };
    Ok(RunOfNeed {
        predicted_iops,
        iops: iops(&findings),
        wanted_latency_ns_p99: args.hardware.p99.map(|it| it.get() as f64),
        predicted_latency_ns_p99: held
            .hardware
            .predicted
            .map(|it| (it.low_s.unwrap_or(0.0) * 1e9, it.high_s * 1e9)),
        latency_ns_p99: estimate(&findings, "read_latency_ns_p99"),
    })
}

/// Requests of the database, with the interval of the percentile that they are taken from.
fn predicted(demand: &Demand, need: Option<&Need>, args: &SizeArgs) -> Option<Estimate> {
    let (reads, writes) = (demand.reads_per_s?, demand.writes_per_s?);
    let iops = reads + writes;
    let exact = Estimate { value: iops, low: iops, high: iops, samples: 1, duration_ns: 0 };
    let Some(need) = need else { return Some(exact) };
    let found = &need.hardware_iops;
    let of_percentile = match args.need.percentile.as_str() {
        "p50" => found.p50,
        "p95" => found.p95,
        "p99" => found.p99,
        _ => None,
    };
    let hardware = args.need.redundancy().hardware_iops(reads, writes);
    Some(of_percentile.map_or(exact, |it| it.scaled(iops / hardware)))
}

fn iops(findings: &RunFindings) -> Option<Estimate> {
    let (reads, writes) = (estimate(findings, "read_iops")?, estimate(findings, "write_iops"));
    let Some(writes) = writes else { return Some(reads) };
    let half = |it: &Estimate| (it.high - it.low) / 2.0;
    let both = half(&reads).hypot(half(&writes));
    Some(Estimate::around(
        reads.value + writes.value,
        both,
        reads.samples + writes.samples,
        reads.duration_ns,
    ))
}

fn estimate(findings: &RunFindings, name: &str) -> Option<Estimate> {
    let (_, figure) = findings.summary.iter().find(|(known, _)| known == name)?;
    figure.condemned_by.is_empty().then_some(figure.estimate)
}
