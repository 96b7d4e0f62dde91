//! Asynchronous I/O through io_uring: registered files, registered memory, completions handled on
//! the submitting thread, one system call for sending and waiting. docs/engines.md compares its
//! cost with that of fio.

use blockstone_base::Capability;
use blockstone_sys::buffer::Arena;
use blockstone_sys::clock;
use blockstone_sys::ring::Ring;

use crate::engine::{Engine, EngineError, Setup};
use crate::request::{Completion, Request, Wait};
use crate::stripes::Stripes;

pub struct Uring {
    ring: Ring,
    files: Stripes,
}

impl Engine for Uring {
    fn open(setup: Setup) -> Result<Self, EngineError> {
        let files = setup.medium.files("uring")?;
        let arena = Arena::new(setup.slots, setup.slot_bytes)?;
        Ok(Self { ring: Ring::open(files.files().to_vec(), arena)?, files })
    }

    #[inline]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.ring.buffer(slot)
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), EngineError> {
        let Request { op, slot, offset_bytes, len_bytes } = request;
        self.ring.push(op, slot, self.files.place(offset_bytes), len_bytes);
        Ok(())
    }

    #[inline]
    fn send(&mut self) -> Result<bool, EngineError> {
        self.ring.enter(0, None)?;
        Ok(true)
    }

    #[inline]
    fn reap(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let deadline_ns = match wait {
            Wait::One => None,
            Wait::Until(deadline_ns) => Some(deadline_ns),
        };
        self.ring.enter(1, deadline_ns)?;
        let completed_ns = clock::now_ns();
        self.ring.reap(|slot, result| out.push(Completion { slot, result, completed_ns }));
        Ok(())
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        let features = self.ring.features();
        vec![
            ("uring-deferred-completions", features.deferred_completions.clone()),
            ("uring-fixed-file", features.fixed_file.clone()),
            ("uring-fixed-buffers", features.fixed_buffers.clone()),
        ]
    }
}
