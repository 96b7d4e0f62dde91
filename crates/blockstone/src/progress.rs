//! The progress bar of a long run: the phase, the rate of the moment, the time left.

use std::time::Duration;

use blockstone_base::units::{Nanos, three_digits};
use blockstone_measure::{Live, Observer, Rate};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Draws on standard error when that is a terminal and passes signals on.
pub struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    printer: Printer,
    elapsed: Nanos,
}

impl Progress {
    /// A bar that draws only where somebody sees it.
    pub fn new(printer: Printer, interrupt: Interrupt) -> Self {
        let target = if printer.draws_progress() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let style = ProgressStyle::with_template("{bar:24.cyan/black.bright} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━━─"));
        Self { bar, interrupt, printer, elapsed: Nanos(0) }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, text: &str, left: Nanos) {
        self.bar.set_length((self.elapsed.get() + left.get()).max(1));
        self.bar.set_position(self.elapsed.get());
        let left = Duration::from_nanos(left.get()).as_secs();
        self.bar.set_message(format!("≤ {left:>2} s left  {text}"));
    }
}

impl Observer for Progress {
    fn phase(&mut self, label: &str) {
        let left = Nanos(self.bar.length().unwrap_or(1).saturating_sub(self.elapsed.get()));
        self.show(label, left);
    }

    fn tick(&mut self, live: &Live<'_>) {
        self.elapsed = live.elapsed;
        let rate = |rate: &Rate| format!("{} {}", three_digits(rate.value), rate.unit);
        let rates: Vec<String> = live.rates.iter().map(rate).collect();
        self.show(&format!("{:<34} {}", live.label, rates.join("  ")), live.left);
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| self.printer.note(text));
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.interrupt.signal()
    }
}
