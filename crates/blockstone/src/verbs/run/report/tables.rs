//! The tables of a run.

use blockstone_base::Estimate;
use blockstone_base::column::Unmeasured;
use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Row, Table, Value, column, count, happened, mean_of,
    quotient, ratio, text, total,
};
use blockstone_base::units::{format_ns, three_digits};
use blockstone_judge::RunFindings;
use blockstone_judge::run::{
    DbTime, Efficiency, LedgerCell, LittlesLaw, Transfer, Transfers, Wait,
};
use blockstone_report::format::{self, percent};

use crate::recorded::identity::reason;

/// Rows of the load profile that come first, because only these fit on a screen.
const PROFILE: [&str; 8] = [
    "db_time_ns",
    "db_cpu_ns",
    "redo_bytes",
    "logical_reads",
    "physical_reads",
    "physical_writes",
    "executes",
    "transactions",
];
/// Number of rows that a terminal screen has room for.
const WAITS: usize = 9;
const LATENCIES: usize = 6;
const DISKS: usize = 8;

const NS: Measure = Measure::Nanoseconds;

/// A column whose measure differs by row.
const fn of_row(
    merge: Merge,
    key: &'static str,
    heading: &'static str,
    doc: &'static str,
) -> Heading {
    column(key, heading, Measure::OfRow, merge, doc)
}

/// Returns a ratio as a value, which is missing if the ratio is not finite.
fn finite(number: f64) -> Value {
    happened(Some(number).filter(|number| number.is_finite()))
}

/// Returns the measure for this unit.
pub fn measure(unit: &str) -> Measure {
    match unit {
        "ns" => NS,
        "bytes" => Measure::Bytes,
        unit if unit.starts_with("of ") => Measure::Share,
        _ => Measure::Count,
    }
}

const PROFILE_COLUMNS: &[Heading] = &[
    text("statistic", "statistic", "What is counted."),
    of_row(
        Merge::Mean,
        "per_s",
        "per second",
        "Per second; for a time, time spent in each second.",
    ),
    of_row(
        Merge::Per { part: "per_s", within: "" },
        "per_transaction",
        "per transaction",
        "Per commit.",
    ),
];

/// Activity of the database, per second and per transaction.
pub fn profile(findings: &RunFindings) -> Table {
    let mut table = Table::new("load-profile", "Load profile", PROFILE_COLUMNS);
    let rows = &findings.load_profile;
    let first = PROFILE.iter().filter_map(|name| rows.iter().find(|row| row.name == *name));
    let rest = rows.iter().filter(|row| !PROFILE.contains(&row.name));
    let shown = first.clone().count();
    for row in first.chain(rest) {
        let row_of = row![row.title, row.per_s, happened(row.per_transaction)];
        table.push(row_of.of(measure(row.unit)));
    }
    table.on_screen(shown)
}

const EVENTS: &[Heading] = &[
    text("event", "event", "The wait event; CPU and run queue are listed as events too."),
    total("waits", "waits", Measure::Count, "Completed waits."),
    total("time_ns", "time", NS, "Total time of all sessions or processes in it."),
    quotient("time_ns", "waits", "wait_ns_mean", "mean", NS, "Mean time of a wait."),
    column(
        "db_time_ratio",
        "% DB",
        Measure::Share,
        Merge::Per { part: "time_ns", within: "" },
        "Its share of the database time.",
    ),
    count("average_active", "active", "Average number of sessions or processes in it."),
    text("wait_class", "class", "The wait class, as Oracle names it."),
];

/// How the sessions spent their time: all of it, the unaccounted part, then events by descending
/// time.
pub fn database_time(findings: &RunFindings) -> Table {
    let mut table = Table::new("database-time", "Database time", EVENTS);
    if let Some(db_time) = &findings.db_time {
        let lines = [
            ("database time", db_time.db_time_ns as f64, 1.0),
            ("remainder", db_time.remainder_ns, db_time.remainder_ratio),
        ];
        for (name, ns, ratio) in lines {
            let active = ns / findings.window_ns.max(1) as f64;
            let ratio = finite(ratio);
            table.push(row![name, Value::default(), ns, Value::default(), ratio, active, ""]);
        }
        table.notes.push(processor(db_time));
        if db_time.blocked_ns.is_some_and(|ns| ns > 0) {
            table.notes.push(SEEN.to_owned());
        }
    }
    for wait in listed(findings).filter(|wait| wait.db_time_ratio.is_some()) {
        table.push(wait_cells(wait));
    }
    table.on_screen(WAITS)
}

