//! What the kernel is asked about: pages added to the page cache, and its direct path.

use std::collections::BTreeSet;
use std::fs::File;

use blockstone_base::Capability;
use blockstone_sys::bpf::effect::{Effect, EffectTracer};

use crate::evidence::Kernel;

#[derive(Debug)]
pub struct Witness(Kernel<EffectTracer>);

impl Witness {
    /// Of the requests of this process.
    pub fn of_this_process() -> Self {
        Self::of(&BTreeSet::new())
    }

    /// Of those of these processes and their children.
    pub fn of(tgids: &BTreeSet<u32>) -> Self {
        Self(Kernel::start(|| EffectTracer::start(tgids)))
    }

    pub fn capability(&self) -> Capability {
        self.0.capability()
    }

    pub fn is_there(&self) -> bool {
        self.0.get().is_some()
    }

    /// Why it is not there.
    pub fn why(&self) -> &str {
        self.0.why()
    }

    /// From now on watches this file too; its number. A witness that misses one is none.
    pub fn watch(&mut self, file: File) -> Option<usize> {
        self.0.ask(|tracer| tracer.watch(file))
    }

    /// What was counted of each file.
    pub fn effects(&mut self) -> Option<Vec<Effect>> {
        self.0.ask(EffectTracer::effects)
    }

    /// Calls that were not counted.
    pub fn dropped(&self) -> u64 {
        self.0.get().map_or(0, EffectTracer::dropped)
    }
}
