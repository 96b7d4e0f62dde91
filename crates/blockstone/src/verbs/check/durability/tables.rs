//! The tables of `check durability`.

use blockstone_base::rows;
use blockstone_base::table::{Rows as _, Value, bytes, count, flag, happened, text};
use blockstone_check::durability::findings::{
    Cuts, Description, DurabilityFindings, Flushing, Layer, Stage, StreamFindings, Witnessed,
};
use blockstone_report::Section;
use blockstone_report::render::json::schema::Tables;

use crate::verbs::calibrate::report::rows::FlushTimeRow;
use crate::verbs::calibrate::report::tables::flushes;

rows! {
    /// Effect of a flush, seen without a power cut.
    struct FlushRow {
        /// `volatile`, `flat`, `unflushed`, `memory` or `unknown`.
        class: &'static str = text("class"),
        /// Observations on which the class rests.
        evidence: String = text("evidence").prose(),
    }
}

rows! {
    /// The chain of devices.
    struct LayerRow {
        /// Kernel name, from the path down.
        device: String = text("device"),
        /// `disk`, `partition`, `loop`, `dm`, `md` or `zram`.
        kind: &'static str = text("kind"),
        /// `write back`: the kernel flushes it; `write through`: it does not.
        write_cache: Value = text("write cache"),
        /// Whether it accepts writes that bypass its cache.
        fua: Value = flag("FUA"),
        /// The cache as the drive declares it (SCSI, SATA, NVMe).
        drive_cache: Value = text("drive's own"),
        /// Flushes that it completed while flushes were timed.
        flush_ios: Value = count("flushes"),
        /// The devices beneath, or the file of a loop device.
        beneath: Value = text("lies on"),
    }
}

rows! {
    /// Writes by how they were made durable.
    struct StreamRow {
        /// How each write was made durable.
        method: &'static str = text("method"),
        /// Pattern of the writes.
        pattern: &'static str = text("pattern"),
        /// Whether the method promises nothing: what a cut loses of it shows what the cut does.
        control: bool = flag("control"),
        /// `durable`, `lost`, `torn`, `inconclusive` or `unknown`.
        class: &'static str = text("class").answer(),
        /// Writes that the witness knows.
        acknowledged: u64 = count("acknowledged"),
        /// Acknowledged writes that no later write has replaced.
        checked: u64 = count("checked"),
        /// Checked writes that are missing or older.
        lost: u64 = count("lost").answer(),
        /// Checked writes of which a part is missing.
        torn: u64 = count("torn").answer(),
        /// Blocks that belong elsewhere, or were never written so.
        misplaced: u64 = count("misplaced"),
        /// Lost ones before one that is there.
        reordered: u64 = count("out of order"),
        /// Torn by the write that was replacing them.
        torn_in_flight: u64 = count("torn in flight"),
        /// Observations on which the class rests.
        evidence: String = text("evidence"),
    }
}

rows! {
    /// Runs that a witness knows.
    struct WitnessedRow {
        /// The machine that wrote.
        host: String = text("host"),
        /// Where it wrote.
        path: String = text("path"),
        /// Writes that it told of.
        acknowledged: u64 = count("acknowledged"),
        /// Cuts that were verified and lost what was not flushed.
        cuts: u64 = count("cuts"),
        /// Cuts that lost flushed data.
        cuts_with_loss: u64 = count("with loss"),
        /// Cuts that lost nothing at all.
        cuts_inconclusive: u64 = count("inconclusive"),
        /// Size of the device; missing for a directory.
        device_bytes: Value = bytes("device"),
    }
}

pub const TABLES: Tables = &[
    ("durability-flush", FlushRow::COLUMNS),
    ("durability-chain", LayerRow::COLUMNS),
    ("flushes", FlushTimeRow::COLUMNS),
    ("durability-streams", StreamRow::COLUMNS),
    ("durability-witnessed", WitnessedRow::COLUMNS),
];

