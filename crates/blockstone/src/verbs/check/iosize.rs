//! `check iosize`: the sizes in which programs request I/O, and those in which the device gets it.

mod tables;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use blockstone_base::Capability;
use blockstone_base::units::{Bytes, thousands, three_digits};
use blockstone_check::iosize::findings::{Charged, Class, Flow, IosizeFindings};
use blockstone_check::iosize::{Dumped, of_command, of_path, of_process, of_tools};
use blockstone_report::Tone;
use blockstone_servers::{password, without_password};
use clap::{Args, FromArgMatches, ValueHint};

use super::answer::{Check, CheckAnswer};
use super::args::Observed;
use crate::failure::Failure;
use crate::password::PasswordFile;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::recordings;

pub use tables::TABLES;

pub const CHECK: Check = Check {
    name: "iosize",
    about: "The I/O sizes that programs request, and the sizes that the device receives",
    options: IosizeArgs::augment_args,
    run: |options, _, progress| run(&IosizeArgs::from_arg_matches(options)?, progress),
    quick: |path, progress| Ok(part(of_path(path, recordings::draw_seed(), progress)?)),
};

/// Arguments of `check iosize`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check iosize -- tar -cf /backup/base.tar /data/base
  blockstone check iosize -- sh -c 'cat /data/file | gzip > /backup/file.gz'
  blockstone check iosize --pid $(pgrep -o postgres) --for 30s
  blockstone check iosize --tools /data
  blockstone check iosize --tools /data --db postgres://me@localhost/db   pg_dump too")]
struct IosizeArgs {
    /// The command to run, with its arguments; its output goes to standard error
    #[arg(value_name = "CMD", last = true,
          conflicts_with_all = ["pid", "duration", "tools", "db", "password_file"],
          required_unless_present_any = ["pid", "tools"],
          value_hint = ValueHint::CommandWithArguments)]
    #[arg(add = Purpose::Program)]
    command: Vec<OsString>,
    #[command(flatten)]
    observed: Observed,
    /// Run cp, cat, dd, tar and others, if installed, on a scratch file of 4 MiB in this directory
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".",
          conflicts_with_all = ["pid", "duration"], value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Scratch)]
    tools: Option<PathBuf>,
    /// Run `pg_dump`, too: it dumps this database into the directory, for 30 s at most
    #[arg(long, value_name = "ADDRESS", requires = "tools",
          conflicts_with_all = ["pid", "duration"])]
    db: Option<String>,
    #[command(flatten)]
    password: PasswordFile,
}

fn run(args: &IosizeArgs, progress: &mut Progress) -> Result<CheckAnswer> {
    args.password.read_for(args.db.as_deref())?;
    if let Some(dir) = &args.tools {
        let dumped = args.db.as_deref().map(dumped).transpose()?;
        return Ok(part(of_tools(dir, dumped.as_ref(), recordings::draw_seed(), progress)?));
    }
    let Some(pid) = args.observed.pid else {
        return Ok(part(of_command(&args.command, recordings::draw_seed(), progress)?));
    };
    Ok(part(of_process(pid, args.observed.duration()?, progress)?))
}

/// The database that `pg_dump` is run on.
fn dumped(address: &str) -> Result<Dumped> {
    let shown = without_password(address);
    if !["postgres://", "postgresql://"].iter().any(|it| address.starts_with(it)) {
        bail!(Failure::new(
            format!("run pg_dump on {shown}: not a PostgreSQL database"),
            "--db postgres://user@host/db"
        ));
    }
    // Every user can read the arguments of a program.
    if shown != address {
        bail!(Failure::new(
            format!("run pg_dump on {shown}: its address must not contain the password"),
            "--password-file FILE, or the variable PGPASSWORD"
        ));
    }
    Ok(Dumped { address: shown, password: password::given("PGPASSWORD") })
}

fn part(findings: IosizeFindings) -> CheckAnswer {
    let (answer, tone) = answer(&findings);
    let mut notes = Vec::new();
    if let Capability::Degraded { why } = &findings.kernel {
        notes.push(format!("Sizes were not counted in the kernel: {why}."));
        notes.extend(findings.charged.as_ref().map(second_best));
    }
    if !findings.blind.is_empty() {
        notes.push(format!("This kernel does not show: {}.", findings.blind.join(", ")));
    }
    if findings.dropped > 0 {
        notes.push(format!("Not counted, for want of room: {}.", findings.dropped));
    }
    if findings.left_processes > 0 {
        notes.push(format!(
            "{} processes of the command still ran when it ended: what they do later is not \
             counted.",
            findings.left_processes
        ));
    }
    notes.extend(findings.saving.clone());
    notes.extend(notes_on_tools(&findings));
    notes.extend(notes_on_direct_costs(&findings));
    CheckAnswer {
        subject: findings.subject.clone(),
        answer,
        tone,
        identity: identity(&findings),
        sections: tables::sections(&findings),
        notes,
        partial: !findings.kernel.is_full(),
        signal: findings.signal,
        ..CheckAnswer::default()
    }
}

