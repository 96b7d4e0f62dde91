//! Files of other monitors: the derived figures are those that these monitors print themselves, and
//! an incomplete file is reported as such.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod hosts;
mod iostat;
mod loads;
mod sar;

use blockstone_base::hint::Hint as _;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_record::Recording;
use blockstone_record::manifest::End;
use blockstone_testkit::require;
use blockstone_view::{History, Interval, Known, Missing, Value, registry};
use blockstone_watch::{Databases, Destination, Import, ImportError, is_load};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(fixture(name)).unwrap()
}

/// Returns the recording of a file, with the notes of the import.
fn imported(path: &Path) -> (Recording, History, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let import = Import::read(&[path.to_owned()]).unwrap();
    let to = Destination { dir: dir.path().join("run"), id: "abcdef".to_owned() };
    import.record(&to, &[]).unwrap();
    let recording = Recording::open(&to.dir).unwrap();
    let history = History::read(&recording).unwrap();
    (recording, history, import.notes().to_vec())
}

/// Imports a text under a file name.
fn imported_text(name: &str, text: &[u8]) -> Result<(History, Vec<String>), ImportError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    let import = Import::read(&[path])?;
    let to = Destination { dir: dir.path().join("run"), id: "abcdef".to_owned() };
    import.record(&to, &[])?;
    let history = History::read(&Recording::open(&to.dir).unwrap()).unwrap();
    Ok((history, import.notes().to_vec()))
}

/// Returns the intervals that sar printed as JSON.
fn reported(text: &str) -> Vec<serde_json::Value> {
    let document: serde_json::Value = serde_json::from_str(text).unwrap();
    document["sysstat"]["hosts"][0]["statistics"].as_array().unwrap().clone()
}

fn intervals(history: &History) -> Vec<Interval<'_>> {
    let ticks: Vec<u64> = history.ticks().collect();
    ticks.windows(2).map(|pair| history.interval(pair[0], pair[1])).collect()
}

/// Returns one figure of a view's row.
fn figure(interval: &Interval<'_>, view: &str, row: &str, key: &str) -> f64 {
    let view = registry::find(view).unwrap();
    let table = view.table(interval).unwrap();
    let column = view.column(key).unwrap();
    let found = table.rows.iter().find(|cells| cells[0] == Value::from(row) || row.is_empty());
    match &found.unwrap()[column] {
        Value::Number(number) => *number,
        Value::Missing(Missing::Nothing) => 0.0,
        other => panic!("{row} {key}: {other:?}"),
    }
}

#[track_caller]
fn near(ours: f64, theirs: f64, rounding: f64, what: &str) {
    assert!((ours - theirs).abs() <= rounding + 1e-6, "{what}: {ours}, and they print {theirs}");
}

/// Returns the rows of a printed table with one heading, by its column names.
fn printed(text: &str, separator: char) -> Vec<Vec<(String, String)>> {
    let mut headings: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            headings = heading.trim().split(separator).map(str::to_owned).collect();
        } else if !line.is_empty() {
            let values = line.split(separator).map(str::to_owned);
            rows.push(headings.iter().cloned().zip(values).collect());
        }
    }
    rows
}

fn field<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    &row.iter().find(|(heading, _)| heading == name).unwrap_or_else(|| panic!("{name}")).1
}

fn number(row: &[(String, String)], name: &str) -> f64 {
    field(row, name).parse().unwrap()
}

