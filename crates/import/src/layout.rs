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

use crate::{ImportError, Report, Source, markdown, spool};

/// A layout of reports.
pub struct Layout {
    pub name: &'static str,
    /// Recognises the layout from the beginning of the file.
    pub(crate) recognises: fn(&Head) -> bool,
    pub(crate) read: fn(&Source<'_>) -> Result<Report, ImportError>,
}

pub const ALL: &[&Layout] = &[
    &awr::HTML,
    &global::HTML,
    &awr::MARKDOWN,
    &global::MARKDOWN,
    &awr::TEXT,
    &global::TEXT,
    &statspack::TEXT,
    &miner::MINER,
    &csv::CSV,
];

/// A file by the same vendors that is not read.
struct Refused {
    /// Texts at its beginning, in lower case.
    marks: &'static [&'static str],
    kind: &'static str,
    why: &'static str,
    hint: &'static str,
}

const NO_LOAD: &str = "has no load over time";
const INSTEAD: &str = "give the AWR report of the same time: @?/rdbms/admin/awrrpt.sql makes it";

const REFUSED: &[Refused] = &[
    Refused {
        marks: &[
            "awr compare period report",
            "awr rac compare period report",
            "workload repository compare period",
            "workload repository pdb compare period",
        ],
        kind: "a comparison of two periods",
        why: NO_LOAD,
        hint: "give the two reports that it compares: @?/rdbms/admin/awrrpt.sql makes each",
    },
    Refused {
        marks: &["ash report for ", "<title>ash report", "<title>ash global report"],
        kind: "a report of sampled sessions (ASH)",
        why: NO_LOAD,
        hint: INSTEAD,
    },
    Refused {
        marks: &[
            "addm report for task",
            "<title>addm report",
            "addm task report",
            "detailed addm report",
        ],
        kind: "a list of findings (ADDM)",
        why: NO_LOAD,
        hint: INSTEAD,
    },
    Refused {
        marks: &["sql monitoring report", "<title>sql monitor", "sql_monitor"],
        kind: "the monitoring of one statement",
        why: NO_LOAD,
        hint: INSTEAD,
    },
    Refused {
        marks: &[
            "workload repository sql report",
            "workload repository pdb sql report",
            "awr sql report",
        ],
        kind: "a report of one statement",
        why: NO_LOAD,
        hint: INSTEAD,
    },
    Refused {
        marks: &["statspack sql report"],
        kind: "a report of one statement",
        why: NO_LOAD,
        hint: "give the Statspack report of the same time: @?/rdbms/admin/spreport.sql makes it",
    },
    Refused {
        marks: &["awr info report"],
        kind: "a report on the space that AWR takes",
        why: NO_LOAD,
        hint: "give an AWR report: @?/rdbms/admin/awrrpt.sql makes it",
    },
    Refused {
        marks: &["<report db_version=", "otn_software/emviewers"],
        kind: "an active report",
        why: "has its figures encoded for a viewer",
        hint: "give the AWR report of the same time as html or text: @?/rdbms/admin/awrrpt.sql \
               asks for its type",
    },
    Refused {
        marks: &["content-transfer-encoding: base64"],
        kind: "a mail",
        why: "has its attachment encoded",
        hint: "save the attachment, and give that",
    },
];

/// Enough bytes to recognise a file: the log of a session may precede its report.
pub const HEAD_BYTES: usize = 32 << 10;

/// The beginning of a file.
pub(crate) struct Head {
    pub text: String,
    lower: String,
}

impl Head {
    pub fn of(text: &str) -> Self {
        let text = spool::plain(&text[..text.floor_char_boundary(HEAD_BYTES)]).into_owned();
        let lower = text.to_ascii_lowercase();
        Self { text, lower }
    }

    /// Returns whether it contains a text that is given in lower case.
    pub fn contains(&self, mark: &str) -> bool {
        debug_assert!(!mark.bytes().any(|byte| byte.is_ascii_uppercase()), "{mark}");
        self.lower.contains(mark)
    }

    pub fn is_html(&self) -> bool {
        spool::is_html(&self.text)
    }

    /// Returns whether the report, not what precedes it, has tables of Markdown. Every section of
    /// a report as text names the database.
    pub fn is_markdown(&self) -> bool {
        let report = self.lower.find("workload repository").map(|at| &self.lower[at..]);
        report.is_some_and(markdown::is_markdown) && !self.contains("db/inst:")
    }

    pub fn layout(&self) -> Option<&'static Layout> {
        ALL.iter().copied().find(|layout| (layout.recognises)(self))
    }

    pub fn refused(&self) -> Option<ImportError> {
        let is_it = |it: &&Refused| it.marks.iter().any(|mark| self.contains(mark));
        let Refused { kind, why, hint, .. } = *REFUSED.iter().find(is_it)?;
        Some(ImportError::Refused { kind, why, hint })
    }
}

/// Returns whether a file that begins like this is supported, or rejected with a specific reason.
pub fn recognises(head: &str) -> bool {
    let head = Head::of(head);
    head.layout().is_some() || head.refused().is_some()
}

/// Refuses a file with several reports as HTML.
fn check_single(html: &str) -> Result<(), ImportError> {
    const TITLE: &str = "<title>AWR ";
    // A second one is looked for by `contains`, which is much faster than counting.
    let is_several =
        html.find(TITLE).is_some_and(|first| html[first + TITLE.len()..].contains(TITLE));
    if is_several {
        return Err(has_several(html.matches(TITLE).count()));
    }
    Ok(())
}

fn has_several(reports: usize) -> ImportError {
    let what = format!("it has {reports} reports: save each in a file of its own");
    ImportError::Damaged { line: 1, what }
}

/// Returns the report in a text, without what precedes its first line. Two reports are refused:
/// their tables have the same names.
fn only<'a>(text: &'a str, firsts: &[&str]) -> Result<&'a str, ImportError> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start_matches(|it: char| it.is_whitespace() || "#*".contains(it));
        if firsts.iter().any(|first| sections::begins(bare, first)) {
            starts.push(at);
        }
        at += line.len();
    }
    match starts[..] {
        [] => Ok(text),
        [start] => Ok(&text[start..]),
        _ => Err(has_several(starts.len())),
    }
}
