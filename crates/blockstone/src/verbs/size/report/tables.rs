//! Tables of a need and of the hardware for it.

use crate::verbs::size::rules::RunOfNeed;
use blockstone_base::database::LOAD_STATEMENT;
use blockstone_base::row;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Heading, Measure, Merge, Row, Table, Value, column, count, flow, happened, share, text, time,
};
use blockstone_base::units::format_ns;
use blockstone_figures::History;
use blockstone_size::consolidation::Consolidation;
use blockstone_size::hardware::Answer;
use blockstone_size::hardware::cpu::Choice;
use blockstone_size::hours::{WEEKDAYS, clock};
use blockstone_size::need::Need;
use blockstone_size::{Observation, Percentiles, Snapshot};

use super::super::Sized;
use super::units;

/// Number of intervals with the largest load that are listed, and of statements of each.
const PEAKS: usize = 5;
const STATEMENTS: usize = 5;
const SOURCES_ON_SCREEN: usize = 20;

const fn of_row(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::OfRow, Merge::Never, doc)
}

const NEED: &[Heading] = &[
    text("quantity", "need", "What is needed."),
    of_row(
        "p50",
        "p50",
        "Half of the intervals need no more. With the interval of order statistics.",
    ),
    of_row("p95", "p95", "95 of 100 intervals need no more."),
    of_row("p99", "p99", "99 of 100 intervals need no more."),
    of_row("max", "max", "The interval that needs most."),
];

const CEILINGS: &[Heading] = &[
    text("ceiling", "ceiling", "What limits a unit."),
    count("need", "need", "What is needed of hardware."),
    count("unit_capacity", "of a unit", "What a unit can do at the utilisation that is planned."),
    count("units", "units", "Units that it takes."),
    share("utilisation", "used", "Need ÷ what all units of the answer can do."),
    share("slack", "of the binding one", "Units ÷ units of the ceiling that binds."),
    text("binding", "", "Whether it binds."),
];

const CORES: &[Heading] = &[
    text("name", "core", "As the list names it."),
    count("cores", "cores", "Whole cores that the load takes at the utilisation that is planned."),
    count("licences", "licences", "At the factor of the licence; none if it does not count cores."),
];

const CHANGES: &[Heading] = &[
    text("change", "what would change it", "One thing done otherwise."),
    count("units", "units", "Units that it takes then."),
    text("binding", "binds", "The ceiling that binds then."),
    share("utilisation", "used", "Of that ceiling; above 100 % the units do not carry the need."),
];

const CONSOLIDATION: &[Heading] = &[
    text("name", "part", "A database, or an instance of one."),
    count("peak_iops", "own peak", "Its own peak, whenever that is."),
    count("at_peak_iops", "in the peak of the sum", "What it has in the peak of the sum."),
];

const PEAKS_OF: &[Heading] = &[
    text("name", "database", "Whose interval it is."),
    text("begin", "begin", "By the clock of the server."),
    time("length_ns", "length", "Of the interval: its rates are means over this time."),
    count("hardware_iops", "IOPS of the storage", "Reads + penalty × writes."),
    count("reads_per_s", "reads/s", "Of the database."),
    count("writes_per_s", "writes/s", "Of the database."),
    count("missing_instances", "instances missing", "Of which nothing is known here."),
];

const STATEMENTS_OF: &[Heading] = &[
    text("begin", "begin", "The interval."),
    text("statement", "statement", "As the database names it."),
    count("read_ios_per_s", "reads/s", "Read requests of the statement."),
    count("physical_reads_per_s", "blocks/s", "Blocks that it read from storage."),
    share("elapsed_share", "active sessions", "Time of its calls ÷ the interval."),
];

const HOURS: &[Heading] = &[
    text("hour", "hour", "Of the day, by the clock of the server."),
    count("monday_iops", "Mon", "The most of all weeks, of means over this hour."),
    count("tuesday_iops", "Tue", "Likewise."),
    count("wednesday_iops", "Wed", "Likewise."),
    count("thursday_iops", "Thu", "Likewise."),
    count("friday_iops", "Fri", "Likewise."),
    count("saturday_iops", "Sat", "Likewise."),
    count("sunday_iops", "Sun", "Likewise."),
];

