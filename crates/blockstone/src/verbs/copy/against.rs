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
    check(args, peer, sources)?;
    let mut bar = Progress::start(context.printer)?;
    let plan = tree::plan(sources, target, &options(args))?;
    let Some(first) = plan.entries.first() else {
        let nothing = plan.failed.into_iter().next();
        return Err(nothing.map_or_else(|| anyhow!("copy nothing"), |it| it.error.into()));
    };
    let (base, name) = (Arc::clone(&first.base), first.below().to_owned());
    let source = Top { dir: &base, name: &name };
    let (target_dir, made) = (plan.root.within(Path::new(""))?, first.target.clone());
    let mut beside = watched(args, context)?;
    let mut compared = Against::with(peer);
    if let Some(beside) = &mut beside {
        wait(ALONE, &mut bar);
        compared.alone = Some(beside.end()?);
    }
    let settings_of = |tool| settings_of(tool, args, peer);
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

/// Refuses what cannot be compared, before anything is copied.
fn check(args: &CopyArgs, peer: &Peer, sources: &[PathBuf]) -> Result<()> {
    if sources.len() > 1 {
        bail!(Failure::new(
            "copy --against: several sources are named",
            "name one file or directory"
        ));
    }
    if let Peer::Program(program) = peer {
        program.check()?;
    }
    args.password.read_for(args.db.as_deref())
}

/// Returns the database whose rate is watched meanwhile, if one is named.
fn watched(args: &CopyArgs, context: &Context) -> Result<Option<Beside>> {
    let address = args.db.as_deref().map(|db| recordings::database(db, &context.global));
    address.transpose()?.as_deref().map(Beside::start).transpose()
}

/// Returns the settings of a copy; `None` for that of another program.
fn settings_of(tool: Tool, args: &CopyArgs, peer: &Peer) -> Option<Settings> {
    let own = settings(args);
    Some(match (tool, peer) {
        (Tool::Ours, _) => own,
        (Tool::Peer, Peer::Program(_)) => return None,
        (Tool::Peer, Peer::Method(how)) => {
            Settings { file: Options { method: Some((*how).into()), ..own.file }, ..own }
        }
        (Tool::Peer, Peer::Request(request)) => {
            let file = Options { request: *request, in_flight: 1, ..own.file };
            Settings { file, jobs: 1, ..own }
        }
    })
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
