//! Flush time as a function of what was written before the flush. A volatile cache has to write
//! that out, which takes longer the more there is; a flush whose time does not depend on it found
//! nothing to do, because the cache is protected, or did nothing.
//!
//! Writes bypass the page cache, so that the time is that of the device alone. The order of the
//! sizes changes from round to round, so that drift is not mistaken for a slope.

use std::sync::Arc;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::load::FLUSHES;
use blockstone_base::rng::Rng;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_engine::Content;
use blockstone_measure::{Live, Observer, Session};
use blockstone_record::manifest::{Phase, Stop};
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{BlockFile, FileError};

use crate::error::CalibrateError;
use crate::hold::first_sequence;
use crate::plan::{FLUSH_ROUNDS as ROUNDS, FLUSH_SIZES as SIZES, LARGE, Step};

/// Alternates writes and flushes, and records each flush as a row of [`FLUSHES`]. Returns the
/// signal that interrupted it, if any.
pub fn measure(
    session: &mut Session,
    observer: &mut dyn Observer,
    step: &Step,
    (file, content): (&BlockFile, &Arc<dyn Content>),
    left: Nanos,
) -> Result<Option<&'static str>, CalibrateError> {
    observer.phase(&step.label);
    let phase = session.phase();
    let start_ns = session.now_ns();
    let block = Slot::new(LARGE.get() as usize).map_err(blockstone_engine::EngineError::from)?;
    let mut writer = Writer {
        file,
        content: content.as_ref(),
        span_bytes: step.load.span_bytes,
        at_bytes: 0,
        sequence: first_sequence(phase),
        block,
        ends_ns: start_ns + step.window.1.get(),
    };
    // Otherwise the first flush would include what earlier phases left.
    file.fdatasync().map_err(|errno| error(file, "flush", errno))?;
    let (window_start_ns, ()) = session.tick(|_| ())?;
    let mut end_ns = window_start_ns;
    let mut ended = Stop::WorkDone;
    'rounds: for round in 0..ROUNDS {
        for size in shuffled(&mut Rng::new(step.load.seed, round)) {
            ended = match observer.interrupted() {
                Some(_) => Stop::Interrupted,
                None if session.now_ns() >= writer.ends_ns => Stop::TimeLimit,
                None => Stop::WorkDone,
            };
            if ended != Stop::WorkDone {
                break 'rounds;
            }
            let flush = writer.write_and_flush(session, size.get())?;
            (end_ns, ()) = session.tick(|readings| readings.extend(flush))?;
            observer.tick(&Live {
                label: &step.label,
                rates: &[],
                elapsed: session.elapsed(),
                left: Nanos(left.get().saturating_sub(end_ns - start_ns)),
                is_estimate: false,
            });
        }
    }
    session.recorder().manifest().phases.push(Phase {
        label: step.label.clone(),
        group: step.group,
        repeat: step.repeat,
        load: None,
        background: None,
        start_ns,
        window_start_ns,
        window_end_ns: end_ns,
        end_ns,
        stop: ended,
        settled: None,
        processors: None,
        first_error: None,
        note: None,
    });
    session.end_phase()?;
    Ok(observer.interrupted())
}

/// Returns the sizes in the order of one round.
fn shuffled(rng: &mut Rng) -> [Bytes; SIZES.len()] {
    let mut sizes = SIZES;
    for at in (1..sizes.len()).rev() {
        sizes.swap(at, rng.below(at as u64 + 1) as usize);
    }
    sizes
}

struct Writer<'a> {
    file: &'a BlockFile,
    content: &'a dyn Content,
    /// Size of the written part; writes start over at its end.
    span_bytes: u64,
    at_bytes: u64,
    sequence: u64,
    block: Slot,
    /// Time after which nothing more is written.
    ends_ns: u64,
}

