//! The part of the manifest that describes a run before it starts.

use std::collections::BTreeMap;

use blockstone_base::database::TRANSACTIONS;
use blockstone_measure::Opening;
use blockstone_record::Parameters as _;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::{RunParameters, stored};
use blockstone_servers::registry::Family;
use blockstone_servers::without_password;
use blockstone_workload::{Population, checksum, order_entry};
use serde_json::Value;

use crate::prepare::Prepared;
use crate::scan::Plan;
use crate::settings::FormOptions;

pub fn begin(prepared: &Prepared<'_>) -> Manifest {
    Opening {
        id: &prepared.settings.recording.id,
        verb: "run",
        argv: &prepared.settings.argv,
        settings: settings(prepared),
        seed: prepared.parameters.seed,
        rank: prepared.settings.rank.as_ref(),
        host: &prepared.host,
        target: &prepared.storage,
        capabilities: &prepared.capabilities,
    }
    .manifest()
}

/// Returns the settings of the run: the target as requested, the options with defaults filled in,
/// and the parameters of the workload. A setting without a value has no key.
fn settings(prepared: &Prepared<'_>) -> BTreeMap<String, Value> {
    let Prepared { parameters, spec, .. } = prepared;
    let mut settings = stored(parameters);
    // Later values override earlier ones: the target may hold more schemas than the sessions visit.
    settings.extend(stored(spec));
    settings.extend(stored(&form(prepared)));
    settings.extend(stored(&prepared.settings.storage));
    let mixes = matches!(parameters.population, Population::Mixed { .. })
        && !parameters.order_entry
        && !parameters.bulk_write;
    let is_set = |name: &str, value: &Value| match name {
        // The SLOB method is the ordinary form.
        "profile" => value != "slob",
        "update_pct" => mixes,
        _ => !value.is_null(),
    };
    settings.retain(|name, value| is_set(name, value));
    settings.extend(facts(prepared).settings());
    settings
}

/// Returns the options of the form with what the plan of scans and the noise filled in.
fn form(prepared: &Prepared<'_>) -> FormOptions {
    let (plan, noise) = (prepared.scan.as_ref(), prepared.noise.as_ref());
    FormOptions {
        scan_multiblock: plan.map(|plan| plan.multiblock.clone()).filter(|sizes| !sizes.is_empty()),
        scan_parallel: plan.map(|plan| plan.parallel.clone()),
        scan_slots: plan.and_then(Plan::slots),
        scan_row_cost_ns: plan.and_then(|plan| plan.direct).map(|(_, row_cost)| row_cost),
        noise_area_bytes: noise.map(|noise| noise.area),
        noise_write_bytes: noise.map(|noise| noise.write),
        ..prepared.settings.form.clone()
    }
}

/// Returns what follows from the options, or is known of the target.
fn facts(prepared: &Prepared<'_>) -> RunParameters {
    let Prepared { settings, parameters, scan, spec, entry, .. } = prepared;
    RunParameters {
        target: Some(without_password(&settings.target)),
        in_process: Some(entry.family.in_process),
        durable_settings: Some(durable_settings(entry.family)),
        run_time_ns: parameters.loops.is_none().then_some(settings.run_time()),
        schedule_checksum: Some(format!("{:016x}", checksum(parameters))),
        transaction_pct: parameters.order_entry.then(shares),
        scan_bytes: scan.as_ref().map(|plan| plan.bytes(spec.options.block_bytes)),
        ..RunParameters::default()
    }
}

fn durable_settings(family: &Family) -> BTreeMap<String, Vec<String>> {
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let settings = family.durable_settings.iter();
    settings.map(|&(name, values)| (name.to_owned(), owned(values))).collect()
}

/// Returns how many of 100 transactions of order entry are of each kind.
fn shares() -> BTreeMap<String, u32> {
    TRANSACTIONS.iter().map(|&name| name.to_owned()).zip(order_entry::SHARES).collect()
}

#[cfg(test)]
mod tests {
    use blockstone_base::units::Nanos;
    use blockstone_servers::TargetSpec;
    use blockstone_workload::noise::NoiseMode;
    use blockstone_workload::{Every, Hotspot, Parameters, Think};

    use super::*;
    use crate::settings::{Noise, StorageOptions};

    /// Parameters that are no options: they follow from these, or are known of the target.
    const FACTS: [&str; 11] = [
        "target",
        "in_process",
        "run_time_ns",
        "schedule_checksum",
        "transaction_pct",
        "scan_bytes",
        "server",
        "server_settings",
        "durable_settings",
        "plans",
        "plans_after",
    ];

    #[test]
    fn what_is_read_of_a_run_is_stored_under_that_name() {
        let every = Every(3);
        let parameters = Parameters {
            population: Population::Apart { readers: 1, writers: 1 },
            hotspot: Some(Hotspot { first: 1, rows: 2, every }),
            think: Some(Think { min: Nanos(1), max: Nanos(2), every }),
            ..Parameters::default()
        };
        let noise = Some(Noise { mode: NoiseMode::Redo, writers: 1 });
        let form = FormOptions { noise, ..FormOptions::default() };
        let mut all = stored(&parameters);
        all.extend(stored(&TargetSpec::default()));
        all.extend(stored(&form));
        all.extend(stored(&StorageOptions::default()));
        for name in RunParameters::NAMES.iter().filter(|name| !FACTS.contains(name)) {
            assert!(all.contains_key(*name), "no option is stored as {name}");
        }
        let keys = ["hotspot_first_row", "hotspot_every", "think_ns_max", "hot_schema_every"];
        for key in keys.into_iter().chain(["noise_mode", "noise_writers", "keep", "reused"]) {
            assert!(all.contains_key(key), "{key}: earlier recordings have it");
        }
    }
}
