//! What the manifest says about a run before it starts.

use std::collections::BTreeMap;

use blockstone_base::load::Pacing;
use blockstone_measure::Opening;
use blockstone_record::manifest::Manifest;
use blockstone_target::RedoStress;
use blockstone_workload::noise::WRITE;
use blockstone_workload::{Population, checksum};
use serde_json::{Value, json};

use crate::prepare::Prepared;

/// The manifest of a run that starts now.
pub fn begin(prepared: &Prepared<'_>) -> Manifest {
    Opening {
        id: &prepared.settings.recording.id,
        verb: "run",
        argv: &prepared.settings.argv,
        settings: settings(prepared),
        seed: prepared.parameters.seed,
        host: &prepared.host,
        target: &prepared.storage,
        capabilities: &prepared.capabilities,
    }
    .manifest()
}

fn settings(prepared: &Prepared<'_>) -> BTreeMap<&'static str, Value> {
    let Prepared { settings, parameters, spec, .. } = prepared;
    let disks: Vec<Value> = spec
        .places
        .iter()
        .map(|place| json!({ "path": place.name, "failure_group": place.failure_group }))
        .collect();
    let mut map = BTreeMap::from([
        ("target", json!(settings.target)),
        ("disks", json!(disks)),
        ("block_bytes", json!(spec.block)),
        ("cache_bytes", json!(spec.cache)),
        ("redundancy", json!(spec.redundancy.name())),
        ("allocation_unit_bytes", json!(spec.allocation_unit)),
        ("torn_protection", json!(spec.torn_protection.name())),
        ("redo_log_bytes", json!(spec.redo)),
        ("database_writers", json!(spec.writers)),
        ("keep", json!(settings.keep)),
        ("reused", json!(spec.reuse)),
        ("schemas", json!(spec.schemas)),
        ("sessions", json!(spec.sessions)),
        ("rows_per_schema", json!(parameters.rows)),
        ("work_unit", json!(parameters.work_unit)),
        ("update_work_unit", json!(parameters.update_work_unit)),
        ("scan_pct", json!(parameters.scan_pct)),
        ("scan_rows", json!(parameters.scan_rows)),
        ("redo_stress", json!(redo_stress(spec.redo_stress))),
        ("obfuscate", json!(spec.obfuscate)),
        // As text: JSON numbers are exact only to 53 bits.
        ("schedule_checksum", json!(format!("{:016x}", checksum(parameters)))),
    ]);
    match parameters.population {
        Population::Mixed { threads, .. } => {
            map.insert("threads", json!(threads));
            map.insert("update_pct", json!(parameters.update_pct));
        }
        Population::Apart { readers, writers } => {
            map.insert("readers", json!(readers));
            map.insert("writers", json!(writers));
        }
        Population::Scanning { .. } => {}
    }
    form(prepared, &mut map);
    match parameters.loops {
        Some(loops) => map.insert("loops", json!(loops)),
        None => map.insert("run_time_ns", json!(settings.run_time)),
    };
    if let Some(hotspot) = parameters.hotspot {
        map.insert("hotspot_first_row", json!(hotspot.first));
        map.insert("hotspot_rows", json!(hotspot.rows));
        map.insert("hotspot_every", json!(hotspot.every.0));
    }
    if let Some(every) = parameters.hot_schema {
        map.insert("hot_schema_every", json!(every.0));
    }
    if let Some(think) = parameters.think {
        map.insert("think_ns_min", json!(think.min));
        map.insert("think_ns_max", json!(think.max));
        map.insert("think_every", json!(think.every.0));
    }
    if let Pacing::Open { rate_per_s, .. } = parameters.pacing {
        map.insert("rate_per_s", json!(rate_per_s));
    }
    map
}

/// What is not the method by itself: a matrix of scans, or noise beside the sessions.
fn form(prepared: &Prepared<'_>, map: &mut BTreeMap<&'static str, Value>) {
    if let Some(plan) = &prepared.scan {
        map.insert("profile", json!("scan"));
        map.insert("scan_multiblock", json!(plan.multiblock));
        map.insert("scan_parallel", json!(plan.parallel));
        map.insert("scan_slots", json!(plan.slots));
        map.insert("scan_bytes", json!(plan.bytes(prepared.spec.block)));
    }
    if let Some(noise) = &prepared.noise {
        map.insert("noise_writers", json!(noise.writers));
        map.insert("noise_area_bytes", json!(noise.area));
        map.insert("noise_write_bytes", json!(WRITE));
    }
}

fn redo_stress(redo_stress: RedoStress) -> &'static str {
    match redo_stress {
        RedoStress::Lite => "lite",
        RedoStress::Heavy => "heavy",
    }
}
