//! The events that took most of the database's time, as AWR lists them: `DB CPU` is a row like the
//! others, and the latency distribution of each event's waits is a table of its own.

use std::collections::BTreeMap;

use blockstone_base::column::Unmeasured;
use blockstone_base::database::{CPU, RUN_QUEUE, wait_class};
use blockstone_figures::{Interval, Known, Latencies, Missing, Timed, ratio};

use super::active_sessions::{at_work, looks};
use crate::table::{
    Count, Heading, Merge, Nanoseconds, Shape, Share, Value, View, column, count, mean_of,
    mean_time, sorted, text, total,
};

pub const VIEW: View = View {
    name: "top-events",
    title: "Top events",
    doc: "Wait events and CPU by database time, longest first. DB CPU and run queue are as \
          charged by the kernel.",
    probe: EVENTS,
    shape: Shape::Table,
    columns: &[
        text("event", "event", "The wait event, or `DB CPU`."),
        total("waits", "waits", Count, "Completed waits; for a system call, calls."),
        total(
            "wait_time_ns",
            "time",
            Nanoseconds,
            "Time of all sessions in it, over the whole interval.",
        ),
        mean_time("waits", "wait_ns", "average wait", "Mean time of a wait."),
        column(
            "db_time_share",
            "% DB time",
            Share,
            Merge::Per { part: "wait_time_ns", within: "" },
            "Its share of the database time.",
        ),
        count("average_active_sessions", "AAS", "Average number of sessions in it."),
        text("wait_class", "class", "The wait class."),
    ],
    rows: events,
};

/// Explains the shares.
pub const LEGEND: &str =
    "Waits contain DB CPU and run queue: shares may add up to more than 100 %.";

pub const HISTOGRAMS: View = View {
    name: "event-histograms",
    title: "Event histograms",
    doc: "Distribution of the wait times of each event. Each column starts where the one before \
          it ends, at powers of two of 1.024 µs. For a server that does not time single waits, \
          only events that are one kind of system call are shown, as timed by the kernel.",
    probe: EVENTS,
    shape: Shape::Table,
    columns: &[
        text("event", "event", "The wait event."),
        total("waits", "waits", Count, "Completed waits; for a system call, calls."),
        part("waits_below_33us_share", "<32µs"),
        part("waits_below_131us_share", "<128µs"),
        part("waits_below_524us_share", "<512µs"),
        part("waits_below_1ms_share", "<1ms"),
        part("waits_below_2ms_share", "<2ms"),
        part("waits_below_4ms_share", "<4ms"),
        part("waits_below_8ms_share", "<8ms"),
        part("waits_below_16ms_share", "<16ms"),
        part("waits_below_32ms_share", "<32ms"),
        part("waits_below_1s_share", "<1s"),
        part("waits_from_1s_share", "≥1s"),
    ],
    rows: histograms,
};

const PROBE: &str = "instance";
/// The probe of waits timed by the database, and of CPU time charged by the kernel.
const EVENTS: &str = "event";
/// Prefix of the objects of sessions in it.
const SESSION: &str = "session/";
/// Name of the row of processor time.
const DB_CPU: &str = "DB CPU";
/// Wait class of samples of a session that waits for nothing.
const ON_CPU: &str = "On CPU";
/// Upper ends of the histogram columns, as exponents of two, in nanoseconds; the last column has
/// none.
const ENDS: [u32; 10] = [15, 17, 19, 20, 21, 22, 23, 24, 25, 30];

const fn part(key: &'static str, heading: &'static str) -> Heading {
    mean_of(
        "waits",
        key,
        heading,
        Share,
        "Share of the waits that are shorter than the heading says (≥: not shorter) and not \
         shorter than the column before.",
    )
}

/// An event, and the time that sessions spent in it.
struct Event<'a> {
    class: &'a str,
    /// `class:event` if it comes from samples, because an event may be in two classes.
    name: String,
    time_ns: Known,
    waits: Known,
    wait_ns: Known,
    timed: Option<Timed>,
}

