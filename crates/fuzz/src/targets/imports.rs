//! Files of other monitors.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use blockstone_import::Names;
use blockstone_watch::{Destination, Import};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use serde_json::json;

use crate::scratch;

/// One input in this many is also written as a recording, which takes ten times as long.
const RECORDED: usize = 16;

/// Reads a file of any of the formats, which are told apart by their content.
pub fn import(input: &[u8]) -> bool {
    let Ok(import) = Import::read(&[scratch::file("import", input)]) else { return false };
    import.summary();
    import.notes();
    if input.len().is_multiple_of(RECORDED) {
        let dir = scratch::dir("imported", |_| {}).join("run");
        let _ = fs::remove_dir_all(&dir);
        let _ = import.record(&Destination { dir, id: "abcdef".to_owned() }, &[]);
    }
    true
}

/// Reads the load that databases recorded: from one file, and as a series of several.
pub fn load(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(report) = blockstone_import::read("fuzz", &text, Names::Hidden { salt: b"" }) else {
        return false;
    };
    blockstone_import::series(&[report.clone(), report]);
    true
}

/// Returns an HTML table whose first row is headings.
fn table(summary: &str, rows: &[&[&str]]) -> String {
    let mut text = format!("<table border=\"0\" summary=\"{summary}\">");
    for (index, row) in rows.iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        let cells = row.iter().map(|cell| format!("<{tag}>{cell}</{tag}>"));
        let _ = writeln!(text, "<tr>{}</tr>", cells.collect::<Vec<_>>().concat());
    }
    text + "</table>\n"
}

fn html_loads() -> [String; 2] {
    let activity: [&[&str]; 3] = [
        &["Statistic", "Total", "per Second", "per Trans"],
        &["physical read total IO requests", "720,072", "200.00", "1.00"],
        &["redo size", "3,600,360,000", "1,000,000.00", "1.00"],
    ];
    let html = "<html><head><title>AWR Report for DB: A, Inst: a, Snaps: 1-2</title></head>\n"
        .to_owned()
        + &table(
            "This table displays database instance information",
            &[
                &["DB Name", "DB Id", "Instance", "Inst num", "Startup Time", "Release", "RAC"],
                &["A", "4711", "a", "1", "01-May-24 08:00", "11.2.0.4.0", "NO"],
            ],
        )
        + &table(
            "This table displays snapshot information",
            &[
                &["", "Snap Id", "Snap Time", "Sessions"],
                &["Begin Snap:", "1", "14-May-24 10:00:00", "39"],
                &["End Snap:", "2", "14-May-24 11:00:00", "40"],
            ],
        )
        + &table("This table displays Instance activity statistics", &activity)
        + "End of Report\n</html>\n";
    let global = "<html><head><title>AWR RAC Report for DB: A, Snaps: 1-2</title></head>\n"
        .to_owned()
        + &table(
            "Database Instances Included In Report",
            &[
                &["I#", "Host", "Begin Snap Time", "End Snap Time", "Release"],
                &["1", "h", "14-May-24 10:00", "14-May-24 11:00", "19.0.0.0.0"],
                &["2", "i", "14-May-24 10:00", "14-May-24 11:00", "19.0.0.0.0"],
            ],
        )
        + &table("System Statistics (Global)", &activity)
        + "End of Report\n</html>\n";
    [html, global]
}

const STATSPACK: &str = "
STATSPACK report for

Database    DB Id    Instance     Inst Num  Startup Time   Release     RAC
~~~~~~~~ ----------- ------------ -------- --------------- ----------- ---
A               4711 a                   1 01-May-24 08:00 11.2.0.4.0  NO

Begin Snap:       1 14-May-24 10:00:00        39       1.5
  End Snap:       2 14-May-24 11:00:00        40       1.5

Instance Activity Stats  DB/Inst: A/a  Snaps: 1-2

Statistic                                     Total     per Second
-------------------------------- ------------------ --------------
physical reads                            1,800,180          500.0
\u{c}Instance Activity Stats  DB/Inst: A/a  Snaps: 1-2

