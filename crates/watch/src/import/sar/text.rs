//! sar's text: sections one below the other, each with a line for the headings and the time at
//! which it begins, in any locale.

use std::collections::HashMap;
use std::rc::Rc;

use jiff::civil::Date;

use super::super::stamp::{self, Evidence, Printed};
use super::super::sysstat::{self, is_title};
use super::super::text::Text;
use super::super::{Failure, Origin, Sink};
use super::table::{Gathered, TOO_MANY, Table};
use super::{SECOND_NS, Series, Time, Zone};

const RESTART: &str = "LINUX RESTART";
const DAY_S: u64 = 86_400;

pub fn recognises(head: &str) -> bool {
    // The sar of other systems has other tables.
    let first = head.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let is_other = ["SunOS ", "AIX ", "HP-UX ", "Darwin "].iter().any(|it| first.starts_with(it));
    !is_other
        && head.lines().any(|line| {
            clock(line).is_some_and(|(_, rest)| {
                let words: Vec<&str> = rest.split_whitespace().collect();
                Table::of(&words).is_some()
            })
        })
}

/// Splits a line that begins with a time of day; returns its second and the rest.
fn clock(line: &str) -> Option<(u32, &str)> {
    let line = line.trim_start();
    if line.len() < 8 {
        return None;
    }
    let mut words = Vec::with_capacity(4);
    let mut from = 0;
    while let Some(begin) =
        line[from..].find(|c: char| !c.is_whitespace()).filter(|_| words.len() < 4)
    {
        let begin = from + begin;
        from = line[begin..].find(char::is_whitespace).map_or(line.len(), |at| begin + at);
        words.push((&line[begin..from], from));
    }
    let word = |at: usize| words.get(at).map_or("", |(word, _)| word);
    // Some locales put the zone or the half of the day before the time, others behind it.
    let time = usize::from(is_zone(word(0)) || stamp::is_half(word(0)));
    let mut last = time;
    if stamp::is_half(word(time + 1)) {
        last += 1;
        last += usize::from(is_zone(word(time + 2)));
    }
    let end = words.get(last)?.1;
    let printed = Printed::read(&line[..end]).filter(|printed| !printed.has_date())?;
    Some((printed.second_of_day, &line[end..]))
}

/// First headings of sar's sections in capitals.
const HEADINGS: [&str; 9] = ["CPU", "DEV", "IFACE", "TTY", "INTR", "FAN", "TEMP", "BUS", "COM"];

fn is_zone(word: &str) -> bool {
    (3..=5).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_uppercase())
        && !HEADINGS.contains(&word)
}

/// How far a section has been read, in seconds since 1970.
#[derive(Clone, Copy)]
struct Interval {
    from: u64,
    /// `None` if no line was read yet.
    to: Option<u64>,
}

impl Interval {
    /// Moves on to the interval that ends at this second of the day; returns whether there is one.
    fn reach(&mut self, second: u64) -> bool {
        let at = after(second, self.to.unwrap_or(self.from));
        match self.to {
            Some(to) if to == at => true,
            Some(to) if to < at => {
                *self = Self { from: to, to: Some(at) };
                true
            }
            None if self.from < at => {
                self.to = Some(at);
                true
            }
            _ => false,
        }
    }
}

/// Returns `second`, plus as many whole days as it takes to be no more than half a day before
/// `last`.
fn after(second: u64, last: u64) -> u64 {
    let days = last.saturating_sub(second.saturating_add(DAY_S / 2)).div_ceil(DAY_S);
    second.saturating_add(days * DAY_S)
}

/// Reads the order of the dates in all titles.
fn survey(text: &Text) -> Result<Evidence, Failure> {
    let mut evidence = Evidence::default();
    let mut again = text.again().map_err(Failure::File)?;
    while let Ok(Some(line)) = again.next_line() {
        if is_title(line)
            && let Some(date) = Printed::of_day(sysstat::date_of(line))
        {
            evidence.see(&date);
        }
    }
    Ok(evidence)
}

