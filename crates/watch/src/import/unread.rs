//! Text of other tools that is not read, by its name, with the command that makes what is read.

use blockstone_input::Foreign;

/// A kind of text, and how it is recognised by its first lines.
struct Kind {
    recognises: fn(&str) -> bool,
    foreign: Foreign,
}

const fn kind(recognises: fn(&str) -> bool, what: &'static str, hint: &'static str) -> Kind {
    Kind { recognises, foreign: Foreign { what, hint } }
}

const IOSTAT: &str = "iostat has the disks of the same host: S_TIME_FORMAT=ISO iostat -x -t 1";
const TRACE: &str = "blockstone trace FILE reads it";
const AS_CSV: &str = "docs/import.md says how to give its figures as CSV";
const NMON: &str = "nmon -f -s 10 records the same on AIX, and is read";
const DSTAT: &str = "dstat -Tcdr --full --output FILE 1 writes what is read; keep all its lines";
const CALIBRATE: &str =
    "blockstone calibrate measures storage, and is compared with other measurements";

/// Every kind, more specific ones first.
const ALL: &[Kind] = &[
    kind(
        |text| first(text).contains("(PDH-") && text.contains("\\Group Cpu"),
        "a log of esxtop",
        AS_CSV,
    ),
    kind(
        |text| first(text).contains("(PDH-"),
        "a log of Windows Performance Monitor without the English counters of disks",
        "typeperf \"\\PhysicalDisk(*)\\*\" -si 1 -o FILE writes what is read",
    ),
    kind(
        |text| text.contains("System configuration: lcpu=") && text.contains("kthr"),
        "vmstat's text of AIX",
        NMON,
    ),
    kind(|text| text.contains("System configuration: lcpu="), "a report of AIX", NMON),
    kind(|text| text.contains("% tm_act"), "iostat's text of AIX", NMON),
    kind(
        |text| starts(text.trim_start(), &["SunOS ", "HP-UX "]) && text.contains("%usr"),
        "sar's text of Solaris or HP-UX",
        AS_CSV,
    ),
    kind(
        |text| starts(text.trim_start(), &["Darwin "]) && text.contains("%usr"),
        "sar's text of macOS",
        AS_CSV,
    ),
    kind(
        |text| text.contains("extended device statistics"),
        "iostat's text of Solaris or FreeBSD",
        AS_CSV,
    ),
    kind(|text| has(text, &["KB/t", "tps", "MB/s"]), "iostat's text of macOS or FreeBSD", AS_CSV),
    kind(|text| has(text, &["kthr", "memory", "page"]), "vmstat's text of AIX or Solaris", AS_CSV),
    kind(|text| has(text, &["avm", "fre"]), "vmstat's text of FreeBSD or macOS", AS_CSV),
    kind(
        |text| text.trim_start().starts_with("disk- ---"),
        "vmstat's totals of disks since boot (vmstat -d)",
        IOSTAT,
    ),
    kind(|text| text.contains(" K total memory"), "vmstat's totals since boot (vmstat -s)", IOSTAT),
    kind(|text| text.starts_with("ATOP - ") || text.contains("\nATOP - "), "atop's text", IOSTAT),
    kind(
        |text| starts(text, &["#<--", "waiting for "]) && text.contains("#cpu sys inter"),
        "collectl's screen",
        "collectl -sDcmnt -f DIR records what is read",
    ),
    kind(
        |text| text.contains("-dsk/") && text.contains("read  writ"),
        "dstat's or dool's screen",
        DSTAT,
    ),
    kind(
        |text| {
            let names: Vec<&str> = first(text).split(',').map(|it| it.trim_matches('"')).collect();
            let has = |some: &[&str]| names.windows(some.len()).any(|part| part == some);
            has(&["usr", "sys", "idl", "wai"]) || has(&["read", "writ"])
        },
        "CSV of dstat or dool without its first lines, which say what the columns are",
        DSTAT,
    ),
    kind(|text| text.lines().any(is_of_iotop), "iotop's text", IOSTAT),
    kind(
        |text| has(text, &["alloc", "free", "read", "write"]) && text.contains("bandwidth"),
        "zpool iostat's text",
        IOSTAT,
    ),
    kind(|text| lines(text, "Script started on "), "what script(1) recorded of a terminal", IOSTAT),
    kind(|text| has(text, &["%irq", "%soft", "CPU"]), "mpstat's text, which has no disks", IOSTAT),
    kind(|text| has(text, &["UID", "PID", "Command"]), "pidstat's text", IOSTAT),
    kind(|text| lines(text, "top - "), "top's text, which has no disks", IOSTAT),
    kind(
        |text| has(text, &["PID", "CMD"]) || has(text, &["PID", "COMMAND"]),
        "a list of processes, which has no disks",
        IOSTAT,
    ),
    kind(
        |text| text.contains("Active Internet connections") || text.contains("Kernel Interface"),
        "netstat's text, which has no disks",
        IOSTAT,
    ),
    kind(|text| lines(text, "MemTotal:"), "/proc/meminfo, which has no disks", IOSTAT),
    kind(|text| lines(text, "slabinfo - version"), "/proc/slabinfo, which has no disks", IOSTAT),
    kind(
        |text| text.contains("PARSING IN CURSOR #") || lines(text, "WAIT #"),
        "an SQL trace of Oracle",
        TRACE,
    ),
    kind(|text| lines(text, "# Query_time:"), "a slow query log", TRACE),
    kind(|text| text.contains("\"fio version\""), "a result of fio as JSON", CALIBRATE),
    kind(
        |text| lines(text, "# HELP ") || lines(text, "# TYPE "),
        "metrics for Prometheus",
        "query them over time, and give their figures as CSV (docs/import.md)",
    ),
    kind(
        |text| starts(text, &["{", "["]),
        "JSON, but neither of sadf -j nor of iostat -o JSON",
        "sadf -j FILE -- -A and iostat -o JSON -x -t 1 write what is read",
    ),
    kind(
        |text| starts(text, &["<html", "<!doctype html", "<head"]),
        "HTML, but not a report of AWR",
        "awrrpt.sql writes one of an instance, awrgrpt.sql one of a cluster",
    ),
    kind(|text| starts(text, &["<?xml"]), "XML", AS_CSV),
    kind(
        |text| text.contains("rpc bklog"),
        "nfsiostat's text",
        "blockstone watch shows NFS mounts of this host",
    ),
    kind(|text| text.contains(" clat (") && text.contains("IO depths"), "fio's text", CALIBRATE),
    kind(|text| text.starts_with("#!"), "a script", "name the file that it writes"),
    kind(|text| lines(text, "zzz "), "a file of OSWatcher or ExaWatcher without disks", IOSTAT),
];

