//! Writers that continue until the power is cut, and report acknowledged writes to the witness.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::durability::findings::{
    Class, Description, DurabilityFindings, Method, Pattern, Stage, Stream, StreamFindings,
};
use blockstone_base::identity::PathKind;
use blockstone_base::units::Bytes;
use blockstone_measure::Observer;
use blockstone_measure::claim::{self, ClaimError, Device};
use blockstone_sys::file::{BlockFile, FileError};
use blockstone_sys::thread::spawn;

use super::chain::Chain;
use super::client::{Client, Points};
use super::examine::of_chain;
use super::layout;
use super::medium::{Medium, StreamWriter};
use crate::CheckError;

/// Plan of a run: what is written, where, and for how long at most.
#[derive(Clone, Debug)]
pub struct Writing<'a> {
    pub path: &'a Path,
    /// Whether it is a device that may be overwritten.
    pub destroy: bool,
    /// Address of the witness.
    pub witness: &'a str,
    pub methods: &'a [Method],
    pub patterns: &'a [Pattern],
    pub duration: Duration,
    /// ID of the run.
    pub id: u64,
}

/// Interval at which writers check whether to end.
const LOOK: Duration = Duration::from_millis(100);
/// Pause between the writes of a control: it waits for nothing, and would occupy the processors and
/// fill the log of the witness.
const CONTROL_PAUSE: Duration = Duration::from_millis(1);
/// Period in which streams that flush write in the first half only, if there are controls. A flush
/// writes out what the others left in the cache of the device: without a rest, a cut would find
/// nothing there that it could lose, and prove nothing.
const PERIOD: Duration = Duration::from_secs(2);
/// Interval at which a resting stream checks whether the rest is over.
const REST_LOOK: Duration = Duration::from_millis(10);
/// Time that a writer may wait for its device after the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time that the witness may take to confirm the last points.
const LAST_POINTS: Duration = Duration::from_secs(10);

/// Writes until the time is over, a signal ends it, the witness is gone, or every write fails: a
/// power cut ends all of these. The written data remains for a verification, unless a signal ended
/// it. Fails if the path cannot be used or the witness cannot be reached.
pub fn write(
    writing: &Writing<'_>,
    observer: &mut dyn Observer,
) -> Result<DurabilityFindings, CheckError> {
    let chain = Chain::of(Path::new("/"), writing.path)?;
    let patterns: &[Pattern] =
        if chain.is_device() { &[Pattern::Overwrite] } else { writing.patterns };
    let streams = layout::streams(writing.methods, patterns);
    // Protected from mounts and the like for as long as it is written to.
    let device = hold(writing, &chain, streams.len())?;
    let mut client = Client::connect(writing.witness)?;
    // Makes sure, before anything is written, that the witness answers.
    client.ask(0)?;
    observer.phase("prepare");
    let medium = Medium::begin(Path::new(&chain.target.path), device, writing.id)?;
    match run(writing, &medium, &chain, (client, streams), observer) {
        Ok(findings) => {
            let mut findings = DurabilityFindings {
                signal: observer.interrupted().map(str::to_owned),
                ..findings
            };
            if findings.signal.is_some() {
                remove(&medium, &mut findings.notes);
            } else {
                findings.notes.push(format!(
                    "The blocks stay where they are for the verification after the cut: \
                     blockstone check durability --verify --witness {} {}",
                    writing.witness,
                    writing.path.display()
                ));
            }
            Ok(findings)
        }
        Err(error) => {
            let _ = medium.remove();
            Err(error)
        }
    }
}

fn remove(medium: &Medium, notes: &mut Vec<String>) {
    if let Err(error) = medium.remove() {
        notes.push(format!("What was written could not be removed: {error}."));
    }
}

/// Refuses paths that cannot be written to, and claims a device.
fn hold(
    writing: &Writing<'_>,
    chain: &Chain,
    streams: usize,
) -> Result<Option<Arc<BlockFile>>, CheckError> {
    let path = Path::new(&chain.target.path);
    match chain.target.kind {
        PathKind::File => Err(CheckError::NotWritten { path: writing.path.to_owned() }),
        PathKind::Directory => {
            claim::directory(path)?;
            Ok(None)
        }
        PathKind::BlockDevice => {
            let device = Device { path, destroy: writing.destroy, instead: None };
            device.claim(|path| {
                let medium = Medium::find(path, true);
                Ok(medium.and_then(|medium| medium.run()).is_ok_and(|run| run.is_some()))
            })?;
            let file = BlockFile::open_device(path, false)?;
            let (size, least) = (file.size_bytes()?, layout::device_bytes(streams));
            if size < least {
                let hint = "use fewer --methods, or a larger device".to_owned();
                let (least, size) = (Bytes(least), Bytes(size));
                return Err(
                    ClaimError::TooSmall { path: path.to_owned(), least, size, hint }.into()
                );
            }
            Ok(Some(Arc::new(file)))
        }
    }
}

/// State that all writers share.
struct Shared {
    points: Points,
    ended: AtomicBool,
    working: AtomicUsize,
    started: Instant,
    has_controls: bool,
    /// Streams that ended with an error.
    failures: Mutex<Vec<(Stream, FileError)>>,
}

