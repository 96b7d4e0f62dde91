//! The progress bar of everything that takes longer than two seconds: how much is done, what is
//! going on, the time left. It also tells when a signal asks for the end.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use blockstone_base::units::{Nanos, three_digits};
use blockstone_measure::{Live, Observer, Rate};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Work that ends sooner shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// Draws on standard error when that is a terminal.
pub struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    printer: Printer,
    began: Instant,
    elapsed: Nanos,
}

impl Progress {
    /// Signals ask for the end from here on.
    pub fn start(printer: Printer) -> Result<Self> {
        Ok(Self::new(printer, Interrupt::install().context("install signal handlers")?))
    }

    pub fn new(printer: Printer, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:24.cyan/black.bright} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━━─"));
        Self { bar, interrupt, printer, began: Instant::now(), elapsed: Nanos(0) }
    }

    /// Work of which the share `done` is done; false when a signal asks for the end.
    pub fn step(&mut self, done: f64, text: &str) -> bool {
        let passed = self.began.elapsed();
        let left = passed.mul_f64(((1.0 - done) / done.max(1e-6)).clamp(0.0, 1e4));
        self.bar.set_length(1_000);
        self.bar.set_position((done * 1_000.0) as u64);
        self.show(&format!("about {:>2} s left  {text}", left.as_secs()));
        self.interrupt.signal().is_none()
    }

    /// A part of work whose whole is not known, with the share of it that is done; false when a
    /// signal asks for the end.
    pub fn part(&mut self, done: Option<f64>, text: &str) -> bool {
        self.bar.set_length(1_000);
        self.bar.set_position((done.unwrap_or(0.0).min(1.0) * 1_000.0) as u64);
        self.show(text);
        self.interrupt.signal().is_none()
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// The signal that asks for the end.
    pub fn signal(&self) -> Option<&'static str> {
        self.interrupt.signal()
    }

    /// How work ends of which nothing but a signal can be said.
    pub fn exit(&self) -> Exit {
        if self.interrupt.signal().is_some() { Exit::Interrupted } else { Exit::Done }
    }

    /// Shows how much of a measurement is over, whose time is known.
    fn measured(&self, text: &str, left: Nanos, bound: &str) {
        self.bar.set_length((self.elapsed.get() + left.get()).max(1));
        self.bar.set_position(self.elapsed.get());
        let left = Duration::from_nanos(left.get()).as_secs();
        self.show(&format!("{bound} {left:>2} s left  {text}"));
    }

    fn show(&self, text: &str) {
        let due = self.printer.draws_progress() && self.began.elapsed() > PATIENCE;
        if due && self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.bar.set_message(text.to_owned());
    }
}

impl Observer for Progress {
    fn phase(&mut self, label: &str) {
        let left = Nanos(self.bar.length().unwrap_or(1).saturating_sub(self.elapsed.get()));
        self.measured(label, left, "≤");
    }

    fn tick(&mut self, live: &Live<'_>) {
        self.elapsed = live.elapsed;
        let rate = |rate: &Rate| format!("{} {}", three_digits(rate.value), rate.unit);
        let rates: Vec<String> = live.rates.iter().map(rate).collect();
        let text = format!("{:<34} {}", live.label, rates.join("  "));
        self.measured(&text, live.left, if live.is_estimate { "about" } else { "≤" });
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| self.printer.note(text));
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.interrupt.signal()
    }
}
