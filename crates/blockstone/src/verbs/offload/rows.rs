//! Tables of runs, however they were counted. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{Measure, Value, bytes, count, flow, level, ratio, share, text, time};

rows! {
    /// Bytes of a run on their way.
    pub struct LedgerRow {
        /// The run.
        run: String = text("run"),
        /// Kind of bytes, from the plan to the client.
        line: String = text("step"),
        /// Their number.
        bytes: u64 = bytes("bytes"),
        /// Share of the first line of the run.
        share: Value = share("of the first"),
    }
}

rows! {
    /// Runs, in the order of the files.
    pub struct RunRow {
        /// The run.
        run: String = text("run"),
        /// Between its first and last snapshot.
        time_ns: Option<f64> = time("time"),
        /// Instances that took bytes.
        hosts: Option<u32> = level("hosts", Measure::Count),
        /// Bytes that the plan asked of the storage.
        disk_bytes: u64 = bytes("read"),
        /// Bytes that the storage was allowed to filter.
        eligible_bytes: Option<u64> = bytes("eligible"),
        /// Bytes that it returned of those; all bytes on the wire if they are not counted apart.
        returned_bytes: Option<u64> = bytes("returned"),
        /// Between storage and hosts.
        wire_bytes: Option<u64> = bytes("wire"),
        /// (eligible − returned) ÷ read.
        saved_of_all: Option<f64> = share("saved of all").answer(),
        /// Read a second.
        read_bytes_per_s: Option<f64> = flow("read/s"),
        /// On the wire a second.
        wire_bytes_per_s: Option<f64> = flow("wire/s"),
        /// Share of all bytes read that reads left on the wire.
        returned_of_read: Option<f64> = share("returned ÷ read"),
        /// (wire − (read − eligible + returned)) ÷ written, where the arithmetic allows it.
        mirror_copies: Option<f64> = count("copies"),
        /// Storage servers that read.
        cells: Option<u32> = level("cells", Measure::Count),
        /// Processor time of the hosts.
        host_cpu_ns: Option<f64> = time("host CPU"),
        /// Processor time of the storage.
        cell_cpu_ns: Option<f64> = time("storage CPU"),
    }
}

rows! {
    /// The ratio that vendors of such storage publish.
    pub struct UsualRow {
        /// The run.
        run: String = text("run"),
        /// Struck through where it misleads.
        returned_of_eligible: f64 = share("returned ÷ eligible"),
    }
}

rows! {
    /// Runs against slower ones.
    pub struct ComparedRow {
        /// The faster run.
        run: String = text("run"),
        /// The slower run.
        than: String = text("than"),
        /// Time of the slower ÷ time of the faster run.
        times_as_fast: f64 = ratio("as fast"),
        /// Hosts of the faster ÷ hosts of the slower run.
        times_hosts: Option<f64> = ratio("hosts"),
        /// Times as fast ÷ times as many hosts, of runs that return about the same share.
        of_linear: Value = share("of linear"),
    }
}

rows! {
    /// Bytes that the links of the hosts could have carried.
    pub struct LinkRow {
        /// The run.
        run: String = text("run"),
        /// Rate of the wire ÷ what the links of all hosts carry.
        link_share: Option<f64> = share("links used"),
        /// Time in which these links carry the bytes of the wire.
        link_ns: Option<f64> = time("at their rate"),
        /// Time that the run took.
        time_ns: Option<f64> = time("time"),
    }
}

rows! {
    /// Processor time for each GB read.
    pub struct CpuRow {
        /// The run.
        run: String = text("run"),
        /// Seconds of processors of the hosts for each GB read.
        host_s_per_gb: Option<f64> = count("hosts"),
        /// Seconds of processors of the storage for each GB read.
        cell_s_per_gb: Option<f64> = count("storage"),
    }
}

rows! {
    /// Reasons for which something was not filtered.
    pub struct RefusalRow {
        /// The run.
        run: String = text("run"),
        /// By the name of the counter.
        reason: String = text("not filtered because"),
        /// Sent unfiltered; where bytes are counted.
        bytes: Value = bytes("bytes"),
        /// Sessions or rows; where these are counted.
        events: Value = count("events"),
    }
}

rows! {
    /// Figures as publications print them.
    pub struct DigitsRow {
        /// The run.
        run: String = text("run"),
        /// Name of the figure.
        figure: String = text("figure"),
        /// With five digits.
        value: String = text("value"),
    }
}

rows! {
    /// Instances that changed places.
    pub struct AssignedRow {
        /// The run.
        run: String = text("run"),
        /// In which no counter falls; the chosen one is A.
        assignment: &'static str = text("assignment"),
        /// Name of the instance before the run.
        instance: String = text("instance"),
        /// Name in the row that continues it.
        listed_as: String = text("listed as"),
        /// In GiB, with the digits that publications have.
        read: String = text("read, GiB"),
        /// In GiB.
        wire: String = text("wire, GiB"),
        /// Its selectivity.
        wire_of_eligible: String = text("wire ÷ eligible"),
        /// Greatest ÷ least selectivity of the assignment.
        spread: Value = ratio("spread"),
    }
}
