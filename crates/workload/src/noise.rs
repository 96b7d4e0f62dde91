//! Noise beside a load: writers that cycle through an area of their own, each write durable before
//! the next, as the log writers of other databases on the same storage do.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_engine::{
    EngineError, Length, Load, Medium, Outcome, Running, Stamped, TimedHistogram, Totals,
};
use blockstone_sys::file::{BlockFile, FileError};

/// Bytes of a write, as log writers flush at most under load.
pub const WRITE: Bytes = Bytes::kib(128);
/// Bytes of a write that lays an area out.
const LAY_OUT: Bytes = Bytes::mib(1);
const STAMPED: u64 = 8192;
const TELL: Duration = Duration::from_millis(50);
/// How long an interrupted layout may take to end.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseSpec {
    pub writers: u32,
    /// The area that each goes through; whole writes of [`WRITE`].
    pub area: Bytes,
    /// One new file a path, over which the writers are spread.
    pub paths: Vec<PathBuf>,
    pub direct: bool,
    pub seed: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("prepare the noise file: {why}\nhint: check free space and the kernel's log (dmesg)")]
    LayOut { why: String },
    #[error("prepare the noise file: interrupted\nhint: nothing was measured; run it again")]
    Interrupted,
}

/// The areas, written once so that no later write has to allocate. They are removed when this is
/// dropped.
#[derive(Debug)]
pub struct Areas {
    spec: NoiseSpec,
    areas: Vec<Area>,
}

#[derive(Debug)]
struct Area {
    file: Arc<BlockFile>,
    writers: u32,
}

impl Drop for Area {
    fn drop(&mut self) {
        // It may have been removed already.
        drop(std::fs::remove_file(self.file.path()));
    }
}

impl NoiseSpec {
    /// Bytes that each of the paths will take.
    pub fn demand(&self) -> Vec<Bytes> {
        let of = |index| Bytes(u64::from(self.writers_of(index)) * self.area.get());
        (0..self.paths.len()).map(of).collect()
    }

    fn writers_of(&self, index: usize) -> u32 {
        let paths = self.paths.len() as u32;
        self.writers / paths + u32::from((index as u32) < self.writers % paths)
    }

    fn of(&self, writers: u32) -> LoadSpec {
        LoadSpec {
            engine: "psync".to_owned(),
            op: Op::Commit,
            read_pct: None,
            access: Access::Sequential,
            block_bytes: WRITE.get(),
            workers: writers,
            depth_per_worker: 1,
            span_bytes: u64::from(writers) * self.area.get(),
            offset_bytes: 0,
            sync: Some(SyncMethod::Dsync),
            direct: self.direct,
            pacing: Pacing::Closed,
            seed: self.seed,
        }
    }

    fn content(&self, index: usize) -> Arc<Stamped> {
        Arc::new(Stamped::new(rng::mix(self.seed ^ index as u64), STAMPED, 0))
    }
}

