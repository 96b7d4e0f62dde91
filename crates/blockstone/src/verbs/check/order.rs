//! `check write-order`: whether several writers of one file wait for each other.

mod tables;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use blockstone_base::Capability;
use blockstone_base::units::Nanos;
use blockstone_check::order::findings::{Class, Mode, OrderFindings};
use blockstone_check::order::{Plan, of_path};
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
    name: "write-order",
    about: "Whether several writers of one file wait for each other, by what they write",
    options: OrderArgs::augment_args,
    run: |options, _, progress| run(&OrderArgs::from_arg_matches(options)?, progress),
    quick: |path, progress| {
        Ok(part(&of_path(path, recordings::draw_seed(), &Plan::QUICK, progress)?))
    },
};

const ROUNDS: u32 = 3;
/// Longest time per mode with one file, and likewise with files of their own.
const TIME_MAX: Nanos = Nanos::millis(60_000);

/// Arguments of `check write-order`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check write-order /data
  blockstone check write-order /data --writers 8 --for 2s
  blockstone check write-order /data --writers 1,2,4,8   by their number
  blockstone check write-order /data --buffered          through the page cache
  blockstone check write-order /dev/sdb --destroy /dev/sdb
                                                         an empty device")]
struct OrderArgs {
    /// A directory, in which scratch files without a name are used, or an empty block device
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Scratch)]
    path: PathBuf,
    /// Name a block device a second time, to allow its content to be destroyed
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Device)]
    destroy: Option<PathBuf>,
    /// Writers and readers that use the page cache, in place of direct ones
    #[arg(long)]
    buffered: bool,
    /// Number of writers, and of readers beside one writer; if there are several numbers, each is
    /// tried
    #[arg(long, value_name = "NUMBER[,...]", default_value = "4", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=16))]
    writers: Vec<u32>,
    /// Try each mode for this time with one file, and as long with files of their own
    #[arg(long = "for", alias = "duration", value_name = "TIME", default_value = "600ms")]
    time: Nanos,
}

fn run(args: &OrderArgs, progress: &mut Progress) -> Result<CheckAnswer> {
    if args.time.get() == 0 || args.time > TIME_MAX {
        bail!(Failure::new(
            format!(
                "try each mode for {}: it must be more than nothing, and at most 1min",
                args.time
            ),
            "--for 1s"
        ));
    }
    if let Some(other) = args.destroy.as_ref().filter(|other| **other != args.path) {
        bail!(Failure::new(
            format!("destroy {}: the path to write to is {}", other.display(), args.path.display()),
            "name the same device twice"
        ));
    }
    let time = Duration::from_nanos(args.time.get()) / ROUNDS;
    // Preparation takes time too, and more of it on slow storage.
    let mut writers = args.writers.clone();
    writers.sort_unstable();
    writers.dedup();
    let trials = (Mode::ALL.len() * writers.len()) as u32;
    let limit = Duration::from_mins(1) + time * ROUNDS * 2 * trials;
    let plan = Plan {
        modes: Mode::ALL,
        writers: &writers,
        time,
        rounds: ROUNDS,
        is_buffered: args.buffered,
        destroy: Some(args.destroy.is_some()),
        limit,
    };
    let findings = of_path(&args.path, recordings::draw_seed(), &plan, progress)?;
    if let Some(why) = &findings.not_tried {
        bail!(Failure::new(
            format!("check the writers of files in {}: {why}", args.path.display()),
            "name a directory on the storage"
        ));
    }
    Ok(part(&findings))
}

fn part(findings: &OrderFindings) -> CheckAnswer {
    let (answer, tone) = answer(findings);
    let unknown = !findings.of(Class::Unknown).is_empty();
    let mut notes = Vec::new();
    if let Capability::Degraded { why } = &findings.kernel {
        notes.push(format!(
            "Waits for the locks of files were not counted in the kernel: {why}. Then only many \
             waits for each request tell something, and nothing shows that writers do not wait."
        ));
    }
    if findings.unfinished {
        notes.push("This storage is slow: not all modes of writing were tried.".to_owned());
    }
    if !findings.of(Class::Serialises).is_empty() {
        notes.push(if findings.is_buffered { BUFFERED } else { CURE }.to_owned());
    }
    CheckAnswer {
        subject: findings.subject.clone(),
        answer,
        tone,
        identity: identity(findings),
        sections: tables::sections(findings),
        verdicts: rules::judge_order(findings),
        notes,
        signal: findings.signal.clone(),
        partial: unknown || findings.unfinished,
        ..CheckAnswer::default()
    }
}

const CURE: &str = "Direct writers do not wait for each other in files that were written once or \
                    allocated ahead, in a file of each writer's own, and on XFS up to the end of \
                    the file.";

const BUFFERED: &str = "A writer that uses the page cache has the lock of the file alone, on XFS \
                        also from readers. Direct writers share it in blocks that were written \
                        before; writers with files of their own do not wait.";

fn identity(findings: &OrderFindings) -> Vec<String> {
    if findings.not_tried.is_some() {
        return Vec::new();
    }
    let counted = match findings.kernel {
        Capability::Full => "waits for locks are counted in the kernel",
        Capability::Degraded { .. } => "waits for locks are not counted in the kernel",
    };
    let mut writers: Vec<u32> = findings.cells.iter().map(|cell| cell.writers).collect();
    writers.sort_unstable();
    writers.dedup();
    let writers: Vec<String> = writers.iter().map(u32::to_string).collect();
    let what = if findings.is_device { "block device" } else { &findings.file_system };
    let how = if findings.is_buffered { "buffered writers" } else { "writers" };
    vec![format!("{what} · {} {how} · {counted}", writers.join(", "))]
}

/// Returns the answer as a sentence.
fn answer(findings: &OrderFindings) -> (String, Tone) {
    if let Some(why) = &findings.not_tried {
        return (format!("not tried: {why}"), Tone::Plain);
    }
    let tried = findings.largest().count();
    let (serialises, unknown) = (findings.of(Class::Serialises), findings.of(Class::Unknown));
    let scales = findings.of(Class::Scales);
    let what = if findings.is_device { "the device" } else { "one file" };
    if !serialises.is_empty() {
        let modes = serialises.join(", ");
        (format!("serialises: writers of {what} wait for each other ({modes})"), Tone::Warning)
    } else if !unknown.is_empty() || tried == 0 {
        let count = unknown.len();
        (format!("cannot tell whether writers wait: {count} of {tried} modes"), Tone::Warning)
    } else if scales.is_empty() {
        (format!("refused: {tried} of {tried} modes of writing"), Tone::Warning)
    } else {
        let count = scales.len();
        (format!("scales: writers of {what} do not wait, {count} of {tried} modes"), Tone::Plain)
    }
}
