//! Facts about what a recording was measured with and on: settings, host, storage, server. If two
//! sides differ in one, it may be the cause of a difference between their figures.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::identity::{Host, StorageTarget};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Manifest;
use serde_json::Value;

use super::{Difference, Side};

type Facts = BTreeMap<String, String>;

/// Settings that differ between any two recordings and are irrelevant, or that repeat another fact.
const LEFT_OUT: [&str; 6] =
    ["seed", "schedule_checksum", "reused", "disks", "plans_after", "paths"];

/// Returns the facts of a recording by name.
pub fn of(manifest: &Manifest) -> Facts {
    let mut facts = Facts::new();
    facts.insert("Blockstone".to_owned(), manifest.tool_version.clone());
    host(&manifest.host, &mut facts);
    storage(&manifest.target, &mut facts);
    for (name, value) in manifest.settings.iter().filter(|(name, _)| !is_left_out(name)) {
        setting("", name, value, &mut facts);
    }
    facts.retain(|_, value| !value.is_empty());
    facts
}

fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name)
}

fn host(host: &Host, facts: &mut Facts) {
    let mut fact = |name: &str, value: String| facts.insert(name.to_owned(), value);
    fact("host", host.hostname.clone());
    fact("kernel", host.kernel.clone());
    fact("processor", format!("{} × {}", host.cpus, host.cpu_model));
    if host.cpus_allowed_milli < host.cpus * 1000 {
        fact("processors allowed", format!("{}", f64::from(host.cpus_allowed_milli) / 1e3));
    }
    fact("memory", Bytes(host.memory_bytes).to_string());
    fact("hypervisor", host.hypervisor.clone().unwrap_or_default());
    fact("databases that ran", host.databases_running.join(", "));
}

fn storage(target: &StorageTarget, facts: &mut Facts) {
    let mut fact = |name: &str, value: String| facts.insert(name.to_owned(), value);
    fact("path", target.path.clone());
    if let Some(fs) = &target.file_system {
        fact("file system", fs.kind.clone());
        fact("mount options", fs.options.clone());
    }
    let caps = |cap: &blockstone_base::identity::CgroupCap| {
        format!("{:?} {}", cap.kind, cap.limit).to_lowercase()
    };
    fact("limits of control groups", target.caps.iter().map(caps).collect::<Vec<_>>().join(", "));
    let Some(device) = target.devices.first() else { return };
    fact("device", device.name.clone());
    fact("size of the device", Bytes(device.size_bytes).to_string());
    fact("model", device.model.clone().unwrap_or_default());
    fact("scheduler", device.scheduler.clone().unwrap_or_default());
    fact("write cache", device.write_cache.clone().unwrap_or_default());
    let depth = device.queue_depth.map(|depth| depth.to_string());
    fact("requests in the queue", depth.unwrap_or_default());
}

/// Adds a setting under its name for people; the settings of an object are added one by one.
fn setting(of: &str, name: &str, value: &Value, facts: &mut Facts) {
    if let Value::Object(values) = value {
        let of = named(name).0;
        values.iter().for_each(|(name, value)| setting(&of, name, value, facts));
        return;
    }
    let (own, written) = match (of.is_empty(), named(name)) {
        // Settings of a server keep their names and values.
        (false, _) => (format!("{of}: {name}"), plain(value)),
        (true, (own, unit)) => (own, with_unit(value, unit)),
    };
    facts.insert(own, written);
}

/// Returns the name of a setting without its unit, and the unit.
fn named(name: &str) -> (String, &str) {
    let units = ["_bytes", "_ns", "_pct"];
    let unit = units.into_iter().find(|unit| name.ends_with(unit)).unwrap_or_default();
    (name.strip_suffix(unit).unwrap_or(name).replace('_', " "), unit)
}

fn with_unit(value: &Value, unit: &str) -> String {
    match (value.as_u64(), unit) {
        (Some(bytes), "_bytes") => Bytes(bytes).to_string(),
        (Some(ns), "_ns") => Nanos(ns).to_string(),
        (Some(share), "_pct") => format!("{share} %"),
        _ => plain(value),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the facts that differ between the sides. A fact that one side lacks is unknown there.
pub fn differences(a: &Side, b: &Side) -> Vec<Difference> {
    let names: BTreeSet<&String> = [a, b]
        .iter()
        .flat_map(|side| &side.recordings)
        .flat_map(|recorded| recorded.facts.keys())
        .collect();
    let values = |side: &Side, name: &str| -> BTreeSet<String> {
        let value = |facts: &Facts| facts.get(name).cloned().unwrap_or_else(|| "–".to_owned());
        side.recordings.iter().map(|recorded| value(&recorded.facts)).collect()
    };
    let differing = names.into_iter().filter_map(|name| {
        let (of_a, of_b) = (values(a, name), values(b, name));
        let words = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" and ");
        let is_one = of_a == of_b && of_a.len() == 1;
        (!is_one).then(|| Difference { name: name.clone(), a: words(of_a), b: words(of_b) })
    });
    differing.collect()
}
