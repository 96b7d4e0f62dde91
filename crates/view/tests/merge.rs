//! Merging the tables of slices of time yields the table of the whole time, for every view.

use std::collections::BTreeMap;

use blockstone_base::column::{Cell, Kind};
use blockstone_base::rng;
use blockstone_base::table::{Heading, Measure, Merge, Missing, Row, Value, divisors, merge};
use blockstone_record::manifest::ProbeInfo;
use blockstone_record::testing;
use blockstone_view::{History, Interval, View, registry};
use proptest::prelude::*;

const TICKS: u64 = 24;
const TICK_NS: u64 = 1_000_000_000;
const LOOKS_PER_TICK: u64 = 10;

/// A probe: its counters, levels and states, and its objects with the texts of their states.
struct Probe {
    name: &'static str,
    counters: &'static str,
    levels: &'static str,
    states: &'static str,
    objects: &'static [(&'static str, &'static [&'static str])],
}

const fn probe(name: &'static str, counters: &'static str) -> Probe {
    Probe { name, counters, levels: "", states: "", objects: ONE }
}

/// The only object of a probe without others: always present.
const ONE: &[(&str, &[&str])] = &[("", &[])];
/// Several objects, the first of which is always present.
const SEVERAL: &[(&str, &[&str])] = &[("a", &[]), ("b", &[]), ("c", &[])];
const USES: &str = "cpu_user_ns cpu_nice_ns cpu_system_ns cpu_irq_ns cpu_softirq_ns cpu_iowait_ns \
                    cpu_idle_ns cpu_steal_ns";
const IO: &str = "read_ios read_bytes read_ns write_ios write_bytes write_ns flushes flush_ns \
                  extend_ios hits evictions requested_read_bytes requested_write_bytes";

