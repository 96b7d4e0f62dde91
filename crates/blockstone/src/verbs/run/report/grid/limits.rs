//! Limits on the runs of a grid, and the most that a ladder carries within them.

use std::collections::BTreeMap;

use anyhow::Result;
use blockstone_base::rows;
use blockstone_base::table::{Measure, Rows as _, text};
use blockstone_judge::grid::{Grid, Plan};
use blockstone_record::Recording;
use blockstone_record::manifest::{End, Figure};
use blockstone_report::expect::{self, Purpose};
use blockstone_report::render::json;
use blockstone_report::{Detail, Expected, Outcome, Report, Section, format};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Objects, settings};
use crate::verb::Context;
use crate::{finish, recorded, store};

/// Figures that tell how much a rung carries, and the words after each number: the first that the
/// load has.
const CARRIED: [(&str, &str); 3] = [
    ("transactions_per_s", "transactions/s"),
    ("commits_per_s", "commits/s"),
    ("operations_per_s", "operations/s"),
];

rows! {
    /// Outcome of the limits with each combination of settings.
    pub struct LimitsRow {
        /// Varied settings and their values.
        settings: String = text("settings").answer(),
        /// `pass`; `FAIL`; `not established`: of all limits.
        outcome: &'static str = text("result").answer(),
        /// Limits that are not kept or not established, and the numbers that were measured.
        exceptions: String = text("exceptions").prose(),
    }
}

/// The most that a load carried within the limits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ladder {
    /// Number of sessions.
    sessions: String,
    /// Figure that tells how much was carried: `commits_per_s`.
    figure: &'static str,
    value: f64,
    /// Lower end of the 95 % interval.
    low: f64,
    /// Upper end of the 95 % interval.
    high: f64,
    /// Number of sessions with which a limit was not kept; absent if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    fails_at: Option<String>,
}

/// Outcomes of the limits on the runs of one combination.
#[derive(Debug, Default)]
pub struct Judged {
    purpose: Option<Purpose>,
    /// Of several runs, the worst outcome of each limit; empty without a complete run.
    limits: Vec<Expected>,
    /// Figures of the last complete run.
    summary: BTreeMap<String, Figure>,
    /// Path that was measured, and the answer in words of its report: the cap that it met.
    subject: String,
    text: String,
}

impl Judged {
    fn ceilings(&self) -> impl Iterator<Item = &Expected> {
        self.limits.iter().filter(|limit| limit.is_ceiling())
    }

    /// Whether an operation takes longer than a limit allows. More sessions can raise a rate that
    /// is too low, but cannot shorten an operation.
    fn is_beyond(&self) -> bool {
        is_beyond(&self.limits)
    }

    fn is_within(&self) -> bool {
        !self.limits.is_empty() && self.ceilings().all(|it| it.outcome == Outcome::Pass)
    }

    /// Returns how much the load carried, if that number is sound.
    fn carried(&self) -> Option<(&'static str, &'static str, &Figure)> {
        let found = CARRIED.iter().find_map(|(name, words)| {
            let figure = self.summary.get(*name)?;
            (figure.estimate.samples > 0).then_some((*name, *words, figure))
        });
        found.filter(|(.., figure)| figure.condemned_by.is_empty())
    }

    fn outcome(&self) -> Outcome {
        self.limits.iter().map(|it| it.outcome).max().unwrap_or(Outcome::NotEstablished)
    }
}

/// Whether an operation takes longer than one of the limits allows.
pub fn is_beyond(limits: &[Expected]) -> bool {
    limits.iter().any(|it| it.is_ceiling() && it.outcome == Outcome::Fail)
}

/// Decides the limits of a store and those that are expected on all runs of the plan, if there are
/// any.
pub fn decide(
    plan: &Plan,
    open: impl Fn(&str) -> Result<Recording, String>,
    context: &Context,
) -> Result<Vec<Judged>> {
    let of_cell = |names: &[String]| {
        let mut judged = Judged::default();
        for name in names {
            // The grid says which runs are missing, and why.
            let Ok(recording) = open(name) else { continue };
            let is_limited = store::purpose(&recording.manifest).is_some();
            if recording.manifest.end != End::Complete
                || !is_limited && context.expectations.is_empty()
            {
                continue;
            }
            let report = finish::report_of(recording, context)?;
            let decided = expect::decide(&report, &context.expectations);
            judged.limits = if judged.limits.is_empty() {
                decided
            } else {
                judged.limits.into_iter().zip(decided).map(worse).collect()
            };
            judged.purpose = report.purpose;
            judged.summary = report.summary;
            judged.subject = report.headline.subject;
            judged.text = report.headline.text;
        }
        Ok(judged)
    };
    plan.cells.iter().map(|cell| of_cell(&cell.recordings)).collect()
}

fn worse((one, other): (Expected, Expected)) -> Expected {
    if other.outcome > one.outcome { other } else { one }
}

