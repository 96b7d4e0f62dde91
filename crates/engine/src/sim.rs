//! The engine of the simulated disk: requests take effect and complete in its virtual time.

use blockstone_sys::buffer::Arena;

use crate::disk::Flight;
pub use crate::disk::{Faults, PowerLoss, SECTOR_BYTES, SimDisk, SimSpec};
use crate::engine::{Engine, EngineError, Medium, Setup};
use crate::request::{Completion, Request, Wait};

#[derive(Debug)]
pub struct Sim {
    disk: SimDisk,
    seat: u64,
    arena: Arena,
    queued: Vec<Request>,
    flights: Vec<Flight>,
    now_ns: u64,
}

impl Engine for Sim {
    fn open(setup: Setup) -> Result<Self, EngineError> {
        let Medium::Simulated(disk) = setup.medium else {
            return Err(EngineError::Medium {
                engine: "sim",
                medium: setup.medium.name(),
                needs: "a simulated disk",
            });
        };
        let arena = Arena::new(setup.slots, setup.slot_bytes)?;
        let seat = disk.take_seat(setup.worker);
        Ok(Self { disk, seat, arena, queued: Vec::new(), flights: Vec::new(), now_ns: 0 })
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.arena.slot(slot)
    }

    fn submit(&mut self, request: Request) -> Result<(), EngineError> {
        self.queued.push(request);
        Ok(())
    }

    fn reap(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let disk = self.disk.clone();
        let mut state = disk.lock();
        self.now_ns = self.now_ns.max(state.thread_now_ns());
        if !self.queued.is_empty() {
            state = disk.turn(state, self.seat, self.now_ns);
            for request in self.queued.drain(..) {
                let data = self.arena.slot(request.slot);
                self.flights.push(state.accept(request, data, self.now_ns));
            }
        }
        let next_ns = self.flights.iter().map(|flight| flight.done_ns).min();
        let event_ns = match (wait, next_ns) {
            (Wait::One, None) => return Ok(()),
            (Wait::One, Some(next_ns)) => next_ns,
            (Wait::Until(deadline_ns), next_ns) => {
                next_ns.unwrap_or(u64::MAX).min(deadline_ns.max(self.now_ns))
            }
        };
        state = disk.turn(state, self.seat, event_ns);
        self.now_ns = event_ns;
        let (done, left) = self.flights.drain(..).partition(|f: &Flight| f.done_ns <= event_ns);
        self.flights = left;
        for flight in done {
            let result = state.finish(flight);
            out.push(Completion { slot: flight.slot, result, completed_ns: event_ns });
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.disk.leave(self.seat);
    }
}
