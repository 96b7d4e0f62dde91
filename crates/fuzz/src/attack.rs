//! `attacks`: the built program, attacked by the owner of the directories that it is given.

use anyhow::{Context, Result};
use blockstone_fuzz::program::Wanted;
use blockstone_fuzz::program::attacks::{self, Attacked, Depth};

use crate::options::Attacks;

/// Attacks the program as asked and prints the outcomes; returns whether nothing was found.
pub fn run(asked: &Attacks) -> Result<bool> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = Wanted {
        binary: asked.binary.canonicalize().context("find the program")?,
        inputs: 1,
        seed: 1,
        jobs: asked.jobs.unwrap_or(processors),
        save: None,
    };
    let depth = if asked.short { Depth::Short } else { Depth::Whole };
    if !asked.json {
        println!("{}", Attacked::HEADING);
    }
    let show = |attacked: &Attacked| {
        if !asked.json {
            println!("{attacked}");
        }
    };
    let all = attacks::run(&asked.names, depth, &wanted, &show);
    if asked.json {
        println!("{}", serde_json::to_string_pretty(&all).context("make the document")?);
    }
    Ok(all.iter().all(Attacked::is_clean))
}