#[allow(clippy::too_many_lines, reason = "one loop over the lines with its state")]
pub fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let (order, is_assumed) = survey(text)?.order();
    let mut origin = Origin::default();
    let mut gathered = Gathered::default();
    // By headings; a section may come again after a restart.
    let mut sections: HashMap<String, Interval> = HashMap::new();
    let mut open: Option<(Option<Rc<Table>>, String)> = None;
    let mut day: Option<Date> = None;
    let (mut backwards, mut restarts, mut without_date) = (0, 0, false);
    while let Some((number, is_cut, line)) = text.next_numbered()? {
        let damage = |what: String| Failure::Damage { line: number, what };
        if is_title(line) {
            let host = sysstat::host_of(line);
            if origin.host.hostname.is_empty() {
                origin.host = host;
            } else if origin.host.hostname != host.hostname {
                return Err(damage("another host than before: import each by itself".to_owned()));
            }
            day = Printed::of_day(sysstat::date_of(line)).and_then(|date| date.on(order));
            (open, sections) = (None, HashMap::new());
            continue;
        }
        let Some((second, rest)) = clock(line).filter(|_| !is_cut) else {
            if line.trim().is_empty() {
                open = None;
            }
            continue;
        };
        restarts += usize::from(line.contains(RESTART));
        let words: Vec<&str> = rest.split_whitespace().collect();
        if line.contains(RESTART) || words.first() == Some(&"COM") {
            continue;
        }
        without_date |= day.is_none();
        let midnight = stamp::at_second(day.unwrap_or(Date::constant(1970, 1, 1)), 0).unwrap_or(0);
        let second = midnight / SECOND_NS + u64::from(second);
        let is_row = words.iter().any(|word| sysstat::number(word.as_bytes()).is_some());
        let Some((table, headings)) = open.as_ref().filter(|_| is_row) else {
            let headings = words.join(" ");
            let last = sections.get(&headings).map_or(0, |it| it.to.unwrap_or(it.from));
            sections.insert(headings.clone(), Interval { from: after(second, last), to: None });
            open = Some((Table::of(&words), headings));
            continue;
        };
        let (Some(table), Some(interval)) = (table, sections.get_mut(headings)) else { continue };
        let row = table.row(&words).map_err(|wants| {
            damage(format!("`{}` has {} words for {wants} headings", line.trim(), words.len()))
        })?;
        if !interval.reach(second) {
            backwards += 1;
            continue;
        }
        let ns = |second: u64| second.saturating_mul(SECOND_NS);
        if !gathered.add(ns(interval.from), ns(interval.to.unwrap_or(interval.from)), row) {
            return Err(damage(TOO_MANY.to_owned()));
        }
    }
    if origin.host.cpus == 0 {
        origin.host.cpus = gathered.processors().try_into().unwrap_or(0);
        origin.host.cpus_allowed_milli = origin.host.cpus.saturating_mul(1000);
    }
    let mut notes = vec![stamp::NO_ZONE.to_owned()];
    notes.extend(is_assumed.then(|| order.note()));
    notes.extend(without_date.then(|| stamp::NO_DATE.to_owned()));
    if text.is_cut() {
        notes.push("the file is truncated: its last line was skipped".to_owned());
    }
    if restarts > 0 {
        notes.push(format!("restarts of the host: {restarts}"));
    }
    if backwards > 0 {
        notes.push(format!("its clock went back; lines skipped: {backwards}"));
    }
    let mut series = Series::new(origin.host.cpus, sink);
    for (from_ns, at_ns, figures) in gathered.intervals() {
        let time = Time { at_ns, length_ns: at_ns - from_ns, zone: Zone::Utc };
        series.add(&time, &figures)?;
    }
    notes.extend(series.notes(""));
    origin.notes = notes;
    Ok(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_a_time_in_any_locale() {
        assert_eq!(clock("10:00:01        CPU"), Some((36_001, "        CPU")));
        assert_eq!(clock("10:00:01 PM     all"), Some((79_201, "     all")));
        assert_eq!(clock("15时51分43秒       DEV"), Some((57_103, "       DEV")));
        assert_eq!(clock("下午 03時51分43秒       DEV"), Some((57_103, "       DEV")));
        assert_eq!(clock("UTC 02:14:31 ص     CPU"), Some((8071, "     CPU")));
        assert_eq!(clock("02:14:31 PM IST     all"), Some((51_271, "     all")));
        assert_eq!(clock("02:14:31 PM CPU     %user"), Some((51_271, " CPU     %user")));
        assert_eq!(clock("Average:        all"), None);
        assert_eq!(clock("平均时间:       all      1.00"), None);
    }

    #[test]
    fn an_interval_may_cross_midnight_and_a_clock_may_go_back() {
        let mut interval = Interval { from: 86_390, to: None };
        assert!(interval.reach(5));
        assert_eq!((interval.from, interval.to), (86_390, Some(86_405)));
        assert!(interval.reach(5) && interval.reach(15));
        assert_eq!((interval.from, interval.to), (86_405, Some(86_415)));
        assert!(!interval.reach(10), "the clock went back");
        assert_eq!(after(100, 3 * DAY_S), 100 + 3 * DAY_S);
        assert_eq!(after(100, 0), 100);
    }
}
