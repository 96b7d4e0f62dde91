//! The tables of a run.

use blockstone_base::Estimate;
use blockstone_base::column::Unmeasured;
use blockstone_base::table::{Measure, Missing, Row, Rows as _, Table, Value, happened};
use blockstone_base::units::{format_ns, three_digits};
use blockstone_judge::RunFindings;
use blockstone_judge::run::{
    DbTime, Efficiency, LedgerCell, LedgerRow as Account, LittlesLaw, Transfer, Transfers, Wait,
    WaitClass,
};
use blockstone_record::manifest::Stop;
use blockstone_report::format::{self, percent};

use super::rows::{
    BackgroundRow, ClassRow, EfficiencyRow, EventRow, LatencyRow, LedgerRow, LittlesLawRow,
    PlanRow, ProfileRow, ROLES, Summary, UnmeasuredRow,
};
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

/// Returns a ratio as a value, which is missing if the ratio is not finite.
fn finite(number: f64) -> Value {
    happened(Some(number).filter(|number| number.is_finite()))
}

/// Returns the measure for this unit.
pub fn measure(unit: &str) -> Measure {
    match unit {
        "ns" => Measure::Nanoseconds,
        "bytes" => Measure::Bytes,
        unit if unit.starts_with("of ") => Measure::Share,
        _ => Measure::Count,
    }
}

pub fn summary(findings: &RunFindings) -> Table {
    let db_time = findings.db_time.as_ref();
    let ns = |of: fn(&DbTime) -> u64| db_time.map(of).into();
    Summary::table(
        "run",
        "Run",
        [Summary {
            window: findings.label.clone(),
            window_ns: findings.window_ns,
            sessions: findings.sessions,
            stop: happened(findings.stop.map(Stop::words)),
            db_time_ns: ns(|it| it.db_time_ns),
            cpu_ns: ns(|it| it.cpu_ns),
            run_queue_ns: ns(|it| it.run_queue_ns),
            waits_ns: ns(|it| it.waits_ns),
            network_ns: db_time.and_then(|it| it.network_ns).into(),
            blocked_ns: db_time.and_then(|it| it.blocked_ns).into(),
            remainder_ns: db_time.map(|it| it.remainder_ns).into(),
            remainder_ratio: happened(db_time.map(|it| it.remainder_ratio)),
            average_active_sessions: db_time.map(|it| it.average_active_sessions).into(),
            session_cpu_ns: ns(|it| it.session_cpu_ns),
            session_run_queue_ns: ns(|it| it.session_run_queue_ns),
            cpu_in_waits_ns: ns(|it| it.cpu_in_waits_ns),
            run_queue_in_waits_ns: ns(|it| it.run_queue_in_waits_ns),
            background_cpu_ns: ns(|it| it.background_cpu_ns),
            retries: happened(findings.transactions.as_ref().and_then(|it| it.retries)),
        }],
    )
}

/// Activity of the database, per second and per transaction.
pub fn profile(findings: &RunFindings) -> Table {
    let mut table = Table::new("load-profile", "Load profile", ProfileRow::COLUMNS);
    let rows = &findings.load_profile;
    let first = PROFILE.iter().filter_map(|name| rows.iter().find(|row| row.name == *name));
    let rest = rows.iter().filter(|row| !PROFILE.contains(&row.name));
    let shown = first.clone().count();
    for row in first.chain(rest) {
        let per_transaction = happened(row.per_transaction);
        let cells = ProfileRow { statistic: row.title, per_s: row.per_s, per_transaction };
        table.push(Row::from(cells).of(measure(row.unit)));
    }
    table.on_screen(shown)
}

