//! `size … --on`: does this storage carry the need? The need is driven on a path, or compared with
//! a recording of `run` or `calibrate`.

use std::path::Path;

use anyhow::{Result, bail};
use blockstone_base::hint;
use blockstone_base::stats::Estimate;
use blockstone_base::units::Nanos;
use blockstone_base::verdict::Outcome as Judged;
use blockstone_judge::RunFindings;
use blockstone_judge::findings::Findings;
use blockstone_record::Recording;
use blockstone_record::manifest::{End, Figure, Manifest};
use blockstone_report::{block_size, format};
use blockstone_size::hardware::Demand;
use blockstone_size::hardware::headroom::{CurvePoint, predicted};
use blockstone_size::need::Need;
use blockstone_size::{Database, Question};

use super::answer::{Answer, Load, MEAN, Outcome, SAME_SESSIONS};
use super::args::SizeArgs;
use super::chosen;
use super::db_time;
use super::drive::{self, Drive};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::verb::Context;
use crate::verbs::run;
use crate::{finish, recorded, recordings};

/// Share of the wanted rate that a run must reach: less than that is within the chance of arrivals.
const REACHED: f64 = 0.95;
/// Sessions of the run that finds the ceiling.
const CEILING_SESSIONS: u32 = 64;
/// Name of that load.
const CEILING: &str = "ceiling";
/// Time for which a session holds a place: as many sessions as arrive within it.
const PATIENCE_S: f64 = 0.02;
const SESSIONS: std::ops::RangeInclusive<u32> = 16..=256;
/// A peak less than this above the percentile is not driven on its own.
const PEAK: f64 = 1.05;

/// The need as it is driven.
pub struct Wanted<'a> {
    pub demand: &'a Demand,
    pub need: Option<(&'a Need, &'a [Database])>,
    pub question: &'a Question,
    /// Name of the percentile of `demand`.
    pub named: &'a str,
    pub drive: Option<Drive>,
    pub log_share: Option<f64>,
}

pub fn answer(wanted: &Wanted<'_>, args: &SizeArgs, context: &Context) -> Result<Option<Answer>> {
    let Some(on) = &args.on else { return Ok(None) };
    let path = Path::new(on);
    let is_recording = path.join("manifest.json").is_file() || !path.exists();
    let source = db_time::source(args, wanted.log_share, context)?;
    let mut found = if is_recording {
        of_recording(on, wanted, args, context)?
    } else {
        driven(path, wanted, source.as_ref(), args, context)?
    };
    found.db_time = source.and_then(|source| db_time::of(&source, &found));
    Ok(Some(found))
}

fn of_recording(
    name: &str,
    wanted: &Wanted<'_>,
    args: &SizeArgs,
    context: &Context,
) -> Result<Answer> {
    let recording = recordings::open(name, &context.global.runs_dir)?;
    match recording.manifest.verb.as_str() {
        "calibrate" => of_calibration(&recording, wanted, args),
        "run" => of_run(&recording, wanted, args),
        verb => bail!(Failure::new(
            format!("size on {name}: it was made by {verb}"),
            "name a recording of calibrate or of run, or a path to drive the need on"
        )),
    }
}

/// A load to drive.
struct Step<'a> {
    name: &'a str,
    drive: Drive,
    /// Sessions that work without any pause, instead of the rate of the load.
    closed: Option<u32>,
}

