//! Keys of the JSON document of `copy`; schema, version and tables are the renderer's.

use blockstone_base::text::shown;
use blockstone_base::verdict::Verdict;
use blockstone_copy::against::Round;
use blockstone_record::manifest::End;
use schemars::JsonSchema;
use serde::Serialize;

use super::Ran;
use super::beside::{Against, Got};
use super::words::{method, name, program, reasons, verified};

#[derive(Serialize, JsonSchema)]
pub struct CopyDocument<'a> {
    tool_version: &'static str,
    /// Regular files that were copied.
    files: u64,
    /// Of these files, holes included.
    bytes: u64,
    /// Bytes that were moved or shared; holes are not among them.
    data_bytes: u64,
    seconds: f64,
    /// Processor time of this process, in the kernel too.
    cpu_seconds: f64,
    /// `reflink`, `server`, `direct`, `dontcache`, `buffered` or `mixed`; null where no file was
    /// copied.
    method: Option<&'static str>,
    /// Why files were copied by these methods, and by none that is cheaper.
    reasons: Vec<ReasonKeys<'a>>,
    /// Whether every target was read again from its medium and is equal. False: equal, but nothing
    /// shows that it came from the medium; or not compared, because no bytes were read (`reflink`,
    /// `server`). Null: not asked for.
    verified: Option<bool>,
    /// Bytes of the sources and targets in the page cache; null where the kernel does not tell.
    page_cache_bytes_before: Option<u64>,
    page_cache_bytes_after: Option<u64>,
    /// Bytes that an interrupted copy had moved, and that were kept.
    resumed_bytes: u64,
    /// Bytes that an interrupted copy had moved, and that were moved again.
    again_bytes: u64,
    /// Files, links and pipes that an earlier copy had completed.
    kept_files: u64,
    kept_bytes: u64,
    directories: u64,
    links: u64,
    /// Further names of files that were copied.
    hard_links: u64,
    /// Named pipes and devices that were made.
    specials: u64,
    /// Charged by the kernel to this process as read from storage.
    charged_read_bytes: Option<u64>,
    charged_write_bytes: Option<u64>,
    /// Read from the devices of the sources, by all processes.
    device_read_bytes: Option<u64>,
    /// Written to the device of the target, by all processes.
    device_write_bytes: Option<u64>,
    end: &'a End,
    /// What could not be copied.
    failed: Vec<FailedKeys>,
    /// What targets could not be given.
    not_carried: Vec<NoteKeys>,
    /// Rounds of this program and another in turn; empty without --against.
    against: Vec<RoundKeys>,
    /// What the database of --db got before the first round.
    database_alone: Option<Got>,
    verdicts: &'a [Verdict],
}

#[derive(Serialize, JsonSchema)]
struct ReasonKeys<'a> {
    method: &'static str,
    /// How many files it is the reason of.
    files: u64,
    why: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct FailedKeys {
    path: String,
    error: String,
}

#[derive(Serialize, JsonSchema)]
struct NoteKeys {
    /// `owner`, `times`, `access list`, `extended attribute` …
    what: &'static str,
    files: u64,
    first: String,
    why: String,
}

#[derive(Serialize, JsonSchema)]
struct RoundKeys {
    /// `blockstone` or `cp`.
    program: &'static str,
    seconds: f64,
    cpu_seconds: f64,
    /// Of the sources and the target.
    page_cache_bytes_before: Option<u64>,
    page_cache_bytes_after: Option<u64>,
    /// Of all files of the machine.
    all_page_cache_bytes_before: Option<u64>,
    all_page_cache_bytes_after: Option<u64>,
    /// What the database of --db got meanwhile.
    database: Option<Got>,
}

pub fn document<'a>(
    ran: &'a Ran,
    compared: &Against,
    verdicts: &'a [Verdict],
    tool_version: &'static str,
) -> CopyDocument<'a> {
    let (outcome, cost) = (&ran.outcome, &ran.cost);
    let sum = |of: fn(&blockstone_copy::file::Copied) -> u64| -> u64 {
        outcome.files.iter().map(|file| of(&file.copied)).sum()
    };
    CopyDocument {
        tool_version,
        files: outcome.files.len() as u64,
        bytes: sum(|copied| copied.bytes),
        data_bytes: sum(|copied| copied.data_bytes),
        seconds: cost.seconds,
        cpu_seconds: cost.cpu_seconds,
        method: method(outcome),
        reasons: reasons(outcome)
            .into_iter()
            .map(|((method, why), files)| ReasonKeys { method: name(method), files, why })
            .collect(),
        verified: verified(outcome),
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
        end: &ran.end,
        failed: outcome
            .failed
            .iter()
            .map(|it| FailedKeys { path: shown(&it.path), error: it.error.to_string() })
            .collect(),
        not_carried: outcome
            .notes
            .iter()
            .map(|note| NoteKeys {
                what: note.lack.name(),
                files: note.count,
                first: shown(&note.first),
                why: note.why.clone(),
            })
            .collect(),
        against: compared.rounds.iter().map(round).collect(),
        database_alone: compared.alone,
        verdicts,
    }
}

fn round((round, got): &(Round, Option<Got>)) -> RoundKeys {
    RoundKeys {
        program: program(round.tool),
        seconds: round.seconds,
        cpu_seconds: round.cpu_seconds,
        page_cache_bytes_before: round.files_cached_bytes[0],
        page_cache_bytes_after: round.files_cached_bytes[1],
        all_page_cache_bytes_before: round.all_cached_bytes[0],
        all_page_cache_bytes_after: round.all_cached_bytes[1],
        database: *got,
    }
}
