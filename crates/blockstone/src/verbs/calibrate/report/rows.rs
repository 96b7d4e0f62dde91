//! Figures and tables of a calibration. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{Missing, Value, bytes, count, flag, flow, ratio, share, text, time};

rows! {
    /// Single figures of a calibration.
    pub struct Summary {
        /// Movement of the reference point: (greatest − least) ÷ mean of its windows.
        drift_ratio: Result<f64, Missing> = share("drift"),
        /// Additional time of a flush for each mebibyte written before it.
        flush_ns_per_mib: Result<Estimate, Missing> = time("flush per MiB"),
        /// Bytes that each round of `--buffered-writes` wrote in each of its ways.
        buffered_written_bytes: Result<u64, Missing> = bytes("buffered writes"),
        /// Bytes that `--precondition` wrote, in order and at random.
        precondition_written_bytes: Result<u64, Missing> = bytes("preconditioning"),
        /// Those of them that it wrote in order, in passes over the whole device or file.
        precondition_pass_bytes: Result<u64, Missing> = bytes("in order"),
        /// Whether the last five rounds of `--precondition` were steady, as SNIA's Performance Test
        /// Specification defines it: their range is at most 20 % of their mean, that of the line
        /// fitted through them 10 %.
        precondition_settled: Result<bool, Missing> = flag("settled"),
        /// Target whose random reads take the longest, by more than chance.
        slowest_target: Value = text("slowest"),
    }
}

rows! {
    /// Random reads by operations in flight.
    pub struct ConcurrencyRow {
        /// Reads in flight.
        in_flight: u32 = count("in flight"),
        /// Reads a second by as many threads, each waiting for one.
        blocking_iops: Value = count("blocking").plain(),
        /// Median latency of a blocking read.
        blocking_latency_ns_p50: Value = time("p50").plain(),
        /// 99 % of the blocking reads take no longer.
        blocking_latency_ns_p99: Value = time("p99").plain(),
        /// Context switches for each blocking read.
        blocking_switches_per_io: Value = count("sw/IO"),
        /// Processor time for each blocking read.
        blocking_cpu_ns_per_io: Value = time("CPU/IO"),
        /// Reads a second by one thread with as many in flight.
        async_iops: Value = count("async").plain(),
        /// Median latency of an asynchronous read.
        async_latency_ns_p50: Value = time("p50").plain(),
        /// 99 % of the asynchronous reads take no longer.
        async_latency_ns_p99: Value = time("p99").plain(),
        /// Context switches for each asynchronous read.
        async_switches_per_io: Value = count("sw/IO"),
        /// Processor time for each asynchronous read.
        async_cpu_ns_per_io: Value = time("CPU/IO"),
    }
}

rows! {
    /// Large reads by number of streams.
    pub struct StreamsRow {
        /// Readers, each of which waits for one read of 1 MiB.
        streams: u32 = count("streams"),
        /// Bytes a second if each reads a part of its own in order.
        sequential_bytes_per_s: Value = flow("in order"),
        /// Median latency of a read in order.
        sequential_latency_ns_p50: Value = time("p50").plain(),
        /// Bytes a second if each reads at random places.
        random_bytes_per_s: Value = flow("random"),
        /// Median latency of a read at a random place.
        random_latency_ns_p50: Value = time("p50").plain(),
    }
}

rows! {
    /// Random reads and writes together.
    pub struct MixRow {
        /// How many of 100 operations are reads, and writes.
        mix: String = text("reads:writes"),
        /// Operations a second.
        iops: Estimate = count("IOPS"),
        /// Median latency of all operations.
        latency_ns_p50: Estimate = time("p50").plain(),
        /// 99 % of all operations take no longer.
        latency_ns_p99: Estimate = time("p99").plain(),
        /// Operations a second if the device either reads or writes: 1 ÷ (r/R + w/W).
        formula_iops: Value = count("1/(r/R+w/W)"),
        /// Operations a second if reads and writes have limits of their own: the lesser of R/r and
        /// W/w.
        separate_iops: Value = count("min(R/r, W/w)"),
    }
}

