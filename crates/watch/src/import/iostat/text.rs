//! iostat's text: reports of any version and locale, with whatever a collector wrote between them.

use std::sync::Arc;

use blockstone_base::identity::Host;
use jiff::civil::Date;

use super::super::stamp::{self, Order, Printed};
use super::super::sysstat::{self, is_title, number};
use super::super::text::Text;
use super::super::{Failure, Origin, Sink};
use super::facts::{DAY_S, Facts, RUN, run_of};
use super::{
    Figure, Figures, Intervals, OF_BYTES, OF_DISK, OF_PROCESSORS, Report, Shares, TRANSFERS,
};

const PROCESSORS: &str = "avg-cpu:";
const DEVICE: &str = "Device";
/// Words that only a heading of devices contains.
const RATES: [&str; 2] = ["tps", "r/s"];
const ONE_REPORT: &str = "it has only one report from each run of iostat, and the first report \
                          of a run covers the time since boot";

pub fn recognises(head: &str) -> bool {
    head.lines().any(|line| {
        let line = line.trim();
        let is_devices = || RATES.iter().any(|rate| line.split_whitespace().any(|it| it == *rate));
        (line.starts_with(PROCESSORS) && line.contains("%user"))
            || ((line.starts_with(DEVICE) || line.ends_with(DEVICE)) && is_devices())
    })
}

/// Headings of the following lines.
#[derive(Debug)]
enum Headings {
    Processors(Vec<Option<usize>>),
    Devices(Arc<Columns>),
}

/// Columns of a table of devices.
#[derive(Debug)]
struct Columns {
    /// Index in [`Figures`] and factor to our unit of each column, if it is used.
    used: Vec<Option<(usize, f64)>>,
    /// Whether the name is behind the figures.
    is_name_last: bool,
}

impl Columns {
    fn new(names: &[&str], is_name_last: bool) -> Self {
        let index = |name: &&str| {
            let name = name.trim_start_matches('%');
            let of = |(index, of): (usize, &super::OfDisk)| {
                let size = of.keys.iter().find(|(key, _)| *key == name)?.1;
                Some((index, size))
            };
            let found = OF_DISK.iter().enumerate().find_map(of);
            found.or_else(|| (name == TRANSFERS.0).then_some((TRANSFERS.1, 1.0)))
        };
        Self { used: names.iter().map(index).collect(), is_name_last }
    }
}

/// Reads a heading.
fn headings(line: &str) -> Option<Headings> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (first, last) = (*words.first()?, *words.last()?);
    if first == PROCESSORS {
        let index = |word: &&str| {
            let name = word.trim_start_matches('%');
            OF_PROCESSORS.iter().position(|(_, keys)| keys.contains(&name))
        };
        return Some(Headings::Processors(words[1..].iter().map(index).collect()));
    }
    if matches!(first, "Device" | "Device:") {
        return Some(Headings::Devices(Arc::new(Columns::new(&words[1..], false))));
    }
    let is_rate = |word: &&str| word.ends_with("/s") || RATES.contains(word);
    let (_, names) = words.split_last()?;
    (matches!(last, "Device" | "Device:") && names.iter().any(is_rate))
        .then(|| Headings::Devices(Arc::new(Columns::new(names, true))))
}

pub fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let facts = Facts::survey(text)?;
    let mut reader = Reader::new(text.again().map_err(Failure::File)?, facts, sink);
    let mut is_closed = false;
    // The number of words of the last line, and of decimals of its last word.
    let mut last = (0, 0);
    let mut is_whole = false;
    while let Some((number, is_cut, line)) = text.next_numbered()? {
        let shape = shape(line);
        // A file may end without a line break, and yet with a whole number.
        let is_cut = is_cut && (shape != last || shape.1 == 0);
        (last, is_whole) = (shape, !is_cut);
        // iostat ends each report with an empty line.
        is_closed = line.trim_ascii().is_empty() && !is_cut;
        if is_closed {
            reader.headings = None;
            reader.alone = None;
        } else if !is_cut {
            // The last number of an incomplete line may lack digits.
            reader.line(line, number)?;
        }
    }
    let is_whole = is_whole && !text.is_stream_cut();
    reader.end(is_closed && !text.is_cut(), is_whole, text.number())
}

