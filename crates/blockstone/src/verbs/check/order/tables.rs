//! The tables of `check write-order`.

use blockstone_base::row;
use blockstone_base::table::{Heading, Missing, Table, Value, count, ratio, share, text};
use blockstone_check::order::findings::{Cell, Mode, OrderFindings, Side};
use blockstone_report::Section;

const MODES: &[Heading] = &[
    text("mode", "mode", "What is written, or that files are read beside a writer."),
    text("class", "class", "scales, serialises, refused or unknown."),
    share("lock_time_share", "waits", "Waits for the lock of the file ÷ time of the threads."),
    share("own_lock_time_share", "own files", "The same with files of their own."),
    ratio("switches", "switches", "Times a thread gave its processor away ÷ requests."),
    ratio("own_switches", "own files", "The same with files of their own."),
    count("iops", "1/s", "Requests per second of all threads together."),
    count("own_iops", "own files", "The same with files of their own."),
];

const NUMBERS: &[Heading] = &[
    text("mode", "mode", "What is written, or that files are read beside a writer."),
    count("writers", "writers", "Threads at the same time."),
    text("class", "class", "As above; of one writer nothing but the control."),
    share("lock_time_share", "waits", "Waits for the lock of the file ÷ time of the threads."),
    share("own_lock_time_share", "own files", "The same with files of their own."),
    count("iops", "1/s", "Requests per second of all threads together."),
    count("own_iops", "own files", "The same with files of their own."),
    ratio("gain", "gain", "Requests per second ÷ those of the smallest number of threads."),
    ratio("own_gain", "own files", "The same with files of their own."),
];

const CELLS: &[Heading] = &[
    text("mode", "mode", "What is written, or that files are read beside a writer."),
    count("writers", "writers", "Threads at the same time."),
    text("about", "where", "What is written, in words."),
    count("requests", "requests", "Requests to one file that succeeded."),
    count("own_requests", "own files", "Requests to files of their own that succeeded."),
    ratio("waits", "waits ÷ request", "Waits for the lock of the file ÷ requests."),
    text("error", "error", "What the kernel answered to the first that did not succeed."),
    text("waited_in", "waited in", "Functions of the kernel, innermost first."),
    text("held_in", "held until", "Where the thread that it waited for let go of the lock."),
    text("evidence", "evidence", "What the class rests on."),
];

pub const TABLES: &[(&str, &[Heading])] =
    &[("write-order", MODES), ("write-order-writers", NUMBERS), ("write-order-cells", CELLS)];

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
    let modes = Table::new("write-order", title, MODES).with(findings.largest().map(mode));
    let cells = Table::new("write-order-cells", "All modes", CELLS);
    let mut sections = vec![Section::of("write-order", modes).about(about)];
    if findings.cells.len() > findings.largest().count() {
        let title = "By number of writers";
        let numbers = Table::new("write-order-writers", title, NUMBERS);
        let numbers = numbers.with(findings.cells.iter().map(|cell| number(findings, cell)));
        sections.push(Section::of("write-order-writers", numbers));
    }
    let waited: Vec<String> = findings.largest().flat_map(stacks).collect();
    if !waited.is_empty() {
        let title = "Where they wait, and for whom";
        sections.push(Section::new("write-order-stacks", title).with(waited));
    }
    sections.push(
        Section::page("write-order-cells", "All modes")
            .with([cells.with(findings.cells.iter().map(cell))]),
    );
    sections
}

fn stacks(cell: &Cell) -> impl Iterator<Item = String> {
    let named = [("waits in", &cell.waited_in), ("held until", &cell.held_in)];
    let known = named.into_iter().filter(|(_, functions)| !functions.is_empty());
    known.map(|(what, functions)| format!("{} {what}: {}", cell.mode.name(), functions.join(" < ")))
}

fn mode(cell: &Cell) -> blockstone_base::table::Row {
    row![
        cell.mode.name(),
        cell.class.name(),
        known(cell.one_file.lock_time_share),
        known(cell.own_files.and_then(|own| own.lock_time_share)),
        cell.one_file.switches_per_request,
        known(cell.own_files.map(|own| own.switches_per_request)),
        cell.one_file.iops,
        known(cell.own_files.map(|own| own.iops))
    ]
}

fn number(findings: &OrderFindings, cell: &Cell) -> blockstone_base::table::Row {
    let is_control = cell.writers == 1 && cell.mode != Mode::Readers;
    // Cells are in ascending order of writers.
    let first = findings.cells.iter().find(|it| it.mode == cell.mode).unwrap_or(cell);
    row![
        cell.mode.name(),
        cell.writers,
        if is_control { "control" } else { cell.class.name() },
        known(cell.one_file.lock_time_share),
        known(cell.own_files.and_then(|own| own.lock_time_share)),
        cell.one_file.iops,
        known(cell.own_files.map(|own| own.iops)),
        gain(Some(cell.one_file), Some(first.one_file)),
        gain(cell.own_files, first.own_files)
    ]
}

fn cell(cell: &Cell) -> blockstone_base::table::Row {
    row![
        cell.mode.name(),
        cell.writers,
        cell.mode.about(),
        cell.one_file.requests,
        known(cell.own_files.map(|own| own.requests as f64)),
        known(cell.one_file.waits_per_request),
        cell.error.as_deref().unwrap_or_default(),
        cell.waited_in.join(" < "),
        cell.held_in.join(" < "),
        cell.evidence.as_str()
    ]
}

fn gain(side: Option<Side>, first: Option<Side>) -> Value {
    let gain = side.zip(first).map(|(side, first)| side.iops / first.iops);
    known(gain.filter(|gain| gain.is_finite()))
}

fn known(number: Option<f64>) -> Value {
    number.map_or(Value::from(Missing::Unknown), Value::from)
}
