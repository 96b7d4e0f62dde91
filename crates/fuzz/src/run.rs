//! Runs the requested targets, several at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result, bail};
use blockstone_fuzz::{TARGETS, Target, find};

use super::options::Options;
use super::supervise;

/// Runs the targets; returns whether nothing was found.
pub fn run(options: &Options) -> Result<bool> {
    let targets = chosen(&options.targets)?;
    if options.list {
        for target in &targets {
            println!("{}", target.name);
        }
        return Ok(true);
    }
    std::fs::create_dir_all(&options.save)
        .with_context(|| format!("create {}", options.save.display()))?;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or(processors).clamp(1, targets.len());
    let mut options = options.clone();
    if let Some(total) = options.total_seconds {
        options.seconds = share(total, targets.len(), jobs);
    }
    let options = &options;
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    println!("{}", supervise::HEADING);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Relaxed)) {
                    let outcome = supervise::target(target, options);
                    match &outcome {
                        Ok(outcome) => println!("{outcome}"),
                        Err(error) => println!("{:<14} could not run: {error:#}", target.name),
                    }
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_default();
    let clean = |outcome: &Result<supervise::Outcome>| {
        outcome.as_ref().is_ok_and(|outcome| outcome.findings.is_empty())
    };
    Ok(outcomes.len() == targets.len() && outcomes.iter().all(clean))
}

/// Returns the whole seconds of each target if `jobs` run at a time; at least one.
fn share(total: u64, targets: usize, jobs: usize) -> u64 {
    (total / targets.div_ceil(jobs).max(1) as u64).max(1)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let known = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let one = |name: &String| match find(name) {
        Some(target) => Ok(target),
        None => bail!("there is no target {name}\nhint: the targets are {}", known()),
    };
    names.iter().map(one).collect()
}
