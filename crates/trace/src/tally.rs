//! Executions → statements, sessions and the overall profile, in bounded memory.

use std::collections::{BTreeMap, HashMap};

use crate::format::Limits;
use crate::model::{Component, Session, Spent, Statement, Trace};

/// Name under which items are counted together when there are too many to distinguish.
const OTHERS: &str = "others";

/// One execution of a statement, as logged.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// Response time.
    pub ns: f64,
    /// Number of executions that it represents.
    pub weight: f64,
    /// Seconds since 1970 or another fixed instant.
    pub ended_s: Option<f64>,
    pub rows: Option<f64>,
    pub logical_reads: Option<f64>,
    pub physical_reads: Option<f64>,
    pub costs: Vec<Cost>,
}

/// A part of an execution's response time.
#[derive(Clone, Debug)]
pub struct Cost {
    pub component: Component,
    pub ns: f64,
    /// Number of calls that took this time together, if the log counts them.
    pub calls: Option<f64>,
    pub bytes: Option<f64>,
    pub blocks: Option<f64>,
}

impl Cost {
    /// Creates a part of which only the time is known.
    pub fn of(component: Component, ns: f64) -> Self {
        Self { component, ns, calls: None, bytes: None, blocks: None }
    }
}

/// Id and text of a statement in the result.
pub struct Named {
    pub id: String,
    pub text: String,
}

#[derive(Default)]
pub struct Tally {
    limits: Limits,
    components: BTreeMap<Component, Spent>,
    statements: HashMap<String, Statement>,
    sessions: HashMap<String, Timed>,
    span: Span,
    merges_statements: bool,
    merges_sessions: bool,
}

#[derive(Default)]
struct Timed {
    components: BTreeMap<Component, Spent>,
    span: Span,
}

/// Time from the first to the last instant.
#[derive(Clone, Copy, Default)]
struct Span(Option<(f64, f64)>);

impl Tally {
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Counts time before an execution, such as that of parsing, under the id of its statement.
    pub fn add_part(
        &mut self,
        session: &str,
        id: &str,
        named: impl FnOnce() -> Named,
        part: &Execution,
    ) -> bool {
        self.count(session, id, named, part, 0.0)
    }

    /// Counts an execution under the id of its statement, which `named` names the first time.
    /// Returns false if the statement was counted among the others, because there are too many.
    pub fn add(
        &mut self,
        session: &str,
        id: &str,
        named: impl FnOnce() -> Named,
        execution: &Execution,
    ) -> bool {
        self.count(session, id, named, execution, execution.weight)
    }

    fn count(
        &mut self,
        session: &str,
        id: &str,
        named: impl FnOnce() -> Named,
        execution: &Execution,
        executions: f64,
    ) -> bool {
        let known = self.statements.contains_key(id);
        let told_apart = known || self.statements.len() < self.limits.statements;
        self.merges_statements |= !told_apart;
        let key = if told_apart { id } else { OTHERS };
        let statement = self.statements.entry(key.to_owned()).or_insert_with(|| {
            let named = if told_apart {
                named()
            } else {
                Named { id: OTHERS.to_owned(), text: "all other statements".to_owned() }
            };
            Statement { id: named.id, text: named.text, ..Statement::default() }
        });
        let weight = execution.weight;
        statement.executions += executions;
        statement.ns += execution.ns * weight;
        if executions > 0.0 {
            statement.times.add(execution.ns, executions);
        }
        sum(&mut statement.rows, execution.rows, weight);
        sum(&mut statement.logical_reads, execution.logical_reads, weight);
        sum(&mut statement.physical_reads, execution.physical_reads, weight);
        spend(&mut statement.components, execution);
        spend(&mut self.components, execution);
        self.span.add(execution);
        let is_new = !self.sessions.contains_key(session);
        let full = is_new && self.sessions.len() >= self.limits.sessions;
        self.merges_sessions |= full;
        let name = if full { OTHERS } else { session };
        let timed = self.sessions.entry(name.to_owned()).or_default();
        spend(&mut timed.components, execution);
        timed.span.add(execution);
        told_apart
    }

    /// Returns the result: statements and sessions by their time, the longest first.
    pub fn finish(self) -> Trace {
        let mut statements: Vec<Statement> = self.statements.into_values().collect();
        statements.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.id.cmp(&b.id)));
        let mut sessions: Vec<Session> = self
            .sessions
            .into_iter()
            .map(|(id, timed)| Session {
                id,
                span_ns: timed.span.ns(),
                components: timed.components,
            })
            .collect();
        let time = |session: &Session| session.components.values().map(|it| it.ns).sum::<f64>();
        sessions.sort_by(|a, b| time(b).total_cmp(&time(a)).then_with(|| a.id.cmp(&b.id)));
        let mut notes = Vec::new();
        for (merges, limit, what) in [
            (self.merges_statements, self.limits.statements, "different statements"),
            (self.merges_sessions, self.limits.sessions, "sessions"),
        ] {
            if merges {
                notes.push(format!(
                    "more than {limit} {what}: the rest is counted together as `{OTHERS}`"
                ));
            }
        }
        Trace {
            span_ns: self.span.ns(),
            components: self.components,
            sessions,
            statements,
            merges_sessions: self.merges_sessions,
            merges_statements: self.merges_statements,
            notes,
            ..Trace::default()
        }
    }
}

fn sum(total: &mut Option<f64>, value: Option<f64>, weight: f64) {
    if let Some(value) = value {
        *total = Some(total.unwrap_or(0.0) + value * weight);
    }
}

/// Adds the costs of an execution, and the rest of its time.
fn spend(components: &mut BTreeMap<Component, Spent>, execution: &Execution) {
    let mut rest = execution.ns;
    for cost in &execution.costs {
        rest -= cost.ns;
        let spent = components.entry(cost.component.clone()).or_default();
        match cost.calls {
            Some(calls) => spent.add_sum(calls, cost.ns, execution.weight),
            None if cost.ns > 0.0 => spent.add(cost.ns, execution.weight),
            None => {}
        }
        sum(&mut spent.bytes, cost.bytes, execution.weight);
        sum(&mut spent.blocks, cost.blocks, execution.weight);
    }
    let unaccounted = components.entry(Component::Unaccounted).or_default();
    unaccounted.add_time(rest * execution.weight);
}

impl Span {
    fn add(&mut self, execution: &Execution) {
        let Some(to) = execution.ended_s else { return };
        let from = to - execution.ns / 1e9;
        self.0 = Some(self.0.map_or((from, to), |(a, b)| (a.min(from), b.max(to))));
    }

    fn ns(self) -> Option<f64> {
        self.0.map(|(from, to)| (to - from) * 1e9)
    }
}
