//! The rules on scans for data reduction: each rule with a case for each outcome.

use blockstone_base::rule::judge;
use blockstone_base::{Bytes, Outcome, rng};
use blockstone_reduce::chunk::Displacement;
use blockstone_reduce::counter::Counter;
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{BlockSample, Shift};
use blockstone_reduce::hash::{Hasher, SEGMENT_BYTES};
use blockstone_reduce::model::Model;
use blockstone_reduce::plan::Plan;

use super::*;

/// A scan, the files that it covers, and whether it looked for chunks.
struct Scan {
    findings: Findings,
    files: Vec<FileNote>,
    chunks: bool,
}

/// Two files of random blocks, with enough of them compressed and sampled.
fn healthy() -> Scan {
    let mut scan = count(64);
    let primary = scan.findings.primary;
    scan.findings.grids[primary].contents_compressed = 1_000;
    scan.findings.usage.used_compression_ratio = Some(Interval::exact(2.1));
    scan.findings.block_sample = Some(BlockSample { blocks: 50, part: 0.01, dedup_ratio: 1.0 });
    scan
}

/// Two files of this many random blocks each.
fn count(blocks: usize) -> Scan {
    let plan = Plan::new(&[Bytes(8192)], &[0], Bytes(8192)).unwrap();
    let (mut counter, mut hasher) = (Counter::new(plan), Hasher::default());
    let depth = counter.plan().depth();
    for seed in 0..2 {
        let mut data = vec![0; blocks * 8192];
        rng::fill(seed, &mut data);
        counter.begin_file(data.len() as u64);
        let mut wanted = Vec::new();
        for segment in data.chunks(SEGMENT_BYTES) {
            counter.feed(&hasher.hash(segment, None, depth), &mut wanted);
        }
        counter.end_file(&mut wanted);
    }
    let note = |path: &str| FileNote { path: path.to_owned(), format: None };
    let files = vec![note("a.dbf"), note("b.dbf")];
    let findings = Findings::new(&counter, &files, &Model::built_in("generic").unwrap());
    Scan { findings, files, chunks: true }
}

type Spoil = fn(&mut Scan);

/// For each rule, a change that makes it fail, and one that makes it inconclusive.
const CASES: &[(&str, Spoil, Spoil)] = &[
    (
        "never-used-blocks",
        |scan| scan.findings.usage.zero_blocks = 2.0 * scan.findings.usage.used_blocks,
        |scan| *scan = count(0),
    ),
    (
        "compressible-filler",
        |scan| scan.findings.usage.used_compression_ratio = Some(Interval::exact(11.0)),
        |scan| {
            let primary = scan.findings.primary;
            scan.findings.grids[primary].contents_compressed = 99;
        },
    ),
    (
        "block-sampling",
        |scan| scan.findings.block_sample.as_mut().unwrap().dedup_ratio = 1.2,
        |scan| scan.findings.block_sample.as_mut().unwrap().blocks = 29,
    ),
    (
        "shifted-copy",
        |scan| {
            let displacement = Displacement { original: 0, copy: 1, shift_bytes: 512 };
            scan.findings.shifts = vec![Shift { displacement, bytes: 1 << 18, part_of_copy: 0.5 }];
        },
        |scan| scan.chunks = false,
    ),
];

fn outcome(scan: &Scan, rule: &str) -> (Outcome, String) {
    let case = ScanCase { findings: &scan.findings, files: &scan.files, chunks: scan.chunks };
    let verdicts = judge(ALL, &case);
    let verdict = verdicts.iter().find(|verdict| verdict.rule == rule).unwrap();
    let failed = verdict.outcome == Outcome::Fail;
    assert_eq!(failed, !verdict.cause.is_empty() && !verdict.next.is_empty(), "{rule}");
    assert!(!verdict.concerns.is_empty(), "{rule} is about figures");
    (verdict.outcome, verdict.evidence.clone())
}

#[test]
fn every_rule_passes_a_healthy_scan_fails_what_it_looks_for_and_may_not_decide() {
    let covered: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    let known: Vec<&str> = ALL.iter().map(|rule| rule.about.id).collect();
    assert_eq!(covered, known, "a case for each rule");
    for (rule, fail, blind) in CASES {
        let (seen, evidence) = outcome(&healthy(), rule);
        assert_eq!(seen, Outcome::Pass, "{rule}: {evidence}");
        for (spoil, expected) in [(fail, Outcome::Fail), (blind, Outcome::Inconclusive)] {
            let mut scan = healthy();
            spoil(&mut scan);
            let (seen, evidence) = outcome(&scan, rule);
            assert_eq!(seen, expected, "{rule}: {evidence}");
        }
    }
}

#[test]
fn filler_is_found_only_if_the_whole_interval_says_so() {
    for (low, high, expected) in
        [(8.1, 9.9, Outcome::Fail), (7.9, 9.9, Outcome::Inconclusive), (6.0, 7.9, Outcome::Pass)]
    {
        let mut scan = healthy();
        let value = f64::midpoint(low, high);
        let interval = Interval { value, low, high, samples: 1000 };
        scan.findings.usage.used_compression_ratio = Some(interval);
        let (seen, evidence) = outcome(&scan, "compressible-filler");
        assert_eq!(seen, expected, "{evidence}");
    }
}
