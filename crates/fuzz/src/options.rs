//! Command line of the fuzzer.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::worker;

#[derive(Parser)]
#[command(name = "blockstone-fuzz", args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub role: Option<Role>,
}

#[derive(Args, Clone)]
pub struct Options {
    /// Targets; all when none is named
    pub targets: Vec<String>,
    /// Print the names of the targets
    #[arg(long)]
    pub list: bool,
    /// Inputs of each target
    #[arg(long, default_value_t = 1_000_000)]
    pub inputs: u64,
    /// Seconds for each target at most
    #[arg(long, default_value_t = 3600)]
    pub seconds: u64,
    /// Seconds for all targets together, shared equally by those that follow one another
    #[arg(long, conflicts_with = "seconds")]
    pub total_seconds: Option<u64>,
    /// The inputs follow from it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Targets that run at once [default: as many as processors]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Processor time that an input may take, in milliseconds
    #[arg(long, default_value_t = 1000)]
    pub cpu_ms: u64,
    /// Where to save inputs that are findings
    #[arg(long, default_value = "target/fuzz")]
    pub save: PathBuf,
}

#[derive(Subcommand)]
pub enum Role {
    /// Run one target from an input on
    #[command(hide = true)]
    Work(worker::Work),
    /// Feed one file to a target
    Once(worker::Once),
    /// Start the program with damaged files of every kind that it reads
    Files(Program),
    /// Start the program with unusual combinations of options, for every verb
    Options(Program),
    /// Start the program with paths in directories of another user, who attacks it: needs root
    Attacks(Attacks),
}

#[derive(Args)]
pub struct Attacks {
    /// Verbs; all when none is named
    pub names: Vec<String>,
    /// The program
    #[arg(long)]
    pub binary: PathBuf,
    /// Only what tests try
    #[arg(long)]
    pub short: bool,
    /// Commands that are attacked at once [default: as many as processors]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Print a JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Program {
    /// Kinds of files, or verbs; all when none is named
    pub names: Vec<String>,
    /// The program
    #[arg(long)]
    pub binary: PathBuf,
    /// How many files of each kind, or combinations of each verb
    #[arg(long, default_value_t = 3000)]
    pub inputs: u64,
    /// The inputs follow from it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Kinds that are tried at once [default: as many as processors]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Where to save files that are findings
    #[arg(long)]
    pub save: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long)]
    pub json: bool,
}
