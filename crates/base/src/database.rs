//! Series that a workload run records about itself and about the database it drives, miniature or
//! real: one declaration for the target that samples them and for the judge. All are cumulative
//! since the database was opened, unless marked as a level. What a monitored database reports
//! beyond that is declared here too.

mod load;
mod monitored;
mod wait_class;

pub use wait_class::{BLOCKED_IN, CPU, NETWORK, PEER, ROW_LOCK, RUN_QUEUE, RUNNING, wait_class};

pub use load::{LOAD, LOAD_ADVICE, LOAD_STATEMENT, LOAD_STATISTIC, OF_LOAD};
pub use monitored::{
    DATABASE, IO, MONITORED, SESSION, SESSION_EVENT, SESSION_STATISTICS, SESSIONS, STATEMENT,
    STATEMENT_TEXT,
};

use crate::column::{Column, Origin, Schema, Unit};

/// Single statements as sessions send them; the objects of [`OPERATION`] in such a run.
pub const STATEMENTS: [&str; 3] = ["select", "update", "scan"];

/// Transactions of an order-entry mix; the objects of [`OPERATION`] in such a run.
pub const TRANSACTIONS: [&str; 5] =
    ["new-order", "payment", "order-status", "delivery", "stock-level"];

/// Steps of a bulk write; the objects of [`OPERATION`] in such a run: a table is created from
/// existing rows, its bytes are written to the medium, and it is dropped.
pub const TABLE_STEPS: [&str; 3] = ["create-table", "flush-table", "drop-table"];

/// Capability of a database whose data files this program opens: reading and writing them past the
/// page cache.
pub const DIRECT_DATA: &str = "direct-data";

/// Operations that the sessions sent, by kind; the object is one of [`STATEMENTS`],
/// [`TRANSACTIONS`] or [`TABLE_STEPS`].
pub const OPERATION: Schema = Schema {
    probe: "operation",
    doc: "What the sessions of the workload completed, by kind of operation, since they started.",
    columns: &[
        CLIENTS.count("completed_ops", "Operations completed without error."),
        CLIENTS.count("failed_ops", "Operations that returned an error."),
        CLIENTS.count("rows", "Rows visited, of which each is one block, or written to a table."),
        CLIENTS.count("commits", "Transactions whose commit was acknowledged."),
        CLIENTS.time("latency_ns_sum", "Sum of latencies from the intended start."),
        CLIENTS.time("service_ns_sum", "Sum of latencies from the time of sending."),
        CLIENTS.time(
            "lag_ns_sum",
            "Sum of how late operations were sent after their intended start; zero in a closed \
             loop.",
        ),
        CLIENTS.time("think_ns_sum", "Sum of the think times after operations."),
        CLIENTS.time(
            "late_ns_sum",
            "The part of the lag that is the session's own: not spent in the operation before.",
        ),
        CLIENTS.time("spin_ns_sum", "Time in which sessions spun until the next intended start."),
        CLIENTS.bytes("bytes", "Bytes of the tables that were made; zero for other operations."),
    ],
};

/// Where the database's processes spent their time; the object is `role/event`, as in `session/db
/// file sequential read` or `lgwr/log file parallel write`. `role/CPU` and `role/run queue` are
/// events too, as the kernel charges them to the threads, even inside waits. So the sessions'
/// database time, `db_time_ns`, minus their waits is CPU, run queue and a remainder, which belongs
/// in every report in the proportions that a sample of it shows: the columns of [`INSTANCE`] that
/// begin with `outside_sampled`.
pub const EVENT: Schema = Schema {
    probe: "event",
    doc: "Wait events of the database, by role and event.",
    columns: &[
        DB.count("waits", "Waits that ended; zero for CPU and run queue."),
        DB.time(
            "time_ns",
            "Time in these waits, unfinished ones included, or on CPU, or on the run queue.",
        ),
    ],
};

/// I/O of the database's processes; the object is the role: `session`, `dbwr`, `lgwr`, `ckpt`.
pub const ROLE: Schema = Schema {
    probe: "role",
    doc: "I/O requests of the database, by the role that sent them; a mirrored write counts once.",
    columns: &TRANSFERS,
};

/// I/O of the disks of a disk group; the object is the disk's name.
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
        DB.count("errors", "Reads, writes and flushes that failed."),
        DB.time("offline_ns", "Time during which the disk was out of the group or being resynced."),
    ],
};

/// Latencies of every read past the buffer cache, whether or not a session waited for it, in the
/// histograms of a recording. The time that a session waited is in the event `direct path read`.
pub const DIRECT_READ: &str = "session/direct path I/O";

