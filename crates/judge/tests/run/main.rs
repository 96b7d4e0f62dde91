//! Findings of workload runs in which every counter is known.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

mod fixture;
mod rules;

use blockstone_base::column::Unmeasured;
use blockstone_base::load::Op;
use blockstone_base::verdict::Outcome;
use blockstone_figures::History;
use blockstone_figures::compare::{self, Comparison, Outcome as Change, Row};
use blockstone_judge::compare::source;
use blockstone_judge::run::{LedgerCell, parts};
use blockstone_judge::{RunFindings, find_run};
use blockstone_record::manifest::Manifest;
use blockstone_record::testing::RecordingBuilder;
use serde_json::json;

use fixture::{
    bulk_write, calibration, healthy, matrix, noise, order_entry, readers, without_database,
};

fn found(fixture: &RecordingBuilder, calibration: Option<&Manifest>) -> RunFindings {
    let parent = tempfile::tempdir().unwrap();
    find_run(&fixture.write(&parent.path().join("run")), calibration).unwrap()
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected.abs() * 1e-6
}

#[test]
fn figures_are_the_rates_that_were_recorded() {
    let findings = found(&healthy(), None);
    for (name, expected) in [
        ("read_iops", 6_000.0),
        ("write_iops", 800.0),
        ("hardware_read_iops", 6_000.0),
        ("hardware_write_iops", 1_600.0),
        ("commits_per_s", 300.0),
        // 6,000 blocks for 0.8 s of the sessions' processor time.
        ("physical_reads_per_cpu_s", 7_500.0),
        ("read_mbps", 49.152),
        ("redo_mbps", 2.4),
        ("read_latency_ns_mean", 14e9 / 6_000.0),
        ("commit_latency_ns_mean", 2e6),
        ("operations_per_s", 1_500.0),
        ("average_active_sessions", 15.6),
    ] {
        let figure = findings.figure(name).unwrap_or_else(|| panic!("{name}"));
        let estimate = figure.estimate;
        assert!(near(estimate.value, expected), "{name}: {estimate:?}, not {expected}");
        assert!(estimate.low <= estimate.value && estimate.value <= estimate.high, "{name}");
        assert!(estimate.samples > 0, "{name}");
    }
    assert_eq!(findings.figure("read_latency_ns_mean").unwrap().estimate.samples, 60_000);
    assert!(findings.trustworthy());
}

#[test]
fn transactions_have_their_rates_and_costs_and_a_wrong_mix_is_found() {
    let findings = found(&order_entry([45, 43, 4, 4, 4]), None);
    let transactions = findings.transactions.as_ref().unwrap();
    let new_order = &transactions.kinds[0];
    assert_eq!((new_order.name, new_order.count), ("new-order", 4_500));
    assert!(near(new_order.ratio, 0.45) && near(new_order.per_s.unwrap().value, 450.0));
    assert!(near(new_order.rows_mean.unwrap(), 4.0) && new_order.ns_p90.is_some());
    assert_eq!(transactions.kinds[1].ns_mean, None, "nothing was recorded of it");
    let cost = |name: &str| {
        transactions.costs.iter().find(|cost| cost.name == name).unwrap().per_transaction
    };
    assert!(near(cost("physical_reads"), 6.0) && near(cost("db_time_ns"), 15.6e6));
    for (name, expected) in
        [("transactions_per_s", 1_000.0), ("physical_reads_per_transaction", 6.0)]
    {
        assert!(near(findings.figure(name).unwrap().estimate.value, expected), "{name}");
    }
    let outcome = |findings: &RunFindings| {
        findings.verdicts.iter().find(|verdict| verdict.rule == "work-unit").unwrap().outcome
    };
    assert_eq!(outcome(&findings), Outcome::Pass);
    let mixed_up = found(&order_entry([41, 47, 4, 4, 4]), None);
    assert_eq!(outcome(&mixed_up), Outcome::Fail);
    assert!(found(&healthy(), None).transactions.is_none());
}

