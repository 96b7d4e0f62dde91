//! Locations of copies: a line of characters for each file, from its beginning to its end.

use blockstone_base::units::{Bytes, thousands};
use blockstone_reduce::counter::{Run, Strip, StripBin};
use blockstone_reduce::findings::Findings;
use blockstone_reduce::scanned::Scanned;
use blockstone_reduce::sets::FileId;

use blockstone_report::render::terminal::Style;
use blockstone_report::render::terminal::columns::Columns;

use super::words;

/// Number of files that get a line, the largest ones.
const FILES_MAX: usize = 10;
const CHARACTERS: usize = 60;
const NAME_WIDTH: usize = 24;

/// Characters for a part: each stands for the kind that most blocks of the part have.
const UNIQUE: char = '█';
const SAME_FILE: char = '=';
const CROSS_FILE: char = 'x';
const ZERO: char = '·';
/// A part none of whose contents was kept.
const NOTHING: char = ' ';

/// Lists the first few files that equal another one from some block on to their ends. Empty if only
/// a part of the contents is known.
pub fn identical(findings: &Findings, scanned: &Scanned) -> Vec<String> {
    if findings.grids[findings.primary].share < 1.0 {
        return Vec::new();
    }
    let block_bytes = u64::from(findings.model.block_bytes);
    let blocks = |file: FileId| {
        scanned.files.get(file as usize).map(|file| file.bytes.div_ceil(block_bytes))
    };
    let mut runs: Vec<&Run> = findings.runs.iter().collect();
    runs.retain(|run| {
        run.file != run.original
            && run.start == run.original_start
            && blocks(run.file) == Some(run.start + run.blocks)
            && blocks(run.file) == blocks(run.original)
    });
    runs.sort_by_key(|run| (run.original, run.file));
    let name = |file| words::name(scanned, file, NAME_WIDTH);
    let line = |run: &&Run| match run.start {
        0 => format!("files {} and {} are identical", name(run.original), name(run.file)),
        start => format!(
            "files {} and {} are identical from block {} on ({})",
            name(run.original),
            name(run.file),
            thousands(start as i64),
            Bytes(start * block_bytes)
        ),
    };
    let mut lines: Vec<String> = runs.iter().take(FILES_MAX).map(line).collect();
    let more = runs.len().saturating_sub(FILES_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

/// Returns the legend and the lines; empty if no file has blocks.
pub fn lines(findings: &Findings, scanned: &Scanned, style: &Style) -> Vec<String> {
    if findings.strips.is_empty() {
        return Vec::new();
    }
    let legend = format!(
        "along each file: {UNIQUE} unique, {SAME_FILE} same-file, {CROSS_FILE} \
         cross-file duplicate, {ZERO} zeros"
    );
    let mut lines = vec![style.dim(&legend)];
    let mut columns = Columns::new(2);
    let characters = CHARACTERS.min(style.width.saturating_sub(NAME_WIDTH + 4)).max(8);
    for strip in words::largest(&findings.strips, FILES_MAX) {
        let name = words::name(scanned, strip.file, NAME_WIDTH);
        columns.left(vec![name, drawn(strip, characters)]);
    }
    lines.extend(columns.lines());
    let more = scanned.files.len().saturating_sub(FILES_MAX.min(findings.strips.len()));
    if more > 0 {
        lines.push(style.dim(&format!("  … and {more} smaller ones")));
    }
    lines
}

fn drawn(strip: &Strip, characters: usize) -> String {
    let bins = strip.bins.len();
    let part = |index: usize| {
        let from = index * bins / characters;
        let to = ((index + 1) * bins / characters).max(from + 1).min(bins);
        strip.bins.get(from..to).unwrap_or_default()
    };
    (0..characters).map(|index| kind(part(index))).collect()
}

fn kind(bins: &[StripBin]) -> char {
    let sum = |count: fn(&StripBin) -> u32| bins.iter().map(|bin| u64::from(count(bin))).sum();
    let kinds: [(char, u64); 4] = [
        (ZERO, sum(|bin| bin.zero)),
        (CROSS_FILE, sum(|bin| bin.cross_file)),
        (SAME_FILE, sum(|bin| bin.same_file)),
        (UNIQUE, sum(|bin| bin.stored)),
    ];
    let most = kinds.into_iter().max_by_key(|&(_, blocks)| blocks);
    most.filter(|&(_, blocks)| blocks > 0).map_or(NOTHING, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_what_most_of_its_part_is() {
        let unique = StripBin { stored: 9, zero: 1, ..StripBin::default() };
        let copied = StripBin { cross_file: 8, same_file: 2, ..StripBin::default() };
        let empty = StripBin::default();
        let zero = StripBin { zero: 1, ..empty };
        let strip = |bins| Strip { file: 0, blocks: 40, bins };
        assert_eq!(drawn(&strip(vec![unique, copied, zero, empty]), 4), "█x· ");
        assert_eq!(drawn(&strip(vec![unique, copied]), 6), "███xxx");
        assert_eq!(drawn(&strip(vec![unique, unique, copied, zero, zero, zero]), 2), "█·");
    }
}
