//! Tables and documents of runs, however they were counted.

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Row, Table, bytes, count, flow, happened, level, ratio, share, text, time,
};
use blockstone_base::verdict::Verdict;
use blockstone_offload::{Assigned, Ledger, Share};
use schemars::JsonSchema;
use serde::Serialize;

use super::words::{digits, gib};

const SECOND_NS: f64 = 1e9;
const GB: f64 = 1e9;
/// With more runs than this, each is compared with the slowest only.
const PAIRS_OF_RUNS_MAX: usize = 6;
/// Relative difference in bytes up to which two runs did the same work.
const ALIKE: f64 = 0.05;

const LEDGER: &[Heading] = &[
    text("run", "run", "The run."),
    text("line", "bytes", "What the bytes are, from the plan to the client."),
    bytes("bytes", "", "Their number."),
    share("share", "of the first", "Share of the first line of the run."),
];

const RUNS: &[Heading] = &[
    text("run", "run", "The run."),
    time("elapsed_ns", "time", "Between its first and last snapshot."),
    level("hosts", "hosts", Measure::Count, "Instances that took bytes."),
    bytes("disk_bytes", "read", "What the plan asked of the storage."),
    bytes("eligible_bytes", "eligible", "What the storage was allowed to filter."),
    bytes("returned_bytes", "returned", "What it returned of that."),
    bytes("wire_bytes", "wire", "Between storage and hosts."),
    share("saved_of_all", "saved of all", "(eligible − returned) ÷ read."),
    flow("read_bytes_per_s", "read/s", "Read a second."),
    flow("wire_bytes_per_s", "wire/s", "On the wire a second."),
];

const USUAL: &[Heading] = &[
    text("run", "run", "The run."),
    share("returned_of_eligible", "returned ÷ eligible", "Struck through where it misleads."),
];

const COMPARED: &[Heading] = &[
    text("run", "run", "The faster run."),
    text("than", "than", "The slower run."),
    ratio("times_as_fast", "as fast", "Time of the slower ÷ time of the faster run."),
    ratio("times_hosts", "hosts", "Hosts of the faster ÷ hosts of the slower run."),
    share(
        "of_linear",
        "of linear",
        "Times as fast ÷ times as many hosts, of runs that return about the same share.",
    ),
];

const LINKS: &[Heading] = &[
    text("run", "run", "The run."),
    share("link_share", "links used", "Rate of the wire ÷ what the links of all hosts carry."),
    time("link_ns", "at their rate", "Time in which these links carry the bytes of the wire."),
    time("elapsed_ns", "time", "What the run took."),
];

const CPU: &[Heading] = &[
    text("run", "run", "The run."),
    count("host_s_per_gb", "hosts", "Seconds of processors of the hosts for each GB read."),
    count("cell_s_per_gb", "storage", "Seconds of processors of the storage for each GB read."),
];

const REFUSALS: &[Heading] = &[
    text("run", "run", "The run."),
    text("reason", "not filtered because", "By the name of the counter."),
    bytes("bytes", "bytes", "Sent unfiltered; where bytes are counted."),
    count("events", "events", "Sessions or rows; where these are counted."),
];

const DIGITS: &[Heading] = &[
    text("run", "run", "The run."),
    text("figure", "figure", "What it is."),
    text("value", "value", "With five digits."),
];

const ASSIGNED: &[Heading] = &[
    text("run", "run", "The run."),
    text("assignment", "assignment", "In which no counter falls; the chosen one is A."),
    text("instance", "instance", "As it is called before the run."),
    text("listed_as", "listed as", "As the row is called that continues it."),
    text("read", "read", "In GiB."),
    text("wire", "wire", "In GiB."),
    text("wire_of_eligible", "wire ÷ eligible", "Its selectivity."),
    ratio("spread", "spread", "Greatest ÷ least selectivity of the assignment."),
];

/// A run, as scripts see it.
#[derive(Serialize, JsonSchema)]
pub struct RunKeys {
    pub name: String,
    /// Null if the run was not timed.
    pub seconds: Option<f64>,
    /// Number of hosts that received rows.
    pub hosts: Option<u32>,
    /// Number of storage servers that read.
    pub cells: Option<u32>,
    /// Bytes that the plan requested from the storage.
    pub disk_bytes: u64,
    /// Bytes that the storage was allowed to filter.
    pub eligible_bytes: Option<u64>,
    /// Bytes returned; all bytes on the wire if those returned are not counted separately.
    pub returned_bytes: Option<u64>,
    pub wire_bytes: Option<u64>,
    pub returned_of_eligible: Option<f64>,
    /// Share of all bytes read that was sent over the wire for reads.
    pub returned_of_read: Option<f64>,
    /// (eligible − returned) ÷ all bytes read.
    pub saved_of_all: Option<f64>,
    /// (wire − (read − eligible + returned)) ÷ written; null if the arithmetic does not allow it.
    pub mirror_copies: Option<f64>,
    /// Processor time of the hosts.
    pub host_cpu_s: Option<f64>,
    /// Processor time of the storage.
    pub cell_cpu_s: Option<f64>,
    /// Rules that condemn `returned_of_eligible`.
    pub condemned_by: Vec<String>,
}

