//! Output of sar and sadf, in any locale and of several versions.

#![allow(clippy::float_cmp, reason = "rates with two decimals come out as they are written")]
#![allow(clippy::format_push_string, reason = "a text is easier to read in order")]

use super::*;

const TITLE: &str = "Linux 5.10.0 (db1) \t11/20/2026 \t_x86_64_\t(4 CPU)\n\n";

/// Returns the sections of a day as sar -A prints them, one below the other.
fn sections(times: [&str; 4]) -> String {
    let [t0, t1, t2, t3] = times;
    let mut text =
        format!("{t0}        CPU     %user     %nice   %system   %iowait    %steal     %idle\n");
    for time in [t1, t2, t3] {
        text += &format!(
            "{time}        all      5.00      0.00      2.00      1.00      0.00     92.00\n"
        );
        text += &format!(
            "{time}          0      5.00      0.00      2.00      1.00      0.00     92.00\n"
        );
    }
    text += "Average:        all      5.00      0.00      2.00      1.00      0.00     92.00\n\n";
    text += &format!("{t0}          tps      rtps      wtps   bread/s   bwrtn/s\n");
    for time in [t1, t2, t3] {
        text += &format!("{time}       150.00    100.00     50.00   1600.00    800.00\n");
    }
    text += "Average:     150.00    100.00     50.00   1600.00    800.00\n\n";
    text +=
        &format!("{t0}  DEV  tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz  await  svctm  %util\n");
    for time in [t1, t2, t3] {
        text +=
            &format!("{time}  dev8-0  150.00  1600.00  800.00  16.00  0.10  0.50  0.10  10.00\n");
    }
    text += "Average:  dev8-0  150.00  1600.00  800.00  16.00  0.10  0.50  0.10  10.00\n\n";
    text
}

const PLAIN: [&str; 4] = ["10:00:01", "10:10:01", "10:20:01", "10:30:01"];

