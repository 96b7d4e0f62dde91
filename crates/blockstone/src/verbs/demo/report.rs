//! The report of a demonstration: a row for each way to get a figure, then what was honest, what
//! would have been believed, and what to run next.

use std::path::Path;

use blockstone_base::stats::{self, Estimate};
use blockstone_base::table::{Missing, Row, Rows as _, Table};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::verdict::{Outcome, Verdict};
use blockstone_record::manifest::End;
use blockstone_record::parameters::CalibrateParameters;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Card, Headline, Report, Section, Tone, format};

use super::found::{Found, Way};
use super::rows::{Summary, WayRow};
use crate::recorded::identity;

pub const TABLES: Tables = &[("ways", WayRow::COLUMNS)];

/// The rule that compares the bytes that were read with those that the device moved.
const EVIDENCE: &str = "memory-test";
/// The rule that follows a path down to a device.
const MEMORY: &str = "memory-backed";

pub fn report(dir: &Path, found: &[Found]) -> Report {
    let honest = found.first();
    let end = found.last().map_or(End::Complete, |last| last.manifest.end.clone());
    let is_over = end == End::Complete;
    let summary = Summary {
        honest_iops: honest.and_then(Found::sound).ok_or(match honest {
            Some(honest) if !honest.condemned_by.is_empty() => Missing::NoEvidence,
            _ => Missing::Nothing,
        }),
        believed_iops: believed(found).and_then(|it| it.iops).ok_or(Missing::Nothing),
        believed_ratio: believed(found).and_then(|it| to_honest(found, it)).ok_or(Missing::Nothing),
        shown: is_over && is_shown(found),
    };
    Report {
        verb: "demo".into(),
        version: 2,
        headline: headline(dir, found, is_over),
        identity: honest.map(|it| identity::lines(&it.manifest)).unwrap_or_default(),
        warnings: found.iter().filter_map(|it| identity::unfinished(&it.manifest)).collect(),
        sections: vec![Section::of("ways", ways(found))],
        verdicts: honest.map(|it| it.of_figure().collect()).unwrap_or_default(),
        notes: if is_over { sentences(dir, found) } else { Vec::new() },
        partial: is_over && !is_shown(found),
        end,
        scalars: Some(Summary::table("demo", "Demonstration", [summary])),
        ..Report::default()
    }
}

/// Returns whether the honest figure stands and what is wrong with the others was noticed.
fn is_shown(found: &[Found]) -> bool {
    let stands = found.first().is_some_and(|honest| honest.sound().is_some());
    stands && found.iter().all(Found::is_noticed)
}

fn headline(dir: &Path, found: &[Found], is_over: bool) -> Headline {
    let card = |honest: &Found| {
        let card = Card::new("honest_iops", "honest", honest.iops?, "IOPS");
        let condemned_by = honest.condemned_by.clone();
        Some(Card { words: "honest random reads/s".into(), condemned_by, ..card })
    };
    let unnoticed = found.iter().find(|it| !it.is_noticed());
    let stands = found.first().is_some_and(|honest| honest.sound().is_some());
    let condemned = found.iter().filter(|it| !it.condemned_by.is_empty()).count();
    let (text, tone) = if !is_over {
        (format!("ended in {} of {} ways", found.len(), Way::COUNT), Tone::Warning)
    } else if !stands {
        let why = if found.iter().any(is_memory) { ": the files are in memory" } else { "" };
        (format!("no figure stands{why}"), Tone::Bad)
    } else if let Some(unnoticed) = unnoticed {
        (format!("not noticed: {}", unnoticed.way.name()), Tone::Warning)
    } else {
        let is_capped = found.iter().any(|it| matches!(it.way, Way::Cap { .. }));
        let cap = if is_capped { ", the cap is named" } else { "" };
        let is_wide = found.first().is_some_and(Found::is_wide);
        let (stands, tone) = if is_wide {
            ("too unsteady to rely on", Tone::Warning)
        } else {
            ("it stands", Tone::Plain)
        };
        (format!("{stands}; {condemned} false figures are condemned{cap}"), tone)
    };
    Headline {
        subject: dir.display().to_string(),
        figures: found.first().and_then(card).into_iter().collect(),
        text,
        tone,
        ..Headline::default()
    }
}

