//! Figures and tables of a simulation.

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Missing, Value, bytes, count, flag, happened, level, ratio, share, text, time, total,
};
use blockstone_flash::device::Placement;
use blockstone_flash::dies::Suspend;
use blockstone_flash::ftl::Totals;
use blockstone_flash::simulate::{Outcome, Percentiles, Point};
use blockstone_flash::trace::Trace;

use super::super::words;

rows! {
    /// Single figures of a simulation: what was simulated.
    pub struct SimSummary {
        /// Seed of the random numbers, in digits.
        seed: String = text("seed"),
        /// The workload and how it arrives, in words.
        load: String = text("load"),
        /// 1/`scale` of the device was simulated.
        scale: u32 = count("scale"),
        /// Capacity of the flash.
        raw_bytes: u64 = bytes("raw"),
        /// Capacity visible to the host.
        visible_bytes: u64 = bytes("visible"),
        /// Size of a page.
        page_bytes: u32 = bytes("page"),
        /// Pages per block of one plane.
        pages_per_block: u32 = count("pages per block"),
        /// Channels that dies share.
        channels: u32 = count("channels"),
        /// Dies on each channel.
        dies_per_channel: u32 = count("dies per channel"),
        /// Planes of a die that work in step.
        planes: u32 = count("planes"),
        /// Time to read a page.
        read_ns: u64 = time("read"),
        /// Time to erase a block.
        erase_ns: u64 = time("erase"),
        /// Transfer of a page over a channel; 0: channels are not modelled.
        transfer_ns: u64 = time("transfer"),
        /// Operations that a read interrupts: `none`, `erase` or `both`.
        suspend: &'static str = text("suspend"),
        /// Cost of one interruption.
        suspend_ns: u64 = time("interruption"),
        /// How the block to collect is chosen.
        policy: String = text("policy"),
        /// Free blocks per die that only collection may use.
        reserve_blocks: u32 = count("reserve"),
        /// Where the parts of the load are placed: `mixed`, `frontiers` or `pools`.
        placement: &'static str = text("placement"),
        /// Format of the trace that was replayed.
        trace_format: Result<&'static str, Missing> = text("trace"),
        /// Lines of it.
        trace_lines: Result<u64, Missing> = count("lines"),
        /// Requests that were read from it.
        trace_requests: Result<u64, Missing> = count("requests"),
        /// Lines that could not be read.
        trace_bad_lines: Result<u64, Missing> = count("bad lines"),
    }
}

rows! {
    /// Times to program a page.
    pub struct ProgramTimeRow {
        /// From 1, the fast one first. The pages of a block alternate.
        page_type: u64 = count("page type"),
        /// Time to program such a page.
        program_ns: u64 = time("program").answer(),
    }
}

rows! {
    /// Reasons for which pages were programmed, and how evenly blocks wear.
    pub struct ProgramRow {
        /// How it differs from the other device; empty for the only one.
        device: &'static str = text(""),
        /// Pages programmed for the host ÷ all, at the end.
        host_share: f64 = share("programmed by host"),
        /// Pages programmed by garbage collection ÷ all, at the end.
        collected_share: f64 = share("collection"),
        /// Pages programmed by wear levelling ÷ all, at the end.
        levelled_share: f64 = share("wear levelling"),
        /// Pages folded out of blocks of fast pages ÷ all programmed pages, at the end.
        folded_share: f64 = share("folding"),
        /// Mean erases of a block over the whole run.
        erases_mean: f64 = count("erases per block"),
        /// Erases of the block with the fewest.
        erases_least: Option<u32> = count("least"),
        /// Erases of the block with the most.
        erases_most: Option<u32> = count("most"),
    }
}

rows! {
    /// Latency of requests.
    pub struct LatencyRow {
        /// How it differs from the other device; empty for the only one.
        device: &'static str = text(""),
        /// Direction of the requests: `read` or `write`.
        direction: &'static str = text("requests"),
        /// Requests in the last quarter.
        requests: u64 = count("count"),
        /// From arrival to completion.
        latency_ns_mean: f64 = time("mean"),
        /// Half of the requests are faster.
        latency_ns_p50: Value = time("p50"),
        /// 99 of 100 are faster.
        latency_ns_p99: Value = time("p99"),
        /// 999 of 1,000 are faster.
        latency_ns_p999: Value = time("p99.9"),
        /// 9,999 of 10,000 are faster.
        latency_ns_p9999: Value = time("p99.99"),
        /// The longest.
        latency_ns_max: u64 = time("max"),
    }
}