Statistic                                     Total     per Second
-------------------------------- ------------------ --------------
redo size                             3,600,360,000    1,000,000.0
          -------------------------------------------------------------

Tablespace IO Stats  DB/Inst: A/a  Snaps: 1-2

         Reads Reads/s       Writes
-------------- ------- ------------
A
       720,000     200      180,000
          -------------------------------------------------------------
End of Report
";

const MINER: &str = "~~BEGIN-OS-INFORMATION~~
STAT_NAME  STAT_VALUE
---------- ----------
NUM_CPUS   8
DB_NAME    A
~~END-OS-INFORMATION~~
~~BEGIN-MAIN-METRICS~~

      snap      dur_m end                  inst  read_iops read_iops_max
---------- ---------- -------------- ---------- ---------- -------------
       101         60 24/05/14 11:00          1        200           450
~~END-MAIN-METRICS~~
";

const MARKDOWN: &str = "# WORKLOAD REPOSITORY report for

DB Name| DB Id| Instance| Inst num| Startup Time| Release| RAC
---|---|---|---|---|---|---
A| 4711| a| 1| 01-May-24 08:00| 11.2.0.4.0| NO

| Snap Id| Snap Time| Sessions
---|---|---|---
Begin Snap:| 1| 14-May-24 10:00:00| 39
End Snap:| 2| 14-May-24 11:00:00| 40

### Instance Activity Stats

