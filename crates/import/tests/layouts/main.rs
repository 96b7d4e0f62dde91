//! Every layout in every version that is read, from reports that the tests make.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how tests fail")]
#![allow(clippy::too_many_lines, reason = "a report has many sections, one after the other")]
#![allow(clippy::format_push_string, reason = "texts are put together of formatted parts")]

mod made;

use std::fmt::Write as _;

use blockstone_import::{ImportError, Interval, Kind, Names, Report, read, series};
use made::{CSV, Locale, TRUTH};

const HIDDEN: Names<'_> = Names::Hidden { salt: b"salt" };

/// Every version, and the columns of the truth that it does not have.
fn versions(locale: Locale) -> Vec<(String, String, &'static [&'static str])> {
    const NO_FUNCTIONS: &[&str] = &[
        "function_read_ios",
        "function_read_bytes",
        "function_write_ios",
        "function_write_bytes",
        "shared_memory_bytes",
        "private_memory_bytes",
    ];
    const STATSPACK_11: &[&str] = &["function_write_ios", "function_write_bytes"];
    const GLOBAL: &[&str] = &[
        "shared_memory_bytes",
        "data_ios",
        "index_ios",
        "undo_ios",
        "temporary_ios",
        "system_ios",
    ];
    const OLD: &[&str] = &[
        "read_bytes",
        "write_bytes",
        "data_write_ios",
        "db_time_ns",
        "cpu_ns",
        "background_cpu_ns",
        "waits_ns",
        "host_busy_ns",
        "host_idle_ns",
        "function_read_ios",
        "function_read_bytes",
        "function_write_ios",
        "function_write_bytes",
        "processors",
        "cores",
        "sockets",
        "host_memory_bytes",
        "shared_memory_bytes",
        "private_memory_bytes",
        "write_ios",
    ];
    let mut all = Vec::new();
    for release in
        ["10.2.0.5.0", "11.2.0.4.0", "12.1.0.2.0", "12.2.0.1.0", "19.0.0.0.0", "21.0.0.0.0"]
    {
        // What 10.2 has as HTML of memory and waits is read from 11 on.
        const HTML_10: &[&str] = &[
            "function_read_ios",
            "function_read_bytes",
            "function_write_ios",
            "function_write_bytes",
            "waits_ns",
        ];
        let is_old = release.starts_with("10");
        let html: &[&str] = if is_old { HTML_10 } else { &[] };
        all.push((format!("AWR HTML {release}"), made::awr_html(release, locale), html));
        let text: &[&str] = if is_old { NO_FUNCTIONS } else { &[] };
        all.push((format!("AWR text {release}"), made::awr_text(release, locale), text));
    }
    for release in ["11.2.0.4.0", "12.1.0.2.0", "19.0.0.0.0"] {
        for (form, text) in [
            ("HTML", made::global_html(release, locale)),
            ("text", made::global_text(release, locale)),
        ] {
            all.push((format!("AWR of a cluster, {form} {release}"), text, GLOBAL));
        }
    }
    for release in ["8.1.7.4.0", "9.2.0.8.0", "10.2.0.5.0", "11.2.0.4.0", "19.0.0.0.0"] {
        let lacks = match release.split('.').next().unwrap() {
            "8" | "9" => OLD,
            "10" => NO_FUNCTIONS,
            _ => STATSPACK_11,
        };
        all.push((format!("Statspack {release}"), made::statspack(release, locale), lacks));
    }
    all
}

fn read_one(text: &str) -> Report {
    read("hint", text, HIDDEN).unwrap()
}

fn only(report: &Report) -> &Interval {
    assert_eq!(report.intervals.len(), 1);
    &report.intervals[0]
}

