//! Instants of the wall clock, and times in a recording given as clock times.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use blockstone_base::units::{Nanos, format_span};
use blockstone_figures::WallClock;
use blockstone_record::Manifest;
use blockstone_report::Began;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::failure::Failure;

/// A time in a recording, as given to `--from` and `--to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After its first tick: `10m`.
    After(Nanos),
    /// A clock time in this machine's time zone: `18:45`, `18:45:10`.
    Clock(Time),
    /// A date and time in this machine's time zone: `2026-11-24T18:45`.
    Day(DateTime),
    /// A date and time with an offset from UTC: `2026-11-24T18:45:10+01:00`,
    /// `2026-11-24T17:45:10Z`.
    At(Timestamp),
}

impl FromStr for When {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let after = || text.parse().map(Self::After);
        let clock = || {
            // A clock would read a bare number as hours.
            let is_clock = text.contains(':') && !text.contains(['T', ' ', '-']);
            is_clock.then(|| text.parse().ok().map(Self::Clock))?
        };
        let day = || (text.len() > "2026-11-24".len()).then(|| text.parse().ok().map(Self::Day))?;
        let at = || text.parse().ok().map(Self::At);
        after().or_else(|_| {
            at().or_else(day).or_else(clock).ok_or_else(|| {
                Failure::new(
                    format!("`{text}` is not a time in a recording"),
                    "give the time since its start (10m), a clock time (18:45:10), or a date and \
                     time (2026-11-24T18:45:10, with Z or +01:00 if from another time zone)",
                )
            })
        })
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(time) => f.write_str(&format_span(time.get())),
            Self::Clock(time) => time.fmt(f),
            Self::Day(time) => time.fmt(f),
            Self::At(instant) => instant.fmt(f),
        }
    }
}

impl When {
    /// Returns the time since the start of a recording whose ticks run from `first` to `last`. A
    /// clock time is taken on the day that puts it between these, or nearest to them.
    pub fn t_ns(self, manifest: &Manifest, (first, last): (u64, u64)) -> Result<u64> {
        let (zone, clock) = (TimeZone::system(), WallClock::of(manifest));
        let unknown = || {
            anyhow!(Failure::new(
                format!("find {self} in {}: the recording does not say when it began", manifest.id),
                "give the time since its start, as in 10m"
            ))
        };
        let of = |wall_ns: i128| clock.t_ns(wall_ns).ok_or_else(unknown);
        let wall = |time: DateTime| {
            let zoned = zone.to_zoned(time).map_err(|error| anyhow!("read {self}: {error}"))?;
            Ok::<_, anyhow::Error>(zoned.timestamp().as_nanosecond())
        };
        match self {
            Self::After(time) => Ok(first.saturating_add(time.get())),
            Self::At(instant) => of(instant.as_nanosecond()),
            Self::Day(time) => of(wall(time)?),
            Self::Clock(time) => {
                let day = |t_ns: u64| {
                    let wall_ns = clock.realtime_ns(t_ns);
                    let instant = wall_ns.and_then(|ns| Timestamp::from_nanosecond(ns).ok());
                    instant.map(|instant| instant.to_zoned(zone.clone()).date())
                };
                let (begin, end) = day(first).zip(day(last)).ok_or_else(unknown)?;
                let (mut found, mut day) = (Vec::new(), begin);
                while day <= end {
                    found.push(of(wall(day.to_datetime(time))?)?);
                    day = day.checked_add(1.day())?;
                }
                let within = found.iter().filter(|t_ns| (first..=last).contains(*t_ns));
                if let [_, second, ..] = within.collect::<Vec<_>>()[..] {
                    let second = clock.realtime_ns(*second).map(|ns| local(ns, false));
                    return Err(anyhow!(Failure::new(
                        format!("find {self}: it occurs more than once in this recording"),
                        format!("give the date too, as in {}", second.unwrap_or_default())
                    )));
                }
                let away = |t_ns: &u64| first.saturating_sub(*t_ns) + t_ns.saturating_sub(last);
                Ok(found.into_iter().min_by_key(away).unwrap_or(first))
            }
        }
    }
}

