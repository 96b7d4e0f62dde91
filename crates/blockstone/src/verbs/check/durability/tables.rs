//! The tables of `check durability`.

use blockstone_base::row;
use blockstone_base::table::{Heading, Table, bytes, count, happened, text};
use blockstone_check::durability::findings::{
    Cuts, Description, DurabilityFindings, Layer, Stage, StreamFindings, Witnessed,
};
use blockstone_report::Section;

use crate::verbs::calibrate::report::tables::{FLUSHES, flushes};

const CHAIN: &[Heading] = &[
    text("device", "device", "Kernel name, from the path down."),
    text("kind", "kind", "disk, partition, loop, dm, md or zram."),
    text("write_cache", "write cache", "write back: the kernel flushes it; write through: not."),
    text("fua", "FUA", "Whether it takes writes that bypass its cache."),
    text("drive_cache", "drive's own", "The cache as the drive declares it (SCSI, SATA, NVMe)."),
    count("flush_ios", "flushes", "That it completed while flushes were timed."),
    text("beneath", "lies on", "The devices beneath, or the file of a loop device."),
];

const STREAMS: &[Heading] = &[
    text("method", "method", "How each write was made durable; controls promise nothing."),
    text("pattern", "pattern", "What was written."),
    text("class", "class", "durable, lost, torn, inconclusive or unknown."),
    count("acknowledged", "acknowledged", "Writes that the witness knows."),
    count("checked", "checked", "Of these, those that no later write has replaced."),
    count("lost", "lost", "Of these, those that are missing or older."),
    count("torn", "torn", "Of these, those of which a part is missing."),
    count("misplaced", "misplaced", "Blocks that belong elsewhere, or were never written so."),
    count("reordered", "out of order", "Lost ones before one that is there."),
    count("torn_in_flight", "torn in flight", "Torn by the write that was replacing them."),
    text("evidence", "evidence", "What was seen."),
];

const WITNESSED: &[Heading] = &[
    text("host", "host", "The machine that wrote."),
    text("path", "path", "Where it wrote."),
    count("acknowledged", "acknowledged", "Writes that it told of."),
    count("cuts", "cuts", "Cuts that were verified and lost what was not flushed."),
    count("cuts_with_loss", "with loss", "Of these, those that lost what was flushed."),
    count("cuts_inconclusive", "inconclusive", "Cuts that lost nothing at all."),
    bytes("device_bytes", "device", "Size of the device; none for a directory."),
];

pub const TABLES: &[(&str, &[Heading])] = &[
    ("durability-chain", CHAIN),
    ("flushes", FLUSHES),
    ("durability-streams", STREAMS),
    ("durability-witnessed", WITNESSED),
];

pub fn sections(findings: &DurabilityFindings) -> Vec<Section> {
    if findings.stage == Stage::Witnessed {
        let runs = &findings.witnessed;
        let mut sections = vec![Section::of("durability-witnessed", witnessed(runs))];
        let cut: Vec<_> = runs.iter().filter(|it| it.cuts != Cuts::default()).collect();
        let said = |it: &&Witnessed| {
            let Description { host, path, .. } = &it.description;
            format!("{host}:{path}: {}", statistics(it.cuts))
        };
        sections.extend((!cut.is_empty()).then(|| said_of(cut.iter().map(said))));
        return sections;
    }
    let mut sections = Vec::new();
    if let Some(flushing) = &findings.flushing {
        let said = format!("{}: {}", flushing.class.name(), flushing.evidence);
        sections.push(Section::new("durability-evidence", "What a flush does").with([said]));
    }
    if !findings.streams.is_empty() {
        sections.push(Section::of("durability-streams", streams(&findings.streams)));
    }
    if findings.stage == Stage::Verified {
        sections.push(said_of([statistics(findings.cuts)]));
    }
    if !findings.layers.is_empty() {
        sections.push(Section::of("durability-chain", chain(&findings.layers)));
    }
    let slope = findings.flushing.as_ref().and_then(|flushing| flushing.slope.as_ref());
    sections.extend(slope.map(|slope| Section::of("durability-flushes", flushes(slope))));
    sections
}

fn chain(layers: &[Layer]) -> Table {
    let row = |layer: &Layer| {
        let fua = layer.fua.map(|fua| if fua { "yes" } else { "no" });
        row![
            layer.name.as_str(),
            layer.kind.name(),
            happened(layer.write_cache.as_deref()),
            happened(fua),
            happened(layer.drive_cache.as_deref()),
            happened(layer.flush_ios),
            layer.beneath.join(", ")
        ]
    };
    Table::new("durability-chain", "The chain of devices", CHAIN).with(layers.iter().map(row))
}

fn streams(streams: &[StreamFindings]) -> Table {
    let row = |found: &StreamFindings| {
        let method = found.stream.method;
        let control = if method.is_control() { " (control)" } else { "" };
        row![
            format!("{}{control}", method.name()),
            found.stream.pattern.name(),
            found.class.name(),
            found.acknowledged,
            found.checked,
            found.lost,
            found.torn,
            found.misplaced,
            found.reordered,
            found.torn_in_flight,
            found.evidence.as_str()
        ]
    };
    Table::new("durability-streams", "Writes by how they were made durable", STREAMS)
        .with(streams.iter().map(row))
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

fn witnessed(runs: &[Witnessed]) -> Table {
    let row = |run: &Witnessed| {
        row![
            run.description.host.as_str(),
            run.description.path.as_str(),
            run.acknowledged,
            run.cuts.conclusive,
            run.cuts.with_loss,
            run.cuts.inconclusive,
            happened(run.description.device_bytes)
        ]
    };
    Table::new("durability-witnessed", "What was witnessed", WITNESSED).with(runs.iter().map(row))
}