const PROBES: &[Probe] = &[
    Probe {
        states: "disk role pid process thread file",
        objects: &[
            ("a", &["vda", "writer", "10", "p", "", "/data/a"]),
            ("b", &["vda", "writer", "11", "p", "", "/data/b"]),
            ("c", &["vdb", "", "", "kernel write-back", "", "/data/c"]),
        ],
        ..probe("io_by_process", "read_bytes write_bytes read_ios write_ios write_back_bytes")
    },
    Probe {
        counters: "cpu_user_ns cpu_nice_ns cpu_system_ns cpu_irq_ns cpu_softirq_ns cpu_iowait_ns \
                   cpu_idle_ns cpu_steal_ns switches interrupts forks \
                   psi_cpu_some_ns psi_io_some_ns psi_io_full_ns",
        levels: "runnable blocked load_one_minute_ppm load_five_minutes_ppm \
                 load_fifteen_minutes_ppm dirty_bytes writeback_bytes cached_bytes",
        ..probe("host", "")
    },
    Probe { objects: SEVERAL, ..probe("cpu", USES) },
    Probe {
        objects: SEVERAL,
        ..probe(
            "interrupts",
            "interrupts device_interrupts softirqs network_softirqs block_softirqs",
        )
    },
    Probe {
        levels: "in_flight",
        states: "device_kind beneath",
        objects: &[
            ("vda", &["disk", ""]),
            ("vdb", &["disk", ""]),
            ("vda1", &["partition", "vda"]),
            ("md0", &["RAID", "vda vdb"]),
        ],
        ..probe(
            "block",
            "read_ios read_merges read_bytes read_ns write_ios write_merges write_bytes write_ns \
             flush_ios flush_ns discard_ios discard_bytes queue_ns busy_ns",
        )
    },
    probe("disks", "read_ios read_bytes write_ios write_bytes"),
    Probe {
        counters: "paged_in_bytes paged_out_bytes swapped_in_pages swapped_out_pages \
                   refaulted_file_pages major_page_faults direct_reclaims dirtied_pages \
                   written_pages psi_memory_some_ns psi_memory_full_ns",
        levels: "memory_bytes free_bytes available_bytes anonymous_bytes file_cache_bytes \
                 buffers_bytes shared_bytes huge_pages_bytes slab_bytes page_tables_bytes \
                 swap_total_bytes swap_free_bytes dirty_limit_bytes dirty_background_limit_bytes \
                 dirty_ratio_ppm dirty_background_ratio_ppm dirty_fixed_bytes \
                 dirty_background_fixed_bytes dirty_expire_ns dirty_writeback_ns",
        ..probe("memory", "")
    },
    Probe {
        levels: "inodes inodes_unused file_handles file_handles_max sockets tcp_in_use \
                 tcp_orphans tcp_time_wait",
        ..probe("resources", "")
    },
    Probe {
        objects: SEVERAL,
        ..probe(
            "network",
            "received_bytes received_packets receive_errors receive_drops sent_bytes \
             sent_packets send_errors send_drops retransmits",
        )
    },
    Probe {
        levels: "temperature_kelvin used_ppm available_spare_ppm spare_threshold_ppm media_errors \
                 unsafe_shutdowns power_on_hours",
        states: "critical_warning subsystem disks model",
        objects: SEVERAL,
        ..probe(
            "nvme",
            "read_at_ns host_read_bytes host_written_bytes media_read_bytes media_written_bytes",
        )
    },
    Probe {
        objects: SEVERAL,
        ..probe(
            "nfs",
            "read_ios read_bytes read_ns read_server_ns write_ios write_bytes write_ns \
             write_server_ns flush_ios flush_ns retransmits",
        )
    },
    Probe {
        levels: "memory_bytes memory_limit_bytes",
        objects: SEVERAL,
        ..probe(
            "cgroup",
            "cpu_ns throttled_ns throttled_periods read_ios read_bytes write_ios write_bytes",
        )
    },
    Probe {
        levels: "threads",
        ..probe("process", "cpu_user_ns cpu_system_ns run_queue_ns read_bytes write_bytes")
    },
    probe("watch", "ticks look_ns missed_ticks"),
    Probe {
        levels: "processes",
        objects: SEVERAL,
        ..probe(
            "processes",
            "cpu_ns run_queue_ns read_calls requested_read_bytes read_bytes write_calls \
             requested_write_bytes write_bytes",
        )
    },
    probe("instance", "db_time_ns logical_reads physical_reads redo_bytes redo_writes commits"),
    Probe {
        levels: "checkpoint_age_bytes",
        ..probe(
            "database",
            "rollbacks redo_flushes redo_write_ns redo_flush_ns redo_buffer_full \
             checkpoints_timed checkpoints_requested checkpoint_write_ns checkpoint_sync_ns \
             checkpoint_written_blocks writer_written_blocks session_written_blocks",
        )
    },
    probe("sql", "full_page_images flushes maintenance_runs"),
    Probe { objects: SEVERAL, ..probe("io", IO) },
    Probe { objects: SEVERAL, ..probe("role", IO) },
    Probe { objects: SEVERAL, ..probe("server", IO) },
    Probe {
        objects: &[
            ("session/db file sequential read", &[]),
            ("session/CPU", &[]),
            ("session/log file sync", &[]),
            ("writer/CPU", &[]),
        ],
        ..probe("event", "time_ns waits")
    },
    Probe {
        objects: SEVERAL,
        ..probe(
            "statement",
            "total_ns calls rows blocks_hit blocks_read read_ns blocks_dirtied blocks_written \
             redo_bytes",
        )
    },
    Probe {
        states: "role",
        objects: &[("1", &["session"]), ("2", &["session"]), ("3", &["writer"])],
        ..probe(
            "session_statistics",
            "cpu_ns run_queue_ns read_ios read_bytes read_ns write_ios write_bytes write_ns hits \
             redo_bytes redo_records requested_read_bytes charged_read_bytes \
             requested_write_bytes charged_write_bytes",
        )
    },
    Probe {
        states: "layer operation mode role file_type file",
        objects: &[
            ("1", &["block", "read", "sync", "session", "data", "/data/1"]),
            ("2", &["block", "read", "async", "session", "data", "/data/2"]),
            ("3", &["block", "write", "async", "writer", "data", "/data/1"]),
            ("4", &["block", "flush", "sync", "writer", "redo", "/redo"]),
            ("5", &["system call", "read", "sync", "session", "data", "/data/1"]),
        ],
        ..probe("kernel_io", "ios bytes elapsed_ns ios_from_0ns ios_from_1024ns")
    },
    Probe {
        levels: "files unseen_files size_bytes buffered_size_bytes cached_bytes dirty_bytes",
        states: "kind server file file_type open_mode",
        objects: &[
            ("postgres", &["server", "postgres", "", "", "buffered"]),
            ("postgres | /data/1", &["file", "postgres", "/data/1", "data", "buffered"]),
        ],
        ..probe("cached_files", "")
    },
    Probe {
        levels: "size_bytes",
        states: "kind file_type",
        objects: &[
            ("tracing", &["tracing", ""]),
            ("/dev/vda", &["device", ""]),
            ("/data/1", &["file", "data"]),
        ],
        ..probe(
            "active_set",
            "touched_bytes written_bytes compared_bytes again_bytes hot_half_bytes \
             hot_nine_tenths_bytes hot_all_but_one_percent_bytes sampled_units accesses \
             first_accesses windows lost again_after_1 again_after_2 again_after_3",
        )
    },
    Probe {
        states: "role mode module symbol",
        objects: &[
            ("1", &["session", "kernel", "vmlinux", "copy_user"]),
            ("2", &["session", "user", "postgres", ""]),
            ("3", &["writer", "kernel", "vmlinux", "crc32c"]),
            ("sampling", &[]),
        ],
        ..probe("profile", "samples cpu_ns idle_ns watched_ns summing_ns lost")
    },
    Probe {
        levels: "statement_age_ns transaction_age_ns",
        states: "role state wait_class event query_id blockers user database application",
        objects: &[],
        ..probe("session", "")
    },
    Probe { objects: &[], ..probe("sessions", "sampled") },
];

