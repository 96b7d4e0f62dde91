//! `blockstone runs`: the list of recordings, newest first; labels them and removes them.

mod args;
mod earlier;
mod labelling;
mod removal;
mod rows;

use std::path::Path;

use anyhow::{Result, bail};
use blockstone_base::table::{Rows as _, Table, Value};
use blockstone_record::manifest::End;
use blockstone_record::{RunEntry, RunState};
use blockstone_report::render::json::schema::{Document, Tables};
use blockstone_report::{Report, Section};
use clap::{Args, FromArgMatches};
use jiff::{Timestamp, Zoned, tz::TimeZone};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::recordings;
use crate::verb::{Context, Verb};
use args::{Action, RunsArgs};
use rows::{FigureRow, RecordingRow, RemovedRow, RunRow};

pub const VERB: Verb = Verb {
    name: "runs",
    about: "List, label and remove recordings",
    options: RunsArgs::augment_args,
    run: |options, context| run(&RunsArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    documents: &[
        Document::of_tables(("runs", 2), "The recordings there are", &[], &[TABLES])
            .with_names(&[&[LIST]]),
        Document::of_tables(("runs-rm", 2), "Recordings that were removed", &[], &[REMOVED]),
        Document::of_tables(("runs-prune", 2), "Old ones that were removed", &[], &[REMOVED]),
    ],
    ..Verb::PLAIN
};

const TABLES: Tables = &[("recordings", RecordingRow::COLUMNS), ("figures", FigureRow::COLUMNS)];

const REMOVED: Tables = &[("removed", RemovedRow::COLUMNS)];

/// Table for people.
const LIST: &str = "runs";

/// Mark of a figure that would be struck through if the table had room.
const CONDEMNED: &str = "✗";

/// Figures that each column can show, in the order in which they are looked for.
const SHOWN: [&[&str]; 3] =
    [&["max_iops", "read_iops"], &["max_mbps", "read_mbps"], &["commit_latency_ns_p50"]];

fn run(args: &RunsArgs, context: &Context) -> Result<Exit> {
    blockstone_sys::memory::hold_to(None);
    let Some(action) = &args.action else { return list(args, context) };
    if args.lists() {
        bail!(Failure::new(
            "runs: an option of the list has no effect on what follows it",
            "prune takes --verb, --path and --tag after its name"
        ));
    }
    match action {
        Action::Rm(args) => removal::rm(args, context),
        Action::Prune(args) => removal::prune(args, context),
        Action::Tag(args) => labelling::tag(args, context),
        Action::Note(args) => labelling::note(args, context),
    }
}

fn list(args: &RunsArgs, context: &Context) -> Result<Exit> {
    let dir = &context.global.runs_dir;
    let mut runs = blockstone_record::list_runs(dir)?;
    let recorded = runs.len();
    let is_late = |run: &RunEntry, since| run.started_at.is_some_and(|at| at >= since);
    runs.retain(|run| args.since.is_none_or(|since| is_late(run, since)));
    runs.retain(|run| args.filter.selects(run));
    if args.names {
        let name = |run: &RunEntry| elsewhere(run, dir).unwrap_or_else(|| run.name());
        let line = |run: &RunEntry| name(run).replace('\n', "\\n") + "\n";
        context.printer.answer(&runs.iter().map(line).collect::<String>())?;
        return Ok(Exit::Done);
    }
    if runs.is_empty() && is_on_screen(context) {
        let left = recordings::left_here(dir);
        let dir = dir.display();
        context.printer.note(&match (recorded, left) {
            (0, Some(left)) => format!("no recordings in {dir}\nhint: {left}"),
            (0, None) => format!("no recordings in {dir}\nhint: blockstone run . makes one"),
            (all, _) => format!(
                "none of the {all} recordings in {dir} matches\nhint: blockstone runs lists all"
            ),
        });
        return Ok(Exit::Done);
    }
    show(&runs, context)
}

fn is_on_screen(context: &Context) -> bool {
    let global = &context.global;
    global.json.is_none() && global.csv.is_none() && global.html.is_none()
}

fn show(runs: &[RunEntry], context: &Context) -> Result<Exit> {
    // Documents and pages have room for whole paths and times.
    let width = is_on_screen(context).then(|| context.printer.style().width);
    finish(&report(runs, &context.global.runs_dir, width), context)
}

/// Returns the path of a recording that is not in the directory of recordings.
fn elsewhere(run: &RunEntry, dir: &Path) -> Option<String> {
    (!run.path.starts_with(dir)).then(|| run.path.display().to_string())
}

/// Returns a report with a row for each recording, at most `width` columns wide if that is given.
/// `dir` is the directory of recordings.
fn report(runs: &[RunEntry], dir: &Path, width: Option<usize>) -> Report {
    let now = Zoned::now();
    let time = |at: Timestamp| if width.is_some() { local_time(at, &now) } else { at.to_string() };
    let row = |run: &RunEntry| {
        let [iops, mbps, commit_latency_ns_p50] = SHOWN.map(|names| figure(run, names));
        RunRow {
            id: run.id.clone(),
            started_at: run.started_at.map_or_else(String::new, time),
            verb: run.verb.clone(),
            // Fits into the room that the other columns leave.
            target: String::new(),
            state: state_word(&run.state),
            iops,
            mbps,
            commit_latency_ns_p50,
        }
    };
    let mut table = RunRow::table(LIST, "", runs.iter().map(row));
    name_targets(&mut table, runs, width);
    if table.rows.iter().any(|row| row.contains(&Value::from(CONDEMNED))) {
        table
            .notes
            .push(format!("{CONDEMNED} condemned by a rule: blockstone report ID shows why"));
    }
    let explained =
        runs.iter().filter_map(|run| Some(format!("{}: {}", run.id, explained(&run.state)?)));
    table.notes.extend(explained);
    table.notes.extend(runs.iter().filter_map(|run| Some(format!("{}: {}", run.id, label(run)?))));
    let places =
        runs.iter().filter_map(|run| Some(format!("{}: in {}", run.id, elsewhere(run, dir)?)));
    table.notes.extend(places);
    let figures = Table::new("figures", "", FigureRow::COLUMNS);
    let documents = [
        RecordingRow::table("recordings", "", runs.iter().map(RecordingRow::of)),
        figures.with(runs.iter().flat_map(FigureRow::of)),
    ];
    Report {
        verb: "runs".into(),
        version: 2,
        sections: vec![Section::new("runs", "").with([table]), Section::documents(documents)],
        notes: if runs.is_empty() { vec!["no recordings".to_owned()] } else { Vec::new() },
        shown_only: &[LIST],
        first: earlier::keys(runs),
        ..Report::default()
    }
}

/// Returns what the user says of a recording: `#baseline before the firmware update`.
fn label(run: &RunEntry) -> Option<String> {
    match &run.labels {
        Ok(labels) => labels.shown(),
        Err(error) => Some(first_line(error).to_owned()),
    }
}

/// Fits the targets into the room that the other columns leave.
fn name_targets(table: &mut Table, runs: &[RunEntry], width: Option<usize>) {
    const TARGET: usize = 3;
    const GAP: usize = 2;
    const NARROWEST: usize = 10;
    let written = |index: usize| {
        let column = &table.columns[index];
        let cells =
            table.rows.iter().map(|row| blockstone_report::cell(&row[index], column.measure));
        let widths = cells.map(|cell| cell.chars().count());
        widths.max().unwrap_or(0).max(column.heading.chars().count()) + GAP
    };
    let others: usize =
        (0..table.columns.len()).filter(|&index| index != TARGET).map(written).sum();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(others + GAP).max(NARROWEST));
    for (row, run) in table.rows.iter_mut().zip(runs) {
        row.cells[TARGET] = Value::Text(shortened(run.target_path.as_deref().unwrap_or("–"), room));
    }
}