rows! {
    /// All figures that summarize a simulation.
    pub struct FigureRow {
        /// How it differs from the other device; empty for the only one.
        device: &'static str = text(""),
        /// Raw ÷ visible − 1.
        over_provisioning: f64 = share("over-provisioning"),
        /// The part of the raw capacity that is spare.
        spare_factor: f64 = share("spare factor"),
        /// Spare ÷ usable capacity, without reserves.
        effective_spare: f64 = share("effective spare"),
        /// Requests per second before anything was moved.
        iops_fresh: Option<f64> = count("fresh IOPS"),
        /// Requests per second in the last quarter, while any arrived.
        iops_steady: f64 = count("steady IOPS"),
        /// The same by formula.
        iops_steady_analytic: Option<f64> = count("formula"),
        /// Programs ÷ host pages in the last quarter.
        wa: Option<f64> = ratio("WA"),
        /// The same by formula.
        wa_analytic: Option<f64> = ratio("formula"),
        /// Simulated − formula, of the formula.
        wa_error_percent: Option<f64> = count("error, %"),
        /// Drive fills until writes waited for collection, for more than a tenth of the program
        /// time.
        cliff_drive_fills: Option<f64> = count("cliff"),
        /// The same: spare ÷ visible.
        cliff_drive_fills_analytic: f64 = count("arithmetic"),
        /// Whether the end passes SNIA's steady-state test.
        is_settled: bool = flag("steady"),
        /// Start of the last quarter, in visible capacities written.
        steady_from_drive_fills: f64 = count("last quarter from"),
        /// Simulated length of the last quarter.
        steady_ns: u64 = time("for"),
        /// Method of garbage collection, in words.
        collection: String = text("collection"),
        /// How pages were tracked: `exact` or `counts`.
        engine: &'static str = text("engine"),
        /// Blocks simulated.
        blocks: u64 = count("blocks"),
        /// Size of a block.
        block_bytes: u64 = level("of", Measure::Bytes),
        /// Simulated time.
        elapsed_ns: u64 = time("time"),
        /// Writes that waited to be admitted.
        throttled_writes: u64 = count("throttled writes"),
        /// Writes that still waited at the end.
        waiting_writes: u64 = count("still waiting"),
        /// Reads of pages that do not hold data; the controller answers them.
        unmapped_reads: u64 = count("unmapped reads"),
        /// Memory that the tables of the simulation take.
        memory_bytes: u64 = level("memory", Measure::Bytes),
        /// Why the simulation ended early.
        ended_by: Value = text("ended by"),
        /// Digest in hexadecimal; equal for equal plans.
        digest: String = text("digest"),
    }
}

rows! {
    /// Operations on pages and blocks.
    pub struct PageRow {
        /// How it differs from the other device; empty for the only one.
        device: &'static str = text(""),
        /// `last quarter`, or `all` since the first fill.
        when: &'static str = text("when"),
        /// Pages programmed for the host.
        host_pages: u64 = total("by host", Measure::Count),
        /// Pages moved to make room.
        collected_pages: u64 = total("collection", Measure::Count),
        /// Pages moved to even out wear.
        levelled_pages: u64 = total("wear levelling", Measure::Count),
        /// Pages moved from fast blocks to ordinary ones.
        folded_pages: u64 = total("folding", Measure::Count),
        /// Pages trimmed by the host.
        trimmed_pages: u64 = total("trimmed", Measure::Count),
        /// Blocks erased.
        erased_blocks: u64 = total("erased blocks", Measure::Count),
        /// Blocks retired because they were worn out.
        retired_blocks: u64 = total("retired blocks", Measure::Count),
    }
}

rows! {
    /// Blocks by the number of their erases.
    pub struct EraseRow {
        /// How it differs from the other device; empty for the only one.
        device: &'static str = text(""),
        /// Erases of a block, ascending.
        erases: u32 = count("erases"),
        /// Blocks that were erased so often.
        blocks: u64 = count("blocks").answer(),
    }
}