/// Drives the need at its percentile and at its peak, the load of the source for its database time,
/// and then as much as the storage does.
fn driven(
    path: &Path,
    wanted: &Wanted<'_>,
    source: Option<&db_time::Source>,
    args: &SizeArgs,
    context: &Context,
) -> Result<Answer> {
    let Some(drive) = &wanted.drive else {
        bail!(Failure::new(
            format!("size on {}: the need has no requests", path.display()),
            "name a load that has some"
        ));
    };
    let step = |name, drive: &Drive, closed| Step { name, drive: drive.clone(), closed };
    let mut steps = vec![step(wanted.named, drive, None)];
    steps.extend(peak(wanted, drive, args).map(|peak| step("max", &peak, None)));
    if let Some(source) = source {
        steps.push(step(MEAN, &source.drive, None));
        steps.push(step(SAME_SESSIONS, &source.drive, Some(source.sessions as u32)));
    }
    steps.push(step(CEILING, drive, Some(CEILING_SESSIONS)));
    let interrupt = Interrupt::install()?;
    // Limits on figures of the need are not limits on those of a run.
    let context = Context { expectations: Vec::new(), ..context.clone() };
    let mut done = Vec::new();
    let mut ceiling = None;
    let mut binds = None;
    for Step { name, drive, closed } in &steps {
        let words = words(path, drive, *closed, args);
        context.printer.note(&format!("{name}: blockstone run {}", words.join(" ")));
        let dir = run::record(&words, interrupt.clone(), &context)?;
        finish::judge_recording(&dir, &context)?;
        let recording = Recording::open(&dir)?;
        let findings = blockstone_judge::find_run(&recording, None)?;
        let rate = Some(drive.rate_per_s).filter(|_| closed.is_none());
        let mut found = load_of((*name).to_owned(), rate, &recording, &findings, args);
        if found.name == CEILING {
            ceiling = found.done_per_s;
        }
        binds = limit(&recording.manifest, &findings).or(binds);
        let end = recording.manifest.end.clone();
        if let Some((error, hint)) = end.failure() {
            let why = hint::told(error, hint);
            (found.outcome, found.why) = (Some(Outcome::NotEstablished), Some(why));
        }
        done.push(found);
        if end != End::Complete {
            break;
        }
    }
    let headroom = ceiling.map(|it| it.scaled(1.0 / drive.rate_per_s));
    // A rate that the storage cannot do for long may be reached for a while. The mean load has
    // another mix than the ceiling.
    for load in done.iter_mut().filter(|load| load.name != MEAN) {
        let wanted = load.wanted_per_s.filter(|_| load.outcome == Some(Outcome::Carries));
        if let (Some(wanted), Some(most)) = (wanted, ceiling)
            && most.high < wanted
        {
            load.outcome = Some(Outcome::DoesNotCarry);
            load.why = Some(format!("the most is {} operations/s", format::number(most.value, "")));
        }
    }
    let is_interrupted = interrupt.signal().is_some();
    let of_loads = done.iter().filter_map(|load| load.outcome);
    let outcome = of_loads.fold(Outcome::Carries, Outcome::and);
    let outcome = if is_interrupted { outcome.and(Outcome::NotEstablished) } else { outcome };
    let slow = done.iter().any(|load| load.why.as_deref().is_some_and(|why| why.contains("p99")));
    let binds = binds.unwrap_or_else(|| {
        if slow { "latency" } else { "requests a second of the storage" }.to_owned()
    });
    let why = done.iter().find(|it| it.outcome == Some(outcome)).and_then(|it| it.why.clone());
    Ok(Answer { outcome, headroom, binds, why, loads: done, db_time: None, is_interrupted })
}

/// Returns the load at the maximum of the need, if it is clearly above that of the percentile.
fn peak(wanted: &Wanted<'_>, drive: &Drive, args: &SizeArgs) -> Option<Drive> {
    let (need, databases) = wanted.need?;
    let demand = need.demand(databases, wanted.question, "max");
    let peak = drive::load(&demand, wanted.log_share, args.need.redundancy(), None)?;
    (peak.rate_per_s > PEAK * drive.rate_per_s).then_some(peak)
}

