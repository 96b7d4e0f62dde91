//! Figures and tables of a need and of the hardware for it. All media are made from these
//! declarations.

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Measure, Missing, Row, Value, bytes, count, flag, flow, happened, ratio, share, text, time,
    unmerged,
};
use blockstone_size::hardware::{Answer, Ceiling};
use blockstone_size::{LeftOut, Observation, Percentiles};

use super::args::SizeArgs;
use super::rules::RunOfNeed;
use super::{Sized, drive};

const SECOND_NS: f64 = 1e9;

rows! {
    /// Single figures of a need and its hardware.
    pub(super) struct Summary {
        /// Writes to the storage per write of the database.
        penalty: f64 = ratio("penalty"),
        /// Percentile that hardware is sized for; `stated` for a need that was not observed.
        percentile: String = text("percentile"),
        /// Reads of the database per second at that percentile.
        reads_per_s: Option<f64> = count("reads/s"),
        /// Writes of the database per second at that percentile.
        writes_per_s: Option<f64> = count("writes/s"),
        /// Shortest time that the values are averaged over.
        averaging_ns_min: Value = time("averaging time, shortest"),
        /// Longest time that the values are averaged over.
        averaging_ns_max: Value = time("averaging time, longest"),
        /// Number of intervals, or of hours of the week for several databases.
        intervals: u64 = count("intervals"),
        /// Intervals that lack instances: their values are lower bounds.
        partial_intervals: u64 = count("partial intervals"),
        /// 95th percentile of the time, not of the intervals, of the requests of the storage.
        hardware_iops_p95_weighted: Result<f64, Missing> = count("p95 of the time"),
        /// Sum of the highest values within an interval: an upper bound.
        most_hardware_iops: Result<f64, Missing> = count("upper bound of peaks"),
        /// Share of the time within 1 % of the maximum.
        at_max_share: Result<f64, Missing> = share("at the maximum"),
        /// Weeks from which growth is derived.
        growth_weeks: Result<u64, Missing> = count("weeks"),
        /// Additional requests of the storage per week, by the weekly p95.
        growth_iops_per_week: Result<Estimate, Missing> = count("growth in a week"),
        /// The p95 after as many further weeks as were observed.
        grown_iops_p95: Result<Estimate, Missing> = count("after as many weeks"),
        /// Why growth is unknown.
        no_growth: Value = text("no growth").prose(),
        /// `databases` or `instances` that share the storage.
        consolidation: Value = text("consolidation of"),
        /// Sum of their peaks.
        sum_of_peaks_iops: Value = count("sum of peaks"),
        /// Peak of their sum.
        peak_of_sums_iops: Value = count("peak of sums"),
        /// When: the hour of the week for databases, the time for instances.
        peak_of_sums_at: Value = text("at"),
        /// Largest sum of the highest values within intervals.
        sum_of_most_iops: Value = count("sum of highest values"),
        /// The kind of unit that is bought.
        unit: String = text("unit"),
        /// How many it takes.
        units: u64 = count("units"),
        /// The command that drives the need, with `PATH` for the storage.
        drive: Value = text("drive"),
    }
}

rows! {
    /// A need by percentiles of its intervals.
    pub(super) struct NeedRow {
        /// The resource that is needed.
        quantity: &'static str = text("need").answer(),
        /// Half of the intervals need no more. With the interval of order statistics.
        p50: Value = unmerged("p50", Measure::OfRow),
        /// 95 of 100 intervals need no more.
        p95: Value = unmerged("p95", Measure::OfRow).answer(),
        /// 99 of 100 intervals need no more.
        p99: Value = unmerged("p99", Measure::OfRow),
        /// The interval that needs most.
        max: Value = unmerged("max", Measure::OfRow).answer(),
    }
}

