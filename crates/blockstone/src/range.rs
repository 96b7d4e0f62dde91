//! A recording or a part of its time as one word: `night`, `night@10m..12m`, `night@18:40..18:45`.

use std::path::Path;

use anyhow::Result;

use crate::failure::with_hint_of;
use crate::instants::When;

/// A recording, and optionally a range of its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRange {
    /// The recording: its directory, its id, or `last`.
    pub run: String,
    /// Start of the range; `None` for the beginning of the recording.
    pub from: Option<When>,
    /// End of the range; `None` for the end of the recording.
    pub to: Option<When>,
}

impl RecordingRange {
    /// The whole of a recording that is already open.
    pub const WHOLE: Self = Self { run: String::new(), from: None, to: None };

    /// Parses `text`. If a file or directory of exactly this name exists, the whole of it is meant.
    pub fn of(text: &str) -> Result<Self> {
        let whole = || Self { run: text.to_owned(), from: None, to: None };
        if Path::new(text).exists() {
            return Ok(whole());
        }
        let Some((run, (from, to))) = text
            .rsplit_once('@')
            .and_then(|(run, times)| Some((run, times.split_once("..")?)))
            .filter(|(run, _)| !run.is_empty())
        else {
            return Ok(whole());
        };
        let instant = |time: &str| match time {
            "" => Ok(None),
            time => match time.parse() {
                Ok(time) => Ok(Some(time)),
                Err(error) => {
                    let what = format!("read the time range {text}: {error}");
                    Err(with_hint_of(&error, what))
                }
            },
        };
        Ok(Self { run: run.to_owned(), from: instant(from)?, to: instant(to)? })
    }

    /// Fills in limits that the text left open.
    #[must_use]
    pub fn or(self, from: Option<When>, to: Option<When>) -> Self {
        Self { from: self.from.or(from), to: self.to.or(to), ..self }
    }

    /// Whether only a part of the recording is meant.
    pub fn is_limited(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::units::Nanos;

    use super::*;

    fn part(run: &str, from_s: Option<u64>, to_s: Option<u64>) -> RecordingRange {
        let time = |s: u64| When::After(Nanos::millis(s * 1_000));
        RecordingRange { run: run.to_owned(), from: from_s.map(time), to: to_s.map(time) }
    }

    #[test]
    fn a_part_is_a_recording_and_two_times_either_of_which_may_be_left_out() {
        let of = |text: &str| RecordingRange::of(text).unwrap();
        assert_eq!(of("no-such-run"), part("no-such-run", None, None));
        assert_eq!(of("night@10s..2m"), part("night", Some(10), Some(120)));
        assert_eq!(of("night@..2h"), part("night", None, Some(7_200)));
        assert_eq!(of("/d/me@home/night@90s.."), part("/d/me@home/night", Some(90), None));
        assert_eq!(of("/d/me@home/night"), part("/d/me@home/night", None, None));
        assert!(of("night@1s..").is_limited() && !of("night@..").is_limited());
    }

    #[test]
    fn a_part_may_be_named_by_the_clock() {
        let RecordingRange { run, from, to } =
            RecordingRange::of("night@18:40..2026-11-24T18:45:10+01:00").unwrap();
        assert_eq!(run, "night");
        assert!(matches!(from, Some(When::Clock(_))) && matches!(to, Some(When::At(_))));
    }

    #[test]
    fn a_time_that_is_none_is_named() {
        let error = crate::testing::told(&RecordingRange::of("night@ten..2m").unwrap_err());
        assert!(error.contains("night@ten..2m") && error.contains("hint:"), "{error}");
    }

    #[test]
    fn a_directory_of_this_name_is_a_whole_recording() {
        assert_eq!(RecordingRange::of(".").unwrap(), part(".", None, None));
    }
}
