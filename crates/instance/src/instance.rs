//! An instance: its processes, its start and its end.

mod load;
mod snapshot;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use blockstone_base::Capability;

use crate::control::{Control, Identity, State};
use crate::error::InstanceError;
use crate::files::Files;
use crate::group::DiskGroup;
use crate::health::LOOK_AGAIN;
use crate::recovery::{self, Recovery};
use crate::redo::Lsn;
use crate::redo::buffer::{Mark, RedoAddress};
use crate::session::Session;
use crate::shared::Shared;
use crate::spec::{InstanceSpec, OpenSpec, TornProtection, check_sessions};
use crate::wait::{Ledger, Role};
use crate::{checkpoint, keeper, log_writer, verify, writer};
pub use load::LoadProgress;
pub use snapshot::{Process, Snapshot};

const STACK_BYTES: usize = 256 << 10;

/// An open instance. Dropping it without [`Instance::shutdown`] is a crash.
#[derive(Debug)]
pub struct Instance {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    recovery: Recovery,
}

impl Instance {
    /// Creates an instance without data in `group`, which has the files of `spec`. Fails if a
    /// parameter has an invalid value, or the disks fail.
    pub fn create(spec: &InstanceSpec, group: &DiskGroup) -> Result<(), InstanceError> {
        spec.check()?;
        let files = Files::open(group, spec.redo_logs)?;
        // Position zero means "none", so the redo begins one log's length after it.
        let start =
            Mark { first: Lsn(spec.redo.get()), place: RedoAddress { sequence: 1, offset: 0 } };
        let state = State {
            sequence: 0,
            checkpoint: start.first,
            mark: start,
            loaded: 0,
            protection: TornProtection::None,
            writers: 0,
        };
        Control::create(files.control, Identity { id: draw_id(), spec: *spec }, state)
    }

    /// Returns how the instance in `group` was created, and how many of its schemas are loaded,
    /// without opening it. Fails if there is none, or its control file is damaged or of another
    /// version.
    pub fn inspect(group: &DiskGroup) -> Result<(InstanceSpec, u32), InstanceError> {
        let control = Control::open(group.file("control")?)?;
        Ok((control.identity().spec, control.state().loaded))
    }

    /// Opens the instance in `group`: recovers it and starts its processes. Fails if the control
    /// file is damaged or of another version, the disks fail, a parameter has an invalid value, or
    /// memory or threads are not available.
    pub fn open(group: &DiskGroup, spec: &OpenSpec) -> Result<Self, InstanceError> {
        let (files, control, start, recovery) = recovered(group, spec)?;
        let shared = Arc::new(Shared::new(files, control, start, spec, group)?);
        let mut instance = Self { shared, threads: Vec::new(), recovery };
        instance.start(spec.writers)?;
        Ok(instance)
    }

    fn start(&mut self, writers: u32) -> Result<(), InstanceError> {
        self.spawn("lgwr", 0, log_writer::run)?;
        self.spawn("ckpt", 1, checkpoint::run)?;
        for number in 0..writers {
            let work = move |shared: &Shared, ledger: &Ledger| writer::run(shared, ledger, number);
            self.spawn(&format!("dbwr-{number}"), 2 + number as usize, work)?;
        }
        let shared = Arc::clone(&self.shared);
        self.spawn_as("keeper", move || {
            shared.guarded("keeper", || {
                keeper::run(&shared);
                Ok(())
            });
        })
    }

    /// Starts a background process; if it fails, so does the instance.
    fn spawn(
        &mut self,
        name: &str,
        ledger: usize,
        work: impl FnOnce(&Shared, &Ledger) -> Result<(), InstanceError> + Send + 'static,
    ) -> Result<(), InstanceError> {
        let shared = Arc::clone(&self.shared);
        let ledger = Arc::clone(&shared.background[ledger]);
        let role = name.to_owned();
        self.spawn_as(name, move || {
            ledger.attach();
            shared.favour(ledger.role);
            shared.guarded(&role, || work(&shared, &ledger));
            ledger.detach();
        })
    }