/// Returns the waits that took time. For a part of the run it also returns those that did not,
/// since they may have taken time in another part.
fn listed(findings: &RunFindings) -> impl Iterator<Item = &Wait> {
    findings.waits.iter().filter(|wait| wait.time_ns > 0 || findings.is_part)
}

fn wait_cells(wait: &Wait) -> Row {
    let waits = happened((wait.count > 0).then_some(wait.count));
    let mean = happened(wait.ns_mean);
    let share = wait.db_time_ratio.map_or_else(Value::default, finite);
    row![&wait.event, waits, wait.time_ns, mean, share, wait.average_active, wait.class]
}

/// Describes the processor time, also inside waits: a wait for a read includes the processor time
/// of the system call.
fn processor(db_time: &DbTime) -> String {
    format!(
        "sessions: CPU {}, {} of it inside waits; run queue {}, {} inside waits · background CPU \
         {}",
        format_ns(db_time.session_cpu_ns as f64),
        format_ns(db_time.cpu_in_waits_ns as f64),
        format_ns(db_time.session_run_queue_ns as f64),
        format_ns(db_time.run_queue_in_waits_ns as f64),
        format_ns(db_time.background_cpu_ns as f64)
    )
}

/// Events of the background processes, which are not part of the database time.
pub fn background(findings: &RunFindings) -> Table {
    let role = text("role", "role", "Which process.");
    let columns: Vec<Heading> = [role].into_iter().chain(EVENTS.iter().cloned()).collect();
    let mut table = Table::new("background-events", "Events of background processes", columns);
    for wait in listed(findings).filter(|wait| wait.db_time_ratio.is_none()) {
        let mut row = wait_cells(wait);
        row.cells.insert(0, wait.role.as_str().into());
        table.push(row);
    }
    table
}

const SEEN: &str = "seen by the kernel: blocked in a system call where the server has no event, \
                    from samples of its threads less all waits that it reports";

const CLASSES: &[Heading] = &[
    text("wait_class", "class", "The wait class."),
    total("time_ns", "time", NS, "Time of the sessions in it."),
    column(
        "db_time_ratio",
        "of DB time",
        Measure::Share,
        Merge::Per { part: "time_ns", within: "" },
        "Its share of the database time.",
    ),
    count("average_active_sessions", "AAS", "Average number of sessions in it."),
];

pub fn classes(findings: &RunFindings) -> Table {
    Table::new("classes", "Average active sessions by wait class", CLASSES).with(
        findings.classes.iter().map(|class| {
            let ratio = finite(class.db_time_ratio);
            row![class.class, class.time_ns, ratio, class.average_active_sessions]
        }),
    )
}

/// Table of requests in both directions. `of` is the heading of what sent or received them.
fn transfers(name: &'static str, title: &'static str, of: Heading, all: &[Transfers]) -> Table {
    let numbers = [
        count("read_iops", "reads/s", "Reads a second."),
        mean_of("read_ios", "read_bytes_mean", "size", Measure::Bytes, "Mean size of a read."),
        mean_of("read_ios", "read_service_ns_mean", "service", NS, "Mean time of a read."),
        count("write_iops", "writes/s", "Writes a second."),
        mean_of(
            "write_ios",
            "write_bytes_mean",
            "size",
            Measure::Bytes,
            "Mean size of a write; above the block size, blocks were coalesced.",
        ),
        mean_of("write_ios", "write_service_ns_mean", "service", NS, "Mean time of a write."),
        total("read_ios", "reads", Measure::Count, "Reads in the window."),
        total("write_ios", "writes", Measure::Count, "Writes in the window."),
    ];
    let columns: Vec<Heading> = [of].into_iter().chain(numbers).collect();
    let mut table = Table::new(name, title, columns);
    let cells = |one: &Transfer| {
        let iops = if one.ios == 0 { Value::Number(0.0) } else { one.iops.into() };
        [iops, happened(one.bytes_mean), happened(one.service_ns_mean)]
    };
    for one in all {
        let counts = [one.reads.ios.into(), one.writes.ios.into()];
        let name = [one.name.as_str().into()];
        table.push([&name[..], &cells(&one.reads), &cells(&one.writes), &counts].concat());
    }
    table
}

