//! The witness: it listens, keeps the acknowledged writes of writers in a log that it flushes
//! before it confirms anything, and reports what it knows after a cut.
//!
//! Anyone who connects may be hostile: besides the limits of [`meet`], runs and the log are
//! bounded, and a connection that stays silent is dropped. If too many are connected, one that
//! writes nothing gives way.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::durability::findings::{DurabilityFindings, Stage};
use blockstone_measure::Observer;
use blockstone_sys::held::{HeldDir, OFlags};

use super::client::hello;
use super::cutter::{Cutter, Cycles};
use super::ledger::Ledger;
use crate::CheckError;
use crate::meet::{
    self, AGAIN, Door, FRAME, Frame, Kind, Link, Message, SIDES_MAX, SILENCE, invalid,
};

/// First bytes of a log.
const LOG_START: &[u8; FRAME] = b"blockstone witness log 1\n\0\0\0\0\0\0\0";
/// Maximum length of a log: 128 million points.
const LOG_MAX: u64 = 4 << 30;
/// Points that are processed together.
const BATCH: usize = 4096;
/// Time that connections may take to end after the last cycle: the one that verified asks for the
/// cuts so far.
const FAREWELL: Duration = Duration::from_secs(10);

/// Configuration of a witness.
#[derive(Clone, Debug)]
pub struct Serving<'a> {
    /// Address at which it listens.
    pub address: &'a str,
    pub log: &'a Path,
    pub cycles: Option<Cycles>,
    pub seed: u64,
}

/// Serves until it is interrupted, or all cycles are done.
pub fn serve(
    serving: &Serving<'_>,
    observer: &mut dyn Observer,
) -> Result<DurabilityFindings, CheckError> {
    let mut door = Door::open(serving.address, hello(0))?;
    let address = door.address().to_owned();
    let log = |source| CheckError::Log { path: serving.log.to_owned(), source };
    let book = Book::open(serving.log).map_err(log)?;
    observer.note(&format!("witness: listens at {address}, keeps {}", serving.log.display()));
    let shared = Shared { book: Mutex::new(book), seats: Mutex::default() };
    let cutter = |cycles| Cutter::new(cycles, serving.seed, &shared.book().ledger);
    let mut cutter = serving.cycles.as_ref().map(cutter);
    let mut notes = Vec::new();
    thread::scope(|scope| {
        for number in 0_u64.. {
            if observer.interrupted().is_some() {
                break;
            }
            if let Some(cutter) = &mut cutter
                && let ControlFlow::Break(why) = cutter.step(&shared.book().ledger, observer)
            {
                notes.extend(why);
                break;
            }
            let Some((mut link, _)) = door.admit() else {
                thread::sleep(AGAIN);
                continue;
            };
            if let Err(why) = shared.seat(number, &link) {
                link.refuse(&why.to_string());
                continue;
            }
            let shared = &shared;
            let started = thread::Builder::new().spawn_scoped(scope, move || {
                let _ = attend(shared, number, &mut link);
                shared.leave(number);
            });
            if started.is_err() {
                shared.leave(number);
            }
        }
        drop(door);
        let until = Instant::now() + FAREWELL;
        while !shared.seats().is_empty()
            && Instant::now() < until
            && observer.interrupted().is_none()
        {
            thread::sleep(AGAIN);
        }
        shared.dismiss();
    });
    let ledger = &shared.book().ledger;
    let cuts = ledger.last().and_then(|run| ledger.testimony(run.id)).map(|it| it.cuts);
    Ok(DurabilityFindings {
        stage: Stage::Witnessed,
        subject: address,
        file_system: String::new(),
        mount_options: String::new(),
        barrier_off: None,
        hypervisor: None,
        layers: Vec::new(),
        flushing: None,
        streams: Vec::new(),
        cuts: cuts.unwrap_or_default(),
        witnessed: ledger.witnessed(),
        missed_cuts: cutter.map_or(0, |cutter| cutter.missed()),
        notes,
        signal: observer.interrupted().map(str::to_owned),
    })
}

