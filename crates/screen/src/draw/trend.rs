//! Painting figures over time.

use blockstone_report::cell;
use blockstone_view::{History, Measure, Table, Value};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Sparkline, Widget};

use crate::state::State;

/// The chosen row over time, or in a place all that is at work there.
pub fn trend(state: &State, history: &History, table: &Table, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    if state.focus().is_some() {
        let values = state.activity(history, width);
        return bars("average active sessions", Measure::Count, &values, area, buffer);
    }
    let Some(row) = table.rows.get(state.row.min(table.rows.len().saturating_sub(1))) else {
        return;
    };
    let Some(column) = telling(state, table, row) else { return };
    let name = table.view.name_of(row);
    let values = state.trend(history, &name, column, width);
    let heading = table.view.columns[column];
    bars(&format!("{name} {}", heading.heading), heading.measure, &values, area, buffer);
}

/// The column that orders the rows, or the first that holds numbers, if it can be one that says
/// something.
fn telling(state: &State, table: &Table, row: &[Value]) -> Option<usize> {
    let is_number = |index: &usize| table.view.columns[*index].measure != Measure::Text;
    let sorted = state.sort[state.view].filter(is_number);
    let mut numbers = (0..row.len()).filter(is_number);
    let busy = |index: &usize| matches!(row[*index], Value::Number(number) if number != 0.0);
    sorted.or_else(|| numbers.find(busy))
}

fn bars(name: &str, measure: Measure, values: &[f64], area: Rect, buffer: &mut Buffer) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let top = cell(&Value::Number(most), measure);
    let title = format!("{name} over time, up to {top}");
    let title_area = Rect { height: 1, ..area };
    Line::from(title.trim_start().to_owned()).dim().render(title_area, buffer);
    let scaled: Vec<u64> =
        values.iter().map(|v| if most > 0.0 { (v / most * 1000.0) as u64 } else { 0 }).collect();
    let bars = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    Sparkline::default().data(&scaled).max(1000).cyan().render(bars, buffer);
}
