//! One terminal screen of a workload run: load profile, database time, I/O by role, latencies,
//! verdicts.

pub(crate) mod ledger;
pub(crate) mod noise;
pub(crate) mod scan;

use blockstone_base::Estimate;
use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_judge::RunFindings;
use blockstone_judge::run::{DbTime, Efficiency, Transfer, Transfers};
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, Manifest};
use blockstone_record::parameters::RunParameters;

use super::columns::{Columns, wrap};
use super::{Style, identity, missing, places, screen, verdicts};
use crate::format::{self, optional, percent};

/// The rows of the load profile that fit a screen; the others stand in the report.
const PROFILE: [&str; 11] = [
    "db_time_ns",
    "db_cpu_ns",
    "redo_bytes",
    "logical_reads",
    "physical_reads",
    "physical_writes",
    "read_bytes",
    "write_bytes",
    "redo_writes",
    "executes",
    "transactions",
];
/// Events a screen has room for.
const TOP_WAITS: usize = 8;
/// Lines of latencies it has room for.
const TOP_LATENCIES: usize = 7;
/// With more disks, only their range is shown.
const DISKS: usize = 8;

/// Renders a run as one screen. The first line is the headline, or says that there is none.
pub fn render(recording: &Recording, findings: &RunFindings, style: &Style) -> String {
    let manifest = &recording.manifest;
    let mut top = vec![headline(manifest, findings, style)];
    top.extend(identity::lines(manifest, style));
    top.extend(wrap(&workload(manifest, findings), style.width, 0, 2).iter().map(|l| style.dim(l)));
    let end = [
        verdicts::lines(&findings.verdicts, findings.summary.len(), style),
        [missing(manifest, style), places(recording, style)].concat(),
    ];
    // A matrix is one screen by itself; what one of its points was in detail stands in the report.
    let middle = match (&findings.scan, &findings.noise) {
        (Some(scan), _) => vec![scan::lines(scan, style)],
        (None, noise) => vec![
            noise.as_ref().map(|noise| noise::lines(noise, style)).unwrap_or_default(),
            profile(findings, style),
            waits(findings, style),
            transfers(findings, style),
            ledger::lines(findings, style),
            latencies(findings, style),
            laws(findings, style),
        ],
    };
    screen([top].into_iter().chain(middle).chain(end).collect())
}

fn headline(manifest: &Manifest, findings: &RunFindings, style: &Style) -> String {
    let path = &manifest.target.path;
    let matrix = findings.scan.as_ref().and_then(|scan| scan::headline(path, scan, style));
    if let Some(headline) = matrix {
        return headline.trim_end().to_owned();
    }
    let parts: Vec<String> = [
        ("read_iops", "reads/s"),
        ("write_iops", "writes/s"),
        ("commits_per_s", "commits/s"),
        ("physical_reads_per_cpu_s", "physical reads per CPU-second"),
    ]
    .iter()
    .filter_map(|(name, words)| Some((findings.figure(name)?, words)))
    // What the workload did not do is no headline.
    .filter(|(figure, _)| figure.estimate.samples > 0)
    .map(|(figure, words)| headline_part(figure, words, style))
    .collect();
    if parts.is_empty() {
        return style.warning(&format!("No headline: {path} was not measured that far"));
    }
    format!("{} {}", style.bold(&format!("{path}:")), parts.join(" · "))
}

fn headline_part(figure: &Figure, words: &str, style: &Style) -> String {
    let value = three_digits(figure.estimate.value);
    if figure.condemned_by.is_empty() {
        let interval = style.dim(&format::plus_minus(&figure.estimate));
        format!("{} {interval}", style.bold(&format!("{value} {words}"))).trim_end().to_owned()
    } else {
        style.struck(&format!("{value} {words}"))
    }
}

