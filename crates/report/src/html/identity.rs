//! The line below the title of a page.

use blockstone_base::units::format_ns;
use blockstone_record::manifest::Manifest;

use crate::format;

/// The line below the title.
pub fn in_brief(manifest: &Manifest) -> Vec<String> {
    let target = &manifest.target;
    let chain: Vec<&str> = target.devices.iter().map(|d| d.name.as_str()).collect();
    let storage = match &target.file_system {
        Some(fs) if chain.is_empty() => fs.kind.clone(),
        Some(fs) => format!("{} on {}", fs.kind, chain.join(" → ")),
        None => chain.join(" → "),
    };
    let duration_ns = manifest.phases.iter().map(|phase| phase.end_ns).max().unwrap_or(0);
    vec![
        storage,
        manifest.host.hostname.clone(),
        format!("Linux {}", manifest.host.kernel),
        format::instant(&manifest.started_at),
        format!("ran {}", format_ns(duration_ns as f64)),
    ]
}
