//! Sequential writes through the page cache: how fast write(2) returns, and how fast the data reach
//! the device, compared with the same writes past the page cache. Each round does all three, so
//! that drift affects them equally.

use std::sync::Arc;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::load::BUFFERED;
use blockstone_base::units::Nanos;
use blockstone_engine::{Content, EngineError};
use blockstone_measure::{Live, Observer, Rate, Session};
use blockstone_record::manifest::{Phase, Stop};
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{Access, BlockFile};

use crate::error::CalibrateError;
use crate::flush::error;
use crate::hold::first_sequence;
use crate::plan::{BUFFERED_ROUNDS as ROUNDS, LARGE, Step};

/// Overwrites the step's span of `file` in rounds, and records each as a row of [`BUFFERED`].
/// Returns the signal that interrupted it, if any.
pub fn measure(
    session: &mut Session,
    observer: &mut dyn Observer,
    step: &Step,
    (file, content): (&BlockFile, &Arc<dyn Content>),
    left: Nanos,
) -> Result<Option<&'static str>, CalibrateError> {
    observer.phase(&step.label);
    let (phase, start_ns) = (session.phase(), session.now_ns());
    let cached = file.reopen(Access::ReadWrite, false)?;
    let mut sequence = first_sequence(phase);
    let slot = || Slot::new(step.load.span_bytes as usize).map_err(EngineError::from);
    let (mut to_cache, mut to_device) = (slot()?, slot()?);
    let (window_start_ns, ()) = session.tick(|_| ())?;
    let mut end_ns = window_start_ns;
    let mut ended = Stop::WorkDone;
    for _ in 0..ROUNDS {
        if observer.interrupted().is_some() {
            ended = Stop::Interrupted;
            break;
        }
        if end_ns - start_ns >= step.window.1.get() {
            ended = Stop::TimeLimit;
            break;
        }
        prepare(content, &mut sequence, &mut to_cache);
        prepare(content, &mut sequence, &mut to_device);
        let began_ns = session.now_ns();
        write(&cached, &to_cache)?;
        let returned_ns = session.now_ns() - began_ns;
        cached.fsync().map_err(|errno| error(&cached, "flush", errno))?;
        let flushed_ns = session.now_ns() - began_ns;
        cached.drop_cached()?;
        let direct_ns = session.now_ns();
        write(file, &to_device)?;
        let direct_ns = session.now_ns() - direct_ns;
        let times = [step.load.span_bytes, returned_ns, flushed_ns, direct_ns];
        let cells = times.map(Cell::from).into();
        let row = Reading { probe: BUFFERED.probe, object: String::new(), cells };
        (end_ns, ()) = session.tick(|readings| readings.push(row))?;
        let value = step.load.span_bytes as f64 * 1e3 / flushed_ns.max(1) as f64;
        observer.tick(&Live {
            label: &step.label,
            rates: &[Rate { value, unit: "MB/s" }],
            elapsed: session.elapsed(),
            left: Nanos(left.get().saturating_sub(end_ns - start_ns)),
            is_estimate: false,
        });
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

/// Fills the buffer for one way of writing in a round, before its time counts.
fn prepare(content: &Arc<dyn Content>, sequence: &mut u64, data: &mut [u8]) {
    content.prepare(0, *sequence, data);
    *sequence += 1;
}

/// Writes all of `data`, from the start of the file, in requests of 1 MiB.
fn write(file: &BlockFile, data: &[u8]) -> Result<(), CalibrateError> {
    let mut done = 0;
    while done < data.len() {
        let end = data.len().min(done + LARGE.get() as usize);
        let written = file.write_at(done as u64, &data[done..end]);
        done += written.map_err(|errno| error(file, "write", errno))?;
    }
    Ok(())
}