impl Writer<'_> {
    /// Returns `None` if the time ended during the writes.
    fn write_and_flush(
        &mut self,
        session: &Session,
        unflushed_bytes: u64,
    ) -> Result<Option<Reading>, CalibrateError> {
        let mut left = unflushed_bytes;
        while left > 0 {
            if session.now_ns() >= self.ends_ns {
                return Ok(None);
            }
            let bytes = left.min(self.block.len() as u64);
            if self.at_bytes + bytes > self.span_bytes {
                self.at_bytes = 0;
            }
            self.write(bytes as usize)?;
            left -= bytes;
        }
        let before_ns = session.now_ns();
        self.file.fdatasync().map_err(|errno| error(self.file, "flush", errno))?;
        let flush_ns = session.now_ns() - before_ns;
        let cells = [unflushed_bytes, flush_ns].map(Cell::from).into();
        Ok(Some(Reading { probe: FLUSHES.probe, object: String::new(), cells }))
    }

    /// Writes the next `bytes`.
    fn write(&mut self, bytes: usize) -> Result<(), CalibrateError> {
        let data = &mut self.block[..bytes];
        self.content.prepare(self.at_bytes, self.sequence, data);
        self.sequence += 1;
        let mut done = 0;
        while done < bytes {
            let written = self.file.write_at(self.at_bytes + done as u64, &data[done..]);
            done += written.map_err(|errno| error(self.file, "write", errno))?;
        }
        self.at_bytes += bytes as u64;
        Ok(())
    }
}

pub fn error(file: &BlockFile, operation: &'static str, errno: i32) -> FileError {
    file.error(operation, std::io::Error::from_raw_os_error(errno))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blockstone_base::load::{LoadSpec, Op};
    use blockstone_engine::Stamped;
    use blockstone_measure::SessionSpec;
    use blockstone_record::Recording;
    use blockstone_record::manifest::{End, Group};
    use blockstone_record::testing;

    use super::*;

    struct Silent;
    impl Observer for Silent {}

    #[test]
    fn each_flush_is_recorded_with_what_was_written_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut manifest = testing::manifest();
        manifest.phases.clear();
        let mut session = Session::start(SessionSpec {
            dir: &dir.path().join("run"),
            manifest,
            devices: Vec::new(),
            series: &[&FLUSHES],
            through_page_cache: false,
            tick: Nanos::millis(20),
        })
        .unwrap();
        let file = BlockFile::create_new(&dir.path().join("log"), false).unwrap();
        let span = Bytes::mib(16);
        file.set_size(span.get()).unwrap();
        let load = LoadSpec { span_bytes: span.get(), ..testing::load(Op::Write) };
        let window = Nanos::millis(1_200);
        let step = Step::new("flush-slope".to_owned(), Group::FlushSlope, load, window);
        let stamped = Stamped::new(7, 8192, 0);
        let content: Arc<dyn Content> = Arc::new(stamped);
        let left = Nanos(0);
        measure(&mut session, &mut Silent, &step, (&file, &content), left).unwrap();
        session.close(End::Complete).unwrap();

        let recording = Recording::open(&dir.path().join("run")).unwrap();
        let phase = &recording.manifest.phases[0];
        assert_eq!((phase.group, &phase.load), (Group::FlushSlope, &None));
        let series = recording.series(FLUSHES.probe).unwrap();
        let mut sizes = BTreeMap::new();
        for row in series.rows() {
            let Cell::Value(bytes) = row.cell(0) else { panic!("no number") };
            *sizes.entry(bytes as u64).or_insert(0_u64) += 1;
        }
        // A loaded machine may not complete all rounds in time, but starts each with every size.
        let (most, least) = (sizes.values().max().unwrap(), sizes.values().min().unwrap());
        assert!(SIZES.iter().all(|size| sizes.contains_key(&size.get())), "{sizes:?}");
        assert!(*most <= ROUNDS && most - least <= 1, "{sizes:?}");
        let mut block = vec![0; 8192];
        file.read_at(8192, &mut block).unwrap();
        assert_eq!(stamped.verify(8192, &block, true).mismatches, 0);
    }

    #[test]
    fn the_sizes_take_turns_in_changing_order() {
        let orders: Vec<_> = (0..20).map(|round| shuffled(&mut Rng::new(1, round))).collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, SIZES);
        }
    }
}
