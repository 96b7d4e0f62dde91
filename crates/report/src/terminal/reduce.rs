//! What `reduce` found: one screen.

mod strips;

use blockstone_base::units::{Bytes, format_ns, thousands};
use blockstone_reduce::findings::{Class, CompressionFigures, Findings, GridFigures};
use blockstone_reduce::scanned::Scanned;

use crate::format::{block_size, percent, short};
use crate::reduce;

use super::Style;
use crate::render::terminal::columns::{Columns, visible_width, wrap};

/// Offsets that a line has room for.
const OFFSETS_MAX: usize = 4;
/// Shifted copies that are named.
const SHIFTS_MAX: usize = 3;
/// Files that are named where something is wrong with them.
const NAMED_MAX: usize = 4;
/// Of a path, so many columns.
const NAME_WIDTH: usize = 36;

/// A scan: the headline, its grids, what stands in the way, and the verdicts.
pub fn text(findings: &Findings, scanned: &Scanned, style: &Style) -> String {
    super::screen(vec![
        headline(findings, scanned, style),
        grids(findings, style),
        compression(findings, style),
        fields(findings, style),
        [usage(findings, style), shifts(findings, scanned, style)].concat(),
        strips::lines(findings, scanned, style),
        [
            troubles(scanned, style),
            crate::render::terminal::verdict_lines(&findings.verdicts, 0, style),
        ]
        .concat(),
    ])
}

/// The ratio, how sure it is, and what it is of. That the scan lacks something stands before it in
/// the same line, so that nobody quotes the one without the other.
fn headline(findings: &Findings, scanned: &Scanned, style: &Style) -> Vec<String> {
    let grid = findings.primary();
    let (bytes, stored) = reduce::in_and_stored(findings);
    let shortfall = reduce::shortfall(scanned);
    let partial = if shortfall.is_some() { "Partial scan: " } else { "" };
    let emphasised = |line: &String| match shortfall {
        Some(_) => style.warning(line),
        None => style.bold(line),
    };
    let mut first = format!("{partial}{}", ratios(findings));
    let mut second = String::new();
    if let Some(certainty) = grid.reduction_ratio.map(|ratio| reduce::certainty(&ratio)) {
        // It is not torn apart: where it does not fit, it begins the next line.
        let together = format!("{first} ({certainty})");
        if visible_width(&together) <= style.width {
            first = together;
        } else {
            second = format!("{certainty}; ");
        }
    }
    let mut lines: Vec<String> = wrap(&first, style.width, 0, 2).iter().map(emphasised).collect();
    let stored = stored.map_or_else(String::new, |stored| format!(" → {} stored", Bytes(stored)));
    let by_model = format!("{second}{} in{stored} ({})", Bytes(bytes), reduce::model(findings));
    lines.extend(wrap(&by_model, style.width, 2, 4));
    let scan = format!("{}; {}", reduce::subject(scanned), effort(scanned));
    lines.extend(wrap(&scan, style.width, 2, 4).iter().map(|line| style.dim(line)));
    let ended = scanned.ended_by.iter();
    lines.extend(ended.flat_map(|why| wrap(&format!("ended early: {why}"), style.width, 2, 4)));
    lines
}

/// Deduplication × compression = reduction.
fn ratios(findings: &Findings) -> String {
    let grid = findings.primary();
    let Some(reduction) = grid.reduction_ratio else { return no_ratio(grid).to_owned() };
    let (dedup, compression) =
        (reduce::value(grid.dedup_ratio), reduce::value(grid.compression_ratio));
    let reduction = reduce::ratio(reduction.value);
    if findings.model.deduplicates {
        return format!("dedup {dedup} × compression {compression} = reduction {reduction}");
    }
    format!("compression {compression} = reduction {reduction}; dedup would be {dedup}")
}

/// Why there is no ratio.
fn no_ratio(grid: &GridFigures) -> &'static str {
    if grid.blocks == 0 {
        "No ratio: there is not a block to count"
    } else if grid.blocks == grid.zero_blocks {
        "No ratio: nothing but zeros, which take nothing"
    } else {
        "No ratio: nothing was compressed"
    }
}

