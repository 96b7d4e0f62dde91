//! Kernel counters of pages added to the page cache, and of entries to its direct path.

use std::collections::BTreeSet;
use std::fs::File;

use blockstone_base::Capability;
use blockstone_sys::bpf::effect::{Effect, EffectTracer};

use crate::evidence::Kernel;

#[derive(Debug)]
pub struct Witness(Kernel<EffectTracer>);

impl Witness {
    /// Traces the requests of this process.
    pub fn of_this_process() -> Self {
        Self::of(&BTreeSet::new())
    }

    /// Traces the requests of these processes and their children.
    pub fn of(tgids: &BTreeSet<u32>) -> Self {
        Self(Kernel::start(|| EffectTracer::start(tgids)))
    }

    pub fn capability(&self) -> Capability {
        self.0.capability()
    }

    pub fn is_there(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns why the witness is not available.
    pub fn why(&self) -> &str {
        self.0.why()
    }

    /// Starts watching this file too; returns its number. A witness that misses a file is lost.
    pub fn watch(&mut self, file: File) -> Option<usize> {
        self.0.ask(|tracer| tracer.watch(file))
    }

    /// Returns what was counted for each file.
    pub fn effects(&mut self) -> Option<Vec<Effect>> {
        self.0.ask(EffectTracer::effects)
    }

    /// Returns the number of calls that were not counted.
    pub fn dropped(&self) -> u64 {
        self.0.get().map_or(0, EffectTracer::dropped)
    }
}
