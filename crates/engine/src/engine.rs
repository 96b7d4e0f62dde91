//! The interface of an engine: slots of memory, requests on them, completions, and a clock.

use std::sync::Arc;

use blockstone_base::Capability;
use blockstone_base::hint::Hint;
use blockstone_sys::buffer::ArenaError;
use blockstone_sys::file::BlockFile;
use blockstone_sys::ring::RingError;

use crate::disk::SimDisk;
use crate::request::{Completion, Request, Wait};
use crate::stripes::Stripes;

/// A way of submitting block I/O. An engine belongs to one thread and is opened there; the worker
/// loop is generic over it, so no call in the hot path is virtual.
///
/// A slot is either free or holds one request, from [`Engine::submit`] until its [`Completion`].
pub trait Engine {
    /// Opens an engine on `setup`'s medium. Fails if the medium does not suit the engine, or the
    /// system refuses something that it needs.
    fn open(setup: Setup) -> Result<Self, EngineError>
    where
        Self: Sized;

    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Queues a request on a free slot. Nothing is sent before the next [`Engine::reap`], so one
    /// clock read right before it is the submission time of the whole batch. Fails if the engine as
    /// a whole can no longer be used.
    fn submit(&mut self, request: Request) -> Result<(), EngineError>;

    /// Sends the submitted requests without waiting, and returns whether that took time. An engine
    /// whose `reap` sends them can use the default. Fails if the engine as a whole no longer works.
    fn send(&mut self) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Sends the queued requests, waits as `wait` says, and appends the available completions to
    /// `out`. A blocking engine performs the request here. Fails if the engine as a whole can no
    /// longer be used; a failed request is a completion.
    fn reap(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError>;

    /// Returns the time on the clock of this engine's completions, in nanoseconds; virtual in a
    /// simulation.
    fn now_ns(&self) -> u64;

    /// Capabilities that the system granted or refused beyond the bare ability to submit, by name.
    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        Vec::new()
    }
}

#[derive(Clone, Debug)]
pub struct Setup {
    pub medium: Medium,
    /// Index of the worker that will use the engine, from 0.
    pub worker: u32,
    /// Requests that can be in flight at once.
    pub slots: usize,
    /// Bytes per slot: the length of the longest request.
    pub slot_bytes: usize,
}

#[derive(Clone, Debug)]
pub enum Medium {
    File(Arc<BlockFile>),
    /// Several files or devices treated as one.
    Files(Stripes),
    Simulated(SimDisk),
    /// No medium: for the null engine.
    Nothing,
}

impl Medium {
    /// Name for messages: the path, if there is one.
    pub fn name(&self) -> String {
        match self {
            Self::File(file) => file.path().display().to_string(),
            Self::Files(files) => {
                let [first, rest @ ..] = files.files() else { return String::new() };
                format!("{} and {} others", first.path().display(), rest.len())
            }
            Self::Simulated(_) => "the simulated disk".to_owned(),
            Self::Nothing => "nothing".to_owned(),
        }
    }

    /// Returns where the byte at `offset_bytes` is stored: the name of the file, and the offset in
    /// it.
    pub(crate) fn locate(&self, offset_bytes: u64) -> (String, u64) {
        let Self::Files(files) = self else { return (self.name(), offset_bytes) };
        let place = files.place(offset_bytes);
        (files.files()[place.file].path().display().to_string(), place.offset_bytes)
    }

    /// Returns the files that `engine` works on.
    pub(crate) fn files(self, engine: &'static str) -> Result<Stripes, EngineError> {
        match self {
            Self::File(file) => Ok(Stripes::new(vec![file])),
            Self::Files(files) => Ok(files),
            other => {
                let (medium, needs) = (other.name(), "a file or block device");
                Err(EngineError::Medium { engine, medium, needs })
            }
        }
    }
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum EngineError {
    #[error("find engine `{name}`: no such engine")]
    #[hint("choose one of {known}")]
    Unknown { name: String, known: String },
    #[error("start load on {medium}: {problem}")]
    #[hint("{hint}")]
    Contradiction { medium: String, problem: String, hint: &'static str },
    #[error("open engine {engine} on {medium}: it needs {needs}")]
    #[hint("choose another engine")]
    Medium { engine: &'static str, medium: String, needs: &'static str },
    #[error(transparent)]
    #[hint(transparent)]
    Memory(#[from] ArenaError),
    #[error(transparent)]
    #[hint(transparent)]
    Ring(#[from] RingError),
    #[error("start worker {worker} of {workers}: {source}")]
    #[hint("raise ulimit -u or use fewer workers")]
    Thread { worker: u32, workers: u32, source: std::io::Error },
    #[error("start worker {worker}: it panicked while opening its engine")]
    #[hint("this is a bug; please report it")]
    Vanished { worker: u32 },
}