pub fn roles(findings: &RunFindings) -> Table {
    let moved = |role: &&Transfers| role.reads.ios + role.writes.ios > 0 || findings.is_part;
    let roles: Vec<Transfers> = findings.roles.iter().filter(moved).cloned().collect();
    let role = text("role", "role", "The process that sent the requests.");
    transfers("io-roles", "I/O by role", role, &roles)
}

pub fn disks(findings: &RunFindings) -> Table {
    let disk = text("disk", "disk", "A disk of the disk group.");
    transfers("io-disks", "I/O by disk", disk, &findings.disks).on_screen(DISKS)
}

/// Describes the range of rates of many disks; `None` if a screen shows each disk.
pub fn range_of_disks(disks: &[Transfers]) -> Option<String> {
    let range = |rate: fn(&Transfers) -> Option<Estimate>| {
        let mut rates: Vec<f64> = disks.iter().filter_map(rate).map(|iops| iops.value).collect();
        rates.sort_by(f64::total_cmp);
        let ends = rates.first().zip(rates.last());
        ends.map_or_else(
            || "–".to_owned(),
            |(low, high)| format!("{} – {}", three_digits(*low), three_digits(*high)),
        )
    };
    let (reads, writes) = (range(|disk| disk.reads.iops), range(|disk| disk.writes.iops));
    let count = disks.len();
    (count > DISKS).then(|| format!("{count} disks: {reads} reads/s and {writes} writes/s each"))
}

const LEDGER: &[Heading] = &[
    text("what", "", "What is counted."),
    of_row(Merge::Sum, "claimed", "claimed", "By the database."),
    of_row(
        Merge::Sum,
        "process",
        "process",
        "Charged by the kernel to the processes of the database.",
    ),
    of_row(Merge::Sum, "device", "device", "Moved by the device, for all processes."),
    quotient(
        "process",
        "claimed",
        "process_share",
        "÷ claimed",
        Measure::Share,
        "Charged ÷ claimed.",
    ),
    text("plan", "plan", "How the database executes the statement that causes it."),
];

/// Table with the three accounts of a window side by side.
pub fn ledger(findings: &RunFindings) -> Table {
    let planned = findings.ledger.iter().any(|row| row.plan.is_some());
    let columns = if planned { LEDGER } else { &LEDGER[..LEDGER.len() - 1] };
    let mut table = Table::new("ledger", "Ledger: claimed, charged, moved", columns);
    for row in &findings.ledger {
        for (account, cell) in
            [("claimed", &row.claimed), ("process", &row.process), ("device", &row.device)]
        {
            if let LedgerCell::Unmeasured(why) = cell {
                table.notes.push(format!("{} {account}: {}", row.what, reason(why)));
            }
        }
        let share = match (row.claimed.value(), row.process.value()) {
            (Some(claimed), Some(process)) if claimed > 0 => Some(process as f64 / claimed as f64),
            _ => None,
        };
        let mut cells = vec![row.what.into()];
        cells.extend([&row.claimed, &row.process, &row.device].map(entry));
        cells.push(happened(share));
        cells.extend(planned.then(|| row.plan.clone().unwrap_or_default().into()));
        table.push(Row::from(cells).of(measure(row.unit)));
    }
    table
}

fn entry(cell: &LedgerCell) -> Value {
    match cell {
        LedgerCell::Value(value) => (*value).into(),
        LedgerCell::Unmeasured(why) => Value::Missing(match why {
            Unmeasured::Off(_) => Missing::Off,
            Unmeasured::NotInVersion(_) => Missing::NotInVersion,
            Unmeasured::NotPermitted(_) => Missing::NotPermitted,
            Unmeasured::NoEvidence(_) => Missing::NoEvidence,
        }),
    }
}

const LATENCY_COLUMNS: &[Heading] = &[
    text("operation", "operation or event", "An operation or a wait event."),
    total("count", "count", Measure::Count, "Their number."),
    mean_of("count", "ns_mean", "mean", NS, "The mean."),
    quantile(5_000, "ns_p50", "p50", "Half take no longer."),
    quantile(9_900, "ns_p99", "p99", "99 % take no longer."),
    quantile(9_990, "ns_p999", "p99.9", "99.9 % take no longer."),
    column("ns_max", "max", NS, Merge::Greatest, "The longest."),
    quantile(9_000, "ns_p90", "p90", "90 % take no longer."),
    quantile(9_999, "ns_p9999", "p99.99", "99.99 % take no longer."),
];

