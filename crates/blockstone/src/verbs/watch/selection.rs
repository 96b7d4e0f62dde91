//! Selection of what is shown at every tick: some views, and some of their columns.

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_view::{Focus, History, Interval, Table, View, registry};

use super::args::WatchArgs;
use super::overview;
use crate::failure::Failure;
use crate::{instants, interval};

/// Views that are shown without --view, with the columns of each.
const SUMMARY: &[(&str, &[&str])] = &[
    ("host", overview::HOST),
    ("disks", overview::DISKS),
    ("active-sessions", &["wait_class", "event", "average_active_sessions"]),
];
/// Shortest interval for which times are shown without milliseconds.
const SECOND: Nanos = Nanos::millis(1_000);

/// A view and the columns of it that are shown.
struct Chosen {
    view: &'static View,
    /// Keys of the columns; all if empty.
    keys: &'static [&'static str],
}

/// The tables of each tick.
pub struct Selection {
    chosen: Vec<Chosen>,
    focus: Option<Focus>,
    exact: bool,
}

impl Selection {
    /// Selects the named views or, without names, those of the summary.
    pub fn new(args: &WatchArgs, history: &History) -> Result<Self> {
        let chosen = if args.view.is_empty() { summary(history) } else { named(args, history)? };
        let ticks: Vec<u64> = history.ticks().take(2).collect();
        let interval_ns = match (&args.replay, ticks.as_slice()) {
            (Some(_), [first, second]) => second - first,
            _ => args.options.interval_ns.get(),
        };
        let focus = interval::focus(&args.view, &args.only, history)?;
        Ok(Self { chosen, focus, exact: interval_ns < SECOND.get() * 9 / 10 })
    }

    pub fn tables(&self, interval: &Interval<'_>) -> Vec<Table> {
        let interval = self.focus.as_ref().map_or(*interval, |focus| interval.only(focus));
        self.chosen.iter().filter_map(|chosen| chosen.table(&interval)).collect()
    }

    /// Formats the end of an interval as ISO 8601.
    pub fn time(&self, instant_ns: Option<i128>) -> Option<String> {
        instant_ns.map(|ns| instants::local(ns, self.exact))
    }
}

impl Chosen {
    fn table(&self, interval: &Interval<'_>) -> Option<Table> {
        let table = self.view.table(interval)?;
        let instance = table.column("instance").map(|_| "instance");
        let keys: Vec<&str> = instance.into_iter().chain(self.keys.iter().copied()).collect();
        Some(if self.keys.is_empty() { table } else { table.only(&keys) })
    }
}

fn summary(history: &History) -> Vec<Chosen> {
    let chosen = SUMMARY.iter().filter_map(|(name, keys)| {
        let view = registry::find(name)?;
        is_seen(view, history).then_some(Chosen { view, keys })
    });
    chosen.collect()
}

fn named(args: &WatchArgs, history: &History) -> Result<Vec<Chosen>> {
    let views: Vec<&View> = args.view.iter().filter_map(|name| registry::find(name)).collect();
    if let Some(view) = views.iter().find(|view| !is_seen(view, history)) {
        let hint = match &args.replay {
            Some(_) => "the recording does not have it",
            None => "views of a database need --db, those of processor time --profile",
        };
        bail!(Failure::new(
            format!("print {}: nothing was read of {}", view.name, view.probe),
            hint
        ));
    }
    Ok(views.into_iter().map(|view| Chosen { view, keys: &[] }).collect())
}

fn is_seen(view: &View, history: &History) -> bool {
    view.is_in(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_views_and_columns_that_exist() {
        for (name, keys) in SUMMARY {
            let view = registry::find(name).unwrap();
            assert!(keys.iter().all(|key| view.column(key).is_some()), "{name}: {keys:?}");
        }
    }
}