/// Names the tools that were not run, or failed.
fn notes_on_tools(findings: &IosizeFindings) -> Vec<String> {
    let mut notes = Vec::new();
    if !findings.absent.is_empty() {
        notes.push(format!("Not run: {}.", findings.absent.join("; ")));
    }
    if !findings.tools.is_empty() && !findings.tools.iter().any(|tool| tool.name == "pg_dump") {
        notes.push("Not run: pg_dump, which needs a server (--db postgres://me@host/db).".into());
    }
    for tool in &findings.tools {
        let failed = tool.exit.filter(|code| *code != 0);
        notes.extend(failed.map(|code| {
            format!("{} failed with exit code {code}: these are its calls until then.", tool.name)
        }));
    }
    notes
}

/// Says what the predicted times hold for, or why there are none.
fn notes_on_direct_costs(findings: &IosizeFindings) -> Vec<String> {
    let mut notes = Vec::new();
    if !findings.direct_costs.is_empty() {
        notes.push(
            "Predicted: number of calls × time of a direct call of that size on this file system, \
             just measured one at a time in file order, in up to nine rounds, whose spread is \
             the interval (95 %). It holds for the load that the device had meanwhile. Calls that \
             copy nothing (copy_file_range, page faults) have no direct form."
                .to_owned(),
        );
    }
    for why in &findings.direct_unmeasured {
        notes.push(format!("Direct calls were not measured: {why}."));
    }
    notes
}

/// Describes the reads and writes that `/proc/PID/io` counts.
pub fn second_best(charged: &Charged) -> String {
    let mean = |bytes: u64, calls: u64| match calls {
        0 => "none".to_owned(),
        _ => format!("{} calls of {} on average", thousands(calls as i64), Bytes(bytes / calls)),
    };
    format!(
        "/proc/PID/io, whatever the calls went to: reads {}, writes {}; {} fetched from storage",
        mean(charged.read_bytes, charged.read_calls),
        mean(charged.write_bytes, charged.write_calls),
        Bytes(charged.fetched_bytes)
    )
}

fn identity(findings: &IosizeFindings) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(code) = findings.exit {
        parts.push(format!("exit code {code}"));
    }
    parts.push(format!("observed for {:.1} s", findings.observed_s));
    if let Some(us) = findings.cpu_us_per_mib() {
        parts.push(format!("{} µs of processor time per MiB asked", three_digits(us)));
    }
    parts.push(match findings.kernel {
        Capability::Full => "sizes are counted in the kernel".to_owned(),
        Capability::Degraded { .. } => "sizes are not counted in the kernel".to_owned(),
    });
    vec![parts.join(" · ")]
}

/// Returns the answer as a sentence: for all files together, or for each case that was tried.
fn answer(findings: &IosizeFindings) -> (String, Tone) {
    if !findings.kernel.is_full() {
        return ("cannot tell sizes: they are not counted".to_owned(), Tone::Warning);
    }
    if !findings.tools.is_empty() {
        let class = |class| {
            let flows = findings.tools.iter().flat_map(|tool| &tool.flows);
            flows.filter(|flow| flow.class == class).count()
        };
        let classes = Class::ALL.iter().map(|&it| (it.name(), class(it)));
        let classes: Vec<String> = classes
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        let text = format!("{} tools: {}", findings.tools.len(), classes.join(", "));
        return (text, Tone::Plain);
    }
    let answers = headlines(findings).into_iter().map(|(what, flow)| {
        let size =
            |mean: Option<f64>| mean.map_or("none".into(), |it| Bytes(it as u64).to_string());
        let (asked, device) = (size(flow.asked_bytes_mean()), size(flow.device_bytes_mean()));
        match flow.class {
            Class::Unknown => format!("{what} unknown"),
            Class::Cached => format!("{what} cached: {asked} asked, no request to a device"),
            class => format!("{what} {}: {asked} asked, {device} at the device", class.name()),
        }
    });
    let text = answers.collect::<Vec<_>>().join(", ");
    if text.is_empty() {
        return ("no I/O to files".to_owned(), Tone::Plain);
    }
    (text, Tone::Plain)
}

/// For each direction, the file that has at least half of the bytes, or else all files together: a
/// command also reads its libraries. If the check was made on a path, each case that was tried.
fn headlines(findings: &IosizeFindings) -> Vec<(String, &Flow)> {
    if findings.total.is_empty() {
        return findings.flows.iter().map(|flow| (flow.path.clone(), flow)).collect();
    }
    let of = |total| {
        let all: &Flow = total;
        let files = findings.flows.iter().filter(|flow| flow.direction == all.direction);
        let largest = files.max_by_key(|flow| flow.asked_bytes);
        let main = largest.filter(|flow| flow.asked_bytes > 0);
        match main.filter(|flow| flow.asked_bytes * 2 >= all.asked_bytes) {
            Some(flow) => (format!("{} of {}", flow.direction.name(), flow.path), flow),
            None => (format!("{} of all files", all.direction.name()), all),
        }
    };
    let bytes: u64 = findings.total.iter().map(|flow| flow.asked_bytes).sum();
    // Small flows are left out, such as the messages that a command writes to its standard error.
    let counts = |flow: &&Flow| flow.asked_bytes * 50 >= bytes;
    findings.total.iter().filter(counts).map(of).collect()
}
