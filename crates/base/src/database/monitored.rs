//! Series that an outside monitor records of a database, in addition to those that a run records of
//! the database that it drives. A server's counters live as long as the server; if they fall
//! because they were reset or a database was dropped, nothing is added. The monitor's own session
//! is not included.

use crate::column::{Schema, Unit};

use super::{DB, EVENT, INSTANCE, PROC, ROLE, SERVER, SQL, TRANSFERS};

/// Load profile, except what is in [`INSTANCE`] and [`SQL`].
pub const DATABASE: Schema = Schema {
    probe: "database",
    doc: "Further statistics of a whole database server, in addition to `instance` and `sql`.",
    columns: &[
        DB.count("rollbacks", "Transactions rolled back."),
        DB.count("statements", "Statements sent by clients."),
        DB.count("logons", "Sessions that began."),
        DB.count("rows_read", "Rows and index entries read by scans."),
        DB.count("rows_fetched", "Rows fetched through an index."),
        DB.count("rows_sent", "Rows sent to clients."),
        DB.count("rows_inserted", "Rows inserted."),
        DB.count("rows_updated", "Rows updated."),
        DB.count("rows_deleted", "Rows deleted."),
        DB.count("temp_files", "Temporary files made for sorts, hashes and the like."),
        DB.bytes("temp_bytes", "Bytes written to them."),
        DB.count("deadlocks", "Deadlocks detected and resolved."),
        DB.count("row_lock_waits", "Completed waits for row locks."),
        DB.time("row_lock_ns", "Time of these waits."),
        DB.time("read_ns", "Time sessions spent reading data files."),
        DB.time("write_ns", "Time sessions spent writing data files."),
        DB.time("idle_in_transaction_ns", "Time sessions were idle inside a transaction."),
        DB.count("redo_records", "Redo records generated."),
        DB.count("redo_flushes", "Redo flushes; none with wal_sync_method=open_*."),
        DB.time("redo_write_ns", "Time spent writing redo."),
        DB.time("redo_flush_ns", "Time spent flushing redo."),
        DB.count("redo_buffer_full", "Times that sessions found the redo buffer full."),
        DB.count("checkpoints_timed", "Checkpoints started by the timer."),
        DB.count("checkpoints_requested", "Checkpoints started for another reason."),
        DB.time("checkpoint_write_ns", "Time checkpoints spent writing, pauses included."),
        DB.time("checkpoint_sync_ns", "Time checkpoints spent flushing files."),
        DB.count("checkpoint_written_blocks", "Blocks written by checkpoints."),
        DB.count("writer_written_blocks", "Blocks written to make room in the cache."),
        DB.count(
            "session_written_blocks",
            "Blocks that sessions had to write themselves, or added to files.",
        ),
        DB.level(
            "checkpoint_age_bytes",
            Unit::Bytes,
            "Redo since the last checkpoint: what a recovery would have to read.",
        ),
        DB.level("history_length", Unit::Count, "Old row versions not yet purged."),
        DB.level("buffer_cache_bytes", Unit::Bytes, "Size of the buffer cache."),
    ],
};

/// I/O of each kind of process, by object and context; the object is `backend type/object/context`.
/// An empty cell that the manifest does not explain belongs to a request that cannot happen there.
pub const IO: Schema = Schema {
    probe: "io",
    doc: "I/O requests of the database, by kind of process, object and context; empty where there \
          can be none.",
    columns: &[
        TRANSFERS[0],
        TRANSFERS[1],
        TRANSFERS[2],
        TRANSFERS[3],
        TRANSFERS[4],
        TRANSFERS[5],
        DB.count("extend_ios", "Requests that extended a file."),
        DB.bytes("extend_bytes", "Bytes by which files were extended."),
        DB.time("extend_ns", "Time of these requests."),
        DB.count("writeback_ios", "Requests to the kernel to start writeback."),
        DB.time("writeback_ns", "Time of these requests."),
        DB.count("flushes", "Flushes of files."),
        DB.time("flush_ns", "Time of these flushes."),
        DB.count("hits", "Blocks found in the cache."),
        DB.count("evictions", "Blocks evicted from the cache to make room."),
        DB.count("reuses", "Blocks reused within a ring buffer."),
    ],
};

/// A sample of a session that is working, or idle in a transaction; the object is the number by
/// which the database identifies it: the process ID in PostgreSQL, the connection ID in MariaDB.
pub const SESSION: Schema = Schema {
    probe: "session",
    doc: "Samples of sessions that were active or idle in a transaction, and of background \
          processes that were active.",
    columns: &[
        DB.state("role", "Kind of process: `session`, or the kind of background process."),
        DB.state("user", "The user it works for."),
        DB.state("database", "The database that it is connected to."),
        DB.state("application", "Application name given by the client."),
        DB.state("state", "`active`, `idle in transaction`, or as the database calls it."),
        DB.state(
            "wait_class",
            "What it does: `On CPU`, or waits of one kind: `IO`, `Lock` (queues, on tables and \
             rows), `LWLock` (latches, on memory), `Client`, `IPC`, `Timeout` and others.",
        ),
        DB.state("event", "What it waits for, in the database's terms."),
        DB.state("query_id", "Its statement: the object of `statement` and `statement_text`."),
        DB.state(
            "blockers",
            "Holders of the lock it waits for: their objects, separated by commas.",
        ),
        DB.level("thread", Unit::Count, "Number of its process or thread in the operating system."),
        DB.level("transaction_age_ns", Unit::Nanoseconds, "Time since its transaction began."),
        DB.level("statement_age_ns", Unit::Nanoseconds, "Time since its statement began."),
    ],
};

