//! The report of a copy.

use std::path::{Path, PathBuf};

use blockstone_base::row;
use blockstone_base::rule::judge;
use blockstone_base::table::{Heading, Row, Table, Value, bytes, count, happened, text, time};
use blockstone_base::text::shown;
use blockstone_base::units::{Bytes, counted, format_ns, three_digits};
use blockstone_copy::against::{Round, Tool};
use blockstone_copy::file::{Method, Verified};
use blockstone_copy::tree::{CopiedFile, Outcome};
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Section, Tone};

use super::Ran;
use super::beside::{Against, Got};
use super::document::document;
use super::rules::{self, CopyFindings};
use super::words::{self, method, name, program, verified};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const FILES: &[Heading] = &[
    text("file", "file", "The target."),
    bytes("bytes", "bytes", "Its size, holes included."),
    bytes("data_bytes", "data", "Bytes that were moved or shared."),
    text("method", "method", "How."),
    time("time_ns", "time", "Empty for one of several that were copied together."),
    bytes("resumed_bytes", "resumed", "Moved by an earlier copy that was interrupted."),
    text("verified", "verified", "Whether the target was read again and is equal."),
];

const EVIDENCE: &[Heading] = &[
    text("side", "side", "Reading the sources, or writing the target."),
    bytes("copied_bytes", "copied", "What this program moved or shared."),
    bytes("charged_bytes", "charged", "What the kernel charged to this process."),
    bytes("device_bytes", "device", "What the devices moved, for whomever."),
];

const CACHE: &[Heading] = &[
    text("when", "page cache", "Before or after the copy."),
    bytes("cached_bytes", "sources and targets", "Their bytes in the page cache."),
];

const AGAINST: &[Heading] = &[
    text("program", "program", "In the order of the rounds."),
    time("time_ns", "time", "Until all is durable."),
    time("cpu_ns", "CPU", "Processor time, in the kernel too."),
    bytes("files_before_bytes", "files before", "Sources and target in the page cache, before."),
    bytes("files_after_bytes", "files after", "Likewise, after."),
    bytes("all_before_bytes", "all before", "All files of the machine in the page cache, before."),
    bytes("all_after_bytes", "all after", "Likewise, after."),
];

const DATABASE: &[Heading] = &[
    text("while", "while", "Without a copy, then in the order of the rounds."),
    count("commits_per_s", "commits/s", "Commits a second; empty for rounds shorter than 3 s."),
    count("physical_reads_per_s", "reads/s", "Blocks read from storage a second."),
    time("read_latency_ns_mean", "read", "Mean time of a read."),
    time("commit_latency_ns_mean", "commit", "Mean time of a commit."),
];

pub const TABLES: &[(&str, &[Heading])] = &[
    ("files", FILES),
    ("evidence", EVIDENCE),
    ("page-cache", CACHE),
    ("against", AGAINST),
    ("database", DATABASE),
];

/// Files in the table; all of them are in the sums.
const ROWS: usize = 1000;
const SCREEN_ROWS: usize = 20;

pub fn report(ran: &Ran, (sources, target): (&[PathBuf], &Path), compared: &Against) -> Report {
    let verdicts = judge(
        rules::ALL,
        &CopyFindings {
            data_bytes: ran.outcome.files.iter().map(|file| file.copied.data_bytes).sum(),
            page_cache_bytes_before: ran.page_cache_before,
            page_cache_bytes_after: ran.page_cache_after,
        },
    );
    let named: Vec<String> = sources.iter().map(|source| shown(source)).collect();
    Report {
        verb: "copy".into(),
        version: 1,
        tool_version: VERSION.to_owned(),
        headline: Headline {
            subject: format!(
                "{} → {}",
                blockstone_report::short(&named.join(", "), 60),
                shown(target)
            ),
            text: headline(ran),
            tone: if ran.outcome.failed.is_empty() { Tone::Plain } else { Tone::Bad },
            ..Headline::default()
        },
        warnings: warnings(ran),
        sections: sections(ran, compared),
        notes: notes(&ran.outcome),
        document: json::keys(document(ran, compared, &verdicts, VERSION)),
        end: ran.end.clone(),
        verdicts,
        ..Report::default()
    }
}

