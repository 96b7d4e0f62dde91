//! The link to a device, where the kernel knows its speed: a ceiling that no transfer can pass.

use std::fs;
use std::path::{Path, PathBuf};

use blockstone_base::identity::Link;

use crate::proc::{entries, text, under};

/// Vendors of emulated PCI devices, whose link speeds limit nothing: Red Hat (QEMU, virtio),
/// `VMware`, Microsoft, Amazon, Google, Oracle (`VirtualBox`).
const EMULATED_VENDORS: [&str; 7] =
    ["0x1b36", "0x1af4", "0x15ad", "0x1414", "0x1d0f", "0x1ae0", "0x80ee"];

/// The slowest link between a device and the processor; the sum of several paths to an `NVMe` one.
pub fn of_device(root: &Path, directory: &Path) -> Option<Link> {
    let paths = nvme_controllers(directory);
    if paths.len() < 2 {
        return slowest(root, paths.first().map_or(directory, PathBuf::as_path));
    }
    let links: Option<Vec<Link>> = paths.iter().map(|path| slowest(root, path)).collect();
    let links = links?;
    Some(Link {
        description: format!("{} paths, {} each", links.len(), links[0].description),
        bytes_per_s: links.iter().map(|link| link.bytes_per_s).sum(),
        bytes_per_s_max: links.iter().map(|link| link.bytes_per_s_max).sum(),
        description_max: links[0].description_max.as_ref().map(|most| format!("{most} each")),
        source: links.iter().map(|link| link.source.as_str()).collect::<Vec<_>>().join(" "),
    })
}

/// With native multipath a namespace belongs to a subsystem, which links to its controllers.
fn nvme_controllers(directory: &Path) -> Vec<PathBuf> {
    let in_subsystem = |parent: &&Path| {
        parent.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvme-subsys"))
    };
    let Some(subsystem) = directory.ancestors().find(in_subsystem) else { return Vec::new() };
    let mut controllers: Vec<PathBuf> = entries(subsystem)
        .into_iter()
        .filter(|path| path.is_symlink() && path.join("transport").exists())
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    controllers.sort();
    controllers
}

fn slowest(root: &Path, directory: &Path) -> Option<Link> {
    // Below its root the tree may itself lie anywhere, so only the part beneath /sys counts.
    let devices = fs::canonicalize(under(root, "/sys/devices")).ok()?;
    directory
        .ancestors()
        .take_while(|ancestor| **ancestor != devices && ancestor.starts_with(&devices))
        .filter_map(|ancestor| {
            pcie(ancestor).or_else(|| sata(ancestor)).or_else(|| fc(root, ancestor))
        })
        .map(|(link, file)| {
            let shown =
                file.strip_prefix(&devices).map(|rest| Path::new("/sys/devices").join(rest));
            Link { source: shown.unwrap_or(file).display().to_string(), ..link }
        })
        .min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
}

/// The negotiated PCI Express link of a device or of a port above it. Payload is what the line code
/// leaves: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s (base specification, 4.2), and from
/// 64 GT/s 242 of every 256 bytes of a flit. Packet headers take a further 10 to 20 %.
fn pcie(directory: &Path) -> Option<(Link, PathBuf)> {
    let vendor = text(&directory.join("vendor"))?;
    if EMULATED_VENDORS.contains(&vendor.as_str()) {
        return None;
    }
    let file = directory.join("current_link_speed");
    let (gigatransfers, lanes) = pcie_rate(directory, "current")?;
    // The port above is the other end; where it is a part of the processor it may not say.
    let ends = [Some(directory), directory.parent()].into_iter().flatten();
    let able: Vec<(f64, u32)> = ends.filter_map(|end| pcie_rate(end, "max")).collect();
    let most = able.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)));
    let link = Link {
        description: pcie_name(gigatransfers, lanes),
        bytes_per_s: pcie_payload(gigatransfers, lanes),
        bytes_per_s_max: most.map(|(gigatransfers, lanes)| pcie_payload(gigatransfers, lanes)),
        description_max: most.map(|(gigatransfers, lanes)| pcie_name(gigatransfers, lanes)),
        source: String::new(),
    };
    Some((link, file))
}

/// Speed in GT/s and lanes of a PCI Express link: the `current` ones or the `max` of this end.
fn pcie_rate(directory: &Path, which: &str) -> Option<(f64, u32)> {
    let read = |what: &str| text(&directory.join(format!("{which}_link_{what}")));
    let lanes = read("width")?.parse().ok().filter(|&lanes| lanes > 0)?;
    Some((leading_number(&read("speed")?)?, lanes))
}

fn pcie_payload(gigatransfers: f64, lanes: u32) -> f64 {
    let payload = match gigatransfers {
        speed if speed <= 5.0 => 8.0 / 10.0,
        speed if speed < 64.0 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    gigatransfers * 1e9 * f64::from(lanes) * payload / 8.0
}

fn pcie_name(gigatransfers: f64, lanes: u32) -> String {
    format!("PCIe {gigatransfers:.1} GT/s x{lanes}")
}

/// The negotiated SATA link, coded 8b/10b: 6.0 Gb/s carry 600 MB/s.
fn sata(directory: &Path) -> Option<(Link, PathBuf)> {
    let port = directory.file_name()?.to_str()?.strip_prefix("ata")?;
    let port: u32 = port.parse().ok()?;
    let file = directory.join(format!("link{port}/ata_link/link{port}/sata_spd"));
    let gigabits = leading_number(&text(&file)?)?;
    let description = format!("SATA {gigabits:.1} Gb/s");
    Some((of_one_speed(description, gigabits * 1e9 * 0.8 / 8.0), file))
}

/// The negotiated speed of a Fibre Channel host port. Each generation is named after its payload:
/// nGFC carries n × 100 MB/s in each direction (FCIA speed map).
fn fc(root: &Path, directory: &Path) -> Option<(Link, PathBuf)> {
    let host = directory.file_name()?.to_str().filter(|name| name.starts_with("host"))?;
    let file = Path::new("/sys/class/fc_host").join(host).join("speed");
    let gigabits = leading_number(&text(&under(root, &file))?)?;
    let description = format!("Fibre Channel {gigabits:.0} Gb/s");
    Some((of_one_speed(description, gigabits * 1e8), file))
}

/// A link of which only the negotiated speed is known.
fn of_one_speed(description: String, bytes_per_s: f64) -> Link {
    let (bytes_per_s_max, description_max, source) = (None, None, String::new());
    Link { description, bytes_per_s, bytes_per_s_max, description_max, source }
}

/// The number at the start of `16.0 GT/s PCIe`, `6.0 Gbps`, `32 Gbit`; none for `Unknown`.
fn leading_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|&value: &f64| value > 0.0)
}
