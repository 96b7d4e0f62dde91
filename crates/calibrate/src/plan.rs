//! The plan: which loads run, in which order, and for how long at most. It is data, so that the
//! progress bar can show the time left and a test can add up the seconds.

use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_base::rng;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;

use crate::settings::{Options, Settings, Thoroughness};

mod budget;
mod buffered;
mod flushes;
mod mixes;
mod preconditioning;
mod store;

pub use budget::{Budget, budget};
pub use buffered::{ROUNDS as BUFFERED_ROUNDS, sized};
pub use flushes::{ROUNDS as FLUSH_ROUNDS, SIZES as FLUSH_SIZES};
pub use mixes::mixes;
pub use preconditioning::{ROUNDS_MAX, fill, pass, round};
pub use store::streams;

/// Size of large requests, as used by CALIBRATE_IO, Orion and a database's multiblock reads.
pub const LARGE: Bytes = Bytes::mib(1);
/// Size of the redo log that overwriting commits go to.
pub const LOG_SIZE: Bytes = Bytes::mib(32);
/// Maximum number of headlines that are confirmed.
const HEADLINES: u64 = 5;
/// An interval this narrow (half width ÷ value) ends a window early.
pub const INTERVAL: f64 = 0.02;

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub label: String,
    pub group: Group,
    /// 0 for the first measurement of this label.
    pub repeat: u32,
    pub load: LoadSpec,
    pub background: Option<LoadSpec>,
    pub file: FileRole,
    pub warm_up: Nanos,
    /// Shortest and longest window.
    pub window: (Nanos, Nanos),
}

impl Step {
    /// Returns the first measurement of a load on the main file, without warm-up.
    pub fn new(label: String, group: Group, load: LoadSpec, window: Nanos) -> Self {
        Self {
            label,
            group,
            repeat: 0,
            load,
            background: None,
            file: FileRole::Main,
            warm_up: Nanos(0),
            window: (window, window),
        }
    }