/// What was run, in a line.
pub(crate) fn workload(manifest: &Manifest, findings: &RunFindings) -> String {
    let run: RunParameters = manifest.parameters();
    let copies = run.redundancy.map(|copies| format!("redundancy {copies}"));
    let mut parts = vec![run.target.unwrap_or_else(|| "run".to_owned())];
    let disks = run.disks.map_or(0, |disks| disks.len());
    parts.extend((disks > 1).then(|| format!("{disks} disks")));
    if run.profile.as_deref() == Some("scan") {
        parts.extend(run.scan_bytes.map(|size| format!("one table of {size}")));
        parts.extend(run.scan_slots.map(|n| format!("{n} reads outstanding a session")));
        parts.extend(copies);
        parts.push(format!("windows of {}", format_ns(findings.window_ns as f64)));
        return parts.join(" · ");
    }
    parts.push(match (run.readers, run.writers) {
        (Some(readers), Some(writers)) => format!("{readers} readers, {writers} writers"),
        _ => format!(
            "{} sessions on {} schemas",
            findings.sessions,
            optional(run.schemas, |n| n.to_string())
        ),
    });
    parts.extend(run.work_unit.map(|rows| format!("{rows} blocks an operation")));
    parts.extend(run.update_pct.map(|n| format!("{n} % updates")));
    parts.extend(run.scan_pct.filter(|&n| n > 0).map(|n| format!("{n} % scans")));
    if let (Some(rows), Some(schemas), Some(Bytes(block))) =
        (run.rows_per_schema, run.schemas, run.block_bytes)
    {
        let rows = rows.saturating_mul(schemas.into());
        parts.push(Bytes(rows.saturating_mul(block)).to_string());
    }
    parts.extend(run.cache_bytes.map(|cache| format!("cache {cache}")));
    parts.extend(copies);
    parts.push(format!("window {}", format_ns(findings.window_ns as f64)));
    parts.join(" · ")
}

fn profile(findings: &RunFindings, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    columns.numbers(heading(style, &["load profile", "per second", "", "per transaction"]));
    let rows = findings.load_profile.iter().filter(|row| PROFILE.contains(&row.name));
    for row in rows.clone() {
        columns.numbers(vec![
            row.title.to_owned(),
            amount(row.per_s.value, row.unit),
            style.dim(&format::plus_minus(&row.per_s)),
            optional(row.per_transaction, |value| amount(value, row.unit)),
        ]);
    }
    if rows.count() == 0 { Vec::new() } else { columns.lines() }
}

/// `1.2 MiB`, `15.9 s`, `2,300`.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "ns" => format_ns(value),
        "bytes" => bytes(value),
        _ => three_digits(value),
    }
}

