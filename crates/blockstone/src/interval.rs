//! Selection of a part of a recording's time, and of a part of its samples.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use blockstone_base::units::format_span;
use blockstone_figures::WallClock;
use blockstone_record::manifest::ProbeInfo;
use blockstone_record::{Manifest, Recording, TICKS};
use blockstone_view::{Condition, Focus, History, registry};
use jiff::tz::TimeZone;

use crate::failure::Failure;
use crate::instants::{self, When};

/// Reads the history of a part of a recording and returns it with its interval in nanoseconds.
pub fn read(
    recording: &Recording,
    from: Option<When>,
    to: Option<When>,
) -> Result<Option<(History, (u64, u64))>> {
    let ticks = recording.instants(TICKS)?;
    let Some(span_ns) = edges(&recording.manifest, &ticks, from, to)? else { return Ok(None) };
    let history = History::read_part(recording, ticks, span_ns)?;
    Ok(Some((history.in_zone(TimeZone::system()), span_ns)))
}

/// Returns the ticks nearest to two instants; the first and the last tick if these are not given.
/// `None` if there are fewer than two ticks.
pub fn edges(
    manifest: &Manifest,
    ticks: &[u64],
    from: Option<When>,
    to: Option<When>,
) -> Result<Option<(u64, u64)>> {
    let (Some(&first), Some(&last)) = (ticks.first(), ticks.last()) else { return Ok(None) };
    let at = |when: Option<When>, default: u64| {
        let Some(when) = when else { return Ok(default) };
        let meant = when.t_ns(manifest, (first, last))?;
        let nearest = ticks.iter().copied().min_by_key(|tick| tick.abs_diff(meant));
        anyhow::Ok(nearest.unwrap_or(default))
    };
    let (from_ns, to_ns) = (at(from, first)?, at(to, last)?);
    if from_ns >= to_ns && first < last {
        let said = |when: Option<When>, default: &str| {
            when.map_or_else(|| default.to_owned(), |when| when.to_string())
        };
        let clock = WallClock::of(manifest);
        let clocks = clock.realtime_ns(first).zip(clock.realtime_ns(last)).map(|(first, last)| {
            format!(", from {} to {}", instants::local(first, false), instants::local(last, false))
        });
        bail!(Failure::new(
            format!(
                "show from {} to {}: fewer than two samples were recorded in this time",
                said(from, "its start"),
                said(to, "its end")
            ),
            format!(
                "the recording lasts {}{}",
                format_span(last - first),
                clocks.unwrap_or_default()
            )
        ));
    }
    Ok((from_ns < to_ns).then_some((from_ns, to_ns)))
}

/// Returns the interval, or an error that says why there is none.
pub fn some<T>(interval: Option<T>) -> Result<T> {
    interval.ok_or_else(|| {
        anyhow!(Failure::new(
            "show an interval: fewer than two samples were recorded",
            "it ended too early"
        ))
    })
}

/// Returns a focus on the session samples that meet these conditions. Fails if a named view is not
/// made of samples and would therefore ignore them, or if a condition names a database that is not
/// in the history.
pub fn focus(views: &[String], only: &[Condition], history: &History) -> Result<Option<Focus>> {
    let Some(condition) = only.first() else { return Ok(None) };
    let mut others = registry::ALL.iter().filter(|view| !view.is_sampled());
    if let Some(other) = others.find(|view| views.iter().any(|name| name == view.name)) {
        bail!(Failure::new(
            format!(
                "show {} where {condition}: that table is not made of session samples",
                other.name
            ),
            "omit it from --view, or omit --where"
        ));
    }
    let names: BTreeSet<&str> = history.probes().filter_map(ProbeInfo::instance).collect();
    let is_unknown = |it: &&Condition| it.instance().is_some_and(|name| !names.contains(name));
    if let Some(condition) = only.iter().find(is_unknown) {
        let names: Vec<&str> = names.into_iter().collect();
        let hint = match names.as_slice() {
            [] => {
                "a database has a name only where several are watched: omit this condition".into()
            }
            names => format!("the databases are {}", names.join(", ")),
        };
        bail!(Failure::new(
            format!("show samples where {condition}: no database has this name"),
            hint
        ));
    }
    Ok(Some(only.iter().cloned().collect()))
}