/// Returns the end of a path, starting at a directory if one fits: `…/pgdata`.
fn shortened(path: &str, room: usize) -> String {
    let length = path.chars().count();
    if length <= room {
        return path.to_owned();
    }
    let tail: String = path.chars().skip(length + 1 - room).collect();
    let from = tail.find('/').filter(|&at| at + 1 < tail.len()).unwrap_or(0);
    format!("…{}", &tail[from..])
}

/// Returns the month, day and time of day for this year, otherwise the date.
fn local_time(at: Timestamp, now: &Zoned) -> String {
    let at = at.to_zoned(TimeZone::system());
    let format = if at.year() == now.year() { "%m-%d %H:%M" } else { "%Y-%m-%d" };
    at.strftime(format).to_string()
}

fn figure(run: &RunEntry, names: &[&str]) -> Value {
    match names.iter().find_map(|name| run.summary.get(*name)) {
        None => Value::default(),
        Some(figure) if !figure.condemned_by.is_empty() => CONDEMNED.into(),
        Some(figure) => figure.estimate.value.into(),
    }
}

fn state_word(state: &RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Unfinished => "unfinished",
        RunState::Damaged { .. } => "damaged",
        RunState::Grid { .. } => "grid",
        RunState::Ended(End::Complete | End::Running) => "complete",
        RunState::Ended(End::Interrupted { .. }) => "interrupted",
        RunState::Ended(End::Failed { .. }) => "failed",
    }
}

