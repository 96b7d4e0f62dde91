//! Findings that need no cut.

use std::path::Path;
use std::time::Duration;

use crate::durability::findings::{
    Class, Cuts, DurabilityFindings, Flushing, Stage, StreamFindings,
};
use blockstone_base::identity::PathKind;
use blockstone_measure::{Observer, claim, scratch};

use super::chain::Chain;
use super::slope::{self, Surroundings};
use crate::CheckError;

/// Limit for the timing of flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Up to 2 s.
    Quick,
    /// Up to 10 s.
    Full,
}

impl Effort {
    fn limits(self) -> (Duration, u64) {
        match self {
            Self::Quick => (Duration::from_secs(2), 12),
            Self::Full => (Duration::from_secs(10), 40),
        }
    }
}

/// Follows the chain beneath a path, and times flushes of a scratch file if it is a directory. A
/// file or device is not written to. Fails if the path cannot be used.
pub fn examine(
    path: &Path,
    id: u64,
    effort: Effort,
    observer: &mut dyn Observer,
) -> Result<DurabilityFindings, CheckError> {
    let root = Path::new("/");
    let mut chain = Chain::of(root, path)?;
    let memory = chain.target.is_memory();
    let flushing = if chain.target.kind == PathKind::Directory {
        claim::directory(path)?;
        scratch::remove_orphans(path, &[]);
        observer.phase("flushes");
        let before = chain.flushes(root);
        let timed = slope::time(path, id, effort.limits(), observer)?;
        let after = chain.flushes(root);
        for ((layer, before), after) in chain.layers.iter_mut().zip(before).zip(after) {
            layer.flush_ios = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        }
        let barrier_off = chain.barrier_off();
        let (memory, barrier_off) = (memory.as_deref(), barrier_off.as_deref());
        let layers = &chain.layers;
        slope::judge(&timed, &Surroundings { memory, barrier_off, layers })
    } else {
        let untimed = "not timed: it is not written to; name a directory on it";
        let untimed = (Class::Unknown, untimed.to_owned());
        let (class, evidence) = memory.as_deref().map_or(untimed, slope::in_memory);
        Flushing { class, evidence, slope: None, write_ns_per_mib: None, asked_flushes: 0 }
    };
    let mut findings = of_chain(Stage::Examined, path, chain);
    findings.flushing = Some(flushing);
    findings.signal = observer.interrupted().map(str::to_owned);
    Ok(findings)
}

/// Returns findings with what the chain shows and nothing else.
pub fn of_chain(stage: Stage, path: &Path, chain: Chain) -> DurabilityFindings {
    DurabilityFindings {
        stage,
        subject: path.display().to_string(),
        file_system: chain.file_system(),
        mount_options: chain.mount_options(),
        barrier_off: chain.barrier_off(),
        hypervisor: chain.hypervisor,
        layers: chain.layers,
        flushing: None,
        streams: Vec::<StreamFindings>::new(),
        cuts: Cuts::default(),
        witnessed: Vec::new(),
        missed_cuts: 0,
        notes: Vec::new(),
        signal: None,
    }
}
