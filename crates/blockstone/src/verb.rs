//! What a verb is to the program: a name, options, what it does, and how its recordings become
//! reports. [`crate::verbs`] lists them.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use blockstone_base::rule::Listed;
use blockstone_judge::Findings;
use blockstone_record::Recording;
use blockstone_record::manifest::Manifest;
use blockstone_report::Report;
use blockstone_report::render::csv::Texts;
use blockstone_report::render::json::schema::Document;
use clap::{ArgMatches, Args, ValueHint};

use crate::exit::Exit;
use crate::printer::{Color, Printer, ProgressForm};
use crate::purpose::Purpose;

/// Takes the figures out of a recording.
pub type Figures = fn(Recording, &Context) -> Result<(Manifest, Findings)>;

pub struct Verb {
    pub name: &'static str,
    /// What it does, in one line of the help.
    pub about: &'static str,
    /// Another name for it; may be empty.
    pub alias: &'static str,
    /// Adds its options and examples.
    pub options: fn(clap::Command) -> clap::Command,
    pub run: fn(&ArgMatches, &Context) -> Result<Exit>,
    /// Whether it ends in a report: then `--json`, `--csv` and `--html` mean something.
    pub reports: bool,
    /// The JSON documents that it prints with `--json`.
    pub documents: &'static [Document],
    /// The rules for what it finds.
    pub rules: fn() -> Vec<Listed>,
    /// Whether it makes recordings or looks them up: then `--runs-dir` means something.
    pub finds_runs: bool,
    /// Whether it writes files besides the page: then `--share` means something without one.
    pub writes: bool,
    /// How a recording whose manifest names this verb is reported. `None`: it makes no recordings.
    pub report: Option<fn(Recording, &Context) -> Result<Report>>,
    /// The figures of such a recording, for a comparison with another.
    pub figures: Option<Figures>,
}

/// Version of a JSON document that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonVersion {
    Newest,
    Of(u32),
}

impl FromStr for JsonVersion {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() { Ok(Self::Newest) } else { text.parse().map(Self::Of) }
    }
}

/// Options of every verb.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// Print a JSON document on standard output instead of text: in its newest version, or in the
    /// one before, which remains for one release
    #[arg(long, global = true, value_name = "VERSION", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub json: Option<JsonVersion>,
    /// Print one table as CSV on standard output instead of text: the one named, or the first
    #[arg(long, global = true, value_name = "TABLE", num_args = 0..=1, require_equals = true,
          default_missing_value = "", conflicts_with = "json")]
    pub csv: Option<String>,
    /// With --csv: texts as they are, for a program. Without it, a text that a spreadsheet would
    /// take for a formula gets a `'` before it
    #[arg(long, global = true, requires = "csv", conflicts_with = "json")]
    pub csv_raw: bool,
    /// Also write the report to this file as an HTML page (`-`: on standard output, instead of
    /// text)
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Output)]
    pub html: Option<PathBuf>,
    /// Print only the result: no progress, no notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// How to show progress on standard error
    #[arg(long, global = true, value_enum, default_value_t = ProgressForm::Auto,
          value_name = "FORM", env = "BLOCKSTONE_PROGRESS", hide_env_values = true)]
    pub progress: ProgressForm,
    /// Print the whole report as its page has it: all sections, all rows, and why each verdict that
    /// is inconclusive is so
    #[arg(long, visible_alias = "all", global = true, conflicts_with_all = ["json", "csv"])]
    pub verbose: bool,
    /// When to use colours; the variable `NO_COLOR` turns them off
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Let other users read what is recorded, as the umask says; otherwise only its owner may
    #[arg(long, global = true)]
    pub share: bool,
    /// The directory in which recordings are stored
    #[arg(long, global = true, default_value = "blockstone-runs", value_name = "DIR",
          value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub runs_dir: PathBuf,
}

impl Global {
    /// Whether all that a page has is shown, on a page or a terminal.
    pub fn shows_page(&self) -> bool {
        self.html.is_some() || self.verbose
    }

    /// How texts are written in CSV.
    pub fn csv_texts(&self) -> Texts {
        if self.csv_raw { Texts::Raw } else { Texts::Guarded }
    }

    /// The first option given that only a report can answer.
    pub fn asks_for_report(&self) -> Option<&'static str> {
        let given = [
            ("--json", self.json.is_some()),
            ("--csv", self.csv.is_some()),
            ("--html", self.html.is_some()),
            ("--verbose", self.verbose),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
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
        rules: Vec::new,
        finds_runs: false,
        writes: false,
        report: None,
        figures: None,
    };

    pub fn declaration(&self) -> clap::Command {
        let command = (self.options)(clap::Command::new(self.name)).about(self.about);
        if self.alias.is_empty() { command } else { command.visible_alias(self.alias) }
    }
}

impl Context {
    pub fn new(global: Global) -> Self {
        let printer = Printer::new(global.quiet, global.progress, global.color);
        Self { global, printer }
    }
}