/// Probes whose counters start at zero with their object, which never returns.
const FROM_ZERO: [&str; 3] = ["kernel_io", "active_set", "profile"];

/// Seed of the random choices in a history.
struct World {
    seed: u64,
}

impl World {
    fn draw(&self, what: &str, tick: u64, below: u64) -> u64 {
        let hash = what.bytes().fold(self.seed, |hash, byte| rng::mix(hash ^ u64::from(byte)));
        rng::mix(hash ^ tick) % below
    }

    /// Whether an object is present at a tick: the first of a probe and processors always, others
    /// for a while, some of them with a pause.
    fn is_there(&self, probe: &Probe, place: usize, tick: u64) -> bool {
        let object = probe.objects[place].0;
        let always = place == 0
            || matches!(probe.name, "cpu" | "interrupts")
            || matches!(object, "vdb" | "5" | "sampling");
        let draw =
            |what: &str, below| self.draw(&format!("{}/{object}/{what}", probe.name), 0, below);
        let (from, length) = (draw("from", TICKS), 2 + draw("length", TICKS));
        let pause = from + 2 + draw("pause", 6);
        let has_gap = draw("pauses", 2) == 0 && !FROM_ZERO.contains(&probe.name);
        let paused = has_gap && (pause..pause + 4).contains(&tick);
        always || ((from..from + length).contains(&tick) && !paused)
    }

    /// Returns the growth of a counter in a tick in which its object is active.
    fn step(&self, probe: &Probe, object: &str, column: &str, tick: u64) -> i64 {
        let name = format!("{}/{object}/{column}", probe.name);
        let drawn = 1 + self.draw(&name, tick, 1_000) as i64;
        // Requests and disks move more bytes than what is subtracted from them, so that differences
        // stay positive.
        match (probe.name, column) {
            ("host" | "cpu", "cpu_idle_ns") => {
                let others = USES.split_whitespace().filter(|other| *other != column);
                TICK_NS as i64
                    - others.map(|other| self.step(probe, object, other, tick)).sum::<i64>()
            }
            ("profile", "watched_ns") => TICK_NS as i64,
            ("block", _) => drawn * 10_000,
            ("server", _) if column.starts_with("requested") => drawn * 10_000,
            _ => drawn,
        }
    }