/// How the sessions spent their time: all of it, the unaccounted part, then events by descending
/// time.
pub fn database_time(findings: &RunFindings) -> Table {
    let mut table = EventRow::table("database-time", "Database time", []);
    if let Some(db_time) = &findings.db_time {
        let lines = [
            ("database time", db_time.db_time_ns as f64, 1.0),
            ("remainder", db_time.remainder_ns, db_time.remainder_ratio),
        ];
        for (name, ns, ratio) in lines {
            table.push(EventRow {
                event: name.to_owned(),
                waits: Value::default(),
                time_ns: ns.into(),
                wait_ns_mean: Value::default(),
                db_time_ratio: finite(ratio),
                average_active: ns / findings.window_ns.max(1) as f64,
                wait_class: "",
            });
        }
        table.notes.push(processor(db_time));
        if db_time.blocked_ns.is_some_and(|ns| ns > 0) {
            table.notes.push(SEEN.to_owned());
        }
    }
    for wait in listed(findings).filter(|wait| wait.db_time_ratio.is_some()) {
        table.push(EventRow {
            event: wait.event.clone(),
            waits: waits(wait),
            time_ns: wait.time_ns.into(),
            wait_ns_mean: happened(wait.ns_mean),
            db_time_ratio: wait.db_time_ratio.map_or_else(Value::default, finite),
            average_active: wait.average_active,
            wait_class: wait.class,
        });
    }
    table.on_screen(WAITS)
}

/// Returns the waits that took time. For a part of the run it also returns those that did not,
/// since they may have taken time in another part.
fn listed(findings: &RunFindings) -> impl Iterator<Item = &Wait> {
    findings.waits.iter().filter(|wait| wait.time_ns > 0 || findings.is_part)
}

fn waits(wait: &Wait) -> Value {
    happened((wait.count > 0).then_some(wait.count))
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
    let waits = listed(findings).filter(|wait| wait.db_time_ratio.is_none());
    let row = |wait: &Wait| BackgroundRow {
        role: wait.role.clone(),
        event: wait.event.clone(),
        waits: self::waits(wait),
        time_ns: wait.time_ns.into(),
        wait_ns_mean: happened(wait.ns_mean),
        average_active: wait.average_active,
        wait_class: wait.class,
    };
    BackgroundRow::table("background-events", "Events of background processes", waits.map(row))
}

const SEEN: &str = "seen by the kernel: blocked in a system call where the server has no event, \
                    from samples of its threads less all waits that it reports";

pub fn classes(findings: &RunFindings) -> Table {
    let row = |class: &WaitClass| ClassRow {
        wait_class: class.class,
        time_ns: class.time_ns,
        db_time_ratio: finite(class.db_time_ratio),
        average_active_sessions: class.average_active_sessions,
    };
    let title = "Average active sessions by wait class";
    ClassRow::table("classes", title, findings.classes.iter().map(row))
}

/// Table of requests in both directions.
fn transfers(mut table: Table, all: &[Transfers]) -> Table {
    let cells = |one: &Transfer| {
        let iops = if one.ios == 0 { Value::Number(0.0) } else { one.iops.into() };
        [iops, happened(one.bytes_mean), happened(one.service_ns_mean)]
    };
    for one in all {
        let Transfers { name, reads, writes } = one;
        let amounts = [reads.ios, writes.ios, reads.bytes, writes.bytes].map(Value::from);
        let name = [name.as_str().into()];
        table.push([&name[..], &cells(reads), &cells(writes), &amounts].concat());
    }
    table
}

pub fn roles(findings: &RunFindings) -> Table {
    let moved = |role: &&Transfers| role.reads.ios + role.writes.ios > 0 || findings.is_part;
    let roles: Vec<Transfers> = findings.roles.iter().filter(moved).cloned().collect();
    transfers(Table::new("io-roles", "I/O by role", ROLES), &roles)
}