| **Statistic** | Total | per Second |
| --- | ---: | --- |
| [redo size](#x) | 3,600,360,000 | 1,000,000.00 |
| physical \\| reads | 1,800,180 | 500.0 |

End of Report
";

/// Returns one file of each layout, as small as it can be.
pub fn loads() -> Vec<Vec<u8>> {
    let [html, global] = html_loads();
    let awr = STATSPACK.replace("STATSPACK", "WORKLOAD REPOSITORY");
    // A report of a pluggable database as SQL*Plus prints it, and a mail.
    let container =
        "\nContainer DB Id  Container Name\n--------------- ---------------\n815 P\n\nBegin";
    let part = awr.replace("report for", "PDB report (root snapshots)");
    let part = part.replace("\nBegin", container).replace("May", "5月 ");
    let lines: Vec<&str> = part.lines().collect();
    let pages =
        lines.chunks(7).map(|page| format!("\nOUTPUT\n{}\n{}\n", "-".repeat(50), page.join("\n")));
    let pages = pages.collect::<Vec<_>>().concat();
    let mail = "Content-Transfer-Encoding: quoted-printable\n\n".to_owned()
        + &html.replace('=', "=3D").replace(',', "=A0").replace("<td>", "<td=\n>");
    let csv = "begin,end,database,reads_per_s\n2024-05-14T10:00,2024-05-14T11:00,\"A\",200\n";
    let made = [html, global, awr, pages, mail];
    let others = [STATSPACK, MINER, csv, MARKDOWN].map(str::to_owned);
    made.into_iter().chain(others).map(String::into_bytes).collect()
}

pub fn collectl() -> Vec<Vec<u8>> {
    let mut text = "\
################################################################################
# Collectl:   V4.3.1-1  HiRes: 1  Options: -sDcmnt -i 1 -c 8
# Host:       db1  DaemonOpts:
# Date:       20261122-101635  Secs: 1795342595 TZ: +0000
# SubSys:     Dcmnt Options:  Interval: 1 NumCPUs: 2  NumBud: 0 Flags: i
# HZ:         100  Arch: x86_64-linux-gnu-thread-multi PageSize: 4096
# Cpu:        AuthenticAMD Speed(MHz): 2596.142 Cores: 2  Siblings: 2 Nodes: 1
# Kernel:     6.1.0  Memory: 24684084 kB  Swap: 0 kB
################################################################################
"
    .to_owned();
    for tick in 0..3_u64 {
        let (time, ios) = (1_795_342_596 + tick, 1000 + 300 * tick);
        let _ = write!(
            text,
            "\
>>> {time}.001 <<<
cpu  {ios} 149110 816086 1401897 373260 0 35605 17768 0 0
cpu0 {ios} 75265 356232 852863 144569 0 2802 8597 0 0
intr 68114764
ctxt 2113{ios}
processes 922911
procs_running 8
procs_blocked 0
disk  254       0 vda {ios} 381570 {ios}0 510 22567780 885170 16864 249 0 378 764 76 3 11 18 33 23
disk  253       0 dm-0 {ios} 0 {ios}0 510 2256 0 1686 249 0 378 764
load 4.08 3.77 5.88 8/138 14520
tcp-Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs OutSegs RetransSegs InErrs
tcp-Tcp: 1 200 120000 -1 7441 {ios} {ios} 527 0
MemTotal:       24684084 kB
MemFree:        20345620 kB
MemAvailable:   23060008 kB
pgpgin {ios}
pgpgout 77
pgfault 12345
pswpin 0
Net   eth0:{ios} 543 0 0 0 0 0 0 9393 527 0 0 0 0 0 0
"
        );
    }
    vec![text.into_bytes()]
}

pub fn sar() -> Vec<Vec<u8>> {
    let statistics: Vec<_> = (0..3)
        .map(|tick| {
            let cpu = |name: &str| {
                json!({"cpu": name, "usr": 65.17, "nice": 0.0, "sys": 30.85, "iowait": 0.0,
                    "steal": 0.0, "irq": 0.0, "soft": 3.98, "guest": 0.0, "gnice": 0.0,
                    "idle": 0.0})
            };
            json!({
                "timestamp": {"date": "2026-11-22", "time": format!("10:16:3{tick}"), "utc": 1,
                    "interval": 1},
                "cpu-load": [cpu("all"), cpu("0"), cpu("1")],
                "process-and-context-switch": {"proc": 37.0, "cswch": 36453.0},
                "swap-pages": {"pswpin": 0.0, "pswpout": 0.0},
                "paging": {"pgpgin": 5472.0, "pgpgout": 330_144.0, "fault": 16206.0,
                    "majflt": 12.0},
                "memory": {"memfree": 20_345_620, "avail": 23_060_156, "buffers": 7840,
                    "cached": 2_834_940, "anonpg": 606_732, "slab": 619_240, "pgtbl": 7972,
                    "swpfree": 100, "swpused": 7},
                "queue": {"runq-sz": 9, "plist-sz": 138, "ldavg-1": 4.08, "blocked": 0},
                "disk": [{"disk-device": "vda", "tps": 8118.0, "rtps": 100.0, "rkB": 5472.0,
                    "wkB": 329_692.0, "dkB": 4.0, "aqu-sz": 1.25, "await": 0.15,
                    "util-percent": 39.6}],
                "network": {
                    "net-dev": [{"iface": "eth0", "rxpck": 2.0, "txpck": 3.0, "rxkB": 0.1,
                        "txkB": 0.3}],
                    "net-edev": [{"iface": "eth0", "rxerr": 0.0, "txerr": 0.0, "rxdrop": 0.0,
                        "txdrop": 0.0}],
                    "net-tcp": {"active": 0.0, "passive": 0.0, "iseg": 7.0, "oseg": 9.0},
                    "net-etcp": {"isegerr": 0.0, "retrans": 0.0}
                }
            })
        })
        .collect();
    let document = json!({"sysstat": {"hosts": [{
        "nodename": "db1", "sysname": "Linux", "release": "6.1.0", "machine": "x86_64",
        "number-of-cpus": 2, "file-date": "2026-11-22", "file-utc-time": "10:16:34",
        "timezone": "UTC", "statistics": statistics, "restarts": []
    }]}});
    vec![document.to_string().into_bytes()]
}

pub fn sar_text() -> Vec<Vec<u8>> {
    let mut plain = "Linux 6.1.0 (db1) \t11/22/26 \t_x86_64_\t(2 CPU)\n\n".to_owned();
    for (headings, row) in [
        ("CPU     %user     %nice   %system   %iowait    %steal     %idle", "all 5 0 2 1 0 92"),
        ("tps      rtps      wtps   bread/s   bwrtn/s", "150.00 100.00 50.00 1600.00 800.00"),
        ("DEV       tps     rkB/s     wkB/s     %util", "dev8-0 150.00 800.00 400.00 10.00"),
        ("kbmemfree   kbavail  %memused", "20345620 23060156 7.5"),
    ] {
        let _ = writeln!(plain, "10:00:01 PM {headings}");
        for minute in ["10", "20", "30"] {
            let _ = writeln!(plain, "10:{minute}:01 PM {row}");
        }
        plain.push_str("Average: 1\n\n10:35:00     LINUX RESTART\n\n");
    }
    let local = plain.replace(" PM ", " ").replace("11/22/26", "2026年11月22日").replace('.', ",");
    vec![plain.into_bytes(), local.into_bytes()]
}

pub fn sar_csv() -> Vec<Vec<u8>> {
    let mut text = "db1;-1;2026-11-22 10:00:01 UTC;LINUX-RESTART\t(2 CPU)\n".to_owned();
    for (headings, row) in [
        ("CPU;%user;%nice;%system;%iowait;%steal;%idle", "-1;5.00;0.00;2.00;1.00;0.00;92.00"),
        ("DEV;tps;rkB/s;wkB/s;%util", "sda;150.00;800.00;400.00;10.00"),
        ("IFACE;rxpck/s;txpck/s;rxkB/s;txkB/s", "eth0;1.00;2.00;3.00;4.00"),
    ] {
        let _ = writeln!(text, "# hostname;interval;timestamp;{headings}");
        for minute in [10, 20, 30] {
            let _ = writeln!(text, "db1;600;2026-11-22 10:{minute}:01 UTC;{row}");
        }
    }
    vec![text.into_bytes()]
}

pub fn sar_xml() -> Vec<Vec<u8>> {
    let interval = |minute: u32| {
        format!(
            "<timestamp date=\"2026-11-22\" time=\"10:{minute}:01\" tz=\"UTC\" interval=\"600\">\n\
             <cpu-load>\n<cpu number=\"all\" user=\"5.00\" idle=\"92.00\"/>\n</cpu-load>\n\
             <io per=\"second\">\n<tps>150.0</tps>\n<io-reads rtps=\"100.00\" bread=\"1600.00\"/>\n\
             </io>\n<memory unit=\"kB\">\n<memfree>20345620</memfree>\n</memory>\n\
             <disk per=\"second\">\n<disk-device dev=\"a\" tps=\"150.0\" rkB=\"800.0\"/>\n</disk>\n\
             </timestamp>\n"
        )
    };
    let intervals: String = [10, 20, 30].map(interval).concat();
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sysstat\nxmlns=\"x\">\n\
         <sysdata-version>3.18</sysdata-version>\n<host nodename=\"db1\">\n\
         <number-of-cpus>2</number-of-cpus>\n<statistics>\n{intervals}</statistics>\n</host>\n\
         </sysstat>\n"
    );
    vec![text.into_bytes()]
}

