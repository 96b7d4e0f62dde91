//! Hours of the week, in the server's time zone.

use std::collections::BTreeMap;

/// Hours per week.
pub const HOURS: usize = 168;
pub const HOUR_S: f64 = 3_600.0;
pub const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// 1 January 1970 was a Thursday.
const FIRST_DAY: i64 = 3;

/// A selection of times of the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// From the first hour until before the second; past midnight if the first is later.
    pub hours: Option<(u32, u32)>,
    pub weekdays: bool,
    /// Only this many days at the end of each month.
    pub month_end_days: Option<u32>,
}

impl Filter {
    /// Whether it selects an instant, in seconds since 1970.
    pub fn admits(&self, at_s: f64) -> bool {
        let (day, hour) = day_and_hour(hour_of_week(at_s));
        let hour = hour as u32;
        let in_hours = self.hours.is_none_or(|(from, to)| {
            if from < to { (from..to).contains(&hour) } else { hour >= from || hour < to }
        });
        let in_month = self
            .month_end_days
            .is_none_or(|days| left_of_month(at_s).is_some_and(|left| left < days));
        in_hours && (!self.weekdays || day < 5) && in_month
    }
}

/// Returns the days of the month after this one; `None` beyond the calendar.
fn left_of_month(at_s: f64) -> Option<u32> {
    let stamp = jiff::Timestamp::from_second(at_s.floor() as i64).ok()?;
    let date = stamp.to_zoned(jiff::tz::TimeZone::UTC).date();
    u32::try_from(date.days_in_month() - date.day()).ok()
}

/// Returns the hour of the week, counted from Monday, 0:00.
pub fn hour_of_week(at_s: f64) -> usize {
    let hours = (at_s / HOUR_S).floor() as i64;
    (hours + FIRST_DAY * 24).rem_euclid(HOURS as i64) as usize
}

pub fn day_and_hour(hour_of_week: usize) -> (usize, usize) {
    (hour_of_week / 24 % 7, hour_of_week % 24)
}

/// Returns the name of an hour of the week, like `Friday 17:00`.
pub fn name(hour_of_week: usize) -> String {
    let (day, hour) = day_and_hour(hour_of_week);
    format!("{} {hour}:00", WEEKDAYS[day])
}

/// Formats wall-clock time of a server as ISO 8601 without a zone.
pub fn clock(at_s: f64) -> String {
    let stamp = jiff::Timestamp::from_second(at_s.round() as i64);
    stamp.map_or_else(|_| String::new(), |it| it.strftime("%Y-%m-%dT%H:%M:%S").to_string())
}

/// The maximum of each hour of the week, over the weeks; `None` if the hour is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Week(pub Vec<Option<f64>>);

/// A value and the time that it is the mean of.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    pub value: f64,
    pub begin_s: f64,
    pub seconds: f64,
}

impl Week {
    /// Aggregates values: first into the mean of each hour that they overlap, weighted by the
    /// overlap, then into the maximum over the weeks.
    pub fn of(values: impl IntoIterator<Item = Mean>) -> Self {
        let mut hours: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        // A value over more than a week says nothing about its hours.
        let values = values.into_iter().filter(|it| it.seconds <= HOURS as f64 * HOUR_S);
        for Mean { value, begin_s, seconds } in values {
            let end_s = begin_s + seconds;
            let mut from_s = begin_s;
            while from_s < end_s {
                let hour = (from_s / HOUR_S).floor();
                let to_s = ((hour + 1.0) * HOUR_S).min(end_s);
                let held = hours.entry(hour as i64).or_default();
                held.0 += value * (to_s - from_s);
                held.1 += to_s - from_s;
                // So far from 1970, adding a fraction of a second does not change an instant.
                from_s = if to_s > from_s { to_s } else { end_s };
            }
        }
        let mut week = vec![None; HOURS];
        for (hour, (sum, seconds)) in hours.iter().filter(|(_, held)| held.1 > 0.0) {
            let of_week: &mut Option<f64> = &mut week[hour_of_week(*hour as f64 * HOUR_S)];
            let mean = sum / seconds;
            *of_week = Some(of_week.map_or(mean, |most| most.max(mean)));
        }
        Self(week)
    }

    /// Returns the maximum, and its hour.
    pub fn peak(&self) -> Option<(f64, usize)> {
        let known = self.0.iter().enumerate().filter_map(|(hour, most)| Some(((*most)?, hour)));
        known.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-27, a Friday, 17:00.
    const FRIDAY_S: f64 = 1_795_798_800.0;

    fn mean((value, begin_s, seconds): (f64, f64, f64)) -> Mean {
        Mean { value, begin_s, seconds }
    }

    #[test]
    fn an_interval_counts_in_each_hour_for_the_time_that_it_has_there() {
        assert_eq!(name(hour_of_week(FRIDAY_S)), "Friday 17:00");
        let half = FRIDAY_S + 1_800.0;
        // 100 for half an hour, then 300 for the last quarter of it and 45 minutes of the next.
        let week =
            Week::of([(100.0, half - 1_800.0, 2_700.0), (300.0, half + 900.0, 3_600.0)].map(mean));
        assert_eq!(week.0[hour_of_week(FRIDAY_S)], Some(150.0));
        assert_eq!(week.0[hour_of_week(FRIDAY_S) + 1], Some(300.0));
        assert_eq!(week.0.iter().flatten().count(), 2);
        let next =
            Week::of([(7.0, FRIDAY_S, 60.0), (5.0, FRIDAY_S + 7.0 * 86_400.0, 3_600.0)].map(mean));
        assert_eq!(next.peak(), Some((7.0, hour_of_week(FRIDAY_S))), "the greater of two weeks");
        assert_eq!(Week::of([(1.0, f64::MAX, 60.0)].map(mean)).0.len(), HOURS, "it ends");
    }

    #[test]
    fn business_hours_leave_out_nights_and_weekends() {
        let day = Filter { hours: Some((9, 17)), weekdays: true, month_end_days: None };
        assert!(day.admits(FRIDAY_S - 1.0) && !day.admits(FRIDAY_S));
        assert!(!day.admits(FRIDAY_S + 86_400.0 - 3_600.0), "a Saturday");
        let night = Filter { hours: Some((22, 6)), ..Filter::default() };
        assert!(night.admits(FRIDAY_S + 6.0 * 3_600.0) && !night.admits(FRIDAY_S));
        assert!(Filter::default().admits(FRIDAY_S));
        let month_end = |days| Filter { month_end_days: Some(days), ..Filter::default() };
        assert!(month_end(4).admits(FRIDAY_S) && !month_end(3).admits(FRIDAY_S));
        assert!(month_end(1).admits(FRIDAY_S + 3.0 * 86_400.0), "the 30th of November");
        assert!(!month_end(1).admits(1e17), "no day of a calendar");
    }
}
