//! A disk of the simulator: it takes no real time, fails on request, and can lose power.

use blockstone_engine::sim::Sim;
use blockstone_engine::{Engine, EngineError, Medium, Request, RequestOp, Setup, SimDisk, Wait};
use parking_lot::Mutex;

use super::{Disk, DiskError};

const SLOT_BYTES: usize = 1 << 20;

/// A simulated disk. It serves one request after the other; what it does to them is set on the
/// [`SimDisk`], which its owner keeps a clone of.
#[derive(Debug)]
pub struct SimulatedDisk {
    name: String,
    size_bytes: u64,
    engine: Mutex<Sim>,
}

impl SimulatedDisk {
    /// The disk `name` on `medium`.
    ///
    /// # Errors
    /// When there is no memory for its slot.
    pub fn new(name: impl Into<String>, medium: SimDisk) -> Result<Self, EngineError> {
        let size_bytes = medium.size_bytes();
        let served_until_ns = medium.served_until_ns();
        let medium = Medium::Simulated(medium);
        let mut engine = Sim::open(Setup { medium, worker: 0, slots: 1, slot_bytes: SLOT_BYTES })?;
        engine.reap(Wait::Until(served_until_ns), &mut Vec::new())?;
        Ok(Self { name: name.into(), size_bytes, engine: Mutex::new(engine) })
    }

    /// Performs one request of at most a slot.
    fn perform(
        &self,
        sim: &mut Sim,
        op: RequestOp,
        offset: u64,
        len: usize,
    ) -> Result<(), DiskError> {
        let request = Request { op, offset_bytes: offset, len_bytes: len as u32, slot: 0 };
        let mut out = Vec::with_capacity(1);
        let ran = sim.submit(request).and_then(|()| sim.reap(Wait::One, &mut out));
        ran.expect("the simulated engine does not break");
        match out[0].result {
            Ok(bytes) if bytes as usize == len => Ok(()),
            Ok(_) => Err(DiskError::short(self, op.name(), offset)),
            Err(errno) => Err(DiskError::new(self, op.name(), offset, errno)),
        }
    }

    fn write(&self, op: RequestOp, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        let mut sim = self.engine.lock();
        for (index, chunk) in data.chunks(SLOT_BYTES).enumerate() {
            sim.buffer(0)[..chunk.len()].copy_from_slice(chunk);
            self.perform(&mut sim, op, offset + (index * SLOT_BYTES) as u64, chunk.len())?;
        }
        Ok(())
    }
}

impl Disk for SimulatedDisk {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        let mut sim = self.engine.lock();
        for (index, chunk) in out.chunks_mut(SLOT_BYTES).enumerate() {
            let at = offset + (index * SLOT_BYTES) as u64;
            self.perform(&mut sim, RequestOp::Read, at, chunk.len())?;
            chunk.copy_from_slice(&sim.buffer(0)[..chunk.len()]);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write(RequestOp::Write, offset, data)
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write(RequestOp::WriteDsync, offset, data)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.perform(&mut self.engine.lock(), RequestOp::Fdatasync, 0, 0)
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn name(&self) -> &str {
        &self.name
    }
}
