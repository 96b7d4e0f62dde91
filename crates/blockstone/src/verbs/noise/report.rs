//! Report of noise: what it wrote, and what other users of the storage achieved without and with
//! it.

use blockstone_base::row;
use blockstone_base::table::{Heading, Measure, Merge, Table, column, happened, share, text};
use blockstone_base::units::Bytes;
use blockstone_judge::findings::Point;
use blockstone_judge::noise::{NAMES, NoiseFindings};
use blockstone_judge::run::Noise;
use blockstone_record::Recording;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::NoiseParameters;
use blockstone_report::render::json;
use blockstone_report::{Card, Report, Section, format};
use schemars::JsonSchema;
use serde::Serialize;

use crate::recorded::document::Common;
use crate::recorded::{self, Groups, document, identity};
use crate::verbs::run::report::forms;

const GROUPS: &Groups = &[(
    "noise",
    &[
        ("", "write_mbps"),
        ("", "write_iops"),
        ("mean", "write_latency_ns_mean"),
        ("p99", "write_latency_ns_p99"),
    ],
)];

/// JSON document of noise.
#[derive(Serialize, JsonSchema)]
pub struct NoiseDocument<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    /// Amount written, and its effect; null if the run ended before a window opened.
    noise: Option<&'a Noise>,
    /// Number of phases without noise that were measured.
    quiet_phases: usize,
    /// Number of phases with noise that were measured.
    noisy_phases: usize,
    /// The writers as a point, with the evidence of the kernel and the device.
    point: Option<&'a Point>,
}

/// Names of the tables that only this verb has.
pub const TABLES: &[&str] = &["noise-writers", "effect"];

pub fn report(recording: &Recording, findings: &NoiseFindings) -> Report {
    let manifest = &recording.manifest;
    let NoiseFindings { noise, point, phases, summary } = findings;
    let cards: Vec<Card> = recorded::places(GROUPS)
        .filter_map(|place| {
            let (_, figure) = summary.iter().find(|(name, _)| name == place.2)?;
            let source = point.as_ref().map(|point| format::load(&point.load));
            Some(recorded::card(place, figure, source.unwrap_or_default()))
        })
        .collect();
    Report {
        headline: recorded::headline(manifest, cards.iter().take(2).cloned().collect()),
        cards,
        sections: sections(manifest, findings),
        document: json::keys(NoiseDocument {
            common: document::common(recording, &NAMES, summary, &[]),
            noise: noise.as_ref(),
            quiet_phases: phases.0,
            noisy_phases: phases.1,
            point: point.as_ref(),
        }),
        ..recorded::report("noise", recording, summary, &[])
    }
}

fn sections(manifest: &Manifest, findings: &NoiseFindings) -> Vec<Section> {
    let NoiseFindings { noise, point, phases, .. } = findings;
    let mut sections: Vec<Section> = Vec::new();
    if let Some(noise) = noise {
        let mut writers = forms::writers(noise);
        writers.notes.push(format!("Each write: {}.", forms::mode(noise)));
        writers.notes.extend(point.as_ref().and_then(|point| passes(manifest, point)));
        writers.notes.extend(point.as_ref().and_then(device));
        sections.push(Section::new("noise-writers", "The noise writers").with([writers]));
        if phases.0 > 0 {
            sections.push(effect(noise, *phases));
        }
    }
    sections.push(identity::section(manifest));
    sections
}

/// The columns that fit 80 characters; the document has all intervals.
const EFFECT: &[Heading] = &[
    text("figure", "figure", "What is compared: a rate, or the mean time of one."),
    column("quiet", "quiet", Measure::OfRow, Merge::Never, "Without noise."),
    column("noisy", "noisy", Measure::OfRow, Merge::Never, "With noise."),
    share("ratio", "÷ quiet", "With ÷ without noise."),
    column("outcome", "result", Measure::Text, Merge::Never, "If a difference is established."),
];

fn effect(found: &Noise, (without, with): (usize, usize)) -> Section {
    let mut table = Table::new("effect", "Effect of the noise on others", EFFECT);
    for row in &found.effect {
        let [without, with] = [row.quiet, row.noisy].map(|estimate| estimate.value);
        let cells = row![&row.title, without, with, happened(row.ratio), row.outcome.words()];
        let measure = if row.unit == "ns" { Measure::Nanoseconds } else { Measure::Count };
        table.push(cells.of(measure));
    }
    table.notes.push(format!(
        "{without} phases without noise and {with} with it, in turn: what changed slowly on the \
         machine affects both alike. The interval of the ratio covers the variation between \
         phases. Writes to the device are not compared: most of them are the noise."
    ));
    if found.effect.is_empty() {
        table.notes.push(
            "Nothing to compare: nobody read from the device, and no database was watched (--db)."
                .to_owned(),
        );
    }
    Section::new("effect", "Effect of the noise on others").with([table])
}

/// Describes how often each writer went through its area in a phase. Less than once leaves a part
/// of the area, and of a write cache, untouched.
fn passes(manifest: &Manifest, point: &Point) -> Option<String> {
    let area = manifest.parameters::<NoiseParameters>().area_bytes?;
    let all = area.get() as f64 * f64::from(point.load.workers);
    let seconds = point.iops.duration_ns as f64 / 1e9 / f64::from(point.windows.max(1));
    let passes = point.mb_per_s.value * 1e6 * seconds / all.max(1.0);
    Some(format!(
        "Each writer looped over {area}, from its start in every phase: {passes:.2} times in a \
         window of {seconds:.1} s."
    ))
}

/// Describes what the device moved in the same time.
fn device(point: &Point) -> Option<String> {
    let (bytes, completed) = (point.evidence.device_bytes?, point.evidence.completed_bytes);
    Some(format!(
        "The writers completed {} in these windows; the device wrote {}, those of others included.",
        Bytes(completed),
        Bytes(bytes)
    ))
}
