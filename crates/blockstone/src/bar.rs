//! The progress bar of work that knows how much of it is done, for what takes longer than two
//! seconds; and whether somebody asked for its end.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Before that nobody wants to see a bar.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Bar {
    drawn: ProgressBar,
    draws: bool,
    interrupt: Interrupt,
    began: Instant,
}

impl Bar {
    pub fn new(printer: Printer, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:24.cyan/black.bright} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━━─"));
        Self { drawn: bar, draws: printer.draws_progress(), interrupt, began: Instant::now() }
    }

    /// Shows the part that is done; false when somebody asked for the end.
    pub fn tick(&mut self, done: f64, text: &str) -> bool {
        let passed = self.began.elapsed();
        if self.draws && passed > PATIENCE {
            if self.drawn.is_hidden() {
                self.drawn.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            }
            let left = passed.mul_f64(((1.0 - done) / done.max(1e-6)).clamp(0.0, 1e4));
            self.drawn.set_position((done * 1000.0) as u64);
            self.drawn.set_message(format!("about {:>2} s left  {text}", left.as_secs()));
        }
        self.interrupt.signal().is_none()
    }

    pub fn finish(&self) {
        self.drawn.finish_and_clear();
    }

    pub fn exit(&self) -> Exit {
        if self.interrupt.signal().is_some() { Exit::Interrupted } else { Exit::Done }
    }
}
