//! A unit of hardware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one unit can do, in decimal units. What is not stated is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    pub name: String,
    #[serde(default)]
    pub about: String,
    /// Where its figures are from.
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub dated: String,
    /// It is made of `count` of this other unit.
    pub of: Option<String>,
    pub count: Option<u64>,
    /// Reads and writes together.
    pub iops: Option<f64>,
    pub read_iops: Option<f64>,
    pub write_iops: Option<f64>,
    /// Reads and writes share the device: it does `read_iops` or `write_iops`, or a mix of parts.
    pub shared: Option<bool>,
    pub mbps: Option<f64>,
    pub read_mbps: Option<f64>,
    pub write_mbps: Option<f64>,
    /// What crosses a link between host and storage.
    pub link_mbps: Option<f64>,
    pub redo_mbps: Option<f64>,
    pub commits_per_s: Option<f64>,
    pub gb: Option<f64>,
    pub cores: Option<f64>,
    pub vcpus: Option<f64>,
    pub sockets: Option<f64>,
    pub memory_gb: Option<f64>,
    pub sessions: Option<f64>,
    pub usd: Option<f64>,
    pub usd_per_month: Option<f64>,
    /// A device of crate `flash` whose behaviour it has: mlc, slc, tlc, qlc.
    pub flash: Option<String>,
    /// Bytes that may be written in its life, in TB, as the data sheet says.
    pub endurance_tb: Option<f64>,
}

impl Unit {
    /// Its limits by the names of the file.
    pub fn limits(&self) -> [(&'static str, Option<f64>); 19] {
        [
            ("iops", self.iops),
            ("read_iops", self.read_iops),
            ("write_iops", self.write_iops),
            ("mbps", self.mbps),
            ("read_mbps", self.read_mbps),
            ("write_mbps", self.write_mbps),
            ("link_mbps", self.link_mbps),
            ("redo_mbps", self.redo_mbps),
            ("commits_per_s", self.commits_per_s),
            ("gb", self.gb),
            ("cores", self.cores),
            ("vcpus", self.vcpus),
            ("sockets", self.sockets),
            ("memory_gb", self.memory_gb),
            ("sessions", self.sessions),
            ("usd", self.usd),
            ("usd_per_month", self.usd_per_month),
            ("endurance_tb", self.endurance_tb),
            ("count", self.count.map(|count| count as f64)),
        ]
    }

    /// With the limits that it does not state taken from what it is made of.
    pub(super) fn made_of(mut self, inner: &Self) -> Self {
        let count = self.count.unwrap_or(1) as f64;
        let fill = |own: &mut Option<f64>, inner: Option<f64>| {
            *own = own.or_else(|| inner.map(|limit| limit * count));
        };
        fill(&mut self.iops, inner.iops);
        fill(&mut self.read_iops, inner.read_iops);
        fill(&mut self.write_iops, inner.write_iops);
        fill(&mut self.mbps, inner.mbps);
        fill(&mut self.read_mbps, inner.read_mbps);
        fill(&mut self.write_mbps, inner.write_mbps);
        fill(&mut self.link_mbps, inner.link_mbps);
        fill(&mut self.redo_mbps, inner.redo_mbps);
        fill(&mut self.commits_per_s, inner.commits_per_s);
        fill(&mut self.gb, inner.gb);
        fill(&mut self.cores, inner.cores);
        fill(&mut self.vcpus, inner.vcpus);
        fill(&mut self.sockets, inner.sockets);
        fill(&mut self.memory_gb, inner.memory_gb);
        fill(&mut self.sessions, inner.sessions);
        fill(&mut self.usd, inner.usd);
        fill(&mut self.usd_per_month, inner.usd_per_month);
        fill(&mut self.endurance_tb, inner.endurance_tb);
        self.shared = self.shared.or(inner.shared);
        self.flash = self.flash.or_else(|| inner.flash.clone());
        self
    }
}
