//! Cost of the miniature instance: cached visits, physical reads compared with a bare pread of the
//! same size in the same run, and commits compared with log writes as sessions are added. Measured
//! by the bench of its own crate, built as users get it, and checked against the goals here.

use std::collections::BTreeMap;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};

use super::Options;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::{cargo, line};

/// Minimum visits of cached blocks per second and core.
const VISITS_GOAL: f64 = 3e6;
/// Maximum ratio of the processor time of a physical read to that of a bare pread.
const CPU_RATIO_GOAL: f64 = 1.25;
/// Maximum ratio of log writes with a thousand committers to those with one: a log write is a group
/// of commits.
const LOG_WRITES_RATIO_GOAL: f64 = 1.1;
/// Maximum share of the time that the log writer waits for a processor, whatever else runs.
const RUN_QUEUE_RATIO_GOAL: f64 = 0.25;

/// Parts of the bench that have goals.
const PARTS: &str = "cached,physical,committers,crowd";

const COLUMNS: &[Column] = &[
    column("visits_per_s_per_core", "visits/s\na core", 0),
    column("pread_cpu_ns", "CPU ns\nof a pread", 0),
    column("cpu_ns", "CPU ns\nof a read", 0),
    column("cpu_ratio", "\nratio", 2),
    column("commits_per_s", "\ncommits/s", 0),
    column("log_writes_per_s", "log\nwrites/s", 0),
    column("log_writer_run_queue_ratio", "log writer\nin run queue", 3),
];

/// Points in the order in which they were measured, each with its figures.
type Figures = Vec<(String, BTreeMap<String, f64>)>;

pub fn run(options: &Options) -> Result<Results> {
    if (options.seconds, options.rounds, options.size) != (None, None, None) {
        bail!("this bench has fixed times and sizes\nhint: omit the options");
    }
    let arguments = ["bench", "--package", "blockstone-instance", "--bench", "instance"];
    let mut command = cargo(arguments);
    command.args(["--", "--figures"]).env("BLOCKSTONE_ONLY", PARTS).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("start {}", line(&command)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "`{}` failed with {}", line(&command), output.status);
    conclude(&figures(&text)?)
}

/// Parses lines of `figure`, point, name and value, separated by tabs.
fn figures(text: &str) -> Result<Figures> {
    let mut found = Figures::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let ["figure", point, name, value] = fields[..] else { continue };
        let value = value.parse().with_context(|| format!("read the figure of `{line}`"))?;
        if found.last().is_none_or(|(last, _)| last != point) {
            found.push((point.to_owned(), BTreeMap::new()));
        }
        let (_, figures) = found.last_mut().context("one was just added")?;
        figures.insert(name.to_owned(), value);
    }
    Ok(found)
}

fn conclude(found: &Figures) -> Result<Results> {
    let mut goals = Vec::new();
    for (point, figures) in found {
        if let Some(visits) = figures.get("visits_per_s_per_core") {
            goals.push(Goal::at_least(format!("{point}: a second and core"), *visits, VISITS_GOAL));
        }
        if let Some(ratio) = figures.get("cpu_ratio") {
            let what = format!("{point}: CPU time ÷ that of a pread");
            goals.push(Goal::at_most(what, *ratio, CPU_RATIO_GOAL));
        }
        if let Some(ratio) = figures.get("log_writer_run_queue_ratio") {
            let what = format!("{point}: log writer in the run queue");
            goals.push(Goal::at_most(what, *ratio, RUN_QUEUE_RATIO_GOAL));
        }
    }
    let ratio = |name: &str, more: u32, fewer: u32| {
        let of = |sessions: u32| {
            let wanted = format!("{sessions} committers");
            let point = found.iter().find(|(point, _)| *point == wanted);
            let figure = point.and_then(|(_, figures)| figures.get(name));
            figure.copied().with_context(|| format!("find {name} of {sessions} committers"))
        };
        Ok::<f64, anyhow::Error>(of(more)? / of(fewer)?)
    };
    for (fewer, more) in [(1, 8), (8, 64), (64, 512)] {
        let what = format!("commits, {more} committers ÷ {fewer}");
        goals.push(Goal::at_least(what, ratio("commits_per_s", more, fewer)?, 1.0));
    }
    let growth = ratio("log_writes_per_s", 1_024, 1)?;
    let what = "log writes, 1024 committers ÷ 1";
    goals.push(Goal::at_most(what, growth, LOG_WRITES_RATIO_GOAL));
    let points = found.iter().map(|(name, figures)| {
        let value = |column: &Column| figures.get(column.name).copied().unwrap_or(f64::NAN);
        Point { name: name.clone(), values: COLUMNS.iter().map(value).collect() }
    });
    Ok(Results { columns: COLUMNS, points: points.collect(), goals })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_among_other_lines_and_held_against_their_goals() {
        let committers = [(1, 10), (8, 70), (64, 500), (512, 400), (1024, 300)];
        let lines = committers.map(|(sessions, commits)| {
            let point = format!("figure\t{sessions} committers");
            format!("{point}\tcommits_per_s\t{commits}\n{point}\tlog_writes_per_s\t10\n")
        });
        let text = ["load 900 MB/s\nfigure\tphysical read\tcpu_ratio\t1.1\n", &lines.concat()];
        let text = text.concat();
        let results = conclude(&figures(&text).unwrap()).unwrap();
        assert_eq!(results.points.len(), 6);
        let missed: Vec<&Goal> = results.goals.iter().filter(|goal| !goal.is_met()).collect();
        assert_eq!((results.goals.len(), missed.len()), (5, 1), "{missed:?}: 512 commit less");
        assert!(figures("figure\ta\tb\tc\n").is_err());
        assert!(conclude(&Figures::new()).is_err(), "nothing was measured");
    }
}
