//! Figures of the balance of a machine. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{Measure, Value, count, flow, level, share, text, time};

rows! {
    /// Single figures of a model.
    pub struct Summary {
        /// Share of the bytes read that crosses the wire.
        returned: f64 = share("returned"),
        /// Number of hosts that exist now.
        hosts: u32 = count("hosts"),
        /// Storage servers.
        cells: u32 = count("cells"),
        /// With the present number of hosts, the returned share above which links or hosts bind;
        /// unknown if the rate of one side is.
        crossing_returned: Option<f64> = share("crossing"),
    }
}

rows! {
    /// Rates that each part allows.
    pub struct PartRow {
        /// A part that may bind.
        part: &'static str = text("part"),
        /// Their number.
        count: Option<u32> = level("count", Measure::Count),
        /// Rate of one of them.
        each_bytes_per_s: Option<f64> = flow("each"),
        /// Rate that all of them allow, in bytes that the storage reads.
        read_bytes_per_s: f64 = flow("read/s"),
        /// Rate of one of them, with five digits.
        exact: String = text("exact"),
    }
}

rows! {
    /// Throughput against hosts.
    pub struct PointRow {
        /// Number of hosts.
        hosts: u32 = count("hosts"),
        /// Bytes that the storage reads.
        throughput_bytes_per_s: f64 = flow("read/s"),
        /// Bytes a second that cross the wire.
        wire_bytes_per_s: f64 = flow("wire/s"),
        /// The part that allows no more.
        binding: &'static str = text("binds"),
        /// To read the bytes of --size.
        size_ns: Value = time("time"),
    }
}

rows! {
    /// Numbers of hosts from which something else binds.
    pub struct CrossingRow {
        /// With the rate that one of this many hosts has.
        measured_with: u32 = count("rate of"),
        /// Hosts that could take what the storage gives.
        hosts: f64 = count("crossing"),
        /// The next whole number.
        hosts_whole: f64 = count("hosts"),
        /// The part that binds from there on.
        binding: &'static str = text("then binds"),
    }
}

rows! {
    /// Gains from one more of a part.
    pub struct GainRow {
        /// The part that is added.
        one_more: &'static str = text("one more"),
        /// Gain as a share of the throughput now.
        gained: f64 = share("gains"),
        /// Bytes that the storage reads then.
        throughput_bytes_per_s: f64 = flow("read/s"),
        /// The part that binds then.
        binding: &'static str = text("then binds"),
    }
}

rows! {
    /// Throughput against what is returned.
    pub struct SelectivityRow {
        /// Share of what is read that crosses the wire.
        returned: f64 = share("returned"),
        /// Bytes that the storage reads.
        throughput_bytes_per_s: f64 = flow("read/s"),
        /// The part that allows no more.
        binding: &'static str = text("binds"),
    }
}

rows! {
    /// Runs, and the model of them.
    pub struct FittedRow {
        /// The run.
        run: String = text("run"),
        /// Hosts in it.
        hosts: u32 = count("hosts"),
        /// Cells in it.
        cells: u32 = count("cells"),
        /// Share of what was read that crossed the wire.
        returned: f64 = share("returned"),
        /// Bytes read a second.
        read_bytes_per_s: f64 = flow("measured"),
        /// Rate by the model.
        model_bytes_per_s: Option<f64> = flow("model"),
        /// (model − measured) ÷ measured.
        error: Option<f64> = share("model off by"),
        /// By the model.
        binding: &'static str = text("binds"),
    }
}
