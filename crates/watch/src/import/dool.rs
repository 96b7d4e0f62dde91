//! CSV of dstat and dool (`--output FILE`): means over each interval. The first row covers all the
//! time since boot, and only marks the start of the next.

use blockstone_base::identity::Host;
use blockstone_probe::{memory, network};

use super::instant;
use super::ledger::{Amount, IntervalRow};
use super::steps::{self, Steps, level, number, rate};
use super::sysstat::Disks;
use super::text::Text;
use super::{Failure, Format, Origin, Sink};

pub const FORMAT: Format = Format {
    tool: "dstat",
    holds: "means of intervals, rounded to three decimals",
    goes_on: false,
    made_by: "CSV of dstat or dool (dool --bytes -T --disk --io --full --output FILE 1)",
    recognises,
    read,
};

const PPM: f64 = 1e6;
const SECOND_NS: u64 = 1_000_000_000;
/// Names of the program, in the first line.
const PROGRAMS: [&str; 3] = ["\"dstat ", "\"dool ", "\"pcp-dstat "];
const DEFAULT_SECONDS: f64 = 1.0;
/// Options of the command that take a value, which may be a number.
const WITH_VALUE: [&str; 9] =
    ["-C", "-D", "-I", "-N", "-S", "-M", "--output", "--diskset", "--devel"];
const NO_CPUS: &str = "it does not say how many processors there are: their time is unknown";
const NO_TIMES: &str = "it has no times: its rows were taken as following each other at the \
                        interval of the command line";
const IN_BITS: &str = "dool counts bits from 1.3 on, except with --bytes: its bytes are an eighth \
                       of what the file says. An option in DOOL_OPTS does not show in it";
/// Options of dool that decide between bits and bytes; the last one counts.
const UNITS: [&str; 3] = ["--bits", "--bytes", "--dstat"];
/// The first release of dool that writes what its options say, bits if they say nothing. Those
/// before it, and dstat, write bytes even with --bits.
const OF_UNITS: (u32, u32) = (1, 3);
const BITS_OF_BYTE: f64 = 8.0;
const SHORTENED: &str = "dool shortens names of disks: bytes and requests may be in two rows";

fn recognises(head: &str) -> bool {
    let first = head.lines().next().unwrap_or_default().to_ascii_lowercase();
    first.contains("csv output") && PROGRAMS.iter().any(|name| first.starts_with(name))
}

/// A column: its group, such as `dsk/sda`, and its name in there, such as `read`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Heading {
    group: String,
    name: String,
}

#[derive(Default)]
struct Reader {
    host: String,
    version: Option<String>,
    /// Seconds of an interval, by the command line.
    delay: Option<f64>,
    /// The time at which the command started, and its year.
    began_ns: Option<u64>,
    year: Option<i16>,
    in_utc: bool,
    in_bits: bool,
    is_dool: bool,
    groups: Option<Vec<String>>,
    headings: Vec<Heading>,
    disks: Disks,
    without_zone: bool,
    without_times: bool,
    left_out: Vec<String>,
}

fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let mut steps = Steps::new(sink);
    let mut reader = Reader::default();
    while let Some((line, is_cut, row)) = text.next_numbered()? {
        // The last number may lack digits.
        if !is_cut && !row.trim().is_empty() {
            let damage = |what| Failure::Damage { line, what };
            reader.line(&cells(row), &mut steps).map_err(damage)??;
        }
    }
    let mut notes = Vec::new();
    if text.is_cut() {
        notes.push("the file is truncated: its last row was skipped".to_owned());
    }
    notes.extend(reader.without_times.then(|| NO_TIMES.to_owned()));
    notes.extend(reader.without_zone.then(|| instant::NO_ZONE.to_owned()));
    notes.extend(reader.in_bits.then(|| IN_BITS.to_owned()));
    if reader.headings.iter().any(|it| is_of_processors(&it.group)) {
        notes.push(NO_CPUS.to_owned());
    }
    let of = |what: &str| reader.headings.iter().any(|it| it.group.starts_with(what));
    let is_shortened = reader.is_dool && of("dsk/") && of("io/") && reader.has_other_names();
    notes.extend(is_shortened.then(|| SHORTENED.to_owned()));
    if !reader.left_out.is_empty() {
        notes.push(format!("columns that were not read: {}", steps::list(&reader.left_out)));
    }
    notes.extend(steps.note());
    let host = Host { hostname: reader.host, ..Host::default() };
    Ok(Origin { host, notes, tool_version: reader.version })
}

