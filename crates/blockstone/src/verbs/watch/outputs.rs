//! Output at every tick: lines for people, and CSV.

use anyhow::Result;
use blockstone_view::{History, Interval};

use super::args::WatchArgs;
use super::export::{Export, Sink};
use super::lines::Log;
use crate::printer::Reader;
use crate::verb::Context;

pub struct Outputs {
    log: Option<Log>,
    export: Option<Export>,
}

impl Outputs {
    /// Writes lines if `lines`, and CSV if there is a destination for it.
    pub fn new(
        args: &WatchArgs,
        lines: bool,
        sink: Option<Sink>,
        history: &History,
        context: &Context,
    ) -> Result<Self> {
        let log = lines.then(|| Log::new(args, history, context.printer)).transpose()?;
        let export = sink.map(|sink| Export::new(sink, args, history, context)).transpose()?;
        Ok(Self { log, export })
    }

    /// Adds columns to the CSV for the rows of `whole`.
    pub fn columns_of(&mut self, whole: &Interval<'_>) -> Result<()> {
        if let Some(export) = &mut self.export
            && export.columns_of(whole)? == Reader::Gone
        {
            self.export = None;
        }
        Ok(())
    }

    /// Writes an interval that ended at this instant. An output that is no longer read is closed.
    pub fn tick(&mut self, instant_ns: Option<i128>, interval: &Interval<'_>) -> Result<()> {
        if let Some(log) = &mut self.log
            && log.tick(instant_ns, interval)? == Reader::Gone
        {
            self.log = None;
        }
        if let Some(export) = &mut self.export
            && export.tick(instant_ns, interval)? == Reader::Gone
        {
            self.export = None;
        }
        Ok(())
    }

    pub fn is_over(&self) -> bool {
        self.log.is_none() && self.export.is_none()
    }
}