/// Returns the command line of a run: at the rate of the load, or, with `closed`, at full speed
/// with that number of sessions.
fn words(path: &Path, drive: &Drive, closed: Option<u32>, args: &SizeArgs) -> Vec<String> {
    let mut words = drive.mix();
    let sessions = closed.unwrap_or_else(|| {
        words.extend(["--rate".to_owned(), drive.rate()]);
        let busy = (drive.rate_per_s * PATIENCE_S).ceil() as u32;
        busy.clamp(*SESSIONS.start(), *SESSIONS.end()).next_multiple_of(4)
    });
    // As many on each schema, and 1 GiB of rows together.
    let schemas = [4, 2, 1].into_iter().find(|schemas| sessions.is_multiple_of(*schemas));
    let schemas = schemas.unwrap_or(1);
    words.extend(["--schemas".to_owned(), schemas.to_string()]);
    words.extend(["--scale".to_owned(), format!("{}M", 1024 / schemas)]);
    words.extend(["--sessions".to_owned(), sessions.to_string()]);
    words.extend(["--for".to_owned(), format!("{}ms", args.drive_for.get() / 1_000_000)]);
    if args.destroy.as_deref() == Some(path) {
        words.extend(["--destroy".to_owned(), path.display().to_string()]);
    }
    words.push(path.display().to_string());
    words
}

fn load_of(
    name: String,
    wanted_per_s: Option<f64>,
    recording: &Recording,
    findings: &RunFindings,
    args: &SizeArgs,
) -> Load {
    let figure = |name: &str| findings.figure(name);
    let sound = |name: &str| figure(name).filter(|it| it.condemned_by.is_empty());
    let estimate = |name: &str| sound(name).map(|it| it.estimate);
    let done_per_s = estimate("operations_per_s");
    let condemned = figure("operations_per_s").map_or(&[][..], |it| &it.condemned_by);
    let reached = wanted_per_s.map(|wanted| reaches(wanted, done_per_s, condemned));
    let kept =
        wanted_per_s.and(args.hardware.p99).map(|most| keeps(most, figure("read_latency_ns_p99")));
    let both = [reached, kept].into_iter().flatten();
    let (outcome, why) = both.fold((None, None), |all: (Option<Outcome>, _), (outcome, why)| {
        let joined = all.0.map_or(outcome, |it| it.and(outcome));
        let why = if all.0 == Some(joined) { all.1 } else { why };
        (Some(joined), why)
    });
    Load {
        name,
        wanted_per_s,
        done_per_s,
        reads_per_s: estimate("read_iops"),
        writes_per_s: estimate("write_iops"),
        predicted_ns_p99: None,
        read_ns_mean: estimate("read_latency_ns_mean"),
        commit_ns_mean: estimate("commit_latency_ns_mean"),
        read_ns_p99: estimate("read_latency_ns_p99"),
        commit_ns_p99: estimate("commit_latency_ns_p99"),
        outcome,
        why,
        recording: recording.dir.display().to_string(),
    }
}

type Decided = (Outcome, Option<String>);

/// Returns whether a run did the operations that were wanted.
fn reaches(wanted: f64, done: Option<Estimate>, condemned_by: &[String]) -> Decided {
    let Some(done) = done else {
        let why = match condemned_by {
            [] => "the rate was not measured".to_owned(),
            rules => format!("the rate is condemned: {}", rules.join(", ")),
        };
        return (Outcome::NotEstablished, Some(why));
    };
    // How many operations arrive is chance: their number varies by its root. A storage that cannot
    // keep up falls behind by more than three times that.
    let expected = wanted * done.duration_ns as f64 / 1e9;
    let least = wanted * REACHED.min(1.0 - 3.0 / expected.max(9.0).sqrt());
    if done.value >= least {
        (Outcome::Carries, None)
    } else if done.high < least {
        let rate = |value: f64| format::number(value, "");
        let why = format!("{} operations/s of {}", rate(done.value), rate(wanted));
        (Outcome::DoesNotCarry, Some(why))
    } else {
        (Outcome::NotEstablished, Some("the interval of the rate contains the need".to_owned()))
    }
}

