//! The figures as cards, with their interval and what the verdicts say of them.

use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_judge::RunFindings;
use blockstone_judge::findings::Findings;
use blockstone_record::manifest::Figure;
use serde::Serialize;

use crate::format;
use crate::select::{self, HEADLINE};

/// One figure.
#[derive(Serialize)]
pub struct Card {
    title: String,
    /// The number; a duration carries its unit here.
    value: String,
    unit: String,
    interval: String,
    /// The load or phase it was read from.
    source: String,
    condemned_by: Vec<String>,
    /// Failed rules that concern it without condemning it.
    warned_by: Vec<String>,
}

/// The triple of CALIBRATE_IO, as far as it was measured; empty when any of it is condemned, for
/// then there is no headline.
pub fn headline(findings: &Findings) -> Vec<Card> {
    if !select::headline_condemned_by(findings).is_empty() {
        return Vec::new();
    }
    HEADLINE
        .iter()
        .filter_map(|name| Some(card(name, select::figure(findings, name)?, findings)))
        .collect()
}

/// Cards that answer one question.
#[derive(Serialize)]
pub struct Family {
    title: &'static str,
    cards: Vec<Card>,
}

/// Which figures answer which question.
const FAMILIES: [(&str, &[&str]); 4] = [
    (
        "Reads",
        &[
            "max_iops",
            "max_mbps",
            "actual_latency_ns_mean",
            "knee_iops",
            "knee_latency_ns_p99",
            "read_latency_ns_p50",
            "read_latency_ns_p99",
        ],
    ),
    ("Writes", &["max_write_iops", "write_mbps", "write_latency_ns_p50"]),
    ("Commits", &["max_commits_per_s", "commit_latency_ns_p50", "commit_latency_ns_p99"]),
    (
        "Sequential reads by one stream",
        &["cached_read_mbps", "buffered_read_mbps", "direct_read_mbps"],
    ),
];

/// All figures but the headline, and a condemned triple among them.
pub fn families(findings: &Findings) -> Vec<Family> {
    let shown = select::headline_condemned_by(findings).is_empty();
    let below = |name: &str| !(shown && HEADLINE.contains(&name));
    let mut families: Vec<Family> = FAMILIES
        .iter()
        .map(|(title, names)| Family {
            title,
            cards: names
                .iter()
                .filter(|name| below(name))
                .filter_map(|name| Some(card(name, select::figure(findings, name)?, findings)))
                .collect(),
        })
        .collect();
    // A newer judge may know more figures than the list above.
    let placed = |name: &str| FAMILIES.iter().any(|(_, names)| names.contains(&name));
    let others = findings.summary.iter().filter(|(name, _)| !placed(name));
    families.push(Family {
        title: "Others",
        cards: others.map(|(name, figure)| card(name, figure, findings)).collect(),
    });
    families.retain(|family| !family.cards.is_empty());
    families
}

fn card(name: &str, figure: &Figure, findings: &Findings) -> Card {
    let source = select::point(findings, &figure.phase)
        .map_or_else(|| figure.phase.clone(), |p| format::load(&p.load));
    judged(name, figure, &findings.verdicts, source)
}

fn judged(name: &str, figure: &Figure, verdicts: &[Verdict], source: String) -> Card {
    let warned_by = verdicts
        .iter()
        .filter(|v| v.outcome == Outcome::Fail && v.weight == Weight::Warns)
        .filter(|v| v.concerns.iter().any(|concerned| concerned == name))
        .map(|v| v.rule.clone())
        .collect();
    Card {
        title: figure.title.clone(),
        value: format::number(figure.estimate.value, &figure.unit),
        unit: if figure.unit == "ns" { String::new() } else { figure.unit.clone() },
        interval: format::interval(&figure.estimate, &figure.unit),
        source,
        condemned_by: figure.condemned_by.clone(),
        warned_by,
    }
}

/// The headline of a run: what its sessions got from the storage, and at what price.
const RUN_HEADLINE: [&str; 4] =
    ["read_iops", "write_iops", "commits_per_s", "physical_reads_per_cpu_s"];

/// The headline of a matrix of scans: its point with most bytes a second.
const SCAN_HEADLINE: [&str; 3] = ["read_mbps", "read_iops", "physical_reads_per_cpu_s"];

/// Which other figures of a run answer which question.
const RUN_FAMILIES: [(&str, &[&str]); 4] = [
    (
        "Reads",
        &[
            "read_latency_ns_mean",
            "read_latency_ns_p50",
            "read_latency_ns_p99",
            "physical_reads_per_s",
            "logical_reads_per_s",
            "read_mbps",
        ],
    ),
    (
        "Commits and writes",
        &[
            "commit_latency_ns_mean",
            "commit_latency_ns_p50",
            "commit_latency_ns_p99",
            "write_mbps",
            "redo_mbps",
        ],
    ),
    ("Disks", &["hardware_read_iops", "hardware_write_iops"]),
    ("Sessions", &["operations_per_s", "average_active_sessions", "db_time_remainder_ratio"]),
];

/// The headline of a run, condemned figures struck through.
pub fn run_headline(findings: &RunFindings) -> Vec<Card> {
    match findings.scan {
        Some(_) => run_cards(findings, &SCAN_HEADLINE),
        None => run_cards(findings, &RUN_HEADLINE),
    }
}

/// All other figures of a run.
pub fn run_families(findings: &RunFindings) -> Vec<Family> {
    let family = |(title, names): &(&'static str, &[&str])| Family {
        title,
        cards: run_cards(findings, names),
    };
    RUN_FAMILIES.iter().map(family).filter(|family| !family.cards.is_empty()).collect()
}

fn run_cards(findings: &RunFindings, names: &[&str]) -> Vec<Card> {
    let samples = |figure: &Figure| {
        format!("{} samples", blockstone_base::units::thousands(figure.estimate.samples as i64))
    };
    let card = |name: &&str| {
        // What the sessions did not do is no figure of theirs.
        let figure = findings.figure(name).filter(|figure| figure.estimate.samples > 0)?;
        Some(judged(name, figure, &findings.verdicts, samples(figure)))
    };
    names.iter().filter_map(card).collect()
}