pub fn headline(ran: &Ran) -> String {
    let outcome = &ran.outcome;
    let bytes: u64 = outcome.files.iter().map(|file| file.copied.bytes).sum();
    let data: u64 = outcome.files.iter().map(|file| file.copied.data_bytes).sum();
    let seconds = ran.cost.seconds;
    let mut parts = vec![format!(
        "{}, {} in {} ({} MB/s)",
        counted(outcome.files.len() as u64, "file"),
        Bytes(bytes),
        format_ns(seconds * 1e9),
        three_digits(data as f64 / 1e6 / seconds.max(1e-9)),
    )];
    if data < bytes {
        parts.push(format!("{} of them data", Bytes(data)));
    }
    parts.extend(method(outcome).map(str::to_owned));
    parts.push(format!("{} of CPU", format_ns(ran.cost.cpu_seconds * 1e9)));
    if let (Some(before), Some(after)) = (ran.page_cache_before, ran.page_cache_after) {
        parts.push(match after.checked_sub(before) {
            Some(0) => "page cache +0".to_owned(),
            Some(more) => format!("page cache +{}", Bytes(more)),
            None => format!("page cache −{}", Bytes(before - after)),
        });
    }
    match verified(outcome) {
        Some(true) => parts.push("verified from the medium".to_owned()),
        Some(false)
            if outcome.files.iter().any(|it| it.copied.verified == Verified::NotCompared) =>
        {
            parts.push("not verified: no bytes were read to compare".to_owned());
        }
        Some(false) => parts.push("equal, but not proven to be on the medium".to_owned()),
        None => {}
    }
    parts.join(", ")
}

fn warnings(ran: &Ran) -> Vec<String> {
    let failed = ran.outcome.failed.len() as u64;
    (failed > 0)
        .then(|| format!("{} could not be copied", counted(failed, "name")))
        .into_iter()
        .collect()
}

