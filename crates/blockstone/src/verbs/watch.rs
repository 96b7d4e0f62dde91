//! `blockstone watch`: a host live, recorded, replayed, or once as text or as a document.

mod args;

mod screen;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_probe::Roles;
use blockstone_record::{End, out_run_dir};
use blockstone_screen::{State, show};
use blockstone_target::monitor::Server;
use blockstone_view::History;
use blockstone_watch::{Destination, Import, Kernel, Listener, Settings, Watch};
use clap::{Args, FromArgMatches};

use crate::cli::Global;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::printer::Printer;
use crate::verb::Verb;
use crate::{interval, recordings};
use args::WatchArgs;
use screen::{Live, Recorded};

pub const VERB: Verb = Verb {
    name: "watch",
    about: "Watch a host: processors, disks, memory, network, databases' processes; live, \
            recorded, replayed",
    options: WatchArgs::augment_args,
    run: |options, context| {
        run(&WatchArgs::from_arg_matches(options)?, &context.global, context.printer)
    },
    reports: true,
    ..Verb::PLAIN
};

/// How much of the past the screen can go back to.
const KEEP: Nanos = Nanos::millis(600_000);

fn run(args: &WatchArgs, global: &Global, printer: Printer) -> Result<Exit> {
    if let Some(name) = &args.replay {
        return replay(name, args, global, printer);
    }
    if let ([_, ..], Some(dir)) = (args.import.as_slice(), &args.record) {
        return import(&args.import, dir, printer);
    }
    let interrupt = Interrupt::install()?;
    let settings = settings(args, global)?;
    let listener = args.listen.map(|address| listen(address, args, printer)).transpose()?;
    let mut watch = Watch::start(&settings)?;
    if let Some(listener) = listener {
        watch.tell(listener);
    }
    if let Some(server) = watch.server().filter(|server| !server.is_local) {
        let Server { product, version, address, .. } = server;
        printer.note(&format!(
            "note: {product} {version} at {address} is not on this host, or cannot be told among \
             its processes: of its processors, files and disks nothing is in these tables"
        ));
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
        interval::print(watch.history().whole(), &args.view, &args.only, printer)?;
    }
    Ok(())
}

/// Whether there is a terminal to draw on and a keyboard to read.
fn draws() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

fn settings(args: &WatchArgs, global: &Global) -> Result<Settings> {
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
        database: args.db.as_deref().map(|db| address(db, global)).transpose()?,
        samples: args.sample,
        kernel: match (args.no_bpf, args.db.is_some() || !args.pid.is_empty()) {
            (true, _) => Kernel::Off,
            (false, false) => Kernel::Requests,
            (false, true) => Kernel::Calls,
        },
        profile_per_second: args.profile.then_some(args.profile_hz),
    })
}

/// A run in progress is named like its recording will be: here its directory takes that place.
fn address(database: &str, global: &Global) -> Result<String> {
    let Some(run) = database.strip_prefix("run:") else { return Ok(database.to_owned()) };
    Ok(format!("run:{}", recordings::locate(run, &global.runs_dir)?.display()))
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

/// Makes a recording of another tool's files.
fn import(files: &[PathBuf], dir: &Path, printer: Printer) -> Result<Exit> {
    let import = Import::read(files)?;
    for note in import.notes() {
        printer.note(&format!("warning: {note}"));
    }
    import.record(&destination(dir)?, &std::env::args().collect::<Vec<_>>())?;
    printer.note(&format!("imported: {}", import.summary()));
    printer.note(&format!("recording: {}", dir.display()));
    Ok(Exit::Done)
}

fn replay(name: &str, args: &WatchArgs, global: &Global, printer: Printer) -> Result<Exit> {
    let recording = recordings::open(name, &global.runs_dir)?;
    for warning in recording.warnings() {
        printer.note(&format!("warning: {warning}"));
    }
    let history = History::read(&recording)?;
    if !args.once && draws() {
        let manifest = &recording.manifest;
        let by = manifest.imported.as_ref().map(|i| format!(" · imported from {}", i.told_by()));
        let title = format!(
            "{} {}{}",
            manifest.host.hostname,
            recording.dir.display(),
            by.unwrap_or_default()
        );
        let mut recorded = Recorded { history, title, interrupt: Interrupt::install()? };
        show(&mut recorded, State::at_view(args.view.first().map(String::as_str)))?;
        return Ok(Exit::Done);
    }
    let window = interval::window(&history, args.from, args.to)?;
    interval::print(window, &args.view, &args.only, printer)?;
    Ok(Exit::Done)
}
