//! Figures and tables of a copy. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Missing, Value, bytes, count, flag, happened, level, text, time, total,
};
use blockstone_base::text::shown;
use blockstone_base::units::Bytes;
use blockstone_copy::against::Round;
use blockstone_copy::file::{Copied, Verified};
use blockstone_copy::tree::CopiedFile;

use super::Ran;
use super::beside::Got;
use super::words::{self, method, name, verified};

const SECOND_NS: f64 = 1e9;

rows! {
    /// Single figures of a copy.
    pub(super) struct Summary {
        /// Regular files that were copied.
        files: u64 = total("files", Measure::Count),
        /// Bytes of these files, holes included.
        bytes: u64 = total("bytes", Measure::Bytes),
        /// Bytes that were moved or shared; holes are not among them.
        data_bytes: u64 = total("data", Measure::Bytes),
        /// How long it took.
        time_ns: f64 = time("time"),
        /// Processor time of this process, in the kernel too.
        cpu_ns: f64 = time("CPU"),
        /// `reflink`, `server`, `direct`, `dontcache`, `buffered`, `mmap`, `copy-file-range` or
        /// `mixed`.
        method: Value = text("method"),
        /// Whether every target was read again from its medium and is equal. False: equal, but
        /// nothing shows that it came from the medium; or not compared, because no bytes were read
        /// (`reflink`, `server`).
        verified: Result<bool, Missing> = flag("verified"),
        /// Bytes of the sources and targets in the page cache before the copy.
        page_cache_bytes_before: Option<u64> = bytes("page cache before"),
        /// Bytes of the sources and targets in the page cache after the copy.
        page_cache_bytes_after: Option<u64> = bytes("page cache after"),
        /// Bytes that an interrupted copy had moved, and that were kept.
        resumed_bytes: u64 = total("resumed", Measure::Bytes),
        /// Bytes that an interrupted copy had moved, and that were moved again.
        again_bytes: u64 = total("moved again", Measure::Bytes),
        /// Files, links and pipes that an earlier copy had completed.
        kept_files: u64 = total("kept", Measure::Count),
        /// Bytes of these.
        kept_bytes: u64 = total("kept bytes", Measure::Bytes),
        /// Directories that were made.
        directories: u64 = total("directories", Measure::Count),
        /// Symbolic links that were made.
        links: u64 = total("links", Measure::Count),
        /// Further names of files that were copied.
        hard_links: u64 = total("hard links", Measure::Count),
        /// Named pipes and devices that were made.
        specials: u64 = total("pipes and devices", Measure::Count),
        /// Charged by the kernel to this process as read from storage.
        charged_read_bytes: Option<u64> = bytes("charged as read"),
        /// Charged as written.
        charged_write_bytes: Option<u64> = bytes("charged as written"),
        /// Read from the devices of the sources, by all processes.
        device_read_bytes: Option<u64> = bytes("read by devices"),
        /// Written to the device of the target, by all processes.
        device_write_bytes: Option<u64> = bytes("written by devices"),
    }
}

rows! {
    /// Files that were copied.
    pub(super) struct FileRow {
        /// The target.
        file: String = text("file").answer(),
        /// Its size, holes included.
        bytes: u64 = bytes("bytes").answer(),
        /// Bytes that were moved or shared.
        data_bytes: u64 = bytes("data"),
        /// How: `reflink`, `server`, `direct`, `dontcache`, `buffered`, `mmap` or
        /// `copy-file-range`.
        method: &'static str = text("method"),
        /// Empty for one of several that were copied together.
        time_ns: Value = time("time"),
        /// Moved by an earlier copy that was interrupted.
        resumed_bytes: Value = bytes("resumed"),
        /// Whether the target was read again and is equal.
        verified: Value = text("verified"),
    }
}

rows! {
    /// Methods that were used, and why.
    pub(super) struct ReasonRow {
        /// `reflink`, `server`, `direct`, `dontcache`, `buffered`, `mmap` or `copy-file-range`.
        method: &'static str = text("method"),
        /// Files that were copied so for this reason.
        files: u64 = total("files", Measure::Count).answer(),
        /// Why no cheaper method was used.
        why: String = text("why").prose(),
    }
}

rows! {
    /// Files that could not be copied.
    pub(super) struct FailedRow {
        /// The source.
        path: String = text("path").answer(),
        /// Error that the system reported.
        error: String = text("error").prose(),
    }
}

rows! {
    /// Attributes that targets could not be given.
    pub(super) struct NoteRow {
        /// `owner`, `times`, `access list`, `extended attribute` …
        what: &'static str = text("not carried").answer(),
        /// Files that lack it.
        files: u64 = total("files", Measure::Count).answer(),
        /// The first of them.
        first: String = text("first"),
        /// Error that the system reported.
        why: String = text("why").prose(),
    }
}

rows! {
    /// Bytes by who counted them.
    pub(super) struct EvidenceRow {
        /// Reading the sources, or writing the target.
        side: &'static str = text("side"),
        /// Bytes that this program moved or shared.
        copied_bytes: u64 = bytes("copied"),
        /// Bytes that the kernel charged to this process.
        charged_bytes: Option<u64> = bytes("charged"),
        /// Bytes that the devices moved, for all processes.
        device_bytes: Option<u64> = bytes("device"),
    }
}

