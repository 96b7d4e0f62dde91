//! The lines of `sadf -d`: fields separated by `;` below the headings of each section.

use std::rc::Rc;

use super::super::text::Text;
use super::super::{Failure, Origin, Sink};
use super::super::{stamp, sysstat};
use super::table::{Gathered, TOO_MANY, Table};
use super::{SECOND_NS, Series, Time, Zone};

pub const HEADING: &str = "hostname;interval;timestamp";
const ALL_IN_ONE: &str = "[...]";

pub fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let mut origin = Origin::default();
    let mut gathered = Gathered::default();
    let mut table: Option<Rc<Table>> = None;
    let (mut is_local, mut restarts) = (false, 0);
    while let Some((number, is_cut, line)) = text.next_numbered()? {
        let damage = |what: String| Failure::Damage { line: number, what };
        if let Some((_, rest)) = line.split_once(HEADING) {
            if line.contains(ALL_IN_ONE) {
                let what = "all devices are in one line (sadf -h): run sadf -d without -h";
                return Err(damage(what.to_owned()));
            }
            let headings: Vec<&str> = rest.trim_start_matches(';').split(';').collect();
            table = Table::of(&headings);
            continue;
        }
        let fields: Vec<&str> = line.split(';').collect();
        let [host, seconds, time, cells @ ..] = &fields[..] else { continue };
        if is_cut {
            continue;
        }
        if origin.host.hostname.is_empty() {
            (*host).clone_into(&mut origin.host.hostname);
        }
        // Restarts and comments have no interval.
        let Some(seconds) = seconds.parse::<u64>().ok().filter(|seconds| *seconds > 0) else {
            if line.contains("LINUX-RESTART") {
                restarts += 1;
                // `LINUX-RESTART <tab> (4 CPU)`.
                origin.host.cpus = origin.host.cpus.max(sysstat::host_of(line).cpus);
            }
            continue;
        };
        let Some(table) = &table else { continue };
        let epoch = || time.parse().ok().and_then(stamp::of_seconds).map(|at_ns| (at_ns, true));
        let (at_ns, has_zone) = stamp::parse(time)
            .or_else(epoch)
            .ok_or_else(|| damage(format!("`{time}` is not a known format of time")))?;
        is_local |= !has_zone;
        let row = table.row(cells).map_err(|wants| {
            damage(format!("`{line}` has {} fields for {wants} headings", cells.len()))
        })?;
        let from_ns = at_ns.saturating_sub(seconds.saturating_mul(SECOND_NS));
        if !gathered.add(from_ns, at_ns, row) {
            return Err(damage(TOO_MANY.to_owned()));
        }
    }
    if text.is_cut() {
        origin.notes.push("the file is truncated: its last line was skipped".to_owned());
    }
    if restarts > 0 {
        origin.notes.push(format!("restarts of the host: {restarts}"));
    }
    let zone = if is_local { Zone::Local(String::new()) } else { Zone::Utc };
    if origin.host.cpus == 0 {
        origin.host.cpus = gathered.processors().try_into().unwrap_or(0);
    }
    origin.host.cpus_allowed_milli = origin.host.cpus.saturating_mul(1000);
    let mut series = Series::new(origin.host.cpus, sink);
    for (from_ns, at_ns, figures) in gathered.intervals() {
        let time = Time { at_ns, length_ns: at_ns - from_ns, zone: zone.clone() };
        series.add(&time, &figures)?;
    }
    origin.notes.extend(series.notes(""));
    Ok(origin)
}
