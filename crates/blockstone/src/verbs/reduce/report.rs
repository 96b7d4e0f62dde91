//! The report of `reduce`: how far an array would shrink files, what prevents it, where copies are.

mod charts;
mod maps;
mod strips;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod words;

use blockstone_base::table::{Rows as _, Table};
use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_record::manifest::End;
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{Class, CompressionFigures, Findings, GridFigures};
use blockstone_reduce::scanned::Scanned;
use blockstone_report::chart::Chart;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Block, Card, Detail, Headline, Report, Section, Tone};
use blockstone_report::{block_size, percent, to_one};

use super::rows::{
    ClassRow, CompressionRow, FieldRow, FileRow, FreeRow, GridRow, MaskedRow, OccurrenceRow,
    RunRow, SharedRow, ShiftRow, SkippedRow, StripRow, Summary,
};

/// Maximum number of shifted copies that the terminal names.
const SHIFTS_MAX: usize = 3;
/// Maximum number of files with a problem that are named.
const NAMED_MAX: usize = 4;
/// Maximum number of columns of a path that are shown.
const NAME_WIDTH: usize = 36;

pub const TABLES: Tables = &[
    ("grids", GridRow::COLUMNS),
    ("compression", CompressionRow::COLUMNS),
    ("classes", ClassRow::COLUMNS),
    ("masked", MaskedRow::COLUMNS),
    ("fields", FieldRow::COLUMNS),
    ("runs", RunRow::COLUMNS),
    ("shifts", ShiftRow::COLUMNS),
    ("strips", StripRow::COLUMNS),
    ("shared", SharedRow::COLUMNS),
    ("occurrences", OccurrenceRow::COLUMNS),
    ("files", FileRow::COLUMNS),
    ("free_space", FreeRow::COLUMNS),
    ("skipped", SkippedRow::COLUMNS),
];
/// Tables that show people, with columns for each offset and each step, what others have in rows.
pub const SHOWN: &[&str] = &["dedup", "steps"];

/// Reports a scan, which `signal` may have ended.
pub fn report(findings: &Findings, scanned: &Scanned, signal: Option<&str>) -> Report {
    let mut sections = on_screen(findings, scanned);
    sections.extend(on_page(findings, scanned));
    sections.retain(|section| !section.blocks.is_empty());
    let (headline, identity) = top(findings, scanned);
    Report {
        verb: "reduce".into(),
        version: 2,
        headline,
        identity,
        warnings: warnings(scanned),
        cards: cards(findings),
        sections,
        verdicts: findings.verdicts.clone(),
        end: End::by(signal),
        partial: !scanned.is_whole(),
        scalars: Some(Summary::table("reduce", "", [Summary::of(findings, scanned)])),
        shown_only: SHOWN,
        ..Report::default()
    }
}

/// Returns the ratio, its certainty, and what it covers. If the scan is incomplete, the same line
/// says so before the ratio, so that it is quoted with it.
fn top(findings: &Findings, scanned: &Scanned) -> (Headline, Vec<String>) {
    let (bytes, stored) = words::in_and_stored(findings);
    let is_partial = words::shortfall(scanned).is_some();
    let partial = if is_partial { "Partial scan: " } else { "" };
    let mut text = format!("{partial}{}", ratios(findings));
    if let Some(ratio) = findings.primary().reduction_ratio {
        text = format!("{text} ({})", words::certainty(&ratio));
    }
    let stored = stored.map_or_else(String::new, |stored| format!(" → {} stored", Bytes(stored)));
    let identity = vec![
        format!("{} in{stored} ({})", Bytes(bytes), words::model(findings)),
        format!("{}; {}", words::subject(scanned), effort(scanned)),
    ];
    let tone = if is_partial { Tone::Warning } else { Tone::Plain };
    (Headline { text, tone, ..Headline::default() }, identity)
}

/// States that deduplication × compression = reduction.
fn ratios(findings: &Findings) -> String {
    let grid = findings.primary();
    let Some(reduction) = grid.reduction_ratio else { return no_ratio(grid).to_owned() };
    let (dedup, compression) =
        (words::value(grid.dedup_ratio), words::value(grid.compression_ratio));
    let reduction = to_one(reduction.value);
    if findings.model.deduplicates {
        return format!("dedup {dedup} × compression {compression} = reduction {reduction}");
    }
    format!("compression {compression} = reduction {reduction}; dedup would be {dedup}")
}