rows! {
    /// The run over time.
    pub struct PointRow {
        /// How it differs from the other device; empty for the only one.
        device: &'static str = text(""),
        /// Written by the host until here, in visible capacities.
        drive_fills: f64 = count("drive fills"),
        /// Simulated time until here.
        t_ns: u64 = time("time"),
        /// Requests per second since the row before.
        iops: f64 = count("IOPS"),
        /// Write requests per second.
        write_iops: f64 = count("write IOPS"),
        /// Programs ÷ host pages.
        wa: Option<f64> = ratio("WA"),
        /// 99 of 100 reads are faster.
        read_latency_ns_p99: Value = time("read p99"),
        /// 99 of 100 writes are faster.
        write_latency_ns_p99: Value = time("write p99"),
        /// Fewest erased blocks that a die has.
        free_blocks: u64 = count("free blocks"),
        /// Reads that completed.
        reads: u64 = total("reads", Measure::Count),
        /// From arrival to completion.
        read_latency_ns_mean: Value = time("read mean"),
        /// Half of the reads are faster.
        read_latency_ns_p50: Value = time("read p50"),
        /// 999 of 1,000 reads are faster.
        read_latency_ns_p999: Value = time("read p99.9"),
        /// 9,999 of 10,000 reads are faster.
        read_latency_ns_p9999: Value = time("read p99.99"),
        /// The longest read.
        read_latency_ns_max: Value = time("read max"),
        /// Writes that completed.
        writes: u64 = total("writes", Measure::Count),
        /// From arrival to completion.
        write_latency_ns_mean: Value = time("write mean"),
        /// Half of the writes are faster.
        write_latency_ns_p50: Value = time("write p50"),
        /// 999 of 1,000 writes are faster.
        write_latency_ns_p999: Value = time("write p99.9"),
        /// 9,999 of 10,000 writes are faster.
        write_latency_ns_p9999: Value = time("write p99.99"),
        /// The longest write.
        write_latency_ns_max: Value = time("write max"),
    }
}

rows! {
    /// Lines of a trace that could not be read.
    pub struct BadLineRow {
        /// Line of the file, counted from 1.
        line: u64 = count("line"),
        /// Why it could not be read.
        why: String = text("reason").prose(),
    }
}

impl SimSummary {
    pub fn of(outcome: &Outcome, trace: Option<&Trace>) -> Self {
        let (plan, device) = (&outcome.plan, &outcome.plan.device);
        let times = &device.times;
        let trace = trace.ok_or(Missing::Off);
        Self {
            seed: plan.seed.to_string(),
            load: words::load(outcome),
            scale: plan.scale,
            raw_bytes: device.raw_bytes,
            visible_bytes: device.visible_bytes,
            page_bytes: device.page_bytes,
            pages_per_block: device.pages_per_block,
            channels: device.channels,
            dies_per_channel: device.dies_per_channel,
            planes: times.planes,
            read_ns: times.read_ns,
            erase_ns: times.erase_ns,
            transfer_ns: times.transfer_ns,
            suspend: match times.suspend {
                Suspend::None => "none",
                Suspend::Erase => "erase",
                Suspend::Both => "both",
            },
            suspend_ns: times.suspend_ns,
            policy: device.policy.to_string(),
            reserve_blocks: device.reserve_blocks,
            placement: match device.placement {
                Placement::Mixed => "mixed",
                Placement::Frontiers => "frontiers",
                Placement::Pools => "pools",
            },
            trace_format: trace.map(|trace| trace.format.name()),
            trace_lines: trace.map(|trace| trace.lines),
            trace_requests: trace.map(|trace| trace.requests.len() as u64),
            trace_bad_lines: trace.map(|trace| trace.bad_lines),
        }
    }
}

impl ProgramRow {
    pub fn of(device: &'static str, outcome: &Outcome) -> Self {
        let pages = outcome.steady.totals;
        let part = |count: u64| count as f64 / pages.programs().max(1) as f64;
        let blocks: u64 = outcome.erases.iter().map(|(_, count)| count).sum();
        let sum: u64 = outcome.erases.iter().map(|(n, count)| u64::from(*n) * count).sum();
        let end = |end: Option<&(u32, u64)>| end.map(|(erases, _)| *erases);
        Self {
            device,
            host_share: part(pages.host_pages),
            collected_share: part(pages.collected_pages),
            levelled_share: part(pages.levelled_pages),
            folded_share: part(pages.folded_pages),
            erases_mean: sum as f64 / blocks.max(1) as f64,
            erases_least: end(outcome.erases.first()),
            erases_most: end(outcome.erases.last()),
        }
    }
}

