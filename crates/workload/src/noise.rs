//! Noise alongside a load: writers that cycle through their own areas. Each write is durable before
//! the next, as with the log writers of other databases on the same storage, or is not flushed, as
//! with dd(1).

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use blockstone_base::hint::Hint;
use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_base::named;
use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_engine::{
    EngineError, Length, Load, Medium, Outcome, Running, Stamped, TimedHistogram, Totals,
};
use blockstone_sys::file::{BlockFile, FileError};
use serde::Serialize;

/// Default size of a write, the most that log writers flush at a time under load.
pub const WRITE: Bytes = Bytes::kib(128);
/// Smallest size of a write.
pub const WRITE_MIN: Bytes = Bytes::kib(4);
/// Largest size of a write.
pub const WRITE_MAX: Bytes = Bytes::mib(1);
/// Maximum number of writers: more would be a load of their own rather than noise.
pub const WRITERS_MAX: u32 = 64;
/// Size of a write that lays out an area.
const LAY_OUT: Bytes = Bytes::mib(1);
const STAMPED: u64 = 8192;
const TELL: Duration = Duration::from_millis(50);
/// How long an interrupted layout may take to end.
const GRACE: Duration = Duration::from_secs(10);

named! {
    /// Mode of noise writes.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    NoiseMode {
        /// Past the page cache, each write durable before the next (`O_DSYNC`).
        Redo = "redo",
        /// Past the page cache, without a flush.
        Direct = "direct",
        /// Through the page cache, without a flush.
        Buffered = "buffered",
    }
}

impl NoiseMode {
    /// Returns the words with which a report describes one write.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Redo => "durable",
            Self::Direct => "direct, unflushed",
            Self::Buffered => "buffered, unflushed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseSpec {
    pub writers: u32,
    pub mode: NoiseMode,
    /// Area that each writer cycles through: whole writes, and whole MiB.
    pub area: Bytes,
    /// Size of a write: a power of two.
    pub write: Bytes,
    /// Places over which the writers are spread.
    pub places: Vec<NoisePlace>,
    /// Whether these places can bypass the page cache.
    pub direct: bool,
    pub seed: u64,
}

/// Place to which some of the noise is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoisePlace {
    /// A new file, which is removed with its area.
    NewFile(PathBuf),
    /// A device that may be overwritten. The code that claimed it also clears it.
    Device(PathBuf),
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum NoiseError {
    #[error(transparent)]
    #[hint(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    #[hint(transparent)]
    Engine(#[from] EngineError),
    #[error("prepare the noise file: {why}")]
    #[hint("check free space and the kernel's log (dmesg)")]
    LayOut { why: String },
    #[error("prepare the noise file: interrupted")]
    #[hint("nothing was measured; run it again")]
    Interrupted,
    #[error("write noise on {}: it has {size}, and the writers need {least}", path.display())]
    #[hint("use a smaller area or fewer writers")]
    SmallDevice { path: PathBuf, size: Bytes, least: Bytes },
}

/// The areas, written once so that no later write has to allocate. Removed on drop.
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
        if !self.file.is_device() {
            drop(self.file.remove());
        }
    }
}

impl Area {
    fn flush(&self) -> Result<(), NoiseError> {
        self.file.fdatasync().map_err(|errno| {
            let source = std::io::Error::from_raw_os_error(errno);
            self.file.error("flush", source).into()
        })
    }
}

impl NoiseSpec {
    /// Returns the number of bytes that each place will take.
    pub fn demand(&self) -> Vec<Bytes> {
        let of = |index| Bytes(u64::from(self.writers_of(index)) * self.area.get());
        (0..self.places.len()).map(of).collect()
    }

    fn writers_of(&self, index: usize) -> u32 {
        let places = self.places.len() as u32;
        self.writers / places + u32::from((index as u32) < self.writers % places)
    }

    fn of(&self, writers: u32) -> LoadSpec {
        let durable = self.mode == NoiseMode::Redo;
        LoadSpec {
            engine: "psync".to_owned(),
            op: if durable { Op::Commit } else { Op::Write },
            read_pct: None,
            access: Access::Sequential,
            block_bytes: self.write.get(),
            workers: writers,
            depth_per_worker: 1,
            span_bytes: u64::from(writers) * self.area.get(),
            offset_bytes: 0,
            sync: durable.then_some(SyncMethod::Dsync),
            flush_alone: false,
            direct: self.is_direct(),
            pacing: Pacing::Closed,
            seed: self.seed,
        }
    }

    fn is_direct(&self) -> bool {
        self.direct && self.mode != NoiseMode::Buffered
    }

    fn content(&self, index: usize) -> Arc<Stamped> {
        let stamped = STAMPED.min(self.write.get());
        Arc::new(Stamped::new(rng::mix(self.seed ^ index as u64), stamped, 0))
    }

