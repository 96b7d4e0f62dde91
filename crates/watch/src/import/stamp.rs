//! Times as tools print them, in any locale.
//!
//! The C library prints a date and a time of day by the rules of a locale: numbers with marks
//! between them. Most dates can be read in one way only; where day and month could be swapped, the
//! other dates of the file decide ([`Order`]).

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

const DAY_S: i64 = 86_400;
const HALF_DAY_H: u32 = 12;
const SECOND_NS: u64 = 1_000_000_000;
/// No printed time is longer.
const LINE_BYTES: usize = 128;

pub const NO_ZONE: &str =
    "its times have no zone and were taken as UTC: use S_TIME_FORMAT=ISO to avoid this";
pub const NO_DATE: &str = "its times have no date: its first day was taken as 1970-01-01";

/// Note on a file whose reports have no times.
pub const NO_TIMES: &str =
    "its reports have no times: each was taken as 100 s, so rates hold, but not times and lengths";
/// Length of an interval whose length is unknown. Counts are whole numbers: in so long an interval
/// they keep the two decimals of a rate.
pub const NOMINAL_NS: u64 = 100 * SECOND_NS;

/// Later times are rejected: the year 2200, so that intervals can be added without overflow.
pub const LATEST_NS: u64 = 7_258_118_400_000_000_000;

/// The order of the numbers of a date.
#[allow(clippy::enum_variant_names, reason = "as people say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    MonthFirst,
    DayFirst,
    YearFirst,
}

const ORDERS: [Order; 3] = [Order::MonthFirst, Order::DayFirst, Order::YearFirst];

impl Order {
    /// Returns a note on an order for which there is no evidence.
    pub fn note(self) -> String {
        let order = match self {
            Self::MonthFirst => "month first",
            Self::DayFirst => "day first",
            Self::YearFirst => "year first",
        };
        format!("its dates can be read in two ways and were taken as {order}")
    }
}

/// The day that a text names, by each of the [`ORDERS`].
type Days = [Option<Date>; ORDERS.len()];

/// A printed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// `None` if only a time of day was printed.
    days: Option<Days>,
    /// The order to take if nothing decides.
    usual: Order,
    pub second_of_day: u32,
    /// Distance from UTC in seconds.
    zone_s: Option<i32>,
}

impl Printed {
    /// Reads a line that is nothing but a time. `None` if it is none, or if it is one of a
    /// twelve-hour clock that does not say which half of the day it is.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.len() > LINE_BYTES {
            return None;
        }
        let marks = Marks::of(text);
        let (date, clock) = marks.split()?;
        let (second_of_day, zone_s, half) = clock_of(&clock)?;
        let (days, usual) = if date.is_empty() {
            (None, Order::MonthFirst)
        } else {
            let (days, usual) = days_of(&date, half)?;
            (Some(days), usual)
        };
        Some(Self { days, usual, second_of_day, zone_s })
    }

    /// Reads a date alone.
    pub fn of_day(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > LINE_BYTES {
            return None;
        }
        let (days, usual) = days_of(&Marks::of(text).0, None)?;
        Some(Self { days: Some(days), usual, second_of_day: 0, zone_s: None })
    }

    /// Returns the day, by this order.
    pub fn on(&self, order: Order) -> Option<Date> {
        self.days?[order as usize]
    }

    pub fn has_date(&self) -> bool {
        self.days.is_some()
    }

    pub fn has_zone(&self) -> bool {
        self.zone_s.is_some()
    }

    /// Returns nanoseconds since 1970. Without a zone it is taken as UTC, and without a date it is
    /// on the given day.
    pub fn at_ns(&self, order: Order, day: Date) -> Option<u64> {
        let date = match self.days {
            Some(days) => days[order as usize]?,
            None => day,
        };
        let seconds = i64::from(self.second_of_day) - i64::from(self.zone_s.unwrap_or(0));
        of_seconds((day_number(date) * DAY_S + seconds).try_into().ok()?)
    }
}

fn day_number(date: Date) -> i64 {
    let midnight = DateTime::from_parts(date, jiff::civil::Time::midnight());
    midnight.to_zoned(TimeZone::UTC).map_or(0, |at| at.timestamp().as_second() / DAY_S)
}

