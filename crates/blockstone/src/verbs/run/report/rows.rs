//! Figures and tables of a run. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Heading, Measure, Merge, Value, bytes, column, count, flow, mean_of, ratio, share, text, time,
    total,
};

const NS: Measure = Measure::Nanoseconds;

/// Makes a column whose measure differs by row.
const fn of_row(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::OfRow, Merge::Never, doc)
}

const fn per(part: &'static str) -> Merge {
    Merge::Per { part, within: "" }
}

const fn quotient(part: &'static str, by: &'static str) -> Merge {
    Merge::Quotient { part, by }
}

rows! {
    /// Single figures of a run: its window, and the sums of its time.
    pub struct Summary {
        /// Label of the phase of the window.
        window: String = text("window"),
        /// Length of the window.
        window_ns: u64 = time("length"),
        /// Sessions that ran.
        sessions: u64 = count("sessions"),
        /// Reason why the window closed.
        stop: Value = text("stop"),
        /// Time of the sessions inside calls.
        db_time_ns: Value = time("database time"),
        /// Processor time of the sessions outside of waits, by its share of the samples.
        cpu_ns: Value = time("CPU"),
        /// Time of the sessions outside of waits, ready to run without a processor, by its share
        /// of the samples.
        run_queue_ns: Value = time("run queue"),
        /// Time of the sessions in wait events, in transit and blocked without an event.
        waits_ns: Value = time("waits"),
        /// Part of the waits in which a server did not work for the call: in transit, or with the
        /// client.
        network_ns: Value = time("network"),
        /// Part of the waits in which threads of a server were blocked without an event of the
        /// server, as the kernel shows it.
        blocked_ns: Value = time("blocked"),
        /// Database time that none of these explains; negative if waits are counted twice.
        remainder_ns: Value = time("remainder"),
        /// Remainder ÷ database time.
        remainder_ratio: Value = share("remainder"),
        /// Mean number of sessions inside a call.
        average_active_sessions: Value = count("active sessions"),
        /// Processor time of the sessions, inside waits too.
        session_cpu_ns: Value = time("session CPU"),
        /// Time of the sessions in the run queue, inside waits too.
        session_run_queue_ns: Value = time("session run queue"),
        /// Processor time inside waits or outside of calls.
        cpu_in_waits_ns: Value = time("CPU in waits"),
        /// Time in the run queue inside waits or outside of calls.
        run_queue_in_waits_ns: Value = time("run queue in waits"),
        /// Processor time of the background processes.
        background_cpu_ns: Value = time("background CPU"),
        /// Transactions that the database rolled back and that were sent again.
        retries: Value = count("retries"),
    }
}

rows! {
    /// Activity of the database.
    pub struct ProfileRow {
        /// Quantity that is counted.
        statistic: &'static str = text("statistic"),
        /// Per second; for a time, time spent in each second.
        per_s: Estimate = of_row("per second").merged(Merge::Mean),
        /// Per commit.
        per_transaction: Value = of_row("per transaction").merged(per("per_s")),
    }
}

rows! {
    /// Events of the sessions.
    pub struct EventRow {
        /// Wait event; CPU and run queue are listed as events too.
        event: String = text("event"),
        /// Completed waits.
        waits: Value = total("waits", Measure::Count),
        /// Total time of all sessions in this event.
        time_ns: Value = total("time", NS),
        /// Mean time of a wait.
        wait_ns_mean: Value = time("mean").merged(quotient("time_ns", "waits")),
        /// Its share of the database time.
        db_time_ratio: Value = share("% DB").merged(per("time_ns")),
        /// Average number of sessions in this event.
        average_active: f64 = count("active"),
        /// Wait class, as Oracle names it.
        wait_class: &'static str = text("class"),
    }
}

