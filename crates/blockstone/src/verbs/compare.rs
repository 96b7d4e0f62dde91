//! `blockstone compare`: faster, slower, or difference not established.

mod args;
mod report;

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_judge::Findings;
use blockstone_record::Recording;
use blockstone_record::manifest::Manifest;
use blockstone_report::render::json::schema::Document;
use blockstone_view::History;
use clap::{Args, FromArgMatches};

use super::report::WATCH;
use crate::exit::Exit;
use crate::finish::finish;
use crate::part::Part;
use crate::verb::{Context, Verb};
use crate::{interval, recordings, verbs};
use args::CompareArgs;
use report::layers::Sides;

pub const VERB: Verb = Verb {
    name: "compare",
    about: "Compare two recordings: faster, slower, or difference not established",
    options: CompareArgs::augment_args,
    run: |options, context| run(&CompareArgs::from_arg_matches(options)?, context),
    reports: true,
    documents: &[
        Document::of::<report::figures::CompareDocument<'_>>("compare", "Two recordings"),
        Document::of::<blockstone_view::DifferenceDocument<'_>>(
            "difference",
            "Two parts of watched time",
        ),
    ],
    ..Verb::PLAIN
};

fn run(args: &CompareArgs, context: &Context) -> Result<Exit> {
    let Context { global, .. } = context;
    let parts = [Part::of(&args.a)?, Part::of(&args.b)?];
    let a = recordings::open(&parts[0].run, &global.runs_dir)?;
    let b = recordings::open(&parts[1].run, &global.runs_dir)?;
    if a.manifest.verb != b.manifest.verb {
        bail!(
            "compare {} with {}: one is a {}, the other a {}\n\
             hint: compare two recordings of the same verb; a run shows by itself what it reached \
             of the path's calibration",
            a.dir.display(),
            b.dir.display(),
            a.manifest.verb,
            b.manifest.verb
        );
    }
    if a.manifest.verb == WATCH || parts.iter().any(Part::is_limited) {
        return layers([&a, &b], &parts, args, context);
    }
    let (a, b) = (figures(a, context)?, figures(b, context)?);
    let comparison = blockstone_judge::compare((&a.0, &a.1), (&b.0, &b.1));
    finish(&report::figures::report(&comparison, &a.0.tool_version), context)
}

/// The figures of a recording, as the verb has them that made it.
fn figures(recording: Recording, context: &Context) -> Result<(Manifest, Findings)> {
    let name = recording.manifest.verb.clone();
    match verbs::find(&name).and_then(|verb| verb.figures) {
        Some(figures) => figures(recording, context),
        None => bail!(
            "compare {}: recordings of `{name}` have no figures\n\
             hint: name a part of its time, as in {}@0s..10s",
            recording.dir.display(),
            recording.dir.display()
        ),
    }
}

/// Compares what every layer did, in two parts of a recording or in two recordings.
fn layers(
    recordings: [&Recording; 2],
    parts: &[Part; 2],
    args: &CompareArgs,
    context: &Context,
) -> Result<Exit> {
    let [a, b] = recordings;
    let histories = [History::read(a)?, History::read(b)?];
    let first = interval::window(&histories[0], parts[0].from, parts[0].to)?;
    let second = interval::window(&histories[1], parts[1].from, parts[1].to)?;
    let (Some(first), Some(second)) = (first, second) else {
        bail!(
            "compare {} with {}: one has fewer than two samples\n\
             hint: it ended too early",
            args.a,
            args.b
        );
    };
    let shared_ns = first.to_ns.min(second.to_ns).saturating_sub(first.from_ns.max(second.from_ns));
    if a.dir == b.dir && shared_ns > 0 {
        let shared = Nanos(shared_ns);
        context
            .printer
            .note(&format!("warning: A and B overlap by {shared}; the overlap is identical"));
    }
    let names = [named(a, &parts[0]), named(b, &parts[1])];
    let names = [names[0].as_str(), names[1].as_str()];
    let sides = Sides { names, intervals: [first, second] };
    finish(&report::layers::report(&sides, &a.manifest.tool_version), context)
}

/// A recording's directory, the part of it that is meant, and who measured if not Blockstone.
fn named(recording: &Recording, part: &Part) -> String {
    let dir = recording.dir.display();
    let time = |time: Option<Nanos>| time.map_or(String::new(), |time| time.to_string());
    let times = format!("{}..{}", time(part.from), time(part.to)).replace(' ', "");
    let name = if part.is_limited() { format!("{dir}@{times}") } else { dir.to_string() };
    let imported = recording.manifest.imported.as_ref();
    imported.map_or(name.clone(), |imported| format!("{name} (imported from {})", imported.tool))
}