/// What the scan took.
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

/// Deduplication by block size and offset; the kinds of blocks at the smallest offset.
fn grids(findings: &Findings, style: &Style) -> Vec<String> {
    let mut offsets: Vec<u32> = findings.grids.iter().map(|g| g.grid.offset_bytes).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let more = offsets.len().saturating_sub(OFFSETS_MAX);
    offsets.truncate(OFFSETS_MAX);
    let mut columns = Columns::new(2);
    let mut heads = vec!["block".to_owned()];
    heads.extend(offsets.iter().map(|&offset| format!("at {}", block_size(offset.into()))));
    heads.extend(["zero", "unique", "same-file", "cross-file", "99 %"].map(str::to_owned));
    columns.numbers(heads.iter().map(|head| style.dim(head)).collect());
    let rows = findings.grids.chunk_by(|a, b| a.grid.block_bytes == b.grid.block_bytes);
    for row in rows {
        let Some(first) = row.first() else { continue };
        let mut cells = vec![block_size(first.grid.block_bytes.into())];
        for &offset in &offsets {
            let found = row.iter().find(|figures| figures.grid.offset_bytes == offset);
            let ratio = reduce::value(found.and_then(|figures| figures.dedup_ratio));
            let is_primary = found.is_some_and(|f| f.grid == findings.primary().grid);
            cells.push(if is_primary { style.bold(&ratio) } else { ratio });
        }
        cells.extend(reduce::parts(first).map(percent));
        let interval = first.dedup_ratio.filter(|ratio| !ratio.is_exact());
        cells.push(interval.map_or_else(String::new, |i| format!("{:.2}–{:.2}", i.low, i.high)));
        columns.numbers(cells);
    }
    let about = match offsets.first() {
        Some(&first) if offsets.len() > 1 => {
            let first = block_size(first.into());
            let more = if more > 0 { format!(", {more} more not shown") } else { String::new() };
            format!("dedup by block size and offset{more}; kinds of blocks at offset {first}")
        }
        _ => "dedup by block size, and kinds of blocks".to_owned(),
    };
    let mut lines = vec![about];
    // Where everything was counted, the heading of the intervals heads nothing.
    let sampled = findings.grids.iter().any(|g| g.dedup_ratio.is_some_and(|r| !r.is_exact()));
    lines.extend(columns.lines().into_iter().map(|line| {
        let plain = style.dim("99 %");
        match line.strip_suffix(&plain) {
            Some(rest) if !sampled => rest.trim_end().to_owned(),
            _ => line,
        }
    }));
    lines
}

/// Compression of the model's blocks: compressors by steps of allocation, then by class.
fn compression(findings: &Findings, style: &Style) -> Vec<String> {
    let all: Vec<&CompressionFigures> =
        findings.compression.iter().filter(|figures| figures.class == Class::All).collect();
    let Some(first) = all.first() else { return Vec::new() };
    let mut granules: Vec<u32> = all.iter().map(|figures| figures.granule_bytes).collect();
    granules.sort_unstable();
    granules.dedup();
    let block = block_size(findings.model.block_bytes.into());
    let mut columns = Columns::new(2);
    let mut heads = vec![format!("{block} in steps of")];
    heads.extend(granules.iter().map(|&granule| Bytes(granule.into()).to_string()));
    columns.numbers(heads.iter().map(|head| style.dim(head)).collect());
    for row in all.chunk_by(|a, b| a.codec == b.codec) {
        let codec = row[0].codec;
        let ratio = |granule: u32| {
            let found = row.iter().find(|figures| figures.granule_bytes == granule);
            found.map_or_else(|| "–".to_owned(), |figures| reduce::ratio(figures.ratio))
        };
        let mut cells = vec![codec.to_string()];
        cells.extend(granules.iter().map(|&granule| ratio(granule)));
        columns.numbers(cells);
    }
    let mut lines = columns.lines();
    lines.extend(wrap(&classes(findings, first), style.width, 2, 4));
    lines
}