#[test]
fn a_bulk_write_is_as_fast_as_returned_and_as_flushed_and_its_bytes_are_accounted_for() {
    let findings = found(&bulk_write(), None);
    let made = findings.bulk_write.as_ref().unwrap();
    assert_eq!((made.tables, made.rows_mean), (20, Some(10_240.0)));
    assert!(near(made.flushed.ns_mean.unwrap().value, 4e8));
    for (name, expected) in [
        ("bulk_returned_mbps", 80.0 * 1.048_576 / 0.25),
        ("bulk_flushed_mbps", 80.0 * 1.048_576 / 0.4),
        ("bulk_rows_per_s", 40_960.0),
        ("table_latency_ns_mean", 250e6),
        ("process_write_ratio", 3.0),
        ("process_read_ratio", 6_000.0 / 20_480.0),
        // 880 ms of processor time a second, for 168 MB.
        ("cpu_ns_per_table_mb", 880e6 / 167.772_16),
        ("redo_ratio", 2_400_000.0 / 167_772_160.0),
    ] {
        let estimate = findings.figure(name).unwrap_or_else(|| panic!("{name}")).estimate;
        let off = (estimate.value / expected - 1.0).abs();
        assert!(off < 1e-3, "{name}: {estimate:?}, not {expected}");
        assert_eq!(estimate.samples, 19, "{name}: those between the ends of two flushes");
    }
    assert!(findings.figure("operations_per_s").is_none(), "steps are of three kinds");
    let outcome = |findings: &RunFindings, rule: &str| {
        findings.verdicts.iter().find(|verdict| verdict.rule == rule).unwrap().outcome
    };
    assert_eq!(outcome(&findings, "work-unit"), Outcome::Pass);
    assert_eq!(outcome(&findings, "littles-law"), Outcome::Inconclusive);
    assert!(found(&healthy(), None).bulk_write.is_none());
    // A table with too few rows, and tables of which only half the bytes were written.
    let mut short = bulk_write();
    short.set("operation", "create-table", "rows", 2 * 10_000);
    assert_eq!(outcome(&found(&short, None), "work-unit"), Outcome::Fail);
    let mut unwritten = bulk_write();
    unwritten.set("server", "checkpointer", "write_bytes", 0);
    unwritten.set("server", "session", "write_bytes", 80 << 20);
    let findings = found(&unwritten, None);
    assert_eq!(outcome(&findings, "memory-test"), Outcome::Fail);
    let by = |name: &str| findings.figure(name).unwrap().condemned_by.clone();
    assert_eq!(by("bulk_flushed_mbps"), ["memory-test"]);
    assert_eq!(by("bulk_returned_mbps"), [] as [&str; 0], "it makes no claim about the storage");
}

#[test]
fn of_few_tables_no_mean_is_given() {
    let mut few = bulk_write();
    for (step, ns) in [("create-table", 3_000_000_000), ("flush-table", 300_000_000)] {
        few.last().grow(("operation", step), "completed_ops", Some(3));
        few.last().grow(("operation", step), "latency_ns_sum", Some(ns));
    }
    let findings = found(&few, None);
    assert_eq!(findings.bulk_write.as_ref().unwrap().tables, 3);
    let names = ["bulk_returned_mbps", "bulk_flushed_mbps", "table_latency_ns_mean", "redo_ratio"];
    assert!(names.iter().all(|name| findings.figure(name).is_none()), "{:?}", findings.bulk_write);
}

