//! Keys that take most rows of a source into a subset, and what `--null` with each would save.

use std::time::{Duration, Instant};

use anyhow::Result;
use blockstone_base::units::thousands;
use blockstone_report::percent;
use blockstone_servers::subset::source::SubsetSource;
use blockstone_subset::null::{self, Adding, Saved};
use blockstone_subset::{Plan, Settings, close};

use super::Ran;

/// Keys without which the subset is planned again, at most.
const TRIED: usize = 3;
/// Keys that the warning names.
const NAMED: usize = 3;

/// Returns the keys if most rows of the source are taken because of them. Within `time`, the subset
/// is planned again without one of them, for exact figures; `None` does not try.
pub fn find<S: SubsetSource>(
    source: &mut S,
    settings: &Settings,
    plan: &Plan,
    time: Option<Duration>,
) -> Result<Vec<Adding>> {
    if !null::takes_most(plan) {
        return Ok(Vec::new());
    }
    let mut all = null::adding(source.catalogue(), plan, &settings.nulled);
    if settings.stratified || settings.cap.is_some() {
        // Without the key, different seeds would be drawn, so the saving has no bound.
        for adding in all.iter_mut().filter(|adding| !matches!(adding.saved, Saved::Not(_))) {
            adding.saved = Saved::Unknown;
        }
    }
    let began = Instant::now();
    for adding in all.iter_mut().take(TRIED) {
        let is_over = time.is_none_or(|time| began.elapsed() > time);
        if is_over || matches!(adding.saved, Saved::Not(_)) {
            break;
        }
        let mut without = settings.clone();
        without.nulled.push(adding.key);
        let rows = close(source, &without)?.rows();
        adding.saved = Saved::Exactly(plan.rows().saturating_sub(rows));
    }
    null::sort(&mut all);
    Ok(all)
}

/// Returns what the figure of the saved rows is, or why there is none.
pub fn figure(saved: &Saved) -> String {
    match saved {
        Saved::Exactly(_) => "exact".to_owned(),
        Saved::AtMost(_) => "at most".to_owned(),
        Saved::Unknown => "known with --dry-run".to_owned(),
        Saved::Not(why) => why.clone(),
    }
}

pub fn rows(saved: &Saved) -> Option<u64> {
    match saved {
        Saved::Exactly(rows) | Saved::AtMost(rows) => Some(*rows),
        Saved::Unknown | Saved::Not(_) => None,
    }
}

fn number(rows: u64) -> String {
    thousands(i64::try_from(rows).unwrap_or(i64::MAX))
}

/// Returns a warning that names the keys that add the most rows, and the one to do without.
pub fn warning(ran: &Ran) -> Option<String> {
    let first = ran.adding.first()?;
    let name = |adding: &Adding| ran.manifest.keys.get(adding.key).map(|key| key.name.as_str());
    let source: u64 = ran.manifest.tables.iter().map(|table| table.source_rows).sum();
    let chosen: u64 = ran.manifest.tables.iter().map(|table| table.seeds).sum();
    let mut most: Vec<&Adding> = ran.adding.iter().collect();
    most.sort_by_key(|adding| std::cmp::Reverse(adding.rows));
    let more = most.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let most = most.iter().take(NAMED);
    let most = most.filter_map(|it| Some(format!("{} ({} rows)", name(it)?, number(it.rows))));
    let most = most.collect::<Vec<_>>().join(", ");
    let key = name(first)?;
    let offer = match &first.saved {
        Saved::Exactly(rows) => format!("--null {key} would save {} rows", number(*rows)),
        Saved::AtMost(rows) => {
            format!("--null {key} would save at most {} rows; --dry-run says it", number(*rows))
        }
        Saved::Unknown => format!("--dry-run says how many rows --null {key} would save"),
        Saved::Not(_) => "none of them can be set to NULL".to_owned(),
    };
    Some(format!(
        "Keys take {} of all rows, though {} rows were chosen: {most}{more}; {offer}.",
        percent(ran.rows() as f64 / source.max(1) as f64),
        number(chosen),
    ))
}
