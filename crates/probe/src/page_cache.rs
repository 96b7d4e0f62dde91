//! Pages of a load's files that this process adds to the page cache. Direct I/O adds none, unless
//! the file system silently buffers it. docs/bpf.md says what exactly is counted.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockstone_base::Capability;
use blockstone_base::column::Origin;
use blockstone_sys::bpf::pages::PageTracer;
use blockstone_sys::bpf::{self, BpfError};

use crate::io::{absent, reason};
use crate::source::all_unmeasured;
use crate::{Cell, Probe, Row, Schema, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "page_cache",
    doc: "What this process adds to the page cache of the files and devices under load.",
    columns: &[
        Origin("tracepoint mm_filemap_add_to_page_cache").count(
            "added_pages",
            "Pages (of 4 KiB) that threads of this process added to the page cache of the watched \
             files. Pages of other files, or added by other processes, are not counted.",
        ),
        COST.count(
            "runs",
            "Runs of the program of this probe, for any process, that the kernel measured, which \
             it does for a sixteenth of the time, beginning at the start.",
        ),
        COST.time("own_ns", "Time that these runs took."),
    ],
};

const COST: Origin = Origin("bpf(2) BPF_ENABLE_STATS");

/// The files to watch: a handle that stays with whoever opened the probe.
#[derive(Clone, Debug, Default)]
pub struct WatchedFiles(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    /// No file is watched, so nothing runs in the kernel.
    #[default]
    NoFile,
    Counting(Box<PageTracer>),
    /// A single file that cannot be counted makes the sum unknown.
    Unmeasured(Unmeasured),
}

impl WatchedFiles {
    /// Also counts the pages of this file or device. If that is not possible, none are counted from
    /// now on.
    pub fn watch(&self, path: &Path) {
        let mut state = self.state();
        if matches!(*state, State::NoFile) {
            *state = started()
                .map_or_else(State::Unmeasured, |tracer| State::Counting(Box::new(tracer)));
        }
        state.change(|tracer| tracer.watch(path));
    }

    /// Stops counting the pages of a file, before it is removed.
    pub fn forget(&self, path: &Path) {
        self.state().change(|tracer| tracer.forget(path));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn started() -> Result<PageTracer, Unmeasured> {
    match bpf::capability(Path::new("/")) {
        Capability::Full => PageTracer::start().map_err(|error| reason(&error)),
        Capability::Degraded { why } => Err(absent(why)),
    }
}

impl State {
    fn change(&mut self, change: impl FnOnce(&mut PageTracer) -> Result<(), BpfError>) {
        if let Self::Counting(tracer) = self
            && let Err(error) = change(tracer)
        {
            *self = Self::Unmeasured(reason(&error));
        }
    }
}

pub fn open(files: &WatchedFiles) -> Box<dyn Probe> {
    Box::new(PageCache(files.clone()))
}

#[derive(Debug)]
struct PageCache(WatchedFiles);

impl Probe for PageCache {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let mut state = self.0.state();
        let mut cells = vec![Cell::Unmeasured; SCHEMA.columns.len()];
        if let State::Counting(tracer) = &*state {
            match tracer.added_pages() {
                Ok(added_pages) => {
                    let (runs, own_ns) = tracer.spent().unzip();
                    cells = vec![added_pages.into(), runs.into(), own_ns.into()];
                }
                Err(error) => *state = State::Unmeasured(reason(&error)),
            }
        }
        rows.push(Row { object: String::new(), cells });
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        match &*self.0.state() {
            State::NoFile => {
                let off = Unmeasured::Off("this process has no file under load".to_owned());
                all_unmeasured(&SCHEMA, &off)
            }
            State::Unmeasured(why) => all_unmeasured(&SCHEMA, why),
            State::Counting(tracer) if tracer.spent().is_none() => {
                let why = "the kernel measures what programs cost for CAP_SYS_ADMIN only";
                let why = Unmeasured::NotPermitted(why.to_owned());
                vec![("runs", why.clone()), ("own_ns", why)]
            }
            State::Counting(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_schema_and_say_what_they_leave_out() {
        let files = WatchedFiles::default();
        let mut probe = open(&files);
        let mut rows = Vec::new();
        probe.sample(&mut rows);
        assert_eq!(rows[0].cells, [const { Cell::Unmeasured }; 3], "no file is watched");
        assert_eq!(probe.unmeasured().len(), 3);
        let scratch = blockstone_testkit::ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("watched");
        std::fs::write(&path, [7; 8192]).unwrap();
        files.watch(&path);
        probe.sample(&mut rows);
        let missing: Vec<_> = probe.unmeasured().into_iter().map(|(column, _)| column).collect();
        for (cell, column) in rows[1].cells.iter().zip(SCHEMA.columns) {
            assert_eq!(*cell == Cell::Unmeasured, missing.contains(&column.name), "{missing:?}");
        }
        files.watch(Path::new("/nowhere"));
        probe.sample(&mut rows);
        assert_eq!(rows[2].cells, [const { Cell::Unmeasured }; 3], "the sum is unknown");
        assert_eq!(probe.unmeasured().len(), 3);
    }
}