fn events(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let all = all(interval);
    let db_time_ns = match interval.moved(PROBE, "", "db_time_ns") {
        // A server that keeps no account of DB time is sampled.
        Err(Missing::Off | Missing::NotInVersion | Missing::NotPermitted) => {
            Ok(sampled_ns(interval))
        }
        known => known,
    };
    let row = |event: &Event<'_>| {
        vec![
            Value::from(event.name.as_str()),
            event.waits.into(),
            event.time_ns.into(),
            event.wait_ns.into(),
            ratio(event.time_ns, db_time_ns).into(),
            event.time_ns.map(|ns| ns / interval.ns()).into(),
            Value::from(event.class),
        ]
    };
    sorted(all.iter().map(row).collect(), 2)
}

fn histograms(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let mut all = all(interval);
    let time_ns = |event: &Event<'_>| event.time_ns.unwrap_or(0.0);
    all.sort_by(|a, b| time_ns(b).total_cmp(&time_ns(a)));
    let waits = all.iter().filter(|event| !matches!(event.name.as_str(), DB_CPU | RUN_QUEUE));
    waits.map(|event| histogram(interval, event)).collect()
}

/// Returns all events in which sessions spent time.
fn all<'a>(interval: &Interval<'a>) -> Vec<Event<'a>> {
    if interval.objects(PROBE).is_empty() {
        return Vec::new();
    }
    let objects = interval.objects(EVENTS).into_iter();
    let of_sessions: Vec<&str> = objects.filter(|object| object.starts_with(SESSION)).collect();
    let is_wait = |object: &&str| !matches!(&object[SESSION.len()..], CPU | RUN_QUEUE);
    let charged: Vec<Event<'_>> = of_sessions
        .iter()
        .filter(|object| !is_wait(object))
        .map(|object| of_series(interval, object))
        .collect();
    let is_charged = charged.iter().any(|event| event.time_ns.is_ok());
    let mut all = if of_sessions.iter().any(is_wait) {
        let waits = of_sessions.iter().filter(|object| is_wait(object));
        waits.map(|object| of_series(interval, object)).collect()
    } else {
        sampled(interval, is_charged)
    };
    all.extend(charged);
    all.retain(|event| !matches!(event.time_ns, Ok(0.0)));
    all
}

fn of_series<'a>(interval: &Interval<'a>, object: &'a str) -> Event<'a> {
    let moved = |column| interval.moved(EVENTS, object, column);
    let name = &object[SESSION.len()..];
    let (class, name) = match name {
        CPU => (CPU, DB_CPU),
        RUN_QUEUE => (CPU, RUN_QUEUE),
        _ => (wait_class(name), name),
    };
    let is_wait = class != CPU;
    let only = |known: Known| if is_wait { known } else { Err(Missing::Nothing) };
    Event {
        class,
        name: name.to_owned(),
        time_ns: moved("time_ns"),
        waits: only(moved("waits")),
        wait_ns: only(ratio(moved("time_ns"), moved("waits"))),
        timed: is_wait.then(|| Timed::Event(object.to_owned())),
    }
}

/// Returns events by samples of sessions, including time on a processor unless the kernel charges
/// it.
fn sampled<'a>(interval: &Interval<'a>, is_charged: bool) -> Vec<Event<'a>> {
    let mut samples: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for sample in interval.samples("session").filter(at_work(interval)) {
        let said = |column| sample.text(column).unwrap_or_default();
        *samples.entry((said("wait_class"), said("event"))).or_default() += 1.0;
    }
    let sample_ns = interval.ns() / looks(interval);
    let event = |((class, name), samples): ((&'a str, &'a str), f64)| {
        let on_cpu = class == ON_CPU;
        let timed = Timed::of_wait(class, name);
        let (waits, wait_ns) = match &timed {
            _ if on_cpu => (Err(Missing::Nothing), Err(Missing::Nothing)),
            Some(timed) => match timed.latencies(interval).first() {
                Some(known) => (Ok(known.count()), known.mean_ns()),
                None => (Err(uncounted(interval)), Err(uncounted(interval))),
            },
            None => of_server(interval, name),
        };
        let time_ns = Ok(samples * sample_ns);
        let name = if on_cpu { DB_CPU.to_owned() } else { format!("{class}:{name}") };
        Event { class: if on_cpu { CPU } else { class }, name, time_ns, waits, wait_ns, timed }
    };
    let kept = samples.into_iter().filter(|((class, _), _)| !is_charged || *class != ON_CPU);
    kept.map(event).collect()
}