#[test]
fn every_version_says_the_same_in_either_number_format() {
    for locale in [Locale::Point, Locale::Comma] {
        for (name, text, lacks) in versions(locale) {
            let report = read_one(&text);
            let interval = only(&report);
            assert_eq!(report.database.name, "SALES", "{name}");
            assert_eq!(report.database.id, Some(4711), "{name}");
            assert_eq!(
                (interval.begin_s, interval.end_s),
                (1_715_680_800, 1_715_684_400),
                "{name}"
            );
            assert_eq!(interval.snapshots, Some((100, 101)), "{name}");
            for (column, expected) in TRUTH {
                let found = interval.totals.get(column);
                if lacks.contains(column) {
                    // Where total requests are not counted, tablespaces stand for them.
                    let is_instead = *column == "write_ios" && found == Some(180_018.0);
                    assert!(found.is_none() || is_instead, "{name}: {column} {found:?}");
                    continue;
                }
                let found = found.unwrap_or_else(|| panic!("{name} lacks {column}"));
                let near = (found - expected).abs() <= expected * 1e-6;
                assert!(near, "{name}: {column} is {found}, not {expected}");
            }
            // Statements of a cluster are not read from text.
            if report.kind == Kind::AwrGlobalText {
                continue;
            }
            let statement = &interval.statements[0];
            assert_eq!(statement.elapsed_s, Some(900.5), "{name}");
            assert_eq!(statement.executions, Some(1_000.0), "{name}");
        }
    }
}

#[test]
fn names_stay_out_unless_they_are_kept() {
    for (name, text, _) in versions(Locale::Point) {
        assert!(text.contains("secret"), "{name}");
        let hidden = format!("{:?}", read_one(&text));
        assert!(!hidden.contains("secret"), "{name}: {hidden}");
        let kept = read("hint", &text, Names::Kept).unwrap();
        assert!(only(&kept).instance.host.starts_with("secret-"), "{name}");
        let other = read("hint", &text, Names::Hidden { salt: b"other" }).unwrap();
        assert_ne!(only(&other).instance.host, only(&read_one(&text)).instance.host, "{name}");
    }
}

/// The table of docs/import.md.
fn table() -> String {
    let all: Vec<_> = versions(Locale::Point)
        .into_iter()
        .map(|(name, text, _)| (name, read_one(&text)))
        .collect();
    let names: Vec<&str> = all[1].1.sections.iter().map(|section| section.name).collect();
    let mut table =
        format!("| report | {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len() + 1));
    for (name, report) in &all {
        let found = |name: &&str| report.sections.iter().any(|it| it.name == *name && it.found);
        let cells: Vec<&str> =
            names.iter().map(|name| if found(name) { "yes" } else { "–" }).collect();
        writeln!(table, "| {name} | {} |", cells.join(" | ")).unwrap();
    }
    table
}

#[test]
fn the_documentation_shows_which_sections_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/import.md");
    let known = std::fs::read_to_string(path).unwrap();
    let begin = known.find("| report |").expect("the table");
    let end = begin + known[begin..].find("\n\n").expect("its end") + 1;
    let expected = known[..begin].to_owned() + &table() + &known[end..];
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, &expected).unwrap();
    } else {
        assert_eq!(known, expected, "UPDATE_EXPECTED=1 writes it");
    }
}