rows! {
    /// Loads that the storage was given, or that were recorded on it.
    pub(super) struct LoadRow {
        /// Part of the need; `ceiling` is as fast as the storage went.
        load: String = text("load").answer(),
        /// Operations a second that the need has; requests, of a recording.
        wanted_per_s: Value = count("wanted/s").answer(),
        /// Operations a second that were done; requests, of a recording.
        done_per_s: Value = count("done/s").answer(),
        /// Reads of the database a second.
        reads_per_s: Value = count("reads/s").plain(),
        /// Writes of the database a second.
        writes_per_s: Value = count("writes/s").plain(),
        /// The p99 of a read that a calibration predicts, at least.
        predicted_ns_p99_low: Value = time("predicted p99"),
        /// The same, at most.
        predicted_ns_p99_high: Value = time("at most"),
        /// 99 % of the reads took no longer.
        read_latency_ns_p99: Value = time("read p99").answer(),
        /// 99 % of the commits took no longer.
        commit_latency_ns_p99: Value = time("commit p99"),
        /// `carries`, `does-not-carry` or `not-established`.
        outcome: Value = text("result").answer(),
        /// Reason for the result.
        why: String = text("why").prose(),
        /// Where the measurement is kept.
        recording: String = text("recording").prose(),
    }
}

rows! {
    /// The need on units that can be had today.
    pub(super) struct CurrentRow {
        /// Unit of the catalogue.
        unit: String = text("unit").answer(),
        /// Units that it takes.
        units: u64 = count("units").answer(),
        /// The limit that binds.
        ceiling: String = text("binds"),
        /// Need ÷ what all of these units can do, at that limit.
        utilisation: f64 = share("used"),
    }
}

rows! {
    /// Database time on another storage.
    pub(super) struct DbTimeRow {
        /// Part of the database time, or what follows from it.
        what: &'static str = text("what").answer(),
        /// In the run that was recorded.
        before: f64 = count("before").answer(),
        /// On the storage of --on, at least.
        low: f64 = count("at least").answer(),
        /// The same, at most.
        high: f64 = count("at most").answer(),
        /// The middle of both ÷ before.
        factor: Value = ratio("times"),
    }
}

rows! {
    /// Ceilings of a unit, or of a machine.
    pub(super) struct CeilingRow {
        /// The limit of a unit.
        ceiling: String = text("ceiling").answer(),
        /// Amount that the hardware must deliver.
        need: f64 = count("need"),
        /// Amount that a unit can deliver at the utilisation that is planned.
        unit_capacity: f64 = count("of a unit"),
        /// Units that it takes.
        units: u64 = count("units").answer(),
        /// Need ÷ what all units of the answer can do.
        utilisation: f64 = share("used"),
        /// Units ÷ units of the ceiling that binds.
        slack: f64 = share("of the binding one"),
        /// Whether it binds.
        binding: bool = flag("binds").answer(),
    }
}

rows! {
    /// Ceilings that could not be checked.
    pub(super) struct UncheckedRow {
        /// A limit for which the need is known, but not the capability of a unit.
        ceiling: &'static str = text("not checked"),
    }
}

rows! {
    /// The same capacity as larger units.
    pub(super) struct PackedRow {
        /// The larger unit.
        unit: String = text("unit"),
        /// How many it takes.
        units: u64 = count("units"),
        /// Their number before rounding up.
        units_exact: f64 = count("not rounded up"),
    }
}

rows! {
    /// Cores of processors that could carry the load.
    pub(super) struct CoreRow {
        /// Name of the core in the list.
        name: String = text("core"),
        /// Whole cores that the load takes at the utilisation that is planned.
        cores: u64 = count("cores"),
        /// At the factor of the licence; unknown if it does not count cores.
        licences: Option<f64> = count("licences"),
    }
}