/// Names the kind of a text that is not read, if it is known.
pub fn kind_of(head: &str) -> Option<Foreign> {
    ALL.iter().find(|kind| (kind.recognises)(head)).map(|kind| kind.foreign)
}

/// The first line that is not blank.
fn first(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}

/// Whether a line has all of these words.
fn has(text: &str, words: &[&str]) -> bool {
    let in_line = |line: &str, word: &&str| line.split_ascii_whitespace().any(|it| it == *word);
    text.lines().any(|line| words.iter().all(|word| in_line(line, word)))
}

/// Whether a line begins so.
fn lines(text: &str, start: &str) -> bool {
    text.lines().any(|line| line.starts_with(start))
}

/// iotop -t puts the time before its totals.
fn is_of_iotop(line: &str) -> bool {
    let before = line.split_once("Total DISK READ").map(|(before, _)| before);
    before.is_some_and(|it| it.bytes().all(|byte| b"0123456789: ".contains(&byte)))
}

/// Whether the text begins with one of these, in any case.
fn starts(text: &str, marks: &[&str]) -> bool {
    let text = text.trim_start();
    let begins =
        |mark: &&str| text.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark));
    marks.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "JSON, but neither of sadf -j nor of iostat -o JSON";

    #[test]
    fn text_that_is_not_read_is_called_by_its_name() {
        for (text, expected) in [
            (
                "System configuration: lcpu=8 drives=3\n\nDisks:  % tm_act  Kbps  tps  Kb_read\n",
                "a report of AIX",
            ),
            (
                "                    extended device statistics\n    r/s    w/s   kr/s   kw/s\n",
                "iostat's text of Solaris or FreeBSD",
            ),
            (
                "              disk0       cpu    load average\n    KB/t  tps  MB/s  us sy id\n",
                "iostat's text of macOS or FreeBSD",
            ),
            (
                "zzz ***Fri Nov 20 10:00:00 UTC 2026\ntop - 10:00:01 up 9 days\n",
                "top's text, which has no disks",
            ),
            (
                "zzz ***Fri Nov 20 10:00:00 UTC 2026\nxyz\n",
                "a file of OSWatcher or ExaWatcher \
                                                            without disks",
            ),
            (
                "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\H\\x\"\n",
                "a log of Windows Performance Monitor without the English counters of disks",
            ),
            ("\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\esx\\Group Cpu(1:a)\\% Used\"\n", "a log of esxtop"),
            (
                "You did not select any stats, using -cdngy by default.\n\
                 --total-cpu-usage-- -dsk/total- -net/total-\nusr sys| read  writ| recv  send\n",
                "dstat's or dool's screen",
            ),
            (
                "\u{1b}[7l-dsk/sda----dsk/sdb-- ---load-avg---\n read  writ: read  writ| 1m   5m\n",
                "dstat's or dool's screen",
            ),
            (
                "\"usr\",\"sys\",\"idl\",\"wai\",\"hiq\",\"siq\",\"read\",\"writ\"\n26.5,4.3\n",
                "CSV of dstat or dool without its first lines, which say what the columns are",
            ),
            (
                "time,usr,sys,idl,wai,stl,read,writ\r\n2026/8/7 9:08,28.0,0.2,71.6,0,0,0,73728\r\n",
                "CSV of dstat or dool without its first lines, which say what the columns are",
            ),
            ("Total DISK READ :  0.00 B/s | Total DISK WRITE :  0.00 B/s\n", "iotop's text"),
            (
                "              capacity     operations     bandwidth\n\
                 pool        alloc   free   read  write   read  write\n",
                "zpool iostat's text",
            ),
            ("   ops/s       rpc bklog\n  1420.00           0.00\n", "nfsiostat's text"),
            (
                "Script started on Wed Jan 13 14:36:09 2026\n",
                "what script(1) recorded of a terminal",
            ),
            ("r: (groupid=0)\n    clat (usec): min=60\n  IO depths    : 1=100.0%\n", "fio's text"),
            ("{\"a\": 1}", JSON),
            ("<!DOCTYPE HTML>\n<html>", "HTML, but not a report of AWR"),
            ("", ""),
            ("a,b\n1,2\n", ""),
            // A word of another tool in a text that is not its.
            ("time,bytes_read,written\n1,2,3\n", ""),
            ("thread,writ\n1,2\n", ""),
            ("note: Total DISK READ is what iotop calls it\n", ""),
            ("{\"log\": \" clat (usec) IO depths rpc bklog\"}", JSON),
        ] {
            assert_eq!(kind_of(text).map_or("", |it| it.what), expected, "{text}");
        }
    }
}
