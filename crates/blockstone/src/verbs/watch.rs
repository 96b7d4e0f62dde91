//! `blockstone watch`: shows a host live, recorded, replayed, or once as text or as a document.

mod args;
mod earlier;
mod export;
mod found;
mod keeper;
mod lines;
mod outputs;
mod overview;
pub mod report;
mod rows;
mod screen;
mod selection;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_base::units::Nanos;
use blockstone_figures::WallClock;
use blockstone_judge::rules::registry::WATCH;
use blockstone_probe::active_set::Device;
use blockstone_record::{End, Recording, TICKS};
use blockstone_report::Report;
use blockstone_report::render::json::schema::Document;
use blockstone_screen::{State, show};
use blockstone_servers::monitor::Server;
use blockstone_servers::without_password;
use blockstone_view::{Condition, Focus, History, WHO, registry};
use blockstone_watch::{
    Access, Databases, Destination, Import, Listen, Listener, Paths, Settings, Token, Watch,
    WatchOptions,
};
use clap::{Args, Command, FromArgMatches};
use jiff::tz::TimeZone;

use crate::exit::Exit;
use crate::failure::{self, Failure};
use crate::finish::finish;
use crate::interrupt::Interrupt;
use crate::password::PasswordFile;
use crate::printer::Printer;
use crate::range::RecordingRange;
use crate::verb::{Context, Global, Verb};
use crate::{interval, recordings};
use args::WatchArgs;
use export::Sink;
use found::AUTO;
use keeper::Keeper;
use outputs::Outputs;
use report::Watched;
use rows::Summary;
use screen::{Live, Recorded};

pub const VERB: Verb = Verb {
    name: "watch",
    about: "Watch a host and its databases: show, record or replay",
    options: WatchArgs::augment_args,
    common: &[
        "interval_ns",
        "duration_ns",
        "db",
        "who",
        "record",
        "replay",
        "once",
        "lines",
        "csv",
        "listen",
    ],
    run: |options, context| {
        let mut args = WatchArgs::from_arg_matches(options)?;
        // The short form of a view.
        args.view.extend(args.options.who.then(|| WHO.name.to_owned()));
        if args.options.find && !args.options.db.iter().any(|db| db == AUTO) {
            args.options.db.push(AUTO.to_owned());
        }
        run(&args, context)
    },
    reports: true,
    rules: || listed(WATCH).collect(),
    finds_runs: true,
    writes: true,
    documents: &[Document::of_tables(
        ("interval", 2),
        "An interval that was watched",
        Summary::COLUMNS,
        &[],
    )
    .with_keys::<blockstone_view::Objects>()
    .with_names(&[&registry::NAMES])
    .tables_under(report::VIEWS)],
    report: Some(|recording, context| {
        let asked = Asked { part: &RecordingRange::WHOLE, views: &[], only: &[] };
        report_of(&recording, &asked, &context.global)
    }),
    ..Verb::PLAIN
};

/// Number of ticks of a recording that are read at a time to be printed as lines.
const PIECE_TICKS: usize = 600;

/// Time span of the past to which the screen can go back.
const KEEP: Nanos = Nanos::millis(600_000);

fn run(args: &WatchArgs, context: &Context) -> Result<Exit> {
    let Context { global, printer, .. } = context;
    let printer = *printer;
    refuse_ineffective(args, global)?;
    if let Some(name) = &args.replay {
        blockstone_sys::memory::hold_to(None);
        return replay(name, args, context);
    }
    if let ([_, ..], Some(dir)) = (args.import.as_slice(), &args.options.record) {
        blockstone_sys::memory::hold_to(None);
        return import(&args.import, args.keep_names, dir, context);
    }
    let interrupt = Interrupt::install()?;
    let settings = settings(args, context)?;
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
    let end = end_of(&ended, &interrupt);
    let interrupted = matches!(end, End::Interrupted { .. });
    let closed = watch.close(end);
    let report = ended?;
    closed?;
    if let Some(dir) = &args.options.record {
        printer.note(&format!("recording: {}", dir.display()));
    }
    let exit = report.map_or(Ok(Exit::Done), |report| finish(&report, context))?;
    Ok(if interrupted { Exit::Interrupted } else { exit })
}