impl RunKeys {
    pub fn of(ledger: &Ledger, verdicts: &[Verdict]) -> Self {
        Self {
            name: ledger.name.clone(),
            seconds: ledger.seconds,
            hosts: ledger.hosts,
            cells: ledger.cells,
            disk_bytes: ledger.read_bytes,
            eligible_bytes: ledger.eligible_bytes,
            returned_bytes: ledger.returned_bytes,
            wire_bytes: ledger.wire_bytes,
            returned_of_eligible: ledger.returned_of_eligible(),
            returned_of_read: ledger.returned_of_read(),
            saved_of_all: ledger.saved_of_all(),
            mirror_copies: ledger.copies().measured(),
            host_cpu_s: ledger.host_cpu_s,
            cell_cpu_s: ledger.cell_cpu_s,
            condemned_by: condemned(ledger, verdicts),
        }
    }
}

/// Returns the rules that condemn the ratio of this run.
fn condemned(ledger: &Ledger, verdicts: &[Verdict]) -> Vec<String> {
    let condemns =
        |verdict: &&Verdict| verdict.condemns() && verdict.concerns.contains(&ledger.name);
    let has_ratio = ledger.returned_of_eligible().is_some();
    let rules = verdicts.iter().filter(condemns).map(|verdict| verdict.rule.clone());
    rules.filter(|_| has_ratio).collect()
}

/// Returns the known lines of a ledger in their fixed order.
pub fn lines(ledger: &Ledger) -> Vec<(String, u64)> {
    let mut lines = vec![("asked by the plan".to_owned(), Some(ledger.read_bytes))];
    for (how, bytes) in &ledger.skipped {
        lines.push((format!("skipped: {how}"), Some(*bytes)));
    }
    let skipped = ledger.skipped_bytes();
    let read = ledger.read_bytes.saturating_sub(skipped);
    let flash = ledger.optimized_bytes.map(|bytes| bytes.saturating_sub(skipped));
    let disk = ledger.optimized_bytes.map(|bytes| ledger.read_bytes.saturating_sub(bytes));
    let writes = ledger.writes_and_rest();
    let mut add = |line: &str, bytes| lines.push((line.to_owned(), bytes));
    add("read at the storage", Some(read));
    add("  from flash", flash);
    add("  from disk", disk);
    add("examined by the storage", ledger.examined_bytes());
    add("sent unfiltered", ledger.unfiltered_bytes());
    add("not eligible", ledger.not_eligible_bytes());
    add("returned", ledger.returned_bytes.filter(|_| !ledger.is_returned_all_wire));
    add("on the wire", ledger.wire_bytes);
    add("  writes with their copies", writes.map(|(writes, _)| writes));
    add("  rest", writes.map(|(_, rest)| rest));
    add("to the client", ledger.client_bytes);
    lines.into_iter().filter_map(|(line, bytes)| Some((line, bytes?))).collect()
}

pub fn ledger(ledgers: &[Ledger]) -> Table {
    let rows = ledgers.iter().flat_map(|ledger| {
        let first = ledger.read_bytes;
        lines(ledger).into_iter().map(move |(line, bytes)| {
            let share = (first > 0).then(|| bytes as f64 / first as f64);
            row![ledger.name.clone(), line.trim(), bytes, happened(share)]
        })
    });
    Table::new("ledger", "Where the bytes went", LEDGER).with(rows.collect::<Vec<_>>())
}

pub fn runs(ledgers: &[Ledger]) -> Table {
    let row = |ledger: &Ledger| {
        row![
            ledger.name.clone(),
            ledger.seconds.map(|seconds| seconds * SECOND_NS),
            ledger.hosts,
            ledger.read_bytes,
            ledger.eligible_bytes,
            ledger.returned_bytes,
            ledger.wire_bytes,
            ledger.saved_of_all(),
            ledger.read_bytes_per_s(),
            ledger.wire_bytes_per_s(),
        ]
    };
    Table::new("runs", "Runs", RUNS).with(ledgers.iter().map(row))
}

