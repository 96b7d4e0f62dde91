use super::*;

/// As on the machine on which these tests were written, shortened.
fn firecracker() -> Tree {
    let tree = Tree::new();
    tree.file("/proc/sys/kernel/hostname", "vm")
        .file("/proc/sys/kernel/osrelease", "6.18.44-fc-v657")
        .file("/sys/devices/system/cpu/online", "0-1")
        .file("/proc/self/status", "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1")
        .file("/proc/meminfo", "MemTotal:       24684092 kB\nMemFree:        23989824 kB")
        .file(
            "/proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\
             flags\t\t: fpu vme hypervisor lahf_lm\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\n\
             model name\t: AMD EPYC\nflags\t\t: fpu vme hypervisor lahf_lm",
        )
        .file(CLOCKS, "tsc kvm-clock ");
    tree
}

const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

#[test]
fn a_virtual_machine_without_firmware_tables() {
    let tree = firecracker();
    let host = host(tree.root());
    assert_eq!((host.hostname.as_str(), host.kernel.as_str()), ("vm", "6.18.44-fc-v657"));
    assert_eq!((host.cpu_model.as_str(), host.cpus), ("AMD EPYC", 2));
    assert_eq!((host.cpus_allowed_milli, host.memory_bytes), (2000, 24_684_092 * 1024));
    assert_eq!(host.hypervisor.as_deref(), Some("KVM"));
    assert_eq!(host.databases_running, Vec::<String>::new());
}

#[test]
fn affinity_and_quota_limit_the_processors() {
    let tree = firecracker();
    tree.file("/proc/self/status", "Cpus_allowed_list:\t1");
    assert_eq!(host(tree.root()).cpus_allowed_milli, 1000);
    // A list may name processors that are offline.
    tree.file("/proc/self/status", "Cpus_allowed_list:\t0-63");
    assert_eq!(host(tree.root()).cpus_allowed_milli, 2000);
    tree.file("/proc/self/cgroup", "0::/box")
        .mounts(&["31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"])
        .file("/sys/fs/cgroup/box/cpu.max", "75000 50000");
    assert_eq!(host(tree.root()).cpus_allowed_milli, 1500);
}

#[test]
fn hypervisors_are_named_by_firmware_clock_or_flag() {
    let seen = |vendor: &str, product: &str, clocks: &str| {
        let tree = firecracker();
        tree.file("/sys/class/dmi/id/sys_vendor", vendor)
            .file("/sys/class/dmi/id/product_name", product)
            .file(CLOCKS, clocks);
        host(tree.root()).hypervisor
    };
    for (vendor, product, clocks, name) in [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "kvm-clock tsc", "KVM"),
        ("QEMU", "Standard PC (i440FX + PIIX, 1996)", "tsc acpi_pm", "QEMU"),
        ("VMware, Inc.", "VMware7,1", "tsc acpi_pm", "VMware"),
        ("Microsoft Corporation", "Virtual Machine", "hyperv_clocksource_tsc_page", "Hyper-V"),
        ("Amazon EC2", "m6i.large", "kvm-clock tsc", "Amazon EC2"),
        ("Google", "Google Compute Engine", "kvm-clock tsc", "Google Compute Engine"),
        ("innotek GmbH", "VirtualBox", "tsc", "VirtualBox"),
        ("", "", "tsc hpet", "unnamed (the processor says there is one)"),
    ] {
        assert_eq!(seen(vendor, product, clocks).as_deref(), Some(name), "{vendor} {product}");
    }
    assert_eq!(seen("Amazon EC2", "c5.metal", "tsc"), None);
}

#[test]
fn a_machine_of_metal_has_no_hypervisor_whoever_made_it() {
    let tree = firecracker();
    tree.file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vmx")
        .file("/sys/class/dmi/id/sys_vendor", "Dell Inc.");
    assert_eq!(host(tree.root()).hypervisor, None);
    tree.file("/sys/hypervisor/type", "xen");
    assert_eq!(host(tree.root()).hypervisor.as_deref(), Some("Xen"));
}

#[test]
fn an_arm_machine_names_its_processor_in_its_own_way() {
    let tree = firecracker();
    tree.file(
        "/proc/cpuinfo",
        "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\
         CPU part\t: 0xd40",
    )
    .file("/sys/class/dmi/id/sys_vendor", "Amazon EC2")
    .file("/sys/class/dmi/id/product_name", "c7g.large");
    let graviton = host(tree.root());
    assert_eq!(graviton.cpu_model, "ARM implementer 0x41 part 0xd40");
    assert_eq!(graviton.hypervisor.as_deref(), Some("Amazon EC2"));
    tree.file("/proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0");
    assert_eq!(host(tree.root()).cpu_model, "Raspberry Pi 5 Model B Rev 1.0");
}

#[test]
fn running_databases_are_listed_once_each() {
    let tree = firecracker();
    for (pid, name) in [
        ("10", "postgres"),
        ("11", "postgres"),
        ("12", "ora_pmon_ORCL"),
        ("13", "ora_dbw0_ORCL"),
        ("14", "mariadbd"),
        ("15", "bash"),
        ("16", "clickhouse-serv"),
    ] {
        tree.file(&format!("/proc/{pid}/comm"), name);
    }
    tree.file("/proc/irq/comm", "mongod");
    assert_eq!(
        host(tree.root()).databases_running,
        ["clickhouse-serv", "mariadbd", "ora_pmon_ORCL", "postgres"]
    );
}

#[test]
fn the_type_of_a_machine_is_that_of_the_firmware_on_aws() {
    let seen = |vendor: &str, product: &str| {
        let tree = firecracker();
        tree.file("/sys/class/dmi/id/sys_vendor", vendor);
        tree.file("/sys/class/dmi/id/product_name", product);
        host(tree.root()).machine_type
    };
    assert_eq!(seen("Amazon EC2", "m6i.large").as_deref(), Some("m6i.large"));
    assert_eq!(seen("Xen", "HVM domU"), None);
    assert_eq!(seen("Google", "Google Compute Engine"), None);
    assert_eq!(seen("Dell Inc.", "PowerEdge R7.5"), None);
}

#[test]
fn clouds_are_named_by_firmware_alone() {
    use blockstone_base::identity::Cloud;
    let seen = |fields: &[(&str, &str)]| {
        let tree = firecracker();
        for (field, content) in fields {
            tree.file(&format!("/sys/class/dmi/id/{field}"), content);
        }
        host(tree.root()).cloud
    };
    let azure = "7783-7084-3265-9085-8269-3286-77";
    assert_eq!(
        seen(&[("sys_vendor", "Amazon EC2"), ("product_name", "m6i.large")]),
        Some(Cloud::Aws)
    );
    assert_eq!(
        seen(&[("sys_vendor", "Amazon EC2"), ("product_name", "c5.metal")]),
        Some(Cloud::Aws)
    );
    assert_eq!(seen(&[("sys_vendor", "Xen"), ("bios_version", "4.11.amazon")]), Some(Cloud::Aws));
    let google = [("sys_vendor", "Google"), ("product_name", "Google Compute Engine")];
    assert_eq!(seen(&google), Some(Cloud::Google));
    let hyper_v = [("sys_vendor", "Microsoft Corporation"), ("product_name", "Virtual Machine")];
    assert_eq!(seen(&hyper_v), None);
    assert_eq!(seen(&[hyper_v[0], hyper_v[1], ("chassis_asset_tag", azure)]), Some(Cloud::Azure));
    assert_eq!(seen(&[("sys_vendor", "Google"), ("product_name", "Kohaku")]), None);
    assert_eq!(seen(&[]), None);
}
