//! A database looked at from a thread of its own: a server that hangs holds up nothing else.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockstone_base::column::{Reading, Schema, Unmeasured};
use blockstone_base::units::Nanos;
use blockstone_sys::clock;
use blockstone_target::Member;
use blockstone_target::monitor::{self, Monitor, Server};

use crate::WatchError;

/// How long a tick waits for the server's counters; they come with a later one otherwise.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a server that went away is left alone before it is asked for again.
const PAUSE: Duration = Duration::from_secs(1);
/// Looks after which columns that are not measured and processes are asked for again.
const ASK_EVERY: u64 = 10;

/// What the thread said.
#[derive(Debug, Default)]
pub struct Answer {
    /// The instant that it looked at, since the watch began.
    pub t_ns: u64,
    /// What it saw.
    pub readings: Vec<Reading>,
    /// Columns that it cannot measure, when they were asked for.
    pub unmeasured: Vec<(&'static str, &'static str, Unmeasured)>,
    /// The server's processes with their roles, when they were asked for.
    pub processes: Option<Vec<(Member, String)>>,
    /// Why it saw nothing.
    pub error: Option<String>,
    /// Whether these are the counters of a tick.
    is_tick: bool,
}

/// The thread that looks at one database.
pub struct Database {
    series: &'static [&'static Schema],
    server: Server,
    ticks: Option<Sender<u64>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Database {
    /// Connects to the server at `address` and begins to sample its sessions, `samples` apart, on
    /// the clock that began at `origin_ns`.
    pub fn start(address: &str, samples: Nanos, origin_ns: u64) -> Result<Self, WatchError> {
        let mut monitor = monitor::open(address)?;
        let (series, server) = (monitor.series(), monitor.describe());
        // The first look says what is wrong with the server while that can still be said.
        monitor.counters(&mut Vec::new())?;
        let (ticks, due) = mpsc::channel();
        let (said, answers) = mpsc::channel();
        let looker = Looker { monitor, said, samples, origin_ns, looks: 0, gone: false };
        let thread = thread::Builder::new().name("database".to_owned());
        let thread = thread.spawn(move || looker.run(&due)).map_err(WatchError::Thread)?;
        Ok(Self { series, server, ticks: Some(ticks), answers, thread: Some(thread) })
    }

    /// The series that it tells.
    pub fn series(&self) -> &'static [&'static Schema] {
        self.series
    }

    /// What the server is.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Has the counters read under the instant `t_ns`.
    pub fn ask(&self, t_ns: u64) {
        // A thread that is gone says so in its answers.
        let _ = self.ticks.as_ref().map(|ticks| ticks.send(t_ns));
    }

    /// What it said since the last time; waits a moment for the counters of a tick.
    pub fn answers(&self) -> Vec<Answer> {
        let until = Instant::now() + PATIENCE;
        let mut answers = Vec::new();
        while let Ok(answer) =
            self.answers.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            let complete = answer.is_tick;
            answers.push(answer);
            if complete {
                break;
            }
        }
        answers.extend(self.answers.try_iter());
        answers
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Without a sender the thread ends, once the server let go of it.
        self.ticks = None;
        if let Some(thread) = self.thread.take()
            && thread.is_finished()
        {
            let _ = thread.join();
        }
    }
}

struct Looker {
    monitor: Box<dyn Monitor>,
    said: Sender<Answer>,
    samples: Nanos,
    origin_ns: u64,
    looks: u64,
    gone: bool,
}

impl Looker {
    fn run(mut self, due: &Receiver<u64>) {
        let pause = Duration::from_nanos(self.samples.get());
        let mut next = Instant::now() + pause;
        loop {
            let answer = match due.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(t_ns) => self.tick(t_ns),
                Err(RecvTimeoutError::Timeout) => {
                    next = (next + pause).max(Instant::now());
                    self.sample()
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if self.gone {
                next = Instant::now() + PAUSE;
            }
            if self.said.send(answer).is_err() {
                return;
            }
        }
    }

    fn tick(&mut self, t_ns: u64) -> Answer {
        let mut answer = Answer { t_ns, is_tick: true, ..Answer::default() };
        let looked = self.back().and_then(|()| {
            self.monitor.counters(&mut answer.readings)?;
            self.monitor.sessions(&mut answer.readings)
        });
        self.gone = looked.is_err();
        if let Err(error) = looked {
            answer.readings.clear();
            answer.error = Some(error.to_string());
            return answer;
        }
        if self.looks.is_multiple_of(ASK_EVERY) {
            answer.unmeasured = self.monitor.unmeasured();
            answer.processes = Some(self.monitor.processes());
        }
        self.looks += 1;
        answer
    }

    fn sample(&mut self) -> Answer {
        let t_ns = clock::now_ns() - self.origin_ns;
        let mut answer = Answer { t_ns, ..Answer::default() };
        let looked = self.back().and_then(|()| self.monitor.sessions(&mut answer.readings));
        self.gone = looked.is_err();
        if let Err(error) = looked {
            answer.readings.clear();
            answer.error = Some(error.to_string());
        }
        answer
    }

    /// Connects anew to a server that went away.
    fn back(&mut self) -> Result<(), blockstone_target::SqlError> {
        if self.gone { self.monitor.reconnect() } else { Ok(()) }
    }
}
