//! Keys of the JSON document of `reduce`; schema, version and tables are the renderer's.

use blockstone_reduce::counter::{Run, Strip, StripBin};
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{
    CompressionFigures, FieldCost, Findings, GridFigures, MaskedRatio, Occurrences, Shift,
};
use blockstone_reduce::page::Field;
use blockstone_reduce::scanned::{FileState, Scanned, ScannedFile};
use serde_json::{Map, Value, json};

use super::words;

/// The document of a scan. Files are named once, under `files`; elsewhere a file is its place among
/// them.
pub fn document(findings: &Findings, scanned: &Scanned) -> Value {
    let (bytes, stored_bytes) = words::in_and_stored(findings);
    json!({
        "tool_version": env!("CARGO_PKG_VERSION"),
        "summary": with(grid(findings.primary()), [
            ("bytes", json!(bytes)),
            ("stored_bytes", json!(stored_bytes)),
            ("whole", json!(scanned.is_whole())),
        ]),
        "model": model(findings),
        "results": findings.grids.iter().map(grid).collect::<Vec<_>>(),
        "compression": findings.compression.iter().map(compression).collect::<Vec<_>>(),
        "masked": findings.masked.iter().map(masked).collect::<Vec<_>>(),
        "field_costs": findings.field_costs.iter().map(field_cost).collect::<Vec<_>>(),
        "usage": usage(findings),
        "block_sample": findings.block_sample.map(|sample| json!({
            "blocks": sample.blocks,
            "part": sample.part,
            "dedup_ratio": sample.dedup_ratio,
        })),
        "chunk_ratio": findings.chunk_ratio,
        "shifts": findings.shifts.iter().map(shift).collect::<Vec<_>>(),
        "matrix": matrix(findings),
        "occurrences": findings.occurrences.iter().map(occurrence).collect::<Vec<_>>(),
        "strips": findings.strips.iter().map(strip).collect::<Vec<_>>(),
        "runs": findings.runs.iter().map(|found| run(found, findings)).collect::<Vec<_>>(),
        "verdicts": findings.verdicts,
        "files": scanned.files.iter().map(file).collect::<Vec<_>>(),
        "skipped": scanned.skipped.iter()
            .map(|it| json!({ "path": it.path, "why": it.why, "matters": it.matters }))
            .collect::<Vec<_>>(),
        "scan": {
            "elapsed_s": scanned.elapsed_s,
            "cpu_s": scanned.cpu_s,
            "read_bytes": scanned.read_bytes,
            "memory_bytes": scanned.memory_bytes,
            "direct": scanned.direct,
            "ended_by": scanned.ended_by,
            "whole": scanned.is_whole(),
        },
    })
}

fn grid(figures: &GridFigures) -> Value {
    let base = json!({
        "block_size": figures.grid.block_bytes,
        "offset": figures.grid.offset_bytes,
        "blocks": figures.blocks,
        "zero_blocks": figures.zero_blocks,
        "unique_blocks": number(figures.unique_blocks.value),
        "unique_blocks_low": number(figures.unique_blocks.low),
        "unique_blocks_high": number(figures.unique_blocks.high),
        "same_file_duplicates": number(figures.same_file_duplicates),
        "cross_file_duplicates": number(figures.cross_file_duplicates),
        "share": figures.share,
        "contents_kept": figures.contents_kept,
        "contents_compressed": figures.contents_compressed,
        "exact": figures.share >= 1.0,
    });
    let ratios = [
        interval("dedup_ratio", figures.dedup_ratio),
        interval("compression_ratio", figures.compression_ratio),
        interval("reduction_ratio", figures.reduction_ratio),
    ];
    with(base, ratios.into_iter().flatten())
}

fn model(findings: &Findings) -> Value {
    let model = &findings.model;
    json!({
        "name": model.name,
        "about": model.about,
        "block_size": model.block_bytes,
        "codec": model.codec.map(|codec| codec.to_string()),
        "granule_bytes": model.granule_bytes,
        "smallest_bytes": model.smallest_bytes,
        "counted_below": model.counted_below,
        "deduplicates": model.deduplicates,
        "zeros_are_free": model.zeros_are_free,
    })
}

fn compression(figures: &CompressionFigures) -> Value {
    json!({
        "codec": figures.codec.to_string(),
        "granule_bytes": figures.granule_bytes,
        "class": figures.class,
        "contents": figures.contents,
        "ratio": figures.ratio,
    })
}

