//! `runs rm` and `runs prune`: removes recordings, and says which and how large they were.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use anyhow::{Result, bail};
use blockstone_base::table::Rows as _;
use blockstone_base::units::{Bytes, counted};
use blockstone_record::{RunEntry, RunState, removable, remove};
use blockstone_report::{Headline, Report, Section};
use jiff::{SignedDuration, Timestamp};

use super::args::{PruneArgs, RmArgs};
use super::rows::RemovedRow;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::recordings;
use crate::verb::Context;

pub fn rm(args: &RmArgs, context: &Context) -> Result<Exit> {
    let mut chosen: Vec<RunEntry> = Vec::new();
    for name in &args.recordings {
        let found = recordings::find(name, &context.global.runs_dir)?;
        if !chosen.iter().any(|run| run.path == found.path) {
            chosen.push(found);
        }
    }
    // All are looked at before the first is removed.
    for run in &chosen {
        removable(&run.path)?;
    }
    finish(&report("runs-rm", &chosen, false), context)
}

pub fn prune(args: &PruneArgs, context: &Context) -> Result<Exit> {
    let mut runs = blockstone_record::list_runs_in(&context.global.runs_dir)?;
    runs.retain(|run| args.filter.selects(run));
    let Chosen { runs, tagged } = Chosen::among(runs, args, Timestamp::now());
    if tagged > 0 {
        let them = counted(tagged as u64, "recording");
        context.printer.note(&format!("{them} with tags kept; --tagged removes these, too"));
    }
    if !runs.is_empty() && !args.dry_run && !args.yes && !agreed(&runs)? {
        context.printer.note("nothing was removed");
        return Ok(Exit::Done);
    }
    finish(&report("runs-prune", &runs, args.dry_run), context)
}

/// Recordings that `prune` removes.
struct Chosen {
    runs: Vec<RunEntry>,
    /// Recordings that only their tags keep.
    tagged: usize,
}

impl Chosen {
    /// Chooses among recordings that are listed newest first.
    fn among(mut runs: Vec<RunEntry>, args: &PruneArgs, now: Timestamp) -> Self {
        if let Some(keep) = args.keep {
            runs.drain(..keep.min(runs.len()));
        }
        // Of one whose beginning is not known, nothing says that it is old. One that began long ago
        // may have recorded until yesterday.
        let is_older = |run: &RunEntry, age: SignedDuration| {
            let last =
                run.started_at.map(|at| run.changed_at.map_or(at, |changed| changed.max(at)));
            last.is_some_and(|at| now.duration_since(at) > age)
        };
        runs.retain(|run| args.older_than.is_none_or(|age| is_older(run, age)));
        runs.retain(|run| run.state != RunState::Running);
        let all = runs.len();
        // Labels that cannot be read may be tags.
        let has_tags = |run: &RunEntry| run.labels.as_ref().map_or(true, |it| !it.tags.is_empty());
        runs.retain(|run| args.tagged || !has_tags(run));
        Self { tagged: all - runs.len(), runs }
    }
}

/// Asks whether these may be removed. Fails when there is no terminal to ask on.
fn agreed(runs: &[RunEntry]) -> Result<bool> {
    let bytes = runs.iter().filter_map(|run| removable(&run.path).ok()).map(Bytes::get).sum();
    let them = format!("{} ({})", counted(runs.len() as u64, "recording"), Bytes(bytes));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        bail!(Failure::new(
            format!("remove {them}: standard input is not a terminal on which to ask"),
            "--yes removes them without asking, --dry-run lists them"
        ));
    }
    let _ = write!(io::stderr(), "Remove {them}? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().take(64).read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Removes them, unless that is only tried, and reports what became of each.
fn report(document: &'static str, runs: &[RunEntry], is_dry: bool) -> Report {
    let (act, done) =
        if is_dry { (removable as Act, "would be removed") } else { (remove as Act, "removed") };
    let rows: Vec<RemovedRow> = runs
        .iter()
        .map(|run| {
            let (bytes, outcome, why) = match act(&run.path) {
                Ok(bytes) => (Some(bytes.get()), done, String::new()),
                Err(error) => (None, "kept", error.to_string()),
            };
            RemovedRow {
                id: run.id.clone(),
                recording: run.name(),
                started_at: run.started_at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
                bytes,
                outcome,
                why,
            }
        })
        .collect();
    let removed: Vec<u64> = rows.iter().filter_map(|row| row.bytes).collect();
    let (them, bytes) = (counted(removed.len() as u64, "recording"), Bytes(removed.iter().sum()));
    Report {
        verb: document.into(),
        version: 2,
        headline: Headline { text: format!("{them} {done}: {bytes}"), ..Headline::default() },
        is_undone: removed.len() < rows.len(),
        sections: vec![Section::new("removed", "").with([RemovedRow::table("removed", "", rows)])],
        ..Report::default()
    }
}

type Act = fn(&std::path::Path) -> std::result::Result<Bytes, blockstone_record::RecordError>;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blockstone_record::Labels;
    use blockstone_record::manifest::End;

    use super::*;
    use crate::verbs::runs::args::Filter;

    /// A recording that began so many days before the present of the tests.
    fn run(id: &str, days: Option<i64>, tags: &[&str], state: RunState) -> RunEntry {
        let ago = |days: i64| NOW - SignedDuration::from_hours(24 * days);
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        RunEntry {
            path: id.into(),
            id: id.to_owned(),
            verb: "run".to_owned(),
            started_at: days.map(ago),
            changed_at: days.map(ago),
            target_path: None,
            state,
            summary: BTreeMap::new(),
            labels: Ok(Labels { tags, note: String::new() }),
        }
    }

    const NOW: Timestamp = Timestamp::constant(1_780_000_000, 0);

    fn chosen(keep: Option<usize>, days: Option<i64>, tagged: bool) -> (Vec<String>, usize) {
        let ended = || RunState::Ended(End::Complete);
        let runs = vec![
            run("a", Some(1), &[], ended()),
            run("b", Some(2), &["baseline"], ended()),
            run("c", Some(30), &[], RunState::Running),
            run("d", Some(40), &[], ended()),
            run("e", Some(50), &["x"], ended()),
            RunEntry { labels: Err("damaged".to_owned()), ..run("f", Some(60), &[], ended()) },
            run("g", None, &[], RunState::Damaged { reason: "EOF".to_owned() }),
            RunEntry { changed_at: Some(NOW), ..run("h", Some(70), &["y"], ended()) },
        ];
        let older_than = days.map(|days| SignedDuration::from_hours(24 * days));
        let (filter, dry_run, yes) = (Filter::default(), false, true);
        let args = PruneArgs { keep, older_than, filter, tagged, dry_run, yes };
        let chosen = Chosen::among(runs, &args, NOW);
        (chosen.runs.into_iter().map(|run| run.id).collect(), chosen.tagged)
    }

    #[test]
    fn the_newest_the_running_and_the_tagged_are_kept() {
        let ids = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(chosen(Some(0), None, true), (ids("abdefgh"), 0));
        assert_eq!(chosen(Some(0), None, false), (ids("adg"), 4));
        assert_eq!(chosen(Some(1), None, false), (ids("dg"), 4));
        assert_eq!(chosen(Some(9), None, false), (ids(""), 0));
        assert_eq!(chosen(None, Some(39), false), (ids("d"), 2), "g began nobody knows when");
        assert_eq!(chosen(None, Some(40), true), (ids("ef"), 0), "h was written just now");
    }
}