/// Returns the start of a recording in this machine's time zone.
pub fn began(unix_ns: Option<i128>) -> Option<Began> {
    let unix_ns = unix_ns?;
    let instant = Timestamp::from_nanosecond(unix_ns).ok()?;
    let utc_offset_s = TimeZone::system().to_offset(instant).seconds();
    Some(Began { unix_ns, utc_offset_s })
}

/// Formats an instant as ISO 8601 in this machine's time zone with its offset from UTC, and with
/// milliseconds if `exact`.
pub fn local(ns: i128, exact: bool) -> String {
    let Ok(instant) = Timestamp::from_nanosecond(ns) else { return "-".to_owned() };
    let format = if exact { "%Y-%m-%dT%H:%M:%S%.3f%:z" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    instant.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// Formats an instant as ISO 8601 in UTC with milliseconds. `None` before the year -9999 and after
/// 9999.
pub fn utc(ns: i128) -> Option<String> {
    let instant = Timestamp::from_nanosecond(ns).ok()?;
    Some(instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

#[cfg(test)]
mod tests {
    use blockstone_record::testing;

    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn times_of_a_recording_are_durations_clocks_and_instants() {
        let of = |text: &str| text.parse::<When>();
        assert_eq!(of("10m").unwrap(), When::After(Nanos::millis(600_000)));
        assert!(matches!(of("18:45"), Ok(When::Clock(_))));
        assert!(matches!(of("18:45:10.5"), Ok(When::Clock(_))));
        assert!(matches!(of("2026-11-24T18:45"), Ok(When::Day(_))));
        assert!(matches!(of("2026-11-24 18:45:10"), Ok(When::Day(_))));
        for text in ["2026-11-24T18:45:10Z", "2026-11-24T18:45:10+01:00", "2026-11-24 18:45Z"] {
            assert!(matches!(of(text), Ok(When::At(_))), "{text}");
        }
        for text in ["", "10", "25:00", "18:45pm", "2026-11-24", "yesterday", "-5s"] {
            let error = of(text).unwrap_err();
            assert!(error.told().contains("18:45:10"), "{text}: {error}");
        }
    }

    #[test]
    fn a_clock_names_the_time_of_the_recording_that_it_showed() {
        const S: u64 = 1_000_000_000;
        let mut manifest = testing::manifest();
        // Two hours from 22:00 on, in whatever time zone the test runs.
        let begin = DateTime::constant(2026, 11, 24, 22, 0, 0, 0);
        let begin = TimeZone::system().to_zoned(begin).unwrap().timestamp();
        manifest.started_at = begin.to_string();
        manifest.clocks = Vec::new();
        let ticks = (5 * S, 4 * 3_600 * S);
        let at = |text: &str| text.parse::<When>().unwrap().t_ns(&manifest, ticks).unwrap();
        assert_eq!(at("10s"), 15 * S, "after the first tick");
        assert_eq!(at("22:00:30"), 30 * S);
        assert_eq!(at("01:00"), 3 * 3_600 * S, "on the next day");
        assert_eq!(at("2026-11-24T23:00"), 3_600 * S);
        assert_eq!(at("21:00"), 0, "before its beginning");
        let later = Timestamp::from_second(begin.as_second() + 90).unwrap();
        assert_eq!(at(&later.to_string()), 90 * S);
        // Within two days, this time occurs twice.
        let ticks = (0, 48 * 3_600 * S);
        let error = "01:00".parse::<When>().unwrap().t_ns(&manifest, ticks).unwrap_err();
        assert!(error.to_string().contains("more than once"), "{error}");
        manifest.started_at = "yesterday".to_owned();
        let error = "01:00".parse::<When>().unwrap().t_ns(&manifest, ticks).unwrap_err();
        assert!(crate::testing::told(&error).contains("hint:"), "{error}");
    }

    #[test]
    fn local_time_says_how_far_it_is_from_utc() {
        let text = local(1_795_489_200_123_000_000, true);
        let parsed: Timestamp = text.parse().unwrap();
        assert_eq!(parsed.as_nanosecond(), 1_795_489_200_123_000_000);
        assert_eq!(
            local(1_795_489_200_123_000_000, false).len(),
            "2026-11-24T03:00:00+00:00".len()
        );
    }
}