/// Returns the day that a text names, by this order or in the only way in which it can be read.
pub fn day(text: &str, order: Option<Order>) -> Option<Date> {
    let printed = Printed::of_day(text)?;
    if let Some(order) = order {
        return printed.on(order);
    }
    let mut days = printed.days?.into_iter().flatten();
    let first = days.next()?;
    days.all(|other| other == first).then_some(first)
}

/// Evidence that the dates of a file give on the order of their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// Orders that a date contradicts.
    excluded: [bool; ORDERS.len()],
    last: Option<Days>,
    usual: Option<Order>,
}

impl Evidence {
    /// Considers the next time of a file.
    pub fn see(&mut self, printed: &Printed) {
        let Some(days) = printed.days else { return };
        self.usual.get_or_insert(printed.usual);
        self.exclude(|index| days[index].is_none());
        // From one report to the next it is the day that changes, not the month.
        if let Some(last) = self.last.replace(days).filter(|last| *last != days) {
            let steps: Vec<Option<i64>> = last
                .iter()
                .zip(&days)
                .map(|(a, b)| Some(day_number((*b)?) - day_number((*a)?)))
                .collect();
            let next = |step: &Option<i64>| matches!(step, Some(0..=2));
            if steps.iter().any(next) {
                self.exclude(|index| !next(&steps[index]));
            }
        }
    }

    /// Considers a date that is known, such as that of a headline: a report may begin on the day
    /// before or after it.
    pub fn near(&mut self, printed: &Printed, known: Date) {
        let Some(days) = printed.days else { return };
        let near = |day: &Option<Date>| {
            day.is_some_and(|day| (day_number(day) - day_number(known)).abs() <= 1)
        };
        if days.iter().any(near) {
            self.exclude(|index| !near(&days[index]));
        }
    }

    /// Excludes orders, unless none would remain.
    fn exclude(&mut self, is_out: impl Fn(usize) -> bool) {
        let mut excluded = self.excluded;
        (0..ORDERS.len()).for_each(|index| excluded[index] |= is_out(index));
        if excluded.contains(&false) {
            self.excluded = excluded;
        }
    }

    /// Returns the order, if only one remains or all that remain agree on the last date.
    pub fn decided(&self) -> Option<Order> {
        let mut left = ORDERS.into_iter().filter(|order| !self.excluded[*order as usize]);
        let first = left.next()?;
        match self.last {
            None => None,
            Some(_) => left.next().is_none().then_some(first),
        }
    }

    /// Returns the order to take, and whether it is an assumption.
    pub fn order(&self) -> (Order, bool) {
        let decided = self.decided();
        let usual = self.usual.filter(|order| !self.excluded[*order as usize]);
        let left = ORDERS.into_iter().find(|order| !self.excluded[*order as usize]);
        let order = decided.or(usual).or(left).unwrap_or(Order::MonthFirst);
        let others = ORDERS.into_iter().filter(|other| !self.excluded[*other as usize]);
        let differs = |other: Order| {
            self.last.is_some_and(|days| days[other as usize] != days[order as usize])
        };
        (order, decided.is_none() && others.into_iter().any(differs))
    }
}

/// Returns nanoseconds of a number of seconds since 1970.
pub fn of_seconds(seconds: u64) -> Option<u64> {
    seconds.checked_mul(SECOND_NS).filter(|ns| *ns <= LATEST_NS)
}

/// Returns nanoseconds since 1970 of a second of a day.
pub fn at_second(day: Date, second: u32) -> Option<u64> {
    of_seconds((day_number(day) * DAY_S + i64::from(second)).try_into().ok()?)
}

/// Parses a printed time into nanoseconds since 1970, and whether it had a zone. `None` if it is
/// not a time, or if its date could be two days.
pub fn parse(text: &str) -> Option<(u64, bool)> {
    let printed = Printed::read(text).filter(Printed::has_date)?;
    let mut evidence = Evidence::default();
    evidence.see(&printed);
    let (order, _) = evidence.order();
    Some((printed.at_ns(order, Date::ZERO)?, printed.has_zone()))
}

/// A number, and a word or mark, of a printed time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark<'a> {
    Number {
        value: u32,
        digits: usize,
    },
    /// Letters, or one other character that is not a blank.
    Word(&'a str),
}

