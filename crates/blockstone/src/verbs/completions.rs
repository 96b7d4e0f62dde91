//! `blockstone completions`: a completion script, from the declarations of the command line.

use anyhow::Result;
use clap::{Args, FromArgMatches};

use crate::cli;
use crate::exit::Exit;
use crate::printer::answer;
use crate::verb::Verb;

#[derive(Args, Debug)]
struct Completions {
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub const VERB: Verb = Verb {
    name: "completions",
    about: "Print a completion script for a shell",
    options: Completions::augment_args,
    run: |options, _| run(Completions::from_arg_matches(options)?.shell),
    ..Verb::PLAIN
};

fn run(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::declarations(), "blockstone", &mut script);
    answer(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
