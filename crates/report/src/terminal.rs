//! One terminal screen: what was measured, the figures with their intervals, how blocking readers
//! compare with asynchronous depth, commits by method, the verdicts, and where the rest is.

mod grid;
mod identity;

mod run;
mod tables;

use std::collections::BTreeSet;

use blockstone_base::Capability;
use blockstone_judge::findings::Findings;
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, Manifest};

use crate::format;
use crate::render::terminal::columns::{self, Columns};
use crate::render::terminal::verdict_lines;
use crate::select::{self, HEADLINE};

pub use crate::render::terminal::Style;
pub use grid::render as grid_terminal;
pub(crate) use grid::spread as grid_spread;
pub(crate) use run::ledger;
pub(crate) use run::noise::itself as noise_itself;
pub use run::render as run_terminal;
pub(crate) use run::{amount, workload};

/// The figures, a row of related ones a line: heading, then (prefix, name of the figure).
const ROWS: [(&str, &[(&str, &str)]); 7] = [
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

/// Renders a calibration as one screen. The first line is the headline, or says that there is none.
pub fn render(recording: &Recording, findings: &Findings, style: &Style) -> String {
    let manifest = &recording.manifest;
    let mut sections = vec![
        vec![headline(manifest, findings, style)],
        identity::lines(manifest, style),
        figures(findings, style),
        [tables::concurrency(findings, style), tables::open_loop(findings, style)].concat(),
        tables::commits(manifest, findings, style),
        verdict_lines(&findings.verdicts, findings.summary.len(), style),
        [missing(manifest, style), places(recording, style)].concat(),
    ];
    // Headline and identity belong together; every other section stands apart.
    let identity = sections.remove(1);
    sections[0].extend(identity);
    screen(sections)
}

/// What the measurement could not do, and why.
fn missing(manifest: &Manifest, style: &Style) -> Vec<String> {
    let degraded = manifest.capabilities.iter().filter_map(|named| match &named.capability {
        Capability::Full => None,
        Capability::Degraded { why } => Some(format!("- {}: {why}", named.name)),
    });
    degraded.flat_map(|text| columns::wrap(&text, style.width, 0, 4)).collect()
}

/// Sections with an empty line between them; what is empty takes none.
fn screen(mut sections: Vec<Vec<String>>) -> String {
    sections.retain(|lines| !lines.is_empty());
    let mut screen = sections.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n");
    screen.push('\n');
    screen
}

fn headline(manifest: &Manifest, findings: &Findings, style: &Style) -> String {
    let path = &manifest.target.path;
    let condemned_by = select::headline_condemned_by(findings);
    if !condemned_by.is_empty() {
        let rules = condemned_by.join(", ");
        return style.bad(&format!("No headline: {path} is condemned by {rules}"));
    }
    let parts: Vec<String> = HEADLINE
        .iter()
        .filter_map(|name| select::figure(findings, name))
        .map(|f| format::quantity(f.estimate.value, &f.unit))
        .collect();
    if parts.is_empty() {
        return style.warning(&format!("No headline: {path} was not measured that far"));
    }
    style.bold(&format!("{path}: {}", parts.join(" · ")))
}

fn figures(findings: &Findings, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    for (heading, cells) in ROWS {
        let present: Vec<(&str, &Figure)> = cells
            .iter()
            .filter_map(|(prefix, name)| Some((*prefix, select::figure(findings, name)?)))
            .collect();
        let Some((_, first)) = present.first() else { continue };
        let mut row = vec![style.dim(heading)];
        row.extend(present.iter().map(|(prefix, figure)| cell(prefix, figure, style)));
        let rules = condemned_by(present.iter().map(|(_, figure)| *figure));
        if !rules.is_empty() {
            row.push(rules);
        } else if present.len() < 3
            && let Some(point) = select::point(findings, &first.phase)
        {
            row.push(style.dim(&format::load(&point.load)));
        }
        columns.left(row);
    }
    let lines = columns.lines();
    if lines.iter().any(|line| columns::visible_width(line) > style.width) {
        return one_figure_a_line(findings, style);
    }
    lines
}

/// For a narrow terminal.
fn one_figure_a_line(findings: &Findings, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    for (_, figure) in &findings.summary {
        let title = style.dim(&figure.title);
        columns.left(vec![cell("", figure, style), title, condemned_by([figure])]);
    }
    columns.lines()
}

/// `condemned: hole, unwritten`; empty when all of the figures stand.
fn condemned_by<'a>(figures: impl IntoIterator<Item = &'a Figure>) -> String {
    let rules: BTreeSet<&str> =
        figures.into_iter().flat_map(|f| &f.condemned_by).map(String::as_str).collect();
    if rules.is_empty() {
        return String::new();
    }
    format!("condemned: {}", rules.into_iter().collect::<Vec<_>>().join(", "))
}

fn cell(prefix: &str, figure: &Figure, style: &Style) -> String {
    let value = format::quantity(figure.estimate.value, &figure.unit);
    let prefix = if prefix.is_empty() { String::new() } else { format!("{} ", style.dim(prefix)) };
    if figure.condemned_by.is_empty() {
        let interval = style.dim(&format::plus_minus(&figure.estimate));
        format!("{prefix}{} {interval}", style.bold(&value)).trim_end().to_owned()
    } else {
        format!("{prefix}{}", style.struck(&value))
    }
}

fn places(recording: &Recording, style: &Style) -> Vec<String> {
    vec![format!("{} {}/report.html", style.dim("recording and report:"), recording.dir.display())]
}

#[cfg(test)]
mod tests {
    use blockstone_judge::summary::NAMES;

    use super::ROWS;

    #[test]
    fn every_figure_has_one_place() {
        let mut placed: Vec<&str> =
            ROWS.iter().flat_map(|(_, cells)| cells.iter().map(|(_, name)| *name)).collect();
        let mut known = NAMES.to_vec();
        placed.sort_unstable();
        known.sort_unstable();
        assert_eq!(placed, known);
    }
}
