//! A grid of runs: the same workload at every combination of a few settings, each run several
//! times, with the results.

use std::collections::BTreeSet;

use blockstone_base::stats::{self, Estimate};
use blockstone_figures::compare::{Better, Outcome, compare};
use blockstone_record::manifest::{End, Figure, Manifest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const GRID_SCHEMA: &str = "blockstone.grid/1";

/// Name of the plan's file in the directory of the recordings.
pub const PLAN_FILE: &str = blockstone_record::GRID;

/// Figures that a grid shows if they were measured.
pub const FIGURES: [&str; 33] = [
    "operations_per_s",
    "transactions_per_s",
    "new_order_latency_ns_p50",
    "new_order_latency_ns_p99",
    "cpu_ns_per_transaction",
    "physical_reads_per_transaction",
    "bulk_returned_mbps",
    "bulk_flushed_mbps",
    "bulk_rows_per_s",
    "table_latency_ns_p50",
    "cpu_ns_per_table_mb",
    "process_write_ratio",
    "device_write_ratio",
    "redo_ratio",
    "process_read_ratio",
    "read_iops",
    "read_latency_ns_mean",
    "write_iops",
    "reads_per_write",
    "dbwr_latency_ns_mean",
    "lgwr_latency_ns_mean",
    "ckpt_latency_ns_mean",
    "free_buffer_waits_ns_mean",
    "write_complete_waits_ns_mean",
    "hardware_read_iops",
    "hardware_write_iops",
    "physical_reads_per_s",
    "physical_reads_per_cpu_s",
    "commits_per_s",
    "commit_latency_ns_p50",
    "commit_latency_ns_p99",
    "cpu_ns_per_commit",
    "db_time_remainder_ratio",
];

/// Settings and recordings of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Always [`GRID_SCHEMA`].
    pub schema: String,
    /// Settings that vary, slowest first.
    pub axes: Vec<Axis>,
    /// Every combination of their values.
    pub cells: Vec<PlannedCell>,
    /// Whether the combinations are one load with more and more sessions, up to a limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ladder: bool,
}

/// A setting and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Name of the setting on the command line.
    pub name: String,
    /// Values of the setting, as they were given.
    pub values: Vec<String>,
}

/// One combination, and the directories of its recordings next to the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// One value per axis.
    pub values: Vec<String>,
    /// One recording per repeat; empty if the combination is impossible.
    pub recordings: Vec<String>,
    /// Why the target cannot run the combination; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
}

/// Results of a grid.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// Settings that varied.
    pub axes: Vec<Axis>,
    /// Every combination of their values.
    pub cells: Vec<Cell>,
}

/// Results of one combination.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// One value per axis.
    pub values: Vec<String>,
    /// Why the target cannot run the combination; null if it can.
    pub impossible: Option<String>,
    /// Number of runs that completed.
    pub complete: usize,
    /// Runs that did not complete, and why.
    pub failed: Vec<String>,
    /// Those of [`FIGURES`] that all complete runs have.
    pub figures: Vec<CellFigure>,
    /// Each figure compared with that of the first combination; empty for that one.
    pub against_first: Vec<Against>,
}

/// A figure of a combination compared with that of the first.
#[derive(Clone, Debug, Serialize)]
pub struct Against {
    /// Name of the figure, for scripts.
    pub name: &'static str,
    /// Title for people.
    pub title: String,
    /// Mean of this combination's runs ÷ that of the first; null if nothing happened.
    pub ratio: Option<Estimate>,
    /// Outcome of comparing this combination with the first.
    pub outcome: Outcome,
    /// Rules that condemn the figure in any run of either combination.
    pub condemned_by: Vec<String>,
}

/// A figure of a combination over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct CellFigure {
    /// Name of the figure, for scripts.
    pub name: &'static str,
    /// Title for people.
    pub title: String,
    /// Unit of the value.
    pub unit: String,
    /// Median of the runs.
    pub value: f64,
    /// Least value of the runs. With few of them, the range is all that can be said.
    pub low: f64,
    /// Greatest value of the runs.
    pub high: f64,
    /// Rules that condemn the figure in any of the runs.
    pub condemned_by: Vec<String>,
    /// Estimate of each run.
    #[serde(skip)]
    runs: Vec<Estimate>,
}

impl CellFigure {
    fn against(&self, first: &Self) -> Against {
        let better = match self.unit.as_str() {
            "ns" => Better::Less,
            "blocks" | "reads" => Better::Neither,
            _ => Better::More,
        };
        let compared = compare(&first.runs, &self.runs, better);
        let rules = self.condemned_by.iter().chain(&first.condemned_by).cloned();
        let condemned_by: BTreeSet<String> = rules.collect();
        let sound = condemned_by.is_empty();
        Against {
            name: self.name,
            title: self.title.clone(),
            ratio: compared.ratio,
            outcome: if sound { compared.outcome } else { Outcome::Condemned },
            condemned_by: condemned_by.into_iter().collect(),
        }
    }
}

impl Plan {
    /// Returns whether every combination has one value per axis.
    pub fn is_whole(&self) -> bool {
        self.cells.iter().all(|cell| cell.values.len() == self.axes.len())
    }
}