rows! {
    /// Loads of the store that the storage was measured for.
    pub struct StoreRow {
        /// Name of the load.
        load: String = text("load"),
        /// Kind of the operations, with their size; writes with the flush that follows each.
        operation: String = text("operation"),
        /// Operations at the same time.
        in_flight: u32 = count("in flight"),
        /// Operations a second.
        iops: Estimate = count("per s"),
        /// Bytes a second.
        bytes_per_s: Estimate = flow("bytes/s").plain(),
        /// Mean latency.
        latency_ns_mean: Estimate = time("mean").plain(),
        /// Median latency.
        latency_ns_p50: Estimate = time("p50").plain(),
        /// 99 % of the operations take no longer.
        latency_ns_p99: Estimate = time("p99"),
        /// 99.9 % of the operations take no longer.
        latency_ns_p999: Estimate = time("p99.9").plain(),
    }
}

rows! {
    /// Reads at a fixed rate.
    pub struct GivenRateRow {
        /// How intended starts are spaced.
        arrivals: &'static str = text("arrivals"),
        /// Intended starts a second.
        intended_per_s: f64 = count("intended/s"),
        /// Reads completed a second.
        iops: Estimate = count("IOPS"),
        /// Median latency, from the intended start.
        latency_ns_p50: Estimate = time("p50").plain(),
        /// 99 % of the reads take no longer.
        latency_ns_p99: Estimate = time("p99").plain(),
        /// 99.9 % of the reads take no longer.
        latency_ns_p999: Estimate = time("p99.9").plain(),
        /// Latency of the slowest read.
        latency_ns_max: u64 = time("max"),
        /// Mean delay of a submission behind its intended start.
        lag_ns_mean: f64 = time("mean lag"),
        /// Longest delay of a submission behind its intended start.
        lag_ns_max: u64 = time("max lag"),
    }
}

rows! {
    /// Commits by sync method.
    pub struct CommitRow {
        /// How a commit is made durable.
        sync_method: &'static str = text("one committer"),
        /// Median latency of a commit that overwrites written blocks.
        overwrite_latency_ns_p50: Value = time("overwrite p50").plain(),
        /// 99 % of the overwriting commits take no longer.
        overwrite_latency_ns_p99: Value = time("p99").plain(),
        /// Overwriting commits a second.
        overwrite_commits_per_s: Value = count("per s").plain(),
        /// Median latency of a commit that grows the file.
        append_latency_ns_p50: Value = time("append p50").plain(),
        /// 99 % of the appending commits take no longer.
        append_latency_ns_p99: Value = time("p99").plain(),
        /// Appending commits a second.
        append_commits_per_s: Value = count("per s").plain(),
    }
}

rows! {
    /// Commits by number of committers.
    pub struct CommittersRow {
        /// Threads that commit.
        committers: u32 = count("committers"),
        /// Commits a second of all threads.
        commits_per_s: Estimate = count("commits/s"),
        /// Median latency of a commit.
        latency_ns_p50: Estimate = time("p50").plain(),
        /// 99 % of the commits take no longer.
        latency_ns_p99: Estimate = time("p99").plain(),
        /// Cache flushes of the device in the window.
        device_flushes: Option<u64> = count("flushes"),
        /// Commits that one flush made durable.
        commits_per_flush: Result<f64, Missing> = count("commits/flush"),
    }
}

rows! {
    /// Flushes by bytes written before them.
    pub struct FlushTimeRow {
        /// Bytes written past the page cache before each flush.
        unflushed_bytes: u64 = bytes("written before"),
        /// Median time of the flush, fdatasync(2).
        flush_ns_p50: Estimate = time("p50"),
        /// Shortest time of a flush.
        flush_ns_min: u64 = time("min"),
        /// Longest time of a flush.
        flush_ns_max: u64 = time("max"),
        /// Number of flushes that were timed.
        flushes: u64 = count("flushes"),
    }
}

