//! Declaration of a verb: its name, options and function, and how its recordings become reports.
//! [`crate::verbs`] lists all of them.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use blockstone_base::rule::Listed;
use blockstone_judge::Findings;
use blockstone_record::manifest::Manifest;
use blockstone_record::{RUNS, Recording};
use blockstone_report::Report;
use blockstone_report::expect::Expectation;
use blockstone_report::render::csv::Texts;
use blockstone_report::render::json::schema::Document;
use clap::{Arg, ArgAction, ArgMatches, Args, ValueHint};

use crate::config::{self, Config};
use crate::documents::TOPICS;
use crate::exit::Exit;
use crate::help::{self, Layout};
use crate::printer::{Color, Printer, ProgressForm};
use crate::purpose::Purpose;

/// Extracts the figures from a recording.
pub type Figures = fn(Recording, &Context) -> Result<(Manifest, Findings)>;

pub struct Verb {
    pub name: &'static str,
    /// Purpose of the verb, in one line of the help.
    pub about: &'static str,
    /// Alternative name; may be empty.
    pub alias: &'static str,
    /// Adds its options and examples.
    pub options: fn(clap::Command) -> clap::Command,
    /// Options of it and of its subcommands that `-h` shows; if a command has none of these, all.
    pub common: &'static [&'static str],
    pub run: fn(&ArgMatches, &Context) -> Result<Exit>,
    /// Whether the verb ends in a report: only then do `--json`, `--csv` and `--html` apply.
    pub reports: bool,
    /// JSON documents that the verb prints with `--json`.
    pub documents: &'static [Document],
    /// Rules that judge its findings.
    pub rules: fn() -> Vec<Listed>,
    /// Whether the verb creates or looks up recordings: only then does `--runs-dir` apply.
    pub finds_runs: bool,
    /// Whether the verb writes files other than the page: otherwise `--share` applies only with a
    /// page.
    pub writes: bool,
    /// Makes the report of a recording whose manifest names this verb. `None` if the verb does not
    /// make recordings.
    pub report: Option<fn(Recording, &Context) -> Result<Report>>,
    /// Returns the figures of such a recording, for a comparison with another.
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
#[command(next_help_heading = help::GLOBAL)]
pub struct Global {
    /// Print JSON instead of text, in its newest version
    #[arg(long, global = true, value_name = "VERSION", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub json: Option<JsonVersion>,
    /// Print one table as CSV: the one named, or the first
    #[arg(long, global = true, value_name = "TABLE", num_args = 0..=1, require_equals = true,
          default_missing_value = "", conflicts_with = "json")]
    pub csv: Option<String>,
    /// With --csv: no `'` before what a spreadsheet takes for a formula
    #[arg(long, global = true, requires = "csv", conflicts_with = "json")]
    pub csv_raw: bool,
    /// Also write the report to this page; `-` prints it
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Output)]
    pub html: Option<PathBuf>,
    /// Limits on figures, such as 'commit.p99<2ms, iops>=20000': exit code 1 if one fails, 3 if one
    /// is not established; `@FILE` reads them, `help` lists the names
    #[arg(long, global = true, value_name = "LIMITS")]
    pub expect: Vec<String>,
    /// Also write the outcomes of the limits to this file, as JUnit XML
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Output)]
    pub junit: Option<PathBuf>,
    /// Print only the result: no progress, no notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Progress on standard error: a bar or lines, a JSON object a second, or none
    #[arg(long, global = true, value_enum, default_value_t = ProgressForm::Auto,
          value_name = "auto|json|none", env = "BLOCKSTONE_PROGRESS", hide_env_values = true,
          hide_default_value = true, hide_possible_values = true)]
    pub progress: ProgressForm,
    /// Print the whole report, as its page has it
    #[arg(long, visible_alias = "all", global = true, conflicts_with_all = ["json", "csv"])]
    pub verbose: bool,
    /// When to use colours; the variable `NO_COLOR` turns them off
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto,
          value_name = "auto|always|never", hide_default_value = true, hide_possible_values = true)]
    pub color: Color,
    /// Let other users read what is recorded, as the umask says
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          action = ArgAction::Set, default_missing_value = "true", default_value_t = false,
          hide_default_value = true, hide_possible_values = true)]
    pub share: bool,
    /// The directory of recordings; `blockstone config` says which it is without this option
    #[arg(long, global = true, default_value = RUNS, hide_default_value = true,
          value_name = "DIR", value_hint = ValueHint::DirPath,
          env = "BLOCKSTONE_RUNS_DIR", hide_env_values = true)]
    #[arg(add = Purpose::Directory)]
    pub runs_dir: PathBuf,
}

impl Global {
    /// Returns the options that a file of settings may set.
    pub fn settable() -> Vec<Arg> {
        let global = Self::augment_args(clap::Command::new(""));
        let option = |key: &&str| global.get_arguments().find(|arg| arg.get_id() == key).cloned();
        config::KEYS.iter().filter_map(option).collect()
    }

    /// Whether everything that a page contains is shown, on a page or on a terminal.
    pub fn shows_page(&self) -> bool {
        self.html.is_some() || self.verbose
    }

    /// Returns how texts are written in CSV.
    pub fn csv_texts(&self) -> Texts {
        if self.csv_raw { Texts::Raw } else { Texts::Guarded }
    }

    /// Returns the first given option that only applies to a report.
    pub fn asks_for_report(&self) -> Option<&'static str> {
        let given = [
            ("--json", self.json.is_some()),
            ("--csv", self.csv.is_some()),
            ("--html", self.html.is_some()),
            ("--verbose", self.verbose),
            ("--expect", !self.expect.is_empty()),
            ("--junit", self.junit.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

/// Input of every verb in addition to its own options.
#[derive(Clone, Debug)]
pub struct Context {
    pub global: Global,
    pub printer: Printer,
    /// Limits on the figures of the report.
    pub expectations: Vec<Expectation>,
    /// Where defaults of the global options come from.
    pub config: Config,
}

impl Verb {
    /// A verb without options that reports nothing: the base to declare others from.
    pub const PLAIN: Self = Self {
        name: "",
        about: "",
        alias: "",
        options: |command| command,
        common: &[],
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
        // An option that is declared here is not declared again by the parser when it passes
        // global options on, so its help does not list it. It is refused where it is given.
        let global = Global::augment_args(clap::Command::new(""));
        let heeds = |option: &&Arg| self.heeds(option.get_id().as_str());
        // With --help.
        let globals = global.get_arguments().filter(heeds).count() + 1;
        let hidden = global.get_arguments().filter(|it| !heeds(it)).map(|it| it.clone().hide(true));
        let layout = Layout { above: "blockstone", common: self.common, globals, topic: TOPICS };
        let command = layout.apply(command.args(hidden));
        if self.alias.is_empty() { command } else { command.visible_alias(self.alias) }
    }

    /// Returns whether a global option can have an effect on this verb.
    fn heeds(&self, option: &str) -> bool {
        match option {
            "json" | "csv" | "csv_raw" | "html" | "verbose" | "expect" | "junit" => self.reports,
            "runs_dir" => self.finds_runs,
            "share" => self.writes || self.reports,
            _ => true,
        }
    }
}

impl Context {
    pub fn new(global: Global, expectations: Vec<Expectation>) -> Self {
        let printer = Printer::new(global.quiet, global.progress, global.color);
        Self { global, printer, expectations, config: Config::default() }
    }
}
