//! Users of the disks: bytes by disk, role, process and file, with the statement where a database
//! is watched.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::column::Unmeasured;
use blockstone_base::table::{Merge, Table};
use blockstone_base::units::Bytes as Amount;
use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use super::active_sessions::{most, statement};
use crate::table::{
    Bytes, Count, Shape, Share, Text, Value, View, column, flow, level, text, total, unmerged,
};

pub const VIEW: View = View {
    name: "who",
    title: "Who uses the disks",
    doc: "Bytes by disk, role, process and file, largest first; what was idle has no row. What \
          the kernel writes back later is charged to the process that wrote it, if that is known. \
          Processes that ended count too.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("disk", "disk", "Kernel name of the disk."),
        text("role", "role", "Role of the process, or of its thread; otherwise its name."),
        text("pid", "pid", "Process id; empty for work that any kernel worker may do."),
        text("file", "file", "The path of the file when it was first seen, or the device.").path(),
        total("write_bytes", "written", Bytes, "Bytes written to the disk.").answer(),
        column(
            "bytes_share",
            "of all I/O",
            Share,
            Merge::ShareOf { part: "moved_bytes", within: "disk" },
            "Share of the bytes that all rows of this disk read and wrote.",
        ),
        total("read_bytes", "read", Bytes, "Bytes read from the disk."),
        total("moved_bytes", "both", Bytes, "Bytes written and read."),
        flow("write_bytes_per_s", "written/s", "Bytes written per second."),
        flow("read_bytes_per_s", "read/s", "Bytes read per second."),
        total("write_ios", "writes", Count, "Writes completed."),
        total("read_ios", "reads", Count, "Reads completed."),
        unmerged(
            "write_back_share",
            "by kernel",
            Share,
            "Share of the written bytes that kernel threads wrote on behalf of the process.",
        ),
        level("process", "process", Text, "Name of the process."),
        unmerged(
            "statement",
            "statement",
            Text,
            "The statement in which the session was most often sampled, if its database is \
             watched.",
        ),
    ],
    rows,
};

const PROBE: &str = "io_by_process";
const SESSION: &str = "session";

/// Sums of the objects that make one row.
#[derive(Default)]
struct Line<'a> {
    objects: Vec<&'a str>,
    /// Threads whose sessions count.
    threads: Vec<&'a str>,
}

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let said = |object: &str, column| interval.text(PROBE, object, column);
    let mut lines: BTreeMap<[Option<&str>; 5], Line<'_>> = BTreeMap::new();
    for object in interval.objects(PROBE) {
        let name = ["disk", "role", "pid", "file", "process"].map(|column| said(object, column));
        let line = lines.entry(name).or_default();
        line.objects.push(object);
        let thread = said(object, "thread").filter(|thread| !thread.is_empty());
        line.threads.extend(thread.or(name[2]));
    }
    let statements = statements(interval);
    let mut rows: Vec<Vec<Value>> = lines
        .iter()
        .map(|(name, line)| row(interval, name, line, &statements))
        .filter(|row| number(row, "moved_bytes") > 0.0)
        .collect();
    let mut disks: BTreeMap<String, f64> = BTreeMap::new();
    for row in &rows {
        *disks.entry(disk(row)).or_default() += number(row, "moved_bytes");
    }
    let of = |key| VIEW.column(key).unwrap_or(0);
    for row in &mut rows {
        let all = disks.get(&disk(row)).copied().unwrap_or(0.0);
        row[of("bytes_share")] = ratio(Ok(number(row, "moved_bytes")), Ok(all)).into();
    }
    rows.sort_by(|a, b| number(b, "moved_bytes").total_cmp(&number(a, "moved_bytes")));
    rows
}

fn row(
    interval: &Interval<'_>,
    name: &[Option<&str>; 5],
    line: &Line<'_>,
    statements: &BTreeMap<String, &str>,
) -> Vec<Value> {
    let moved = |column: &str| -> Known {
        sum(line.objects.iter().map(|it| interval.moved_with_restarts(PROBE, it, column)))
    };
    let state = |at: usize, column| match name[at] {
        Some(text) => Value::from(text),
        None => Value::Missing(missing(interval.reason(PROBE, column))),
    };
    let (written, read) = (moved("write_bytes"), moved("read_bytes"));
    let per_s = |bytes: Known| Value::from(bytes.map(|bytes| bytes / interval.seconds()));
    let stated = line.threads.iter().find_map(|thread| statements.get(*thread));
    vec![
        state(0, "disk"),
        state(1, "role"),
        state(2, "pid"),
        state(3, "file"),
        written.into(),
        Value::Missing(Missing::Nothing),
        read.into(),
        sum([written, read]).into(),
        per_s(written),
        per_s(read),
        moved("write_ios").into(),
        moved("read_ios").into(),
        ratio(moved("write_back_bytes"), written).into(),
        state(4, "process"),
        Value::from(stated.copied().unwrap_or_default()),
    ]
}

