//! Agreement of ranks: processes, on one host or on many, that apply one load together.

use std::collections::BTreeMap;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// Settings in which ranks may differ: the paths of their files, and facts of their servers.
const OWN: [&str; 9] = [
    "disks",
    "plans",
    "plans_after",
    "reused",
    "schedule_checksum",
    "server_settings",
    "durable_settings",
    // Known once the database is up, which a rank that failed before does not say.
    "server",
    "target",
];

/// Most ranks of a load.
pub const RANKS_MAX: u32 = 65_536;

/// Returns whether all ranks must have the same value of a setting.
pub fn is_agreed(setting: &str) -> bool {
    !OWN.contains(&setting)
}

/// Returns the hash of everything in which the ranks of a load must agree, in hexadecimal.
pub fn plan(version: &str, verb: &str, seed: u64, settings: &BTreeMap<String, Value>) -> String {
    let agreed: BTreeMap<&String, &Value> =
        settings.iter().filter(|(name, _)| is_agreed(name)).collect();
    let text = serde_json::json!([version, verb, seed, agreed]).to_string();
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disks_and_facts_of_servers_may_differ() {
        let hash = |seed, sessions: u32, disk: &str| {
            let settings = [("sessions", Value::from(sessions)), ("disks", Value::from(disk))];
            let settings = settings.map(|(name, value)| (name.to_owned(), value));
            plan("1.0.0", "run", seed, &settings.into())
        };
        let one = hash(7, 4, "/a");
        assert_eq!(one, hash(7, 4, "/b"));
        assert_ne!(one, hash(8, 4, "/a"));
        assert_ne!(one, hash(7, 5, "/a"));
        assert_eq!(one.len(), 16);
    }
}
