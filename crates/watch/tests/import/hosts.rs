//! Files of vmstat, dstat, dool, nmon and collectl -P, archives of watchers, and files that are
//! not read.

use super::*;

/// Imports a text; returns its history and its notes.
#[track_caller]
fn read(name: &str, text: &str) -> (History, Vec<String>) {
    imported_text(name, text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {}", error.told()))
}

/// Returns how far a counter moved in each interval; -1 where it is unknown.
fn moved(history: &History, probe: &str, object: &str, column: &str) -> Vec<f64> {
    let moved = |it: Interval<'_>| it.moved(probe, object, column).unwrap_or(-1.0);
    intervals(history).into_iter().map(moved).collect()
}

const BANNER: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- \
                      ------cpu-----\n";
const HEADINGS: &str =
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st";

/// Returns a report of vmstat that read so many KiB a second.
fn vmstat(kib: u32, end: &str) -> String {
    format!(
        " 3  1      0 100000  20000 300000    0    0 {kib:5}   400 1000 2000  5  2 92  1  0{end}\n"
    )
}

#[test]
fn vmstat_gives_bytes_interrupts_and_switches() {
    let at = |second| format!(" 2026-11-20 10:00:{second:02}");
    let mut text = format!("{BANNER}{HEADINGS}                 UTC\n{}", vmstat(7, &at(0)));
    for (kib, second) in [(800, 10), (1600, 20)] {
        text += &vmstat(kib, &at(second));
    }
    let (history, notes) = read("vmstat.txt", &text);
    let bytes = [800.0 * 10_240.0, 1600.0 * 10_240.0];
    assert_eq!(moved(&history, "disks", "", "read_bytes"), bytes);
    assert_eq!(moved(&history, "memory", "", "paged_in_bytes"), bytes);
    assert_eq!(moved(&history, "host", "", "switches"), [20_000.0; 2]);
    assert_eq!(moved(&history, "host", "", "interrupts"), [10_000.0; 2]);
    assert_eq!(moved(&history, "host", "", "cpu_user_ns"), [-1.0; 2], "of how many processors?");
    assert_eq!(moved(&history, "memory", "", "swapped_in_pages"), [-1.0; 2], "-S is not known");
    assert_eq!(intervals(&history)[1].level("host", "", "blocked"), Ok(1.0));
    assert!(!notes.iter().any(|note| note.contains("taken as UTC")), "{notes:?}");

    // The wide layout, with active memory and guests, in a zone.
    let wide = text.replace("buff  cache", "inact active").replace("wa st  ", "wa st gu ");
    let wide = wide.replace("  1  0 2026", "  1  0  0 2026").replace("UTC", "CET");
    let (history, notes) = read("wide.txt", &wide);
    assert_eq!(moved(&history, "disks", "", "read_bytes"), bytes);
    assert!(notes.iter().any(|note| note.contains("taken as UTC")), "{notes:?}");
}

#[test]
fn vmstat_without_times_has_rates() {
    let text = format!("{BANNER}{HEADINGS}\n{}{}", vmstat(9, ""), vmstat(800, "").repeat(3));
    let twice = text.repeat(2);
    let (history, notes) = read("vmstat.txt", &twice);
    assert!(notes.iter().any(|note| note.contains("reports have no times")), "{notes:?}");
    // The first report of each covers the time since boot.
    let known = moved(&history, "disks", "", "read_bytes");
    let all: f64 = known.iter().filter(|bytes| **bytes > 0.0).sum();
    near(all, 6.0 * 819_200.0, 0.0, "six seconds");
    assert!(known.iter().all(|bytes| *bytes <= 819_200.0), "{known:?}");
    refused("odd.txt", text.replacen("  5  2 92  1  0", "  5  2", 1).as_bytes(), &["line 3", "14"]);
}

#[test]
fn vmstat_of_oswatcher_has_times_and_processors() {
    let mut text = "Linux OSWbb v7.3.3\nSNAP_INTERVAL 30\nCPU_COUNT 8\n".to_owned();
    for minute in 0..2 {
        let reports = vmstat(9, "") + &vmstat(800, "") + &vmstat(400, "");
        text += "zzz ***Fri Nov 20 10:0";
        text += &minute.to_string();
        text += ":00 UTC 2026\n";
        text += &(BANNER.to_owned() + HEADINGS + "\n" + &reports);
    }
    let (history, notes) = read("db1_vmstat_26.11.20.1000.dat", &text);
    let read_bytes = moved(&history, "disks", "", "read_bytes");
    let known: Vec<f64> = read_bytes.iter().copied().filter(|bytes| *bytes >= 0.0).collect();
    assert_eq!(known, [819_200.0, 409_600.0, 819_200.0, 409_600.0], "the rest is unknown");
    assert!(read_bytes.len() > known.len());
    let user = intervals(&history)[0].moved("host", "", "cpu_user_ns").unwrap();
    near(user, 0.05 * 8.0 * 1e9, 1.0, "5 % of eight processors");
    assert!(!notes.iter().any(|note| note.contains("processors")), "{notes:?}");
    let five = text.replace("UTC 2026", "UTC 2026 Sample interval: 5 secs");
    let (history, notes) = read("five.dat", &five);
    let known = moved(&history, "disks", "", "read_bytes");
    assert!(known.contains(&4_096_000.0), "five seconds: {known:?}");
    assert!(!notes.iter().any(|note| note.contains("how long")), "{notes:?}");
    let one = text.replace(&vmstat(800, ""), "").replace(&vmstat(400, ""), "");
    refused("one.dat", one.as_bytes(), &["one report", "time since boot"]);
    let one = format!("{BANNER}{HEADINGS}\n{}", vmstat(800, ""));
    refused("alone.txt", one.as_bytes(), &["at most one report", "vmstat -t 1"]);
    let odd = text.replace("Fri Nov 20", "Someday");
    refused("odd.dat", odd.as_bytes(), &["line 4", "no known form of time"]);
}

const DOOL: &str = concat!(
    r#""dool 1.3.1 CSV output"
"Author:","Scott Baker",,,,"URL:","https://github.com/scottchiefbaker/dool/"
"Host:","db1",,,,"User:","root"
"Cmdline:","dool --bytes -tdlrny -D total,sda --output f 5",,,,"Date:","31 Dec 2026 23:59:50 UTC"

"system","dsk/total",,"dsk/sda",,"load avg",,,"io/total",,"io/sda",,"net/eth0",,"paging",,"system",
"#,
    r#""time","dsk/total:read","dsk/total:writ","dsk/sda:read","dsk/sda:writ","1m","5m","15m","#,
    r#""io/total:read","io/total:writ","io/sda:read","io/sda:writ","recv","send","in","out","#,
    r#""int","csw"
Dec-31 23:59:50,1,1,1,1,0.500,0.400,0.300,1,1,1,1,0,0,0,0,9,9
Dec-31 23:59:55,819200,4096,409600,2048,0.500,0.400,0.300,100,1,50.200,0.500,2000,1000,0,0,700,1300
Jan-01 00:00:00,819200,4096,409600,-,0.500,0.400,0.300,100,1,50.200,0.500,2000,1000,0,0,700,1300
"#
);

#[test]
fn csv_of_dstat_and_dool_is_read() {
    let (history, notes) = read("dool.csv", DOOL);
    assert_eq!(moved(&history, "block", "sda", "read_bytes"), [2_048_000.0; 2]);
    assert_eq!(moved(&history, "block", "sda", "read_ios"), [251.0; 2]);
    assert_eq!(moved(&history, "block", "sda", "write_bytes"), [10_240.0, -1.0], "`-` is unknown");
    assert_eq!(moved(&history, "disks", "", "read_ios"), [500.0; 2]);
    assert_eq!(moved(&history, "network", "eth0", "received_bytes"), [10_000.0; 2]);
    assert_eq!(moved(&history, "host", "", "interrupts"), [3500.0; 2]);
    assert_eq!(intervals(&history)[0].level("host", "", "load_one_minute_ppm"), Ok(500_000.0));
    assert!(notes.iter().any(|note| note.contains("not read: paging in, paging out")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("UTC")), "{notes:?}");
    // From 1.3 on bits are the default, and --bits is followed; before, everything is bytes.
    for (version, options, bits) in [
        ("1.3.1", "", true),
        ("1.3.1", "--bits", true),
        ("1.4.0", "--bytes --bits", true),
        ("1.3.1", "--bits --bytes", false),
        ("1.3.1", "--dstat", false),
        ("1.2.0", "--bits", false),
    ] {
        let file = DOOL.replace("dool 1.3.1", &format!("dool {version}"));
        let (history, notes) =
            read("bits.csv", &file.replace("dool --bytes", &format!("dool {options}")));
        let bytes = if bits { 256_000.0 } else { 2_048_000.0 };
        assert_eq!(
            moved(&history, "block", "sda", "read_bytes"),
            [bytes; 2],
            "{version} {options}"
        );
        assert_eq!(notes.iter().any(|note| note.contains("counts bits")), bits, "{notes:?}");
    }

    // dstat: one disk, no time, another order of day and month.
    let dstat = "\"Dstat 0.7.3 CSV output\"\n\"Host:\",\"h\",,,,\"User:\",\"root\"\n\
                 \"Cmdline:\",\"dstat -cd -C 0 2 9\",,,,\"Date:\",\"03 Dec 2020 14:10:38 CST\"\n\n\
                 \"total cpu usage\",,,,,,\"dsk/total\",\n\
                 \"usr\",\"sys\",\"idl\",\"wai\",\"hiq\",\"siq\",\"read\",\"writ\"\n\
                 0.1,0.1,99.6,0.0,0.0,0.0,7.1,7.2\n1,1,98,0,0,0,1000,0.0\n1,1,98,0,0,0,1000,5\n";
    let (history, notes) = read("dstat.csv", dstat);
    assert_eq!(moved(&history, "disks", "", "read_bytes"), [2000.0; 2], "two seconds each");
    for note in ["no times", "how many processors", "taken as UTC"] {
        assert!(notes.iter().any(|it| it.contains(note)), "{note}: {notes:?}");
    }
    let timed = dstat.replace("-C 0 2 9", "-C 0 1 9");
    let timed = timed.replace("\"total cpu usage\"", "\"system\",\"total cpu usage\"");
    let timed = timed.replace("\n\"usr\"", "\n\"time\",\"usr\"");
    let timed =
        timed.replace("\n0.1,", "\n03-12 14:10:38,0.1,").replacen("\n1,", "\n03-12 14:10:39,1,", 1);
    let timed = timed.replacen("\n1,", "\n03-12 14:10:40,1,", 1);
    assert_eq!(moved(&read("timed.csv", &timed).0, "disks", "", "read_bytes"), [1000.0; 2]);
    // Times are cut to seconds: two reports of one second, after two seconds without any.
    let jitter = timed.replace("03-12 14:10:39", "03-12 14:10:40");
    assert_eq!(moved(&read("jitter.csv", &jitter).0, "disks", "", "read_bytes"), [1000.0; 2]);
    let odd = timed.replace("03-12 14:10:40", "the third");
    refused("odd.csv", odd.as_bytes(), &["line 9", "`the third` is not a known form of time"]);
}

const NMON: &str = "\
AAA,progname,nmon16p
AAA,version,16p
AAA,host,db1
AAA,OS,Linux,5.14.0,#1 SMP,x86_64
AAA,cpus,4
CPU_ALL,CPU Total db1,User%,Sys%,Wait%,Idle%,Steal%,Busy,CPUs
MEM,Memory MB db1,memtotal,hightotal,memfree,swaptotal,swapfree,cached,buffers
PROC,Processes db1,Runnable,Blocked,pswitch,syscall,fork
NET,Network I/O db1,lo-read-KB/s,eth0-read-KB/s,lo-write-KB/s,eth0-write-KB/s
DISKBUSY,Disk %Busy db1,sda,sda1
DISKREAD,Disk Read KB/s db1,sda,sda1
DISKWRITE,Disk Write KB/s db1,sda,sda1
DISKREAD1,Disk Read KB/s db1,nvme0n1
DISKREADS,Disk Reads per second db1,sda,sda1
ZZZZ,T0001,10:00:00,20-NOV-2026
CPU_ALL,T0001,1.0,1.0,0.0,98.0,0.0,,4
DISKREAD,T0001,9.9,9.9
ZZZZ,T0002,10:00:10,20-NOV-2026
CPU_ALL,T0002,25.0,5.0,1.0,69.0,0.0,,4
MEM,T0002,2048.0,-1.0,512.0,0.0,0.0,256.0,16.0
PROC,T0002,3,1,1200.5,-1.0,7.0
NET,T0002,0.0,100.0,0.0,50.0
DISKBUSY,T0002,101.00,3.0
DISKREAD,T0002,409.6,409.6
DISKWRITE,T0002,0.0,0.0
DISKREAD1,T0002,1.0
DISKREADS,T0002,51.2,51.2
";

#[test]
fn nmons_recordings_of_linux_and_aix_are_read() {
    let (history, _) = read("db1.nmon", NMON);
    assert_eq!(moved(&history, "block", "sda", "read_bytes"), [409.6 * 10_240.0]);
    assert_eq!(moved(&history, "block", "sda", "read_ios"), [512.0]);
    assert_eq!(moved(&history, "block", "sda", "write_ios"), [-1.0], "nmon counted transfers");
    assert_eq!(moved(&history, "block", "sda", "busy_ns"), [-1.0], "more than all time");
    assert_eq!(moved(&history, "block", "sda1", "busy_ns"), [0.3e9]);
    assert_eq!(moved(&history, "block", "nvme0n1", "read_bytes"), [10_240.0], "of another line");
    assert_eq!(moved(&history, "network", "eth0", "sent_bytes"), [512_000.0]);
    assert_eq!(moved(&history, "host", "", "cpu_user_ns"), [10e9]);
    assert_eq!(moved(&history, "host", "", "forks"), [70.0]);
    let interval = history.whole().unwrap();
    assert_eq!(interval.level("memory", "", "free_bytes"), Ok(512.0 * 1_048_576.0));

    let aix = "AAA,progname,topas_nmon\nAAA,host,p1\nAAA,AIX,7.2.5.1\n\
               CPU_ALL,CPU Total p1,User%,Sys%,Wait%,Idle%,Busy,PhysicalCPUs\n\
               DISKREAD,Disk Read KB/s p1,hdisk0\nDISKXFER,Disk transfers per second p1,hdisk0\n\
               DISKRXFER,Transfers from disk (reads) per second p1,hdisk0\n\
               ZZZZ,T0001,10:00:00,20-NOV-2026\nDISKREAD,T0001,1.0\n\
               ZZZZ,T0002,10:01:00,20-NOV-2026\nCPU_ALL,T0002,9.0,1.0,0.0,90.0,,4\n\
               DISKREAD,T0002,800.0\nDISKXFER,T0002,124.5\nDISKRXFER,T0002,74.5\n";
    let (history, notes) = read("p1.nmon", aix);
    assert_eq!(moved(&history, "block", "hdisk0", "read_ios"), [4470.0]);
    assert_eq!(moved(&history, "block", "hdisk0", "write_ios"), [3000.0]);
    assert_eq!(moved(&history, "host", "", "cpu_user_ns"), [-1.0]);
    assert!(notes.iter().any(|note| note.contains("AIX counts shares")), "{notes:?}");

    let mut lines: Vec<&str> = NMON.lines().collect();
    lines.sort_unstable();
    refused("sorted.nmon", (lines.join("\n") + "\n").as_bytes(), &["sorted", "sort -s -t, -k2,2"]);
}

#[test]
fn collectls_plots_say_the_same_as_its_raw_file() {
    let (_, raw, _) = imported(&fixture("collectl.raw.gz"));
    let raw = intervals(&raw);
    let (_, disks, notes) = imported(&fixture("collectl-disks.txt"));
    assert!(notes.iter().any(|note| note.contains("it has no head")), "{notes:?}");
    let (_, host, _) = imported(&fixture("collectl-host.txt"));
    let plots = intervals(&disks).into_iter().zip(intervals(&host));
    for (raw, (disks, host)) in raw[1..].iter().zip(plots) {
        for column in ["read_ios", "write_ios"] {
            let of = |it: &Interval<'_>| it.per_s("block", "vda", column).unwrap();
            near(of(&disks), of(raw), 1.0, column);
        }
        let of = |it: &Interval<'_>| it.share("block", "vda", "busy_ns").unwrap();
        near(of(&disks), of(raw), 0.01, "busy_ns");
        for column in ["switches", "interrupts"] {
            let of = |it: &Interval<'_>| it.per_s("host", "", column).unwrap();
            near(of(&host), of(raw), 1.0, column);
        }
        for column in ["load_one_minute_ppm", "runnable", "dirty_bytes"] {
            let of = |it: &Interval<'_>| it.level("host", "", column);
            assert_eq!(of(&host), of(raw), "{column}");
        }
        let of = |it: &Interval<'_>| it.level("memory", "", "free_bytes").unwrap();
        near(of(&host), of(raw), 0.0, "free_bytes");
    }
    // With its head, the first interval and the zone are known.
    let plot = "# Collectl:   V4.3.1-1\n# Host:       db1\n\
                # Date:       20261122-121635  Secs: 1795342595 TZ: +0200\n\
                # SubSys:     d Options:  Interval: 1 NumCPUs: 2  NumBud: 0 Flags: i\n\
                #Date,Time,[CPU]User%,[DSK]ReadTot,[DSK]ReadKBTot\n\
                20261122,12:16:37,50,100,800\n20261122,12:16:38,50,200,1600\n";
    let (history, notes) = read("db1-20261122.tab", plot);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(moved(&history, "disks", "", "read_ios"), [100.0, 200.0]);
    assert_eq!(moved(&history, "host", "", "cpu_user_ns"), [1e9; 2]);
    assert!(history.local_s(0).is_some());
    let cut = plot.replace(",100,800", "");
    refused("cut.tab", cut.as_bytes(), &["line 6", "3 values for 5 headings"]);
}

#[test]
fn interrupts_and_load_of_collectls_raw_file_are_read() {
    let block = |at: u32, disk: u64, timer: u64, load: &str| {
        format!(
            ">>> 17953423{at}.001 <<<\ncpu  40 0 40 400 0 0 0 0\ncpu0 20 0 20 200 0 0 0 0\n\
             cpu2 20 0 20 200 0 0 0 0\nintr {}\nctxt 500\n\
             int  36:          7   {disk:8} PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
             int LOC:   {timer:8}   1000   Local timer interrupts\nint ERR:          0\n\
             load {load}\n",
            disk + timer
        )
    };
    let head = "# Collectl:   V4.3.1-1  HiRes: 1  Options: --all \n# Host:       db1\n";
    let text = format!(
        "{head}{}{}",
        block(10, 4_294_967_290, 100, "6.90 21.71 24.10 16/230 25112"),
        // The kernel counts in 32 bits.
        block(11, 4, 350, "7.90 21.71 24.10")
    );
    let (history, notes) = read("db1.raw", &text);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(moved(&history, "interrupts", "cpu0", "interrupts"), [250.0]);
    assert_eq!(moved(&history, "interrupts", "cpu0", "device_interrupts"), [0.0]);
    assert_eq!(moved(&history, "interrupts", "cpu2", "device_interrupts"), [10.0]);
    let load = intervals(&history)[0].level("host", "", "load_one_minute_ppm").unwrap();
    near(load, 7_900_000.0, 0.0, "load_one_minute_ppm");
}

#[test]
fn csv_of_windows_performance_monitor_is_read() {
    let heading = |counter: &str| format!(",\"\\\\WIN\\{counter}\"");
    let headings: String = [
        "PhysicalDisk(0 C:)\\Disk Reads/sec",
        "PhysicalDisk(0 C:)\\Disk Read Bytes/sec",
        "PhysicalDisk(0 C:)\\Avg. Disk sec/Read",
        "PhysicalDisk(_Total)\\Disk Writes/sec",
        "Processor(_Total)\\% User Time",
        "Processor(0)\\% User Time",
        "Processor(1)\\% User Time",
        "LogicalDisk(C:)\\Disk Reads/sec",
    ]
    .iter()
    .map(|counter| heading(counter))
    .collect();
    let text = format!(
        r#""(PDH-CSV 4.0) (Pacific Standard Time)(480)"{headings}
"11/20/2026 02:00:00.000"," "," "," "," "," "," "," "," "
"11/20/2026 02:00:05.000","100.5","819200","0.002","7","25","1","2","3"
"#
    );
    let (history, notes) = read("perf.csv", &text);
    assert_eq!(moved(&history, "block", "0 C:", "read_bytes"), [4_096_000.0]);
    assert_eq!(moved(&history, "block", "0 C:", "read_ios"), [503.0], "502.5, rounded");
    assert_eq!(moved(&history, "block", "0 C:", "read_ns"), [503.0 * 2e6]);
    assert_eq!(moved(&history, "disks", "", "write_ios"), [35.0]);
    assert_eq!(moved(&history, "host", "", "cpu_user_ns"), [2.5e9]);
    assert_eq!(history.whole().unwrap().disks(), ["0 C:"]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0], "counters that were not read: LogicalDisk\\Disk Reads/sec");
    let odd = text.replace("11/20/2026 02:00:05", "yesterday");
    refused("odd.csv", odd.as_bytes(), &["line 3", "not a known form of time"]);
}

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut to = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        to.append_data(&mut header, name, *bytes).unwrap();
    }
    zstd::encode_all(&to.into_inner().unwrap()[..], 1).unwrap()
}

