//! An engine that completes every request immediately and moves nothing. What remains is the cost
//! of the loop around it, our own part of every latency.

use blockstone_sys::buffer::Arena;
use blockstone_sys::clock;

use crate::engine::{Engine, EngineError, Setup};
use crate::request::{Completion, Request, Wait};

#[derive(Debug)]
pub struct Null {
    arena: Arena,
    queued: Vec<Request>,
}

impl Engine for Null {
    fn open(setup: Setup) -> Result<Self, EngineError> {
        let arena = Arena::new(setup.slots, setup.slot_bytes)?;
        Ok(Self { arena, queued: Vec::with_capacity(setup.slots) })
    }

    #[inline]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.arena.slot(slot)
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), EngineError> {
        self.queued.push(request);
        Ok(())
    }

    #[inline]
    fn reap(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        if let (Wait::Until(deadline_ns), true) = (wait, self.queued.is_empty()) {
            clock::sleep_until_ns(deadline_ns);
            return Ok(());
        }
        let completed_ns = clock::now_ns();
        out.extend(self.queued.drain(..).map(|request| {
            let bytes = if request.op.is_sync() { 0 } else { request.len_bytes };
            Completion { slot: request.slot, result: Ok(bytes), completed_ns }
        }));
        Ok(())
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }
}
