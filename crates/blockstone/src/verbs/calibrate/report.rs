//! Report of a calibration: how fast the storage is, at what latency, and whether to believe it.

mod charts;
mod mixes;
pub mod orion;
mod precondition;
mod select;
pub mod tables;
mod targets;

use anyhow::Result;
use blockstone_base::table::Measure;
use blockstone_base::units::Bytes;
use blockstone_judge::buffered::BufferedWrite;
use blockstone_judge::findings::{Findings, Point};
use blockstone_judge::flushes::FlushSlope;
use blockstone_judge::precondition::Precondition;
use blockstone_judge::summary::{ABOUT, NAMES};
use blockstone_judge::visits::CachedVisits;
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, FileEvidence, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_report::chart::{Chart, Color};
use blockstone_report::render::json;
use blockstone_report::report::Tone;
use blockstone_report::{Card, Headline, Report, Section, format};
use blockstone_view::History;
use schemars::JsonSchema;
use serde::Serialize;

use crate::recorded::document::Common;
use crate::recorded::lanes::{self, Lane, Lanes};
use crate::recorded::{self, Groups, document, identity};
use select::HEADLINE;

const GROUPS: &Groups = &[
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
    ("a CPU-second", &[("cached", "visits_per_core_s")]),
];

/// JSON document of a calibration.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = document::summary_of(&ABOUT))]
pub struct CalibrateDocument<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    /// One point for each label, in the order in which they were first measured; repeats are
    /// pooled.
    points: &'a [Point],
    /// Movement of the reference point: (greatest − least) ÷ mean of its windows.
    drift_ratio: Option<f64>,
    /// Latency of flushes by the amount written before them; null if that was not measured.
    flush_slope: Option<&'a FlushSlope>,
    /// Sequential writes through the page cache, compared with direct ones; null without
    /// `--buffered-writes`.
    buffered_write: Option<&'a BufferedWrite>,
    /// Rate of visits to cached blocks; null without `--cpu`.
    cached_visits: Option<&'a CachedVisits>,
    /// Mixes of random reads and writes; empty without `--mix`.
    mixes: Vec<mixes::MixDocument>,
    /// Writes before the measurement that bring the storage to a steady state; null without
    /// `--precondition`.
    precondition: Option<&'a Precondition>,
    /// File that was read and written; null if there were several.
    file: Option<&'a FileEvidence>,
    /// Targets that were measured as one; empty for a single target.
    targets: Vec<targets::TargetDocument<'a>>,
}

/// Names of the tables that only this verb has.
pub const TABLES: &[&str] = &[
    "precondition-rounds",
    "mixes",
    "random-reads",
    "streams",
    "given-rate",
    "commits",
    "committers",
    "flushes",
    "buffered-writes",
    "cached-visits",
    "mixed-reads",
    "evidence",
    "rates",
    "latencies",
    "processor-cost",
    "targets",
    "target-evidence",
    "target-shares",
];

pub fn report(recording: &Recording, findings: &Findings) -> Result<Report> {
    let manifest = &recording.manifest;
    Ok(Report {
        headline: headline(manifest, findings),
        cards: cards(findings),
        sections: sections(recording, findings)?,
        document: json::keys(CalibrateDocument {
            common: document::common(recording, &NAMES, &findings.summary, &findings.verdicts),
            points: &findings.points,
            drift_ratio: findings.drift_ratio,
            flush_slope: findings.flush_slope.as_ref(),
            buffered_write: findings.buffered_write.as_ref(),
            cached_visits: findings.cached_visits.as_ref(),
            mixes: mixes::documents(findings),
            precondition: findings.precondition.as_ref(),
            file: manifest.file.as_ref(),
            targets: targets::documents(manifest, findings),
        }),
        ..recorded::report("calibrate", recording, &findings.summary, &findings.verdicts)
    })
}

/// Returns the triple of Oracle's `CALIBRATE_IO`, or why there is none.
fn headline(manifest: &Manifest, findings: &Findings) -> Headline {
    let condemned_by = select::headline_condemned_by(findings);
    if !condemned_by.is_empty() {
        let text = format!("no headline, condemned by {}", condemned_by.join(", "));
        return Headline { text, tone: Tone::Bad, ..recorded::headline(manifest, Vec::new()) };
    }
    let figures: Vec<Card> = HEADLINE
        .iter()
        .filter_map(|name| Some(card(findings, ("", "", name), select::figure(findings, name)?)))
        .collect();
    recorded::headline(manifest, figures)
}

fn cards(findings: &Findings) -> Vec<Card> {
    let known = recorded::places(GROUPS)
        .filter_map(|place| Some(card(findings, place, select::figure(findings, place.2)?)));
    // A newer judge may have figures that the list above lacks.
    let placed = |name: &str| recorded::places(GROUPS).any(|(_, _, known)| known == name);
    let others = findings.summary.iter().filter(|(name, _)| !placed(name));
    known.chain(others.map(|(name, figure)| card(findings, ("", "", name), figure))).collect()
}