rows! {
    /// The same bytes written in three ways.
    pub struct BufferedRow {
        /// When the bytes count as written.
        way: &'static str = text("writes of 1 MiB in order"),
        /// Bytes a second.
        bytes_per_s: Estimate = flow("rate"),
        /// Number of rounds in which all bytes were written.
        rounds: u64 = count("rounds"),
    }
}

rows! {
    /// Visits of cached blocks.
    pub struct VisitsRow {
        /// Sessions at the same time, each in a thread.
        sessions: u64 = count("sessions"),
        /// Blocks visited per CPU-second of these sessions.
        visits_per_core_s: Estimate = count("blocks per CPU-second"),
        /// Blocks visited per CPU-second, divided by those of one session alone.
        ratio: Value = ratio("of one alone"),
        /// Share of the time in which the sessions had a processor: the rest went to other
        /// processes and to
        /// the hypervisor.
        on_processor_ratio: Value = share("on CPU"),
        /// Number of turns in which it was measured.
        turns: u64 = count("turns"),
    }
}

rows! {
    /// Small and large reads together.
    pub struct MatrixRow {
        /// Small random reads in flight.
        small_in_flight: u32 = count("small"),
        /// Large sequential reads in flight.
        large_in_flight: u32 = count("large"),
        /// Small reads a second.
        small_iops: Value = count("small-read IOPS").plain(),
        /// Median latency of the small reads.
        small_latency_ns_p50: Value = time("p50").plain(),
        /// 99 % of the small reads take no longer.
        small_latency_ns_p99: Value = time("p99").plain(),
        /// Throughput of the large reads.
        large_bytes_per_s: Value = flow("large reads"),
    }
}

rows! {
    /// Rounds of random writes before the measurement.
    pub struct RoundRow {
        /// Number of the round.
        round: u64 = count("round"),
        /// Bytes written in the round.
        written_bytes: u64 = bytes("written"),
        /// Writes a second.
        iops: Estimate = count("writes"),
    }
}

rows! {
    /// Evidence of three layers about the same windows.
    pub struct EvidenceRow {
        /// The load.
        point: String = text("point"),
        /// Bytes that the load generator completed.
        completed_bytes: u64 = bytes("completed"),
        /// Bytes that the kernel charged to this process.
        process_bytes: Result<u64, Missing> = bytes("process"),
        /// Bytes charged ÷ bytes completed.
        process_ratio: Result<f64, Missing> = ratio("÷ completed"),
        /// Bytes that the top device moved in this direction.
        device_bytes: Option<u64> = bytes("device"),
        /// Bytes moved ÷ bytes completed.
        device_ratio: Option<f64> = ratio("÷ completed"),
        /// Requests of the top device.
        device_ios: Option<u64> = count("requests"),
        /// Mean time of a request of the top device.
        device_ns_mean: Option<f64> = time("mean"),
        /// Cache flushes that reached the chain of devices.
        device_flushes: Option<u64> = count("flushes"),
        /// Blocks whose stamp was checked.
        stamps_verified: u64 = count("stamps"),
        /// Blocks whose payload was checked.
        checksums_verified: u64 = count("payloads"),
        /// Blocks that differ from what was written.
        mismatches: u64 = count("mismatches"),
        /// Operations that failed.
        failed_ops: u64 = count("failed"),
        /// Why the window ended.
        stop: &'static str = text("ended by"),
        /// Pages of the files that this process added to the page cache; direct I/O adds none.
        added_pages: Option<u64> = count("cached pages"),
    }
}

rows! {
    /// Rates of all points.
    pub struct RateRow {
        /// The load.
        point: String = text("point"),
        /// The load in words.
        load: String = text("load"),
        /// Operations a second.
        iops: Estimate = count("IOPS"),
        /// Bytes a second.
        bytes_per_s: Estimate = flow("throughput"),
        /// Operations in the windows.
        ios: u64 = count("I/Os"),
        /// Length of the windows.
        measured_ns: u64 = time("measured"),
        /// Windows that were pooled.
        windows: u32 = count("windows"),
        /// Throughput of the load in the background.
        background_bytes_per_s: Value = flow("background"),
        /// Rules that warn of this point, separated by commas.
        warned_by: Value = text("warned by"),
    }
}

