//! Rules on what was watched: a case of each outcome for each rule, and cases to which none
//! applies.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use blockstone_base::column::{Cell, Kind, Unmeasured};
use blockstone_base::verdict::{Outcome, Verdict};
use blockstone_figures::History;
use blockstone_judge::judge_watch;
use blockstone_judge::rules::registry;
use blockstone_record::manifest::{Imported, ImportedObject};
use blockstone_record::testing::probe;

const GIB: i64 = 1 << 30;
const SECOND_NS: u64 = 1_000_000_000;

/// A host of 16 GiB that was watched for ten seconds.
struct Host {
    /// By server: bytes of its files in the page cache, and number of files that were not seen.
    servers: Vec<(&'static str, i64, i64)>,
    /// Size of the buffer cache by instance; without a name for the only one that was named.
    buffer_caches: Vec<(Option<&'static str>, i64)>,
    file_cache_bytes: i64,
    /// Pages a second.
    swapped_in: i64,
    read_again: Option<i64>,
    roles: Vec<&'static str>,
    /// Why files were not looked at.
    why: Option<Unmeasured>,
    /// Load that a database recorded.
    load: Option<Load>,
}

/// Increases over the ten seconds, of one instance; times in seconds.
#[derive(Clone, Copy)]
struct Load {
    reads: i64,
    reads_by_function: Option<i64>,
    cpu_s: Option<i64>,
    waits_s: i64,
    redo_mib: i64,
    written_mib: i64,
    untimed_waits: i64,
    /// Whether it is that of a pluggable database.
    is_part: bool,
}

/// 20 s of DB time in which 1,000 requests read 8 MB.
const LOAD: Load = Load {
    reads: 1_000,
    reads_by_function: Some(1_001),
    cpu_s: Some(5),
    waits_s: 14,
    redo_mib: 500,
    written_mib: 700,
    untimed_waits: 0,
    is_part: false,
};

impl Load {
    /// The counters at begin or end.
    fn cells(self, is_end: bool) -> Vec<Cell> {
        let by_end = |value: i64| Cell::Value(if is_end { value } else { 0 });
        let maybe = |value: Option<i64>| value.map_or(Cell::Unmeasured, by_end);
        let second = SECOND_NS as i64;
        vec![
            by_end(10 * second),
            by_end(self.reads),
            by_end(8_192_000),
            maybe(self.reads_by_function),
            by_end(8_200_000),
            by_end(20 * second),
            maybe(self.cpu_s.map(|it| it * second)),
            by_end(self.waits_s * second),
            by_end(self.redo_mib << 20),
            by_end(self.written_mib << 20),
            by_end(self.untimed_waits),
        ]
    }
}

/// PostgreSQL with 4 GiB of buffers and 8 GiB of page cache, on a machine with memory to spare.
fn healthy() -> Host {
    Host {
        servers: vec![("postgres", 8 * GIB, 0)],
        buffer_caches: vec![(None, 4 * GIB)],
        file_cache_bytes: 9 * GIB,
        swapped_in: 0,
        read_again: Some(50),
        roles: vec!["postgres/checkpointer"],
        why: None,
        load: Some(LOAD),
    }
}

impl Host {
    fn history(&self) -> History {
        let levels = |names| (Kind::Gauge, names);
        let counts = |names| (Kind::Counter, names);
        let mut probes = vec![
            probe(
                "memory",
                &[
                    levels("memory_bytes available_bytes file_cache_bytes"),
                    counts("swapped_in_pages refaulted_file_pages"),
                ],
            ),
            probe("cached_files", &[levels("cached_bytes unseen_files")]),
            probe("processes", &[levels("processes")]),
            probe(
                "database_load",
                &[
                    counts("elapsed_ns read_ios read_bytes function_read_ios"),
                    counts("function_read_bytes db_time_ns cpu_ns waits_ns"),
                    counts("redo_bytes write_bytes untimed_waits"),
                ],
            ),
        ];
        let series = |instance: Option<&str>| {
            instance.map_or("database".to_owned(), |name| format!("database@{name}"))
        };
        for (instance, _) in &self.buffer_caches {
            probes.push(probe(&series(*instance), &[levels("buffer_cache_bytes")]));
        }
        let mut history = History::new(probes);
        for t_ns in [SECOND_NS, 11 * SECOND_NS] {
            let seconds = (t_ns / SECOND_NS) as i64;
            let grown = |per_s: i64| Cell::Value(seconds * per_s);
            let memory = vec![
                Cell::Value(16 * GIB),
                Cell::Value(GIB),
                Cell::Value(self.file_cache_bytes),
                grown(self.swapped_in),
                self.read_again.map_or(Cell::Unmeasured, grown),
            ];
            history.push("memory", t_ns, "", memory);
            for (name, cached, unseen) in &self.servers {
                let cells = vec![Cell::Value(*cached), Cell::Value(*unseen)];
                history.push("cached_files", t_ns, name, cells.clone());
                history.push("cached_files", t_ns, &format!("{name} | /data/base/1"), cells);
            }
            if let Some(load) = self.load {
                let cells = load.cells(t_ns > SECOND_NS);
                history.push("database_load", t_ns, "SALES/1", cells);
            }
            for role in &self.roles {
                history.push("processes", t_ns, role, vec![Cell::Value(1)]);
            }
            for (instance, bytes) in &self.buffer_caches {
                history.push(&series(*instance), t_ns, "", vec![Cell::Value(*bytes)]);
            }
        }
        if let Some(load) = self.load {
            let container = load.is_part.then(|| "PDB".to_owned());
            let (name, kind) = ("SALES".to_owned(), "awr".to_owned());
            let objects = vec![ImportedObject { name, kind, container, undated: false }];
            history.set_imported(Imported { objects, ..Imported::default() });
        }
        if let Some(why) = &self.why {
            history.unmeasured("cached_files", "cached_bytes", why);
        }
        history
    }

    fn verdicts(&self) -> Vec<Verdict> {
        judge_watch(&self.history().interval(SECOND_NS, 11 * SECOND_NS))
    }

    fn verdict(&self, rule: &str) -> Verdict {
        self.verdicts().into_iter().find(|verdict| verdict.rule == rule).unwrap()
    }
}

type Spoil = fn(&mut Host);

/// For each rule, what makes it fail and what leaves it inconclusive.
const CASES: &[(&str, Spoil, Spoil)] = &[
    (
        "import-adds-up",
        |host| host.load = Some(Load { reads_by_function: Some(31_000_000), ..LOAD }),
        |host| {
            host.load = Some(Load { reads_by_function: None, cpu_s: None, redo_mib: 0, ..LOAD });
        },
    ),
    ("double-caching", |host| host.read_again = Some(500), |host| host.servers.clear()),
];

#[test]
fn every_rule_passes_a_healthy_host_fails_what_it_looks_for_and_may_not_decide() {
    let covered: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    let known: Vec<&str> = registry::WATCH.iter().map(|rule| rule.about.id).collect();
    assert_eq!(covered, known, "a case for each rule");
    for (rule, fail, blind) in CASES {
        let passed = healthy().verdict(rule);
        assert_eq!(passed.outcome, Outcome::Pass, "{rule}: {}", passed.evidence);
        for (spoil, expected) in [(fail, Outcome::Fail), (blind, Outcome::Inconclusive)] {
            let mut host = healthy();
            spoil(&mut host);
            let verdict = host.verdict(rule);
            assert_eq!(verdict.outcome, expected, "{rule}: {}", verdict.evidence);
            assert_eq!(verdict.failed(), !verdict.next.is_empty(), "{rule}");
        }
    }
}

fn double_caching(spoil: impl FnOnce(&mut Host)) -> Verdict {
    let mut host = healthy();
    spoil(&mut host);
    host.verdict("double-caching")
}

#[test]
fn page_cache_displaces_a_database_where_memory_is_short_and_blocks_are_held_twice() {
    let twice = double_caching(|host| host.read_again = Some(500));
    assert_eq!(
        (twice.outcome, twice.concerns.as_slice()),
        (Outcome::Fail, &["postgres".into()][..])
    );
    for part in ["8 GiB of its files", "50 % of the memory of 16 GiB", "25 % of the memory", "500"]
    {
        assert!(twice.evidence.contains(part), "{part}: {}", twice.evidence);
    }
    assert!(twice.next.contains("shared_buffers"), "{}", twice.next);
    let swapping = double_caching(|host| {
        host.swapped_in = 200;
        host.buffer_caches.clear();
        host.servers[0].0 = "mariadb";
    });
    assert_eq!(swapping.outcome, Outcome::Fail, "{}", swapping.evidence);
    assert!(swapping.next.contains("O_DIRECT"), "{}", swapping.next);
    for (what, spoil) in [
        ("little is held twice", (|host| host.buffer_caches[0].1 = GIB / 8) as Spoil),
        ("little is cached", |host| host.servers[0].1 = GIB),
        ("others use the page cache", |host| {
            host.servers[0] = ("postgres", GIB, 3);
            host.file_cache_bytes = 3 * GIB / 2;
        }),
    ] {
        let verdict = double_caching(|host| {
            host.read_again = Some(500);
            spoil(host);
        });
        assert_eq!(verdict.outcome, Outcome::Pass, "{what}: {}", verdict.evidence);
    }
}

#[test]
fn what_decides_and_is_not_known_leaves_double_caching_open() {
    for (what, spoil) in [
        ("buffer cache", (|host| host.buffer_caches.clear()) as Spoil),
        ("read again", |host| host.read_again = None),
        ("could not be looked at", |host| host.servers[0] = ("postgres", GIB, 3)),
        // Only one of them can be the server that was named.
        ("buffer cache", |host| host.servers.push(("mariadb", GIB, 0))),
    ] {
        let verdict = double_caching(|host| {
            host.read_again = Some(500);
            spoil(host);
        });
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{what}: {}", verdict.evidence);
        assert!(verdict.evidence.contains(what), "{what}: {}", verdict.evidence);
    }
    let verdict = double_caching(|host| {
        host.servers.clear();
        host.why = Some(Unmeasured::NotInVersion("no cachestat(2)".to_owned()));
    });
    assert_eq!(verdict.evidence, "no cachestat(2)");
}

#[test]
fn each_of_several_instances_has_its_own_buffer_cache() {
    let verdict = double_caching(|host| {
        host.read_again = Some(500);
        host.servers = vec![("postgres@5432", 8 * GIB, 0), ("postgres@5433", 4 * GIB, 0)];
        host.buffer_caches =
            vec![(Some("postgres@5432"), GIB / 8), (Some("postgres@5433"), 4 * GIB)];
    });
    assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
    assert_eq!(verdict.concerns, ["postgres@5433"], "the one whose blocks are held twice");
}

#[test]
fn a_host_without_a_database_is_not_judged() {
    let mut host = healthy();
    (host.servers, host.roles) = (vec![("blockstone", GIB, 0)], vec!["blockstone/main"]);
    host.buffer_caches.clear();
    host.load = None;
    assert_eq!(host.verdicts(), []);
    host.roles.push("postgres/checkpointer");
    assert_eq!(host.verdicts().len(), 1);
}

#[test]
fn contradictions_of_an_imported_load_are_named() {
    for (load, part) in [
        (Load { reads_by_function: Some(2_000), ..LOAD }, "200 reads a second"),
        (Load { cpu_s: Some(30), ..LOAD }, "DB CPU above DB time: DB CPU 30"),
        (Load { waits_s: 2, ..LOAD }, "65 % of DB time is in neither"),
        (Load { waits_s: 30, ..LOAD }, "processor time and waits is 75 % above DB time"),
        (Load { untimed_waits: 4_092_389, ..LOAD }, "4,092,389 waits for storage have no time"),
        (Load { written_mib: 300, ..LOAD }, "500 MiB of redo, of 300 MiB written"),
    ] {
        let verdict = Host { load: Some(load), ..healthy() }.verdict("import-adds-up");
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        assert!(verdict.evidence.contains(part), "{part}: {}", verdict.evidence);
        assert!(verdict.evidence.starts_with("SALES/1: "), "{}", verdict.evidence);
    }
    for near in [
        Load { reads_by_function: Some(1_400), waits_s: 12, ..LOAD },
        Load { written_mib: 460, ..LOAD },
        Load { written_mib: 1, is_part: true, ..LOAD },
    ] {
        let verdict = Host { load: Some(near), ..healthy() }.verdict("import-adds-up");
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
    }
}
