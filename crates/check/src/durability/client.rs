//! The writers' side: acknowledged writes are sent to the witness in the order in which they
//! happened, without waiting for each answer.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::durability::findings::{Description, Testimony};
use blockstone_sys::thread::spawn;

use super::layout::WINDOW;
use super::ledger::STREAMS_MAX;
use crate::CheckError;
use crate::meet::{self, Frame, Hello, Kind, Message, SILENCE, invalid};

/// Interval at which an idle writer signals that it is still there.
const IDLE: Duration = Duration::from_secs(5);

/// Returns the greeting: the witness has rank 0, each writer rank 1.
pub fn hello(rank: u32) -> Hello {
    Hello::new("durability", rank, 2)
}

/// A connection to the witness.
#[derive(Debug)]
pub struct Client(meet::Link);

impl Client {
    pub fn connect(address: &str) -> Result<Self, CheckError> {
        Ok(Self(meet::connect(address, &hello(1), Duration::ZERO, &|| false)?))
    }

    /// Returns what the witness knows of a run, or of its last if `run` is 0; `None` if it knows
    /// none.
    pub fn ask(&mut self, run: u64) -> Result<Option<Testimony>, CheckError> {
        self.send(&Frame::new(Kind::Ask, run, 0).bytes())?;
        let Message { frame, text } = self.answer()?;
        if frame.kind == Kind::Durable {
            return Ok(None);
        }
        testimony(&text).map(Some).map_err(|error| self.failed(error))
    }

    /// Reports how the verification of a run ended.
    pub fn outcome(&mut self, run: u64, bits: u64) -> Result<(), CheckError> {
        self.send(&Frame::new(Kind::Outcome, run, bits).bytes())?;
        self.answer().map(drop)
    }

    /// Announces a run, after which its points can be sent.
    pub fn begin(mut self, run: u64, description: &Description) -> Result<Link, CheckError> {
        let text = serde_json::to_string(description).map_err(|error| self.failed(error.into()))?;
        self.send(&meet::with_text(Kind::Begin, run, &text))?;
        self.answer()?;
        Link::start(self, description.streams.len())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), CheckError> {
        self.0.send(bytes).map_err(|error| self.failed(error))
    }

