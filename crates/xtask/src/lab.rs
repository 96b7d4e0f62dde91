//! `cargo xtask lab`: experiments on devices whose limits the kernel enforces. They show that the
//! product finds what storage practice says it must find, and that it keeps its own promises. Each
//! is one file and one line in the registry, states its goals in figures, and leaves nothing
//! behind.

mod attacks;
mod comparison;
mod copy;
mod coverage;
mod db_time;
mod durability;
mod log_writes;
mod long;
mod measure;
mod mutations;
mod nfs;
mod nfs_copy;
mod options;
mod power_cut;
mod reduce;
mod redundancy;
mod registry;
mod size;
mod trace;
mod verb_cost;
mod zoo;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use self::registry::ALL;
use crate::goals;
use crate::interrupt::Interrupt;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The experiment
    #[arg(value_parser = goals::names(ALL))]
    name: String,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Seconds that a run is measured for
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Keep the recordings of the runs in this directory
    #[arg(long, value_name = "DIR")]
    runs_dir: Option<PathBuf>,
    /// durability: how many lives to explore for each setting, or to look for each planted bug in;
    /// mutations, options: how many files or command lines of each kind; power-cut: cuts of each
    /// set-up
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// durability: plant bugs, and show where each is found
    #[arg(long)]
    mutations: bool,
    /// zoo: only the set-ups whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

#[derive(Debug)]
pub struct Lab {
    options: Options,
    interrupt: Interrupt,
}

/// `cargo xtask lab`: succeeds if every goal was met, and fails if one was missed.
pub fn run(options: Options) -> Result<ExitCode> {
    let counted = ["durability", "mutations", "options", "power-cut"];
    if options.seeds.is_some() && !counted.contains(&options.name.as_str()) {
        bail!("--seeds is not an option of the experiment {}", options.name);
    }
    if options.mutations && options.name != "durability" {
        bail!("--mutations is an option of the experiment durability only");
    }
    if options.only.is_some() && options.name != "zoo" {
        bail!("--only is an option of the experiment zoo only");
    }
    let lab = Lab { options, interrupt: Interrupt::install()? };
    let results = goals::run(ALL, &lab.options.name, &lab, lab.options.json)?;
    Ok(if results.all_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