rows! {
    /// Events of background processes, which are not part of the database time.
    pub struct BackgroundRow {
        /// Process.
        role: String = text("role"),
        /// Wait event; CPU and run queue are listed as events too.
        event: String = text("event"),
        /// Completed waits.
        waits: Value = total("waits", Measure::Count),
        /// Total time of all processes of the role in this event.
        time_ns: Value = total("time", NS),
        /// Mean time of a wait.
        wait_ns_mean: Value = time("mean").merged(quotient("time_ns", "waits")),
        /// Average number of processes that wait for this event.
        average_active: f64 = count("active"),
        /// Wait class, as Oracle names it.
        wait_class: &'static str = text("class"),
    }
}

rows! {
    /// Time of the sessions by wait class.
    pub struct ClassRow {
        /// Wait class.
        wait_class: &'static str = text("class"),
        /// Time of the sessions in it.
        time_ns: u64 = total("time", NS),
        /// Its share of the database time.
        db_time_ratio: Value = share("of DB time").merged(per("time_ns")),
        /// Average number of sessions in it.
        average_active_sessions: f64 = count("AAS"),
    }
}

const fn transfers(of: Heading) -> [Heading; 11] {
    let (count, size) = (Measure::Count, Measure::Bytes);
    [
        of,
        self::count("read_iops", "reads/s", "Reads a second."),
        mean_of("read_ios", "read_bytes_mean", "size", size, "Mean size of a read."),
        mean_of("read_ios", "read_service_ns_mean", "service", NS, "Mean time of a read."),
        self::count("write_iops", "writes/s", "Writes a second."),
        mean_of(
            "write_ios",
            "write_bytes_mean",
            "size",
            size,
            "Mean size of a write; above the block size, blocks were coalesced.",
        ),
        mean_of("write_ios", "write_service_ns_mean", "service", NS, "Mean time of a write."),
        total("read_ios", "reads", count, "Reads in the window."),
        total("write_ios", "writes", count, "Writes in the window."),
        total("read_bytes", "read", size, "Bytes read in the window."),
        total("write_bytes", "written", size, "Bytes written in the window."),
    ]
}

/// Columns of the table of requests by role.
pub const ROLES: &[Heading] = &transfers(text("role", "role", "Process that sent the requests."));
/// Columns of the table of requests by disk.
pub const DISKS: &[Heading] = &transfers(text("disk", "disk", "Disk of the disk group."));

rows! {
    /// The three accounts of a window.
    pub struct LedgerRow {
        /// Quantity that is counted.
        what: &'static str = text(""),
        /// By the database.
        claimed: Value = of_row("claimed").merged(Merge::Sum),
        /// Charged by the kernel to the processes of the database.
        process: Value = of_row("process").merged(Merge::Sum),
        /// Moved by the device, for all processes.
        device: Value = of_row("device").merged(Merge::Sum),
        /// Charged ÷ claimed.
        process_share: Value = share("÷ claimed").merged(quotient("process", "claimed")),
    }
}

rows! {
    /// Plans of the statements that cause the accounts of the ledger.
    pub struct PlanRow {
        /// Quantity that is counted.
        what: &'static str = text("of"),
        /// How the database executes the statement.
        plan: String = text("plan").prose(),
    }
}

const fn quantile(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, NS, Merge::Never, doc).plain()
}

rows! {
    /// Latencies of operations and events.
    pub struct LatencyRow {
        /// Operation or wait event.
        operation: String = text("operation or event"),
        /// Their number.
        count: u64 = total("count", Measure::Count),
        /// The mean.
        ns_mean: f64 = time("mean").merged(Merge::WeightedBy("count")),
        /// Half take no longer.
        ns_p50: Value = quantile("p50").merged(Merge::Quantile(5_000)),
        /// 99 % take no longer.
        ns_p99: Value = quantile("p99").merged(Merge::Quantile(9_900)),
        /// 99.9 % take no longer.
        ns_p999: Value = quantile("p99.9").merged(Merge::Quantile(9_990)),
        /// The longest.
        ns_max: u64 = time("max").merged(Merge::Greatest),
        /// 90 % take no longer.
        ns_p90: Value = quantile("p90").merged(Merge::Quantile(9_000)),
        /// 99.99 % take no longer.
        ns_p9999: Value = quantile("p99.99").merged(Merge::Quantile(9_999)),
        /// Operations that had not ended with the window: a quantile that they decide is a lower
        /// bound. Unknown for events.
        unfinished: Option<u64> = level("unfinished"),
    }
}