#[test]
fn what_collectl_kept_gives_the_figures_that_it_prints() {
    let (recording, history, notes) = imported(&fixture("collectl.raw.gz"));
    assert!(notes.is_empty(), "{notes:?}");
    let host = &recording.manifest.host;
    assert_eq!((host.hostname.as_str(), host.cpus), ("vm", 2));
    assert_eq!((host.kernel.as_str(), host.architecture.as_str()), ("6.18.44-fc-v669", "x86_64"));
    assert_eq!(recording.manifest.started_at, "2026-11-22T10:16:36.001Z");
    assert_eq!(recording.manifest.end, End::Complete);
    let intervals = intervals(&history);
    let disks = printed(&text("collectl-disks.txt"), ' ');
    assert_eq!((intervals.len(), disks.len()), (8, 8));
    for (interval, row) in intervals.iter().zip(&disks) {
        // collectl prints whole numbers.
        let of = |key| figure(interval, "disks", "vda", key);
        let check =
            |theirs, ours| near(ours, number(row, &format!("[DSK:vda]{theirs}")), 1.0, theirs);
        check("Reads", of("read_ios_per_s"));
        check("RKBytes", of("read_bytes_per_s") / 1024.0);
        check("WaitR", of("read_await_ns") / 1e6);
        check("Writes", of("write_ios_per_s"));
        check("WKBytes", of("write_bytes_per_s") / 1024.0);
        check("WaitW", of("write_await_ns") / 1e6);
        check("Util", of("busy_share") * 100.0);
    }
    for (interval, row) in intervals.iter().zip(&printed(&text("collectl-host.txt"), ' ')) {
        let check = |theirs, ours, by| near(ours, number(row, theirs), by, theirs);
        let host = |key| figure(interval, "host", "", key);
        check("[CPU]Sys%", host("cpu_system_share") * 100.0, 1.0);
        check("[CPU]Wait%", host("cpu_iowait_share") * 100.0, 1.0);
        check("[CPU]Soft%", host("cpu_irq_share") * 100.0, 1.0);
        check("[CPU]Ctx/sec", host("switches_per_s"), 1.0);
        check("[MEM]Dirty", host("dirty_bytes") / 1024.0, 0.0);
        let memory = |key| interval.level("memory", "", key).unwrap() / 1024.0;
        check("[MEM]Free", memory("free_bytes"), 0.0);
        check("[MEM]Cached", memory("file_cache_bytes"), 0.0);
        check("[MEM]Slab", memory("slab_bytes"), 0.0);
        let received: Known = ["eth0", "ifb0", "ifb1"]
            .iter()
            .map(|name| interval.per_s("network", name, "received_bytes"))
            .sum();
        check("[NET]RxKBTot", received.unwrap() / 1024.0, 1.0);
    }
}

#[test]
fn what_sar_printed_as_json_gives_the_figures_that_it_prints_as_text() {
    let (recording, history, notes) = imported(&fixture("sar.json"));
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(recording.manifest.host.cpus, 2);
    let intervals = intervals(&history);
    let disks = printed(&text("sar-disks.txt"), ';');
    assert_eq!((intervals.len(), disks.len()), (7, 7));
    for (interval, row) in intervals.iter().zip(&disks) {
        let check = |theirs, ours| near(ours, number(row, theirs), 0.005, theirs);
        let of = |key| figure(interval, "disks", "vda", key);
        check("rkB/s", of("read_bytes_per_s") / 1024.0);
        check("wkB/s", of("write_bytes_per_s") / 1024.0);
        check("dkB/s", of("discard_bytes_per_s") / 1024.0);
        check("aqu-sz", of("queue_depth"));
        check("%util", of("busy_share") * 100.0);
        let reads = interval.moved("block", "vda", "read_ios");
        assert_eq!(reads, Err(Missing::NotInVersion), "sar -d has no reads, only transfers");
    }
    for (interval, row) in intervals.iter().zip(&printed(&text("sar-cpu.txt"), ';')) {
        let host = |column| 100.0 / 2.0 * interval.share("host", "", column).unwrap();
        let check = |theirs, column| near(host(column), number(row, theirs), 0.005, theirs);
        check("%usr", "cpu_user_ns");
        check("%sys", "cpu_system_ns");
        check("%iowait", "cpu_iowait_ns");
        check("%soft", "cpu_softirq_ns");
        check("%idle", "cpu_idle_ns");
    }
    for (interval, row) in intervals.iter().zip(reported(&text("sar.json"))) {
        let (tasks, queue) = (&row["process-and-context-switch"], &row["queue"]);
        for (theirs, ours) in [
            (&tasks["proc"], "forks_per_s"),
            (&queue["blocked"], "blocked"),
            (&queue["ldavg-1"], "load_one_minute"),
            (&queue["ldavg-5"], "load_five_minutes"),
            (&queue["ldavg-15"], "load_fifteen_minutes"),
        ] {
            near(figure(interval, "host", "", ours), theirs.as_f64().unwrap(), 0.005, ours);
        }
    }
    let network = printed(&text("sar-network.txt"), ';');
    for (interval, rows) in intervals.iter().zip(network.chunks(4)) {
        for row in rows {
            let of = |column| interval.per_s("network", field(row, "IFACE"), column).unwrap();
            near(of("received_bytes") / 1024.0, number(row, "rxkB/s"), 0.005, "rxkB/s");
            near(of("sent_packets"), number(row, "txpck/s"), 0.005, "txpck/s");
        }
    }
    let paging = printed(&text("sar-paging.txt"), ';');
    let rows = paging.iter().filter(|row| row.iter().any(|(name, _)| name == "pgpgin/s"));
    for (interval, row) in intervals.iter().zip(rows) {
        let of = |column| interval.per_s("memory", "", column).unwrap();
        near(of("paged_in_bytes") / 1024.0, number(row, "pgpgin/s"), 0.005, "pgpgin/s");
        near(of("page_faults"), number(row, "fault/s"), 0.005, "fault/s");
        near(of("major_page_faults"), number(row, "majflt/s"), 0.005, "majflt/s");
    }
}

