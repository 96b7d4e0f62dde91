//! `check coherence`: whether descriptors, mounts and hosts see each other's writes, and when.

mod tables;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use blockstone_base::rule::judge;
use blockstone_base::units::{Nanos, format_ns};
use blockstone_check::coherence::findings::{Class, CoherenceFindings};
use blockstone_check::coherence::{Meeting, Plan, of_hosts, of_paths, prepare};
use blockstone_check::meet::SIDES_MAX;
use blockstone_report::Tone;
use clap::{Args, FromArgMatches, ValueHint};

use super::answer::{Check, CheckAnswer};
use super::rules;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::recordings;

pub use tables::TABLES;

pub const CHECK: Check = Check {
    name: "coherence",
    about: "Whether descriptors, mounts and hosts see each other's writes, and when",
    options: CoherenceArgs::augment_args,
    run: |options, _, progress| run(&CoherenceArgs::from_arg_matches(options)?, progress),
    quick,
};

/// Maximum number of paths, and thus ranks, in one process.
const PATHS_MAX: usize = 8;
const PATIENCE: Nanos = Nanos::millis(5_000);
const PATIENCE_MAX: Nanos = Nanos::millis(600_000);
const ROUNDS: u32 = 50;
const FREE_RUN: Duration = Duration::from_millis(500);
/// Time limit, not counting the waits for writes that do not become visible.
const LIMIT: Duration = Duration::from_mins(1);

const QUICK_ROUNDS: u32 = 5;
const QUICK_PATIENCE: Duration = Duration::from_millis(50);
const QUICK_FREE_RUN: Duration = Duration::from_millis(50);
const QUICK_LIMIT: Duration = Duration::from_secs(3);

/// Environment variables of launchers: the rank of a process, and the number of ranks.
const LAUNCHERS: [(&str, &str); 4] = [
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
];

/// Arguments of `check coherence`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check coherence /data              two descriptors on one mount
  blockstone check coherence /mnt/a /mnt/b      two mounts of one file system
  blockstone check coherence --prepare /mnt/a   a file for later mounts
  blockstone check coherence /dev/sdb --destroy /dev/sdb
  blockstone check coherence /mnt --witness node1:7777 --rank 0 --ranks 2
                                                on node1
  blockstone check coherence /mnt --witness node1:7777 --rank 1 --ranks 2
                                                on node2")]
struct CoherenceArgs {
    /// Directories, block devices, or files made with --prepare, that are the same storage; a
    /// single one is opened twice
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, num_args = 1..,
          required_unless_present = "prepare")]
    #[arg(add = Purpose::Scratch)]
    paths: Vec<PathBuf>,
    /// Make a file in this directory, print its name and end
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "paths")]
    #[arg(add = Purpose::Scratch)]
    prepare: Option<PathBuf>,
    /// Allow this device, which must be empty, to be overwritten; name each device
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Device)]
    destroy: Vec<PathBuf>,
    /// Check against the paths of other processes: rank 0 listens there, the others connect
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "prepare")]
    witness: Option<String>,
    /// Rank of this process, from 0 on [default: from the launcher: Slurm, Open MPI, PMI]
    #[arg(long, value_name = "N", requires = "witness")]
    #[arg(conflicts_with = "prepare")]
    rank: Option<u32>,
    /// Number of ranks [default: from the launcher]
    #[arg(long, value_name = "N", requires = "witness",
          value_parser = clap::value_parser!(u32).range(2..=i64::from(SIDES_MAX)))]
    #[arg(conflicts_with = "prepare")]
    ranks: Option<u32>,
    /// How long a reader waits for a write [default: 5s]
    #[arg(long, value_name = "TIME", conflicts_with = "prepare")]
    patience: Option<Nanos>,
    /// Writes of each case [default: 50]
    #[arg(long, value_name = "N", conflicts_with = "prepare",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
}

fn run(args: &CoherenceArgs, progress: &mut Progress) -> Result<CheckAnswer> {
    if let Some(dir) = &args.prepare {
        return prepared(&prepare(dir, recordings::draw_seed())?);
    }
    let patience = args.patience.unwrap_or(PATIENCE);
    if patience.get() == 0 || patience > PATIENCE_MAX {
        bail!(Failure::new(
            format!("wait {patience} for a write: it must be more than nothing, and at most 10min"),
            "--patience 5s"
        ));
    }
    let patience = Duration::from_nanos(patience.get());
    let mut paths = args.paths.clone();
    if paths.len() > PATHS_MAX {
        bail!("check {} paths: at most {PATHS_MAX} are ranks of one process", paths.len());
    }
    if let Some(other) = args.destroy.iter().find(|it| !paths.contains(it)) {
        let other = other.display();
        bail!(Failure::new(
            format!("overwrite {other}: it is not checked"),
            format!("blockstone check coherence {other} --destroy {other}")
        ));
    }
    let mut plan = Plan {
        paths: Vec::new(),
        destroy: args.destroy.clone(),
        id: recordings::draw_seed(),
        rounds: args.rounds.unwrap_or(ROUNDS),
        patience,
        free_run: FREE_RUN,
        limit: LIMIT + patience * 20,
    };
    let mut printed_elsewhere = false;
    let findings = if let Some(address) = &args.witness {
        if paths.len() > 1 {
            bail!(Failure::new(
                format!("check {} paths with --witness: a process is one rank there", paths.len()),
                "start one process for each path"
            ));
        }
        plan.paths = paths;
        let (meeting, is_launched) = meeting(args, address)?;
        // The launcher gathers the output of all ranks.
        printed_elsewhere = is_launched && meeting.rank > 0;
        of_hosts(&plan, &meeting, progress)?
    } else {
        if let [path] = paths.as_slice() {
            paths.push(path.clone());
        }
        plan.paths = paths;
        of_paths(&plan, progress)?
    };
    Ok(CheckAnswer { printed_elsewhere, ..part(findings) })
}

