//! Live counters of a run in progress: the last values of its target and its sessions, available to
//! other processes on this host over a socket in the recording's directory.
//!
//! A client sends a line, a [`Question`], and receives one line of JSON, an [`Answer`]. Without
//! clients, the run only reads one atomic counter per tick. The events of single sessions are
//! counted for each question about them: the run itself reads those of many sessions too seldom
//! for the edges of a client's interval. Their processor time is that of the run's last look.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use blockstone_base::column::{Cell, Reading, Unmeasured};
use blockstone_base::database::{SESSION_EVENT, SESSION_STATISTICS};
use blockstone_sys::held::HeldDir;
use blockstone_sys::path::of_descriptor;
use blockstone_sys::thread;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use crate::target::Target;

/// Name of the socket in the directory of a recording.
pub const SOCKET: &str = "live.sock";

/// Series with rows for single sessions.
const COUNTED: [&str; 2] = [SESSION_STATISTICS.probe, SESSION_EVENT.probe];
/// Maximum number of clients at a time.
const CLIENTS_MOST: u64 = 64;
/// Maximum time that an answer waits for the first tick of a run that has just started.
const FIRST_TICK: Duration = Duration::from_secs(5);
/// Maximum time for receiving an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum size of an answer, enough for thousands of sessions.
const ANSWER_BYTES: u64 = 16 << 20;
/// Maximum size of a question.
const QUESTION_BYTES: u64 = 64;
/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// The text before the line break of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The last tick, and the counters of each session as they are now.
    Counters,
    /// The last tick without counters of sessions, which take time to read.
    Tick,
}

impl Question {
    const TICK: &'static [u8] = b"tick\n";

    const fn line(self) -> &'static [u8] {
        match self {
            Self::Counters => b"\n",
            Self::Tick => Self::TICK,
        }
    }

    fn of(line: &[u8]) -> Self {
        if line == Self::TICK { Self::Tick } else { Self::Counters }
    }
}

/// Description of a run, and its last counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The target of the run, such as `instance`.
    pub target: String,
    pub pid: u32,
    /// Columns that cannot be measured: series, column, reason.
    pub unmeasured: Vec<(String, String, Unmeasured)>,
    /// Rows: series, object, cells.
    pub rows: Vec<(String, String, Vec<Cell>)>,
}

/// Answers clients until it is dropped.
#[derive(Debug)]
pub struct Teller {
    shared: Arc<Shared>,
    dir: HeldDir,
}

#[derive(Debug)]
struct Shared {
    about: Answer,
    /// The database that the run loads; gone once it is over.
    target: Weak<dyn Target>,
    rows: Mutex<Vec<Reading>>,
    ticked: Condvar,
    listeners: Mutex<HashMap<u64, UnixStream>>,
    /// The number of listeners, readable without the lock.
    count: AtomicU64,
    over: AtomicBool,
}