/// Returns why a recording is not complete, if that is known.
fn reason(state: &RunState) -> Option<&str> {
    match state {
        RunState::Damaged { reason } => Some(first_line(reason)),
        RunState::Ended(End::Interrupted { signal }) => Some(signal),
        RunState::Ended(End::Failed { error, .. }) => Some(first_line(error)),
        _ => None,
    }
}

/// Returns how a recording ended that is not complete, with its reason.
fn explained(state: &RunState) -> Option<String> {
    let (word, reason) = (state_word(state), reason(state)?);
    Some(match state {
        RunState::Ended(End::Interrupted { .. }) => format!("{word} ({reason})"),
        _ => format!("{word}: {reason}"),
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blockstone_base::stats::Estimate;
    use blockstone_record::Labels;
    use blockstone_record::manifest::Figure;
    use blockstone_report::render::terminal::{self, Style};

    use super::args::Filter;
    use super::*;

    fn run(id: &str, target: &str, condemned_by: &[&str]) -> RunEntry {
        let figure = |unit: &str, value: f64| Figure {
            unit: unit.to_owned(),
            title: String::new(),
            phase: String::new(),
            estimate: Estimate { value, low: value, high: value, samples: 9, duration_ns: 1 },
            condemned_by: condemned_by.iter().map(|rule| (*rule).to_owned()).collect(),
        };
        let summary = [
            ("read_iops", figure("IOPS", 1_445_714.0)),
            ("read_mbps", figure("MB/s", 11_843.0)),
            ("commit_latency_ns_p50", figure("ns", 437_000.0)),
        ];
        RunEntry {
            path: format!("/runs/{id}").into(),
            id: id.to_owned(),
            verb: "calibrate".to_owned(),
            started_at: Some("2025-11-22T14:30:00Z".parse().unwrap()),
            changed_at: None,
            target_path: Some(target.to_owned()),
            state: RunState::Ended(End::Complete),
            summary: BTreeMap::from(summary.map(|(name, figure)| (name.to_owned(), figure))),
            labels: Ok(Labels::default()),
        }
    }

    #[test]
    fn rows_fit_a_narrow_terminal_and_lose_no_column() {
        let long = "/srv/storage/volumes/0007/postgresql/16/main/pgdata";
        let failed = RunState::Ended(End::failed(&Failure::new("open /x: no space", "y")));
        let mut runs = vec![run("8fj2k1", long, &[]), run("9gh3m2", "/d", &["hole"])];
        runs.push(RunEntry { state: failed, ..run("7xxxxx", long, &[]) });
        for width in [80, 100] {
            let style = Style { color: false, width };
            let report = report(&runs, Path::new("/runs"), Some(width));
            let text = terminal::text(&report, false, &style);
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{text}");
            assert!(lines[0].ends_with("commit"), "{text}");
            assert!(lines[1].contains("/pgdata ") && lines[1].contains("1,445,714"), "{text}");
            assert!(lines[2].contains(" /d ") && lines[2].ends_with(CONDEMNED), "{text}");
            assert!(text.contains("7xxxxx: failed: open /x: no space\n"), "{text}");
            assert_eq!(lines.len(), 6, "one line for each run: {text}");
        }
    }

    #[test]
    fn a_recording_in_another_directory_is_listed_with_its_path() {
        let runs = [run("8fj2k1", "/d", &[]), run("9gh3m2", "/d", &[])];
        let said = |dir: &str| {
            let report = report(&runs, Path::new(dir), Some(80));
            terminal::text(&report, false, &Style { color: false, width: 80 })
        };
        assert!(said("/var/lib/runs").contains("9gh3m2: in /runs/9gh3m2\n"));
        assert!(!said("/runs").contains(": in "));
    }

    #[test]
    fn paths_are_cut_at_their_beginning() {
        assert_eq!(shortened("/a/b", 10), "/a/b");
        assert_eq!(shortened("/srv/storage/pgdata", 10), "…/pgdata");
        assert_eq!(shortened("/srv/a-name-that-is-long", 10), "…t-is-long");
    }

    #[test]
    fn filters_select_by_verb_path_and_tags() {
        let mut entry = run("8fj2k1", "/srv/pgdata", &[]);
        let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        entry.labels =
            Ok(Labels { tags: tags(&["a", "b"]).into_iter().collect(), ..Labels::default() });
        let wanted = |filter: Filter| filter.selects(&entry);
        let verb = |name: &str| Filter { verb: Some(name.to_owned()), ..Filter::default() };
        let path = |text: &str| Filter { path: Some(text.to_owned()), ..Filter::default() };
        let tag = |all: &[&str]| Filter { tag: tags(all), ..Filter::default() };
        assert!(wanted(Filter::default()) && wanted(verb("calibrate")) && !wanted(verb("run")));
        assert!(wanted(path("/srv")) && wanted(path("pg")) && !wanted(path("/pg/")));
        assert!(wanted(tag(&["a"])) && wanted(tag(&["b", "a"])) && !wanted(tag(&["a", "c"])));
    }

    #[test]
    fn what_the_user_says_stands_below_the_list_and_in_the_document() {
        let mut entry = run("8fj2k1", "/srv/pgdata", &[]);
        let mut labels = Labels::default();
        labels.tag("nvme").unwrap();
        labels.tag("baseline").unwrap();
        labels.annotate("before the update").unwrap();
        entry.labels = Ok(labels);
        let damaged =
            RunEntry { labels: Err("read labels.json: EOF".to_owned()), ..run("9", "/", &[]) };
        let report = report(&[entry, damaged], Path::new("/runs"), Some(80));
        let text = terminal::text(&report, false, &Style { color: false, width: 80 });
        assert!(text.contains("8fj2k1: #baseline #nvme before the update\n"), "{text}");
        assert!(text.contains("9: read labels.json: EOF"), "{text}");
        let document = blockstone_report::render::json::document(&report);
        crate::testing::keeps_to_its_schema(&document);
        let row = &document["tables"]["recordings"][0];
        assert_eq!(
            (&row["tags"], &row["note"]),
            (&"baseline nvme".into(), &"before the update".into())
        );
    }
}
