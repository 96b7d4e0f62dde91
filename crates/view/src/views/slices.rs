//! Active sessions in short slices of time; each slice has its time and a bar of the sessions'
//! activity.

use std::collections::BTreeMap;

use blockstone_figures::{Interval, Sample};

use super::active_sessions::at_work;
use crate::table::{Count, Shape, Text, Value, View, mean_of, text, total, unmerged};

pub const VIEW: View = View {
    name: "ash",
    title: "Active session history",
    doc: "Average active sessions in slices of 5 s, or longer so that at most 360 cover the \
          time, from samples of the sessions. The letters of the bar show what they did; less than \
          half a letter is left out.",
    probe: "session",
    shape: Shape::Table,
    columns: &[
        text("time", "time", "When the slice began, by the clock of the host."),
        mean_of(
            "looks",
            "average_active_sessions",
            "AAS",
            Count,
            "Average number of active sessions in the slice.",
        ),
        unmerged("bar", "by wait", Text, "A letter for each `sessions_per_letter` of a class."),
        unmerged("sessions_per_letter", "a letter", Count, "Sessions for which a letter stands."),
        unmerged("top_wait", "mostly", Text, "The most frequent wait class and event."),
        total("looks", "samples", Count, "How often the sessions were sampled in the slice."),
        unmerged("slice_seconds", "slice s", Count, "Length of a slice in seconds."),
    ],
    rows,
};

/// Explains the letters to the reader.
pub const LEGEND: &str = "C on CPU, I I/O, M commit, W latch, L lock, P IPC, N client, T timeout, \
                          G configuration, O other";

const SECOND_NS: u64 = 1_000_000_000;
/// Lengths of slices. The first that gives at most [`SLICES`] slices is taken, else the longest.
const LENGTHS_S: [u64; 8] = [5, 10, 30, 60, 300, 900, 3_600, 86_400];
const SLICES: u64 = 360;
/// Maximum number of letters in a bar.
const WIDTH: f64 = 30.0;
/// Letters in the order of a bar.
const LETTERS: [char; 10] = ['C', 'I', 'M', 'W', 'L', 'P', 'N', 'T', 'G', 'O'];

/// Samples in a slice.
#[derive(Default)]
struct Slice<'a> {
    looks: f64,
    samples: f64,
    /// Samples by position in [`LETTERS`].
    letters: [f64; LETTERS.len()],
    waits: BTreeMap<(&'a str, &'a str), u64>,
}

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let history = interval.history();
    let grid = Grid::new(interval);
    let slices = grid.slices(interval);
    // Bars of several instances share one scale.
    let whole = history.interval(interval.from_ns, interval.to_ns);
    let others = whole.instances().into_iter().map(|it| grid.slices(&interval.of_instance(it)));
    let most_of =
        |slices: &BTreeMap<i128, Slice<'_>>| slices.values().map(Slice::active).fold(0.0, f64::max);
    let most = others.map(|slices| most_of(&slices)).fold(most_of(&slices), f64::max);
    let letter = sessions_per_letter(most);
    let row = |(number, slice): (&i128, &Slice<'_>)| {
        let begin_ns = grid.begin_ns(*number).max(interval.from_ns);
        let since = || format!("{} s", (begin_ns - interval.from_ns) / SECOND_NS);
        let top = super::active_sessions::most(&slice.waits).copied().unwrap_or_default();
        vec![
            Value::Text(history.time(begin_ns).unwrap_or_else(since)),
            Value::Number(slice.active()),
            Value::Text(slice.bar(letter)),
            Value::Number(letter),
            Value::Text(format!("{} {}", top.0, top.1).trim_end().to_owned()),
            Value::Number(slice.looks),
            Value::Number((grid.length_ns / SECOND_NS) as f64),
        ]
    };
    slices.iter().map(row).collect()
}

/// Slice boundaries: at whole multiples of the length by the wall clock, if it is known.
struct Grid {
    length_ns: u64,
    ahead_ns: i128,
}

impl Grid {
    fn new(interval: &Interval<'_>) -> Self {
        let from_ns = i128::from(interval.from_ns);
        let realtime_ns = interval.history().realtime_ns(interval.from_ns);
        let length_ns = length_ns(interval.to_ns.saturating_sub(interval.from_ns));
        Self { length_ns, ahead_ns: realtime_ns.map_or(-from_ns, |ns| ns - from_ns) }
    }

    fn slice_of(&self, t_ns: u64) -> i128 {
        (i128::from(t_ns) + self.ahead_ns).div_euclid(i128::from(self.length_ns))
    }

    fn begin_ns(&self, number: i128) -> u64 {
        u64::try_from(number * i128::from(self.length_ns) - self.ahead_ns).unwrap_or(0)
    }

    fn slices<'a>(&self, interval: &Interval<'a>) -> BTreeMap<i128, Slice<'a>> {
        let mut slices: BTreeMap<i128, Slice<'_>> = BTreeMap::new();
        for look in interval.samples("sessions") {
            slices.entry(self.slice_of(look.t_ns)).or_default().looks += 1.0;
        }
        for sample in interval.samples(VIEW.probe).filter(at_work(interval)) {
            slices.entry(self.slice_of(sample.t_ns)).or_default().add(&sample);
        }
        slices
    }
}

