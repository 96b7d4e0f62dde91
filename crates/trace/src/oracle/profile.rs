//! State of the reader → the [`Trace`] it returns.

use std::collections::{BTreeMap, HashMap};

use crate::model::{
    By, Component, Kind, RoundTrips, RowSource, Session, Spent, Statement, StatementPart, Trace,
};

use super::counts::Counts;
use super::events::Events;
use super::plans::{Line, Plan};
use super::record::CallKind;
use super::session::Trips;
use super::state::State;
use super::statements::{Held, Key};
use super::tally::{Keyed, Tallies, US};

pub fn trace(state: &State) -> Trace {
    let tick_ns = state.ticks.us(state.unit).map(|us| us * US);
    let tick = tick_ns.unwrap_or(0.0);
    let mut trace = Trace {
        kind: Some(Kind::OracleSql),
        product: state.product.clone(),
        commits: Some(state.counts.commits as f64),
        rollbacks: Some(state.counts.rollbacks as f64),
        tick_ns,
        lines: state.counts.lines,
        skipped_lines: state.counts.skipped_lines,
        by_file: by(&state.files, &state.memory.events),
        by_blocks: by(&state.blocks, &state.memory.events),
        by_object: by(&state.objects, &state.memory.events),
        ..Trace::default()
    };
    sessions(state, tick, &mut trace);
    let statements = state.statements.list.iter();
    trace.statements = statements
        .filter(|held| held.parts.iter().any(|part| part.calls > 0) || !held.waits.list.is_empty())
        .map(|held| statement(held, &state.memory.events, tick))
        .collect();
    trace.statements.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    row_sources(state, &mut trace);
    trace.merges_sessions = state.merged_sessions > 0;
    trace.merges_statements = state.statements.merged > 0;
    notes(state, &mut trace);
    trace
}

fn sessions(state: &State, tick: f64, trace: &mut Trace) {
    let mut totals = Tallies::default();
    let mut trips = Trips::default();
    let (mut cpu_us, mut calls) = (0_i64, 0);
    for (number, read) in state.sessions.iter().enumerate() {
        if read.calls == 0 && read.waits.list.is_empty() {
            continue;
        }
        let span_ns = read.span_us().map(|us| us as f64 * US);
        let mut components = waits(&read.waits, &state.memory.events);
        if read.calls > 0 {
            components.insert(Component::Cpu, cpu(read.cpu_us(), read.calls, tick));
        }
        unaccounted(&mut components, span_ns);
        let id = match number {
            0 if state.merged_sessions > 0 => "(others)".to_owned(),
            _ => read.id.clone(),
        };
        trace.sessions.push(Session { id, span_ns, components });
        trace.outside_cpu_ns += read.outside_cpu_us() as f64 * US;
        trace.span_ns = match (trace.span_ns, span_ns) {
            (Some(sum), Some(span)) => Some(sum + span),
            (sum, span) => sum.or(span),
        };
        cpu_us = cpu_us.saturating_add(read.cpu_us());
        calls += read.calls;
        totals.merge(&read.waits);
        trips.merge(&read.trips);
    }
    trace.components = waits(&totals, &state.memory.events);
    if calls > 0 {
        trace.components.insert(Component::Cpu, cpu(cpu_us, calls, tick));
    } else {
        trace.absent.push((Component::Cpu, "the trace has no call that could be read"));
    }
    unaccounted(&mut trace.components, trace.span_ns);
    trace.round_trips = round_trips(&trips);
}

fn cpu(us: i64, calls: u64, tick_ns: f64) -> Spent {
    Spent {
        calls: calls as f64,
        ns: us as f64 * US,
        uncertain_ns: tick_ns * calls as f64,
        ..Spent::default()
    }
}

fn waits(tallies: &Tallies, events: &Events) -> BTreeMap<Component, Spent> {
    let named = |(event, tally): &(u16, super::tally::Tally)| {
        (Component::Wait(events.name(*event)), tally.spent())
    };
    tallies.list.iter().map(named).collect()
}

