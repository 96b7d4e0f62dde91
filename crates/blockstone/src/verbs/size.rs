//! `blockstone size`: derives the hardware needed from the load that was measured.

mod answer;
mod args;
mod chosen;
mod db_time;
mod drive;
mod earlier;
mod files;
mod hardware;
mod machine;
mod on;
mod report;
mod rows;
mod rules;
mod sources;
mod verify;

use std::ffi::OsString;

use anyhow::{Result, anyhow, bail};
use blockstone_base::rule::{judge, listed};
use blockstone_base::table::Rows as _;
use blockstone_base::verdict::Verdict;
use blockstone_report::render::json::schema::Document;
use blockstone_size::hardware::Demand;
use blockstone_size::hardware::carried::carried;
use blockstone_size::hardware::catalogue::EXAMPLE;
use blockstone_size::hardware::change::Known;
use blockstone_size::hours::Filter;
use blockstone_size::need::Need;
use blockstone_size::{Database, Observation, Question, databases};
use blockstone_sys::memory;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::interrupt::Interrupt;
use crate::printer::answer;
use crate::recordings;
use crate::verb::{Context, Verb};
use crate::verbs::watch;
use args::{LiveArgs, NeedArgs, SizeArgs};
use chosen::Chosen;
use hardware::Hardware;
use rules::{NeedFindings, RunOfNeed};
use sources::Sources;
use verify::Held;