    fn answer(&mut self) -> Result<Message, CheckError> {
        answer(&mut self.0).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> CheckError {
        self.0.failed(source).into()
    }
}

/// Parses a witness's testimony of all writers of a run.
pub fn testimony(text: &str) -> io::Result<Testimony> {
    let parsed: Option<Testimony> = serde_json::from_str(text).ok();
    let is_whole = |it: &Testimony| {
        let streams = it.description.streams.len();
        streams <= STREAMS_MAX && it.points.len() == streams
    };
    parsed.filter(is_whole).ok_or_else(|| invalid("no testimony of all writers"))
}

/// Receives the next answer of the witness.
fn answer(from: &mut meet::Link) -> io::Result<Message> {
    let message = from.receive(SILENCE)?.ok_or(io::ErrorKind::TimedOut)?;
    match message.frame.kind {
        Kind::Durable | Kind::Testimony => Ok(message),
        _ => Err(invalid("an answer that no witness gives")),
    }
}

/// Sends points while writers write.
#[derive(Debug)]
pub struct Link {
    shared: Arc<Shared>,
    connection: meet::Link,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Points not sent yet.
    queue: Vec<Frame>,
    /// Streams of the points that were sent but not confirmed, in order.
    sent: VecDeque<u32>,
    /// Last confirmed sequence of each stream.
    confirmed: Vec<u64>,
    confirmed_points: u64,
    failed: Option<String>,
    ended: bool,
}

impl Link {
    fn start(client: Client, streams: usize) -> Result<Self, CheckError> {
        let state = State { confirmed: vec![0; streams], ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let copy = || client.0.try_clone().map_err(|error| client.failed(error));
        let (sending, receiving) = (copy()?, copy()?);
        let mut threads = Vec::new();
        let theirs = Arc::clone(&shared);
        let work = move || theirs.fail_with(send(&theirs, sending));
        let error = |source| CheckError::Thread { source };
        threads.push(spawn("send", work).map_err(error)?);
        let theirs = Arc::clone(&shared);
        let work = move || theirs.fail_with(receive(&theirs, receiving));
        let started = spawn("receive", work);
        let mut link = Self { shared, connection: client.0, threads };
        match started {
            Ok(thread) => link.threads.push(thread),
            Err(source) => {
                link.finish(Duration::ZERO);
                return Err(error(source));
            }
        }
        Ok(link)
    }

    pub fn handle(&self) -> Points {
        Points { shared: Arc::clone(&self.shared) }
    }

    /// Returns why nothing more reaches the witness.
    pub fn failed(&self) -> Option<String> {
        self.shared.lock().failed.clone()
    }

    /// Waits for at most `patience` until everything sent is confirmed.
    pub fn finish(self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut state = self.shared.lock();
        while state.failed.is_none() && (!state.queue.is_empty() || !state.sent.is_empty()) {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            state = self.shared.wait(state, left.max(Duration::from_millis(1)));
        }
        state.ended = true;
        drop(state);
        self.shared.changed.notify_all();
        self.connection.close();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// A writer's handle of the link.
#[derive(Clone, Debug)]
pub struct Points {
    shared: Arc<Shared>,
}

impl Points {
    /// Waits until a write with this sequence may start. Returns false if nothing may start any
    /// more.
    pub fn may_start(&self, stream: u16, sequence: u64, go_on: &dyn Fn() -> bool) -> bool {
        const LOOK: Duration = Duration::from_millis(100);
        let mut state = self.shared.lock();
        loop {
            if state.failed.is_some() || state.ended || !go_on() {
                return false;
            }
            if sequence <= state.confirmed[usize::from(stream)] + WINDOW {
                return true;
            }
            state = self.shared.wait(state, LOOK);
        }
    }

    /// Returns the last confirmed sequence of each stream.
    pub fn confirmed(&self) -> Vec<u64> {
        self.shared.lock().confirmed.clone()
    }

    pub fn acknowledged(&self, stream: u16, sequence: u64, hash: u64) {
        let stream = u32::from(stream);
        self.shared.lock().queue.push(Frame { kind: Kind::Point, stream, a: sequence, b: hash });
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn fail_with(&self, ended: io::Result<()>) {
        let mut state = self.lock();
        if let (Err(error), false) = (ended, state.ended) {
            state.failed.get_or_insert(error.to_string());
        }
        self.changed.notify_all();
    }
}

fn send(shared: &Shared, mut to: meet::Link) -> io::Result<()> {
    loop {
        let mut state = shared.lock();
        let until = Instant::now() + IDLE;
        while state.queue.is_empty() && !state.ended && state.failed.is_none() {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            state = shared.wait(state, left.max(Duration::from_millis(1)));
        }
        if state.failed.is_some() || (state.ended && state.queue.is_empty()) {
            return Ok(());
        }
        let frames = std::mem::take(&mut state.queue);
        state.sent.extend(frames.iter().map(|frame| frame.stream));
        drop(state);
        let mut bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        if bytes.is_empty() {
            bytes.extend(Frame::new(Kind::Idle, 0, 0).bytes());
        }
        to.send(&bytes)?;
    }
}

fn receive(shared: &Shared, mut from: meet::Link) -> io::Result<()> {
    loop {
        let frame = answer(&mut from)?.frame;
        let mut state = shared.lock();
        while state.confirmed_points < frame.a {
            let Some(stream) = state.sent.pop_front() else {
                return Err(invalid("it confirms what was not sent"));
            };
            state.confirmed[stream as usize] += 1;
            state.confirmed_points += 1;
        }
        drop(state);
        shared.changed.notify_all();
    }
}