impl Reader {
    fn line(
        &mut self,
        cells: &[String],
        steps: &mut Steps<'_, '_>,
    ) -> Result<Result<(), Failure>, String> {
        let first = cells[0].as_str();
        let second = cells.get(1).map(String::as_str).unwrap_or_default();
        if first.to_ascii_lowercase().contains("csv output") {
            self.version = first.split(' ').nth(1).map(str::to_owned);
            self.is_dool = first.to_ascii_lowercase().starts_with("dool");
        } else if first == "Host:" {
            second.clone_into(&mut self.host);
        } else if first == "Cmdline:" {
            // Another run, appended to the same file.
            steps.restart();
            self.command(second);
            let at = cells.iter().position(|cell| cell == "Date:");
            self.date(at.and_then(|at| cells.get(at + 1)).map(String::as_str).unwrap_or_default());
            (self.groups, self.headings) = (None, Vec::new());
        } else if first == "Author:" {
            // The program's own.
            return Ok(Ok(()));
        } else if let Some(groups) = self.groups.take() {
            self.headings = headings(&groups, cells);
            self.left_out = left_out(&self.headings);
            let names: Vec<String> = self.disk_names();
            self.disks.list(names.iter().map(String::as_str));
        } else if self.headings.is_empty() {
            self.groups = Some(cells.to_vec());
        } else {
            return match self.row(cells, steps) {
                Ok(()) => Ok(Ok(())),
                Err(Row::Odd(what)) => Err(what),
                Err(Row::Failed(failure)) => Ok(Err(failure)),
            };
        }
        Ok(Ok(()))
    }

    fn command(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let said = words.iter().rfind(|word| UNITS.contains(word));
        let says_bytes = said.is_some_and(|word| *word != "--bits");
        self.in_bits = self.is_dool && self.follows_units() && !says_bytes;
        let is_value = |at: usize| at > 0 && WITH_VALUE.contains(&words[at - 1]);
        let mut others = (1..words.len()).filter(|at| !is_value(*at));
        // The delay is the first of the numbers, the count the second.
        self.delay = others.find_map(|at| number(words[at])).filter(|it| *it > 0.0);
    }