    /// Opens one of the places: a new file of the size of its areas, or the device.
    fn open(&self, place: &NoisePlace, least: Bytes) -> Result<BlockFile, NoiseError> {
        let path = match place {
            NoisePlace::NewFile(path) => {
                return Ok(BlockFile::create_new(path, self.is_direct())?);
            }
            NoisePlace::Device(path) => path,
        };
        let file = BlockFile::open_device(path, self.is_direct())?;
        let size = Bytes(file.size_bytes()?);
        if size < least {
            return Err(NoiseError::SmallDevice { path: path.clone(), size, least });
        }
        Ok(file)
    }
}

impl Areas {
    /// Creates the areas and writes each of them once. `told` is called with the bytes written and
    /// the total, and may end the work by returning false. Fails when an area cannot be created or
    /// written; none is left behind.
    pub fn lay_out(
        spec: NoiseSpec,
        told: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Self, NoiseError> {
        let mut areas = Vec::new();
        for (index, place) in spec.places.iter().enumerate() {
            let writers = spec.writers_of(index);
            if writers > 0 {
                let bytes = u64::from(writers) * spec.area.get();
                let file = Arc::new(spec.open(place, Bytes(bytes))?);
                let area = Area { file, writers };
                area.file.lock_exclusive()?;
                if !area.file.is_device() {
                    area.file.reserve(bytes)?;
                }
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
        if let Some(why) = running.stop(GRACE).first_error {
            return Err(NoiseError::LayOut { why });
        }
        area.flush()?;
        Ok(spec.span_bytes)
    }

    /// Waits until everything written is on stable storage, so that this work does not delay
    /// anything later.
    pub fn flush(&self) -> Result<(), NoiseError> {
        self.areas.iter().try_for_each(Area::flush)
    }

    pub fn load(&self) -> LoadSpec {
        self.spec.of(self.spec.writers)
    }

    /// Starts the writers. The seconds of their latencies count from `origin_ns`.
    pub fn start(&self, origin_ns: u64) -> Result<Noise, EngineError> {
        let start = |(index, area): (usize, &Area)| {
            blockstone_engine::start(Load {
                content: self.spec.content(index),
                // The layout has used lower sequence numbers.
                first_sequence: 1 << 32,
                origin_ns,
                ..Load::new(self.spec.of(area.writers), Medium::File(Arc::clone(&area.file)))
            })
        };
        let running = self.areas.iter().enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(Noise { running })
    }
}

/// Running writers. Dropping it tells them to stop.
#[derive(Debug)]
pub struct Noise {
    running: Vec<Running>,
}

#[derive(Debug, Default)]
pub struct NoiseOutcome {
    pub histograms: Vec<TimedHistogram>,
    pub first_error: Option<String>,
    /// Writers that are still waiting for their write.
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
        let places = ["a", "b"].map(|name| NoisePlace::NewFile(dir.join(name))).into();
        NoiseSpec {
            writers: 3,
            mode: NoiseMode::Redo,
            area: Bytes::mib(1),
            write: WRITE,
            places,
            direct: false,
            seed: 5,
        }
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
        let paths = ["a", "b"].map(|name| dir.path().join(name));
        let sizes = || paths.iter().map(|path| std::fs::metadata(path).unwrap().len());
        let before: Vec<u64> = sizes().collect();
        assert_eq!(before, [2 << 20, 1 << 20]);
        let noise = areas.start(0).unwrap();
        noise.open_window();
        // More than all areas hold, so the writers start over.
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
    fn only_redo_is_durable_and_only_buffered_writes_go_through_the_page_cache() {
        let all = [
            (NoiseMode::Redo, Op::Commit, true),
            (NoiseMode::Direct, Op::Write, true),
            (NoiseMode::Buffered, Op::Write, false),
        ];
        for (mode, op, direct) in all {
            let spec = spec(std::path::Path::new("/"));
            let load = NoiseSpec { mode, direct: true, write: Bytes::kib(4), ..spec }.of(2);
            assert_eq!((load.op, load.direct, load.block_bytes), (op, direct, 4096), "{mode:?}");
            assert_eq!(load.sync.is_some(), mode == NoiseMode::Redo);
        }
    }

    #[test]
    fn what_is_given_up_or_cannot_be_made_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let given_up = Areas::lay_out(spec(dir.path()), &mut |_, _| false).unwrap_err();
        assert!(matches!(given_up, NoiseError::Interrupted), "{given_up}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        std::fs::write(dir.path().join("b"), b"somebody's").unwrap();
        let taken = Areas::lay_out(spec(dir.path()), &mut |_, _| true).unwrap_err();
        assert!(taken.told().contains("hint: "), "{taken}");
        let left = std::fs::read(dir.path().join("b")).unwrap();
        assert_eq!(left, b"somebody's", "no file of others is touched");
    }
}
