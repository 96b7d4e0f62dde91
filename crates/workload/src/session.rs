//! One session: a thread that sends its schedule to the target until told to stop.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::hint::Hint as _;
use blockstone_engine::pacing::{self, Alarm};
use blockstone_servers::{Canceller, Target, TargetSession};
use blockstone_sys::clock;
use parking_lot::{Condvar, Mutex};

use crate::counters::{Counters, KINDS, Timed};
use crate::parameters::Parameters;
use crate::schedule::{Schedule, Step, Work};

#[derive(Debug)]
pub(crate) struct Shared {
    pub counters: Counters,
    pub stop: Arc<AtomicBool>,
    /// Sessions that have ended, successfully or not.
    pub ended: AtomicU32,
    /// Cancellers, each with the number of its session.
    cancellers: Mutex<Vec<(u32, Canceller)>>,
    gate: Mutex<Gate>,
    moved: Condvar,
}

/// Where the sessions wait for each other, and the first error.
#[derive(Debug, Default)]
struct Gate {
    connected: u32,
    start: Option<Instant>,
    first_error: Option<String>,
    /// Hint about a session that could not connect.
    first_hint: Option<String>,
    failed_sessions: u32,
}

impl Shared {
    pub fn new(counters: Counters) -> Self {
        Self {
            counters,
            stop: Arc::default(),
            ended: AtomicU32::new(0),
            cancellers: Mutex::default(),
            gate: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// Waits until all sessions are connected; returns false if one has failed or `give_up`, which
    /// is polled, returned true.
    pub fn all_connected(&self, sessions: u32, give_up: &mut dyn FnMut() -> bool) -> bool {
        let mut gate = self.gate.lock();
        loop {
            if gate.first_error.is_some() {
                return false;
            }
            if gate.connected == sessions {
                return true;
            }
            self.moved.wait_for(&mut gate, Duration::from_millis(50));
            if give_up() {
                return false;
            }
        }
    }

    pub fn open(&self) {
        self.gate.lock().start = Some(Instant::now());
        self.moved.notify_all();
    }

    /// Ends all sessions, including those waiting at the gate.
    pub fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.gate.lock());
        self.moved.notify_all();
    }

    pub fn can_cancel(&self) -> bool {
        !self.cancellers.lock().is_empty()
    }

    /// Cancels the operations that the sessions are executing.
    pub fn cancel(&self) {
        for (index, canceller) in self.cancellers.lock().iter() {
            let (_, current) = self.counters.sessions[*index as usize].current();
            if current.is_some() {
                canceller.cancel();
            }
        }
    }

    /// Reports a session as connected and waits for the start; returns `None` if there will be
    /// none.
    fn wait_for_start(&self) -> Option<Instant> {
        let mut gate = self.gate.lock();
        gate.connected += 1;
        self.moved.notify_all();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if gate.start.is_some() {
                return gate.start;
            }
            self.moved.wait(&mut gate);
        }
    }

    /// Records a failed session and ends the run: the rest would not be the requested load.
    fn fail(&self, why: impl FnOnce() -> String) {
        let mut gate = self.gate.lock();
        gate.failed_sessions += 1;
        gate.first_error.get_or_insert_with(why);
        drop(gate);
        self.end();
    }

    /// Returns the time since the sessions started; `None` before that.
    fn elapsed_ns(&self) -> Option<u64> {
        self.gate.lock().start.map(|start| start.elapsed().as_nanos() as u64)
    }

    /// Returns the kinds of the operations that were due but have not ended, and how long they have
    /// lasted. Operations that no session has started yet are derived from seed and parameters.
    pub fn unfinished(&self, parameters: &Parameters) -> Vec<(usize, u64)> {
        let Some(now_ns) = self.elapsed_ns() else { return Vec::new() };
        let sessions = parameters.population.sessions();
        let mut out = Vec::new();
        for (index, session) in (0..sessions).zip(&self.counters.sessions) {
            let (started, current) = session.current();
            out.extend(current.map(|(kind, due_ns)| (kind, now_ns.saturating_sub(due_ns))));
            let arrivals =
                pacing::Schedule::new(parameters.pacing(), index, sessions, parameters.seed, 0);
            let Some(mut arrivals) = arrivals else { continue };
            let mut schedule = Schedule::new(parameters, index);
            for _ in 0..started {
                arrivals.take();
                schedule.step();
            }
            let all = |loops| parameters.operations(loops);
            let left = parameters.loops.map_or(u64::MAX, |it| all(it).saturating_sub(started));
            let overdue = arrivals.overdue(now_ns).take(left as usize);
            out.extend(overdue.map(|due_ns| (schedule.step().kind, now_ns - due_ns)));
        }
        out
    }

    pub fn first_hint(&self) -> Option<String> {
        self.gate.lock().first_hint.clone()
    }

    pub fn first_error(&self) -> Option<String> {
        self.gate.lock().first_error.clone()
    }

    pub fn failed_sessions(&self) -> u32 {
        self.gate.lock().failed_sessions
    }
}

/// Counts a session as ended, however it ends.
struct Ending<'a> {
    shared: &'a Shared,
    index: u32,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let index = self.index;
            self.shared.fail(|| format!("session {index} panicked: this is a bug"));
        }
        self.shared.ended.fetch_add(1, Ordering::Release);
    }
}