struct Marks<'a>(Vec<Mark<'a>>);

impl<'a> Marks<'a> {
    fn of(text: &'a str) -> Self {
        let mut marks = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let of_kind: fn(char) -> bool = if digit(first).is_some() {
                |c| digit(c).is_some()
            } else if first.is_whitespace() || is_invisible(first) {
                |c| c.is_whitespace() || is_invisible(c)
            } else if is_letter(first) {
                |c| is_letter(c) && !is_unit(c)
            } else {
                |_| false
            };
            let end = match rest.char_indices().skip(1).find(|(_, c)| !of_kind(*c)) {
                _ if is_unit(first) => first.len_utf8(),
                Some((end, _)) => end,
                None => rest.len(),
            };
            let (mark, after) = rest.split_at(end);
            rest = after;
            if digit(first).is_some() {
                let value = mark
                    .chars()
                    .filter_map(digit)
                    .try_fold(0_u32, |sum, digit| sum.checked_mul(10)?.checked_add(digit));
                let value = value.unwrap_or(u32::MAX);
                marks.push(Mark::Number { value, digits: mark.chars().count() });
            } else if !first.is_whitespace() && !is_invisible(first) {
                marks.push(Mark::Word(mark));
            }
        }
        Self(marks)
    }

    /// Splits the marks into those of the date, which may be none, and those of the time of day,
    /// whose three numbers are separated by `:`, `.` or the units of the Far East.
    fn split(&self) -> Option<(Vec<Mark<'a>>, Vec<Mark<'a>>)> {
        let marks = &self.0;
        let is_clock = |at: &usize| {
            let word = |index: usize| match marks.get(index) {
                Some(Mark::Word(word)) => *word,
                _ => "",
            };
            let number = |index: usize, limit: u32| {
                matches!(marks.get(index), Some(Mark::Number { value, digits: 1..=2 })
                    if *value < limit)
            };
            let [hour, minute] = [word(at + 1), word(at + 3)];
            let units = HOURS.contains(&hour) && MINUTES.contains(&minute);
            let same = hour == minute && matches!(hour, ":" | ".");
            (units || same) && number(*at, 24) && number(at + 2, 60) && number(at + 4, 61)
        };
        // Dates with points look like times with points, which come last.
        let at = (0..marks.len()).rev().find(is_clock)?;
        // A word before the hour may be the half of the day or the zone.
        let is_date = |mark: &Mark<'_>| {
            matches!(mark, Mark::Number { .. })
                || matches!(mark, Mark::Word(word) if month(word).is_some())
        };
        let from = marks[..at].iter().rposition(is_date).map_or(0, |last| last + 1);
        let (date, clock) = marks.split_at(from);
        Some((date.to_vec(), clock.to_vec()))
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || (!c.is_ascii() && !c.is_whitespace() && !c.is_ascii_punctuation())
}

/// Marks of the direction of writing.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}')
}

const HOURS: [&str; 5] = ["時", "时", "點", "点", "시"];
const MINUTES: [&str; 2] = ["分", "분"];

/// Characters of the Far East that stand behind a number.
fn is_unit(c: char) -> bool {
    "年月日號時时點点分秒년월일시분초".contains(c)
}

/// Returns the value of a decimal digit of any script in which a locale counts.
fn digit(c: char) -> Option<u32> {
    const ZEROS: [u32; 15] = [
        0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50,
        0x1040, 0x1090,
    ];
    ZEROS.iter().find_map(|zero| (c as u32).checked_sub(*zero).filter(|digit| *digit < 10))
}