const fn level(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Count, Merge::Last, doc)
}

rows! {
    /// Sessions, rates and latencies checked against each other.
    pub struct LittlesLawRow {
        /// Quantity that is counted.
        what: &'static str = text("what"),
        /// Sessions.
        sessions: u64 = count("sessions"),
        /// Completions a second.
        per_s: f64 = count("per second"),
        /// Sessions ÷ completions a second, less the think time.
        expected_ns: Value =
            time("expected").merged(Merge::Per { part: "sessions", within: "what" }),
        /// Mean latency as measured.
        measured_ns: Value = time("measured").merged(Merge::WeightedBy("per_s")),
        /// Measured ÷ expected.
        ratio: Value = share("÷ expected").merged(quotient("measured_ns", "expected_ns")),
    }
}

rows! {
    /// Figures of a run against those of a calibration.
    pub struct EfficiencyRow {
        /// Figure of this run.
        figure: &'static str = text("figure"),
        /// Figure of the calibration.
        calibrated_figure: &'static str = text("calibrated figure"),
        /// Id of the calibration.
        calibration: String = text("calibration"),
        /// Number in the calibration.
        calibrated: Estimate = of_row("calibrated"),
        /// This run ÷ the calibration.
        ratio: Estimate = ratio("run ÷ calibration"),
    }
}

rows! {
    /// Scans by a statement of a database.
    pub struct StatementRow {
        /// Most blocks per read, where the database has a setting.
        multiblock: Value = count("blocks"),
        /// Sessions that scan.
        parallel: u32 = count("sessions"),
        /// Decimal megabytes a second that the database read.
        mb_per_s: Estimate = count("MB/s"),
        /// Rows a second.
        rows_per_s: Option<Estimate> = count("rows/s").plain(),
        /// Processor time of the database for each row.
        cpu_ns_per_row: Option<Estimate> = time("CPU/row").plain(),
        /// Share of the statements' time in waits for reads.
        read_wait_ratio: Option<f64> = share("waiting"),
        /// Bytes a second that the device read.
        device_bytes_per_s: Option<Estimate> = flow("device").plain(),
        /// Mean size of a read of the device.
        device_read_bytes_mean: Option<f64> = bytes("a read"),
        /// Mean time of a read of the device.
        device_read_ns_mean: Option<f64> = time("takes"),
    }
}

rows! {
    /// Numbers that were not measured.
    pub struct UnmeasuredRow {
        /// Keys of the numbers.
        what: String = text("not measured").answer(),
        /// Reason why.
        why: String = text("why").prose(),
    }
}

rows! {
    /// Waits of scanning statements.
    pub struct StatementWaitRow {
        /// Point of the matrix.
        point: String = text("point"),
        /// Wait event, as the database names it.
        event: String = text("wait"),
        /// Wait class.
        class: &'static str = text("class"),
        /// Time of all sessions in it.
        time_ns: u64 = time("time"),
        /// Share of the time of the statements.
        db_time_ratio: f64 = share("of the time"),
    }
}

rows! {
    /// Scans of the miniature instance past its buffer cache.
    pub struct ScanRow {
        /// Blocks per read.
        multiblock: Option<u64> = count("blocks"),
        /// Sessions that share the scan.
        parallel: u32 = count("sessions"),
        /// Decimal megabytes read a second.
        mb_per_s: Estimate = count("MB/s"),
        /// Reads a second.
        iops: Option<Estimate> = count("reads/s").plain(),
        /// Mean of every read.
        io_ns_mean: Option<Estimate> = time("mean").plain(),
        /// Half of the reads take no longer.
        io_ns_p50: Option<Estimate> = time("p50").plain(),
        /// 99 % of the reads take no longer.
        io_ns_p99: Option<Estimate> = time("p99").plain(),
        /// Direct path read waits a second.
        waits_per_s: Option<f64> = count("waits/s"),
        /// Waits ÷ reads.
        waits_ratio: Option<f64> = share("÷ reads"),
        /// Mean wait, as a database reports it.
        wait_ns_mean: Value = time("wait"),
        /// Mean wait ÷ mean read.
        wait_mean_ratio: Value = share("÷ mean"),
    }
}