fn masked(masked: &MaskedRatio) -> Value {
    let base = json!({
        "block_size": masked.grid.block_bytes,
        "offset": masked.grid.offset_bytes,
        "masked": masked.mask.fields().map(Field::name).collect::<Vec<_>>(),
    });
    with(base, interval("dedup_ratio", Some(masked.dedup_ratio)))
}

fn field_cost(cost: &FieldCost) -> Value {
    let base = json!({ "field": cost.field.name(), "called": cost.called });
    let ratios = [
        interval("dedup_ratio_without", Some(cost.dedup_ratio_without)),
        interval("dedup_ratio_only", Some(cost.dedup_ratio_only)),
    ];
    with(base, ratios.into_iter().flatten())
}

fn usage(findings: &Findings) -> Value {
    let usage = &findings.usage;
    json!({
        "used_blocks": number(usage.used_blocks),
        "zero_blocks": number(usage.zero_blocks),
        "formatted_blocks": number(usage.formatted_blocks),
        "never_used_part": usage.never_used_part(),
        "used_dedup_ratio": usage.used_dedup_ratio,
        "used_compression_ratio": usage.used_compression_ratio,
        "used_reduction_ratio": usage.used_reduction_ratio(),
        "bytes_when_full": usage.bytes_when_full.map(|bytes| number(bytes.round())),
    })
}

fn shift(shift: &Shift) -> Value {
    json!({
        "original": shift.displacement.original,
        "copy": shift.displacement.copy,
        "shift_bytes": shift.displacement.shift_bytes,
        "bytes": shift.bytes,
        "part_of_copy": shift.part_of_copy,
    })
}

fn matrix(findings: &Findings) -> Value {
    let row = |row: &Vec<f64>| row.iter().map(|&contents| number(contents)).collect::<Vec<_>>();
    let matrix = &findings.matrix;
    json!({
        "files": matrix.files,
        "contents": matrix.contents.iter().map(row).collect::<Vec<_>>(),
    })
}

fn occurrence(occurrences: &Occurrences) -> Value {
    json!({
        "from": occurrences.from,
        "to": occurrences.to,
        "contents": number(occurrences.contents),
        "blocks": number(occurrences.blocks),
    })
}

fn strip(strip: &Strip) -> Value {
    let column = |count: fn(&StripBin) -> u32| strip.bins.iter().map(count).collect::<Vec<_>>();
    json!({
        "file": strip.file,
        "blocks": strip.blocks,
        "unique": column(|bin| bin.stored),
        "same_file": column(|bin| bin.same_file),
        "cross_file": column(|bin| bin.cross_file),
        "zero": column(|bin| bin.zero),
    })
}

fn run(run: &Run, findings: &Findings) -> Value {
    json!({
        "blocks": run.blocks,
        "bytes": run.blocks * u64::from(findings.model.block_bytes),
        "file": run.file,
        "start_block": run.start,
        "original": run.original,
        "original_start_block": run.original_start,
    })
}

fn file(file: &ScannedFile) -> Value {
    let (state, changed_bytes, why) = match &file.state {
        FileState::Complete => ("complete", None, None),
        FileState::Pending => ("pending", None, None),
        FileState::Grew { bytes } => ("grew", Some(*bytes as i64), None),
        FileState::Shrank { bytes } => ("shrank", Some(-(*bytes as i64)), None),
        FileState::Written => ("written", None, None),
        FileState::Unreadable { why } => ("unreadable", None, Some(why)),
    };
    json!({
        "path": file.path,
        "bytes": file.bytes,
        "hole_bytes": file.hole_bytes,
        "format": file.format,
        "state": state,
        "changed_bytes": changed_bytes,
        "why": why,
    })
}

/// A figure and both ends of its interval; all null where it is unknown.
fn interval(name: &str, interval: Option<Interval>) -> [(String, Value); 3] {
    [
        (name.to_owned(), json!(interval.map(|i| i.value))),
        (format!("{name}_low"), json!(interval.map(|i| i.low))),
        (format!("{name}_high"), json!(interval.map(|i| i.high))),
    ]
}

/// What was counted as a whole number, what was estimated as it is.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        return json!(value as u64);
    }
    json!(value)
}

/// An object with more members.
fn with<K: Into<String>>(base: Value, more: impl IntoIterator<Item = (K, Value)>) -> Value {
    let mut members = match base {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    members.extend(more.into_iter().map(|(name, value)| (name.into(), value)));
    Value::Object(members)
}
