//! The keys of the document of noise in version 1. They will be removed with the next release.

use blockstone_judge::findings::Point;
use blockstone_judge::noise::{NAMES, NoiseFindings};
use blockstone_judge::run::Noise;
use blockstone_record::Recording;
use blockstone_report::render::json;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::recorded::earlier::{self, Common};

/// JSON document of noise.
#[derive(Serialize)]
struct NoiseDocument<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    /// Amount written, and its effect; null if the run ended before a window opened.
    noise: Option<&'a Noise>,
    /// Number of phases without noise that were measured.
    quiet_phases: usize,
    /// Number of phases with noise that were measured.
    noisy_phases: usize,
    /// The measurement point of the writers, with evidence from the kernel and the device.
    point: Option<&'a Point>,
}

pub fn keys(recording: &Recording, findings: &NoiseFindings) -> Map<String, Value> {
    let NoiseFindings { noise, point, phases, summary, .. } = findings;
    json::keys(NoiseDocument {
        common: earlier::common(recording, &NAMES, summary, &[]),
        noise: noise.as_ref(),
        quiet_phases: phases.0,
        noisy_phases: phases.1,
        point: point.as_ref(),
    })
}