/// Returns the reason that the reduction ratio is undefined.
fn no_ratio(grid: &GridFigures) -> &'static str {
    if grid.blocks == 0 {
        "No ratio: there is no block to count"
    } else if grid.blocks == grid.zero_blocks {
        "No ratio: nothing but zeros, which take no space"
    } else {
        "No ratio: nothing was compressed"
    }
}

/// States the time and resources of the scan.
fn effort(scanned: &Scanned) -> String {
    let way = if scanned.direct { "direct" } else { "buffered" };
    format!(
        "{} read {way} in {}, CPU {}, memory {}",
        Bytes(scanned.read_bytes),
        format_ns(scanned.elapsed_s * 1e9),
        format_ns(scanned.cpu_s * 1e9),
        Bytes(scanned.memory_bytes)
    )
}

/// Explains why the scan ended early, and which files the figures do not cover as they should;
/// these are named as long as they are few.
fn warnings(scanned: &Scanned) -> Vec<String> {
    let mut lines: Vec<String> =
        scanned.ended_by.iter().map(|why| format!("ended early: {why}")).collect();
    let mut say = |what: String, named: Vec<String>| {
        let more = named.len().saturating_sub(NAMED_MAX);
        let mut text = named.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join(", ");
        if more > 0 {
            text.extend([" … and ", &more.to_string(), " more"]);
        }
        lines.push(format!("{what}: {text}"));
    };
    let partial: Vec<String> = words::partial(scanned)
        .map(|file| format!("{} {}", file.path, words::state(&file.state)))
        .collect();
    if !partial.is_empty() {
        say(format!("{} not read whole", words::files(partial.len())), partial);
    }
    let skipped: Vec<String> =
        scanned.skipped.iter().map(|it| format!("{} ({})", it.path, it.why)).collect();
    if !skipped.is_empty() {
        say(format!("{} skipped", words::files(skipped.len())), skipped);
    }
    lines
}