impl Axis {
    /// Returns every combination of the values of `axes`, the last one varying fastest.
    pub fn combinations(axes: &[Self]) -> Vec<Vec<String>> {
        axes.iter().fold(vec![Vec::new()], |all, axis| {
            let longer = |values: &Vec<String>| {
                axis.values
                    .iter()
                    .map(|value| [values.as_slice(), std::slice::from_ref(value)].concat())
                    .collect::<Vec<_>>()
            };
            all.iter().flat_map(longer).collect()
        })
    }
}

impl Cell {
    pub fn figure(&self, name: &str) -> Option<&CellFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

impl Grid {
    /// Reads the grid of `plan`; `open` returns the manifest of a recording. A recording that it
    /// cannot open counts as failed.
    pub fn read(plan: &Plan, mut open: impl FnMut(&str) -> Result<Manifest, String>) -> Self {
        let cells = plan.cells.iter().map(|cell| {
            let (mut manifests, mut failed) = (Vec::new(), Vec::new());
            for recording in &cell.recordings {
                match open(recording) {
                    Ok(manifest) if manifest.end == End::Complete => manifests.push(manifest),
                    Ok(manifest) => failed.push(format!("{recording}: {:?}", manifest.end)),
                    Err(why) => failed.push(format!("{recording}: {why}")),
                }
            }
            let figures = FIGURES.iter().filter_map(|name| figure(name, &manifests)).collect();
            let (values, impossible) = (cell.values.clone(), cell.impossible.clone());
            let (complete, against_first) = (manifests.len(), Vec::new());
            Cell { values, impossible, complete, failed, figures, against_first }
        });
        let mut cells: Vec<Cell> = cells.collect();
        if let Some((first, others)) = cells.split_first_mut() {
            for cell in others {
                let beside = |it: &CellFigure| Some(it.against(first.figure(it.name)?));
                // A share cannot be faster or slower than another.
                let rates = cell.figures.iter().filter(|it| !it.unit.starts_with("of "));
                cell.against_first = rates.filter_map(beside).collect();
            }
        }
        Self { axes: plan.axes.clone(), cells }
    }

    /// Returns whether every run completed and no figure is condemned.
    pub fn trustworthy(&self) -> bool {
        self.cells.iter().all(|cell| {
            cell.failed.is_empty()
                && cell.figures.iter().all(|figure| figure.condemned_by.is_empty())
        })
    }
}

fn figure(name: &'static str, manifests: &[Manifest]) -> Option<CellFigure> {
    let of = |manifest: &Manifest| manifest.summary.get(name).cloned();
    let figures: Vec<Figure> = manifests.iter().map(of).collect::<Option<_>>()?;
    let first = figures.first()?.clone();
    let runs: Vec<Estimate> = figures.iter().map(|figure| figure.estimate).collect();
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    let condemned_by: BTreeSet<String> =
        figures.into_iter().flat_map(|figure| figure.condemned_by).collect();
    Some(CellFigure {
        name,
        title: first.title,
        unit: first.unit,
        value: stats::median(&values),
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        condemned_by: condemned_by.into_iter().collect(),
        runs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_there_once() {
        let axis = |name: &str, values: &[&str]| Axis {
            name: name.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let all =
            Axis::combinations(&[axis("update", &["0", "20"]), axis("sessions", &["1", "8"])]);
        assert_eq!(all, [["0", "1"], ["0", "8"], ["20", "1"], ["20", "8"]]);
        assert_eq!(Axis::combinations(&[]), [Vec::<String>::new()]);
    }

    #[test]
    fn a_combination_is_held_against_the_first_and_condemned_with_it() {
        let figure = |values: [f64; 2], rules: &[&str]| CellFigure {
            name: "write_iops",
            title: "Writes".into(),
            unit: "IOPS".into(),
            value: values[0],
            low: values[0],
            high: values[1],
            condemned_by: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            runs: values.map(|value| Estimate::around(value, 1.0, 9, 1)).into(),
        };
        let first = figure([300.0, 302.0], &[]);
        let half = figure([150.0, 151.0], &[]).against(&first);
        assert_eq!(half.outcome, Outcome::Slower);
        assert!((half.ratio.unwrap().value - 0.5).abs() < 0.001, "{half:?}");
        let unsound = figure([150.0, 151.0], &["hole"]).against(&first);
        assert_eq!((unsound.outcome, unsound.condemned_by.len()), (Outcome::Condemned, 1));
        let wide = figure([150.0, 450.0], &[]).against(&first);
        assert_eq!(wide.outcome, Outcome::NotEstablished);
    }

    #[test]
    fn a_recording_that_is_not_there_is_a_failed_run() {
        let cell = PlannedCell {
            values: vec!["0".into()],
            recordings: vec!["a".into()],
            impossible: None,
        };
        let axes = vec![Axis { name: "update".into(), values: vec!["0".into()] }];
        let plan = Plan { schema: GRID_SCHEMA.into(), axes, cells: vec![cell], is_ladder: false };
        let grid = Grid::read(&plan, |_| Err("it is gone".to_owned()));
        assert_eq!((grid.cells[0].complete, grid.cells[0].failed.len()), (0, 1));
        assert!(!grid.trustworthy() && grid.cells[0].figures.is_empty());
    }
}
