//! Changes that would affect the response time, and the latency that the storage could have.

use blockstone_base::load::{Access, LoadSpec};
use blockstone_base::rows;
use blockstone_base::table::{
    Rows as _, Table, Value, bytes, count, flow, happened, ratio, text, time,
};
use blockstone_base::units::{Bytes, format_ns, thousands};
use blockstone_judge::Findings;
use blockstone_record::manifest::Group;
use blockstone_report::Section;
use blockstone_trace::{
    Component, Kind, Prediction, RowSource, Spent, Statement, Trace, array_size, cache_hits,
    memory_cost, mib_per_second, own_disk_time, round_trip, row_disk_time, single_block_reads,
};

use super::{Asked, has_waits};
use crate::verbs::trace::what_if::Change;
use crate::verbs::trace::words;

/// Maximum number of row sources whose disk time is shown.
const ROWS_MAX: usize = 50;
const BYTES_PER_MIB: f64 = (1 << 20) as f64;
/// Array sizes that are tried if none is requested.
const ARRAYS: [u32; 2] = [100, 500];

/// Reads of a calibration, one load each.
pub struct Measured {
    pub recording: String,
    pub points: Vec<MeasuredRead>,
}

pub struct MeasuredRead {
    load: LoadSpec,
    ns_p50: f64,
    ns_mean: f64,
}

impl Measured {
    /// Takes the reads of a calibration that no rule condemns.
    pub fn of(recording: String, findings: &Findings) -> Self {
        let stands = findings.points.iter().filter(|point| point.condemned_by.is_empty());
        // Other groups read from memory on purpose, or with the null engine.
        let of_device = |group: &Group| matches!(group, Group::RandomRead | Group::LargeRead);
        let reads = stands.filter(|point| of_device(&point.group) && point.background.is_none());
        let points = reads.map(|point| MeasuredRead {
            load: point.load.clone(),
            ns_p50: point.latency.ns_p50.value,
            ns_mean: point.latency.ns_mean.value,
        });
        Self { recording, points: points.collect() }
    }

    /// The reads of about this size with the fewest in flight: a session waits for one at a time.
    fn nearest(&self, bytes: f64) -> Option<&MeasuredRead> {
        let distance = |read: &MeasuredRead| (read.load.block_bytes as f64 / bytes).ln().abs();
        self.points.iter().min_by(|a, b| {
            distance(a)
                .total_cmp(&distance(b))
                .then_with(|| a.load.in_flight().cmp(&b.load.in_flight()))
        })
    }
}

pub fn sections(trace: &Trace, asked: &Asked) -> Vec<Section> {
    let cost = cost(trace, asked);
    let cost_ns = cost.as_ref().map(|(ns, _)| *ns);
    let mut disk = disk_time(trace, asked, cost_ns);
    disk.notes.extend(cost.map(|(_, words)| words));
    let (what_if, refused) = what_if(trace, asked, cost_ns);
    let mut sections = vec![
        Section::of("disk-time", disk),
        Section::of("what-if", what_if)
            .about("Each line changes one thing and keeps all others as they were.")
            .with(refused),
    ];
    sections.extend(asked.measured.as_ref().map(|measured| {
        Section::of("device", device(trace, measured, asked))
            .about("What the trace waited for a read, and what the device took in a calibration.")
    }));
    sections
}

/// The reason why the disk time of row sources is unknown, if the cost of a logical read is all
/// that is missing.
pub fn lacks_cost(trace: &Trace, asked: &Asked) -> Option<&'static str> {
    let reads = |row: &RowSource| row.own_physical_reads.is_some_and(|reads| reads > 0.0);
    let lacks = cost(trace, asked).is_none() && trace.row_sources.iter().any(reads);
    lacks.then_some(
        "no disk time: no statement without physical reads shows what a logical read takes; \
         --memory-cost states it",
    )
}

/// Returns the time of a logical read, and the source of that value.
fn cost(trace: &Trace, asked: &Asked) -> Option<(f64, String)> {
    if let Some(ns) = asked.memory_cost_ns {
        return Some((
            ns,
            format!("a logical read takes {}, as --memory-cost says", format_ns(ns)),
        ));
    }
    let cost = memory_cost(trace)?;
    let words = format!(
        "a logical read takes {}: {} of them in {} statements that read nothing from storage",
        format_ns(cost.ns),
        thousands(cost.logical_reads as i64),
        cost.statements
    );
    Some((cost.ns, words))
}

