//! The versioned document of a workload run.

use blockstone_judge::RunFindings;
use blockstone_judge::run::FIGURES;
use blockstone_record::Recording;
use serde_json::{Value, json};

use super::{about, condemned, figures, plain, summary};
use crate::awr::awr_info;

/// The version of [`document`].
pub const RUN_SCHEMA: &str = "blockstone.run/1";

/// The document of a run. A condemned figure is null under `summary` and stands, with the rules
/// that condemn it, under `condemned`.
pub fn document(recording: &Recording, findings: &RunFindings) -> Value {
    let manifest = &recording.manifest;
    json!({
        "schema": RUN_SCHEMA,
        "tool_version": manifest.tool_version,
        "trustworthy": findings.trustworthy(),
        "recording": about(recording),
        "summary": summary(&FIGURES, &findings.summary),
        "condemned": condemned(&findings.summary),
        "verdicts": findings.verdicts,
        "figures": figures(&findings.summary),
        "window": {
            "label": findings.label,
            "duration_ns": findings.window_ns,
            "sessions": findings.sessions,
            "stop": findings.stop,
        },
        "load_profile": plain(&findings.load_profile),
        "db_time": plain(&findings.db_time),
        "waits": plain(&findings.waits),
        "classes": plain(&findings.classes),
        "roles": plain(&findings.roles),
        "ledger": plain(&findings.ledger),
        "disks": plain(&findings.disks),
        "latencies": plain(&findings.latencies),
        "littles_law": plain(&findings.littles_law),
        "efficiency": plain(&findings.efficiency),
        "scan": plain(&findings.scan.as_ref().map_or(&[][..], |scan| &scan.points)),
        "scan_effects": plain(&findings.scan.as_ref().map_or(&[][..], |scan| &scan.effects)),
        "scan_spreads": plain(&findings.scan.as_ref().map_or(&[][..], |scan| &scan.spreads)),
        "noise": plain(&findings.noise),
        "awr_info": awr_info(recording, findings),
        "host": manifest.host,
        "target": manifest.target,
        "disk_files": manifest.disk_files,
        "data_files": manifest.data_files,
        "settings": manifest.settings,
        "capabilities": manifest.capabilities,
    })
}
