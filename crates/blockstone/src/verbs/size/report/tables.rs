//! Tables of a need and of the hardware for it.

use blockstone_base::database::LOAD_STATEMENT;
use blockstone_base::table::{Measure, Missing, Rows as _, Table, happened};
use blockstone_figures::History;
use blockstone_report::percent;
use blockstone_size::consolidation::Consolidation;
use blockstone_size::hardware::cpu::Choice;
use blockstone_size::hardware::{Answer, Demand, answer};
use blockstone_size::hours::WEEKDAYS;
use blockstone_size::need::Need;
use blockstone_size::{Observation, Snapshot};

use super::super::Sized;
use super::super::hardware::{CURRENT_UTILISATION, Hardware};
use super::super::rows::{
    CeilingRow, ChangeRow, CoreRow, CurrentRow, HourRow, LeftOutRow, NeedRow, OF_STORAGE, PartRow,
    PeakRow, SourceRow, StatementRow,
};

/// Number of intervals with the largest load that are listed, that people see, and whose statements
/// are listed; and of statements of each.
const INTERVALS: usize = 500;
const PEAKS: usize = 5;
const STATEMENTS: usize = 5;
const SOURCES_ON_SCREEN: usize = 20;

pub fn need(sized: &Sized) -> Table {
    let table = NeedRow::table("need", "Need", []);
    let Some(need) = &sized.need else {
        let demand = &sized.demand;
        let bytes = demand.read_bytes_per_s.zip(demand.write_bytes_per_s).map(|it| it.0 + it.1);
        let rows = [
            NeedRow::stated(OF_STORAGE, sized.hardware_iops(), Measure::Count),
            NeedRow::stated("reads/s", demand.reads_per_s, Measure::Count),
            NeedRow::stated("writes/s", demand.writes_per_s, Measure::Count),
            NeedRow::stated("read and written", bytes, Measure::BytesPerS),
        ];
        return table.with(rows.into_iter().flatten());
    };
    let rows = need.quantities.iter();
    let rows = rows.map(|(quantity, found)| NeedRow::of(quantity.name, found, quantity.measure));
    table.with([NeedRow::of(OF_STORAGE, &need.hardware_iops, Measure::Count)]).with(rows)
}

pub fn held(name: &'static str, answer: &Answer) -> Table {
    let title = format!("Ceilings of {} × {}", answer.units, answer.unit);
    Table { title: title.into(), ..CeilingRow::table(name, "", CeilingRow::of(answer)) }
}

/// The need on each unit that can be had today.
pub fn current(answers: &[Answer]) -> Table {
    let rows = answers.iter().filter_map(|answer| {
        let binding = answer.binding()?;
        Some(CurrentRow {
            unit: answer.unit.clone(),
            units: answer.units,
            ceiling: binding.name.clone(),
            utilisation: binding.utilisation,
        })
    });
    let share = percent(CURRENT_UTILISATION);
    let title = format!("Units that can be had today, at {share}");
    Table { title: title.into(), ..CurrentRow::table("current", "", rows) }
}

pub fn cores(choices: &[Choice]) -> Table {
    let rows = choices.iter();
    let rows =
        rows.map(|it| CoreRow { name: it.name.clone(), cores: it.cores, licences: it.licences });
    CoreRow::table("cores", "Cores", rows)
}

pub fn changes(sized: &Sized) -> Table {
    let rows = sized.hardware.changes.iter().map(|it| ChangeRow {
        change: it.what.clone(),
        units: it.units,
        ceiling: it.binding.clone(),
        utilisation: it.utilisation,
    });
    ChangeRow::table("changes", "What would change it", rows)
}

pub fn consolidation(it: &Consolidation) -> Table {
    let rows = it.parts.iter().map(|part| PartRow {
        name: part.name.clone(),
        peak_iops: part.peak,
        at_peak_iops: part.at_peak,
    });
    PartRow::table("consolidation", "On the same storage", rows)
}

/// Returns the intervals with the largest load, the largest first.
fn largest(sized: &Sized) -> Vec<(f64, &Snapshot)> {
    let snapshots = sized.databases.iter().flat_map(|it| &it.snapshots);
    let question = &sized.question;
    let meant = snapshots.filter(|it| it.load.is_in(question.filter));
    let known = meant.filter_map(|it| Some((it.load.hardware_iops(question.penalty)?, it)));
    let mut all: Vec<(f64, &Snapshot)> = known.collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all
}