rows! {
    /// Time of row sources that their reads from storage took.
    pub(super) struct DiskRow {
        /// Its id.
        statement: String = text("statement"),
        /// The line of the plan.
        operation: String = text("operation"),
        /// Physical reads of the line alone.
        own_physical_reads: Option<f64> = count("own reads"),
        /// Own time less own logical reads × the time of one.
        own_disk_ns: Value = time("own disk time"),
        /// Own disk time ÷ own physical reads.
        own_read_ns: Value = time("a read"),
        /// Size of a block ÷ the time of a read.
        own_bytes_per_s: Value = flow("rate"),
        /// The same of the line with those below it.
        read_ns_with_below: Value = time("a read, with below"),
    }
}

rows! {
    /// Predictions of the response time.
    pub(super) struct WhatIfRow {
        /// The change that is assumed.
        change: String = text("if"),
        /// Response time of the trace.
        now_ns: f64 = time("now"),
        /// Response time that is predicted.
        predicted_ns: f64 = time("then"),
        /// Now ÷ then.
        speedup: Value = ratio("faster"),
        /// Condition under which the prediction holds.
        assumes: &'static str = text("provided that").prose(),
    }
}

rows! {
    /// Reads of the trace beside those of a calibration.
    pub(super) struct DeviceRow {
        /// The component or wait event.
        component: String = text("reads"),
        /// Number of reads; of blocks where reads are not counted.
        reads: f64 = count("number"),
        /// Mean size of a read.
        bytes_mean: f64 = bytes("size"),
        /// A read in the trace, in the mean.
        read_ns_mean: f64 = time("took"),
        /// The load of the calibration that is nearest.
        load: String = text("device"),
        /// Median latency of the device's reads.
        device_ns_p50: f64 = time("median"),
        /// Mean latency of the device's reads.
        device_ns_mean: f64 = time("mean"),
        /// Mean of the trace ÷ mean of the device.
        of_device: Value = ratio("of it"),
    }
}

fn disk_time(trace: &Trace, asked: &Asked, cost_ns: Option<f64>) -> Table {
    let mut table = DiskRow::table("disk-time", "Disk time of row sources", []);
    let Some(cost_ns) = cost_ns else { return table };
    let top: Vec<&Statement> = trace.statements.iter().take(asked.top).collect();
    let of_top = |row: &&RowSource| top.iter().any(|statement| statement.id == row.statement);
    let reads = |row: &&RowSource| row.physical_reads.is_some_and(|reads| reads > 0.0);
    for row in trace.row_sources.iter().filter(of_top).filter(reads).take(ROWS_MAX) {
        let (own, whole) = (own_disk_time(row, cost_ns), row_disk_time(row, cost_ns));
        if own.is_none() && whole.is_none() {
            continue;
        }
        let block_bytes = asked.block_bytes as f64;
        let rate = own.and_then(|own| mib_per_second(block_bytes, own.per_read_ns));
        table.push(DiskRow {
            statement: row.statement.clone(),
            operation: row.operation.clone(),
            own_physical_reads: row.own_physical_reads,
            own_disk_ns: happened(own.map(|own| own.total_ns)),
            own_read_ns: happened(own.map(|own| own.per_read_ns)),
            own_bytes_per_s: happened(rate.map(|mib| mib * BYTES_PER_MIB)),
            read_ns_with_below: happened(whole.map(|whole| whole.per_read_ns)),
        });
    }
    table.notes.push(format!("rates are those of blocks of {}", Bytes(asked.block_bytes)));
    table.on_screen(10)
}

/// Returns the predictions, and the reasons why some that were requested cannot be made.
fn what_if(trace: &Trace, asked: &Asked, cost_ns: Option<f64>) -> (Table, Vec<String>) {
    let mut table = WhatIfRow::table("what-if", "What if", []);
    let mut refused = Vec::new();
    let default = [Change::Array(ARRAYS.into()), Change::Read(0.5), Change::Hits(0.5)];
    let changes: &[Change] = match asked.changes.as_slice() {
        [] if has_waits(trace) => &default,
        changes => changes,
    };
    for change in changes {
        let made = predictions(trace, change, cost_ns);
        if made.is_empty() && !asked.changes.is_empty() {
            refused.push(format!("no prediction: {}", needs(change)));
        }
        for Prediction { change, now_ns, predicted_ns, assumes } in made {
            let speedup = happened((predicted_ns > 0.0).then(|| now_ns / predicted_ns));
            table.push(WhatIfRow { change, now_ns, predicted_ns, speedup, assumes });
        }
    }
    (table, refused)
}

