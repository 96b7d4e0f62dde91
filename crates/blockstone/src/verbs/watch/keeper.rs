//! Keeps the recent past of a watch on the screen as a recording with its page, in a thread of its
//! own: the watch goes on meanwhile.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::Result;
use blockstone_record::{PAGE, new_run_dir};
use blockstone_watch::{Destination, KEPT, Kept, Watch};
use jiff::Zoned;

use crate::finish::judge_recording;
use crate::printer::Printer;
use crate::verb::Context;

/// Ticks for which a note is shown.
const TICKS_SHOWN: u32 = 20;

pub struct Keeper {
    context: Context,
    at_work: Option<JoinHandle<Result<PathBuf>>>,
    note: Option<String>,
    ticks_left: u32,
    /// Recordings that were made.
    kept: Vec<PathBuf>,
}

impl Keeper {
    /// Creates a keeper, which stores recordings in the directory of runs. `note` is shown first.
    pub fn new(context: &Context, note: Option<String>) -> Self {
        let (at_work, kept) = (None, Vec::new());
        Self { context: context.clone(), at_work, note, ticks_left: TICKS_SHOWN, kept }
    }

    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Begins to keep the recent past of `watch`.
    pub fn keep(&mut self, watch: &Watch) {
        if self.at_work.is_some() {
            return self.say("the recording that you asked for is still being written".to_owned());
        }
        match self.begin(watch) {
            Ok(note) => self.say(note),
            Err(error) => self.say(one_line(&error)),
        }
    }

    fn begin(&mut self, watch: &Watch) -> Result<String> {
        let run = new_run_dir(&self.context.global.runs_dir, "watch", &Zoned::now())?;
        let destination = Destination { dir: run.path.clone(), id: run.id };
        let Some(kept) = watch.keep(&destination)? else {
            return Ok("nothing to keep yet; wait for the second tick".to_owned());
        };
        let (context, dir) = (self.context.clone(), run.path);
        let note = format!("keeping the last {KEPT} in {} …", dir.display());
        let work = move || write(kept, &dir, context).map(|()| dir);
        self.at_work = Some(blockstone_sys::thread::spawn("keeper", work)?);
        Ok(note)
    }

    /// Looks whether the recording is complete; called at every tick.
    pub fn look(&mut self) {
        self.ticks_left = self.ticks_left.saturating_sub(1);
        if self.ticks_left == 0 && self.at_work.is_none() {
            self.note = None;
        }
        if self.at_work.as_ref().is_some_and(JoinHandle::is_finished) {
            self.wait();
        }
    }

    /// Waits until the recording is complete, if one is being written.
    fn wait(&mut self) {
        match self.at_work.take().map(JoinHandle::join) {
            Some(Ok(Ok(dir))) => {
                self.say(format!("kept: {}", dir.join(PAGE).display()));
                self.kept.push(dir);
            }
            Some(Ok(Err(error))) => self.say(one_line(&error)),
            Some(Err(_)) => {
                self.say("keep a recording: the thread that wrote it failed".to_owned());
            }
            None => {}
        }
    }

    /// Shows a note for a while.
    pub fn say(&mut self, note: String) {
        (self.note, self.ticks_left) = (Some(note), TICKS_SHOWN);
    }

    /// Waits for the last recording, and prints where all are.
    pub fn end(mut self, printer: Printer) {
        self.wait();
        for dir in &self.kept {
            printer.note(&format!("kept: {}", dir.display()));
        }
    }
}

fn write(kept: Kept, dir: &Path, mut context: Context) -> Result<()> {
    kept.write()?;
    // The page has the course of time, which a terminal does not show.
    context.global.html = Some(dir.join(PAGE));
    judge_recording(dir, &context)?;
    Ok(())
}

/// Returns an error as a line for the screen.
pub fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', "; ")
}
