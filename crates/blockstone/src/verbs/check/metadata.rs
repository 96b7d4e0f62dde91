//! `check metadata`: the cost of operations on names and inodes, and the source of their answers.

mod tables;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use blockstone_base::rule::judge;
use blockstone_base::units::{Bytes, counted, format_ns};
use blockstone_check::metadata::findings::{Class, GrowthClass, MetadataFindings, Shape};
use blockstone_check::metadata::{Caches, FILES_MAX, RANKS_MAX, Settings, of_path};
use blockstone_report::Tone;
use clap::{Args, FromArgMatches, ValueHint};

use super::answer::{Check, CheckAnswer};
use super::rules;
use crate::choice::{Choice, one_of};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::recordings;

pub use tables::TABLES;

pub const CHECK: Check = Check {
    name: "metadata",
    about: "What it costs to create, look up, list and remove files, by the number of files",
    options: MetadataArgs::augment_args,
    run: |options, _, progress| run(&MetadataArgs::from_arg_matches(options)?, progress),
    quick,
};

/// The first directory size that is tried, and the factor from each size to the next.
const LEAST_FILES: u64 = 1_000;
const STEP: u64 = 10;
/// Time limit for one operation at one size.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of bytes written to a file that is made durable.
const CONTENT_MAX: u64 = 1 << 20;

const CACHES: [Choice<Caches>; 2] = [
    ("metadata", "entries of directories, inodes, blocks of the device", Caches::Metadata),
    ("all", "the page cache too", Caches::All),
];
const SHAPES: [Choice<Shape>; 3] = [
    (Shape::One.name(), "all files in one directory", Shape::One),
    (Shape::Own.name(), "those of each rank in a directory of its own", Shape::Own),
    (Shape::Tree.name(), "those of each rank in a tree, 256 to a directory", Shape::Tree),
];

/// Arguments of `check metadata`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check metadata .
  blockstone check metadata /data --files 1M --shape one-directory
  blockstone check metadata /data --drop-caches   as root: reads cold, too
  blockstone check metadata /data --json | jq '.tables.metadata[].class'")]
struct MetadataArgs {
    /// A directory, in which a scratch directory is made and removed
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Scratch)]
    path: PathBuf,
    /// Number of files in the largest directory: 200000, 100k or 1M; smaller ones have 1k, 10k and
    /// so on
    #[arg(long, value_name = "NUMBER", default_value = "100k", value_parser = files)]
    files: u64,
    /// Layouts of the files: the first is tried with all numbers, the others only with the largest
    #[arg(long, value_delimiter = ',', value_parser = one_of(SHAPES),
          default_values = [Shape::One.name(), Shape::Own.name(), Shape::Tree.name()])]
    shape: Vec<Shape>,
    /// Threads that work at the same time, each on the files of the next one; all have the same
    /// number of files, at least one
    #[arg(long, value_name = "NUMBER", default_value = "2",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    ranks: u32,
    /// Bytes that create-fsync writes to each file
    #[arg(long, value_name = "BYTES", default_value = "4K")]
    write: Bytes,
    /// Drop caches of the whole machine before operations that read, as root, and try these a
    /// second time from memory
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "metadata", value_parser = one_of(CACHES))]
    drop_caches: Option<Caches>,
}

/// Parses a number of files: digits, with `k` or `M` for thousands and millions.
fn files(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    match number {
        Some(number) if (100..=FILES_MAX).contains(&number) => Ok(number),
        _ => Err("it must be a number from 100 to 100M".to_owned()),
    }
}

fn run(args: &MetadataArgs, progress: &mut Progress) -> Result<CheckAnswer> {
    if args.write.get() > CONTENT_MAX {
        bail!(Failure::new(
            format!("write {} to each file: at most 1 MiB is", args.write),
            "--write 4K"
        ));
    }
    let mut shapes = args.shape.clone();
    shapes.dedup();
    let settings = Settings {
        shapes,
        sizes: sizes(args.files),
        ranks: args.ranks,
        content_bytes: args.write.get(),
        drop: args.drop_caches,
        limit: LIMIT,
    };
    Ok(part(&of_path(&args.path, recordings::draw_seed(), &settings, progress)?))
}