/// Bytes with three digits in decimal units, as rates are.
fn bytes(value: f64) -> String {
    let (scale, unit) = match value {
        v if v < 999.5 => (1.0, "B"),
        v if v < 999.5e3 => (1e3, "kB"),
        v if v < 999.5e6 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    format!("{} {unit}", three_digits(value / scale))
}

fn waits(findings: &RunFindings, style: &Style) -> Vec<String> {
    let Some(db_time) = &findings.db_time else { return Vec::new() };
    let mut columns = Columns::new(2);
    columns.numbers(heading(
        style,
        &["database time", "waits", "time", "mean", "% DB time", "sessions", "class"],
    ));
    let of_sessions = findings.waits.iter().filter(|w| w.db_time_ratio.is_some() && w.time_ns > 0);
    for wait in of_sessions.take(TOP_WAITS) {
        columns.numbers(vec![
            wait.event.clone(),
            if wait.count == 0 { String::new() } else { thousands(wait.count as i64) },
            format_ns(wait.time_ns as f64),
            wait.ns_mean.map(format_ns).unwrap_or_default(),
            optional(wait.db_time_ratio, percent),
            format!("{:.2}", wait.average_active),
            style.dim(wait.class),
        ]);
    }
    columns.numbers(vec![
        style.dim("remainder"),
        String::new(),
        format_ns(db_time.remainder_ns),
        String::new(),
        percent(db_time.remainder_ratio),
    ]);
    columns.numbers(vec![
        style.dim("database time"),
        String::new(),
        format_ns(db_time.db_time_ns as f64),
        String::new(),
        "100 %".to_owned(),
        format!("{:.2}", db_time.average_active_sessions),
    ]);
    let mut lines = columns.lines();
    let text = processor(db_time);
    lines.extend(wrap(&text, style.width, 2, 4).iter().map(|line| style.dim(line)));
    lines
}

/// What the processors gave, inside waits too: a wait for a read holds the processor time of the
/// system call.
fn processor(db_time: &DbTime) -> String {
    format!(
        "sessions: CPU {}, {} of it inside waits; run queue {}, {} inside waits · \
         background CPU {}",
        format_ns(db_time.session_cpu_ns as f64),
        format_ns(db_time.cpu_in_waits_ns as f64),
        format_ns(db_time.session_run_queue_ns as f64),
        format_ns(db_time.run_queue_in_waits_ns as f64),
        format_ns(db_time.background_cpu_ns as f64)
    )
}

fn transfers(findings: &RunFindings, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    let words = ["I/O by role", "reads/s", "size", "service", "writes/s", "size", "service"];
    columns.numbers(heading(style, &words));
    for role in findings.roles.iter().filter(|role| role.reads.ios + role.writes.ios > 0) {
        columns.numbers(transfer_cells(role));
    }
    let disks = &findings.disks;
    if disks.len() > 1 && disks.len() <= DISKS {
        columns.numbers(heading(style, &["I/O by disk"]));
        for disk in disks {
            columns.numbers(transfer_cells(disk));
        }
    }
    let mut lines = if findings.roles.is_empty() { Vec::new() } else { columns.lines() };
    if disks.len() > DISKS {
        lines.push(format!("  {} disks: {}", disks.len(), range_of_disks(disks)));
    }
    lines
}

fn transfer_cells(of: &Transfers) -> Vec<String> {
    let cells = |one: &Transfer| {
        [
            optional(one.iops, |iops| three_digits(iops.value)),
            one.bytes_mean.map(|size| format!("{:.1}K", size / 1024.0)).unwrap_or_default(),
            one.service_ns_mean.map(format_ns).unwrap_or_default(),
        ]
    };
    let mut row = vec![of.name.clone()];
    row.extend(cells(&of.reads));
    row.extend(cells(&of.writes));
    row
}

fn range_of_disks(disks: &[Transfers]) -> String {
    let range = |rate: fn(&Transfers) -> Option<Estimate>| {
        let mut rates: Vec<f64> = disks.iter().filter_map(rate).map(|iops| iops.value).collect();
        rates.sort_by(f64::total_cmp);
        let ends = rates.first().zip(rates.last());
        optional(ends, |(low, high)| format!("{} – {}", three_digits(*low), three_digits(*high)))
    };
    let (reads, writes) = (range(|disk| disk.reads.iops), range(|disk| disk.writes.iops));
    format!("{reads} reads/s and {writes} writes/s each")
}

fn latencies(findings: &RunFindings, style: &Style) -> Vec<String> {
    if findings.latencies.is_empty() {
        return Vec::new();
    }
    let mut columns = Columns::new(2);
    let words = ["latencies", "count", "mean", "p50", "p99", "p99.9", "p99.99", "max"];
    columns.numbers(heading(style, &words));
    for row in findings.latencies.iter().take(TOP_LATENCIES) {
        let of = match row.role.as_str() {
            "" | "session" => row.name.clone(),
            role => format!("{} ({role})", row.name),
        };
        let [p50, _, p99, p999, p9999] = row.quantiles();
        let mut cells = vec![of, thousands(row.count as i64), format_ns(row.ns_mean)];
        let told = |(_, ns)| optional(ns, |ns: Estimate| format_ns(ns.value));
        cells.extend([p50, p99, p999, p9999].map(told));
        cells.push(format_ns(row.ns_max as f64));
        columns.numbers(cells);
    }
    columns.lines()
}

/// Little's law, and efficiency against a calibration.
fn laws(findings: &RunFindings, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for law in &findings.littles_law {
        let text = format!(
            "Little's law: {} sessions ÷ {} {}/s = {}, measured {} ({})",
            law.sessions,
            three_digits(law.per_s),
            law.what,
            format_ns(law.expected_ns),
            format_ns(law.measured_ns),
            percent(law.ratio)
        );
        lines.extend(wrap(&text, style.width, 2, 4));
    }
    let parts: Vec<String> = findings.efficiency.iter().map(efficiency).collect();
    if let Some(first) = findings.efficiency.first() {
        let text = format!("against calibration {}: {}", first.calibration, parts.join(" · "));
        lines.extend(wrap(&text, style.width, 2, 4));
    }
    lines
}

/// `hardware_read_iops 97 % of max_iops`, `read_latency_ns_p50 1.3×`.
fn efficiency(row: &Efficiency) -> String {
    if row.unit == "ns" {
        return format!("{} {}×", row.figure, three_digits(row.ratio.value));
    }
    format!("{} {} of {}", row.figure, percent(row.ratio.value), row.calibrated_figure)
}

fn heading(style: &Style, words: &[&str]) -> Vec<String> {
    words.iter().map(|word| style.dim(word)).collect()
}
