//! Axes: the values they span, the places of their labels, and how the labels are written.

use blockstone_base::table::{Measure, Value};

use crate::chart::{Axis, Scale};
use crate::format;

/// An axis with its span.
#[derive(Clone, Debug)]
pub struct Ruler {
    log: bool,
    /// Ends of the span, in values.
    pub low: f64,
    pub high: f64,
    /// Labels and their places.
    pub ticks: Vec<Tick>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub at: f64,
    pub label: String,
}

impl Ruler {
    /// Creates a horizontal axis over these values with at most about `labels` labels.
    pub fn across(axis: &Axis, low: f64, high: f64, labels: usize) -> Self {
        Self::since(None, axis, (low, high), labels)
    }

    /// Like [`Self::across`], but a time axis shows the time of day if it is known when the
    /// recording began (`began_ns`, local time since 1970).
    pub fn since(
        began_ns: Option<f64>,
        axis: &Axis,
        (low, high): (f64, f64),
        labels: usize,
    ) -> Self {
        let (low, high) = match axis.scale {
            Scale::Names(ref names) => (-0.5, names.len().max(1) as f64 - 0.5),
            Scale::Time if low.is_finite() && low >= high => (low, low + 1e9),
            Scale::Time if !low.is_finite() => (0.0, 1e9),
            Scale::Linear if low > 0.0 && low < high / 2.0 => (0.0, high),
            _ => widened(low, high, axis.scale == Scale::Log),
        };
        let ticks = ticks(began_ns, axis, (low, high), labels);
        Self { log: axis.scale == Scale::Log, low, high, ticks }
    }

    /// Returns the same axis with its labels at the places that were measured, if these are at most
    /// `labels` round numbers.
    #[must_use]
    pub fn at_points(self, axis: &Axis, places: &[f64], labels: usize) -> Self {
        let is_round = |at: &f64| {
            let whole = at.fract() == 0.0 && *at >= 0.0 && *at < 1e15;
            whole && ((*at as u64).count_ones() <= 1 || is_short(*at as u64))
        };
        let is_number = matches!(axis.scale, Scale::Linear | Scale::Log);
        if !is_number || places.is_empty() || places.len() > labels || !places.iter().all(is_round)
        {
            return self;
        }
        let label = |&at: &f64| Tick { at, label: format::value(&Value::Number(at), axis.measure) };
        Self { ticks: places.iter().filter(|at| self.holds(**at)).map(label).collect(), ..self }
    }

    /// Creates a vertical axis: from zero if it is linear, with its end at a label.
    pub fn up(axis: &Axis, low: f64, high: f64, labels: usize) -> Self {
        let linear = axis.scale == Scale::Linear;
        if !linear {
            let mut ruler = Self::across(axis, low, high, labels);
            if matches!(axis.scale, Scale::Names(_)) {
                // Names are read from the top.
                (ruler.low, ruler.high) = (ruler.high, ruler.low);
            }
            return ruler;
        }
        let (low, high) = widened(low.min(0.0), high.max(0.0), false);
        let step = step(axis.measure, high - low, labels);
        let high = match axis.measure {
            Measure::Share if high <= 1.0 && high > 0.8 => 1.0,
            _ => (high / step - 1e-9).ceil() * step,
        };
        let low = (low / step + 1e-9).floor() * step;
        let label = |at: f64| format::value(&Value::Number(at), axis.measure);
        let ticks = multiples(step, low, high).into_iter();
        let ticks = ticks.map(|at| Tick { at, label: label(at) }).collect();
        Self { log: false, low, high, ticks }
    }

    /// Returns the place of a value, from 0 at the low end to 1 at the high end.
    pub fn place(&self, value: f64) -> f64 {
        let place =
            |value: f64| if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        (place(value) - place(self.low)) / (place(self.high) - place(self.low))
    }

    /// Returns whether a value has a place on the axis.
    pub fn holds(&self, value: f64) -> bool {
        value.is_finite() && !(self.log && value <= 0.0)
    }
}

/// Returns whether a number has at most two significant digits.
fn is_short(mut number: u64) -> bool {
    while number > 0 && number.is_multiple_of(10) {
        number /= 10;
    }
    number < 100
}

