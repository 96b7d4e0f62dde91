//! Counters of several ranks, added at the same instants.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::column::{Cell, Kind, Unit, Unmeasured};
use blockstone_record::manifest::{ColumnInfo, ProbeInfo};
use blockstone_record::{RecordError, Recorder, Series};

use crate::FleetError;
use crate::common::Common;
use crate::source::Source;

/// Probes that read what a process did, or its database; the others read all of the host, which
/// several ranks on one host share.
const OF_PROCESS: [&str; 14] = [
    "load",
    "load_share",
    "process",
    "operation",
    "event",
    "role",
    "disk",
    "instance",
    "server",
    "blocked",
    "sql",
    "page_cache",
    "cached_files",
    "statement",
];

/// Series in which each row is one event: between two rows they have no value.
const OF_EVENTS: [&str; 3] = ["flush", "buffered_write", "cached_visits"];

/// Columns that are a temperature, or an instant on the clock of one rank, although an instant
/// grows as a counter does.
const OF_ONE: [&str; 3] = ["temperature_kelvin", "read_at_ns", "last_completed_ns"];

/// The rows of one object in one phase.
#[derive(Default)]
struct Sums {
    /// By instant, then by column.
    cells: Vec<Vec<Sum>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Sum {
    #[default]
    Nothing,
    Number(i128),
    Text(String),
    /// Not measured by one rank, so the sum is unknown.
    Unknown,
}

/// Sums of all series.
pub struct Counters {
    infos: Vec<ProbeInfo>,
    /// By probe, phase and object.
    sums: BTreeMap<(usize, usize, String), Sums>,
    /// Objects of machines that were added: machine, probe and object.
    seen: BTreeSet<(String, usize, String)>,
}

impl Counters {
    /// Begins with the series that all sources have. Returns what is left out beside it, and why.
    pub fn new(sources: &[Source]) -> (Self, Vec<String>) {
        let (mut infos, mut left_out) = (Vec::new(), Vec::new());
        let (first, others) = sources.split_first().map_or((None, sources), |(a, b)| (Some(a), b));
        for info in first.iter().flat_map(|first| &first.manifest.probes) {
            if OF_EVENTS.contains(&info.kind()) {
                left_out.push(format!("{}: single events of one rank", info.probe));
                continue;
            }
            let all = others.iter().map(|other| same(&other.manifest.probes, info));
            let Some(all) = all.collect::<Option<Vec<_>>>() else {
                left_out.push(format!("{}: not recorded by all ranks", info.probe));
                continue;
            };
            let missed = all.iter().map(|it| it.missed_ticks).fold(0, u64::saturating_add);
            let missed_ticks = info.missed_ticks.saturating_add(missed);
            let mut info = ProbeInfo { ticks: 0, missed_ticks, ..info.clone() };
            for (at, column) in info.columns.iter_mut().enumerate() {
                let why = all.iter().find_map(|it| it.columns[at].unmeasured.clone());
                column.unmeasured = column.unmeasured.clone().or(why).or_else(|| no_sum(column));
            }
            infos.push(info);
        }
        (Self { infos, sums: BTreeMap::new(), seen: BTreeSet::new() }, left_out)
    }

    pub fn infos(&self) -> &[ProbeInfo] {
        &self.infos
    }

    /// Adds all series of a source. `number` is its place among the sources.
    pub fn add(
        &mut self,
        (number, source): (usize, &Source),
        phases: &[Common],
        read: impl Fn(&str) -> Result<Series, RecordError>,
    ) -> Result<(), FleetError> {
        let machine = source.machine();
        let mut given = BTreeSet::new();
        for (at, info) in self.infos.iter().enumerate() {
            let of_process = OF_PROCESS.contains(&info.kind());
            let series = read(&info.probe)?;
            let mut tracks: BTreeMap<(i32, &str), Track> = BTreeMap::new();
            for row in series.rows() {
                if !of_process {
                    let object = (machine.clone(), at, row.object.to_owned());
                    if self.seen.contains(&object) {
                        continue;
                    }
                    given.insert(object);
                }
                let cells = (0..info.columns.len()).map(|column| row.cell(column)).collect();
                let track = tracks.entry((row.phase, row.object)).or_default();
                track.push((row.t_ns.saturating_add(source.shift_ns), cells));
            }
            for (phase, common) in phases.iter().enumerate() {
                let index = common.indices[number] as i32;
                let of_phase = (index, "")..(index + 1, "");
                for (&(_, object), track) in tracks.range(of_phase) {
                    let sums = self.sums.entry((at, phase, object.to_owned())).or_default();
                    sums.add(track, (&info.columns, of_process), &common.instants);
                }
            }
        }
        self.seen.extend(given);
        Ok(())
    }

    pub fn write(&self, recorder: &mut Recorder, phases: &[Common]) -> Result<(), FleetError> {
        for ((at, phase, object), sums) in &self.sums {
            let index = *phase as i32;
            let info = &self.infos[*at];
            for (t_ns, cells) in phases[*phase].instants.iter().zip(&sums.cells) {
                let columns = cells.iter().zip(&info.columns);
                let cells: Vec<Cell> = columns.map(|(sum, column)| sum.cell(column)).collect();
                recorder.row(&info.probe, *t_ns, index, object, &cells)?;
            }
        }
        Ok(())
    }
}

/// Returns the probe of these with the name and the columns of another.
fn same<'a>(probes: &'a [ProbeInfo], as_in: &ProbeInfo) -> Option<&'a ProbeInfo> {
    let names = |info: &ProbeInfo| {
        info.columns.iter().map(|column| column.name.clone()).collect::<Vec<String>>()
    };
    probes.iter().find(|it| it.probe == as_in.probe && names(it) == names(as_in))
}

