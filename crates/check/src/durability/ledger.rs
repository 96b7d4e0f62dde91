//! Knowledge of a witness: runs and their acknowledged writes, as recorded in its log. A log
//! consists of the received frames, in order; everything from the first invalid frame on is
//! dropped, like the tail of a write that was cut off.

use std::collections::VecDeque;
use std::io::{self, Read};

use crate::durability::findings::{Cuts, Description, Points, Testimony, Witnessed};

use super::layout::{HORIZON, WINDOW};
use crate::meet::{self, FRAME, Frame, Kind, Message, invalid};

/// Number of runs that are kept in memory; older ones are only in the log.
const RUNS_MAX: usize = 256;
pub const STREAMS_MAX: usize = 64;
/// Number of the newest points of a stream that are kept.
const POINTS_KEPT: usize = (HORIZON + WINDOW) as usize;

/// Bits of [`Kind::Outcome`].
pub const CONCLUSIVE: u64 = 1;
pub const LOST: u64 = 2;

#[derive(Debug, Default)]
pub struct Ledger {
    runs: VecDeque<Run>,
    /// Remains of older runs: the sums of each path.
    past: Vec<Witnessed>,
    /// Run to which points of a log belong.
    current: u64,
}

#[derive(Debug)]
pub struct Run {
    pub id: u64,
    pub description: Description,
    pub points: u64,
    streams: Vec<Progress>,
    pub outcome: Option<u64>,
}

#[derive(Debug, Default)]
struct Progress {
    last: u64,
    newest: VecDeque<(u64, u64)>,
}

