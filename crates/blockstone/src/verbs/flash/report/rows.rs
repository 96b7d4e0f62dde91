//! Figures and tables of the verbs of `flash`. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Missing, Value, count, flag, flow, happened, level, ratio, share, text, time,
};
use blockstone_flash::estimate::{Cliff, Fall, Life};
use blockstone_flash::fit::Fit;
use blockstone_flash::sweep::{Setting, Swept};
use blockstone_flash::toy::{Cell, Step};

mod sim;

pub use sim::{
    BadLineRow, EraseRow, FigureRow, LatencyRow, PageRow, PointRow, ProgramRow, ProgramTimeRow,
    SimSummary,
};

const SECOND_NS: f64 = 1e9;

rows! {
    /// Figures of a cliff, by formula.
    pub struct CliffRow {
        /// Raw ÷ visible − 1.
        over_provisioning: f64 = share("over-provisioning"),
        /// The part of the raw capacity that is spare.
        spare_factor: f64 = share("spare factor"),
        /// The same after reserves, of what is usable.
        effective_spare: f64 = share("effective spare"),
        /// Bytes that can be overwritten before anything has to be moved.
        spare_bytes: u64 = level("spare", Measure::Bytes),
        /// Written until the cliff, in visible capacities; nothing happened if it never comes.
        cliff_drive_fills: Value = count("drive fills to the cliff"),
        /// At the required rate, or at the rate that the device takes if that is lower.
        time_to_cliff_ns: Value = time("time to the cliff"),
        /// Write amplification after the cliff, or in the long run.
        wa_analytic: f64 = ratio("write amplification"),
        /// Writes of a page per second before the cliff.
        iops_fresh: f64 = count("IOPS before"),
        /// Writes of a page per second after the cliff.
        iops_steady: f64 = count("IOPS after"),
        /// Writes of a page per second that are required.
        iops_wanted: f64 = count("IOPS required"),
        /// To sustain this rate after the cliff; unknown if no spare suffices.
        over_provisioning_needed: Option<f64> = share("over-provisioning needed"),
        /// Visible bytes to use at most, to sustain this rate after the cliff.
        visible_bytes_needed: Option<u64> = level("use at most", Measure::Bytes),
        /// `no cliff`: background collection keeps up, or so much is spare that writes hardly wait;
        /// `cliff`: it comes; `not established`: background collection keeps up by the formula, but
        /// keeps fewer blocks free than it should; `rate too high`: the device does not take this
        /// rate even before the cliff.
        outcome: &'static str = text("outcome"),
    }
}

rows! {
    /// Properties of a drive that follow from a measured curve of writes.
    pub struct FitRow {
        /// Written in all, in visible capacities.
        drive_fills: f64 = count("drive fills"),
        /// Before the fall.
        fresh_bytes_per_s: f64 = flow("at first"),
        /// At the end of the curve.
        last_bytes_per_s: f64 = flow("at the end"),
        /// Whether the rate fell by more than 15 %.
        fell: bool = flag("fell"),
        /// Written when it fell, in visible capacities.
        cliff_drive_fills: Value = count("cliff"),
        /// From where it fell, for a drive that was full before.
        over_provisioning_of_cliff: Value = share("over-provisioning"),
        /// Write amplification, from how far it fell.
        wa: Value = ratio("write amplification"),
        /// From that, by formula.
        effective_spare: Value = share("effective spare"),
        /// Whether the end passes SNIA's steady-state test.
        is_settled: bool = flag("preconditioned"),
        /// From when on, in drive fills.
        settled_from_drive_fills: Value = count("since"),
        /// Until it is preconditioned; 0 if it is.
        drive_fills_missing: f64 = count("drive fills missing"),
    }
}

