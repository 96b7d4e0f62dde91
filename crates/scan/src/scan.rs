//! One scan: workers read, hash and compress; this thread counts, in the order of the files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blockstone_base::Bytes as Size;
use blockstone_engine::stream::{How, Open, Source, Stream};
use blockstone_reduce::compress::Compressors;
use blockstone_reduce::counter::{Counter, Wanted};
use blockstone_reduce::findings::FileNote;
use blockstone_reduce::hash::{Hashed, SEGMENT_BYTES};
use blockstone_reduce::page;
use blockstone_reduce::plan::{Compress, Plan};
use blockstone_reduce::scanned::{FileState, Scanned, ScannedFile};
use blockstone_sys::buffer::{Arena, Slot};
use blockstone_sys::{thread, usage};

use crate::error::ScanError;
use crate::saved::{self, Position};
use blockstone_base::text::shown;

use crate::pending::Pending;
use crate::survey::Survey;
use crate::workers::{Around, Bytes, Compressed, Job, Message, Piece, Pool, Segment, Work, work};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Threads that read, hash and compress; each has one read in flight.
    pub threads: usize,
    /// Bypasses the page cache.
    pub direct: bool,
    /// Limit on reads, in bytes per second.
    pub rate: Option<u64>,
    /// Directory in which the scan is saved, periodically and at its end.
    pub save: Option<PathBuf>,
    /// Time before the first save.
    pub save_every: Duration,
    /// Also counts pages without their header fields, if some file has pages of a known format.
    pub masks: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // Enough reads in flight for one device, and every processor busy.
        let threads = processors.max(READS_IN_FLIGHT);
        let save_every = Duration::from_secs(30);
        Self { threads, direct: true, rate: None, save: None, save_every, masks: false }
    }
}

/// Number of 1 MiB reads that keep a device busy.
const READS_IN_FLIGHT: usize = 8;

#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    pub done_bytes: u64,
    pub all_bytes: u64,
    pub file: &'a str,
}

#[derive(Debug)]
pub struct Outcome {
    pub counter: Counter,
    pub scanned: Scanned,
    /// Why the final save failed, if it did; the counts are valid nevertheless.
    pub unsaved: Option<ScanError>,
    /// Whether it ended at a file that needs masks, while the plan has none.
    pub(crate) lacks_masks: bool,
}

impl Outcome {
    /// Returns the information about files that findings need.
    pub fn notes(&self) -> Vec<FileNote> {
        let note = |file: &ScannedFile| FileNote {
            path: file.path.clone(),
            format: file.format.as_deref().and_then(page::named).map(|format| format.name),
        };
        self.scanned.files.iter().map(note).collect()
    }
}

/// Memory for the sizes of one content, and for the map that holds them.
const SIZES_BYTES: u64 = 112;
/// Memory that belongs to no table: the program's own before it scans, most of which is its mapped
/// text and differs between builds and kernels, and the memory of findings.
const PROGRAM_BYTES_MIN: u64 = 20 << 20;
const FINDINGS_BYTES: u64 = 12 << 20;

