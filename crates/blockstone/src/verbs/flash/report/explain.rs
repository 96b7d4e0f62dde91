//! Explanation of garbage collection, step by step on a device small enough to draw.

use blockstone_base::table::Rows as _;
use blockstone_flash::toy::{BLOCKS, Cell, PAGES, Step};
use blockstone_report::chart::Color;
use blockstone_report::picture::{self, Bar, Bars, CellKind, CellRow, Cells};
use blockstone_report::{Block, Report, Section, percent};

use super::super::earlier;
use super::rows::{BlockRow, StepRow};
use super::{EXPLAIN, base_report};

/// Explanation of why program times differ by page and by bits per cell.
const CELLS: &str = "A cell stores charge. With one bit (SLC), one threshold tells its two levels \
    apart; with two (MLC), three thresholds four levels; with three (TLC), seven thresholds eight. \
    The more levels, the more exactly the charge must be set: programs take longer and fewer \
    erases are endured. The bits of a cell belong to different pages: the first is a fast page, \
    the last a slow one.";

/// Returns a report of the stories by title.
pub fn explain(stories: &[(&'static str, &[Step])]) -> Report {
    let (mut steps, mut drawn) = (Vec::new(), Vec::new());
    let mut sections = Vec::new();
    for (index, &(title, story)) in stories.iter().enumerate() {
        let section = Section::new(format!("story-{}", index + 1), title);
        sections.push(section.with(story.iter().enumerate().flat_map(blocks)));
        for (step, number) in story.iter().zip(1..) {
            steps.push(StepRow::of(title, number, step));
            drawn.extend(BlockRow::of(title, number, step));
        }
    }
    let steps = StepRow::table("steps", "The steps in numbers", steps);
    let drawn = BlockRow::table("blocks", "The blocks after each step", drawn);
    sections.push(Section::new("cells", "Bits in a cell").with([CELLS.to_owned()]));
    sections.push(Section::page("steps", "In numbers").with([steps, drawn]));
    Report { sections, ..base_report(EXPLAIN, earlier::explain) }
}

fn blocks((index, step): (usize, &Step)) -> [Block; 3] {
    let text = format!("{}. {}", index + 1, step.text);
    [Block::Text(text), Block::Cells(pages(step)), Block::Bars(sums(step))]
}

fn pages(step: &Step) -> Cells {
    let cell = |cell: &Cell| match cell {
        Cell::Used(page) => picture::Cell { kind: Some(0), text: page.to_string() },
        Cell::Stale => picture::Cell { kind: Some(1), text: String::new() },
        Cell::Free => picture::Cell { kind: Some(2), text: String::new() },
    };
    let row = |(index, block): (usize, &[Cell; PAGES])| CellRow {
        label: format!("block {index}"),
        cells: block.iter().map(cell).collect(),
    };
    Cells {
        title: "pages".into(),
        kinds: vec![
            CellKind::new("in use", "12", Color::Series(2)),
            CellKind::new("stale", "××", Color::Bad),
            CellKind::new("erased", "··", Color::Grey),
        ],
        rows: step.blocks.iter().enumerate().map(row).collect(),
        is_grid: true,
        on_screen: BLOCKS,
        left_out: 0,
    }
}

fn sums(step: &Step) -> Bars {
    let all = (BLOCKS * PAGES) as f64;
    let bar = |(label, pages, color): (&str, usize, Color)| Bar {
        label: label.to_owned(),
        value: pages as f64,
        note: percent(pages as f64 / all),
        color,
    };
    let bars = [
        ("used", step.used_pages, Color::Series(2)),
        ("stale", step.stale_pages, Color::Bad),
        ("free", step.free_pages, Color::Grey),
    ];
    Bars { full: all, ..Bars::new("pages", bars.map(bar).into()) }
}