/// Compares every figure of a disk that iostat prints and a view derives.
fn same_as_iostat(interval: &Interval<'_>, name: &str, theirs: impl Fn(&str) -> f64) {
    let of = |key| figure(interval, "disks", name, key);
    let check = |what, ours, by| near(ours, theirs(what), by, &format!("{name} {what}"));
    check("r/s", of("read_ios_per_s"), 0.005);
    check("rkB/s", of("read_bytes_per_s") / 1024.0, 0.005);
    check("r_await", of("read_await_ns") / 1e6, 0.005);
    check("rareq-sz", of("read_size_bytes") / 1024.0, 0.01);
    check("w/s", of("write_ios_per_s"), 0.005);
    check("wkB/s", of("write_bytes_per_s") / 1024.0, 0.005);
    check("w_await", of("write_await_ns") / 1e6, 0.005);
    check("wareq-sz", of("write_size_bytes") / 1024.0, 0.01);
    check("f/s", of("flush_ios_per_s"), 0.005);
    check("f_await", of("flush_await_ns") / 1e6, 0.005);
    check("dkB/s", of("discard_bytes_per_s") / 1024.0, 0.005);
    check("aqu-sz", of("queue_depth"), 0.005);
    check("util", of("busy_share") * 100.0, 0.005);
    let merges = interval.per_s("block", name, "write_merges").unwrap();
    check("wrqm/s", merges, 0.005);
}

/// Returns the reports of iostat's JSON except the first, which covers all the time before.
fn reports(text: &str) -> Vec<serde_json::Value> {
    let document: serde_json::Value = serde_json::from_str(text).unwrap();
    let list = &document["sysstat"]["hosts"][0]["statistics"];
    list.as_array().unwrap()[1..].to_vec()
}

fn same_as_json(history: &History, reports: &[serde_json::Value]) {
    let intervals = intervals(history);
    assert_eq!(intervals.len(), reports.len());
    for (interval, report) in intervals.iter().zip(reports) {
        for disk in report["disk"].as_array().unwrap() {
            let name = disk["disk_device"].as_str().unwrap();
            same_as_iostat(interval, name, |key| disk[key].as_f64().unwrap());
        }
        let cpus = 2.0 / 100.0;
        let of = |column| interval.share("host", "", column).unwrap() / cpus;
        near(of("cpu_user_ns"), report["avg-cpu"]["user"].as_f64().unwrap(), 0.005, "user");
        near(of("cpu_system_ns"), report["avg-cpu"]["system"].as_f64().unwrap(), 0.005, "system");
        // Interrupts are part of `system`, so the shares still add up to all time.
        let idle = figure(interval, "host", "", "cpu_idle_share") * 100.0;
        near(idle, report["avg-cpu"]["idle"].as_f64().unwrap(), 0.02, "idle");
    }
}

#[test]
fn what_iostat_prints_comes_out_again() {
    let (recording, history, notes) = imported(&fixture("iostat.json"));
    assert!(notes.is_empty(), "{notes:?}");
    same_as_json(&history, &reports(&text("iostat.json")));
    let imported = recording.manifest.imported.as_ref().unwrap();
    assert_eq!((imported.tool.as_str(), &imported.tool_version), ("iostat", &None));
    assert!(imported.file.ends_with("iostat.json"));
    let columns = &recording.manifest.probes.iter().find(|p| p.probe == "host").unwrap().columns;
    let dirty = columns.iter().find(|column| column.name == "dirty_bytes").unwrap();
    assert!(dirty.unmeasured.as_ref().unwrap().is_not_imported());
    assert_eq!(recording.manifest.probes.len(), 2, "of no probe that has no rows");
}