/// Returns waits and their mean time if the server as a whole times an event.
fn of_server(interval: &Interval<'_>, event: &str) -> (Known, Known) {
    let object = format!("server/{event}");
    let Some(object) = interval.objects(EVENTS).into_iter().find(|known| *known == object) else {
        return (Err(Missing::NotInVersion), Err(Missing::NotInVersion));
    };
    let moved = |column| interval.moved(EVENTS, object, column);
    (moved("waits"), ratio(moved("time_ns"), moved("waits")))
}

fn uncounted(interval: &Interval<'_>) -> Missing {
    match interval.reason("kernel_io", "ios") {
        Some(Unmeasured::Off(_)) => Missing::Off,
        None if !interval.has("kernel_io") => Missing::Off,
        Some(Unmeasured::NotPermitted(_)) => Missing::NotPermitted,
        Some(Unmeasured::NoEvidence(_)) => Missing::NoEvidence,
        _ => Missing::NotInVersion,
    }
}

fn sampled_ns(interval: &Interval<'_>) -> f64 {
    let samples = interval.samples("session").filter(at_work(interval)).count();
    samples as f64 * interval.ns() / looks(interval)
}

fn histogram(interval: &Interval<'_>, event: &Event<'_>) -> Vec<Value> {
    let known = event.timed.as_ref().map(|timed| timed.latencies(interval));
    let known = known.and_then(|all| all.into_iter().next());
    let mut row = vec![Value::from(event.name.as_str()), event.waits.into()];
    let shares = match &known {
        Some(known) if known.count() > 0.0 => shares(known).map(Ok),
        Some(_) => [Err(Missing::Nothing); ENDS.len() + 1],
        None if event.timed.is_some() => [Err(uncounted(interval)); ENDS.len() + 1],
        None => [Err(Missing::NotInVersion); ENDS.len() + 1],
    };
    row.extend(shares.map(Value::from));
    row
}