pub fn peaks(sized: &Sized) -> Table {
    let is_timed = sized.sources.is_timed();
    let largest = largest(sized);
    let more = largest.len().saturating_sub(INTERVALS);
    let rows = largest.into_iter().take(INTERVALS).map(|(hardware_iops, it)| PeakRow {
        name: it.load.database.clone(),
        begin: it.load.begin().filter(|_| is_timed).ok_or(Missing::Unknown),
        length_ns: is_timed.then_some(it.load.seconds * 1e9).ok_or(Missing::Unknown),
        hardware_iops,
        units: units(sized, it),
        reads_per_s: it.load.reads_per_s,
        writes_per_s: it.load.writes_per_s,
        missing_instances: it.missing as u64,
    });
    let mut table = PeakRow::table("peaks", "Intervals of the largest load", rows);
    let unlisted = || format!("{more} intervals of less load are not listed.");
    table.notes.extend((more > 0).then(unlisted));
    table.on_screen(PEAKS).on_page(PEAKS)
}

/// Returns how many units of the answer the requests of one interval take.
fn units(sized: &Sized, interval: &Snapshot) -> Option<u64> {
    let Observation { reads_per_s, writes_per_s, .. } = interval.load;
    let demand = Demand { reads_per_s, writes_per_s, ..Demand::default() };
    let Hardware { unit, plan, .. } = &sized.hardware;
    answer(&demand, unit, plan).ok().map(|it| it.units)
}

/// Lists the statements that the database names as its largest in these intervals.
pub fn statements(sized: &Sized) -> Table {
    let of_peak = |(_, snapshot): (f64, &Snapshot)| {
        let parts = snapshot.parts.iter();
        let mut rows: Vec<(f64, StatementRow)> = parts
            .flat_map(|part| {
                let histories = sized.sources.histories.iter();
                histories.flat_map(move |history| of_interval(history, part))
            })
            .collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        rows.into_iter().take(STATEMENTS).map(|(_, row)| row)
    };
    let rows = largest(sized).into_iter().take(PEAKS).flat_map(of_peak);
    StatementRow::table("statements", "Statements in these intervals", rows)
}

fn of_interval(history: &History, part: &Observation) -> Vec<(f64, StatementRow)> {
    let (from_ns, to_ns) = part.ticks_ns;
    let interval = history.interval(from_ns, to_ns);
    let prefix = match part.instance.as_str() {
        "" => format!("{}/*/", part.database),
        instance => format!("{}/{instance}/", part.database),
    };
    let objects = interval.objects(LOAD_STATEMENT.probe).into_iter();
    let of = |object: &str| {
        let statement = object.strip_prefix(&prefix)?.to_owned();
        let per_s = |column| {
            let moved = interval.moved_from_zero(LOAD_STATEMENT.probe, object, column).ok()?;
            Some(moved / part.seconds).filter(|rate| *rate > 0.0)
        };
        let row = StatementRow {
            begin: part.begin(),
            statement,
            read_ios_per_s: per_s("read_ios"),
            physical_reads_per_s: per_s("physical_reads"),
            elapsed_share: per_s("elapsed_ns").map(|ns| ns / 1e9),
        };
        let weight = row.read_ios_per_s.or(row.physical_reads_per_s).or(row.elapsed_share)?;
        Some((weight, row))
    };
    objects.filter_map(of).collect()
}

pub fn hours(need: &Need) -> Table {
    let rows = (0..24).map(|hour| {
        let of_day = |day: usize| need.week.0.get(day * 24 + hour).copied().flatten();
        let week: [_; WEEKDAYS.len()] = std::array::from_fn(|day| happened(of_day(day)));
        let [
            monday_iops,
            tuesday_iops,
            wednesday_iops,
            thursday_iops,
            friday_iops,
            saturday_iops,
            sunday_iops,
        ] = week;
        HourRow {
            hour: format!("{hour:02}:00"),
            monday_iops,
            tuesday_iops,
            wednesday_iops,
            thursday_iops,
            friday_iops,
            saturday_iops,
            sunday_iops,
        }
    });
    HourRow::table("hours", "IOPS of the storage by hour of the week", rows)
}

pub fn left_out(sized: &Sized) -> Table {
    LeftOutRow::table("left-out", "Left out", sized.sources.left_out.iter().map(LeftOutRow::of))
}

pub fn sources(sized: &Sized) -> Table {
    let is_timed = sized.sources.is_timed();
    let rows = sized.sources.observations.iter().map(|it| SourceRow::of(it, is_timed));
    SourceRow::table("sources", "Intervals", rows).on_screen(SOURCES_ON_SCREEN)
}