/// Returns whether the p99 of reads is within the requested limit.
fn keeps(most: Nanos, figure: Option<&Figure>) -> Decided {
    let most_ns = most.get() as f64;
    match figure.filter(|it| it.condemned_by.is_empty()).map(|it| it.estimate) {
        Some(found) if found.high <= most_ns => (Outcome::Carries, None),
        Some(found) if found.low > most_ns => {
            let found = format::number(found.value, "ns");
            (Outcome::DoesNotCarry, Some(format!("p99 of a read {found}, wanted {most}")))
        }
        _ => {
            (Outcome::NotEstablished, Some("the interval of the p99 contains the limit".to_owned()))
        }
    }
}

/// Returns the limit that a verdict found.
fn limit(manifest: &Manifest, findings: &RunFindings) -> Option<String> {
    let is_limit = |rule: &str| rule == "throttled" || rule == "generator-bound";
    let mut failed = findings.verdicts.iter().filter(|it| it.outcome == Judged::Fail);
    let found = failed.find(|it| is_limit(&it.rule))?;
    if found.rule != "throttled" {
        return Some("processors of this machine".to_owned());
    }
    recorded::throttle(manifest, &findings.verdicts)
}

/// Compares the need with a run that was recorded.
fn of_run(recording: &Recording, wanted: &Wanted<'_>, args: &SizeArgs) -> Result<Answer> {
    let findings = blockstone_judge::find_run(recording, None)?;
    let need = requests(wanted, args)?;
    let figure = |name: &str| findings.figure(name);
    let sound = |name: &str| figure(name).filter(|it| it.condemned_by.is_empty());
    let sum = |of: [&str; 2]| {
        let [reads, writes] = of.map(|name| sound(name).map(|it| it.estimate));
        let (reads, of_writes) =
            (reads?, |of: fn(&Estimate) -> f64| writes.as_ref().map_or(0.0, of));
        Some(Estimate {
            value: reads.value + of_writes(|it| it.value),
            low: reads.low + of_writes(|it| it.low),
            high: reads.high + of_writes(|it| it.high),
            ..reads
        })
    };
    let done = sum(["hardware_read_iops", "hardware_write_iops"]);
    let mut load = load_of("recorded".to_owned(), None, recording, &findings, args);
    let condemned = figure("hardware_read_iops").map_or(&[][..], |it| &it.condemned_by);
    let (mut outcome, mut why) = reaches(need, done, condemned);
    if outcome == Outcome::DoesNotCarry && limit(&recording.manifest, &findings).is_none() {
        let done = done.map_or(String::new(), |it| format::number(it.value, ""));
        why = Some(format!("that run did {done} requests/s and may not have found the most"));
        outcome = Outcome::NotEstablished;
    }
    if let Some(most) = args.hardware.p99 {
        let kept = keeps(most, figure("read_latency_ns_p99"));
        why = why.or(kept.1);
        outcome = outcome.and(kept.0);
    }
    (load.wanted_per_s, load.done_per_s) = (Some(need), done);
    (load.outcome, load.why) = (Some(outcome), why.clone());
    let binds = limit(&recording.manifest, &findings);
    Ok(Answer {
        outcome,
        headroom: done.map(|it| it.scaled(1.0 / need)),
        binds: binds.unwrap_or_else(|| "requests a second of the storage".to_owned()),
        why,
        loads: vec![load],
        db_time: None,
        is_interrupted: false,
    })
}

