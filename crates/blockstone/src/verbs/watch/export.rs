//! Export of a watch or a recording as CSV, tick after tick, to a file or to standard output.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use blockstone_report::render::csv::Texts;
use blockstone_report::render::csv::ticks::{Shape, Ticks};
use blockstone_sys::output;
use blockstone_view::{History, Interval, Table};

use super::args::WatchArgs;
use super::selection::Selection;
use crate::failure::Failure;
use crate::printer::{Printer, Reader, piece};
use crate::verb::Context;

/// Destination of the lines.
pub enum Sink {
    Output,
    File(PathBuf, File),
}

pub struct Export {
    sink: Sink,
    shape: Shape,
    texts: Texts,
    selection: Selection,
    /// `None` before the first line.
    ticks: Option<Ticks>,
    warned: bool,
    printer: Printer,
}

impl Sink {
    /// Opens and truncates the file that `--csv` names. `None` without the option, or if it names a
    /// table.
    pub fn open(args: &WatchArgs) -> Result<Option<Self>> {
        let Some(name) = args.csv_file() else { return Ok(None) };
        if name == Path::new("-") {
            return Ok(Some(Self::Output));
        }
        let file = output::create(name).map_err(|error| {
            let what = format!("write {}", name.display());
            Failure::new(what, "name another file, or -").because(error)
        })?;
        Ok(Some(Self::File(name.to_owned(), file)))
    }
}

impl Export {
    pub fn new(sink: Sink, args: &WatchArgs, history: &History, context: &Context) -> Result<Self> {
        let selection = Selection::new(args, history)?;
        Ok(Self {
            sink,
            shape: args.csv_shape.into(),
            texts: context.global.csv_texts(),
            selection,
            ticks: None,
            warned: false,
            printer: context.printer,
        })
    }

    /// Adds columns for every row of this interval, instead of for the rows of the first tick.
    pub fn columns_of(&mut self, whole: &Interval<'_>) -> Result<Reader> {
        let tables = self.selection.tables(whole);
        self.begin(&tables)
    }

    /// Writes the lines of an interval that ended at this instant.
    pub fn tick(&mut self, instant_ns: Option<i128>, interval: &Interval<'_>) -> Result<Reader> {
        let tables = self.selection.tables(interval);
        if self.ticks.is_none() && self.begin(&tables)? == Reader::Gone {
            return Ok(Reader::Gone);
        }
        let Some(ticks) = &self.ticks else { return Ok(Reader::Reads) };
        if let Some((view, row)) = ticks.left_out(&tables).filter(|_| !self.warned) {
            self.warned = true;
            self.printer.note(&format!(
                "warning: {row} of {view} came after the heading and has no column\n\
                 hint: --csv-shape long writes all rows"
            ));
        }
        let instant = self.selection.time(instant_ns).unwrap_or_default();
        let text = ticks.tick(&instant, &tables);
        self.write(&text)
    }

    fn begin(&mut self, tables: &[Table]) -> Result<Reader> {
        let heading = self.ticks.insert(Ticks::new(self.shape, self.texts, tables)).heading();
        self.write(&heading)
    }

    fn write(&mut self, text: &str) -> Result<Reader> {
        match &mut self.sink {
            Sink::File(name, file) => {
                let written = file.write_all(text.as_bytes());
                written.with_context(|| format!("write {}", name.display()))?;
                Ok(Reader::Reads)
            }
            Sink::Output if text.is_empty() => Ok(Reader::Reads),
            Sink::Output if stdout().is_terminal() => {
                self.printer.lines(&text.lines().map(str::to_owned).collect::<Vec<_>>())
            }
            // A file or a program gets the lines unchanged.
            Sink::Output => piece(text),
        }
    }
}