pub fn iostat_json() -> Vec<Vec<u8>> {
    let statistics: Vec<_> = (2..5)
        .map(|tick| {
            json!({
                "timestamp": format!("2026-11-22T10:17:1{tick}+0000"),
                "avg-cpu": {"user": 42.05, "nice": 3.09, "system": 17.69, "iowait": 7.74,
                    "steal": 0.37, "idle": 29.06},
                "disk": [{"disk_device": "vda", "r/s": 394.0, "w/s": 73.0, "d/s": 0.0, "f/s": 6.0,
                    "rkB/s": 7278.78, "wkB/s": 3652.48, "dkB/s": 0.0, "rrqm/s": 0.0, "wrqm/s": 2.84,
                    "r_await": 0.49, "w_await": 1.26, "f_await": 0.36, "aqu-sz": 0.29,
                    "util": 2.19}]
            })
        })
        .collect();
    let document = json!({"sysstat": {"hosts": [{
        "nodename": "db1", "sysname": "Linux", "release": "6.1.0", "machine": "x86_64",
        "number-of-cpus": 2, "date": "2026-11-22", "statistics": statistics
    }]}});
    vec![document.to_string().into_bytes()]
}

pub fn iostat() -> Vec<Vec<u8>> {
    let mut text = "Linux 6.1.0 (db1) \t2026-11-22 \t_x86_64_\t(2 CPU)\n\n".to_owned();
    for tick in 4..7 {
        let _ = write!(
            text,
            "2026-11-22T10:16:3{tick}+0000\n\
             avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          \
             41.99    3.10   17.68    7.75    0.37   29.11\n\n\
             Device            r/s     rkB/s   rrqm/s  %rrqm r_await     w/s     wkB/s w_await \
             d/s     dkB/s   f/s f_await  aqu-sz  %util\n\
             vda           3817.00  50404.24    15.67   0.41    0.55  926.00  34603.78    1.11 \
             31.00  22653.60  135.00    0.07    3.14  15.54\n\
             dm-0            17.00    504.24     0.00   0.00    0.55    0.00      0.00    0.00 \
             0.00      0.00    0.00    0.00    0.14   1.54\n\n\n"
        );
    }
    let other = "# Sample Interval(s): 5\nzzz ***Sun Nov 22 10:16:30 UTC 2026\n".to_owned()
        + &text.replace("2026-11-22T", "Time: ").replace("+0000", " AM").replace("dm-0", "sda1");
    let local = text.replace("2026-11-22T", "22.11.2026 ").replace("+0000", "").replace('.', ",");
    vec![text.into_bytes(), other.into_bytes(), local.into_bytes()]
}