rows! {
    /// One scan of the whole table at the measured rates.
    pub struct WholeScanRow {
        /// Blocks per read.
        multiblock: Value = count("blocks"),
        /// Sessions that share the scan.
        parallel: u32 = count("sessions"),
        /// Time from the first read to the last.
        elapsed_ns: Value = time("elapsed"),
        /// Reads of all sessions.
        ios: Option<f64> = count("reads"),
        /// Waits of all sessions that a database would report.
        waits: Option<f64> = count("waits"),
        /// Time of all waits, of all sessions.
        wait_ns: Option<f64> = time("total wait"),
        /// Mean wait, as a database reports it.
        wait_ns_mean: Value = time("wait"),
    }
}

rows! {
    /// Reads and waits of scans in numbers.
    pub struct ScanCountRow {
        /// Blocks per read.
        multiblock: Option<u64> = count("blocks"),
        /// Sessions that share the scan.
        parallel: u32 = count("sessions"),
        /// Label of the phase.
        point: String = text("point"),
        /// Bytes per read.
        read_bytes: Option<u64> = bytes("bytes per read"),
        /// Reads that a session may keep in flight.
        slots: Option<u64> = count("slots"),
        /// Length of the window.
        window_ns: u64 = time("window"),
        /// Reason why the window closed.
        stop: &'static str = text("stop"),
        /// Reads in the window.
        ios: Option<u64> = count("reads"),
        /// Time of all reads.
        io_ns: Option<u64> = time("read time"),
        /// Average number of reads in flight.
        outstanding: Option<f64> = count("outstanding"),
        /// Direct path read waits in the window.
        waits: Option<u64> = count("waits"),
        /// Time of all waits.
        wait_ns: Option<u64> = time("wait time"),
        /// Half of the waits are no longer.
        wait_ns_p50: Value = time("p50 wait"),
        /// 99 % of the waits are no longer.
        wait_ns_p99: Value = time("p99 wait"),
        /// Time of all waits ÷ time of all reads.
        wait_time_ratio: Option<f64> = share("wait time ÷ read time"),
        /// Statements that ended in the window.
        statements: Option<u64> = count("statements"),
        /// Mean size of a read, as the database counts them.
        read_bytes_mean: Option<f64> = bytes("size of a read"),
    }
}

rows! {
    /// The same bytes with few and with many sessions.
    pub struct ScanEffectRow {
        /// Blocks per read.
        multiblock: Option<u64> = count("blocks"),
        /// Sessions before.
        from_parallel: u32 = count("from sessions"),
        /// Sessions after.
        to_parallel: u32 = count("to sessions"),
        /// Throughput after ÷ before.
        mb_per_s_ratio: Value = ratio("MB/s"),
        /// Mean of every read.
        io_ns_mean_ratio: Value = ratio("mean of a read"),
        /// Waits for each byte.
        waits_ratio: Value = ratio("waits"),
        /// Mean wait.
        wait_ns_mean_ratio: Value = ratio("mean wait"),
        /// Wait time for each byte.
        wait_time_ratio: Value = ratio("wait time"),
    }
}

rows! {
    /// Differences between sizes of reads.
    pub struct ScanSpreadRow {
        /// Sessions that share the scan.
        parallel: u32 = count("sessions"),
        /// Blocks of the fastest read.
        fastest_multiblock: Option<u64> = count("fastest"),
        /// Blocks of the slowest read.
        slowest_multiblock: Option<u64> = count("slowest"),
        /// Throughput of the fastest ÷ that of the slowest.
        ratio: Estimate = ratio("fastest ÷ slowest"),
    }
}

