//! `blockstone compare`: faster, slower, or difference not established.

use anyhow::{Result, bail};
use blockstone_record::Recording;
use blockstone_report::{html, json, terminal};
use blockstone_view::{History, Interval, difference_document, differences};

use super::judged::Judged;
use super::{find_run, report};
use crate::cli::{CompareArgs, Global};
use crate::exit::Exit;
use crate::printer::{Printer, answer};

pub fn run(args: &CompareArgs, global: &Global, printer: Printer) -> Result<Exit> {
    let a = find_run::open(&args.a, &global.runs_dir)?;
    let b = find_run::open(&args.b, &global.runs_dir)?;
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
    if a.manifest.verb == report::WATCH {
        return watched(&a, &b, args, printer);
    }
    let judged = |recording| Judged::of(recording, &global.runs_dir);
    let (a, b) = (judged(a)?.comparable(), judged(b)?.comparable());
    let comparison = blockstone_judge::compare((&a.0, &a.1), (&b.0, &b.1));
    if let Some(file) = &args.html {
        report::write_page(&html::compare_page(&comparison)?, file, printer)?;
        return Ok(Exit::Done);
    }
    let text = if printer.json {
        let document = json::compare_json(&comparison);
        format!("{}\n", serde_json::to_string_pretty(&document)?)
    } else {
        terminal::compare_terminal(&comparison, &printer.style())
    };
    answer(&text)?;
    Ok(Exit::Done)
}

/// Compares what was watched.
fn watched(a: &Recording, b: &Recording, args: &CompareArgs, printer: Printer) -> Result<Exit> {
    if args.html.is_some() {
        bail!(
            "compare {} with {}: what was watched has no page\n\
             hint: leave out --html, or take --json",
            a.dir.display(),
            b.dir.display()
        );
    }
    let names = [a, b].map(|recording| recording.dir.display().to_string());
    let [a, b] = [History::read(a)?, History::read(b)?];
    let (Some(a), Some(b)) = (a.whole(), b.whole()) else {
        bail!(
            "compare {} with {}: one has no two ticks\nhint: it ended too early",
            names[0],
            names[1]
        );
    };
    let by = |interval: &Interval<'_>| {
        let imported = interval.history().imported();
        imported.map_or(String::new(), |imported| format!(" (imported from {})", imported.tool))
    };
    let names = [names[0].clone() + &by(&a), names[1].clone() + &by(&b)];
    let [first, second] = &names;
    let text = if printer.json {
        let document = difference_document((first, &a), (second, &b));
        format!("{}\n", serde_json::to_string_pretty(&document)?)
    } else {
        terminal::difference_terminal([first, second], &differences(&a, &b), &printer.style())
    };
    answer(&text)?;
    Ok(Exit::Done)
}
