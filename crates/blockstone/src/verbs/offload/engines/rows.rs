//! Figures of runs on cells. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{Measure, Value, bytes, count, flag, level, ratio, share, text, time};

rows! {
    /// Single figures of the runs.
    pub struct Summary {
        /// `postgres`.
        engine: &'static str = text("engine"),
        /// Its version.
        release: String = text("release"),
        /// Rows of the table.
        rows: u64 = count("rows"),
        /// Rows that the filter selects.
        own_rows: u64 = count("own rows"),
        /// Seed of the rows, in digits.
        seed: String = text("seed"),
        /// Number of processors that host and cells share.
        processors: Option<u32> = level("processors", Measure::Count),
    }
}

rows! {
    /// Runs.
    pub struct EngineRow {
        /// Query that was asked.
        query: &'static str = text("query"),
        /// Whether the cells or the host filter rows.
        filtered_by: &'static str = text("filtered by"),
        /// Servers that hold a part of the table.
        cells: u32 = level("cells", Measure::Count),
        /// Time of the statement at the host: the shortest of its rounds.
        time_ns: f64 = time("time"),
        /// The busiest part: `hosts`, `cells`, or `processors` that both share.
        bound_by: Option<&'static str> = text("bound by"),
        /// Share of the time for which that part was busy.
        bound_share: Option<f64> = share("busy"),
        /// Bytes of the blocks that the plan asks of the table.
        disk_bytes: u64 = bytes("read"),
        /// Payload from the cells to the host.
        received_bytes: u64 = bytes("received"),
        /// Received ÷ read.
        received_of_read: Value = share("of read"),
        /// Payload and headers of all connections to cells, both ways.
        wire_bytes: u64 = bytes("wire"),
        /// Processor time of the backend of the host.
        host_cpu_ns: Value = time("host CPU"),
        /// Processor time of the backends of all cells.
        cell_cpu_ns: Value = time("cell CPU"),
        /// Its name in other tables.
        run: String = text("run"),
        /// Whether the condition may be left to the cells.
        pushdown: bool = flag("pushdown"),
        /// Size of the table in the cells.
        table_bytes: u64 = bytes("table"),
        /// Payload from the host to the cells.
        sent_bytes: u64 = bytes("sent"),
        /// Bytes that the cells were allowed to filter.
        eligible_bytes: Option<u64> = bytes("eligible"),
        /// Bytes of these that they returned.
        returned_bytes: Option<u64> = bytes("returned"),
        /// Struck through where it misleads.
        returned_of_eligible: Option<f64> = share("returned ÷ eligible"),
        /// (eligible − returned) ÷ read.
        saved_of_all: Option<f64> = share("saved of all"),
    }
}

rows! {
    /// Time of each round.
    pub struct RoundRow {
        /// The run.
        run: String = text("run"),
        /// From 1.
        round: u64 = count("round"),
        /// Time of the statement at the host.
        time_ns: f64 = time("time"),
    }
}

rows! {
    /// Bytes that were counted in several ways.
    pub struct EvidenceRow {
        /// The run.
        run: String = text("run"),
        /// Payload and headers, from the counters of each connection.
        wire_bytes: u64 = bytes("sockets"),
        /// Bytes counted by the interface of the network namespace.
        interface_bytes: Value = bytes("interface"),
        /// Sockets ÷ interface − 1.
        apart: String = text("apart"),
        /// Payload that either end sent again.
        resent_bytes: u64 = bytes("sent again"),
        /// Blocks of the table that were in shared buffers × 8 KiB.
        hit_bytes: u64 = bytes("in buffers"),
        /// Blocks that the cells say they read × 8 KiB.
        read_bytes: u64 = bytes("not there"),
        /// Returned to the cells' backends, as the kernel counts.
        file_bytes: Value = bytes("system calls"),
        /// Bytes read that were not in the page cache.
        storage_bytes: Value = bytes("storage"),
    }
}

rows! {
    /// Gains of the filter at the cells.
    pub struct PushdownRow {
        /// Servers that hold a part of the table.
        cells: u32 = level("cells", Measure::Count),
        /// Time of the full ingest ÷ that of the filtered one.
        filtered: Value = ratio("full ÷ filtered"),
        /// The least and the greatest quotient of a round.
        rounds: String = text("in each round"),
        /// Time of the filtered ingest with the filter at the host ÷ with it at the cells.
        pushdown_ingest: Value = ratio("filter at the host ÷ at the cells"),
        /// Time of the count with the filter at the host ÷ with it at the cells.
        pushdown_count: Value = ratio("the same, count"),
        /// Bytes received by the filtered ingest with the filter at the host ÷ with it at the
        /// cells.
        bytes_ingest: Value = ratio("bytes"),
    }
}

rows! {
    /// Predictions, and what was measured later.
    pub struct PredictedRow {
        /// Query that was asked.
        query: &'static str = text("query"),
        /// Whether the condition may be left to the cells.
        pushdown: bool = flag("pushdown"),
        /// Servers that hold a part of the table.
        cells: u32 = level("cells", Measure::Count),
        /// By the model, fitted on all runs of the same query with fewer cells.
        predicted_ns: f64 = time("predicted"),
        /// Time of the statement that was measured.
        measured_ns: f64 = time("measured"),
        /// Predicted ÷ measured − 1.
        error: f64 = share("error"),
        /// The part that binds, by the model.
        binding: &'static str = text("binds"),
    }
}

rows! {
    /// Statements that the host sends.
    pub struct PlanRow {
        /// The run.
        run: String = text("run"),
        /// The statement, from the plan of the host.
        remote: String = text("sent to each cell"),
    }
}