#[test]
fn the_parts_of_the_database_time_add_up() {
    let findings = found(&healthy(), None);
    let db_time = findings.db_time.as_ref().unwrap();
    assert_eq!(db_time.db_time_ns, 156_000_000_000);
    // Of 0.8 s of processor time a second, 0.3 s was inside waits; of 0.4 s in the run queue, 0.1
    // s.
    assert_eq!((db_time.cpu_ns, db_time.run_queue_ns), (5_000_000_000, 3_000_000_000));
    assert_eq!(db_time.waits_ns, 146_000_000_000);
    assert!(near(db_time.remainder_ns, 2e9) && near(db_time.remainder_ratio, 2.0 / 156.0));
    let shares: f64 = findings.waits.iter().filter_map(|wait| wait.db_time_ratio).sum();
    assert!(near(shares + db_time.remainder_ratio, 1.0), "{shares}");
    let classes: f64 = findings.classes.iter().map(|class| class.db_time_ratio).sum();
    assert!(near(classes, shares));
    assert_eq!(findings.classes[0].class, "User I/O");
    let top = &findings.waits[0];
    assert_eq!((top.event.as_str(), top.count), ("db file sequential read", 60_000));
    assert!(near(top.average_active, 14.0));
    let never = findings.waits.iter().find(|wait| wait.event == "free buffer waits").unwrap();
    assert_eq!((never.count, never.ns_mean), (0, None), "what never happened is known to be zero");
    assert!(findings.waits.iter().all(|wait| wait.role != "ckpt"));
}

#[test]
fn time_outside_of_waits_is_divided_as_a_sample_of_it_was() {
    let mut fixture = healthy();
    fixture.set("instance", "", "outside_sampled_cpu_ns", 70_000_000);
    fixture.set("instance", "", "outside_sampled_blocked_ns", 30_000_000);
    let db_time = found(&fixture, None).db_time.unwrap();
    assert!(near(db_time.cpu_ns as f64, 7e9) && near(db_time.remainder_ns, 3e9), "{db_time:?}");
    assert_eq!((db_time.run_queue_ns, db_time.cpu_in_waits_ns), (0, 1_000_000_000));
}

/// The healthy sessions on a server that samples its waits and whose threads the kernel shows: 6 s
/// of each second without a wait, 3 of them blocked.
fn blocked_server() -> RecordingBuilder {
    let mut run = healthy();
    run.manifest.settings.insert("server".into(), "MariaDB 10.11".into());
    run.remove("event");
    let data_file = "session/wait/io/file/innodb/innodb_data_file";
    run.series(
        "event",
        ["waits", "time_ns"],
        &[
            (data_file, [0, 5_000_000_000]),
            ("session/stage/sql/Commit", [0, 4_000_000_000]),
            ("session/Lock/row lock", [10, 400_000_000]),
            ("session/CPU", [0, 800_000_000]),
            ("session/run queue", [0, 400_000_000]),
        ],
    );
    run.set("instance", "", "outside_sampled_ns", 6_000_000_000);
    for (place, ns) in [
        ("read", 4_800_000_000),
        ("write", 0),
        ("flush", 1_000_000_000),
        ("futex", 6_400_000_000),
        ("sleep", 0),
        ("fault", 0),
        ("other", 0),
    ] {
        run.set("blocked", &format!("session/{place}"), "time_ns", ns);
    }
    run
}

#[test]
fn what_a_server_has_no_event_for_is_listed_as_the_kernel_saw_it() {
    let verdict = |findings: &RunFindings| {
        let mut all = findings.verdicts.iter();
        all.find(|verdict| verdict.rule == "db-time-remainder").unwrap().clone()
    };
    let findings = found(&blocked_server(), None);
    let db_time = findings.db_time.as_ref().unwrap();
    // 6.4 s a second in futexes: row locks are 0.4 s of that, commits 4 s less 1 s of flushing.
    let event = "Lock/futex, seen by the kernel";
    let futex = findings.waits.iter().find(|wait| wait.event == event).unwrap();
    assert_eq!((futex.time_ns, futex.count, futex.ns_mean), (30_000_000_000, 0, None));
    assert_eq!((db_time.blocked_ns, futex.class), (Some(30_000_000_000), "Concurrency"));
    assert!(findings.waits.iter().all(|wait| !wait.event.starts_with("IO/")), "reads have events");
    // A row lock is not an event: the samples have it among the 6 s in which sessions were at work.
    assert!(near(db_time.network_ns.unwrap() as f64, 6e9), "{db_time:?}");
    assert_eq!((db_time.cpu_ns, db_time.run_queue_ns), (8_000_000_000, 4_000_000_000));
    assert!(near(db_time.remainder_ns, 14e9), "{db_time:?}");
    let shares: f64 = findings.waits.iter().filter_map(|wait| wait.db_time_ratio).sum();
    assert!(near(shares + db_time.remainder_ratio, 1.0), "{shares}");
    assert!(!verdict(&findings).evidence.contains("not recorded"));
    let mut unseen = blocked_server();
    unseen.remove("blocked");
    let findings = found(&unseen, None);
    let db_time = findings.db_time.as_ref().unwrap();
    assert_eq!((db_time.blocked_ns, db_time.blocked.len()), (None, 0));
    assert!(near(db_time.remainder_ns, 44e9), "{db_time:?}");
    let verdict = verdict(&findings);
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert!(verdict.evidence.ends_with("blocked was not recorded"), "{}", verdict.evidence);
}