#[test]
fn iostats_text_says_the_same_as_its_json() {
    let (_, history, notes) = imported(&fixture("iostat.txt"));
    assert!(notes.is_empty(), "{notes:?}");
    let text = text("iostat.txt");
    let headings: Vec<&str> =
        text.lines().find(|line| line.starts_with("Device")).unwrap().split_whitespace().collect();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("vda")).skip(1).collect();
    let intervals = intervals(&history);
    assert_eq!((intervals.len(), rows.len()), (6, 6));
    for (interval, row) in intervals.iter().zip(rows) {
        let values: Vec<&str> = row.split_whitespace().collect();
        same_as_iostat(interval, "vda", |key| {
            let at = headings.iter().position(|h| h.trim_start_matches('%') == key).unwrap();
            values[at].parse().unwrap()
        });
    }
}

#[test]
fn the_columns_of_an_old_iostat_are_known() {
    // The layout of sysstat 10, as in enterprise Linux 7.
    let report = |time: &str, reads: &str| {
        format!(
            "06/05/2026 {time} PM\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
             \x20         10.00    0.00    5.00   25.00    0.00   60.00\n\n\
             Device:   rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz \
             await r_await w_await  svctm  %util\n\
             sda       0.00     1.00  {reads}    3.00   400.00    12.00    15.30     0.20 \
             3.77    4.00    0.50   1.00   5.30\n\n"
        )
    };
    let title = "Linux 3.10.0-1160.el7.x86_64 (db1) \t06/05/2026 \t_x86_64_\t(4 CPU)\n\n";
    let text = format!("{title}{}{}", report("12:59:59", "7.00"), report("01:00:09", "50.00"));
    let (history, notes) = imported_text("old.txt", text.as_bytes()).unwrap();
    assert!(notes.iter().any(|note| note.contains("month first")), "{notes:?}");
    let interval = history.whole().unwrap();
    assert_eq!(interval.to_ns, 10_000_000_000);
    assert_eq!(interval.moved("block", "sda", "read_ios"), Ok(500.0));
    assert_eq!(interval.moved("block", "sda", "read_ns"), Ok(500.0 * 4e6));
    assert_eq!(interval.moved("block", "sda", "queue_ns"), Ok(2e9));
    assert_eq!(interval.moved("host", "", "cpu_iowait_ns"), Ok(10e9));
    assert_eq!(interval.moved("block", "sda", "flush_ios"), Err(Missing::NotInVersion));
    assert_eq!(interval.moved("block", "sda", "discard_ios"), Err(Missing::NotInVersion));
}

#[test]
fn a_length_that_is_not_the_printed_one_is_found() {
    // 202 reads in 1.06 s: 190.57 per second, and 12 KiB each.
    let report = |second: u32, reads: f64, kb: f64| {
        format!(
            "{{\"timestamp\": \"2026-11-22T10:11:{second}+0000\", \"disk\": [{{\"disk_device\": \
             \"sda\", \"r/s\": {reads}, \"rkB/s\": {kb}, \"r_await\": 0.25}}]}}"
        )
    };
    let list = [report(50, 1.0, 1.0), report(51, 190.57, 2286.79), report(52, 0.35, 1.4)];
    let text = format!(
        "{{\"sysstat\": {{\"hosts\": [{{\"nodename\": \"db\", \"number-of-cpus\": 1, \
         \"statistics\": [{}]}}]}}}}\n",
        list.join(",\n")
    );
    let (history, _) = imported_text("odd.json", text.as_bytes()).unwrap();
    let interval = intervals(&history)[0];
    assert_eq!((interval.from_ns, interval.to_ns), (0, 1_060_000_000));
    assert_eq!(interval.moved("block", "sda", "read_ios"), Ok(202.0));
    assert_eq!(interval.moved("block", "sda", "read_ns"), Ok(202.0 * 250_000.0));
    near(interval.per_s("block", "sda", "read_ios").unwrap(), 190.57, 0.005, "r/s");
}

