//! The rules for runs on storage that filters rows.

mod bound_by_host;
mod not_offloaded;
mod ratio_misleading;
mod sent_back;
#[cfg(test)]
mod tests;
mod wire_disagrees;

use blockstone_base::rule::{Judged, RuleOf, judge};
use blockstone_base::verdict::Verdict;

/// All rules, in the order in which their verdicts are listed.
pub const ALL: &[RuleOf<OffloadFindings>] = &[
    ratio_misleading::RULE,
    not_offloaded::RULE,
    sent_back::RULE,
    wire_disagrees::RULE,
    bound_by_host::RULE,
];

/// One run. Figures that are not counted are `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffloadRun {
    pub name: String,
    pub seconds: Option<f64>,
    pub hosts: Option<u32>,
    /// Bytes that the plan requested from the storage.
    pub read_bytes: u64,
    /// Bytes that the storage was allowed to filter.
    pub eligible_bytes: Option<u64>,
    pub returned_bytes: Option<u64>,
    /// Bytes that were eligible, but sent unfiltered because the storage was short of processor
    /// time.
    pub balanced_bytes: Option<u64>,
    pub wire_bytes: Option<u64>,
    /// Bytes on the wire as counted by an interface that carries nothing else.
    pub interface_bytes: Option<u64>,
    /// Capacity of the link of one host.
    pub link_bytes_per_s: Option<f64>,
    /// Processor time of the hosts, and the number of processors they could use at the same time.
    pub host_cpu_s: Option<f64>,
    pub host_processors: Option<u32>,
    /// The same for the cells.
    pub cell_cpu_s: Option<f64>,
    pub cell_processors: Option<u32>,
    /// Number of processors that hosts and cells share.
    pub shared_processors: Option<u32>,
}

/// Share of the capacity of a part that a run used during its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// `hosts`, `cells`, `processors` that both share, or `links`.
    pub part: &'static str,
    pub share: f64,
}

/// Name of the part that the hosts are.
pub const HOSTS: &str = "hosts";

impl OffloadRun {
    /// Returns the load of each part that is counted; empty if the run was not timed.
    pub fn loads(&self) -> Vec<Load> {
        let Some(seconds) = self.seconds.filter(|it| *it > 0.0) else { return Vec::new() };
        let cpu = |used: Option<f64>, processors: Option<u32>| {
            let processors = processors.filter(|it| *it > 0)?;
            // Helpers, such as a thread that sends, may use another processor for a while.
            Some((used? / (seconds * f64::from(processors))).min(1.0))
        };
        let both = self.host_cpu_s.zip(self.cell_cpu_s).map(|(host, cell)| host + cell);
        let links = self.link_bytes_per_s.zip(self.hosts).map(|(it, hosts)| it * f64::from(hosts));
        let links = links.filter(|it| *it > 0.0);
        let loads = [
            (HOSTS, cpu(self.host_cpu_s, self.host_processors)),
            ("cells", cpu(self.cell_cpu_s, self.cell_processors)),
            ("processors", cpu(both, self.shared_processors)),
            ("links", links.and_then(|it| Some(self.wire_bytes? as f64 / seconds / it))),
        ];
        let known = loads.into_iter().filter_map(|(part, share)| Some((part, share?)));
        known.map(|(part, share)| Load { part, share }).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffloadFindings {
    pub runs: Vec<OffloadRun>,
}

impl Judged for OffloadFindings {
    const VERB: &'static str = "offload";
}

/// Returns the verdicts on runs; empty without runs.
pub fn judge_runs(findings: &OffloadFindings) -> Vec<Verdict> {
    if findings.runs.is_empty() { Vec::new() } else { judge(ALL, findings) }
}