const SOURCES: &[Heading] = &[
    text("name", "source", "The database and instance."),
    text("begin", "begin", "By the clock of the server."),
    time("length_ns", "length", "Its rates are means over this time."),
    count("reads_per_s", "reads/s", "Read requests."),
    count("writes_per_s", "writes/s", "Write requests."),
    flow("read_bytes_per_s", "read", "Bytes read a second."),
    flow("write_bytes_per_s", "written", "Bytes written a second."),
    flow("redo_bytes_per_s", "redo", "Redo generated a second."),
    count("commits_per_s", "commits/s", "Transactions committed."),
];

const VERIFIED: &[Heading] = &[
    text("figure", "run against need", "What is compared."),
    of_row("predicted", "predicted", "Of the need, with its interval; of a p99 the one wanted."),
    of_row("measured", "measured", "What the run did, with its interval."),
];

pub const ALL: &[(&str, &[Heading])] = &[
    ("need", NEED),
    ("ceilings", CEILINGS),
    ("machine", CEILINGS),
    ("cores", CORES),
    ("strokes", units::STROKES),
    ("scans", units::SCANS),
    ("changes", CHANGES),
    ("consolidation", CONSOLIDATION),
    ("peaks", PEAKS_OF),
    ("statements", STATEMENTS_OF),
    ("hours", HOURS),
    ("sources", SOURCES),
    ("run-against-need", VERIFIED),
];

pub fn need(sized: &Sized) -> Table {
    let mut table = Table::new("need", "Need", NEED);
    let Some(need) = &sized.need else {
        let stated = |name: &str, value: Option<f64>, measure| {
            let none = Value::default;
            value.map(|value| row![name, none(), none(), none(), value].of(measure))
        };
        let demand = &sized.demand;
        let bytes = demand.read_bytes_per_s.zip(demand.write_bytes_per_s).map(|it| it.0 + it.1);
        let rows = [
            stated("IOPS of the storage", sized.hardware_iops(), Measure::Count),
            stated("reads/s", demand.reads_per_s, Measure::Count),
            stated("writes/s", demand.writes_per_s, Measure::Count),
            stated("read and written", bytes, Measure::BytesPerS),
        ];
        return table.with(rows.into_iter().flatten());
    };
    table.push(percentiles("IOPS of the storage", &need.hardware_iops, Measure::Count));
    for (quantity, found) in &need.quantities {
        table.push(percentiles(quantity.name, found, quantity.measure));
    }
    table
}

fn percentiles(name: &str, found: &Percentiles, measure: Measure) -> Row {
    let cell = |it: Option<Estimate>| it.map_or(Value::default(), Value::from);
    row![name, cell(found.p50), cell(found.p95), cell(found.p99), happened(found.max)].of(measure)
}

pub fn ceilings(sized: &Sized) -> Table {
    held("ceilings", &sized.hardware.answer)
}

pub fn machine(answer: &Answer) -> Table {
    held("machine", answer)
}

fn held(key: &'static str, answer: &Answer) -> Table {
    let title = format!("Ceilings of {} × {}", answer.units, answer.unit);
    let rows = answer.ceilings.iter().map(|it| {
        let binds = if it.binding { "binds" } else { "" };
        row![&it.name, it.need, it.unit_capacity, it.units, it.utilisation, it.slack, binds]
    });
    Table::new(key, title, CEILINGS).with(rows)
}

pub fn cores(choices: &[Choice]) -> Table {
    let rows = choices.iter().map(|it| row![&it.name, it.cores, it.licences]);
    Table::new("cores", "Cores", CORES).with(rows)
}

pub fn changes(sized: &Sized) -> Table {
    let rows = sized.hardware.changes.iter();
    let rows = rows.map(|it| row![&it.what, it.units, &it.binding, it.utilisation]);
    Table::new("changes", "What would change it", CHANGES).with(rows)
}

pub fn consolidation(it: &Consolidation) -> Table {
    let rows = it.parts.iter().map(|part| row![&part.name, part.peak, part.at_peak]);
    Table::new("consolidation", "On the same storage", CONSOLIDATION).with(rows)
}

