//! The machine, the storage from the path down to the devices, the file, the settings.

use blockstone_base::Capability;
use blockstone_base::identity::{BlockDevice, PathKind, StorageTarget};
use blockstone_base::units::{Bytes, format_ns};
use blockstone_record::manifest::{FileEvidence, Manifest, ProbeInfo, Unmeasured};

use super::table::Table;
use crate::format::{self, optional, percent};
use crate::select;

/// The line below the title.
pub fn in_brief(manifest: &Manifest) -> Vec<String> {
    let target = &manifest.target;
    let chain: Vec<&str> = target.devices.iter().map(|d| d.name.as_str()).collect();
    let storage = match &target.file_system {
        Some(fs) if chain.is_empty() => fs.kind.clone(),
        Some(fs) => format!("{} on {}", fs.kind, chain.join(" → ")),
        None => chain.join(" → "),
    };
    vec![
        storage,
        manifest.host.hostname.clone(),
        format!("Linux {}", manifest.host.kernel),
        format::instant(&manifest.started_at),
        format!("ran {}", format_ns(select::duration_ns(manifest) as f64)),
    ]
}

/// Everything a reader needs to know which machine, storage and settings these numbers belong to.
pub fn tables(manifest: &Manifest) -> Vec<Table> {
    let mut tables = vec![devices(&manifest.target), storage(&manifest.target)];
    tables.extend(manifest.file.as_ref().map(file));
    tables.extend([
        host(manifest),
        capabilities(manifest),
        settings(manifest),
        probes(&manifest.probes),
        run(manifest),
    ]);
    tables
}

fn devices(target: &StorageTarget) -> Table {
    let columns = [
        "Device",
        "Kind",
        "Size",
        "Model",
        "Scheduler",
        "Write cache",
        "Rotational",
        "Block size",
        "Queue",
        "Largest request",
        "Link",
        "Beneath",
    ];
    let mut table = Table::of_texts("Device chain, from the top", &columns);
    for device in &target.devices {
        table.row(&device.name, device_cells(device));
    }
    table
}

fn device_cells(device: &BlockDevice) -> Vec<String> {
    let text = |value: &Option<String>| optional(value.as_ref(), Clone::clone);
    vec![
        format::device_kind(device.kind).to_owned(),
        Bytes(device.size_bytes).to_string(),
        text(&device.model),
        text(&device.scheduler),
        text(&device.write_cache),
        optional(device.rotational, |r| if r { "yes" } else { "no" }.to_owned()),
        format!("{} logical, {} physical", device.logical_block_bytes, device.physical_block_bytes),
        optional(device.queue_depth, |n| n.to_string()),
        optional(device.max_request_bytes, |n| Bytes(n).to_string()),
        optional(device.link.as_ref(), |link| {
            format!(
                "{}: at most {}/s ({})",
                link.description,
                Bytes(link.bytes_per_s as u64),
                link.source
            )
        }),
        device.beneath.join(", "),
    ]
}

fn storage(target: &StorageTarget) -> Table {
    let mut table = Table::of_texts("Path and file system", &["", ""]);
    let kind = match target.kind {
        PathKind::Directory => "directory",
        PathKind::File => "file",
        PathKind::BlockDevice => "block device",
    };
    table.row("Path", vec![format!("{} ({kind})", target.path)]);
    if let Some(fs) = &target.file_system {
        table.row(
            "File system",
            vec![format!("{} of {} at {}", fs.kind, fs.source, fs.mount_point)],
        );
        table.row("Mount options", vec![fs.options.clone()]);
    }
    table.row("Free", vec![Bytes(target.free_bytes).to_string()]);
    let direct = &target.direct_io;
    let aligned = format!(
        "offsets to {}, memory to {} ({})",
        Bytes(direct.offset_align_bytes.into()),
        Bytes(direct.memory_align_bytes.into()),
        direct.source
    );
    table.row(
        "Direct I/O",
        vec![match &direct.capability {
            Capability::Full => format!("yes, aligned: {aligned}"),
            Capability::Degraded { why } => format!("no: {why}"),
        }],
    );
    for cap in &target.caps {
        table.row("Cap", vec![format::cap(cap)]);
    }
    table
}