/// Returns all formats, compressed with gzip.
pub fn compressed() -> Vec<Vec<u8>> {
    let seeds = [collectl(), sar(), iostat(), iostat_json()].concat();
    let compressed = seeds.iter().map(|seed| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(seed).and_then(|()| gzip.finish()).expect("memory can be written")
    });
    compressed.collect()
}

pub fn vmstat() -> Vec<Vec<u8>> {
    let headings = "procs -----------memory---------- ---swap-- -----io---- -system-- \
                    ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in \
                    cs us sy id wa st";
    let report = " 1  0      0 100000  20000 300000    0    0   800   400 1000 2000  5  2 92  1  0";
    let mut timed = format!("{headings}                 UTC\n");
    for second in 0..3 {
        let _ = writeln!(timed, "{report} 2026-11-20 10:00:0{second}");
    }
    let run = format!("{headings}\n{report}\n{report}\n{report}\n");
    let zzz =
        format!("Linux OSWbb v7.3.3\nCPU_COUNT 8\nzzz ***Fri Nov 20 10:00:00 UTC 2026\n{run}");
    [timed, run, zzz].map(String::into_bytes).to_vec()
}

/// Returns CSV as written by dool and by Windows Performance Monitor.
pub fn dool() -> Vec<Vec<u8>> {
    let text = r#""dool 1.3.1 CSV output"
"Host:","db1",,,,"User:","root"
"Cmdline:","dool -td --output f 1",,,,"Date:","20 Nov 2026 10:00:00 UTC"

"system","dsk/total",,"io/sda",,"load avg",,
"time","dsk/total:read","dsk/total:writ","read","writ","1m","5m","15m"
Nov-20 10:00:00,1,1,1,1,0.500,0.400,0.300
Nov-20 10:00:01,8192,4096,1,1,0.500,0.400,0.300
Nov-20 10:00:02,8192,4096,1,1,0.500,0.400,0.300
"#;
    let mut untimed = text.replace("\"system\",", "").replace("\"time\",", "");
    for second in 0..3 {
        untimed = untimed.replace(&format!("Nov-20 10:00:0{second},"), "");
    }
    let perfmon = r#""(PDH-CSV 4.0) (UTC)(0)","\\H\PhysicalDisk(0 C:)\Disk Reads/sec"
"11/20/2026 10:00:00.000"," "
"11/20/2026 10:00:05.000","100.5"
"11/20/2026 10:00:10.000","200.5"
"#;
    [text.to_owned(), untimed, perfmon.to_owned()].map(String::into_bytes).to_vec()
}

