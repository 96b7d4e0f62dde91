//! A report as text for a terminal: one screen, or with `all` everything the page says.

pub mod columns;
mod paint;
mod picture;
pub mod table;
mod verdicts;

use std::collections::BTreeSet;

use blockstone_base::units::counted;

use crate::chart::Form;
use crate::format;
use crate::report::{Block, Card, Detail, Report, Section, Tone};
use columns::{Columns, sparkline, visible_width, wrap};
pub(super) use paint::is_obeyed;
pub use paint::{Style, visible};

/// Maximum width of a sparkline.
const SPARKLINE: usize = 50;

/// Returns one screen: headline, identity, figures, the sections meant for a terminal, verdicts,
/// notes. With `all`, also the sections that otherwise only the page shows, and whole tables.
pub fn text(report: &Report, all: bool, style: &Style) -> String {
    let is_top = |section: &&Section| section.detail == Detail::Top;
    let wanted = |it: &&Section| !is_top(it) && it.detail.is_on_terminal(all);
    let shown = |section| self::section(section, all, style);
    let mut parts = vec![top(report, style)];
    parts.extend(report.sections.iter().filter(is_top).map(shown));
    parts.push(figures(&report.cards, style));
    parts.extend(report.sections.iter().filter(wanted).map(shown));
    parts.push(verdicts::lines(report, all, style));
    parts.push(bottom(report, style));
    parts.retain(|lines| !lines.is_empty());
    let parts: Vec<String> = parts.iter().map(|lines| lines.join("\n")).collect();
    parts.join("\n\n") + "\n"
}

fn top(report: &Report, style: &Style) -> Vec<String> {
    let mut lines = headline(report, style);
    let warnings = report.warnings.iter().flat_map(|text| wrap(text, style.width, 0, 2));
    lines.extend(warnings.map(|line| style.warning(&line)));
    let identity = report.identity.iter().flat_map(|text| wrap(text, style.width, 0, 2));
    lines.extend(identity.map(|line| style.dim(&line)));
    lines
}

fn headline(report: &Report, style: &Style) -> Vec<String> {
    let headline = &report.headline;
    let subject = match headline.subject.as_str() {
        "" => String::new(),
        subject => style.bold(&format!("{subject}: ")),
    };
    let figures: Vec<String> = headline.figures.iter().map(|card| quoted(card, style)).collect();
    let text = match (headline.tone, headline.text.as_str()) {
        (_, "") => String::new(),
        (Tone::Plain, text) => style.bold(text),
        (Tone::Warning, text) => style.warning(text),
        (Tone::Bad, text) => style.bad(text),
    };
    let figures = figures.join(" · ");
    let ordered = if headline.leads { [text, figures] } else { [figures, text] };
    let parts: Vec<String> = ordered.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Vec::new();
    }
    wrap(&format!("{subject}{}", parts.join(" · ")), style.width, 0, 2)
}

/// Formats a figure in the headline.
fn quoted(card: &Card, style: &Style) -> String {
    let value = match &*card.words {
        "" => format::quantity(card.estimate.value, &card.unit),
        words => format!("{} {words}", format::number(card.estimate.value, &card.unit)),
    };
    with_interval(card, &value, style)
}

/// Returns the number with its interval, or struck through.
fn with_interval(card: &Card, value: &str, style: &Style) -> String {
    if !card.condemned_by.is_empty() {
        return style.struck(value);
    }
    let interval = match format::interval(&card.estimate, &card.unit) {
        least if card.estimate.is_open_above() && !least.is_empty() => format!("({least})"),
        _ => format::plus_minus(&card.estimate),
    };
    let value = format!("{}{value}", format::sign(&card.estimate));
    format!("{} {}", style.bold(&value), style.dim(&interval)).trim_end().to_owned()
}

/// Lays out the figures, one line for each group if the terminal is wide enough, else one line
/// each.
fn figures(cards: &[Card], style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    for group in cards.chunk_by(|a, b| a.group == b.group && !a.group.is_empty()) {
        let mut row = vec![style.dim(if group[0].group.is_empty() {
            &group[0].title
        } else {
            &group[0].group
        })];
        row.extend(group.iter().map(|card| figure(card, style)));
        let rules = condemned_by(group);
        if !rules.is_empty() {
            row.push(rules);
        } else if group.len() < 3 {
            row.push(style.dim(&group[0].source));
        }
        columns.left(row);
    }
    let lines = columns.lines();
    if lines.iter().all(|line| visible_width(line) <= style.width) {
        return lines;
    }
    let mut columns = Columns::new(2);
    for card in cards {
        let title = style.dim(&card.title);
        let unprefixed = Card { prefix: "".into(), ..card.clone() };
        let rules = condemned_by(std::slice::from_ref(card));
        columns.left(vec![figure(&unprefixed, style), title, rules]);
    }
    columns.lines()
}

fn figure(card: &Card, style: &Style) -> String {
    let value = format::quantity(card.estimate.value, &card.unit);
    let prefix = match &*card.prefix {
        "" => String::new(),
        prefix => format!("{} ", style.dim(prefix)),
    };
    format!("{prefix}{}", with_interval(card, &value, style))
}

/// Returns `condemned: hole, unwritten`; empty if none of the figures is condemned.
fn condemned_by(cards: &[Card]) -> String {
    let rules: BTreeSet<&str> =
        cards.iter().flat_map(|card| &card.condemned_by).map(String::as_str).collect();
    if rules.is_empty() {
        return String::new();
    }
    format!("condemned: {}", rules.into_iter().collect::<Vec<_>>().join(", "))
}