pub fn sections(findings: &DurabilityFindings) -> Vec<Section> {
    if findings.stage == Stage::Witnessed {
        let runs = findings.witnessed.iter();
        let name = "durability-witnessed";
        let table =
            WitnessedRow::table(name, "What was witnessed", runs.clone().map(WitnessedRow::of));
        let mut sections = vec![Section::of(name, table)];
        let cut: Vec<_> = runs.filter(|it| it.cuts != Cuts::default()).collect();
        let said = |it: &&Witnessed| {
            let Description { host, path, .. } = &it.description;
            format!("{host}:{path}: {}", statistics(it.cuts))
        };
        sections.extend((!cut.is_empty()).then(|| said_of(cut.iter().map(said))));
        return sections;
    }
    let mut sections = Vec::new();
    if let Some(Flushing { class, evidence, .. }) = &findings.flushing {
        let row = FlushRow { class: class.name(), evidence: evidence.clone() };
        let table = FlushRow::table("durability-flush", "What a flush does", [row]);
        sections.push(Section::of("durability-evidence", table));
    }
    if !findings.streams.is_empty() {
        let (name, rows) = ("durability-streams", findings.streams.iter().map(StreamRow::of));
        let table = StreamRow::table(name, "Writes by how they were made durable", rows);
        sections.push(Section::of(name, table));
    }
    if findings.stage == Stage::Verified {
        sections.push(said_of([statistics(findings.cuts)]));
    }
    if !findings.layers.is_empty() {
        let (name, rows) = ("durability-chain", findings.layers.iter().map(LayerRow::of));
        sections.push(Section::of(name, LayerRow::table(name, "The chain of devices", rows)));
    }
    let slope = findings.flushing.as_ref().and_then(|flushing| flushing.slope.as_ref());
    sections.extend(slope.map(|slope| Section::of("durability-flushes", flushes(slope))));
    sections
}

impl LayerRow {
    fn of(layer: &Layer) -> Self {
        let beneath = layer.beneath.join(", ");
        Self {
            device: layer.name.clone(),
            kind: layer.kind.name(),
            write_cache: happened(layer.write_cache.as_deref()),
            fua: happened(layer.fua),
            drive_cache: happened(layer.drive_cache.as_deref()),
            flush_ios: happened(layer.flush_ios),
            beneath: happened((!beneath.is_empty()).then_some(beneath)),
        }
    }
}

impl StreamRow {
    fn of(found: &StreamFindings) -> Self {
        Self {
            method: found.stream.method.name(),
            pattern: found.stream.pattern.name(),
            control: found.stream.method.is_control(),
            class: found.class.name(),
            acknowledged: found.acknowledged,
            checked: found.checked,
            lost: found.lost,
            torn: found.torn,
            misplaced: found.misplaced,
            reordered: found.reordered,
            torn_in_flight: found.torn_in_flight,
            evidence: found.evidence.clone(),
        }
    }
}

impl WitnessedRow {
    fn of(run: &Witnessed) -> Self {
        Self {
            host: run.description.host.clone(),
            path: run.description.path.clone(),
            acknowledged: run.acknowledged,
            cuts: run.cuts.conclusive,
            cuts_with_loss: run.cuts.with_loss,
            cuts_inconclusive: run.cuts.inconclusive,
            device_bytes: happened(run.description.device_bytes),
        }
    }
}

fn said_of(said: impl IntoIterator<Item = String>) -> Section {
    Section::new("durability-cuts", "What this says of cuts").with(said)
}

/// Says what the cuts prove, by the rule of three.
fn statistics(cuts: Cuts) -> String {
    let Cuts { conclusive, with_loss, inconclusive } = cuts;
    let proves = match cuts.share_at_most() {
        Some(share) => format!(
            "0 of {conclusive} cuts lost what was flushed: at 95 % at most {:.1} % of such cuts do \
             (1 − 0.05^(1/n); the rule of three, 3/n, from ten cuts on).",
            share * 100.0
        ),
        None if conclusive == 0 => "No cut so far proves anything.".to_owned(),
        None => format!("{with_loss} of {conclusive} cuts lost what was flushed."),
    };
    let kept = "lost nothing that the device had, flushed or not, and are not counted.";
    if inconclusive > 0 { format!("{proves} {inconclusive} {kept}") } else { proves }
}
