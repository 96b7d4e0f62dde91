//! Tables of sar: the columns of a section become figures with the names of `sadf -j`.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::super::sysstat::{KIB, number};

/// Sections of which figures are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Processors,
    Disks,
    AllDisks,
    Tasks,
    Queue,
    Memory,
    Paging,
    Swapping,
    Interfaces,
    InterfaceErrors,
    Tcp,
    TcpErrors,
    ProcessorPressure,
    DiskPressure,
}

/// A heading that only this section has.
const SECTIONS: [(&str, Section); 18] = [
    ("%user", Section::Processors),
    ("%usr", Section::Processors),
    ("DEV", Section::Disks),
    ("rtps", Section::AllDisks),
    ("cswch/s", Section::Tasks),
    ("proc/s", Section::Tasks),
    ("runq-sz", Section::Queue),
    ("kbmemfree", Section::Memory),
    ("kbswpfree", Section::Memory),
    ("pgpgin/s", Section::Paging),
    ("pswpin/s", Section::Swapping),
    ("rxpck/s", Section::Interfaces),
    ("rxerr/s", Section::InterfaceErrors),
    ("iseg/s", Section::Tcp),
    ("isegerr/s", Section::TcpErrors),
    ("%scpu", Section::ProcessorPressure),
    ("%sio", Section::DiskPressure),
    ("%fio", Section::DiskPressure),
];

/// Headings of names, and the key of the name.
const NAMES: [(&str, &str); 3] = [("CPU", "cpu"), ("DEV", "disk-device"), ("IFACE", "iface")];

/// The columns of a section, as headings name them.
#[derive(Debug)]
pub struct Table {
    section: Section,
    keys: Vec<String>,
    name: Option<(usize, &'static str)>,
}

impl Table {
    /// Returns the table with these headings, if any of its figures are used.
    pub fn of(headings: &[&str]) -> Option<Rc<Self>> {
        let is_in = |(heading, _): &&(&str, Section)| headings.contains(heading);
        let section = SECTIONS.iter().find(is_in)?.1;
        let name = NAMES
            .iter()
            .find_map(|(heading, key)| Some((headings.iter().position(|it| it == heading)?, *key)));
        let named = matches!(
            section,
            Section::Processors | Section::Disks | Section::Interfaces | Section::InterfaceErrors
        );
        if named && name.is_none() {
            return None;
        }
        let keys = headings.iter().map(|heading| key(section, heading)).collect();
        Some(Rc::new(Self { section, keys, name }))
    }

    /// Reads the cells of a line; the error is the number of columns if that differs.
    pub fn row(self: &Rc<Self>, cells: &[&str]) -> Result<Row, usize> {
        if cells.len() != self.keys.len() {
            return Err(self.keys.len());
        }
        let cell = |(index, cell): (usize, &&str)| {
            if self.name.is_some_and(|(at, _)| at == index) {
                return f64::NAN;
            }
            match number(cell.as_bytes()) {
                Some((number, Some(unit))) if is_kib(self.section, &self.keys[index]) => {
                    number * unit / KIB
                }
                Some((number, _)) => number,
                None => f64::NAN,
            }
        };
        let name = self.name.map_or("", |(at, _)| cells[at]);
        // `sadf -d` calls all processors -1.
        let name = if self.section == Section::Processors && name == "-1" { "all" } else { name };
        let numbers = cells.iter().enumerate().map(cell).collect();
        Ok(Row { table: Rc::clone(self), name: name.into(), numbers })
    }
}

fn is_kib(section: Section, key: &str) -> bool {
    section == Section::Memory || matches!(key, "rkB" | "wkB" | "dkB" | "rxkB" | "txkB")
}

/// Returns the name that `sadf -j` uses for a column.
fn key(section: Section, heading: &str) -> String {
    let plain = heading.trim_start_matches('%').trim_end_matches("/s");
    let key = match (section, heading) {
        (Section::Disks, "%util") => "util-percent",
        (Section::ProcessorPressure, "%scpu") | (Section::DiskPressure, "%sio") => "some_avg",
        (Section::DiskPressure, "%fio") => "full_avg",
        (Section::Memory, _) if !heading.starts_with('%') => plain.trim_start_matches("kb"),
        // The shares of memory have names like its amounts.
        (Section::Memory, _) => heading,
        _ => plain,
    };
    key.to_owned()
}

/// A line of a table.
pub struct Row {
    table: Rc<Table>,
    name: Box<str>,
    numbers: Box<[f64]>,
}

/// Most lines of all sections that are kept. sar prints one section after the other, so they are
/// put together in memory.
const ROWS_MAX: usize = 2_000_000;
pub const TOO_MANY: &str =
    "more than two million lines, which are put together in memory; use sadf -j, or fewer days";

/// Lines of all sections, by the end of their interval.
#[derive(Default)]
pub struct Gathered {
    intervals: BTreeMap<u64, (u64, Vec<Row>)>,
    rows: usize,
}

impl Gathered {
    /// Adds a line of the interval between two instants; returns whether there is room for it.
    pub fn add(&mut self, from: u64, to: u64, row: Row) -> bool {
        self.intervals.entry(to).or_insert_with(|| (from, Vec::new())).1.push(row);
        self.rows += 1;
        self.rows <= ROWS_MAX
    }