/// Returns the number of words of a line, and of decimals of the last one.
fn shape(line: &str) -> (usize, usize) {
    let words = line.split_ascii_whitespace();
    let last = words.clone().next_back().unwrap_or_default();
    (words.count(), last.rsplit_once(['.', ',']).map_or(0, |(_, decimals)| decimals.len()))
}

#[allow(clippy::struct_excessive_bools, reason = "each is a fact that a note tells")]
struct Reader<'a, 's> {
    host: Host,
    intervals: Intervals<'a, 's>,
    headings: Option<Headings>,
    /// A name on a line of its own, whose figures follow.
    alone: Option<String>,
    report: Report,
    /// The line in which the current report begins, and its time.
    begun: Option<(usize, Option<u64>)>,
    has_processors: bool,
    has_devices: bool,
    order: Order,
    is_order_assumed: bool,
    /// The day of times without a date, and the last time of day.
    day: Option<Date>,
    last_s: u32,
    without_zone: bool,
    without_date: bool,
    every_ns: Option<u64>,
    /// When the collector ran iostat, and the reports since then.
    run_ns: Option<u64>,
    reports_of_run: u64,
    runs: u64,
    /// Title lines: each iostat prints one.
    titles: u64,
    is_untimed: bool,
    reports: u64,
    /// For a second look at the file.
    again: Option<Text>,
    omits_idle: Option<bool>,
    /// Lines that are not iostat's, and the first of them.
    others: (usize, usize),
    /// Whether such a line is the last one; one that may be a time, and how many stood before
    /// reports.
    other_before: bool,
    odd_time: Option<(usize, String)>,
    odd_times: u64,
    with_units: bool,
}

impl<'a, 's> Reader<'a, 's> {
    fn new(again: Text, facts: Facts, sink: &'a mut Sink<'s>) -> Self {
        let Facts { host, evidence, every_ns } = facts;
        let (order, is_order_assumed) = evidence.order();
        Self {
            intervals: Intervals::new(host.cpus, sink),
            host,
            headings: None,
            alone: None,
            report: Report::default(),
            begun: None,
            has_processors: false,
            has_devices: false,
            order,
            is_order_assumed,
            day: None,
            last_s: 0,
            without_zone: false,
            without_date: false,
            every_ns,
            run_ns: None,
            reports_of_run: 0,
            runs: 0,
            titles: 0,
            is_untimed: false,
            reports: 0,
            again: Some(again),
            omits_idle: None,
            others: (0, 0),
            other_before: false,
            odd_time: None,
            odd_times: 0,
            with_units: false,
        }
    }

    fn line(&mut self, line: &str, at: usize) -> Result<(), Failure> {
        let damage = |what| Failure::Damage { line: at, what };
        match &self.headings {
            _ if line.starts_with('L') && is_title(line) => {}
            Some(Headings::Devices(columns)) => {
                let columns = Arc::clone(columns);
                if self.row(line, &columns) {
                    return Ok(());
                }
            }
            Some(Headings::Processors(of)) => {
                if let Some(shares) = shares(line, of) {
                    self.report.shares = shares;
                    self.headings = None;
                    return Ok(());
                }
            }
            None => {}
        }
        if let Some(headings) = headings(line) {
            return self.table(headings, at);
        }
        if is_title(line) {
            // Another iostat appended to the same file.
            self.finish()?;
            self.titles += 1;
            self.intervals.begin();
            self.reports_of_run = 0;
            let day = stamp::day(sysstat::date_of(line), Some(self.order));
            self.start_day(day.or_else(|| stamp::day(sysstat::date_of(line), None)));
        } else if line.starts_with(RUN) {
            self.finish()?;
            let run = run_of(line);
            self.start_day(run.map(|(day, _)| day));
            self.run_ns = run.and_then(|(day, second)| stamp::at_second(day, second));
            self.reports_of_run = 0;
            self.runs += 1;
        } else if let Some(at_ns) = self.time(line) {
            self.finish()?;
            self.begun = Some((at, Some(at_ns)));
        } else if let Some(Headings::Devices(columns)) = &self.headings {
            if let Some(wrong) = wrong(line, columns) {
                return Err(damage(wrong));
            }
            self.other(at);
        } else {
            self.other(at);
            let digits = line.chars().filter(char::is_ascii_digit).count();
            if (5..=20).contains(&digits) && self.odd_time.is_none() {
                self.odd_time = Some((at, line.trim().to_owned()));
            }
        }
        self.headings = None;
        Ok(())
    }