fn predictions(trace: &Trace, change: &Change, cost_ns: Option<f64>) -> Vec<Prediction> {
    match change {
        Change::Array(arrays) => {
            // The statement whose fetches cost the most round trips.
            let trips =
                |statement: &&Statement| statement.round_trips.map_or(0.0, |trips| trips.gap_ns);
            let most = trace.statements.iter().max_by(|a, b| trips(a).total_cmp(&trips(b)));
            let of = |rows: &u32| {
                let made = array_size(trace, most?, *rows)?;
                (made.predicted_ns < made.now_ns).then_some(made)
            };
            arrays.iter().filter_map(of).collect()
        }
        Change::RoundTrip(time) => round_trip(trace, time.get() as f64).into_iter().collect(),
        Change::Read(factor) => single_block_reads(trace, *factor).into_iter().collect(),
        Change::Hits(share) => {
            let made = cost_ns.and_then(|cost_ns| cache_hits(trace, *share, cost_ns));
            made.into_iter().collect()
        }
    }
}

fn needs(change: &Change) -> &'static str {
    match change {
        Change::Array(_) => {
            "array needs a trace with waits, and fetches of fewer rows than the array would hold"
        }
        Change::RoundTrip(_) => "round-trip needs a trace with waits for a client",
        Change::Read(_) => "read needs a trace with waits for reads of single blocks",
        Change::Hits(_) => {
            "hits needs waits for reads of single blocks, and the time of a logical read"
        }
    }
}

fn device(trace: &Trace, measured: &Measured, asked: &Asked) -> Table {
    let title = format!("Reads beside the device: {}", measured.recording);
    let mut table = DeviceRow::table("device", "", []);
    table.title = title.into();
    for (component, spent) in words::by_time(&trace.components) {
        // A report of tkprof does not have the sizes of reads.
        let is_sized = trace.kind != Some(Kind::Tkprof) || is_single_block(component);
        if !is_read(component) || !is_sized {
            continue;
        }
        let Some((reads, bytes)) = reads(spent, asked.block_bytes) else { continue };
        let mean_ns = spent.ns / reads;
        let Some(read) = measured.nearest(bytes) else { continue };
        let block = Bytes(read.load.block_bytes);
        let order = if read.load.access == Access::Random { "random" } else { "sequential" };
        table.push(DeviceRow {
            component: words::component(component),
            reads,
            bytes_mean: bytes,
            read_ns_mean: mean_ns,
            load: format!("{order} reads of {block}, {} in flight", read.load.in_flight()),
            device_ns_p50: read.ns_p50,
            device_ns_mean: read.ns_mean,
            of_device: happened((read.ns_mean > 0.0).then(|| mean_ns / read.ns_mean)),
        });
    }
    if table.rows.is_empty() {
        table.notes.push("the trace has no reads from storage, or the calibration none".to_owned());
    }
    table
}

fn is_read(component: &Component) -> bool {
    match component {
        Component::StorageRead => true,
        Component::Wait(event) => event.contains("read") && !event.contains("redo"),
        _ => false,
    }
}

fn is_single_block(component: &Component) -> bool {
    let Component::Wait(event) = component else { return false };
    event == "db file sequential read" || event.starts_with("cell single block physical read")
}

/// Returns the number of reads and the mean size of each, in bytes.
fn reads(spent: &Spent, block_bytes: u64) -> Option<(f64, f64)> {
    let block_bytes = block_bytes as f64;
    match (spent.calls, spent.blocks, spent.bytes) {
        (calls, _, Some(bytes)) if calls > 0.0 => Some((calls, bytes / calls)),
        // If reads are counted one by one, so are their times.
        (calls, Some(blocks), _) if calls > 0.0 && blocks > 0.0 && spent.max_ns.is_some() => {
            Some((calls, blocks / calls * block_bytes))
        }
        (calls, None, None) if calls > 0.0 => Some((calls, block_bytes)),
        (_, Some(blocks), _) if blocks > 0.0 => Some((blocks, block_bytes)),
        _ => None,
    }
}
