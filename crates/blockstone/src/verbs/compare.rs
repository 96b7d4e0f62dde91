//! `blockstone compare`: faster, slower, or difference not established.

mod args;
mod overlay;
mod report;

use anyhow::{Result, bail};
use blockstone_base::stats;
use blockstone_base::table::Rows as _;
use blockstone_base::units::Nanos;
use blockstone_figures::compare::{Comparison, Recorded, Source};
use blockstone_record::manifest::Manifest;
use blockstone_record::{Recording, RunEntry, RunState};
use blockstone_report::Report;
use blockstone_report::render::json::schema::Document;
use clap::{Args, FromArgMatches};

use super::report::WATCH;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::instants::When;
use crate::range::RecordingRange;
use crate::verb::{Context, Verb};
use crate::{interval, recordings, verbs};
use args::CompareArgs;
use report::layers::Layers;
use report::rows::{LayersSummary, Summary};

pub const VERB: Verb = Verb {
    name: "compare",
    about: "Compare recordings: faster, slower, or not established",
    options: CompareArgs::augment_args,
    run: |options, context| run(&CompareArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    documents: &[
        Document::of_tables(
            ("compare", 2),
            "Two sets of recordings, by figure",
            Summary::COLUMNS,
            &[report::TABLES, report::figures::TABLES],
        )
        .with_names(&[report::figures::FOR_PEOPLE]),
        Document::of_tables(
            ("difference", 2),
            "Two sets of parts of time, by layer",
            LayersSummary::COLUMNS,
            &[report::TABLES, report::layers::TABLES],
        )
        .with_names(&[report::layers::FOR_PEOPLE]),
    ],
    ..Verb::PLAIN
};

/// A recording, and the selected part of its time.
struct Named {
    recording: Recording,
    part: RecordingRange,
}

fn run(args: &CompareArgs, context: &Context) -> Result<Exit> {
    blockstone_sys::memory::hold_to(None);
    let [a, b] = args.sets()?.map(|names| {
        names.iter().map(|name| Named::open(name, context)).collect::<Result<Vec<_>>>()
    });
    let (mut a, b) = (a?, b?);
    if a.is_empty() {
        a.push(Named::before(&b[0], context)?);
    }
    let verb = one_verb(&a, &b)?;
    let tool_version = Some(a[0].recording.manifest.tool_version.clone());
    let overlay = if context.global.html.is_some() {
        overlay::section([&a[0], &b[0]].map(|named| (&named.recording, &named.part)))?
    } else {
        None
    };
    let of_layers = verb == WATCH || a.iter().chain(&b).any(|named| named.part.is_limited());
    let finished = |mut report: Report| {
        // After the settings that differ, because those may explain the curves.
        let place = report.sections.len().min(1);
        report.sections.splice(place..place, overlay);
        finish(&Report { tool_version, ..report }, context)
    };
    if of_layers {
        let (a, b) = (layers(&a)?, layers(&b)?);
        check_distinct([&a.sources, &b.sources], args, context)?;
        if let Some(limit) = args.fail_if {
            bail!(Failure::new(
                format!("compare with --fail-if {limit}: parts of time are only higher or lower"),
                "compare whole runs or calibrations"
            ));
        }
        return finished(report::layers::report(&a, &b));
    }
    let (a, b) = (figures(a, context)?, figures(b, context)?);
    check_distinct([&a, &b], args, context)?;
    let comparison = Comparison::of(&a, &b);
    let is_refuted = args.fail_if.is_some_and(|limit| limit.is_exceeded(&comparison));
    finished(Report { is_refuted, ..report::figures::report(&comparison) })
}

/// Returns the verb that made all of the recordings.
fn one_verb<'a>(a: &'a [Named], b: &[Named]) -> Result<&'a str> {
    let Recording { dir, manifest, .. } = &a[0].recording;
    let mut others = a.iter().chain(b).map(|named| &named.recording);
    match others.find(|other| other.manifest.verb != manifest.verb) {
        None => Ok(&manifest.verb),
        Some(other) => bail!(Failure::new(
            format!(
                "compare {} with {}: one is a {}, the other a {}",
                dir.display(),
                other.dir.display(),
                manifest.verb,
                other.manifest.verb
            ),
            "compare recordings of the same verb; a run shows by itself what it reached of the \
             path's calibration"
        )),
    }
}

/// Returns the figures of each recording, as the verb that made it extracts them.
fn figures(set: Vec<Named>, context: &Context) -> Result<Vec<Source>> {
    let source = |named: Named| {
        let (name, dir) = (named.name(), named.recording.dir.display().to_string());
        let verb = &named.recording.manifest.verb;
        let Some(figures) = verbs::find(verb).and_then(|verb| verb.figures) else {
            bail!(Failure::new(
                format!("compare {dir}: recordings of `{verb}` have no figures"),
                format!("name a part of its time, as in {dir}@0s..10s")
            ));
        };
        let (manifest, findings) = figures(named.recording, context)?;
        Ok(blockstone_judge::compare::source(name, &manifest, &findings))
    };
    set.into_iter().map(source).collect()
}