rows! {
    /// Latencies of all points.
    pub struct LatencyRow {
        /// The load.
        point: String = text("point"),
        /// Latency of the fastest operation.
        latency_ns_min: u64 = time("min"),
        /// Mean latency.
        latency_ns_mean: Estimate = time("mean"),
        /// Half of the operations take no longer.
        latency_ns_p50: Estimate = time("p50"),
        /// 90 % of the operations take no longer.
        latency_ns_p90: Estimate = time("p90"),
        /// 99 % of the operations take no longer.
        latency_ns_p99: Estimate = time("p99"),
        /// 99.9 % of the operations take no longer.
        latency_ns_p999: Estimate = time("p99.9"),
        /// 99.99 % of the operations take no longer.
        latency_ns_p9999: Estimate = time("p99.99"),
        /// Latency of the slowest operation.
        latency_ns_max: u64 = time("max"),
        /// Operations that had not completed at the window's end: they count as at least as long as
        /// they had lasted, and a quantile that they decide is a lower bound (≥).
        unfinished: Option<u64> = count("unfinished"),
        /// Mean delay of a submission behind its intended start.
        lag_ns_mean: f64 = time("mean lag"),
        /// Longest delay of a submission behind its intended start.
        lag_ns_max: u64 = time("max lag"),
    }
}

rows! {
    /// Processor cost of all points.
    pub struct CostRow {
        /// The load.
        point: String = text("point"),
        /// User time for each operation.
        cpu_user_ns_per_io: Option<f64> = time("user/IO"),
        /// System time for each operation.
        cpu_system_ns_per_io: Option<f64> = time("system/IO"),
        /// Context switches for each operation because a thread blocked.
        switches_voluntary_per_io: Option<f64> = count("voluntary switches/IO"),
        /// Context switches for each operation because a thread was preempted.
        switches_involuntary_per_io: Option<f64> = count("involuntary switches/IO"),
        /// Time without a processor for each operation.
        run_queue_ns_per_io: Option<f64> = time("run queue/IO"),
        /// Share of all processors that was busy.
        host_busy_ratio: Option<f64> = share("processors busy"),
        /// Share of all processors that other processes used, interrupts aside.
        foreign_busy_ratio: Option<f64> = share("other processes"),
        /// Share of the time in which the hypervisor ran other guests.
        steal_ratio: Option<f64> = share("stolen"),
    }
}

rows! {
    /// Loads of all points.
    pub struct LoadRow {
        /// The point that the load belongs to.
        point: String = text("point"),
        /// Whether it is the load that was `measured` or the one in the `background`.
        part: &'static str = text("part"),
        /// Question that the point answers: `random-read`, `commit`, `cache-map` …
        group: String = text("group"),
        /// Engine that submitted the load: `psync`, `uring`, `null` or `sim`.
        engine: String = text("engine"),
        /// Kind of its operations: `read`, `write`, `commit` or `mixed`.
        operation: &'static str = text("operation"),
        /// Number of reads in 100 operations of a mix.
        read_pct: Value = count("reads of 100"),
        /// Order in which blocks are visited: `random`, `sequential` or `append`.
        access: String = text("access"),
        /// Bytes of an operation.
        block_bytes: u64 = bytes("block"),
        /// Threads of the load.
        workers: u32 = count("workers"),
        /// Operations that each thread keeps in flight.
        depth_per_worker: u32 = count("depth"),
        /// Bytes of the file that the load visits.
        span_bytes: u64 = bytes("span"),
        /// Offset in the file at which these bytes begin.
        offset_bytes: u64 = bytes("from"),
        /// How a commit is made durable.
        sync_method: Value = text("sync"),
        /// Whether the page cache is bypassed.
        direct: bool = flag("direct"),
        /// How intended starts are spaced. In a closed loop, an operation starts as soon as one
        /// completes.
        arrivals: Value = text("arrivals"),
        /// Intended starts a second of all threads.
        intended_per_s: Value = count("intended/s"),
        /// Seed for the choice of blocks and for the data, in digits.
        seed: String = text("seed"),
    }
}