    fn other(&mut self, number: usize) {
        self.other_before = true;
        if self.others.0 == 0 {
            self.others.1 = number;
        }
        self.others.0 += 1;
    }

    fn start_day(&mut self, day: Option<Date>) {
        if day.is_some() {
            (self.day, self.last_s) = (day, 0);
        }
    }

    /// Returns the time of a line that is nothing but a time.
    fn time(&mut self, line: &str) -> Option<u64> {
        let line = line.trim();
        if let Some(printed) = Printed::read(line) {
            self.without_zone |= !printed.has_zone();
            if !printed.has_date() {
                // Past midnight.
                if printed.second_of_day + DAY_S / 2 < self.last_s {
                    self.day = self.day.and_then(|day| day.tomorrow().ok());
                }
                self.last_s = printed.second_of_day;
                self.without_date |= self.day.is_none();
            }
            let first = Date::constant(1970, 1, 1);
            return printed.at_ns(self.order, *self.day.get_or_insert(first));
        }
        // `iostat -U` prints seconds since 1970.
        (line.len() == 10).then(|| line.parse().ok()).flatten().and_then(stamp::of_seconds)
    }

    /// Begins a table, and a report if this one has such a table already.
    fn table(&mut self, headings: Headings, number: usize) -> Result<(), Failure> {
        let is_next = match (&headings, &self.headings) {
            // A terminal's height makes no version repeat headings inside a report, but the parts
            // of a long one have headings each.
            (Headings::Processors(_), _) => self.has_processors || self.has_devices,
            (Headings::Devices(columns), _) => self.has_devices && self.covers(columns),
        };
        let other_before = std::mem::take(&mut self.other_before);
        if self.begun.is_none() || (is_next && !self.is_timed()) {
            self.finish()?;
            self.begun = Some((number, None));
            self.odd_times += u64::from(other_before && self.odd_time.is_some());
        }
        match &headings {
            Headings::Processors(_) => self.has_processors = true,
            Headings::Devices(_) => self.has_devices = true,
        }
        self.headings = Some(headings);
        self.alone = None;
        Ok(())
    }

    fn is_timed(&self) -> bool {
        matches!(self.begun, Some((_, Some(_))))
    }

    /// Whether the report has figures of these columns already.
    fn covers(&self, columns: &Columns) -> bool {
        let Some((_, figures)) = self.report.disks.first() else { return true };
        let mut used = columns.used.iter().flatten();
        used.any(|(index, _)| figures.0[*index] != Figure::Absent)
    }

    /// Takes a line of a table of devices; returns whether it was one.
    fn row(&mut self, line: &str, columns: &Columns) -> bool {
        let guess = self.report.disks.len();
        let is_group = line.starts_with(' ') && !columns.is_name_last;
        let mut words = Words(line.as_bytes());
        // The figures of a name on a line of its own begin with blanks, like the total of a group.
        let alone = if is_group { self.alone.take() } else { None };
        let mut name = match &alone {
            Some(alone) => Some(alone.as_bytes()),
            None if columns.is_name_last => None,
            None => words.next(),
        };
        let mut figures = Figures::default();
        let (mut at, mut known, mut unknown) = (0, 0, 0);
        for used in &columns.used {
            let Some(word) = words.next() else { break };
            at += 1;
            let Some((index, size)) = used else { continue };
            let number = match number(word) {
                Some((number, None)) => {
                    known += 1;
                    number * size
                }
                Some((number, Some(unit))) => {
                    known += 1;
                    self.with_units = true;
                    number * if OF_BYTES.contains(index) { unit } else { *size }
                }
                None => {
                    unknown += 1;
                    if unknown > known + 1 {
                        return self.name_alone(line);
                    }
                    f64::NAN
                }
            };
            figures.set(*index, number);
        }
        if columns.is_name_last {
            name = words.next();
        }
        // Words instead of numbers are another line.
        let is_whole = at == columns.used.len() && words.next().is_none() && unknown <= known;
        let Some(name) = name.filter(|_| is_whole) else { return self.name_alone(line) };
        let Ok(name) = str::from_utf8(name) else { return false };
        if is_group && alone.is_none() {
            // A group's total counts its devices again: an object of another name.
            let name = format!("group {name}");
            let device = self.intervals.devices.index(&name, guess);
            self.report.add(device, figures);
        } else {
            let device = self.intervals.devices.index(name.trim_start_matches("/dev/"), guess);
            self.report.add(device, figures);
        }
        true
    }