    /// Returns whether it writes every block of its span once, in order, and ends.
    pub fn is_pass(&self) -> bool {
        let in_order = self.load.access == Access::Sequential;
        self.group == Group::Layout || self.group == Group::Precondition && in_order
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    Main,
    /// The main file through the page cache, evicted from it first.
    BufferedCold,
    /// The main file through the page cache, read once beforehand.
    BufferedWarm,
    /// A redo log: a small second file, laid out before it is overwritten.
    Log,
    /// A new file that grows.
    Append,
    /// A new file, written through the page cache, with this many bytes reserved.
    Buffered(u64),
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether Blockstone created the file, so that evicting it from the page cache disturbs no
    /// one.
    pub ours: bool,
    pub writable: bool,
    /// Whether second files (a redo log, a growing file) can be created.
    pub has_log: bool,
    pub span: Bytes,
    /// Offset of the span; not zero only if nothing is written.
    pub offset: Bytes,
    /// Number of files or devices that the span is spread over.
    pub targets: u64,
    pub direct: bool,
    pub uring: bool,
    /// Smallest unit of direct I/O.
    pub least_io: Bytes,
}

/// Returns all steps that are known before anything is measured, in the order in which they run.
pub fn steps(settings: &Settings, facts: Facts) -> Vec<Step> {
    let planner = Planner { settings, facts, budget: budget(settings.options.thoroughness()) };
    let mut out = Vec::new();
    for round in 0..planner.budget.rounds {
        // The reference point is measured at the beginning, in the middle and at the end of each
        // round: if it drifts, all other points were affected too.
        out.push(planner.reference(round * 3));
        let mut steps = planner.random_reads();
        steps.extend(planner.cache_map());
        steps.extend(planner.large_reads());
        steps.push(planner.reference(1));
        steps.extend(planner.random_writes());
        steps.extend(planner.commits());
        steps.extend(planner.flushes());
        steps.extend(planner.buffered_writes());
        steps.extend(planner.cached_reads());
        steps.extend(planner.matrix());
        steps.extend(planner.open_loop());
        steps.push(planner.reference(2));
        for mut step in steps {
            let reference = step.group == Group::Reference;
            step.repeat = if reference { round * 3 + step.repeat } else { round };
            out.push(step);
        }
    }
    for step in &mut out {
        step.load.seed = seed_of(settings.seed, &step.label, step.repeat);
    }
    out
}

/// The working set of the whole file, and a second read of the same blocks.
const WHOLE_FILE: &str = "cache-map/full";
const RE_READ: &str = "cache-map/re-read";

/// Returns the seed of a step. Every step visits different blocks: with an earlier seed it would
/// hit whatever cache that step had filled. Only the re-read repeats the blocks of the whole-file
/// step.
fn seed_of(seed: u64, label: &str, repeat: u32) -> u64 {
    let label = if label == RE_READ { WHOLE_FILE } else { label };
    let mixed = label.bytes().fold(seed, |seed, byte| rng::mix(seed ^ u64::from(byte)));
    rng::mix(mixed ^ u64::from(repeat))
}

/// Returns the step that measures the tool's own overhead: one worker on the null engine.
pub fn overhead(settings: &Settings) -> Step {
    let facts = Facts {
        ours: false,
        writable: false,
        has_log: false,
        span: Bytes::gib(1),
        offset: Bytes(0),
        targets: 1,
        direct: true,
        uring: false,
        least_io: Bytes(512),
    };
    let planner = Planner { settings, facts, budget: budget(settings.options.thoroughness()) };
    let load = LoadSpec { engine: "null".into(), ..planner.random_read("psync", 1) };
    Step {
        file: FileRole::None,
        warm_up: Nanos::millis(20),
        window: (Nanos::millis(150), Nanos::millis(200)),
        ..planner.step("overhead/null".into(), Group::Overhead, load, planner.budget.short)
    }
}

/// Returns the load that writes the test file: every block once, in order.
pub fn layout(settings: &Settings, span: Bytes, direct: bool, uring: bool) -> LoadSpec {
    LoadSpec {
        engine: if uring { "uring" } else { "psync" }.into(),
        op: Op::Write,
        read_pct: None,
        access: Access::Sequential,
        block_bytes: LARGE.get(),
        workers: 1,
        depth_per_worker: if uring { 4 } else { 1 },
        span_bytes: span.get(),
        offset_bytes: 0,
        sync: None,
        flush_alone: false,
        direct,
        pacing: Pacing::Closed,
        seed: settings.seed,
    }
}

/// Returns a longer measurement of a point that became a headline; [`spaced`] divides it into
/// windows.
pub fn confirm(settings: &Settings, name: &str, load: LoadSpec, longer: u64) -> Step {
    let budget = budget(settings.options.thoroughness());
    let window = Nanos(budget.confirm.get() * longer);
    let label = format!("confirm/{name}");
    let load = LoadSpec { seed: seed_of(settings.seed, &label, 0), ..load };
    Step { warm_up: budget.warm_up, ..Step::new(label, Group::Confirm, load, window) }
}

/// Returns the windows of all headlines interleaved, so that those of each are spread out.
pub fn spaced(settings: &Settings, headlines: &[Step]) -> Vec<Step> {
    let windows = budget(settings.options.thoroughness()).windows;
    let window = |repeat: u32, step: &Step| {
        let length = Nanos(step.window.1.get() / u64::from(windows));
        let seed = seed_of(settings.seed, &step.label, repeat);
        let load = LoadSpec { seed, ..step.load.clone() };
        Step { repeat, load, window: (length, length), ..step.clone() }
    };
    (0..windows).flat_map(|repeat| headlines.iter().map(move |step| window(repeat, step))).collect()
}

/// Returns a headline's window with the usual length, if it is longer.
pub fn usual(settings: &Settings, step: &Step) -> Step {
    let Budget { confirm, windows, .. } = budget(settings.options.thoroughness());
    let length = step.window.1.min(Nanos(confirm.get() / u64::from(windows)));
    Step { window: (length, length), ..step.clone() }
}

/// Returns whether an option of its own asks for this step. Its time is added to the time limit.
pub fn is_asked_for(step: &Step, options: &Options) -> bool {
    match step.group {
        Group::Mix | Group::Store | Group::BufferedWrite | Group::Matrix | Group::OpenLoop => true,
        Group::LargeRead => !options.streams.is_empty(),
        _ => false,
    }
}

/// Part of the time limit reserved for closing, judging and rendering the recording.
pub const CONCLUSION: Nanos = Nanos::millis(1_000);

/// Returns the longest time that all `confirm` steps of a run may take together.
pub fn confirm_limit(thoroughness: Thoroughness) -> Nanos {
    let Budget { confirm, windows, warm_up, .. } = budget(thoroughness);
    Nanos(HEADLINES * (confirm.get() + u64::from(windows) * warm_up.get()))
}

/// Returns how far a file may grow in one phase; the phase ends there, so it must outlast the
/// window.
pub fn append_span(span: Bytes) -> u64 {
    (span.get() / 4).clamp(Bytes::mib(16).get(), Bytes::mib(256).get())
}

/// Returns where commits go. A device has no room for a second file, so they overwrite its own
/// blocks.
pub fn commit_file(access: Access, has_log: bool) -> FileRole {
    let overwritten = if has_log { FileRole::Log } else { FileRole::Main };
    if access == Access::Append { FileRole::Append } else { overwritten }
}

struct Planner<'a> {
    settings: &'a Settings,
    facts: Facts,
    budget: Budget,
}

