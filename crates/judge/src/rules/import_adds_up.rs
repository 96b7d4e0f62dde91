//! Contradictions in what a database recorded of its load.

use blockstone_base::database::LOAD;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::{Bytes, thousands, three_digits};
use blockstone_base::verdict::Weight;
use blockstone_figures::Sample;

use super::{Observed, WatchRule, percent};

const ABOUT: About = About {
    id: "import-adds-up",
    weight: Weight::Warns,
    doc: "An imported history of a database whose tables contradict each other: the I/O by \
          function and the statistics of the instance, redo and what was written, processor time \
          and DB time, DB time and what it consists of, waits and their time.",
    threshold: "Fails if requests by function differ from the instance's by more than a factor of \
                1.5 while their bytes agree to 10 %; if redo is more than 10 % and 64 MiB above \
                the bytes written, which include it, except in a pluggable database, whose redo \
                its CDB writes; if the processor time of calls is more than 5 % above DB time; \
                if more than 25 % of DB time is in neither processor time nor waits, or the sum \
                of both is more than 25 % above it; or if waits for storage took less than a \
                microsecond each (500,000 or more in a whole second). All of it is summed over \
                the intervals in which both are known, each instance by itself; times are \
                compared from 10 s of DB time on, since some reports print whole seconds. \
                Inconclusive if none of these can be compared.",
    cause: "Counters of I/O by function are known to be wrong on some releases of clusters. \
            Processor time above DB time, or waits that do not add up, come from calls that the \
            database does not charge to sessions, from a paused machine, or from processors that \
            sessions waited for. Waits without a time come from asynchronous reads that were \
            complete when a session looked, or from timed_statistics = false. Redo above what \
            was written is not of the same instance or time.",
    next: "Take requests from the statistics of the instance, which is what every figure here \
           does; take the need of processors from the host's busy time, and no latency from waits \
           that have no time.",
};

pub(super) const WATCH: WatchRule = WatchRule::new(&ABOUT, |observed| {
    Judgement::when(observed.saw(LOAD.probe), || check(observed))
});

const APART_MAX: f64 = 1.5;
const AGREE: f64 = 0.10;
const CPU_ABOVE_MAX: f64 = 0.05;
const UNEXPLAINED_MAX: f64 = 0.25;
const DB_TIME_MIN_NS: f64 = 10e9;
const SECOND_NS: f64 = 1e9;
/// Less redo may be in the log buffer at the edges of an interval.
const REDO_MIN_BYTES: f64 = 64.0 * 1_048_576.0;

/// A comparison: whether it is a contradiction, and what was seen.
type Compared = Option<(bool, String)>;

fn check(observed: &Observed) -> Judgement {
    let interval = &observed.interval;
    let inside = |row: &Sample<'_>| (interval.from_ns..=interval.to_ns).contains(&row.t_ns);
    let rows: Vec<Sample<'_>> = interval.history().rows(LOAD.probe).filter(inside).collect();
    let (mut wrong, mut right, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    for rows in rows.chunk_by(|a, b| a.object == b.object) {
        let object = rows[0].object;
        let objects_of = interval.history().imported().map_or(&[][..], |it| it.objects.as_slice());
        let is_part = objects_of.iter().any(|it| it.is_of(object) && it.container.is_some());
        let instance = Instance { rows };
        let compared = [
            instance.functions("read", "reads"),
            instance.functions("write", "writes"),
            instance.redo().filter(|_| !is_part),
            instance.processors(),
            instance.db_time(),
            instance.timed(),
        ];
        for (is_wrong, seen) in compared.into_iter().flatten() {
            let seen = format!("{object}: {seen}");
            if is_wrong {
                objects.push(object.to_owned());
                wrong.push(seen);
            } else {
                right.push(seen);
            }
        }
    }
    objects.dedup();
    if !wrong.is_empty() {
        return Judgement::fail(wrong.join("; "), objects);
    }
    match &right[..] {
        [] => Judgement::inconclusive("no two of its tables say the same"),
        [first] => Judgement::pass(first),
        [first, more @ ..] => Judgement::pass(format!("{first}; {} more agree", more.len())),
    }
}

fn bytes(bytes: f64) -> Bytes {
    Bytes(bytes as u64)
}

/// Rows of one instance, in order of time.
struct Instance<'a> {
    rows: &'a [Sample<'a>],
}

