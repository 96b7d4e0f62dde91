//! Explanation of garbage collection, step by step on a device small enough to draw.

use blockstone_base::table::Rows as _;
use blockstone_flash::toy::{BLOCKS, Cell, PAGES, Step};
use blockstone_report::render::terminal::Style;
use blockstone_report::{Block, Detail, Report, Section};

use super::super::earlier;
use super::rows::{BlockRow, StepRow};
use super::{EXPLAIN, base_report};

/// Explanation of why program times differ by page and by bits per cell.
const CELLS: &str = "A cell stores charge. With one bit (SLC), one threshold tells its two levels \
    apart; with two (MLC), three thresholds four levels; with three (TLC), seven thresholds eight. \
    The more levels, the more exactly the charge must be set: programs take longer and fewer \
    erases are endured. The bits of a cell belong to different pages: the first is a fast page, \
    the last a slow one.";

/// Returns a report of the stories by title. The terminal draws them in its colours.
pub fn explain(stories: &[(&'static str, &[Step])], style: &Style) -> Report {
    let (mut steps, mut drawn) = (Vec::new(), Vec::new());
    let mut sections = Vec::new();
    let plain = Style { color: false, ..*style };
    for (index, &(title, story)) in stories.iter().enumerate() {
        for (detail, name, style) in
            [(Detail::Terminal, "story", style), (Detail::Page, "pictures", &plain)]
        {
            let section = Section::new(format!("{name}-{}", index + 1), title).detail(detail);
            sections.push(section.with(story.iter().enumerate().flat_map(|it| blocks(it, style))));
        }
        for (step, number) in story.iter().zip(1..) {
            steps.push(StepRow::of(title, number, step));
            drawn.extend(BlockRow::of(title, number, step));
        }
    }
    let steps = StepRow::table("steps", "The steps in numbers", steps);
    let drawn = BlockRow::table("blocks", "The blocks after each step", drawn);
    sections.push(Section::new("cells", "Bits in a cell").with([CELLS.to_owned()]));
    sections.push(Section::page("steps", "In numbers").with([steps, drawn]));
    let legend = "12 a page in use, ×× stale, ·· erased".to_owned();
    Report { sections, notes: vec![legend], ..base_report(EXPLAIN, earlier::explain) }
}

fn blocks((index, step): (usize, &Step), style: &Style) -> [Block; 3] {
    let text = format!("{}. {}", index + 1, step.text);
    let picture = Block::Preformatted(picture(step, style));
    [Block::Text(text), picture, Block::Preformatted(vec![String::new()])]
}

fn picture(step: &Step, style: &Style) -> Vec<String> {
    let cell = |cell: &Cell| match cell {
        Cell::Free => style.dim("··"),
        Cell::Stale => style.bad("××"),
        Cell::Used(page) => style.good(&format!("{page:2}")),
    };
    let line = |(index, block): (usize, &[Cell; PAGES])| {
        let cells: Vec<String> = block.iter().map(cell).collect();
        format!("    block {index} │ {} │", cells.join(" "))
    };
    let bar = |name: &str, mark: &str, pages: usize| {
        let share = 100 * pages / (BLOCKS * PAGES);
        format!("    {name:<5} {} {pages} pages, {share} %", mark.repeat(pages))
    };
    let bars = [
        style.good(&bar("used", "█", step.used_pages)),
        style.bad(&bar("stale", "▒", step.stale_pages)),
        style.dim(&bar("free", "░", step.free_pages)),
    ];
    step.blocks.iter().enumerate().map(line).chain(bars).collect()
}