impl LatencyRow {
    /// Returns a row for reads and for writes, if there were any.
    pub fn of(device: &'static str, outcome: &Outcome) -> Vec<Self> {
        let sides = [("read", &outcome.steady.reads), ("write", &outcome.steady.writes)];
        let row = |(direction, histogram)| {
            let latency = Percentiles::of(histogram)?;
            Some(Self {
                device,
                direction,
                requests: latency.count,
                latency_ns_mean: latency.latency_ns_mean,
                latency_ns_p50: happened(latency.latency_ns_p50),
                latency_ns_p99: happened(latency.latency_ns_p99),
                latency_ns_p999: happened(latency.latency_ns_p999),
                latency_ns_p9999: happened(latency.latency_ns_p9999),
                latency_ns_max: latency.latency_ns_max,
            })
        };
        sides.into_iter().filter_map(row).collect()
    }
}

impl FigureRow {
    pub fn of(device: &'static str, outcome: &Outcome) -> Self {
        let (simulated, steady) = (&outcome.plan.device, &outcome.steady);
        let pages = u64::from(outcome.config.pages_per_block);
        Self {
            device,
            over_provisioning: simulated.over_provisioning(),
            spare_factor: simulated.spare_factor(),
            effective_spare: outcome.effective_spare(),
            iops_fresh: outcome.iops_fresh,
            iops_steady: steady.iops,
            iops_steady_analytic: outcome.iops_analytic,
            wa: steady.wa,
            wa_analytic: outcome.wa_analytic,
            wa_error_percent: outcome.wa_error().map(|error| error * 100.0),
            cliff_drive_fills: outcome.cliff_drive_fills,
            cliff_drive_fills_analytic: outcome.cliff_drive_fills_analytic,
            is_settled: steady.is_settled,
            steady_from_drive_fills: steady.from_drive_fills,
            steady_ns: steady.duration_ns,
            collection: words::collection_alone(outcome),
            engine: outcome.engine,
            blocks: outcome.config.blocks(),
            block_bytes: pages * u64::from(simulated.page_bytes),
            elapsed_ns: outcome.elapsed_ns,
            throttled_writes: outcome.throttled_writes,
            waiting_writes: outcome.waiting_writes,
            unmapped_reads: outcome.unmapped_reads,
            memory_bytes: outcome.memory_bytes,
            ended_by: happened(outcome.ended_by.map(|full| full.to_string())),
            digest: format!("{:016x}", outcome.digest),
        }
    }
}

impl PageRow {
    /// Returns a row for the last quarter and one for the whole run.
    pub fn of(device: &'static str, outcome: &Outcome) -> [Self; 2] {
        let row = |when, pages: &Totals| Self {
            device,
            when,
            host_pages: pages.host_pages,
            collected_pages: pages.collected_pages,
            levelled_pages: pages.levelled_pages,
            folded_pages: pages.folded_pages,
            trimmed_pages: pages.trimmed_pages,
            erased_blocks: pages.erased_blocks,
            retired_blocks: pages.retired_blocks,
        };
        [row("last quarter", &outcome.steady.totals), row("all", &outcome.totals)]
    }
}

impl PointRow {
    pub fn of(device: &'static str, point: &Point) -> Self {
        let (read, write) = (point.read, point.write);
        let quantile = |side: Option<Percentiles>, of: fn(Percentiles) -> Option<u64>| {
            happened(side.and_then(of))
        };
        Self {
            device,
            drive_fills: point.drive_fills,
            t_ns: point.t_ns,
            iops: point.iops,
            write_iops: point.write_iops,
            wa: point.wa,
            read_latency_ns_p99: quantile(read, |latency| latency.latency_ns_p99),
            write_latency_ns_p99: quantile(write, |latency| latency.latency_ns_p99),
            free_blocks: point.free_blocks as u64,
            reads: read.map_or(0, |latency| latency.count),
            read_latency_ns_mean: happened(read.map(|latency| latency.latency_ns_mean)),
            read_latency_ns_p50: quantile(read, |latency| latency.latency_ns_p50),
            read_latency_ns_p999: quantile(read, |latency| latency.latency_ns_p999),
            read_latency_ns_p9999: quantile(read, |latency| latency.latency_ns_p9999),
            read_latency_ns_max: quantile(read, |latency| Some(latency.latency_ns_max)),
            writes: write.map_or(0, |latency| latency.count),
            write_latency_ns_mean: happened(write.map(|latency| latency.latency_ns_mean)),
            write_latency_ns_p50: quantile(write, |latency| latency.latency_ns_p50),
            write_latency_ns_p999: quantile(write, |latency| latency.latency_ns_p999),
            write_latency_ns_p9999: quantile(write, |latency| latency.latency_ns_p9999),
            write_latency_ns_max: quantile(write, |latency| Some(latency.latency_ns_max)),
        }
    }
}
