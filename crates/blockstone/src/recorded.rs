//! Parts that the reports of all recordings share: their beginning, the machine and storage that
//! were measured, counters over time, and keys of the JSON document.

pub mod document;
pub mod earlier;
pub mod identity;
pub mod lanes;
mod tails;

use std::path::Path;

use blockstone_base::Capability;
use blockstone_base::table::{Heading, Table, Text, text};
use blockstone_base::verdict::{Outcome, Verdict};
use blockstone_figures::WallClock;
use blockstone_record::manifest::{Figure, Manifest};
use blockstone_record::{Labels, Recording};
use blockstone_report::render::json;
use blockstone_report::{Card, Headline, Report, Tone, format};
use blockstone_size::hardware::{Catalogue, Unit};

use crate::{instants, store};
pub use tails::quantiles;

/// Returns a report with all that follows from the manifest, figures and verdicts of a recording;
/// it has no headline, cards or sections yet. `names` are the figures that the verb knows.
pub fn report(
    verb: &'static str,
    recording: &Recording,
    names: &[&str],
    summary: &[(String, Figure)],
    verdicts: &[Verdict],
) -> Report {
    let manifest = &recording.manifest;
    Report {
        verb: verb.into(),
        version: 2,
        identity: identity::lines(manifest).into_iter().chain(labels(&recording.dir)).collect(),
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
        purpose: store::purpose(manifest),
        document: json::keys(document::objects(recording, names, summary, verdicts)),
        shown_only: document::SHOWN_ONLY,
        ..Report::default()
    }
}

/// Returns what the user says of the recording in a directory, or why that cannot be read.
pub fn labels(dir: &Path) -> Option<String> {
    Labels::read(dir).map_or_else(|error| Some(error.to_string()), |labels| labels.shown())
}

/// Figures in groups, each with the word that precedes its number on a terminal.
pub type Groups = [(&'static str, &'static [(&'static str, &'static str)])];

/// A figure, and what precedes its number.
#[derive(Clone, Copy, Debug, Default)]
pub struct FigurePlace<'a> {
    pub group: &'a str,
    pub prefix: &'a str,
    pub name: &'a str,
}

impl<'a> FigurePlace<'a> {
    /// Returns the place of a figure outside of all groups.
    pub fn alone(name: &'a str) -> Self {
        Self { name, ..Self::default() }
    }
}

pub fn places(groups: &'static Groups) -> impl Iterator<Item = FigurePlace<'static>> + Clone {
    groups.iter().flat_map(|&(group, figures)| {
        figures.iter().map(move |&(prefix, name)| FigurePlace { group, prefix, name })
    })
}

pub fn card(place: FigurePlace<'_>, figure: &Figure, source: String) -> Card {
    let FigurePlace { group, prefix, name } = place;
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
    let (subject, text) = (manifest.target.path.clone(), text.to_owned());
    Headline { subject, text, tone, figures, ..Headline::default() }
}

/// Returns the headline with the limit that throttled the measurement, if a verdict found one.
pub fn limited(headline: Headline, manifest: &Manifest, verdicts: &[Verdict]) -> Headline {
    match throttle(manifest, verdicts) {
        Some(text) if headline.text.is_empty() => {
            Headline { text, tone: Tone::Warning, ..headline }
        }
        _ => headline,
    }
}

/// Returns the limit that throttled the storage, if a verdict found one: the caps of the control
/// group with their files, where they are known.
pub fn throttle(manifest: &Manifest, verdicts: &[Verdict]) -> Option<String> {
    let found = verdicts.iter().any(|it| it.rule == "throttled" && it.outcome == Outcome::Fail);
    let caps = || manifest.target.caps.iter().map(format::cap).collect::<Vec<_>>();
    found.then(|| match caps() {
        caps if caps.is_empty() => "limited outside this machine".to_owned(),
        caps => caps.join(", "),
    })
}

/// Returns the units of the catalogue whose most IOPS are next to a rate of requests, for scale.
/// `None` if the rate is unknown or condemned.
pub fn scale(summary: &[(String, Figure)], names: &[&str]) -> Option<String> {
    let catalogue = Catalogue::example().ok()?;
    let sound = |name: &&str| {
        let (_, figure) = summary.iter().find(|(known, _)| known == name)?;
        figure.condemned_by.is_empty().then_some(figure.estimate.value)
    };
    let rates: Vec<f64> = names.iter().map(sound).collect::<Option<_>>()?;
    let rate: f64 = rates.iter().sum();
    let known = || {
        let of = |unit: &Unit| Some((unit.iops.or(unit.read_iops)?, unit.name.clone()));
        catalogue.units.iter().filter(|unit| unit.current).filter_map(of)
    };
    let below = known().filter(|unit| unit.0 <= rate).max_by(|a, b| a.0.total_cmp(&b.0));
    let above = known().filter(|unit| unit.0 > rate).min_by(|a, b| a.0.total_cmp(&b.0));
    let mut shown =
        below.into_iter().chain(above).map(|(iops, name)| (name, format::number(iops, "")));
    let (name, iops) = shown.next()?;
    let first = format!("for scale: {name} is sold with up to {iops} IOPS");
    Some(match shown.next() {
        Some((name, iops)) => format!("{first}, {name} with up to {iops}"),
        None => first,
    })
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
    pub const COLUMNS: &[Heading] =
        &[text("name", "", "What it is."), text("value", "", "Its value.")];

    pub fn new(name: &'static str, title: impl Into<Text>) -> Self {
        Self(Table::new(name, title, Self::COLUMNS))
    }

    pub fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push([name.into().into(), value.into().into()]);
    }

    pub fn table(self) -> Table {
        self.0
    }
}
