//! The tables of `check write-order`.

use blockstone_base::rows;
use blockstone_base::table::{Rows as _, Value, count, flag, happened, ratio, share, text};
use blockstone_check::order::findings::{Cell, Mode, OrderFindings, Side};
use blockstone_report::Section;
use blockstone_report::render::json::schema::Tables;

rows! {
    /// Modes with the largest number of threads.
    struct ModeRow {
        /// Kind of writes, or `readers` for reads beside a writer.
        mode: &'static str = text("mode"),
        /// `scales`, `serialises`, `refused` or `unknown`.
        class: &'static str = text("class").answer(),
        /// Waits for the lock of the file ÷ time of the threads.
        lock_time_share: Option<f64> = share("waits"),
        /// The same with files of their own.
        own_lock_time_share: Option<f64> = share("own files"),
        /// Times a thread gave up its processor ÷ requests.
        switches_per_request: f64 = ratio("switches"),
        /// The same with files of their own.
        own_switches_per_request: Option<f64> = ratio("own files"),
        /// Requests per second of all threads together.
        iops: f64 = count("1/s"),
        /// The same with files of their own.
        own_iops: Option<f64> = count("own files"),
    }
}

rows! {
    /// Modes by number of threads.
    struct WritersRow {
        /// Kind of writes, or `readers` for reads beside a writer.
        mode: &'static str = text("mode"),
        /// Threads at the same time.
        writers: u32 = count("writers"),
        /// `scales`, `serialises`, `refused` or `unknown`; `control` for one writer.
        class: &'static str = text("class").answer(),
        /// Waits for the lock of the file ÷ time of the threads.
        lock_time_share: Option<f64> = share("waits"),
        /// The same with files of their own.
        own_lock_time_share: Option<f64> = share("own files"),
        /// Requests per second of all threads together.
        iops: f64 = count("1/s"),
        /// The same with files of their own.
        own_iops: Option<f64> = count("own files"),
        /// Requests per second ÷ those of the smallest number of threads.
        gain: Option<f64> = ratio("gain"),
        /// The same with files of their own.
        own_gain: Option<f64> = ratio("own files"),
    }
}

rows! {
    /// Evidence by mode and number of threads.
    struct CellRow {
        /// Kind of writes, or `readers` for reads beside a writer.
        mode: &'static str = text("mode"),
        /// Threads at the same time.
        writers: u32 = count("writers"),
        /// Place of the writes in the file, in words.
        about: &'static str = text("where"),
        /// Whether the threads use the page cache.
        buffered: bool = flag("buffered"),
        /// `scales`, `serialises`, `refused` or `unknown`.
        class: &'static str = text("class"),
        /// Requests to one file that succeeded.
        requests: u64 = count("requests"),
        /// Requests to files of their own that succeeded.
        own_requests: Option<u64> = count("own files"),
        /// Waits for the lock of the file ÷ requests.
        waits_per_request: Option<f64> = ratio("waits ÷ request"),
        /// Times a thread gave up its processor ÷ requests.
        switches_per_request: f64 = ratio("switches"),
        /// The same with files of their own.
        own_switches_per_request: Option<f64> = ratio("own files"),
        /// Appends in whose place another was written.
        lost: Value = count("lost"),
        /// Error of the first request that did not succeed.
        error: Value = text("error"),
        /// Functions of the kernel, innermost first.
        waited_in: Value = text("waited in"),
        /// Where the thread that it waited for released the lock.
        held_in: Value = text("held until"),
        /// Observations on which the class rests.
        evidence: String = text("evidence").prose(),
    }
}

pub const TABLES: Tables = &[
    ("write-order", ModeRow::COLUMNS),
    ("write-order-writers", WritersRow::COLUMNS),
    ("write-order-cells", CellRow::COLUMNS),
];

