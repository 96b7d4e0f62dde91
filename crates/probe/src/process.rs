//! This process: the cost of the load generator, and the storage I/O that the kernel charged to it.

use blockstone_base::column::{Origin, Unit};
use blockstone_sys::proc::numbers_after;
use blockstone_sys::usage::{self, RunQueue};

use crate::rising::Rising;
use crate::source::{Source, reason, unread};
use crate::{Cell, Context, Probe, Row, Schema, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "process",
    doc: "This process: processor time, context switches, waiting for a processor, storage I/O.",
    columns: &[
        RUSAGE.time(
            "cpu_user_ns",
            "Processor time in user mode. The sum with cpu_system_ns is exact to 1 µs; the kernel \
             splits it by sampling at its tick.",
        ),
        RUSAGE.time(
            "cpu_system_ns",
            "Processor time in the kernel on behalf of this process; interrupts and kernel \
             threads are not in it.",
        ),
        RUSAGE.count("switches_voluntary", "Context switches because a thread had to wait."),
        RUSAGE
            .count("switches_involuntary", "Context switches because another task was scheduled."),
        IO.bytes(
            "read_bytes",
            "Bytes this process caused to be read from storage; reads of holes and from the page \
             cache are not in it.",
        ),
        IO.bytes(
            "write_bytes",
            "Bytes this process caused to be written: direct writes as they are sent, buffered \
             ones as pages become dirty.",
        ),
        IO.bytes("requested_write_bytes", "Bytes passed to write system calls."),
        IO.bytes(
            "cancelled_write_bytes",
            "Bytes of write_bytes that never reached storage because their file was truncated or \
             removed first.",
        ),
        SCHEDSTAT.time(
            "run_queue_ns",
            "Time the threads were ready to run but did not, summed over all of them; a thread \
             that ended counts with its value at the last tick.",
        ),
        Origin("/proc/self/task").level("threads", Unit::Count, "Threads of this process."),
    ],
};

const RUSAGE: Origin = Origin("getrusage(2) RUSAGE_SELF");
const SCHEDSTAT: Origin = Origin("/proc/self/task/*/schedstat");
const IO: Origin = Origin("/proc/self/io");
const RUN_QUEUE_COLUMNS: [&str; 2] = ["run_queue_ns", "threads"];
const NO_SCHEDSTAT: &str = "the kernel is built without CONFIG_SCHED_INFO";

pub fn open(context: &Context) -> Box<dyn Probe> {
    Box::new(Process {
        io: Source::open(
            &context.root,
            IO.0,
            "the kernel is built without CONFIG_TASK_IO_ACCOUNTING",
        ),
        run_queue: RunQueue::open(&context.root)
            .map_err(|error| reason("/proc/self/schedstat", NO_SCHEDSTAT, &error)),
        counters: [Rising::default(); 4],
    })
}

#[derive(Debug)]
struct Process {
    io: Source,
    run_queue: Result<RunQueue, Unmeasured>,
    /// From getrusage, whose split into user and system time the kernel may correct.
    counters: [Rising; 4],
}

impl Probe for Process {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let usage = usage::process();
        let raw = [
            usage.cpu_user_ns,
            usage.cpu_system_ns,
            usage.switches_voluntary,
            usage.switches_involuntary,
        ];
        let mut cells = Vec::with_capacity(SCHEMA.columns.len());
        cells.extend(self.counters.iter_mut().zip(raw).map(|(c, raw)| Cell::from(c.at(raw))));
        let io = self.io.read();
        let field = |key| io.and_then(|text| numbers_after(text, key)?.next());
        let keys = ["read_bytes:", "write_bytes:", "wchar:", "cancelled_write_bytes:"];
        cells.extend(keys.map(field).map(Cell::from));
        cells.extend(self.sample_run_queue().map(Cell::from));
        rows.push(Row { object: String::new(), cells });
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let mut missing = unread(&SCHEMA, &[&self.io]);
        if let Err(why) = &self.run_queue {
            missing.extend(RUN_QUEUE_COLUMNS.map(|column| (column, why.clone())));
        }
        missing
    }
}

impl Process {
    fn sample_run_queue(&mut self) -> [Option<u64>; 2] {
        let Ok(run_queue) = &mut self.run_queue else { return [None; 2] };
        match run_queue.waited_ns() {
            Ok(waited_ns) => [Some(waited_ns), Some(run_queue.threads())],
            Err(error) => {
                self.run_queue = Err(reason("/proc/self/task", NO_SCHEDSTAT, &error));
                [None; 2]
            }
        }
    }
}