    fn history(&self) -> History {
        let mut history = History::new(PROBES.iter().map(info).collect());
        let mut counters: BTreeMap<(&str, &str, &str), i64> = BTreeMap::new();
        for tick in 0..=TICKS {
            for probe in PROBES {
                for place in 0..probe.objects.len() {
                    if self.is_there(probe, place, tick) {
                        let cells = self.cells(probe, place, tick, &mut counters);
                        history.push(probe.name, tick * TICK_NS, probe.objects[place].0, cells);
                    } else if probe.name == "io_by_process" {
                        // It begins at zero when it is active again.
                        let object = probe.objects[place].0;
                        counters.retain(|(of, it, _), _| (*of, *it) != (probe.name, object));
                    }
                }
            }
        }
        self.sample(&mut history);
        history
    }

    fn cells<'a>(
        &self,
        probe: &'a Probe,
        place: usize,
        tick: u64,
        counters: &mut BTreeMap<(&'a str, &'a str, &'a str), i64>,
    ) -> Vec<Cell> {
        let (object, said) = probe.objects[place];
        let steady = matches!(probe.name, "host" | "cpu") || object == "sampling";
        // Objects with the same name are active together: no redo is written without an active
        // database. Counters of an absent object stand still: they resume from their last value.
        let was_there = tick > 0 && self.is_there(probe, place, tick - 1);
        let from_zero = FROM_ZERO.contains(&probe.name);
        let drawn = (was_there || from_zero) && self.draw(object, tick, 3) > 0;
        let active = steady || drawn;
        let mut cells: Vec<Cell> = Vec::new();
        for column in probe.counters.split_whitespace() {
            let counter = counters.entry((probe.name, object, column)).or_default();
            if active {
                *counter += self.step(probe, object, column, tick);
            }
            cells.push(Cell::Value(*counter));
        }
        for column in probe.levels.split_whitespace() {
            cells.push(Cell::Value(self.step(probe, object, column, tick)));
        }
        let states = probe.states.split_whitespace().count();
        let said = said.iter().map(|text| Cell::Text((*text).to_owned()));
        cells.extend(said.chain(std::iter::repeat(Cell::Unmeasured)).take(states));
        cells
    }

    /// Adds samples of three sessions, at regular times between ticks.
    fn sample(&self, history: &mut History) {
        const EVENTS: [(&str, &str); 3] = [("On CPU", ""), ("Lock", "tuple"), ("IO", "SlruRead")];
        for look in 1..=TICKS * LOOKS_PER_TICK {
            let t_ns = look * TICK_NS / LOOKS_PER_TICK;
            history.push("sessions", t_ns, "", vec![Cell::Value(look as i64)]);
            for session in ["11", "12", "13"] {
                let draw =
                    |what: &str, at, below| self.draw(&format!("{session}/{what}"), at, below);
                // Absent for whole ticks, and idle now and then.
                if draw("there", look / LOOKS_PER_TICK, 3) == 0 {
                    continue;
                }
                let role = if session == "13" { "writer" } else { "session" };
                let state = if draw("idle", look, 4) == 0 { "idle" } else { "active" };
                let (class, event) = EVENTS[draw("event", look, 3) as usize];
                let query = format!("q{}", draw("query", look, 2));
                let texts = [role, state, class, event, query.as_str(), "", "me", "bench", "test"];
                let mut cells = vec![Cell::Value(look as i64), Cell::Value(2 * look as i64)];
                cells.extend(texts.map(|text| Cell::Text(text.to_owned())));
                history.push("session", t_ns, session, cells);
            }
        }
    }
}

fn info(probe: &Probe) -> ProbeInfo {
    let Probe { name, counters, levels, states, .. } = probe;
    testing::probe(name, &[(Kind::Counter, counters), (Kind::Gauge, levels), (Kind::State, states)])
}