fn cards(findings: &Findings) -> Vec<Card> {
    let grid = findings.primary();
    let (bytes, stored) = words::in_and_stored(findings);
    let card = |name: &'static str,
                title: &'static str,
                value: f64,
                unit: &'static str,
                source: String| {
        // The intervals of a scan are 99 % intervals, so they are given in words.
        Card::exact(name, title, value, unit).source(source)
    };
    let ratio = |name, title, ratio: Option<Interval>, note: String| {
        let ratio = ratio?;
        let certainty = format!("; {}", words::certainty(&ratio));
        let source = if ratio.is_exact() { note } else { note + &certainty };
        Some(card(name, title, ratio.value, ":1", source))
    };
    let product = if findings.model.deduplicates {
        "the product of both"
    } else {
        "the model does not deduplicate"
    };
    let [compressed, drawn] =
        [grid.contents_compressed as f64, grid.blocks_drawn as f64].map(three_digits);
    let blocks = "blocks ÷ different contents".to_owned();
    let contents = match grid.blocks_drawn {
        0 => format!("{compressed} contents compressed"),
        _ => format!("{drawn} blocks drawn and compressed"),
    };
    [
        ratio("dedup_ratio", "Deduplication", grid.dedup_ratio, blocks),
        ratio("compression_ratio", "Compression", grid.compression_ratio, contents),
        ratio("reduction_ratio", "Reduction", grid.reduction_ratio, product.to_owned()),
        stored.map(|stored| {
            let part = three_digits(stored as f64 / (bytes as f64).max(1.0) * 100.0);
            let source = format!("{part} % of {}", Bytes(bytes));
            card("stored_bytes", "Stored", stored as f64, "bytes", source)
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the sections that one screen has room for.
fn on_screen(findings: &Findings, scanned: &Scanned) -> Vec<Section> {
    let identical = strips::identical(findings, scanned);
    let shifts = shifts(findings, scanned).into_iter().map(Block::Text);
    vec![
        Section::new("dedup", "").with([tables::offsets(findings)]),
        Section::new("steps", "").with([tables::steps(findings)]).with([classes(findings)]),
        Section::new("headers", "").with([ladder(findings)]).with(field_costs(findings)),
        Section::new("usage", "").with(usage(findings)),
        Section::new("free", "").with(scanned.free.iter().flat_map(words::free)),
        Section::new("shifts", "").detail(Detail::Terminal).with(shifts),
        Section::new("places", "Where copies lie")
            .about(
                "Every file from its beginning to its end. Of the copies of one content, the \
                 first that was read is the unique one.",
            )
            .with([strips::cells(findings, scanned)]),
        Section::new("identical", "").with(identical),
    ]
}

fn usage(findings: &Findings) -> Vec<String> {
    let text = words::usage(findings).join("; ");
    // If there is a shifted copy, its verdict says so.
    let chunks = findings.chunk_ratio.filter(|_| findings.shifts.is_empty()).map(|chunks| {
        let block = block_size(findings.model.block_bytes.into());
        let blocks = words::value(findings.primary().dedup_ratio);
        let chunks = to_one(chunks);
        format!("content-defined chunks {chunks}, without zeros; blocks of {block} {blocks}")
    });
    [Some(text), chunks].into_iter().flatten().collect()
}

/// Lists how far classes of contents shrink, with the first compressor and where steps matter
/// least.
fn classes(findings: &Findings) -> String {
    let mut all = findings.compression.iter().filter(|figures| figures.class == Class::All);
    let Some(first) = all.next() else { return String::new() };
    let same = |figures: &&CompressionFigures| {
        figures.codec == first.codec
            && figures.granule_bytes == first.granule_bytes
            && figures.class != Class::All
    };
    let class = |figures: &CompressionFigures| {
        format!("{} {}", figures.class.name(), to_one(figures.ratio))
    };
    let classes: Vec<String> = findings.compression.iter().filter(same).map(class).collect();
    let contents = thousands(first.contents as i64);
    format!("{} of {contents} contents: {}", first.codec, classes.join(", "))
}

/// The sentence on the effect of header fields.
fn ladder(findings: &Findings) -> String {
    if findings.field_costs.is_empty() { String::new() } else { words::ladder(findings) }
}

/// The table behind that sentence, unless the fields have no effect, which the sentence says
/// already.
fn field_costs(findings: &Findings) -> Option<Table> {
    let plain = words::value(findings.primary().dedup_ratio);
    let costs = findings.field_costs.iter();
    let changes = costs.clone().any(|cost| to_one(cost.dedup_ratio_without.value) != plain);
    changes.then(|| tables::fields(findings))
}

fn shifts(findings: &Findings, scanned: &Scanned) -> Vec<String> {
    let shift = |shift: &blockstone_reduce::findings::Shift| {
        let displacement = &shift.displacement;
        format!(
            "shifted copy: {} of {} is {} {:+} bytes",
            percent(shift.part_of_copy),
            words::name(scanned, displacement.copy, NAME_WIDTH),
            words::name(scanned, displacement.original, NAME_WIDTH),
            displacement.shift_bytes
        )
    };
    let mut lines: Vec<String> = findings.shifts.iter().take(SHIFTS_MAX).map(shift).collect();
    let more = findings.shifts.len().saturating_sub(SHIFTS_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more shifted copies"));
    }
    lines
}

/// Returns the sections that are on the page only.
fn on_page(findings: &Findings, scanned: &Scanned) -> Vec<Section> {
    let chapter = |id: &'static str, heading: &'static str, charts: Vec<Chart>, tables: Vec<_>| {
        Section::page(id, heading).with(charts).with(tables)
    };
    let names = &words::all_names(scanned);
    let all_fields = field_costs(findings).is_none().then(|| tables::fields(findings));
    vec![
        chapter(
            "grids",
            "Block size and offset",
            vec![charts::dedup(findings), charts::kinds(findings)],
            vec![tables::grids(findings)],
        )
        .about(
            "The same bytes cut into blocks of several sizes, the first of each file beginning \
             at several offsets. An array sees one of these grids.",
        ),
        chapter(
            "compression",
            "Compression",
            charts::compression(findings).into(),
            vec![tables::compression(findings), tables::classes(findings)],
        )
        .about(
            "Contents of the model's blocks, each compressed on its own and stored in whole steps.",
        ),
        chapter(
            "fields",
            "What page headers cost",
            charts::fields(findings),
            all_fields.into_iter().chain([tables::masked(findings)]).collect(),
        )
        .about("Fields that differ although rows do not, set to zero one class after the other."),
        chapter(
            "copies",
            "Copies, file by file",
            maps::areas(findings, scanned),
            vec![
                tables::runs(findings, names),
                tables::shifts(findings, names),
                tables::strips(findings, names),
            ],
        ),
        chapter(
            "sharing",
            "Who shares what, and how often",
            maps::matrix(findings, scanned)
                .into_iter()
                .chain([charts::occurrences(findings)])
                .collect(),
            vec![tables::shared(findings, names), tables::occurrences(findings)],
        ),
        chapter(
            "files",
            "What was scanned",
            Vec::new(),
            vec![
                tables::files(findings, scanned, names),
                tables::free(scanned),
                tables::skipped(scanned),
            ],
        )
        .about(findings.model.about.clone()),
    ]
}