rows! {
    /// A disk by the share of it that is used.
    pub(super) struct StrokeRow {
        /// The share of the disk that is used.
        stroke: f64 = share("stroke"),
        /// Between two random places in it, on average.
        seek_ns: f64 = time("seek"),
        /// Half a revolution.
        rotation_ns: f64 = time("rotation"),
        /// Time to transfer a block of 8 KiB.
        transfer_ns: f64 = time("transfer"),
        /// Random requests, one after the other.
        iops: f64 = count("IOPS"),
        /// Its capacity then.
        used_bytes: Option<f64> = bytes("holds"),
    }
}

rows! {
    /// Scans of a disk by allocation unit.
    pub(super) struct ScanRow {
        /// Read in one piece.
        unit_bytes: f64 = unmerged("allocation unit", Measure::Bytes),
        /// Rate of a scan that seeks for each unit, because others read too.
        bytes_per_s: f64 = flow("scan"),
        /// Disks that a request of 1 MiB touches, on average.
        disks: f64 = count("disks"),
    }
}

rows! {
    /// Changes of the load or the hardware, and the units that it would take then.
    pub(super) struct ChangeRow {
        /// One thing done otherwise.
        change: String = text("what would change it").answer(),
        /// Units that it takes then.
        units: u64 = count("units").answer(),
        /// The ceiling that binds then.
        ceiling: String = text("binds").answer(),
        /// Utilisation of that ceiling; above 100 % the units do not carry the need.
        utilisation: f64 = share("used"),
    }
}

rows! {
    /// Databases or instances on the same storage.
    pub(super) struct PartRow {
        /// A database, or an instance of one.
        name: String = text("part").answer(),
        /// Its own peak, whenever that is.
        peak_iops: f64 = count("own peak").answer(),
        /// Its part of the peak of the sum.
        at_peak_iops: Option<f64> = count("in the peak of the sum"),
    }
}

rows! {
    /// Intervals of the largest load.
    pub(super) struct PeakRow {
        /// The database whose interval it is.
        name: String = text("database"),
        /// By the clock of the server; unknown if the source has no times.
        begin: Result<String, Missing> = text("begin"),
        /// Length of the interval: its rates are means over this time.
        length_ns: Result<f64, Missing> = time("length"),
        /// Reads + penalty × writes.
        hardware_iops: f64 = count("IOPS of the storage").answer(),
        /// Units that carry these requests, of IOPS only, at the planned utilisation.
        units: Option<u64> = count("units for them"),
        /// Reads a second of the database.
        reads_per_s: Option<f64> = count("reads/s"),
        /// Writes a second of the database.
        writes_per_s: Option<f64> = count("writes/s"),
        /// Instances of which nothing is known here.
        missing_instances: u64 = count("instances missing"),
    }
}

rows! {
    /// Statements in the intervals of the largest load.
    pub(super) struct StatementRow {
        /// The interval.
        begin: Option<String> = text("begin"),
        /// Identifier of the statement in the database.
        statement: String = text("statement").answer(),
        /// Read requests of the statement.
        read_ios_per_s: Option<f64> = count("reads/s"),
        /// Blocks that it read from storage.
        physical_reads_per_s: Option<f64> = count("blocks/s"),
        /// Time of its calls ÷ the interval.
        elapsed_share: Option<f64> = share("active sessions"),
    }
}

rows! {
    /// Requests of the storage by hour of the week.
    pub(super) struct HourRow {
        /// Hour of the day, by the clock of the server.
        hour: String = text("hour"),
        /// IOPS on Monday: the most of all weeks, of means over this hour.
        monday_iops: Value = count("Mon"),
        /// IOPS on Tuesday: the most of all weeks, of means over this hour.
        tuesday_iops: Value = count("Tue"),
        /// IOPS on Wednesday: the most of all weeks, of means over this hour.
        wednesday_iops: Value = count("Wed"),
        /// IOPS on Thursday: the most of all weeks, of means over this hour.
        thursday_iops: Value = count("Thu"),
        /// IOPS on Friday: the most of all weeks, of means over this hour.
        friday_iops: Value = count("Fri"),
        /// IOPS on Saturday: the most of all weeks, of means over this hour.
        saturday_iops: Value = count("Sat"),
        /// IOPS on Sunday: the most of all weeks, of means over this hour.
        sunday_iops: Value = count("Sun"),
    }
}