impl Teller {
    /// Opens the socket in `dir` and answers clients on other threads; `about` holds everything but
    /// the rows. The file system of `dir` must support sockets.
    pub fn start(dir: &Path, about: Answer, target: Weak<dyn Target>) -> io::Result<Self> {
        let dir = HeldDir::hold(dir)?;
        let listener = UnixListener::bind(of_descriptor(&dir).join(SOCKET))?;
        let shared = Arc::new(Shared {
            about,
            target,
            rows: Mutex::default(),
            ticked: Condvar::new(),
            listeners: Mutex::default(),
            count: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        let teller = Self { shared: Arc::clone(&shared), dir };
        thread::spawn("teller", move || shared.accept(&listener))?;
        Ok(teller)
    }

    /// Publishes the rows of a tick.
    pub fn tell(&self, rows: &[Reading]) {
        if self.shared.count.load(Ordering::Relaxed) > 0 {
            let others = rows.iter().filter(|row| !COUNTED.contains(&row.probe));
            let mut kept = self.shared.rows.lock();
            kept.clear();
            kept.extend(others.cloned());
            self.shared.ticked.notify_all();
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for clients, if the socket still exists.
        let _ = UnixStream::connect(of_descriptor(&self.dir).join(SOCKET));
        let _ = self.dir.remove(Path::new(SOCKET));
        for listener in self.shared.listeners.lock().values() {
            let _ = listener.shutdown(Shutdown::Both);
        }
        self.shared.ticked.notify_all();
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &UnixListener) {
        for (id, stream) in (0..).zip(listener.incoming()) {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let Ok(stream) = stream else { continue };
            if self.count.load(Ordering::Relaxed) >= CLIENTS_MOST {
                continue;
            }
            let Ok(kept) = stream.try_clone() else { continue };
            self.listeners.lock().insert(id, kept);
            self.count.fetch_add(1, Ordering::Relaxed);
            let shared = Arc::clone(self);
            let answering = thread::spawn("teller", move || {
                // If the client is gone, the error concerns no one.
                let _ = shared.answer(&stream);
                shared.leave(id);
            });
            if answering.is_err() {
                self.leave(id);
            }
        }
    }

    fn leave(&self, id: u64) {
        self.listeners.lock().remove(&id);
        if self.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Without clients, they are no longer updated.
            self.rows.lock().clear();
        }
    }

    fn answer(&self, stream: &UnixStream) -> io::Result<()> {
        let mut questions = BufReader::new(stream);
        let mut question = Vec::new();
        loop {
            question.clear();
            let asked = questions.by_ref().take(QUESTION_BYTES).read_until(b'\n', &mut question)?;
            if asked == 0 || !question.ends_with(b"\n") {
                return Ok(());
            }
            let rows = self.last_rows(Question::of(&question));
            let answer = Answer { rows, ..self.about.clone() };
            let mut text = serde_json::to_string(&answer)?;
            text.push('\n');
            (&*stream).write_all(text.as_bytes())?;
        }
    }

    fn last_rows(&self, question: Question) -> Vec<(String, String, Vec<Cell>)> {
        let none = |rows: &mut Vec<Reading>| rows.is_empty() && !self.over.load(Ordering::Relaxed);
        let mut rows = self.rows.lock();
        self.ticked.wait_while_for(&mut rows, none, FIRST_TICK);
        let row = |row: &Reading| (row.probe.to_owned(), row.object.clone(), row.cells.clone());
        let mut all: Vec<_> = rows.iter().map(row).collect();
        drop(rows);
        let mut counts = Vec::new();
        let target = (question == Question::Counters).then(|| self.target.upgrade()).flatten();
        if let Some(target) = target {
            target.count_sessions(&mut counts);
        }
        all.extend(counts.iter().map(row));
        all
    }
}

/// A client that queries one run.
#[derive(Debug)]
pub struct Asker {
    lines: BufReader<UnixStream>,
}

impl Asker {
    /// Connects to the run that records into `dir`.
    pub fn connect(dir: &Path) -> io::Result<Self> {
        let dir = HeldDir::hold(dir)?;
        let stream = UnixStream::connect(of_descriptor(&dir).join(SOCKET))?;
        stream.set_read_timeout(Some(ANSWER))?;
        Ok(Self { lines: BufReader::new(stream) })
    }

    /// Returns the last counters of the run.
    pub fn ask(&mut self, question: Question) -> io::Result<Answer> {
        self.lines.get_mut().write_all(question.line())?;
        let (mut line, until) = (Vec::new(), Instant::now() + ANSWER);
        while !line.ends_with(b"\n") {
            let room = (ANSWER_BYTES - line.len() as u64).min(PIECE as u64);
            if room == 0 {
                let why = format!("the answer is longer than {} MiB", ANSWER_BYTES >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            if Instant::now() > until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if self.lines.by_ref().take(room).read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Progress, TargetError, TargetSession};

    /// A target with one session, whose counter grows with each look.
    #[derive(Debug, Default)]
    struct Counting(AtomicU64);

    impl Target for Counting {
        fn load(&self, _: &mut Progress<'_>) -> Result<(), TargetError> {
            Ok(())
        }

        fn session(&self, _: u32) -> Result<Box<dyn TargetSession>, TargetError> {
            unreachable!()
        }

        fn sample(&self, _: bool, _: &mut Vec<Reading>) {}

        fn count_sessions(&self, readings: &mut Vec<Reading>) {
            let cells = vec![Cell::from(self.0.fetch_add(1, Ordering::Relaxed))];
            readings.push(Reading { probe: SESSION_EVENT.probe, object: "1/a".to_owned(), cells });
        }

        fn shutdown(&self) -> Result<(), TargetError> {
            Ok(())
        }
    }

    fn no_target() -> Weak<dyn Target> {
        Weak::<Counting>::new()
    }

    #[test]
    fn sessions_are_counted_when_they_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let target: Arc<dyn Target> = Arc::new(Counting::default());
        let teller = Teller::start(dir.path(), Answer::default(), Arc::downgrade(&target)).unwrap();
        let mut asker = Asker::connect(dir.path()).unwrap();
        while teller.shared.count.load(Ordering::Relaxed) < 1 {
            std::thread::yield_now();
        }
        // The run has counted its sessions too, some ticks ago.
        let mut old = reading(1);
        old.probe = SESSION_EVENT.probe;
        teller.tell(&[reading(1), old]);
        for looks in [0, 1, 2] {
            let rows = asker.ask(Question::Counters).unwrap().rows;
            let of_sessions: Vec<_> = rows.iter().filter(|row| row.0 == "session_event").collect();
            assert_eq!(of_sessions.len(), 1, "{rows:?}");
            assert_eq!(of_sessions[0].2, [Cell::Value(looks)]);
        }
        assert_eq!(asker.ask(Question::Tick).unwrap().rows.len(), 1, "only the tick");
        let rows = asker.ask(Question::Counters).unwrap().rows;
        assert_eq!(rows[1].2, [Cell::Value(3)], "a tick does not count");
        drop(target);
        assert_eq!(asker.ask(Question::Counters).unwrap().rows.len(), 1, "it is over");
    }

    fn reading(value: u64) -> Reading {
        let cells = vec![Cell::from(value), Cell::Unmeasured, Cell::Text("up".to_owned())];
        Reading { probe: "instance", object: "a".to_owned(), cells }
    }

    #[test]
    fn who_asks_is_told_the_last_tick_and_that_it_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let why = Unmeasured::Off("it was not requested".to_owned());
        let unmeasured = vec![("instance".to_owned(), "hits".to_owned(), why)];
        let about = Answer { target: "null".to_owned(), pid: 7, unmeasured, rows: Vec::new() };
        let teller = Teller::start(dir.path(), about.clone(), no_target()).unwrap();
        teller.tell(&[reading(1)]);
        let mut askers: Vec<_> = (0..2).map(|_| Asker::connect(dir.path()).unwrap()).collect();
        while teller.shared.count.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        for value in [5, 6] {
            teller.tell(&[reading(value)]);
            for asker in &mut askers {
                let answer = asker.ask(Question::Counters).unwrap();
                let row = reading(value);
                let rows = vec![(row.probe.to_owned(), row.object, row.cells)];
                assert_eq!(answer, Answer { rows, ..about.clone() });
            }
        }
        drop(teller);
        assert!(askers[0].ask(Question::Counters).is_err());
        assert!(Asker::connect(dir.path()).is_err());
        assert!(!dir.path().join(SOCKET).exists());
    }

    #[test]
    fn an_answer_that_does_not_end_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let hostile = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut sent = 0;
            while stream.write_all(&vec![b'['; 64 << 10]).is_ok() {
                sent += 64 << 10;
            }
            sent
        });
        let mut asker = Asker::connect(dir.path()).unwrap();
        let error = asker.ask(Question::Counters).unwrap_err();
        assert_eq!(error.to_string(), "the answer is longer than 16 MiB");
        drop(asker);
        assert!(hostile.join().unwrap() < 2 * ANSWER_BYTES, "the rest was not taken");
    }

    #[test]
    fn a_question_that_does_not_end_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let _teller = Teller::start(dir.path(), Answer::default(), no_target()).unwrap();
        let mut stream = UnixStream::connect(dir.path().join(SOCKET)).unwrap();
        let _ = stream.write_all(&[b'x'; 1 << 10]);
        stream.set_read_timeout(Some(ANSWER)).unwrap();
        // Either end of file, or a reset because it was closed with unread bytes.
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "it is not answered");
    }

    #[test]
    fn a_directory_of_a_long_path_has_a_socket_too() {
        // Longer than the maximum length of a socket's path.
        let dir = tempfile::tempdir().unwrap().path().join("x".repeat(120));
        std::fs::create_dir_all(&dir).unwrap();
        let teller = Teller::start(&dir, Answer::default(), no_target()).unwrap();
        let mut asker = Asker::connect(&dir).unwrap();
        teller.tell(&[reading(1)]);
        asker.ask(Question::Counters).unwrap();
    }
}