/// Returns why levels of several ranks have no sum, for a column to which that applies.
fn no_sum(column: &ColumnInfo) -> Option<Unmeasured> {
    let is_level = matches!(column.unit, Unit::Ppm | Unit::Nanoseconds);
    (OF_ONE.contains(&&*column.name) || column.kind == Kind::Gauge && is_level)
        .then(|| Unmeasured::NoEvidence("the values of several ranks have no sum".to_owned()))
}

/// Rows of an object in order of time.
type Track = Vec<(u64, Vec<Cell>)>;

impl Sums {
    /// A counter of a process begins with it, and those of a machine before it: until the first row
    /// of an object, it is 0 or as in that row.
    fn add(
        &mut self,
        track: &Track,
        (columns, of_process): (&[ColumnInfo], bool),
        instants: &[u64],
    ) {
        if self.cells.is_empty() {
            self.cells = vec![vec![Sum::Nothing; columns.len()]; instants.len()];
        }
        for (t_ns, sums) in instants.iter().zip(&mut self.cells) {
            // The last row at an instant counts.
            let after = track.partition_point(|(row_ns, _)| row_ns <= t_ns);
            let before = track[..after].last().or_else(|| track.first());
            let next = track.get(after);
            for (at, (sum, column)) in sums.iter_mut().zip(columns).enumerate() {
                let Some((before_ns, cells)) = before else { continue };
                if after == 0 && of_process {
                    let is_counted = column.kind == Kind::Counter;
                    if is_counted && matches!(cells[at], Cell::Value(_)) {
                        sum.add(&Cell::Value(0), column);
                    }
                    continue;
                }
                let next = next.filter(|_| column.kind == Kind::Counter && after > 0);
                let cell = match (&cells[at], next.map(|(next_ns, next)| (next_ns, &next[at]))) {
                    (Cell::Value(from), Some((next_ns, Cell::Value(to)))) if to >= from => {
                        Cell::Value(between((*before_ns, *from), (*next_ns, *to), *t_ns))
                    }
                    (cell, _) => cell.clone(),
                };
                sum.add(&cell, column);
            }
        }
    }
}

/// Returns how far a counter of a source grew in its part of the common window: of one object, or
/// of all. `None` if it was not measured.
pub fn grown(
    series: &Series,
    (object, column): (Option<&str>, &str),
    (number, source): (usize, &Source),
    common: &Common,
) -> Option<u64> {
    let column = series.columns().iter().position(|known| known.name == column)?;
    let mut tracks: BTreeMap<&str, Vec<(u64, i64)>> = BTreeMap::new();
    let of_phase = series.rows().filter(|row| row.phase == common.indices[number] as i32);
    for row in of_phase.filter(|row| object.is_none_or(|object| object == row.object)) {
        let Cell::Value(value) = row.cell(column) else { return None };
        let t_ns = row.t_ns.saturating_add(source.shift_ns);
        tracks.entry(row.object).or_default().push((t_ns, value));
    }
    let at = |track: &[(u64, i64)], t_ns: u64| {
        let after = track.partition_point(|(row_ns, _)| *row_ns <= t_ns);
        let Some(before) = after.checked_sub(1).map(|at| track[at]) else { return 0 };
        track.get(after).map_or(before.1, |next| between(before, *next, t_ns))
    };
    let (from, to) = (common.phase.window_start_ns, common.phase.window_end_ns);
    let each = tracks.values().map(|track| at(track, to).checked_sub(at(track, from)));
    let sum: i64 = each.collect::<Option<Vec<i64>>>()?.into_iter().fold(0, i64::saturating_add);
    (!tracks.is_empty()).then_some(sum).and_then(|sum| u64::try_from(sum).ok())
}

/// Returns the value of a counter at `t_ns`, on the line between two rows.
fn between(before: (u64, i64), next: (u64, i64), t_ns: u64) -> i64 {
    let (passed, whole) = (t_ns.saturating_sub(before.0), next.0.saturating_sub(before.0).max(1));
    let grown = i128::from(next.1) - i128::from(before.1);
    let grown = grown * i128::from(passed.min(whole)) / i128::from(whole);
    i64::try_from(i128::from(before.1) + grown).unwrap_or(before.1)
}

impl Sum {
    fn add(&mut self, cell: &Cell, column: &ColumnInfo) {
        let is_longest = column.name.ends_with("_max");
        *self = match (std::mem::take(self), cell) {
            (Self::Nothing, Cell::Value(value)) => Self::Number((*value).into()),
            (Self::Number(sum), Cell::Value(value)) if is_longest => {
                Self::Number(sum.max((*value).into()))
            }
            (Self::Number(sum), Cell::Value(value)) => Self::Number(sum + i128::from(*value)),
            (Self::Nothing, Cell::Text(text)) => Self::Text(text.clone()),
            (Self::Text(known), Cell::Text(text)) if known == *text => Self::Text(known),
            _ => Self::Unknown,
        };
    }

    fn cell(&self, column: &ColumnInfo) -> Cell {
        match self {
            Self::Number(sum) if no_sum(column).is_none() => {
                i64::try_from(*sum).map_or(Cell::Unmeasured, Cell::Value)
            }
            Self::Text(text) => Cell::Text(text.clone()),
            _ => Cell::Unmeasured,
        }
    }
}
