//! Short descriptions of a scan.

use std::collections::HashSet;

use blockstone_base::units::{Bytes, counted, thousands};
use blockstone_reduce::counter::Strip;
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{FieldCost, Findings, GridFigures, Occurrences};
use blockstone_reduce::grid::Grid;
use blockstone_reduce::page::{Field, Rows};
use blockstone_reduce::scanned::{FileState, FreeSpace, Scanned, ScannedFile};
use blockstone_reduce::sets::FileId;

use blockstone_report::{block_size, percent, to_one as ratio};

/// Name of a file that the scan does not list.
const UNKNOWN: &str = "?";

/// Describes what was scanned: the one file, or the number of files and their directory.
pub fn subject(scanned: &Scanned) -> String {
    match scanned.files.as_slice() {
        [] => "no files".to_owned(),
        [file] => file.path.clone(),
        files => {
            let count = thousands(files.len() as i64);
            match common_directory(scanned) {
                "" => format!("{count} files"),
                directory => format!("{directory}: {count} files"),
            }
        }
    }
}

/// Returns the bytes given to the model, and the bytes that it stores for them; `None` if unknown.
pub fn in_and_stored(findings: &Findings) -> (u64, Option<u64>) {
    let grid = findings.primary();
    let bytes = grid.blocks * u64::from(grid.grid.block_bytes);
    let only_zeros = grid.blocks > 0 && grid.blocks == grid.zero_blocks;
    let stored = match grid.reduction_ratio {
        Some(ratio) => Some((bytes as f64 / ratio.value).round() as u64),
        None if only_zeros && findings.model.zeros_are_free => Some(0),
        None => None,
    };
    (bytes, stored)
}

/// Formats a ratio that may be unknown.
pub fn value(interval: Option<Interval>) -> String {
    interval.map_or_else(|| "–".to_owned(), |interval| ratio(interval.value))
}

/// Describes the certainty of a figure: `counted exactly`, or `99 %: 3.95–4.05`.
pub fn certainty(interval: &Interval) -> String {
    if interval.is_exact() {
        return "counted exactly".to_owned();
    }
    format!("99 %: {:.2}–{:.2}", interval.low, interval.high)
}

/// Describes in a few words what the model does with a block.
pub fn model(findings: &Findings) -> String {
    let model = &findings.model;
    let block = block_size(model.block_bytes.into());
    let compression = match model.codec {
        Some(codec) => format!("{codec}, rounded up to {}", Bytes(model.granule_bytes.into())),
        None => "no compression".to_owned(),
    };
    let copies = if model.deduplicates { "" } else { ", no deduplication" };
    format!("{}: {block}, {compression}{copies}", model.name)
}

/// Explains in a few words why the figures are incomplete; `None` if they are not.
pub fn shortfall(scanned: &Scanned) -> Option<String> {
    if scanned.is_whole() {
        return None;
    }
    let mut parts: Vec<String> = scanned.ended_by.iter().cloned().collect();
    let partial = partial(scanned).count();
    if partial > 0 {
        parts.push(format!("{} only partly read", files(partial)));
    }
    if !scanned.skipped.is_empty() {
        parts.push(format!("{} skipped", thousands(scanned.skipped.len() as i64)));
    }
    Some(parts.join(", "))
}

/// Returns the files that the figures do not cover in full.
pub fn partial(scanned: &Scanned) -> impl Iterator<Item = &ScannedFile> {
    scanned.files.iter().filter(|file| file.state.is_partial())
}

/// Formats a number of files: `1 file`, `2 files`.
pub fn files(count: usize) -> String {
    counted(count as u64, "file")
}

pub fn state(state: &FileState) -> String {
    match state {
        FileState::Complete => "complete".to_owned(),
        FileState::Pending => "not read completely".to_owned(),
        FileState::Grew { bytes } => format!("grew by {}", Bytes(*bytes)),
        FileState::Shrank { bytes } => format!("shrank by {}", Bytes(*bytes)),
        FileState::Written => "written to during the scan".to_owned(),
        FileState::Unreadable { why } => format!("unreadable: {why}"),
    }
}

