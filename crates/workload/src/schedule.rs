//! Turns parameters and a seed into the operations of a session: the same ones every time, on every
//! target.
//!
//! The parameters hold exactly, not on average. In any 100 consecutive operations `update_pct`
//! update, spread as evenly as whole operations can be (Bresenham 1965); in any 100 consecutive
//! selects `scan_pct` scan. One in every `n` goes to the hot range, to the hot schema or is
//! followed by a pause: which one is drawn again for each `n`, so that, for example, it cannot
//! happen that all updates are hot or none. The rows of a statement are all within the schema or
//! the hot range, and every row of it is as likely as its place allows, odd and even alike.

use blockstone_base::database::{STATEMENTS, TRANSACTIONS};
use blockstone_base::rng::{self, Rng};
use blockstone_servers::{Operation, Statement, TableStep};

use crate::order_entry::{OrderEntry, SessionSlot};
use crate::parameters::{Every, Hotspot, Parameters, Population};

/// Operations of each session covered by the checksum of a schedule.
const CHECKED: usize = 1000;
/// Separates the random numbers of sessions from those of their arrivals.
const STREAM: u64 = 2 << 32;

/// Endless sequence of a session's operations.
#[derive(Clone, Debug)]
pub struct Schedule {
    rng: Rng,
    schema: u32,
    rows: u64,
    work_unit: u32,
    update_work_unit: u32,
    updates: PerHundred,
    scans: PerHundred,
    hotspot: Option<(Hotspot, OneIn)>,
    hot_schema: Option<OneIn>,
    pauses: Option<Pauses>,
    round: Option<Round>,
    order_entry: Option<OrderEntry>,
    bulk_write: Option<BulkWrite>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Kind of operation, as an index into [`KINDS`](crate::KINDS).
    pub kind: usize,
    pub work: Work,
    /// Pause after it, in nanoseconds.
    pub think_ns: u64,
}

/// Work that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Operation(Operation),
    /// A transaction: its statements are in [`Schedule::statements`] until the next step.
    Transaction,
    Table(TableStep),
}

impl Step {
    fn of(operation: Operation, think_ns: u64) -> Self {
        Self { kind: operation.kind(), work: Work::Operation(operation), think_ns }
    }

    pub fn updates(&self) -> bool {
        matches!(self.work, Work::Operation(Operation::Update { .. }))
    }
}

/// Returns the checksum of the first operations of every session: equal whenever the same
/// parameters are sent, whatever the target.
pub fn checksum(parameters: &Parameters) -> u64 {
    let sessions = 0..parameters.population.sessions();
    sessions.fold(0, |sum, index| {
        let mut schedule = Schedule::new(parameters, index);
        (0..CHECKED).fold(rng::mix(sum ^ u64::from(index)), |sum, _| {
            let step = schedule.step();
            let sum = match step.work {
                Work::Operation(operation) => fold(sum, of_operation(&operation)),
                Work::Transaction => {
                    schedule.statements().iter().fold(sum, |sum, it| fold(sum, of_statement(it)))
                }
                Work::Table(step) => fold(sum, of_table_step(&step)),
            };
            rng::mix(sum ^ step.think_ns)
        })
    })
}

/// A number for the kind, then schema, first key and rows.
type StepNumbers = (u64, u32, u64, u32);

fn of_operation(operation: &Operation) -> StepNumbers {
    let kind = operation.kind() as u64;
    match *operation {
        Operation::Select { schema, first_key, rows }
        | Operation::Update { schema, first_key, rows } => (kind, schema, first_key, rows),
        Operation::Scan { schema } => (kind, schema, 0, 0),
    }
}

fn of_statement(statement: &Statement) -> StepNumbers {
    match *statement {
        Statement::Select { schema, first_key, rows } => (4, schema, first_key, rows),
        Statement::Update { schema, key } => (5, schema, key, 1),
        Statement::Insert { schema, number } => (6, schema, number, 1),
        Statement::Orders { schema, first, count } => (7, schema, first, count),
        Statement::Delete { schema, number } => (8, schema, number, 1),
    }
}