    /// Takes a line that is a name alone, as old versions print long ones.
    fn name_alone(&mut self, line: &str) -> bool {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), None) = (words.next(), words.next()) else { return false };
        if line.starts_with(' ') || Printed::read(name).is_some() || name.parse::<f64>().is_ok() {
            return false;
        }
        self.alone = Some(name.to_owned());
        true
    }

    /// Ends the current report.
    fn finish(&mut self) -> Result<(), Failure> {
        (self.headings, self.alone) = (None, None);
        let Some((_, at_ns)) = self.begun.take() else { return Ok(()) };
        let has_any =
            std::mem::take(&mut self.has_processors) | std::mem::take(&mut self.has_devices);
        if !has_any {
            return Ok(());
        }
        let at_ns = match at_ns {
            Some(at_ns) => at_ns,
            None => self.untimed(),
        };
        self.reports += 1;
        self.reports_of_run += 1;
        let (again, omits_idle) = (&mut self.again, &mut self.omits_idle);
        let omits_idle = || *omits_idle.get_or_insert_with(|| again.take().is_some_and(omits));
        self.intervals.add(&self.report, at_ns, omits_idle)?;
        self.report.clear();
        Ok(())
    }

    /// Returns the time of a report that has none, by that of the collector and its interval; else
    /// one second after the last report.
    fn untimed(&mut self) -> u64 {
        self.is_untimed = true;
        if self.runs > 0 && self.reports_of_run == 0 {
            self.intervals.begin();
        }
        let day = self.day.unwrap_or(Date::constant(1970, 1, 1));
        let (base, number) = match self.run_ns {
            Some(run_ns) => (run_ns, self.reports_of_run),
            None => (stamp::at_second(day, 0).unwrap_or(0), self.reports),
        };
        base.saturating_add(number.saturating_mul(self.every_ns.unwrap_or(stamp::NOMINAL_NS)))
    }

    /// Ends the file: after the empty line that closes a report, or after a line that is whole.
    fn end(mut self, is_closed: bool, is_whole: bool, lines: usize) -> Result<Origin, Failure> {
        let mut notes = Vec::new();
        if let Some((line, _)) = self.begun {
            let had_devices = !self.intervals.devices.names.is_empty();
            // A report that has all devices lacks nothing but the empty line.
            let (count, all) = (self.report.disks.len(), self.intervals.devices.names.len());
            let has_all = is_whole && count > 0 && count == all;
            if has_all || is_closed && (!had_devices || count > 0) {
                self.finish()?;
            } else {
                let note = "the file is truncated: the incomplete report of line";
                notes.push(format!("{note} {line} was skipped"));
            }
        }
        if notes.is_empty() && (1..=self.runs.max(self.titles).max(1)).contains(&self.reports) {
            return Err(Failure::Damage { line: lines, what: ONE_REPORT.to_owned() });
        }
        // A line before most reports that is no known time is an unknown one.
        if let Some((line, time)) =
            self.odd_time.take().filter(|_| self.odd_times * 2 > self.reports)
        {
            return Err(Failure::Damage { line, what: super::unknown_time(&time) });
        }
        if self.is_untimed && (self.every_ns.is_none() || self.run_ns.is_none()) {
            notes.push(stamp::NO_TIMES.to_owned());
        } else if self.is_untimed {
            notes.push(
                "its reports have no times: they were taken from the lines of the collector"
                    .to_owned(),
            );
        } else if self.without_zone {
            notes.push(stamp::NO_ZONE.to_owned());
        }
        if self.is_order_assumed {
            notes.push(self.order.note());
        }
        if self.without_date {
            notes.push(stamp::NO_DATE.to_owned());
        }
        if self.host.cpus == 0 {
            let what = if self.host.hostname.is_empty() {
                "it has no title line"
            } else {
                "its title is old"
            };
            notes.push(format!("{what}: the number of processors and their use are unknown"));
        }
        if self.omits_idle == Some(true) {
            notes.push("a device that a report omits had no requests in it (iostat -z)".to_owned());
        }
        if self.with_units {
            notes.push(
                "its numbers have units (iostat -h): bytes have two to four digits".to_owned(),
            );
        }
        if let (others @ 1.., first) = self.others {
            notes.push(format!("lines that are not iostat's, skipped: {others}, first {first}"));
        }
        notes.extend(self.intervals.notes());
        Ok(Origin { host: self.host, notes, tool_version: None })
    }
}