    /// Whether the program writes what its options say. A version that cannot be read is a new one.
    fn follows_units(&self) -> bool {
        let mut parts = self.version.iter().flat_map(|it| it.split('.')).map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OF_UNITS,
            _ => true,
        }
    }

    fn date(&mut self, text: &str) {
        let instant = instant::parse(text, None);
        self.began_ns = instant.map(|it| it.at_ns);
        self.in_utc = instant.is_some_and(|it| it.zoned);
        let is_year = |word: &&str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
        self.year = text.split_whitespace().find(is_year).and_then(|word| word.parse().ok());
    }

    fn find(&self, group: &str, name: &str) -> Option<usize> {
        self.headings.iter().position(|it| it.group == group && it.name == name)
    }

    fn disk_names(&self) -> Vec<String> {
        let disk = |it: &Heading| {
            let name = it.group.strip_prefix("dsk/").or_else(|| it.group.strip_prefix("io/"))?;
            (name != "total").then(|| name.to_owned())
        };
        let mut names: Vec<String> = self.headings.iter().filter_map(disk).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether a disk has bytes but no requests, or the reverse.
    fn has_other_names(&self) -> bool {
        self.disk_names().iter().any(|name| {
            let has = |group: &str| self.find(&format!("{group}/{name}"), "read").is_some();
            has("dsk") != has("io")
        })
    }

    fn row(&mut self, cells: &[String], steps: &mut Steps<'_, '_>) -> Result<(), Row> {
        let (has, wants) = (cells.len(), self.headings.len());
        if has != wants {
            return Err(Row::Odd(format!("a row of {has} cells for {wants} headings")));
        }
        let at_ns = self.time(cells, steps)?;
        steps.add(at_ns, &self.rows(cells)).map_err(Row::Failed)
    }

    /// Returns the time at the end of a row.
    fn time(&mut self, cells: &[String], steps: &Steps<'_, '_>) -> Result<u64, Row> {
        let epoch = self.find("epoch", "epoch").and_then(|at| number(&cells[at]));
        if let Some(at_ns) = epoch.and_then(instant::epoch) {
            return Ok(at_ns);
        }
        let Some(at) = self.find("system", "time") else {
            self.without_times = true;
            self.without_zone |= !self.in_utc;
            let length_ns = self.delay.unwrap_or(DEFAULT_SECONDS) * SECOND_NS as f64;
            let before_ns = steps.last_ns().or(steps.end_ns()).or(self.began_ns);
            let at_ns = before_ns.unwrap_or(SECOND_NS).saturating_add(length_ns as u64);
            let beyond = || Row::Odd("its time is beyond the year 2200".to_owned());
            return Some(at_ns).filter(|it| *it <= instant::LATEST_NS).ok_or_else(beyond);
        };
        let text = &cells[at];
        let unknown = || Row::Odd(format!("`{text}` is not a known form of time: use -T"));
        let mut instant = instant::parse(text, self.year).ok_or_else(unknown)?;
        // A day and a month without a year: the next year has begun.
        let has_passed =
            |ns: u64| steps.last_ns().is_some_and(|last_ns| ns + DAYS_180_NS < last_ns);
        if has_passed(instant.at_ns) {
            self.year = self.year.map(|year| year.saturating_add(1));
            instant = instant::parse(text, self.year).ok_or_else(unknown)?;
        }
        self.without_zone |= !instant.zoned && !self.in_utc;
        Ok(self.on_grid(instant.at_ns, steps))
    }

    /// Returns the end of the interval of the command line, if the time is that to the second:
    /// times are cut to seconds, so that two reports may have the same one.
    fn on_grid(&self, at_ns: u64, steps: &Steps<'_, '_>) -> u64 {
        let delay_ns = self.delay.unwrap_or(DEFAULT_SECONDS) * SECOND_NS as f64;
        let next_ns = steps.last_ns().map(|last_ns| last_ns.saturating_add(delay_ns as u64));
        let is_whole = at_ns.is_multiple_of(SECOND_NS);
        next_ns.filter(|next_ns| is_whole && next_ns.abs_diff(at_ns) <= SECOND_NS).unwrap_or(at_ns)
    }

    fn rows(&self, cells: &[String]) -> Vec<IntervalRow> {
        let cell = |group: &str, name: &str| number(&cells[self.find(group, name)?]);
        let unit = if self.in_bits { BITS_OF_BYTE } else { 1.0 };
        let bytes = |group: &str, name: &str| cell(group, name).map(|amount| amount / unit);
        let mut host = steps::of_host();
        host.set("switches", rate(cell("system", "csw"), 1.0));
        host.set("interrupts", rate(cell("system", "int"), 1.0));
        host.set("forks", rate(cell("procs", "new"), 1.0));
        for (column, name) in [
            ("load_one_minute_ppm", "1m"),
            ("load_five_minutes_ppm", "5m"),
            ("load_fifteen_minutes_ppm", "15m"),
        ] {
            host.set(column, level(cell("load avg", name), PPM));
        }
        let mut rows = vec![host];
        rows.extend(memory(&cell));
        let mut disks = steps::together();
        let mut some = false;
        for (column, amount) in [
            ("read_ios", rate(cell("io/total", "read"), 1.0)),
            ("read_bytes", rate(bytes("dsk/total", "read"), 1.0)),
            ("write_ios", rate(cell("io/total", "writ"), 1.0)),
            ("write_bytes", rate(bytes("dsk/total", "writ"), 1.0)),
        ] {
            some |= amount.is_some();
            disks.set(column, amount);
        }
        rows.extend(some.then_some(disks));
        for name in self.disk_names() {
            let (of_bytes, of_requests) = (format!("dsk/{name}"), format!("io/{name}"));
            let mut disk = self.disks.row(&name);
            disk.set("read_ios", rate(cell(&of_requests, "read"), 1.0));
            disk.set("read_bytes", rate(bytes(&of_bytes, "read"), 1.0));
            disk.set("write_ios", rate(cell(&of_requests, "writ"), 1.0));
            disk.set("write_bytes", rate(bytes(&of_bytes, "writ"), 1.0));
            rows.push(disk);
        }
        let interfaces = self.headings.iter().filter(|it| it.name == "recv");
        for group in interfaces.map(|it| it.group.as_str()) {
            let Some(name) = group.strip_prefix("net/").filter(|name| *name != "total") else {
                continue;
            };
            let mut one = IntervalRow::new(&network::SCHEMA, name);
            one.set("received_bytes", rate(bytes(group, "recv"), 1.0));
            one.set("sent_bytes", rate(bytes(group, "send"), 1.0));
            rows.push(one);
        }
        rows
    }
}