/// Returns a span that has some width, whatever the values are.
fn widened(low: f64, high: f64, log: bool) -> (f64, f64) {
    let usable = low.is_finite() && high.is_finite() && (low > 0.0 || !log);
    match (usable, log) {
        (false, true) => (1.0, 10.0),
        (false, false) => (0.0, 1.0),
        (true, true) if high <= low => (low / 2.0, low * 2.0),
        (true, false) if high <= low && low.abs() < f64::MIN_POSITIVE => (0.0, 1.0),
        (true, false) if high <= low => (low - low.abs() / 2.0, low + low.abs() / 2.0),
        _ => (low, high),
    }
}

fn ticks(began_ns: Option<f64>, axis: &Axis, (low, high): (f64, f64), labels: usize) -> Vec<Tick> {
    // Round times of day, not round times since the recording began.
    let began = began_ns.filter(|_| high >= DATED).unwrap_or(0.0);
    let at = match &axis.scale {
        Scale::Names(names) => {
            let every = names.len().div_ceil(labels.max(1)).max(1);
            let tick =
                |(index, name): (usize, &String)| Tick { at: index as f64, label: name.clone() };
            return names.iter().enumerate().step_by(every).map(tick).collect();
        }
        Scale::Log => decades(axis.measure, low, high, labels),
        Scale::Time => {
            let step = time_step(high - low, labels);
            let ahead = began.rem_euclid(step);
            let at = multiples(step, low + ahead, high + ahead);
            at.into_iter().map(|at| at - ahead).collect()
        }
        Scale::Linear => multiples(step(axis.measure, high - low, labels), low, high),
    };
    let label = |at: f64| match axis.scale {
        Scale::Time => clock(at, high, began_ns),
        _ => format::value(&Value::Number(at), axis.measure),
    };
    at.into_iter().map(|at| Tick { at, label: label(at) }).collect()
}

fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let (first, last) = ((low / step - 1e-6).ceil() as i64, (high / step + 1e-6).floor() as i64);
    (first..=last).take(200).map(|n| n as f64 * step).collect()
}

/// Returns a round distance between labels.
fn step(measure: Measure, span: f64, labels: usize) -> f64 {
    let least = span / labels.max(1) as f64;
    if measure == Measure::Bytes {
        return 2_f64.powf(least.max(1.0).log2().ceil());
    }
    let decade = 10_f64.powf(least.log10().floor());
    // A quarter is round only among shares.
    let factors = [1.0, 2.0, if measure == Measure::Share { 2.5 } else { 5.0 }, 5.0];
    let factor = factors.into_iter().find(|factor| decade * factor >= least * 0.999);
    decade * factor.unwrap_or(10.0)
}

fn time_step(span: f64, labels: usize) -> f64 {
    const S: f64 = 1e9;
    const ROUND: [f64; 17] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        10_800.0, 21_600.0, 43_200.0,
    ];
    let least = span / labels.max(1) as f64;
    if least < S {
        return step(Measure::Count, span, labels);
    }
    let round = ROUND.into_iter().map(|s| s * S).find(|step| *step >= least);
    round.unwrap_or_else(|| (least / (86_400.0 * S)).ceil() * 86_400.0 * S)
}

fn decades(measure: Measure, low: f64, high: f64, labels: usize) -> Vec<f64> {
    let binary = measure == Measure::Bytes;
    let base: f64 = if binary { 2.0 } else { 10.0 };
    let exponent = |value: f64| value.ln() / base.ln();
    let (first, last) =
        ((exponent(low) - 1e-9).ceil() as i32, (exponent(high) + 1e-9).floor() as i32);
    let count = (last - first + 1).max(0) as usize;
    if !binary && count * 3 <= labels + 3 {
        let fine = (first - 1..=last).flat_map(|n| [1.0, 2.0, 5.0].map(|f| f * base.powi(n)));
        return fine.filter(|v| *v >= low * 0.999 && *v <= high * 1.001).collect();
    }
    let every = count.div_ceil(labels.max(1)).max(1);
    (first..=last).step_by(every).map(|n| base.powi(n)).collect()
}

/// Spans of at least this many nanoseconds are labelled with the time of day, if it is known.
const DATED: f64 = 10e9;

