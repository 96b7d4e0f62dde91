//! Code executed by processors, from samples: by function, module and role, per second and per I/O.

use std::collections::BTreeMap;

use blockstone_base::column::Unmeasured;
use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use crate::table::{
    Count, Heading, Merge, Nanoseconds, Shape, Share, Text, Value, View, column, mean_time, share,
    share_of, sorted, text, time, total, unmerged,
};

pub const VIEW: View = View {
    name: "cpu-by-function",
    title: "Processor time by function",
    doc: "Processor time by kernel function, program and library; the rows `all` are the sums of \
          kernel and user mode.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[MODULE, SYMBOL, MODE, CPU_BESIDE_SUMS, OF_MODE, MARGIN, PER_S, PER_IO, SAMPLES],
    rows: by_function,
};

pub const MODULES: View = View {
    name: "cpu-by-module",
    title: "Processor time by module",
    doc: "Processor time by kernel, kernel module, program and library; the rows `all` are the \
          sums of kernel and user mode.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[MODULE, MODE, CPU_BESIDE_SUMS, OF_MODE, MARGIN, PER_S, PER_IO, SAMPLES],
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
        // Clamped at zero in each slice.
        unmerged(
            "missed_share",
            "missed",
            Share,
            "Share of the time without a sample, for example while the hypervisor ran another \
             guest.",
        ),
        // Slices may have periods of their own.
        unmerged(
            "interrupts_per_s",
            "interrupts/s",
            Count,
            "Samples taken per second on all processors, idle ones included; each is an interrupt.",
        ),
        share(
            "summing_share",
            "summing",
            "Processor time spent on turning samples into sums, as a share of one processor; it is \
             in the profile itself, the interrupts are not.",
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
/// The object with the counters of the sampling itself.
const TOTALS: &str = "sampling";
/// Maximum number of rows in a table; the rest is summed in the last one.
const ROWS_MAX: usize = 30;

const ROLE: Heading = text("role", "role", "The role.");
const MODE_KEY: &str = "mode";
const MODE: Heading = text(MODE_KEY, "mode", "Kernel or user mode.");
const MODULE: Heading =
    text("module", "module", "`vmlinux`, a module of the kernel, a program or a library.");
const SYMBOL: Heading = text("symbol", "function", "The kernel function; empty for user code.");
const CPU: Heading = share_of("cpu_ns_per_s", "cpu_share", "CPU", "Share of all processor time.");
// A slice without a sample in a mode has no sum for it.
const OF_MODE: Heading = unmerged(
    "mode_share",
    "of mode",
    Share,
    "Share of the processor time in the same mode: of kernel time, of user time.",
);
/// [`CPU`], next to rows that are sums of others.
const CPU_BESIDE_SUMS: Heading = column(
    "cpu_share",
    "CPU",
    Share,
    Merge::Per { part: "cpu_ns_per_s", within: "" },
    "Share of all processor time.",
);
const MARGIN: Heading =
    unmerged("margin_share", "±", Share, "Sampling error of the share (95 % confidence).");
const PER_S: Heading = time("cpu_ns_per_s", "CPU/s", "Processor time per second.");
// If disks appear or disappear, slices count I/O that the whole does not.
const PER_IO: Heading = unmerged(
    "cpu_ns_per_io",
    "per I/O",
    Nanoseconds,
    "Processor time per read or write of the disks.",
);
const SAMPLES: Heading = total("samples", "samples", Count, "Number of samples.");

/// Samples of one function in an interval.
struct Found<'a> {
    role: &'a str,
    mode: &'a str,
    module: &'a str,
    symbol: Option<&'a str>,
    samples: f64,
    cpu_ns: f64,
}

struct Whole<'a> {
    samples: f64,
    cpu_ns: f64,
    modes: BTreeMap<&'a str, SampleTotals>,
    seconds: f64,
    ios: Known,
}

#[derive(Clone, Copy, Default)]
struct SampleTotals {
    samples: f64,
    cpu_ns: f64,
}