/// Returns the name of a file among the others: its path without the directory common to all, with
/// its beginning cut off if it is longer than `width`.
pub fn name(scanned: &Scanned, file: FileId, width: usize) -> String {
    let Some(file) = scanned.files.get(file as usize) else { return UNKNOWN.to_owned() };
    let rest = relative(&file.path, common_directory(scanned));
    let length = rest.chars().count();
    if length <= width {
        return rest.to_owned();
    }
    let tail: String = rest.chars().skip(length + 1 - width).collect();
    format!("…{tail}")
}

/// Returns a path without the directory that all have in common.
fn relative<'a>(path: &'a str, common: &str) -> &'a str {
    match common {
        "" => path,
        common => path.strip_prefix(common).unwrap_or(path).trim_start_matches('/'),
    }
}

/// Returns the names of all files in full. They differ: files of several machines may have the same
/// path.
pub fn all_names(scanned: &Scanned) -> Vec<String> {
    let common = common_directory(scanned);
    let mut taken = HashSet::new();
    let name = |(index, file): (usize, &ScannedFile)| {
        let name = relative(&file.path, common).to_owned();
        if taken.insert(name.clone()) { name } else { format!("{name} #{index}") }
    };
    scanned.files.iter().enumerate().map(name).collect()
}

/// Returns the name of a file among those of all.
pub fn of(names: &[String], file: FileId) -> String {
    names.get(file as usize).map_or(UNKNOWN, String::as_str).to_owned()
}

/// Returns the names of many files, for the axis of a chart.
pub fn names(scanned: &Scanned, files: impl Iterator<Item = FileId>, width: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let mut name = name(scanned, file, width);
        // An axis puts everything with the same name in one place.
        if names.contains(&name) {
            name = format!("{name} #{file}");
        }
        names.push(name);
    }
    names
}

/// Formats a grid: `8K`, or `8K, offset 512`.
pub fn grid(grid: Grid) -> String {
    let block = block_size(grid.block_bytes.into());
    match grid.offset_bytes {
        0 => block,
        offset => format!("{block}, offset {}", block_size(offset.into())),
    }
}

/// Formats a range as in `3–4`.
pub fn times(occurrences: &Occurrences) -> String {
    if occurrences.from == occurrences.to {
        return occurrences.from.to_string();
    }
    format!("{}–{}", occurrences.from, occurrences.to)
}

/// Returns the four kinds of blocks as shares of all: zero, unique, same-file, cross-file.
pub fn parts(figures: &GridFigures) -> [f64; 4] {
    let all = (figures.blocks as f64).max(1.0);
    [
        figures.zero_blocks as f64 / all,
        figures.unique_blocks.value / all,
        figures.same_file_duplicates / all,
        figures.cross_file_duplicates / all,
    ]
}

/// The names of [`parts`].
pub const PARTS: [&str; 4] = ["zero", "unique", "same-file duplicate", "cross-file duplicate"];

/// Returns the words for a class of fields in a sentence.
pub fn field(field: Field) -> &'static str {
    match field {
        Field::Lsn => "LSN",
        Field::Checksum => "checksum",
        Field::Address => "address",
        Field::Transaction => "transaction fields",
        Field::Flags => "flags",
    }
}

/// Describes the effect of masking one class after another:
/// `8K dedup 1.00:1; without LSN, checksum 1.00:1; without transaction fields too 4.00:1`.
pub fn ladder(findings: &Findings) -> String {
    let primary = findings.primary();
    let block = block_size(primary.grid.block_bytes.into());
    let mut sentence = format!("{block} dedup {}", value(primary.dedup_ratio));
    let without = |cost: &FieldCost| ratio(cost.dedup_ratio_without.value);
    // Consecutive classes that change nothing are named together.
    for (index, group) in findings.field_costs.chunk_by(|a, b| without(a) == without(b)).enumerate()
    {
        let fields: Vec<&str> = group.iter().map(|cost| field(cost.field)).collect();
        let too = if index > 0 { " too" } else { "" };
        let fields = fields.join(", ");
        sentence.extend(["; without ", &fields, too, " ", &without(&group[0])]);
    }
    sentence
}

