//! `blockstone watch`: a host live, recorded, replayed, or once as text or as a document.

mod screen;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_probe::Roles;
use blockstone_record::{End, out_run_dir};
use blockstone_screen::{State, show};
use blockstone_view::History;
use blockstone_watch::{Destination, Kernel, Listener, Settings, Watch};

use super::{find_run, interval};
use crate::cli::Global;
use crate::cli::watch::WatchArgs;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::printer::Printer;
use screen::{Live, Recorded};

/// How much of the past the screen can go back to.
const KEEP: Nanos = Nanos::millis(600_000);

pub fn run(args: &WatchArgs, global: &Global, printer: Printer) -> Result<Exit> {
    if let Some(name) = &args.replay {
        return replay(name, args, global, printer);
    }
    let interrupt = Interrupt::install()?;
    let settings = settings(args)?;
    let listener = args.listen.map(|address| listen(address, args, printer)).transpose()?;
    let mut watch = Watch::start(&settings)?;
    if let Some(listener) = listener {
        watch.tell(listener);
    }
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
    let title = hostname();
    if !args.once && draws() {
        let mut live = Live { watch, ticks, taken: 0, interrupt, title };
        show(&mut live, State::at_view(args.view.first().map(String::as_str)))?;
        return Ok(());
    }
    if !args.once && args.record.is_none() && args.listen.is_none() {
        bail!(
            "watch without a terminal: nothing to draw on\n\
             hint: --once prints one interval, --record DIR records, --listen answers Prometheus"
        );
    }
    let (mut taken, mut told) = (0, false);
    while ticks.is_none_or(|ticks| taken < ticks) && interrupt.signal().is_none() {
        watch.wait_and_look()?;
        for jump in watch.jumps() {
            printer.note(&format!("warning: {jump}"));
        }
        if let Some(why) = watch.silent().filter(|_| !told) {
            printer.note(&format!("warning: {}", why.replace('\n', "; ")));
        }
        told = watch.silent().is_some();
        taken += 1;
    }
    if args.once {
        interval::print(watch.history().whole(), &args.view, printer)?;
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
        database: args.db.clone(),
        samples: args.sample,
        kernel: match (args.no_bpf, args.db.is_some() || !args.pid.is_empty()) {
            (true, _) => Kernel::Off,
            (false, false) => Kernel::Requests,
            (false, true) => Kernel::Calls,
        },
        profile_per_second: args.profile.then_some(args.profile_hz),
    })
}

fn hostname() -> String {
    blockstone_sys::survey::host(Path::new("/")).hostname
}

fn listen(address: SocketAddr, args: &WatchArgs, printer: Printer) -> Result<Listener> {
    if !address.ip().is_loopback() && !args.allow_remote {
        bail!(
            "listen on {address}: other hosts would reach it, and nobody is asked for a password\n\
             hint: --listen 127.0.0.1:{}, or add --allow-remote",
            address.port()
        );
    }
    let listener = Listener::start(address, &hostname())?;
    let at = listener.address().unwrap_or(address);
    printer.note(&format!("listening: http://{at}/metrics"));
    Ok(listener)
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
        let title = format!("{} {}", manifest.host.hostname, recording.dir.display());
        let mut recorded = Recorded { history, title, interrupt: Interrupt::install()? };
        show(&mut recorded, State::at_view(args.view.first().map(String::as_str)))?;
        return Ok(Exit::Done);
    }
    interval::print(interval::window(&history, args.from, args.to)?, &args.view, printer)?;
    Ok(Exit::Done)
}