#[test]
fn the_files_of_an_archive_that_answer_are_found_and_the_others_named() {
    let iostat = text("iostat.txt");
    let later = iostat.replace("T10:", "T11:");
    let vmstat = format!("{BANNER}{HEADINGS}\n{}", vmstat(9, "").repeat(3));
    let files: &[(&str, &[u8])] = &[
        ("osw/archive/oswiostat/db1_iostat_1000.dat", iostat.as_bytes()),
        ("osw/archive/oswiostat/db1_iostat_1100.dat", later.as_bytes()),
        ("osw/archive/oswiostat/copy.dat", iostat.as_bytes()),
        ("osw/archive/oswvmstat/db1_vmstat_1000.dat", vmstat.as_bytes()),
        ("osw/archive/oswtop/db1_top_1000.dat", b"top - 10:00:00 up 1 day\n"),
        ("osw/report.pdf", b"%PDF-1.7\n"),
        ("osw/empty", b""),
    ];
    let (history, notes) = imported_text("osw.tar.zst", &tar_of(files)).unwrap();
    let (_, whole, _) = imported(&fixture("iostat.txt"));
    let bytes = moved(&whole, "block", "vda", "read_bytes");
    let found = moved(&history, "block", "vda", "read_bytes");
    assert_eq!(found[..bytes.len()], bytes);
    assert_eq!(found[found.len() - bytes.len()..], bytes);
    for (name, why) in [
        ("copy.dat", "their times overlap"),
        ("db1_vmstat_1000.dat", "it is of vmstat; iostat is read"),
        ("db1_top_1000.dat", "it is top's text"),
        ("report.pdf", "it is a PDF document"),
        ("empty", "it is empty"),
    ] {
        let is_named = |note: &&String| note.contains(name) && note.contains(why);
        assert!(notes.iter().any(|note| is_named(&note)), "{name}: {notes:?}");
    }
    // The same below a directory.
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let import = Import::read(&[dir.path().to_owned()]).unwrap();
    assert_eq!(import.left_out().len(), 5);
    let known = |bytes: Vec<f64>| bytes.into_iter().filter(|it| *it >= 0.0).collect::<Vec<_>>();
    let below = moved(&import.history().unwrap(), "block", "vda", "read_bytes");
    assert_eq!(known(below), known(found));
    refused("none.tar.zst", &tar_of(&files[4..]), &["no file in it is read", "top's text"]);
}

#[test]
fn files_that_are_not_read_are_called_by_their_names() {
    for (bytes, parts) in [
        (&b"%PDF-1.4\n"[..], ["it is a PDF document", "as HTML or text"]),
        (b"7z\xbc\xaf\x27\x1c\0\x04", ["it is a 7z archive", "7z x FILE"]),
        (b"\x1f\x9d\x90ab", ["compressed with compress", "gzip -d FILE"]),
        (b"\xef\xbe\xed\xfe\0\0", ["atop's binary log", "atopsar"]),
        (b"SQLite format 3\0", ["an SQLite database", "sqlite3"]),
        (b"{\"a\": [1]}\n", ["it is JSON, but neither of", "sadf -j"]),
        (b"<html>\n<title>Home</title>\n", ["HTML, but not a report of AWR", "awrrpt.sql"]),
        (b"System configuration: lcpu=8\n\nDisks: % tm_act\n", ["a report of AIX", "nmon -f"]),
        (b"a: 1\nb: 2\n", ["its format is unknown", "what can be imported"]),
    ] {
        refused("file", bytes, &parts);
        let packed = zstd::encode_all(bytes, 1).unwrap();
        refused("file.zst", &packed, &parts);
    }
}
