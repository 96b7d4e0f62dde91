//! What a run of a workload reports: what its sessions got from the storage, where their time went,
//! and whether to believe it.

mod activity;
mod forms;
pub mod grid;
mod layers;
mod tables;

use anyhow::Result;
use blockstone_base::table::{Table, Text};
use blockstone_base::units::{Bytes, format_ns, thousands};
use blockstone_judge::RunFindings;
use blockstone_judge::run::FIGURES;
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, Manifest};
use blockstone_record::parameters::RunParameters;
use blockstone_report::report::Tone;
use blockstone_report::{Card, Detail, Headline, Report, Section};
use blockstone_view::History;
use serde_json::{Map, Value, json};

use super::awr;
use crate::recorded;
use crate::recorded::document::{self, plain};

/// The figures of the headline, and the words after each number.
const HEADLINE: [(&str, &str); 4] = [
    ("read_iops", "reads/s"),
    ("write_iops", "writes/s"),
    ("commits_per_s", "commits/s"),
    ("physical_reads_per_cpu_s", "physical reads per CPU-second"),
];

/// The figures in groups, each with the word that stands before its number on a terminal.
const GROUPS: [(&str, &[(&str, &str)]); 9] = [
    ("reads", &[("", "read_iops"), ("", "read_mbps")]),
    (
        "a read",
        &[
            ("mean", "read_latency_ns_mean"),
            ("p50", "read_latency_ns_p50"),
            ("p99", "read_latency_ns_p99"),
        ],
    ),
    ("writes", &[("", "write_iops"), ("", "write_mbps"), ("redo", "redo_mbps")]),
    ("commits", &[("", "commits_per_s"), ("CPU", "cpu_ns_per_commit")]),
    (
        "a commit",
        &[
            ("mean", "commit_latency_ns_mean"),
            ("p50", "commit_latency_ns_p50"),
            ("p99", "commit_latency_ns_p99"),
        ],
    ),
    ("blocks", &[("visited", "logical_reads_per_s"), ("read", "physical_reads_per_s")]),
    ("per CPU-s", &[("", "physical_reads_per_cpu_s")]),
    ("all disks", &[("reads", "hardware_read_iops"), ("writes", "hardware_write_iops")]),
    (
        "sessions",
        &[
            ("", "operations_per_s"),
            ("active", "average_active_sessions"),
            ("remainder", "db_time_remainder_ratio"),
        ],
    ),
];

/// The report of a run and its findings.
///
/// # Errors
/// When a recorded series cannot be read.
pub fn report(recording: &Recording, findings: &RunFindings) -> Result<Report> {
    let manifest = &recording.manifest;
    let history = History::read(recording)?;
    let (layers, timeline) = layers::layers(recording, &history);
    let mut sections = vec![activity::section(recording, &history, findings)];
    sections.extend(findings.scan.iter().flat_map(forms::scan));
    sections.extend(findings.noise.iter().flat_map(forms::noise));
    sections.extend(database(findings));
    sections.push(activity::detail(recording, &history, findings)?);
    sections.extend(layers);
    sections.push(awr_info(recording, findings));
    sections.push(recorded::identity::section(manifest));
    sections.retain(|section| !section.blocks.is_empty());
    let base = recorded::report("run", recording, &findings.summary, &findings.verdicts);
    let identity = [base.identity.clone(), vec![workload(manifest, findings)]].concat();
    Ok(Report {
        headline: headline(manifest, findings),
        identity,
        cards: cards(findings),
        sections,
        document: document(recording, findings),
        timeline: Some(timeline),
        ..base
    })
}

