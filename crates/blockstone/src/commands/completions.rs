//! `blockstone completions`: a completion script, from the declarations of the command line.

use anyhow::Result;

use crate::cli;
use crate::exit::Exit;
use crate::printer::answer;

pub fn run(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::declarations(), "blockstone", &mut script);
    answer(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