impl Areas {
    /// Makes the areas and writes each of them once. `told` gets how many bytes of how many are
    /// written, and may end the work. Fails when an area cannot be made or written; none is left
    /// behind.
    pub fn lay_out(
        spec: NoiseSpec,
        told: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Self, NoiseError> {
        let mut areas = Vec::new();
        for (index, path) in spec.paths.iter().enumerate() {
            let writers = spec.writers_of(index);
            if writers > 0 {
                let area =
                    Area { file: Arc::new(BlockFile::create_new(path, spec.direct)?), writers };
                area.file.lock_exclusive()?;
                area.file.reserve(u64::from(writers) * spec.area.get())?;
                areas.push(area);
            }
        }
        let made = Self { spec, areas };
        let total = u64::from(made.spec.writers) * made.spec.area.get();
        let mut done = 0;
        for index in 0..made.areas.len() {
            done += made.write_once(index, &mut |bytes| told(done + bytes, total))?;
        }
        Ok(made)
    }

    fn write_once(
        &self,
        index: usize,
        told: &mut dyn FnMut(u64) -> bool,
    ) -> Result<u64, NoiseError> {
        let area = &self.areas[index];
        let spec = self.spec.of(area.writers);
        let block_bytes = LAY_OUT.get().min(self.spec.area.get());
        let spec = LoadSpec { op: Op::Write, sync: None, block_bytes, ..spec };
        let running = blockstone_engine::start(Load {
            content: self.spec.content(index),
            length: Length::Once,
            ..Load::new(spec.clone(), Medium::File(Arc::clone(&area.file)))
        })?;
        while !running.finished() {
            thread::sleep(TELL);
            if !told(running.totals().completed_bytes) {
                running.stop(GRACE);
                return Err(NoiseError::Interrupted);
            }
        }
        match running.stop(GRACE).first_error {
            Some(why) => Err(NoiseError::LayOut { why }),
            None => Ok(spec.span_bytes),
        }
    }

    pub fn load(&self) -> LoadSpec {
        self.spec.of(self.spec.writers)
    }

    /// Starts the writers. Seconds of their latencies count from `origin_ns`.
    pub fn start(&self, origin_ns: u64) -> Result<Noise, EngineError> {
        let start = |(index, area): (usize, &Area)| {
            blockstone_engine::start(Load {
                content: self.spec.content(index),
                // The layout has used the sequences below.
                first_sequence: 1 << 32,
                origin_ns,
                ..Load::new(self.spec.of(area.writers), Medium::File(Arc::clone(&area.file)))
            })
        };
        let running = self.areas.iter().enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(Noise { running })
    }
}

/// Writers at work. Dropping it tells them to stop.
#[derive(Debug)]
pub struct Noise {
    running: Vec<Running>,
}

#[derive(Debug, Default)]
pub struct NoiseOutcome {
    pub histograms: Vec<TimedHistogram>,
    pub first_error: Option<String>,
    /// Writers that still wait for their write.
    pub stuck_writers: u32,
}

impl Noise {
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        self.running.iter().for_each(|running| sum.add(running.totals()));
        sum
    }

    pub fn open_window(&self) {
        self.running.iter().for_each(Running::open_window);
    }

    pub fn close_window(&self) {
        self.running.iter().for_each(Running::close_window);
    }

    pub fn first_error(&self) -> Option<String> {
        self.running.iter().find_map(Running::first_error)
    }

    pub fn stop(self, grace: Duration) -> NoiseOutcome {
        let outcomes = self.running.into_iter().map(|running| running.stop(grace));
        outcomes.fold(NoiseOutcome::default(), |mut all, outcome: Outcome| {
            all.histograms.extend(outcome.histograms);
            all.first_error = all.first_error.or(outcome.first_error);
            all.stuck_writers += outcome.stuck_workers;
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(dir: &std::path::Path) -> NoiseSpec {
        let paths = ["a", "b"].map(|name| dir.join(name)).into();
        NoiseSpec { writers: 3, area: Bytes::mib(1), paths, direct: false, seed: 5 }
    }

    #[test]
    fn writers_go_through_their_areas_again_and_again_and_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let spec = spec(dir.path());
        assert_eq!(spec.demand(), [Bytes::mib(2), Bytes::mib(1)]);
        let areas = Areas::lay_out(spec.clone(), &mut |bytes, total| {
            assert!(bytes <= total && total == 3 << 20);
            true
        });
        let areas = areas.unwrap();
        let sizes = || spec.paths.iter().map(|path| std::fs::metadata(path).unwrap().len());
        let before: Vec<u64> = sizes().collect();
        assert_eq!(before, [2 << 20, 1 << 20]);
        let noise = areas.start(0).unwrap();
        noise.open_window();
        // More than all areas hold: they begin again.
        while noise.totals().completed_bytes < 4 << 20 {
            thread::sleep(Duration::from_millis(1));
        }
        let outcome = noise.stop(GRACE);
        assert_eq!((outcome.first_error, outcome.stuck_writers), (None, 0));
        let counted: u64 = outcome.histograms.iter().map(|second| second.latency.count()).sum();
        assert!(counted >= 32, "{counted} writes of 128 KiB");
        assert_eq!(sizes().collect::<Vec<_>>(), before, "nothing was cut and nothing grew");
        drop(areas);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_given_up_or_cannot_be_made_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let given_up = Areas::lay_out(spec(dir.path()), &mut |_, _| false).unwrap_err();
        assert!(matches!(given_up, NoiseError::Interrupted), "{given_up}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        std::fs::write(dir.path().join("b"), b"somebody's").unwrap();
        let taken = Areas::lay_out(spec(dir.path()), &mut |_, _| true).unwrap_err();
        assert!(taken.to_string().contains("hint: "), "{taken}");
        let left = std::fs::read(dir.path().join("b")).unwrap();
        assert_eq!(left, b"somebody's", "no file of others is touched");
    }
}
