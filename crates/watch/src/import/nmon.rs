//! nmon's recordings (`nmon -f`) of Linux and AIX: means over the interval that ends at each
//! snapshot. The first snapshot only marks the start of the next.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::identity::{DeviceKind, Host};
use blockstone_probe::{memory, network};

use super::instant;
use super::ledger::{Amount, IntervalRow};
use super::steps::{self, Steps, level, number, rate, share};
use super::sysstat::Disks;
use super::text::Text;
use super::{Failure, Format, Origin, Sink};

pub const FORMAT: Format = Format {
    tool: "nmon",
    holds: "means of intervals, rounded to one decimal",
    goes_on: false,
    made_by: "nmon's recordings (nmon -f -s 10 -c 360)",
    recognises: |text| {
        let is_of_nmon = |line: &str| line.starts_with("AAA,progname,");
        text.lines().take(SHOWN).any(is_of_nmon) || text.lines().any(|it| it.starts_with("ZZZZ,T"))
    },
    read,
};

/// Lines of the head by which the file is recognised.
const SHOWN: usize = 40;
const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const PERCENT_NS: f64 = 1e7;
/// nmon prints this for a disk whose busy time exceeds all time.
const BUSY_MAX: f64 = 100.5;
/// A file sorted for a spreadsheet has the times behind everything else.
const SORTED: &str = "the lines are sorted: give the file as nmon wrote it, or restore the order \
                      with (grep -v ',T[0-9]' FILE; grep ',T[0-9]' FILE | sort -s -t, -k2,2 \
                      -k1,1r)";
const NOT_LINUX: &str = "its processor time was not read: AIX counts shares of an entitlement";
/// Tags of lines with one column for each disk.
const OF_DISKS: [&str; 9] = [
    "DISKREAD",
    "DISKWRITE",
    "DISKXFER",
    "DISKRXFER",
    "DISKREADS",
    "DISKWRITES",
    "DISKRIO",
    "DISKWIO",
    "DISKBUSY",
];
const OTHERS: [&str; 5] = ["CPU_ALL", "MEM", "PROC", "NET", "NETPACKET"];

/// Cells of a snapshot by tag; of disks, those of all lines (`DISKREAD`, `DISKREAD1`, …).
type Cells = BTreeMap<&'static str, Vec<(String, Option<f64>)>>;

#[derive(Default)]
struct Reader {
    origin: Origin,
    is_linux: bool,
    /// Headings by full tag.
    headings: BTreeMap<String, Vec<String>>,
    /// The snapshot being read: its name and time.
    snapshot: Option<(String, u64)>,
    cells: Cells,
    disks: Disks,
    left_out: BTreeSet<String>,
}

fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let mut steps = Steps::new(sink);
    let mut reader = Reader::default();
    let mut last_is_cut = false;
    while let Some((line, is_cut, row)) = text.next_numbered()? {
        // The last number may lack digits.
        last_is_cut = is_cut;
        if !is_cut {
            let damage = |what| Failure::Damage { line, what };
            reader.line(row, &mut steps, damage)?;
        }
    }
    let mut notes = vec![instant::NO_ZONE.to_owned()];
    if last_is_cut || text.is_cut() {
        notes.push("the file is truncated: the incomplete last snapshot was skipped".to_owned());
    } else {
        reader.end_snapshot(&mut steps)?;
    }
    if !reader.is_linux {
        notes.push(NOT_LINUX.to_owned());
    }
    if !reader.left_out.is_empty() {
        let names: Vec<String> = reader.left_out.iter().cloned().collect();
        notes.push(format!("sections that were not read: {}", steps::list(&names)));
    }
    notes.extend(steps.note());
    reader.origin.notes = notes;
    Ok(reader.origin)
}