/// Watches with these words as its command line, for the time that they name, and records to this
/// directory. An interrupt ends it early.
pub(super) fn record(
    words: Vec<OsString>,
    dir: &Path,
    interrupt: &Interrupt,
    context: &Context,
) -> Result<()> {
    let words = words.into_iter().chain(["--record".into(), dir.as_os_str().to_owned()]);
    let mut command = VERB.declaration().no_binary_name(true);
    for global in Global::augment_args(Command::new("")).get_arguments() {
        // Some of its options conflict with those of every verb, and some replace one.
        if command.get_arguments().all(|own| own.get_id() != global.get_id()) {
            command = command.arg(global.clone());
        }
    }
    let args = WatchArgs::from_arg_matches(&command.try_get_matches_from(words)?)?;
    let mut watch = Watch::start(&settings(&args, context)?)?;
    let sampled = sample(&mut watch, &args, interrupt, context.printer);
    let end = end_of(&sampled, interrupt);
    watch.close(end)?;
    sampled
}

/// Returns the number of ticks of the time that was asked for.
fn ticks(options: &WatchOptions) -> Option<u64> {
    options.duration_ns.map(|time| time.get().div_ceil(options.interval_ns.get()).max(1))
}

fn end_of<T>(ended: &Result<T>, interrupt: &Interrupt) -> End {
    match (ended, interrupt.signal()) {
        (Err(error), _) => match End::failed_by(error.as_ref(), failure::hint(error.chain())) {
            End::Failed { hint, errno, .. } => {
                End::Failed { error: format!("{error:#}"), hint, errno }
            }
            end => end,
        },
        (Ok(_), Some(signal)) => End::Interrupted { signal: signal.to_owned() },
        (Ok(_), None) => End::Complete,
    }
}

fn sample(
    watch: &mut Watch,
    args: &WatchArgs,
    interrupt: &Interrupt,
    printer: Printer,
) -> Result<()> {
    watch.look()?;
    let ticks = ticks(&args.options);
    let mut taken = 0;
    while ticks.is_none_or(|ticks| taken < ticks) && interrupt.signal().is_none() {
        look(watch, printer)?;
        taken += 1;
    }
    Ok(())
}

