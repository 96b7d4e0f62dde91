//! Report of noise: what it wrote, and what other users of the storage achieved without and with
//! it.

mod earlier;

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Measure, Row, Rows as _, Table, Value, count, happened, share, text, unmerged,
};
use blockstone_base::units::Bytes;
use blockstone_judge::findings::Point;
use blockstone_judge::noise::{NAMES, NoiseFindings};
use blockstone_judge::run::Noise;
use blockstone_record::Recording;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::NoiseParameters;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Card, Report, Section, format};

use crate::recorded::{self, Groups, identity};
use crate::verbs::run::report::forms;
use crate::verbs::run::report::rows::WritersRow;

const GROUPS: &Groups = &[(
    "noise",
    &[
        ("", "write_mbps"),
        ("", "write_iops"),
        ("mean", "write_latency_ns_mean"),
        ("p99", "write_latency_ns_p99"),
    ],
)];

rows! {
    /// Single figures of noise.
    pub struct Summary {
        /// Phases without noise that were measured.
        quiet_phases: u64 = count("quiet phases"),
        /// Phases with noise that were measured.
        noisy_phases: u64 = count("noisy phases"),
    }
}

rows! {
    /// Figures of others without noise and with it.
    pub struct EffectRow {
        /// Figure that is compared: a rate, or the mean time of one.
        figure: String = text("figure"),
        /// Without noise.
        quiet: Estimate = unmerged("quiet", Measure::OfRow).plain(),
        /// With noise.
        noisy: Estimate = unmerged("noisy", Measure::OfRow).plain(),
        /// With ÷ without noise.
        ratio: Value = share("÷ quiet"),
        /// Whether a difference is established.
        outcome: &'static str = text("result").answer(),
    }
}

/// Tables that only this verb has.
pub const TABLES: Tables =
    &[("noise-writers", WritersRow::COLUMNS), ("effect", EffectRow::COLUMNS)];

pub fn report(recording: &Recording, findings: &NoiseFindings) -> Report {
    let manifest = &recording.manifest;
    let NoiseFindings { point, phases, summary, verdicts, .. } = findings;
    let cards: Vec<Card> = recorded::places(GROUPS)
        .filter_map(|place| {
            let (_, figure) = summary.iter().find(|(name, _)| name == place.name)?;
            let source = point.as_ref().map(|point| format::load(&point.load));
            Some(recorded::card(place, figure, source.unwrap_or_default()))
        })
        .collect();
    Report {
        headline: recorded::headline(manifest, cards.iter().take(2).cloned().collect()),
        cards,
        sections: sections(manifest, findings),
        scalars: Some(Summary::table(
            "noise",
            "Noise",
            [Summary { quiet_phases: phases.0 as u64, noisy_phases: phases.1 as u64 }],
        )),
        first: earlier::keys(recording, findings),
        ..recorded::report("noise", recording, &NAMES, summary, verdicts)
    }
}

fn sections(manifest: &Manifest, findings: &NoiseFindings) -> Vec<Section> {
    let NoiseFindings { noise, point, phases, .. } = findings;
    let mut sections: Vec<Section> = Vec::new();
    if let Some(noise) = noise {
        let mut writers = forms::writers(noise);
        let rules = point.as_ref().map_or(&[][..], |point| &point.condemned_by);
        let rows = std::mem::take(&mut writers.rows);
        writers.rows = rows.into_iter().map(|row| row.condemned_by(rules)).collect();
        writers.notes.push(format!("Each write: {}.", forms::mode(noise)));
        writers.notes.extend(point.as_ref().and_then(|point| passes(manifest, point)));
        writers.notes.extend(point.as_ref().and_then(device));
        sections.push(Section::new("noise-writers", "The noise writers").with([writers]));
        if phases.0 > 0 {
            sections.push(effect(noise, (phases.0 as u64, phases.1 as u64)));
        }
    }
    sections.push(identity::section(manifest));
    sections
}

fn effect(found: &Noise, (without, with): (u64, u64)) -> Section {
    let title = "Effect of the noise on others";
    let mut table = Table::new("effect", title, EffectRow::COLUMNS);
    for row in &found.effect {
        let cells = EffectRow {
            figure: row.title.clone(),
            quiet: row.quiet,
            noisy: row.noisy,
            ratio: happened(row.ratio),
            outcome: row.outcome.words(),
        };
        let measure = if row.unit == "ns" { Measure::Nanoseconds } else { Measure::Count };
        table.push(Row::from(cells).of(measure));
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
    let has_ratio = found.effect.iter().any(|row| row.ratio.is_some());
    Section::new("effect", "Effect of the noise on others")
        .with([table])
        .with(has_ratio.then(|| forms::shares(found)))
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
