//! `check durability`: whether a flush makes data durable, from inside and after a power cut.

mod tables;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use blockstone_base::rule::judge;
use blockstone_base::units::{Nanos, thousands};
use blockstone_check::durability::findings::{
    Class, Cuts, DurabilityFindings, Flushing, Method, Pattern, Stage, StreamFindings,
};
use blockstone_check::durability::{
    Cycles, Effort, Serving, Writing, examine, serve, verify, write,
};
use blockstone_report::Tone;
use clap::builder::PossibleValuesParser;
use clap::{Args, FromArgMatches, ValueHint};

use super::answer::{Check, CheckAnswer};
use super::rules;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::recordings;

pub use tables::TABLES;

pub const CHECK: Check = Check {
    name: "durability",
    about: "Whether a flush makes data durable: by its time, and by a power cut with a witness",
    options: DurabilityArgs::augment_args,
    run: |options, _, progress| run(&DurabilityArgs::from_arg_matches(options)?, progress),
    quick: |path, progress| {
        let seed = recordings::draw_seed();
        let mut part = part(&examine(path, seed, Effort::Quick, progress)?);
        // A quick check that does not decide is not a failure of all checks.
        part.partial = false;
        Ok(part)
    },
};

/// How long writers run if no power is cut.
const DURATION: Nanos = Nanos::millis(3_600_000);
const DURATION_MAX: Nanos = Nanos::millis(7 * 24 * 3_600_000);

/// Arguments of `check durability`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check durability /data                  devices, time of a flush
  blockstone check durability --serve 0.0.0.0:7464   elsewhere: the witness
  blockstone check durability --witness other:7464 /data
                                                     until the power is cut
  blockstone check durability --verify --witness other:7464 /data
                                                     after the cut")]
struct DurabilityArgs {
    /// A directory; without a witness also a file or device, which is not written to
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath,
          required_unless_present = "serve", conflicts_with = "serve")]
    #[arg(add = Purpose::Scratch)]
    path: Option<PathBuf>,
    /// Write stamped blocks in every way until the power is cut, and report each acknowledged write
    /// to this witness
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "serve")]
    witness: Option<String>,
    /// After the cut: compare the data on the path with the witness's log
    #[arg(long, requires = "witness")]
    #[arg(conflicts_with = "serve")]
    verify: bool,
    /// Be the witness of other machines, at this address, until Ctrl-C
    #[arg(long, value_name = "HOST:PORT", help_heading = "Witness")]
    serve: Option<String>,
    /// File in which the witness keeps its log
    #[arg(long, value_name = "FILE", requires = "serve", default_value = "blockstone-witness.log",
          conflicts_with_all = ["path", "witness", "verify"], value_hint = ValueHint::FilePath,
          help_heading = "Witness")]
    #[arg(add = Purpose::Output)]
    log: PathBuf,
    /// Cut the power of the writing machine with this program, which turns it on again; its
    /// arguments are split at blanks, as quotes allow, and no shell reads them
    #[arg(long, value_name = "COMMAND", requires_all = ["serve", "cycles"],
          help_heading = "Witness", value_parser = words)]
    cut: Option<Words>,
    /// Make this many cuts, each after the last one was verified, and exit
    #[arg(long, value_name = "N", requires = "cut", help_heading = "Witness",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    cycles: Option<u64>,
    /// Write for this time if no power is cut [default: 1h]
    #[arg(long = "for", value_name = "TIME", requires = "witness",
          conflicts_with_all = ["verify", "serve"])]
    duration: Option<Nanos>,
    /// Only these ways to make a write durable; none, direct-none and sync-file-range are the
    /// controls
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "witness",
          conflicts_with_all = ["verify", "serve"],
          value_parser = names(Method::ALL, Method::name))]
    methods: Vec<String>,
    /// Only these patterns; a device supports only overwrite
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "witness",
          conflicts_with_all = ["verify", "serve"],
          value_parser = names(Pattern::ALL, Pattern::name))]
    patterns: Vec<String>,
    /// Name a block device a second time, to allow its content to be destroyed
    #[arg(long, value_name = "DEVICE", requires = "witness",
          conflicts_with_all = ["verify", "serve"], value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Device)]
    destroy: Option<PathBuf>,
}

