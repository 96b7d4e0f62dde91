//! A watch or a recording as lines: one per tick, each beginning with the time.

use anyhow::Result;
use blockstone_report::render::lines::Lines;
use blockstone_view::{History, Interval};

use super::args::WatchArgs;
use super::selection::Selection;
use crate::printer::{Printer, Reader};

/// Prints intervals as lines.
pub struct Log {
    selection: Selection,
    lines: Lines,
    printer: Printer,
}

impl Log {
    pub fn new(args: &WatchArgs, history: &History, printer: Printer) -> Result<Self> {
        let selection = Selection::new(args, history)?;
        Ok(Self { selection, lines: Lines::new(args.rows, printer.style()), printer })
    }

    /// Prints the lines of an interval that ended at this instant.
    pub fn tick(&mut self, instant_ns: Option<i128>, interval: &Interval<'_>) -> Result<Reader> {
        let instant = self.selection.time(instant_ns).unwrap_or_else(|| "-".to_owned());
        let lines = self.lines.tick(&instant, &self.selection.tables(interval));
        self.printer.lines(&lines)
    }
}