fn file(file: &FileEvidence) -> Table {
    let mut table = Table::of_texts("Test file", &["", ""]);
    let map = &file.map;
    let share = |bytes: u64| {
        format!("{} ({})", Bytes(bytes), percent(bytes as f64 / map.size_bytes.max(1) as f64))
    };
    let ours = if file.ours { "written by Blockstone" } else { "found, only read" };
    table.row("Path", vec![format!("{} ({ours})", file.path)]);
    table.row("Size", vec![Bytes(map.size_bytes).to_string()]);
    table.row("Allocated", vec![share(map.allocated_bytes)]);
    match &map.fiemap {
        Capability::Full => {
            table.row("Extents", vec![map.extents.to_string()]);
            table.row("Written", vec![share(map.mapped_bytes)]);
            table.row("Holes", vec![share(map.hole_bytes)]);
            table.row("Unwritten", vec![share(map.unwritten_bytes)]);
            table.row("Compressed, encrypted or inline", vec![share(map.encoded_bytes)]);
            table.row("Shared with other files", vec![share(map.shared_bytes)]);
        }
        Capability::Degraded { why } => table.row("Extents", vec![format!("unknown: {why}")]),
    }
    if let Some(sample) = &file.sample {
        let of = |bytes: u64| percent(bytes as f64 / sample.sampled_bytes.max(1) as f64);
        table.row("Data sampled", vec![Bytes(sample.sampled_bytes).to_string()]);
        table.row("Blocks of zeros", vec![of(sample.zero_bytes)]);
        table.row("Left after LZ4", vec![of(sample.lz4_bytes)]);
        table.row("Duplicate blocks", vec![of(sample.duplicate_bytes)]);
    }
    table
}

fn host(manifest: &Manifest) -> Table {
    let host = &manifest.host;
    let mut table = Table::of_texts("Host", &["", ""]);
    table.row("Name", vec![host.hostname.clone()]);
    table.row("Kernel", vec![format!("Linux {} {}", host.kernel, host.architecture)]);
    table.row("Processors", vec![format!("{} × {}", format::processors(host), host.cpu_model)]);
    table.row("Memory", vec![Bytes(host.memory_bytes).to_string()]);
    table.row("Hypervisor", vec![optional(host.hypervisor.as_ref(), Clone::clone)]);
    if !host.databases_running.is_empty() {
        table.row("Running beside it", vec![host.databases_running.join(", ")]);
    }
    table
}

/// What could be done in full is named in one row; what could not has its reason.
fn capabilities(manifest: &Manifest) -> Table {
    let mut table = Table::of_texts("Capabilities", &["", ""]);
    let mut full = Vec::new();
    for named in &manifest.capabilities {
        match &named.capability {
            Capability::Full => full.push(named.name.as_str()),
            Capability::Degraded { why } => {
                table.row(&named.name, vec![format!("degraded: {why}")]);
            }
        }
    }
    if !full.is_empty() {
        table.row("Available", vec![full.join(", ")]);
    }
    table
}

fn settings(manifest: &Manifest) -> Table {
    let mut table = Table::of_texts("Settings", &["Option", "Value"]);
    table.row("command line", vec![manifest.argv.join(" ")]);
    table.row("seed", vec![manifest.seed.to_string()]);
    for (name, value) in &manifest.settings {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        table.row(name, vec![text]);
    }
    table
}

fn probes(probes: &[ProbeInfo]) -> Table {
    let mut table =
        Table::of_texts("Probes", &["Probe", "Observes", "Ticks", "Missed", "Not measured"]);
    for probe in probes {
        let unmeasured: Vec<String> = probe
            .columns
            .iter()
            .filter_map(|c| Some(format!("{} ({})", c.name, reason(c.unmeasured.as_ref()?))))
            .collect();
        let cells = vec![
            probe.doc.clone(),
            probe.ticks.to_string(),
            probe.missed_ticks.to_string(),
            if unmeasured.is_empty() { "–".to_owned() } else { unmeasured.join(", ") },
        ];
        table.row(&probe.probe, cells);
    }
    table
}

fn reason(unmeasured: &Unmeasured) -> String {
    match unmeasured {
        Unmeasured::Off(why) => format!("off: {why}"),
        Unmeasured::NotInVersion(why) => format!("not in this version: {why}"),
        Unmeasured::NotPermitted(why) => format!("not permitted: {why}"),
    }
}

fn run(manifest: &Manifest) -> Table {
    let mut table = Table::of_texts("Recording", &["", ""]);
    table.row("Identity", vec![manifest.id.clone()]);
    table.row("Format", vec![manifest.format.clone()]);
    table.row("Blockstone", vec![manifest.tool_version.clone()]);
    table.row("Began", vec![manifest.started_at.clone()]);
    table.row("Ended", vec![optional(manifest.ended_at.as_ref(), Clone::clone)]);
    let notes = manifest.phases.iter().filter_map(|p| Some((p, p.note.as_ref()?)));
    for (phase, note) in notes {
        table.row(&phase.label, vec![note.clone()]);
    }
    let errors = manifest.phases.iter().filter_map(|p| Some((p, p.first_error.as_ref()?)));
    for (phase, error) in errors {
        table.row(format!("{}: first error", phase.label), vec![error.clone()]);
    }
    table
}
