//! vmstat's reports, alone or in files of `OSWatcher` and `ExaWatcher`. The first report of each
//! run covers all the time since boot, and only marks the start of the next.
//!
//! Its memory and swap columns are not read: their unit is an option of the command that the file
//! does not show.

use blockstone_base::identity::Host;
use blockstone_probe::{block, memory};

use super::instant::{self, Instant};
use super::ledger::IntervalRow;
use super::steps::{self, Steps, level, number, rate, share};
use super::text::Text;
use super::{Failure, Format, Origin, Sink};

pub const FORMAT: Format = Format {
    tool: "vmstat",
    holds: "rates of intervals, rounded to whole numbers",
    goes_on: false,
    made_by: "vmstat's text (vmstat -t 1)",
    recognises,
    read,
};

const KIB: f64 = 1024.0;
const SECOND_NS: u64 = 1_000_000_000;
/// Headings that every version of Linux has, among them those that no other system's has.
const HEADINGS: [&str; 6] = ["r", "b", "swpd", "free", "bi", "bo"];
/// vmstat repeats its headings after as many reports at least.
const SCREEN: usize = 20;
const STEP: &str = "it does not say how long its reports are: each was taken as one second";
const LEFT_OUT: &str = "its memory and swap columns were not read: the file does not say their \
                        unit (-S)";
const ONE_REPORT: &str = "below each `zzz` line is one report: vmstat's first report covers the \
                          time since boot";
const NO_CPUS: &str = "it does not say how many processors there are: their time is unknown";

fn recognises(head: &str) -> bool {
    head.lines().any(is_heading)
}

fn is_heading(line: &str) -> bool {
    HEADINGS.iter().all(|name| line.split_ascii_whitespace().any(|word| word == *name))
}

#[derive(Default)]
struct Reader {
    headings: Vec<String>,
    /// Whether the zone that heads the times is UTC.
    in_utc: bool,
    /// Reports since the headings, and since the start of the run.
    since_headings: usize,
    in_run: usize,
    /// The time before the reports of a run, and the seconds between them if they are there too.
    zzz: Option<Instant>,
    step_s: Option<u64>,
    without_zone: bool,
    without_times: bool,
    cpus: Option<u32>,
    odd_lines: usize,
}

fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let mut steps = Steps::new(sink);
    let mut reader = Reader::default();
    while let Some((line, is_cut, words)) = text.next_numbered()? {
        // The last number may lack digits.
        if !is_cut {
            let damage = |what| Failure::Damage { line, what };
            reader.line(words, &mut steps, damage)?;
        }
    }
    if steps.end_ns().is_none() && reader.zzz.is_some() {
        return Err(Failure::Damage { line: text.number(), what: ONE_REPORT.to_owned() });
    }
    let mut notes = vec![LEFT_OUT.to_owned()];
    if text.is_cut() {
        notes.push("the file is truncated: its last line was skipped".to_owned());
    }
    if reader.without_times {
        notes.push(instant::NO_TIMES.to_owned());
    } else if reader.without_zone {
        notes.push(instant::NO_ZONE.to_owned());
    }
    if reader.zzz.is_some() && reader.step_s.is_none() {
        notes.push(STEP.to_owned());
    }
    if reader.cpus.is_none() {
        notes.push(NO_CPUS.to_owned());
    }
    if reader.odd_lines > 0 {
        notes.push(format!("lines that are not vmstat's were skipped: {}", reader.odd_lines));
    }
    notes.extend(steps.note());
    let cpus = reader.cpus.unwrap_or_default();
    let host = Host { cpus, cpus_allowed_milli: cpus.saturating_mul(1000), ..Host::default() };
    Ok(Origin { host, notes, tool_version: None })
}

impl Reader {
    fn line(
        &mut self,
        line: &str,
        steps: &mut Steps<'_, '_>,
        damage: impl Fn(String) -> Failure,
    ) -> Result<(), Failure> {
        if line.starts_with("zzz") {
            let zzz = instant::zzz(line);
            let unknown = || damage(format!("`{}` has no known form of time", line.trim()));
            self.zzz = Some(zzz.ok_or_else(unknown)?);
            self.step_s = step_s(line);
            self.run(steps);
        } else if let Some(count) = line.strip_prefix("CPU_COUNT") {
            self.cpus = count.trim().parse().ok().filter(|count| *count > 0);
        } else if is_heading(line) {
            // Headings again after a few reports are those of another vmstat.
            if self.zzz.is_none() && (1..SCREEN).contains(&self.since_headings) {
                self.run(steps);
            }
            self.headings = line.split_ascii_whitespace().map(str::to_owned).collect();
            // A zone follows the last column: `UTC`, or `timestamp` in old versions.
            let is_column = |word: &String| word.bytes().all(|b| b.is_ascii_lowercase());
            let columns = self.headings.iter().take_while(|word| is_column(word)).count();
            self.in_utc = self.headings.get(columns).is_some_and(|zone| zone == "UTC");
            self.headings.truncate(columns);
            self.headings.retain(|word| word != "timestamp");
            self.since_headings = 0;
        } else if line.trim_start().starts_with(|c: char| c.is_ascii_digit())
            && !self.headings.is_empty()
        {
            return self.report(line, steps, damage);
        } else if !is_banner(line) {
            self.odd_lines += 1;
        }
        Ok(())
    }