pub const SESSIONS: Schema = Schema {
    probe: "sessions",
    doc: "Sessions of clients, at each sample.",
    columns: &[
        DB.level("connected", Unit::Count, "All sessions."),
        DB.level("active", Unit::Count, "Sessions executing a call."),
        DB.level("idle", Unit::Count, "Sessions outside a call and outside a transaction."),
        DB.level(
            "idle_in_transaction",
            Unit::Count,
            "Sessions inside a transaction but outside a call.",
        ),
        DB.level("waiting_for_locks", Unit::Count, "Sessions waiting for a lock."),
    ],
};

/// Statistics of single sessions and background processes since they began; the object is that of
/// [`SESSION`], or `thread` and its number for a background thread.
pub const SESSION_STATISTICS: Schema = Schema {
    probe: "session_statistics",
    doc: "Statistics of each recently active session and of each background process.",
    columns: &[
        DB.state("role", "Kind of process, as in `session`."),
        TRANSFERS[0],
        TRANSFERS[1],
        TRANSFERS[2],
        TRANSFERS[3],
        TRANSFERS[4],
        TRANSFERS[5],
        DB.count("hits", "Blocks found in the cache."),
        DB.count("redo_records", "Redo records generated."),
        DB.bytes("redo_bytes", "Redo generated."),
        DB.count("full_page_images", "Whole pages written to the redo."),
        DB.count("logical_reads", "Blocks visited, in the cache or not."),
        DB.count("block_changes", "Blocks changed by updates."),
        DB.count("commits", "Commits acknowledged."),
        DB.time("db_time_ns", "Wall time inside its calls, an unfinished one included."),
        PROC.time("cpu_ns", "Time on a processor."),
        PROC.time("run_queue_ns", "Time ready to run but waiting for one."),
        PROC.bytes("requested_read_bytes", "Bytes returned by read system calls."),
        PROC.bytes("requested_write_bytes", "Bytes passed to write system calls."),
        PROC.bytes("charged_read_bytes", "Bytes that had to be fetched from storage."),
        PROC.bytes("charged_write_bytes", "Bytes sent, or to be sent, to storage."),
    ],
};

/// Waits of single sessions and background processes, if the database times them; the object is
/// that of [`SESSION_STATISTICS`] and the event, as in `3/log file sync`.
pub const SESSION_EVENT: Schema = Schema {
    probe: "session_event",
    doc: "Wait events of each session and background process, by session and event.",
    columns: &[
        DB.count("waits", "Waits that ended."),
        DB.time("time_ns", "Time in these waits, an unfinished one included."),
    ],
};

/// Statistics of the statements that took the most time or were seen at work; the object is the
/// identity of the statement.
pub const STATEMENT: Schema = Schema {
    probe: "statement",
    doc: "The statements that took most time or were sampled, by identifier.",
    columns: &[
        DB.count("calls", "Completed executions."),
        DB.time("total_ns", "Total execution time."),
        DB.count("rows", "Rows returned or changed."),
        DB.count("blocks_hit", "Blocks found in the cache."),
        DB.count("blocks_read", "Blocks read into the cache."),
        DB.count("blocks_dirtied", "Blocks it dirtied."),
        DB.count("blocks_written", "Blocks it had to write itself."),
        DB.count("temp_blocks_written", "Blocks written to temporary files."),
        DB.time("read_ns", "Time it spent reading."),
        DB.time("write_ns", "Time it spent writing."),
        DB.bytes("redo_bytes", "Redo it generated."),
    ],
};

/// Text of a statement, as one row when it is first seen. Its object is the same as in
/// [`STATEMENT`].
pub const STATEMENT_TEXT: Schema = Schema {
    probe: "statement_text",
    doc: "The text of each statement seen, once: with placeholders, on one line, truncated.",
    columns: &[DB.state("text", "The statement.")],
};

pub const MONITORED: &[&Schema] = &[
    &INSTANCE,
    &SQL,
    &DATABASE,
    &ROLE,
    &IO,
    &EVENT,
    &SERVER,
    &SESSION,
    &SESSIONS,
    &SESSION_STATISTICS,
    &STATEMENT,
    &STATEMENT_TEXT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_whole_server_did_is_said_in_one_place() {
        let names = [&INSTANCE, &SQL, &DATABASE].map(|schema| schema.columns.iter());
        let mut names: Vec<_> = names.into_iter().flatten().map(|column| column.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn units_stand_last_in_names() {
        for column in MONITORED.iter().flat_map(|schema| schema.columns) {
            let unit = match column.unit {
                Unit::Nanoseconds => column.name.ends_with("_ns") || column.name.contains("_ns_"),
                Unit::Bytes => column.name.ends_with("_bytes"),
                _ => true,
            };
            assert!(unit, "{}", column.name);
        }
    }
}