rows! {
    /// Targets measured as one.
    pub struct TargetRow {
        /// The directory, file or device.
        target: String = text("target"),
        /// Device of the target: the top of its chain, or else its file system.
        device: String = text("on"),
        /// Part of the target in the random reads at max_iops, a second.
        iops: Value = count("IOPS"),
        /// Mean latency of the random reads on it.
        latency_ns_mean: Value = time("mean").plain(),
        /// Part of the target in the large reads at max_mbps, bytes a second.
        bytes_per_s: Value = flow("large reads"),
        /// Mean latency of the large reads on it.
        large_latency_ns_mean: Value = time("mean").plain(),
        /// Part of the target in the random writes at max_write_iops, a second.
        write_iops: Value = count("writes"),
        /// Mean latency of the random writes on it.
        write_latency_ns_mean: Value = time("mean").plain(),
    }
}

rows! {
    /// Targets before they were measured.
    pub struct TargetEvidenceRow {
        /// The directory, file or device.
        target: String = text("target"),
        /// Devices of the target, from the top of the chain down.
        chain: String = text("devices"),
        /// Whether the page cache was bypassed.
        direct: String = text("direct I/O"),
        /// Size of the file, where it is one.
        size_bytes: Option<u64> = bytes("file"),
        /// Bytes of the file without a block on the device.
        hole_bytes: Option<u64> = bytes("holes"),
        /// Bytes of the file that were allocated and never written.
        unwritten_bytes: Option<u64> = bytes("unwritten"),
        /// Bytes of the file that were sampled.
        sampled_bytes: Option<u64> = bytes("sampled"),
        /// Bytes of the sample that LZ4 leaves.
        lz4_bytes: Option<u64> = bytes("left by LZ4"),
    }
}

rows! {
    /// Files that were read and written on targets, and their layout.
    pub struct TargetFileRow {
        /// The directory, file or device.
        target: String = text("target"),
        /// File that was read and written.
        file: String = text("file"),
        /// Whether Blockstone wrote the file.
        ours: bool = flag("ours"),
        /// Bytes allocated to the file.
        allocated_bytes: u64 = bytes("allocated"),
        /// Number of extents of the file.
        extents: u64 = count("extents"),
        /// Bytes in extents that were written.
        mapped_bytes: u64 = bytes("mapped"),
        /// Bytes in extents stored compressed, encrypted or inside the inode.
        encoded_bytes: u64 = bytes("encoded"),
        /// Bytes in extents shared with another file.
        shared_bytes: u64 = bytes("shared"),
        /// Bytes of the sample in blocks of zeros.
        zero_bytes: Option<u64> = bytes("zeros"),
        /// Bytes of the sample in blocks that repeat an earlier one.
        duplicate_bytes: Option<u64> = bytes("repeated"),
        /// Attributes that determine how I/O to the file is done, separated by commas.
        attributes: Value = text("attributes"),
        /// Whether the file system answers FIEMAP.
        fiemap: String = text("FIEMAP"),
    }
}

rows! {
    /// Devices that several targets are on.
    pub struct SharedDeviceRow {
        /// The directory, file or device.
        target: String = text("target"),
        /// Another target.
        other: String = text("and"),
        /// Device nearest to the top that both targets are on.
        device: String = text("are on"),
    }
}

rows! {
    /// Part of each target in every load.
    pub struct TargetShareRow {
        /// The load.
        point: String = text("point"),
        /// The directory, file or device.
        target: String = text("target"),
        /// Part of the target, operations a second.
        iops: Option<Estimate> = count("IOPS"),
        /// Part of the target, bytes a second.
        bytes_per_s: Option<Estimate> = flow("throughput"),
        /// Mean latency of the part of the target.
        latency_ns_mean: Option<Estimate> = time("mean"),
    }
}