impl Reader {
    fn line(
        &mut self,
        row: &str,
        steps: &mut Steps<'_, '_>,
        damage: impl Fn(String) -> Failure,
    ) -> Result<(), Failure> {
        let mut cells = row.split(',');
        let (tag, second) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        match tag {
            "AAA" => self.about(second, &cells.collect::<Vec<_>>()),
            "ZZZZ" => {
                self.end_snapshot(steps)?;
                let text = cells.collect::<Vec<_>>().join(" ");
                let unknown = || damage(format!("`{row}` has no known form of time"));
                let instant = instant::parse(&text, None).ok_or_else(unknown)?;
                self.snapshot = Some((second.to_owned(), instant.at_ns));
            }
            _ => {
                let Some(known) = known(tag) else {
                    if is_snapshot(second) {
                        let tag = tag.trim_end_matches(|c: char| c.is_ascii_digit());
                        self.left_out.insert(tag.to_owned());
                    }
                    return Ok(());
                };
                if !is_snapshot(second) {
                    let names = cells.map(|name| name.trim().to_owned()).collect();
                    self.headings.insert(tag.to_owned(), names);
                    return Ok(());
                }
                match &self.snapshot {
                    Some((name, _)) if name == second => {}
                    None => return Err(damage(SORTED.to_owned())),
                    Some((name, _)) => {
                        let what = format!("a line of snapshot {second} within {name}");
                        return Err(damage(what));
                    }
                }
                let names = self.headings.get(tag).map(Vec::as_slice).unwrap_or_default();
                let found = names.iter().cloned().zip(cells.map(number));
                self.cells.entry(known).or_default().extend(found);
            }
        }
        Ok(())
    }

    fn about(&mut self, key: &str, values: &[&str]) {
        let first = values.first().map(|value| value.trim()).unwrap_or_default();
        let host: &mut Host = &mut self.origin.host;
        match key {
            "host" => first.clone_into(&mut host.hostname),
            "version" => self.origin.tool_version = Some(first.to_owned()),
            "OS" => {
                self.is_linux = first == "Linux";
                values.get(1).copied().unwrap_or_default().clone_into(&mut host.kernel);
            }
            // Physical and logical processors, or these alone.
            "cpus" => {
                host.cpus = values.iter().rev().find_map(|it| it.trim().parse().ok()).unwrap_or(0);
                host.cpus_allowed_milli = host.cpus.saturating_mul(1000);
            }
            _ => {}
        }
    }

    fn end_snapshot(&mut self, steps: &mut Steps<'_, '_>) -> Result<(), Failure> {
        let cells = std::mem::take(&mut self.cells);
        let Some((_, at_ns)) = self.snapshot.take() else { return Ok(()) };
        let rows = self.rows(&cells);
        steps.add(at_ns, &rows)
    }

    fn rows(&mut self, cells: &Cells) -> Vec<IntervalRow> {
        let of = |tag: &str, name: &str| {
            let row = cells.get(tag)?;
            row.iter().find(|(heading, _)| heading == name)?.1
        };
        let counted = of("CPU_ALL", "CPUs").map(|count| count as u32);
        let cpus = counted.or(Some(self.origin.host.cpus)).filter(|it| *it > 0 && self.is_linux);
        let mut host = steps::of_host();
        for (column, name) in [
            ("cpu_user_ns", "User%"),
            ("cpu_system_ns", "Sys%"),
            ("cpu_iowait_ns", "Wait%"),
            ("cpu_idle_ns", "Idle%"),
            ("cpu_steal_ns", "Steal%"),
        ] {
            host.set(column, share(of("CPU_ALL", name), cpus));
        }
        host.set("switches", rate(of("PROC", "pswitch"), 1.0));
        host.set("runnable", level(of("PROC", "Runnable"), 1.0));
        host.set("blocked", level(of("PROC", "Blocked"), 1.0));
        host.set("forks", rate(of("PROC", "fork"), 1.0));
        let mut rows = vec![host];
        rows.extend(memory(&of));
        rows.extend(self.of_disks(cells));
        rows.extend(of_interfaces(cells));
        rows
    }