impl Ledger {
    /// Reads a log to its end, or to the first invalid frame. Returns how many of its bytes are
    /// valid. Fails only if the log cannot be read.
    pub fn replay(log: &mut impl Read) -> io::Result<(Self, u64)> {
        let (mut ledger, mut good) = (Self::default(), 0);
        loop {
            match ledger.replay_one(log) {
                Ok(0) => return Ok((ledger, good)),
                Ok(bytes) => good += bytes,
                Err(error) if is_damage(&error) => return Ok((ledger, good)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Applies the next frame of a log; returns the size of the frame and its text in bytes, 0 at
    /// the end.
    fn replay_one(&mut self, log: &mut impl Read) -> io::Result<u64> {
        let Some(Message { frame, text }) = meet::read(log)? else { return Ok(0) };
        let bytes = FRAME as u64;
        match frame.kind {
            Kind::Begin => {
                self.begin(frame.a, &text)?;
                return Ok(bytes + frame.b);
            }
            Kind::Of => self.current = frame.a,
            Kind::Point => self.point(self.current, &frame)?,
            Kind::Outcome => self.outcome(&frame)?,
            _ => return Err(invalid("a frame that is in no log")),
        }
        Ok(bytes)
    }

    pub fn begin(&mut self, id: u64, text: &str) -> io::Result<()> {
        let description: Description =
            serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        if id == 0 || self.find(id).is_some() {
            return Err(invalid("this run is known already"));
        }
        if description.streams.is_empty() || description.streams.len() > STREAMS_MAX {
            return Err(invalid(format!("a run has 1 to {STREAMS_MAX} writers")));
        }
        let streams = description.streams.iter().map(|_| Progress::default()).collect();
        let run = Run { id, description, points: 0, streams, outcome: None };
        self.runs.push_back(run);
        if self.runs.len() > RUNS_MAX
            && let Some(run) = self.runs.pop_front()
        {
            add(&mut self.past, &run);
            // The number of paths is bounded like that of the runs.
            self.past.truncate(RUNS_MAX);
        }
        self.current = id;
        Ok(())
    }

    /// Records that a write of this run was acknowledged. Each stream counts without gaps.
    pub fn point(&mut self, run: u64, frame: &Frame) -> io::Result<()> {
        let run = self.find_mut(run).ok_or_else(|| invalid("a point of no run"))?;
        let stream = run.streams.get_mut(frame.stream as usize);
        let stream = stream.ok_or_else(|| invalid("a point of no writer"))?;
        if frame.a != stream.last + 1 {
            return Err(invalid("a point that does not follow the one before"));
        }
        stream.last = frame.a;
        stream.newest.push_back((frame.a, frame.b));
        if stream.newest.len() > POINTS_KEPT {
            stream.newest.pop_front();
        }
        run.points += 1;
        Ok(())
    }

    /// Records that a run was verified; the first outcome counts.
    pub fn outcome(&mut self, frame: &Frame) -> io::Result<()> {
        let run = self.find_mut(frame.a).ok_or_else(|| invalid("an outcome of no run"))?;
        run.outcome.get_or_insert(frame.b);
        Ok(())
    }

    pub fn last(&self) -> Option<&Run> {
        self.runs.back()
    }

    /// Returns what is known of a run, or of the last run if `id` is 0.
    pub fn testimony(&self, id: u64) -> Option<Testimony> {
        let run = if id == 0 { self.last() } else { self.find(id) }?;
        let points = |stream: &Progress| Points {
            last: stream.last,
            newest: stream.newest.iter().copied().collect(),
        };
        Some(Testimony {
            run: run.id,
            description: run.description.clone(),
            points: run.streams.iter().map(points).collect(),
            newest: self.newest_of(&run.description),
            cuts: self.cuts_of(&run.description),
        })
    }

    fn newest_of(&self, description: &Description) -> u64 {
        let mut newer = self.runs.iter().rev();
        newer.find(|run| is_same(&run.description, description)).map_or(0, |run| run.id)
    }

    /// Returns the outcomes of all runs of the same path on the same host.
    fn cuts_of(&self, description: &Description) -> Cuts {
        let all = self.witnessed();
        let same = all.into_iter().find(|known| is_same(&known.description, description));
        same.map(|known| known.cuts).unwrap_or_default()
    }

    /// Returns all runs, one entry per path.
    pub fn witnessed(&self) -> Vec<Witnessed> {
        let mut all = self.past.clone();
        self.runs.iter().for_each(|run| add(&mut all, run));
        all
    }

    pub fn find(&self, id: u64) -> Option<&Run> {
        self.runs.iter().find(|run| run.id == id)
    }

    fn find_mut(&mut self, id: u64) -> Option<&mut Run> {
        self.runs.iter_mut().rev().find(|run| run.id == id)
    }
}

/// Adds a run to the sums of its path.
fn add(all: &mut Vec<Witnessed>, run: &Run) {
    let mut cuts = Cuts::default();
    if let Some(outcome) = run.outcome {
        cuts.conclusive = u64::from(outcome & CONCLUSIVE != 0);
        cuts.with_loss = u64::from(outcome & CONCLUSIVE != 0 && outcome & LOST != 0);
        cuts.inconclusive = u64::from(outcome & CONCLUSIVE == 0);
    }
    match all.iter_mut().find(|known| is_same(&known.description, &run.description)) {
        Some(known) => {
            known.acknowledged += run.points;
            known.cuts.conclusive += cuts.conclusive;
            known.cuts.with_loss += cuts.with_loss;
            known.cuts.inconclusive += cuts.inconclusive;
        }
        None => all.push(Witnessed {
            description: run.description.clone(),
            acknowledged: run.points,
            cuts,
        }),
    }
}

/// Returns whether two runs wrote to the same path on the same host.
fn is_same(a: &Description, b: &Description) -> bool {
    (&a.host, &a.path) == (&b.host, &b.path)
}

fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use crate::durability::findings::{Method, Pattern, Stream};
    use proptest::prelude::*;

    use super::*;

    fn text(path: &str) -> String {
        let stream = Stream { method: Method::Fsync, pattern: Pattern::Append };
        let (host, path) = ("db1".to_owned(), path.to_owned());
        let streams = vec![stream; 2];
        let description = Description { host, path, device_bytes: None, streams };
        serde_json::to_string(&description).unwrap()
    }

    fn point(stream: u32, a: u64) -> Frame {
        Frame { kind: Kind::Point, stream, a, b: a * 3 }
    }

    /// Returns a log of two runs whose points are interleaved.
    fn log() -> Vec<u8> {
        let mut log = meet::with_text(Kind::Begin, 5, &text("/a"));
        log.extend(meet::with_text(Kind::Begin, 6, &text("/b")));
        for sequence in 1..=200 {
            for run in [5, 6] {
                log.extend(Frame::new(Kind::Of, run, 0).bytes());
                log.extend(point((run - 5) as u32, sequence).bytes());
            }
        }
        log.extend(Frame::new(Kind::Outcome, 5, CONCLUSIVE | LOST).bytes());
        log
    }

    #[test]
    fn a_log_is_read_back() {
        let log = log();
        let (ledger, good) = Ledger::replay(&mut &log[..]).unwrap();
        assert_eq!(good, log.len() as u64);
        let testimony = ledger.testimony(0).unwrap();
        assert_eq!((testimony.run, testimony.cuts), (6, Cuts::default()));
        assert_eq!(testimony.points.iter().map(|it| it.last).collect::<Vec<_>>(), [0, 200]);
        let newest = &testimony.points[1].newest;
        assert_eq!((newest.len(), newest.last()), (POINTS_KEPT, Some(&(200, 600))));
        let other = ledger.testimony(5).unwrap();
        assert_eq!(other.cuts, Cuts { conclusive: 1, with_loss: 1, inconclusive: 0 });
        assert!(ledger.testimony(7).is_none());
        let text = serde_json::to_string(&other).unwrap();
        let sent = meet::with_text(Kind::Testimony, 5, &text);
        assert_eq!(meet::read(&mut &sent[..]).unwrap().unwrap().text, text);
    }

    #[test]
    fn cuts_of_runs_that_are_no_longer_in_memory_count() {
        let mut ledger = Ledger::default();
        let all = RUNS_MAX as u64 + 50;
        for id in 1..=all {
            ledger.begin(id, &text("/a")).unwrap();
            ledger.point(id, &point(0, 1)).unwrap();
            let bits = if id == 1 { CONCLUSIVE | LOST } else { CONCLUSIVE };
            ledger.outcome(&Frame::new(Kind::Outcome, id, bits)).unwrap();
        }
        let cuts = Cuts { conclusive: all, with_loss: 1, inconclusive: 0 };
        assert_eq!(ledger.testimony(0).unwrap().cuts, cuts);
        assert_eq!(ledger.witnessed()[0].acknowledged, all);
        assert_eq!(ledger.testimony(all - 9).unwrap().newest, all);
        for id in all..3 * all {
            let _ = ledger.begin(id, &text(&format!("/{id}")));
        }
        assert_eq!(ledger.past.len(), RUNS_MAX);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut ledger = Ledger::default();
        ledger.begin(5, &text("/a")).unwrap();
        assert!(ledger.begin(5, &text("/a")).is_err() && ledger.begin(0, &text("/a")).is_err());
        assert!(ledger.begin(6, "{}").is_err());
        assert!(ledger.point(5, &point(2, 1)).is_err(), "no such writer");
        assert!(ledger.point(6, &point(0, 1)).is_err(), "no such run");
        assert!(ledger.point(5, &point(0, 2)).is_err(), "a gap");
        ledger.point(5, &point(0, 1)).unwrap();
        assert!(ledger.point(5, &point(0, 1)).is_err(), "again");
        assert!(ledger.outcome(&Frame::new(Kind::Outcome, 9, 0)).is_err());
        for id in 10..1_000 {
            ledger.begin(id, &text("/a")).unwrap();
        }
        assert_eq!(ledger.runs.len(), RUNS_MAX);
    }

    proptest! {
        #[test]
        fn a_log_may_end_or_be_damaged_anywhere(at in 0_usize..26_000, by in 0_u8..=255) {
            let mut log = log();
            let at = at % log.len();
            if by == 0 {
                log.truncate(at);
            } else {
                log[at] ^= by;
            }
            let (ledger, good) = Ledger::replay(&mut &log[..]).unwrap();
            prop_assert!(good <= log.len() as u64);
            // The valid part is read back as it was.
            let (again, all) = Ledger::replay(&mut &log[..good as usize]).unwrap();
            prop_assert_eq!(all, good);
            prop_assert_eq!(again.testimony(0), ledger.testimony(0));
        }
    }
}
