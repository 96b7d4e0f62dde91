use blockstone_base::identity::Link;

use super::*;

fn link_of(tree: &Tree, directory: &str) -> Option<Link> {
    let resolved = fs::canonicalize(proc::under(tree.root(), directory)).unwrap();
    link::of_device(tree.root(), &resolved)
}

fn pci(tree: &Tree, directory: &str, vendor: &str, speed: &str, lanes: &str) {
    tree.file(&format!("{directory}/vendor"), vendor)
        .file(&format!("{directory}/current_link_speed"), speed)
        .file(&format!("{directory}/current_link_width"), lanes);
}

/// Share of the longest PCI Express packet that is payload.
const PACKET: f64 = 4_096.0 / 4_116.0;
const PORT: &str = "/sys/devices/pci0000:00/0000:00:01.0";
const NVME: &str = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";

#[test]
fn an_nvme_drive_is_as_fast_as_its_lanes_and_its_line_code() {
    for (speed, lanes, bytes_per_s) in [
        ("2.5 GT/s PCIe", "4", 1e9),
        ("5.0 GT/s PCIe", "4", 2e9),
        ("8.0 GT/s PCIe", "4", 3.938_461e9),
        ("16.0 GT/s PCIe", "4", 7.876_923e9),
        ("32 GT/s", "2", 7.876_923e9),
        // In flits a packet has 8 bytes less of its own.
        ("64.0 GT/s PCIe", "4", 29.5e9 * 4_116.0 / 4_108.0),
    ] {
        let tree = Tree::new();
        pci(&tree, NVME, "0x144d", speed, lanes);
        let disk = format!("{NVME}/nvme/nvme0/nvme0n1");
        tree.disk(&disk, "259:0", 2048);
        let link = link_of(&tree, &disk).unwrap();
        let expected = bytes_per_s * PACKET;
        assert!((link.bytes_per_s / expected - 1.0).abs() < 1e-6, "{speed}: {link:?}");
        assert_eq!(link.source, format!("{NVME}/current_link_speed"));
    }
}

#[test]
fn a_narrow_port_above_the_drive_is_the_limit() {
    let tree = Tree::new();
    pci(&tree, PORT, "0x8086", "8.0 GT/s PCIe", "2");
    pci(&tree, NVME, "0x144d", "16.0 GT/s PCIe", "4");
    let disk = format!("{NVME}/nvme/nvme0/nvme0n1");
    tree.disk(&disk, "259:0", 2048).partition(&format!("{disk}/nvme0n1p1"), "259:1", 1024);
    let link = link_of(&tree, &format!("{disk}/nvme0n1p1")).unwrap();
    assert_eq!(link.description, "PCIe 8.0 GT/s x2");
    assert_eq!(link.source, format!("{PORT}/current_link_speed"));
}

#[test]
fn emulated_devices_have_no_link_worth_the_name() {
    for vendor in EMULATED {
        let tree = Tree::new();
        pci(&tree, NVME, vendor, "2.5 GT/s PCIe", "1");
        tree.disk(&format!("{NVME}/virtio1/block/vda"), "254:0", 2048);
        assert_eq!(link_of(&tree, &format!("{NVME}/virtio1/block/vda")), None, "{vendor}");
    }
    let tree = Tree::new();
    pci(&tree, NVME, "0x144d", "Unknown", "63");
    tree.disk(&format!("{NVME}/nvme/nvme0/nvme0n1"), "259:0", 2048);
    assert_eq!(link_of(&tree, &format!("{NVME}/nvme/nvme0/nvme0n1")), None);
}

const EMULATED: [&str; 3] = ["0x1af4", "0x1b36", "0x1d0f"];

