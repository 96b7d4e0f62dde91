//! What was measured, on what, when, in a few lines.

use blockstone_base::Capability;
use blockstone_base::identity::{BlockDevice, StorageTarget};
use blockstone_base::units::{Bytes, format_ns};
use blockstone_record::manifest::Manifest;

use crate::format;
use crate::render::terminal::Style;
use crate::render::terminal::columns::wrap;
use crate::select;

pub fn lines(manifest: &Manifest, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(sentence) = select::unfinished(manifest) {
        lines.extend(wrap(&sentence, style.width, 0, 2).iter().map(|line| style.warning(line)));
    }
    for text in [storage(&manifest.target), host(manifest)] {
        lines.extend(wrap(&text, style.width, 0, 2).iter().map(|line| style.dim(line)));
    }
    lines
}

fn storage(target: &StorageTarget) -> String {
    let file_system = target.file_system.as_ref().map(|fs| fs.kind.clone());
    let chain: Vec<String> = target.devices.iter().map(device).collect();
    let mut parts = vec![match (file_system, chain.is_empty()) {
        (Some(kind), true) => kind,
        (Some(kind), false) => format!("{kind} on {}", chain.join(" → ")),
        (None, _) => chain.join(" → "),
    }];
    if let Some(bottom) = target.devices.last() {
        parts.push(Bytes(bottom.size_bytes).to_string());
        parts.extend(bottom.model.clone());
        parts.extend(bottom.scheduler.as_ref().map(|s| format!("scheduler {s}")));
        parts.extend(bottom.write_cache.clone());
        parts.extend(bottom.link.as_ref().map(|link| link.description.clone()));
    }
    parts.push(match &target.direct_io.capability {
        Capability::Full => {
            format!("direct I/O {}", Bytes(target.direct_io.offset_align_bytes.into()))
        }
        Capability::Degraded { why } => format!("no direct I/O: {why}"),
    });
    parts.extend(target.caps.iter().map(format::cap));
    parts.join(" · ")
}

fn device(device: &BlockDevice) -> String {
    format!("{} ({})", device.name, format::device_kind(device.kind))
}

fn host(manifest: &Manifest) -> String {
    let host = &manifest.host;
    let mut parts = vec![
        host.hostname.clone(),
        format!("Linux {} {}", host.kernel, host.architecture),
        format!("{} × {}", format::processors(host), host.cpu_model),
        Bytes(host.memory_bytes).to_string(),
    ];
    parts.extend(host.hypervisor.clone());
    parts.push(format::instant(&manifest.started_at));
    parts.push(format_ns(select::duration_ns(manifest) as f64));
    if !host.databases_running.is_empty() {
        parts.push(format!("running beside it: {}", host.databases_running.join(", ")));
    }
    parts.join(" · ")
}
