//! The files of a recording.

use std::path::{Path, PathBuf};

use blockstone_base::LatencyHistogram;
use blockstone_base::load::Op;
use blockstone_judge::grid::{Grid, Plan};
use blockstone_probe::{block, host};
use blockstone_record::testing::{self, RecordingBuilder, SECOND_NS};
use blockstone_record::{LatencyClock, Recording, TICKS, read_manifest};
use blockstone_view::{History, registry};

use super::seal;
use crate::scratch::{self, get, put};

const MANIFEST: &str = "manifest.json";
const SERIES: &str = "series/block.parquet";
const HISTOGRAMS: &str = "histograms.parquet";
const EVENTS: &str = "events.parquet";

/// Builds a calibration of two points, a few seconds each.
fn build(parent: &Path) -> PathBuf {
    let dir = parent.join("run");
    let mut recording =
        RecordingBuilder::new(testing::manifest(), &[&block::SCHEMA, &host::SCHEMA]);
    for label in ["random-read/psync/x4", "random-write/psync/x4"] {
        recording.add(testing::point(label), (SECOND_NS, 2 * SECOND_NS));
        let columns = ["read_ios", "read_bytes", "read_ns", "busy_ns"];
        let counts = [6_000, 6_000 << 13, 500_000_000, 900_000_000];
        recording.series("block", columns, &[("vda", counts), ("dm-0", counts)]);
        recording.set("host", "", "cpu_user_ns", 300_000_000);
        let latencies = [(100_000, 990), (2_000_000, 10)];
        for clock in [LatencyClock::Intended, LatencyClock::Submitted] {
            recording.latencies("", Op::Read, clock, &latencies);
        }
    }
    recording.write(&dir);
    dir
}

/// Returns one of its files as it was written.
fn seed(file: &str) -> Vec<Vec<u8>> {
    let dir = tempfile::tempdir().expect("temporary files can be made");
    vec![get(&build(dir.path()).join(file))]
}

/// Returns the path of a recording with this content in one file.
fn with(name: &'static str, file: &str, content: &[u8]) -> PathBuf {
    let run = scratch::dir(name, |dir| drop(build(dir))).join("run");
    put(&run.join(file), content);
    run
}

pub fn manifests() -> Vec<Vec<u8>> {
    seed(MANIFEST)
}

pub fn manifest(input: &[u8]) -> bool {
    let run = with("manifest", MANIFEST, input);
    if read_manifest(&run).is_err() {
        return false;
    }
    // Tables that belong to another recording are noticed later.
    if let Ok(recording) = Recording::open(&run) {
        recording.warnings();
    }
    true
}

pub fn series_files() -> Vec<Vec<u8>> {
    seed(SERIES)
}

pub fn series(input: &[u8]) -> bool {
    let run = with("series", SERIES, &seal::parquet(input));
    let Ok(recording) = Recording::open(&run) else { return false };
    let Ok(series) = recording.series("block") else { return false };
    for row in series.rows() {
        (0..series.columns().len()).for_each(|column| drop(row.cell(column)));
    }
    series.objects(0);
    series.delta(0, "vda", SECOND_NS, 3 * SECOND_NS, "read_ios");
    series.track(0, "vda", 0, u64::MAX, "read_bytes");
    true
}

pub fn histogram_files() -> Vec<Vec<u8>> {
    seed(HISTOGRAMS)
}

pub fn histograms(input: &[u8]) -> bool {
    let run = with("histograms", HISTOGRAMS, &seal::parquet(input));
    let Ok(recording) = Recording::open(&run) else { return false };
    let Ok(rows) = recording.histograms() else { return false };
    for row in &rows {
        use_histogram(&row.histogram);
    }
    true
}

/// Uses a histogram as reports do.
fn use_histogram(histogram: &LatencyHistogram) {
    let mut all = LatencyHistogram::new();
    all.merge(histogram);
    all.merge(histogram);
    let parts = vec![histogram.buckets().collect(); 5];
    all.quantile(0.999, &parts.iter().collect::<Vec<_>>(), SECOND_NS);
    all.mean_ns();
    all.min_ns();
    all.max_ns();
    all.buckets().for_each(drop);
}

/// Returns HdrHistogram V2 encodings of no, one and many latencies.
pub fn encodings() -> Vec<Vec<u8>> {
    let of = |latencies: &[u64]| {
        let mut histogram = LatencyHistogram::new();
        for &latency_ns in latencies {
            histogram.record(latency_ns);
        }
        histogram.encode()
    };
    let many: Vec<u64> = (0..3000).map(|number| number * number * 77).collect();
    vec![of(&[]), of(&[100_000]), of(&many), of(&[u64::MAX; 300])]
}

pub fn histogram(input: &[u8]) -> bool {
    let decoded = LatencyHistogram::decode(input, u128::from(u64::MAX), u64::MAX >> 2);
    decoded.as_ref().map(use_histogram).is_ok()
}

pub fn event_files() -> Vec<Vec<u8>> {
    seed(EVENTS)
}

pub fn events(input: &[u8]) -> bool {
    let run = with("events", EVENTS, &seal::parquet(input));
    Recording::open(&run).is_ok_and(|recording| recording.events().is_ok())
}

/// Derives everything from a recording whose manifest is altered.
pub fn judge(input: &[u8]) -> bool {
    let run = with("judge", MANIFEST, input);
    let Ok(recording) = Recording::open(&run) else { return false };
    let judged = blockstone_judge::find(&recording).is_ok();
    let ticks = recording.instants(TICKS).unwrap_or_default();
    if let (Some(&first), Some(&last)) = (ticks.first(), ticks.last())
        && let Ok(part) = History::read_part(&recording, ticks, (first, last))
    {
        let interval = part.interval(first, last);
        for view in registry::ALL {
            drop(view.table(&interval));
        }
    }
    let Ok(history) = History::read(&recording) else { return false };
    if let Some(interval) = history.whole() {
        for view in registry::ALL {
            drop(view.table(&interval));
        }
    }
    judged
}

pub fn plans() -> Vec<Vec<u8>> {
    let text = r#"{"schema":"blockstone.grid/1","axes":[{"name":"update","values":["0","20"]},
        {"name":"sessions","values":["1","8"]}],"cells":[
        {"values":["0","1"],"recordings":["0-1","0-2"]},{"values":["0","8"],"recordings":["1-1"]},
        {"values":["20","1"],"recordings":["2-1"]},{"values":["20","8"],"recordings":[]}]}"#;
    vec![text.as_bytes().to_vec()]
}

pub fn grid(input: &[u8]) -> bool {
    let Ok(plan) = serde_json::from_slice::<Plan>(input) else { return false };
    let grid = Grid::read(&plan, |name| match name {
        "0-1" | "1-1" => Ok(testing::manifest()),
        _ => Err("no such recording".to_owned()),
    });
    grid.trustworthy();
    true
}
