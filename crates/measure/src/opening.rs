//! First part of a manifest: the settings, the machine and the storage.

use std::collections::BTreeMap;

use blockstone_base::identity::{Host, StorageTarget};
use blockstone_record::manifest::{End, FORMAT, Manifest, NamedCapability};
use blockstone_record::ranks::plan;
use serde_json::Value;

use crate::RankSettings;

pub struct Opening<'a> {
    /// Identity assigned to the recording's directory.
    pub id: &'a str,
    pub verb: &'a str,
    pub argv: &'a [String],
    /// Settings after defaults: those of its [`Parameters`](blockstone_record::Parameters).
    pub settings: BTreeMap<String, Value>,
    pub seed: u64,
    /// Place of this process among several that apply the load together.
    pub rank: Option<&'a RankSettings>,
    pub host: &'a Host,
    pub target: &'a StorageTarget,
    pub capabilities: &'a [NamedCapability],
}

impl Opening<'_> {
    pub fn manifest(self) -> Manifest {
        let version = env!("CARGO_PKG_VERSION");
        let entry =
            |rank: &RankSettings| rank.entry(plan(version, self.verb, rank.seed, &self.settings));
        let rank = self.rank.map(entry);
        Manifest {
            format: FORMAT.to_owned(),
            id: self.id.to_owned(),
            tool_version: version.to_owned(),
            verb: self.verb.to_owned(),
            argv: self.argv.to_owned(),
            settings: self.settings,
            seed: self.seed,
            started_at: jiff::Timestamp::now().to_string(),
            ended_at: None,
            end: End::Running,
            host: self.host.clone(),
            target: self.target.clone(),
            file: None,
            targets: Vec::new(),
            disk_files: Vec::new(),
            data_files: Vec::new(),
            capabilities: self.capabilities.to_owned(),
            phases: Vec::new(),
            clocks: Vec::new(),
            drives: Vec::new(),
            probes: Vec::new(),
            summary: BTreeMap::new(),
            imported: None,
            rank,
            merged: None,
            dropped_before_ns: None,
            verdicts: Vec::new(),
        }
    }
}
