//! The order in which views are shown, and the facts that stand above them.

use crate::instants;
use blockstone_base::units::{format_ns, format_span};
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::WatchParameters;
use blockstone_report::format;
use blockstone_view::{Interval, Measure, Value, View, registry};

/// Views of a database in the order in which readers of AWR expect them; the other views follow.
const DATABASE: [&str; 24] = [
    "load",
    "top-events",
    "load-now",
    "wait-classes",
    "event-histograms",
    "durability",
    "database-io",
    "io-by-role",
    "io-by-file-type",
    "files",
    "statements",
    "sampled-statements",
    "active-sessions",
    "ash",
    "sampled-sessions",
    "sessions",
    "snapper",
    "session-waits",
    "host",
    "processes",
    "events",
    "disks",
    "ledger",
    "write-amplification",
];
/// Probe that reads a database as a whole.
const INSTANCE: &str = "instance";

/// Returns the views in the order in which they are shown.
pub fn order(interval: &Interval<'_>) -> Vec<&'static View> {
    if interval.objects(INSTANCE).is_empty() && interval.instances().is_empty() {
        return registry::ALL.to_vec();
    }
    let first = DATABASE.iter().filter_map(|name| registry::find(name));
    let rest = registry::ALL.iter().copied().filter(|view| !DATABASE.contains(&view.name));
    first.chain(rest).collect()
}

/// Returns what was watched, where and for how long, as names and values. Without a manifest, the
/// watch is live. `instants` are those of both ends of the interval, in nanoseconds since 1970.
pub fn facts(
    manifest: Option<&Manifest>,
    interval: &Interval<'_>,
    instants: [Option<i128>; 2],
) -> Vec<(&'static str, String)> {
    let first_ns = interval.history().ticks().next().unwrap_or(interval.from_ns);
    let at = |ns: u64| format_span(ns.saturating_sub(first_ns));
    let mut facts = Vec::new();
    if let Some(manifest) = manifest {
        let host = &manifest.host;
        let server = manifest.parameters::<WatchParameters>().server;
        facts.extend(server.map(|server| ("database", server)));
        let mut parts = vec![host.hostname.clone(), format::processors(host)];
        parts.retain(|part| !part.is_empty());
        facts.extend((!parts.is_empty()).then(|| ("host", parts.join(", "))));
        facts.push(("began", format::instant(&manifest.started_at)));
        facts.push(("from", at(interval.from_ns)));
        facts.push(("to", at(interval.to_ns)));
    }
    if let [Some(from_ns), Some(to_ns)] = instants {
        let exact = interval.seconds() < 10.0;
        let [from, to] = [from_ns, to_ns].map(|ns| instants::local(ns, exact));
        facts.push(("clock", format!("{from} to {to}")));
    }
    facts.push(("elapsed", format_ns(interval.ns())));
    if interval.instances().is_empty() {
        facts.extend(of_database(interval, ""));
    }
    for instance in interval.instances() {
        facts.extend(of_database(&interval.of_instance(instance), &format!("{instance} ")));
    }
    facts
}

/// Returns the time and the transactions of the database with this name.
fn of_database(interval: &Interval<'_>, name: &str) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let moved = |probe, column| interval.moved(probe, "", column);
    if let Ok(ns) = moved(INSTANCE, "db_time_ns") {
        let sessions = format::value(&Value::Number(ns / interval.ns()), Measure::Count);
        let time = format!("{name}{}, {sessions} active sessions", format_ns(ns));
        facts.push(("DB time", time));
    }
    if let Ok(commits) = moved(INSTANCE, "commits") {
        let commits = commits + moved("database", "rollbacks").unwrap_or(0.0);
        let a_second = format::value(&Value::Number(commits / interval.seconds()), Measure::Count);
        facts.push(("transactions", format!("{name}{a_second} a second")));
    }
    facts
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::Cell;
    use blockstone_base::database::INSTANCE as SERIES;
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_view::History;

    use super::*;

    #[test]
    fn every_view_has_its_place_once_and_a_database_comes_before_its_host() {
        let mut history = History::new(vec![ProbeInfo::of(&SERIES)]);
        let of = |history: &History| order(&history.interval(0, 1));
        let host: Vec<&str> = of(&history).iter().map(|view| view.name).collect();
        history.push(INSTANCE, 0, "", vec![Cell::Value(0); SERIES.columns.len()]);
        let database: Vec<&str> = of(&history).iter().map(|view| view.name).collect();
        assert_eq!((host[0], database[0], database[1]), ("host", "load", "top-events"));
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(database), sorted(host));
        assert!(DATABASE.iter().all(|name| registry::find(name).is_some()));
    }
}
