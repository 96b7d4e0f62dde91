//! What a check is to the verb, and what it hands over to the report: its answer, and the cells
//! that it rests on.

use std::path::Path;

use anyhow::Result;
use blockstone_base::direct::{self, OpenFile};
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

/// One thing that was tried or observed.
#[derive(Serialize, JsonSchema)]
pub struct CellKeys {
    /// The check, as in `blockstone check CHECK`.
    pub check: &'static str,
    /// What was tried, or the path of an open file.
    pub case: String,
    pub class: Class,
    /// What was seen, with numbers.
    pub evidence: String,
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// The classes of each check.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Class {
    Direct(direct::Class),
}

/// What the class rests on; null what the check does not have.
#[derive(Default, Serialize, JsonSchema)]
pub struct Numbers {
    /// Requests that succeeded.
    pub requests: Option<u64>,
    /// What the kernel answered to the first that did not.
    pub error: Option<String>,
    /// Whether statx(2) says that this shape can be direct.
    pub promised: Option<bool>,
    /// Pages of 4 KiB that the requests added to the page cache.
    pub added_pages: Option<u64>,
    /// Times the kernel entered its direct path.
    pub direct_ios: Option<u64>,
    /// Bytes of the file in the page cache.
    pub before_cached_bytes: Option<u64>,
    pub after_cached_bytes: Option<u64>,
    /// Bytes charged to the process for each byte asked for.
    pub charged_ratio: Option<f64>,
    /// The share of requests that added pages to the page cache.
    pub cached_share: Option<f64>,
}