/// Column of a quantile, which is given in ten-thousandths: 9,990 is p99.9.
const fn quantile(
    share: u16,
    key: &'static str,
    heading: &'static str,
    doc: &'static str,
) -> Heading {
    column(key, heading, NS, Merge::Quantile(share), doc)
}

/// Table of latencies. A quantile that has too few samples to be bounded is a dash.
pub fn latencies(findings: &RunFindings) -> Table {
    let mut table = Table::new("latencies", "Latencies", LATENCY_COLUMNS);
    for row in &findings.latencies {
        let of = match row.role.as_str() {
            "" | "session" => row.name.clone(),
            role => format!("{} ({role})", row.name),
        };
        let quantiles =
            row.quantiles().map(|(_, known)| happened(known.map(Estimate::without_interval)));
        let [p50, p90, p99, p999, p9999] = quantiles;
        let (count, mean, max) = (row.count, row.ns_mean, row.ns_max);
        let cells = row![of, count, mean, p50, p99, p999, max, p90, p9999];
        table.push(cells.spread(row.spread.clone()));
    }
    table.on_screen(LATENCIES)
}

const LITTLES_LAW: &[Heading] = &[
    text("what", "what", "What is counted."),
    count("sessions", "sessions", "Sessions."),
    count("per_s", "per second", "Completions a second."),
    column(
        "expected_ns",
        "expected",
        NS,
        Merge::Per { part: "sessions", within: "what" },
        "Sessions ÷ completions a second, less the think time.",
    ),
    mean_of("per_s", "measured_ns", "measured", NS, "Mean latency as measured."),
    quotient(
        "measured_ns",
        "expected_ns",
        "ratio",
        "÷ expected",
        Measure::Share,
        "Measured ÷ expected.",
    ),
];

pub fn littles_law(findings: &RunFindings) -> Table {
    let title = "Little's law: sessions ÷ rate = latency";
    let row = |law: &LittlesLaw| {
        let [expected, measured, ratio] = [law.expected_ns, law.measured_ns, law.ratio].map(finite);
        row![law.what, law.sessions, law.per_s, expected, measured, ratio]
    };
    Table::new("littles-law", title, LITTLES_LAW).with(findings.littles_law.iter().map(row))
}

const EFFICIENCY: &[Heading] = &[
    text("figure", "figure", "Figure of this run."),
    text("calibrated_figure", "calibrated figure", "Figure of the calibration."),
    text("calibration", "calibration", "The calibration."),
    of_row(Merge::Never, "calibrated", "calibrated", "What was calibrated."),
    ratio("ratio", "run ÷ calibration", "This run ÷ the calibration."),
];

pub fn efficiency(findings: &RunFindings) -> Table {
    let title = "Against the calibration of this path";
    let row = |row: &Efficiency| {
        let cells =
            row![row.figure, row.calibrated_figure, &row.calibration, row.calibrated, row.ratio];
        cells.of(measure(&row.unit))
    };
    Table::new("efficiency", title, EFFICIENCY).with(findings.efficiency.iter().map(row))
}

/// Describes Little's law, and efficiency compared with a calibration, for a terminal.
pub fn sentences(findings: &RunFindings) -> Vec<String> {
    let law = findings.littles_law.iter().map(|law| {
        format!(
            "Little's law: {} sessions ÷ {} {}/s = {}, measured {} ({})",
            law.sessions,
            three_digits(law.per_s),
            law.what,
            format_ns(law.expected_ns),
            format_ns(law.measured_ns),
            percent(law.ratio)
        )
    });
    let parts: Vec<String> = findings.efficiency.iter().map(against).collect();
    let calibration = findings
        .efficiency
        .first()
        .map(|first| format!("against calibration {}: {}", first.calibration, parts.join(" · ")));
    law.chain(calibration).collect()
}

/// Formats a row such as `reads of all disks 97 % of its most random reads a second` or `median
/// single-block read 1.3×`.
fn against(row: &Efficiency) -> String {
    let title = begun_small(&row.title);
    if row.unit == "ns" {
        return format!("{title} {}", format::value(&row.ratio.value.into(), Measure::Ratio));
    }
    let calibrated = begun_small(&row.calibrated_title);
    format!("{title} {} of its {calibrated}", percent(row.ratio.value))
}

/// Returns a title with its first letter in lower case, for use within a sentence.
fn begun_small(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