/// Runs session `index` from connection to end.
pub(crate) fn run(index: u32, target: &dyn Target, parameters: &Parameters, shared: &Arc<Shared>) {
    let _ending = Ending { shared, index };
    let connected = target.session(index).and_then(|mut session| {
        session.set_stop_flag(&shared.stop);
        parameters.scan_how.map_or(Ok(()), |how| session.arrange_scans(how))?;
        Ok(session)
    });
    let mut session = match connected {
        Ok(session) => session,
        Err(error) => {
            let hint = error.hint().map(Cow::into_owned);
            let mut gate = shared.gate.lock();
            if gate.first_error.is_none() {
                gate.first_hint = hint;
            }
            drop(gate);
            return shared.fail(|| format!("connect session {index}: {error}"));
        }
    };
    if let Some(canceller) = session.canceller() {
        shared.cancellers.lock().push((index, canceller));
    }
    clock::sharpen_timers();
    let Some(start) = shared.wait_for_start() else { return };
    let seed = parameters.seed;
    let sessions = parameters.population.sessions();
    let running = Loop {
        index,
        start,
        schedule: Schedule::new(parameters, index),
        arrivals: pacing::Schedule::new(parameters.pacing(), index, sessions, seed, 0),
        alarm: Alarm::default(),
        left: parameters.loops.map_or(u64::MAX, |loops| parameters.operations(loops)),
        shared,
    };
    running.run(session.as_mut());
}

/// Describes what was sent, for a message.
fn sent(step: &Step) -> String {
    match step.work {
        Work::Operation(operation) => format!("{operation:?}"),
        Work::Transaction => KINDS[step.kind].to_owned(),
        Work::Table(table_step) => format!("{table_step:?}"),
    }
}

struct Loop<'a> {
    index: u32,
    start: Instant,
    schedule: Schedule,
    arrivals: Option<pacing::Schedule>,
    alarm: Alarm,
    left: u64,
    shared: &'a Shared,
}

impl Loop<'_> {
    fn run(mut self, session: &mut dyn TargetSession) {
        let counters = &self.shared.counters;
        let own = &counters.sessions[self.index as usize];
        // In a closed loop without pauses the end of one operation is the start of the next: one
        // clock reading per operation.
        let mut now_ns = self.now_ns();
        while self.left > 0 && !self.stopped() {
            let ready_ns = now_ns;
            let intended_ns = match self.arrivals.as_mut().map(pacing::Schedule::take) {
                None => now_ns,
                Some(due_ns) => {
                    let Some(awake_ns) = self.awake_at(due_ns) else { break };
                    now_ns = awake_ns;
                    due_ns
                }
            };
            let step = self.schedule.step();
            let kind = step.kind;
            own.begins(kind, intended_ns);
            let executed = match &step.work {
                Work::Operation(operation) => session.execute(operation),
                Work::Transaction => session.transact(self.schedule.statements()),
                Work::Table(step) => session.write_table(step),
            };
            let timed = Timed { intended_ns, ready_ns, sent_ns: now_ns, done_ns: self.now_ns() };
            now_ns = timed.done_ns;
            match executed {
                Ok(executed) => {
                    own.completed(kind, executed, timed);
                    counters.record(kind, timed);
                    let spun_ns = self.alarm.take_spun_ns();
                    if spun_ns > 0 {
                        own.spun(kind, spun_ns);
                    }
                }
                Err(error) => {
                    own.failed(kind);
                    let index = self.index;
                    return self
                        .shared
                        .fail(|| format!("session {index}: {}: {error}", sent(&step)));
                }
            }
            self.left -= 1;
            if step.think_ns > 0 {
                if !self.sleep_until(now_ns + step.think_ns) {
                    break;
                }
                own.thought(kind, step.think_ns);
                now_ns = self.now_ns();
            }
        }
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    #[inline]
    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Waits until `due_ns` with high precision, and returns the time; `None` if it should stop.
    fn awake_at(&mut self, due_ns: u64) -> Option<u64> {
        let mut now_ns = self.now_ns();
        let wake_ns = self.alarm.wake_ns(due_ns);
        if now_ns < wake_ns {
            if !self.sleep_until(wake_ns) {
                return None;
            }
            now_ns = self.now_ns();
            self.alarm.woke(wake_ns, now_ns);
        }
        if now_ns < due_ns {
            let start = self.start;
            let look = || Some(start.elapsed().as_nanos() as u64);
            now_ns = self.alarm.spin_until(due_ns, now_ns, look);
        }
        if now_ns < due_ns {
            if !self.sleep_until(due_ns) {
                return None;
            }
            now_ns = self.now_ns();
        }
        Some(now_ns)
    }

    /// Sleeps so that the owner can wake it up; returns false if it should stop.
    fn sleep_until(&self, due_ns: u64) -> bool {
        loop {
            let now_ns = self.now_ns();
            if self.stopped() {
                return false;
            }
            if now_ns >= due_ns {
                return true;
            }
            thread::park_timeout(Duration::from_nanos(due_ns - now_ns));
        }
    }
}
