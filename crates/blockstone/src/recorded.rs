//! Parts that the reports of all recordings share: their beginning, the machine and storage that
//! were measured, counters over time, and keys of the JSON document.

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

/// Returns a report with all that follows from the manifest, figures and verdicts of a recording;
/// it has no headline, cards or sections yet.
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
        // A recording that was judged has a page in its directory.
        has_page: !verdicts.is_empty(),
        tool_version: Some(manifest.tool_version.clone()),
        began: instants::began(WallClock::of(manifest).realtime_ns(0)),
        ..Report::default()
    }
}

/// Figures in groups, each with the word that precedes its number on a terminal.
pub type Groups = [(&'static str, &'static [(&'static str, &'static str)])];
/// Group, prefix and name of a figure.
pub type FigureName = (&'static str, &'static str, &'static str);

pub fn places(groups: &'static Groups) -> impl Iterator<Item = FigureName> + Clone {
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

/// Names of the tables in the report of every measurement.
pub const TABLES: &[&str] =
    &["devices", "probes", "path", "test-file", "machine", "capabilities", "settings", "recording"];

/// Returns the figures that answer the question or, without any, why there are none.
pub fn headline(manifest: &Manifest, figures: Vec<Card>) -> Headline {
    let none = "no headline: the run ended before it was measured";
    let (text, tone) = if figures.is_empty() { (none, Tone::Warning) } else { ("", Tone::Plain) };
    Headline { subject: manifest.target.path.clone(), text: text.to_owned(), tone, figures }
}

/// Returns which capabilities the measurement lacked, and why.
fn degraded(manifest: &Manifest) -> Vec<String> {
    let degraded = manifest.capabilities.iter().filter_map(|named| match &named.capability {
        Capability::Full => None,
        Capability::Degraded { why } => Some(format!("- {}: {why}", named.name)),
    });
    degraded.collect()
}

/// A table of names and values, one pair per row.
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