/// Shows the ratio that vendors of such storage publish.
pub fn usual(ledgers: &[Ledger], verdicts: &[Verdict]) -> Table {
    let row = |ledger: &Ledger| {
        let row = row![ledger.name.clone(), ledger.returned_of_eligible()?];
        Some(row.condemned_by(&condemned(ledger, verdicts)))
    };
    Table::new("usual", "Returned ÷ eligible, as it is usually printed", USUAL)
        .about("It says how well the storage filters what it may filter, not what that saves.")
        .with(ledgers.iter().filter_map(row).collect::<Vec<_>>())
}

/// A faster run and a slower one.
pub struct Pair<'a> {
    pub faster: &'a Ledger,
    pub slower: &'a Ledger,
    pub times: f64,
    pub hosts: Option<f64>,
}

impl Pair<'_> {
    /// Speedup as a share of that of linear scaling with hosts, if both runs return about the same
    /// share; `None` unless the faster run has more hosts.
    pub fn of_linear(&self) -> Option<f64> {
        let shares = (self.faster.returned_of_read()?, self.slower.returned_of_read()?);
        let is_alike = (shares.0 / shares.1 - 1.0).abs() <= ALIKE;
        self.hosts.filter(|hosts| is_alike && *hosts > 1.0).map(|hosts| self.times / hosts)
    }
}

/// Pairs each run with every slower one that read about as much, or only with the slowest if there
/// are many.
pub fn pairs(ledgers: &[Ledger]) -> Vec<Pair<'_>> {
    let seconds = |ledger: &Ledger| ledger.seconds.filter(|it| *it > 0.0);
    let mut timed: Vec<(&Ledger, f64)> =
        ledgers.iter().filter_map(|ledger| Some((ledger, seconds(ledger)?))).collect();
    timed.sort_by(|a, b| b.1.total_cmp(&a.1));
    let slower = if timed.len() > PAIRS_OF_RUNS_MAX { 1 } else { timed.len() };
    let mut pairs = Vec::new();
    for (at, &(slower, slow)) in timed.iter().enumerate().take(slower) {
        let read_alike = |other: &Ledger| {
            let reads = (other.read_bytes as f64, slower.read_bytes as f64);
            (reads.0 - reads.1).abs() <= ALIKE * reads.0.max(reads.1)
        };
        for &(faster, fast) in timed[at + 1..].iter().filter(|(other, _)| read_alike(other)) {
            let hosts = faster.hosts.zip(slower.hosts).filter(|(_, slower)| *slower > 0);
            let hosts = hosts.map(|(faster, slower)| f64::from(faster) / f64::from(slower));
            pairs.push(Pair { faster, slower, times: slow / fast, hosts });
        }
    }
    pairs
}

pub fn compared(ledgers: &[Ledger]) -> Table {
    let row = |pair: &Pair<'_>| {
        row![
            pair.faster.name.clone(),
            pair.slower.name.clone(),
            pair.times,
            pair.hosts,
            happened(pair.of_linear()),
        ]
    };
    Table::new("compared", "Run against run", COMPARED).with(pairs(ledgers).iter().map(row))
}

/// Shows what the links of the hosts could have carried.
pub fn links(ledgers: &[Ledger], link_bytes_per_s: f64) -> Table {
    let row = |ledger: &Ledger| {
        let wire = ledger.wire_bytes? as f64;
        let hosts = ledger.hosts.filter(|hosts| *hosts > 0);
        let links = hosts.map(|hosts| link_bytes_per_s * f64::from(hosts));
        Some(row![
            ledger.name.clone(),
            links.and_then(|links| Some(ledger.wire_bytes_per_s()? / links)),
            links.map(|links| wire / links * SECOND_NS),
            ledger.seconds.map(|seconds| seconds * SECOND_NS),
        ])
    };
    Table::new("links", "Links of the hosts", LINKS)
        .with(ledgers.iter().filter_map(row).collect::<Vec<Row>>())
}

pub fn cpu(ledgers: &[Ledger]) -> Table {
    let row = |ledger: &Ledger| {
        ledger.host_cpu_s.or(ledger.cell_cpu_s)?;
        let of = |seconds: Option<f64>| Some(seconds? / (ledger.read_bytes as f64 / GB));
        let is_read = ledger.read_bytes > 0;
        is_read.then(|| row![ledger.name.clone(), of(ledger.host_cpu_s), of(ledger.cell_cpu_s)])
    };
    Table::new("cpu", "Seconds of CPU for each GB read", CPU)
        .with(ledgers.iter().filter_map(row).collect::<Vec<Row>>())
}