/// Returns the statements in which sessions were most often sampled, by the number of the process
/// or thread that executes them, of all watched databases on this host.
fn statements<'a>(interval: &Interval<'a>) -> BTreeMap<String, &'a str> {
    let instances = interval.instances_with(SESSION);
    let parts: Vec<Interval<'a>> = match instances.as_slice() {
        [] => vec![*interval],
        several => several.iter().map(|instance| interval.of_instance(instance)).collect(),
    };
    let mut found = BTreeMap::new();
    for part in parts {
        let mut seen: BTreeMap<String, BTreeMap<&str, u64>> = BTreeMap::new();
        for sample in part.samples(SESSION) {
            let id = sample.text("query_id").filter(|id| !id.is_empty());
            if let (Some(thread), Some(id)) = (sample.number("thread"), id) {
                let thread = format!("{thread:.0}");
                *seen.entry(thread).or_default().entry(id).or_default() += 1;
            }
        }
        for (thread, ids) in seen {
            found.extend(most(&ids).map(|id| (thread, statement(&part, id))));
        }
    }
    found
}

fn missing(why: Option<&Unmeasured>) -> Missing {
    match why {
        Some(Unmeasured::Off(_)) => Missing::Off,
        Some(Unmeasured::NotInVersion(_)) => Missing::NotInVersion,
        Some(Unmeasured::NotPermitted(_)) => Missing::NotPermitted,
        Some(Unmeasured::NoEvidence(_)) => Missing::NoEvidence,
        None => Missing::Unknown,
    }
}

fn number(row: &[Value], key: &str) -> f64 {
    VIEW.column(key).and_then(|at| row[at].number()).unwrap_or(0.0)
}

fn said<'a>(row: &'a [Value], key: &str) -> &'a str {
    match VIEW.column(key).map(|at| &row[at]) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

fn disk(row: &[Value]) -> String {
    said(row, "disk").to_owned()
}

/// Returns the answer in a sentence: who wrote most to the busiest disk, or read most if more was
/// read than written. Processes of one name and role count together: a backup may be hundreds that
/// each end soon. If processes of other users could not be looked at, it says so.
pub fn answer(table: &Table, interval: &Interval<'_>) -> String {
    let hidden = |(why, columns): &(Unmeasured, Vec<&str>)| {
        matches!(why, Unmeasured::NotPermitted(_)) && columns.contains(&"write_bytes")
    };
    match (busiest(table), interval.reasons(PROBE).iter().any(hidden)) {
        (None, true) => {
            "no process of this user read or wrote anything on a disk; root sees those \
                         of all users"
                .to_owned()
        }
        (None, false) => "no process read or wrote anything on a disk".to_owned(),
        (Some(answer), true) => format!("{answer}; of this user's processes only"),
        (Some(answer), false) => answer,
    }
}

