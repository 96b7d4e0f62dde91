//! The options of `runs`.

use blockstone_base::units::Nanos;
use blockstone_record::RunEntry;
use clap::{ArgGroup, Args, Subcommand};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

use crate::purpose::NamesRecording;

/// Arguments of `runs`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  blockstone runs                          the newest first
  blockstone runs --verb run --since 2d    workload runs of the last two days
  blockstone runs tag last baseline nvme   runs --tag baseline finds it again
  blockstone runs --path pgdata --json     targets that contain `pgdata`
  blockstone runs note last 'before the firmware update'
  blockstone runs rm 20260101 calibrate:last
  blockstone runs prune --older-than 30d --dry-run")]
pub struct RunsArgs {
    #[command(flatten)]
    pub filter: Filter,
    /// List only recordings started since then: an age (2d, 12h), `today`, `yesterday`, or a local
    /// time (2026-11-22, 2026-11-22T14:30)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Timestamp>,
    /// Print only the names of the directories, one on a line
    #[arg(long, conflicts_with_all = ["json", "csv", "html"])]
    pub names: bool,
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// Which recordings are meant.
#[derive(Args, Clone, Debug, Default)]
pub struct Filter {
    /// Only recordings made by this verb
    #[arg(long, value_name = "VERB", value_parser = verb)]
    pub verb: Option<String>,
    /// Only recordings whose target contains this text
    #[arg(long, value_name = "TEXT")]
    pub path: Option<String>,
    /// Only recordings with this tag; several times, with all of them
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Remove recordings
    Rm(RmArgs),
    /// Remove old recordings, except those with tags
    Prune(PruneArgs),
    /// Give a recording tags
    Tag(TagArgs),
    /// Give a recording a note
    Note(NoteArgs),
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  blockstone runs rm last                 the newest
  blockstone runs rm 20260101 run:last    the recordings with these names")]
pub struct RmArgs {
    /// Names of recordings: the beginning of an id or a directory, `last`, `run:last~2`
    #[arg(required = true, value_name = "RECORDING", add = NamesRecording)]
    pub recordings: Vec<String>,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  blockstone runs prune --older-than 30d --dry-run
  blockstone runs prune --keep 20 --yes")]
#[command(group = ArgGroup::new("which").required(true))]
pub struct PruneArgs {
    /// Keep this many recordings, the newest, and remove all others
    #[arg(long, value_name = "N", group = "which")]
    pub keep: Option<usize>,
    /// Remove recordings to which nothing was written for longer than this, as in 30d; not
    /// together with --keep
    #[arg(long, value_name = "AGE", group = "which", value_parser = any_age)]
    pub older_than: Option<SignedDuration>,
    #[command(flatten)]
    pub filter: Filter,
    /// Remove recordings with tags, too
    #[arg(long)]
    pub tagged: bool,
    /// Only list what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short, conflicts_with = "dry_run")]
    pub yes: bool,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  blockstone runs tag last baseline nvme")]
pub struct TagArgs {
    /// The recording: the beginning of its id or directory, `last`, `run:last~2`
    #[arg(value_name = "RECORDING", add = NamesRecording)]
    pub recording: String,
    /// Words of letters, digits and any of _.:=+/-
    #[arg(value_name = "TAG", required = true)]
    pub tags: Vec<String>,
    /// Take these tags away instead
    #[arg(long)]
    pub remove: bool,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  blockstone runs note last 'before the firmware update'")]
pub struct NoteArgs {
    /// The recording: the beginning of its id or directory, `last`, `run:last~2`
    #[arg(value_name = "RECORDING", add = NamesRecording)]
    pub recording: String,
    /// One line, which replaces the present note; '' removes it
    #[arg(value_name = "TEXT")]
    pub text: String,
}

impl Filter {
    pub fn selects(&self, run: &RunEntry) -> bool {
        let target = run.target_path.as_deref().unwrap_or_default();
        let has = |tag: &String| run.labels.as_ref().is_ok_and(|labels| labels.tags.contains(tag));
        self.verb.as_ref().is_none_or(|verb| run.verb == *verb)
            && self.path.as_ref().is_none_or(|path| target.contains(path.as_str()))
            && self.tag.iter().all(has)
    }

    fn is_given(&self) -> bool {
        self.verb.is_some() || self.path.is_some() || !self.tag.is_empty()
    }
}

impl RunsArgs {
    /// Whether an option of the list is given.
    pub fn lists(&self) -> bool {
        self.filter.is_given() || self.since.is_some() || self.names
    }
}

fn verb(text: &str) -> Result<String, String> {
    match crate::verbs::find(text) {
        Some(verb) => Ok(verb.name.to_owned()),
        None => Err(format!("unknown verb `{text}`")),
    }
}

/// Parses an age before now, a day, or a date with or without a time of day in the system's time
/// zone.
fn since(text: &str) -> Result<Timestamp, String> {
    let fail = || format!("`{text}` is neither an age such as 2d nor a date such as 2026-11-22");
    let day = |days: i64| {
        let day = Zoned::now().checked_sub(days.days()).and_then(|it| it.start_of_day());
        day.map(|day| day.timestamp()).map_err(|_| fail())
    };
    match text {
        "today" => return day(0),
        "yesterday" => return day(1),
        _ => {}
    }
    if let Some(age) = age(text) {
        return Timestamp::now().checked_sub(age).map_err(|_| fail());
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let local: DateTime = text.parse().map_err(|_| fail())?;
    Ok(local.to_zoned(TimeZone::system()).map_err(|_| fail())?.timestamp())
}

fn any_age(text: &str) -> Result<SignedDuration, String> {
    age(text).ok_or_else(|| format!("`{text}` is not an age such as 30d, 4w or 12h"))
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
        let (today, yesterday) = (since("today").unwrap(), since("yesterday").unwrap());
        assert!(today < Timestamp::now() && yesterday < today);
        assert!((23..=25).contains(&today.duration_since(yesterday).as_hours()));
        for text in ["", "d", "-2d", "2", "tomorrow", "2026-13-01", "99999999999999999d"] {
            assert!(since(text).is_err(), "{text}");
        }
    }
}
