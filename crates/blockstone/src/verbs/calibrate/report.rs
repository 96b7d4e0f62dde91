//! What a calibration reports: how fast the storage is, at what latency, and whether to believe it.

mod charts;
mod select;
mod tables;

use anyhow::Result;
use blockstone_base::table::{Measure, Table};
use blockstone_judge::findings::Findings;
use blockstone_judge::summary::NAMES;
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, Manifest};
use blockstone_report::chart::{Chart, Color};
use blockstone_report::report::Tone;
use blockstone_report::{Card, Detail, Headline, Report, Section, format};
use blockstone_view::History;
use serde_json::json;

use crate::recorded::lanes::{self, Lane, Lanes};
use crate::recorded::{self, document, identity};
use select::HEADLINE;

/// The figures in groups, each with the word that stands before its number on a terminal.
const GROUPS: [(&str, &[(&str, &str)]); 7] = [
    ("random reads", &[("", "max_iops"), ("mean", "actual_latency_ns_mean")]),
    ("knee", &[("", "knee_iops"), ("p99", "knee_latency_ns_p99")]),
    ("one reader", &[("p50", "read_latency_ns_p50"), ("p99", "read_latency_ns_p99")]),
    ("large reads", &[("", "max_mbps")]),
    (
        "writes",
        &[("", "max_write_iops"), ("p50", "write_latency_ns_p50"), ("layout", "write_mbps")],
    ),
    (
        "commits",
        &[
            ("", "max_commits_per_s"),
            ("p50", "commit_latency_ns_p50"),
            ("p99", "commit_latency_ns_p99"),
        ],
    ),
    (
        "sequential",
        &[
            ("cached", "cached_read_mbps"),
            ("buffered", "buffered_read_mbps"),
            ("direct", "direct_read_mbps"),
        ],
    ),
];

/// The report of a calibration and its findings.
///
/// # Errors
/// When a recorded series cannot be read.
pub fn report(recording: &Recording, findings: &Findings) -> Result<Report> {
    let manifest = &recording.manifest;
    Ok(Report {
        headline: headline(manifest, findings),
        cards: cards(findings),
        sections: sections(recording, findings)?,
        document: document(recording, findings),
        ..recorded::report("calibrate", recording, &findings.summary, &findings.verdicts)
    })
}

/// The triple of Oracle's `CALIBRATE_IO`, or why there is none.
fn headline(manifest: &Manifest, findings: &Findings) -> Headline {
    let subject = manifest.target.path.clone();
    let condemned_by = select::headline_condemned_by(findings);
    if !condemned_by.is_empty() {
        let text = format!("no headline, condemned by {}", condemned_by.join(", "));
        return Headline { subject, text, tone: Tone::Bad, figures: Vec::new() };
    }
    let figures: Vec<Card> = HEADLINE
        .iter()
        .filter_map(|name| Some(card(findings, ("", "", name), select::figure(findings, name)?)))
        .collect();
    if figures.is_empty() {
        let text = "no headline: the run ended before it was measured".to_owned();
        return Headline { subject, text, tone: Tone::Warning, figures };
    }
    Headline { subject, figures, ..Headline::default() }
}

fn cards(findings: &Findings) -> Vec<Card> {
    let grouped = GROUPS.iter().flat_map(|(group, figures)| {
        figures.iter().map(move |(prefix, name)| (*group, *prefix, *name))
    });
    let known = grouped
        .clone()
        .filter_map(|place| Some(card(findings, place, select::figure(findings, place.2)?)));
    // A newer judge may know more figures than the list above.
    let placed = |name: &str| grouped.clone().any(|(_, _, known)| known == name);
    let others = findings.summary.iter().filter(|(name, _)| !placed(name));
    known.chain(others.map(|(name, figure)| card(findings, ("", "", name), figure))).collect()
}

