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
const OF_PROCESS: [&str; 16] = [
    "load",
    "load_share",
    "cached_visits",
    "buffered_write",
    "process",
    "operation",
    "event",
    "role",
    "disk",
    "instance",
    "server",
    "blocked",
    "sql",
    "flush",
    "page_cache",
    "statement",
];

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
    /// Hosts whose own probes were added.
    hosts: BTreeSet<String>,
}

impl Counters {
    /// Begins with the series that all sources have.
    pub fn new(sources: &[Source]) -> Self {
        let Some((first, others)) = sources.split_first() else {
            return Self { infos: Vec::new(), sums: BTreeMap::new(), hosts: BTreeSet::new() };
        };
        let mut infos = Vec::new();
        for info in &first.manifest.probes {
            let all = others.iter().map(|other| same(&other.manifest.probes, info));
            let Some(all) = all.collect::<Option<Vec<_>>>() else { continue };
            let mut info = ProbeInfo { ticks: 0, missed_ticks: 0, ..info.clone() };
            for (at, column) in info.columns.iter_mut().enumerate() {
                let why = all.iter().find_map(|it| it.columns[at].unmeasured.clone());
                column.unmeasured = column.unmeasured.clone().or(why).or_else(|| no_sum(column));
            }
            infos.push(info);
        }
        Self { infos, sums: BTreeMap::new(), hosts: BTreeSet::new() }
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
        let is_first_of_host = self.hosts.insert(source.manifest.host.hostname.clone());
        for (at, info) in self.infos.iter().enumerate() {
            if !is_first_of_host && !OF_PROCESS.contains(&info.kind()) {
                continue;
            }
            let series = read(&info.probe)?;
            let mut tracks: BTreeMap<(i32, &str), Track> = BTreeMap::new();
            for row in series.rows() {
                let cells = (0..info.columns.len()).map(|column| row.cell(column)).collect();
                let track = tracks.entry((row.phase, row.object)).or_default();
                track.push((row.t_ns + source.shift_ns, cells));
            }
            for (phase, common) in phases.iter().enumerate() {
                let index = common.indices[number] as i32;
                let of_phase = (index, "")..(index + 1, "");
                for (&(_, object), track) in tracks.range(of_phase) {
                    let sums = self.sums.entry((at, phase, object.to_owned())).or_default();
                    sums.add(track, &info.columns, &common.instants);
                }
            }
        }
        Ok(())
    }

    /// Returns how far a counter of all objects of a probe moved in a phase; `None` if unknown.
    pub fn moved(&self, probe: &str, column: &str, phase: usize) -> Option<u64> {
        let at = self.infos.iter().position(|info| info.probe == probe)?;
        let column = self.infos[at].columns.iter().position(|it| it.name == column)?;
        let of_phase = (at, phase, String::new())..(at, phase + 1, String::new());
        let mut moved = None;
        for (_, sums) in self.sums.range(of_phase) {
            let (Some(first), Some(last)) = (sums.cells.first(), sums.cells.last()) else {
                continue;
            };
            let (Sum::Number(from), Sum::Number(to)) = (&first[column], &last[column]) else {
                return None;
            };
            moved = Some(moved.unwrap_or(0) + u64::try_from(to - from).ok()?);
        }
        moved
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
    let has_none = column.kind == Kind::Gauge && column.unit == Unit::Ppm;
    has_none.then(|| Unmeasured::NoEvidence("shares of several ranks have no sum".to_owned()))
}

/// Rows of an object in order of time.
type Track = Vec<(u64, Vec<Cell>)>;

impl Sums {
    fn add(&mut self, track: &Track, columns: &[ColumnInfo], instants: &[u64]) {
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
