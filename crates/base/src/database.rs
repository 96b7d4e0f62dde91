//! The series a workload run records about itself and about the database it drives, miniature or
//! real: one declaration for the target that samples them and for the judge. All are cumulative
//! since the database was opened, unless marked as a level. What a monitored database reports
//! beyond that is declared here too.

mod monitored;

pub use monitored::{
    DATABASE, IO, MONITORED, SESSION, SESSION_STATISTICS, SESSIONS, STATEMENT, STATEMENT_TEXT,
};

use crate::column::{Column, Kind, Schema, Unit};

/// What the sessions sent, by kind of operation; the object is `select`, `update` or `scan`.
pub const OPERATION: Schema = Schema {
    probe: "operation",
    doc: "What the sessions of the workload completed, by kind of operation, since they started.",
    columns: &[
        sent("completed_ops", Unit::Count, "Operations completed without error."),
        sent("failed_ops", Unit::Count, "Operations that returned an error."),
        sent("rows", Unit::Count, "Rows visited; one row is one block."),
        sent("commits", Unit::Count, "Transactions whose commit was acknowledged."),
        sent("latency_ns_sum", Unit::Nanoseconds, "Sum of latencies from the intended start."),
        sent("service_ns_sum", Unit::Nanoseconds, "Sum of latencies from the time of sending."),
        sent(
            "lag_ns_sum",
            Unit::Nanoseconds,
            "Sum of how late operations were sent after their intended start; zero in a closed \
             loop.",
        ),
        sent("think_ns_sum", Unit::Nanoseconds, "Sum of the think times after operations."),
    ],
};

/// Where the database's processes spent their time; the object is `role/event`, as in `session/db
/// file sequential read` or `lgwr/log file parallel write`. `role/CPU` and `role/run queue` are
/// events too, as the kernel charges them to the threads: also inside waits. So of the sessions'
/// database time, `db_time_ns` less their waits is CPU, run queue and a remainder, which belongs in
/// every report, in the shares that a sample of it has: the columns of [`INSTANCE`] that begin with
/// `outside_sampled`.
pub const EVENT: Schema = Schema {
    probe: "event",
    doc: "Wait events of the database, by role and event.",
    columns: &[
        seen("waits", Unit::Count, "Waits that ended; zero for CPU and run queue."),
        seen(
            "time_ns",
            Unit::Nanoseconds,
            "Time in these waits, unfinished ones included, or on CPU, or on the run queue.",
        ),
    ],
};

/// The I/O of the database's processes; the object is the role: `session`, `dbwr`, `lgwr`, `ckpt`.
pub const ROLE: Schema = Schema {
    probe: "role",
    doc: "I/O requests of the database, by the role that sent them; a mirrored write counts once.",
    columns: &TRANSFERS,
};

/// The I/O of the disks of a disk group; the object is the disk's name.
pub const DISK: Schema = Schema {
    probe: "disk",
    doc: "I/O requests sent to each disk of the disk group; a mirrored write counts on each.",
    columns: &[
        TRANSFERS[0],
        TRANSFERS[1],
        TRANSFERS[2],
        TRANSFERS[3],
        TRANSFERS[4],
        TRANSFERS[5],
        seen("errors", Unit::Count, "Reads, writes and flushes that failed."),
        seen(
            "offline_ns",
            Unit::Nanoseconds,
            "Time during which the disk was out of the group or being resynced.",
        ),
    ],
};

/// Latencies of every read past the buffer cache, whether or not a session waited for it, in the
/// histograms of a recording. What a session waited is the event `direct path read`.
pub const DIRECT_READ: &str = "session/direct path I/O";