/// What the sessions got; of a matrix of scans, the most bytes a second and with what.
fn headline(manifest: &Manifest, findings: &RunFindings) -> Headline {
    let subject = manifest.target.path.clone();
    if let Some(card) = findings.scan.as_ref().and_then(forms::fastest) {
        return Headline { subject, figures: vec![card], ..Headline::default() };
    }
    let figures: Vec<Card> = HEADLINE
        .iter()
        .filter_map(|(name, words)| {
            Some(Card { words: Text::Borrowed(*words), ..card(findings, ("", "", name))? })
        })
        .collect();
    if figures.is_empty() {
        let text = "no headline: the run ended before it was measured".to_owned();
        return Headline { subject, text, tone: Tone::Warning, figures };
    }
    Headline { subject, figures, ..Headline::default() }
}

fn cards(findings: &RunFindings) -> Vec<Card> {
    let places = GROUPS.iter().flat_map(|(group, figures)| {
        figures.iter().map(move |(prefix, name)| (*group, *prefix, *name))
    });
    places.filter_map(|place| card(findings, place)).collect()
}

/// Group, prefix and name of a figure.
type Place = (&'static str, &'static str, &'static str);

/// None for what the workload did not do: that is no figure of it.
fn card(findings: &RunFindings, (group, prefix, name): Place) -> Option<Card> {
    let figure = findings.figure(name).filter(|figure| figure.estimate.samples > 0)?;
    let Figure { title, unit, estimate, condemned_by, .. } = figure.clone();
    Some(Card {
        name: name.into(),
        title: title.into(),
        group: group.into(),
        prefix: prefix.into(),
        estimate,
        unit: unit.into(),
        words: "".into(),
        source: format!("{} samples", thousands(estimate.samples as i64)),
        condemned_by,
    })
}

/// What was run, in a line.
fn workload(manifest: &Manifest, findings: &RunFindings) -> String {
    let run: RunParameters = manifest.parameters();
    let copies = run.redundancy.map(|copies| format!("redundancy {copies}"));
    let mut parts = vec![run.target.unwrap_or_else(|| "run".to_owned())];
    let disks = run.disks.map_or(0, |disks| disks.len());
    parts.extend((disks > 1).then(|| format!("{disks} disks")));
    if run.profile.as_deref() == Some("scan") {
        parts.extend(run.scan_bytes.map(|size| format!("one table of {size}")));
        parts.extend(run.scan_slots.map(|n| format!("{n} reads in flight per session")));
        parts.extend(copies);
        parts.push(format!("windows of {}", format_ns(findings.window_ns as f64)));
        return parts.join(" · ");
    }
    parts.push(if let (Some(readers), Some(writers)) = (run.readers, run.writers) {
        format!("{readers} readers, {writers} writers")
    } else {
        let schemas = run.schemas.map_or("–".to_owned(), |n| n.to_string());
        format!("{} sessions on {schemas} schemas", findings.sessions)
    });
    parts.extend(run.work_unit.map(|rows| format!("{rows} blocks per operation")));
    parts.extend(run.update_pct.map(|n| format!("{n} % updates")));
    parts.extend(run.scan_pct.filter(|&n| n > 0).map(|n| format!("{n} % scans")));
    if let (Some(rows), Some(schemas), Some(Bytes(block))) =
        (run.rows_per_schema, run.schemas, run.block_bytes)
    {
        let rows = rows.saturating_mul(schemas.into());
        parts.push(Bytes(rows.saturating_mul(block)).to_string());
    }
    parts.extend(run.cache_bytes.map(|cache| format!("cache {cache}")));
    parts.extend(copies);
    parts.push(format!("window {}", format_ns(findings.window_ns as f64)));
    parts.join(" · ")
}

/// What every run has: of several windows, the one that the findings are about. A matrix is one
/// screen by itself; what one of its points was in detail stands on the page.
fn database(findings: &RunFindings) -> Vec<Section> {
    let scans = findings.scan.is_some();
    let screen = if scans { Detail::Page } else { Detail::Screen };
    let terminal = if scans { Detail::Page } else { Detail::Terminal };
    let disks = if findings.disks.len() > 1 { screen } else { Detail::Page };
    vec![
        titled("load-profile", tables::profile(findings)).detail(screen).about(
            "Activity of the database. For a matrix of scans, this and all tables below are of \
             the point with the most bytes per second.",
        ),
        titled("database-time", tables::database_time(findings)).detail(screen).about(
            "How the sessions spent their time: database time is CPU, run queue and waits; the \
             remainder is not explained by these.",
        ),
        Section::new("classes", "Wait classes and background processes")
            .detail(Detail::Page)
            .with([tables::classes(findings), tables::background(findings)]),
        titled("io-roles", tables::roles(findings)).detail(screen).about(
            "A mirrored write counts once, for the role that sent it. If writes of the database \
             writer are larger than a block, it coalesced neighbouring blocks.",
        ),
        titled("io-disks", tables::disks(findings))
            .with(tables::range_of_disks(&findings.disks))
            .detail(disks)
            .about("A mirrored write counts on each disk it was sent to."),
        titled("ledger", tables::ledger(findings)).detail(screen).about(
            "Bytes that the database reports as read and written, bytes that the kernel charged \
             to its processes, and bytes that the device moved in the same window. Reads that \
             were claimed but not charged came from the page cache.",
        ),
        titled("latencies", tables::latencies(findings)).detail(screen).about(
            "Operations are timed from their intended start, events as the database waits \
             for them.",
        ),
        Section::new("laws-in-words", "").detail(terminal).with(tables::sentences(findings)),
        Section::new("laws", "Little's law, and the calibration of this path")
            .detail(Detail::Page)
            .with([tables::littles_law(findings), tables::efficiency(findings)]),
    ]
}

/// A section of one table, under the heading of that.
fn titled(id: &'static str, table: Table) -> Section {
    Section::new(id, table.title.clone()).with([table])
}

fn awr_info(recording: &Recording, findings: &RunFindings) -> Section {
    let mut facts = recorded::Facts::new("awr-info", "awr_info");
    for (column, value) in awr::columns(recording, findings) {
        facts.add(column, value);
    }
    Section::new("awr-info", "awr_info")
        .about("SLOB's columns, for spreadsheets made for SLOB's results.")
        .detail(Detail::Page)
        .with([facts.table()])
}

fn document(recording: &Recording, findings: &RunFindings) -> Map<String, Value> {
    let mut keys = document::common(recording, &FIGURES, &findings.summary, &findings.verdicts);
    let scan = findings.scan.as_ref();
    keys.extend(document::object(json!({
        "window": {
            "label": findings.label,
            "duration_ns": findings.window_ns,
            "sessions": findings.sessions,
            "stop": findings.stop,
        },
        "load_profile": plain(&findings.load_profile),
        "db_time": plain(&findings.db_time),
        "waits": plain(&findings.waits),
        "classes": plain(&findings.classes),
        "roles": plain(&findings.roles),
        "ledger": plain(&findings.ledger),
        "disks": plain(&findings.disks),
        "latencies": plain(&findings.latencies),
        "littles_law": plain(&findings.littles_law),
        "efficiency": plain(&findings.efficiency),
        "scan": plain(scan.map_or(&[][..], |scan| &scan.points)),
        "scan_effects": plain(scan.map_or(&[][..], |scan| &scan.effects)),
        "scan_spreads": plain(scan.map_or(&[][..], |scan| &scan.spreads)),
        "noise": plain(&findings.noise),
        "awr_info": awr::awr_info(recording, findings),
        "disk_files": recording.manifest.disk_files,
        "data_files": recording.manifest.data_files,
    })));
    keys
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, GROUPS};

    #[test]
    fn every_figure_has_one_place() {
        let mut placed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, cells)| cells.iter().map(|(_, name)| *name)).collect();
        let mut known = FIGURES.to_vec();
        placed.sort_unstable();
        known.sort_unstable();
        assert_eq!(placed, known);
    }
}