/// Adds the outcome of the limits to the report: over all runs of a grid, or on the best rung of a
/// ladder.
pub fn show(mut report: Report, plan: &Plan, grid: &Grid, judged: &[Judged]) -> Report {
    let Some(first) = judged.iter().find(|it| !it.limits.is_empty() || it.purpose.is_some()) else {
        return report;
    };
    report.purpose.clone_from(&first.purpose);
    let names: Vec<String> = grid.cells.iter().map(|cell| settings(grid, cell)).collect();
    let rows = names.iter().zip(judged).map(|(settings, judged)| LimitsRow {
        settings: settings.clone(),
        outcome: judged.outcome().words(),
        exceptions: exceptions(&judged.limits),
    });
    let rows: Vec<LimitsRow> = rows.collect();
    let table = LimitsRow::table("limits", "Limits with each combination of settings", rows);
    let section = Section::new("limits", "").with([table]).detail(Detail::Top);
    report.sections.insert(0, section);
    let expected = if plan.is_ladder {
        climbed(&mut report, plan, grid, judged)
    } else {
        of_all(&names, judged, &first.limits)
    };
    expect::show(&mut report, expected);
    report
}

/// Returns the limits that are not kept, and what was measured.
fn exceptions(limits: &[Expected]) -> String {
    let not_kept = limits.iter().filter(|it| it.outcome != Outcome::Pass);
    let told = not_kept.map(|it| {
        let why = it.why.as_ref().map_or(String::new(), |why| format!(", {why}"));
        format!("{it}: {}{why}", it.measured())
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Returns the worst outcome of each limit, with the settings that led to it.
fn of_all(names: &[String], judged: &[Judged], limits: &[Expected]) -> Vec<Expected> {
    let worst = limits.iter().enumerate().map(|(at, limit)| {
        let of_cells = names.iter().zip(judged).map(|(settings, judged)| {
            let mut found = judged.limits.get(at).cloned().unwrap_or_else(|| limit.unmeasured());
            let why = found.why.take().map_or(String::new(), |why| format!(": {why}"));
            found.why = Some(format!("{settings}{why}"));
            found
        });
        of_cells.reduce(|one, other| worse((one, other))).unwrap_or_else(|| limit.clone())
    });
    worst.collect()
}

/// Adds to the report how far up the ladder the limits hold. Returns the limits as decided on the
/// best rung, or on the lowest one if they hold on none.
fn climbed(report: &mut Report, plan: &Plan, grid: &Grid, judged: &[Judged]) -> Vec<Expected> {
    let sessions = |at: usize| plan.cells[at].values.last().map_or("", String::as_str);
    let fails = judged.iter().position(Judged::is_beyond);
    let below = judged.iter().take(fails.unwrap_or(judged.len())).enumerate();
    let kept = below.filter(|(_, judged)| judged.is_within());
    let most = kept.filter_map(|(at, judged)| Some((at, judged.carried()?))).max_by(
        |(_, (.., one)), (_, (.., other))| one.estimate.value.total_cmp(&other.estimate.value),
    );
    let beyond = fails.map(|at| {
        let of = |it: &&Expected| it.is_ceiling() && it.outcome == Outcome::Fail;
        let failed: Vec<Expected> = judged[at].limits.iter().filter(of).cloned().collect();
        format!("not with {}: {}", sessions(at), exceptions(&failed))
    });
    let last = sessions(judged.len() - 1);
    let is_within = judged.last().is_some_and(Judged::is_within);
    let so_far = if is_within { "no limit reached" } else { "not established" };
    let end = beyond.unwrap_or_else(|| format!("{so_far} with {last}, the most that were tried"));
    // The subject is the path, not the numbers of sessions; rungs are not compared with the first.
    report.headline.subject = judged.first().map(|it| it.subject.clone()).unwrap_or_default();
    report.sections.retain(|section| section.id != "against-first");
    let Some((at, (figure, words, found))) = most else {
        report.headline.text = match fails {
            Some(_) => end,
            None => "no rung is established to be within the limits".to_owned(),
        };
        return judged.first().map(|it| it.limits.clone()).unwrap_or_default();
    };
    let estimate = found.estimate;
    let carried = format::value(&estimate.into(), Measure::Count);
    let interval = format::plus_minus(&estimate);
    let parts = [
        format!("up to {carried} {words} {interval} with {} sessions", sessions(at)),
        end,
        judged[at].text.clone(),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    report.headline.text = parts.collect::<Vec<_>>().join(" · ");
    let summary: Vec<(String, Figure)> = judged[at].summary.clone().into_iter().collect();
    let names = ["hardware_read_iops", "hardware_write_iops"];
    report.identity.extend(recorded::scale(&summary, &names));
    let ladder = Ladder {
        sessions: sessions(at).to_owned(),
        figure,
        value: estimate.value,
        low: estimate.low,
        high: estimate.high,
        fails_at: fails.map(|at| sessions(at).to_owned()),
    };
    report.document = json::keys(Objects { axes: &grid.axes, ladder: Some(ladder) });
    judged[at].limits.clone()
}
