//! The link to a device, if the kernel knows its speed: a ceiling that no transfer can exceed.

use std::fs;
use std::path::{Path, PathBuf};

use blockstone_base::identity::Link;
use blockstone_base::link::LinkKind;

use crate::proc::{entries, text, under};

/// Vendors of emulated PCI devices, whose link speeds limit nothing: Red Hat (QEMU, virtio),
/// `VMware`, Microsoft, Amazon, Google, Oracle (`VirtualBox`).
const EMULATED_VENDORS: [&str; 7] =
    ["0x1b36", "0x1af4", "0x15ad", "0x1414", "0x1d0f", "0x1ae0", "0x80ee"];

/// Returns the slowest link between a device and the processor; for an `NVMe` device with several
/// paths, their sum.
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

/// Returns the controllers of a namespace. With native multipath it belongs to a subsystem, which
/// has links to its controllers.
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
    // The root may itself be anywhere, so only the part of the path beneath /sys counts.
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

/// Returns the negotiated PCI Express link of a device or of a port above it. Packet headers take a
/// further 10 to 20 % of its payload.
fn pcie(directory: &Path) -> Option<(Link, PathBuf)> {
    let vendor = text(&directory.join("vendor"))?;
    if EMULATED_VENDORS.contains(&vendor.as_str()) {
        return None;
    }
    let file = directory.join("current_link_speed");
    let (gigatransfers, lanes) = pcie_rate(directory, "current")?;
    // The port above is the other end; if it is part of the processor it may not report this.
    let ends = [Some(directory), directory.parent()].into_iter().flatten();
    let able: Vec<(f64, u32)> = ends.filter_map(|end| pcie_rate(end, "max")).collect();
    let most = able.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)));
    let kind = LinkKind::PciExpress { gigatransfers, lanes };
    let most = most.map(|(gigatransfers, lanes)| LinkKind::PciExpress { gigatransfers, lanes });
    let link = Link {
        bytes_per_s_max: most.map(LinkKind::bytes_per_s),
        description_max: most.map(|most| most.to_string()),
        ..of_one_speed(kind)
    };
    Some((link, file))
}

/// Returns speed in GT/s and lanes of a PCI Express link: the `current` ones or the `max` of this
/// end.
fn pcie_rate(directory: &Path, which: &str) -> Option<(f64, u32)> {
    let read = |what: &str| text(&directory.join(format!("{which}_link_{what}")));
    let lanes = read("width")?.parse().ok().filter(|&lanes| lanes > 0)?;
    Some((leading_number(&read("speed")?)?, lanes))
}

/// Returns the negotiated SATA link.
fn sata(directory: &Path) -> Option<(Link, PathBuf)> {
    let port = directory.file_name()?.to_str()?.strip_prefix("ata")?;
    let port: u32 = port.parse().ok()?;
    let file = directory.join(format!("link{port}/ata_link/link{port}/sata_spd"));
    let gigabits = leading_number(&text(&file)?)?;
    Some((of_one_speed(LinkKind::Sata { gigabits }), file))
}

/// Returns the negotiated speed of a Fibre Channel host port.
fn fc(root: &Path, directory: &Path) -> Option<(Link, PathBuf)> {
    let host = directory.file_name()?.to_str().filter(|name| name.starts_with("host"))?;
    let file = Path::new("/sys/class/fc_host").join(host).join("speed");
    let gigabits = leading_number(&text(&under(root, &file))?)?;
    Some((of_one_speed(LinkKind::FibreChannel { gigabits }), file))
}

/// Returns a link of which only the negotiated speed is known.
fn of_one_speed(kind: LinkKind) -> Link {
    Link {
        description: kind.to_string(),
        bytes_per_s: kind.bytes_per_s(),
        bytes_per_s_max: None,
        description_max: None,
        source: String::new(),
    }
}

/// Parses the number at the start of `16.0 GT/s PCIe`, `6.0 Gbps`, `32 Gbit`; `None` for `Unknown`.
fn leading_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|&value: &f64| value > 0.0)
}