fn unaccounted(components: &mut BTreeMap<Component, Spent>, total_ns: Option<f64>) {
    let Some(total) = total_ns else { return };
    let known: f64 = components.values().map(|spent| spent.ns).sum();
    let uncertain_ns = components.values().map(|spent| spent.uncertain_ns).sum();
    let spent = Spent { ns: total - known, uncertain_ns, ..Spent::default() };
    components.insert(Component::Unaccounted, spent);
}

fn round_trips(trips: &Trips) -> Option<RoundTrips> {
    (trips.calls > 0).then_some(RoundTrips {
        calls: trips.calls as f64,
        wait_ns: trips.wait_us as f64 * US,
        gap_ns: trips.gap_us as f64 * US,
    })
}

fn statement(held: &Held, events: &Events, tick_ns: f64) -> Statement {
    let used = held.used();
    let calls = held.parts.iter().map(|part| part.calls).sum();
    let rows: i64 = held.parts.iter().fold(0, |sum, part| sum.saturating_add(part.rows));
    let ns = held.us() as f64 * US;
    let mut components = waits(&held.waits, events);
    components.insert(Component::Cpu, cpu(used.cpu, calls, tick_ns));
    unaccounted(&mut components, Some(ns));
    let parts = CallKind::ALL.iter().zip(&held.parts).filter(|(_, part)| part.calls > 0);
    Statement {
        id: id(&held.key),
        text: String::from_utf8_lossy(&held.text).into_owned(),
        depth: held.depth.map(|depth| depth as u32),
        executions: held.parts[CallKind::Execute as usize].calls as f64,
        ns,
        rows: Some(rows as f64),
        logical_reads: Some(used.consistent_reads.saturating_add(used.current_reads) as f64),
        physical_reads: Some(used.physical_reads as f64),
        parts: parts
            .map(|((_, name), part)| StatementPart {
                name,
                calls: part.calls as f64,
                cpu_ns: part.used.cpu as f64 * US,
                elapsed_ns: part.used.elapsed as f64 * US,
                physical_reads: part.used.physical_reads as f64,
                consistent_reads: part.used.consistent_reads as f64,
                current_reads: part.used.current_reads as f64,
                rows: part.rows as f64,
                misses: part.misses as f64,
            })
            .collect(),
        round_trips: round_trips(&held.trips),
        components,
        ..Statement::default()
    }
}

fn id(key: &Key) -> String {
    match key {
        Key::Others => "(others)".to_owned(),
        Key::SqlId(id) => String::from_utf8_lossy(id).into_owned(),
        Key::Hash(hash) => format!("{hash:016x}"),
        Key::Cursor { cursor, .. } => format!("cursor {cursor}"),
    }
}

fn by(keyed: &Keyed, events: &Events) -> Vec<By> {
    let known = keyed.map.iter().map(|((event, key), tally)| (*event, Some(*key), tally));
    let others = keyed.others.list.iter().map(|(event, tally)| (*event, None, tally));
    let mut list: Vec<By> = known
        .chain(others)
        .map(|(event, key, tally)| By { event: events.name(event), key, spent: tally.spent() })
        .collect();
    list.sort_by(|a, b| {
        let by_time = b.spent.ns.total_cmp(&a.spent.ns);
        by_time.then_with(|| (&a.event, a.key).cmp(&(&b.event, b.key)))
    });
    list
}

fn row_sources(state: &State, trace: &mut Trace) {
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    let mut not_inclusive = 0_u64;
    for plan in &state.plans.list {
        let number = numbers.entry(plan.statement).and_modify(|it| *it += 1).or_insert(0);
        let Some(held) = state.statements.list.get(plan.statement as usize) else { continue };
        let tree = Tree::new(plan);
        not_inclusive += u64::from(!tree.inclusive);
        let id = id(&held.key);
        trace.row_sources.extend((0..plan.lines.len()).map(|at| tree.row(at, &id, *number)));
    }
    if not_inclusive > 0 {
        let note = "row sources take less time than their children in plans where own time is \
                    missing (11.1 writes such times)";
        trace.notes.push(note.to_owned());
    }
}