/// Words for the two halves of the day, in lower case and without points.
const MORNINGS: &[&str] = &[
    "am",
    "上午",
    "오전",
    "午前",
    "πμ",
    "ص",
    "पूर्वाह्न",
    "পূর্বাহ্ণ",
    "ਸਵੇਰੇ",
    "સવારે",
    "ಪೂರ್ವಾಹ್ನ",
    "രാവിലെ",
    "காலை",
    "මපුව",
    "पन",
    "پن",
    "nu",
    "an",
    "vm",
    "md",
    "wd",
    "saaku",
    "subaxnimo",
    "soodo",
    "asubuhi",
    "ጡዋት",
    "ማለዶ",
    "ጽባሕ",
    "biknait",
    "hengihengi",
    "purvahan",
    "म पू",
    "मपू",
    "ఉ",
    "နံနက်",
];
const EVENINGS: &[&str] = &[
    "pm",
    "下午",
    "오후",
    "午後",
    "μμ",
    "م",
    "अपराह्न",
    "অপরাহ্ণ",
    "ਸ਼ਾਮ",
    "સાંજે",
    "ಅಪರಾಹ್ನ",
    "വൈകു",
    "மாலை",
    "دن",
    "nh",
    "ew",
    "nm",
    "wb",
    "carra",
    "galabnimo",
    "hawwaro",
    "alasiri",
    "ከሰዓት",
    "ቃማ",
    "ምሴት",
    "apinun",
    "efiafi",
    "aparaahna",
    "म नं",
    "मनं",
    "సా",
    "ညနေ",
];

/// Whether a word names a half of the day.
pub fn is_half(word: &str) -> bool {
    let plain = word.to_lowercase().replace('.', "");
    EVENINGS.contains(&plain.as_str()) || MORNINGS.contains(&plain.as_str())
}

/// Half of the day: whether it is the second one, and whether it is named in English.
type Half = Option<(bool, bool)>;

/// Returns the second of the day, the distance from UTC, and the half of the day.
fn clock_of(marks: &[Mark<'_>]) -> Option<(u32, Option<i32>, Half)> {
    let first = marks.iter().position(|mark| matches!(mark, Mark::Number { .. }))?;
    let number = |at: usize| match marks.get(at) {
        Some(Mark::Number { value, .. }) => Some(*value),
        _ => None,
    };
    let (mut hour, minute) = (number(first)?, number(first + 2)?);
    let second = number(first + 4)?.min(59);
    let before = &marks[..first];
    let after = marks.get(first + 5..)?;
    let after = match after.first() {
        Some(Mark::Word("秒" | "초")) => &after[1..],
        _ => after,
    };
    let (mut half, mut zone_s, mut odd) = (None, None, false);
    let mut rest = after;
    while let Some((mark, later)) = rest.split_first() {
        rest = later;
        match (mark, later) {
            // `+0200`, or `+02` as the name of a zone.
            (Mark::Word(sign @ ("+" | "-")), [Mark::Number { value, digits }, ..]) => {
                let seconds = match digits {
                    4 => value / 100 * 3600 + value % 100 * 60,
                    2 => value * 3600,
                    _ => return None,
                };
                let seconds = i32::try_from(seconds).ok().filter(|it| *it <= 50_400)?;
                zone_s = Some(if *sign == "-" { -seconds } else { seconds });
                rest = &later[1..];
            }
            (Mark::Number { .. }, _) => return None,
            (Mark::Word(word), _) => odd |= !word_of(word, &mut half, &mut zone_s),
        }
    }
    for mark in before {
        match mark {
            Mark::Word(word) => odd |= !word_of(word, &mut half, &mut zone_s),
            Mark::Number { .. } => return None,
        }
    }
    // An unknown word beside an hour up to 12 may name a half of the day. In the Far East it is a
    // day of the week: the halves of the day have the same names everywhere.
    let has_units = matches!(marks.get(first + 1), Some(Mark::Word(word)) if HOURS.contains(word));
    if odd
        && !has_units
        && half.is_none()
        && (1..=HALF_DAY_H).contains(&hour)
        && !before_is_label(before)
    {
        return None;
    }
    if let Some((is_evening, _)) = half {
        if !(1..=HALF_DAY_H).contains(&hour) {
            return None;
        }
        hour = hour % HALF_DAY_H + if is_evening { HALF_DAY_H } else { 0 };
    }
    Some((hour * 3600 + minute * 60 + second, zone_s, half))
}

/// Whether the words before a time are a label, such as `Time:`.
fn before_is_label(before: &[Mark<'_>]) -> bool {
    before.last() == Some(&Mark::Word(":")) || before.last() == Some(&Mark::Word("："))
}

/// Takes a word beside a time; returns whether it is known.
fn word_of(word: &str, half: &mut Half, zone_s: &mut Option<i32>) -> bool {
    let plain = word.to_lowercase().replace('.', "");
    let is_english = word.is_ascii();
    if EVENINGS.contains(&plain.as_str()) {
        *half = Some((true, is_english));
    } else if MORNINGS.contains(&plain.as_str()) {
        *half = Some((false, is_english));
    } else if word == "T" {
        // Between date and time.
    } else if matches!(word, "UTC" | "GMT" | "Z" | "UCT") {
        *zone_s = Some(0);
    } else if word.len() == 1 && is_english && !word.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        // Punctuation.
    } else {
        // Names of zones have three to five capitals, and several zones share one name.
        return (3..=5).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_uppercase());
    }
    true
}

