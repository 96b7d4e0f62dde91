//! `blockstone merge`: one recording of those of several ranks.

mod args;

use std::path::{Path, PathBuf};

use anyhow::Result;
use blockstone_fleet::{Options, merge};
use blockstone_record::manifest::MANIFEST;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::finish::finish_recording;
use crate::progress::Progress;
use crate::recordings;
use crate::verb::{Context, Verb};
use args::MergeArgs;

pub const VERB: Verb = Verb {
    name: "merge",
    about: "Make one recording of those of several processes or hosts",
    options: MergeArgs::augment_args,
    run: |options, context| run(&MergeArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    writes: true,
    ..Verb::PLAIN
};

fn run(args: &MergeArgs, context: &Context) -> Result<Exit> {
    blockstone_sys::memory::hold_to(None);
    let runs_dir = &context.global.runs_dir;
    let mut dirs = Vec::new();
    for name in &args.runs {
        dirs.extend(recordings_of(name, runs_dir)?);
    }
    let options =
        Options { partial: args.partial, clock_bound_ns: args.clock_bound_ns.map(|bound| bound.0) };
    let merge = merge(&dirs, options)?;
    let subjects: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
    let dir = recordings::new_dir(merge.verb(), args.out.as_deref(), runs_dir, &subjects)?;
    let mut progress = Progress::start(context.printer)?;
    let written = merge.write((&dir.path, &dir.id), &recordings::command_line(), |read, all| {
        progress.step(read as f64 / all as f64, &format!("{read} of {all} recordings"))
    });
    progress.finish();
    if !written? {
        return Ok(Exit::Interrupted);
    }
    finish_recording(&dir.path, context)
}

/// Returns the recordings that a name means: one, or all in a directory.
fn recordings_of(name: &str, runs_dir: &Path) -> Result<Vec<PathBuf>> {
    let dir = Path::new(name);
    if dir.is_dir() && !dir.join(MANIFEST).exists() {
        let mut found = blockstone_record::list_runs_in(dir)?;
        found.retain(|run| run.path.join(MANIFEST).is_file());
        let mut found: Vec<PathBuf> = found.into_iter().map(|run| run.path).collect();
        found.sort();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(vec![recordings::locate(name, runs_dir)?])
}