rows! {
    /// Figures without noise and with it.
    pub struct NoiseRow {
        /// Figure that is compared.
        figure: String = text("figure"),
        /// Without noise.
        quiet: Estimate = of_row("quiet"),
        /// With noise.
        noisy: Estimate = of_row("noisy"),
        /// With ÷ without noise.
        ratio: Value = share("noisy ÷ quiet"),
        /// Whether the difference is established.
        outcome: &'static str = text("result").answer(),
        /// Unit of the figure for people.
        of: String = text("unit"),
    }
}

rows! {
    /// The noise writers.
    pub struct WritersRow {
        /// Number of noise writers.
        writers: u32 = count("writers"),
        /// How they write: `redo`, `direct` or `buffered`.
        mode: &'static str = text("mode"),
        /// Bytes of each write.
        write_bytes: u64 = bytes("write"),
        /// Bytes a second of all writers.
        bytes_per_s: Value = flow("together"),
        /// Their writes a second.
        iops: Value = count("writes/s"),
        /// Writes that completed.
        writes: Value = count("writes"),
        /// Mean latency of a write.
        latency_ns_mean: Value = time("mean"),
        /// Half of the writes take no longer.
        latency_ns_p50: Value = time("p50"),
        /// 99 % of the writes take no longer.
        latency_ns_p99: Value = time("p99"),
        /// Length of the windows with noise.
        window_ns: u64 = time("window"),
    }
}

rows! {
    /// Transactions of order entry.
    pub struct TransactionRow {
        /// Kind of transaction.
        transaction: &'static str = text("transaction"),
        /// Completed in the window.
        count: u64 = count("count"),
        /// Its share of all transactions.
        ratio: f64 = share("of all"),
        /// Share that was asked for.
        asked_ratio: Value = share("asked"),
        /// Completed a second.
        per_s: Value = count("per second"),
        /// Mean response time.
        ns_mean: Value = time("mean"),
        /// Half take no longer.
        ns_p50: Value = time("p50").plain(),
        /// 90 % take no longer.
        ns_p90: Value = time("p90").plain(),
        /// 99 % take no longer.
        ns_p99: Value = time("p99").plain(),
        /// Rows that one visited, on average.
        rows_mean: Value = count("rows"),
        /// Ended with an error.
        failed: u64 = count("failed"),
    }
}

rows! {
    /// Cost of a transaction or of a table.
    pub struct CostRow {
        /// Quantity, as in the load profile.
        what: &'static str = text(""),
        /// Amount of one.
        amount: Value = of_row("of one").answer(),
    }
}

rows! {
    /// Speed at which tables are made.
    pub struct PaceRow {
        /// Until when it is counted.
        until: &'static str = text(""),
        /// Decimal megabytes of tables a second, of one session.
        mb_per_s: Value = count("MB/s"),
        /// Rows a second, of one session.
        rows_per_s: Value = count("rows/s"),
        /// Mean time of a table.
        ns_mean: Value = time("a table"),
        /// Tables that were made in the window.
        tables: u64 = count("tables"),
        /// Mean number of rows of a table.
        rows_mean: Value = count("rows"),
        /// Mean size of a table, as the database reports it.
        bytes_mean: Value = bytes("size"),
    }
}

rows! {
    /// Steps of making a table.
    pub struct StepRow {
        /// The step.
        step: &'static str = text("step"),
        /// Completed in the window.
        count: u64 = count("count"),
        /// Mean time.
        ns_mean: Value = time("mean"),
        /// Half take no longer.
        ns_p50: Value = time("p50").plain(),
        /// 90 % take no longer.
        ns_p90: Value = time("p90").plain(),
        /// 99 % take no longer.
        ns_p99: Value = time("p99").plain(),
    }
}
