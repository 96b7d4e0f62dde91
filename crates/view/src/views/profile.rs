//! What processors execute, from samples: by function, module and role, a second and an I/O.

use std::collections::BTreeMap;

use blockstone_base::column::Unmeasured;
use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use crate::table::{
    Count, Heading, Nanoseconds, Shape, Share, Text, Value, View, mean_time, share, share_of,
    sorted, text, time, total, unmerged,
};

pub const VIEW: View = View {
    name: "cpu-by-function",
    title: "Processor time by function",
    doc: "Processor time by kernel function, program and library.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[MODULE, SYMBOL, CPU, MARGIN, PER_S, PER_IO, SAMPLES],
    rows: by_function,
};

pub const MODULES: View = View {
    name: "cpu-by-module",
    title: "Processor time by module",
    doc: "Processor time by kernel, kernel module, program and library.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[MODULE, MODE, CPU, MARGIN, PER_S, PER_IO, SAMPLES],
    rows: by_module,
};

pub const ROLES: View = View {
    name: "cpu-by-role",
    title: "Processor time by role",
    doc: "Processor time by role: in total, in the kernel, and where most of it was spent.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        ROLE,
        CPU,
        MARGIN,
        PER_S,
        time("kernel_ns_per_s", "kernel/s", "The part of it spent in the kernel."),
        PER_IO,
        unmerged(
            "cpu_ns_per_own_io",
            "per own I/O",
            Nanoseconds,
            "Processor time per read or write that this role sent to a device.",
        ),
        SAMPLES,
        unmerged(
            "hottest",
            "most in",
            Text,
            "The function, program or library that used most of it.",
        ),
    ],
    rows: by_role,
};

pub const ROLE_FUNCTIONS: View = View {
    name: "role-functions",
    title: "Processor time by role and function",
    doc: "Processor time of each role by function, program and library.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[ROLE, MODULE, SYMBOL, CPU, MARGIN, PER_S, PER_IO, SAMPLES],
    rows: by_role_and_function,
};

pub const SAMPLING: View = View {
    name: "cpu-samples",
    title: "Processor samples",
    doc: "The samples of the profile: how many, busy or idle, and how many are missing.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        total("samples", "samples", Count, "Samples of busy processors."),
        mean_time("samples", "period_ns", "period", "Processor time that one sample represents."),
        share("busy_share", "busy", "Share of the time of all processors sampled as busy."),
        share("idle_share", "idle", "Share sampled as idle."),
        // Cut off at zero in each slice.
        unmerged(
            "missed_share",
            "missed",
            Share,
            "Share of the time without a sample, for example while the hypervisor ran another \
             guest.",
        ),
        total(
            "lost",
            "lost",
            Count,
            "Samples and thread records lost because the buffers were full.",
        ),
    ],
    rows: sampling,
};

const PROBE: &str = "profile";
/// The object whose row is on the sampling itself.
const TOTALS: &str = "sampling";
/// Rows of a table; those that follow are one.
const ROWS_MAX: usize = 30;

const ROLE: Heading = text("role", "role", "The role.");
const MODE: Heading = text("mode", "mode", "Kernel or user mode.");
const MODULE: Heading =
    text("module", "module", "`vmlinux`, a module of the kernel, a program or a library.");
const SYMBOL: Heading = text("symbol", "function", "The kernel function; empty for user code.");
const CPU: Heading = share_of("cpu_ns_per_s", "cpu_share", "CPU", "Share of all processor time.");
const MARGIN: Heading =
    unmerged("margin_share", "±", Share, "Sampling error of the share (95 % confidence).");
const PER_S: Heading = time("cpu_ns_per_s", "CPU/s", "Processor time per second.");
// Of disks that come or go, slices count what the whole does not.
const PER_IO: Heading = unmerged(
    "cpu_ns_per_io",
    "per I/O",
    Nanoseconds,
    "Processor time per read or write of the disks.",
);
const SAMPLES: Heading = total("samples", "samples", Count, "Number of samples.");

/// What was found at work in an interval.
struct Found<'a> {
    role: &'a str,
    mode: &'a str,
    module: &'a str,
    symbol: Option<&'a str>,
    samples: f64,
    cpu_ns: f64,
}

struct Whole {
    samples: f64,
    cpu_ns: f64,
    seconds: f64,
    ios: Known,
}

#[derive(Clone, Copy, Default)]
struct Part {
    samples: f64,
    cpu_ns: f64,
}

impl Part {
    fn add(&mut self, samples: f64, cpu_ns: f64) {
        self.samples += samples;
        self.cpu_ns += cpu_ns;
    }
}

fn by_function(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    by(interval, &VIEW, |found| vec![module(found), symbol(interval, found)])
}

fn by_module(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    by(interval, &MODULES, |found| vec![module(found), found.mode.into()])
}

fn by_role_and_function(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    by(interval, &ROLE_FUNCTIONS, |found| {
        vec![found.role.into(), module(found), symbol(interval, found)]
    })
}

fn by_role(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let found = found(interval);
    let whole = whole(interval, &found);
    let mut roles: BTreeMap<&str, Vec<&Found<'_>>> = BTreeMap::new();
    for found in &found {
        roles.entry(found.role).or_default().push(found);
    }
    let row = |(role, found): (&&str, &Vec<&Found<'_>>)| {
        let (mut all, mut kernel) = (Part::default(), Part::default());
        for found in found {
            all.add(found.samples, found.cpu_ns);
            if found.mode == "kernel" {
                kernel.add(found.samples, found.cpu_ns);
            }
        }
        let hottest = found.iter().max_by(|a, b| a.cpu_ns.total_cmp(&b.cpu_ns));
        let hottest = hottest.map(|hottest| match hottest.symbol {
            Some(symbol) if !symbol.is_empty() => symbol,
            _ => hottest.module,
        });
        let [cpu, margin, per_s, per_io, samples] = figures(all, &whole);
        vec![
            Value::from(*role),
            cpu,
            margin,
            per_s,
            Value::Number(kernel.cpu_ns / whole.seconds),
            per_io,
            ratio(Ok(all.cpu_ns), own_ios(interval, role)).into(),
            samples,
            hottest.into(),
        ]
    };
    sorted(roles.iter().map(row).collect(), 1)
}

