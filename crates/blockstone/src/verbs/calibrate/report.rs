//! Report of a calibration: how fast the storage is, at what latency, and whether to believe it.

mod charts;
mod earlier;
mod mixes;
pub mod orion;
mod precondition;
pub mod rows;
mod select;
mod store;
pub mod tables;
mod targets;

use anyhow::Result;
use blockstone_base::table::{Measure, Rows as _};
use blockstone_base::units::Bytes;
use blockstone_judge::findings::Findings;
use blockstone_judge::summary::NAMES;
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_report::chart::{Chart, Color};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::report::Tone;
use blockstone_report::{Card, Headline, Report, Section, format};
use blockstone_view::History;

use crate::recorded::lanes::{self, Lane, Lanes};
use crate::recorded::{self, FigurePlace, Groups, identity};
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

/// Tables that only this verb has.
pub const TABLES: Tables = &[
    ("precondition-rounds", rows::RoundRow::COLUMNS),
    ("mixes", rows::MixRow::COLUMNS),
    ("store", rows::StoreRow::COLUMNS),
    ("random-reads", rows::ConcurrencyRow::COLUMNS),
    ("streams", rows::StreamsRow::COLUMNS),
    ("given-rate", rows::GivenRateRow::COLUMNS),
    ("commits", rows::CommitRow::COLUMNS),
    ("committers", rows::CommittersRow::COLUMNS),
    ("flushes", rows::FlushTimeRow::COLUMNS),
    ("buffered-writes", rows::BufferedRow::COLUMNS),
    ("cached-visits", rows::VisitsRow::COLUMNS),
    ("mixed-reads", rows::MatrixRow::COLUMNS),
    ("evidence", rows::EvidenceRow::COLUMNS),
    ("rates", rows::RateRow::COLUMNS),
    ("latencies", rows::LatencyRow::COLUMNS),
    ("processor-cost", rows::CostRow::COLUMNS),
    ("loads", rows::LoadRow::COLUMNS),
    ("targets", rows::TargetRow::COLUMNS),
    ("target-evidence", rows::TargetEvidenceRow::COLUMNS),
    ("target-files", rows::TargetFileRow::COLUMNS),
    ("shared-devices", rows::SharedDeviceRow::COLUMNS),
    ("target-shares", rows::TargetShareRow::COLUMNS),
];

pub fn report(recording: &Recording, findings: &Findings) -> Result<Report> {
    let manifest = &recording.manifest;
    Ok(Report {
        headline: recorded::limited(headline(manifest, findings), manifest, &findings.verdicts),
        cards: cards(findings),
        sections: sections(recording, findings)?,
        scalars: Some(tables::summary(manifest, findings)),
        first: earlier::keys(recording, findings),
        ..recorded::report("calibrate", recording, &NAMES, &findings.summary, &findings.verdicts)
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
        .filter_map(|name| {
            Some(card(findings, FigurePlace::alone(name), select::figure(findings, name)?))
        })
        .collect();
    recorded::headline(manifest, figures)
}

fn cards(findings: &Findings) -> Vec<Card> {
    let known = recorded::places(GROUPS)
        .filter_map(|place| Some(card(findings, place, select::figure(findings, place.name)?)));
    // A newer judge may have figures that the list above lacks.
    let placed = |name: &str| recorded::places(GROUPS).any(|known| known.name == name);
    let others = findings.summary.iter().filter(|(name, _)| !placed(name));
    known
        .chain(others.map(|(name, figure)| card(findings, FigurePlace::alone(name), figure)))
        .collect()
}

fn card(findings: &Findings, place: FigurePlace<'_>, figure: &Figure) -> Card {
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
        Section::of("store", store::table(findings)),
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
        .with(several.then(|| targets::evidence(manifest)).into_iter().flatten()),
        page("numbers", "All numbers", "")
            .with([tables::rates(findings), tables::latencies(findings), tables::costs(findings)])
            .with([tables::loads(findings)])
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
        let mut placed: Vec<&str> = places(GROUPS).map(|place| place.name).collect();
        let mut known = NAMES.to_vec();
        placed.sort_unstable();
        known.sort_unstable();
        assert_eq!(placed, known);
    }
}
