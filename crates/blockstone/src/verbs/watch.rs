//! `blockstone watch`: shows a host live, recorded, replayed, or once as text or as a document.

mod args;
mod export;
mod lines;
mod outputs;
mod overview;
pub mod report;
mod screen;
mod selection;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use blockstone_base::rule::listed;
use blockstone_base::units::Nanos;
use blockstone_figures::WallClock;
use blockstone_judge::rules::registry::WATCH;
use blockstone_probe::Roles;
use blockstone_probe::active_set::Device;
use blockstone_record::{End, Recording, TICKS, out_run_dir};
use blockstone_report::Report;
use blockstone_report::render::json::schema::Document;
use blockstone_screen::{State, show};
use blockstone_servers::monitor::Server;
use blockstone_servers::without_password;
use blockstone_view::{Condition, Focus, History, registry};
use blockstone_watch::{
    Access, Databases, Destination, Import, Kernel, Listen, Listener, Paths, Settings, Token, Watch,
};
use clap::{Args, FromArgMatches};
use jiff::tz::TimeZone;

use crate::exit::Exit;
use crate::finish::finish;
use crate::interrupt::Interrupt;
use crate::part::Part;
use crate::password::PasswordFile;
use crate::printer::Printer;
use crate::verb::{Context, Global, Verb};
use crate::{interval, recordings};
use args::WatchArgs;
use export::Sink;
use outputs::Outputs;
use report::Watched;
use screen::{Live, Recorded};