/// What the database did as a whole.
pub const INSTANCE: Schema = Schema {
    probe: "instance",
    doc: "Statistics of the database as a whole.",
    columns: &[
        seen("logical_reads", Unit::Count, "Blocks visited, in the cache or not."),
        seen("physical_reads", Unit::Count, "Blocks read from storage by sessions."),
        seen("single_block_reads", Unit::Count, "Read requests of one block into the cache."),
        seen("multiblock_reads", Unit::Count, "Read requests of several blocks into the cache."),
        seen("direct_reads", Unit::Count, "Read requests past the cache."),
        seen("block_changes", Unit::Count, "Blocks changed by updates."),
        seen("physical_writes", Unit::Count, "Blocks written to storage by the database writers."),
        seen("write_requests", Unit::Count, "Write requests for those blocks."),
        seen("redo_bytes", Unit::Bytes, "Redo generated, without the padding of log blocks."),
        seen("redo_writes", Unit::Count, "Writes by the log writer."),
        seen("redo_written_bytes", Unit::Bytes, "Bytes of those writes."),
        seen(
            "protection_bytes",
            Unit::Bytes,
            "Bytes written only to protect against torn writes: full pages in the redo, or the \
             double-write area.",
        ),
        seen("commits", Unit::Count, "Commits acknowledged."),
        seen("log_switches", Unit::Count, "Switches to the next redo log."),
        seen("checkpoints", Unit::Count, "Checkpoints completed."),
        seen("blocks_repaired", Unit::Count, "Bad copies of a block rewritten from a good one."),
        seen("degraded_reads", Unit::Count, "Reads answered by a mirror."),
        seen(
            "db_time_ns",
            Unit::Nanoseconds,
            "Wall time inside session calls, unfinished ones included.",
        ),
        seen(
            "outside_sampled_ns",
            Unit::Nanoseconds,
            "Randomly sampled stretches of these calls outside waits.",
        ),
        seen("outside_sampled_cpu_ns", Unit::Nanoseconds, "Processor time within them."),
        seen(
            "outside_sampled_blocked_ns",
            Unit::Nanoseconds,
            "Time off the processor in the sampled stretches that blocked; in the others it was \
             the run queue.",
        ),
        Column {
            name: "dirty_blocks",
            unit: Unit::Count,
            kind: Kind::Gauge,
            source: SOURCE,
            doc: "Changed blocks in the cache that are not written yet.",
        },
    ],
};

/// What the operating system charges to a database server's processes; the object is the role.
pub const SERVER: Schema = Schema {
    probe: "server",
    doc: "The processes or threads of a database server, as the operating system accounts for \
          them, by role.",
    columns: &[
        charged("cpu_ns", Unit::Nanoseconds, "Time on a processor."),
        charged("run_queue_ns", Unit::Nanoseconds, "Time ready to run but waiting for one."),
        charged("requested_read_bytes", Unit::Bytes, "Bytes returned by read system calls."),
        charged("requested_write_bytes", Unit::Bytes, "Bytes passed to write system calls."),
        charged("read_bytes", Unit::Bytes, "Bytes that had to be fetched from storage."),
        charged("write_bytes", Unit::Bytes, "Bytes sent, or to be sent, to storage."),
    ],
};

/// Statistics that only an SQL database has.
pub const SQL: Schema = Schema {
    probe: "sql",
    doc: "Statistics of a real database that the miniature instance does not have.",
    columns: &[
        seen(
            "retries",
            Unit::Count,
            "Transactions that the database rolled back (deadlock, serialisation failure, busy) \
             and that were retried.",
        ),
        seen("commit_ns", Unit::Nanoseconds, "Time from sending commits to their acknowledgement."),
        seen("flushes", Unit::Count, "File flushes requested by the database."),
        seen("full_page_images", Unit::Count, "Whole pages written to the redo."),
        seen(
            "maintenance_runs",
            Unit::Count,
            "Times the database vacuumed or analysed a table of the run on its own.",
        ),
    ],
};

/// All that a run records.
pub const ALL: &[&Schema] = &[&OPERATION, &EVENT, &ROLE, &DISK, &INSTANCE, &SERVER, &SQL];

const SOURCE: &str = "database";

const TRANSFERS: [Column; 6] = [
    seen("read_ios", Unit::Count, "Read requests completed."),
    seen("read_bytes", Unit::Bytes, "Bytes read."),
    seen("read_ns", Unit::Nanoseconds, "Time from sending these reads to their completion."),
    seen("write_ios", Unit::Count, "Write requests completed."),
    seen("write_bytes", Unit::Bytes, "Bytes written."),
    seen("write_ns", Unit::Nanoseconds, "Time from sending these writes to their completion."),
];

const fn sent(name: &'static str, unit: Unit, doc: &'static str) -> Column {
    Column { name, unit, kind: Kind::Counter, source: "sessions of the workload", doc }
}

const fn seen(name: &'static str, unit: Unit, doc: &'static str) -> Column {
    Column { name, unit, kind: Kind::Counter, source: SOURCE, doc }
}

const fn charged(name: &'static str, unit: Unit, doc: &'static str) -> Column {
    Column { name, unit, kind: Kind::Counter, source: "/proc/PID/schedstat, io", doc }
}