pub fn nmon() -> Vec<Vec<u8>> {
    let mut text = "\
AAA,progname,nmon16p
AAA,host,db1
AAA,OS,Linux,5.14.0
AAA,cpus,4
CPU_ALL,CPU Total db1,User%,Sys%,Wait%,Idle%,Steal%,Busy,CPUs
MEM,Memory MB db1,memtotal,memfree
NET,Network I/O db1,eth0-read-KB/s,eth0-write-KB/s
DISKBUSY,Disk %Busy db1,sda,hdisk1
DISKREAD,Disk Read KB/s db1,sda,hdisk1
DISKXFER,Disk transfers per second db1,sda,hdisk1
DISKRXFER,Transfers from disk (reads) per second db1,sda,hdisk1
"
    .to_owned();
    for at in 1..4 {
        let _ = write!(
            text,
            "\
ZZZZ,T000{at},10:00:0{at},20-NOV-2026
CPU_ALL,T000{at},25.0,5.0,1.0,69.0,0.0,,4
MEM,T000{at},2048.0,512.0
NET,T000{at},100.0,50.0
DISKBUSY,T000{at},50.0,101.00
DISKREAD,T000{at},409.6,0.0
DISKXFER,T000{at},100.0,2.0
DISKRXFER,T000{at},50.0,1.0
"
        );
    }
    vec![text.into_bytes()]
}

pub fn plot() -> Vec<Vec<u8>> {
    let text = "\
# Collectl:   V4.3.1-1
# Date:       20261122-121635  Secs: 1795342595 TZ: +0200
# SubSys:     d Options:  Interval: 1 NumCPUs: 2  NumBud: 0 Flags: i
#Date Time [CPU]User% [DSK]ReadTot [DSK:sda]Reads [DSK:sda]WaitR [NET:eth0]RxKB [MEM]Free
20261122 12:16:37 50 100 100 2 7 1000
20261122 12:16:38 50 100 100 2 7 1000
";
    let utc = text.replace("#Date Time", "#UTC").replace("\n20261122 12:16:3", "\n179534259");
    [text.to_owned(), utc].map(String::into_bytes).to_vec()
}

/// Returns archives of the formats: tar, a tar in it, and zip.
pub fn archives() -> Vec<Vec<u8>> {
    let tar = |files: &[(&str, &[u8])]| {
        let mut to = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            to.append_data(&mut header, name, *bytes).expect("memory can be written");
        }
        to.into_inner().expect("memory can be written")
    };
    let (iostat, vmstat) = (iostat().remove(0), vmstat().remove(0));
    let inner = tar(&[("oswiostat/db1.dat", &iostat), ("oswvmstat/db1.dat", &vmstat)]);
    let outer = tar(&[("osw.tar", &inner), ("a.pdf", b"%PDF-1.7\n")]);
    vec![zip(&[("oswiostat/db1.dat", &iostat), ("osw.tar", &inner)]), inner, outer]
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut to = rawzip::ZipArchiveWriter::new(&mut bytes);
    for (name, content) in files {
        let file = to.new_file(name).compression_method(rawzip::CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().expect("memory can be written");
        let encoder = DeflateEncoder::new(&mut entry, Compression::fast());
        let mut writer = config.wrap(encoder);
        writer.write_all(content).expect("memory can be written");
        let (encoder, descriptor) = writer.finish().expect("memory can be written");
        encoder.finish().expect("memory can be written");
        entry.finish(descriptor).expect("memory can be written");
    }
    to.finish().expect("memory can be written");
    bytes
}
