//! Tables of counters as CSV with the columns `time,instance,statistic,value` and optionally `run`
//! and `unit`. Counters are cumulative; a run has values from before and after it.

use std::collections::BTreeMap;

use blockstone_base::csv::{self, Dialect};
use blockstone_import::seconds_iso;

use crate::assign::{Assigned, Way, assign};
use crate::error::CountersError;
use crate::ledger::Ledger;
use crate::listing::{self, Listed};
use crate::snapshot::{Counter, CountersOf, Snapshot, Time};
use crate::statistics::{DISK, ELIGIBLE, READ, WIRE, is_bytes, normal, of_statistics};
use crate::unit::Unit;

/// Above this value, `f64` no longer represents every whole number of bytes.
const BYTES_MAX: f64 = 9e15;
/// Rounding may make a part this much larger than the whole.
const ROUNDING: f64 = 1.001;
/// An instance that carried less than this share of the busiest one did not take part in the run.
const TOOK_PART: f64 = 0.01;
const SHOWN: usize = 60;

/// Contents of a table of counters.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// One ledger per run, in the order of the file.
    pub ledgers: Vec<Ledger>,
    /// Runs whose instances were permuted.
    pub assigned: Vec<Assigned>,
    /// Whether the file has a column of units.
    pub has_units: bool,
    /// Warnings about values that look like mistakes.
    pub notes: Vec<String>,
}

/// Indices of the columns.
struct Columns {
    run: Option<usize>,
    time: usize,
    instance: usize,
    statistic: usize,
    value: usize,
    unit: Option<usize>,
    count: usize,
}

const NAMES: [(&str, &[&str]); 6] = [
    ("run", &["run", "run_name"]),
    ("time", &["time", "sample_time", "snap_time", "timestamp"]),
    ("instance", &["instance", "inst_id", "instance_number", "instance_id"]),
    ("statistic", &["statistic", "statistic_name", "stat_name", "name", "statname"]),
    ("value", &["value"]),
    ("unit", &["unit", "units"]),
];

impl Columns {
    fn of(head: &[String], line: usize) -> Result<Self, CountersError> {
        let head: Vec<String> = head.iter().map(|it| it.to_lowercase().replace(' ', "_")).collect();
        let is_known = |name: &&String| {
            NAMES.iter().any(|(_, names)| names.contains(&name.trim_end_matches('#')))
        };
        if let Some(name) = head.iter().find(|name| !is_known(name)) {
            return Err(CountersError::UnknownColumn { line, name: short(name) });
        }
        let at = |wanted: &'static str| {
            let names = NAMES.iter().find(|(name, _)| *name == wanted).map(|(_, names)| *names);
            let names = names.unwrap_or_default();
            let exactly = head.iter().position(|name| names.contains(&name.as_str()));
            // A column of numbers, such as `statistic#`, is used only if there is no column of
            // names.
            let numbers = |name: &String| names.contains(&name.trim_end_matches('#'));
            exactly.or_else(|| head.iter().position(numbers))
        };
        let need = |name: &'static str| at(name).ok_or(CountersError::NoColumn { name });
        Ok(Self {
            run: at("run"),
            time: need("time")?,
            instance: need("instance")?,
            statistic: need("statistic")?,
            value: need("value")?,
            unit: at("unit"),
            count: head.len(),
        })
    }
}

/// A parsed row.
struct Row {
    run: String,
    time: Time,
    instance: String,
    statistic: String,
    counter: Counter,
}

struct Reader {
    columns: Columns,
    unit: Unit,
    /// The unit of the first counter of bytes, and its line.
    first_unit: Option<(Unit, usize)>,
    /// Snapshots of each run, in the order of the file.
    runs: Vec<(String, Snapshots)>,
    /// Indices into `runs` by the name of the run.
    places: BTreeMap<String, usize>,
}

type Snapshots = BTreeMap<Time, Snapshot>;