impl Instance<'_> {
    /// Returns the growth of these counters, over the intervals in which all of them are known.
    fn moved<const N: usize>(&self, columns: [&str; N]) -> Option<[f64; N]> {
        let mut sums = None;
        for pair in self.rows.windows(2) {
            let by = |column: &str| {
                let by = pair[1].number(column)? - pair[0].number(column)?;
                (by >= 0.0).then_some(by)
            };
            let Some(grown) = columns.iter().map(|column| by(column)).collect::<Option<Vec<f64>>>()
            else {
                continue;
            };
            let sums = sums.get_or_insert([0.0; N]);
            sums.iter_mut().zip(grown).for_each(|(sum, by)| *sum += by);
        }
        sums
    }

    fn functions(&self, kind: &str, name: &str) -> Compared {
        let columns = [
            format!("{kind}_ios"),
            format!("{kind}_bytes"),
            format!("function_{kind}_ios"),
            format!("function_{kind}_bytes"),
            "elapsed_ns".to_owned(),
        ];
        let [ios, bytes, by_function, function_bytes, elapsed_ns] =
            self.moved(columns.each_ref().map(String::as_str))?;
        if ios <= 0.0 || bytes <= 0.0 || elapsed_ns <= 0.0 || by_function <= 0.0 {
            return None;
        }
        let apart = by_function / ios;
        let agree = (function_bytes / bytes - 1.0).abs() <= AGREE;
        let per_s = |count: f64| three_digits(count / (elapsed_ns / SECOND_NS));
        if agree && !(1.0 / APART_MAX..=APART_MAX).contains(&apart) {
            let seen = format!(
                "the table of I/O by function has {} {name} a second where the instance counted \
                 {} ({} times), although their bytes agree",
                per_s(by_function),
                per_s(ios),
                three_digits(apart)
            );
            return Some((true, seen));
        }
        // Tables that leave out a function differ in bytes, too.
        agree.then(|| (false, format!("{name} by function agree with the instance's")))
    }

    fn redo(&self) -> Compared {
        let [redo_bytes, write_bytes] = self.moved(["redo_bytes", "write_bytes"])?;
        if redo_bytes < REDO_MIN_BYTES {
            return None;
        }
        let above = redo_bytes - write_bytes;
        let is_above = above > write_bytes * AGREE && above > REDO_MIN_BYTES;
        let seen = if is_above {
            format!("{} of redo, of {} written", bytes(redo_bytes), bytes(write_bytes))
        } else {
            "redo is within what was written".to_owned()
        };
        Some((is_above, seen))
    }

    fn timed(&self) -> Compared {
        let [untimed, _] = self.moved(["untimed_waits", "elapsed_ns"])?;
        let seen = format!(
            "{} waits for storage have no time: they were for reads that were already complete, \
             or were not timed, and no latency follows from them",
            thousands(untimed as i64)
        );
        (untimed > 0.0).then_some((true, seen))
    }

    fn processors(&self) -> Compared {
        let [cpu_ns, db_time_ns] = self.moved(["cpu_ns", "db_time_ns"])?;
        let seen = format!(
            "DB CPU {} s of {} s of DB time",
            three_digits(cpu_ns / SECOND_NS),
            three_digits(db_time_ns / SECOND_NS)
        );
        let is_above = cpu_ns > db_time_ns * (1.0 + CPU_ABOVE_MAX);
        let is_enough = db_time_ns.max(cpu_ns) >= DB_TIME_MIN_NS;
        let seen = if is_above { format!("DB CPU above DB time: {seen}") } else { seen };
        is_enough.then_some((is_above, seen))
    }

    fn db_time(&self) -> Compared {
        let [db_time_ns, cpu_ns, waits_ns] = self.moved(["db_time_ns", "cpu_ns", "waits_ns"])?;
        // Processor time above DB time is reported already.
        if db_time_ns < DB_TIME_MIN_NS || cpu_ns > db_time_ns * (1.0 + CPU_ABOVE_MAX) {
            return None;
        }
        let unexplained = (db_time_ns - cpu_ns - waits_ns) / db_time_ns;
        let seen = if unexplained < 0.0 {
            let above = percent(-unexplained);
            format!("the sum of processor time and waits is {above} above DB time")
        } else {
            format!("{} of DB time is in neither processor time nor waits", percent(unexplained))
        };
        Some((unexplained.abs() > UNEXPLAINED_MAX, seen))
    }
}