rows! {
    /// The page cache before and after the copy.
    pub(super) struct CacheRow {
        /// Before or after the copy.
        when: &'static str = text("page cache"),
        /// Bytes of the sources and targets in it.
        cached_bytes: Option<u64> = bytes("sources and targets"),
    }
}

rows! {
    /// Rounds of this program and another in turn.
    pub(super) struct RoundRow {
        /// `blockstone` or what it is compared with, in the order of the rounds.
        program: String = text("program").answer(),
        /// Until all is durable.
        time_ns: f64 = time("time").answer(),
        /// Processor time, in the kernel too.
        cpu_ns: f64 = time("CPU").answer(),
        /// Sizes of the files that were made.
        bytes: u64 = level("made", Measure::Bytes),
        /// Sources and target in the page cache, before.
        files_before_bytes: Option<u64> = bytes("files before"),
        /// Sources and target in the page cache, after.
        files_after_bytes: Option<u64> = bytes("files after"),
        /// All files of the machine in the page cache, before.
        all_before_bytes: Option<u64> = bytes("all before"),
        /// All files of the machine in the page cache, after.
        all_after_bytes: Option<u64> = bytes("all after"),
    }
}

rows! {
    /// The database of --db without a copy and during each round.
    pub(super) struct DatabaseRow {
        /// `alone`, then the programs in the order of the rounds.
        r#while: String = text("while"),
        /// Commits a second; unknown for rounds shorter than 3 s.
        commits_per_s: Option<f64> = count("commits/s"),
        /// Blocks read from storage a second.
        physical_reads_per_s: Option<f64> = count("reads/s"),
        /// Mean time of a read.
        read_latency_ns_mean: Option<f64> = time("read"),
        /// Mean time of a commit.
        commit_latency_ns_mean: Option<f64> = time("commit"),
    }
}

impl Summary {
    pub fn of(ran: &Ran) -> Self {
        let (outcome, cost) = (&ran.outcome, &ran.cost);
        let sum = |of: fn(&Copied) -> u64| outcome.files.iter().map(|file| of(&file.copied)).sum();
        Self {
            files: outcome.files.len() as u64,
            bytes: sum(|copied| copied.bytes),
            data_bytes: sum(|copied| copied.data_bytes),
            time_ns: (cost.seconds * SECOND_NS).round(),
            cpu_ns: (cost.cpu_seconds * SECOND_NS).round(),
            method: happened(method(outcome)),
            verified: verified(outcome).ok_or(Missing::Off),
            page_cache_bytes_before: ran.page_cache_before,
            page_cache_bytes_after: ran.page_cache_after,
            resumed_bytes: sum(|copied| copied.resumed_bytes),
            again_bytes: sum(|copied| copied.again_bytes),
            kept_files: outcome.kept_files,
            kept_bytes: outcome.kept_bytes,
            directories: outcome.directories,
            links: outcome.links,
            hard_links: outcome.hard_links,
            specials: outcome.specials,
            charged_read_bytes: cost.charged_read_bytes,
            charged_write_bytes: cost.charged_write_bytes,
            device_read_bytes: cost.device_read_bytes,
            device_write_bytes: cost.device_write_bytes,
        }
    }
}

impl FileRow {
    pub fn of(file: &CopiedFile) -> Self {
        let copied = &file.copied;
        let verified = match &copied.verified {
            Verified::NotAsked => Value::default(),
            Verified::Equal { medium_bytes, .. } => {
                format!("{} from the medium", Bytes(*medium_bytes)).into()
            }
            Verified::Unproven { why } => format!("not proven: {why}").into(),
            Verified::NotCompared => "not compared: its bytes were not read".into(),
        };
        Self {
            file: shown(&file.target),
            bytes: copied.bytes,
            data_bytes: copied.data_bytes,
            method: name(copied.method),
            time_ns: happened(file.seconds.map(|seconds| seconds * SECOND_NS)),
            resumed_bytes: happened((copied.resumed_bytes > 0).then_some(copied.resumed_bytes)),
            verified,
        }
    }
}

impl ReasonRow {
    pub fn of(ran: &Ran) -> impl Iterator<Item = Self> {
        let reasons = words::reasons(&ran.outcome).into_iter();
        reasons.map(|((method, why), files)| Self { method: name(method), files, why: why.into() })
    }
}

impl RoundRow {
    pub fn of(round: &Round, program: &str) -> Self {
        let [files_before_bytes, files_after_bytes] = round.files_cached_bytes;
        let [all_before_bytes, all_after_bytes] = round.all_cached_bytes;
        Self {
            program: program.to_owned(),
            time_ns: (round.seconds * SECOND_NS).round(),
            cpu_ns: (round.cpu_seconds * SECOND_NS).round(),
            bytes: round.bytes,
            files_before_bytes,
            files_after_bytes,
            all_before_bytes,
            all_after_bytes,
        }
    }
}

impl DatabaseRow {
    pub fn of(what: &str, got: &Got) -> Self {
        Self {
            r#while: what.to_owned(),
            commits_per_s: got.commits_per_s,
            physical_reads_per_s: got.physical_reads_per_s,
            read_latency_ns_mean: got.read_latency_ns_mean,
            commit_latency_ns_mean: got.commit_latency_ns_mean,
        }
    }
}
