//! `check direct`: whether I/O that requests to bypass the page cache really does so.

mod tables;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use blockstone_base::Capability;
use blockstone_base::rule::judge;
use blockstone_base::units::{counted, thousands};
use blockstone_check::direct::findings::{Class, DirectFindings};
use blockstone_check::direct::{Processes, of_path, of_processes};
use blockstone_report::Tone;
use blockstone_servers::{monitor, without_password};
use clap::{Args, FromArgMatches, ValueHint};

use super::answer::{Check, CheckAnswer};
use super::args::Observed;
use super::rules;
use crate::failure::Failure;
use crate::password::PasswordFile;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::recordings;

pub use tables::TABLES;

pub const CHECK: Check = Check {
    name: "direct",
    about: "Whether I/O with O_DIRECT bypasses the page cache: on a path, or of a live process",
    options: DirectArgs::augment_args,
    run: |options, _, progress| run(&DirectArgs::from_arg_matches(options)?, progress),
    quick: |path, progress| Ok(part(of_path(path, recordings::draw_seed(), progress)?)),
};

/// Arguments of `check direct`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check direct .                    the storage of this directory
  blockstone check direct /data/base/5/16384   a file, only read
  blockstone check direct --pid $(pgrep -o postgres) --for 30s
  blockstone check direct --db postgres://me@localhost/db")]
struct DirectArgs {
    /// A directory, in which scratch files without a name are used, or a file or block device,
    /// which is only read
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath,
          conflicts_with_all = ["pid", "duration", "db"],
          required_unless_present_any = ["pid", "db"])]
    #[arg(add = Purpose::Scratch)]
    path: Option<PathBuf>,
    #[command(flatten)]
    observed: Observed,
    /// Observe the open files of this database server, and compare them with its settings:
    /// `postgres://user@host/db` or `mysql://user@host`
    #[arg(long, value_name = "ADDRESS", conflicts_with = "pid")]
    db: Option<String>,
    #[command(flatten)]
    password: PasswordFile,
}

fn run(args: &DirectArgs, progress: &mut Progress) -> Result<CheckAnswer> {
    args.password.read_for(args.db.as_deref())?;
    if let Some(path) = &args.path {
        return Ok(part(of_path(path, recordings::draw_seed(), progress)?));
    }
    let duration = args.observed.duration()?;
    let processes = match (&args.db, args.observed.pid) {
        (Some(address), _) => server(address, duration)?,
        (None, pid) => {
            let pid = pid.unwrap_or_default();
            Processes { subject: format!("process {pid}"), pid, duration, settings: Vec::new() }
        }
    };
    Ok(part(of_processes(&processes, progress)?))
}

/// Finds the processes of a database server on this machine, with its settings.
fn server(address: &str, duration: Duration) -> Result<Processes> {
    let subject = without_password(address);
    if address.starts_with("run:") {
        bail!(Failure::new(
            format!("check the files of {subject}: a run opens its disks in its own process"),
            "--pid with the process of that run"
        ));
    }
    let server = monitor::open(address)?.describe();
    let Some(pid) = server.pid.filter(|_| server.is_local) else {
        bail!(Failure::new(
            format!("check the files of {subject}: its processes are not seen from here"),
            "run it on the host of the server, in its PID namespace"
        ));
    };
    let subject = format!("{} {} ({subject})", server.product, server.version);
    Ok(Processes { subject, pid, duration, settings: server.settings })
}

