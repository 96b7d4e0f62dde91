//! The interface of a check to the verb, and what it passes to the report: its answer, and the
//! tables that the answer rests on.

use std::path::Path;

use anyhow::Result;
use blockstone_base::verdict::Verdict;
use blockstone_report::{Section, Tone};
use clap::ArgMatches;

use crate::progress::Progress;
use crate::verb::Context;

pub struct Check {
    pub name: &'static str,
    /// The question it answers, as one line of the help.
    pub about: &'static str,
    /// Adds its options and examples.
    pub options: fn(clap::Command) -> clap::Command,
    /// Runs the check as its options say.
    pub run: fn(&ArgMatches, &Context, &mut Progress) -> Result<CheckAnswer>,
    /// Runs the part that takes seconds only, on this path.
    pub quick: fn(&Path, &mut Progress) -> Result<CheckAnswer>,
}

impl Check {
    pub fn declaration(&self) -> clap::Command {
        (self.options)(clap::Command::new(self.name)).about(self.about)
    }
}

#[derive(Default)]
pub struct CheckAnswer {
    /// The path, process or server that was checked.
    pub subject: String,
    /// The answer as a sentence.
    pub answer: String,
    pub tone: Tone,
    /// The environment in which it was made.
    pub identity: Vec<String>,
    pub sections: Vec<Section>,
    pub verdicts: Vec<Verdict>,
    pub notes: Vec<String>,
    /// Whether the evidence does not settle the question.
    pub partial: bool,
    /// The signal that ended the check early.
    pub signal: Option<String>,
    /// Whether another process prints the result: rank 0 of those that a launcher started.
    pub printed_elsewhere: bool,
}
