//! Load of a database according to its own history: what AWR, Statspack and similar tools record of
//! the time between two snapshots. It is imported, never measured here. The object is
//! `database/instance`, or `database/*` if only the whole cluster is known.

use super::DB;
use crate::column::{Column, Schema, Unit};

/// Load of an instance. Counters begin at zero with the first imported snapshot, and every gap
/// contains a row in which nothing is measured. Rates are increases divided by the increase of
/// `elapsed_ns`, not by the difference of the snapshots' times, which are rounded.
pub const LOAD: Schema = Schema {
    probe: "database_load",
    doc: "The load of a database instance between snapshots that its own history kept.",
    columns: &[
        DB.time("elapsed_ns", "Exact length of the intervals between snapshots."),
        DB.count("read_ios", "Read requests, of all processes of the instance."),
        DB.bytes("read_bytes", "Bytes of them."),
        DB.count(
            "write_ios",
            "Write requests, redo and control files included; a request that a \
                  volume manager mirrors counts once.",
        ),
        DB.bytes("write_bytes", "Bytes of them."),
        DB.bytes("redo_bytes", "Redo generated."),
        DB.count("redo_writes", "Writes by the log writer, as the database counts them."),
        DB.count(
            "data_write_ios",
            "Write requests of database writers and of direct writes, \
                  without redo.",
        ),
        DB.count("commits", "Transactions committed."),
        DB.count("logical_reads", "Blocks visited."),
        DB.count("physical_reads", "Blocks read."),
        DB.time("db_time_ns", "Time inside calls of sessions."),
        DB.time("cpu_ns", "Processor time of these calls."),
        DB.time("background_cpu_ns", "Processor time of background processes."),
        DB.time("waits_ns", "Time of the waits of sessions that are not idle."),
        DB.count(
            "untimed_waits",
            "Waits for storage of less than a microsecond each: they were counted, but not timed.",
        ),
        DB.time(
            "host_busy_ns",
            "Time that the host's processors were busy; of hardware threads \
                 where it has them.",
        ),
        DB.time("host_idle_ns", "Time that they were idle."),
        DB.count("function_read_ios", "Read requests by the table of I/O by function."),
        DB.bytes("function_read_bytes", "Bytes of them."),
        DB.count("function_write_ios", "Write requests by the table of I/O by function."),
        DB.bytes("function_write_bytes", "Bytes of them."),
        DB.count("data_ios", "Requests of tablespaces whose name says nothing else."),
        DB.count("index_ios", "Requests of tablespaces of indexes, by their names."),
        DB.count("undo_ios", "Requests of tablespaces of undo, by their names."),
        DB.count("temporary_ios", "Requests of temporary tablespaces, by their names."),
        DB.count("system_ios", "Requests of the tablespaces SYSTEM and SYSAUX."),
        level(
            "most_averaging_ns",
            Unit::Nanoseconds,
            "Over which the columns `most_…` count: they are the highest counts of this time \
             inside the interval.",
        ),
        level("most_read_ios", Unit::Count, "Most read requests in that time."),
        level("most_write_ios", Unit::Count, "Most write requests in that time."),
        level("most_read_bytes", Unit::Bytes, "Most bytes read in that time."),
        level("most_write_bytes", Unit::Bytes, "Most bytes written in that time."),
        level("most_redo_bytes", Unit::Bytes, "Most redo in that time."),
        level("processors", Unit::Count, "Hardware threads of the host."),
        level("cores", Unit::Count, "Cores of the host."),
        level("sockets", Unit::Count, "Sockets of the host."),
        level("host_memory_bytes", Unit::Bytes, "Memory of the host."),
        level("shared_memory_bytes", Unit::Bytes, "Memory shared by the instance: the SGA."),
        level("private_memory_bytes", Unit::Bytes, "Private memory of its sessions: the PGA."),
        level("size_bytes", Unit::Bytes, "Bytes of the database's data files."),
        level("sessions", Unit::Count, "Sessions connected."),
    ],
};

/// The busiest statements of an interval; the object is `database/instance/statement`.
pub const LOAD_STATEMENT: Schema = Schema {
    probe: "database_load_statement",
    doc: "Statements that a database's own history names as its largest.",
    columns: &[
        DB.count("executions", "Executions."),
        DB.time("elapsed_ns", "Time of their calls."),
        DB.time("cpu_ns", "Processor time of them."),
        DB.count("physical_reads", "Blocks that they read from storage."),
        DB.count("read_ios", "Read requests of them."),
        DB.count("logical_reads", "Blocks that they visited."),
    ],
};

/// Predictions of the database for another size of its buffer cache; the object is
/// `database/instance/pool/size in bytes`.
pub const LOAD_ADVICE: Schema = Schema {
    probe: "database_load_advice",
    doc: "Physical reads that a database expects with other sizes of its buffer cache.",
    columns: &[
        level("size_ppm", Unit::Ppm, "This size, as a share of the present one."),
        level("physical_reads", Unit::Count, "Blocks that would be read in the same time."),
    ],
};

/// Statistics, as the database names them, that account for storage that filters; the object is
/// `database/instance/statistic`.
pub const LOAD_STATISTIC: Schema = Schema {
    probe: "database_load_statistic",
    doc: "Statistics of a database about its I/O, by the database's own names.",
    columns: &[DB.count("total", "What it counted, in the unit that its name implies.")],
};

/// All series of an imported history.
pub const OF_LOAD: &[&Schema] = &[&LOAD, &LOAD_STATEMENT, &LOAD_ADVICE, &LOAD_STATISTIC];

const fn level(name: &'static str, unit: Unit, doc: &'static str) -> Column {
    DB.level(name, unit, doc)
}

#[cfg(test)]
mod tests {
    use super::super::{ALL, MONITORED, OF_SESSIONS};
    use super::*;

    #[test]
    fn no_other_series_has_these_names() {
        let others = ALL.iter().chain(MONITORED).chain(OF_SESSIONS).chain([&&crate::load::SERIES]);
        let others: Vec<&str> = others.map(|schema| schema.probe).collect();
        for schema in OF_LOAD {
            assert!(!others.contains(&schema.probe), "{}", schema.probe);
        }
    }
}
