//! Tables of runs, however they were counted.

use blockstone_base::table::{Row, Rows as _, Table, happened};
use blockstone_base::verdict::Verdict;
use blockstone_offload::{Assigned, Ledger, Share};

use super::rows::{
    AssignedRow, ComparedRow, CpuRow, DigitsRow, LedgerRow, LinkRow, RefusalRow, RunRow, UsualRow,
};
use super::words::{digits, gib};

const SECOND_NS: f64 = 1e9;
const GB: f64 = 1e9;
/// With more runs than this, each is compared with the slowest only.
const PAIRS_OF_RUNS_MAX: usize = 6;
/// Relative difference in bytes up to which two runs did the same work.
const ALIKE: f64 = 0.05;

/// Returns the rules that condemn the ratio of this run.
pub fn condemned(ledger: &Ledger, verdicts: &[Verdict]) -> Vec<String> {
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
            let (run, line) = (ledger.name.clone(), line.trim().to_owned());
            LedgerRow { run, line, bytes, share: happened(share) }
        })
    });
    LedgerRow::table("ledger", "Where the bytes went", rows)
}

fn ns(seconds: Option<f64>) -> Option<f64> {
    seconds.map(|seconds| seconds * SECOND_NS)
}

pub fn runs(ledgers: &[Ledger]) -> Table {
    let row = |ledger: &Ledger| RunRow {
        run: ledger.name.clone(),
        time_ns: ns(ledger.seconds),
        hosts: ledger.hosts,
        disk_bytes: ledger.read_bytes,
        eligible_bytes: ledger.eligible_bytes,
        returned_bytes: ledger.returned_bytes,
        wire_bytes: ledger.wire_bytes,
        saved_of_all: ledger.saved_of_all(),
        read_bytes_per_s: ledger.read_bytes_per_s(),
        wire_bytes_per_s: ledger.wire_bytes_per_s(),
        returned_of_read: ledger.returned_of_read(),
        mirror_copies: ledger.copies().measured(),
        cells: ledger.cells,
        host_cpu_ns: ns(ledger.host_cpu_s),
        cell_cpu_ns: ns(ledger.cell_cpu_s),
    };
    RunRow::table("runs", "Runs", ledgers.iter().map(row))
}

/// Shows the ratio that vendors of such storage publish.
pub fn usual(ledgers: &[Ledger], verdicts: &[Verdict]) -> Table {
    let row = |ledger: &Ledger| {
        let returned_of_eligible = ledger.returned_of_eligible()?;
        let row = UsualRow { run: ledger.name.clone(), returned_of_eligible };
        Some(Row::from(row).condemned_by(&condemned(ledger, verdicts)))
    };
    UsualRow::table("usual", "Returned ÷ eligible, as it is usually printed", [])
        .about("It says how well the storage filters what it may filter, not what that saves.")
        .with(ledgers.iter().filter_map(row))
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
    let row = |pair: Pair<'_>| ComparedRow {
        run: pair.faster.name.clone(),
        than: pair.slower.name.clone(),
        times_as_fast: pair.times,
        times_hosts: pair.hosts,
        of_linear: happened(pair.of_linear()),
    };
    ComparedRow::table("compared", "Run against run", pairs(ledgers).into_iter().map(row))
}

/// Shows what the links of the hosts could have carried.
pub fn links(ledgers: &[Ledger], link_bytes_per_s: f64) -> Table {
    let row = |ledger: &Ledger| {
        let wire = ledger.wire_bytes? as f64;
        let hosts = ledger.hosts.filter(|hosts| *hosts > 0);
        let links = hosts.map(|hosts| link_bytes_per_s * f64::from(hosts));
        Some(LinkRow {
            run: ledger.name.clone(),
            link_share: links.and_then(|links| Some(ledger.wire_bytes_per_s()? / links)),
            link_ns: ns(links.map(|links| wire / links)),
            time_ns: ns(ledger.seconds),
        })
    };
    LinkRow::table("links", "Links of the hosts", ledgers.iter().filter_map(row))
}

pub fn cpu(ledgers: &[Ledger]) -> Table {
    let row = |ledger: &Ledger| {
        ledger.host_cpu_s.or(ledger.cell_cpu_s)?;
        let of = |seconds: Option<f64>| Some(seconds? / (ledger.read_bytes as f64 / GB));
        (ledger.read_bytes > 0).then(|| CpuRow {
            run: ledger.name.clone(),
            host_s_per_gb: of(ledger.host_cpu_s),
            cell_s_per_gb: of(ledger.cell_cpu_s),
        })
    };
    CpuRow::table("cpu", "Seconds of CPU for each GB read", ledgers.iter().filter_map(row))
}

pub fn refusals(ledgers: &[Ledger]) -> Table {
    let rows = ledgers.iter().flat_map(|ledger| {
        ledger.refusals.iter().map(|refusal| RefusalRow {
            run: ledger.name.clone(),
            reason: refusal.reason.clone(),
            bytes: happened(refusal.bytes),
            events: happened(refusal.count),
        })
    });
    RefusalRow::table("refusals", "Not filtered, by reason", rows)
}

/// Shows figures as publications print them.
pub fn with_digits(ledgers: &[Ledger]) -> Table {
    const MIB: f64 = 1_048_576.0;
    const GIB: f64 = 1024.0 * MIB;
    let mut table = DigitsRow::table("digits", "The same with five digits", []);
    let mut add = |ledger: &Ledger, figure: String, value: Option<String>| {
        table.rows.extend(
            value.map(|value| DigitsRow { run: ledger.name.clone(), figure, value }.into()),
        );
    };
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
            add(ledger, figure.to_owned(), value);
        }
        for (how, bytes) in &ledger.skipped {
            add(ledger, format!("skipped of all, {how}"), of_read(Some(*bytes)));
        }
    }
    for pair in pairs(ledgers) {
        let than = &pair.slower.name;
        let times = format!("{}×", digits(pair.times));
        add(pair.faster, format!("as fast as {than}"), Some(times));
        add(pair.faster, format!("of linear against {than}"), percent(pair.of_linear()));
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
    let rows = all.iter().flat_map(|assigned| {
        let letters = ["A", "B", "C", "D"].into_iter().zip(&assigned.candidates);
        let candidates = letters.map(|(letter, it)| (letter, &it.shares, Some(it.spread)));
        let all = candidates.chain([("as listed", &assigned.listed, None)]);
        all.flat_map(move |(assignment, shares, spread)| {
            shares.iter().map(move |share: &Share| AssignedRow {
                run: assigned.run.clone(),
                assignment,
                instance: share.instance.clone(),
                listed_as: share.listed_as.clone(),
                read: gib(share.read_bytes),
                wire: gib(share.wire_bytes),
                wire_of_eligible: format!("{:.4} %", share.wire_of_eligible * 100.0),
                spread: happened(spread.filter(|it| it.is_finite())),
            })
        })
    });
    AssignedRow::table("assignments", "Instances that changed places", rows)
}