fn key(columns: &[Heading], row: &Row) -> Vec<Value> {
    let cells = columns.iter().zip(&row.cells);
    cells.filter(|(column, _)| column.merge == Merge::Key).map(|(_, cell)| cell.clone()).collect()
}

/// Compares the merged slices with the whole, and returns how many numbers are equal.
fn check(view: &View, whole: &Interval<'_>, most: usize) -> Result<usize, TestCaseError> {
    let slices: Vec<(f64, Vec<Row>)> = whole
        .slices(most)
        .iter()
        .map(|slice| (slice.seconds(), view.table(slice).map_or_else(Vec::new, |it| it.rows)))
        .collect();
    let slices: Vec<(f64, &[Row])> = slices.iter().map(|(s, rows)| (*s, &rows[..])).collect();
    let merged = merge(view.columns, &slices);
    let whole = view.table(whole).expect("every probe is there").rows;
    let find = |wanted: &Row| {
        let wanted = key(view.columns, wanted);
        merged.iter().find(|row| key(view.columns, row) == wanted)
    };
    // Views omit rows of zeros; in the slice in which an object appears it is unknown, and shown.
    let says_something =
        |row: &&Row| row.cells.iter().any(|cell| cell.number().unwrap_or(0.0) != 0.0);
    let beyond = merged
        .iter()
        .filter(|row| !whole.iter().any(|it| key(view.columns, it) == key(view.columns, row)));
    prop_assert_eq!(beyond.clone().find(says_something), None, "{}", view.name);
    let mut equal = 0;
    for row in &whole {
        let Some(found) = find(row) else {
            // It only says why it is empty, and no slice has both the object and the reason.
            if !says_something(&row) {
                continue;
            }
            return Err(TestCaseError::fail(format!("{}: {row:?} is not merged", view.name)));
        };
        for (index, column) in view.columns.iter().enumerate() {
            if column.merge == Merge::Never {
                continue;
            }
            let what = format!("{} {} of {row:?} in {slices:?}", view.name, column.key);
            match (&row[index], &found[index]) {
                (Value::Number(whole), Value::Number(merged)) => {
                    let off = (whole - merged).abs();
                    prop_assert!(off <= 1e-9 * whole.abs().max(1e-9), "{whole} {merged}: {what}");
                    equal += usize::from(column.measure != Measure::Text);
                }
                // A merged value may be unknown only if it is unknown in a slice too.
                (whole, Value::Missing(Missing::Unknown))
                    if *whole != Value::Missing(Missing::Unknown) =>
                {
                    let of_row = |slice: &Row| key(view.columns, slice) == key(view.columns, row);
                    let rows =
                        slices.iter().flat_map(|(_, rows)| rows.iter()).filter(|r| of_row(r));
                    let unknown = Value::Missing(Missing::Unknown);
                    let undivided = matches!(column.merge, Merge::Per { .. })
                        && slices.iter().any(|s| divisors(view.columns, index, s.1).is_empty());
                    prop_assert!(
                        undivided || rows.flat_map(|row| &row.cells).any(|cell| *cell == unknown),
                        "{what}"
                    );
                }
                (whole, merged) => prop_assert_eq!(whole, merged, "{}", what),
            }
        }
    }
    Ok(equal)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn slices_merge_into_the_whole(seed: u64, parts in 0_usize..6) {
        let history = World { seed }.history();
        let whole = history.whole().expect("there are ticks");
        let most = [2, 3, 4, 6, 12, 24][parts];
        for view in registry::ALL.iter().filter(|view| !view.is_of_instants()) {
            let equal = check(view, &whole, most)?;
            let columns = view.columns.iter();
            let merges = |c: &&Heading| c.measure != Measure::Text && c.merge != Merge::Never;
            let expected = columns.filter(merges).count().min(1);
            prop_assert!(equal >= expected, "{}: nothing was compared", view.name);
        }
    }
}
