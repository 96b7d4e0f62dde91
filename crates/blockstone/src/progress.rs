//! Progress of anything that takes longer than two seconds: the share that is done, the current
//! activity, and the time left. It also reports whether a signal has asked the program to stop.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use blockstone_base::Bytes;
use blockstone_base::units::{Nanos, format_span, three_digits};
use blockstone_measure::{Live, Observer, Rate};
use blockstone_report::render::terminal::visible;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::printer::{Printer, Shown, complain};

/// Work that ends sooner does not show a bar.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between lines when standard error is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Interval between JSON objects.
const OBJECT_EVERY: Duration = Duration::from_secs(1);
/// Share of the work that must be done before the time left is estimated.
const FORETOLD_FROM: f64 = 0.02;
const BAR_LENGTH: u64 = 1_000;

/// Shows progress on standard error.
pub struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    printer: Printer,
    shown: Shown,
    began: Instant,
    /// Time at which the last line was written.
    written: Instant,
    /// Elapsed time of the measurement at its last tick.
    elapsed: Nanos,
    left: Nanos,
}

/// Progress at one moment; also serialized as the object that `--progress json` writes.
#[derive(Clone, Copy, Serialize)]
struct Moment<'a> {
    /// Share of the work that is done, from 0 to 1; `None` if the total is unknown.
    done: Option<f64>,
    left_ns: Option<u64>,
    /// Whether `left_ns` is estimated from the pace so far; otherwise it is an upper bound.
    left_is_estimate: bool,
    what: &'a str,
    rates: &'a [Rate],
}

impl Progress {
    /// Installs the signal handlers and starts to show progress.
    pub fn start(printer: Printer) -> Result<Self> {
        Ok(Self::new(printer, Interrupt::install().context("install signal handlers")?))
    }

    pub fn new(printer: Printer, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::with_draw_target(Some(BAR_LENGTH), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:24.cyan/black.bright} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━━─"));
        let (shown, now) = (printer.progress(), Instant::now());
        let (elapsed, left) = (Nanos(0), Nanos(0));
        Self { bar, interrupt, printer, shown, began: now, written: now, elapsed, left }
    }

    /// Shows that the share `done` of the work is done. Returns false if a signal asks for the end.
    pub fn step(&mut self, done: f64, text: &str) -> bool {
        let passed = self.began.elapsed().as_nanos() as f64;
        let left = (done >= FORETOLD_FROM).then(|| (passed * (1.0 - done) / done) as u64);
        self.show(&Moment {
            done: Some(done.clamp(0.0, 1.0)),
            left_ns: left,
            left_is_estimate: true,
            what: text,
            rates: &[],
        });
        self.interrupt.signal().is_none()
    }

    /// Shows a part of work of unknown size, with the share of that part that is done. Returns
    /// false if a signal asks for the end.
    pub fn part(&mut self, done: Option<f64>, text: &str) -> bool {
        self.show(&Moment {
            done: done.map(|done| done.clamp(0.0, 1.0)),
            left_ns: None,
            left_is_estimate: true,
            what: text,
            rates: &[],
        });
        self.interrupt.signal().is_none()
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Returns the signal that asks for the end, if any.
    pub fn signal(&self) -> Option<&'static str> {
        self.interrupt.signal()
    }

    /// Returns the exit code of work that can only succeed or be interrupted.
    pub fn exit(&self) -> Exit {
        if self.interrupt.signal().is_some() { Exit::Interrupted } else { Exit::Done }
    }

    /// Shows the elapsed share of a measurement of known duration.
    fn measured(&mut self, label: &str, rates: &[Rate], left_is_estimate: bool) {
        let (elapsed, left) = (self.elapsed.get(), self.left.get());
        // Before the first tick, neither of them is known.
        let whole = Some(elapsed + left).filter(|whole| *whole > 0);
        let what = words(label);
        self.show(&Moment {
            done: whole.map(|whole| elapsed as f64 / whole as f64),
            left_ns: whole.map(|_| left),
            left_is_estimate,
            what: &what,
            rates,
        });
    }

