//! `blockstone runs`: the recordings there are, newest first.

use anyhow::Result;
use blockstone_base::units::{format_ns, three_digits};
use blockstone_record::manifest::{End, Figure};
use blockstone_record::{RunEntry, RunState};
use comfy_table::{ContentArrangement, Table, presets};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::json;

use crate::cli::Global;
use crate::exit::Exit;
use crate::printer::{Printer, answer};
use crate::verb::Verb;

pub const VERB: Verb = Verb {
    name: "runs",
    about: "List the recordings",
    run: |_, context| run(&context.global, context.printer),
    reports: true,
    ..Verb::PLAIN
};

/// What the columns show: of a calibration the most, of a run what its sessions got.
const SHOWN: [&[&str]; 3] =
    [&["max_iops", "read_iops"], &["max_mbps", "read_mbps"], &["commit_latency_ns_p50"]];

fn run(global: &Global, printer: Printer) -> Result<Exit> {
    let runs = blockstone_record::list_runs(&global.runs_dir)?;
    if printer.json {
        let entries: Vec<_> = runs.iter().map(entry).collect();
        let document = json!({ "schema": "blockstone.runs/1", "runs": entries });
        answer(&format!("{}\n", serde_json::to_string_pretty(&document)?))?;
    } else if runs.is_empty() {
        printer.note(&format!(
            "no recordings in {}\nhint: blockstone run . makes one",
            global.runs_dir.display()
        ));
    } else {
        answer(&format!("{}\n", table(&runs, printer.style().width)))?;
    }
    Ok(Exit::Done)
}

fn table(runs: &[RunEntry], width: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width as u16);
    table.set_header(["ID", "STARTED", "VERB", "TARGET", "IOPS", "MB/s", "COMMIT p50", "END"]);
    for run in runs {
        let [iops, mbps, commit] = SHOWN.map(|names| figure(run, names));
        let started = run.started_at.map_or_else(|| "–".to_owned(), local_time);
        let target = run.target_path.clone().unwrap_or_else(|| "–".to_owned());
        let row = [run.id.clone(), started, run.verb.clone(), target];
        table.add_row(row.into_iter().chain([iops, mbps, commit, end(run)]));
    }
    table
}

fn local_time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

fn figure(run: &RunEntry, names: &[&str]) -> String {
    match names.iter().find_map(|name| run.summary.get(*name)) {
        None => "–".to_owned(),
        Some(figure) if !figure.condemned_by.is_empty() => "condemned".to_owned(),
        Some(Figure { unit, estimate, .. }) if unit == "ns" => format_ns(estimate.value),
        Some(figure) => three_digits(figure.estimate.value),
    }
}

fn end(run: &RunEntry) -> String {
    match &run.state {
        RunState::Running => "running".to_owned(),
        RunState::Unfinished => "unfinished".to_owned(),
        RunState::Damaged { reason } => format!("damaged: {}", first_line(reason)),
        RunState::Ended(End::Complete | End::Running) => "complete".to_owned(),
        RunState::Ended(End::Interrupted { signal }) => format!("interrupted ({signal})"),
        RunState::Ended(End::Failed { error }) => format!("failed: {}", first_line(error)),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn entry(run: &RunEntry) -> serde_json::Value {
    json!({
        "id": run.id, "verb": run.verb, "started_at": run.started_at.map(|t| t.to_string()),
        "target": run.target_path, "path": run.path, "state": end(run), "summary": run.summary,
    })
}