/// Returns what every layer did in each recording, or in a part of it.
fn layers(set: &[Named]) -> Result<Layers> {
    let (mut sources, mut db_times) = (Vec::new(), Vec::new());
    for named in set {
        let (Named { recording, part }, name) = (named, named.name());
        let Some((history, (from_ns, to_ns))) = interval::read(recording, part.from, part.to)?
        else {
            bail!(Failure::new(
                format!("compare {name}: fewer than two samples were recorded"),
                "it ended too early"
            ));
        };
        let interval = history.interval(from_ns, to_ns);
        let recorded = Recorded::of(name, &recording.manifest);
        let source = blockstone_view::compare::source(recorded, &interval);
        if source.figures.is_empty() {
            let recorded = &source.recorded.recording;
            bail!(Failure::new(
                format!("compare {recorded}: it is too short to tell how far its figures vary"),
                "name a part of time with more samples"
            ));
        }
        sources.push(source);
        db_times.extend(report::layers::db_time(&interval));
    }
    Ok(Layers { sources, db_time: stats::mean(&db_times).map(|mean| mean.value) })
}

/// Fails if a recording occurs twice in the sets, since that makes the variation between recordings
/// look smaller than it is. For a pair it is only a warning: a recording does not differ from
/// itself.
fn check_distinct(sets: [&[Source]; 2], args: &CompareArgs, context: &Context) -> Result<()> {
    let recordings: Vec<&Recorded> = sets.into_iter().flatten().map(|s| &s.recorded).collect();
    let pairs = recordings
        .iter()
        .enumerate()
        .flat_map(|(at, one)| recordings[at + 1..].iter().map(move |other| (one, other)));
    for (one, other) in pairs {
        let Some(same) = identical(one, other) else { continue };
        if !args.with.is_empty() {
            bail!(Failure::new(
                format!("compare two sets: {} and {} {same}", one.recording, other.recording),
                "name each recording once, or parts of its time that do not overlap"
            ));
        }
        context.printer.note(&format!("warning: A and B {same}, which cannot differ"));
    }
    Ok(())
}

/// Describes how two recordings coincide, if they are the same or overlap in time.
fn identical(one: &Recorded, other: &Recorded) -> Option<String> {
    if (&one.id, &one.started_at) != (&other.id, &other.started_at) {
        return None;
    }
    let part = |recorded: &Recorded| recorded.from_ns.zip(recorded.to_ns);
    let (Some(one), Some(other)) = (part(one), part(other)) else {
        return Some("are the same recording".to_owned());
    };
    let shared_ns = one.1.min(other.1).saturating_sub(one.0.max(other.0));
    (shared_ns > 0).then(|| format!("overlap by {}", Nanos(shared_ns)))
}

impl Named {
    fn open(name: &str, context: &Context) -> Result<Self> {
        let part = RecordingRange::of(name)?;
        Ok(Self { recording: recordings::open(&part.run, &context.global.runs_dir)?, part })
    }

    /// Opens the last recording before `later` by the same verb and of the same path.
    fn before(later: &Self, context: &Context) -> Result<Self> {
        let Manifest { id, verb, target, started_at, .. } = &later.recording.manifest;
        let runs = blockstone_record::list_runs(&context.global.runs_dir)?;
        let began = runs.iter().find(|run| run.id == *id).and_then(|run| run.started_at);
        let began = began.or_else(|| started_at.parse().ok());
        let is_same = |run: &&RunEntry| {
            run.verb == *verb
                && run.id != *id
                && run.target_path.as_deref() == Some(&*target.path)
                && run.started_at < began
                && matches!(run.state, RunState::Ended(_))
        };
        let Some(found) = runs.iter().filter(is_same).max_by_key(|run| run.started_at) else {
            bail!(Failure::new(
                format!(
                    "compare {}: no earlier {verb} of {} is in {}",
                    later.recording.dir.display(),
                    target.path,
                    context.global.runs_dir.display()
                ),
                "name the recording to compare it with first"
            ));
        };
        Self::open(&found.path.display().to_string(), context)
    }

    /// Returns the directory, the selected part, and the tool that measured if not Blockstone.
    fn name(&self) -> String {
        let Self { recording, part } = self;
        let dir = recording.dir.display();
        let time = |time: Option<When>| time.map_or(String::new(), |time| time.to_string());
        let times = format!("{}..{}", time(part.from), time(part.to)).replace(' ', "");
        let name = if part.is_limited() { format!("{dir}@{times}") } else { dir.to_string() };
        match &recording.manifest.imported {
            Some(imported) => format!("{name} (imported from {})", imported.tool),
            None => name,
        }
    }
}