fn run(
    writing: &Writing<'_>,
    medium: &Medium,
    chain: &Chain,
    (client, streams): (Client, Vec<Stream>),
    observer: &mut dyn Observer,
) -> Result<DurabilityFindings, CheckError> {
    let (mut writers, mut refused) = (Vec::new(), Vec::new());
    for stream in streams {
        if observer.interrupted().is_some() {
            break;
        }
        let number = writers.len() as u16;
        match StreamWriter::prepare(medium, writing.id, (number, stream)) {
            Ok(writer) => writers.push((stream, writer)),
            // Direct I/O is not supported here: the number goes to the next stream.
            Err(CheckError::File(FileError::Open { source, direct: true, .. })) => {
                refused.push(format!("{} was not tried: {source}.", stream.case()));
            }
            Err(error) => return Err(error),
        }
    }
    medium.settle()?;
    let description = Description {
        host: chain.hostname.clone(),
        path: chain.target.path.clone(),
        device_bytes: chain.is_device().then_some(chain.target.free_bytes),
        streams: writers.iter().map(|(stream, _)| *stream).collect(),
    };
    let link = client.begin(writing.id, &description)?;
    observer.phase("write until the power is cut");
    let shared = Arc::new(Shared {
        points: link.handle(),
        ended: AtomicBool::new(false),
        working: AtomicUsize::new(writers.len()),
        started: Instant::now(),
        has_controls: writers.iter().any(|(stream, _)| stream.method.is_control()),
        failures: Mutex::default(),
    });
    start(&shared, writers)?;
    let until = Instant::now() + writing.duration;
    let is_working = || shared.working.load(Ordering::Relaxed) > 0;
    while is_working()
        && Instant::now() < until
        && observer.interrupted().is_none()
        && link.failed().is_none()
    {
        thread::sleep(LOOK);
    }
    shared.ended.store(true, Ordering::Relaxed);
    let until = Instant::now() + PATIENCE;
    while is_working() && Instant::now() < until {
        thread::sleep(LOOK);
    }
    let mut findings = of_chain(Stage::Written, writing.path, chain.clone());
    if is_working() {
        let writers = shared.working.load(Ordering::Relaxed);
        findings.notes.push(format!("{writers} writers still wait for the device."));
    }
    let failed = link.failed();
    let handle = link.handle();
    link.finish(LAST_POINTS);
    let confirmed = handle.confirmed();
    findings.notes.extend(refused);
    findings.notes.extend(failed.map(|why| format!("The witness went away: {why}.")));
    findings.notes.extend(failures(&shared));
    let pairs = description.streams.iter().zip(confirmed);
    findings.streams = pairs.map(|(&stream, count)| not_verified(stream, count)).collect();
    Ok(findings)
}

/// Fails if not enough threads can be started, in which case those already started end.
fn start(shared: &Arc<Shared>, writers: Vec<(Stream, StreamWriter)>) -> Result<(), CheckError> {
    for (number, (stream, writer)) in (0..).zip(writers) {
        let theirs = Arc::clone(shared);
        // Not scoped: a writer whose device never answers must not keep this from ending.
        let started = spawn(&format!("writer-{number}"), move || {
            work(&theirs, (number, stream), writer);
            theirs.working.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(source) = started {
            shared.ended.store(true, Ordering::Relaxed);
            return Err(CheckError::Thread { source });
        }
    }
    Ok(())
}

fn not_verified(stream: Stream, acknowledged: u64) -> StreamFindings {
    StreamFindings {
        stream,
        class: Class::Unknown,
        evidence: format!("{acknowledged} acknowledged, and not verified after a cut"),
        acknowledged,
        checked: 0,
        lost: 0,
        torn: 0,
        misplaced: 0,
        reordered: 0,
        torn_in_flight: 0,
    }
}

fn failures(shared: &Shared) -> Option<String> {
    let failures = shared.failures.lock().unwrap_or_else(PoisonError::into_inner);
    let (stream, error) = failures.first()?;
    let what = error.to_string().lines().next().unwrap_or_default().to_owned();
    Some(format!("{} writers ended with an error: {}: {what}.", failures.len(), stream.case()))
}

/// Returns whether streams that flush are resting at this time.
fn rests(elapsed: Duration) -> bool {
    elapsed.as_nanos() % PERIOD.as_nanos() >= PERIOD.as_nanos() / 2
}

fn work(shared: &Shared, (number, stream): (u16, Stream), mut writer: StreamWriter) {
    let go_on = || !shared.ended.load(Ordering::Relaxed);
    for sequence in 1.. {
        if !shared.points.may_start(number, sequence, &go_on) {
            return;
        }
        if stream.method.is_control() {
            thread::sleep(CONTROL_PAUSE);
        } else if shared.has_controls {
            while rests(shared.started.elapsed()) && go_on() {
                thread::sleep(REST_LOOK);
            }
        }
        match writer.write(sequence) {
            Ok(hash) => shared.points.acknowledged(number, sequence, hash),
            Err(error) => {
                let mut failures = shared.failures.lock().unwrap_or_else(PoisonError::into_inner);
                failures.push((stream, error));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_flush_rest_in_every_other_second() {
        let at = |ms| rests(Duration::from_millis(ms));
        assert_eq!(
            [0, 999, 1_000, 1_999, 2_000, 3_500].map(at),
            [false, false, true, true, false, true]
        );
    }
}