/// Refuses options for a document, a table or a page unless a single interval is shown.
fn refuse_ineffective(args: &WatchArgs, global: &Global) -> Result<()> {
    if args.once {
        let table = args.csv.as_deref().filter(|name| !name.is_empty());
        if let Some(name) = table.filter(|name| registry::find(name).is_none()) {
            let names: Vec<&str> = registry::ALL.iter().map(|view| view.name).collect();
            let names = names.join(", ");
            bail!(Failure::new(
                format!("print {name} as CSV: the table does not exist"),
                format!("its tables are {names}")
            ));
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
        bail!(Failure::new(
            format!("{option} needs --once: without it, no interval is reported"),
            hint
        ));
    }
    if args.lines && args.csv_file() == Some(Path::new("-")) {
        bail!(Failure::new(
            "--lines cannot be used with --csv -: both print on standard output",
            "--csv FILE"
        ));
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
    let ticks = ticks(&args.options);
    let ticks = if args.once { Some(ticks.unwrap_or(1)) } else { ticks };
    let title = hostname();
    if !args.once && !args.lines && sink.is_none() && draws() {
        let notice = if args.options.db.is_empty() { found::notice() } else { None };
        let keeper = Keeper::new(context, notice);
        let mut live = Live { watch, ticks, taken: 0, interrupt, title, keeper };
        let shown = show(&mut live, State::at_view(args.view.first().map(String::as_str)));
        live.keeper.end(printer);
        shown?;
        return Ok(None);
    }
    // With --record or --listen, it continues when its output is no longer read.
    let goes_on = args.once || args.options.record.is_some() || args.listen.is_some();
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

fn settings(args: &WatchArgs, context: &Context) -> Result<Settings> {
    let options = &args.options;
    let password = PasswordFile { password_file: options.password_file.clone() };
    password.read_for(options.db.iter().map(String::as_str))?;
    if let Some(twice) =
        options.db.iter().enumerate().find(|(at, db)| options.db[..*at].contains(db))
    {
        bail!(Failure::new(
            format!("watch {} twice", without_password(twice.1)),
            "name each database once"
        ));
    }
    let record = options.record.as_deref().map(|dir| destination(dir, context)).transpose()?;
    let missing = options.pid.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    if let Some(pid) = missing {
        bail!(Failure::new(
            format!("watch process {pid}: no such process"),
            "ps -e lists processes"
        ));
    }
    Ok(Settings {
        argv: recordings::command_line(),
        history: history(args),
        record,
        databases: databases(args, context)?,
        who: args.wants_who() || (draws() && !args.once && !args.lines && options.db.is_empty()),
        active_set: options.active_set.as_deref().map(devices_of).transpose()?,
        options: options.clone(),
    })
}

/// Returns the addresses of the databases to watch.
fn databases(args: &WatchArgs, context: &Context) -> Result<Vec<String>> {
    let named = args.options.db.iter().filter(|db| *db != AUTO);
    let named = named.map(|db| recordings::database(db, &context.global));
    let mut all: Vec<String> = named.collect::<Result<_>>()?;
    if args.options.db.iter().any(|db| db == AUTO) {
        let (addresses, refused) = found::addresses()?;
        for why in refused {
            context.printer.note(&format!("note: not watched: {why}"));
        }
        all.extend(addresses);
    }
    Ok(all)
}

/// Returns the devices that are, or contain, these paths.
fn devices_of(paths: &[PathBuf]) -> Result<Vec<Device>> {
    let of = |path: &PathBuf| {
        let shown = path.display();
        let found = Device::at(path).map_err(|error| {
            let what = format!("watch the active set of {shown}");
            Failure::new(what, "name a device or a file on it").because(error)
        })?;
        found.ok_or_else(|| {
            anyhow!(Failure::new(
                format!("watch the active set of {shown}: its file system hides its devices"),
                "name the device, or none for all"
            ))
        })
    };
    paths.iter().map(of).collect()
}

/// Returns how much of the past is needed: the whole time for one report, otherwise as much as the
/// screen can show.
fn history(args: &WatchArgs) -> Nanos {
    let all = args.options.duration_ns.filter(|_| args.once).map_or(Nanos(0), |time| time);
    KEEP.max(Nanos(
        all.get()
            .max(args.options.interval_ns.get())
            .saturating_add(args.options.interval_ns.get()),
    ))
}

fn hostname() -> String {
    blockstone_sys::survey::host(Path::new("/")).hostname
}

fn listen(address: SocketAddr, args: &WatchArgs, printer: Printer) -> Result<Listener> {
    if !address.ip().to_canonical().is_loopback() && !args.allow_remote {
        bail!(Failure::new(
            format!("listen on {address}: other hosts could connect"),
            format!(
                "use --listen 127.0.0.1:{}, or add --allow-remote --listen-token-file FILE",
                address.port()
            )
        ));
    }
    let token = args.listen_token_file.as_deref().map(Token::read).transpose()?;
    let access = Access { names: args.listen_host.clone(), token };
    let paths = if args.listen_paths { Paths::Shown } else { Paths::Hidden };
    let listener = Listener::start(Listen { address, host: hostname(), access, paths })?;
    printer.note(&format!("listening: http://{}/metrics", listener.address()));
    Ok(listener)
}

fn destination(dir: &Path, context: &Context) -> Result<Destination> {
    let run = recordings::elsewhere(dir, &context.global.runs_dir)?;
    Ok(Destination { dir: run.path, id: run.id })
}

fn import(files: &[PathBuf], keep_names: bool, dir: &Path, context: &Context) -> Result<Exit> {
    let printer = context.printer;
    let import = if keep_names {
        Import::read_loads(files, keep_names, Databases::One)?
    } else {
        Import::read(files)?
    };
    for note in import.notes() {
        printer.note(&format!("warning: {note}"));
    }
    import.record(&destination(dir, context)?, &recordings::command_line())?;
    printer.note(&format!("imported: {}", import.summary()));
    printer.note(&format!("recording: {}", dir.display()));
    Ok(Exit::Done)
}

fn replay(name: &str, args: &WatchArgs, context: &Context) -> Result<Exit> {
    let part = RecordingRange::of(name)?.or(args.from, args.to);
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
    let interrupt = Interrupt::install()?;
    let mut recorded = Recorded { history, title, interrupt, note: None };
    show(&mut recorded, State::at_view(args.view.first().map(String::as_str)))?;
    Ok(Exit::Done)
}

/// Prints every interval of a recording, or of a part of it, as lines or CSV. The recording is read
/// piece by piece; each piece includes the last tick of the one before it.
fn replay_ticks(
    recording: &Recording,
    part: &RecordingRange,
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
    pub part: &'a RecordingRange,
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