pub fn verified(run: &RunOfNeed) -> Table {
    let wanted = happened(run.wanted_latency_ns_p99);
    let curve = run.predicted_latency_ns_p99.map(|(low, high)| {
        let from = if low > 0.0 { format_ns(low) + " to" } else { "up to".to_owned() };
        let range = format!("{from} {}", format_ns(high));
        row!["p99 of a read, by the curve", range, run.latency_ns_p99].of(Measure::Nanoseconds)
    });
    let table = Table::new("run-against-need", "The run against the need", VERIFIED).with([
        row!["requests/s of the database", run.predicted_iops, run.iops].of(Measure::Count),
        row!["p99 of a read", wanted, run.latency_ns_p99].of(Measure::Nanoseconds),
    ]);
    table.with(curve)
}

/// Returns the intervals with the largest load, the largest first.
fn largest(sized: &Sized) -> Vec<(f64, &Snapshot)> {
    let snapshots = sized.databases.iter().flat_map(|it| &it.snapshots);
    let question = &sized.question;
    let meant =
        snapshots.filter(|it| question.filter.admits(it.load.begin_s + it.load.seconds / 2.0));
    let known = meant.filter_map(|it| Some((it.load.hardware_iops(question.penalty)?, it)));
    let mut all: Vec<(f64, &Snapshot)> = known.collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(PEAKS);
    all
}

pub fn peaks(sized: &Sized) -> Table {
    let rows = largest(sized).into_iter().map(|(iops, it)| {
        let load = &it.load;
        row![
            &load.database,
            clock(load.begin_s),
            load.seconds * 1e9,
            iops,
            load.reads_per_s,
            load.writes_per_s,
            it.missing as u64
        ]
    });
    Table::new("peaks", "Intervals of the largest load", PEAKS_OF).with(rows)
}

/// Lists the statements that the database names as its largest in these intervals.
pub fn statements(sized: &Sized) -> Table {
    let mut table = Table::new("statements", "Statements in these intervals", STATEMENTS_OF);
    for (_, snapshot) in largest(sized) {
        let mut rows: Vec<(f64, Row)> = Vec::new();
        for part in &snapshot.parts {
            for history in &sized.sources.histories {
                rows.extend(of_interval(history, part));
            }
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, row) in rows.into_iter().take(STATEMENTS) {
            table.push(row);
        }
    }
    table
}

fn of_interval(history: &History, part: &Observation) -> Vec<(f64, Row)> {
    let (from_ns, to_ns) = part.ticks_ns;
    let interval = history.interval(from_ns, to_ns);
    let prefix = match part.instance.as_str() {
        "" => format!("{}/*/", part.database),
        instance => format!("{}/{instance}/", part.database),
    };
    let objects = interval.objects(LOAD_STATEMENT.probe).into_iter();
    let of = |object: &str| {
        let name = object.strip_prefix(&prefix)?.to_owned();
        let per_s = |column| {
            let moved = interval.moved_from_zero(LOAD_STATEMENT.probe, object, column).ok()?;
            Some(moved / part.seconds).filter(|rate| *rate > 0.0)
        };
        let (ios, blocks) = (per_s("read_ios"), per_s("physical_reads"));
        let elapsed = per_s("elapsed_ns").map(|ns| ns / 1e9);
        let weight = ios.or(blocks).or(elapsed)?;
        Some((weight, row![clock(part.begin_s), name, ios, blocks, elapsed]))
    };
    objects.filter_map(of).collect()
}

pub fn hours(need: &Need) -> Table {
    let rows = (0..24).map(|hour| {
        let of_day = |day: usize| need.week.0.get(day * 24 + hour).copied().flatten();
        let cells = (0..WEEKDAYS.len()).map(|day| happened(of_day(day)));
        let name = Value::from(format!("{hour:02}:00"));
        Row::from(std::iter::once(name).chain(cells).collect::<Vec<Value>>())
    });
    Table::new("hours", "IOPS of the storage by hour of the week", HOURS).with(rows)
}

pub fn sources(sized: &Sized) -> Table {
    let rows = sized.sources.observations.iter().map(|it| {
        row![
            it.name(),
            clock(it.begin_s),
            it.seconds * 1e9,
            it.reads_per_s,
            it.writes_per_s,
            it.read_bytes_per_s,
            it.write_bytes_per_s,
            it.redo_bytes_per_s,
            it.commits_per_s
        ]
    });
    Table::new("sources", "Intervals", SOURCES).on_screen(SOURCES_ON_SCREEN).with(rows)
}