/// Scans the surveyed files. `watch` receives the progress and returns whether to go on; a scan
/// that is ended early returns what was counted.
///
/// The need for masks may become known only when a small file is read that the survey did not look
/// at; the scan then starts again. A scan that is saved must know beforehand: [`Look::All`].
///
/// [`Look::All`]: crate::Look::All
pub fn scan(
    survey: &Survey,
    mut plan: Plan,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Outcome, ScanError> {
    if settings.masks && survey.knows_a_format() {
        plan = plan.with_masks();
    }
    let outcome = from_the_beginning(survey, plan.clone(), settings, watch)?;
    if !outcome.lacks_masks {
        return Ok(outcome);
    }
    let Scanned { elapsed_s, cpu_s, .. } = outcome.scanned;
    drop(outcome.counter);
    let mut outcome = from_the_beginning(survey, plan.with_masks(), settings, watch)?;
    outcome.scanned.elapsed_s += elapsed_s;
    outcome.scanned.cpu_s += cpu_s;
    Ok(outcome)
}

fn from_the_beginning(
    survey: &Survey,
    plan: Plan,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Outcome, ScanError> {
    let files = survey.files.iter().map(|file| ScannedFile {
        path: shown(&file.path),
        bytes: 0,
        hole_bytes: 0,
        format: file.format.map(|format| format.format.name.to_owned()),
        state: FileState::Pending,
    });
    let scanned = Scanned {
        files: files.collect(),
        skipped: survey.skipped.clone(),
        free: survey.free.clone(),
        direct: settings.direct,
        ..Scanned::default()
    };
    let start = Start { counter: Counter::new(plan), scanned, position: Position::default() };
    go_on(survey, start, settings, watch)
}

/// Starting point of a scan: nothing, or the state in which an earlier one was saved.
pub(crate) struct Start {
    pub counter: Counter,
    pub scanned: Scanned,
    pub position: Position,
}

pub(crate) fn go_on(
    survey: &Survey,
    start: Start,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Outcome, ScanError> {
    let Start { counter, scanned, position } = start;
    let slots: Vec<Slot> =
        Arena::new(settings.threads + SEGMENTS_WAITING, SEGMENT_BYTES)?.into_slots();
    let pool = Pool::new(slots);
    let rest = &survey.files[position.file..];
    let sources = rest.iter().enumerate().map(|(index, file)| Source {
        path: file.path.clone(),
        bytes: file.bytes,
        from_bytes: if index == 0 { resumed_from(position) } else { 0 },
    });
    let how = How { segment_bytes: SEGMENT_BYTES, direct: settings.direct, rate: settings.rate };
    let plan = counter.plan();
    let grids = plan.grids().iter().enumerate();
    let shared = Arc::new(Work {
        stream: Stream::new(sources.collect(), how),
        formats: rest.iter().map(|file| file.format).collect(),
        depth: plan.depth(),
        pool: Arc::clone(&pool),
        grids: grids.map(|(index, &grid)| (grid, plan.compressors(index))).collect(),
    });
    let (tell, messages) = channel();
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for number in 0..settings.threads {
        let compressors = Compressors::new(&counter.plan().codecs)?;
        let (shared, tell) = (Arc::clone(&shared), tell.clone());
        match thread::spawn(&format!("scan {number}"), move || work(&shared, compressors, &tell)) {
            Ok(thread) => threads.push(thread),
            Err(source) if number == 0 => {
                pool.end();
                return Err(ScanError::Thread { number, threads: settings.threads, source });
            }
            // The threads already started do the whole scan.
            Err(_) => break,
        }
    }
    drop(tell);
    let plan = counter.plan();
    let pending = Pending::new(pending_bytes(plan, plan.memory_bytes, PENDING_PARTS - 1));
    let mut counting = Counting {
        survey,
        settings,
        counter,
        scanned,
        position,
        first_file: position.file,
        work: Arc::clone(&shared),
        pending,
        before: None,
        lacks_masks: false,
        jobs: 0,
        file: None,
        started: Instant::now(),
        saved_at: Instant::now(),
        save_after: settings.save_every,
    };
    let cpu_before_ns = usage::process().cpu_ns();
    let counted = counting.all(&messages, watch);
    pool.end();
    shared.stream.end();
    // Workers that still send a message find the receiver gone.
    drop(messages);
    for thread in threads {
        thread.join().map_err(|_| ScanError::Vanished)?;
    }
    counted?;
    counting.scanned.elapsed_s += counting.started.elapsed().as_secs_f64();
    counting.scanned.cpu_s += (usage::process().cpu_ns() - cpu_before_ns) as f64 / 1e9;
    counting.scanned.memory_bytes = usage::peak_memory_bytes();
    let unsaved = counting.save(true).err();
    let Counting { counter, scanned, lacks_masks, .. } = counting;
    Ok(Outcome { counter, scanned, unsaved, lacks_masks })
}

fn resumed_from(position: Position) -> u64 {
    position.bytes.saturating_sub(SEGMENT_BYTES as u64)
}

/// Segments waiting to be counted or compressed, in addition to those being read.
const SEGMENTS_WAITING: usize = 8;
/// Saving takes at most one part in this many of the elapsed time.
const SAVING_PART: u32 = 25;
const LOOK: Duration = Duration::from_millis(100);

struct Counting<'a> {
    survey: &'a Survey,
    settings: &'a Settings,
    counter: Counter,
    scanned: Scanned,
    position: Position,
    first_file: usize,
    work: Arc<Work>,
    pending: Pending,
    /// The segment before the next one, if it has bytes.
    before: Option<Arc<Bytes>>,
    lacks_masks: bool,
    /// Jobs whose result has not arrived yet.
    jobs: usize,
    file: Option<Arc<Open>>,
    started: Instant,
    saved_at: Instant,
    save_after: Duration,
}

impl Counting<'_> {
    fn all(
        &mut self,
        messages: &Receiver<Message>,
        watch: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<(), ScanError> {
        let mut waiting: BTreeMap<u64, Box<Piece>> = BTreeMap::new();
        let mut next = 0;
        let mut looked = Instant::now();
        let all_bytes = self.survey.bytes();
        while !self.is_done() {
            let due = self.is_save_due();
            while !due && let Some(piece) = waiting.remove(&next) {
                next += 1;
                self.piece(*piece);
                if self.lacks_masks {
                    return Ok(());
                }
                if self.is_save_due() {
                    break;
                }
            }
            if self.is_save_due() && self.jobs == 0 && self.pending.is_empty() {
                self.save(false)?;
                continue;
            }
            if self.is_save_due() || self.has_ended() || self.pending.is_full(&self.counter) {
                self.compress_pending();
                if self.is_done() {
                    break;
                }
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                let at = self.position.file.min(self.survey.files.len() - 1);
                let progress = Progress {
                    done_bytes: self.done_bytes(),
                    all_bytes,
                    file: &self.scanned.files[at].path,
                };
                if !watch(progress) {
                    if !self.has_ended() {
                        self.scanned.ended_by = Some("interrupted".to_owned());
                    }
                    // Wakes workers that wait for the rate: they still have blocks to compress.
                    self.work.stream.end();
                    return self.drain(messages);
                }
            }
            match messages.recv_timeout(LOOK) {
                Ok(Message::Piece(piece)) => drop(waiting.insert(piece.number, piece)),
                Ok(Message::Compressed(sizes)) => self.compressed(sizes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(ScanError::Vanished),
            }
        }
        Ok(())
    }

    /// Returns whether all files have been counted.
    fn has_ended(&self) -> bool {
        self.position.file >= self.survey.files.len()
    }

    fn is_done(&self) -> bool {
        self.has_ended() && self.jobs == 0 && self.pending.is_empty()
    }

    /// Compresses what has to be, and waits for it, so that the saved state is complete.
    fn drain(&mut self, messages: &Receiver<Message>) -> Result<(), ScanError> {
        self.compress_pending();
        while self.jobs > 0 {
            match messages.recv().map_err(|_| ScanError::Vanished)? {
                Message::Compressed(sizes) => self.compressed(sizes),
                Message::Piece(_) => {}
            }
        }
        Ok(())
    }

    fn compressed(&mut self, sizes: Vec<Compressed>) {
        self.jobs -= 1;
        for (grid, print, sizes) in sizes {
            self.counter.compressed(grid, print, sizes);
        }
    }

    fn done_bytes(&self) -> u64 {
        let before: u64 = self.survey.files[..self.position.file].iter().map(|f| f.bytes).sum();
        before + self.position.bytes
    }

    fn piece(&mut self, piece: Piece) {
        let index = self.first_file + piece.source;
        if index < self.position.file {
            // The rest of a file that ended early.
            return;
        }
        let piece = match self.resumed(piece) {
            Ok(piece) => piece,
            Err(bytes) => {
                self.before = bytes;
                return;
            }
        };
        if piece.start_bytes == 0 {
            self.counter.begin_file(self.survey.files[index].bytes);
            self.before = None;
        }
        let Piece { start_bytes, expected_bytes, is_last, found, .. } = piece;
        let segment = match found {
            Ok(segment) => segment,
            Err(why) => {
                let state = Some(FileState::Unreadable { why });
                return self.finish(index, start_bytes, None, state);
            }
        };
        if let Some(format) = segment.format {
            self.scanned.files[index].format = Some(format.format.name.to_owned());
            self.lacks_masks = self.settings.masks
                && self.settings.save.is_none()
                && self.counter.plan().masks.is_empty();
        }
        self.file = Some(Arc::clone(&segment.open));
        self.scanned.direct &= segment.open.is_direct();
        let len = segment.hashed.len_bytes();
        if segment.is_hole {
            self.scanned.files[index].hole_bytes += len;
        } else {
            self.scanned.read_bytes += len;
        }
        self.feed(start_bytes, &segment);
        self.scanned.files[index].bytes += len;
        self.position.bytes = start_bytes + len;
        let before = segment.bytes;
        if len < expected_bytes {
            let bytes = self.survey.files[index].bytes - start_bytes - len;
            self.finish(index, start_bytes, before, Some(FileState::Shrank { bytes }));
        } else if is_last {
            self.finish(index, start_bytes, before, None);
        } else {
            self.before = before;
        }
    }

    /// Returns the new part of a piece. A scan that continues in the middle of a file reads the
    /// previous segment again, because blocks may begin there: its bytes are then returned as the
    /// error.
    fn resumed(&self, mut piece: Piece) -> Result<Piece, Option<Arc<Bytes>>> {
        let known = self.position.bytes.saturating_sub(piece.start_bytes);
        if known == 0 {
            return Ok(piece);
        }
        match &mut piece.found {
            Ok(segment) if segment.is_hole && piece.expected_bytes > known => {
                piece.start_bytes += known;
                piece.expected_bytes -= known;
                segment.hashed = Hashed::Zeros(piece.expected_bytes);
                Ok(piece)
            }
            Ok(segment) if segment.hashed.len_bytes() >= known => Err(segment.bytes.take()),
            found => {
                // Data counted before can no longer be read; the file ends at the saved position.
                if found.is_ok() {
                    *found = Err("it shrank while the scan was interrupted".to_owned());
                }
                piece.start_bytes = self.position.bytes;
                Ok(piece)
            }
        }
    }

    fn feed(&mut self, start_bytes: u64, segment: &Segment) {
        let mut wanted = Vec::new();
        if let Hashed::Zeros(bytes) = segment.hashed {
            // A hole may be many segments long.
            let mut left = bytes;
            while left > 0 {
                let now = left.min(SEGMENT_BYTES as u64);
                self.counter.feed(&Hashed::Zeros(now), &mut wanted);
                left -= now;
            }
        } else {
            self.counter.feed(&segment.hashed, &mut wanted);
        }
        self.compress(wanted, start_bytes, segment.bytes.clone());
    }

    fn compress(&mut self, wanted: Vec<Wanted>, start_bytes: u64, bytes: Option<Arc<Bytes>>) {
        if wanted.is_empty() {
            return;
        }
        let around = Around { before: self.before.clone(), start_bytes, bytes };
        if self.counter.plan().compress == Compress::Every {
            return self.start(Job::InPlace { wanted, around });
        }
        let mut room = Vec::new();
        for Wanted { grid, print, start_bytes } in wanted {
            let len = self.work.grids[grid].0.block_bytes as usize;
            self.pending.put(grid, print, || around.block(start_bytes, len, &mut room).into());
        }
    }

    fn compress_pending(&mut self) {
        for task in self.pending.take(&self.counter) {
            self.start(Job::Copied(task));
        }
    }

    fn start(&mut self, job: Job) {
        self.jobs += 1;
        self.work.pool.compress(job);
    }

    fn finish(
        &mut self,
        index: usize,
        start_bytes: u64,
        bytes: Option<Arc<Bytes>>,
        state: Option<FileState>,
    ) {
        let mut wanted = Vec::new();
        self.counter.end_file(&mut wanted);
        self.compress(wanted, start_bytes, bytes);
        self.ended(index, state);
    }

    /// Ends the current file; `state` is a known problem with it, if any.
    fn ended(&mut self, index: usize, state: Option<FileState>) {
        let found = &self.survey.files[index];
        let now = self.file.take().and_then(|open| open.state().ok());
        let changed = match now {
            Some(now) if now.bytes > found.bytes => {
                FileState::Grew { bytes: now.bytes - found.bytes }
            }
            Some(now) if now.bytes < found.bytes => {
                FileState::Shrank { bytes: found.bytes - now.bytes }
            }
            Some(now) if now.modified_ns != found.modified_ns => FileState::Written,
            _ => FileState::Complete,
        };
        self.scanned.files[index].state = state.unwrap_or(changed);
        self.position = Position { file: index + 1, bytes: 0 };
        self.before = None;
    }

    fn is_save_due(&self) -> bool {
        self.settings.save.is_some() && self.saved_at.elapsed() > self.save_after
    }

    fn save(&mut self, whole: bool) -> Result<(), ScanError> {
        let Some(dir) = &self.settings.save else { return Ok(()) };
        let started = Instant::now();
        let mut scanned = self.scanned.clone();
        if !whole {
            scanned.elapsed_s += self.started.elapsed().as_secs_f64();
        }
        let whole = whole && self.position.file == self.survey.files.len();
        saved::write(dir, &self.counter, &scanned, &self.survey.files, self.position, whole)?;
        self.saved_at = Instant::now();
        self.save_after = self.settings.save_every.max(started.elapsed() * SAVING_PART);
        Ok(())
    }
}

/// Blocks that may be compressed have at most one part in this many of the memory.
const PENDING_PARTS: usize = 8;

/// Memory for blocks that may be compressed: what they need, at most one part in `parts` of
/// `memory`.
fn pending_bytes(plan: &Plan, memory: usize, parts: usize) -> usize {
    plan.sampled_bytes().min(memory / parts)
}

/// Memory left for tables in the process, after its threads and their compressors.
pub fn table_bytes(memory: Size, threads: usize, plan: &Plan) -> Result<usize, ScanError> {
    let segments = ((threads + SEGMENTS_WAITING) * SEGMENT_BYTES) as u64;
    let grids = plan.grids().iter().enumerate();
    let seen = |place: usize| {
        let blocks = grids.clone().filter(|&(grid, _)| place < plan.compressors(grid));
        blocks.map(|(_, grid)| u64::from(grid.block_bytes)).max().unwrap_or(0)
    };
    // Without compression, no memory is needed for it.
    let compresses = plan.compress != Compress::Not;
    let compressors = plan.codecs.iter().enumerate().filter(|_| compresses);
    let compressors: u64 = compressors.map(|(place, codec)| codec.memory_bytes(seen(place))).sum();
    let contents = |grid| match plan.compress {
        Compress::Sample(_) => plan.compressed_contents(grid),
        // In this case every content has its sizes, and the tables make room for them.
        Compress::Not | Compress::Every => 0,
    };
    let sampled = |grid| contents(grid) + plan.compressed_blocks(grid);
    let sampled: usize = (0..plan.grids().len()).map(sampled).sum();
    let program = usage::peak_memory_bytes().max(PROGRAM_BYTES_MIN) + FINDINGS_BYTES;
    let others = program + segments + threads as u64 * compressors + sampled as u64 * SIZES_BYTES;
    let least = Size(others * 5 / 4);
    if memory.0 < least.0 {
        return Err(ScanError::Memory { memory, least });
    }
    let left = (memory.0 - others) as usize;
    Ok(left - pending_bytes(plan, left, PENDING_PARTS))
}

#[cfg(test)]
mod tests {
    use blockstone_base::rng;
    use blockstone_reduce::findings::Findings;
    use blockstone_reduce::generate::{self, Shape};
    use blockstone_reduce::model::Model;

    use super::*;
    use crate::{Look, resume, survey};

    fn plan() -> Plan {
        let sizes = [4096, 8192, 16384, 32768].map(Size);
        let mut plan = Plan::new(&sizes, &[0, 512, 4096], Size(8192)).unwrap();
        (plan.compress, plan.deduplicates) = (Compress::Sample(200), false);
        plan
    }

    /// Creates three files with copies, holes and an odd end.
    fn files(dir: &std::path::Path) {
        let mut bytes = vec![0; 5 << 20];
        rng::fill(1, &mut bytes);
        bytes[3_000_000..3_500_000].fill(b'x');
        std::fs::write(dir.join("a"), &bytes).unwrap();
        bytes.rotate_left(8192 * 7);
        bytes.truncate((4 << 20) + 777);
        std::fs::write(dir.join("b"), &bytes).unwrap();
        let file = std::fs::File::create(dir.join("c")).unwrap();
        file.set_len(40 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes[..2 << 20], 20 << 20).unwrap();
    }

    fn figures(outcome: &Outcome) -> String {
        let model = Model::built_in("generic").unwrap();
        let mut findings = Findings::new(&outcome.counter, &outcome.notes(), &model);
        findings.matrix.contents.iter_mut().flatten().for_each(|cell| *cell = cell.round());
        let grids = outcome.counter.grids().iter();
        let drawn: Vec<_> = grids.flat_map(|count| count.block_sizes.sizes()).collect();
        assert!(drawn.len() > 200, "{}", drawn.len());
        format!("{findings:#?}\n{:#?}\n{drawn:?}", outcome.scanned.files)
    }

    #[test]
    fn however_many_threads_and_however_it_is_read_the_figures_are_the_same() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        files(dir.path());
        let survey = survey(&[dir.path().to_owned()], Look::All, None, &mut |_| true).unwrap();
        let run = |threads, direct| {
            let settings = Settings { threads, direct, ..Settings::default() };
            scan(&survey, plan(), &settings, &mut |_| true).unwrap()
        };
        let one = run(1, false);
        assert!(one.scanned.is_whole());
        assert!(one.scanned.files[2].hole_bytes >= 30 << 20);
        assert_eq!(one.counter.files()[1].bytes, (4 << 20) + 777);
        for (threads, direct) in [(1, true), (2, true), (9, false)] {
            assert!(figures(&run(threads, direct)) == figures(&one), "{threads} {direct}");
        }
    }

    #[test]
    fn a_scan_that_waits_for_its_rate_ends_at_once_with_what_is_to_be_compressed() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for seed in 0..4 {
            let mut bytes = vec![0; 300_000];
            rng::fill(seed, &mut bytes);
            std::fs::write(dir.path().join(seed.to_string()), bytes).unwrap();
        }
        let survey = survey(&[dir.path().to_owned()], Look::All, None, &mut |_| true).unwrap();
        // The second file is due after 30 s, so both threads wait while the first one still has to
        // be compressed.
        let settings = Settings { threads: 2, rate: Some(10_000), ..Settings::default() };
        let began = Instant::now();
        let outcome =
            scan(&survey, plan(), &settings, &mut |_| began.elapsed() < Duration::from_secs(1));
        assert_eq!(outcome.unwrap().scanned.ended_by.as_deref(), Some("interrupted"));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn small_files_that_are_recognised_when_they_are_read_give_the_same_figures() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        files(dir.path());
        let kind = generate::find("oracle-like").unwrap();
        let shape =
            Shape { files: 3, blocks_per_file: 16, block_bytes: 8192, head_blocks: 2, seed: 1 };
        crate::generate(&dir.path().join("pages"), kind, &shape, &mut |_| true).unwrap();
        let run = |look| {
            let survey = survey(&[dir.path().to_owned()], look, None, &mut |_| true).unwrap();
            let settings = Settings { masks: true, ..Settings::default() };
            (survey.knows_a_format(), scan(&survey, plan(), &settings, &mut |_| true).unwrap())
        };
        let ((known, all), (unknown, large)) = (run(Look::All), run(Look::Large));
        assert!(known && !unknown && !large.counter.plan().masks.is_empty());
        assert!(figures(&large) == figures(&all));
    }

    #[test]
    fn a_scan_that_was_ended_anywhere_and_resumed_gives_the_same_figures() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (data, saved) = (dir.path().join("data"), dir.path().join("saved"));
        std::fs::create_dir(&data).unwrap();
        files(&data);
        let survey = survey(&[data], Look::All, None, &mut |_| true).unwrap();
        let whole = scan(&survey, plan(), &Settings::default(), &mut |_| true).unwrap();
        // At some tens of megabytes per second, the end comes in the middle of a file.
        let slow = Settings {
            rate: Some(16 << 20),
            save: Some(saved.clone()),
            threads: 2,
            ..Settings::default()
        };
        let part = scan(&survey, plan(), &slow, &mut |_| false).unwrap();
        assert!(part.scanned.ended_by.is_some() && !part.scanned.is_whole());
        let mut parts = 1;
        let resumed = loop {
            let go_on = parts % 2 == 0;
            let outcome = resume(&saved, &slow, &mut |_| go_on).unwrap();
            if outcome.scanned.ended_by.is_none() {
                break outcome;
            }
            parts += 1;
        };
        assert!(resumed.scanned.is_whole());
        assert!(figures(&resumed) == figures(&whole));
        let again = crate::read(&saved).unwrap();
        assert!(figures(&again) == figures(&whole));
        let complete = resume(&saved, &slow, &mut |_| true).unwrap();
        assert!(figures(&complete) == figures(&whole), "a complete scan is shown again");
    }
}
