//! What an outside monitor sees of a database, beside the series that a run records of the one it
//! drives. A server's counters live as long as the server; where they fall, because they were set
//! back or a database was dropped, nothing is added. The session that asks is in none.

use crate::column::{Column, Kind, Schema, Unit};

use super::{EVENT, INSTANCE, ROLE, SERVER, SQL, TRANSFERS, charged, seen};

/// The load profile, as far as it is not in [`INSTANCE`] and [`SQL`].
pub const DATABASE: Schema = Schema {
    probe: "database",
    doc: "Further statistics of a whole database server, in addition to `instance` and `sql`.",
    columns: &[
        seen("rollbacks", Unit::Count, "Transactions rolled back."),
        seen("statements", Unit::Count, "Statements sent by clients."),
        seen("logons", Unit::Count, "Sessions that began."),
        seen("rows_read", Unit::Count, "Rows and index entries read by scans."),
        seen("rows_fetched", Unit::Count, "Rows fetched through an index."),
        seen("rows_sent", Unit::Count, "Rows sent to clients."),
        seen("rows_inserted", Unit::Count, "Rows inserted."),
        seen("rows_updated", Unit::Count, "Rows updated."),
        seen("rows_deleted", Unit::Count, "Rows deleted."),
        seen("temp_files", Unit::Count, "Temporary files made for sorts, hashes and the like."),
        seen("temp_bytes", Unit::Bytes, "Bytes written to them."),
        seen("deadlocks", Unit::Count, "Deadlocks detected and resolved."),
        seen("row_lock_waits", Unit::Count, "Completed waits for row locks."),
        seen("row_lock_ns", Unit::Nanoseconds, "Time of these waits."),
        seen("read_ns", Unit::Nanoseconds, "Time sessions spent reading data files."),
        seen("write_ns", Unit::Nanoseconds, "Time sessions spent writing data files."),
        seen(
            "idle_in_transaction_ns",
            Unit::Nanoseconds,
            "Time sessions were idle inside a transaction.",
        ),
        seen("redo_records", Unit::Count, "Redo records generated."),
        seen("redo_flushes", Unit::Count, "Redo flushes; none with wal_sync_method=open_*."),
        seen("redo_write_ns", Unit::Nanoseconds, "Time spent writing redo."),
        seen("redo_flush_ns", Unit::Nanoseconds, "Time spent flushing redo."),
        seen("redo_buffer_full", Unit::Count, "Times that sessions found the redo buffer full."),
        seen("checkpoints_timed", Unit::Count, "Checkpoints started by the timer."),
        seen("checkpoints_requested", Unit::Count, "Checkpoints started for another reason."),
        seen(
            "checkpoint_write_ns",
            Unit::Nanoseconds,
            "Time checkpoints spent writing, pauses included.",
        ),
        seen("checkpoint_sync_ns", Unit::Nanoseconds, "Time checkpoints spent flushing files."),
        seen("checkpoint_written_blocks", Unit::Count, "Blocks written by checkpoints."),
        seen("writer_written_blocks", Unit::Count, "Blocks written to make room in the cache."),
        seen(
            "session_written_blocks",
            Unit::Count,
            "Blocks that sessions had to write themselves, or added to files.",
        ),
        level(
            "checkpoint_age_bytes",
            Unit::Bytes,
            "Redo since the last checkpoint: what a recovery would have to read.",
        ),
        level("history_length", Unit::Count, "Old row versions not yet purged."),
    ],
};

/// What each kind of process did, by what and how; the object is `backend type/object/context`. An
/// empty cell that the manifest does not explain is of a request that cannot happen there.
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
        seen("extend_ios", Unit::Count, "Requests that extended a file."),
        seen("extend_bytes", Unit::Bytes, "Bytes by which files were extended."),
        seen("extend_ns", Unit::Nanoseconds, "Time of these requests."),
        seen("writeback_ios", Unit::Count, "Requests to the kernel to start writeback."),
        seen("writeback_ns", Unit::Nanoseconds, "Time of these requests."),
        seen("flushes", Unit::Count, "Flushes of files."),
        seen("flush_ns", Unit::Nanoseconds, "Time of these flushes."),
        seen("hits", Unit::Count, "Blocks found in the cache."),
        seen("evictions", Unit::Count, "Blocks evicted from the cache to make room."),
        seen("reuses", Unit::Count, "Blocks reused within a ring buffer."),
    ],
};