rows! {
    /// Intervals that were observed.
    pub(super) struct SourceRow {
        /// The database and instance.
        name: String = text("source").answer(),
        /// Kind of its report: `awr`, `awr-global`, `statspack`, `awr-miner`, `csv`, or several of
        /// them, such as `awr+statspack`; `iostat`, `sar`, `collectl`; `recording` of Blockstone.
        kind: String = text("kind"),
        /// The pluggable database, if the report is of one.
        container: Value = text("container"),
        /// By the clock of the server; unknown if the source has no times.
        begin: Result<String, Missing> = text("begin"),
        /// Its rates are means over this time; unknown if the source has no times.
        length_ns: Result<f64, Missing> = time("length"),
        /// Read requests.
        reads_per_s: Option<f64> = count("reads/s"),
        /// Write requests.
        writes_per_s: Option<f64> = count("writes/s"),
        /// Bytes read a second.
        read_bytes_per_s: Option<f64> = flow("read"),
        /// Bytes written a second.
        write_bytes_per_s: Option<f64> = flow("written"),
        /// Redo generated a second.
        redo_bytes_per_s: Option<f64> = flow("redo"),
        /// Transactions committed.
        commits_per_s: Option<f64> = count("commits/s"),
    }
}

rows! {
    /// Devices that are not counted by themselves.
    pub(super) struct LeftOutRow {
        /// The file or recording.
        source: String = text("source"),
        /// The device.
        name: String = text("left out").answer(),
        /// Why its requests are not counted, or already are.
        why: &'static str = text("why").answer(),
    }
}

rows! {
    /// A run compared with the need.
    pub(super) struct VerifiedRow {
        /// The figure that is compared.
        figure: &'static str = text("run against need").answer(),
        /// Prediction for a p99 by the curve, at the next smaller load that was measured.
        predicted_low: Value = unmerged("at least", Measure::OfRow),
        /// Prediction of the need, with its interval; for a p99 the one wanted, or by the curve at
        /// the next larger load that was measured.
        predicted: Value = unmerged("predicted", Measure::OfRow).answer(),
        /// Value that the run measured, with its interval; unknown if a rule condemned it.
        measured: Option<Estimate> = unmerged("measured", Measure::OfRow).answer(),
    }
}

impl LeftOutRow {
    pub fn of((source, device): &(String, LeftOut)) -> Self {
        Self { source: source.clone(), name: device.name.clone(), why: device.why }
    }
}

impl Summary {
    pub fn of(sized: &Sized, args: &SizeArgs) -> Self {
        let Sized { demand, hardware, .. } = sized;
        let need = sized.need.as_ref();
        let of_storage = need.map(|it| &it.hardware_iops);
        let averaging = need.map(|it| it.averaging_s).filter(|_| sized.sources.is_timed());
        let growth = need.map(|it| it.growth.as_ref());
        let grown = growth.and_then(Result::ok);
        // A stated need was not observed.
        let why = need.map_or(Missing::Nothing, |_| Missing::Unknown);
        let together = need.and_then(|it| it.consolidation.as_ref());
        Self {
            penalty: sized.question.penalty,
            percentile: if need.is_some() { sized.named().to_owned() } else { "stated".to_owned() },
            reads_per_s: demand.reads_per_s,
            writes_per_s: demand.writes_per_s,
            averaging_ns_min: averaging.map(|it| it.0 * SECOND_NS).ok_or(why).into(),
            averaging_ns_max: averaging.map(|it| it.1 * SECOND_NS).ok_or(why).into(),
            intervals: of_storage.map_or(0, |it| it.samples as u64),
            partial_intervals: need.map_or(0, |it| it.partial.0 as u64),
            hardware_iops_p95_weighted: of_storage.and_then(|it| it.p95_weighted).ok_or(why),
            most_hardware_iops: need.and_then(|it| it.most_hardware_iops).ok_or(why),
            at_max_share: of_storage.and_then(|it| it.at_max_share).ok_or(why),
            growth_weeks: grown.map(|it| it.weeks as u64).ok_or(why),
            growth_iops_per_week: grown.map(|it| it.per_week).ok_or(why),
            grown_iops_p95: grown.map(|it| it.after).ok_or(why),
            no_growth: happened(growth.and_then(Result::err)),
            consolidation: happened(together.map(|it| it.of)),
            sum_of_peaks_iops: happened(together.map(|it| it.sum_of_peaks)),
            peak_of_sums_iops: happened(together.map(|it| it.peak_of_sums)),
            peak_of_sums_at: happened(together.map(|it| &it.at)),
            sum_of_most_iops: together.map_or_else(Value::default, |it| it.most.into()),
            unit: hardware.answer.unit.clone(),
            units: hardware.answer.units,
            drive: happened(drive::of(sized, args).map(|it| it.to_string())),
        }
    }
}