fn ways(found: &[Found]) -> Table {
    let about = "The same storage in four ways: the most random reads a second that each shows, \
                 and what to take from it.";
    let mut table = Table::new("ways", "Ways to get a figure", WayRow::COLUMNS).about(about);
    for way in found {
        let row = WayRow {
            way: way.way.name(),
            iops: way.iops.ok_or(Missing::Nothing),
            honest_ratio: to_honest(found, way).ok_or(Missing::Nothing),
            warned_by: way.warned_by().collect::<Vec<_>>().join(", "),
            recording: way.manifest.id.clone(),
            what: what(way),
            seen: seen(way),
            lesson: lesson(way).to_owned(),
        };
        // The factor by which it is wrong stands.
        let condemned = if way.condemned_by.is_empty() { Vec::new() } else { vec!["iops".into()] };
        table.push(Row::from(row).condemned_in(condemned, &way.condemned_by));
    }
    table
}

/// Returns a figure ÷ the honest one, unless that is condemned.
fn to_honest(found: &[Found], way: &Found) -> Option<Estimate> {
    stats::ratio(&found.first()?.sound()?, &way.iops?)
}

/// Returns the greatest figure that is wrong and would have been believed; where even the honest
/// file gives none of the storage, the greatest of all.
fn believed(found: &[Found]) -> Option<&Found> {
    let stands = found.first()?.sound().is_some();
    let value = |it: &&Found| {
        let figure = if stands { it.deceptive() } else { it.iops.filter(|_| it.sound().is_none()) };
        figure.map(|figure| figure.value)
    };
    let wrong = found.iter().filter(|it| value(it).is_some());
    wrong.max_by(|a, b| value(a).unwrap_or(0.0).total_cmp(&value(b).unwrap_or(0.0)))
}

/// Describes the subject, and how it was read.
fn what(found: &Found) -> String {
    let CalibrateParameters { size_bytes, block_bytes, .. } = found.manifest.parameters();
    let size = size_bytes.unwrap_or(Bytes(0));
    let block = format::block_size(block_bytes.map_or(0, Bytes::get));
    let direct = if found.manifest.target.direct_io.capability.is_full() {
        "past the page cache (O_DIRECT)"
    } else {
        "with O_DIRECT, which has no effect here"
    };
    match &found.way {
        Way::Honest => format!(
            "A file of {size} that was written in full, read at random in blocks of {block}, \
             {direct}."
        ),
        Way::Sparse => format!(
            "A file of {size} in which nothing was ever written (truncate -s), read in the same \
             way."
        ),
        Way::PageCache => "The honest file, read without O_DIRECT after it was read once: as most \
                           programs and many benchmarks do."
            .to_owned(),
        Way::Cap { reads_per_s } => format!(
            "The honest file, read in the same way while a control group of the kernel lets this \
             process do {} reads a second.",
            three_digits(*reads_per_s as f64)
        ),
        Way::GivenRate { reads_per_s, why } => format!(
            "The honest file, read in the same way by a load that keeps itself to {} reads a \
             second. That is not a cap: this user cannot set one ({why}).",
            three_digits(*reads_per_s as f64)
        ),
    }
}

/// Quotes the rule that decides whether to believe the figure.
fn seen(found: &Found) -> String {
    let quoted = |it: &Verdict| format!("{}: {}", it.rule, it.evidence);
    let condemning = found.verdicts.iter().find(|it| found.condemned_by.contains(&it.rule));
    let deciding = condemning.or_else(|| match found.way {
        Way::Honest | Way::Sparse | Way::PageCache => {
            found.verdicts.iter().find(|it| it.rule == EVIDENCE)
        }
        Way::Cap { .. } => found.throttled(),
        Way::GivenRate { .. } => None,
    });
    deciding.map(quoted).unwrap_or_default()
}