impl SampleTotals {
    fn add(&mut self, samples: f64, cpu_ns: f64) {
        self.samples += samples;
        self.cpu_ns += cpu_ns;
    }
}

fn by_function(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    by(interval, &VIEW, |found| vec![module(found), symbol(interval, found), found.mode.into()])
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
        let (mut all, mut kernel) = (SampleTotals::default(), SampleTotals::default());
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
    let period = ratio(moved("cpu_ns"), moved("samples"));
    let missed = watched().and_then(|watched| Ok((watched - taken?).max(0.0)));
    vec![vec![
        moved("samples").into(),
        period.into(),
        ratio(moved("cpu_ns"), watched()).into(),
        ratio(moved("idle_ns"), watched()).into(),
        ratio(missed, watched()).into(),
        ratio(taken, period).map(|taken| taken / interval.seconds()).into(),
        moved("summing_ns").map(|ns| ns / interval.ns()).into(),
        moved("lost").into(),
    ]]
}

/// Returns rows of the names given by `name` and their figures, the largest first; those that
/// exceed the table are summed in one row.
fn by(
    interval: &Interval<'_>,
    view: &'static View,
    name: impl Fn(&Found<'_>) -> Vec<Value>,
) -> Vec<Vec<Value>> {
    let found = found(interval);
    let whole = whole(interval, &found);
    let mode = view.column(MODE_KEY);
    let mut parts: BTreeMap<String, (Vec<Value>, SampleTotals)> = BTreeMap::new();
    for found in &found {
        let names = name(found);
        let (_, part) =
            parts.entry(format!("{names:?}")).or_insert((names, SampleTotals::default()));
        part.add(found.samples, found.cpu_ns);
    }
    let mut parts: Vec<(Vec<Value>, SampleTotals)> = parts.into_values().collect();
    parts.sort_by(|(_, a), (_, b)| b.cpu_ns.total_cmp(&a.cpu_ns));
    if parts.len() > ROWS_MAX {
        let rest = parts.split_off(ROWS_MAX - 1);
        let mut names = vec![Value::from(""); rest[0].0.len()];
        names[0] = Value::Text(format!("{} others", rest.len()));
        let mut all = SampleTotals::default();
        for (_, part) in &rest {
            all.add(part.samples, part.cpu_ns);
        }
        parts.push((names, all));
    }
    let sums = mode.map(|mode| whole.modes.iter().map(move |sum| of_mode(sum, mode)));
    let row = |(mut names, part): (Vec<Value>, SampleTotals)| {
        let all = mode.map(|mode| whole.modes.get(name_in(&names, mode)).copied());
        let [cpu, others @ ..] = figures(part, &whole);
        names.push(cpu);
        names.extend(all.map(|all| {
            let all = all.map(|all| all.cpu_ns).ok_or(Missing::Nothing);
            Value::from(ratio(Ok(part.cpu_ns), all))
        }));
        names.extend(others);
        debug_assert_eq!(names.len(), view.columns.len());
        names
    };
    sums.into_iter().flatten().chain(parts).map(row).collect()
}

/// Returns the row of a mode's sum, with its name in the column of the mode.
fn of_mode((mode, part): (&&str, &SampleTotals), column: usize) -> (Vec<Value>, SampleTotals) {
    let mut names = vec![Value::from(""); column + 1];
    names[0] = "all".into();
    names[column] = (*mode).into();
    (names, *part)
}

fn name_in(names: &[Value], column: usize) -> &str {
    match names.get(column) {
        Some(Value::Text(name)) => name,
        _ => "",
    }
}

/// Returns share, margin, time per second, time per I/O, and samples.
fn figures(part: SampleTotals, whole: &Whole<'_>) -> [Value; 5] {
    let share = part.cpu_ns / whole.cpu_ns;
    // Each sample is in the part or not: the normal approximation of the binomial distribution.
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

fn whole<'a>(interval: &Interval<'_>, found: &[Found<'a>]) -> Whole<'a> {
    let mut modes: BTreeMap<&str, SampleTotals> = BTreeMap::new();
    for found in found {
        modes.entry(found.mode).or_default().add(found.samples, found.cpu_ns);
    }
    let disks = interval.disks();
    let moved = |column| sum(disks.iter().map(|disk| interval.moved("block", disk, column)));
    Whole {
        samples: found.iter().map(|found| found.samples).sum(),
        cpu_ns: found.iter().map(|found| found.cpu_ns).sum(),
        modes,
        seconds: interval.seconds(),
        ios: sum(["read_ios", "write_ios"].map(moved)),
    }
}

/// Returns the reads and writes that a role sent to devices, if the kernel counts them by role.
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

/// Returns the symbol: empty if programs have none here, missing if the kernel hides it.
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

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    /// One second with the given number of samples, of 10 ms each, for each pair.
    fn history(found: &[(&str, &str, i64)]) -> History {
        let states = (Kind::State, "role mode module symbol");
        let mut history =
            History::new(vec![testing::probe(PROBE, &[states, (Kind::Counter, "samples cpu_ns")])]);
        for (module, mode, samples) in found {
            for (t_ns, times) in [(0, 0), (1_000_000_000, 1)] {
                let names = ["r", mode, module, "f"].map(|name| Cell::Text(name.to_owned()));
                let counts = [*samples, samples * 10_000_000].map(|it| Cell::Value(times * it));
                history.push(PROBE, t_ns, module, names.into_iter().chain(counts).collect());
            }
        }
        history
    }

    #[test]
    fn modules_have_their_share_of_kernel_time_and_of_all() {
        // 65 % of the 20 % of kernel time is 13 % of all time.
        let history = history(&[
            ("vmlinux", "kernel", 65),
            ("hba", "kernel", 6),
            ("fs", "kernel", 29),
            ("postgres", "user", 400),
        ]);
        let interval = history.interval(0, 1_000_000_000);
        let row = |rows: Vec<Vec<Value>>, view: &View, names: [&str; 2]| {
            let [module, mode, cpu, of_mode] =
                ["module", "mode", "cpu_share", "mode_share"].map(|it| view.column(it).unwrap());
            let is_it =
                |row: &&Vec<Value>| row[module] == names[0].into() && row[mode] == names[1].into();
            let row = rows.iter().find(is_it).unwrap();
            [row[cpu].clone(), row[of_mode].clone()]
        };
        let modules = |names| row(by_module(&interval), &MODULES, names);
        assert_eq!(modules(["all", "kernel"]), [0.2, 1.0].map(Value::from));
        assert_eq!(modules(["all", "user"]), [0.8, 1.0].map(Value::from));
        assert_eq!(modules(["vmlinux", "kernel"]), [0.13, 0.65].map(Value::from));
        assert_eq!(modules(["hba", "kernel"]), [0.012, 0.06].map(Value::from));
        assert_eq!(
            row(by_function(&interval), &VIEW, ["vmlinux", "kernel"]),
            [0.13, 0.65].map(Value::from)
        );
    }

    #[test]
    fn modules_beyond_a_table_are_in_the_sum_of_their_mode() {
        let names: Vec<String> = (0..40).map(|module| format!("m{module}")).collect();
        let found: Vec<_> = names.iter().map(|name| (name.as_str(), "kernel", 5)).collect();
        let rows = by_module(&history(&found).interval(0, 1_000_000_000));
        assert_eq!(rows.len(), 1 + ROWS_MAX);
        let [module, mode, cpu, of_mode, ..] = &rows[0][..] else { panic!("{rows:?}") };
        assert_eq!([module, mode], [&"all".into(), &"kernel".into()]);
        assert_eq!([cpu, of_mode], [&Value::Number(1.0); 2]);
        let others = &rows[ROWS_MAX];
        assert_eq!((&others[0], &others[3]), (&"11 others".into(), &Missing::Nothing.into()));
    }
}