#[derive(Debug)]
struct Shared {
    book: Mutex<Book>,
    seats: Mutex<Vec<Seat>>,
}

/// Handle of a connection, used to end it.
#[derive(Debug)]
struct Seat {
    number: u64,
    writes: bool,
    link: Link,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection. If there are too many, the oldest that writes nothing gives way.
    fn seat(&self, number: u64, link: &Link) -> io::Result<()> {
        let seat = Seat { number, writes: false, link: link.try_clone()? };
        let mut seats = self.seats();
        if seats.len() >= SIDES_MAX as usize {
            let idle = seats.iter().position(|seat| !seat.writes);
            let idle = idle.ok_or_else(|| io::Error::other("too many write there"))?;
            seats.remove(idle).link.close();
        }
        seats.push(seat);
        Ok(())
    }

    fn leave(&self, number: u64) {
        self.seats().retain(|seat| seat.number != number);
    }

    fn dismiss(&self) {
        self.seats().iter().for_each(|seat| seat.link.close());
    }
}

/// Serves one connection to its end.
fn attend(shared: &Shared, number: u64, link: &mut Link) -> io::Result<()> {
    link.send(&hello(0).bytes())?;
    let ended = converse(shared, number, link);
    if let Err(error) = &ended
        && error.kind() == io::ErrorKind::InvalidData
    {
        link.refuse(&error.to_string());
    }
    ended
}

fn converse(shared: &Shared, number: u64, link: &mut Link) -> io::Result<()> {
    let (mut run, mut points) = (0, 0);
    while let Some(Message { frame, text }) = link.receive(SILENCE)? {
        match frame.kind {
            Kind::Begin => {
                shared.book().begin(frame.a, &text)?;
                run = frame.a;
                let mut seats = shared.seats();
                seats.iter_mut().filter(|it| it.number == number).for_each(|it| it.writes = true);
            }
            Kind::Point => {
                let mut frames = vec![frame];
                while frames.len() < BATCH
                    && let Some(next) = link.ready(Kind::Point)
                {
                    frames.push(next);
                }
                shared.book().points(run, &frames)?;
                points += frames.len() as u64;
            }
            Kind::Idle => {}
            Kind::Ask => {
                let testimony = shared.book().ledger.testimony(frame.a);
                if let Some(testimony) = testimony {
                    let text = serde_json::to_string(&testimony)?;
                    link.send(&meet::with_text(Kind::Testimony, testimony.run, &text))?;
                    continue;
                }
            }
            Kind::Outcome => shared.book().outcome(&frame)?,
            _ => return Err(invalid("a frame that only a witness sends")),
        }
        link.send(&Frame::new(Kind::Durable, points, 0).bytes())?;
    }
    Ok(())
}

/// Known runs, and the log that stores them.
#[derive(Debug)]
struct Book {
    ledger: Ledger,
    log: File,
    bytes: u64,
    /// Run of the last points in the log.
    current: u64,
}

impl Book {
    fn open(path: &Path) -> io::Result<Self> {
        let (dir, name) = HeldDir::hold_parent(path)?;
        let mut log = open_log(&dir, &name)?;
        log.try_lock().map_err(|_| io::Error::other("another witness has it"))?;
        let mut start = [0; FRAME];
        let ledger = match log.metadata()?.len() {
            0 => {
                log.write_all(LOG_START)?;
                log.sync_all()?;
                dir.sync(Path::new(""))?;
                Ledger::default()
            }
            _ if log.read_exact(&mut start).is_ok() && start == *LOG_START => {
                let (ledger, good) = Ledger::replay(&mut BufReader::new(&log))?;
                log.set_len(FRAME as u64 + good)?;
                ledger
            }
            _ => return Err(invalid("it is not a log of a witness")),
        };
        let bytes = log.seek(SeekFrom::End(0))?;
        Ok(Self { ledger, log, bytes, current: 0 })
    }

