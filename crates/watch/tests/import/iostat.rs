//! iostat's text as people have it: any version and locale, with lines of collectors.

#![allow(clippy::float_cmp, reason = "rates with two decimals come out as they are written")]

use blockstone_watch::NO_TIMES;

use super::*;

const TITLE: &str = "Linux 5.10.0 (db1) \t11/20/2026 \t_x86_64_\t(4 CPU)\n\n";
const CPU: &str = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           \
                   5.00    0.00    2.00    1.00    0.00   92.00\n\n";
const LONG: &str = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     \
                    wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\n";

/// Returns a row of a disk with 100 reads and 50 writes of 8 KiB a second.
fn row(name: &str) -> String {
    format!(
        "{name:<13} 100.00    800.00     0.00   0.00    0.50     8.00   50.00    400.00     0.00   \
         0.00    0.60     8.00    0.10  10.00\n"
    )
}

fn report(time: &str, devices: &[&str]) -> String {
    let rows: String = devices.iter().map(|name| row(name)).collect();
    format!("{time}\n{CPU}{LONG}{rows}\n\n")
}

fn reports(times: &[&str]) -> String {
    times.iter().map(|time| report(time, &["sda", "sda1"])).collect()
}

/// Returns the rates of a disk over the whole file.
#[track_caller]
fn rates(history: &History, disk: &str) -> [f64; 2] {
    let whole = history.whole().unwrap();
    ["read_ios", "write_ios"].map(|column| whole.per_s("block", disk, column).unwrap())
}

