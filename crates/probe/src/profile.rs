//! Code that processors execute: processor time by role, mode, module and kernel function, from
//! samples that each processor takes by its own clock. docs/profile.md says what exactly is
//! counted.
//!
//! It is not among the probes that always run: it needs privileges, interrupts every processor at
//! its rate, and must be given the roles of threads.

mod code;
mod columns;
mod tally;
mod threads;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_base::hint::Hint as _;
use blockstone_sys::clock;
use blockstone_sys::perf::{PerfError, Record, Sample, Sampler};
use blockstone_sys::usage::thread_cpu_ns;

pub use columns::SCHEMA;

use self::code::{Code, CodeLocation};
use self::tally::{Key, Tally};
use self::threads::Threads;
use crate::io::Resolve;
use crate::source::all_unmeasured;
use crate::{Probe, Row, Schema, Unmeasured};

pub struct ProfileSpec {
    /// Root of `/proc` and `/sys`, for the names of threads, programs and functions.
    pub root: PathBuf,
    /// Samples per second on each processor. A rate that has no common divisor with the kernel's
    /// tick (100, 250, 1000) does not keep hitting the same moment of a tick.
    pub per_second: u32,
    pub resolve: Resolve,
}

impl ProfileSpec {
    /// The rate of other profilers: it disturbs little, and yields 12,000 samples per minute on two
    /// processors.
    pub const PER_SECOND: u32 = 99;

    /// Profiles all processes of this machine, with the names of threads as roles.
    pub fn everybody() -> Self {
        let resolve = Box::new(|_: u32, _: u32, name: &str| name.to_owned());
        Self { root: "/".into(), per_second: Self::PER_SECOND, resolve }
    }
}

impl fmt::Debug for ProfileSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root, per_second, resolve: _ } = self;
        let mut fields = f.debug_struct("ProfileSpec");
        fields.field("root", root).field("per_second", per_second).finish_non_exhaustive()
    }
}

/// Starts sampling. If that is not possible, everything is unmeasured.
pub fn open(spec: ProfileSpec) -> Box<dyn Probe> {
    let ProfileSpec { root, per_second, resolve } = spec;
    // Before the start of sampling: reading the names takes some tenths of a second of processor
    // time.
    let code = Code::new(&root);
    let sampler = match Sampler::start(&root, per_second) {
        Ok(sampler) => sampler,
        Err(error) => return Box::new(Profile { running: None, why: Some(reason(&error)) }),
    };
    let profiler = Profiler {
        sampler,
        threads: Threads::new(&root, resolve),
        code,
        tally: Tally::default(),
        samples: Vec::new(),
    };
    let shared = Arc::new(Shared { profiler: Mutex::new(profiler), stop: AtomicBool::new(false) });
    let drains = Arc::clone(&shared);
    let drainer = thread::Builder::new().name("profile".to_owned()).spawn(move || drains.work());
    Box::new(match drainer {
        Ok(drainer) => Profile { running: Some(Running { shared, drainer }), why: None },
        Err(error) => {
            let why = format!("start a thread that takes samples: {error}");
            Profile { running: None, why: Some(Unmeasured::Off(why)) }
        }
    })
}

/// Interval at which samples are drained from the kernel's buffers: before these are full, and
/// while the role of an ended thread can still be found out.
const DRAIN_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Profile {
    running: Option<Running>,
    /// Reason why it does not run.
    why: Option<Unmeasured>,
}

#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    drainer: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    profiler: Mutex<Profiler>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Profiler {
    sampler: Sampler,
    threads: Threads,
    code: Code,
    tally: Tally,
    /// Kept to be reused.
    samples: Vec<Sample>,
}

impl Probe for Profile {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        match &self.running {
            Some(running) => {
                let mut profiler = running.shared.profiler();
                profiler.drain();
                profiler.rows(rows);
            }
            None => rows.push(columns::sampling_row(None)),
        }
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        if let Some(why) = &self.why {
            return all_unmeasured(&SCHEMA, why);
        }
        let hidden = self.running.as_ref().and_then(|running| running.shared.hidden());
        hidden.map(|why| ("symbol", why)).into_iter().collect()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        if let Some(Running { shared, drainer }) = self.running.take() {
            shared.stop.store(true, Ordering::Relaxed);
            drainer.thread().unpark();
            // It fails only if the thread panicked, which was reported when it happened.
            let _ = drainer.join();
        }
    }
}

impl Shared {
    fn profiler(&self) -> MutexGuard<'_, Profiler> {
        self.profiler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            self.profiler().drain();
            thread::park_timeout(DRAIN_EVERY);
        }
    }

    fn hidden(&self) -> Option<Unmeasured> {
        self.profiler().code.hidden().cloned()
    }
}

impl Profiler {
    fn drain(&mut self) {
        let (now_ns, before_ns) = (clock::now_ns(), thread_cpu_ns());
        let Self { sampler, threads, code, tally, samples } = self;
        // Each processor has its own buffer: a thread that started on one may have been sampled on
        // another, so names come first.
        sampler.drain(|record| match record {
            Record::Sample(sample) => samples.push(sample),
            Record::Name { process, thread, name, is_new_program } => {
                threads.named(thread, name);
                if is_new_program {
                    code.forget(process);
                }
            }
            Record::Began { process, thread, parent_thread } => {
                threads.began(thread, parent_thread);
                if process == thread {
                    code.forget(process);
                }
            }
            Record::Ended { process, thread } => {
                threads.ended(thread, now_ns);
                if process == thread {
                    code.ended(process, now_ns);
                }
            }
            Record::Lost { records } => tally.lost += records,
        });
        for sample in samples.drain(..) {
            add(tally, threads, code, &sample, now_ns);
        }
        threads.tidy(now_ns);
        code.tidy(now_ns);
        tally.watched_ns = tally.watched_ns.max(sampler.watched_ns());
        tally.summing_ns += thread_cpu_ns().saturating_sub(before_ns);
    }

    fn rows(&mut self, rows: &mut Vec<Row>) {
        let period_ns = self.sampler.period_ns();
        let hides = self.code.hidden().is_some();
        self.tally.look(|key, count| rows.push(columns::row(key, count, period_ns, hides)));
        rows.push(columns::sampling_row(Some((&self.tally, period_ns))));
    }
}

fn add(tally: &mut Tally, threads: &mut Threads, code: &mut Code, sample: &Sample, now_ns: u64) {
    let CodeLocation { module, symbol, is_idle } = code.at(sample, now_ns);
    // Outside of the first PID namespace, processes of other namespaces have number 0 as well.
    if sample.process == 0 && sample.is_kernel && is_idle {
        tally.idle += 1;
        return;
    }
    let role = threads.role(sample, now_ns);
    tally.add(Key { role, is_kernel: sample.is_kernel, module, symbol });
}

fn reason(error: &PerfError) -> Unmeasured {
    let why = error.in_a_line();
    match error {
        PerfError::NotPermitted { .. } => Unmeasured::NotPermitted(why),
        PerfError::Absent { .. } => Unmeasured::NotInVersion(why),
    }
}