/// A program and its arguments.
#[derive(Clone, Debug)]
struct Words(Vec<OsString>);

fn words(text: &str) -> Result<Words, String> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => {
            Ok(Words(words.into_iter().map(OsString::from).collect()))
        }
        Some(_) => Err("no program is named".to_owned()),
        None => Err("a quote is not closed".to_owned()),
    }
}

fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> PossibleValuesParser {
    PossibleValuesParser::new(all.iter().map(|&one| name(one)))
}

/// Returns the values that were named, or all.
fn chosen<T: Copy>(all: &[T], name: fn(T) -> &'static str, wanted: &[String]) -> Vec<T> {
    let is_wanted = |one: &T| wanted.is_empty() || wanted.iter().any(|it| it == name(*one));
    all.iter().copied().filter(is_wanted).collect()
}

fn run(args: &DurabilityArgs, progress: &mut Progress) -> Result<CheckAnswer> {
    let seed = recordings::draw_seed();
    if let Some(address) = &args.serve {
        let cycles = args.cycles.zip(args.cut.clone());
        let cycles =
            cycles.map(|(count, Words(cut))| Cycles { count, cut, before: Cycles::BEFORE });
        let serving = Serving { address, log: &args.log, cycles, seed };
        return Ok(part(&serve(&serving, progress)?));
    }
    let Some(path) = &args.path else {
        bail!(Failure::new("check durability: no path is named", "."))
    };
    let Some(witness) = &args.witness else {
        return Ok(part(&examine(path, seed, Effort::Full, progress)?));
    };
    if args.verify {
        return Ok(part(&verify(path, witness, progress)?));
    }
    let duration = args.duration.unwrap_or(DURATION);
    if duration.get() == 0 || duration > DURATION_MAX {
        bail!(Failure::new(
            format!("write for {duration}: it must be more than nothing, and at most 7d"),
            "--for 1h"
        ));
    }
    if let Some(other) = args.destroy.as_ref().filter(|other| *other != path) {
        bail!(Failure::new(
            format!("destroy {}: the path to write to is {}", other.display(), path.display()),
            "name the same device twice"
        ));
    }
    let methods = chosen(Method::ALL, Method::name, &args.methods);
    let patterns = chosen(Pattern::ALL, Pattern::name, &args.patterns);
    Ok(part(&write(
        &Writing {
            path: Path::new(path),
            destroy: args.destroy.is_some(),
            witness,
            methods: &methods,
            patterns: &patterns,
            duration: Duration::from_nanos(duration.get()),
            // A run has a number, which is never 0.
            id: seed.max(1),
        },
        progress,
    )?))
}

fn part(findings: &DurabilityFindings) -> CheckAnswer {
    let (answer, tone) = answer(findings);
    let unknown = |flushing: &Flushing| flushing.class == Class::Unknown;
    let partial = match findings.stage {
        Stage::Examined => findings.flushing.as_ref().is_some_and(unknown),
        Stage::Verified => {
            findings.of_controls(false).any(|stream| stream.class == Class::Inconclusive)
        }
        Stage::Written => false,
        Stage::Witnessed => {
            let cuts = findings.witnessed_cuts();
            findings.missed_cuts > 0 || (cuts.conclusive == 0 && cuts.inconclusive > 0)
        }
    };
    CheckAnswer {
        subject: findings.subject.clone(),
        answer,
        tone,
        identity: identity(findings),
        sections: tables::sections(findings),
        verdicts: judge(rules::DURABILITY, findings),
        notes: findings.notes.clone(),
        signal: findings.signal.clone(),
        partial,
        ..CheckAnswer::default()
    }
}