#[track_caller]
fn read(text: &str) -> (History, Vec<String>) {
    imported_text("iostat.txt", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns when the recording of a text began, in RFC 3339.
#[track_caller]
fn began(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("iostat.txt");
    fs::write(&path, text).unwrap();
    imported(&path).0.manifest.started_at
}

#[test]
fn times_of_any_locale_are_read() {
    for [first, second, third] in [
        ["11/20/2026 10:00:00 AM", "11/20/2026 10:00:01 AM", "11/20/2026 10:00:02 AM"],
        ["20.11.2026 10:00:00", "20.11.2026 10:00:01", "20.11.2026 10:00:02"],
        ["20/11/26 10:00:00", "20/11/26 10:00:01", "20/11/26 10:00:02"],
        [
            "2026年11月20日 10時00分00秒",
            "2026年11月20日 10時00分01秒",
            "2026年11月20日 10時00分02秒",
        ],
        ["2026-11-20T12:00:00+0200", "2026-11-20T12:00:01+0200", "2026-11-20T12:00:02+0200"],
        ["Time: 10:00:00", "Time: 10:00:01", "Time: 10:00:02"],
        ["Time: 10:00:00 AM", "Time: 10:00:01 AM", "Time: 10:00:02 AM"],
        ["1795168800", "1795168801", "1795168802"],
    ] {
        let text = format!("{TITLE}{}", reports(&[first, second, third]));
        let (history, _) = read(&text);
        assert_eq!(rates(&history, "sda"), [100.0, 50.0], "{first}");
        assert_eq!(began(&text), "2026-11-20T10:00:00Z", "{first}");
    }
}

#[test]
fn a_time_that_is_not_known_is_not_skipped() {
    let text =
        reports(&["20 Quux 2026 10:00:00", "20 Quux 2026 10:00:01", "20 Quux 2026 10:00:02"]);
    refused(
        "odd.txt",
        format!("{TITLE}{text}").as_bytes(),
        &["line 3: `20 Quux 2026 10:00:00` is not"],
    );
}

#[test]
fn a_date_that_could_be_two_days_is_decided_by_the_others_of_its_file() {
    let title = TITLE.replace("11/20/2026", "03/04/26");
    let text = |times: &[&str]| format!("{title}{}", reports(times));
    let first = "03/04/26 23:59:58";
    assert_eq!(
        began(&text(&[first, "03/04/26 23:59:59", "04/04/26 00:00:00"]))[..10],
        *"2026-04-03"
    );
    assert_eq!(
        began(&text(&[first, "03/04/26 23:59:59", "03/05/26 00:00:00"]))[..10],
        *"2026-03-04"
    );
    assert_eq!(
        began(&text(&[first, "13/04/26 10:00:00", "13/04/26 10:00:01"]))[..10],
        *"2026-04-03"
    );
    let undecided = text(&[first, "03/04/26 23:59:59"]);
    let (_, notes) = read(&undecided);
    assert!(notes.iter().any(|note| note.contains("two ways")), "{notes:?}");
}

#[test]
fn what_stands_between_reports_is_skipped() {
    let times = ["Time: 10:00:00", "Time: 10:00:01", "Time: 10:00:02"];
    let watcher = format!(
        "Linux OSWbb v7.3.3\nzzz ***Fri Nov 20 10:00:00 UTC 2026 Sample interval: 1 seconds\n\
         {TITLE}{}",
        reports(&times)
    );
    let exadata = format!(
        "####\n# Starting Time:\t11/20/2026 10:00:00\n# Collection Module:    Iostat\n####\n\
         zzz <11/20/2026 10:00:00> Count:60\n{TITLE}{}",
        reports(&["Time: 10:00:00 AM", "Time: 10:00:01 AM", "Time: 10:00:02 AM"])
    );
    for text in [&watcher, &exadata] {
        let (history, notes) = read(text);
        assert_eq!(rates(&history, "sda"), [100.0, 50.0]);
        assert_eq!(began(text), "2026-11-20T10:00:00Z");
        assert!(!notes.iter().any(|note| note.contains("no date")), "{notes:?}");
    }
    let noisy = reports(&times).replace("\n\nDevice", "\n\nsd 0:0:0:0: resetting\nDevice");
    let (history, notes) = read(&format!("{TITLE}{noisy}"));
    assert_eq!(rates(&history, "sda"), [100.0, 50.0]);
    assert!(
        notes.iter().any(|note| note.contains("not iostat's, skipped: 3, first 7")),
        "{notes:?}"
    );
}

#[test]
fn a_file_that_begins_in_the_middle_has_no_host() {
    let text = reports(&[
        "2026-11-20T10:00:00+0000",
        "2026-11-20T10:00:01+0000",
        "2026-11-20T10:00:02+0000",
    ]);
    let (history, notes) = read(&text);
    assert_eq!(rates(&history, "sda"), [100.0, 50.0]);
    assert!(notes[0].contains("no title line"), "{notes:?}");
    let whole = history.whole().unwrap();
    assert_eq!(whole.moved("host", "", "cpu_user_ns"), Err(Missing::NotInVersion));
    let (_, notes) = read(&reports(&["Time: 10:00:00", "Time: 10:00:01"]));
    assert!(notes.iter().any(|note| note.contains("have no date")), "{notes:?}");
}

#[test]
fn a_file_that_ends_without_a_line_break_is_whole_if_its_last_number_is() {
    let whole = format!("{TITLE}{}", reports(&["", "", ""]));
    let whole = whole.trim_end();
    let (history, notes) = read(whole);
    assert!(!notes.iter().any(|note| note.contains("truncated")), "{notes:?}");
    assert_eq!(intervals(&history).len(), 2);
    for cut in [&whole[..whole.len() - 1], &whole[..whole.len() - 9]] {
        let (history, notes) = read(cut);
        assert!(notes.iter().any(|note| note.contains("truncated")), "{cut}: {notes:?}");
        assert_eq!(intervals(&history).len(), 1);
    }
}

#[test]
fn rates_below_one_hold_in_reports_without_times() {
    let report = format!("{CPU}Device r/s w/s\nsda 0.40 0.47\n\n");
    let (history, _) = read(&format!("{TITLE}{}", report.repeat(4)));
    for interval in intervals(&history) {
        let of = |column| interval.per_s("block", "sda", column).unwrap();
        let [reads, writes] = ["read_ios", "write_ios"].map(of);
        assert!((reads - 0.4).abs() < 0.001 && (writes - 0.47).abs() < 0.001, "{reads} {writes}");
    }
}

#[test]
fn reports_without_times_have_those_of_their_collector() {
    let run = |time: &str| {
        let report = |reads: &str| format!("{CPU}Device r/s w/s\nsda {reads} 50.00\n\n");
        let reports = report("7.00") + &report("100.00") + &report("100.00");
        format!("zzz ***Fri Nov 20 {time} UTC 2026 Sample interval: 5 seconds\n{reports}")
    };
    let text = run("10:00:00") + &run("10:00:30") + &run("10:01:00");
    let (history, notes) = read(&text);
    let known: Vec<_> = intervals(&history)
        .iter()
        .map(|it| (it.seconds(), it.per_s("block", "sda", "read_ios").ok()))
        .collect();
    assert_eq!(known[..2], [(5.0, Some(100.0)), (5.0, Some(100.0))]);
    assert_eq!(known.iter().filter(|(_, rate)| *rate == Some(100.0)).count(), 6);
    assert!(known.iter().all(|(_, rate)| rate.is_none_or(|rate| rate == 100.0)), "{known:?}");
    assert!(notes.iter().any(|note| note.contains("have no times")), "{notes:?}");
    let (history, notes) = read(&format!("{TITLE}{}", reports(&["", "", ""])));
    assert_eq!(rates(&history, "sda"), [100.0, 50.0]);
    assert!(notes.contains(&NO_TIMES.to_owned()), "{notes:?}");
    let json = super::text("iostat.json");
    let untimed: String = json.lines().filter(|it| !it.contains("timestamp")).collect();
    let (history, notes) = imported_text("untimed.json", untimed.as_bytes()).unwrap();
    assert_eq!((history.ticks().count(), notes), (4, vec![NO_TIMES.to_owned()]));
    let alone =
        |time: &str| format!("zzz ***Fri Nov 20 {time} UTC 2026\n{CPU}{LONG}{}\n", row("sda"));
    let alone = "# Sample Interval(s): 30\n".to_owned() + &alone("10:00:00") + &alone("10:00:30");
    refused("alone.txt", alone.as_bytes(), &["the time since boot"]);
}

#[test]
fn the_columns_of_every_version_are_known() {
    let table = |headings: &str, row: &str, time: &str| format!("{time}\n{headings}\n{row}\n\n");
    let text = |headings: &str, row: &str| {
        let times = ["11/20/26 10:00:00", "11/20/26 10:00:10", "11/20/26 10:00:20"];
        TITLE.to_owned() + &times.map(|time| table(headings, row, time)).concat()
    };
    for (headings, row) in [
        // Version 5 to 7 with kernels 2.4 and 2.6.
        (
            "Device:    rrqm/s wrqm/s   r/s   w/s  rsec/s  wsec/s    rkB/s    wkB/s avgrq-sz \
             avgqu-sz   await  svctm  %util",
            "/dev/cciss/c0d0 0.00 0.00 100.00 50.00 1600.00 800.00 800.00 400.00 16 0.1 0.5 0.1 10",
        ),
        // Version 9 and 10.
        (
            "Device:         rrqm/s   wrqm/s     r/s     w/s    rMB/s    wMB/s avgrq-sz avgqu-sz   \
             await r_await w_await  svctm  %util",
            "cciss/c0d0 0.00 0.00 100.00 50.00 0.78125 0.390625 16 0.1 0.5 0.5 0.6 0.1 10",
        ),
        // Version 10 with -h: a long name has a line of its own.
        (
            "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   \
             await r_await w_await  svctm  %util",
            "cciss/c0d0\n     0.00 0.00 100.00 50.00 1600.00 800.00 16 0.1 0.5 0.5 0.6 0.1 10",
        ),
        // Version 11.6: no colon.
        (
            "Device            r/s     w/s     rkB/s     wkB/s   rrqm/s   wrqm/s  %rrqm  %wrqm \
             r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %util",
            "cciss/c0d0 100,00 50,00 800,00 400,00 0 0 0 0 0,5 0,6 0,1 8 8 0,1 10",
        ),
        // Version 12 with --human and -h: names last, a table for each kind of request.
        (
            "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n 100.00 800.0k 0.00 \
             0.0%    0.50     8.0k cciss/c0d0\n\n  w/s  wkB/s  wrqm/s  %wrqm w_await wareq-sz \
             Device",
            "   50.00    400.0k     0.00   0.0%    0.60     8.0k cciss/c0d0",
        ),
    ] {
        let (history, _) = read(&text(headings, row));
        let whole = history.whole().unwrap();
        let of = |column| whole.per_s("block", "cciss/c0d0", column).unwrap();
        let found = ["read_ios", "write_ios", "read_bytes", "write_bytes"].map(of);
        assert_eq!(found, [100.0, 50.0, 819_200.0, 409_600.0], "{headings}");
        assert_eq!(whole.seconds(), 20.0);
    }
    // Without -x there are transfers and bytes, in blocks or kB.
    for (headings, row) in [
        (
            "Device:            tps   Blk_read/s   Blk_wrtn/s   Blk_read   Blk_wrtn",
            "sda 150 1600 800 8 8",
        ),
        (
            "Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn",
            "sda 150 800 400 8 8",
        ),
    ] {
        let (history, _) = read(&text(headings, row));
        let whole = history.whole().unwrap();
        assert_eq!(whole.per_s("block", "sda", "read_bytes"), Ok(819_200.0), "{headings}");
        assert_eq!(whole.moved("block", "sda", "read_ios"), Err(Missing::NotInVersion));
    }
    // Processors alone.
    let cpu = ["11/20/26 10:00:00", "11/20/26 10:00:01", "11/20/26 10:00:02"];
    let text = TITLE.to_owned() + &cpu.map(|time| format!("{time}\n{CPU}")).concat();
    let (history, notes) = read(&text);
    assert_eq!(history.whole().unwrap().share("host", "", "cpu_user_ns"), Ok(0.2));
    assert!(!notes.iter().any(|note| note.contains("truncated")), "{notes:?}");
}

#[test]
fn a_device_that_is_omitted_is_idle_only_if_idle_ones_are() {
    let times = ["Time: 10:00:00", "Time: 10:00:01", "Time: 10:00:02", "Time: 10:00:03"];
    let devices: [&[&str]; 4] = [&["sda", "sdb"], &["sda", "sdb"], &["sda"], &["sda", "sdb"]];
    let text: String = times.iter().zip(devices).map(|(time, of)| report(time, of)).collect();
    let reads = |text: &str| {
        let (history, notes) = read(&format!("{TITLE}{text}"));
        let of = |it: &Interval<'_>| it.per_s("block", "sdb", "read_ios").ok();
        (intervals(&history).iter().map(of).collect::<Vec<_>>(), notes)
    };
    let (known, notes) = reads(&text);
    assert_eq!(known, [Some(100.0), Some(0.0), Some(100.0)]);
    assert!(notes.iter().any(|note| note.contains("iostat -z")), "{notes:?}");
    let idle =
        row("sdc").replace("100.00", "0.00").replace("800.00", "0.00").replace("0.50", "0.00");
    let idle = idle.replace("50.00", "0.00").replace("400.00", "0.00").replace("0.60", "0.00");
    let idle = idle.replace("8.00", "0.00").replace("0.10", "0.00").replace("10.00", "0.00");
    let (known, _) = reads(&text.replacen(&row("sda"), &(row("sda") + &idle), 1));
    assert_eq!(known, [Some(100.0), None, Some(100.0)]);
}

#[test]
fn a_value_that_cannot_be_is_unknown_in_its_interval_alone() {
    let times = ["Time: 10:00:00", "Time: 10:00:01", "Time: 10:00:02", "Time: 10:00:03"];
    let text = format!("{TITLE}{}", reports(&times));
    let place = text.match_indices("100.00    800.00").nth(4).unwrap().0;
    for odd in ["18446744073709551616.00", "-100.00", "nan", "****"] {
        let mut text = text.clone();
        text.replace_range(place..place + 6, odd);
        let (history, _) = read(&text);
        let of = |it: &Interval<'_>| {
            let per_s = |column| it.per_s("block", "sda", column).ok();
            (per_s("read_ios"), per_s("write_ios"))
        };
        let known: Vec<_> = intervals(&history).iter().map(of).collect();
        let whole = (Some(100.0), Some(50.0));
        assert_eq!(known, [whole, (None, Some(50.0)), whole], "{odd}");
    }
}

#[test]
fn totals_of_groups_are_not_devices() {
    let times = ["Time: 10:00:00", "Time: 10:00:01"];
    let group = row("sda") + &row("sdb") + " " + &row("disks");
    let text = reports(&times).replace(&(row("sda") + &row("sda1")), &group);
    let (history, _) = read(&format!("{TITLE}{text}"));
    let whole = history.whole().unwrap();
    assert_eq!(whole.disks(), ["sda", "sdb"]);
    assert!(whole.objects("block").contains(&"group disks"));
}

#[test]
fn reports_that_all_cover_the_time_since_boot_are_refused_for_that_reason() {
    let table = format!("{CPU}{LONG}{}\n", row("sda"));
    let one = format!("{TITLE}{table}");
    let reason = ["one report", "covers the time since boot", "iostat -x -t 1"];
    refused("one.txt", one.as_bytes(), &reason);
    let run = format!("{one}{}\n", "*".repeat(64));
    refused("cron.txt", run.repeat(5).as_bytes(), &reason);
    let date = "Fri Nov 20 12:38:33 EST 2026\n";
    refused("dated.txt", format!("{date}{run}").repeat(5).as_bytes(), &reason);
    refused("date-first.txt", format!("{date}{one}").as_bytes(), &reason);
    let cut = format!("{one}{}", &one[..one.len() - 4]);
    refused("cut.txt", cut.as_bytes(), &["before its first interval"]);
    let (history, _) = read(&format!("{one}{table}"));
    let moved = |of| intervals(&history)[0].moved("block", "sda", of).unwrap();
    near(moved("read_ios") / moved("write_ios"), 2.0, 1e-9, "reads for each write");
}

#[test]
fn a_time_before_each_line_is_named_with_the_command_that_removes_it() {
    let text = format!("{TITLE}{CPU}{LONG}{}\n{CPU}{LONG}{}\n", row("sda"), row("sda"));
    for time in ["2026-11-20 12:38:33 ", "Nov 20 12:38:33 ", "[2026-11-20T12:38:33] "] {
        let stamped: String = text.lines().flat_map(|line| [time, line, "\n"]).collect();
        let hint = format!("cut -c{}- FILE", time.len() + 1);
        refused("ts.txt", stamped.as_bytes(), &["each line begins with a time", &hint]);
    }
    read(&text);
}