/// The same, with the threads of 20 sessions shown by the kernel at all times: for 4.4 s of each
/// second these were outside of calls.
fn threads_of_20_sessions() -> RecordingBuilder {
    let mut run = blocked_server();
    run.set("blocked", "session/peer", "time_ns", 6_600_000_000);
    run.set("blocked", "session/running", "time_ns", 1_200_000_000);
    run
}

#[test]
fn only_what_threads_waited_for_clients_in_calls_is_network() {
    let db_time = |run: &RecordingBuilder| {
        let findings = found(run, None);
        let db_time = findings.db_time.unwrap();
        let shares: f64 = findings.waits.iter().filter_map(|wait| wait.db_time_ratio).sum();
        assert!(near(shares + db_time.remainder_ratio, 1.0), "{shares}: {db_time:?}");
        db_time
    };
    let run = threads_of_20_sessions();
    let all = db_time(&run);
    assert!(near(all.network_ns.unwrap() as f64, 22e9), "{all:?}");
    // Of 9.4 s of waits a second, threads were blocked for 9.2 s.
    assert_eq!((all.cpu_in_waits_ns + all.run_queue_in_waits_ns) / 1_000_000, 2_000);
    assert_eq!((all.cpu_ns / 1_000_000, all.run_queue_ns / 1_000_000), (6_666, 3_333));
    assert!(all.remainder_ns.abs() < 1e3, "{all:?}");
    // The time at work according to samples of the server's events has no effect.
    let mut busy = threads_of_20_sessions();
    busy.set("instance", "", "outside_sampled_ns", 1_000_000_000);
    assert_eq!(db_time(&busy).network_ns, all.network_ns);
    // Samples that saw threads run too rarely: they were blocked for half of the places' time.
    let mut rarely = threads_of_20_sessions();
    rarely.set("event", "session/CPU", "time_ns", 10_200_000_000);
    let rarely = db_time(&rarely);
    assert_eq!((rarely.network_ns, rarely.blocked_ns), (Some(0), Some(0)), "{rarely:?}");
    // A server that reports more waits than there is time: the figures are not made to fit.
    let mut twice = threads_of_20_sessions();
    let data_file = "session/wait/io/file/innodb/innodb_data_file";
    twice.set("event", data_file, "time_ns", 7_000_000_000);
    let twice = db_time(&twice);
    assert!(near(twice.remainder_ns, -10e9), "{twice:?}");
}

#[test]
fn parts_of_a_window_share_what_was_blocked_in_it() {
    let parent = tempfile::tempdir().unwrap();
    let recording = threads_of_20_sessions().write(&parent.path().join("run"));
    let findings = find_run(&recording, None).unwrap();
    let history = History::read(&recording).unwrap();
    let phase = recording.manifest.phases.last().unwrap();
    let step_ns = (phase.window_end_ns - phase.window_start_ns) / 2;
    let edges_ns = [0, 1, 2].map(|edge| phase.window_start_ns + edge * step_ns);
    let parts = parts(&recording.manifest, &history, &edges_ns);
    let ns = |findings: &RunFindings, event: &str| {
        findings.waits.iter().find(|wait| wait.event == event).unwrap().time_ns as f64
    };
    for event in ["Lock/futex, seen by the kernel", "network and client", "CPU"] {
        let sum: f64 = parts.iter().flatten().map(|part| ns(part, event)).sum();
        let whole = ns(&findings, event);
        assert!((sum / whole - 1.0).abs() < 1e-3, "{event}: {sum} of {whole}");
    }
    for part in parts.iter().flatten() {
        let db_time = part.db_time.as_ref().unwrap();
        let shares: f64 = part.waits.iter().filter_map(|wait| wait.db_time_ratio).sum();
        assert!(near(shares + db_time.remainder_ratio, 1.0), "{shares}: {db_time:?}");
    }
    assert_eq!(parts.iter().flatten().count(), 2);
}