fn card(findings: &Findings, place: (&str, &str, &str), figure: &Figure) -> Card {
    let source = select::point(findings, &figure.phase)
        .map_or_else(|| figure.phase.clone(), |point| format::load(&point.load));
    recorded::card(place, figure, source)
}

fn sections(recording: &Recording, findings: &Findings) -> Result<Vec<Section>> {
    let manifest = &recording.manifest;
    let page = |id: &'static str, heading: &'static str, about: &'static str| {
        Section::page(id, heading).about(about)
    };
    let preconditioned = findings.precondition.as_ref();
    let several = !manifest.targets.is_empty();
    let mut sections = vec![
        targets::section(manifest, findings),
        Section::new("part", "Part that was measured").with(part(manifest)),
        Section::of("random-reads", tables::concurrency(findings)),
        Section::of("streams", tables::streams(manifest, findings)),
        Section::of("mixes", mixes::table(findings)),
        Section::of("given-rate", tables::open_loop(findings)),
        page(
            "reads",
            "Reads",
            "Blocking readers wait for each read, as database foregrounds do; asynchronous depth \
             keeps many reads in flight from one thread.",
        )
        .with(charts::reads(manifest, findings)),
        Section::of("commits", tables::commits(manifest, findings))
            .with(tables::more_committers(manifest, findings)),
        Section::new("buffered-writes", "Sequential writes through the page cache")
            .with(findings.buffered_write.as_ref().map(tables::buffered_writes)),
        Section::new("cached-visits", "Logical I/O for processor time")
            .with(findings.cached_visits.as_ref().map(tables::cached_visits)),
        page("writes", "Writes and commits", "A commit is a write and its flush, timed as one.")
            .with(charts::writes(manifest, findings))
            .with([tables::committers(manifest, findings)])
            .with(findings.flush_slope.as_ref().map(tables::flushes)),
        page(
            "caches",
            "Caches and mixed load",
            "Re-reading ever larger parts of the file shows whether a cache answers and how large \
             it is.",
        )
        .with(charts::caches(manifest, findings))
        .with([tables::matrix(findings)]),
        preconditioned.map_or_else(Section::default, |done| precondition::section(manifest, done)),
        page("time", "The calibration over time", "Counters of every tick; bands are the phases.")
            .with(over_time(recording)?),
        page(
            "evidence",
            "Evidence",
            "The same window as three layers saw it: what the load generator completed, what the \
             kernel charged to this process, what the device moved.",
        )
        .with([tables::evidence(findings)])
        .with(several.then(|| targets::evidence(manifest))),
        page("numbers", "All numbers", "")
            .with([tables::rates(findings), tables::latencies(findings), tables::costs(findings)])
            .with(several.then(|| targets::shares(findings)))
            .with(preconditioned.map(precondition::rounds)),
        identity::section(manifest),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    Ok(sections)
}

/// Returns the part of a file or device that was measured, if it was not all of it.
fn part(manifest: &Manifest) -> Option<String> {
    let set = manifest.parameters::<CalibrateParameters>();
    set.asked_span_bytes.flatten().or(set.offset_bytes)?;
    let (span, offset) = (set.size_bytes?, set.offset_bytes.unwrap_or(Bytes(0)));
    let several = manifest.targets.len() as u64;
    let each = span.get().checked_div(several).map(|each| format!("{} of each", Bytes(each)));
    let span = each.unwrap_or_else(|| span.to_string());
    Some(format!(
        "Only {span} from {offset} on were measured. A rotating disk is faster in its outer zones, \
         where offsets begin, and its arms move less within a part."
    ))
}

fn over_time(recording: &Recording) -> Result<Vec<Chart>> {
    let history = History::read(recording)?;
    let lanes = Lanes::new(&history, &recording.manifest);
    let rate = |name, object, column| {
        Lane::new(name, Color::Series(0), lanes.rate("load", object, column))
    };
    let iops = vec![rate("IOPS", "", "completed_ops")];
    let beside = rate("load beside it", "background", "completed_bytes");
    let bytes = vec![rate("load", "", "completed_bytes"), Lane { color: Color::Grey, ..beside }];
    let [processors, run_queue] = lanes::processors(&lanes);
    Ok(vec![
        lanes.chart("iops", "Operations a second", Measure::Count, iops),
        lanes.chart("throughput", "Bytes a second", Measure::BytesPerS, bytes),
        processors,
        run_queue,
        lanes::devices(&lanes),
    ])
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, NAMES};
    use crate::recorded::places;

    #[test]
    fn every_figure_has_one_place() {
        let mut placed: Vec<&str> = places(GROUPS).map(|(.., name)| name).collect();
        let mut known = NAMES.to_vec();
        placed.sort_unstable();
        known.sort_unstable();
        assert_eq!(placed, known);
    }
}