    fn spawn_as(
        &mut self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), InstanceError> {
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        let spawned = thread.spawn(body);
        let name = name.to_owned();
        self.threads.push(spawned.map_err(|source| InstanceError::Thread { name, source })?);
        Ok(())
    }

    /// Opens a session, to be used by one thread. A session with the same `number` that ended
    /// before is continued in the statistics. A session keeps the disk group open until it is
    /// dropped. Fails if the cache is too small for that many sessions.
    pub fn session(&self, number: u32) -> Result<Session, InstanceError> {
        self.shared.health.check()?;
        check_sessions(self.shared.cache.frames(), number + 1)?;
        let mut ledgers = self.shared.sessions.lock();
        while ledgers.len() <= number as usize {
            let next = Ledger::new(Role::Session, ledgers.len());
            ledgers.push(Arc::new(next));
        }
        let ledger = Arc::clone(&ledgers[number as usize]);
        Ok(Session::new(Arc::clone(&self.shared), ledger, number))
    }

    pub fn spec(&self) -> InstanceSpec {
        self.shared.control.identity().spec
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn identity(&self) -> u64 {
        self.shared.control.identity().id
    }

    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub fn group(&self) -> &DiskGroup {
        &self.shared.group
    }

    /// Returns the events on its disks since the last call: which left, which returned.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.news.lock())
    }

    pub fn cache_blocks(&self) -> usize {
        self.shared.cache.frames()
    }

    /// Whether its background processes have priority over the sessions, and if not, why.
    pub fn favoured(&self) -> Capability {
        self.shared.favoured.lock().clone()
    }

    /// Whether it is running; the error says why not. Fails if it was stopped or has failed.
    pub fn check(&self) -> Result<(), InstanceError> {
        self.shared.health.check()
    }

    /// Writes every changed block and advances the checkpoint to the end of the redo. If the
    /// instance fails meanwhile, the error says why.
    pub fn checkpoint(&self) -> Result<(), InstanceError> {
        let shared = &self.shared;
        let target = shared.log.distance(&shared.cache).tail;
        shared.flush_to.fetch_max(target.0, Ordering::Release);
        loop {
            shared.health.check()?;
            if shared.control.state().checkpoint >= target {
                return Ok(());
            }
            shared.writer_bell.ring();
            shared.checkpoint_bell.ring();
            thread::sleep(LOOK_AGAIN / 50);
        }
    }

    /// Ends the instance in order: everything is written, and the next opening has nothing to
    /// recover. An instance that fails meanwhile, or failed before, is recovered by the next
    /// opening.
    pub fn shutdown(mut self) -> Result<(), InstanceError> {
        let result = self.checkpoint();
        self.stop();
        result?;
        Ok(self.shared.group.close()?)
    }

    /// Ends the instance like a crash of its process: threads stop where they are, and nothing more
    /// is written.
    pub fn crash(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A panic was caught inside the thread and is the reason why the instance has failed.
            let _ = thread.join();
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Recovers the instance in `group`, and returns where its redo continues.
pub(crate) fn recovered(
    group: &DiskGroup,
    spec: &OpenSpec,
) -> Result<(Files, Control, Mark, Recovery), InstanceError> {
    let control = Control::open(group.file("control")?)?;
    let identity = *control.identity();
    spec.check(&identity.spec, 0)?;
    let files = Files::open(group, identity.spec.redo_logs)?;
    files.check(&identity.spec)?;
    verify::register(&files, identity.id);
    let (recovery, start) = recovery::recover(&files, &control, spec.accept_loss)?;
    // Before the first record: once redo is overwritten, recovery must begin here.
    control.write(|state| {
        state.checkpoint = start.first;
        state.mark = start;
        state.protection = spec.protection;
        state.writers = spec.writers;
    })?;
    Ok((files, control, start, recovery))
}

/// Draws an id that no other instance has: anything an earlier one left on the same disks is
/// foreign.
fn draw_id() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(blockstone_sys::clock::now_ns());
    hasher.finish()
}