#[test]
fn io_by_role_shows_coalescing_and_mirrors() {
    let findings = found(&healthy(), None);
    let role = |name: &str| findings.roles.iter().find(|role| role.name == name).unwrap();
    assert_eq!(role("dbwr").writes.bytes_mean, Some(16_384.0));
    assert_eq!(role("session").reads.service_ns_mean, Some(2_300_000.0));
    assert_eq!((role("ckpt").writes.ios, role("ckpt").writes.bytes_mean), (0, None));
    assert_eq!(findings.disks.len(), 4);
    let writes: u64 = findings.disks.iter().map(|disk| disk.writes.ios).sum();
    assert_eq!(writes, 16_000);
}

#[test]
fn the_load_profile_is_per_second_and_per_transaction() {
    let findings = found(&healthy(), None);
    let row = |name: &str| findings.load_profile.iter().find(|row| row.name == name).unwrap();
    let reads = row("physical_reads");
    assert!(near(reads.per_s.value, 6_000.0) && near(reads.per_transaction.unwrap(), 20.0));
    assert!(near(row("transactions").per_transaction.unwrap(), 1.0));
    assert!(near(row("db_cpu_ns").per_s.value, 8e8));
    let readers = found(&readers(), None);
    assert!(readers.load_profile.iter().all(|row| row.per_transaction.is_none()));
}

#[test]
fn latencies_hold_what_lies_inside_the_window() {
    let findings = found(&healthy(), None);
    let row = |name: &str| findings.latencies.iter().find(|row| row.name == name).unwrap();
    let read = row("db file sequential read");
    assert_eq!((read.role.as_str(), read.count), ("session", 60_000), "not the warm-up's");
    assert!((read.ns_p50.value / 2e6 - 1.0).abs() < 0.01, "{:?}", read.ns_p50);
    assert!((read.ns_p99.value / 9e6 - 1.0).abs() < 0.01, "{:?}", read.ns_p99);
    assert_eq!(findings.latencies[0].name, "select");
    assert_eq!(row("db file parallel write").role, "dbwr");
}

#[test]
fn sessions_over_reads_a_second_is_the_latency() {
    let findings = found(&readers(), None);
    let [operations, reads] = findings.littles_law.as_slice() else { panic!("two laws") };
    assert!((operations.ratio - 1.0).abs() < 0.01, "{operations:?}");
    assert!(near(reads.expected_ns, 128.0 / 2_400.0 * 1e9), "{reads:?}");
    assert!((reads.ratio - 1.0).abs() < 0.05, "{reads:?}");
    let mut open = readers();
    open.manifest.settings.insert("rate_per_s".into(), 600.into());
    let open = found(&open, None);
    assert!(open.littles_law.is_empty(), "the sessions of an open loop idle");
}

#[test]
fn a_calibration_says_what_share_was_reached() {
    let findings = found(&healthy(), Some(&calibration()));
    let row = |name: &str| findings.efficiency.iter().find(|row| row.figure == name).unwrap();
    assert!(near(row("hardware_read_iops").ratio.value, 0.75));
    assert!(near(row("commits_per_s").ratio.value, 0.1));
    assert_eq!(row("hardware_read_iops").calibration, "cal001");
    let mut condemned = calibration();
    let most = condemned.summary.get_mut("max_iops").unwrap();
    most.condemned_by.push("memory-test".to_owned());
    let findings = found(&healthy(), Some(&condemned));
    assert!(findings.efficiency.iter().all(|row| row.calibrated_figure != "max_iops"));
}

