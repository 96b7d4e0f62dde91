//! Moves chunks: each slot reads one from the source and then writes it to the target, all slots in
//! parallel. For resume and verification, the target's chunk is read and compared with a hash.

use std::ops::ControlFlow;

use twox_hash::XxHash3_128;

use super::Watch;
use super::extents::Span;
use super::io::{End, Io, SOURCE, TARGET};
use super::moving::Moving;
use super::pages::{drop_pages, missing};
use crate::CopyError;

/// Work to do on a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Copy,
    /// Copy, unless the target's chunk has this hash.
    CopyUnless(u128),
    /// Only read the target.
    Look,
}

/// Result for one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub span: Span,
    pub hash: Option<u128>,
    pub how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Copied,
    /// An interrupted copy claimed it, but it was not in the target.
    CopiedAgain,
    /// It was already in the target.
    Found,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    Write,
    Look,
}

impl Step {
    /// Returns the index of the file that it reads or writes.
    const fn file(self) -> usize {
        match self {
            Self::Read => SOURCE,
            Self::Write | Self::Look => TARGET,
        }
    }
}

#[derive(Debug)]
struct Flight {
    work: Work,
    step: Step,
    moving: Moving,
    hash: Option<u128>,
    /// Parts of the source that were not in the page cache before.
    fresh: Vec<Span>,
}

pub(super) struct Mover<'a> {
    pub io: &'a mut dyn Io,
    pub ends: &'a [End; 2],
    pub hash: bool,
    pub watch: &'a dyn Watch,
}

/// Supplies chunks and receives their results.
pub(super) trait Plan {
    fn next(&mut self) -> Result<Option<(Span, Work)>, CopyError>;
    /// Receives a result. `Break` ends the copy.
    fn done(&mut self, done: Done) -> Result<ControlFlow<()>, CopyError>;
}

impl Mover<'_> {
    /// Moves chunks until the plan has none left or ends the copy. Fails with the first error,
    /// after all requests in flight have completed.
    pub(super) fn run(&mut self, plan: &mut dyn Plan) -> Result<ControlFlow<()>, CopyError> {
        let mut flights: Vec<Option<Flight>> = (0..self.io.slots()).map(|_| None).collect();
        let mut free: Vec<usize> = (0..flights.len()).rev().collect();
        let (mut end, mut more) = (Ok(ControlFlow::Continue(())), true);
        let mut answers = Vec::new();
        loop {
            if more && let Some(slot) = free.pop() {
                match plan.next() {
                    Ok(Some((span, work))) => flights[slot] = Some(self.start(slot, span, work)),
                    Ok(None) => {
                        more = false;
                        free.push(slot);
                    }
                    Err(error) => {
                        (end, more) = (Err(error), false);
                        free.push(slot);
                    }
                }
            }
            if free.len() == flights.len() && !more {
                return end;
            }
            // Start one chunk at a time: completed requests are processed before the next chunk,
            // which the rate limit may delay.
            self.io.answers(!more || free.is_empty(), &mut answers)?;
            for (slot, result) in answers.drain(..) {
                let Some(flight) = flights[slot].as_mut() else { continue };
                let stepped = if end.is_err() { Ok(None) } else { self.step(slot, flight, result) };
                let done = match stepped {
                    Ok(Some(done)) => plan.done(done),
                    Ok(None) if end.is_ok() => continue,
                    Ok(None) => Ok(ControlFlow::Continue(())),
                    Err(error) => Err(error),
                };
                flights[slot] = None;
                free.push(slot);
                match done {
                    Ok(ControlFlow::Continue(())) => {}
                    stop => {
                        more = false;
                        if end.is_ok() {
                            end = stop;
                        }
                    }
                }
            }
        }
    }

    fn start(&mut self, slot: usize, span: Span, work: Work) -> Flight {
        let step = if work == Work::Copy { Step::Read } else { Step::Look };
        let moving = Moving::of(span, false, step.file(), &self.ends[step.file()]);
        let mut flight = Flight { work, step, moving, hash: None, fresh: Vec::new() };
        self.begin(slot, &mut flight, step);
        flight
    }

    /// Sends the first request of a step.
    fn begin(&mut self, slot: usize, flight: &mut Flight, step: Step) {
        let (span, end) = (flight.moving.span, &self.ends[step.file()]);
        flight.step = step;
        flight.moving = Moving::of(span, step == Step::Write, step.file(), end);
        if step == Step::Write {
            let rounded = span.len as usize..flight.moving.want as usize;
            self.io.buffer(slot)[rounded].fill(0);
        } else {
            self.watch.pace(u64::from(span.len));
            if end.drops {
                flight.fresh = missing(&*end.file, span);
            }
        }
        self.io.push(&flight.moving.request(slot, end));
    }

    /// Handles a completion: the chunk is done, or its next request is sent.
    fn step(
        &mut self,
        slot: usize,
        flight: &mut Flight,
        result: Result<u32, i32>,
    ) -> Result<Option<Done>, CopyError> {
        let end = &self.ends[flight.step.file()];
        if !flight.moving.take(end, result)? {
            self.io.push(&flight.moving.request(slot, end));
            return Ok(None);
        }
        if flight.step != Step::Write {
            drop_pages(&*end.file, &flight.fresh);
            flight.fresh.clear();
        }
        let (span, work) = (flight.moving.span, flight.work);
        match flight.step {
            Step::Read => {
                flight.hash = self.hash.then(|| self.hash_of(slot, span));
                self.begin(slot, flight, Step::Write);
                Ok(None)
            }
            Step::Write => {
                let again = matches!(work, Work::CopyUnless(_));
                let how = if again { How::CopiedAgain } else { How::Copied };
                Ok(Some(Done { span, hash: flight.hash, how }))
            }
            Step::Look => {
                let found = self.hash_of(slot, span);
                match work {
                    Work::CopyUnless(wanted) if wanted != found => {
                        self.begin(slot, flight, Step::Read);
                        Ok(None)
                    }
                    _ => Ok(Some(Done { span, hash: Some(found), how: How::Found })),
                }
            }
        }
    }

    fn hash_of(&mut self, slot: usize, span: Span) -> u128 {
        XxHash3_128::oneshot(&self.io.buffer(slot)[..span.len as usize])
    }
}