/// Returns who moved most on the busiest disk, if there is one.
fn busiest(table: &Table) -> Option<String> {
    let rows: Vec<&[Value]> = table.rows.iter().map(|row| &row.cells[..]).collect();
    let mut disks: BTreeMap<&str, f64> = BTreeMap::new();
    for row in &rows {
        *disks.entry(said(row, "disk")).or_default() += number(row, "moved_bytes");
    }
    let (&disk, _) = disks.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let of_disk: Vec<&[Value]> = rows.into_iter().filter(|row| said(row, "disk") == disk).collect();
    let all = |key| of_disk.iter().map(|row| number(row, key)).sum::<f64>();
    let (key, verb, done) = if all("write_bytes") >= all("read_bytes") {
        ("write_bytes", "wrote", "written")
    } else {
        ("read_bytes", "read", "read")
    };
    let mut groups: BTreeMap<[&str; 2], Group<'_>> = BTreeMap::new();
    for row in of_disk.iter().filter(|row| number(row, key) > 0.0) {
        let group = groups.entry(["process", "role"].map(|key| said(row, key))).or_default();
        group.bytes += number(row, key);
        group.pids.extend(Some(said(row, "pid")).filter(|pid| !pid.is_empty()));
    }
    let most = |known: bool| {
        let of = groups.iter().filter(|(_, group)| !known || !group.pids.is_empty());
        of.max_by(|a, b| a.1.bytes.total_cmp(&b.1.bytes))
    };
    let (name, group) = most(false)?;
    let is_its = |row: &&&[Value]| ["process", "role"].map(|key| said(row, key)) == *name;
    let mut files: Vec<&[Value]> = of_disk.iter().filter(is_its).copied().collect();
    files.retain(|row| number(row, key) > 0.0);
    files.sort_by(|a, b| number(b, key).total_cmp(&number(a, key)));
    let file = files.first().map(|row| said(row, "file")).filter(|file| !file.is_empty());
    let more = if files.len() > 1 { " …" } else { "" };
    let file = file.map_or(String::new(), |file| format!(": {file}{more}"));
    let percent = |bytes: f64| format!("{:.0} %", 100.0 * bytes / all(key).max(1.0));
    // A write that is charged to no process is half an answer.
    let next = most(true).filter(|(next, _)| group.pids.is_empty() && *next != name);
    let next =
        next.map(|(next, its)| format!("; then {} with {}", named(*next, its), percent(its.bytes)));
    let disk = if disk.is_empty() { String::new() } else { format!("{disk}: ") };
    let total = Amount(all(key) as u64);
    let (name, share) = (named(*name, group), percent(group.bytes));
    let next = next.unwrap_or_default();
    Some(format!("{disk}{name} {verb} {share} of {total} {done}{file}{next}"))
}

/// Processes of one name and role.
#[derive(Default)]
struct Group<'a> {
    bytes: f64,
    pids: BTreeSet<&'a str>,
}