/// A plan, with the sums of each line's children.
struct Tree<'a> {
    plan: &'a Plan,
    depths: Vec<u32>,
    children: Vec<Children>,
    /// Whether times include those of children.
    inclusive: bool,
}

#[derive(Clone, Copy, Default)]
struct Children {
    time: u64,
    logical_reads: u64,
    physical_reads: u64,
}

impl<'a> Tree<'a> {
    fn new(plan: &'a Plan) -> Self {
        /// Tolerance for rounding, in microseconds.
        const SLACK: u64 = 10;
        let lines = &plan.lines;
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut depths = vec![0; lines.len()];
        let mut children = vec![Children::default(); lines.len()];
        let mut inclusive = true;
        for (at, line) in lines.iter().enumerate() {
            if let Some(&parent) = places.get(&line.parent) {
                depths[at] = depths[parent] + 1;
                let sum: &mut Children = &mut children[parent];
                let (figures, above) = (&line.total, lines[parent].total.time);
                sum.time = sum.time.saturating_add(figures.time.unwrap_or(0));
                sum.logical_reads =
                    sum.logical_reads.saturating_add(figures.consistent_reads.unwrap_or(0));
                sum.physical_reads =
                    sum.physical_reads.saturating_add(figures.physical_reads.unwrap_or(0));
                inclusive &= figures.time.unwrap_or(0) <= above.unwrap_or(0).saturating_add(SLACK);
            }
            places.insert(line.id, at);
        }
        Self { plan, depths, children, inclusive }
    }

    fn row(&self, at: usize, statement: &str, number: u32) -> RowSource {
        let Line { id, parent, object, operation, total, .. } = &self.plan.lines[at];
        let children = &self.children[at];
        let float = |value: u64| value as f64;
        let own = |value: Option<u64>, children: u64| {
            value.and_then(|value| value.checked_sub(children)).map(float)
        };
        let own_time = own(total.time, children.time).filter(|_| self.inclusive);
        RowSource {
            statement: statement.to_owned(),
            plan: number,
            executions: float(self.plan.executions),
            id: *id,
            parent: *parent,
            depth: self.depths[at],
            operation: String::from_utf8_lossy(operation).into_owned(),
            object: (*object > 0).then_some(*object),
            rows: float(total.rows),
            ns: total.time.map(|us| us as f64 * US),
            own_ns: own_time.map(|us| us * US),
            logical_reads: total.consistent_reads.map(float),
            own_logical_reads: own(total.consistent_reads, children.logical_reads),
            physical_reads: total.physical_reads.map(float),
            own_physical_reads: own(total.physical_reads, children.physical_reads),
        }
    }
}

fn notes(state: &State, trace: &mut Trace) {
    let Counts { cut_lines, negative_waits, errors, limited, continued, .. } = state.counts;
    trace.cut_files = cut_lines + limited;
    let events = trace.components.keys().filter(|it| matches!(it, Component::Wait(_))).count();
    if events == 0 {
        trace.absent.push((Component::Wait(String::new()), "traced without waits"));
    }
    if trace.span_ns.is_none() {
        trace.absent.push((Component::Unaccounted, "no line has a time"));
    }
    let counted = [
        (cut_lines, "files end in a line that has no end; it is not counted"),
        (limited, "files were limited in size by max_dump_file_size: what followed is not in them"),
        (continued, "lines name another file, which may have more of this trace: give it too"),
        (negative_waits, "waits have negative times and count as 0"),
        (errors, "errors of statements are in the trace"),
        (state.statements.merged, "statements that took little are merged into (others)"),
        (state.merged_sessions, "times a session was beyond the bound and merged into (others)"),
        (state.plans.dropped, "plans were dropped for memory"),
    ];
    for (count, what) in counted {
        if count > 0 {
            trace.notes.push(format!("{count} {what}"));
        }
    }
    if state.unit > 1 {
        trace.notes.push("times are in hundredths of a second, as before Oracle 9i".to_owned());
    }
}
