//! Identity of a measurement: its subject, host, storage, time and settings.

use blockstone_base::Capability;
use blockstone_base::column::Unmeasured;
use blockstone_base::identity::{BlockDevice, PathKind, StorageTarget};
use blockstone_base::row;
use blockstone_base::table::{Heading, Table, bytes, count, happened, text};
use blockstone_base::units::{Bytes, format_ns};
use blockstone_record::manifest::{End, FileEvidence, Manifest, ProbeInfo};
use blockstone_report::Section;
use blockstone_report::format::{self, percent};

use super::Facts;

/// Storage and host, a line each.
pub fn lines(manifest: &Manifest) -> Vec<String> {
    let several = manifest.targets.iter().map(|measured| {
        let target = &measured.target;
        format!("{}: {}", target.path, storage(target))
    });
    let mut lines: Vec<String> = several.collect();
    if lines.is_empty() {
        lines.push(storage(&manifest.target));
    }
    lines.push(host(manifest));
    lines.extend(ranks(manifest));
    lines
}

/// Describes a process that was one of several, or the recordings of all of them.
fn ranks(manifest: &Manifest) -> Option<String> {
    if let Some(rank) = &manifest.rank {
        let of = format!("rank {} of {} ({})", rank.rank, rank.ranks, rank.launcher);
        let start = rank.start_at.as_deref().map(|at| format!("began at {}", format::instant(at)));
        return Some([Some(of), start].into_iter().flatten().collect::<Vec<_>>().join(" · "));
    }
    let merged = manifest.merged.as_ref()?;
    let of = format!("merged from {}", crate::ranks::subject(merged));
    let missing = merged.missing.len();
    Some(if missing == 0 {
        of
    } else {
        format!("{of} · {missing} of {} missing", merged.expected)
    })
}

