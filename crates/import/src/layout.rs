//! The supported layouts, and those that are known but have no load.

mod awr;
mod csv;
mod facts;
mod global;
mod head;
mod io;
mod miner;
mod sections;
mod statements;
mod statspack;

use crate::{ImportError, Report, Source};

/// A layout of reports.
pub struct Layout {
    pub name: &'static str,
    /// Recognises the layout from the beginning of the file.
    pub(crate) recognises: fn(&str) -> bool,
    pub(crate) read: fn(&Source<'_>) -> Result<Report, ImportError>,
}

pub const ALL: &[&Layout] = &[
    &awr::HTML,
    &global::HTML,
    &awr::TEXT,
    &global::TEXT,
    &statspack::TEXT,
    &miner::MINER,
    &csv::CSV,
];

/// Reports by the same vendors that have no load over time: text at their beginning, their
/// description, and what to provide instead.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (
        &["awr compare period report", "workload repository compare period report"],
        "a comparison of two periods",
        "give the two reports that it compares",
    ),
    (
        &["ash report for ", "<title>ash report"],
        "a report of sampled sessions (ASH)",
        "give the AWR report of the same time",
    ),
    (
        &["addm report for task", "<title>addm report", "addm task report"],
        "a list of findings (ADDM)",
        "give the AWR report of the same time",
    ),
    (
        &["sql monitoring report", "<title>sql monitor", "sql_monitor"],
        "the monitoring of one statement",
        "give the AWR report of the same time",
    ),
    (
        &["workload repository sql report", "awr sql report"],
        "a report of one statement",
        "give the AWR report of the same time",
    ),
];

/// Enough bytes to recognise a file.
const HEAD_BYTES: usize = 16 << 10;

/// Returns the beginning of a file.
pub fn head(text: &str) -> &str {
    let end = text.floor_char_boundary(HEAD_BYTES.min(text.len()));
    &text[..end]
}

/// Returns whether a file that begins like this is supported, or rejected with a specific reason.
pub fn recognises(head: &str) -> bool {
    refused(head).is_some() || ALL.iter().any(|layout| (layout.recognises)(head))
}

pub(crate) fn refused(head: &str) -> Option<ImportError> {
    let head = head.to_ascii_lowercase();
    let is_it = |marks: &[&str]| marks.iter().any(|mark| head.contains(mark));
    let (_, kind, hint) = REFUSED.iter().find(|(marks, ..)| is_it(marks))?;
    Some(ImportError::NoLoad { kind, hint })
}

fn contains(text: &str, mark: &str) -> bool {
    let (text, mark) = (text.as_bytes(), mark.as_bytes());
    text.windows(mark.len()).any(|window| window.eq_ignore_ascii_case(mark))
}