/// Returns the share of waits in each column.
fn shares(latencies: &Latencies) -> [f64; ENDS.len() + 1] {
    let mut shares = [0.0; ENDS.len() + 1];
    for bucket in &latencies.buckets {
        let column = ENDS.iter().position(|end| bucket.from_ns < 1 << end);
        shares[column.unwrap_or(ENDS.len())] += bucket.count / latencies.count();
    }
    shares
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind, Schema};
    use blockstone_base::database::{EVENT, INSTANCE, SESSION, SESSIONS};
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_record::testing::probe;

    use super::super::samples::fixture::{active, counted};
    use super::*;
    use crate::History;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Ten samples in one second: a session reads in four, waits for a latch in two, and works in
    /// four; meanwhile the kernel counted 6 reads of 20 µs and 2 of 3 ms, and 0.3 s of processor
    /// time.
    fn history(with_kernel: bool) -> History {
        let of = |schema: &Schema| ProbeInfo::of(schema);
        let states = (Kind::State, "layer role file_type operation");
        let buckets = "ios elapsed_ns ios_from_0ns ios_from_16384ns ios_from_2097152ns \
                       ios_from_4194304ns";
        let kernel = probe("kernel_io", &[states, (Kind::Counter, buckets)]);
        let infos = [&INSTANCE, &EVENT, &SESSION, &SESSIONS].map(of);
        let mut history = History::new(infos.into_iter().chain([kernel]).collect());
        let instance = |ns: u64| {
            let cell =
                |name: &str| if name == "db_time_ns" { Cell::from(ns) } else { Cell::Value(0) };
            INSTANCE.columns.iter().map(|column| cell(column.name)).collect::<Vec<_>>()
        };
        for (t_ns, done) in [(0, 0), (SECOND_NS, 1)] {
            history.push("instance", t_ns, "", instance(done * SECOND_NS));
            let cpu = vec![Cell::Value(0), Cell::from(done * SECOND_NS * 3 / 10)];
            history.push("event", t_ns, "session/CPU", cpu);
            if with_kernel {
                let texts = ["system call", "postgres/session", "data", "read"];
                let mut cells: Vec<Cell> = texts.map(|text| Cell::Text(text.to_owned())).into();
                let counts = [8, 6 * 20_000 + 2 * 3_000_000, 0, 6, 2, 0];
                cells.extend(counts.map(|count: u64| Cell::from(count * done)));
                history.push("kernel_io", t_ns, "reads", cells);
            }
        }
        for sample in 1..=10_u64 {
            let event = match sample {
                1..=4 => ["IO", "DataFileRead"],
                5 | 6 => ["LWLock", "WALWrite"],
                _ => ["On CPU", ""],
            };
            let t_ns = sample * SECOND_NS / 10;
            active(&mut history, t_ns, "7", event);
            counted(&mut history, t_ns, 1);
        }
        history
    }

    fn row(view: &'static View, history: &History, event: &str) -> Vec<Value> {
        let table = view.table(&history.interval(0, SECOND_NS)).unwrap();
        let found = table.rows.iter().find(|row| row[0] == Value::from(event));
        found.unwrap_or_else(|| panic!("{event}: {:?}", table.rows)).cells.clone()
    }

    #[test]
    fn samples_give_the_time_the_kernel_the_waits_and_cpu_is_a_row() {
        let history = history(true);
        let number = Value::Number;
        let read = row(&VIEW, &history, "IO:DataFileRead");
        assert_eq!(read[1..5], [8.0, 4e8, 765_000.0, 0.4].map(number));
        let cpu = row(&VIEW, &history, DB_CPU);
        assert_eq!(cpu[2], number(3e8), "as the kernel charges it, not as it was sampled");
        assert_eq!((&cpu[1], &cpu[5]), (&Value::Missing(Missing::Nothing), &number(0.3)));
        let latch = row(&VIEW, &history, "LWLock:WALWrite");
        assert_eq!(latch[1], Value::Missing(Missing::NotInVersion), "nobody counts these");
        let spread = row(&HISTOGRAMS, &history, "IO:DataFileRead");
        let expected = [8.0, 0.75, 0.0, 0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(spread[1..], expected.map(number));
        let latch = row(&HISTOGRAMS, &history, "LWLock:WALWrite");
        assert!(latch[2..].iter().all(|cell| *cell == Value::Missing(Missing::NotInVersion)));
    }

    #[test]
    fn timed_events_have_the_class_of_a_run() {
        let mut history = history(false);
        for (t_ns, time_ns) in [(0, 0_u64), (SECOND_NS, 1_000_000)] {
            for event in ["session/db file sequential read", "session/log file sync"] {
                history.push(
                    "event",
                    t_ns,
                    event,
                    vec![Cell::from(time_ns / 1000), Cell::from(time_ns)],
                );
            }
        }
        let class = |event| row(&VIEW, &history, event)[6].clone();
        assert_eq!(class("db file sequential read"), Value::from("User I/O"));
        assert_eq!(class("log file sync"), Value::from("Commit"));
        assert_eq!(class(DB_CPU), Value::from("CPU"));
    }

    #[test]
    fn a_kernel_that_may_not_be_asked_is_said_to_be_forbidden() {
        let mut history = history(false);
        let why = Unmeasured::NotPermitted("CAP_BPF".to_owned());
        history.unmeasured("kernel_io", "ios", &why);
        let read = row(&VIEW, &history, "IO:DataFileRead");
        assert_eq!(read[1], Value::Missing(Missing::NotPermitted));
        let spread = row(&HISTOGRAMS, &history, "IO:DataFileRead");
        assert_eq!(spread[3], Value::Missing(Missing::NotPermitted));
    }
}