fn section(section: &Section, all: bool, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    // A heading of its own only if the table below does not say the same.
    let first_title = section.blocks.iter().find_map(|block| match block {
        Block::Table(table) => Some(&table.title),
        _ => None,
    });
    if !section.heading.is_empty() && first_title != Some(&section.heading) {
        lines.push(style.bold(&section.heading));
    }
    let are_charts = |a: &Block, b: &Block| matches!((a, b), (Block::Chart(_), Block::Chart(_)));
    let mut shown = 0;
    for group in section.blocks.chunk_by(are_charts) {
        let before = &section.blocks[..shown];
        shown += group.len();
        match &group[0] {
            Block::Table(table) => lines.extend(table::lines(table, all, style)),
            Block::Chart(_) => lines.extend(bars(group, style)),
            Block::Bars(bars) => lines.extend(picture::bars(bars, style)),
            Block::Cells(cells) => {
                let has_legend = !before.iter().any(|block| block.explains(cells));
                lines.extend(picture::cells(cells, has_legend, all, style));
            }
            Block::Text(text) => {
                if let Some(Block::Bars(_) | Block::Cells(_)) = before.last() {
                    lines.push(String::new());
                }
                lines.extend(wrap(text, style.width, 2, 4));
            }
        }
    }
    lines
}

/// Draws the lines of charts as rows of bars, each from zero to its own greatest value.
fn bars(charts: &[Block], style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    let lines = charts.iter().flat_map(|block| match block {
        Block::Chart(chart) => chart.layers.iter().map(|layer| (chart, layer)).collect(),
        _ => Vec::new(),
    });
    for (chart, layer) in lines.filter(|(_, layer)| matches!(layer.form, Form::Line { .. })) {
        let values: Vec<f64> = layer.form.points().iter().filter_map(|point| point.y).collect();
        let greatest = values.iter().copied().fold(0.0, f64::max);
        let up_to = format::value(&greatest.into(), chart.y.measure);
        let bars = sparkline(&thinned(&values, SPARKLINE.min(style.width / 2)));
        columns.left(vec![style.dim(&layer.name), bars, style.dim(&format!("up to {up_to}"))]);
    }
    columns.lines()
}

/// Returns at most `count` values, which are means of neighbours.
fn thinned(values: &[f64], count: usize) -> Vec<f64> {
    let size = values.len().div_ceil(count.max(1)).max(1);
    values.chunks(size).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
}

fn bottom(report: &Report, style: &Style) -> Vec<String> {
    let notes = report.notes.iter().flat_map(|text| wrap(text, style.width, 0, 4));
    let mut lines: Vec<String> = notes.collect();
    if !report.recording.is_empty() {
        let (label, page) = if report.has_page {
            ("recording and report:", "/report.html")
        } else {
            ("recording:", "")
        };
        lines.push(format!("{} {}{page}", style.dim(label), report.recording));
    }
    lines
}

/// Returns `12 more rows`, for a table that a screen did not show in full.
pub(crate) fn more(hidden: usize, name: &str) -> String {
    format!("{}: --csv={name}", counted(hidden as u64, "more row"))
}

#[cfg(test)]
mod tests {
    use blockstone_base::stats::Estimate;
    use blockstone_base::table::{Table, Value, count, text as words};

    use super::*;
    use crate::report::Headline;

    const STYLE: Style = Style { color: false, width: 100 };

    fn card(group: &'static str, name: &'static str, condemned_by: &[&str]) -> Card {
        let estimate =
            Estimate { value: 1_000.0, low: 990.0, high: 1_010.0, samples: 9, duration_ns: 1 };
        Card {
            name: name.into(),
            title: name.into(),
            group: group.into(),
            prefix: "".into(),
            estimate,
            unit: "IOPS".into(),
            words: "".into(),
            source: "one reader".to_owned(),
            condemned_by: condemned_by.iter().map(|rule| (*rule).to_owned()).collect(),
        }
    }

    fn report() -> Report {
        let columns = [words("disk", "disk", ""), count("iops", "IOPS", "")];
        let mut disks = Table::new("disks", "Disks", columns.to_vec()).on_screen(1);
        disks.push([Value::from("sda"), 5.0.into()]);
        disks.push([Value::from("sdb"), 6.0.into()]);
        let hidden = Section::new("hidden", "Hidden").detail(Detail::Page);
        Report {
            headline: Headline {
                subject: "/data".to_owned(),
                figures: vec![card("", "iops", &[])],
                ..Headline::default()
            },
            cards: vec![card("reads", "read_iops", &[]), card("writes", "write_iops", &["hole"])],
            sections: vec![
                Section::new("disks", "Disks").with([disks]),
                hidden.with(["only on the page".to_owned()]),
            ],
            ..Report::default()
        }
    }

    #[test]
    fn one_screen_strikes_through_and_says_what_it_leaves_out() {
        let text = text(&report(), false, &STYLE);
        assert_eq!(
            text,
            "/data: 1,000 IOPS ±1 %\n\n  \
             reads   1,000 IOPS ±1 %  one reader\n  \
             writes  ~~1,000 IOPS~~   condemned: hole\n\n\
             Disks\n  disk  IOPS\n  sda      5\n  1 more row: --csv=disks\n"
        );
    }

    #[test]
    fn all_of_it_has_the_sections_of_the_page_and_whole_tables() {
        let text = text(&report(), true, &STYLE);
        assert!(text.contains("only on the page") && text.contains("sdb"), "{text}");
        assert!(!text.contains("more row"), "{text}");
    }
}