#[test]
fn a_target_without_series_has_rates_of_its_operations_only() {
    let findings = found(&without_database(), None);
    let names: Vec<&str> = findings.summary.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["commits_per_s", "operations_per_s"]);
    assert!(findings.db_time.is_none() && findings.waits.is_empty());
    assert!(findings.trustworthy(), "unmeasured is not wrong");
}

#[test]
fn a_disk_that_was_away_is_named() {
    let mut fixture = healthy();
    fixture.set("disk", "/d2", "offline_ns", 250_000_000);
    let findings = found(&fixture, None);
    let verdict = findings.verdicts.iter().find(|verdict| verdict.rule == "degraded").unwrap();
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert!(verdict.evidence.contains("disk /d2 was away for 2.5"), "{}", verdict.evidence);
}

#[test]
fn the_ledger_holds_three_accounts_and_says_why_one_is_missing() {
    let row = |findings: &RunFindings, what: &str| {
        findings.ledger.iter().find(|row| row.what == what).unwrap().clone()
    };
    let findings = found(&healthy(), None);
    let reads = row(&findings, "reads");
    assert_eq!(reads.claimed.value(), Some(60_000 * 8192), "what the disks were sent");
    assert_eq!(reads.process.value(), reads.claimed.value());
    assert!(reads.device.value().is_some() && reads.plan.is_none());
    let mut server = healthy();
    server.remove("disk");
    let settings = &mut server.manifest.settings;
    settings.insert("server".into(), "PostgreSQL 15".into());
    settings.insert("plans".into(), json!({ "select": "Index Scan using k" }));
    let findings = found(&server, None);
    let reads = row(&findings, "reads");
    assert_eq!(reads.claimed.value(), Some(60_000 * 8192), "pages that the server read");
    assert!(matches!(reads.process, LedgerCell::Unmeasured(Unmeasured::NotPermitted(_))));
    assert_eq!(reads.plan.as_deref(), Some("Index Scan using k"));
    let flushes = row(&findings, "flushes");
    assert!(matches!(flushes.claimed, LedgerCell::Unmeasured(Unmeasured::NotInVersion(_))));
    server.set("server", "session", "read_bytes", 240);
    let findings = found(&server, None);
    assert_eq!(row(&findings, "reads").process.value(), Some(2_400));
    let verdict = findings.verdicts.iter().find(|verdict| verdict.rule == "memory-test").unwrap();
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert!(verdict.evidence.contains("100 % came from the page cache"), "{}", verdict.evidence);
}

fn compared(a: &RecordingBuilder, b: &RecordingBuilder) -> Comparison {
    let of = |run: &RecordingBuilder| {
        source(String::new(), &run.manifest, &found(run, None).comparable())
    };
    Comparison::of(&[of(a)], &[of(b)])
}

fn row<'a>(comparison: &'a Comparison, label: &str) -> &'a Row {
    let found = comparison.rows.iter().find(|row| label_of(row) == label);
    found.unwrap_or_else(|| panic!("{label}"))
}

fn label_of(row: &Row) -> &str {
    let compare::Subject::Measured { label, .. } = &row.key.subject else { panic!("{row:?}") };
    label
}

#[test]
fn two_runs_are_faster_slower_or_not_told_apart() {
    let same = compared(&healthy(), &healthy());
    assert!(same.rows.iter().all(|row| row.outcome == Change::NotEstablished));
    assert!(same.rows.iter().all(|row| label_of(row) != "average_active_sessions"), "no speed");
    let mut fast = healthy();
    fast.set("role", "session", "read_ios", 12_000);
    fast.set("event", "session/db file sequential read", "time_ns", 7_000_000_000);
    let faster = compared(&healthy(), &fast);
    for label in ["read_iops", "read_latency_ns_mean"] {
        assert_eq!(row(&faster, label).outcome, Change::Faster, "{label}");
    }
    let slower = compared(&fast, &healthy());
    assert_eq!(row(&slower, "read_iops").outcome, Change::Slower);
    fast.set("role", "session", "read_ios", 6_600);
    fast.in_bursts("role", "session");
    let unsteady = compared(&healthy(), &fast);
    assert_eq!(row(&unsteady, "read_iops").outcome, Change::NotEstablished, "too wide to tell");
    fast.set("process", "", "read_bytes", 8_190);
    let condemned = compared(&healthy(), &fast);
    assert_eq!(row(&condemned, "read_iops").outcome, Change::Condemned);
}

