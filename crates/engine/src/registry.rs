//! The available engines. To add one, write its file and add one line here.

use blockstone_base::Capability;
use blockstone_sys::ring::Ring;

use crate::engine::EngineError;
use crate::null::Null;
use crate::psync::Psync;
use crate::sim::Sim;
use crate::uring::Uring;
use crate::worker::{self, Worker};

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub doc: &'static str,
    /// Maximum number of requests a worker can have in flight.
    pub depth_max: u32,
    pub capability: fn() -> Capability,
    pub(crate) run: fn(Worker),
}

pub const ALL: &[Entry] = &[
    Entry {
        name: "psync",
        doc: "Blocking pread and pwrite, one request per thread.",
        depth_max: 1,
        capability: || Capability::Full,
        run: worker::run::<Psync>,
    },
    Entry {
        name: "uring",
        doc: "Asynchronous io_uring with registered files and buffers.",
        depth_max: 4096,
        capability: Ring::capability,
        run: worker::run::<Uring>,
    },
    Entry {
        name: "null",
        doc: "Completes at once and moves nothing: the cost of the tool itself.",
        depth_max: 4096,
        capability: || Capability::Full,
        run: worker::run::<Null>,
    },
    Entry {
        name: "sim",
        doc: "A simulated disk in virtual time, with latency and faults from one seed.",
        depth_max: 4096,
        capability: || Capability::Full,
        run: worker::run::<Sim>,
    },
];

pub fn find(name: &str) -> Result<&'static Entry, EngineError> {
    ALL.iter().find(|entry| entry.name == name).ok_or_else(|| EngineError::Unknown {
        name: name.to_owned(),
        known: ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}