rows! {
    /// How long a device lives.
    pub struct LifeRow {
        /// Years until the mean block reaches its program/erase cycles.
        years: f64 = count("years"),
        /// Bytes that the host can write until then.
        host_bytes: f64 = level("host writes", Measure::Bytes),
        /// Visible capacities per day, for five years.
        drive_writes_per_day: f64 = count("drive writes per day"),
        /// Programs ÷ host pages.
        wa: f64 = ratio("write amplification"),
        /// Erases a day of the mean block.
        erases_per_day: f64 = count("erases per day"),
    }
}

rows! {
    /// Steps of the explanation.
    pub struct StepRow {
        /// With or without garbage collection.
        story: &'static str = text("story"),
        /// From 1.
        step: u64 = count("step"),
        /// In sentences.
        text: String = text("what happens").prose(),
        /// Pages written by the host so far.
        host_pages: u32 = count("host pages"),
        /// Pages programmed so far.
        programs: u32 = count("programs"),
        /// Blocks erased so far.
        erases: u32 = count("erases"),
        /// Pages in use.
        used_pages: u64 = count("used"),
        /// Pages whose content was overwritten.
        stale_pages: u64 = count("stale"),
        /// Erased pages.
        free_pages: u64 = count("free"),
    }
}

rows! {
    /// Blocks after each step of the explanation.
    pub struct BlockRow {
        /// Story to which the step belongs, as in the table `steps`.
        story: &'static str = text("story"),
        /// Step of the story, as in the table `steps`.
        step: u64 = count("step"),
        /// From 0.
        block: u64 = count("block"),
        /// Pages of the block: each is `free`, `stale`, or the page of the host that is in it.
        pages: String = text("pages").answer(),
    }
}

rows! {
    /// Single figures of a sweep.
    pub struct SweepSummary {
        /// Seed of the random numbers, in digits.
        seed: String = text("seed"),
    }
}

rows! {
    /// Write amplification, simulated and by formula.
    pub struct SweptRow {
        /// Raw ÷ visible − 1.
        over_provisioning: f64 = share("OP"),
        /// How the block to collect is chosen.
        policy: String = text("policy"),
        /// Pages of a block.
        pages_per_block: u32 = count("pages/block"),
        /// The part of the usable capacity that is spare.
        effective_spare: f64 = share("spare"),
        /// Programs ÷ host pages, simulated.
        wa: f64 = ratio("WA").answer(),
        /// The same by formula.
        wa_analytic: Option<f64> = ratio("formula").answer(),
        /// Simulated − formula, of the formula.
        wa_error_percent: Option<f64> = count("error, %"),
        /// Writes of a page per second that the device sustains.
        iops_steady: Option<f64> = count("steady IOPS"),
        /// How pages were tracked: `exact` or `counts`.
        engine: &'static str = text("engine"),
        /// Free blocks kept for collection.
        reserve_blocks: u32 = count("reserve"),
        /// The part of the blocks that is bad.
        bad_blocks: f64 = share("bad blocks"),
    }
}

rows! {
    /// Wear, in the order of the points.
    pub struct WearRow {
        /// Erases that a block may lag behind.
        levelling: Result<u32, Missing> = count("levelling"),
        /// Raw ÷ visible − 1.
        over_provisioning: f64 = share("OP"),
        /// How the block to collect is chosen.
        policy: String = text("policy"),
        /// Pages of a block.
        pages_per_block: u32 = count("pages/block"),
        /// Erases of the block with the fewest, over the whole run.
        erases_least: u32 = count("least erases"),
        /// Erases of the mean block, over the whole run.
        erases_mean: f64 = count("mean"),
        /// Erases of the block with the most, over the whole run.
        erases_most: u32 = count("most"),
        /// Most − least.
        erases_spread: u32 = count("spread"),
        /// Programs ÷ host pages.
        wa: f64 = ratio("WA"),
        /// Pages that wear levelling moved ÷ all programs.
        levelled_share: f64 = share("moved to level"),
    }
}