    fn show(&mut self, moment: &Moment<'_>) {
        // The text may name a file.
        let what = visible(moment.what, false);
        let moment = Moment { what: &what, ..*moment };
        let due = |after: Duration| self.written.elapsed() >= after;
        match self.shown {
            Shown::Bar => {
                let share = moment.done.unwrap_or(0.0) * BAR_LENGTH as f64;
                self.bar.set_position(share as u64);
                if self.bar.is_hidden() && self.began.elapsed() > PATIENCE {
                    self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
                }
                self.bar.set_message(moment.text());
            }
            Shown::Lines if due(LINE_EVERY) => {
                self.written = Instant::now();
                let done = moment.done.map(|done| format!("{:.0} % · ", done * 100.0));
                complain(&format!("{}{}", done.unwrap_or_default(), moment.text()));
            }
            Shown::Json if due(OBJECT_EVERY) => {
                self.written = Instant::now();
                // Not shortened, however long: a program reads it.
                let object = serde_json::to_string(&moment).unwrap_or_default();
                let _ = writeln!(io::stderr(), "{object}");
            }
            Shown::Lines | Shown::Json | Shown::Nothing => {}
        }
    }
}

impl Moment<'_> {
    /// Formats a line such as `≤ 1 min 5 s left · random read · 8 in flight · 35,683 IOPS`.
    fn text(&self) -> String {
        let second = Duration::from_secs(1).as_nanos() as u64;
        let left = self.left_ns.map(|left| {
            let about = if self.left_is_estimate { "about" } else { "≤" };
            let whole = left.div_ceil(second) * second;
            let whole = if whole == 0 { "0 s".to_owned() } else { format_span(whole) };
            format!("{about} {whole} left")
        });
        let rates = self.rates.iter();
        let rates = rates.map(|rate| format!("{} {}", three_digits(rate.value), rate.unit));
        let parts = left.into_iter().chain([self.what.to_owned()]).chain(rates);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }
}

/// Spells out a label of a recording: `random-read/psync/x8` becomes
/// `random read · psync · 8 in flight`.
fn words(label: &str) -> String {
    let parts = label.split('/').filter(|part| !part.is_empty());
    parts.map(word).collect::<Vec<_>>().join(" · ")
}

fn word(part: &str) -> String {
    let of = |prefix: char| part.strip_prefix(prefix).and_then(|rest| rest.parse::<u64>().ok());
    let size = || part.ends_with(['K', 'M', 'G', 'T']).then(|| part.parse::<Bytes>().ok())?;
    if let Some(count) = of('x').or_else(|| of('q')) {
        format!("{count} in flight")
    } else if let Some(rate) = of('r') {
        format!("{rate} a second")
    } else if let Some(size) = size() {
        size.to_string()
    } else {
        part.replace('-', " ")
    }
}

impl Observer for Progress {
    fn phase(&mut self, label: &str) {
        self.measured(label, &[], false);
    }

    fn tick(&mut self, live: &Live<'_>) {
        (self.elapsed, self.left) = (live.elapsed, live.left);
        self.measured(live.label, live.rates, live.is_estimate);
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| self.printer.note(text));
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.interrupt.signal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_recordings_are_put_into_words() {
        for (label, expected) in [
            ("random-read/psync/x8", "random read · psync · 8 in flight"),
            ("commit/fdatasync/append/8K/x1", "commit · fdatasync · append · 8 KiB · 1 in flight"),
            ("cache-map/16M", "cache map · 16 MiB"),
            ("open-loop/read/r500", "open loop · read · 500 a second"),
            ("warm up run", "warm up run"),
            ("", ""),
        ] {
            assert_eq!(words(label), expected);
        }
    }

    #[test]
    fn an_end_is_foretold_in_units_that_suit_it_and_not_from_nothing() {
        let rates = [Rate { value: 35_683.0, unit: "IOPS" }];
        let mut moment = Moment {
            done: Some(0.5),
            left_ns: Some(64_100_000_000),
            left_is_estimate: false,
            what: "random read",
            rates: &rates,
        };
        assert_eq!(moment.text(), "≤ 1 min 5 s left · random read · 35,683 IOPS");
        (moment.left_ns, moment.rates) = (None, &[]);
        assert_eq!(moment.text(), "random read");
        (moment.left_ns, moment.left_is_estimate) = (Some(0), true);
        assert_eq!(moment.text(), "about 0 s left · random read");
    }
}