fn of_table_step(step: &TableStep) -> StepNumbers {
    let number = 9 + step.kind() as u64;
    match *step {
        TableStep::Create { schema, table }
        | TableStep::Flush { schema, table }
        | TableStep::Drop { schema, table } => (number, schema, table.into(), 0),
    }
}

fn fold(sum: u64, (kind, schema, first_key, rows): StepNumbers) -> u64 {
    let place = (u64::from(schema) << 34) ^ (u64::from(rows) << 2) ^ kind;
    rng::mix(rng::mix(sum ^ place) ^ first_key)
}

impl Schedule {
    /// Returns the operations of session `index`. `parameters` must have been checked.
    pub fn new(parameters: &Parameters, index: u32) -> Self {
        let mut rng = Rng::new(parameters.seed, STREAM | u64::from(index));
        let (schema, update_pct) = parameters.session(index);
        let (updates, scans) =
            (PerHundred::new(update_pct, &mut rng), PerHundred::new(parameters.scan_pct, &mut rng));
        let one_in = |every: Every| OneIn { n: every.0, at: 0, chosen: 0 };
        Self {
            rng,
            schema,
            rows: parameters.rows_per_schema,
            work_unit: parameters.work_unit,
            update_work_unit: parameters.update_work_unit,
            updates,
            scans,
            hotspot: parameters.hotspot.map(|hotspot| (hotspot, one_in(hotspot.every))),
            hot_schema: parameters.hot_schema_every.map(one_in),
            pauses: parameters.think.map(|think| Pauses {
                min_ns: think.min.get(),
                span_ns: think.max.get() - think.min.get() + 1,
                one_in: one_in(think.every),
            }),
            round: match parameters.population {
                Population::Scanning { sessions, schemas } => {
                    Some(Round { step: sessions % schemas, schemas })
                }
                Population::Mixed { .. } | Population::Apart { .. } => None,
            },
            order_entry: match parameters.population {
                Population::Mixed { threads, .. } if parameters.order_entry => {
                    Some(OrderEntry::new(SessionSlot {
                        schema,
                        rows: parameters.rows_per_schema,
                        work_unit: parameters.work_unit,
                        session: index % threads,
                        sessions: threads,
                    }))
                }
                _ => None,
            },
            bulk_write: match parameters.population {
                Population::Mixed { threads, .. } if parameters.bulk_write => {
                    Some(BulkWrite { schema, table: index % threads, next: 0 })
                }
                _ => None,
            },
        }
    }

    #[inline]
    pub fn step(&mut self) -> Step {
        if let Some(round) = &self.round {
            let schema = self.schema;
            self.schema = (schema + round.step) % round.schemas;
            return Step::of(Operation::Scan { schema }, 0);
        }
        let rng = &mut self.rng;
        if let Some(order_entry) = &mut self.order_entry {
            let kind = STATEMENTS.len() + order_entry.next(rng);
            let think_ns = self.pauses.as_mut().map_or(0, |pauses| pauses.next_ns(rng));
            return Step { kind, work: Work::Transaction, think_ns };
        }
        if let Some(bulk_write) = &mut self.bulk_write {
            let step = bulk_write.step();
            let kind = STATEMENTS.len() + TRANSACTIONS.len() + step.kind();
            return Step { kind, work: Work::Table(step), think_ns: 0 };
        }
        let update = self.updates.hit();
        let hot_schema = self.hot_schema.as_mut().is_some_and(|one_in| one_in.hit(rng));
        let schema = if hot_schema { 0 } else { self.schema };
        let operation = if !update && self.scans.hit() {
            Operation::Scan { schema }
        } else {
            let rows = if update { self.update_work_unit } else { self.work_unit };
            let hotspot = match &mut self.hotspot {
                Some((hotspot, one_in)) => one_in.hit(rng).then_some(*hotspot),
                None => None,
            };
            let (first, range) = hotspot.map_or((0, self.rows), |hot| (hot.first, hot.rows));
            let first_key = first + rng.below(range - u64::from(rows) + 1);
            if update {
                Operation::Update { schema, first_key, rows }
            } else {
                Operation::Select { schema, first_key, rows }
            }
        };
        let think_ns = self.pauses.as_mut().map_or(0, |pauses| pauses.next_ns(rng));
        Step::of(operation, think_ns)
    }

