//! `--against`: the same copy in two ways in turn, and the rate that a database gets meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use blockstone_copy::against::{self, COPY, ROUNDS, Room, Tool, Top};
use blockstone_copy::file::Options;
use blockstone_copy::tree::{self, Settings};

use super::args::{CopyArgs, Peer};
use super::beside::{ALONE, Against, Beside};
use super::{Ran, complain, copy, options, report, settings};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::progress::Progress;
use crate::recordings;
use crate::verb::Context;

pub fn run(
    (args, peer): (&CopyArgs, &Peer),
    sources: &[PathBuf],
    target: &Path,
    context: &Context,
) -> Result<Exit> {
    if sources.len() > 1 {
        bail!(Failure::new(
            "copy --against: several sources are named",
            "name one file or directory"
        ));
    }
    if let Peer::Program(program) = peer {
        program.check()?;
    }
    args.password.read_for(args.db.as_deref())?;
    let mut bar = Progress::start(context.printer)?;
    let plan = tree::plan(sources, target, &options(args))?;
    let Some(first) = plan.entries.first() else {
        let nothing = plan.failed.into_iter().next();
        return Err(nothing.map_or_else(|| anyhow!("copy nothing"), |it| it.error.into()));
    };
    let (base, name) = (Arc::clone(&first.base), first.below().to_owned());
    let source = Top { dir: &base, name: &name };
    let (target_dir, made) = (plan.root.within(Path::new(""))?, first.target.clone());
    let address = args.db.as_deref().map(|db| recordings::database(db, &context.global));
    let mut beside = address.transpose()?.as_deref().map(Beside::start).transpose()?;
    let mut compared = Against::with(peer);
    if let Some(beside) = &mut beside {
        wait(ALONE, &mut bar);
        compared.alone = Some(beside.end()?);
    }
    // `None` for another program.
    let settings_of = |tool| match (tool, peer) {
        (Tool::Ours, _) => Some(settings(args)),
        (Tool::Peer, Peer::Program(_)) => None,
        (Tool::Peer, Peer::Method(how)) => {
            let Settings { file, jobs, rate } = settings(args);
            Some(Settings { file: Options { method: Some((*how).into()), ..file }, jobs, rate })
        }
        (Tool::Peer, Peer::Request(request)) => {
            let Settings { file, rate, .. } = settings(args);
            let file = Options { request: *request, in_flight: 1, ..file };
            Some(Settings { file, jobs: 1, rate })
        }
    };
    let mut kept: Option<Ran> = None;
    let mut first = Some(plan);
    for tool in ROUNDS {
        // The first target is kept; the others are removed.
        let plan = first.take();
        let room = if plan.is_some() { None } else { Some(Room::beside(&target_dir)?) };
        let plan = match (tool, plan, &room) {
            (_, None, Some(room)) if settings_of(tool).is_some() => {
                let into = room.dir().within(Path::new(""))?;
                Some(tree::plan_into(sources, (into, Some(COPY.into())), &options(args))?)
            }
            (_, plan, _) => plan,
        };
        let own = room.as_ref().map_or(Top { dir: &target_dir, name: &made }, Room::top);
        let mut ran = None;
        beside.as_mut().map(Beside::begin).transpose()?;
        let round = against::round(tool, (source, own), || match (plan, &room, peer) {
            (Some(plan), ..) => {
                let settings = settings_of(tool).unwrap_or_else(|| settings(args));
                let copied = copy(plan, &settings, sources, &mut bar);
                let cpu_seconds = copied.cost.cpu_seconds;
                ran = Some(copied);
                Ok(cpu_seconds)
            }
            (None, Some(room), Peer::Program(program)) => {
                room.copy(program, source, &mut || bar.step(0.0, &compared.name))
            }
            (None, ..) => Ok(0.0),
        });
        let got = beside.as_mut().map(Beside::end).transpose()?;
        room.map(Room::remove).transpose()?;
        let ended = bar.signal().is_some();
        if !ended {
            compared.rounds.push((round?, got));
        }
        let failed = ran.as_ref().is_some_and(|ran| !ran.outcome.failed.is_empty());
        if failed && kept.is_some() {
            let failure = ran.and_then(|mut ran| ran.outcome.failed.pop());
            return Err(failure.map_or_else(|| anyhow!("copy again"), |it| it.error.into()));
        }
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
    Ok(exit)
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