    fn run(&mut self, steps: &mut Steps<'_, '_>) {
        steps.restart();
        (self.in_run, self.since_headings) = (0, 0);
    }

    fn report(
        &mut self,
        line: &str,
        steps: &mut Steps<'_, '_>,
        damage: impl Fn(String) -> Failure,
    ) -> Result<(), Failure> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (has, wants) = (words.len(), self.headings.len());
        if has < wants {
            let line = line.trim();
            return Err(damage(format!("`{line}` has {has} numbers for {wants} headings")));
        }
        let (numbers, time) = words.split_at(wants);
        let at_ns = match (time, self.zzz) {
            ([], Some(zzz)) => {
                self.without_zone |= !zzz.zoned;
                let step_ns = self.step_s.unwrap_or(1).saturating_mul(SECOND_NS);
                Some(zzz.at_ns.saturating_add(step_ns.saturating_mul(self.in_run as u64)))
            }
            ([], None) => {
                self.without_times = true;
                let before_ns = steps.last_ns().or(steps.end_ns());
                Some(before_ns.unwrap_or_default() + SECOND_NS)
            }
            (time, _) => {
                let instant = instant::parse(&time.join(" "), None);
                self.without_zone |= instant.is_some_and(|it| !it.zoned) && !self.in_utc;
                instant.map(|instant| instant.at_ns)
            }
        };
        let unknown = || damage(format!("`{}` has no known form of time", line.trim()));
        let at_ns = at_ns.filter(|ns| *ns <= instant::LATEST_NS).ok_or_else(unknown)?;
        self.since_headings += 1;
        self.in_run += 1;
        steps.add(at_ns, &self.rows(numbers))
    }

    fn rows(&self, numbers: &[&str]) -> Vec<IntervalRow> {
        let named = |name: &str| {
            let at = self.headings.iter().position(|heading| heading == name)?;
            number(numbers[at])
        };
        let mut host = steps::of_host();
        for (column, name) in [
            ("cpu_user_ns", "us"),
            ("cpu_system_ns", "sy"),
            ("cpu_iowait_ns", "wa"),
            ("cpu_idle_ns", "id"),
            ("cpu_steal_ns", "st"),
        ] {
            let guests = named("gu").filter(|_| name == "us").unwrap_or(0.0);
            host.set(column, share(named(name).map(|it| it + guests), self.cpus));
        }
        host.set("switches", rate(named("cs"), 1.0));
        host.set("runnable", level(named("r"), 1.0));
        host.set("blocked", level(named("b"), 1.0));
        host.set("interrupts", rate(named("in"), 1.0));
        let mut paging = IntervalRow::new(&memory::SCHEMA, "");
        paging.set("paged_in_bytes", rate(named("bi"), KIB));
        paging.set("paged_out_bytes", rate(named("bo"), KIB));
        let mut disks = IntervalRow::new(&block::TOGETHER, "");
        disks.set("read_bytes", rate(named("bi"), KIB));
        disks.set("write_bytes", rate(named("bo"), KIB));
        vec![host, paging, disks]
    }
}

/// Returns the seconds of a line such as `zzz ***… 2026 Sample interval: 5 seconds`.
fn step_s(line: &str) -> Option<u64> {
    let rest = line.split_once("Sample interval")?.1.trim_start_matches(':');
    rest.split_whitespace().next()?.parse().ok().filter(|seconds| (1..=3600).contains(seconds))
}

/// Whether a line is empty, or one of those around reports: groups of headings, of `OSWatcher`.
fn is_banner(line: &str) -> bool {
    let line = line.trim();
    let watcher = ["Linux", "SNAP_INTERVAL", "OSWBB", "#"];
    line.is_empty() || line.contains("---") || watcher.iter().any(|word| line.starts_with(word))
}
