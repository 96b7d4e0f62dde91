//! Databases, each watched from its own thread, so that a hanging server does not delay anything
//! else.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockstone_base::column::{Reading, Schema, Unmeasured};
use blockstone_base::database::STATEMENT_TEXT;
use blockstone_base::hint::Hint as _;
use blockstone_base::units::Nanos;
use blockstone_record::manifest::{ProbeInfo, series_of};
use blockstone_servers::Member;
use blockstone_servers::monitor::{self, Monitor, Server};
use blockstone_sys::clock;

use crate::WatchError;

/// How long a tick waits for the servers' counters; late ones go with a later tick.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long to wait before reconnecting to a server that went away.
const PAUSE: Duration = Duration::from_secs(1);
/// Ticks after which unmeasured columns and processes are queried again.
const ASK_EVERY: u64 = 10;

#[derive(Debug, Default)]
pub struct Answer {
    /// Time of the reading since the start of the watch.
    pub t_ns: u64,
    pub readings: Vec<Reading>,
    /// Columns that it cannot measure, if they were queried.
    pub unmeasured: Vec<(&'static str, &'static str, Unmeasured)>,
    /// The server's processes with their roles, if they were queried.
    pub processes: Option<Vec<(Member, String)>>,
    pub error: Option<String>,
    /// Whether these are the counters of a tick.
    is_tick: bool,
}

pub struct Database {
    series: &'static [&'static Schema],
    server: Server,
    /// Name that sets its series and processes apart from those of other databases; `None` if it is
    /// the only one.
    name: Option<String>,
    /// Its processes, as last reported by the server.
    pub processes: Vec<(Member, String)>,
    /// Why it does not answer; `None` while it does.
    pub silent: Option<String>,
    ticks: Option<Sender<u64>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Database {
    /// Connects to the server at `address` and starts to sample its sessions every `samples`;
    /// instants count from `origin_ns`.
    pub fn start(address: &str, samples: Nanos, origin_ns: u64) -> Result<Self, WatchError> {
        let mut monitor = monitor::open(address)?;
        let (series, server) = (monitor.series(), monitor.describe());
        // Read once here, so that problems of the server are errors at the start. Texts are
        // reported only once, so they are kept.
        let mut texts = Vec::new();
        monitor.counters(&mut texts)?;
        texts.retain(|reading| reading.probe == STATEMENT_TEXT.probe);
        let (ticks, due) = mpsc::channel();
        let (answers_out, answers) = mpsc::channel();
        let processes = monitor.processes();
        let poller =
            Poller { monitor, texts, answers_out, samples, origin_ns, ticks_read: 0, gone: false };
        let thread = thread::Builder::new().name("database".to_owned());
        let thread = thread.spawn(move || poller.run(&due)).map_err(WatchError::Thread)?;
        let (ticks, thread) = (Some(ticks), Some(thread));
        let (name, silent) = (None, None);
        Ok(Self { series, server, name, processes, silent, ticks, answers, thread })
    }

    /// Starts to watch the servers at these addresses, and gives each a unique name.
    pub fn start_all(
        addresses: &[String],
        samples: Nanos,
        origin_ns: u64,
    ) -> Result<Vec<Self>, WatchError> {
        let start = |address: &String| Self::start(address, samples, origin_ns);
        let mut all = addresses.iter().map(start).collect::<Result<Vec<Self>, _>>()?;
        if all.len() < 2 {
            return Ok(all);
        }
        for index in 0..all.len() {
            let is_taken = |name: &str| all.iter().any(|it| it.name.as_deref() == Some(name));
            let name = all[index].server.instance.clone();
            // Two may listen on the same port of different addresses.
            let by_pid = all[index].server.pid.map(|pid| format!("{name} pid {pid}"));
            let numbered = (2..).map(|number| format!("{name} {number}"));
            let mut names = [name.clone()].into_iter().chain(by_pid).chain(numbered);
            all[index].name = names.find(|name| !is_taken(name));
        }
        Ok(all)
    }

    /// Returns its name among several databases; `None` if it is the only one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn series(&self) -> &'static [&'static Schema] {
        self.series
    }

    /// Returns the series that are recorded for it.
    pub fn infos(&self) -> impl Iterator<Item = ProbeInfo> {
        let name = self.name();
        self.series.iter().map(move |schema| match name {
            Some(name) => ProbeInfo::of_instance(schema, name),
            None => ProbeInfo::of(schema),
        })
    }

    /// Returns the name of one of its series.
    pub fn series_of(&self, probe: &str) -> String {
        series_of(probe, self.name())
    }

    /// Returns its processes, with the names used for them in the kernel's counts.
    pub fn members(&self) -> impl Iterator<Item = ((u32, Option<u32>), String)> {
        let name = self.name().unwrap_or(self.server.family);
        let named = move |(member, role): &(Member, String)| {
            ((member.pid, member.thread), format!("{name}/{role}"))
        };
        self.processes.iter().map(named)
    }

    /// Returns the deadline until which a tick waits for servers.
    pub fn patience() -> Instant {
        Instant::now() + PATIENCE
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    pub fn ask(&self, t_ns: u64) {
        // If the thread has ended, its answers show that.
        let _ = self.ticks.as_ref().map(|ticks| ticks.send(t_ns));
    }

    /// Returns the answers since the last call; waits for the counters of the tick until the
    /// deadline.
    pub fn answers(&self, until: Instant) -> Vec<Answer> {
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
        // Without a sender the thread ends as soon as the server returns from its query.
        self.ticks = None;
        if let Some(thread) = self.thread.take()
            && thread.is_finished()
        {
            let _ = thread.join();
        }
    }
}

struct Poller {
    monitor: Box<dyn Monitor>,
    /// Texts of statements that were reported before the first tick.
    texts: Vec<Reading>,
    answers_out: Sender<Answer>,
    samples: Nanos,
    origin_ns: u64,
    ticks_read: u64,
    gone: bool,
}

impl Poller {
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
            if self.answers_out.send(answer).is_err() {
                return;
            }
        }
    }

    fn tick(&mut self, t_ns: u64) -> Answer {
        let mut answer = Answer { t_ns, is_tick: true, ..Answer::default() };
        let result = self.reconnect_if_gone().and_then(|()| {
            self.monitor.counters(&mut answer.readings)?;
            self.monitor.sessions(&mut answer.readings)
        });
        self.gone = result.is_err();
        if let Err(error) = result {
            answer.readings.clear();
            answer.error = Some(error.told());
            return answer;
        }
        answer.readings.append(&mut self.texts);
        if self.ticks_read.is_multiple_of(ASK_EVERY) {
            answer.unmeasured = self.monitor.unmeasured();
            answer.processes = Some(self.monitor.processes());
        }
        self.ticks_read += 1;
        answer
    }

    fn sample(&mut self) -> Answer {
        let t_ns = clock::now_ns() - self.origin_ns;
        let mut answer = Answer { t_ns, ..Answer::default() };
        let result =
            self.reconnect_if_gone().and_then(|()| self.monitor.sessions(&mut answer.readings));
        self.gone = result.is_err();
        if let Err(error) = result {
            answer.readings.clear();
            answer.error = Some(error.told());
        }
        answer
    }

    fn reconnect_if_gone(&mut self) -> Result<(), blockstone_servers::SqlError> {
        if self.gone { self.monitor.reconnect() } else { Ok(()) }
    }
}