/// Returns where ranks meet, and whether a launcher started them.
fn meeting(args: &CoherenceArgs, address: &str) -> Result<(Meeting, bool)> {
    let variable = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let launched = LAUNCHERS.iter().find_map(|(rank, ranks)| {
        Some((variable(rank)?, variable(ranks)?)).filter(|(_, ranks)| *ranks > 1)
    });
    let rank = args.rank.or(launched.map(|(rank, _)| rank));
    let ranks = args.ranks.or(launched.map(|(_, ranks)| ranks));
    let (Some(rank), Some(ranks)) = (rank, ranks) else {
        bail!(Failure::new(
            format!("meet at {address}: which rank this is, and how many there are, is not known"),
            "--rank 0 --ranks 2 here, and --rank 1 --ranks 2 there"
        ));
    };
    if rank >= ranks || ranks > SIDES_MAX {
        bail!(Failure::new(
            format!(
                "meet at {address} as rank {rank} of {ranks}: ranks count from 0, and at most \
                 {SIDES_MAX} meet"
            ),
            "--rank 0 --ranks 2"
        ));
    }
    Ok((Meeting { address: address.to_owned(), rank, ranks }, launched.is_some()))
}

/// Checks one path with two descriptors. Anything but a directory would have to be written to.
fn quick(path: &Path, progress: &mut Progress) -> Result<CheckAnswer> {
    if !path.is_dir() {
        let subject = path.display().to_string();
        let answer = "not tried on what is only read".to_owned();
        return Ok(CheckAnswer { subject, answer, ..CheckAnswer::default() });
    }
    let plan = Plan {
        paths: vec![path.to_owned(), path.to_owned()],
        destroy: Vec::new(),
        id: recordings::draw_seed(),
        rounds: QUICK_ROUNDS,
        patience: QUICK_PATIENCE,
        free_run: QUICK_FREE_RUN,
        limit: QUICK_LIMIT,
    };
    Ok(part(CoherenceFindings {
        subject: path.display().to_string(),
        ..of_paths(&plan, progress)?
    }))
}

fn prepared(path: &Path) -> Result<CheckAnswer> {
    let found = blockstone_sys::path::whole(path).map_err(|error| {
        let hint = "its directory was moved away meanwhile; prepare another";
        Failure::new(format!("find {}", path.display()), hint).because(error)
    });
    let subject = found?.display().to_string();
    let answer = "prepared: name it on each mount, after it was mounted".to_owned();
    Ok(CheckAnswer { subject, answer, ..CheckAnswer::default() })
}

fn part(findings: CoherenceFindings) -> CheckAnswer {
    let (answer, tone) = answer(&findings);
    let mut notes = findings.notes.clone();
    if findings.unfinished {
        notes.push("This storage is slow: there was no time for the rest.".to_owned());
    }
    let decided = findings.cells.iter().any(|cell| cell.class != Class::Unknown);
    CheckAnswer {
        subject: findings.subject.clone(),
        answer,
        tone,
        identity: identity(&findings),
        sections: tables::sections(&findings),
        verdicts: judge(rules::COHERENCE, &findings),
        notes,
        partial: findings.unfinished || !decided,
        signal: findings.signal,
        ..CheckAnswer::default()
    }
}

fn identity(findings: &CoherenceFindings) -> Vec<String> {
    let ranks = findings.ranks.iter().enumerate();
    let mut lines: Vec<String> =
        ranks.map(|(rank, about)| format!("rank {rank}: {about}")).collect();
    let patience = format_ns(findings.patience_ns as f64);
    let clocks = match findings.clock_bound_ns {
        0 => "one clock".to_owned(),
        ns => format!("clocks known to {}", format_ns(ns as f64)),
    };
    lines.push(format!("{clocks} · readers wait for {patience}"));
    lines
}

/// Returns the answer as a sentence.
fn answer(findings: &CoherenceFindings) -> (String, Tone) {
    let tried = findings.cells.iter().filter(|cell| cell.class != Class::Unknown);
    let total = tried.clone().count();
    let wrong = tried.clone().filter(|cell| cell.is_incoherent());
    let Some(worst) = wrong.clone().map(|cell| cell.class).max() else {
        if total == 0 {
            return ("cannot tell: nothing could be tried".to_owned(), Tone::Warning);
        }
        let text = format!("linearizable: {total} of {total} ways to write and to look");
        return (text, Tone::Plain);
    };
    let of_worst = wrong.clone().filter(|cell| cell.class == worst).count();
    let count = wrong.count();
    let tone = match worst {
        Class::Sequential | Class::Reopen => Tone::Warning,
        _ => Tone::Bad,
    };
    let name = worst.name();
    let text = format!(
        "{name}: {count} of {total} ways to write and to look are not linearizable, {of_worst} \
         are {name}"
    );
    (text, tone)
}