/// The row of the requests that reach the disks.
pub(super) const OF_STORAGE: &str = "IOPS of the storage";

impl NeedRow {
    pub fn of(quantity: &'static str, found: &Percentiles, measure: Measure) -> Row {
        let [p50, p95, p99] = [found.p50, found.p95, found.p99].map(happened);
        Row::from(Self { quantity, p50, p95, p99, max: happened(found.max) }).of(measure)
    }

    /// A need that was stated.
    pub fn stated(quantity: &'static str, value: Option<f64>, measure: Measure) -> Option<Row> {
        let found = Percentiles { max: Some(value?), ..Percentiles::default() };
        Some(Self::of(quantity, &found, measure))
    }
}

impl CeilingRow {
    pub fn of(answer: &Answer) -> impl Iterator<Item = Self> {
        answer.ceilings.iter().map(|it| {
            let &Ceiling { need, unit_capacity, units, binding, slack, utilisation, .. } = it;
            let ceiling = it.name.clone();
            Self { ceiling, need, unit_capacity, units, utilisation, slack, binding }
        })
    }
}

impl SourceRow {
    pub fn of(it: &Observation, is_timed: bool) -> Self {
        Self {
            name: it.name(),
            kind: it.kind.clone(),
            container: happened(it.container.as_ref()),
            begin: it.begin().filter(|_| is_timed).ok_or(Missing::Unknown),
            length_ns: is_timed.then_some(it.seconds * SECOND_NS).ok_or(Missing::Unknown),
            reads_per_s: it.reads_per_s,
            writes_per_s: it.writes_per_s,
            read_bytes_per_s: it.read_bytes_per_s,
            write_bytes_per_s: it.write_bytes_per_s,
            redo_bytes_per_s: it.redo_bytes_per_s,
            commits_per_s: it.commits_per_s,
        }
    }
}

impl VerifiedRow {
    pub fn of(run: &RunOfNeed) -> Vec<Row> {
        let row = |figure, predicted_low, predicted, measured, measure| {
            Row::from(Self { figure, predicted_low, predicted, measured }).of(measure)
        };
        let (none, wanted) = (Value::default(), happened(run.wanted_latency_ns_p99));
        let (p99, time) = (run.latency_ns_p99, Measure::Nanoseconds);
        let requests = run.predicted_iops.into();
        let mut rows = vec![
            row("requests/s of the database", none.clone(), requests, run.iops, Measure::Count),
            row("p99 of a read", none, wanted, p99, time),
        ];
        rows.extend(run.predicted_latency_ns_p99.map(|(low, high)| {
            let low = happened(Some(low).filter(|low| *low > 0.0));
            row("p99 of a read, by the curve", low, high.into(), p99, time)
        }));
        rows
    }
}