#[test]
fn paths_of_an_nvme_disk_count_in_its_place() {
    let disk =
        |name: &str, reads: u32| format!("{{\"disk_device\": \"{name}\", \"r/s\": {reads}}}");
    let report = |second: u32| {
        let disks = [disk("nvme0c0n1", 40), disk("nvme0c1n1", 2), disk("nvme0n1", 0)].join(",");
        let at = format!("\"timestamp\": \"2026-11-22T10:11:{second}+0000\"");
        format!("{{{at}, \"disk\": [{disks}]}}")
    };
    let list = [report(50), report(51)].join(",");
    let text = format!("{{\"sysstat\": {{\"hosts\": [{{\"statistics\": [{list}]}}]}}}}\n");
    let (history, _) = imported_text("nvme.json", text.as_bytes()).unwrap();
    let interval = history.whole().unwrap();
    assert_eq!(interval.text("block", "nvme0n1", "beneath"), Some("nvme0c0n1 nvme0c1n1"));
    near(figure(&interval, "disks", "all", "read_ios_per_s"), 42.0, 0.0, "both paths");
}

/// Writes each half of a file's intervals to its own file.
fn halves(name: &str, dir: &Path) -> [PathBuf; 2] {
    let whole = text(name);
    [0..3, 4..7].map(|range| {
        let mut document: serde_json::Value = serde_json::from_str(&whole).unwrap();
        let list = document["sysstat"]["hosts"][0]["statistics"].as_array_mut().unwrap();
        *list = list[range.clone()].to_vec();
        let path = dir.join(format!("{}-{name}", range.start));
        fs::write(&path, format!("{document}\n")).unwrap();
        path
    })
}

#[test]
fn several_files_become_one_recording_and_what_lies_between_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = halves("sar.json", dir.path());
    let import = Import::read(&[second.clone(), first.clone()]).unwrap();
    let to = Destination { dir: dir.path().join("run"), id: "abcdef".to_owned() };
    import.record(&to, &[]).unwrap();
    let history = History::read(&Recording::open(&to.dir).unwrap()).unwrap();
    let known: Vec<bool> = intervals(&history)
        .iter()
        .map(|interval| interval.moved("block", "vda", "write_bytes").is_ok())
        .collect();
    assert_eq!(known, [true, true, true, false, false, true, true, true]);
    let whole = history.whole().unwrap();
    assert_eq!(whole.moved("block", "loop0", "write_bytes"), Err(Missing::Unknown), "not zero");

    let error = |paths: &[PathBuf]| Import::read(paths).map(drop).unwrap_err().to_string();
    assert!(error(&[first.clone(), first.clone()]).contains("their times overlap"));
    assert!(error(&[first.clone(), fixture("iostat.json")]).contains("by different tools"));
    let other = fs::read_to_string(&second).unwrap().replace("\"vm\"", "\"db2\"");
    fs::write(&second, other).unwrap();
    assert!(error(&[first, second]).contains("of different hosts"));
}

#[test]
fn an_iostat_that_appends_to_a_file_starts_over() {
    let once = text("iostat.txt");
    let later = once.replace("T10:", "T11:");
    let (history, notes) = imported_text("twice.txt", (once + &later).as_bytes()).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let known = intervals(&history).into_iter().map(|interval| {
        let seconds = interval.seconds();
        (interval.moved("block", "vda", "write_bytes").is_ok(), seconds > 60.0)
    });
    let known: Vec<_> = known.collect();
    let mut expected = vec![(true, false); 14];
    expected[6..8].fill((false, true));
    assert_eq!(known, expected);
}

#[test]
fn an_interval_that_is_missing_is_unknown() {
    let whole = text("sar.json");
    let mut document: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let list = document["sysstat"]["hosts"][0]["statistics"].as_array_mut().unwrap();
    list.drain(2..5);
    let (history, _) = imported_text("gap.json", format!("{document}\n").as_bytes()).unwrap();
    let known: Vec<bool> = intervals(&history)
        .iter()
        .map(|interval| interval.moved("block", "vda", "read_bytes").is_ok())
        .collect();
    assert_eq!(known, [true, true, false, false, true, true]);
    let whole = history.whole().unwrap();
    assert_eq!(whole.moved("block", "vda", "read_bytes"), Err(Missing::Unknown));
}