/// Reads a table. Counters of bytes are in `unit` unless it has a column of units.
pub fn read(text: &str, unit: Unit) -> Result<Counters, CountersError> {
    let text = text.trim_start_matches('\u{feff}');
    if let Some(rows) = listing::rows(text) {
        return of_listing(rows?, unit);
    }
    let records = csv::records(text, Dialect::Loose);
    let records = records.map_err(|(line, why)| CountersError::NotCsv { line, why })?;
    let mut records = records.map(|(line, record)| {
        let fields: Vec<String> = record.iter().map(str::to_owned).collect();
        (line, fields)
    });
    let (line, head) = records.next().ok_or(CountersError::Empty)?;
    let columns = Columns::of(&head, line)?;
    let mut reader =
        Reader { columns, unit, first_unit: None, runs: Vec::new(), places: BTreeMap::new() };
    for (line, fields) in records {
        let row = reader.row(&fields, line)?;
        reader.add(row)?;
    }
    reader.finish()
}

/// Reads rows of listings of a database.
fn of_listing(rows: Vec<Listed>, unit: Unit) -> Result<Counters, CountersError> {
    let columns = Columns {
        run: Some(0),
        time: 1,
        instance: 2,
        statistic: 3,
        value: 4,
        unit: None,
        count: 5,
    };
    let mut reader =
        Reader { columns, unit, first_unit: None, runs: Vec::new(), places: BTreeMap::new() };
    for Listed { line, run, time, instance, statistic, value } in rows {
        let row = reader.row(&[run, time, instance, statistic, value], line)?;
        reader.add(row)?;
    }
    reader.finish()
}

impl Reader {
    fn row(&mut self, fields: &[String], line: usize) -> Result<Row, CountersError> {
        let columns = &self.columns;
        if fields.len() != columns.count {
            let (found, columns) = (fields.len(), columns.count);
            return Err(CountersError::Fields { line, found, columns });
        }
        let run = columns.run.map_or("", |at| &fields[at]).to_owned();
        let (value_at, time) = (columns.value, time(&fields[columns.time], line)?);
        let instance = fields[columns.instance].clone();
        let statistic = normal(&fields[columns.statistic]);
        if instance.is_empty() {
            return Err(CountersError::NoInstance { line });
        }
        if statistic.is_empty() {
            return Err(CountersError::NoStatistic { line });
        }
        let digits = statistic.trim_start_matches('#').trim();
        if !digits.is_empty() && digits.chars().all(|it| it.is_ascii_digit() || it == '.') {
            return Err(CountersError::Numbered { line, text: short(&statistic) });
        }
        let named = columns.unit.map(|at| fields[at].as_str()).filter(|it| !it.is_empty());
        let unit = if is_bytes(&statistic) { self.unit_of(named, line)? } else { None };
        let text = &fields[value_at];
        let given = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
        let value = given.map(|it| (it, it * unit.map_or(1.0, Unit::bytes)));
        let value = value.filter(|(_, bytes)| *bytes <= BYTES_MAX).ok_or_else(|| {
            let unit = unit.map_or("events", Unit::name);
            CountersError::Value { line, text: short(text), unit }
        });
        let (given, value) = value?;
        Ok(Row { run, time, instance, statistic, counter: Counter { value, given, line } })
    }

    /// Returns the unit of a counter of bytes; all of them must have the same unit.
    fn unit_of(&mut self, named: Option<&str>, line: usize) -> Result<Option<Unit>, CountersError> {
        let unit = match named {
            Some(text) => {
                Unit::of(text).ok_or_else(|| CountersError::NotUnit { line, text: short(text) })?
            }
            None => self.unit,
        };
        let (before, first) = *self.first_unit.get_or_insert((unit, line));
        if before != unit {
            return Err(CountersError::MixedUnits { line, found: unit, first, before });
        }
        Ok(Some(unit))
    }