fn lesson(found: &Found) -> &'static str {
    let moved = |it: &Verdict| it.rule == EVIDENCE && it.outcome == Outcome::Pass;
    match &found.way {
        Way::Honest if is_memory(found) => {
            "This file is memory too: no number from this directory says anything about a disk."
        }
        Way::Honest if !found.condemned_by.is_empty() => {
            "Not even a file that was written in full shows what this storage does."
        }
        Way::Honest if found.verdicts.iter().any(moved) => {
            "This is the storage: its device moved what was read."
        }
        Way::Honest => "Nothing contradicts it, but no counter shows that a device did the work.",
        Way::Sparse => {
            "The kernel answers reads of holes with zeros from memory; the storage saw none of \
             them. Measure files that were written in full."
        }
        Way::PageCache => {
            "Main memory answered. A database has such a cache of its own, and waits for the \
             storage when it misses. Measure with O_DIRECT, or with more data than memory."
        }
        Way::Cap { .. } => {
            "True while the cap is in place, but it says nothing about the device. Clouds, \
             hypervisors and containers impose such caps: compare the number with what was bought."
        }
        Way::GivenRate { .. } => {
            "It is what the load asked for. `calibrate --rate` shows it as a given rate, never as \
             the most that the storage can do."
        }
    }
}

fn is_memory(found: &Found) -> bool {
    found.condemned_by.iter().any(|rule| rule == MEMORY)
}

/// Returns what was honest, what would have been believed, and what to run next.
fn sentences(dir: &Path, found: &[Found]) -> Vec<String> {
    let (Some(honest), dir) = (found.first(), dir.display()) else { return Vec::new() };
    let number = |estimate: Estimate| three_digits(estimate.value);
    let trap = |it: &Found| match it.way {
        Way::Sparse => "from the sparse file",
        Way::PageCache => "from the page cache",
        _ => "from memory",
    };
    let ratio = |it: &Found| to_honest(found, it).map_or(0.0, |ratio| ratio.value);
    let belief = believed(found).and_then(|it| Some((it, it.iops?)));
    let mut sentences = Vec::new();
    if let Some(iops) = honest.sound() {
        let (low, high) = (three_digits(iops.low), three_digits(iops.high));
        sentences.push(if honest.is_wide() {
            format!(
                "The honest figure of {dir} is between {low} and {high} random reads a second: \
                 repeat the demonstration when nothing else uses the machine."
            )
        } else {
            format!(
                "The honest figure of {dir} is {} random reads a second, {low} to {high}.",
                number(iops)
            )
        });
        sentences.extend(belief.map(|(it, iops)| {
            let times = format!(": {} times the honest figure", three_digits(ratio(it)));
            format!(
                "Without these checks, {} would have been believed ({}){}.",
                number(iops),
                trap(it),
                if honest.is_wide() { "" } else { &times }
            )
        }));
        sentences.push(format!(
            "Next: `blockstone calibrate {dir}` measures its limits in 90 s; `blockstone run --for \
             STORE {dir}` applies the load of a database and says whether it is fast enough \
             (`--for help` lists them)."
        ));
    } else {
        sentences.push(format!(
            "{dir} has no honest figure: the file that was written in full is condemned too ({}).",
            honest.condemned_by.join(", ")
        ));
        sentences.extend(belief.map(|(it, iops)| {
            format!(
                "Without these checks, {} would have been believed ({}).",
                number(iops),
                trap(it)
            )
        }));
        sentences.push(if is_memory(honest) {
            "Next: `blockstone demo DIR` with a directory on a disk; `findmnt -T DIR` shows what \
             lies beneath it."
                .to_owned()
        } else {
            format!("Next: `blockstone check {dir}` shows what this path really does.")
        });
    }
    sentences
}

#[cfg(test)]
mod tests;