#[test]
fn points_of_a_matrix_and_windows_with_noise_are_compared_by_name() {
    let (a, mut b) = (matrix(), matrix());
    b.phase("scan/m128p16").set("role", "session", "read_bytes", 100 << 20);
    let comparison = compared(&a, &b);
    assert_eq!(row(&comparison, "scan/m128p16/mb_per_s").outcome, Change::Slower);
    assert_eq!(row(&comparison, "scan/m4p1/mb_per_s").outcome, Change::NotEstablished);
    let (a, mut b) = (noise(), noise());
    b.phase("noisy").set("role", "session", "read_ios", 5_000);
    let comparison = compared(&a, &b);
    assert_eq!(row(&comparison, "noisy/read_iops").outcome, Change::Faster);
    assert_eq!(row(&comparison, "read_iops").outcome, Change::NotEstablished);
    let other = compared(&healthy(), &a);
    assert_eq!(row(&other, "noisy/read_iops").outcome, Change::OnlyInOne);
}

#[test]
fn a_matrix_shows_what_a_wait_interface_does_not() {
    let findings = found(&matrix(), None);
    let scan = findings.scan.as_ref().unwrap();
    let labels: Vec<&str> = scan.points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["scan/m4p1", "scan/m128p1", "scan/m4p16", "scan/m128p16"]);
    let point = &scan.points[0];
    assert_eq!((point.multiblock, point.parallel), (Some(4), 1));
    assert_eq!(point.read_bytes, Some(32_768));
    assert!(near(point.mb_per_s.value, 65.536) && near(point.io_ns_mean.unwrap().value, 500_000.0));
    let waits = point.waits.as_ref().unwrap();
    assert_eq!((point.ios, waits.count), (Some(20_000), 10_000));
    assert!(near(waits.count_ratio, 0.5) && near(waits.mean_ratio.unwrap(), 0.1));
    assert!(near(waits.time_ratio, 0.05) && near(point.outstanding.unwrap(), 1.0));
    assert!((point.io_ns_p50.unwrap().value / 5e5 - 1.0).abs() < 0.01, "{:?}", point.io_ns_p50);
    // 3.2 times the bytes; waits × 2, mean wait × 50 for each byte as for each read.
    let effect = &scan.effects[0];
    assert_eq!((effect.multiblock, effect.from_parallel, effect.to_parallel), (Some(4), 1, 16));
    assert!(near(effect.mb_per_s.unwrap().value, 3.2) && near(effect.waits.unwrap(), 2.0));
    assert!(near(effect.wait_ns_mean.unwrap(), 50.0) && near(effect.wait_time.unwrap(), 100.0));
    assert!(near(effect.io_ns_mean.unwrap().value, 10.0));
    let [serial, parallel] = scan.spreads.as_slice() else { panic!("{:?}", scan.spreads) };
    assert!(near(serial.ratio.value, 3.2) && near(parallel.ratio.value, 1.0));
    assert!(serial.is_established() && !parallel.is_established(), "{parallel:?}");
    assert_eq!((serial.fastest_multiblock, serial.slowest_multiblock), (Some(128), Some(4)));
    assert!(findings.figure("read_mbps").unwrap().estimate.value > 209.0, "the fastest point's");
    assert!(findings.noise.is_none() && findings.trustworthy());
}

