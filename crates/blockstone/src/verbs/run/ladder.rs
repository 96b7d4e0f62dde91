//! `blockstone run --ladder`: the same load with more and more sessions, until an operation takes
//! longer than a limit allows.

use anyhow::{Context as _, Result, bail};
use blockstone_base::units::Nanos;
use blockstone_judge::grid::{Axis, GRID_SCHEMA, Plan, PlannedCell};
use blockstone_run::Profile;

use super::args::RunArgs;
use super::matrix;
use super::report::grid::limits::is_beyond;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{recordings, store, verb};

/// Length of the window of each rung unless one is requested.
const RUN_TIME: Nanos = Nanos::millis(10_000);

/// Name of the setting that varies.
const SESSIONS: &str = "sessions";

pub fn run(args: &RunArgs, most: u32, context: &verb::Context) -> Result<Exit> {
    check(args, context)?;
    let (global, printer) = (&context.global, context.printer);
    let mut args = args.clone();
    if args.method.loops.is_none() {
        args.method.run_time_ns.get_or_insert(RUN_TIME);
    }
    // One seed for all: every rung visits the same keys.
    let seed = *args.method.seed.get_or_insert_with(recordings::draw_seed);
    // Each rung sets the sessions.
    (args.method.sessions, args.method.threads) = (None, Some(1));
    let schemas = blockstone_run::prepare(&super::settings(&args, global, printer)?)?.schemas();
    args.method.threads = None;
    let rungs: Vec<u32> = rungs(schemas, most).collect();
    if rungs.is_empty() {
        bail!(Failure::new(
            format!("climb to {most} sessions: there are {schemas} schemas, each with a session"),
            format!("--ladder={}, or fewer --schemas", schemas.saturating_mul(16))
        ));
    }
    args.instance.password.read_for([args.instance.target.as_str()])?;
    let axis = Axis { name: SESSIONS.to_owned(), values: Vec::new() };
    let mut plan = Plan {
        schema: GRID_SCHEMA.to_owned(),
        axes: vec![axis],
        cells: Vec::new(),
        is_ladder: true,
    };
    let cell = |rung: &u32| matrix::with(&args, &plan.axes, &[rung.to_string()]);
    let cells: Vec<RunArgs> = rungs.iter().map(cell).collect::<Result<_>>()?;
    // All rungs are checked before the first one runs: the last may need too much memory.
    for cell in &cells {
        blockstone_run::prepare(&super::settings(cell, global, printer)?)?;
    }
    let dir = recordings::new_dir("ladder", args.out.as_deref(), &global.runs_dir, &[])?;
    blockstone_record::create_dir(&dir.path)?;
    let _lock = blockstone_record::lock_grid(&dir.path)?;
    let interrupt = Interrupt::install().context("install signal handlers")?;
    for (at, (rung, cell)) in (1..).zip(rungs.iter().zip(&cells)) {
        let value = rung.to_string();
        let name = format!("{at:02}-{value}");
        plan.axes[0].values.push(value.clone());
        plan.cells.push(PlannedCell {
            values: vec![value],
            recordings: vec![name.clone()],
            impossible: None,
        });
        matrix::write_plan(&plan, &dir.path)?;
        printer.note(&format!("{rung} sessions, of {most} at most"));
        let report = matrix::one(cell, seed, dir.path.join(name), interrupt.clone(), context)?;
        if interrupt.signal().is_some() {
            matrix::show(&dir.path, context)?;
            return Ok(Exit::Interrupted);
        }
        if report.is_none_or(|report| is_beyond(&report.expectations)) {
            break;
        }
    }
    matrix::show(&dir.path, context)
}

/// Refuses what cannot be climbed.
fn check(args: &RunArgs, context: &verb::Context) -> Result<()> {
    let of_store = args.form.store.as_deref().map_or(0, store::limits);
    if of_store == 0 && context.expectations.is_empty() {
        bail!(Failure::new(
            "climb without a limit: nothing says where to stop",
            "name a store with --for postgresql, or a limit with --expect 'commit.p99<10ms'"
        ));
    }
    if !matches!(args.form.profile, Profile::Slob | Profile::Oltp) {
        bail!(Failure::new(
            "climb with --profile scan or bulk-write: --ladder varies the sessions of transactions",
            "omit --ladder; --parallel varies the sessions of a scan"
        ));
    }
    Ok(())
}

/// Returns the numbers of sessions to try: one on each schema, then twice as many each time.
fn rungs(schemas: u32, most: u32) -> impl Iterator<Item = u32> {
    let doubled = std::iter::successors(Some(schemas.max(1)), |rung| rung.checked_mul(2));
    doubled.take_while(move |rung| *rung <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_double_and_end_below_the_most() {
        assert_eq!(rungs(4, 64).collect::<Vec<_>>(), [4, 8, 16, 32, 64]);
        assert_eq!(rungs(1, 7).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(rungs(4, 3).count(), 0);
        assert_eq!(rungs(3, u32::MAX).last(), Some(3 << 30));
    }
}