/// Compares used and never-used blocks, and predicts the effect of loading data; empty if the
/// scan found no blocks.
pub fn usage(findings: &Findings) -> Vec<String> {
    let usage = &findings.usage;
    let all = usage.used_blocks + usage.zero_blocks + usage.formatted_blocks;
    if all <= 0.0 {
        return Vec::new();
    }
    let part = |blocks: f64| percent(blocks / all);
    let mut sentences = vec![format!(
        "{} of the blocks are zeros, {} formatted and empty, {} used",
        part(usage.zero_blocks),
        part(usage.formatted_blocks),
        part(usage.used_blocks)
    )];
    if let (Some(dedup), Some(compression), Some(both)) =
        (usage.used_dedup_ratio, usage.used_compression_ratio, usage.used_reduction_ratio())
    {
        let sampled = Some(certainty(&compression)).filter(|_| !compression.is_exact());
        let sampled = sampled.map_or_else(String::new, |sampled| format!(" ({sampled})"));
        sentences.push(format!(
            "these alone: dedup {} × compression {}{sampled} = {}",
            ratio(dedup),
            ratio(compression.value),
            ratio(both)
        ));
    }
    sentences.extend(loading(findings));
    sentences.extend(deleted(&usage.rows));
    sentences
}

/// Describes rows that are marked as deleted but are still there.
fn deleted(rows: &Rows) -> Option<String> {
    let all = rows.live_rows.saturating_add(rows.deleted_rows);
    let part = rows.deleted_rows as f64 / all.max(1) as f64;
    (rows.row_pages > 0).then(|| {
        format!(
            "{} of {} rows are marked deleted ({}); {} of {} pages with rows have no live one",
            thousands(rows.deleted_rows as i64),
            thousands(all as i64),
            percent(part),
            thousands(rows.deleted_pages as i64),
            thousands(rows.row_pages as i64)
        )
    })
}

/// Returns the first device of a file system that takes no discards.
pub fn without_discards(free: &FreeSpace) -> Option<&str> {
    let mut devices = free.discards.iter();
    devices.find(|device| device.max_bytes == 0).map(|device| device.device.as_str())
}

/// Describes the free space of a file system: what it holds, and whether discards get through.
pub fn free(free: &FreeSpace) -> Vec<String> {
    let bytes = free.free_bytes();
    let size = |share: f64| Bytes((share * bytes as f64).round() as u64);
    let holding = free.holding_share().map(|share| match (share.is_exact(), share.value) {
        (true, value) => format!("{} of them still hold data", size(value)),
        (false, value) => format!(
            "{} of them still hold data (99 %: {}–{})",
            size(value),
            size(share.low),
            size(share.high)
        ),
    });
    let holding = holding.unwrap_or_else(|| "no block could be read".to_owned());
    let discards = match (without_discards(free), free.discards.first()) {
        (Some(device), _) => format!("{device} takes no discards, so a trim changes nothing"),
        (None, None) => "whether its device takes discards is not known".to_owned(),
        (None, Some(_)) => {
            let granularity = free.discards.iter().map(|it| it.granularity_bytes).max();
            let steps = Bytes(granularity.unwrap_or_default());
            let how = if free.mounted_with_discard {
                "the file system discards what it frees".to_owned()
            } else {
                format!("`fstrim {}` would discard all free space", free.mount_point)
            };
            format!("its devices take discards, in steps of {steps}; {how}")
        }
    };
    let backing = free.backing_bytes.map(|(bytes, allocated)| {
        format!("the file of {} takes {} of {}", free.device, Bytes(allocated), Bytes(bytes))
    });
    let first =
        format!("{} ({}): {} are free; {holding}", free.mount_point, free.kind, Bytes(bytes));
    [Some(first), Some(discards), backing].into_iter().flatten().collect()
}