#[test]
fn a_file_is_read_however_it_is_compressed_and_encoded() {
    let report = text("iostat.txt");
    let expected = {
        let (_, history, _) = imported(&fixture("iostat.txt"));
        intervals(&history).len()
    };
    let utf16: Vec<u8> =
        format!("\u{feff}{report}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let zstd = zstd::encode_all(report.as_bytes(), 1).unwrap();
    let both = zstd::encode_all(&utf16[..], 1).unwrap();
    for (name, bytes) in [("utf16", &utf16), ("zst", &zstd), ("utf16.zst", &both)] {
        let (history, notes) = imported_text(name, bytes).unwrap();
        assert_eq!((intervals(&history).len(), notes.len()), (expected, 0), "{name}: {notes:?}");
    }
    // A short file is a single block, which cannot be partially decompressed.
    refused("cut.zst", &zstd[..zstd.len() - 9], &["decompress with zstd", "hint: copy it again"]);
}

#[test]
fn a_file_cut_anywhere_gives_what_is_whole_before_the_cut() {
    for name in ["collectl.raw.gz", "sar.json", "iostat.json", "iostat.txt"] {
        let bytes = fs::read(fixture(name)).unwrap();
        let (_, whole, _) = imported(&fixture(name));
        let whole = intervals(&whole).len();
        let mut last = 0;
        for part in 1..=16 {
            let cut = &bytes[..bytes.len() * part / 16 - 1];
            match imported_text(name, cut) {
                Ok((history, notes)) => {
                    let found = intervals(&history);
                    assert!(found.len() >= last && found.len() <= whole, "{name} {part}");
                    // Cut between two reports, a text looks complete.
                    let said = !notes.is_empty() || cut.ends_with(b"\n\n");
                    assert!(found.len() == whole || said, "{name} {part}");
                    last = found.len();
                    for (interval, whole) in found.iter().zip(1..) {
                        let moved = interval.moved("block", "vda", "write_bytes");
                        assert!(moved.is_ok_and(|bytes| bytes > 0.0), "{name} {part} {whole}");
                    }
                }
                Err(error) => {
                    assert_eq!(last, 0, "{name} {part}: {error}");
                    let text = error.told();
                    assert!(text.contains("\nhint: ") && text.contains(name), "{text}");
                }
            }
        }
        assert!(last >= whole - 1, "{name}: {last} of {whole}");
    }
}

#[test]
fn a_document_in_one_line_is_read_like_one_in_many() {
    for name in ["sar.json", "iostat.json"] {
        let many = text(name);
        let (whole, _) = imported_text(name, many.as_bytes()).unwrap();
        let one = many.replace('\n', " ");
        let (history, notes) = imported_text("one.json", one.as_bytes()).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        let figures = |history: &History| {
            let intervals = intervals(history).into_iter();
            let moved = intervals.map(|it| it.moved("block", "vda", "write_bytes").unwrap());
            moved.collect::<Vec<_>>()
        };
        assert_eq!(figures(&history), figures(&whole), "{name}");
    }
}

fn unzipped() -> String {
    let file = fs::File::open(fixture("collectl.raw.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

#[track_caller]
fn refused(name: &str, text: &[u8], parts: &[&str]) {
    let error = imported_text(name, text).map(drop).unwrap_err().told();
    for part in parts {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(error.matches('\n').count(), 1, "{error}");
}

#[test]
fn damaged_foreign_and_empty_files_are_refused_with_the_line() {
    refused("empty", b"", &["it is empty", "hint: what can be imported: files of collectl"]);
    refused("foreign.csv", b"a,b\n1,2\n", &["its format is unknown"]);
    refused("sa22", b"\x96\xd5\x00\x01\x02", &["it is binary", "sadf -j"]);
    let sar10 = b"\x96\xd5\x71\x21\x0a\x02\x01\x00\x00\x00";
    let named = ["this is sar's binary file of sysstat 10.2.1", "hint: sadf -j FILE -- -A"];
    refused("sa22", sar10, &named);
    let swapped = b"\xd5\x96\x21\x75\x0c\x06\x01\x00\x00\x00";
    refused("sa22", swapped, &["this is sar's binary file of sysstat 12.6.1"]);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(sar10).unwrap();
    refused("sa22.gz", &packed.finish().unwrap(), &named);
    refused("odd.raw", b"#\n# Collectl:\n\xff\n", &["line 3", "not text"]);
    let raw = unzipped();
    let odd = raw.replacen("disk  254       0 vda 9", "disk  254       0 vda x9", 1);
    let line = odd.lines().position(|line| line.contains("vda x9")).unwrap() + 1;
    refused("odd.raw", odd.as_bytes(), &[&format!("line {line}: `x9"), "is not a number"]);
    let odd = raw.replacen(">>> 1795342598.001", ">>> 17953425x8.001", 1);
    refused("odd.raw", odd.as_bytes(), &["line 257: `>>> 17953425x8.001 <<<` is not a time"]);
    let plots = "################\n# Collectl:   V4.3.1-1\n#Date Time [CPU]User%\n2026 10 1\n";
    refused("plot", plots.as_bytes(), &["line 4", "`2026 10 1` does not begin with a time"]);
    let mut gz = fs::read(fixture("collectl.raw.gz")).unwrap();
    let at = gz.len() / 2;
    gz[at..at + 8].fill(0xff);
    refused("bad.raw.gz", &gz, &["decompress", "hint: copy it again"]);
    let json = text("iostat.json");
    let odd = json.replacen("\"r/s\": 2031.67", "\"r/s\": 2031.67.1", 1);
    let line = odd.lines().position(|line| line.contains("2031.67.1")).unwrap() + 1;
    refused("odd.json", odd.as_bytes(), &[&format!("line {line}: ")]);
    let odd = json.replace("\"timestamp\"", "\"thyme\"");
    let odd = odd.replacen("\"thyme\"", "\"timestamp\"", 1);
    refused("odd.json", odd.as_bytes(), &["a report without a time among others"]);
    let odd = json.replace("2026-11-22T", "32.11.2026 ");
    refused("odd.json", odd.as_bytes(), &["S_TIME_FORMAT=ISO"]);
    let odd = text("iostat.txt").replacen("234348.00", "234348.00 7.00", 1);
    refused("odd.txt", odd.as_bytes(), &["has 23 numbers for 22 headings"]);
    let odd = text("sar.json").replacen("\"interval\": 1}", "\"interval\": 0}", 1);
    refused("odd.json", odd.as_bytes(), &["an interval without a `timestamp`"]);
}

#[test]
fn a_clock_that_goes_back_and_times_without_zone_are_noted() {
    let raw = unzipped().replacen(">>> 1795342598.001", ">>> 1795342500.001", 1);
    let (history, notes) = imported_text("back.raw", raw.as_bytes()).unwrap();
    assert_eq!(notes, ["its clock went back; samples skipped: 1"]);
    assert_eq!(history.ticks().count(), 8);
    let plain = text("iostat.txt").replace("2026-11-22T", "11/22/26 ").replace("+0000", "");
    let (history, notes) = imported_text("plain.txt", plain.as_bytes()).unwrap();
    assert!(notes[0].contains("taken as UTC"), "{notes:?}");
    assert_eq!(history.ticks().count(), 7);
}

#[test]
fn an_iostat_that_runs_now_is_read() {
    require!(Iostat);
    let output = Command::new("iostat")
        .args(["-o", "JSON", "-x", "-t", "1", "4"])
        .env("S_TIME_FORMAT", "ISO")
        .output()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.json");
    fs::File::create(&path).unwrap().write_all(&output.stdout).unwrap();
    let (_, history, notes) = imported(&path);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(intervals(&history).len(), 3);
    let reports = reports(&String::from_utf8(output.stdout).unwrap());
    for (interval, report) in intervals(&history).iter().zip(&reports) {
        for disk in report["disk"].as_array().unwrap() {
            let name = disk["disk_device"].as_str().unwrap();
            let of = |key: &str| disk[key].as_f64().unwrap();
            let rate = interval.per_s("block", name, "write_bytes").unwrap() / 1024.0;
            near(rate, of("wkB/s"), 0.01, "wkB/s");
            near(figure(interval, "disks", name, "busy_share") * 100.0, of("util"), 0.01, "util");
        }
    }
}
