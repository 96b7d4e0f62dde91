//! All sessions together: connecting them, starting them at the same moment, reading their counters
//! and stopping them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockstone_base::LatencyHistogram;
use blockstone_base::hint::Hint;
use blockstone_base::load::Op;
use blockstone_servers::Target;

use crate::counters::{self, Counters, SessionLatencies, Totals};
use crate::parameters::{ParameterError, Parameters};
use crate::session::{self, Shared};

/// Stack size of a session. Thousands of them are reserved address space, not memory.
const STACK_BYTES: usize = 256 << 10;
/// Statements that take longer than this to end are cancelled, and again after the same time: one
/// that was just being sent misses a request.
const CANCEL_AFTER: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error, Hint)]
pub enum WorkloadError {
    #[error(transparent)]
    #[hint(transparent)]
    Parameters(#[from] ParameterError),
    #[error("start session {index} of {sessions}: {source}")]
    #[hint("raise ulimit -u and the control group's pids.max, or ask for fewer sessions")]
    Thread { index: u32, sessions: u32, source: std::io::Error },
    #[error("{why}")]
    #[hint(hint)]
    Connect { why: String, hint: Option<String> },
    #[error("start the sessions: interrupted")]
    #[hint("nothing was measured; run it again")]
    Interrupted,
}

#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    sessions: u32,
    parameters: Arc<Parameters>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub totals: Totals,
    pub first_error: Option<String>,
    pub failed_sessions: u32,
    /// Sessions that did not end in time: they are still waiting for their operation.
    pub stuck_sessions: u32,
}

/// Connects every session on its own thread, then starts them all at the same moment. `give_up` is
/// polled while they connect. Fails when the parameters are wrong or a session cannot be connected;
/// the others then end immediately, without having sent anything.
pub fn start(
    target: &Arc<dyn Target>,
    parameters: &Parameters,
    give_up: &mut dyn FnMut() -> bool,
) -> Result<Running, WorkloadError> {
    parameters.check()?;
    let sessions = parameters.population.sessions();
    let open_loop = parameters.rate_per_s.is_some();
    let shared = Arc::new(Shared::new(Counters::new(sessions, open_loop)));
    let parameters = Arc::new(parameters.clone());
    let mut running = Running {
        shared: Arc::clone(&shared),
        threads: Vec::new(),
        sessions,
        parameters: Arc::clone(&parameters),
    };
    for index in 0..sessions {
        let (target, parameters) = (Arc::clone(target), Arc::clone(&parameters));
        let shared = Arc::clone(&shared);
        // If an error drops `running`, that ends the sessions already started.
        let thread = thread::Builder::new()
            .name(format!("session-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || session::run(index, target.as_ref(), &parameters, &shared))
            .map_err(|source| WorkloadError::Thread { index, sessions, source })?;
        running.threads.push(thread);
    }
    if !shared.all_connected(sessions, give_up) {
        let hint = shared.first_hint();
        let connect = |why| WorkloadError::Connect { why, hint };
        return Err(shared.first_error().map_or(WorkloadError::Interrupted, connect));
    }
    shared.open();
    Ok(running)
}

impl Running {
    /// Returns counters since the start, summed over the sessions without disturbing them.
    pub fn totals(&self) -> Totals {
        self.shared.counters.totals()
    }

    /// Returns latencies by kind of operation since the last call.
    pub fn take_latencies(&self) -> Vec<SessionLatencies> {
        self.shared.counters.take_latencies()
    }

    /// Returns the latencies so far, from the intended start, of operations that are in flight or
    /// overdue: an entry for each kind, with its name and direction, even if there are none.
    pub fn unfinished(&self) -> impl Iterator<Item = (&'static str, Op, LatencyHistogram)> {
        let lasted = self.shared.unfinished(&self.parameters).into_iter();
        counters::unfinished(lasted, self.parameters.kinds())
    }

    /// Returns whether a session has ended: then the others are no longer the requested load.
    pub fn any_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire) > 0
    }

    /// Returns whether every session has ended, successfully or not.
    pub fn all_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire) == self.sessions
    }

    pub fn first_error(&self) -> Option<String> {
        self.shared.first_error()
    }

    /// Lets sessions that have a number of loops run to their end, for at most `limit`.
    pub fn wait(&self, limit: Duration) {
        let started = Instant::now();
        while !self.all_ended() && started.elapsed() < limit {
            thread::sleep(Duration::from_micros(500));
        }
    }

    /// Tells the sessions to stop and waits for the operations in flight, which are cancelled if
    /// they do not end soon. Thousands of sessions may take long, so it waits as long as sessions
    /// keep ending, and gives up when none has ended for `grace`.
    pub fn stop(mut self, grace: Duration) -> Outcome {
        self.end();
        self.cancel_later();
        let (mut ended, mut since) = (0, Instant::now());
        while !self.all_ended() && since.elapsed() < grace {
            thread::sleep(Duration::from_micros(500));
            let now = self.shared.ended.load(Ordering::Acquire);
            if now > ended {
                (ended, since) = (now, Instant::now());
            }
        }
        let mut stuck_sessions = 0;
        for thread in std::mem::take(&mut self.threads) {
            if thread.is_finished() || self.all_ended() {
                // A panic has already been recorded by the session itself.
                let _ = thread.join();
            } else {
                stuck_sessions += 1;
            }
        }
        Outcome {
            totals: self.totals(),
            first_error: self.shared.first_error(),
            failed_sessions: self.shared.failed_sessions(),
            stuck_sessions,
        }
    }

    /// Cancels from a separate thread: a server may not answer.
    fn cancel_later(&self) {
        if !self.shared.can_cancel() {
            return;
        }
        let (shared, sessions) = (Arc::clone(&self.shared), self.sessions);
        let cancel = move || {
            thread::sleep(CANCEL_AFTER);
            while shared.ended.load(Ordering::Acquire) < sessions {
                shared.cancel();
                thread::sleep(CANCEL_AFTER);
            }
        };
        // If no thread is available, the operations are waited for.
        let _ = thread::Builder::new().name("cancel".to_owned()).spawn(cancel);
    }

    fn end(&self) {
        self.shared.end();
        self.threads.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