pub fn refusals(ledgers: &[Ledger]) -> Table {
    let rows = ledgers.iter().flat_map(|ledger| {
        ledger.refusals.iter().map(|refusal| {
            let bytes = happened(refusal.bytes);
            row![ledger.name.clone(), refusal.reason.clone(), bytes, happened(refusal.count)]
        })
    });
    Table::new("refusals", "Not filtered, by reason", REFUSALS).with(rows.collect::<Vec<_>>())
}

/// Shows figures as publications print them.
pub fn with_digits(ledgers: &[Ledger]) -> Table {
    const MIB: f64 = 1_048_576.0;
    const GIB: f64 = 1024.0 * MIB;
    let mut table = Table::new("digits", "The same with five digits", DIGITS);
    let percent = |share: Option<f64>| share.map(|it| format!("{} %", digits(it * 100.0)));
    for ledger in ledgers {
        let of_read = |bytes: Option<u64>| {
            let share = bytes? as f64 / ledger.read_bytes as f64;
            percent((ledger.read_bytes > 0).then_some(share))
        };
        let rate = |rate: Option<f64>| {
            let [mib, gib, mb] = [MIB, GIB, 1e6].map(|unit| rate.map(|it| digits(it / unit)));
            Some(format!("{} MiB/s = {} GiB/s = {} MB/s", mib?, gib?, mb?))
        };
        let per_host = ledger
            .hosts
            .filter(|hosts| *hosts > 1)
            .and_then(|hosts| rate(Some(ledger.wire_bytes_per_s()? / f64::from(hosts))));
        let written = ledger.copies().measured();
        let figures = [
            ("read", Some(size(ledger.read_bytes))),
            ("eligible", ledger.eligible_bytes.map(size)),
            ("not eligible", ledger.not_eligible_bytes().map(size)),
            ("on the wire", ledger.wire_bytes.map(size)),
            ("eligible of all", percent(ledger.eligible_of_all())),
            ("returned ÷ eligible", percent(ledger.returned_of_eligible())),
            ("saved of all", percent(ledger.saved_of_all())),
            ("flash and skipped of all", of_read(ledger.optimized_bytes)),
            ("sent unfiltered of eligible", percent(ledger.unfiltered_of_eligible())),
            ("copies of writes", written.map(digits)),
            ("read rate", rate(ledger.read_bytes_per_s())),
            ("wire rate", rate(ledger.wire_bytes_per_s())),
            ("wire rate of each host", per_host),
        ];
        for (figure, value) in figures {
            let Some(value) = value else { continue };
            table.push(row![ledger.name.clone(), figure, value]);
        }
        for (how, bytes) in &ledger.skipped {
            let figure = format!("skipped of all, {how}");
            table.push(row![ledger.name.clone(), figure, of_read(Some(*bytes))]);
        }
    }
    for pair in pairs(ledgers) {
        let name = pair.faster.name.clone();
        let figure = format!("as fast as {}", pair.slower.name);
        table.push(row![name.clone(), figure, format!("{}×", digits(pair.times))]);
        if let Some(linear) = percent(pair.of_linear()) {
            let figure = format!("of linear against {}", pair.slower.name);
            table.push(row![name, figure, linear]);
        }
    }
    table
}

/// Formats a size in binary and in decimal units.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["", "K", "M", "G", "T"];
    let of = |step: f64, suffix: &str| {
        let (mut value, mut at) = (bytes as f64, 0);
        while value >= step && at + 1 < UNITS.len() {
            (value, at) = (value / step, at + 1);
        }
        let infix = if at == 0 { "" } else { suffix };
        format!("{} {}{infix}B", digits(value), UNITS[at])
    };
    format!("{} = {}", of(1024.0, "i"), of(1000.0, ""))
}

/// Shows how instances were assigned, and how else they could be.
pub fn assigned(all: &[Assigned]) -> Table {
    let mut table = Table::new("assignments", "Instances that changed places", ASSIGNED);
    for assigned in all {
        let mut add = |assignment: &str, shares: &[Share], spread: Option<f64>| {
            for share in shares {
                table.push(row![
                    assigned.run.clone(),
                    assignment,
                    share.instance.clone(),
                    share.listed_as.clone(),
                    gib(share.read_bytes),
                    gib(share.wire_bytes),
                    format!("{:.4} %", share.wire_of_eligible * 100.0),
                    happened(spread.filter(|it| it.is_finite())),
                ]);
            }
        };
        let letters = ["A", "B", "C", "D"].iter().zip(&assigned.candidates);
        for (letter, candidate) in letters {
            add(letter, &candidate.shares, Some(candidate.spread));
        }
        add("as listed", &assigned.listed, None);
    }
    table
}