/// Compares the need with a calibration: with the most random reads and writes, of which a mix does
/// at least what a device does that reads or writes, and at most what one does that counts them
/// apart.
fn of_calibration(recording: &Recording, wanted: &Wanted<'_>, args: &SizeArgs) -> Result<Answer> {
    let findings = blockstone_judge::find(recording)?;
    let need = requests(wanted, args)?;
    let reads = wanted.demand.reads_per_s.unwrap_or(0.0);
    let share = reads / need;
    let most = most_of(&findings, share);
    let (mut outcome, mut why) = match most {
        Err(ref why) => (Outcome::NotEstablished, Some(why.clone())),
        Ok(most) if need <= most.low => (Outcome::Carries, None),
        Ok(most) if need > most.high => (Outcome::DoesNotCarry, None),
        Ok(_) => (
            Outcome::NotEstablished,
            Some("between what reads and writes alone establish: drive it, --on PATH".to_owned()),
        ),
    };
    let curve = chosen::points(&findings);
    let predicted = predicted(&curve, need);
    if let Some(most) = args.hardware.p99 {
        let (kept, reason) = within(&curve, need, most);
        why = why.or(reason);
        outcome = outcome.and(kept);
    }
    let block = recording.manifest.settings.get("block_bytes").and_then(serde_json::Value::as_u64);
    let block = block.map_or(String::new(), |bytes| format!(" of {}", block_size(bytes)));
    let load = Load {
        name: "calibrated".to_owned(),
        wanted_per_s: Some(need),
        done_per_s: most.as_ref().ok().copied(),
        reads_per_s: None,
        writes_per_s: None,
        predicted_ns_p99: predicted.map(|it| (it.low_s.unwrap_or(0.0) * 1e9, it.high_s * 1e9)),
        read_ns_mean: None,
        commit_ns_mean: None,
        read_ns_p99: None,
        commit_ns_p99: None,
        outcome: Some(outcome),
        why: why.clone(),
        recording: recording.dir.display().to_string(),
    };
    Ok(Answer {
        outcome,
        headroom: most.ok().map(|it| it.scaled(1.0 / need)),
        binds: format!("random requests{block}"),
        why,
        loads: vec![load],
        db_time: None,
        is_interrupted: false,
    })
}

/// Returns the most random requests a second of which this share are reads, or why it is unknown.
fn most_of(findings: &Findings, share: f64) -> Result<Estimate, String> {
    let needed = [("max_iops", share), ("max_write_iops", 1.0 - share)];
    let mut rates = Vec::new();
    for (name, part) in needed.into_iter().filter(|(_, part)| *part > 0.0) {
        let (_, figure) = findings
            .summary
            .iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| format!("{name} was not measured"))?;
        if !figure.condemned_by.is_empty() {
            return Err(format!("{name} is condemned: {}", figure.condemned_by.join(", ")));
        }
        rates.push((figure.estimate, part));
    }
    let in_turn = |of: fn(&Estimate) -> f64| {
        1.0 / rates.iter().map(|(rate, part)| part / of(rate)).sum::<f64>()
    };
    let apart = rates.iter().map(|(rate, part)| rate.high / part).fold(f64::INFINITY, f64::min);
    let (first, _) = rates.first().ok_or("the need has no requests")?;
    Ok(Estimate {
        value: in_turn(|rate| rate.value),
        low: in_turn(|rate| rate.low),
        high: apart,
        ..*first
    })
}

fn within(curve: &[CurvePoint], need: f64, most: Nanos) -> Decided {
    let most_s = most.as_secs_f64();
    match predicted(curve, need) {
        Some(found) if found.high_s <= most_s => (Outcome::Carries, None),
        Some(found) if found.low_s.is_some_and(|low| low > most_s) => (
            Outcome::DoesNotCarry,
            Some(format!("p99 of reads is longer than {most} at this rate")),
        ),
        _ => (Outcome::NotEstablished, Some(format!("p99 of {most} lies between measured loads"))),
    }
}

/// Requests a second of the need that reach the storage.
fn requests(wanted: &Wanted<'_>, args: &SizeArgs) -> Result<f64> {
    let found = wanted.demand.hardware_iops(args.need.redundancy()).filter(|iops| *iops > 0.0);
    let Some(iops) = found else {
        bail!(Failure::new(
            "size on a recording: the need has no requests",
            "name a load that has some"
        ));
    };
    Ok(iops)
}