pub fn sections(findings: &OrderFindings) -> Vec<Section> {
    if findings.not_tried.is_some() {
        return Vec::new();
    }
    let writers = findings.writers;
    let how = if findings.is_buffered { "buffered" } else { "direct" };
    let (title, whose) = if findings.is_device {
        ("Writers of one device", format!("{writers} {how} writers of the device"))
    } else {
        let own = format!("beside {writers} with files of their own");
        ("Writers of one file", format!("{writers} {how} writers of one file, {own}"))
    };
    let about = format!("{whose}. Classes rest on waits for the lock, never on rates.");
    let modes = ModeRow::table("write-order", title, findings.largest().map(ModeRow::of));
    let cells = findings.cells.iter().map(|cell| CellRow::of(cell, findings));
    let cells = CellRow::table("write-order-cells", "All modes", cells);
    let mut sections = vec![Section::of("write-order", modes).about(about)];
    if findings.cells.len() > findings.largest().count() {
        let title = "By number of writers";
        let rows = findings.cells.iter().map(|cell| WritersRow::of(cell, findings));
        let table = WritersRow::table("write-order-writers", title, rows);
        sections.push(Section::of("write-order-writers", table));
    }
    let waited: Vec<String> = findings.largest().flat_map(stacks).collect();
    if !waited.is_empty() {
        let title = "Where they wait, and for whom";
        sections.push(Section::new("write-order-stacks", title).with(waited));
    }
    sections.push(Section::page("write-order-cells", "All modes").with([cells]));
    sections
}

fn stacks(cell: &Cell) -> impl Iterator<Item = String> {
    let named = [("waits in", &cell.waited_in), ("held until", &cell.held_in)];
    let known = named.into_iter().filter(|(_, functions)| !functions.is_empty());
    known.map(|(what, functions)| format!("{} {what}: {}", cell.mode.name(), functions.join(" < ")))
}

impl ModeRow {
    fn of(cell: &Cell) -> Self {
        let (one, own) = (cell.one_file, cell.own_files);
        Self {
            mode: cell.mode.name(),
            class: cell.class.name(),
            lock_time_share: one.lock_time_share,
            own_lock_time_share: own.and_then(|own| own.lock_time_share),
            switches_per_request: one.switches_per_request,
            own_switches_per_request: own.map(|own| own.switches_per_request),
            iops: one.iops,
            own_iops: own.map(|own| own.iops),
        }
    }
}

impl WritersRow {
    fn of(cell: &Cell, findings: &OrderFindings) -> Self {
        let (one, own) = (cell.one_file, cell.own_files);
        let is_control = cell.writers == 1 && cell.mode != Mode::Readers;
        // Cells are in ascending order of writers.
        let first = findings.cells.iter().find(|it| it.mode == cell.mode).unwrap_or(cell);
        Self {
            mode: cell.mode.name(),
            writers: cell.writers,
            class: if is_control { "control" } else { cell.class.name() },
            lock_time_share: one.lock_time_share,
            own_lock_time_share: own.and_then(|own| own.lock_time_share),
            iops: one.iops,
            own_iops: own.map(|own| own.iops),
            gain: gain(one, first.one_file),
            own_gain: own.zip(first.own_files).and_then(|(own, first)| gain(own, first)),
        }
    }
}

impl CellRow {
    fn of(cell: &Cell, findings: &OrderFindings) -> Self {
        let (one, own) = (cell.one_file, cell.own_files);
        let stack =
            |functions: &[String]| happened((!functions.is_empty()).then(|| functions.join(" < ")));
        Self {
            mode: cell.mode.name(),
            writers: cell.writers,
            about: cell.mode.about(),
            buffered: findings.is_buffered,
            class: cell.class.name(),
            requests: one.requests,
            own_requests: own.map(|own| own.requests),
            waits_per_request: one.waits_per_request,
            switches_per_request: one.switches_per_request,
            own_switches_per_request: own.map(|own| own.switches_per_request),
            lost: happened((cell.mode == Mode::Append).then_some(one.lost)),
            error: happened(cell.error.as_deref()),
            waited_in: stack(&cell.waited_in),
            held_in: stack(&cell.held_in),
            evidence: cell.evidence.clone(),
        }
    }
}

fn gain(side: Side, first: Side) -> Option<f64> {
    Some(side.iops / first.iops).filter(|gain| gain.is_finite())
}