    /// Returns the statements of the transaction of the last step.
    pub fn statements(&self) -> &[Statement] {
        self.order_entry.as_ref().map_or(&[], OrderEntry::statements)
    }
}

impl Iterator for Schedule {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        Some(self.step())
    }
}

/// Position in a session's round through its parts of a shared table.
#[derive(Clone, Copy, Debug)]
struct Round {
    step: u32,
    schemas: u32,
}

/// A session's table: created, flushed and dropped, over and over.
#[derive(Clone, Copy, Debug)]
struct BulkWrite {
    schema: u32,
    table: u32,
    /// Next of the three steps.
    next: u32,
}

impl BulkWrite {
    fn step(&mut self) -> TableStep {
        let Self { schema, table, next } = *self;
        self.next = (next + 1) % 3;
        match next {
            0 => TableStep::Create { schema, table },
            1 => TableStep::Flush { schema, table },
            _ => TableStep::Drop { schema, table },
        }
    }
}

/// Selects `pct` of 100, evenly spread. It starts at a random position, so that sessions are not
/// synchronised.
#[derive(Clone, Debug)]
struct PerHundred {
    pct: u32,
    sum: u32,
}

impl PerHundred {
    fn new(pct: u32, rng: &mut Rng) -> Self {
        Self { pct, sum: rng.below(100) as u32 }
    }

    #[inline]
    fn hit(&mut self) -> bool {
        self.sum += self.pct;
        let hit = self.sum >= 100;
        self.sum -= if hit { 100 } else { 0 };
        hit
    }
}

/// Selects one of every `n`, at a position drawn again each time.
#[derive(Clone, Debug)]
struct OneIn {
    n: u32,
    at: u32,
    chosen: u32,
}

impl OneIn {
    #[inline]
    fn hit(&mut self, rng: &mut Rng) -> bool {
        if self.at == 0 {
            self.chosen = rng.below(self.n.into()) as u32;
        }
        let hit = self.at == self.chosen;
        self.at = if self.at + 1 == self.n { 0 } else { self.at + 1 };
        hit
    }
}

#[derive(Clone, Debug)]
struct Pauses {
    min_ns: u64,
    span_ns: u64,
    one_in: OneIn,
}

