//! Cost of recording: rows per second, bytes per row, and the time to close and to open 100,000
//! rows. Run with `cargo bench -p blockstone-record`.
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use blockstone_base::LatencyHistogram;
use blockstone_base::column::{Cell, Column, Kind, Schema, Unit};
use blockstone_base::load::Op;
use blockstone_base::rng::Rng;
use blockstone_record::manifest::{End, Manifest};
use blockstone_record::{HistogramRow, LatencyClock, Recorder, Recording};

const ROWS: u64 = 100_000;
const DEVICES: [&str; 4] = ["nvme0n1", "nvme1n1", "dm-0", "md127"];
const ROWS_PER_SEGMENT: u64 = 2_000;

const fn counter(name: &'static str) -> Column {
    Column { name, unit: Unit::Count, kind: Kind::Counter, source: "bench", doc: "A counter." }
}

/// As wide as the block layer's probe.
static BLOCK: Schema = Schema {
    probe: "block",
    doc: "Four devices.",
    columns: &[
        counter("read_ios"),
        counter("read_merges"),
        counter("read_bytes"),
        counter("read_ns"),
        counter("write_ios"),
        counter("write_merges"),
        counter("write_bytes"),
        counter("write_ns"),
        counter("in_flight"),
        counter("busy_ns"),
        counter("queue_ns"),
        counter("discard_ios"),
        counter("discard_bytes"),
        counter("flush_ios"),
        counter("flush_ns"),
    ],
};

fn main() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("run");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1");
    let manifest: Manifest =
        blockstone_record::read_manifest(&fixture).expect("the fixture is readable");
    let mut recorder = Recorder::create(&dir, manifest, &[&BLOCK]).expect("a recording");

    let (recorded_s, segments_s) = record(&mut recorder);
    let start = Instant::now();
    recorder.close(End::Complete).expect("the recording closes");
    let closed_s = start.elapsed().as_secs_f64();
    let bytes = fs::metadata(dir.join("series/block.parquet")).expect("the table is there").len();
    let bytes_histograms =
        fs::metadata(dir.join("histograms.parquet")).expect("the table is there").len();

    let start = Instant::now();
    let recording = Recording::open(&dir).expect("the recording opens");
    let opened_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let series = recording.series("block").expect("the series is there");
    let read_s = start.elapsed().as_secs_f64();
    assert_eq!(series.len() as u64, ROWS);
    let looked_up_s = look_up(&series);

    println!(
        "rows                   {ROWS} of 15 counters, 4 devices, {ROWS_PER_SEGMENT} a segment"
    );
    println!("row()                  {:.0} rows/s", ROWS as f64 / recorded_s);
    println!("end_segment()          {:.2} ms each, synced", segments_s * 1e3 / 50.0);
    println!("close()                {:.1} ms", closed_s * 1e3);
    println!("size                   {:.1} bytes a row", bytes as f64 / ROWS as f64);
    println!("size of a histogram    {:.0} bytes", bytes_histograms as f64 / 50.0);
    println!("open(), verified       {:.1} ms", opened_s * 1e3);
    println!("series()               {:.1} ms", read_s * 1e3);
    println!("value_at()             {:.0} ns", looked_up_s * 1e9 / ROWS as f64);
}

/// Records the rows and one histogram per segment; returns the seconds spent in `row` and in
/// `end_segment`.
fn record(recorder: &mut Recorder) -> (f64, f64) {
    let mut rng = Rng::new(1, 0);
    let mut counters = [[0_u64; 15]; DEVICES.len()];
    let (mut rows_s, mut segments_s) = (0.0, 0.0);
    for segment in 0..ROWS / ROWS_PER_SEGMENT {
        let start = Instant::now();
        for row in 0..ROWS_PER_SEGMENT / DEVICES.len() as u64 {
            let tick = segment * ROWS_PER_SEGMENT / DEVICES.len() as u64 + row;
            for (device, counters) in DEVICES.iter().zip(&mut counters) {
                let ios = 4_000 + rng.below(2_000);
                let moves =
                    [ios, 0, ios * 8192, ios * 90_000, ios / 9, 0, ios * 910, ios * 9_000, 0];
                for (counter, by) in counters.iter_mut().zip(moves) {
                    *counter += by;
                }
                counters[8] = rng.below(64);
                counters[9] += 49_000_000 + rng.below(1_000_000);
                let cells: Vec<Cell> = counters.iter().map(|&value| Cell::from(value)).collect();
                let t_ns = tick * 50_000_000 + rng.below(30_000);
                recorder.row("block", t_ns, segment as i32, device, &cells).expect("a row");
            }
        }
        rows_s += start.elapsed().as_secs_f64();
        recorder.histogram(latencies(segment, &mut rng)).expect("a histogram");
        let start = Instant::now();
        recorder.end_segment().expect("a segment");
        segments_s += start.elapsed().as_secs_f64();
    }
    (rows_s, segments_s)
}

fn latencies(segment: u64, rng: &mut Rng) -> HistogramRow {
    let mut histogram = LatencyHistogram::new();
    for _ in 0..20_000 {
        histogram.record(60_000 + rng.below(40_000) * rng.below(20));
    }
    HistogramRow {
        page: None,
        phase: segment as i32,
        second: segment as u32,
        op: Op::Read,
        role: String::new(),
        windowed: true,
        clock: LatencyClock::Submitted,
        histogram,
    }
}

fn look_up(series: &blockstone_record::Series) -> f64 {
    let keys: Vec<_> = series.rows().map(|row| (row.phase, row.object, row.t_ns)).collect();
    let start = Instant::now();
    let found = keys
        .iter()
        .filter(|(phase, object, t_ns)| {
            series.value_at(*phase, object, *t_ns, "flush_ns").is_some()
        })
        .count();
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(found, keys.len());
    seconds
}
