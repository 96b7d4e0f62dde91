//! `blockstone runs`: the list of recordings, newest first.

mod args;
mod earlier;
mod rows;

use anyhow::Result;
use blockstone_base::table::{Rows as _, Table, Value};
use blockstone_record::manifest::End;
use blockstone_record::{RunEntry, RunState};
use blockstone_report::render::json::schema::{Document, Tables};
use blockstone_report::{Report, Section};
use clap::{Args, FromArgMatches};
use jiff::{Timestamp, Zoned, tz::TimeZone};

use crate::exit::Exit;
use crate::finish::finish;
use crate::verb::{Context, Verb};
use args::RunsArgs;
use rows::{FigureRow, RecordingRow, RunRow};

pub const VERB: Verb = Verb {
    name: "runs",
    about: "List the recordings",
    options: RunsArgs::augment_args,
    run: |options, context| run(&RunsArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    documents: &[Document::of_tables(("runs", 2), "The recordings there are", &[], &[TABLES])
        .with_names(&[&[LIST]])],
    ..Verb::PLAIN
};

const TABLES: Tables = &[("recordings", RecordingRow::COLUMNS), ("figures", FigureRow::COLUMNS)];

/// Table for people.
const LIST: &str = "runs";

/// Mark of a figure that would be struck through if the table had room.
const CONDEMNED: &str = "✗";

/// Figures that each column can show, in the order in which they are looked for.
const SHOWN: [&[&str]; 3] =
    [&["max_iops", "read_iops"], &["max_mbps", "read_mbps"], &["commit_latency_ns_p50"]];

fn run(args: &RunsArgs, context: &Context) -> Result<Exit> {
    blockstone_sys::memory::hold_to(None);
    let dir = &context.global.runs_dir;
    let mut runs = blockstone_record::list_runs(dir)?;
    let recorded = runs.len();
    runs.retain(|run| is_wanted(run, args));
    let global = &context.global;
    let on_screen = global.json.is_none() && global.csv.is_none() && global.html.is_none();
    if runs.is_empty() && on_screen {
        let dir = dir.display();
        context.printer.note(&match recorded {
            0 => format!("no recordings in {dir}\nhint: blockstone run . makes one"),
            all => format!(
                "none of the {all} recordings in {dir} matches\nhint: blockstone runs lists all"
            ),
        });
        return Ok(Exit::Done);
    }
    // Documents and pages have room for whole paths and times.
    let width = on_screen.then(|| context.printer.style().width);
    finish(&report(&runs, width), context)
}

fn is_wanted(run: &RunEntry, args: &RunsArgs) -> bool {
    let target = run.target_path.as_deref().unwrap_or_default();
    args.verb.as_ref().is_none_or(|verb| run.verb == *verb)
        && args.path.as_ref().is_none_or(|path| target.contains(path.as_str()))
        && args.since.is_none_or(|since| run.started_at.is_some_and(|at| at >= since))
}

/// Returns a report with a row for each recording, at most `width` columns wide if that is given.
fn report(runs: &[RunEntry], width: Option<usize>) -> Report {
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
    use blockstone_record::manifest::Figure;
    use blockstone_report::render::terminal::{self, Style};

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
            target_path: Some(target.to_owned()),
            state: RunState::Ended(End::Complete),
            summary: BTreeMap::from(summary.map(|(name, figure)| (name.to_owned(), figure))),
        }
    }

    #[test]
    fn rows_fit_a_narrow_terminal_and_lose_no_column() {
        let long = "/srv/storage/volumes/0007/postgresql/16/main/pgdata";
        let failed =
            RunState::Ended(End::failed(&crate::failure::Failure::new("open /x: no space", "y")));
        let mut runs = vec![run("8fj2k1", long, &[]), run("9gh3m2", "/d", &["hole"])];
        runs.push(RunEntry { state: failed, ..run("7xxxxx", long, &[]) });
        for width in [80, 100] {
            let style = Style { color: false, width };
            let text = terminal::text(&report(&runs, Some(width)), false, &style);
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
    fn paths_are_cut_at_their_beginning() {
        assert_eq!(shortened("/a/b", 10), "/a/b");
        assert_eq!(shortened("/srv/storage/pgdata", 10), "…/pgdata");
        assert_eq!(shortened("/srv/a-name-that-is-long", 10), "…t-is-long");
    }

    #[test]
    fn filters_select_by_verb_path_and_time() {
        let entry = run("8fj2k1", "/srv/pgdata", &[]);
        let wanted = |args: RunsArgs| is_wanted(&entry, &args);
        let verb = |name: &str| RunsArgs { verb: Some(name.to_owned()), ..RunsArgs::default() };
        let path = |text: &str| RunsArgs { path: Some(text.to_owned()), ..RunsArgs::default() };
        let since = |at: &str| RunsArgs { since: Some(at.parse().unwrap()), ..RunsArgs::default() };
        assert!(wanted(RunsArgs::default()) && wanted(verb("calibrate")) && !wanted(verb("run")));
        assert!(wanted(path("/srv")) && wanted(path("pg")) && !wanted(path("/pg/")));
        assert!(wanted(since("2025-11-22T14:30:00Z")) && !wanted(since("2025-11-22T14:31:00Z")));
    }
}
