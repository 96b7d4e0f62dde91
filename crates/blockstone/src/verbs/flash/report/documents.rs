//! Keys of the JSON documents of `flash`; schema, version and tables are the renderer's.

use blockstone_flash::estimate::{Cliff, Life};
use blockstone_flash::fit::Fit;
use blockstone_flash::simulate::{Outcome, Percentiles};
use blockstone_flash::sweep::Swept;
use blockstone_flash::toy::{Cell, Step};
use blockstone_flash::trace::Trace;
use serde_json::{Value, json};

use super::words;

pub fn simulation(outcome: &Outcome, trace: Option<&Trace>) -> Value {
    let (plan, steady) = (&outcome.plan, &outcome.steady);
    json!({
        "tool_version": env!("CARGO_PKG_VERSION"),
        "seed": plan.seed,
        "engine": outcome.engine,
        "digest": format!("{:016x}", outcome.digest),
        "summary": {
            "wa": steady.wa,
            "wa_analytic": outcome.wa_analytic,
            "wa_error": outcome.wa_error(),
            "over_provisioning": plan.device.over_provisioning(),
            "spare_factor": plan.device.spare_factor(),
            "effective_spare": outcome.effective_spare(),
            "iops_fresh": outcome.iops_fresh,
            "iops_steady": steady.iops,
            "iops_steady_analytic": outcome.iops_analytic,
            "cliff_drive_fills": outcome.cliff_drive_fills,
            "cliff_drive_fills_analytic": outcome.cliff_drive_fills_analytic,
            "is_settled": steady.is_settled,
        },
        "latency": {
            "read": Percentiles::of(&steady.reads),
            "write": Percentiles::of(&steady.writes),
        },
        "pages": { "steady": steady.totals, "all": outcome.totals },
        "steady": {
            "from_drive_fills": steady.from_drive_fills,
            "duration_ns": steady.duration_ns,
        },
        "device": device(outcome),
        "load": words::load(outcome),
        "scale": plan.scale,
        "elapsed_ns": outcome.elapsed_ns,
        "memory_bytes": outcome.memory_bytes,
        "unmapped_reads": outcome.unmapped_reads,
        "erases": outcome.erases.iter().map(|(erases, blocks)| json!([erases, blocks]))
            .collect::<Vec<_>>(),
        "points": outcome.points,
        "trace": trace.map(|trace| json!({
            "format": trace.format,
            "lines": trace.lines,
            "requests": trace.requests.len(),
            "bad_lines": trace.bad_lines,
            "bad": trace.bad,
        })),
        "ended_by": outcome.ended_by.map(|full| full.to_string()),
    })
}

/// The document of the simulation beside it, which is one of its own.
pub fn active(outcome: &Outcome, trace: Option<&Trace>) -> Value {
    let mut document = simulation(outcome, trace);
    document["schema"] = "blockstone.flash-sim/1".into();
    document
}

fn device(outcome: &Outcome) -> Value {
    let device = &outcome.plan.device;
    json!({
        "raw_bytes": device.raw_bytes,
        "visible_bytes": device.visible_bytes,
        "page_bytes": device.page_bytes,
        "pages_per_block": device.pages_per_block,
        "channels": device.channels,
        "dies_per_channel": device.dies_per_channel,
        "times": device.times,
        "policy": device.policy.to_string(),
        "reserve_blocks": device.reserve_blocks,
        "collection": words::collection_alone(outcome),
        "placement": device.placement,
        "blocks_simulated": outcome.config.blocks(),
    })
}

pub fn sweep(points: &[Swept], iops: &[Option<f64>], seed: u64) -> Value {
    let point = |(swept, iops): (&Swept, &Option<f64>)| {
        json!({
            "over_provisioning": swept.setting.over_provisioning,
            "policy": swept.setting.policy.to_string(),
            "pages_per_block": swept.setting.pages_per_block,
            "engine": swept.engine,
            "effective_spare": swept.effective_spare,
            "wa": swept.wa,
            "wa_analytic": swept.wa_analytic,
            "wa_error": swept.wa_error,
            "iops_steady": iops,
        })
    };
    json!({
        "tool_version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "points": points.iter().zip(iops).map(point).collect::<Vec<_>>(),
    })
}

pub fn cliff(cliff: &Cliff) -> Value {
    json!({
        "tool_version": env!("CARGO_PKG_VERSION"),
        "summary": {
            "wa": null,
            "wa_analytic": cliff.wa,
            "effective_spare": cliff.effective_spare,
            "iops_fresh": cliff.iops_fresh,
            "iops_steady": cliff.iops_steady,
            "cliff_drive_fills": cliff.cliff_drive_fills,
            "hours_to_cliff": cliff.seconds_to_cliff / 3600.0,
        },
        "cliff": cliff,
    })
}

pub fn fit(fit: &Fit) -> Value {
    json!({
        "tool_version": env!("CARGO_PKG_VERSION"),
        "summary": {
            "wa": fit.wa,
            "effective_spare": fit.effective_spare,
            "cliff_drive_fills": fit.cliff_drive_fills,
            "is_settled": fit.is_settled,
            "drive_fills_missing": fit.drive_fills_missing,
        },
        "fit": fit,
    })
}

pub fn life(life: &Life) -> Value {
    json!({
        "tool_version": env!("CARGO_PKG_VERSION"),
        "summary": { "wa": life.wa, "years": life.years },
        "life": life,
    })
}

pub fn explain(stories: &[(&str, &[Step])]) -> Value {
    let cell = |cell: &Cell| match cell {
        Cell::Free => json!("free"),
        Cell::Stale => json!("stale"),
        Cell::Used(page) => json!(page),
    };
    let step = |step: &Step| {
        let blocks: Vec<Vec<Value>> =
            step.blocks.iter().map(|block| block.iter().map(cell).collect()).collect();
        json!({
            "text": step.text, "blocks": blocks, "host_pages": step.host_pages,
            "programs": step.programs, "erases": step.erases,
        })
    };
    let story = |(title, steps): &(&str, &[Step])| {
        let steps: Vec<Value> = steps.iter().map(step).collect();
        json!({ "title": title, "steps": steps })
    };
    json!({
        "tool_version": env!("CARGO_PKG_VERSION"),
        "stories": stories.iter().map(story).collect::<Vec<_>>(),
    })
}