impl Planner<'_> {
    /// Returns what belongs to the thoroughness: of a brief calibration, of a quick one, or of any
    /// other.
    fn choose<T>(&self, [brief, quick, other]: [T; 3]) -> T {
        match self.settings.options.thoroughness() {
            Thoroughness::Brief => brief,
            Thoroughness::Quick => quick,
            Thoroughness::Standard | Thoroughness::Full => other,
        }
    }

    fn step(&self, label: String, group: Group, load: LoadSpec, window: Nanos) -> Step {
        let step = Step::new(label, group, load, window);
        let window = (Nanos(window.get() / 2), window);
        Step { warm_up: self.budget.warm_up, window, ..step }
    }

    fn random_read(&self, engine: &str, in_flight: u32) -> LoadSpec {
        let blocking = engine == "psync";
        LoadSpec {
            engine: engine.into(),
            op: Op::Read,
            read_pct: None,
            access: Access::Random,
            block_bytes: self.settings.options.block_bytes.get(),
            workers: if blocking { in_flight } else { 1 },
            depth_per_worker: if blocking { 1 } else { in_flight },
            span_bytes: self.facts.span.get(),
            offset_bytes: self.facts.offset.get(),
            sync: None,
            flush_alone: false,
            direct: self.facts.direct,
            pacing: Pacing::Closed,
            seed: self.settings.seed,
        }
    }

    fn reference(&self, repeat: u32) -> Step {
        let load = self.random_read("psync", 1);
        Step { repeat, ..self.step("reference".into(), Group::Reference, load, self.budget.short) }
    }

    /// Returns random operations by psync with these numbers of workers, and by io_uring at these
    /// depths.
    fn ladder(&self, name: &str, group: Group, op: Op, rungs: [&[u32]; 2]) -> Vec<Step> {
        let [blocking, depths] = rungs;
        let depths = if self.facts.uring { depths } else { &[] };
        let blocking = blocking.iter().map(|&n| ("psync", 'x', n));
        let step = |(engine, mark, n)| {
            let label = format!("{name}/{engine}/{mark}{n}");
            let load = LoadSpec { op, ..self.random_read(engine, n) };
            self.step(label, group, load, self.budget.point)
        };
        blocking.chain(depths.iter().map(|&n| ("uring", 'd', n))).map(step).collect()
    }

    fn random_reads(&self) -> Vec<Step> {
        let rungs: [[&[u32]; 2]; 3] = [
            [&[1, 16], &[32]],
            [&[1, 4, 16, 64], &[1, 8, 32, 128]],
            [&[1, 2, 4, 8, 16, 32, 64], &[1, 2, 4, 8, 16, 32, 64, 128]],
        ];
        let rungs = self.choose(rungs);
        self.ladder("random-read", Group::RandomRead, Op::Read, rungs)
    }

    fn large_read(&self, access: Access, streams: u32) -> LoadSpec {
        LoadSpec { access, block_bytes: LARGE.get(), ..self.random_read("psync", streams) }
    }

    fn large_reads(&self) -> Vec<Step> {
        if self.facts.span < Bytes(LARGE.get() * 8) {
            return Vec::new();
        }
        let streams: &[u32] = match self.settings.options.streams.as_slice() {
            [] => self.choose([&[2], &[1, 4], &[1, 2, 4, 8]]),
            asked => asked,
        };
        [("sequential", Access::Sequential), ("random", Access::Random)]
            .into_iter()
            .flat_map(|(name, access)| streams.iter().map(move |&n| (name, access, n)))
            .map(|(name, access, n)| {
                let label = format!("large-read/{name}/x{n}");
                let load = self.large_read(access, n);
                self.step(label, Group::LargeRead, load, self.budget.short)
            })
            .collect()
    }

    fn random_writes(&self) -> Vec<Step> {
        if !self.facts.writable {
            return Vec::new();
        }
        let rungs: [[&[u32]; 2]; 3] =
            [[&[1], &[32]], [&[1, 16], &[32]], [&[1, 4, 16], &[8, 32, 64]]];
        let rungs = self.choose(rungs);
        self.ladder("random-write", Group::RandomWrite, Op::Write, rungs)
    }

    fn commit(&self, method: SyncMethod, access: Access, bytes: u64, committers: u32) -> Step {
        let file = commit_file(access, self.facts.has_log);
        let (kind, span_bytes) = match file {
            FileRole::Append => ("append", append_span(self.facts.span)),
            FileRole::Log => ("overwrite", LOG_SIZE.get()),
            _ => ("overwrite", self.facts.span.get()),
        };
        let method_name = match method {
            SyncMethod::Dsync => "dsync",
            SyncMethod::Fdatasync => "fdatasync",
            SyncMethod::Fsync => "fsync",
        };
        let label = format!("commit/{method_name}/{kind}/{}/x{committers}", short_size(bytes));
        let load = LoadSpec {
            op: Op::Commit,
            access,
            block_bytes: bytes,
            sync: Some(method),
            span_bytes,
            ..self.random_read("psync", committers)
        };
        Step { file, ..self.step(label, Group::Commit, load, self.budget.short) }
    }

    /// Returns methods side by side, then sizes, then committers. A redo log is written in order,
    /// so committers write sequentially, each in its own part. Sizes other than the block's need
    /// the log file: in the test file they would damage stamps that reads verify.
    fn commits(&self) -> Vec<Step> {
        use SyncMethod::{Dsync, Fdatasync, Fsync};
        if !self.facts.writable {
            return Vec::new();
        }
        let block = self.settings.options.block_bytes.get();
        let methods: [&[SyncMethod]; 3] =
            [&[Dsync], &[Dsync, Fdatasync], &[Dsync, Fdatasync, Fsync]];
        let methods = self.choose(methods);
        let mut out = Vec::new();
        for &method in methods {
            out.push(self.commit(method, Access::Sequential, block, 1));
            if self.facts.has_log {
                out.push(self.commit(method, Access::Append, block, 1));
            }
        }
        if self.choose([false, false, true]) {
            let sizes = [512, 4096, 8192, 16384, 65536];
            let others = sizes.into_iter().filter(|&size| {
                size != block && size >= self.facts.least_io.get() && self.facts.has_log
            });
            out.extend(others.map(|size| self.commit(Dsync, Access::Sequential, size, 1)));
        }
        let committers: &[u32] = self.choose([&[], &[4, 16], &[2, 4, 8, 16]]);
        out.extend(committers.iter().map(|&n| self.commit(Dsync, Access::Sequential, block, n)));
        out
    }

    /// Returns working sets from 4 MiB up by factors of four, then the whole file, then the blocks
    /// read from it once more.
    fn cache_map(&self) -> Vec<Step> {
        let factor = self.choose([64, 16, 4]);
        let full = self.facts.span.get();
        let mut spans = Vec::new();
        let mut span = Bytes::mib(4).get();
        while span < full {
            spans.push((short_size(span), span));
            span *= factor;
        }
        let sets = spans.into_iter().map(|(name, span)| (format!("cache-map/{name}"), span));
        sets.chain([(WHOLE_FILE.to_owned(), full), (RE_READ.to_owned(), full)])
            .map(|(label, span_bytes)| {
                let load = LoadSpec { span_bytes, ..self.random_read("psync", 1) };
                self.step(label, Group::CacheMap, load, self.budget.short)
            })
            .collect()
    }

    /// Returns the equivalents of `hdparm -T` and `-t`: from the page cache, through it, and past
    /// it.
    ///
    /// Only for our own file: evicting another one from the page cache would disturb its users.
    fn cached_reads(&self) -> Vec<Step> {
        let is_measured = self.choose([false, true, true]);
        if !is_measured || self.facts.span < Bytes(LARGE.get() * 8) || !self.facts.ours {
            return Vec::new();
        }
        let cases = [
            ("buffered", FileRole::BufferedCold, false),
            ("cached", FileRole::BufferedWarm, false),
            ("direct", FileRole::Main, self.facts.direct),
        ];
        cases
            .into_iter()
            .map(|(name, file, direct)| {
                // Reading the span into the page cache must fit the time; the other reads just
                // continue.
                let span = match file {
                    FileRole::BufferedWarm => self.facts.span.min(Bytes::mib(64)),
                    _ => self.facts.span,
                };
                let load = LoadSpec {
                    direct,
                    span_bytes: span.get(),
                    ..self.large_read(Access::Sequential, 1)
                };
                let label = format!("cached-read/{name}");
                let step = self.step(label, Group::CachedRead, load, self.budget.short);
                // The cold file can be read only once: a warm-up would warm the cache.
                let cold = file == FileRole::BufferedCold;
                let warm_up = if cold { Nanos(0) } else { step.warm_up };
                Step { file, warm_up, ..step }
            })
            .collect()
    }

    fn matrix(&self) -> Vec<Step> {
        if !self.settings.options.matrix || self.facts.span < Bytes(LARGE.get() * 8) {
            return Vec::new();
        }
        let engine = if self.facts.uring { "uring" } else { "psync" };
        let mut out = Vec::new();
        for small in [0_u32, 1, 4, 16, 64] {
            for large in [0_u32, 1, 2, 4] {
                let background = (large > 0).then(|| self.large_read(Access::Sequential, large));
                let (load, background) = match (small, background) {
                    (0, None) => continue,
                    (0, Some(alone)) => (alone, None),
                    (_, background) => (self.random_read(engine, small), background),
                };
                let label = format!("matrix/s{small}l{large}");
                let step = self.step(label, Group::Matrix, load, self.budget.short);
                out.push(Step { background, ..step });
            }
        }
        out
    }

    fn open_loop(&self) -> Option<Step> {
        let open = self.settings.options.open_loop()?;
        let pacing = Pacing::Open { rate_per_s: open.rate_per_s, poisson: open.poisson };
        // One shared queue, as in a server: a read that is due is not bound to one thread.
        let engine = if self.facts.uring { "uring" } else { "psync" };
        let load = LoadSpec { pacing, ..self.random_read(engine, 128) };
        let label = format!("open-loop/read/r{}", open.rate_per_s);
        Some(Step {
            window: (self.budget.open_loop, self.budget.open_loop),
            ..self.step(label, Group::OpenLoop, load, self.budget.open_loop)
        })
    }
}

/// Formats a size as in a label: `8K`, `4M`, `512`.
pub fn short_size(bytes: u64) -> String {
    for (shift, suffix) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
pub(crate) mod tests;
