//! The report of a copy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use blockstone_base::hint::Hint as _;
use blockstone_base::rule::judge;
use blockstone_base::table::{Rows as _, Table};
use blockstone_base::text::shown;
use blockstone_base::units::{Bytes, counted, format_ns, three_digits};
use blockstone_copy::against::{Round, Tool};
use blockstone_copy::file::Verified;
use blockstone_copy::tree::Outcome;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section, Tone};

use super::Ran;
use super::beside::{Against, Got};
use super::earlier;
use super::rows::{
    CacheRow, DatabaseRow, EvidenceRow, FailedRow, FileRow, NoteRow, ReasonRow, RoundRow, Summary,
};
use super::rules::{self, CopyFindings};
use super::words::{method, verified};

pub const TABLES: &[Tables] = &[&[
    ("files", FileRow::COLUMNS),
    ("reasons", ReasonRow::COLUMNS),
    ("failed", FailedRow::COLUMNS),
    ("not-carried", NoteRow::COLUMNS),
    ("evidence", EvidenceRow::COLUMNS),
    ("page-cache", CacheRow::COLUMNS),
    ("against", RoundRow::COLUMNS),
    ("database", DatabaseRow::COLUMNS),
]];

/// Files in the table; the sums include all of them.
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
        version: 2,
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
        scalars: Some(Summary::table("copy", "Copy", [Summary::of(ran)])),
        earlier: Some(earlier::keys),
        end: ran.end.clone(),
        is_undone: !ran.outcome.failed.is_empty(),
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
    let files = outcome.files.iter().take(ROWS).map(FileRow::of);
    let mut files = FileRow::table("files", "Files", files).on_screen(SCREEN_ROWS);
    if let Some(more) = outcome.files.len().checked_sub(ROWS).filter(|&more| more > 0) {
        files.notes.push(format!("{more} more files are in the sums only."));
    }
    let reasons = ReasonRow::table("reasons", "Why this way", ReasonRow::of(ran));
    let failed = outcome.failed.iter().map(|it| {
        let (path, error) = (shown(&it.path), it.error.told());
        FailedRow { path, error }
    });
    let failed = FailedRow::table("failed", "Not copied", failed);
    let notes = outcome.notes.iter().map(|note| {
        let (what, first, why) = (note.lack.name(), shown(&note.first), note.why.clone());
        NoteRow { what, files: note.count, first, why }
    });
    let notes = NoteRow::table("not-carried", "Not carried", notes);
    let few = |table: Table| table.on_screen(SCREEN_ROWS);
    let mut sections = vec![
        Section::of("files", files),
        Section::of("failed", few(failed)),
        Section::of("not-carried", few(notes)),
        Section::of("reasons", few(reasons)),
        Section::of("evidence", evidence(ran)),
        Section::of("page-cache", page_cache(ran)),
    ];
    if !compared.rounds.is_empty() {
        sections.push(against(compared));
    }
    if let Some(alone) = &compared.alone {
        sections.push(database(alone, compared));
    }
    sections.retain(|section| !section.blocks.is_empty());
    sections
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
    let row = |side, charged_bytes, device_bytes| EvidenceRow {
        side,
        copied_bytes: data,
        charged_bytes,
        device_bytes,
    };
    let rows = [
        row("read", cost.charged_read_bytes, cost.device_read_bytes),
        row("written", cost.charged_write_bytes, cost.device_write_bytes),
    ];
    let mut table = EvidenceRow::table("evidence", "Bytes copied, charged and moved", rows);
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
    let row = |when, cached_bytes| CacheRow { when, cached_bytes };
    let rows = [row("before", ran.page_cache_before), row("after", ran.page_cache_after)];
    CacheRow::table("page-cache", "Page cache", rows)
}

fn against(compared: &Against) -> Section {
    let rounds = || compared.rounds.iter().map(|(round, _)| round);
    let rows = rounds().map(|round| RoundRow::of(round, compared.program(round.tool)));
    let name = &compared.name;
    let mut table = RoundRow::table("against", "", rows);
    table.title = format!("In turn with {name}").into();
    let ratio = |of: fn(&Round) -> f64| {
        let sum = |tool| -> f64 { rounds().filter(|it| it.tool == tool).map(of).sum() };
        sum(Tool::Ours) / sum(Tool::Peer)
    };
    let sizes: BTreeSet<u64> = rounds().map(|round| round.bytes).collect();
    table.notes.push(if sizes.len() > 1 {
        format!("{name} did not make files of the same sizes, so nothing is compared.")
    } else {
        format!(
            "blockstone ÷ {name}: {}× the time, {}× the CPU. Both are timed with an fsync(2) of \
             each file.",
            three_digits(ratio(|round| round.seconds)),
            three_digits(ratio(|round| round.cpu_seconds)),
        )
    });
    table.notes.extend(compared.about.as_ref().map(|about| format!("{name}: {about}")));
    Section::of("against", table)
}

/// Shows the rates of a database without a copy and during each round.
fn database(alone: &Got, compared: &Against) -> Section {
    let alone = DatabaseRow::of("alone", alone);
    let during = compared.rounds.iter().map(|(round, got)| {
        DatabaseRow::of(compared.program(round.tool), &got.unwrap_or_default())
    });
    let rows = [alone].into_iter().chain(during);
    Section::of("database", DatabaseRow::table("database", "The database meanwhile", rows))
}

/// Notes on directories, links and special files, and on files kept from an earlier copy.
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
    notes
}
