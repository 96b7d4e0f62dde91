//! Draws pictures of the selected row: its latency distribution, and how that changed over time.
//! Counts are shown as shades as well as colours, for terminals without colours.

use blockstone_base::Nanos;
use blockstone_base::units::format_ns;
use blockstone_report::cell;
use blockstone_view::{
    History, Interval, Latencies, Measure, OCTAVES, Timed, Value, octave_bounds, reasons,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::widgets::{Paragraph, Widget, Wrap};

use crate::state::{Picture, State};

/// Width of the labels at the left, in columns.
const LABEL: usize = 10;
const KERNEL: &str = "kernel_io";
const IN_QUEUE: &str = "in queue";
const SHADES: [(&str, Color); 4] =
    [("░", Color::Blue), ("▒", Color::Cyan), ("▓", Color::Yellow), ("█", Color::Red)];

pub fn picture(
    state: &State,
    picture: Picture,
    history: &History,
    area: Rect,
    buffer: &mut Buffer,
) {
    let Some(timed) = state.pinned.as_ref().and_then(|pinned| pinned.timed.as_ref()) else {
        let text = "No latencies are measured for this row. They are for rows of io-by-role, \
                    io-by-file-type, files and system-calls, for `all` of disks, for waits for \
                    storage such as DataFileRead and WALSync, and for events of a recorded run.";
        return Paragraph::new(text).wrap(Wrap { trim: true }).dim().render(area, buffer);
    };
    match (picture, state.interval(history)) {
        (Picture::Histogram, Some(interval)) => histogram(timed, &interval, area, buffer),
        _ => heat_map(state, timed, history, area, buffer),
    }
}

/// A figure of an operation, with its name.
type Figure = (&'static str, fn(&Latencies) -> Value);

/// Draws the figures of each operation, and below them a histogram of its latencies.
fn histogram(timed: &Timed, interval: &Interval<'_>, area: Rect, buffer: &mut Buffer) {
    let all = timed.latencies(interval);
    let busy: Vec<&Latencies> = all.iter().filter(|one| one.count() > 0.0).collect();
    if busy.is_empty() {
        return nothing(interval, area, buffer);
    }
    let figures: [Figure; 6] = [
        ("count", |one| Value::Number(one.count())),
        ("mean", |one| one.mean_ns().into()),
        (IN_QUEUE, |one| one.mean_queue_ns().into()),
        ("p50", |one| one.quantile_ns(0.5).into()),
        ("p99", |one| one.quantile_ns(0.99).into()),
        ("p99.9", |one| one.quantile_ns(0.999).into()),
    ];
    let wide = (usize::from(area.width) - LABEL) / busy.len();
    let left = |column: usize| area.x + (LABEL + column * wide) as u16;
    let dim = Style::new().add_modifier(Modifier::DIM);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    for (column, one) in busy.iter().enumerate() {
        buffer.set_stringn(left(column), area.y, &one.operation, wide, bold);
    }
    let mut y = area.y + 1;
    let queues = busy.iter().any(|one| one.queue_ns.is_some());
    for (name, figure) in figures.into_iter().filter(|(name, _)| queues || *name != IN_QUEUE) {
        if y >= area.bottom() {
            return;
        }
        buffer.set_stringn(area.x, y, name, LABEL, dim);
        let measure = if name == "count" { Measure::Count } else { Measure::Nanoseconds };
        for (column, one) in busy.iter().enumerate() {
            let text = cell(&figure(one), measure);
            buffer.set_stringn(left(column), y, text, wide.saturating_sub(1), Style::new());
        }
        y += 1;
    }
    let octaves: Vec<[f64; OCTAVES]> = busy.iter().map(|one| one.octaves()).collect();
    let room = usize::from(area.bottom().saturating_sub(y));
    let lines = merged(&octaves, room);
    let greatest = |octaves: &[f64; OCTAVES]| {
        lines.iter().map(|line| count(octaves, *line)).fold(0.0, f64::max)
    };
    let most: Vec<f64> = octaves.iter().map(greatest).collect();
    for &(from, to) in lines.iter().take(room) {
        buffer.set_stringn(area.x, y, below(to), LABEL, dim);
        for (column, octaves) in octaves.iter().enumerate() {
            let area = Rect { x: left(column), y, width: wide as u16 - 1, height: 1 };
            bar(count(octaves, (from, to)), most[column], area, buffer);
        }
        y += 1;
    }
}

/// Draws a count, and a bar for its ratio to `most`.
fn bar(count: f64, most: f64, area: Rect, buffer: &mut Buffer) {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if count == 0.0 {
        return;
    }
    let Rect { x, y, width, .. } = area;
    let width = usize::from(width);
    let number = cell(&Value::Number(count), Measure::Count);
    buffer.set_stringn(x, y, format!("{number:>8} "), width, Style::new());
    let room = width.saturating_sub(9);
    let eighths = ((count / most * room as f64 * 8.0).round() as usize).clamp(1, room * 8);
    let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    buffer.set_stringn(x + 9, y, bar, room, Style::new().fg(Color::Cyan));
}

/// Draws a heat map of latencies over time, the longest at the top.
fn heat_map(state: &State, timed: &Timed, history: &History, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width) - LABEL;
    let slices = state.slices(history, room);
    let seen: Vec<Vec<Latencies>> = slices.iter().map(|slice| timed.latencies(slice)).collect();
    let mut operations: Vec<&str> = Vec::new();
    for one in seen.iter().flatten().filter(|one| one.count() > 0.0) {
        if !operations.contains(&one.operation.as_str()) {
            operations.push(&one.operation);
        }
    }
    let Some(operation) = operations.get(state.operation % operations.len().max(1)) else {
        let whole = history.whole();
        return whole.into_iter().for_each(|whole| nothing(&whole, area, buffer));
    };
    let of = |all: &Vec<Latencies>| {
        let one = all.iter().find(|one| one.operation == *operation);
        one.map_or([0.0; OCTAVES], Latencies::octaves)
    };
    let octaves: Vec<[f64; OCTAVES]> = seen.iter().map(of).collect();
    // The legend, the axis and its labels take a line each.
    let rows: Vec<(usize, usize)> =
        joined(&octaves, usize::from(area.height.saturating_sub(3))).collect();
    let counts = octaves.iter().flat_map(|one| rows.iter().map(move |row| count(one, *row)));
    let levels = levels(counts.fold(0.0, f64::max));
    legend(operation, operations.len(), levels, area, buffer);
    let dim = Style::new().add_modifier(Modifier::DIM);
    for (line, row) in rows.iter().rev().enumerate() {
        let y = area.y + 1 + line as u16;
        buffer.set_stringn(area.x, y, below(row.1), LABEL, dim);
        for (column, octaves) in octaves.iter().enumerate() {
            let count = count(octaves, *row);
            let level = levels.iter().filter(|least| count >= **least as f64).count();
            if let Some((shade, color)) = level.checked_sub(1).map(|level| SHADES[level]) {
                let x = area.x + (LABEL + column) as u16;
                buffer.set_stringn(x, y, shade, 1, Style::new().fg(color));
            }
        }
    }
    let axis = Rect { y: area.y + 1 + rows.len() as u16, height: 2, ..area };
    time_axis(history, &slices, axis.intersection(area), buffer);
}

fn count(octaves: &[f64; OCTAVES], (from, to): (usize, usize)) -> f64 {
    octaves[from..=to].iter().sum()
}

/// Returns the lowest count of each shade, in equal logarithmic steps up to the greatest count.
fn levels(most: f64) -> [u64; 4] {
    let most = most.max(1.0);
    [0.0, 0.25, 0.5, 0.75].map(|part| most.powf(part).ceil() as u64)
}

fn legend(operation: &str, others: usize, levels: [u64; 4], area: Rect, buffer: &mut Buffer) {
    let mut x = area.x;
    let mut say = |text: &str, style: Style| {
        let room = usize::from(area.right().saturating_sub(x));
        x = buffer.set_stringn(x, area.y, text, room, style).0;
    };
    say(operation, Style::new().add_modifier(Modifier::BOLD));
    say("  in each cell from", Style::new().add_modifier(Modifier::DIM));
    for (index, (shade, color)) in SHADES.into_iter().enumerate() {
        // With few operations some shades coincide.
        if index + 1 < SHADES.len() && levels[index] == levels[index + 1] {
            continue;
        }
        let least = cell(&Value::Number(levels[index] as f64), Measure::Count);
        say(&format!("  {shade}"), Style::new().fg(color));
        say(&format!(" {least}"), Style::new());
    }
    if others > 1 {
        say("  o: the next operation", Style::new().add_modifier(Modifier::DIM));
    }
}

/// Draws a line below the columns, with the times of the first and the last column.
pub fn time_axis(history: &History, slices: &[Interval<'_>], area: Rect, buffer: &mut Buffer) {
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else { return };
    if area.height < 2 {
        return;
    }
    let dim = Style::new().add_modifier(Modifier::DIM);
    let start = area.x + LABEL as u16;
    buffer.set_stringn(start, area.y, "─".repeat(slices.len()), slices.len(), dim);
    let first_tick = history.ticks().next().unwrap_or(0);
    let at = |ns: u64| Nanos(ns.saturating_sub(first_tick)).to_string();
    let (left, right) = (at(first.from_ns), at(last.to_ns));
    let room = usize::from(area.width) - LABEL;
    let wide = slices.len().max(left.chars().count() + right.chars().count() + 2).min(room);
    buffer.set_stringn(start, area.y + 1, &left, room, dim);
    let x = start + wide.saturating_sub(right.chars().count()) as u16;
    buffer.set_stringn(x, area.y + 1, &right, room, dim);
}

/// Returns the octaves from the first occupied to the last. If there are fewer lines than octaves,
/// neighbours with the lowest counts are merged.
fn merged(octaves: &[[f64; OCTAVES]], room: usize) -> Vec<(usize, usize)> {
    let mut lines: Vec<(usize, usize)> = joined(octaves, OCTAVES).collect();
    let all = |line| octaves.iter().map(|one| count(one, line)).sum::<f64>();
    while lines.len() > room.max(1) {
        let both = |index: &usize| all(lines[*index]) + all(lines[*index + 1]);
        let least = (0..lines.len() - 1).min_by(|a, b| both(a).total_cmp(&both(b))).unwrap_or(0);
        lines[least].1 = lines.remove(least + 1).1;
    }
    lines
}

/// Returns the octaves from the first occupied to the last, joined evenly into at most `room`
/// lines.
fn joined(octaves: &[[f64; OCTAVES]], room: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
    let occupied = |octave: &usize| octaves.iter().any(|one| one[*octave] > 0.0);
    let first = (0..OCTAVES).find(occupied).unwrap_or(0);
    let last = (0..OCTAVES).rev().find(occupied).unwrap_or(0);
    let step = (last - first + 1).div_ceil(room.max(1));
    (first..=last).step_by(step).map(move |from| (from, (from + step - 1).min(last)))
}

/// Returns the label of an octave: its upper end, or its start if it has none.
fn below(octave: usize) -> String {
    match octave_bounds(octave) {
        (_, Some(end)) => format!("<{}", format_ns(end as f64)),
        (start, None) => format!("≥{}", format_ns(start as f64)),
    }
}

fn nothing(interval: &Interval<'_>, area: Rect, buffer: &mut Buffer) {
    let mut lines = vec!["no latencies in this interval; press + to widen it".to_owned()];
    lines.extend(reasons(interval, KERNEL));
    if !interval.has(KERNEL) {
        lines.push("counting I/O in the kernel is off".to_owned());
    }
    Paragraph::new(lines.join("\n")).wrap(Wrap { trim: true }).dim().render(area, buffer);
}
