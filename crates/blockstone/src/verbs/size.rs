//! `blockstone size`: derives the hardware needed from the load that was measured.

mod args;
mod chosen;
mod drive;
mod earlier;
mod files;
mod hardware;
mod machine;
mod report;
mod rows;
mod rules;
mod sources;
mod verify;

use anyhow::{Result, bail};
use blockstone_base::rule::{judge, listed};
use blockstone_base::table::Rows as _;
use blockstone_base::verdict::Verdict;
use blockstone_report::render::json::schema::Document;
use blockstone_size::hardware::Demand;
use blockstone_size::hardware::carried::carried;
use blockstone_size::hardware::change::Known;
use blockstone_size::hours::Filter;
use blockstone_size::need::Need;
use blockstone_size::{Database, Observation, Question, databases};
use blockstone_sys::memory;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::finish::finish;
use crate::verb::{Context, Verb};
use args::{NeedArgs, SizeArgs};
use chosen::Chosen;
use hardware::Hardware;
use rules::{NeedFindings, RunOfNeed};
use sources::Sources;
use verify::Held;

pub const VERB: Verb = Verb {
    name: "size",
    about: "Size storage for a load that was measured, and name the ceiling that binds",
    options: SizeArgs::augment_args,
    run: |options, context| run(&SizeArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    finds_runs: true,
    writes: true,
    documents: &[Document::of_tables(
        ("size", 2),
        "A need and its hardware",
        rows::Summary::COLUMNS,
        report::TABLES,
    )],
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
    pub verdicts: Vec<Verdict>,
}

fn run(args: &SizeArgs, context: &Context) -> Result<Exit> {
    memory::hold_to(Some(memory::READING));
    refuse_ineffective(args)?;
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
        verdicts,
    };
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
            bail!("size with {option}: nothing was observed\nhint: name reports, or omit {option}")
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
        bail!(
            "size: neither a path nor a need is given\n\
             hint: name reports or recordings, or state a need with --iops"
        );
    }
    let sources = sources::read(args, context)?;
    let databases = databases(&sources.observations);
    if databases.len() > 1 && !args.merge {
        let names: Vec<&str> = databases.iter().map(|it| it.name.as_str()).collect();
        bail!(
            "size {} databases: {}\nhint: --merge sizes them for the same storage",
            databases.len(),
            blockstone_report::short(&names.join(", "), 200)
        );
    }
    let Some(need) = Need::of(&databases, question) else {
        bail!("size: {}", nothing(&sources.observations, question));
    };
    let demand = demand(&need, &databases, question, &args.need.percentile)?;
    Ok((sources, databases, Some(need), demand))
}

/// Returns the reason that no need can be derived.
fn nothing(observations: &[Observation], question: &Question) -> &'static str {
    let known = observations.iter().any(|it| it.hardware_iops(1.0).is_some());
    match (observations.is_empty(), known) {
        (true, _) => "nothing was observed over time\nhint: it takes two snapshots at least",
        (_, false) => {
            "no interval has both reads and writes\n\
             hint: the file may lack the disks of the database"
        }
        (_, true) if question.filter != Filter::default() => {
            "no interval lies in these hours\n\
             hint: other --hours, or without --weekdays or --month-end"
        }
        (_, true) => "no interval is long enough",
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
        bail!("size: all intervals are idle\nhint: observe the load that is to be sized for");
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