fn card(findings: &Findings, (group, prefix, name): (&str, &str, &str), figure: &Figure) -> Card {
    let source = select::point(findings, &figure.phase)
        .map_or_else(|| figure.phase.clone(), |point| format::load(&point.load));
    Card {
        name: name.to_owned().into(),
        title: figure.title.clone().into(),
        group: group.to_owned().into(),
        prefix: prefix.to_owned().into(),
        estimate: figure.estimate,
        unit: figure.unit.clone().into(),
        words: "".into(),
        source,
        condemned_by: figure.condemned_by.clone(),
    }
}

fn sections(recording: &Recording, findings: &Findings) -> Result<Vec<Section>> {
    let manifest = &recording.manifest;
    let page = |id: &'static str, heading: &'static str, about: &'static str| {
        Section::new(id, heading).about(about).detail(Detail::Page)
    };
    let mut sections = vec![
        titled("random-reads", tables::concurrency(findings)),
        titled("given-rate", tables::open_loop(findings)),
        page(
            "reads",
            "Reads",
            "Blocking readers wait for each read, as database foregrounds do; asynchronous depth \
             keeps many reads in flight from one thread.",
        )
        .with(charts::reads(manifest, findings)),
        titled("commits", tables::commits(manifest, findings))
            .with(tables::more_committers(manifest, findings)),
        page("writes", "Writes and commits", "A commit is a write and its flush, timed as one.")
            .with(charts::writes(manifest, findings))
            .with([tables::committers(manifest, findings)]),
        page(
            "caches",
            "Caches and mixed load",
            "Re-reading ever larger parts of the file shows whether a cache answers and how large \
             it is.",
        )
        .with(charts::caches(manifest, findings))
        .with([tables::matrix(findings)]),
        page("time", "The calibration over time", "Counters of every tick; bands are the phases.")
            .with(over_time(recording)?),
        page(
            "evidence",
            "Evidence",
            "The same window as three layers saw it: what the load generator completed, what the \
             kernel charged to this process, what the device moved.",
        )
        .with([tables::evidence(findings)]),
        page("numbers", "All numbers", "").with([
            tables::rates(findings),
            tables::latencies(findings),
            tables::costs(findings),
        ]),
        identity::section(manifest),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    Ok(sections)
}

/// A section of one table, under the heading of that.
fn titled(id: &'static str, table: Table) -> Section {
    Section::new(id, table.title.clone()).with([table])
}

fn over_time(recording: &Recording) -> Result<Vec<Chart>> {
    let history = History::read(recording)?;
    let lanes = Lanes::new(&history, &recording.manifest);
    let rate = |name, object, column| {
        Lane::new(name, Color::Series(0), lanes.rate("load", object, column))
    };
    let mut charts = Vec::new();
    let iops = vec![rate("IOPS", "", "completed_ops")];
    charts.extend(lanes.chart("iops", "Operations a second", Measure::Count, iops));
    let beside = rate("load beside it", "background", "completed_bytes");
    let bytes = vec![rate("load", "", "completed_bytes"), Lane { color: Color::Grey, ..beside }];
    charts.extend(lanes.chart("throughput", "Bytes a second", Measure::BytesPerS, bytes));
    charts.extend(lanes::processors(&lanes));
    charts.extend(lanes::devices(&lanes));
    Ok(charts)
}

fn document(
    recording: &Recording,
    findings: &Findings,
) -> serde_json::Map<String, serde_json::Value> {
    let mut keys = document::common(recording, &NAMES, &findings.summary, &findings.verdicts);
    keys.extend(document::object(json!({
        "points": document::plain(&findings.points),
        "drift_ratio": findings.drift_ratio,
        "file": recording.manifest.file,
    })));
    keys
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, NAMES};

    #[test]
    fn every_figure_has_one_place() {
        let mut placed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, cells)| cells.iter().map(|(_, name)| *name)).collect();
        let mut known = NAMES.to_vec();
        placed.sort_unstable();
        known.sort_unstable();
        assert_eq!(placed, known);
    }
}