    fn of_disks(&mut self, cells: &Cells) -> Vec<IntervalRow> {
        let mut disks: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
        for tag in OF_DISKS {
            for (name, number) in cells.get(tag).into_iter().flatten() {
                let disk = disks.entry(name).or_default();
                disk.extend(number.map(|number| (tag, number)));
            }
        }
        self.disks.list(disks.keys().copied());
        let row = |(name, of): (&&str, &BTreeMap<&str, f64>)| {
            let of = |tags: &[&str]| tags.iter().find_map(|tag| of.get(tag).copied());
            let reads = of(&["DISKREADS", "DISKRIO", "DISKRXFER"]);
            // AIX counts transfers, and those of them that are reads.
            let others = of(&["DISKXFER"]).zip(of(&["DISKRXFER"]));
            let others = others.map(|(all, reads)| all - reads).filter(|writes| *writes >= 0.0);
            let mut row = self.disks.row(name);
            if is_of_aix(name) {
                row.set("device_kind", Some(Amount::Text(DeviceKind::Disk.name().to_owned())));
            }
            row.set("read_ios", rate(reads, 1.0));
            row.set("read_bytes", rate(of(&["DISKREAD"]), KIB));
            row.set("write_ios", rate(of(&["DISKWRITES", "DISKWIO"]).or(others), 1.0));
            row.set("write_bytes", rate(of(&["DISKWRITE"]), KIB));
            let busy = of(&["DISKBUSY"]).filter(|percent| *percent < BUSY_MAX);
            row.set("busy_ns", rate(busy, PERCENT_NS));
            row
        };
        disks.iter().map(row).collect()
    }
}

/// Returns the tag without the number of a further line of disks, if the tag is read.
fn known(tag: &str) -> Option<&'static str> {
    let disks = tag.trim_end_matches(|c: char| c.is_ascii_digit());
    let of_disks = OF_DISKS.into_iter().find(|known| *known == disks);
    of_disks.or_else(|| OTHERS.into_iter().find(|known| *known == tag))
}

/// Whether a cell names a snapshot: `T0001`.
fn is_snapshot(cell: &str) -> bool {
    let digits = cell.strip_prefix('T').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a name is that of a disk of AIX. `hdiskpower3` lies on top of others.
fn is_of_aix(name: &str) -> bool {
    let number = name.strip_prefix("hdisk").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the row of memory, by the names of Linux or of AIX.
fn memory(of: &impl Fn(&str, &str) -> Option<f64>) -> Option<IntervalRow> {
    let mut row = IntervalRow::new(&memory::SCHEMA, "");
    let mut some = false;
    for (column, names) in [
        ("memory_bytes", ["memtotal", "Real total(MB)"]),
        ("free_bytes", ["memfree", "Real free(MB)"]),
        ("buffers_bytes", ["buffers", ""]),
        ("file_cache_bytes", ["cached", ""]),
        ("swap_total_bytes", ["swaptotal", ""]),
        ("swap_free_bytes", ["swapfree", ""]),
    ] {
        let amount = level(names.iter().find_map(|name| of("MEM", name)), MIB);
        some |= amount.is_some();
        row.set(column, amount);
    }
    some.then_some(row)
}

fn of_interfaces(cells: &Cells) -> Vec<IntervalRow> {
    let mut interfaces: BTreeMap<&str, Vec<(&str, Option<Amount>)>> = BTreeMap::new();
    for (tag, ending, column, unit) in [
        ("NET", "-read-KB/s", "received_bytes", KIB),
        ("NETPACKET", "-read/s", "received_packets", 1.0),
        ("NET", "-write-KB/s", "sent_bytes", KIB),
        ("NETPACKET", "-write/s", "sent_packets", 1.0),
    ] {
        for (name, number) in cells.get(tag).into_iter().flatten() {
            if let Some(name) = name.strip_suffix(ending) {
                let amounts = interfaces.entry(name.trim()).or_default();
                amounts.push((column, rate(*number, unit)));
            }
        }
    }
    let row = |(name, amounts): (&str, Vec<(&str, Option<Amount>)>)| {
        let mut row = IntervalRow::new(&network::SCHEMA, name);
        for (column, amount) in amounts {
            row.set(column, amount);
        }
        row
    };
    interfaces.into_iter().map(row).collect()
}