impl<'a> Slice<'a> {
    fn add(&mut self, sample: &Sample<'a>) {
        let said = |column| sample.text(column).unwrap_or_default();
        let wait = (said("wait_class"), said("event"));
        self.samples += 1.0;
        self.letters[place(wait.0)] += 1.0;
        *self.waits.entry(wait).or_default() += 1;
    }

    /// Returns the average active sessions.
    fn active(&self) -> f64 {
        self.samples / self.looks.max(1.0)
    }

    fn bar(&self, letter: f64) -> String {
        let count = |samples: &f64| (samples / self.looks.max(1.0) / letter).round() as usize;
        let parts = LETTERS.iter().zip(&self.letters);
        parts.map(|(name, samples)| name.to_string().repeat(count(samples))).collect()
    }
}

/// Returns the position of the letter of a wait class.
fn place(class: &str) -> usize {
    let letter = match class {
        "On CPU" | "CPU" => 'C',
        "IO" | "User I/O" | "System I/O" => 'I',
        "Commit" => 'M',
        "LWLock" | "BufferPin" | "Concurrency" => 'W',
        "Lock" | "Application" => 'L',
        "IPC" | "Cluster" => 'P',
        "Client" | "Network" => 'N',
        "Timeout" | "Administrative" => 'T',
        "Configuration" => 'G',
        _ => 'O',
    };
    LETTERS.iter().position(|known| *known == letter).unwrap_or(LETTERS.len() - 1)
}

fn length_ns(whole_ns: u64) -> u64 {
    let fits = |seconds: &&u64| whole_ns / (*seconds * SECOND_NS) < SLICES;
    let length = LENGTHS_S.iter().find(fits).unwrap_or(&LENGTHS_S[LENGTHS_S.len() - 1]);
    length * SECOND_NS
}

/// Returns the smallest of 1, 2 and 5 times a power of ten at which the longest bar fits.
fn sessions_per_letter(most: f64) -> f64 {
    let steps = (-2..7).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power)));
    let mut steps = steps.filter(|step| most / step <= WIDTH);
    steps.next().unwrap_or(most.max(1.0))
}

#[cfg(test)]
mod tests {
    use blockstone_base::database::{SESSION, SESSIONS};
    use blockstone_figures::History;
    use blockstone_record::manifest::ProbeInfo;

    use super::super::samples::fixture::{active, counted};
    use super::*;

    /// One look per second for `seconds`; in the first five, two sessions read and one works, then
    /// one waits for a lock.
    fn history(seconds: u64) -> History {
        let mut history = History::new([&SESSION, &SESSIONS].map(ProbeInfo::of).to_vec());
        // A whole multiple of five seconds.
        history.set_clock(0, 1_795_489_200_000_000_000);
        for second in 0..seconds {
            let t_ns = second * SECOND_NS + SECOND_NS / 2;
            let read = ["IO", "DataFileRead"];
            let all = [("1", read), ("2", read), ("3", ["On CPU", ""])];
            let late = [("1", ["Lock", "transactionid"])];
            let waits: &[_] = if second < 5 { &all } else { &late };
            for (session, event) in waits {
                active(&mut history, t_ns, session, *event);
            }
            counted(&mut history, t_ns, 1);
        }
        history
    }

    #[test]
    fn each_slice_has_its_time_and_a_bar_of_what_sessions_did() {
        let history = history(10);
        let rows = rows(&history.interval(0, 10 * SECOND_NS));
        let texts = |column: usize| rows.iter().map(|row| row[column].clone()).collect::<Vec<_>>();
        let time = |second| Value::Text(format!("2026-11-24T03:00:{second:02}+00:00"));
        assert_eq!(texts(0), [time(0), time(5)]);
        assert_eq!(texts(1), [Value::Number(3.0), Value::Number(1.0)]);
        assert_eq!(texts(3), [Value::Number(0.1), Value::Number(0.1)]);
        let bar = |letters: &[(&str, usize)]| {
            Value::Text(letters.iter().map(|(letter, count)| letter.repeat(*count)).collect())
        };
        assert_eq!(texts(2), [bar(&[("C", 10), ("I", 20)]), bar(&[("L", 10)])]);
        assert_eq!(texts(4)[0], Value::from("IO DataFileRead"));
    }

    #[test]
    fn slices_are_longer_where_there_would_be_too_many() {
        assert_eq!(length_ns(60 * SECOND_NS), 5 * SECOND_NS);
        assert_eq!(length_ns(3_600 * SECOND_NS), 30 * SECOND_NS);
        assert_eq!(length_ns(u64::MAX), 86_400 * SECOND_NS);
        let letters = [30.0, 31.0, 0.0].map(sessions_per_letter).map(Value::Number);
        assert_eq!(letters, [1.0, 2.0, 0.01].map(Value::Number));
    }
}
