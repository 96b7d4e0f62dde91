//! What the reports of all recordings share: how one begins, which machine and storage were
//! measured, counters over time, and keys of the JSON document.

pub mod document;
pub mod identity;
pub mod lanes;
mod tails;

use blockstone_base::Capability;
use blockstone_base::table::{Heading, Table, Text, text};
use blockstone_base::verdict::Verdict;
use blockstone_figures::WallClock;
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, Manifest};
use blockstone_report::{Card, Headline, Report, Tone};

use crate::instants;
pub use tails::quantiles;

/// A report of a recording with all that needs no findings besides figures and verdicts: no
/// headline, cards or sections yet.
pub fn report(
    verb: &'static str,
    recording: &Recording,
    summary: &[(String, Figure)],
    verdicts: &[Verdict],
) -> Report {
    let manifest = &recording.manifest;
    Report {
        verb: verb.into(),
        version: 1,
        identity: identity::lines(manifest),
        warnings: identity::unfinished(manifest).into_iter().collect(),
        verdicts: verdicts.to_vec(),
        notes: degraded(manifest),
        end: manifest.end.clone(),
        summary: summary.iter().cloned().collect(),
        recording: recording.dir.display().to_string(),
        // What was judged has its page beside it.
        has_page: !verdicts.is_empty(),
        tool_version: manifest.tool_version.clone(),
        began: instants::began(WallClock::of(manifest).realtime_ns(0)),
        ..Report::default()
    }
}

/// Figures in groups, each with the word that stands before its number on a terminal.
pub type Groups = [(&'static str, &'static [(&'static str, &'static str)])];
/// Group, prefix and name of a figure.
pub type Place = (&'static str, &'static str, &'static str);

pub fn places(groups: &'static Groups) -> impl Iterator<Item = Place> + Clone {
    groups
        .iter()
        .flat_map(|(group, figures)| figures.iter().map(|(prefix, name)| (*group, *prefix, *name)))
}

pub fn card((group, prefix, name): (&str, &str, &str), figure: &Figure, source: String) -> Card {
    let Figure { title, unit, estimate, condemned_by, .. } = figure.clone();
    Card {
        group: group.to_owned().into(),
        prefix: prefix.to_owned().into(),
        source,
        condemned_by,
        ..Card::new(name.to_owned(), title, estimate, unit)
    }
}

/// Names of the tables that every measurement has.
pub const TABLES: &[&str] =
    &["devices", "probes", "path", "test-file", "machine", "capabilities", "settings", "recording"];

/// The figures that answer the question; without them, why there are none.
pub fn headline(manifest: &Manifest, figures: Vec<Card>) -> Headline {
    let none = "no headline: the run ended before it was measured";
    let (text, tone) = if figures.is_empty() { (none, Tone::Warning) } else { ("", Tone::Plain) };
    Headline { subject: manifest.target.path.clone(), text: text.to_owned(), tone, figures }
}

/// What the measurement could not do, and why.
fn degraded(manifest: &Manifest) -> Vec<String> {
    let degraded = manifest.capabilities.iter().filter_map(|named| match &named.capability {
        Capability::Full => None,
        Capability::Degraded { why } => Some(format!("- {}: {why}", named.name)),
    });
    degraded.collect()
}

/// A table of names and values below each other.
pub struct Facts(Table);

impl Facts {
    pub fn new(name: &'static str, title: impl Into<Text>) -> Self {
        const COLUMNS: &[Heading] =
            &[text("name", "", "What it is."), text("value", "", "Its value.")];
        Self(Table::new(name, title, COLUMNS))
    }

    pub fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push([name.into().into(), value.into().into()]);
    }

    pub fn table(self) -> Table {
        self.0
    }
}