    fn add(&mut self, row: Row) -> Result<(), CountersError> {
        let at = *self.places.entry(row.run).or_insert_with_key(|name| {
            self.runs.push((name.clone(), Snapshots::new()));
            self.runs.len() - 1
        });
        let snapshot = self.runs[at].1.entry(row.time).or_default();
        let counters = snapshot.instances.entry(row.instance.clone()).or_default();
        let line = row.counter.line;
        if let Some(before) = counters.get(&row.statistic) {
            let (statistic, instance) = (short(&row.statistic), short(&row.instance));
            let first = before.line;
            return Err(CountersError::Twice { line, first, statistic, instance });
        }
        counters.insert(row.statistic, row.counter);
        Ok(())
    }

    fn finish(self) -> Result<Counters, CountersError> {
        if self.runs.is_empty() {
            return Err(CountersError::Empty);
        }
        let has_units = self.columns.unit.is_some();
        let mut read = Counters { has_units, ..Counters::default() };
        let has_runs = self.columns.run.is_some();
        for (name, snapshots) in self.runs {
            let run = if name.is_empty() { "counters".to_owned() } else { name };
            let mut snapshots: Vec<(Time, Snapshot)> = snapshots.into_iter().collect();
            complete(&run, &snapshots)?;
            read.assigned.extend(continuous(&run, &mut snapshots, has_runs)?);
            let ledger = ledger(&run, &snapshots)?;
            read.notes.extend(in_two_units(&ledger));
            read.ledgers.push(ledger);
        }
        Ok(read)
    }
}