/// Whether a file has no line of a device without requests, although its devices come and go.
fn omits(mut text: Text) -> bool {
    let mut is_devices = false;
    while let Ok(Some(line)) = text.next_line() {
        if line.is_empty() {
            is_devices = false;
        } else if is_devices {
            let is_zero = |word: &&str| word.bytes().all(|b| matches!(b, b'0' | b'.' | b','));
            let zeros = line.split_ascii_whitespace().filter(is_zero).count();
            if zeros > 1 && zeros + 1 == line.split_ascii_whitespace().count() {
                return false;
            }
        } else {
            is_devices = matches!(headings(line), Some(Headings::Devices(_)));
        }
    }
    true
}

fn shares(line: &str, of: &[Option<usize>]) -> Option<Shares> {
    let mut shares = Shares::default();
    let mut words = line.split_ascii_whitespace();
    for index in of {
        let number = number(words.next()?.as_bytes());
        if let Some(index) = index {
            shares[*index] = Some(number.map_or(f64::NAN, |(number, _)| number));
        }
    }
    let is_row = shares.iter().flatten().any(|share| share.is_finite()) || line.contains("nan");
    (words.next().is_none() && is_row).then_some(shares)
}

/// Returns why a line with figures is not one of its table.
fn wrong(line: &str, columns: &Columns) -> Option<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_number = |word: &&&str| number(word.as_bytes()).is_some();
    let numbers = words.iter().filter(is_number).count();
    let (has, wants) = (words.len().saturating_sub(1), columns.used.len());
    (numbers * 2 > words.len())
        .then(|| format!("`{}` has {has} numbers for {wants} headings", line.trim()))
}

/// Words of a line.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let begin = self.0.iter().position(|byte| !is_blank(byte))?;
        let rest = &self.0[begin..];
        let end = rest.iter().position(is_blank).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::{SECOND_NS, interval_of};
    use super::*;

    #[test]
    fn lines_of_collectors_say_when_they_ran_and_how_often() {
        let day = Date::constant(2026, 11, 20);
        for line in [
            "zzz ***Fri Nov 20 10:00:01 UTC 2026",
            "zzz ***Fri Nov 20 10:00:01 UTC 2026 Sample interval: 1 seconds",
            "zzz <11/20/2026 10:00:01> Count:60",
            "# Starting Time:\t11/20/2026 10:00:01",
        ] {
            assert_eq!(run_of(line), Some((day, 36_001)), "{line}");
        }
        assert_eq!(run_of("zzz ***"), None);
        assert_eq!(run_of("# a comment"), None);
        assert_eq!(interval_of("# Sample Interval(s):   5"), Some(5 * SECOND_NS));
        assert_eq!(interval_of("zzz *** x Sample interval: 30 secs"), Some(30 * SECOND_NS));
        assert_eq!(interval_of("# Archive Count: 720"), None);
    }
}
