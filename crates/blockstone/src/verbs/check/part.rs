//! What a check is to the verb, and what it hands over to the report: its answer, and the cells
//! that it rests on.

use std::path::Path;

use anyhow::Result;
use blockstone_base::direct::{Cell, Class, OpenFile};
use blockstone_base::verdict::Verdict;
use blockstone_report::{Section, Tone};
use clap::ArgMatches;
use schemars::JsonSchema;
use serde::Serialize;

use crate::progress::Progress;
use crate::verb::Context;

pub struct Check {
    pub name: &'static str,
    /// What it answers, in one line of the help.
    pub about: &'static str,
    /// Adds its options and examples.
    pub options: fn(clap::Command) -> clap::Command,
    /// As its options say.
    pub run: fn(&ArgMatches, &Context, &mut Progress) -> Result<Part>,
    /// On this path, what takes seconds.
    pub quick: fn(&Path, &mut Progress) -> Result<Part>,
}

impl Check {
    pub fn declaration(&self) -> clap::Command {
        (self.options)(clap::Command::new(self.name)).about(self.about)
    }
}

pub struct Part {
    /// The path, process or server.
    pub subject: String,
    /// The answer in a sentence.
    pub answer: String,
    pub tone: Tone,
    /// What it was made on.
    pub identity: Vec<String>,
    pub cells: Vec<CellKeys>,
    pub files: Vec<OpenFile>,
    pub sections: Vec<Section>,
    pub verdicts: Vec<Verdict>,
    pub notes: Vec<String>,
    /// Whether the evidence does not decide what was asked.
    pub partial: bool,
    /// The signal that ended it early.
    pub signal: Option<String>,
}

/// One thing that was tried or observed; numbers that a check does not have are null.
#[derive(Serialize, JsonSchema)]
pub struct CellKeys {
    /// The check, as in `blockstone check CHECK`.
    check: &'static str,
    /// Operation and shape, or the path of an open file.
    case: String,
    class: Class,
    /// What was seen, with numbers.
    evidence: String,
    /// Requests that succeeded.
    requests: Option<u64>,
    /// What the kernel answered to the first that did not.
    error: Option<String>,
    /// Whether statx(2) says that this shape can be direct.
    promised: Option<bool>,
    /// Pages of 4 KiB that the requests added to the page cache.
    added_pages: Option<u64>,
    /// Times the kernel entered its direct path.
    direct_ios: Option<u64>,
    /// Bytes of the file in the page cache.
    before_cached_bytes: Option<u64>,
    after_cached_bytes: Option<u64>,
    /// Bytes charged to the process for each byte asked for.
    charged_ratio: Option<f64>,
    /// The share of requests that added pages to the page cache.
    cached_share: Option<f64>,
}

impl CellKeys {
    pub fn of(check: &'static str, cell: &Cell) -> Self {
        Self {
            check,
            case: cell.case(),
            class: cell.class,
            evidence: cell.evidence.clone(),
            requests: Some(cell.requests),
            error: cell.error.clone(),
            promised: cell.promised,
            added_pages: cell.added_pages,
            direct_ios: cell.direct_ios,
            before_cached_bytes: cell.before_cached_bytes,
            after_cached_bytes: cell.after_cached_bytes,
            charged_ratio: cell.charged_ratio,
            cached_share: None,
        }
    }

    pub fn of_file(check: &'static str, file: &OpenFile) -> Self {
        Self {
            check,
            case: file.path.clone(),
            class: file.class,
            evidence: file.evidence.clone(),
            requests: file.requests,
            error: None,
            promised: None,
            added_pages: None,
            direct_ios: None,
            before_cached_bytes: None,
            after_cached_bytes: file.cached_bytes,
            charged_ratio: None,
            cached_share: file.cached_share,
        }
    }
}