impl CliffRow {
    pub fn of(cliff: &Cliff) -> Self {
        Self {
            over_provisioning: cliff.over_provisioning,
            spare_factor: cliff.spare_factor,
            effective_spare: cliff.effective_spare,
            spare_bytes: cliff.spare_bytes,
            cliff_drive_fills: happened(cliff.cliff_drive_fills),
            time_to_cliff_ns: happened(cliff.seconds_to_cliff.map(|seconds| seconds * SECOND_NS)),
            wa_analytic: cliff.wa,
            iops_fresh: cliff.iops_fresh,
            iops_steady: cliff.iops_steady,
            iops_wanted: cliff.iops_wanted,
            over_provisioning_needed: cliff.over_provisioning_needed,
            visible_bytes_needed: cliff.visible_bytes_needed,
            outcome: match cliff.outcome {
                Fall::Never | Fall::Slight => "no cliff",
                Fall::Unsure => "not established",
                Fall::At => "cliff",
                Fall::TooSlow => "rate too high",
            },
        }
    }
}

impl FitRow {
    pub fn of(fit: &Fit) -> Self {
        Self {
            drive_fills: fit.drive_fills,
            fresh_bytes_per_s: fit.fresh_bytes_per_s,
            last_bytes_per_s: fit.last_bytes_per_s,
            fell: fit.fell,
            cliff_drive_fills: happened(fit.cliff_drive_fills),
            over_provisioning_of_cliff: happened(fit.over_provisioning_of_cliff),
            wa: happened(fit.wa),
            effective_spare: happened(fit.effective_spare),
            is_settled: fit.is_settled,
            settled_from_drive_fills: happened(fit.settled_from_drive_fills),
            drive_fills_missing: fit.drive_fills_missing,
        }
    }
}

impl LifeRow {
    pub fn of(life: &Life) -> Self {
        let Life { years, host_bytes, drive_writes_per_day, wa, erases_per_day } = *life;
        Self { years, host_bytes, drive_writes_per_day, wa, erases_per_day }
    }
}

impl StepRow {
    pub fn of(story: &'static str, number: u64, step: &Step) -> Self {
        Self {
            story,
            step: number,
            text: step.text.clone(),
            host_pages: step.host_pages,
            programs: step.programs,
            erases: step.erases,
            used_pages: step.used_pages as u64,
            stale_pages: step.stale_pages as u64,
            free_pages: step.free_pages as u64,
        }
    }
}

impl BlockRow {
    /// Returns a row for each block.
    pub fn of(story: &'static str, step: u64, shown: &Step) -> impl Iterator<Item = Self> {
        let page = |cell: &Cell| match cell {
            Cell::Free => "free".to_owned(),
            Cell::Stale => "stale".to_owned(),
            Cell::Used(page) => page.to_string(),
        };
        shown.blocks.iter().zip(0..).map(move |(cells, block)| {
            let pages: Vec<String> = cells.iter().map(page).collect();
            Self { story, step, block, pages: pages.join(" ") }
        })
    }
}

impl SweptRow {
    pub fn of(point: &Swept, iops_steady: Option<f64>) -> Self {
        let setting = point.setting;
        Self {
            over_provisioning: setting.over_provisioning,
            policy: setting.policy.to_string(),
            pages_per_block: setting.pages_per_block,
            effective_spare: point.effective_spare,
            wa: point.wa,
            wa_analytic: point.wa_analytic,
            wa_error_percent: point.wa_error.map(|error| error * 100.0),
            iops_steady,
            engine: point.engine,
            reserve_blocks: setting.reserve_blocks,
            bad_blocks: setting.bad_blocks,
        }
    }
}

impl WearRow {
    pub fn of(point: &Swept) -> Self {
        let Setting { over_provisioning, policy, pages_per_block, levelling, .. } = point.setting;
        Self {
            levelling: levelling.ok_or(Missing::Off),
            over_provisioning,
            policy: policy.to_string(),
            pages_per_block,
            erases_least: point.erases_least,
            erases_mean: point.erases_mean,
            erases_most: point.erases_most,
            erases_spread: point.erases_most - point.erases_least,
            wa: point.wa,
            levelled_share: point.levelled_share,
        }
    }
}
