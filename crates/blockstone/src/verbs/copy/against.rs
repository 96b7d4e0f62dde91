//! `--against cp`: the same copy by both programs, in turn, and what a database gets meanwhile.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use blockstone_copy::against::{self, ROUNDS, Tool};
use blockstone_copy::tree;

use super::args::CopyArgs;
use super::beside::{ALONE, Against, Beside};
use super::{Ran, complain, copy, options, report, settings};
use crate::exit::Exit;
use crate::finish::finish;
use crate::progress::Progress;
use crate::recordings;
use crate::verb::Context;

pub fn run(args: &CopyArgs, sources: &[PathBuf], target: &Path, context: &Context) -> Result<Exit> {
    if sources.len() > 1 {
        bail!("copy --against cp: several sources are named\nhint: name one file or directory");
    }
    args.password.read_for(args.db.as_deref())?;
    let mut bar = Progress::start(context.printer)?;
    let plan = tree::plan(sources, target, &options(args))?;
    let made = plan.root.path().join(plan.entries.first().map_or(Path::new(""), |it| &it.target));
    let address = args.db.as_deref().map(|db| recordings::database(db, &context.global));
    let mut beside = address.transpose()?.as_deref().map(Beside::start).transpose()?;
    let mut compared = Against::default();
    if let Some(beside) = &mut beside {
        wait(ALONE, &mut bar);
        compared.alone = Some(beside.end()?);
    }
    let mut kept: Option<Ran> = None;
    let mut first = Some(plan);
    for (number, tool) in ROUNDS.into_iter().enumerate() {
        // The first target stays; the others are removed.
        let own = if number == 0 { made.clone() } else { against::beside(&made, number) };
        let plan = match (tool, first.take()) {
            (Tool::Ours, Some(plan)) => Some(plan),
            (Tool::Ours, None) => Some(tree::plan(sources, &own, &options(args))?),
            (Tool::Cp, _) => None,
        };
        let mut ran = None;
        beside.as_mut().map(Beside::begin).transpose()?;
        let round = against::round(tool, (sources, &own), || {
            let Some(plan) = plan else { return against::cp(sources, &own) };
            let copied = copy(plan, &settings(args), sources, &mut bar);
            let cpu_seconds = copied.cost.cpu_seconds;
            ran = Some(copied);
            Ok(cpu_seconds)
        });
        let got = beside.as_mut().map(Beside::end).transpose()?;
        if number > 0 && own.symlink_metadata().is_ok() {
            against::remove(&own)?;
        }
        let ended = bar.signal().is_some();
        if !ended {
            compared.rounds.push((round?, got));
        }
        let failed = ran.as_ref().is_some_and(|ran| !ran.outcome.failed.is_empty());
        kept = kept.or(ran);
        if ended || failed {
            break;
        }
    }
    bar.finish();
    let Some(mut ran) = kept else { return Ok(bar.exit()) };
    ran.end = blockstone_record::manifest::End::by(bar.signal());
    let exit = finish(&report::report(&ran, (sources, target), &compared), context)?;
    complain(&ran, context);
    Ok(if ran.outcome.failed.is_empty() { exit } else { Exit::CouldNotRun })
}

fn wait(time: Duration, bar: &mut Progress) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        if !bar.step(1.0 - left.div_duration_f64(time), "the database alone") {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}
