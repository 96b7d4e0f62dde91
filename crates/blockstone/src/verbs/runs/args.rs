//! The options of `runs`.

use blockstone_base::units::Nanos;
use clap::Args;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Arguments of `runs`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  blockstone runs                         the newest first
  blockstone runs --verb run --since 2d   workload runs of the last two days
  blockstone runs --path pgdata --json    targets that contain `pgdata`")]
pub struct RunsArgs {
    /// List only recordings made by this verb
    #[arg(long, value_name = "VERB", value_parser = verb)]
    pub verb: Option<String>,
    /// List only recordings whose target contains this text
    #[arg(long, value_name = "TEXT")]
    pub path: Option<String>,
    /// List only recordings started since then: an age (2d, 12h) or a local time (2026-11-22,
    /// 2026-11-22T14:30)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Timestamp>,
}

fn verb(text: &str) -> Result<String, String> {
    match crate::verbs::find(text) {
        Some(verb) => Ok(verb.name.to_owned()),
        None => Err(format!("unknown verb `{text}`")),
    }
}

/// Parses an age before now, or a date with or without a time of day in the system's time zone.
fn since(text: &str) -> Result<Timestamp, String> {
    let fail = || format!("`{text}` is neither an age such as 2d nor a date such as 2026-11-22");
    if let Some(age) = age(text) {
        return Timestamp::now().checked_sub(age).map_err(|_| fail());
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let local: DateTime = text.parse().map_err(|_| fail())?;
    Ok(local.to_zoned(TimeZone::system()).map_err(|_| fail())?.timestamp())
}

fn age(text: &str) -> Option<SignedDuration> {
    const DAY_S: i64 = 24 * 60 * 60;
    for (suffix, seconds) in [("d", DAY_S), ("w", 7 * DAY_S)] {
        if let Some(count) = text.strip_suffix(suffix) {
            let count: u32 = count.parse().ok()?;
            return Some(SignedDuration::from_secs(i64::from(count) * seconds));
        }
    }
    let ns = i64::try_from(text.parse::<Nanos>().ok()?.get()).ok()?;
    Some(SignedDuration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_dates_are_read() {
        assert_eq!(age("2d"), Some(SignedDuration::from_hours(48)));
        assert_eq!(age("1w"), Some(SignedDuration::from_hours(168)));
        assert_eq!(age("12h"), Some(SignedDuration::from_hours(12)));
        let midnight = since("2026-11-22").unwrap();
        assert_eq!(since("2026-11-22T00:30").unwrap().duration_since(midnight).as_mins(), 30);
        assert_eq!(since("2026-11-22T14:30:00Z").unwrap().to_string(), "2026-11-22T14:30:00Z");
        assert!(since("2h").unwrap() < Timestamp::now());
        for text in ["", "d", "-2d", "2", "yesterday", "2026-13-01", "99999999999999999d"] {
            assert!(since(text).is_err(), "{text}");
        }
    }
}