fn storage(target: &StorageTarget) -> String {
    let file_system = target.file_system.as_ref().map(|fs| fs.kind.clone());
    let kind = |device: &BlockDevice| format::device_kind(device.kind);
    let chain = target.devices.iter().map(|device| format!("{} ({})", device.name, kind(device)));
    let chain = chain.collect::<Vec<_>>().join(" → ");
    let mut parts = vec![match file_system {
        Some(file_system) if chain.is_empty() => file_system,
        Some(file_system) => format!("{file_system} on {chain}"),
        None => chain,
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
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

fn host(manifest: &Manifest) -> String {
    let host = &manifest.host;
    let mut parts = vec![
        host.hostname.clone(),
        format!("Linux {} {}", host.kernel, host.architecture),
        format::processors(host),
        Bytes(host.memory_bytes).to_string(),
    ];
    parts.retain(|part| !part.is_empty());
    parts.extend(host.hypervisor.clone());
    parts.push(format::instant(&manifest.started_at));
    parts.push(format_ns(duration_ns(manifest) as f64));
    if !host.databases_running.is_empty() {
        parts.push(format!("databases running: {}", host.databases_running.join(", ")));
    }
    parts.join(" · ")
}

/// How long the recording lasted: the end of its last phase.
pub fn duration_ns(manifest: &Manifest) -> u64 {
    manifest.phases.iter().map(|phase| phase.end_ns).max().unwrap_or(0)
}

/// One sentence when a recording did not run to its end; none when it did.
pub fn unfinished(manifest: &Manifest) -> Option<String> {
    let after = format_ns(duration_ns(manifest) as f64);
    let phases = manifest.phases.len();
    let rest =
        format!("after {after} and {phases} phases; the report shows what was measured until then");
    match &manifest.end {
        End::Complete => None,
        End::Running => Some(format!("Not finished: still running, or killed {rest}")),
        End::Interrupted { signal } => Some(format!("Interrupted by {signal} {rest}")),
        End::Failed { error, .. } => {
            let error = error.lines().next().unwrap_or_default();
            Some(format!("Failed ({error}) {rest}"))
        }
    }
}

/// The last chapter of a page: machine, storage from the path down to the devices, test file,
/// settings.
pub fn section(manifest: &Manifest) -> Section {
    let file = manifest.file.as_ref().map(file);
    let paths: Vec<Table> = match manifest.targets.as_slice() {
        [] => vec![path(&manifest.target)],
        several => several.iter().map(|measured| path(&measured.target)).collect(),
    };
    let tables = [devices(&manifest.target)].into_iter().chain(paths).chain(file);
    let rest = [
        machine(manifest),
        capabilities(manifest),
        settings(manifest),
        probes(&manifest.probes),
        recording(manifest),
    ];
    Section::page("identity", "System and settings").with(tables.chain(rest))
}

const DEVICES: &[Heading] = &[
    text("device", "device", "Its name in the kernel."),
    text("device_kind", "kind", "What it is."),
    text("model", "model", "Its model, where it has one."),
    text("scheduler", "scheduler", "The I/O scheduler."),
    text("write_cache", "write cache", "The write cache mode, according to the kernel."),
    text("rotational", "rotational", "Whether it is a rotating disk, according to the kernel."),
    text("link", "link", "The link that connects it, and its maximum rate."),
    text("beneath", "beneath", "The devices below it."),
    bytes("size_bytes", "size", "Its size."),
    bytes("logical_block_bytes", "logical block", "Its smallest request."),
    bytes("physical_block_bytes", "physical block", "Smallest write that needs no read first."),
    bytes("max_request_bytes", "largest request", "Its largest request."),
    count("queue_depth", "queue", "Requests that the kernel queues for it."),
];

fn devices(target: &StorageTarget) -> Table {
    let mut table = Table::new("devices", "Devices, from the top of the chain down", DEVICES);
    let optional = |text: &Option<String>| happened(text.clone());
    for device in &target.devices {
        let link = device.link.as_ref().map(|link| {
            let most = Bytes(link.bytes_per_s as u64);
            format!("{}: at most {most}/s ({})", link.description, link.source)
        });
        let rotational = device.rotational.map(|yes| if yes { "yes" } else { "no" }.to_owned());
        table.push(row![
            &device.name,
            format::device_kind(device.kind),
            optional(&device.model),
            optional(&device.scheduler),
            optional(&device.write_cache),
            optional(&rotational),
            optional(&link),
            device.beneath.join(", "),
            device.size_bytes,
            device.logical_block_bytes,
            device.physical_block_bytes,
            device.max_request_bytes,
            device.queue_depth.map(u64::from)
        ]);
    }
    table
}

fn path(target: &StorageTarget) -> Table {
    let mut facts = Facts::new("path", "Path and file system");
    let kind = match target.kind {
        PathKind::Directory => "directory",
        PathKind::File => "file",
        PathKind::BlockDevice => "block device",
    };
    facts.add("path", format!("{} ({kind})", target.path));
    if let Some(fs) = &target.file_system {
        facts.add("file system", format!("{} of {} at {}", fs.kind, fs.source, fs.mount_point));
        facts.add("mount options", &fs.options);
    }
    facts.add("free", Bytes(target.free_bytes).to_string());
    let direct = &target.direct_io;
    let aligned = format!(
        "offsets to {}, memory to {} ({})",
        Bytes(direct.offset_align_bytes.into()),
        Bytes(direct.memory_align_bytes.into()),
        direct.source
    );
    facts.add(
        "direct I/O",
        match &direct.capability {
            Capability::Full => format!("yes, aligned: {aligned}"),
            Capability::Degraded { why } => format!("no: {why}"),
        },
    );
    for cap in &target.caps {
        facts.add("cap", format::cap(cap));
    }
    facts.table()
}

fn file(file: &FileEvidence) -> Table {
    let mut facts = Facts::new("test-file", "Test file");
    let map = &file.map;
    let share = |bytes: u64| {
        format!("{} ({})", Bytes(bytes), percent(bytes as f64 / map.size_bytes.max(1) as f64))
    };
    let ours = if file.ours { "written by Blockstone" } else { "found, only read" };
    facts.add("path", format!("{} ({ours})", file.path));
    facts.add("size", Bytes(map.size_bytes).to_string());
    facts.add("allocated", share(map.allocated_bytes));
    match &map.fiemap {
        Capability::Full => {
            facts.add("extents", map.extents.to_string());
            facts.add("written", share(map.mapped_bytes));
            facts.add("holes", share(map.hole_bytes));
            facts.add("unwritten", share(map.unwritten_bytes));
            facts.add("compressed, encrypted or inline", share(map.encoded_bytes));
            facts.add("shared with other files", share(map.shared_bytes));
        }
        Capability::Degraded { why } => facts.add("extents", format!("unknown: {why}")),
    }
    if let Some(sample) = &file.sample {
        let of = |bytes: u64| percent(bytes as f64 / sample.sampled_bytes.max(1) as f64);
        facts.add("data sampled", Bytes(sample.sampled_bytes).to_string());
        facts.add("blocks of zeros", of(sample.zero_bytes));
        facts.add("left after LZ4", of(sample.lz4_bytes));
        facts.add("duplicate blocks", of(sample.duplicate_bytes));
    }
    facts.table()
}

/// An empty text as a dash.
fn known(text: String) -> String {
    if text.is_empty() { "–".to_owned() } else { text }
}

fn machine(manifest: &Manifest) -> Table {
    let host = &manifest.host;
    let mut facts = Facts::new("machine", "Host");
    facts.add("name", &host.hostname);
    facts.add("kernel", format!("Linux {} {}", host.kernel, host.architecture));
    facts.add("processors", known(format::processors(host)));
    facts.add("memory", Bytes(host.memory_bytes).to_string());
    facts.add("hypervisor", host.hypervisor.as_deref().unwrap_or("–"));
    if !host.databases_running.is_empty() {
        facts.add("databases running", host.databases_running.join(", "));
    }
    facts.table()
}

/// Full capabilities are named in one row; each degraded one has a row with its reason.
fn capabilities(manifest: &Manifest) -> Table {
    let mut facts = Facts::new("capabilities", "Capabilities");
    let mut full = Vec::new();
    for named in &manifest.capabilities {
        match &named.capability {
            Capability::Full => full.push(named.name.as_str()),
            Capability::Degraded { why } => facts.add(&named.name, format!("degraded: {why}")),
        }
    }
    if !full.is_empty() {
        facts.add("available", full.join(", "));
    }
    facts.table()
}

fn settings(manifest: &Manifest) -> Table {
    let mut facts = Facts::new("settings", "Settings");
    facts.add("command line", manifest.argv.join(" "));
    facts.add("seed", manifest.seed.to_string());
    for (name, value) in &manifest.settings {
        facts.add(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    facts.table()
}

const PROBES: &[Heading] = &[
    text("probe", "probe", "Its name."),
    text("observes", "observes", "What it observes."),
    text("unmeasured", "not measured", "Columns that are empty, and why."),
    count("ticks", "ticks", "How often it was read."),
    count("missed_ticks", "missed", "How often it was read too late."),
];

fn probes(probes: &[ProbeInfo]) -> Table {
    let mut table = Table::new("probes", "Probes", PROBES);
    for probe in probes {
        let columns = probe.columns.iter();
        let unmeasured: Vec<String> = columns
            .filter_map(|c| Some(format!("{} ({})", c.name, reason(c.unmeasured.as_ref()?))))
            .collect();
        table.push(row![
            &probe.probe,
            &probe.doc,
            unmeasured.join(", "),
            probe.ticks,
            probe.missed_ticks
        ]);
    }
    table
}

/// Why something was not measured, with the word that documents use.
pub fn reason(unmeasured: &Unmeasured) -> String {
    match unmeasured {
        Unmeasured::Off(why) => format!("off: {why}"),
        Unmeasured::NotInVersion(why) => format!("not in this version: {why}"),
        Unmeasured::NotPermitted(why) => format!("not permitted: {why}"),
        Unmeasured::NoEvidence(why) => format!("no evidence: {why}"),
    }
}

fn recording(manifest: &Manifest) -> Table {
    let mut facts = Facts::new("recording", "Recording");
    facts.add("id", &manifest.id);
    facts.add("format", &manifest.format);
    facts.add("Blockstone", &manifest.tool_version);
    facts.add("began", &manifest.started_at);
    facts.add("ended", manifest.ended_at.as_deref().unwrap_or("–"));
    for phase in &manifest.phases {
        if let Some(note) = &phase.note {
            facts.add(&phase.label, note);
        }
        if let Some(error) = &phase.first_error {
            facts.add(format!("{}: first error", phase.label), error);
        }
    }
    facts.table()
}