/// Returns 1,000, ten times that and so on, and finally `files`.
fn sizes(files: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(LEAST_FILES), |size| size.checked_mul(STEP));
    powers.take_while(|size| *size < files).chain([files]).collect()
}

fn quick(path: &Path, progress: &mut Progress) -> Result<CheckAnswer> {
    // Files and devices are only read.
    if !path.is_dir() {
        return Ok(part(&MetadataFindings {
            subject: path.display().to_string(),
            file_system: String::new(),
            device: None,
            ranks: 0,
            cells: Vec::new(),
            growth: Vec::new(),
            memory: Vec::new(),
            memory_unseen: String::new(),
            unfinished: false,
            signal: None,
        }));
    }
    Ok(part(&of_path(path, recordings::draw_seed(), &Settings::quick(), progress)?))
}

fn part(findings: &MetadataFindings) -> CheckAnswer {
    let verdicts = match findings.cells.as_slice() {
        [] => Vec::new(),
        _ => judge(rules::METADATA, findings),
    };
    let (answer, tone) = answer(findings);
    let unknown = !findings.cells.is_empty()
        && findings.cells.iter().all(|cell| cell.class == Class::Unknown);
    let mut notes = Vec::new();
    if !findings.memory_unseen.is_empty() {
        notes.push(format!("Memory for files was not counted: {}.", findings.memory_unseen));
    }
    if findings.unfinished {
        notes.push("Files were made too slowly: what is missing was not tried.".to_owned());
    }
    CheckAnswer {
        subject: findings.subject.clone(),
        answer,
        tone,
        identity: identity(findings),
        sections: tables::sections(findings, &verdicts),
        verdicts,
        notes,
        signal: findings.signal.clone(),
        partial: unknown || findings.unfinished,
        ..CheckAnswer::default()
    }
}

fn identity(findings: &MetadataFindings) -> Vec<String> {
    if findings.cells.is_empty() {
        return Vec::new();
    }
    let device = findings.device.as_deref().unwrap_or("no device is seen");
    let threads = counted(findings.ranks.into(), "rank");
    vec![format!("{} · {device} · {threads}", findings.file_system)]
}

/// Returns the answer as a sentence: the cost of the durable operation, what memory answered, what
/// grows.
fn answer(findings: &MetadataFindings) -> (String, Tone) {
    let Some(largest) = findings.cells.iter().map(|cell| cell.files).max() else {
        return ("no directory, no metadata".to_owned(), Tone::Plain);
    };
    let linear: Vec<&str> = findings
        .growth
        .iter()
        .filter(|growth| growth.class == GrowthClass::Linear)
        .map(|growth| growth.operation.name())
        .collect();
    if !linear.is_empty() {
        let what = linear.join(", ");
        return (format!("linear: grows with the size of the directory: {what}"), Tone::Bad);
    }
    let durable = findings.cells.iter().rev().find(|cell| cell.operation.is_durable());
    let mut text = counted(largest, "file");
    if let Some(p50) = durable.and_then(|cell| cell.latency.bounded_quantile_ns(0.5)) {
        text = format!("{text}, a durable one takes {}", format_ns(p50 as f64));
    }
    let cached = findings.cells.iter().filter(|cell| cell.class == Class::Cached).count();
    text = format!("{text}; {cached} of {} cases came from memory", findings.cells.len());
    let unknown = findings.cells.iter().any(|cell| cell.class == Class::Unknown);
    (text, if unknown { Tone::Warning } else { Tone::Plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_ten_up_to_the_number_asked_for() {
        assert_eq!(sizes(100_000), [1_000, 10_000, 100_000]);
        assert_eq!(sizes(1_000), [1_000]);
        assert_eq!(sizes(500), [500]);
        assert_eq!(sizes(25_000), [1_000, 10_000, 25_000]);
    }

    #[test]
    fn numbers_of_files_are_decimal() {
        assert_eq!(files("1M"), Ok(1_000_000));
        assert_eq!(files("60k"), Ok(60_000));
        for wrong in ["", "k", "99", "101M", "1G", "-5", "1.5k", "99999999999999999999M"] {
            assert!(files(wrong).is_err(), "{wrong}");
        }
    }
}