#[track_caller]
fn read(name: &str, text: &str) -> (History, Vec<String>) {
    imported_text(name, text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn is_read(history: &History, disk: &str, intervals: usize) {
    let known = super::intervals(history);
    assert_eq!(known.len(), intervals);
    for interval in known {
        assert_eq!(interval.per_s("disks", "", "read_ios"), Ok(100.0));
        assert_eq!(interval.per_s("disks", "", "write_bytes"), Ok(409_600.0));
        assert_eq!(interval.per_s("block", disk, "read_bytes"), Ok(819_200.0));
        near(interval.share("host", "", "cpu_user_ns").unwrap(), 0.2, 1e-9, "user");
    }
}

#[test]
fn sars_text_of_any_locale_is_read() {
    for times in [
        PLAIN,
        ["10:00:01 AM", "10:10:01 AM", "10:20:01 AM", "10:30:01 AM"],
        ["11:50:01 AM", "12:00:01 PM", "12:10:01 PM", "12:20:01 PM"],
        ["10時00分01秒", "10時10分01秒", "10時20分01秒", "10時30分01秒"],
        ["上午 10时00分01秒", "上午 10时10分01秒", "上午 10时20分01秒", "上午 10时30分01秒"],
    ] {
        let text = TITLE.to_owned() + &sections(times);
        let (history, notes) = read("sar.txt", &text);
        is_read(&history, "dev8-0", 3);
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
    let comma = sections(PLAIN).replace('.', ",").replace("Average:", "Durchschn.:");
    is_read(&read("sar.txt", &(TITLE.to_owned() + &comma)).0, "dev8-0", 3);
    let midnight = ["11:40:01 PM", "11:50:01 PM", "12:00:01 AM", "12:10:01 AM"];
    is_read(&read("sar.txt", &(TITLE.to_owned() + &sections(midnight))).0, "dev8-0", 3);
}

#[test]
fn several_days_and_restarts_are_gaps() {
    let next = TITLE.replace("11/20", "11/21");
    let restart = "10:15:00  LINUX RESTART\t(4 CPU)\n\n10:15:01        CPU     %user     %nice  \
                   %system   %iowait    %steal     %idle\n";
    let restarted = sections(PLAIN).replacen(
        "10:20:01        all",
        &format!("\n{restart}10:20:01        all"),
        1,
    );
    let text = TITLE.to_owned() + &restarted + &next + &sections(PLAIN);
    let (history, notes) = read("sar.txt", &text);
    assert!(notes.contains(&"restarts of the host: 1".to_owned()), "{notes:?}");
    let known: Vec<_> = intervals(&history)
        .iter()
        .filter_map(|it| it.per_s("disks", "", "read_ios").ok())
        .collect();
    assert_eq!(known, [100.0; 6]);
    let days = (intervals(&history).last().unwrap().to_ns) / 86_400_000_000_000;
    assert_eq!(days, 1);
}

#[test]
fn sar_without_its_sections_is_no_load_and_other_lines_are_no_sar() {
    let network = format!(
        "{TITLE}10:00:01        IFACE   rxpck/s   txpck/s    rxbyt/s    txbyt/s\n\
        10:10:01         eth0      1.00      2.00   1024.00   2048.00\n\
        10:20:01         eth0      1.00      2.00   1024.00   2048.00\n"
    );
    let (history, _) = read("net.txt", &network);
    let whole = history.whole().unwrap();
    assert_eq!(whole.per_s("network", "eth0", "received_bytes"), Ok(1024.0));
    refused("log.txt", b"10:00:01 one line\n10:00:02 another\n", &["its format is unknown"]);
    let odd = format!("{TITLE}{}", sections(PLAIN)).replacen("150.00    100.00 ", "150.00 ", 1);
    refused("odd.txt", odd.as_bytes(), &["line 13", "4 words for 5 headings"]);
}

#[test]
fn lines_of_sadf_are_read() {
    let mut text = "db1;-1;2026-11-20 10:00:01 UTC;LINUX-RESTART\t(4 CPU)\n".to_owned();
    let times = ["2026-11-20 10:10:01 UTC", "2026-11-20 10:20:01 UTC", "2026-11-20 10:30:01 UTC"];
    for (headings, rows) in [
        (
            "CPU;%user;%nice;%system;%iowait;%steal;%idle",
            &["-1;5.00;0;2;1;0;92", "0;5.00;0;2;1;0;92"][..],
        ),
        ("tps;rtps;wtps;dtps;bread/s;bwrtn/s;bdscd/s", &["150;100;50;0;1600;800;0"]),
        (
            "DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util",
            &["sda;150;800;400;0;8;0.1;0.5;10"],
        ),
        ("TTY;rcvin/s;txmtin/s", &["0;0;0;0;0"]),
    ] {
        text += &format!("# hostname;interval;timestamp;{headings}\n");
        for time in times {
            for row in rows {
                text += &format!("db1;600;{time};{row}\n");
            }
        }
    }
    let (history, notes) = read("sadf.csv", &text);
    let of = |it: &Interval<'_>| it.per_s("block", "sda", "read_bytes").ok();
    assert_eq!(intervals(&history).iter().map(of).collect::<Vec<_>>(), [Some(819_200.0); 3]);
    assert_eq!(history.whole().unwrap().share("host", "", "cpu_user_ns"), Ok(0.2));
    assert_eq!(notes, ["restarts of the host: 1"]);
    let local = text.replace(" UTC", "").replace('.', ",");
    let (history, notes) = read("sadf.csv", &local);
    assert_eq!(history.whole().unwrap().per_s("disks", "", "read_ios"), Ok(100.0));
    assert!(notes[1].contains("local"), "{notes:?}");
    let wide = text.replace("DEV;tps", "DEV;tps;[...]");
    refused("wide.csv", wide.as_bytes(), &["sadf -d without -h"]);
    refused(
        "odd.csv",
        text.replacen("150;100;50", "150;100", 1).as_bytes(),
        &["6 fields for 7 headings"],
    );
}

#[test]
fn the_document_of_sadf_in_xml_is_read() {
    let interval = |time: &str| {
        format!(
            "<timestamp date=\"2026-11-20\" time=\"{time}\" tz=\"UTC\" interval=\"600\">\n\
             <cpu-load>\n<cpu number=\"all\" user=\"5.00\" idle=\"92.00\"/>\n</cpu-load>\n\
             <io per=\"second\">\n<tps>150</tps>\n<io-reads rtps=\"100.00\" bread=\"1600.00\"/>\n\
             <io-writes wtps=\"50.00\" bwrtn=\"800.00\"/>\n</io>\n<disk per=\"second\">\n\
             <disk-device dev=\"sda\" tps=\"150\" rd_sec=\"1600\" wr_sec=\"800\"/>\n</disk>\n\
             </timestamp>\n"
        )
    };
    let all: String = ["10:10:01", "10:20:01", "10:30:01"].map(interval).concat();
    let text = format!(
        "<?xml version=\"1.0\"?>\n<sysstat\nxmlns=\"x\">\n<sysdata-version>3.18</sysdata-version>\n\
         <host nodename=\"db1\">\n<number-of-cpus>4</number-of-cpus>\n<statistics>\n{all}\
         </statistics>\n</host>\n</sysstat>\n"
    );
    let (history, notes) = read("sadf.xml", &text);
    is_read(&history, "sda", 3);
    assert!(notes.is_empty(), "{notes:?}");
    let (history, notes) = read("cut.xml", &text[..text.len() - 120]);
    is_read(&history, "sda", 2);
    assert!(notes[0].contains("truncated"), "{notes:?}");
    refused(
        "odd.xml",
        text.replacen("</io>", "</oi>", 1).as_bytes(),
        &["line 8", "not well-formed"],
    );
}

#[test]
fn the_zone_of_a_document_is_read() {
    let utc = text("sar.json");
    let tz = |zone: &str| utc.replace("\"utc\": 1", &format!("\"tz\": \"{zone}\""));
    let (_, notes) = read("utc.json", &tz("UTC"));
    assert!(notes.is_empty(), "{notes:?}");
    let (_, notes) = read("cet.json", &tz("CET"));
    assert!(notes[0].contains("(CET)"), "{notes:?}");
}

#[test]
fn the_sar_of_another_system_is_refused_by_name() {
    let text = "SunOS unknown 5.10 Generic_141445-09 i86pc    04/19/2011\n\n\
                17:46:39    %usr    %sys    %wio   %idle\n\
                17:46:40       3       2       0      95\n\n\
                17:46:39   device        %busy   avque   r+w/s  blks/s  avwait  avserv\n\
                17:46:40   cmdk0             1     0.0       2      46     0.0     4.4\n";
    refused("sar.txt", text.as_bytes(), &["sar's text of Solaris"]);
}
