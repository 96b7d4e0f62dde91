//! Facts on a whole file of iostat: its host, the order of its dates, the interval of a collector.

use blockstone_base::identity::Host;
use jiff::civil::Date;

use super::super::Failure;
use super::super::stamp::{self, Evidence, Order, Printed};
use super::super::sysstat::{self, is_title};
use super::super::text::Text;

/// Prefix of the lines of `OSWatcher` and `ExaWatcher` before each run of a command.
pub const RUN: &str = "zzz ";
pub const DAY_S: u32 = 86_400;
pub const SECOND_NS: u64 = 1_000_000_000;

/// Properties of the whole file, as far as its first lines do not show them.
pub struct Facts {
    pub host: Host,
    pub evidence: Evidence,
    /// Time between reports, as a collector wrote it.
    pub every_ns: Option<u64>,
}

impl Facts {
    /// Reads the first lines, and as many more as it takes to know the order of its dates.
    pub fn survey(text: &Text) -> Result<Self, Failure> {
        let mut facts =
            Self { host: Host::default(), evidence: Evidence::default(), every_ns: None };
        let mut again = text.again().map_err(Failure::File)?;
        let (mut known, mut has_date, mut reports) = (None, false, 0);
        while let Ok(Some((number, _, line))) = again.next_numbered() {
            let first = line.as_bytes().first().copied().unwrap_or(b' ');
            if is_title(line) && facts.host.hostname.is_empty() {
                facts.host = sysstat::host_of(line);
                known = known.or_else(|| stamp::day(sysstat::date_of(line), None));
            } else if first == b'#' || line.starts_with(RUN) {
                known = known.or_else(|| run_of(line).map(|run| run.0));
                facts.every_ns = facts.every_ns.or_else(|| interval_of(line));
            } else if first != b' '
                && !first.is_ascii_lowercase()
                && let Some(printed) = Printed::read(line)
            {
                reports += 1;
                has_date |= printed.has_date();
                facts.evidence.see(&printed);
                if let Some(known) = known {
                    facts.evidence.near(&printed, known);
                }
            }
            let is_enough = facts.evidence.decided().is_some() || (reports > 0 && !has_date);
            if is_enough || (reports == 0 && number > HEAD_LINES) {
                break;
            }
        }
        Ok(facts)
    }
}

/// Lines in which a file of reports with times has one.
const HEAD_LINES: usize = 10_000;

/// Parses the date and the second of the day of a line such as `zzz ***Fri Nov 20 10:00:00 UTC
/// 2026`, `zzz <11/20/2026 10:00:00> Count:60` or `# Starting Time: 11/20/2026 10:00:00`.
pub fn run_of(line: &str) -> Option<(Date, u32)> {
    let text = line.trim_start_matches("zzz").trim_matches(['*', '<', '#', ' ']);
    if let Some(text) = text.strip_prefix("Starting Time:").or(text.split('>').next())
        && let Some(printed) = Printed::read(text)
    {
        // ExaWatcher writes the month first in any locale.
        let date = text.split_whitespace().next()?;
        return Some((stamp::day(date, Some(Order::MonthFirst))?, printed.second_of_day));
    }
    let words: Vec<&str> = text.split_ascii_whitespace().take(8).collect();
    let clock = words.iter().position(|word| word.matches(':').count() == 2)?;
    let year = words[clock..].iter().find(|word| word.len() == 4 && word.parse::<u16>().is_ok())?;
    let [month, day] = words.get(clock.checked_sub(2)?..clock)? else { return None };
    let date = stamp::day(&format!("{day} {month} {year}"), None)?;
    Some((date, Printed::read(words[clock])?.second_of_day))
}

/// Parses `Sample interval: 30 seconds` or `Sample Interval(s): 5`.
pub fn interval_of(line: &str) -> Option<u64> {
    let lower = line.to_ascii_lowercase();
    let (_, rest) = lower.split_once("sample interval")?;
    let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    let seconds: u64 =
        digits.parse().ok().filter(|seconds| (1..=u64::from(DAY_S)).contains(seconds))?;
    Some(seconds * SECOND_NS)
}
