//! The machine: its processors, memory and hypervisor, and the databases already running on it.

use std::path::{Path, PathBuf};

use blockstone_base::identity::{Cloud, Host};

use crate::cgroup::Groups;
use crate::proc::{cpus_of_list, entries, meminfo_bytes, name_of, own_status, text, under};

/// Command names of database servers, as the kernel keeps them (15 bytes).
const DATABASES: [&str; 14] = [
    "postgres",
    "postmaster",
    "mysqld",
    "mariadbd",
    "mongod",
    "sqlservr",
    "db2sysc",
    "hdbindexserver",
    "redis-server",
    "valkey-server",
    "clickhouse-serv",
    "cockroach",
    "scylla",
    "etcd",
];

/// Oracle has one such process per instance, with the instance's name at the end.
const ORACLE_PMON: [&str; 2] = ["ora_pmon_", "asm_pmon_"];

/// Text that a hypervisor writes into the firmware's vendor or product field, and its name.
const DMI_HYPERVISORS: [(&str, &str); 12] = [
    ("Amazon EC2", "Amazon EC2"),
    ("Google", "Google Compute Engine"),
    ("Virtual Machine", "Hyper-V"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("Xen", "Xen"),
    ("HVM domU", "Xen"),
    ("KVM", "KVM"),
    ("QEMU", "KVM"),
    ("OpenStack", "KVM (OpenStack)"),
    ("Alibaba Cloud", "KVM (Alibaba Cloud)"),
    ("Parallels", "Parallels"),
];

/// Paravirtual clocks, which reveal the hypervisor if the firmware does not name it.
const CLOCK_HYPERVISORS: [(&str, &str); 3] =
    [("kvm-clock", "KVM"), ("hyperv_clocksource", "Hyper-V"), ("xen", "Xen")];

/// Surveys the machine whose files are below `root`. What cannot be read stays empty or zero.
pub fn host(root: &Path) -> Host {
    let read = |path: &str| text(&under(root, path));
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let listed = cpuinfo.lines().filter(|line| line.starts_with("processor")).count() as u32;
    let online = read("/sys/devices/system/cpu/online").map(|list| count(&list));
    let cpus = online.filter(|&cpus| cpus > 0).unwrap_or(listed);
    Host {
        hostname: read("/proc/sys/kernel/hostname").unwrap_or_default(),
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: cpu_model(root, &cpuinfo),
        cpus,
        cpus_allowed_milli: cpus_allowed_milli(root, cpus),
        memory_bytes: meminfo_bytes(root, "MemTotal:").unwrap_or_default(),
        hypervisor: hypervisor(root, &cpuinfo),
        cloud: cloud(root),
        machine_type: machine_type(root),
        processors: crate::processors::describe(root),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        databases_running: databases(root),
    }
}

fn cpu_model(root: &Path, cpuinfo: &str) -> String {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':'))
        })?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let arm = || {
        Some(format!("ARM implementer {} part {}", field("CPU implementer")?, field("CPU part")?))
    };
    field("model name")
        .or_else(|| text(&under(root, "/proc/device-tree/model")))
        .or_else(arm)
        .unwrap_or_default()
}

fn cpus_allowed_milli(root: &Path, cpus: u32) -> u32 {
    let allowed = own_status(root, "Cpus_allowed_list:").map_or(cpus, |list| count(&list));
    let quota = Groups::read(root).cpu_quota_milli().unwrap_or(u32::MAX);
    (allowed.min(cpus) * 1000).min(quota)
}

fn count(cpus: &str) -> u32 {
    cpus_of_list(cpus).len() as u32
}

/// Returns the type of a machine of AWS on Nitro, whose firmware tables name it as the product.
fn machine_type(root: &Path) -> Option<String> {
    let dmi = |field: &str| text(&under(root, "/sys/class/dmi/id").join(field));
    let product = dmi("product_name").filter(|_| dmi("sys_vendor").as_deref() == Some(AMAZON))?;
    product.contains('.').then_some(product)
}

const AMAZON: &str = "Amazon EC2";

/// All Azure machines have this asset tag; Hyper-V elsewhere has another. Source: cloud-init's
/// `DataSourceAzure`.
const AZURE_ASSET_TAG: &str = "7783-7084-3265-9085-8269-3286-77";

/// Returns the cloud, from firmware tables, which rented bare-metal machines have too. No network
/// requests are made.
fn cloud(root: &Path) -> Option<Cloud> {
    let dmi = |field: &str| text(&under(root, "/sys/class/dmi/id").join(field)).unwrap_or_default();
    let vendor = dmi("sys_vendor");
    // Under Xen only the version shows it: `4.11.amazon`.
    if vendor == AMAZON || dmi("bios_version").ends_with("amazon") {
        Some(Cloud::Aws)
    } else if vendor == "Google" && dmi("product_name").starts_with("Google") {
        Some(Cloud::Google)
    } else if dmi("chassis_asset_tag") == AZURE_ASSET_TAG {
        Some(Cloud::Azure)
    } else {
        None
    }
}

fn hypervisor(root: &Path, cpuinfo: &str) -> Option<String> {
    if let Some(kind) = text(&under(root, "/sys/hypervisor/type")) {
        return Some(if kind == "xen" { "Xen".to_owned() } else { kind });
    }
    let dmi = |field: &str| text(&under(root, "/sys/class/dmi/id").join(field)).unwrap_or_default();
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let x86 = cpuinfo.contains("vendor_id");
    let flagged = cpuinfo
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    // The same cloud vendors also rent bare-metal machines: on x86 the processor's flag decides,
    // and elsewhere the product name of such a machine says so.
    if x86 && !flagged || product.contains("metal") {
        return None;
    }
    let clock = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = text(&under(root, clock)).unwrap_or_default();
    let named = |table: &[(&str, &str)], given: &str| {
        table.iter().find(|(mark, _)| given.contains(mark)).map(|&(_, name)| name.to_owned())
    };
    // QEMU's firmware is the same with and without KVM; only KVM provides its guests with a clock.
    if vendor == "QEMU" && !clocks.contains("kvm-clock") {
        return Some("QEMU".to_owned());
    }
    named(&DMI_HYPERVISORS, &vendor)
        .or_else(|| named(&DMI_HYPERVISORS, &product))
        .or_else(|| named(&CLOCK_HYPERVISORS, &clocks))
        .or_else(|| flagged.then(|| "unnamed (the processor says there is one)".to_owned()))
}

fn databases(root: &Path) -> Vec<String> {
    let is_process = |entry: &PathBuf| {
        name_of(entry).is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut found: Vec<String> = entries(&under(root, "/proc"))
        .into_iter()
        .filter(is_process)
        .filter_map(|entry| text(&entry.join("comm")))
        .filter(|name| {
            DATABASES.contains(&name.as_str())
                || ORACLE_PMON.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}