fn sampling(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let moved = |column| interval.moved(PROBE, TOTALS, column);
    let watched = || moved("watched_ns");
    let taken = sum([moved("cpu_ns"), moved("idle_ns")]);
    let missed = watched().and_then(|watched| Ok((watched - taken?).max(0.0)));
    vec![vec![
        moved("samples").into(),
        ratio(moved("cpu_ns"), moved("samples")).into(),
        ratio(moved("cpu_ns"), watched()).into(),
        ratio(moved("idle_ns"), watched()).into(),
        ratio(missed, watched()).into(),
        moved("lost").into(),
    ]]
}

/// Rows with what `name` says before their figures, the greatest first, and what exceeds a table
/// in one.
fn by(
    interval: &Interval<'_>,
    view: &'static View,
    name: impl Fn(&Found<'_>) -> Vec<Value>,
) -> Vec<Vec<Value>> {
    let found = found(interval);
    let whole = whole(interval, &found);
    let mut parts: BTreeMap<String, (Vec<Value>, Part)> = BTreeMap::new();
    for found in &found {
        let names = name(found);
        let (_, part) = parts.entry(format!("{names:?}")).or_insert((names, Part::default()));
        part.add(found.samples, found.cpu_ns);
    }
    let mut parts: Vec<(Vec<Value>, Part)> = parts.into_values().collect();
    parts.sort_by(|(_, a), (_, b)| b.cpu_ns.total_cmp(&a.cpu_ns));
    if parts.len() > ROWS_MAX {
        let rest = parts.split_off(ROWS_MAX - 1);
        let mut names = vec![Value::from(""); rest[0].0.len()];
        names[0] = Value::Text(format!("{} others", rest.len()));
        let mut all = Part::default();
        for (_, part) in &rest {
            all.add(part.samples, part.cpu_ns);
        }
        parts.push((names, all));
    }
    let row = |(mut names, part): (Vec<Value>, Part)| {
        names.extend(figures(part, &whole));
        debug_assert_eq!(names.len(), view.columns.len());
        names
    };
    parts.into_iter().map(row).collect()
}

/// Share, margin, a second, an I/O, samples.
fn figures(part: Part, whole: &Whole) -> [Value; 5] {
    let share = part.cpu_ns / whole.cpu_ns;
    // Each sample is there or not: the normal approximation of the binomial distribution.
    let margin = 1.96 * (share * (1.0 - share) / whole.samples).max(0.0).sqrt();
    [
        Value::Number(share),
        Value::Number(margin),
        Value::Number(part.cpu_ns / whole.seconds),
        ratio(Ok(part.cpu_ns), whole.ios).into(),
        Value::Number(part.samples),
    ]
}

fn found<'a>(interval: &Interval<'a>) -> Vec<Found<'a>> {
    let object = |object: &'a str| {
        let state = |column| interval.text(PROBE, object, column);
        let moved = |column| interval.moved_from_zero(PROBE, object, column).ok();
        let found = Found {
            role: state("role")?,
            mode: state("mode")?,
            module: state("module")?,
            symbol: state("symbol"),
            samples: moved("samples")?,
            cpu_ns: moved("cpu_ns")?,
        };
        (found.samples > 0.0).then_some(found)
    };
    interval.objects(PROBE).into_iter().filter_map(object).collect()
}

fn whole(interval: &Interval<'_>, found: &[Found<'_>]) -> Whole {
    let disks = interval.disks();
    let moved = |column| sum(disks.iter().map(|disk| interval.moved("block", disk, column)));
    Whole {
        samples: found.iter().map(|found| found.samples).sum(),
        cpu_ns: found.iter().map(|found| found.cpu_ns).sum(),
        seconds: interval.seconds(),
        ios: sum(["read_ios", "write_ios"].map(moved)),
    }
}

/// Reads and writes that a role sent to devices, where the kernel counts them by role.
fn own_ios(interval: &Interval<'_>, role: &str) -> Known {
    const IO: &str = "kernel_io";
    if !interval.has(IO) {
        return Err(Missing::Off);
    }
    interval.moved(IO, "tracing", "dropped")?;
    let is_its = |object: &&str| {
        let is = |column, wanted| interval.text(IO, object, column) == Some(wanted);
        let transfers = is("operation", "read") || is("operation", "write");
        is("layer", "block") && is("role", role) && transfers
    };
    let objects = interval.objects(IO).into_iter().filter(is_its);
    sum(objects.map(|object| interval.moved_from_zero(IO, object, "ios")))
}

fn module(found: &Found<'_>) -> Value {
    found.module.into()
}

/// Without a name where programs have none here; missing where the kernel hides them.
fn symbol(interval: &Interval<'_>, found: &Found<'_>) -> Value {
    match found.symbol {
        Some(symbol) => symbol.into(),
        None if found.mode == "kernel" => Value::Missing(match interval.reason(PROBE, "symbol") {
            Some(Unmeasured::NotInVersion(_)) => Missing::NotInVersion,
            _ => Missing::NotPermitted,
        }),
        None => "".into(),
    }
}