/// Returns processes as people name them: `postgres 1234 (checkpointer)`, `dd (30 processes)`.
fn named([process, role]: [&str; 2], group: &Group<'_>) -> String {
    let pid = match group.pids.first() {
        Some(pid) if group.pids.len() == 1 => format!(" {pid}"),
        _ => String::new(),
    };
    let role = match role.split_once('/') {
        Some((product, role)) if product == process => Some(role.to_owned()),
        Some((product, role)) => Some(format!("{product} {role}")),
        None => None,
    };
    let count = (group.pids.len() > 1).then(|| format!("{} processes", group.pids.len()));
    let more: Vec<String> = role.into_iter().chain(count).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    format!("{process}{pid}{more}")
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_base::database::{SESSION as SESSIONS, STATEMENT_TEXT};
    use blockstone_figures::History;
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_record::testing;

    use super::*;

    const MIB: i64 = 1 << 20;

    fn history() -> History {
        let counters = "read_bytes write_bytes read_ios write_ios write_back_bytes";
        let states = "disk role pid process thread file";
        let columns = [(Kind::State, states), (Kind::Counter, counters)];
        let probes = [testing::probe(PROBE, &columns), ProbeInfo::of(&SESSIONS)];
        let texts = [ProbeInfo::of(&STATEMENT_TEXT), testing::probe("watch", &[])];
        History::new(probes.into_iter().chain(texts).collect())
    }

    fn push(history: &mut History, t_ns: u64, states: [&str; 6], bytes: [i64; 2], back: i64) {
        let [read, written] = bytes;
        let counters = [read, written, read / 4096, written / 4096, back].map(Cell::Value);
        let states_of = states.map(|state| Cell::Text(state.to_owned()));
        let cells = states_of.into_iter().chain(counters).collect();
        history.push(PROBE, t_ns, &states.join(" | "), cells);
    }

    fn table(history: &History) -> Table {
        VIEW.table(&history.interval(0, 1_000_000_000)).unwrap()
    }

    fn answer(history: &History) -> String {
        super::answer(&table(history), &history.interval(0, 1_000_000_000))
    }

    #[test]
    fn the_most_come_first_with_their_share_of_the_disk() {
        let mut history = history();
        let session = |thread| ["vda", "mariadb/session", "70", "mariadbd", thread, "/d/t.ibd"];
        let log = ["vda", "postgres/walwriter", "81", "postgres", "", "/pg/pg_wal/*"];
        let other = ["vdb", "dd", "9", "dd", "", "/b/file"];
        let idle = ["vda", "sshd", "3", "sshd", "", "/x"];
        for (t_ns, times) in [(0, 0), (1_000_000_000, 1)] {
            push(&mut history, t_ns, session("71"), [0, 2 * MIB * times], 0);
            push(&mut history, t_ns, session("72"), [MIB * times, MIB * times], MIB * times);
            push(&mut history, t_ns, idle, [5, 5], 0);
            push(&mut history, t_ns, log, [0, 12 * MIB * times], 0);
        }
        // It was not there at the beginning.
        push(&mut history, 500_000_000, other, [0, 3 * MIB], 0);
        let at = |name: &str| SESSIONS.columns.iter().position(|it| it.name == name).unwrap();
        let mut cells = vec![Cell::Unmeasured; SESSIONS.columns.len()];
        cells[at("thread")] = Cell::Value(72);
        cells[at("query_id")] = Cell::Text("4".to_owned());
        history.push(SESSION, 700_000_000, "5", cells);
        let text = vec![Cell::Text("UPDATE t".to_owned())];
        history.push(STATEMENT_TEXT.probe, 700_000_000, "4", text);
        let table = table(&history);
        let pids: Vec<&str> = table.rows.iter().map(|row| said(row, "pid")).collect();
        assert_eq!(pids, ["81", "70", "9"], "the idle one has no row");
        let of = |row: usize, key| table.rows[row][VIEW.column(key).unwrap()].clone();
        assert_eq!(of(0, "bytes_share"), Value::Number(0.75));
        assert_eq!(of(1, "moved_bytes"), Value::Number((4 * MIB) as f64), "both threads");
        assert_eq!(of(1, "write_back_share"), Value::Number(1.0 / 3.0));
        assert_eq!((of(1, "statement"), of(0, "statement")), ("UPDATE t".into(), "".into()));
        assert_eq!(of(2, "bytes_share"), Value::Number(1.0), "of another disk");
        assert_eq!(
            answer(&history),
            "vda: postgres 81 (walwriter) wrote 80 % of 15 MiB written: /pg/pg_wal/*"
        );
    }

    #[test]
    fn what_nobody_is_charged_with_is_followed_by_the_first_who_is() {
        let mut history = history();
        let kernel = ["vda", "kernel write-back", "", "kernel write-back", "", "/a"];
        let dd = ["vda", "dd", "9", "dd", "", "/b"];
        push(&mut history, 1, kernel, [0, 6 * MIB], 0);
        push(&mut history, 1, dd, [0, 2 * MIB], 0);
        assert_eq!(
            answer(&history),
            "vda: kernel write-back wrote 75 % of 8 MiB written: /a; then dd 9 with 25 %"
        );
        let mut many = self::history();
        push(&mut many, 1, ["vda", "cp/other", "7", "cp", "", "/c"], [0, 3 * MIB], 0);
        for pid in ["8", "9"] {
            push(&mut many, 1, ["vda", "dd", pid, "dd", "", "/b"], [0, 2 * MIB], 0);
        }
        assert_eq!(answer(&many), "vda: dd (2 processes) wrote 57 % of 7 MiB written: /b …");
        let mut read = self::history();
        push(&mut read, 1, dd, [MIB, 0], 0);
        assert_eq!(answer(&read), "vda: dd 9 read 100 % of 1 MiB read: /b");
        let none = "no process read or wrote anything on a disk";
        assert_eq!(answer(&self::history()), none);
    }

    #[test]
    fn without_counts_by_file_the_processes_are_known_and_the_rest_says_why() {
        let mut history = history();
        for (column, why) in [("disk", "root"), ("file", "root"), ("write_ios", "root")] {
            history.unmeasured(PROBE, column, &Unmeasured::NotPermitted(why.to_owned()));
        }
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut cells = vec![Cell::Unmeasured, text("dd"), text("9"), text("dd"), text("")];
        cells.push(Cell::Unmeasured);
        cells.extend([0, MIB].map(Cell::Value));
        cells.extend([Cell::Unmeasured, Cell::Unmeasured, Cell::Unmeasured]);
        history.push(PROBE, 1, "dd", cells);
        let table = table(&history);
        let of = |key| table.rows[0][VIEW.column(key).unwrap()].clone();
        assert_eq!(of("file"), Value::Missing(Missing::NotPermitted));
        assert_eq!(of("write_ios"), Value::Missing(Missing::NotPermitted));
        assert_eq!(of("bytes_share"), Value::Number(1.0));
        assert_eq!(answer(&history), "dd 9 wrote 100 % of 1 MiB written");
        let why = Unmeasured::NotPermitted("other users".to_owned());
        history.unmeasured(PROBE, "write_bytes", &why);
        let of_user = "dd 9 wrote 100 % of 1 MiB written; of this user's processes only";
        assert_eq!(answer(&history), of_user);
        let mut none = self::history();
        none.unmeasured(PROBE, "write_bytes", &why);
        assert!(answer(&none).ends_with("root sees those of all users"), "{}", answer(&none));
    }
}
