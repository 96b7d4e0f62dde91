//! Blocking reads and writes, one at a time, as a database's foreground process issues them:
//! pread(2), pwrite(2), pwritev2(2) with `RWF_DSYNC`, fdatasync(2), fsync(2).

use blockstone_sys::buffer::Arena;
use blockstone_sys::clock;

use crate::engine::{Engine, EngineError, Setup};
use crate::request::{Completion, Request, RequestOp, Wait};
use crate::stripes::Stripes;

/// The blocking engine. It has one request in flight, as it blocks its thread.
#[derive(Debug)]
pub struct Psync {
    files: Stripes,
    arena: Arena,
    queued: Option<Request>,
}

impl Engine for Psync {
    fn open(setup: Setup) -> Result<Self, EngineError> {
        let files = setup.medium.files("psync")?;
        let arena = Arena::new(setup.slots, setup.slot_bytes)?;
        Ok(Self { files, arena, queued: None })
    }

    #[inline]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.arena.slot(slot)
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), EngineError> {
        debug_assert!(self.queued.is_none(), "a blocking engine holds one request");
        self.queued = Some(request);
        Ok(())
    }

    #[inline]
    fn reap(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        if let Some(request) = self.queued.take() {
            let result = self.perform(request);
            out.push(Completion { slot: request.slot, result, completed_ns: clock::now_ns() });
        } else if let Wait::Until(deadline_ns) = wait {
            clock::sleep_until_ns(deadline_ns);
        }
        Ok(())
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }
}

impl Psync {
    #[inline]
    fn perform(&mut self, request: Request) -> Result<u32, i32> {
        let place = self.files.place(request.offset_bytes);
        let (file, offset) = (&self.files.files()[place.file], place.offset_bytes);
        let data = &mut self.arena.slot(request.slot)[..request.len_bytes as usize];
        let bytes = match request.op {
            RequestOp::Read => file.read_at(offset, data)?,
            RequestOp::Write => file.write_at(offset, data)?,
            RequestOp::WriteDsync => file.write_dsync_at(offset, data)?,
            RequestOp::Fdatasync => file.fdatasync().map(|()| 0)?,
            RequestOp::Fsync => file.fsync().map(|()| 0)?,
        };
        Ok(bytes as u32)
    }
}