#[test]
fn the_headline_of_a_matrix_has_the_interval_of_the_best_of_all_points() {
    let mut fixture = matrix();
    fixture.in_bursts("role", "session");
    let findings = found(&fixture, None);
    let (fastest, best) = findings.scan.as_ref().unwrap().fastest().unwrap();
    assert_eq!(fastest.label, findings.label);
    let headline = findings.figure("read_mbps").unwrap().estimate;
    // Student's t with 9 degrees of freedom: 3.099 for four at once, 2.262 for one.
    for estimate in [best, headline] {
        let (own, high) = (fastest.mb_per_s, estimate.high);
        assert!(near(estimate.value, own.value), "{estimate:?}");
        let wider = (high - estimate.value) / (own.high - own.value);
        assert!((wider - 1.370).abs() < 0.001, "the best of four: {wider}");
    }
}

#[test]
fn a_point_that_memory_answered_condemns_itself_alone() {
    let mut fixture = matrix();
    fixture.phase("scan/m4p16").set("process", "", "read_bytes", 8_190);
    let findings = found(&fixture, None);
    let condemned: Vec<_> = findings
        .scan
        .as_ref()
        .unwrap()
        .points
        .iter()
        .filter(|point| !point.condemned_by.is_empty())
        .map(|point| point.label.as_str())
        .collect();
    assert_eq!(condemned, ["scan/m4p16"]);
    let verdict = findings.verdicts.iter().find(|v| v.rule == "memory-test").unwrap();
    assert!(verdict.evidence.starts_with("scan/m4p16: "), "{}", verdict.evidence);
    assert!(verdict.concerns.contains(&"scan/m4p16/*".to_owned()));
    assert!(!findings.trustworthy());
}

#[test]
fn noise_is_held_against_the_window_before_it() {
    let findings = found(&noise(), None);
    let noise = findings.noise.as_ref().unwrap();
    assert_eq!((noise.writers, noise.write_bytes), (2, 131_072));
    assert!(near(noise.mb_per_s.unwrap().value, 131.072));
    assert_eq!(noise.latency.as_ref().unwrap().count, 10_000);
    let effect = |name: &str| noise.effect.iter().find(|row| row.figure == name).unwrap();
    let reads = effect("read_iops");
    assert!(near(reads.quiet.value, 6_000.0) && near(reads.noisy.value, 3_000.0));
    assert!(near(reads.ratio.unwrap().value, 0.5));
    assert_eq!(reads.outcome, Change::Slower);
    assert_eq!(effect("read_latency_ns_mean").outcome, Change::Slower);
    assert_eq!(effect("operations_per_s").outcome, Change::NotEstablished);
    let alone = findings.figure("read_iops").unwrap().estimate;
    assert!(near(alone.value, 6_000.0), "the figures are those without noise");
    assert_eq!(findings.label, "quiet");
}

#[test]
fn noise_through_the_page_cache_stands_beside_what_the_device_wrote() {
    let waited_for = found(&noise(), None).noise.unwrap();
    assert_eq!(waited_for.device_mb_per_s, None);
    let mut fixture = noise();
    let load = fixture.last().phase.background.as_mut().unwrap();
    (load.op, load.direct, load.sync) = (Op::Write, false, None);
    fixture.set("block", "vda", "write_bytes", 7_000_000);
    let buffered = found(&fixture, None).noise.unwrap();
    assert!(near(buffered.mb_per_s.unwrap().value, 131.072));
    assert!(near(buffered.device_mb_per_s.unwrap().value, 7.0));
}

#[test]
fn condemned_figures_are_those_the_rule_names() {
    let mut fixture = healthy();
    fixture.set("process", "", "read_bytes", 8_190);
    let findings = found(&fixture, None);
    assert!(!findings.trustworthy());
    let by = |name: &str| findings.figure(name).unwrap().condemned_by.clone();
    assert_eq!(by("read_iops"), ["memory-test"]);
    assert!(by("commits_per_s").is_empty());
    assert!(findings.comparable().condemned().count() == 1);
}

#[test]
fn a_run_that_did_not_come_to_its_window_has_no_numbers_and_no_verdicts() {
    let parent = tempfile::tempdir().unwrap();
    let mut recording = healthy().write(&parent.path().join("run"));
    recording.manifest.phases.truncate(1);
    let findings = find_run(&recording, None).unwrap();
    assert!(findings.summary.is_empty() && findings.verdicts.is_empty());
    assert_eq!(findings.window_ns, 0);
}