    /// Returns each interval in order of time: its two ends, and its figures.
    pub fn intervals(self) -> impl Iterator<Item = (u64, u64, Map<String, Value>)> {
        let all = self.intervals.into_iter();
        all.map(|(to, (from, rows))| (from, to, figures(&rows)))
    }

    /// Returns the largest number of single processors in an interval.
    pub fn processors(&self) -> usize {
        let is_single = |row: &&Row| {
            row.table.section == Section::Processors
                && row.name.bytes().all(|byte| byte.is_ascii_digit())
        };
        let intervals = self.intervals.values();
        intervals.map(|(_, rows)| rows.iter().filter(is_single).count()).max().unwrap_or(0)
    }
}

/// Returns the figures of an interval as `sadf -j` arranges them.
fn figures(rows: &[Row]) -> Map<String, Value> {
    let mut all = Map::new();
    for Row { table, name, numbers } in rows {
        let mut figures = Map::new();
        for (key, number) in table.keys.iter().zip(numbers) {
            // NaN becomes null, which is unknown.
            figures.insert(key.clone(), Value::from(*number));
        }
        if let Some((_, key)) = table.name {
            figures.insert(key.to_owned(), Value::from(&**name));
        }
        match table.section {
            Section::Processors => push(&mut all, "cpu-load", figures),
            Section::Disks => push(&mut all, "disk", figures),
            Section::AllDisks => {
                let io = object(&mut all, "io");
                io.insert("io-reads".to_owned(), Value::Object(figures.clone()));
                io.insert("io-writes".to_owned(), Value::Object(figures));
            }
            Section::Tasks => object(&mut all, "process-and-context-switch").extend(figures),
            Section::Queue => object(&mut all, "queue").extend(figures),
            Section::Memory => object(&mut all, "memory").extend(figures),
            Section::Paging => object(&mut all, "paging").extend(figures),
            Section::Swapping => object(&mut all, "swap-pages").extend(figures),
            Section::Interfaces => push(object(&mut all, "network"), "net-dev", figures),
            Section::InterfaceErrors => push(object(&mut all, "network"), "net-edev", figures),
            Section::Tcp => object(object(&mut all, "network"), "net-tcp").extend(figures),
            Section::TcpErrors => object(object(&mut all, "network"), "net-etcp").extend(figures),
            Section::ProcessorPressure => {
                object(object(&mut all, "psi"), "psi-cpu").extend(figures);
            }
            Section::DiskPressure => object(object(&mut all, "psi"), "psi-io").extend(figures),
        }
    }
    all
}

/// Returns a nested object, which is created if there is none.
pub fn object<'m>(map: &'m mut Map<String, Value>, key: &str) -> &'m mut Map<String, Value> {
    let value = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().unwrap_or_else(|| unreachable!("it is an object"))
}

/// Adds an item to a list, which is created if there is none.
pub fn push(map: &mut Map<String, Value>, key: &str, item: Map<String, Value>) {
    let list = map.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if let Some(list) = list.as_array_mut() {
        list.push(Value::Object(item));
    }
}
