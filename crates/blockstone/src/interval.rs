//! A part of a recording's time: which one is meant, and how it is printed.

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_report::terminal;
use blockstone_view::{Condition, Focus, History, Interval, registry};

use crate::printer::{Printer, answer};

/// From one instant to another, both counted from the first tick: without them, from the first tick
/// to the last. An instant is the tick next to it. None when there are no two ticks.
pub fn window(
    history: &History,
    from: Option<Nanos>,
    to: Option<Nanos>,
) -> Result<Option<Interval<'_>>> {
    let (Some(first), Some(last)) = (history.ticks().next(), history.ticks().next_back()) else {
        return Ok(None);
    };
    let at = |time: Option<Nanos>, default: u64| match time {
        None => default,
        Some(time) => {
            let meant = first.saturating_add(time.get());
            history.ticks().min_by_key(|tick| tick.abs_diff(meant)).unwrap_or(default)
        }
    };
    let (from_ns, to_ns) = (at(from, first), at(to, last));
    if from_ns >= to_ns && first < last {
        bail!(
            "show from {} to {}: there are no two ticks between them\n\
             hint: the recording lasts {}",
            from.unwrap_or(Nanos(0)),
            to.unwrap_or(Nanos(last - first)),
            Nanos(last - first)
        );
    }
    Ok((from_ns < to_ns).then(|| history.interval(from_ns, to_ns)))
}

/// Prints the tables of an interval, of these views or of all; or one document. With conditions,
/// of the samples of sessions that meet them.
pub fn print(
    interval: Option<Interval<'_>>,
    views: &[String],
    only: &[Condition],
    printer: Printer,
) -> Result<()> {
    let Some(mut interval) = interval else {
        bail!("show an interval: there are no two ticks\nhint: it ended too early");
    };
    let focus: Focus = only.iter().cloned().collect();
    if let Some(condition) = only.first() {
        let mut tables = registry::ALL.iter().filter(|view| !view.is_sampled());
        if let Some(other) = tables.find(|view| views.iter().any(|name| name == view.name)) {
            bail!(
                "show {} where {condition}: that table is not made of samples of sessions\n\
                 hint: leave it out of --view, or leave out --where",
                other.name
            );
        }
        interval = interval.only(&focus);
    }
    let text = if printer.json {
        format!("{}\n", serde_json::to_string_pretty(&blockstone_view::document(&interval))?)
    } else {
        terminal::views_terminal(&interval, views, &printer.style())
    };
    Ok(answer(&text)?)
}