fn short(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

fn time(text: &str, line: usize) -> Result<Time, CountersError> {
    let number = text.parse::<f64>().ok().filter(|it| it.is_finite() && it.abs() < 1e11);
    let (seconds, is_timed) = match text.to_ascii_lowercase().as_str() {
        "before" => (f64::NEG_INFINITY, false),
        "after" => (f64::INFINITY, false),
        _ => match number.or_else(|| seconds_iso(text)) {
            // Adding 0.0 turns -0.0 into 0.0.
            Some(seconds) => (seconds + 0.0, true),
            None => return Err(CountersError::Time { line, text: short(text) }),
        },
    };
    Ok(Time { seconds, is_timed, text: short(text) })
}

/// Checks that each snapshot has the counters of the first.
fn complete(run: &str, snapshots: &[(Time, Snapshot)]) -> Result<(), CountersError> {
    let [first, others @ ..] = snapshots else {
        return Err(CountersError::OneSnapshot { run: short(run) });
    };
    if others.is_empty() {
        return Err(CountersError::OneSnapshot { run: short(run) });
    }
    for other in others {
        for ((_, these), (time, those)) in [(first, other), (other, first)] {
            for (instance, counters) in &these.instances {
                let there = those.instances.get(instance);
                let is_missing = |name: &&String| !there.is_some_and(|it| it.contains_key(*name));
                if let Some(statistic) = counters.keys().find(is_missing) {
                    return Err(CountersError::Missing {
                        run: short(run),
                        statistic: short(statistic),
                        instance: short(instance),
                        time: time.text.clone(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Checks that no counter decreases. If instances are listed in another order, they are reassigned
/// first.
fn continuous(
    run: &str,
    snapshots: &mut [(Time, Snapshot)],
    has_runs: bool,
) -> Result<Vec<Assigned>, CountersError> {
    let mut assigned = Vec::new();
    for at in 1..snapshots.len() {
        let (before, after) = snapshots.split_at_mut(at);
        let (before, after) = (&before[at - 1].1, &mut after[0].1);
        let Some(falls) = first_fall(before, after, has_runs) else { continue };
        let Some(way) = assign(before, after) else { return Err(falls) };
        let rows: Vec<CountersOf> = after.instances.values().cloned().collect();
        let names = before.instances.keys().cloned();
        after.instances = names.zip(way.chosen.iter().map(|&at| rows[at].clone())).collect();
        let Way { is_decided, listed, candidates, .. } = way;
        assigned.push(Assigned { run: run.to_owned(), is_decided, listed, candidates });
    }
    Ok(assigned)
}

fn first_fall(before: &Snapshot, after: &Snapshot, has_runs: bool) -> Option<CountersError> {
    for (instance, counters) in &before.instances {
        for (statistic, from) in counters {
            let to = after.instances.get(instance)?.get(statistic)?;
            if to.value < from.value {
                return Some(CountersError::Decreasing {
                    line: to.line,
                    statistic: short(statistic),
                    instance: short(instance),
                    from: from.given,
                    to: to.given,
                    several: !has_runs,
                });
            }
        }
    }
    None
}

fn ledger(run: &str, snapshots: &[(Time, Snapshot)]) -> Result<Ledger, CountersError> {
    let ((begin, first), (end, last)) = (&snapshots[0], &snapshots[snapshots.len() - 1]);
    let wire = normal(WIRE);
    let mut totals: BTreeMap<String, f64> = BTreeMap::new();
    let mut carried: Vec<f64> = Vec::new();
    for (instance, counters) in &first.instances {
        for (statistic, from) in counters {
            let to = last.instances.get(instance).and_then(|it| it.get(statistic));
            let grown = to.map_or(0.0, |to| to.value - from.value);
            *totals.entry(statistic.clone()).or_default() += grown;
            carried.extend(Some(grown).filter(|_| *statistic == wire));
        }
    }
    let has = |name: &str| totals.contains_key(&normal(name));
    let is_there = |name: &str| has(name) || name == READ && has(DISK);
    let names: Vec<&'static str> =
        [READ, ELIGIBLE, WIRE].into_iter().filter(|name| !is_there(name)).collect();
    if !names.is_empty() {
        return Err(CountersError::NoCounter { run: short(run), names });
    }
    let ledger = of_statistics(run, &totals);
    let mut ledger =
        ledger.ok_or_else(|| CountersError::TooLarge { run: short(run), what: READ })?;
    let is_timed = begin.is_timed && end.is_timed;
    ledger.seconds = is_timed.then_some(end.seconds - begin.seconds);
    let most = carried.iter().copied().fold(0.0, f64::max);
    let took_part = |bytes: &&f64| **bytes > 0.0 && **bytes >= TOOK_PART * most;
    ledger.hosts = u32::try_from(carried.iter().filter(took_part).count()).ok();
    check(&ledger)?;
    Ok(ledger)
}

/// Nearly all bytes of a scan are eligible, so an eligible share that equals the ratio of a decimal
/// to a binary unit suggests mixed units.
fn in_two_units(ledger: &Ledger) -> Option<String> {
    const NEAR: f64 = 5e-4;
    let share = ledger.eligible_of_all()?;
    let units = [Unit::Kib, Unit::Mib, Unit::Gib, Unit::Tib].into_iter();
    let mut units = units.zip([Unit::Kb, Unit::Mb, Unit::Gb, Unit::Tb]);
    let is_it = |(binary, decimal): &(Unit, Unit)| {
        (share * binary.bytes() / decimal.bytes() - 1.0).abs() < NEAR
    };
    let (binary, decimal) = units.find(is_it)?;
    Some(format!(
        "{}: eligible is {share:.4} of read, as 1 {} is of 1 {}: are both in the same unit?",
        short(&ledger.name),
        decimal.name(),
        binary.name()
    ))
}

/// Rejects a ledger in which a part is larger than the whole.
fn check(ledger: &Ledger) -> Result<(), CountersError> {
    let parts = [
        ("eligible", ledger.eligible_bytes, "read", Some(ledger.read_bytes)),
        ("returned", ledger.returned_bytes, "the interconnect", ledger.wire_bytes),
    ];
    for (part, bytes, whole, of) in parts {
        let Some((bytes, of)) = bytes.zip(of) else { continue };
        let ratio = bytes as f64 / of as f64;
        if bytes as f64 > of as f64 * ROUNDING {
            return Err(CountersError::PartAboveWhole {
                run: short(&ledger.name),
                part,
                whole,
                ratio,
            });
        }
    }
    Ok(())
}