/// Predicts the ratio once every block is used as the used ones are.
fn loading(findings: &Findings) -> Option<String> {
    let full = findings.usage.bytes_when_full?;
    let after = findings.usage.used_reduction_ratio()?;
    let before = findings.primary().reduction_ratio?.value;
    let verb = match after / before {
        change if change < 0.995 => "fall",
        change if change > 1.005 => "rise",
        _ => return Some("loading more of the same data will not change the ratio".to_owned()),
    };
    Some(format!(
        "if all were used so, the ratio would {verb} from {} to {}: {} stored",
        ratio(before),
        ratio(after),
        Bytes(full as u64)
    ))
}

/// Returns the directory that all paths have in common.
pub fn directory(scanned: &Scanned) -> Option<&str> {
    Some(common_directory(scanned)).filter(|directory| !directory.is_empty())
}

/// Returns the same directory, or an empty text.
fn common_directory(scanned: &Scanned) -> &str {
    let mut paths = scanned.files.iter().map(|file| file.path.as_str());
    let Some(first) = paths.next() else { return "" };
    let mut common = first.rfind('/').unwrap_or(0);
    for path in paths {
        let holds =
            |end: usize| path.get(..end) == Some(&first[..end]) && path[end..].starts_with('/');
        while common > 0 && !holds(common) {
            common = first[..common].rfind('/').unwrap_or(0);
        }
    }
    &first[..common]
}

/// Returns the strips of the largest files, in the order in which they were read.
pub fn largest(strips: &[Strip], count: usize) -> Vec<&Strip> {
    let mut all: Vec<&Strip> = strips.iter().collect();
    all.sort_by_key(|strip| std::cmp::Reverse(strip.blocks));
    all.truncate(count);
    all.sort_by_key(|strip| strip.file);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(paths: &[&str]) -> Scanned {
        let file = |path: &&str| ScannedFile {
            path: (*path).to_owned(),
            bytes: 1,
            hole_bytes: 0,
            format: None,
            state: FileState::Complete,
        };
        Scanned { files: paths.iter().map(file).collect(), ..Scanned::default() }
    }

    #[test]
    fn names_lose_what_all_have_in_common_and_stay_apart() {
        let some = scanned(&["/d/base/1/2", "/d/base/12/2", "/d/base/1/3"]);
        assert_eq!(subject(&some), "/d/base: 3 files");
        assert_eq!(names(&some, 0..3, 9), ["1/2", "12/2", "1/3"]);
        assert_eq!(names(&some, 0..3, 2), ["…2", "…2 #1", "…3"]);
        assert_eq!(name(&some, 7, 9), "?");
        let one = scanned(&["/d/one"]);
        assert_eq!((subject(&one), name(&one, 0, 9)), ("/d/one".to_owned(), "one".to_owned()));
        assert_eq!(subject(&scanned(&["a", "/b"])), "2 files");
        assert_eq!(subject(&Scanned::default()), "no files");
        assert_eq!(all_names(&some), ["1/2", "12/2", "1/3"]);
        assert_eq!(all_names(&scanned(&["/d/a", "/d/a"])), ["a", "a #1"]);
        assert_eq!(all_names(&scanned(&["a", "/a"])), ["a", "/a"]);
    }

    #[test]
    fn ratios_have_two_digits_behind_the_point_and_say_how_sure_they_are() {
        assert_eq!((ratio(4.0), ratio(1234.5)), ("4.00:1".to_owned(), "1,235:1".to_owned()));
        assert_eq!(ratio(f64::INFINITY), "–");
        assert_eq!(certainty(&Interval::exact(2.0)), "counted exactly");
        let wide = Interval { value: 2.0, low: 1.9, high: 2.125, samples: 9 };
        assert_eq!(certainty(&wide), "99 %: 1.90–2.12");
    }
}