const MONTHS: [&[&str]; 12] = [
    &["jan", "ينا", "urt", "ene"],
    &["feb", "فبر", "ots"],
    &["mar", "مار", "mär"],
    &["apr", "أبر", "abr"],
    &["may", "mai", "maí", "ماي"],
    &["jun", "jún", "يون"],
    &["jul", "júl", "يول", "uzt"],
    &["aug", "ágú", "أغس", "ago"],
    &["sep", "سبت", "ira"],
    &["oct", "okt", "أكت", "urr"],
    &["nov", "nóv", "نوف", "aza"],
    &["dec", "des", "ديس", "dez", "dic"],
];

fn month(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let names = |names: &&[&str]| names.iter().any(|name| word.starts_with(name));
    // Names of days begin like these.
    if word.starts_with("mart") || word.starts_with("mard") {
        return None;
    }
    Some(MONTHS.iter().position(names)? as u32 + 1)
}

/// Returns the day by each order, and the order that is usual for such a date.
fn days_of(marks: &[Mark<'_>], half: Half) -> Option<(Days, Order)> {
    let mut numbers = Vec::with_capacity(3);
    let mut named = None;
    let mut separator = "";
    for mark in marks {
        match mark {
            Mark::Number { value, digits } => numbers.push((*value, *digits)),
            Mark::Word(word) => {
                named = named.or_else(|| month(word));
                if numbers.len() == 1 && separator.is_empty() {
                    separator = word;
                }
            }
        }
    }
    if let Some(month) = named {
        let [one, other] = numbers[..] else { return None };
        let (year, day) = if one.1 == 4 { (one, other) } else { (other, one) };
        let date = date((year.0, year.1), month, day.0)?;
        return Some(([Some(date); 3], Order::DayFirst));
    }
    let [a, b, c] = numbers[..] else { return None };
    let usual = match (separator, half) {
        _ if a.1 == 4 => Order::YearFirst,
        ("/", Some((_, true))) => Order::MonthFirst,
        ("/", None) if c.1 != 4 => Order::MonthFirst,
        _ => Order::DayFirst,
    };
    let only = |order: Order, date: Option<Date>| {
        let mut days = [None; ORDERS.len()];
        days[order as usize] = date;
        days
    };
    let days = if a.1 == 4 {
        // The day is second in one locale.
        let read = date(a, b.0, c.0).or_else(|| date(a, c.0, b.0));
        only(Order::YearFirst, read)
    } else if separator != "/" {
        let read = date(c, b.0, a.0);
        only(Order::DayFirst, read)
    } else {
        let year_first = if c.1 == 4 { None } else { date(a, b.0, c.0).filter(|_| a.0 > 31) };
        [date(c, a.0, b.0), date(c, b.0, a.0), year_first]
    };
    days.iter().any(Option::is_some).then_some((days, usual))
}

/// Returns a date; a year of two digits is one of this century.
fn date(year: (u32, usize), month: u32, day: u32) -> Option<Date> {
    let year = match year {
        (year, 2) => 2000 + year,
        (year, 4) => year,
        _ => return None,
    };
    let small = |value: u32| i8::try_from(value).ok();
    Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_795_342_311_000_000_000;

    #[test]
    fn times_of_any_usual_locale_are_read() {
        assert_eq!(parse("2026-11-22T10:11:51+0000"), Some((AT, true)));
        assert_eq!(parse("2026-11-22T12:11:51+0200"), Some((AT, true)));
        for text in [
            "2026-11-22 10:11:51",
            "11/22/26 10:11:51",
            "11/22/2026 10:11:51",
            "11/22/2026 10:11:51 AM",
            " 11/22/26 10:11:51 AM ",
            "22.11.2026 10:11:51",
            "22.11.2026. 10:11:51",
            "22/11/2026 10:11:51",
            "22-11-26 10:11:51",
            "22. 11. 26 10:11:51",
            "22/11-2026 10:11:51",
            "22.11.2026 10.11.51",
            "2026.11.22 10:11:51",
            "2026/11/22 10:11:51 AM",
            "2026年11月22日 10時11分51秒",
            "2026年11月22日 10时11分51秒",
            "2026年11月22日 日曜日 上午 10時11分51秒 HKT",
            "2026년 11월 22일 10시 11분 51초",
            "22/11/2026 10:11:51 πμ",
            "22 Nov, 2026 IST 10:11:51 ص",
            "22 نوف, 2026 IST 10:11:51 ص",
            "Sunday 22 November 2026 10:11:51 AM CST",
            "Sunday, November 22, 2026 10:11:51 AM HKT",
            "22/11/26 10:11:51 AM IST",
            "٢٢/١١/٢٠٢٦ ١٠:١١:٥١",
        ] {
            assert_eq!(parse(text), Some((AT, false)), "{text}");
        }
        let evening = AT + 12 * 3_600_000_000_000;
        for text in
            ["11/22/2026 10:11:51 PM", "22/11/2026 10:11:51 μμ", "2026年11月22日 下午10時11分51秒"]
        {
            assert_eq!(parse(text), Some((evening, false)), "{text}");
        }
        let beyond = "2555-01-01T00:00:00+0000";
        for text in [
            beyond,
            "",
            "avg-cpu:",
            "12:00:00",
            "5.00 0.00 2.00 1.00 0.00 92.00",
            "31.11.2026 10:11:51",
            "22.11.2026 25:11:51",
            "22/11/2026 10:11:51 kwakwa",
            "2026-11-22 10:11:51 7",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_of_day_may_have_no_date() {
        let read = |text| Printed::read(text).map(|it| (it.has_date(), it.second_of_day));
        assert_eq!(read("Time: 10:00:01"), Some((false, 36_001)));
        assert_eq!(read("Time: 10:00:01 PM"), Some((false, 79_201)));
        assert_eq!(read("12:00:01 AM"), Some((false, 1)));
        assert_eq!(read("15时51分43秒"), Some((false, 57_103)));
        assert_eq!(read("上午 10時00分01秒"), Some((false, 36_001)));
    }

    fn seen(texts: &[&str]) -> Evidence {
        let mut evidence = Evidence::default();
        for text in texts {
            evidence.see(&Printed::read(text).unwrap());
        }
        evidence
    }

    #[test]
    fn other_dates_of_a_file_decide_the_order() {
        let order = |texts: &[&str]| seen(texts).order();
        assert_eq!(order(&["03/04/26 10:00:00"]), (Order::MonthFirst, true));
        assert_eq!(order(&["03/04/2026 10:00:00"]), (Order::DayFirst, true));
        assert_eq!(order(&["03/04/2026 10:00:00 AM"]), (Order::MonthFirst, true));
        assert_eq!(order(&["04/04/26 10:00:00"]), (Order::MonthFirst, false));
        assert_eq!(order(&["03/04/26 10:00:00", "13/04/26 10:00:00"]), (Order::DayFirst, false));
        assert_eq!(order(&["03/04/26 23:59:59", "04/04/26 00:00:00"]), (Order::DayFirst, false));
        assert_eq!(order(&["03/04/26 23:59:59", "03/05/26 00:00:00"]), (Order::MonthFirst, false));
        let mut evidence = seen(&["03/04/26 10:00:00"]);
        evidence.near(&Printed::read("03/04/26 10:00:00").unwrap(), Date::constant(2026, 4, 3));
        assert_eq!(evidence.order(), (Order::DayFirst, false));
        assert_eq!(day("11/20/2026", None), Some(Date::constant(2026, 11, 20)));
        assert_eq!(day("11/10/2026", None), None);
        assert_eq!(day("11/10/2026", Some(Order::DayFirst)), Some(Date::constant(2026, 10, 11)));
    }
}