pub const INSTANCE: Schema = Schema {
    probe: "instance",
    doc: "Statistics of the database as a whole.",
    columns: &[
        DB.count("logical_reads", "Blocks visited, in the cache or not."),
        DB.count("physical_reads", "Blocks read from storage by sessions."),
        DB.count("single_block_reads", "Read requests of one block into the cache."),
        DB.count("multiblock_reads", "Read requests of several blocks into the cache."),
        DB.count("direct_reads", "Read requests past the cache."),
        DB.count("block_changes", "Blocks changed by updates."),
        DB.count(
            "physical_writes",
            "Blocks written to storage by the database writers, and past the cache by sessions.",
        ),
        DB.count("write_requests", "Write requests for those blocks."),
        DB.bytes("redo_bytes", "Redo generated, without the padding of log blocks."),
        DB.count("redo_writes", "Writes by the log writer."),
        DB.bytes("redo_written_bytes", "Bytes of those writes."),
        DB.bytes(
            "protection_bytes",
            "Bytes written only to protect against torn writes: full pages in the redo, or the \
             double-write area.",
        ),
        DB.count("commits", "Commits acknowledged."),
        DB.count("log_switches", "Switches to the next redo log."),
        DB.count("checkpoints", "Checkpoints completed."),
        DB.count("blocks_repaired", "Bad copies of a block rewritten from a good one."),
        DB.count("degraded_reads", "Reads answered by a mirror."),
        DB.time("db_time_ns", "Wall time inside session calls, unfinished ones included."),
        DB.time(
            "outside_sampled_ns",
            "Time of randomly sampled stretches of these calls outside waits; for a server, its \
             time at work for the sessions and not waiting, estimated from samples.",
        ),
        DB.time("outside_sampled_cpu_ns", "Processor time within them."),
        DB.time(
            "outside_sampled_blocked_ns",
            "Time off the processor in the sampled stretches that blocked; in the others it was \
             the run queue.",
        ),
        DB.level(
            "dirty_blocks",
            Unit::Count,
            "Changed blocks in the cache that are not written yet.",
        ),
    ],
};

/// Resources that the operating system charges to a database server's processes; the object is the
/// role.
pub const SERVER: Schema = Schema {
    probe: "server",
    doc: "The processes or threads of a database server, as the operating system accounts for \
          them, by role.",
    columns: &[
        PROC.time("cpu_ns", "Time on a processor."),
        PROC.time("run_queue_ns", "Time ready to run but waiting for one."),
        PROC.bytes("requested_read_bytes", "Bytes returned by read system calls."),
        PROC.bytes("requested_write_bytes", "Bytes passed to write system calls."),
        PROC.bytes("read_bytes", "Bytes that had to be fetched from storage."),
        PROC.bytes("write_bytes", "Bytes sent, or to be sent, to storage."),
    ],
};

/// Where the threads of a server's sessions were blocked, including waits that the server reports;
/// the object is `session/` and the first of a pair of [`BLOCKED_IN`], [`PEER`] or [`RUNNING`],
/// exactly one of which applies at any time.
pub const BLOCKED: Schema = Schema {
    probe: "blocked",
    doc: "What the threads of a server's sessions were doing, according to the kernel: blocked, by \
          kind of system call, including waits that the server itself reports; waiting for the \
          client; or running, which means on a processor or ready for one.",
    columns: &[SYSCALL.time("time_ns", "Time there, from samples.")],
};

/// Statistics that only an SQL database has.
pub const SQL: Schema = Schema {
    probe: "sql",
    doc: "Statistics of a real database that the miniature instance does not have.",
    columns: &[
        DB.count(
            "retries",
            "Transactions that the database rolled back (deadlock, serialisation failure, busy) \
             and that were retried.",
        ),
        DB.time("commit_ns", "Time from sending commits to their acknowledgement."),
        DB.count("flushes", "File flushes requested by the database."),
        DB.count("full_page_images", "Whole pages written to the redo."),
        DB.count(
            "maintenance_runs",
            "Times the database vacuumed or analysed a table of the run on its own.",
        ),
    ],
};

/// All series of a run.
pub const ALL: &[&Schema] = &[&OPERATION, &EVENT, &ROLE, &DISK, &INSTANCE, &SERVER, &BLOCKED, &SQL];

/// Series that a run of the miniature instance records too: samples and counters of single
/// sessions.
pub const OF_SESSIONS: &[&Schema] = &[&SESSION, &SESSIONS, &SESSION_STATISTICS, &SESSION_EVENT];

const CLIENTS: Origin = Origin("sessions of the workload");
const DB: Origin = Origin("database");
const PROC: Origin = Origin("/proc/PID/schedstat, io");
const SYSCALL: Origin = Origin("/proc/PID/task/TID/syscall");

const TRANSFERS: [Column; 6] = [
    DB.count("read_ios", "Read requests completed."),
    DB.bytes("read_bytes", "Bytes read."),
    DB.time("read_ns", "Time from sending these reads to their completion."),
    DB.count("write_ios", "Write requests completed."),
    DB.bytes("write_bytes", "Bytes written."),
    DB.time("write_ns", "Time from sending these writes to their completion."),
];
