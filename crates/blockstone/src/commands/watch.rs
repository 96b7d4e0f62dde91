//! `blockstone watch`: a host live, recorded, replayed, or once as text or as a document.

mod screen;

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_probe::Roles;
use blockstone_record::{End, out_run_dir};
use blockstone_report::terminal;
use blockstone_screen::{State, show};
use blockstone_view::{History, Interval};
use blockstone_watch::{Destination, Settings, Watch};

use super::find_run;
use screen::{Live, Recorded};
use crate::cli::Global;
use crate::cli::watch::WatchArgs;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::printer::{Printer, answer};

/// How much of the past the screen can go back to.
const KEEP: Nanos = Nanos::millis(600_000);

pub fn run(args: &WatchArgs, global: &Global, printer: Printer) -> Result<Exit> {
    if let Some(name) = &args.replay {
        return replay(name, args, global, printer);
    }
    let interrupt = Interrupt::install()?;
    let mut watch = Watch::start(&settings(args)?)?;
    let ended = attend(&mut watch, args, printer, &interrupt);
    let end = match (&ended, interrupt.signal()) {
        (Err(error), _) => End::Failed { error: format!("{error:#}") },
        (Ok(()), Some(signal)) => End::Interrupted { signal: signal.to_owned() },
        (Ok(()), None) => End::Complete,
    };
    let interrupted = matches!(end, End::Interrupted { .. });
    let closed = watch.close(end);
    ended?;
    closed?;
    if let Some(dir) = &args.record {
        printer.note(&format!("recording: {}", dir.display()));
    }
    Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
}

/// Watches until it is over.
fn attend(
    watch: &mut Watch,
    args: &WatchArgs,
    printer: Printer,
    interrupt: &Interrupt,
) -> Result<()> {
    watch.look()?;
    let ticks = args.duration.map(|time| time.get().div_ceil(args.interval.get()).max(1));
    let ticks = if args.once { Some(ticks.unwrap_or(1)) } else { ticks };
    let title = blockstone_sys::survey::host(Path::new("/")).hostname;
    if !args.once && draws() {
        let mut live = Live { watch, ticks, taken: 0, interrupt, title };
        show(&mut live, State::at_view(args.view.first().map(String::as_str)))?;
        return Ok(());
    }
    if !args.once && args.record.is_none() {
        bail!(
            "watch without a terminal: nothing to draw on\n\
             hint: --once prints one interval, --record DIR records"
        );
    }
    let mut taken = 0;
    while ticks.is_none_or(|ticks| taken < ticks) && interrupt.signal().is_none() {
        watch.wait_and_look()?;
        for jump in watch.jumps() {
            printer.note(&format!("warning: {jump}"));
        }
        taken += 1;
    }
    if args.once {
        let interval = watch.history().whole();
        print(interval, args, printer)?;
    }
    Ok(())
}

/// Whether there is a terminal to draw on and a keyboard to read.
fn draws() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

fn settings(args: &WatchArgs) -> Result<Settings> {
    let record = args.record.as_deref().map(destination).transpose()?;
    let missing = args.pid.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    if let Some(pid) = missing {
        bail!("watch process {pid}: there is none\nhint: ps -e lists processes");
    }
    Ok(Settings {
        argv: std::env::args().collect(),
        interval: args.interval,
        keep: args.duration.map_or(KEEP, |time| Nanos(time.get() + args.interval.get())),
        roles: Roles::with(args.pid.clone(), args.group.clone()),
        record,
    })
}

fn destination(dir: &Path) -> Result<Destination> {
    let run = out_run_dir(dir)?;
    Ok(Destination { dir: run.path, id: run.id })
}

fn replay(name: &str, args: &WatchArgs, global: &Global, printer: Printer) -> Result<Exit> {
    let recording = find_run::open(name, &global.runs_dir)?;
    for warning in recording.warnings() {
        printer.note(&format!("warning: {warning}"));
    }
    let history = History::read(&recording)?;
    if !args.once && draws() {
        let manifest = &recording.manifest;
        let title = format!("{} {}", manifest.host.hostname, manifest.started_at);
        let mut recorded = Recorded { history, title, interrupt: Interrupt::install()? };
        show(&mut recorded, State::at_view(args.view.first().map(String::as_str)))?;
        return Ok(Exit::Done);
    }
    print(window(&history, args)?, args, printer)?;
    Ok(Exit::Done)
}

/// The part of a recording that was asked for: all of it, or between two instants counted from its
/// first tick.
fn window<'a>(history: &'a History, args: &WatchArgs) -> Result<Option<Interval<'a>>> {
    let (Some(first), Some(last)) = (history.ticks().next(), history.ticks().next_back()) else {
        return Ok(None);
    };
    let at = |time: Option<Nanos>, default: u64| match time {
        None => default,
        Some(time) => history.tick_at(first + time.get()).unwrap_or(default),
    };
    let (from_ns, to_ns) = (at(args.from, first), at(args.to, last));
    if from_ns >= to_ns {
        bail!(
            "show from {} to {}: there is no tick between them\n\
             hint: the recording lasts {}",
            args.from.unwrap_or(Nanos(0)),
            args.to.unwrap_or(Nanos(last - first)),
            Nanos(last - first)
        );
    }
    Ok(Some(history.interval(from_ns, to_ns)))
}

fn print(interval: Option<Interval<'_>>, args: &WatchArgs, printer: Printer) -> Result<()> {
    let Some(interval) = interval else {
        bail!("show an interval: there are not two ticks\nhint: it ended too early");
    };
    let text = if printer.json {
        format!("{}\n", serde_json::to_string_pretty(&blockstone_view::document(&interval))?)
    } else {
        terminal::views_terminal(&interval, &args.view, &printer.style())
    };
    Ok(answer(&text)?)
}
