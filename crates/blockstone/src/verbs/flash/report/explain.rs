//! Why flash collects garbage, step by step on a device small enough to draw.

use blockstone_base::table::{Heading, Table, Value, count, text};
use blockstone_flash::toy::{Cell, PAGES, Step};
use blockstone_report::render::terminal::Style;
use blockstone_report::{Block, Detail, Report, Section};

use super::{base_report, documents};

const STEPS: &[Heading] = &[
    text("story", "story", "With or without garbage collection."),
    count("step", "step", "From 1."),
    text("text", "what happens", "In sentences."),
    count("host_pages", "host pages", "Pages written by the host so far."),
    count("programs", "programs", "Pages programmed so far."),
    count("erases", "erases", "Blocks erased so far."),
];

/// The stories by title. The terminal draws them in its colours.
pub fn explain(stories: &[(&'static str, &[Step])], style: &Style) -> Report {
    let mut steps = Table::new("steps", "The steps in numbers", STEPS);
    let mut sections = Vec::new();
    let plain = Style { color: false, ..*style };
    for (index, &(title, story)) in stories.iter().enumerate() {
        for (detail, name, style) in
            [(Detail::Terminal, "story", style), (Detail::Page, "pictures", &plain)]
        {
            let section = Section::new(format!("{name}-{}", index + 1), title).detail(detail);
            sections.push(section.with(story.iter().enumerate().flat_map(|it| blocks(it, style))));
        }
        for (number, step) in story.iter().enumerate() {
            let mut row: Vec<Value> = vec![title.into(), (number as f64 + 1.0).into()];
            row.push(step.text.as_str().into());
            row.extend([step.host_pages, step.programs, step.erases].map(|n| f64::from(n).into()));
            steps.push(row);
        }
    }
    sections.push(Section::page("steps", "In numbers").with([steps]));
    let legend = "12 a page in use, ×× stale, ·· erased".to_owned();
    Report {
        sections,
        notes: vec![legend],
        ..base_report("flash-explain", documents::explain(stories))
    }
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
    step.blocks.iter().enumerate().map(line).collect()
}