const DAYS_180_NS: u64 = 180 * 86_400 * SECOND_NS;

/// Why a row was not taken.
enum Row {
    Odd(String),
    Failed(Failure),
}

fn memory(cell: &impl Fn(&str, &str) -> Option<f64>) -> Option<IntervalRow> {
    let of = |name: &str| cell("memory usage", name).or(cell("advanced memory usage", name));
    let mut row = IntervalRow::new(&memory::SCHEMA, "");
    let mut some = false;
    let mut set = |column: &str, amount: Option<Amount>| {
        some |= amount.is_some();
        row.set(column, amount);
    };
    set("memory_bytes", level(of("total"), 1.0));
    set("free_bytes", level(of("free"), 1.0));
    set("available_bytes", level(of("avai"), 1.0));
    set("buffers_bytes", level(of("buff"), 1.0));
    set("file_cache_bytes", level(of("cach"), 1.0));
    let swap = cell("swap", "used").zip(cell("swap", "free"));
    set("swap_total_bytes", level(swap.map(|(used, free)| used + free), 1.0));
    set("swap_free_bytes", level(cell("swap", "free"), 1.0));
    some.then_some(row)
}

/// Groups of columns of which something is read.
const READ: [&str; 9] = [
    "system",
    "epoch",
    "load avg",
    "procs",
    "memory usage",
    "advanced memory usage",
    "swap",
    "dsk/",
    "io/",
];

fn headings(groups: &[String], names: &[String]) -> Vec<Heading> {
    let mut group = String::new();
    let heading = |(at, name): (usize, &String)| {
        if let Some(next) = groups.get(at).filter(|next| !next.is_empty()) {
            group.clone_from(next);
        }
        // With several disks the name of each is in the second line too.
        let name = name.rsplit(':').next().unwrap_or(name).to_owned();
        Heading { group: group.clone(), name }
    };
    names.iter().enumerate().map(heading).collect()
}

/// Whether a group is shares of processors: `total cpu usage`, `cpu0 usage`, `total usage`.
fn is_of_processors(group: &str) -> bool {
    group.ends_with(" usage") && group != "memory usage" && group != "advanced memory usage"
}

/// Returns the columns that no series has.
fn left_out(headings: &[Heading]) -> Vec<String> {
    let is_read = |it: &&Heading| {
        let group = it.group.as_str();
        let known = READ.iter().any(|read| group.starts_with(read));
        let interface = group.starts_with("net/") && group != "net/total";
        let part = matches!((group, it.name.as_str()), ("procs", "run" | "blk"));
        let used = group.contains("memory usage") && it.name == "used";
        // A note says why processors are not.
        (known || interface || is_of_processors(group)) && !part && !used
    };
    let others = headings.iter().filter(|it| !is_read(it));
    let mut names: Vec<String> =
        others.map(|it| format!("{} {}", it.group, it.name).trim().to_owned()).collect();
    names.dedup();
    names
}

/// Returns the cells of a row; a cell in quotes may contain commas.
pub fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}