/// A sample of a session that works, or is idle in a transaction; the object is the number by
/// which the database knows it: the process of PostgreSQL, the connection of MariaDB.
pub const SESSION: Schema = Schema {
    probe: "session",
    doc: "Samples of sessions that were active or idle in a transaction, and of background \
          processes that were active.",
    columns: &[
        state("role", "Kind of process: `session`, or the kind of background process."),
        state("user", "The user it works for."),
        state("database", "The database that it is connected to."),
        state("application", "Application name given by the client."),
        state("state", "`active`, `idle in transaction`, or as the database calls it."),
        state(
            "wait_class",
            "What it does: `On CPU`, or waits of one kind: `IO`, `Lock` (queues, on tables and \
             rows), `LWLock` (latches, on memory), `Client`, `IPC`, `Timeout` and others.",
        ),
        state("event", "What it waits for, in the database's terms."),
        state("query_id", "Its statement: the object of `statement` and `statement_text`."),
        state("blockers", "Holders of the lock it waits for: their objects, separated by commas."),
        level("thread", Unit::Count, "Number of its process or thread in the operating system."),
        level("transaction_age_ns", Unit::Nanoseconds, "Time since its transaction began."),
        level("statement_age_ns", Unit::Nanoseconds, "Time since its statement began."),
    ],
};

/// How many sessions there are, at each sample.
pub const SESSIONS: Schema = Schema {
    probe: "sessions",
    doc: "Sessions of clients, at each sample.",
    columns: &[
        level("connected", Unit::Count, "All sessions."),
        level("active", Unit::Count, "Sessions executing a call."),
        level("idle", Unit::Count, "Sessions outside a call and outside a transaction."),
        level(
            "idle_in_transaction",
            Unit::Count,
            "Sessions inside a transaction but outside a call.",
        ),
        level("waiting_for_locks", Unit::Count, "Sessions waiting for a lock."),
    ],
};

/// What single sessions and background processes did since they began; the object is that of
/// [`SESSION`], and for a thread in the background `thread` and its number.
pub const SESSION_STATISTICS: Schema = Schema {
    probe: "session_statistics",
    doc: "Statistics of each recently active session and of each background process.",
    columns: &[
        state("role", "Kind of process, as in `session`."),
        TRANSFERS[0],
        TRANSFERS[1],
        TRANSFERS[2],
        TRANSFERS[3],
        TRANSFERS[4],
        TRANSFERS[5],
        seen("hits", Unit::Count, "Blocks found in the cache."),
        seen("redo_records", Unit::Count, "Redo records generated."),
        seen("redo_bytes", Unit::Bytes, "Redo generated."),
        seen("full_page_images", Unit::Count, "Whole pages written to the redo."),
        charged("cpu_ns", Unit::Nanoseconds, "Time on a processor."),
        charged("run_queue_ns", Unit::Nanoseconds, "Time ready to run but waiting for one."),
        charged("requested_read_bytes", Unit::Bytes, "Bytes returned by read system calls."),
        charged("requested_write_bytes", Unit::Bytes, "Bytes passed to write system calls."),
        charged("charged_read_bytes", Unit::Bytes, "Bytes that had to be fetched from storage."),
        charged("charged_write_bytes", Unit::Bytes, "Bytes sent, or to be sent, to storage."),
    ],
};

/// What the statements did that took most time or were seen at work; the object is the identity of
/// the statement.
pub const STATEMENT: Schema = Schema {
    probe: "statement",
    doc: "The statements that took most time or were sampled, by identifier.",
    columns: &[
        seen("calls", Unit::Count, "Completed executions."),
        seen("total_ns", Unit::Nanoseconds, "Total execution time."),
        seen("rows", Unit::Count, "Rows returned or changed."),
        seen("blocks_hit", Unit::Count, "Blocks found in the cache."),
        seen("blocks_read", Unit::Count, "Blocks read into the cache."),
        seen("blocks_dirtied", Unit::Count, "Blocks it dirtied."),
        seen("blocks_written", Unit::Count, "Blocks it had to write itself."),
        seen("temp_blocks_written", Unit::Count, "Blocks written to temporary files."),
        seen("read_ns", Unit::Nanoseconds, "Time it spent reading."),
        seen("write_ns", Unit::Nanoseconds, "Time it spent writing."),
        seen("redo_bytes", Unit::Bytes, "Redo it generated."),
    ],
};

/// What a statement says: a row when it is first seen. The object is that of [`STATEMENT`].
pub const STATEMENT_TEXT: Schema = Schema {
    probe: "statement_text",
    doc: "The text of each statement seen, once: with placeholders, on one line, truncated.",
    columns: &[state("text", "The statement.")],
};

/// All series of a watched database.
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

const fn level(name: &'static str, unit: Unit, doc: &'static str) -> Column {
    Column { name, unit, kind: Kind::Gauge, source: super::SOURCE, doc }
}

const fn state(name: &'static str, doc: &'static str) -> Column {
    Column { name, unit: Unit::Text, kind: Kind::State, source: super::SOURCE, doc }
}

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