/// Formats an instant since the recording began, with the precision that suits `span_ns`; as the
/// time of day if the beginning is known and the span is not just a few seconds.
pub fn clock(at_ns: f64, span_ns: f64, began_ns: Option<f64>) -> String {
    if let Some(began_ns) = began_ns.filter(|_| span_ns >= DATED) {
        return time_of_day(((began_ns + at_ns) / 1e9).round() as i64, span_ns);
    }
    let s = at_ns / 1e9;
    let whole = s.round() as i64;
    if span_ns < 120e9 {
        return format!("{} s", (s * 1e3).round() / 1e3);
    }
    if span_ns < 7200e9 {
        return format!("{}:{:02}", whole / 60, whole % 60);
    }
    let (hours, minutes) = (whole / 3600, whole / 60 % 60);
    if span_ns < 172_800e9 {
        return format!("{hours} h {minutes:02}");
    }
    format!("{} d {:02}:{minutes:02}", hours / 24, hours % 24)
}

/// Formats a time of day: `14:32:10`, or `11-22 14:32` if the recording spans days.
fn time_of_day(unix_s: i64, span_ns: f64) -> String {
    let (day, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    let (hour, minute) = (second / 3600, second / 60 % 60);
    if span_ns < 86_400e9 {
        return format!("{hour:02}:{minute:02}:{:02}", second % 60);
    }
    let (month, day) = month_and_day(day);
    format!("{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// Returns the month and day of a day since 1970, in the Gregorian calendar. Years are counted from
/// March, so that the leap day is the last of its year.
fn month_and_day(day_since_1970: i64) -> (i64, i64) {
    let day_of_era = (day_since_1970 + 719_468).rem_euclid(146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    (if month < 10 { month + 3 } else { month - 9 }, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, low: f64, high: f64) -> Vec<String> {
        Ruler::up(axis, low, high, 5).ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn labels_are_round_and_the_axis_ends_at_one() {
        let axis = Axis::new("reads", Measure::Count);
        assert_eq!(labels(&axis, 700.0, 930.0), ["0", "200", "400", "600", "800", "1,000"]);
        let axis = Axis::new("latency", Measure::Nanoseconds);
        assert_eq!(labels(&axis, 0.0, 4.2e6), ["0 ns", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms"]);
        let axis = Axis::new("latency", Measure::Nanoseconds).log();
        assert_eq!(labels(&axis, 1e3, 1e7), ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
        let axis = Axis::new("commits", Measure::Count);
        assert_eq!(labels(&axis, 0.0, 260.0), ["0", "100", "200", "300"]);
        let axis = Axis::new("ratio", Measure::Ratio);
        assert_eq!(labels(&axis, 0.0, 2.0), ["0×", "0.500×", "1×", "1.5×", "2×"]);
        assert_eq!(labels(&Axis::time(), 0.0, 30e9), ["0 s", "10 s", "20 s", "30 s"]);
    }

    #[test]
    fn any_span_makes_an_axis() {
        let axis = Axis::new("x", Measure::Count);
        for (low, high) in [(0.0, 0.0), (5.0, 5.0), (f64::INFINITY, f64::NEG_INFINITY)] {
            for axis in [axis.clone(), axis.clone().log(), Axis::time()] {
                let ruler = Ruler::across(&axis, low, high, 6);
                assert!(ruler.place(low.clamp(1.0, 5.0)).is_finite(), "{axis:?} {low} {high}");
                assert!(ruler.ticks.len() < 50);
            }
        }
    }

    #[test]
    fn instants_are_as_exact_as_their_recording_is_short() {
        assert_eq!(clock(1.5e9, 9e9, Some(0.0)), "1.5 s");
        assert_eq!(clock(75e9, 300e9, None), "1:15");
        assert_eq!(clock(4500e9, 9000e9, None), "1 h 15");
        assert_eq!(clock(90_000e9, 800_000e9, None), "1 d 01:00");
    }

    #[test]
    fn recordings_show_the_time_of_day() {
        // 2026-11-22 20:32:10 UTC.
        let began = Some(1_795_379_530e9);
        assert_eq!(clock(60e9, 70e9, began), "20:33:10");
        assert_eq!(clock(100_000e9, 800_000e9, began), "11-24 00:18");
        assert_eq!(month_and_day(59), (3, 1));
        assert_eq!(month_and_day(11_016), (2, 29), "of the year 2000");
        let ruler = Ruler::since(began, &Axis::time(), (0.0, 3600e9), 4);
        let labels: Vec<&str> = ruler.ticks.iter().map(|tick| &*tick.label).collect();
        assert_eq!(labels, ["20:45:00", "21:00:00", "21:15:00", "21:30:00"]);
    }
}
