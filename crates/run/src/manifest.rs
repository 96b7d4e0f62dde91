//! The part of the manifest that describes a run before it starts.

use std::collections::BTreeMap;

use blockstone_base::database::TRANSACTIONS;
use blockstone_base::load::Pacing;
use blockstone_measure::Opening;
use blockstone_record::Parameters as _;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::{DiskParameter, RunParameters};
use blockstone_servers::registry::Family;
use blockstone_servers::without_password;
use blockstone_workload::{Parameters, Population, checksum, order_entry};

use crate::prepare::Prepared;
use crate::scan::Plan;

pub fn begin(prepared: &Prepared<'_>) -> Manifest {
    Opening {
        id: &prepared.settings.recording.id,
        verb: "run",
        argv: &prepared.settings.argv,
        settings: parameters(prepared).settings(),
        seed: prepared.parameters.seed,
        host: &prepared.host,
        target: &prepared.storage,
        capabilities: &prepared.capabilities,
    }
    .manifest()
}

fn parameters(prepared: &Prepared<'_>) -> RunParameters {
    let Prepared { settings, parameters, spec, entry, .. } = prepared;
    let disks = spec.places.iter().map(|place| DiskParameter {
        path: place.name.clone(),
        failure_group: place.failure_group.clone(),
    });
    let (hotspot, think) = (parameters.hotspot, parameters.think);
    let run = RunParameters {
        target: Some(without_password(&settings.target)),
        in_process: Some(entry.family.in_process),
        durable_settings: Some(durable_settings(entry.family)),
        disks: Some(disks.collect()),
        block_bytes: Some(spec.block),
        cache_bytes: Some(spec.cache),
        page_cache_bytes: spec.page_cache,
        io: spec.io.map(|io| io.name().to_owned()),
        redundancy: Some(spec.redundancy.name().to_owned()),
        allocation_unit_bytes: Some(spec.allocation_unit),
        torn_protection: Some(spec.torn_protection.name().to_owned()),
        redo_log_bytes: Some(spec.redo),
        database_writers: Some(spec.writers),
        link_bytes_per_s: settings.link_mb_per_s.map(|link| link * 1e6),
        keep: Some(settings.keep),
        reused: Some(spec.reuse),
        schemas: Some(spec.schemas),
        sessions: Some(spec.sessions),
        rows_per_schema: Some(parameters.rows),
        work_unit: Some(parameters.work_unit),
        update_work_unit: Some(parameters.update_work_unit),
        scan_pct: Some(parameters.scan_pct),
        scan_rows: Some(parameters.scan_rows),
        redo_stress: Some(spec.redo_stress.name().to_owned()),
        obfuscate: Some(spec.obfuscate),
        schedule_checksum: Some(format!("{:016x}", checksum(parameters))),
        loops: parameters.loops,
        run_time_ns: parameters.loops.is_none().then_some(settings.run_time),
        hotspot_first_row: hotspot.map(|hotspot| hotspot.first),
        hotspot_rows: hotspot.map(|hotspot| hotspot.rows),
        hotspot_every: hotspot.map(|hotspot| hotspot.every.0),
        hot_schema_every: parameters.hot_schema.map(|every| every.0),
        think_ns_min: think.map(|think| think.min),
        think_ns_max: think.map(|think| think.max),
        think_every: think.map(|think| think.every.0),
        rate_per_s: match parameters.pacing {
            Pacing::Open { rate_per_s, .. } => Some(rate_per_s),
            Pacing::Closed => None,
        },
        ..RunParameters::default()
    };
    of_form(prepared, of_population(parameters, run))
}

fn durable_settings(family: &Family) -> BTreeMap<String, Vec<String>> {
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let settings = family.durable_settings.iter();
    settings.map(|&(name, values)| (name.to_owned(), owned(values))).collect()
}

fn of_population(parameters: &Parameters, run: RunParameters) -> RunParameters {
    match parameters.population {
        Population::Mixed { threads, .. } => {
            let mixes = !parameters.order_entry && !parameters.bulk_write;
            let update_pct = mixes.then_some(parameters.update_pct);
            RunParameters { threads: Some(threads), update_pct, ..run }
        }
        Population::Apart { readers, writers } => {
            RunParameters { readers: Some(readers), writers: Some(writers), ..run }
        }
        Population::Scanning { .. } => run,
    }
}

/// Returns how many of 100 transactions of order entry are of each kind.
fn shares() -> BTreeMap<String, u32> {
    TRANSACTIONS.iter().map(|&name| name.to_owned()).zip(order_entry::SHARES).collect()
}

/// Adds the parameters of order entry, of a matrix of scans and of noise alongside the sessions.
fn of_form(prepared: &Prepared<'_>, run: RunParameters) -> RunParameters {
    let (plan, noise) = (prepared.scan.as_ref(), prepared.noise.as_ref());
    let Parameters { order_entry, bulk_write, .. } = prepared.parameters;
    let profile = match (order_entry, bulk_write) {
        _ if plan.is_some() => Some("scan"),
        (true, _) => Some("oltp"),
        (false, true) => Some("bulk-write"),
        (false, false) => None,
    };
    RunParameters {
        profile: profile.map(str::to_owned),
        transaction_pct: order_entry.then(shares),
        scan_multiblock: plan.map(|plan| plan.multiblock.clone()).filter(|sizes| !sizes.is_empty()),
        scan_parallel: plan.map(|plan| plan.parallel.clone()),
        scan_slots: plan.and_then(Plan::slots),
        scan_row_cost_ns: plan.and_then(|plan| plan.direct).map(|(_, row_cost)| row_cost),
        scan_bytes: plan.map(|plan| plan.bytes(prepared.spec.block)),
        noise_writers: noise.map(|noise| noise.writers),
        noise_area_bytes: noise.map(|noise| noise.area),
        noise_write_bytes: noise.map(|noise| noise.write),
        noise_mode: noise.map(|noise| noise.mode.name().to_owned()),
        ..run
    }
}