/// What classes of contents shrink by, behind the first compressor and where steps matter least.
fn classes(findings: &Findings, first: &CompressionFigures) -> String {
    let same = |figures: &&CompressionFigures| {
        figures.codec == first.codec
            && figures.granule_bytes == first.granule_bytes
            && figures.class != Class::All
    };
    let class = |figures: &CompressionFigures| {
        format!("{} {}", figures.class.name(), reduce::ratio(figures.ratio))
    };
    let classes: Vec<String> = findings.compression.iter().filter(same).map(class).collect();
    let contents = thousands(first.contents as i64);
    format!("{} of {contents} contents: {}", first.codec, classes.join(", "))
}

/// What header fields cost: the sentence, then a row a class.
fn fields(findings: &Findings, style: &Style) -> Vec<String> {
    if findings.field_costs.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = wrap(&reduce::ladder(findings), style.width, 0, 2);
    let plain = reduce::value(findings.primary().dedup_ratio);
    if findings.field_costs.iter().all(|c| reduce::ratio(c.dedup_ratio_without.value) == plain) {
        // They cost nothing, which the sentence says already.
        return lines;
    }
    let mut columns = Columns::new(2);
    let heads = ["field", "without it and those above", "if it alone were left", "called"];
    let row = |cells: [String; 4]| {
        cells.into_iter().enumerate().map(|(i, cell)| (cell, i == 1 || i == 2)).collect()
    };
    columns.mixed(row(heads.map(|head| style.dim(head))));
    for cost in &findings.field_costs {
        columns.mixed(row([
            cost.field.name().to_owned(),
            reduce::ratio(cost.dedup_ratio_without.value),
            reduce::ratio(cost.dedup_ratio_only.value),
            style.dim(&short(&cost.called, style.width.saturating_sub(66).max(12))),
        ]));
    }
    lines.extend(columns.lines());
    lines
}

fn usage(findings: &Findings, style: &Style) -> Vec<String> {
    let text = reduce::usage(findings).join("; ");
    wrap(&text, style.width, 0, 2)
}

fn shifts(findings: &Findings, scanned: &Scanned, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for shift in findings.shifts.iter().take(SHIFTS_MAX) {
        let displacement = &shift.displacement;
        let text = format!(
            "shifted copy: {} of {} is {} {:+} bytes",
            percent(shift.part_of_copy),
            reduce::name(scanned, displacement.copy, NAME_WIDTH),
            reduce::name(scanned, displacement.original, NAME_WIDTH),
            displacement.shift_bytes
        );
        lines.extend(wrap(&text, style.width, 0, 2));
    }
    let more = findings.shifts.len().saturating_sub(SHIFTS_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more shifted copies"));
    }
    // With a shifted copy, its verdict says so.
    lines.extend(findings.chunk_ratio.filter(|_| findings.shifts.is_empty()).map(|chunks| {
        let block = block_size(findings.model.block_bytes.into());
        let blocks = reduce::value(findings.primary().dedup_ratio);
        style.dim(&format!(
            "chunks cut by content repeat {}, zeros left out; blocks of {block} {blocks}",
            reduce::ratio(chunks)
        ))
    }));
    lines
}

/// Files that are not in the figures as they should be, by name while they are few.
fn troubles(scanned: &Scanned, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |what: String, named: Vec<String>| {
        let more = named.len().saturating_sub(NAMED_MAX);
        let mut text = named.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join(", ");
        if more > 0 {
            text.extend([" … and ", &more.to_string(), " more"]);
        }
        let wrapped = wrap(&format!("{what}: {text}"), style.width, 0, 2);
        lines.extend(wrapped.iter().map(|line| style.warning(line)));
    };
    let partial: Vec<String> = reduce::partial(scanned)
        .map(|file| format!("{} {}", file.path, reduce::state(&file.state)))
        .collect();
    if !partial.is_empty() {
        say(format!("{} not read whole", reduce::files(partial.len())), partial);
    }
    let skipped: Vec<String> = scanned
        .skipped
        .iter()
        .map(|skipped| format!("{} ({})", skipped.path, skipped.why))
        .collect();
    if !skipped.is_empty() {
        say(format!("{} skipped", reduce::files(skipped.len())), skipped);
    }
    lines
}
