//! What the kernel is asked about: pages added to the page cache, and its direct path.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use blockstone_base::Capability;
use blockstone_sys::bpf::effect::{Effect, EffectTracer};
use blockstone_sys::bpf::{self, BpfError};

#[derive(Debug)]
pub struct Witness {
    tracer: Option<EffectTracer>,
    why: String,
}

impl Witness {
    /// Of the requests of this process.
    pub fn of_this_process() -> Self {
        Self::of(&BTreeSet::new())
    }

    /// Of those of these processes and their children.
    pub fn of(tgids: &BTreeSet<u32>) -> Self {
        let started = match bpf::capability(Path::new("/")) {
            Capability::Full => EffectTracer::start(tgids).map_err(|error| in_one_line(&error)),
            Capability::Degraded { why } => Err(why),
        };
        match started {
            Ok(tracer) => Self { tracer: Some(tracer), why: String::new() },
            Err(why) => Self { tracer: None, why },
        }
    }

    pub fn capability(&self) -> Capability {
        match &self.tracer {
            Some(_) => Capability::Full,
            None => Capability::degraded(self.why.clone()),
        }
    }

    pub fn is_there(&self) -> bool {
        self.tracer.is_some()
    }

    /// Why it is not there.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// From now on watches this file too; its number. A witness that misses one is none.
    pub fn watch(&mut self, file: File) -> Option<usize> {
        self.ask(|tracer| tracer.watch(file))
    }

    /// What was counted of each file.
    pub fn effects(&mut self) -> Option<Vec<Effect>> {
        self.ask(EffectTracer::effects)
    }

    /// Calls that were not counted.
    pub fn dropped(&self) -> u64 {
        self.tracer.as_ref().map_or(0, EffectTracer::dropped)
    }

    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut EffectTracer) -> Result<T, BpfError>,
    ) -> Option<T> {
        match question(self.tracer.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.why = in_one_line(&error);
                self.tracer = None;
                None
            }
        }
    }
}

fn in_one_line(error: &BpfError) -> String {
    error.to_string().replace("\nhint: ", "; ")
}
