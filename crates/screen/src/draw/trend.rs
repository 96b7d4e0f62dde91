//! Draws figures over time.

use blockstone_base::Row;
use blockstone_report::cell;
use blockstone_view::{History, Measure, Table, Value};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline, Widget};

use crate::state::State;

struct Trend {
    name: String,
    measure: Measure,
    values: Vec<f64>,
}

/// Draws the selected row over time below the tables; in a place, its active sessions.
pub fn trend(state: &State, history: &History, tables: &[Table], area: Rect, buffer: &mut Buffer) {
    let Some(trend) = Trend::of(state, history, tables, usize::from(area.width)) else { return };
    let top = trend.text(trend.most());
    let title = format!("{} over time, up to {top}", trend.name);
    Line::from(title).dim().render(Rect { height: 1, ..area }, buffer);
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    trend.bars(below, buffer);
}

/// Draws the same trend in place of the tables, with a scale.
pub fn chart(state: &State, history: &History, tables: &[Table], area: Rect, buffer: &mut Buffer) {
    const SCALE: u16 = 10;
    let room = usize::from(area.width.saturating_sub(SCALE));
    let Some(trend) = Trend::of(state, history, tables, room) else {
        return Paragraph::new("this row has no numbers").dim().render(area, buffer);
    };
    let count = trend.values.len().max(1) as f64;
    let mean = trend.values.iter().sum::<f64>() / count;
    let last = trend.values.last().copied().unwrap_or_default();
    let [most, mean, last] = [trend.most(), mean, last].map(|value| trend.text(value));
    let title = format!("{}: now {last}, mean {mean}, max {most}", trend.name);
    Line::from(title).bold().render(Rect { height: 1, ..area }, buffer);
    let plot = Rect { x: area.x + SCALE, y: area.y + 1, width: area.width - SCALE, ..area };
    let plot = Rect { height: area.height.saturating_sub(3), ..plot };
    // A label of the scale is the value at the upper edge of its line.
    for line in (0..plot.height).step_by(4) {
        let part = f64::from(plot.height - line) / f64::from(plot.height);
        let text = trend.text(trend.most() * part);
        let style = Style::new().add_modifier(Modifier::DIM);
        buffer.set_stringn(area.x, plot.y + line, text, usize::from(SCALE) - 1, style);
    }
    trend.bars(plot, buffer);
    let axis = Rect { y: plot.bottom(), height: 2, ..area };
    let slices = state.past(history, room);
    super::picture::time_axis(history, &slices, axis.intersection(area), buffer);
}

impl Trend {
    fn of(state: &State, history: &History, tables: &[Table], width: usize) -> Option<Self> {
        if state.focus().is_some() {
            let values = state.activity(history, width);
            let name = "average active sessions".to_owned();
            return Some(Self { name, measure: Measure::Count, values });
        }
        let table = tables.first()?;
        let pinned = state.pinned.as_ref().filter(|_| state.picture.is_some());
        let row = match pinned {
            Some(pinned) => table.rows.iter().find(|row| table.name_of(row) == pinned.name),
            None => table.rows.get(state.row.min(table.rows.len().checked_sub(1)?)),
        };
        let column = plotted_column(state, table, row)?;
        let of_row = || row.map(|row| table.name_of(row)).unwrap_or_default();
        let name = pinned.map_or_else(of_row, |pinned| pinned.name.clone());
        let values = state.trend(history, &name, column, width);
        let heading = &table.columns[column];
        let name = format!("{name} {}", heading.heading).trim_start().to_owned();
        Some(Self { name, measure: heading.measure, values })
    }

    fn most(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }

    fn text(&self, value: f64) -> String {
        cell(&Value::Number(value), self.measure)
    }

    fn bars(&self, area: Rect, buffer: &mut Buffer) {
        let most = self.most();
        let scaled = |value: &f64| if most > 0.0 { (value / most * 1e4) as u64 } else { 0 };
        let scaled: Vec<u64> = self.values.iter().map(scaled).collect();
        Sparkline::default().data(&scaled).max(10_000).cyan().render(area, buffer);
    }
}

/// Returns the column that orders the rows, or the first with a number other than zero, or the
/// first with numbers.
fn plotted_column(state: &State, table: &Table, row: Option<&Row>) -> Option<usize> {
    let is_number = |index: &usize| table.columns[*index].measure != Measure::Text;
    let sorted = state.sort.get(&state.view).copied().filter(is_number);
    let numbers = || (0..table.columns.len()).filter(is_number);
    let busy = |index: &usize| {
        row.and_then(|row| row[*index].number()).is_some_and(|number| number != 0.0)
    };
    sorted.or_else(|| numbers().find(busy)).or_else(|| numbers().next())
}