pub const VERB: Verb = Verb {
    name: "size",
    about: "Size storage for a measured load, and name what binds",
    options: SizeArgs::augment_args,
    common: &["db", "iops", "redundancy", "hours", "disk", "on", "p99"],
    run: |options, context| live(SizeArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    finds_runs: true,
    writes: true,
    documents: &[Document::of_tables(
        ("size", 2),
        "A need and its hardware",
        rows::Summary::COLUMNS,
        report::TABLES,
    )
    .with_keys::<report::Objects>()],
    ..Verb::PLAIN
};

/// Everything that goes into a report.
pub struct Sized {
    pub sources: Sources,
    pub databases: Vec<Database>,
    pub question: Question,
    /// `None` for a need that was stated.
    pub need: Option<Need>,
    pub percentile: String,
    pub demand: Demand,
    pub hardware: Hardware,
    pub verified: Option<RunOfNeed>,
    pub answer: Option<answer::Answer>,
    pub verdicts: Vec<Verdict>,
}

/// Watches the databases that are named, and sizes the recording.
fn live(mut args: SizeArgs, context: &Context) -> Result<Exit> {
    let LiveArgs { db, watch_for, password_file } = &args.live;
    if db.is_empty() {
        return run(&args, context);
    }
    // Mistakes are told before the time is spent.
    refuse_ineffective(&args)?;
    if args.is_stated() {
        bail!(Failure::new(
            "size a stated need with --db: a need is either stated or measured",
            "omit --db, or the amounts"
        ));
    }
    if args.db_time {
        bail!(Failure::new(
            "size --db with --db-time: a database that is watched does not tell what all of its \
             time is spent on",
            "name a recording of blockstone run in place of --db"
        ));
    }
    Chosen::of(&args, context)?;
    let interrupt = Interrupt::install()?;
    let mut words: Vec<OsString> = db.iter().flat_map(|db| ["--db".into(), db.into()]).collect();
    words.extend(["--for".into(), watch_for.to_string().into()]);
    words.extend(password_file.iter().flat_map(|it| ["--password-file".into(), it.into()]));
    let dir = recordings::new_dir("watch", None, &context.global.runs_dir, &[])?.path;
    context.printer.note(&format!("watching for {watch_for}"));
    watch::record(words, &dir, &interrupt, context)?;
    context.printer.note(&format!("recording: {}", dir.display()));
    if interrupt.signal().is_some() {
        context.printer.note(&format!("to size it: blockstone size {}", dir.display()));
        return Ok(Exit::Interrupted);
    }
    args.paths.push(dir);
    run(&args, context)
}

fn run(args: &SizeArgs, context: &Context) -> Result<Exit> {
    memory::hold_to(Some(memory::READING));
    refuse_ineffective(args)?;
    if args.hardware.catalogue == Some(None) {
        answer(EXAMPLE)?;
        return Ok(Exit::Done);
    }
    let question = question(args);
    let chosen = Chosen::of(args, context)?;
    let (sources, databases, need, demand) = if args.is_stated() {
        (Sources::default(), Vec::new(), None, stated(args, &chosen)?)
    } else {
        observed(args, &question, context)?
    };
    let without = without(&databases, &question, &args.need.percentile);
    // The effect of a cache on one of several databases says nothing about the others.
    let advice = if databases.len() == 1 { sources::advice(&sources) } else { Vec::new() };
    let known = Known { advice: &advice, without: &without, ..Known::default() };
    let hardware = hardware::hold(&demand, args, known, &chosen)?;
    let held = Held { demand: &demand, need: need.as_ref(), hardware: &hardware };
    let verified = match &args.verify {
        Some(run) => Some(verify::verify(run, &held, args, context)?),
        None => None,
    };
    let findings = NeedFindings {
        seconds: need.as_ref().map_or(0.0, |it| it.hardware_iops.seconds),
        intervals: need.as_ref().map_or(0, |it| it.hardware_iops.samples as u64),
        at_max_share: need.as_ref().and_then(|it| it.hardware_iops.at_max_share),
        run: verified,
    };
    let mut verdicts = Vec::new();
    for interval in sources.histories.iter().filter_map(blockstone_figures::History::whole) {
        verdicts.extend(report::distinct(&verdicts, blockstone_judge::judge_watch(&interval)));
    }
    verdicts.extend(judge(rules::ALL, &findings));
    let percentile = args.need.percentile.clone();
    let sized = Sized {
        sources,
        databases,
        question,
        need,
        percentile,
        demand,
        hardware,
        verified,
        answer: None,
        verdicts,
    };
    let log_share = drive::log_writes_of(&sized, args).map(|it| it.redo_share);
    let wanted = on::Wanted {
        demand: &sized.demand,
        need: sized.need.as_ref().map(|need| (need, sized.databases.as_slice())),
        question: &sized.question,
        named: if sized.need.is_some() { sized.named() } else { "need" },
        drive: drive::of(&sized, args),
        log_share,
    };
    let answer = on::answer(&wanted, args, context)?;
    let sized = Sized { answer, ..sized };
    finish(&report::report(&sized, args), context)
}

/// Refuses options for hours if nothing was observed.
fn refuse_ineffective(args: &SizeArgs) -> Result<()> {
    let need = &args.need;
    let given = [
        ("--hours", need.hours.is_some()),
        ("--weekdays", need.weekdays),
        ("--month-end", need.month_end.is_some()),
    ];
    match given.iter().find(|(_, given)| *given && args.is_stated()) {
        Some((option, _)) => {
            bail!(Failure::new(
                format!("size with {option}: nothing was observed"),
                format!("name reports, or omit {option}")
            ))
        }
        None => Ok(()),
    }
}

impl Sized {
    /// The percentile that hardware is sized for: the maximum if there are too few intervals.
    pub fn named(&self) -> &str {
        let of = self.need.as_ref().and_then(|it| it.hardware_iops.named(&self.percentile));
        if of.is_some() { &self.percentile } else { "max" }
    }

    /// Requests per second that reach the disks at that percentile.
    pub fn hardware_iops(&self) -> Option<f64> {
        let (reads, writes) = (self.demand.reads_per_s?, self.demand.writes_per_s?);
        Some(reads + self.question.penalty * writes)
    }
}

fn question(args: &SizeArgs) -> Question {
    let hours = args.need.hours.map(|it| (it.0, it.1));
    let NeedArgs { weekdays, month_end: month_end_days, .. } = args.need;
    let filter = Filter { hours, weekdays, month_end_days };
    Question { penalty: args.need.redundancy().penalty(), filter }
}

fn stated(args: &SizeArgs, chosen: &Chosen) -> Result<Demand> {
    let stated = &args.stated;
    if args.asks_what_is_carried() {
        let units = args.hardware.units.unwrap_or(1);
        return Ok(carried(&chosen.unit, &chosen.plan, units, stated.reads)?);
    }
    let mbps = |share: f64| stated.mbps.map(|mbps| mbps * 1e6 * share);
    let by_index = args.reads_of_lookup().zip(stated.lookups).map(|(reads, rows)| reads * rows);
    Ok(Demand {
        reads_per_s: by_index.or(stated.iops.map(|iops| iops * stated.reads)),
        writes_per_s: by_index.map(|_| 0.0).or(stated.iops.map(|iops| iops * (1.0 - stated.reads))),
        read_bytes_per_s: mbps(stated.reads),
        write_bytes_per_s: mbps(1.0 - stated.reads),
        size_bytes: stated.gb.map(|gb| gb * 1e9),
        cores: stated.cores,
        ..Demand::default()
    })
}

type Observed = (Sources, Vec<Database>, Option<Need>, Demand);

fn observed(args: &SizeArgs, question: &Question, context: &Context) -> Result<Observed> {
    if args.inputs().next().is_none() {
        bail!(Failure::new(
            "size: neither a path nor a need is given",
            "name reports or recordings, or state a need with --iops"
        ));
    }
    let sources = sources::read(args, context)?;
    let databases = databases(&sources.observations);
    if databases.len() > 1 && !args.merge {
        let names: Vec<&str> = databases.iter().map(|it| it.name.as_str()).collect();
        bail!(Failure::new(
            format!(
                "size {} databases: {}",
                databases.len(),
                blockstone_report::short(&names.join(", "), 200)
            ),
            "--merge sizes them for the same storage"
        ));
    }
    check_apart(&sources.observations, databases.len())?;
    let Some(need) = Need::of(&databases, question) else {
        // A report whose tables are missing has no interval, and says so itself.
        let cut = sources.notes.iter().find(|note| note.contains(blockstone_import::CUT));
        if let Some(note) = cut.filter(|_| sources.observations.is_empty()) {
            bail!(Failure::new(
                format!("size: {note}"),
                "@?/rdbms/admin/awrrpt.sql makes a report with all of them"
            ));
        }
        let (why, hint) = nothing(&sources.observations, question);
        bail!(match hint {
            Some(hint) => anyhow!(Failure::new(format!("size: {why}"), hint)),
            None => anyhow!("size: {why}"),
        });
    };
    let demand = demand(&need, &databases, question, &args.need.percentile)?;
    Ok((sources, databases, Some(need), demand))
}

/// Refuses to add a pluggable database to the database that it is in, and loads of which it is not
/// known when they were.
fn check_apart(observations: &[Observation], databases: usize) -> Result<()> {
    if databases < 2 {
        return Ok(());
    }
    let is_twice = |part: &&Observation| {
        let Some(container) = &part.container else { return false };
        let whole = part.database.strip_suffix(container.as_str());
        let whole = whole.and_then(|it| it.strip_suffix(':'));
        observations.iter().any(|it| it.container.is_none() && Some(&*it.database) == whole)
    };
    if let Some(part) = observations.iter().find(is_twice) {
        bail!(Failure::new(
            format!("size {} with the database that it is in: it would count twice", part.database),
            "leave out the reports of one of them"
        ));
    }
    if let Some(undated) = observations.iter().find(|it| it.is_undated) {
        bail!(Failure::new(
            format!("size {} with others: when its load was is unknown", undated.database),
            "size it by itself"
        ));
    }
    Ok(())
}

/// Returns the reason that no need can be derived, and what to do about it.
fn nothing(
    observations: &[Observation],
    question: &Question,
) -> (&'static str, Option<&'static str>) {
    let known = observations.iter().any(|it| it.hardware_iops(1.0).is_some());
    let has_bytes = |it: &Observation| it.read_bytes_per_s.or(it.write_bytes_per_s).is_some();
    let has_requests = |it: &Observation| it.reads_per_s.or(it.writes_per_s).is_some();
    let any_requests = observations.iter().any(has_requests);
    let any_bytes = observations.iter().any(has_bytes);
    let of_databases = ["statspack", "csv"];
    let is_of_host = |it: &Observation| !of_databases.iter().any(|kind| it.kind.starts_with(kind));
    match (observations.is_empty(), known) {
        (true, _) => ("nothing was observed over time", Some("it takes two snapshots at least")),
        (_, false) if observations.iter().any(|it| it.kind.starts_with("awr")) => (
            "no interval has both reads and writes",
            Some(
                "the report lacks statistics of the instance, or their numbers cannot be read: \
                 @?/rdbms/admin/awrrpt.sql makes a whole one",
            ),
        ),
        (_, false) if any_bytes && !any_requests => (
            "the file does not count reads and writes of disks apart, only their bytes",
            Some("iostat -x -t 1 does; iostat without -x, vmstat, and dstat without --io do not"),
        ),
        (_, false) if !any_requests && observations.iter().any(is_of_host) => (
            "no disks were observed",
            Some("sar -d -p, sadf -j -- -A and iostat -x -t 1 show the disks of a host"),
        ),
        (_, false) => (
            "no interval has both reads and writes",
            Some("the file may lack the disks of the database"),
        ),
        (_, true) if question.filter != Filter::default() => (
            "no interval lies in these hours",
            Some("other --hours, or without --weekdays or --month-end"),
        ),
        (_, true) => ("no interval is long enough", None),
    }
}

/// The need at the percentile requested, or at the maximum if there are too few intervals for it.
fn demand(
    need: &Need,
    databases: &[Database],
    question: &Question,
    percentile: &str,
) -> Result<Demand> {
    let known = need.hardware_iops.named(percentile).is_some();
    let named = if known { percentile } else { "max" };
    let demand = need.demand(databases, question, named);
    if demand.reads_per_s.is_none() {
        bail!(Failure::new(
            "size: all intervals are idle",
            "observe the load that is to be sized for"
        ));
    }
    Ok(demand)
}

/// The need that remains if one of several databases is moved elsewhere.
fn without(databases: &[Database], question: &Question, percentile: &str) -> Vec<(String, Demand)> {
    if databases.len() < 2 {
        return Vec::new();
    }
    let left = |index: usize| {
        let mut others = databases.to_vec();
        let moved = others.remove(index);
        let need = Need::of(&others, question)?;
        Some((moved.name, demand(&need, &others, question, percentile).ok()?))
    };
    (0..databases.len()).filter_map(left).collect()
}
