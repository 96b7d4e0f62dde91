//! The columns of the probe `profile`.

use blockstone_base::column::{Origin, Schema};

use super::tally::{Count, Key, Tally};
use crate::{Cell, Row};

/// The schema: one row for each role, mode, module and function that was found at work, and one on
/// the sampling itself.
pub const SCHEMA: Schema = Schema {
    probe: "profile",
    doc: "Processor time by role, mode, module and function, from samples. An object has a row at \
          each tick from when it is first found until it has not been found for some ticks; its \
          counters begin at zero, and one found again later counts as a new object. One row is on \
          the sampling itself, with the sums of all others since the start.",
    columns: &[
        PERF.state(
            "role",
            "Role of the thread; `kernel` for threads of the kernel, `interrupts` for work on a \
             processor that had no task.",
        ),
        PERF.state("mode", "`kernel` or `user`; `sampling` for the sampling itself."),
        PERF.state(
            "module",
            "The module: `vmlinux` for the kernel itself, a kernel module, or a program or \
             library.",
        ),
        PERF.state("symbol", "The function, of the kernel only."),
        PERF.count("samples", "Samples that found it executing."),
        PERF.time("cpu_ns", "Processor time that these samples represent."),
        PERF.time("idle_ns", "Time during which processors were found idle."),
        PERF.time("watched_ns", "Time during which processors were sampled, summed over all."),
        Origin("getrusage(2) RUSAGE_THREAD")
            .time("summing_ns", "Processor time spent on turning samples into sums."),
        PERF.count("lost", "Samples and thread records lost for lack of room."),
    ],
};

const PERF: Origin = Origin("perf_event_open(2) cpu-clock");
/// Role of the row on the sampling itself.
const SAMPLING: &str = "sampling";

/// Returns the row of a key that was found at work. Its symbol is omitted if the kernel hides the
/// names of its functions.
pub fn row(key: &Key, count: &Count, period_ns: u64, hides: bool) -> Row {
    let mode = if key.is_kernel { "kernel" } else { "user" };
    let states = [&key.role, mode, &key.module, &key.symbol];
    let object = format!("{} #{}", states.join(" | "), count.since_look);
    let mut cells: Vec<Cell> = states.map(|state| Cell::Text(state.to_owned())).into();
    if hides {
        cells[3] = Cell::Unmeasured;
    }
    cells.extend([Cell::from(count.samples), Cell::from(count.samples * period_ns)]);
    cells.resize(SCHEMA.columns.len(), Cell::Unmeasured);
    Row { object, cells }
}

/// Returns the row on the sampling itself; without values if the sampler does not run.
pub fn sampling_row(found: Option<(&Tally, u64)>) -> Row {
    let mut cells = vec![Cell::Unmeasured; SCHEMA.columns.len()];
    if let Some((tally, period_ns)) = found {
        cells[1] = Cell::Text(SAMPLING.to_owned());
        cells[4] = Cell::from(tally.busy);
        cells[5] = Cell::from(tally.busy * period_ns);
        cells[6] = Cell::from(tally.idle * period_ns);
        cells[7] = Cell::from(tally.watched_ns);
        cells[8] = Cell::from(tally.summing_ns);
        cells[9] = Cell::from(tally.lost);
    }
    Row { object: SAMPLING.to_owned(), cells }
}
