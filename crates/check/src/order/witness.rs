//! Kernel counters of how long this process waits for the locks of its files.

use std::fs::File;
use std::path::Path;

use blockstone_base::Capability;
use blockstone_sys::bpf::order::LockTracer;
use blockstone_sys::perf::KernelSymbols;

use crate::evidence::Kernel;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    pub waits: u64,
    pub ns: u64,
}

#[derive(Debug)]
pub struct Witness {
    kernel: Kernel<LockTracer>,
    watched: usize,
    symbols: Option<KernelSymbols>,
}

/// Number of functions of a stack that are shown.
const NAMES: usize = 4;

impl Witness {
    pub fn start() -> Self {
        Self { kernel: Kernel::start(LockTracer::start), watched: 0, symbols: None }
    }

    pub fn capability(&self) -> Capability {
        self.kernel.capability()
    }

    /// Returns why the witness is not available.
    pub fn why(&self) -> &str {
        self.kernel.why()
    }

    /// Starts counting waits for the locks of these files. A witness that misses a file is lost.
    pub fn watch(&mut self, files: &[&File]) {
        for file in files {
            let Ok(file) = file.try_clone() else {
                return self.kernel.lose("no descriptor is left");
            };
            if self.kernel.ask(|tracer| tracer.watch(file)).is_some() {
                self.watched += 1;
            }
        }
    }

    /// Returns the waits for the locks of all watched files: all waits, or only those to share a
    /// lock.
    pub fn waits(&mut self, exclusive: bool) -> Option<Waited> {
        let mut sum = Waited::default();
        for number in 0..self.watched {
            let waits = self.kernel.ask(|tracer| tracer.waits(number))?;
            sum.waits += waits.shared;
            sum.ns += waits.shared_ns;
            if exclusive {
                sum.waits += waits.exclusive;
                sum.ns += waits.exclusive_ns;
            }
        }
        self.kernel.get().map(|_| sum)
    }

    pub fn forget(&mut self) {
        self.watched = 0;
        self.kernel.ask(LockTracer::forget);
    }

    /// Returns where the first thread waited, as kernel addresses.
    pub fn first_stack(&mut self) -> Vec<u64> {
        self.kernel.ask(|tracer| tracer.first_stack()).unwrap_or_default()
    }

    /// Returns the same for the thread that held the lock, when it released it to the first one.
    pub fn first_holder(&mut self) -> Vec<u64> {
        self.kernel.ask(|tracer| tracer.first_holder()).unwrap_or_default()
    }

    /// Returns the functions at these addresses, from the one that takes the lock (`down_write`) or
    /// releases it (`up_write`, `downgrade_write`) outwards; none if the kernel hides its
    /// addresses.
    pub fn names(&mut self, stack: &[u64]) -> Vec<String> {
        if stack.is_empty() {
            return Vec::new();
        }
        if self.symbols.is_none() {
            self.symbols = KernelSymbols::read(Path::new("/")).ok();
        }
        let Some(symbols) = &self.symbols else { return Vec::new() };
        let names: Vec<String> = stack
            .iter()
            .filter_map(|&address| Some(symbols.at(address)?.name.to_owned()))
            .collect();
        let is_of_lock =
            |name: &String| ["down_", "up_", "downgrade_"].iter().any(|it| name.starts_with(it));
        let first = names.iter().position(is_of_lock).unwrap_or(0);
        names.into_iter().skip(first).take(NAMES).collect()
    }

    /// Returns the number of waits that were not counted.
    pub fn dropped(&self) -> u64 {
        self.kernel.get().map_or(0, LockTracer::dropped)
    }
}