pub const VERB: Verb = Verb {
    name: "watch",
    about: "Watch a host and its databases: show, record or replay processors, disks, memory, \
            network, processes, sessions",
    options: WatchArgs::augment_args,
    run: |options, context| run(&WatchArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(WATCH).collect(),
    finds_runs: true,
    writes: true,
    documents: &[Document::of::<blockstone_view::Document>(
        "interval",
        "An interval that was watched",
    )
    .tables_under(report::VIEWS)],
    report: Some(|recording, context| {
        let asked = Asked { part: &Part::WHOLE, views: &[], only: &[] };
        report_of(&recording, &asked, &context.global)
    }),
    ..Verb::PLAIN
};

/// Number of ticks of a recording that are read at a time to be printed as lines.
const PIECE_TICKS: usize = 600;

/// Time span of the past to which the screen can go back.
const KEEP: Nanos = Nanos::millis(600_000);

fn run(args: &WatchArgs, context: &Context) -> Result<Exit> {
    let Context { global, printer } = context;
    let printer = *printer;
    refuse_ineffective(args, global)?;
    if let Some(name) = &args.replay {
        blockstone_sys::memory::hold_to(None);
        return replay(name, args, context);
    }
    if let ([_, ..], Some(dir)) = (args.import.as_slice(), &args.record) {
        blockstone_sys::memory::hold_to(None);
        return import(&args.import, args.keep_names, dir, printer);
    }
    let interrupt = Interrupt::install()?;
    let settings = settings(args, global)?;
    let sink = Sink::open(args)?;
    let listener = args.listen.map(|address| listen(address, args, printer)).transpose()?;
    let mut watch = Watch::start(&settings)?;
    if let Some(listener) = listener {
        watch.tell(listener);
    }
    for server in watch.servers().filter(|server| !server.is_local) {
        let Server { product, version, address, .. } = server;
        printer.note(&format!(
            "note: {product} {version} at {address} is not on this host, or its processes cannot \
             be identified: the tables do not include its processors, files and disks"
        ));
    }
    let ended = attend(&mut watch, args, sink, context, &interrupt);
    let end = match (&ended, interrupt.signal()) {
        (Err(error), _) => match End::failed(error.as_ref()) {
            End::Failed { errno, .. } => End::Failed { error: format!("{error:#}"), errno },
            end => end,
        },
        (Ok(_), Some(signal)) => End::Interrupted { signal: signal.to_owned() },
        (Ok(_), None) => End::Complete,
    };
    let interrupted = matches!(end, End::Interrupted { .. });
    let closed = watch.close(end);
    let report = ended?;
    closed?;
    if let Some(dir) = &args.record {
        printer.note(&format!("recording: {}", dir.display()));
    }
    let exit = report.map_or(Ok(Exit::Done), |report| finish(&report, context))?;
    Ok(if interrupted { Exit::Interrupted } else { exit })
}

/// Refuses options for a document, a table or a page unless a single interval is shown.
fn refuse_ineffective(args: &WatchArgs, global: &Global) -> Result<()> {
    if args.once {
        let table = args.csv.as_deref().filter(|name| !name.is_empty());
        if let Some(name) = table.filter(|name| registry::find(name).is_none()) {
            let names: Vec<&str> = registry::ALL.iter().map(|view| view.name).collect();
            let names = names.join(", ");
            bail!("print {name} as CSV: there is no such table\nhint: its tables are {names}");
        }
        return Ok(());
    }
    // The name of a table would be taken for a file.
    let table = args.csv.as_deref().filter(|name| registry::find(name).is_some());
    let streamed = Global { csv: table.map(str::to_owned), ..global.clone() };
    if let Some(option) = streamed.asks_for_report() {
        let hint = match table {
            Some(name) => format!("add --once, or write every tick with --csv ./{name}"),
            None => "add --once, or --record DIR and then use blockstone report".to_owned(),
        };
        bail!("{option} without --once: there is no interval to report\nhint: {hint}");
    }
    if args.lines && args.csv_file() == Some(Path::new("-")) {
        bail!(
            "--lines cannot be used with --csv -: both print on standard output\n\
             hint: --csv FILE"
        );
    }
    Ok(())
}

/// Watches until the end. With `--once` it returns a report of the last interval; the reports of
/// earlier intervals are printed when those end.
fn attend(
    watch: &mut Watch,
    args: &WatchArgs,
    sink: Option<Sink>,
    context: &Context,
    interrupt: &Interrupt,
) -> Result<Option<Report>> {
    let printer = context.printer;
    let focus = interval::focus(&args.view, &args.only, watch.history())?;
    watch.look()?;
    let ticks = args.duration.map(|time| time.get().div_ceil(args.interval.get()).max(1));
    let ticks = if args.once { Some(ticks.unwrap_or(1)) } else { ticks };
    let title = hostname();
    if !args.once && !args.lines && sink.is_none() && draws() {
        let mut live = Live { watch, ticks, taken: 0, interrupt, title };
        show(&mut live, State::at_view(args.view.first().map(String::as_str)))?;
        return Ok(None);
    }
    // With --record or --listen, it continues when its output is no longer read.
    let goes_on = args.once || args.record.is_some() || args.listen.is_some();
    let lines = args.lines || !(goes_on || sink.is_some());
    let mut outputs = Outputs::new(args, lines, sink, watch.history(), context)?;
    for time in 1..=args.times {
        let begin_ns = watch.history().ticks().next_back();
        let mut taken = 0;
        while ticks.is_none_or(|ticks| taken < ticks) && interrupt.signal().is_none() {
            look(watch, printer)?;
            taken += 1;
            if let Some(interval) = watch.history().latest().filter(|_| !outputs.is_over()) {
                outputs.tick(Some(watch.realtime_ns(interval.to_ns)), &interval)?;
                if outputs.is_over() && !goes_on {
                    return Ok(None);
                }
            }
        }
        if !args.once {
            return Ok(None);
        }
        if taken == 0 && time > 1 {
            break;
        }
        let report = report_since(watch, begin_ns, focus.as_ref(), args, context)?;
        if time == args.times || interrupt.signal().is_some() {
            return Ok(Some(report));
        }
        finish(&report, context)?;
    }
    Ok(None)
}

/// Takes the next tick, and prints a warning about anything that is wrong with it.
fn look(watch: &mut Watch, printer: Printer) -> Result<()> {
    let before = watch.silent().map(str::to_owned);
    watch.wait_and_look()?;
    for jump in watch.jumps() {
        printer.note(&format!("warning: {jump}"));
    }
    if let Some(why) = watch.silent().filter(|_| before.is_none()) {
        printer.note(&format!("warning: {}", why.replace('\n', "; ")));
    }
    Ok(())
}

/// Returns the report of the time since a tick.
fn report_since(
    watch: &Watch,
    begin_ns: Option<u64>,
    focus: Option<&Focus>,
    args: &WatchArgs,
    context: &Context,
) -> Result<Report> {
    let whole = interval::some(watch.history().whole())?;
    let begin_ns = begin_ns.map_or(whole.from_ns, |begin_ns| begin_ns.max(whole.from_ns));
    let interval = watch.history().interval(begin_ns, whole.to_ns);
    let interval = focus.map_or(interval, |focus| interval.only(focus));
    let instants = [interval.from_ns, interval.to_ns].map(|ns| Some(watch.realtime_ns(ns)));
    let watched = Watched { manifest: None, recording: String::new(), interval, instants };
    Ok(report::report(&watched, &args.view, &context.global))
}

/// Whether there is a terminal to draw on and a keyboard to read.
fn draws() -> bool {
    let moves_cursor = std::env::var_os("TERM").is_none_or(|name| name != "dumb");
    moves_cursor && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

fn settings(args: &WatchArgs, global: &Global) -> Result<Settings> {
    let password = PasswordFile { password_file: args.password_file.clone() };
    password.read_for(args.db.iter().map(String::as_str))?;
    if let Some(twice) = args.db.iter().enumerate().find(|(at, db)| args.db[..*at].contains(db)) {
        bail!("watch {} twice\nhint: name each database once", without_password(twice.1));
    }
    let record = args.record.as_deref().map(|dir| destination(dir, args.keep)).transpose()?;
    let missing = args.pid.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    if let Some(pid) = missing {
        bail!("watch process {pid}: no such process\nhint: ps -e lists processes");
    }
    Ok(Settings {
        argv: recordings::command_line(),
        interval: args.interval,
        keep: keep(args),
        roles: Roles::with(args.pid.clone(), args.group.clone()),
        record,
        databases: args
            .db
            .iter()
            .map(|db| recordings::database(db, global))
            .collect::<Result<_>>()?,
        samples: args.sample,
        kernel: match (args.no_bpf, !args.db.is_empty() || !args.pid.is_empty()) {
            (true, _) => Kernel::Off,
            (false, false) => Kernel::Requests,
            (false, true) => Kernel::Calls,
        },
        profile_per_second: args.profile.then_some(args.profile_hz),
        active_set: args.active_set.as_deref().map(devices_of).transpose()?,
    })
}

/// Returns the devices that are, or contain, these paths.
fn devices_of(paths: &[PathBuf]) -> Result<Vec<Device>> {
    let of = |path: &PathBuf| {
        let shown = path.display();
        let found = Device::at(path).with_context(|| {
            format!("watch the active set of {shown}\nhint: name a device or a file on it")
        })?;
        found.with_context(|| {
            format!(
                "watch the active set of {shown}: its file system hides its devices\n\
                 hint: name the device, or none for all"
            )
        })
    };
    paths.iter().map(of).collect()
}

/// Returns how much of the past is needed: the whole time for one report, otherwise as much as the
/// screen can show.
fn keep(args: &WatchArgs) -> Nanos {
    let all = args.duration.filter(|_| args.once).map_or(Nanos(0), |time| time);
    KEEP.max(Nanos(all.get().max(args.interval.get()).saturating_add(args.interval.get())))
}

fn hostname() -> String {
    blockstone_sys::survey::host(Path::new("/")).hostname
}

fn listen(address: SocketAddr, args: &WatchArgs, printer: Printer) -> Result<Listener> {
    if !address.ip().to_canonical().is_loopback() && !args.allow_remote {
        bail!(
            "listen on {address}: other hosts could connect\n\
             hint: use --listen 127.0.0.1:{}, or add --allow-remote --listen-token-file FILE",
            address.port()
        );
    }
    let token = args.listen_token_file.as_deref().map(Token::read).transpose()?;
    let access = Access { names: args.listen_host.clone(), token };
    let paths = if args.listen_paths { Paths::Shown } else { Paths::Hidden };
    let listener = Listener::start(Listen { address, host: hostname(), access, paths })?;
    printer.note(&format!("listening: http://{}/metrics", listener.address()));
    Ok(listener)
}

fn destination(dir: &Path, keep: Option<Nanos>) -> Result<Destination> {
    let run = out_run_dir(dir)?;
    Ok(Destination { dir: run.path, id: run.id, keep })
}

fn import(files: &[PathBuf], keep_names: bool, dir: &Path, printer: Printer) -> Result<Exit> {
    let import = if keep_names {
        Import::read_loads(files, keep_names, Databases::One)?
    } else {
        Import::read(files)?
    };
    for note in import.notes() {
        printer.note(&format!("warning: {note}"));
    }
    import.record(&destination(dir, None)?, &recordings::command_line())?;
    printer.note(&format!("imported: {}", import.summary()));
    printer.note(&format!("recording: {}", dir.display()));
    Ok(Exit::Done)
}

fn replay(name: &str, args: &WatchArgs, context: &Context) -> Result<Exit> {
    let part = Part::of(name)?.or(args.from, args.to);
    let recording = recordings::open(&part.run, &context.global.runs_dir)?;
    for warning in recording.warnings() {
        context.printer.note(&format!("warning: {warning}"));
    }
    if args.lines || args.csv_file().is_some() {
        return replay_ticks(&recording, &part, args, context);
    }
    if args.once || !draws() {
        let asked = Asked { part: &part, views: &args.view, only: &args.only };
        return finish(&report_of(&recording, &asked, &context.global)?, context);
    }
    let (history, _) = interval::some(interval::read(&recording, part.from, part.to)?)?;
    let manifest = &recording.manifest;
    let by = manifest.imported.as_ref().map(|i| format!(" · imported from {}", i.told_by()));
    let shown = match recording.instants(TICKS)?.len() / history.ticks().count().max(1) {
        0 | 1 => String::new(),
        joined => format!(" · one in {joined} ticks is shown, all in a part (--from, --to)"),
    };
    let by = by.unwrap_or_default();
    let title = format!("{} {}{by}{shown}", manifest.host.hostname, recording.dir.display());
    let mut recorded = Recorded { history, title, interrupt: Interrupt::install()? };
    show(&mut recorded, State::at_view(args.view.first().map(String::as_str)))?;
    Ok(Exit::Done)
}

/// Prints every interval of a recording, or of a part of it, as lines or CSV. The recording is read
/// piece by piece; each piece includes the last tick of the one before it.
fn replay_ticks(
    recording: &Recording,
    part: &Part,
    args: &WatchArgs,
    context: &Context,
) -> Result<Exit> {
    let ticks = recording.instants(TICKS)?;
    let (from_ns, to_ns) =
        interval::some(interval::edges(&recording.manifest, &ticks, part.from, part.to)?)?;
    let begin = ticks.partition_point(|tick| *tick < from_ns);
    let end = ticks.partition_point(|tick| *tick <= to_ns);
    let whole = History::read_part(recording, ticks.clone(), (from_ns, to_ns))?;
    let sink = Sink::open(args)?;
    let mut outputs = Outputs::new(args, args.lines, sink, &whole, context)?;
    outputs.columns_of(&whole.interval(from_ns, to_ns))?;
    drop(whole);
    let clock = WallClock::of(&recording.manifest);
    for first in (begin..end.saturating_sub(1)).step_by(PIECE_TICKS) {
        let piece = &ticks[first..end.min(first + PIECE_TICKS + 1)];
        let span_ns = (piece[0], piece[piece.len() - 1]);
        let history = History::read_part(recording, ticks.clone(), span_ns)?;
        let history = history.in_zone(TimeZone::system());
        for pair in piece.windows(2) {
            let instant_ns = clock.realtime_ns(pair[1]);
            outputs.tick(instant_ns, &history.interval(pair[0], pair[1]))?;
            if outputs.is_over() {
                return Ok(Exit::Done);
            }
        }
    }
    Ok(Exit::Done)
}

/// Selection of what to show of a part of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub part: &'a Part,
    /// Names of views; if empty, all views.
    pub views: &'a [String],
    /// Conditions on session samples.
    pub only: &'a [Condition],
}

/// Returns the report of the activity of all layers in a part of a recording's time, whichever verb
/// made it.
pub fn report_of(recording: &Recording, asked: &Asked<'_>, global: &Global) -> Result<Report> {
    let (history, (from_ns, to_ns)) =
        interval::some(interval::read(recording, asked.part.from, asked.part.to)?)?;
    let focus = interval::focus(asked.views, asked.only, &history)?;
    let interval = history.interval(from_ns, to_ns);
    let interval = focus.as_ref().map_or(interval, |focus| interval.only(focus));
    let manifest = &recording.manifest;
    let watched = Watched {
        manifest: Some(manifest),
        recording: recording.dir.display().to_string(),
        interval,
        instants: [from_ns, to_ns].map(|ns| WallClock::of(manifest).realtime_ns(ns)),
    };
    Ok(report::report(&watched, asked.views, global))
}