fn part(findings: DirectFindings) -> CheckAnswer {
    let (answer, tone) = answer(&findings);
    let unknown = findings.expected().any(|(_, class)| class == Class::Unknown);
    let partial = unknown || findings.unfinished;
    let mut notes = Vec::new();
    if let Capability::Degraded { why } = &findings.kernel {
        notes.push(format!(
            "Pages added to the page cache were not counted in the kernel: {why}. Then only pages \
             that are seen there tell something, and nothing shows that I/O is direct."
        ));
    }
    notes.extend(submission(&findings));
    if let Some(why) = &findings.submissions_unmeasured {
        notes.push(format!("How I/O is requested was not counted in the kernel: {why}."));
    }
    if findings.unfinished {
        notes.push("This storage is slow: after 20 s the rest was not tried.".to_owned());
    }
    if findings.unseen_files > 0 {
        notes.push(format!(
            "{} more open files were not looked at: not permitted, or too many.",
            findings.unseen_files
        ));
    }
    CheckAnswer {
        subject: findings.subject.clone(),
        answer,
        tone,
        identity: identity(&findings),
        sections: tables::sections(&findings),
        verdicts: judge(rules::DIRECT, &findings),
        notes,
        partial,
        signal: findings.signal,
        ..CheckAnswer::default()
    }
}

/// Says how processes request I/O, all together, beside what the server is set to.
fn submission(findings: &DirectFindings) -> Option<String> {
    let requested = findings.requested()?;
    let asynchronous = requested.aio + requested.io_uring;
    let total = requested.total();
    let text = match asynchronous {
        _ if total == 0 => "No request was seen".to_owned(),
        0 => format!("None of {} is asynchronous", counted(total, "request")),
        _ => format!(
            "{} of {} are asynchronous ({})",
            thousands(asynchronous as i64),
            counted(total, "request"),
            if requested.aio > requested.io_uring { "AIO" } else { "io_uring" }
        ),
    };
    let setting = findings.submission_setting.as_ref();
    if total == 0 && setting.is_none() {
        return None;
    }
    Some(format!("{text}{}.", setting.map_or(String::new(), |set| format!("; set: {set}"))))
}

fn identity(findings: &DirectFindings) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(statx) = &findings.statx {
        let kind = if findings.file_system.is_empty() { "device" } else { &findings.file_system };
        parts.push(kind.to_owned());
        parts.push(format!("statx says: {statx}"));
    } else {
        parts.push(format!("{} open files", findings.files.len()));
        parts.push(format!("observed for {:.1} s", findings.observed_s));
    }
    parts.push(match findings.kernel {
        Capability::Full => "pages are counted in the kernel".to_owned(),
        Capability::Degraded { .. } => "pages are not counted in the kernel".to_owned(),
    });
    let mut lines = vec![parts.join(" · ")];
    if !findings.mount_options.is_empty() {
        lines.push(format!("mounted {}", findings.mount_options));
    }
    lines
}

/// Returns the answer as a sentence, from the I/O that was expected to be direct.
fn answer(findings: &DirectFindings) -> (String, Tone) {
    let classes: Vec<Class> = findings.expected().map(|(_, class)| class).collect();
    let count = |wanted: Class| classes.iter().filter(|class| **class == wanted).count();
    let total = classes.len();
    let what = if findings.is_of_path() {
        "combinations of operation and shape"
    } else {
        "files with I/O that are opened with O_DIRECT"
    };
    let cached = count(Class::Buffered) + count(Class::Dropped);
    if cached > 0 {
        let how = if count(Class::Buffered) > 0 { "buffered" } else { "dropped" };
        return (format!("{how}: {cached} of {total} {what} go through the page cache"), Tone::Bad);
    }
    let (direct, unknown) = (count(Class::Direct), count(Class::Unknown));
    if count(Class::Memory) > 0 {
        ("memory: the file system keeps its files in memory".to_owned(), Tone::Bad)
    } else if unknown > 0 {
        (format!("cannot tell: no evidence on {unknown} of {total} {what}"), Tone::Warning)
    } else if direct > 0 {
        (format!("direct: {direct} of {total} {what}"), Tone::Plain)
    } else if total > 0 {
        (format!("refused: {total} of {total} {what}"), Tone::Warning)
    } else {
        (format!("no {what}"), Tone::Plain)
    }
}
