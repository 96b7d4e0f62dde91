//! What a verb is to the program: a name, options, what it does, and how its recordings become
//! reports. [`crate::verbs`] lists them.

use anyhow::Result;
use blockstone_judge::Findings;
use blockstone_record::Recording;
use blockstone_record::manifest::Manifest;
use blockstone_report::Report;
use blockstone_report::render::json::schema::Document;
use clap::ArgMatches;

use crate::cli::Global;
use crate::exit::Exit;
use crate::printer::Printer;

/// Takes the figures out of a recording.
pub type Figures = fn(Recording, &Context) -> Result<(Manifest, Findings)>;

/// A verb.
pub struct Verb {
    pub name: &'static str,
    /// What it does, in one line of the help.
    pub about: &'static str,
    /// Another name for it; may be empty.
    pub alias: &'static str,
    /// Adds its options and examples.
    pub options: fn(clap::Command) -> clap::Command,
    /// Does it.
    pub run: fn(&ArgMatches, &Context) -> Result<Exit>,
    /// Whether it ends in a report: then `--json`, `--csv` and `--html` mean something.
    pub reports: bool,
    /// The JSON documents that it prints with `--json`.
    pub documents: &'static [Document],
    /// How a recording whose manifest names this verb is reported. `None`: it makes no recordings.
    pub report: Option<fn(Recording, &Context) -> Result<Report>>,
    /// The figures of such a recording, for a comparison with another.
    pub figures: Option<Figures>,
}

/// What every verb is given besides its own options.
#[derive(Clone, Debug)]
pub struct Context {
    pub global: Global,
    pub printer: Printer,
}

impl Verb {
    /// A verb without options that reports nothing: the base to declare others from.
    pub const PLAIN: Self = Self {
        name: "",
        about: "",
        alias: "",
        options: |command| command,
        run: |_, _| Ok(Exit::Done),
        reports: false,
        documents: &[],
        report: None,
        figures: None,
    };

    /// As the command line knows it.
    pub fn declaration(&self) -> clap::Command {
        let command = (self.options)(clap::Command::new(self.name)).about(self.about);
        if self.alias.is_empty() { command } else { command.visible_alias(self.alias) }
    }
}

impl Context {
    pub fn new(global: Global) -> Self {
        let printer = Printer::new(&global);
        Self { global, printer }
    }
}