#[test]
fn sata_carries_eight_bits_in_ten_and_the_controller_may_be_faster() {
    let tree = Tree::new();
    let port = "/sys/devices/pci0000:00/0000:00:17.0/ata3";
    pci(&tree, "/sys/devices/pci0000:00/0000:00:17.0", "0x8086", "8.0 GT/s PCIe", "2");
    let disk = format!("{port}/host2/target2:0:0/2:0:0:0/block/sdc");
    tree.file(&format!("{port}/link3/ata_link/link3/sata_spd"), "6.0 Gbps")
        .file(&format!("{port}/host2/target2:0:0/2:0:0:0/model"), "Samsung SSD 870 ")
        .file(&format!("{port}/host2/target2:0:0/2:0:0:0/vendor"), "ATA     ")
        .link(&format!("{disk}/device"), &format!("{port}/host2/target2:0:0/2:0:0:0"))
        .disk(&disk, "8:32", 2048);
    let link = link_of(&tree, &disk).unwrap();
    assert_eq!(link.description, "SATA 6.0 Gb/s");
    assert!((link.bytes_per_s - 600e6 * 8_192.0 / 8_208.0).abs() < 1.0, "{link:?}");
    let device = SurveyedPath { kind: PathKind::BlockDevice, ..directory("/dev/sdc", (8, 32), 24) };
    let target = describe(tree.root(), &device);
    assert_eq!(target.devices[0].model.as_deref(), Some("ATA Samsung SSD 870"));
}

#[test]
fn fibre_channel_carries_what_full_frames_leave() {
    let tree = Tree::new();
    let port = "/sys/devices/pci0000:00/0000:05:00.0";
    pci(&tree, port, "0x1077", "8.0 GT/s PCIe", "8");
    let disk = format!("{port}/host7/rport-7:0-0/target7:0:0/7:0:0:1/block/sdd");
    tree.disk(&disk, "8:48", 2048).file("/sys/class/fc_host/host7/speed", "16 Gbit");
    let link = link_of(&tree, &disk).unwrap();
    assert_eq!(link.description, "Fibre Channel 16 Gb/s");
    assert!((link.bytes_per_s - 1.7e9 * 2_112.0 / 2_172.0).abs() < 1.0, "{link:?}");
    assert_eq!(link.source, "/sys/class/fc_host/host7/speed");
}

#[test]
fn paths_of_an_nvme_subsystem_add_up() {
    let tree = Tree::new();
    let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    let disk = format!("{subsystem}/nvme0n1");
    tree.disk(&disk, "259:0", 2048);
    for (index, address) in ["0000:01:00.0", "0000:02:00.0"].into_iter().enumerate() {
        let function = format!("/sys/devices/pci0000:00/{address}");
        pci(&tree, &function, "0x144d", "16.0 GT/s PCIe", "2");
        tree.file(&format!("{function}/nvme/nvme{index}/transport"), "pcie")
            .link(&format!("{subsystem}/nvme{index}"), &format!("{function}/nvme/nvme{index}"));
    }
    let link = link_of(&tree, &disk).unwrap();
    assert_eq!(link.description, "2 paths, PCIe 16.0 GT/s x2 each");
    assert!((link.bytes_per_s / (7.876_923e9 * PACKET) - 1.0).abs() < 1e-6);
}

#[test]
fn what_both_ends_of_a_link_could_carry_is_known() {
    let most = |device: (&str, &str), port: Option<(&str, &str)>| {
        let tree = Tree::new();
        let max = |directory: &str, (speed, lanes): (&str, &str)| {
            tree.file(&format!("{directory}/max_link_speed"), speed)
                .file(&format!("{directory}/max_link_width"), lanes);
        };
        pci(&tree, PORT, "0x8086", "8.0 GT/s PCIe", "2");
        pci(&tree, NVME, "0x144d", "8.0 GT/s PCIe", "2");
        max(NVME, device);
        if let Some(port) = port {
            max(PORT, port);
        }
        let disk = format!("{NVME}/nvme/nvme0/nvme0n1");
        tree.disk(&disk, "259:0", 2048);
        link_of(&tree, &disk).unwrap().description_max
    };
    let fast = ("16.0 GT/s PCIe", "4");
    assert_eq!(most(fast, Some(fast)).as_deref(), Some("PCIe 16.0 GT/s x4"));
    let old_slot = ("8.0 GT/s PCIe", "16");
    assert_eq!(most(fast, Some(old_slot)).as_deref(), Some("PCIe 8.0 GT/s x4"));
    assert_eq!(most(fast, None).as_deref(), Some("PCIe 16.0 GT/s x4"));
    assert_eq!(most(("Unknown", "255"), None), None);
}