fn identity(findings: &DurabilityFindings) -> Vec<String> {
    if findings.stage == Stage::Witnessed {
        return Vec::new();
    }
    let kind = if findings.file_system.is_empty() { "device" } else { &findings.file_system };
    let mut parts = vec![kind.to_owned()];
    parts.extend(findings.hypervisor.as_ref().map(|name| format!("behind {name}")));
    let mut lines = vec![parts.join(" · ")];
    if !findings.mount_options.is_empty() {
        lines.push(format!("mounted {}", findings.mount_options));
    }
    lines
}

fn answer(findings: &DurabilityFindings) -> (String, Tone) {
    match findings.stage {
        Stage::Examined => examined(findings),
        Stage::Written => {
            let count = thousands(findings.acknowledged() as i64);
            (format!("{count} writes acknowledged, and known to the witness"), Tone::Plain)
        }
        Stage::Verified => verified(findings),
        Stage::Witnessed => witnessed(findings),
    }
}

fn witnessed(findings: &DurabilityFindings) -> (String, Tone) {
    let Cuts { conclusive, with_loss, inconclusive } = findings.witnessed_cuts();
    let missed = findings.missed_cuts;
    let lost = format!("{with_loss} of {conclusive} cuts lost what was flushed");
    if with_loss > 0 {
        (format!("lost: {lost}"), Tone::Bad)
    } else if missed > 0 {
        let what = format!("incomplete: {missed} cuts not made or not verified; {lost}");
        (what, Tone::Warning)
    } else if conclusive > 0 {
        (format!("durable: {lost}"), Tone::Plain)
    } else if inconclusive > 0 {
        let what = format!("inconclusive: {inconclusive} cuts, and none lost what a device had");
        (what, Tone::Warning)
    } else {
        let count: u64 = findings.witnessed.iter().map(|it| it.acknowledged).sum();
        let (count, paths) = (thousands(count as i64), findings.witnessed.len());
        (format!("{count} writes witnessed, of {paths} paths"), Tone::Plain)
    }
}

fn examined(findings: &DurabilityFindings) -> (String, Tone) {
    let class = findings.flushing.as_ref().map_or(Class::Unknown, |flushing| flushing.class);
    match class {
        Class::Volatile => ("volatile: a flush writes out a cache".to_owned(), Tone::Plain),
        Class::Flat => {
            let what = "flat: nothing is volatile, or flushes do nothing; only a cut decides";
            (what.to_owned(), Tone::Plain)
        }
        Class::Unflushed => {
            ("unflushed: flushes do not reach a volatile cache".to_owned(), Tone::Bad)
        }
        Class::Memory => ("memory: nothing is durable".to_owned(), Tone::Bad),
        _ => ("cannot tell what a flush does".to_owned(), Tone::Warning),
    }
}

fn verified(findings: &DurabilityFindings) -> (String, Tone) {
    let promised: Vec<&StreamFindings> = findings.of_controls(false).collect();
    let sum = |of: fn(&StreamFindings) -> u64| promised.iter().map(|it| of(it)).sum::<u64>();
    let (lost, torn) = (sum(|it| it.lost + it.misplaced), sum(|it| it.torn));
    let checked = thousands(sum(|it| it.checked) as i64);
    if lost > 0 {
        (format!("lost: {lost} of {checked} flushed blocks"), Tone::Bad)
    } else if torn > 0 {
        (format!("torn: {torn} of {checked} flushed blocks"), Tone::Bad)
    } else if promised.iter().any(|it| it.class == Class::Durable) {
        (format!("durable: 0 of {checked} flushed blocks lost"), Tone::Plain)
    } else if promised.iter().all(|it| it.class == Class::Unknown) {
        ("cannot tell: nothing that was flushed was acknowledged".to_owned(), Tone::Warning)
    } else {
        let what = "inconclusive: nothing that the device had was lost, flushed or not";
        (what.to_owned(), Tone::Warning)
    }
}
