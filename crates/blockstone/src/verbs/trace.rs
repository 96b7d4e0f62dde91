//! `blockstone trace`: divides the response time of statements, from what the database logged.

mod ahead;
mod args;
mod earlier;
mod input;
mod report;
mod rows;
mod rules;
mod what_if;
mod words;

use anyhow::{Result, bail};
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_base::units::Bytes;
use blockstone_report::render::json::schema::Document;
use blockstone_sys::memory;
use blockstone_trace::{Kind, Options};
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::progress::Progress;
use crate::verb::{Context, Verb};
use crate::{recordings, verbs};
use args::{Style, TraceArgs};
pub use report::subject;
use report::{Asked, Measured};

pub const VERB: Verb = Verb {
    name: "trace",
    about: "Show where the time of statements went, from traces and logs",
    options: TraceArgs::augment_args,
    common: &["against", "top", "style", "keep_text", "what_if"],
    run: |options, context| run(&TraceArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    finds_runs: true,
    documents: &[
        Document::of_tables(
            ("trace", 2),
            "A trace or log of statements",
            rows::Summary::COLUMNS,
            report::TABLES,
        ),
        Document::of_tables(("trace-against", 2), "Two of them", &[], report::against::TABLES),
    ],
    ..Verb::PLAIN
};

fn run(args: &TraceArgs, context: &Context) -> Result<Exit> {
    memory::hold_to(Some(memory::READING));
    let options = Options {
        keep_text: args.keep_text,
        weight: 1.0 / args.sample_rate.unwrap_or(1.0),
        ..Options::default()
    };
    let mut bar = Progress::start(context.printer)?;
    let read = input::read(&args.files, options, &mut bar);
    let other = match args.against.as_slice() {
        [] => None,
        files => Some(input::read(files, options, &mut bar)),
    };
    bar.finish();
    let input = read?;
    let of_oracle = matches!(input.trace.kind, Some(Kind::OracleSql | Kind::Tkprof));
    if args.sample_rate.is_some() && of_oracle {
        bail!(Failure::new(
            "trace with --sample-rate: a SQL trace of Oracle has every execution",
            "omit --sample-rate"
        ));
    }
    if let Some(other) = other.transpose()? {
        if input.trace.kind != other.trace.kind {
            bail!(Failure::new(
                format!(
                    "compare {} with {}: they are logs of different kinds",
                    subject(&args.files),
                    subject(&args.against)
                ),
                "their components are not the same; report each by itself"
            ));
        }
        let names = [subject(&args.files), subject(&args.against)];
        return finish(&report::against::report(&input, &other, &names), context);
    }
    let usual = if input.trace.kind == Some(Kind::SlowLog) { INNODB_PAGE } else { BLOCK };
    let asked = Asked {
        subject: subject(&args.files),
        top: args.top.into(),
        tkprof: args.style == Some(Style::Tkprof),
        memory_cost_ns: args.memory_cost.map(|time| time.get() as f64),
        changes: args.what_if.clone(),
        block_bytes: args.block_size.unwrap_or(usual).get(),
        measured: args.calibration.as_deref().map(|name| measured(name, context)).transpose()?,
    };
    finish(&report::report(&input, &asked), context)
}

/// Block sizes that databases use by default.
const BLOCK: Bytes = Bytes(8 << 10);
const INNODB_PAGE: Bytes = Bytes(16 << 10);

/// Returns the reads of a calibration.
fn measured(name: &str, context: &Context) -> Result<Measured> {
    let recording = recordings::open(name, &context.global.runs_dir)?;
    let (dir, verb) = (recording.dir.display().to_string(), recording.manifest.verb.clone());
    let figures = verbs::find(&verb).and_then(|verb| verb.figures);
    let Some(figures) = figures.filter(|_| verb == CALIBRATE) else {
        bail!(Failure::new(
            format!("compare with {dir}: it is a recording of `{verb}`"),
            format!("name one that blockstone {CALIBRATE} made")
        ));
    };
    let (_, findings) = figures(recording, context)?;
    Ok(Measured::of(dir, &findings))
}

const CALIBRATE: &str = super::calibrate::VERB.name;
