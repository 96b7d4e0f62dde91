//! Names and orders that text, tables and document share.

use std::collections::BTreeMap;

use blockstone_trace::{Component, Kind, Spent, Trace};

pub type Components = BTreeMap<Component, Spent>;

pub fn component(component: &Component) -> String {
    match component {
        Component::Cpu => "CPU".to_owned(),
        Component::Wait(event) if event.is_empty() => "waits".to_owned(),
        Component::Wait(event) => event.clone(),
        Component::StorageRead => "storage read".to_owned(),
        Component::StorageWrite => "storage write".to_owned(),
        Component::Lock => "lock".to_owned(),
        Component::Unaccounted => "unaccounted".to_owned(),
    }
}

pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::OracleSql => "SQL trace of Oracle",
        Kind::Tkprof => "report of tkprof",
        Kind::SlowLog => "slow query log",
        Kind::AutoExplain => "plans of auto_explain",
        Kind::PostgresDurations => "durations in a log of PostgreSQL",
    }
}

pub fn kind_key(kind: Kind) -> &'static str {
    match kind {
        Kind::OracleSql => "oracle-sql-trace",
        Kind::Tkprof => "tkprof",
        Kind::SlowLog => "slow-log",
        Kind::AutoExplain => "auto-explain",
        Kind::PostgresDurations => "postgres-durations",
    }
}

/// Response time that the profile divides: the sum of the components, or of the statements if the
/// trace has no components.
pub fn response_ns(trace: &Trace) -> f64 {
    if trace.components.is_empty() {
        trace.statements.iter().map(|statement| statement.ns).sum()
    } else {
        trace.components.values().map(|spent| spent.ns).sum()
    }
}

/// Sorts components, the longest first and unaccounted time last.
pub fn by_time(components: &Components) -> Vec<(&Component, &Spent)> {
    let mut all: Vec<_> = components.iter().collect();
    let last = |component: &Component| *component == Component::Unaccounted;
    all.sort_by(|a, b| last(a.0).cmp(&last(b.0)).then_with(|| b.1.ns.total_cmp(&a.1.ns)));
    all
}

/// Returns the component that took longest, including unaccounted time.
pub fn greatest(components: &Components) -> Option<(&Component, &Spent)> {
    components.iter().max_by(|a, b| a.1.ns.total_cmp(&b.1.ns))
}

/// Returns the upper end of a histogram bucket.
pub fn below_ns(index: usize) -> f64 {
    2_f64.powi(index as i32) * 1e3
}

/// Number of calls, if they are counted.
pub fn calls(spent: &Spent) -> Option<f64> {
    (spent.calls > 0.0).then_some(spent.calls)
}

/// Mean time of a call, if calls are counted.
pub fn mean(spent: &Spent) -> Option<f64> {
    calls(spent).map(|calls| spent.ns / calls)
}

/// Time of the longest call, if single calls are known.
pub fn max_ns(spent: &Spent) -> Option<f64> {
    spent.max_ns.filter(|_| !spent.is_averaged)
}