pub fn disks(findings: &RunFindings) -> Table {
    let table = Table::new("io-disks", "I/O by disk", super::rows::DISKS);
    transfers(table, &findings.disks).on_screen(DISKS)
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

/// Table with the three accounts of a window side by side.
pub fn ledger(findings: &RunFindings) -> Table {
    let title = "Ledger: claimed, charged, moved";
    let mut table = Table::new("ledger", title, LedgerRow::COLUMNS);
    for row in &findings.ledger {
        let share = match (row.claimed.value(), row.process.value()) {
            (Some(claimed), Some(process)) if claimed > 0 => Some(process as f64 / claimed as f64),
            _ => None,
        };
        let cells = LedgerRow {
            what: row.what,
            claimed: entry(&row.claimed),
            process: entry(&row.process),
            device: entry(&row.device),
            process_share: happened(share),
        };
        table.push(Row::from(cells).of(measure(row.unit)));
    }
    table.notes.extend(missing(findings).map(|it| format!("{}: {}", it.what, it.why)));
    table.notes.extend(planned(findings).map(|it| format!("{} by {}", it.what, it.plan)));
    table
}

fn missing(findings: &RunFindings) -> impl Iterator<Item = UnmeasuredRow> {
    findings.ledger.iter().flat_map(|row| {
        let accounts =
            [("claimed", &row.claimed), ("process", &row.process), ("device", &row.device)];
        accounts.into_iter().filter_map(move |(account, cell)| match cell {
            LedgerCell::Unmeasured(why) => {
                Some(UnmeasuredRow { what: format!("{} {account}", row.what), why: reason(why) })
            }
            LedgerCell::Value(_) => None,
        })
    })
}

fn planned(findings: &RunFindings) -> impl Iterator<Item = PlanRow> {
    let row = |row: &Account| Some(PlanRow { what: row.what, plan: row.plan.clone()? });
    findings.ledger.iter().filter_map(row)
}

/// Tables of the reasons why accounts are missing, and of the plans of statements.
pub fn ledger_details(findings: &RunFindings) -> [Table; 2] {
    [
        UnmeasuredRow::table("ledger-unmeasured", "Accounts that are missing", missing(findings)),
        PlanRow::table("plans", "Plans of the statements", planned(findings)),
    ]
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

/// Table of latencies. A quantile that has too few samples to be bounded is a dash.
pub fn latencies(findings: &RunFindings) -> Table {
    let mut table = Table::new("latencies", "Latencies", LatencyRow::COLUMNS);
    for row in &findings.latencies {
        let of = match row.role.as_str() {
            "" | "session" => row.name.clone(),
            role => format!("{} ({role})", row.name),
        };
        let [ns_p50, ns_p90, ns_p99, ns_p999, ns_p9999] =
            row.quantiles().map(|(_, known)| happened(known));
        let cells = LatencyRow {
            operation: of,
            count: row.count,
            ns_mean: row.ns_mean,
            ns_p50,
            ns_p99,
            ns_p999,
            ns_max: row.ns_max,
            ns_p90,
            ns_p9999,
            unfinished: row.unfinished,
        };
        table.push(Row::from(cells).spread(row.spread.clone()));
    }
    table.on_screen(LATENCIES)
}

pub fn littles_law(findings: &RunFindings) -> Table {
    let title = "Little's law: sessions ÷ rate = latency";
    let row = |law: &LittlesLaw| {
        let [expected, measured, ratio] = [law.expected_ns, law.measured_ns, law.ratio].map(finite);
        LittlesLawRow {
            what: law.what,
            sessions: law.sessions,
            per_s: law.per_s,
            expected_ns: expected,
            measured_ns: measured,
            ratio,
        }
    };
    LittlesLawRow::table("littles-law", title, findings.littles_law.iter().map(row))
}

pub fn efficiency(findings: &RunFindings) -> Table {
    let title = "Against the calibration of this path";
    let row = |row: &Efficiency| {
        let cells = EfficiencyRow {
            figure: row.figure,
            calibrated_figure: row.calibrated_figure,
            calibration: row.calibration.clone(),
            calibrated: row.calibrated,
            ratio: row.ratio,
        };
        Row::from(cells).of(measure(&row.unit))
    };
    let rows = findings.efficiency.iter().map(row);
    Table::new("efficiency", title, EfficiencyRow::COLUMNS).with(rows)
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