    fn begin(&mut self, run: u64, text: &str) -> io::Result<()> {
        self.ledger.begin(run, text)?;
        self.current = run;
        self.keep(&meet::with_text(Kind::Begin, run, text))
    }

    fn points(&mut self, run: u64, frames: &[Frame]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity((frames.len() + 1) * FRAME);
        if self.current != run {
            bytes.extend(Frame::new(Kind::Of, run, 0).bytes());
        }
        for frame in frames {
            self.ledger.point(run, frame)?;
            bytes.extend(frame.bytes());
        }
        self.current = run;
        self.keep(&bytes)
    }

    fn outcome(&mut self, frame: &Frame) -> io::Result<()> {
        self.ledger.outcome(frame)?;
        self.keep(&frame.bytes())
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes + bytes.len() as u64 > LOG_MAX {
            return Err(invalid("the log is full; start the witness with another --log"));
        }
        self.log.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        self.log.sync_data()
    }
}

/// Opens a new log, or an existing one of this name, which must belong to this user and have no
/// other name.
fn open_log(dir: &HeldDir, name: &Path) -> io::Result<File> {
    match dir.create_new(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let opened = dir.open_own(name.as_os_str(), dir.owner_of_new()?, OFlags::RDWR);
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            invalid("it is not a regular file, belongs to another user, or has another name too")
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use crate::durability::findings::{Description, Method, Pattern, Stream};

    use super::super::client::Client;
    use super::super::ledger::CONCLUSIVE;
    use super::*;

    /// A witness that serves until it is dropped.
    struct Served {
        address: String,
        stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
        thread: Option<thread::JoinHandle<DurabilityFindings>>,
    }

    struct Stopping {
        stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
        notes: std::sync::mpsc::Sender<String>,
    }

    impl Observer for Stopping {
        fn note(&mut self, text: &str) {
            let _ = self.notes.send(text.to_owned());
        }

        fn interrupted(&self) -> Option<&'static str> {
            self.stop.load(std::sync::atomic::Ordering::Relaxed).then_some("INT")
        }
    }

    impl Served {
        fn start(log: &Path) -> Self {
            Self::with(log, None)
        }

        fn with(log: &Path, cycles: Option<Cycles>) -> Self {
            let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
            let (notes, said) = std::sync::mpsc::channel();
            let mut observer = Stopping { stop: std::sync::Arc::clone(&stop), notes };
            let log = log.to_owned();
            let thread = thread::spawn(move || {
                let serving = Serving { address: "127.0.0.1:0", log: &log, cycles, seed: 1 };
                serve(&serving, &mut observer).unwrap()
            });
            let note = said.recv().unwrap();
            let address = note.split(' ').nth(3).unwrap().trim_end_matches(',').to_owned();
            Self { address, stop, thread: Some(thread) }
        }

        fn end(mut self) -> DurabilityFindings {
            self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            self.thread.take().unwrap().join().unwrap()
        }
    }

    fn description() -> Description {
        let stream = Stream { method: Method::Fsync, pattern: Pattern::Append };
        let (host, path) = ("db1".to_owned(), "/data".to_owned());
        Description { host, path, device_bytes: None, streams: vec![stream; 2] }
    }

    #[test]
    fn what_was_confirmed_is_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let served = Served::start(&log);
        let mut client = Client::connect(&served.address).unwrap();
        assert!(client.ask(0).unwrap().is_none());
        let link = client.begin(9, &description()).unwrap();
        let points = link.handle();
        for sequence in 1..=100 {
            for stream in 0..2 {
                assert!(points.may_start(stream, sequence, &|| true));
                points.acknowledged(stream, sequence, sequence * 7);
            }
        }
        link.finish(Duration::from_secs(20));
        let findings = served.end();
        assert_eq!(findings.witnessed[0].acknowledged, 200);
        // The tail of a write that was cut off.
        std::fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"cut off").unwrap();

        let served = Served::start(&log);
        let mut client = Client::connect(&served.address).unwrap();
        let known = client.ask(9).unwrap().unwrap();
        assert_eq!((known.points[0].last, known.points[1].last), (100, 100));
        assert_eq!(known.points[1].newest.last(), Some(&(100, 700)));
        client.outcome(9, CONCLUSIVE).unwrap();
        assert_eq!(client.ask(0).unwrap().unwrap().cuts.conclusive, 1);
        let again = Client::connect(&served.address).unwrap().begin(9, &description());
        assert!(again.unwrap_err().to_string().contains("known already"));
        served.end();
    }

    #[test]
    fn who_verified_the_last_cut_still_gets_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let before = (Duration::ZERO, Duration::ZERO);
        let cycles = |cut: &str| {
            let cut = ["sh", "-c", cut].map(std::ffi::OsString::from).to_vec();
            Some(Cycles { count: 1, cut, before })
        };
        let served = Served::with(&dir.path().join("log"), cycles("sleep 0.2"));
        let link = Client::connect(&served.address).unwrap().begin(9, &description()).unwrap();
        link.handle().acknowledged(0, 1, 7);
        link.finish(Duration::from_secs(20));
        let mut client = Client::connect(&served.address).unwrap();
        thread::sleep(Duration::from_secs(1));
        client.outcome(9, CONCLUSIVE).unwrap();
        thread::sleep(Duration::from_millis(300));
        assert_eq!(client.ask(9).unwrap().unwrap().cuts.conclusive, 1);
        drop(client);
        let findings = served.thread.unwrap().join().unwrap();
        assert_eq!((findings.cuts.conclusive, findings.missed_cuts), (1, 0), "{findings:?}");

        let served = Served::with(&dir.path().join("other"), cycles("exit 7"));
        let link = Client::connect(&served.address).unwrap().begin(9, &description()).unwrap();
        link.handle().acknowledged(0, 1, 7);
        link.finish(Duration::from_secs(20));
        let findings = served.thread.unwrap().join().unwrap();
        assert_eq!(findings.missed_cuts, 1);
        assert!(findings.notes[0].contains("exit status: 7"), "{findings:?}");
    }

    #[test]
    fn whoever_makes_no_sense_is_dropped_and_no_other_file_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let served = Served::start(&dir.path().join("log"));
        let joined = || meet::connect(&served.address, &hello(1), Duration::ZERO, &|| false);
        for bytes in [&[7; 64][..], &Frame::new(Kind::Point, 1, 1).bytes()] {
            let mut link = joined().unwrap();
            link.send(bytes).unwrap();
            let refusal = link.receive(SILENCE).unwrap_err().to_string();
            assert!(refusal.contains("it refuses: "), "{refusal}");
        }
        // A connection that writes stays, however many others come.
        let writer = Client::connect(&served.address).unwrap().begin(9, &description()).unwrap();
        let silent: Vec<_> = (0..80).map(|_| joined().unwrap()).collect();
        writer.handle().acknowledged(0, 1, 7);
        writer.finish(Duration::from_secs(20));
        assert_eq!(
            Client::connect(&served.address).unwrap().ask(9).unwrap().unwrap().points[0].last,
            1
        );
        drop(silent);
        served.end();
        let other = dir.path().join("other");
        std::fs::write(&other, "of the user, and longer than a frame of a log").unwrap();
        assert!(Book::open(&other).unwrap_err().to_string().contains("not a log of a witness"));
        assert_eq!(std::fs::read(&other).unwrap().len(), 45);
        let held = Book::open(&dir.path().join("log")).unwrap();
        assert!(Book::open(&dir.path().join("log")).is_err(), "it is in use");
        drop(held);
    }
}
