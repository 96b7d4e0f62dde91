//! Recordings that tests construct instead of measuring.

use std::path::Path;

use blockstone_base::column::Schema;
use blockstone_base::load::Op;
use blockstone_record::testing::{self, RecordingBuilder, SECOND_NS, counters, schema};
use blockstone_record::{LatencyClock, Manifest};

/// Counters of the load generator, without errors and mismatches.
static LOAD: Schema = schema("load", &counters(["completed_ops", "completed_bytes"]));

/// Records a calibration with these loads: label, operations per second and latency of each.
pub fn calibration(dir: &Path, points: &[(&str, u64, u64)]) {
    let manifest = Manifest { verb: "calibrate".to_owned(), ..testing::manifest() };
    let mut recording = RecordingBuilder::new(manifest, &[&LOAD]);
    for &(label, iops, latency_ns) in points {
        recording.add(testing::point(label), (SECOND_NS, 10 * SECOND_NS));
        let counted = [iops, iops * 8192];
        recording.series("load", ["completed_ops", "completed_bytes"], &[("", counted)]);
        recording.latencies("", Op::Read, LatencyClock::Intended, &[(latency_ns, iops * 10)]);
    }
    recording.write(dir);
}