impl Pauses {
    #[inline]
    fn next_ns(&mut self, rng: &mut Rng) -> u64 {
        if self.one_in.hit(rng) { self.min_ns + rng.below(self.span_ns) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use blockstone_base::units::Nanos;
    use proptest::prelude::*;

    use super::*;
    use crate::parameters::{Population, Think};

    fn steps(parameters: &Parameters, count: usize) -> Vec<Step> {
        parameters.check().unwrap();
        Schedule::new(parameters, 0).take(count).collect()
    }

    fn keys(step: &Step) -> (u32, std::ops::Range<u64>) {
        match step.work {
            Work::Operation(
                Operation::Select { schema, first_key, rows }
                | Operation::Update { schema, first_key, rows },
            ) => (schema, first_key..first_key + u64::from(rows)),
            Work::Operation(Operation::Scan { schema }) => (schema, 0..0),
            Work::Transaction | Work::Table(_) => panic!("{step:?}"),
        }
    }

    proptest! {
        #[test]
        fn every_hundred_operations_hold_the_asked_updates_evenly_spread(
            update_pct in 0_u32..=100, seed: u64, start in 0_usize..100,
        ) {
            let parameters = Parameters { update_pct, seed, ..Parameters::default() };
            let steps = steps(&parameters, 300);
            let updates = |range: &[Step]| range.iter().filter(|step| step.updates()).count();
            prop_assert_eq!(updates(&steps[start..start + 100]), update_pct as usize);
            for length in 1..100 {
                let ideal = f64::from(update_pct) * length as f64 / 100.0;
                let seen = updates(&steps[start..start + length]) as f64;
                prop_assert!((seen - ideal).abs() < 1.0, "{seen} instead of {ideal} of {length}");
            }
        }

        #[test]
        fn every_operation_visits_exactly_its_work_unit_within_the_schema(
            rows in 64_u64..500, work_unit in 1_u32..=64, update_work_unit in 1_u32..=64, seed: u64,
        ) {
            let parameters = Parameters {
                rows_per_schema: rows, work_unit, update_work_unit, update_pct: 50, seed,
                ..Parameters::default()
            };
            for step in steps(&parameters, 200) {
                let (_, keys) = keys(&step);
                let unit = if step.updates() { update_work_unit } else { work_unit };
                prop_assert_eq!(keys.end - keys.start, u64::from(unit));
                prop_assert!(keys.end <= rows);
            }
        }
    }

    #[test]
    fn all_rows_are_updated_odd_and_even_first_and_last() {
        let parameters =
            Parameters { rows_per_schema: 200, update_pct: 100, ..Parameters::default() };
        let seen: HashSet<u64> = steps(&parameters, 5000).iter().flat_map(|s| keys(s).1).collect();
        assert_eq!(seen.len(), 200);
        let single = Parameters { update_work_unit: 1, ..parameters };
        let mut counts = [0_u32; 200];
        for step in steps(&single, 200_000) {
            counts[keys(&step).1.start as usize] += 1;
        }
        // 1,000 expected each; 5 standard deviations are 158.
        assert!(counts.iter().all(|&count| (842..=1158).contains(&count)), "{counts:?}");
    }

    #[test]
    fn one_of_n_operations_stays_in_the_hot_range_and_fills_it() {
        let hotspot = Hotspot { first: 300, rows: 100, every: Every(3) };
        let parameters = Parameters {
            rows_per_schema: 1_000_000,
            hotspot: Some(hotspot),
            update_pct: 50,
            ..Parameters::default()
        };
        let steps = steps(&parameters, 30_000);
        let is_hot = |step: &&Step| keys(step).1.start >= 300 && keys(step).1.end <= 400;
        for three in steps.chunks(3) {
            assert_eq!(three.iter().filter(is_hot).count(), 1);
        }
        let hot: Vec<&Step> = steps.iter().filter(is_hot).collect();
        let seen: HashSet<u64> = hot.iter().flat_map(|step| keys(step).1).collect();
        assert_eq!(seen.len(), 100, "first and last row of the range are visited too");
        let updates = hot.iter().filter(|step| step.updates()).count() as f64;
        let share = updates / hot.len() as f64;
        assert!((share - 0.5).abs() < 0.03, "{share} of the hot operations update");
    }

    #[test]
    fn one_of_n_operations_goes_to_the_first_schema() {
        let parameters = Parameters {
            population: Population::Mixed { schemas: 8, threads: 2 },
            hot_schema_every: Some(Every(4)),
            ..Parameters::default()
        };
        let steps: Vec<Step> = Schedule::new(&parameters, 11).take(4000).collect();
        for four in steps.chunks(4) {
            let at = |schema| four.iter().filter(|step| keys(step).0 == schema).count();
            assert_eq!((at(0), at(5)), (1, 3), "session 11 of 2 a schema is on schema 5");
        }
    }

    #[test]
    fn each_session_of_a_bulk_write_makes_flushes_and_drops_a_table_of_its_own() {
        let population = Population::Mixed { schemas: 2, threads: 3 };
        let parameters = Parameters { population, bulk_write: true, ..Parameters::default() };
        parameters.check().unwrap();
        assert_eq!(parameters.copies(), 3);
        let sent: Vec<_> = Schedule::new(&parameters, 4).take(4).map(|step| step.work).collect();
        let (schema, table) = (1, 1);
        let [create, flush, drop] = [
            TableStep::Create { schema, table },
            TableStep::Flush { schema, table },
            TableStep::Drop { schema, table },
        ];
        assert_eq!(sent, [create, flush, drop, create].map(Work::Table));
        let kinds: Vec<_> = Schedule::new(&parameters, 4).take(3).map(|step| step.kind).collect();
        assert_eq!(kinds, parameters.kinds().collect::<Vec<_>>());
    }

    #[test]
    fn scans_are_a_share_of_the_selects() {
        let parameters = Parameters { update_pct: 50, scan_pct: 20, ..Parameters::default() };
        let steps = steps(&parameters, 1000);
        let is_scan = |s: &&Step| matches!(s.work, Work::Operation(Operation::Scan { .. }));
        let scans = steps.iter().filter(is_scan).count();
        assert_eq!(scans, 100, "20 % of 500 selects");
    }

    #[test]
    fn pauses_lie_in_their_range_after_one_of_n() {
        let (min, max) = (Nanos(100), Nanos(103));
        let think = Think { min, max, every: Every(5) };
        let parameters = Parameters { think: Some(think), ..Parameters::default() };
        let steps = steps(&parameters, 1000);
        let pauses: Vec<u64> = steps.iter().map(|s| s.think_ns).filter(|&ns| ns > 0).collect();
        assert_eq!(pauses.len(), 200);
        assert_eq!(pauses.into_iter().collect::<HashSet<_>>(), HashSet::from([100, 101, 102, 103]));
    }

    #[test]
    fn readers_only_select_and_writers_only_update_each_on_its_own_schema() {
        let population = Population::Apart { readers: 2, writers: 3 };
        let parameters = Parameters { population, ..Parameters::default() };
        for index in 0..5 {
            for step in Schedule::new(&parameters, index).take(100) {
                assert_eq!(step.updates(), index >= 2);
                assert_eq!(keys(&step).0, index);
            }
        }
    }

    #[test]
    fn sessions_that_share_a_scan_read_all_of_it_and_each_its_own_part() {
        for (sessions, schemas) in [(1, 16), (4, 16), (16, 16), (3, 16), (16, 4)] {
            let population = Population::Scanning { sessions, schemas };
            let parameters = Parameters { population, ..Parameters::default() };
            let mut seen: Vec<Vec<u32>> = Vec::new();
            for index in 0..sessions {
                let steps = Schedule::new(&parameters, index).take(schemas as usize);
                let parts = steps.map(|step| match step.work {
                    Work::Operation(Operation::Scan { schema }) => schema,
                    other => panic!("{other:?}"),
                });
                seen.push(parts.collect());
            }
            let all: HashSet<u32> = seen.iter().flatten().copied().collect();
            assert_eq!(all.len(), schemas as usize, "{sessions} sessions, {schemas} parts");
            let first: HashSet<u32> = seen.iter().map(|parts| parts[0]).collect();
            assert_eq!(first.len(), sessions.min(schemas) as usize, "they begin apart");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_checksum_and_any_change_another() {
        let base = Parameters {
            population: Population::Mixed { schemas: 2, threads: 2 },
            ..Parameters::default()
        };
        let sum = checksum(&base);
        // Hard-coded: a change of the schedule makes recordings of two versions incomparable.
        assert_eq!(sum, checksum(&base.clone()));
        let others = [
            Parameters { seed: 1, ..base.clone() },
            Parameters { rows_per_schema: base.rows_per_schema + 1, ..base.clone() },
            Parameters { update_pct: 11, ..base.clone() },
            Parameters { work_unit: 63, ..base.clone() },
            Parameters { hot_schema_every: Some(Every(3)), ..base.clone() },
            Parameters { order_entry: true, ..base.clone() },
            Parameters { population: Population::Mixed { schemas: 4, threads: 1 }, ..base },
        ];
        let sums: HashSet<u64> = others.iter().map(checksum).chain([sum]).collect();
        assert_eq!(sums.len(), 8);
    }
}