fn sections(ran: &Ran, compared: &Against) -> Vec<Section> {
    let outcome = &ran.outcome;
    let mut files = Table::new("files", "Files", FILES).on_screen(SCREEN_ROWS);
    files = files.with(outcome.files.iter().take(ROWS).map(file));
    if let Some(more) = outcome.files.len().checked_sub(ROWS).filter(|&more| more > 0) {
        files.notes.push(format!("{more} more files are in the sums only."));
    }
    let mut sections = vec![
        Section::of("files", files),
        Section::new("method", "Why this way").with(reasons(outcome)),
        Section::of("evidence", evidence(ran)),
        Section::of("page-cache", page_cache(ran)),
    ];
    if !compared.rounds.is_empty() {
        sections.push(against(&compared.rounds));
    }
    if let Some(alone) = &compared.alone {
        sections.push(database(alone, &compared.rounds));
    }
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

fn file(file: &CopiedFile) -> Row {
    let copied = &file.copied;
    let verified = match &copied.verified {
        Verified::NotAsked => Value::default(),
        Verified::Equal { medium_bytes, .. } => {
            format!("{} from the medium", Bytes(*medium_bytes)).into()
        }
        Verified::Unproven { why } => format!("not proven: {why}").into(),
        Verified::NotCompared => "not compared: its bytes were not read".into(),
    };
    let time_ns = file.seconds.map(|seconds| seconds * 1e9);
    row![
        shown(&file.target),
        copied.bytes,
        copied.data_bytes,
        name(copied.method),
        happened(time_ns),
        happened((copied.resumed_bytes > 0).then_some(copied.resumed_bytes)),
        verified
    ]
}

/// Each way that was taken, why, and by how many files.
fn reasons(outcome: &Outcome) -> Vec<String> {
    let line = |((method, why), count): ((Method, &str), u64)| {
        format!("{}, {}: {why}", name(method), counted(count, "file"))
    };
    words::reasons(outcome).into_iter().take(SCREEN_ROWS).map(line).collect()
}

fn evidence(ran: &Ran) -> Table {
    let data: u64 = ran.outcome.files.iter().map(|file| file.copied.data_bytes).sum();
    let cost = &ran.cost;
    let again = |verified: &Verified| match verified {
        Verified::Equal { read_bytes, .. } => *read_bytes,
        _ => 0,
    };
    let copied = ran.outcome.files.iter().map(|file| again(&file.copied.verified));
    let kept = || ran.outcome.kept.iter().map(|file| &file.kept);
    let again: u64 = copied.chain(kept().map(|kept| again(&kept.verified))).sum();
    let hashed = kept().flat_map(|kept| &kept.chunks).map(|chunk| u64::from(chunk.len_bytes));
    let hashed: u64 = hashed.sum();
    let mut table = Table::new("evidence", "Bytes copied, charged and moved", EVIDENCE).with([
        row!["read", data, cost.charged_read_bytes, cost.device_read_bytes],
        row!["written", data, cost.charged_write_bytes, cost.device_write_bytes],
    ]);
    if again > 0 {
        table.notes.push(format!(
            "What was charged and moved by reads includes {} of the target, to verify it.",
            Bytes(again)
        ));
    }
    if hashed > 0 {
        table.notes.push(format!(
            "What was charged and moved by reads includes {} of sources whose targets were kept.",
            Bytes(hashed)
        ));
    }
    table
}

fn page_cache(ran: &Ran) -> Table {
    Table::new("page-cache", "Page cache", CACHE)
        .with([row!["before", ran.page_cache_before], row!["after", ran.page_cache_after]])
}

fn against(rounds: &[(Round, Option<Got>)]) -> Section {
    let mut table = Table::new("against", "In turn with cp", AGAINST);
    for (round, _) in rounds {
        table.push(row![
            program(round.tool),
            round.seconds * 1e9,
            round.cpu_seconds * 1e9,
            round.files_cached_bytes[0],
            round.files_cached_bytes[1],
            round.all_cached_bytes[0],
            round.all_cached_bytes[1]
        ]);
    }
    let ratio = |of: fn(&Round) -> f64| {
        let rounds = || rounds.iter().map(|(round, _)| round);
        let sum = |tool| -> f64 { rounds().filter(|it| it.tool == tool).map(of).sum() };
        sum(Tool::Ours) / sum(Tool::Cp)
    };
    table.notes.push(format!(
        "blockstone ÷ cp: {}× the time, {}× the CPU. cp is timed with an fsync(2) of each file, as \
         ours is.",
        three_digits(ratio(|round| round.seconds)),
        three_digits(ratio(|round| round.cpu_seconds)),
    ));
    Section::of("against", table)
}

/// What a database got without a copy and during each round.
fn database(alone: &Got, rounds: &[(Round, Option<Got>)]) -> Section {
    let row = |what, got: &Got| {
        row![
            what,
            got.commits_per_s,
            got.physical_reads_per_s,
            got.read_latency_ns_mean,
            got.commit_latency_ns_mean
        ]
    };
    let mut table = Table::new("database", "The database meanwhile", DATABASE);
    table.push(row("alone", alone));
    for (round, got) in rounds {
        table.push(row(program(round.tool), &got.unwrap_or_default()));
    }
    Section::of("database", table)
}

/// What else was made, and what could not be carried.
fn notes(outcome: &Outcome) -> Vec<String> {
    let made = [
        (outcome.directories, "directory", "directories"),
        (outcome.links, "symbolic link", "symbolic links"),
        (outcome.hard_links, "hard link", "hard links"),
        (outcome.specials, "pipe or device", "pipes and devices"),
    ];
    let made: Vec<String> = made
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, several)| format!("{count} {}", if *count == 1 { one } else { several }))
        .collect();
    let mut notes = Vec::new();
    if !made.is_empty() {
        notes.push(format!("Also copied: {}.", made.join(", ")));
    }
    if outcome.kept_files > 0 {
        let (kept, bytes) = (counted(outcome.kept_files, "name"), Bytes(outcome.kept_bytes));
        notes.push(format!("Complete from an earlier copy: {kept}, {bytes}."));
    }
    for note in &outcome.notes {
        let (what, of, first) = (note.lack.name(), counted(note.count, "name"), shown(&note.first));
        notes.push(format!("Not carried: {what} of {of}, first {first}: {}.", note.why));
    }
    notes
}