#[test]
fn a_truncated_file_says_nothing_that_the_whole_does_not() {
    let mut all: Vec<(String, String)> =
        versions(Locale::Point).into_iter().map(|(name, text, _)| (name, text)).collect();
    all.push(("AWR-Miner".to_owned(), made::miner()));
    all.push(("CSV".to_owned(), CSV.to_owned()));
    for (name, text) in all {
        let whole = read_one(&text);
        for percent in 0..100 {
            let end = text.floor_char_boundary(text.len() * percent / 100);
            let Ok(part) = read("hint", &text[..end], HIDDEN) else { continue };
            for interval in &part.intervals {
                let same = whole.intervals.iter().find(|it| {
                    (it.instance.number, it.begin_s, it.end_s)
                        == (interval.instance.number, interval.begin_s, interval.end_s)
                });
                let same = same.unwrap_or_else(|| panic!("{name} {percent} %: another interval"));
                for (column, value) in interval.totals.iter() {
                    assert_eq!(
                        Some(value),
                        same.totals.get(column),
                        "{name} {percent} %: {column}"
                    );
                }
                for (statistic, value) in &interval.statistics {
                    assert_eq!(same.statistics.get(statistic), Some(value), "{name} {percent} %");
                }
                let known = |statement| same.statements.iter().any(|it| it == statement);
                assert!(
                    part.kind == Kind::AwrHtml || interval.statements.iter().all(known),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_truncated_report_names_what_is_missing() {
    let text = made::awr_html("19.0.0.0.0", Locale::Point);
    let end = text.find("Instance activity").unwrap();
    let report = read_one(&text[..end]);
    let note = &report.notes[0];
    assert!(note.contains("its end is missing") && note.contains("instance activity"), "{note}");
    assert_eq!(only(&report).totals.get("elapsed_ns"), None, "no length without its counters");
    assert_eq!(only(&report).totals.get("cpu_ns"), Some(600e9));
}

#[test]
fn a_cluster_in_text_whose_totals_are_not_there_is_refused() {
    let text = made::global_text("19.0.0.0.0", Locale::Point);
    let other = text.replace("             Total", "             Sum  ");
    let error = read("hint", &other, HIDDEN).unwrap_err().to_string();
    assert!(error.contains("statistics of the cluster"), "{error}");
}

#[test]
fn reports_without_a_load_are_refused_by_what_they_are() {
    for (text, kind) in [
        (
            "<html><head><title>AWR Compare Period Report for (1) DB: A",
            "a comparison of two periods",
        ),
        ("WORKLOAD REPOSITORY COMPARE PERIOD REPORT\n", "a comparison of two periods"),
        ("<html><title>ASH Report</title><h1>ASH Report For SALES/sales1", "a report of sampled"),
        ("          ADDM Report for Task 'TASK_1'\n", "a list of findings"),
        ("SQL Monitoring Report\n\nSQL Text\n", "the monitoring of one statement"),
    ] {
        let error = read("hint", text, HIDDEN).unwrap_err();
        assert!(error.to_string().starts_with(kind), "{error}");
        assert!(error.to_string().contains("\nhint: give "), "{error}");
        assert!(blockstone_import::recognises(text));
    }
    assert_eq!(read("hint", "hello\n", HIDDEN).unwrap_err(), ImportError::Unknown);
    let both =
        made::awr_text("11.2.0.4.0", Locale::Point) + &made::awr_text("11.2.0.4.0", Locale::Comma);
    let error = read("hint", &both, HIDDEN).unwrap_err().to_string();
    assert!(error.contains("decimal"), "{error}");
}

#[test]
fn averages_and_maxima_of_awr_miner_are_read_by_snapshot_and_instance() {
    let report = read("awr-hist-4711-SALES-100-101", &made::miner(), HIDDEN).unwrap();
    assert_eq!(report.database.id, Some(4711));
    assert_eq!(report.intervals.len(), 3);
    let [first, second, other] = &report.intervals[..] else { unreachable!() };
    assert_eq!(first.totals.get("read_ios"), Some(720_000.0));
    assert_eq!(first.totals.get("most_read_ios"), Some(450.0 * 60.0));
    assert_eq!(first.totals.get("host_busy_ns"), Some(7_200e9));
    assert_eq!(first.totals.get("size_bytes"), Some(500.0 * 1_073_741_824.0));
    assert_eq!(second.snapshots, Some((101, 102)));
    assert_eq!(other.instance.number, Some(2));
    assert_eq!(other.totals.get("most_read_ios"), None, "an empty cell is unknown");
}

#[test]
fn a_csv_has_totals_rates_and_levels_by_their_names() {
    let report = read_one(CSV);
    let [first, second] = &report.intervals[..] else { panic!("two intervals") };
    assert_eq!(first.totals.get("read_ios"), Some(720_000.0));
    assert_eq!(first.totals.get("write_ios"), Some(360_000.0));
    assert_eq!(first.totals.get("cpu_ns"), Some(600e9));
    assert_eq!(first.totals.get("cores"), Some(4.0));
    assert_eq!(second.totals.get("read_ios"), None);
    for (text, part) in [
        ("time,reads_per_s,speed\n", "line 1: no column is called \"speed\""),
        ("time,reads_per_s\n2024-05-14,7\n2024-05-15,x\n", "line 3: reads_per_s \"x\""),
        ("time,reads_per_s\n14.05.2024,7\n", "line 2: \"14.05.2024\" is no time"),
        ("time,reads_per_s\n2024-05-14,7,8\n", "line 2: 3 fields for 2 columns"),
        ("time,reads_per_s\n2024-05-15,7\n2024-05-14,8\n", "line 3: it ends before it begins"),
    ] {
        let error = read("hint", text, HIDDEN).unwrap_err().to_string();
        assert!(error.starts_with(part), "{error}");
    }
}

/// An hour of an instance in a report of this kind.
fn hour(kind: Kind, instance: Option<u32>, from_h: i64, hours: i64, reads: f64) -> Report {
    let mut report = read_one(&made::awr_html("19.0.0.0.0", Locale::Point));
    report.kind = kind;
    let interval = &mut report.intervals[0];
    interval.instance.number = instance;
    interval.snapshots = None;
    interval.begin_s = from_h * 3_600;
    interval.end_s = (from_h + hours) * 3_600;
    interval.totals.set("read_ios", reads);
    report
}

/// What is taken: from which hour on and the reads, by instance and time.
fn taken(reports: &[Report]) -> Vec<(Option<u32>, i64, f64)> {
    let all = series(reports);
    assert_eq!(all.len(), 1);
    let row = |it: &Interval| {
        (it.instance.number, it.begin_s / 3_600, it.totals.get("read_ios").unwrap())
    };
    all[0].intervals.iter().map(row).collect()
}

#[test]
fn each_interval_counts_once_in_any_order_of_files() {
    let reports = [
        hour(Kind::AwrText, Some(1), 1, 1, 10.4),
        hour(Kind::AwrHtml, Some(1), 1, 1, 10.0),
        hour(Kind::AwrHtml, Some(1), 2, 1, 20.0),
        hour(Kind::AwrHtml, Some(1), 0, 24, 500.0),
        hour(Kind::AwrHtml, Some(2), 2, 1, 30.0),
        hour(Kind::AwrHtml, Some(1), 5, 1, 50.0),
    ];
    let expected = [(Some(1), 1, 10.0), (Some(1), 2, 20.0), (Some(1), 5, 50.0), (Some(2), 2, 30.0)];
    for turn in 0..reports.len() {
        let mut turned = reports.to_vec();
        turned.rotate_left(turn);
        assert_eq!(taken(&turned), expected);
        turned.reverse();
        assert_eq!(taken(&turned), expected);
    }
    let notes = series(&reports)[0].notes.join("\n");
    for part in ["1 gaps", "counted once", "shorter intervals of the same time"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn a_cluster_and_its_instances_are_never_added() {
    let of_cluster = |from, hours| hour(Kind::AwrGlobalHtml, None, from, hours, 100.0);
    let of_instance = |number| hour(Kind::AwrHtml, Some(number), 1, 1, 40.0);
    let finer = [of_cluster(0, 24), of_instance(1), of_instance(2)];
    assert_eq!(taken(&finer), [(Some(1), 1, 40.0), (Some(2), 1, 40.0)]);
    let same = [of_instance(1), of_cluster(1, 1), of_instance(2)];
    assert_eq!(taken(&same), [(None, 1, 100.0)]);
    let hourly = [of_cluster(1, 1), hour(Kind::AwrHtml, Some(1), 0, 24, 900.0)];
    assert_eq!(taken(&hourly), [(None, 1, 100.0)]);
}

#[test]
fn databases_are_told_apart_by_their_ids() {
    let mut other = hour(Kind::AwrHtml, Some(1), 1, 1, 1.0);
    other.database.id = Some(4712);
    let mut by_name = hour(Kind::Csv, Some(1), 2, 1, 2.0);
    (by_name.database.id, by_name.database.name) = (None, "sales".to_owned());
    let first = hour(Kind::AwrHtml, Some(1), 3, 1, 3.0);
    assert_eq!(series(&[first.clone(), by_name.clone()]).len(), 1);
    assert_eq!(series(&[first, by_name, other]).len(), 3, "a name of two databases is neither");
}
