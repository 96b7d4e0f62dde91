//! Links as people write them: `2x2Gb FC`, `GbE`, `100BaseT`, `PCIe 4.0 x4`, `SATA 6Gb/s`, and the
//! protocols over them.

use crate::verbs::claim::stated::{Path, Speed};
use blockstone_base::link::{Carried, LinkKind, Protocol};

use super::words::{Quantity, Words, is_one, number};

const FIBRE_CHANNEL: &[&str] = &["fc", "gfc", "fibrechannel"];
const ETHERNET: &[&str] = &["ethernet", "eth", "lan", "gbe", "gige"];
const PROTOCOLS: [(&[&str], Protocol); 7] = [
    (&["iscsi"], Protocol::Iscsi),
    (&["nfs", "nfsv3", "nfsv4", "dnfs"], Protocol::Nfs),
    (&["smb", "cifs", "smb3"], Protocol::Smb),
    (&["nvme/tcp", "nvme-tcp", "nvmetcp"], Protocol::NvmeTcp),
    (&["tcp", "tcp/ip"], Protocol::Tcp),
    (&["roce", "rocev2", "rdma", "nvme/rdma", "nvme/roce", "iser"], Protocol::Roce),
    (&["fcoe"], Protocol::Fcoe),
];
/// Payload of the frames that are called jumbo.
const JUMBO: u32 = 9_000;
const INFINIBAND: &[&str] = &["infiniband", "ib"];
const PCI_EXPRESS: &[&str] = &["pcie", "pci-express", "pci-e"];
/// Gb/s of four lanes, by the name of the generation.
const INFINIBAND_SPEEDS: [(&str, f64); 8] = [
    ("sdr", 10.0),
    ("ddr", 20.0),
    ("qdr", 40.0),
    ("fdr10", 41.25),
    ("fdr", 56.0),
    ("edr", 100.0),
    ("hdr", 200.0),
    ("ndr", 400.0),
];
/// GT/s per lane, from generation 1 on.
const PCI_EXPRESS_SPEEDS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
/// Gb/s, from SATA 1 on.
const SATA_SPEEDS: [f64; 3] = [1.5, 3.0, 6.0];
/// Words that people add after a link.
const THINGS: &[&str] = &[
    "hba",
    "hbas",
    "link",
    "links",
    "port",
    "ports",
    "path",
    "paths",
    "cable",
    "cables",
    "network",
    "fabric",
    "bandwidth",
    "connection",
    "nic",
    "nics",
    "card",
    "cards",
];

/// Reads a link, or several equal ones. `expected` means that the word before calls for a link:
/// then bits or bytes per second alone count as one too.
pub fn path(words: &mut Words<'_>, expected: bool) -> Option<Path> {
    words.attempt(|words| {
        let count = words.times().unwrap_or(1);
        let link = named(words).map(Speed::Of).or_else(|| plain(words, expected || count > 1))?;
        words.take_if(THINGS);
        Some(Path { count, link })
    })
}

/// Reads the name of a protocol: `iSCSI`, `NVMe/TCP`.
pub fn protocol(words: &mut Words<'_>) -> Option<Protocol> {
    words.attempt(|words| {
        let word = words.next()?;
        PROTOCOLS.iter().find(|(names, _)| is_one(word, names)).map(|(_, protocol)| *protocol)
    })
}

/// Reads the payload of a frame: `MTU 1500`, `MTU of 9000`, `jumbo frames`.
pub fn mtu(words: &mut Words<'_>) -> Option<u32> {
    words.attempt(|words| {
        if words.take_if(&["jumbo"]) {
            words.take_if(&["frames", "frame"]);
            return Some(JUMBO);
        }
        words.take_if(&["mtu"]).then_some(())?;
        words.take_if(&["of", "="]);
        let mtu = words.next()?.replace(',', "").parse().ok()?;
        (576..=65_520).contains(&mtu).then_some(mtu)
    })
}

fn named(words: &mut Words<'_>) -> Option<LinkKind> {
    words.attempt(with_speed_first).or_else(|| words.attempt(with_name_first))
}

/// Reads `2Gb FC`, `10GbE`, `1000BaseT`, `20 Gb InfiniBand`, `QDR IB`.
fn with_speed_first(words: &mut Words<'_>) -> Option<LinkKind> {
    if let Some((value, rest)) = words.peek().and_then(number) {
        let rest = rest.to_ascii_lowercase();
        let base = rest.trim_start_matches(['g', 'm']).starts_with("base");
        if base {
            words.next();
            let gigabits = if rest.starts_with('g') { value } else { value / 1e3 };
            return Some(LinkKind::ethernet(gigabits));
        }
        if is_one(&rest, &["gbe", "gige"]) {
            words.next();
            return Some(LinkKind::ethernet(value));
        }
        if is_one(&rest, &["gfc"]) {
            words.next();
            return Some(LinkKind::FibreChannel { gigabits: value });
        }
    }
    if let Some(gigabits) = words.attempt(infiniband_speed) {
        words.take_if(INFINIBAND);
        return Some(LinkKind::InfiniBand { gigabits, lanes: 4 });
    }
    let gigabits = gigabits(words)?;
    kind(words, Some(gigabits))
}

/// Reads `FC 8Gb`, `GbE`, `PCIe 4.0 x4`, `SATA`.
fn with_name_first(words: &mut Words<'_>) -> Option<LinkKind> {
    kind(words, None)
}

/// Reads the link whose name comes next; its speed came before the name, or follows it.
fn kind(words: &mut Words<'_>, before: Option<f64>) -> Option<LinkKind> {
    let name = words.next()?;
    let speed = |words: &mut Words<'_>| before.or_else(|| words.attempt(gigabits));
    if is_one(name, FIBRE_CHANNEL) || is_one(name, &["fibre", "fiber"]) {
        words.take_if(&["channel"]);
        return Some(LinkKind::FibreChannel { gigabits: speed(words)? });
    }
    if is_one(name, ETHERNET) {
        let implied = is_one(name, &["gbe", "gige"]).then_some(1.0);
        return Some(LinkKind::ethernet(speed(words).or(implied)?));
    }
    if let Some((_, protocol)) = PROTOCOLS.iter().find(|(names, _)| is_one(name, names)) {
        let carries = Carried { protocol: Some(*protocol), mtu: None };
        return Some(LinkKind::Ethernet { gigabits: speed(words)?, carries });
    }
    if is_one(name, INFINIBAND) {
        let speed = speed(words).or_else(|| words.attempt(infiniband_speed))?;
        return Some(LinkKind::InfiniBand { gigabits: speed, lanes: 4 });
    }
    if is_one(name, &["sas"]) {
        return Some(LinkKind::Sas { gigabits: speed(words)?, lanes: lanes(words).unwrap_or(1) });
    }
    let lower = name.to_ascii_lowercase();
    if let Some(generation) = lower.strip_prefix("sata") {
        let by_name = match generation {
            "1" | "i" => Some(SATA_SPEEDS[0]),
            "2" | "ii" => Some(SATA_SPEEDS[1]),
            "3" | "iii" => Some(SATA_SPEEDS[2]),
            "" => None,
            _ => return None,
        };
        let gigabits = by_name.or_else(|| speed(words)).or_else(|| {
            let numeral = words.next()?;
            let at = ["1", "2", "3"].iter().position(|it| *it == numeral)?;
            Some(SATA_SPEEDS[at])
        });
        return Some(LinkKind::Sata { gigabits: gigabits? });
    }
    let generation = PCI_EXPRESS.iter().find_map(|name| lower.strip_prefix(name))?;
    let generation = match generation {
        "" => words.next()?,
        digits => digits,
    };
    let digits = generation.to_ascii_lowercase();
    let digits = digits.trim_start_matches("gen").trim_end_matches(".0");
    let digits = if digits.is_empty() { words.next()? } else { digits };
    let at = digits.parse::<usize>().ok()?.checked_sub(1)?;
    let gigatransfers = *PCI_EXPRESS_SPEEDS.get(at)?;
    Some(LinkKind::PciExpress { gigatransfers, lanes: lanes(words)? })
}

fn infiniband_speed(words: &mut Words<'_>) -> Option<f64> {
    let word = words.next()?;
    INFINIBAND_SPEEDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|it| it.1)
}

/// Reads a number of lanes: `x4`.
fn lanes(words: &mut Words<'_>) -> Option<u32> {
    words.attempt(|words| {
        let lanes = words.next()?.strip_prefix(['x', '×'])?.parse().ok()?;
        (1..=32).contains(&lanes).then_some(lanes)
    })
}

/// Reads Gb/s as links are named: `2Gb`, `10 Gb/s`, `100Mb/s`, `8G`. Before or after the name of a
/// link, `1gb` is its speed too: no link is named after bytes.
fn gigabits(words: &mut Words<'_>) -> Option<f64> {
    if let Some((value, "G" | "g" | "gb" | "GB" | "gb/s" | "gbps")) = words.peek().and_then(number)
    {
        words.next();
        return Some(value);
    }
    match words.quantity()? {
        Quantity::Bits(bits) | Quantity::BitsPerS(bits) => Some(bits / 1e9),
        _ => None,
    }
}

/// Reads a speed without the name of a link.
fn plain(words: &mut Words<'_>, expected: bool) -> Option<Speed> {
    if !expected {
        return None;
    }
    match words.quantity()? {
        Quantity::Bits(bits) | Quantity::BitsPerS(bits) => {
            Some(Speed::Of(LinkKind::Plain { gigabits: bits / 1e9 }))
        }
        Quantity::BytesPerS(bytes) => Some(Speed::Stated(bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_known_by_the_names_people_use() {
        let cases = [
            ("2x2Gb FC", "2 × Fibre Channel 2 Gb/s", 413.3),
            ("2 x 2 Gb FC", "2 × Fibre Channel 2 Gb/s", 413.3),
            ("16GFC", "Fibre Channel 16 Gb/s", 1_653.0),
            ("8G FC HBA", "Fibre Channel 8 Gb/s", 826.5),
            ("Fibre Channel 4Gb/s", "Fibre Channel 4 Gb/s", 413.3),
            ("GbE", "Ethernet 1 Gb/s", 124.5),
            ("1gb Ethernet", "Ethernet 1 Gb/s", 124.5),
            ("10GB Ethernet", "Ethernet 10 Gb/s", 1_244.7),
            ("10GbE", "Ethernet 10 Gb/s", 1_244.7),
            ("100BaseT", "Ethernet 100 Mb/s", 12.4),
            ("10GBase-T", "Ethernet 10 Gb/s", 1_244.7),
            ("25 Gb/s iSCSI", "Ethernet 25 Gb/s iSCSI", 3_097.4),
            ("10Gb FCoE", "Ethernet 10 Gb/s FCoE", 1_200.0),
            ("100Gb RoCE", "Ethernet 100 Gb/s RoCE", 12_254.7),
            ("20Gb InfiniBand", "InfiniBand 20 Gb/s x4", 1_987.4),
            ("QDR IB", "InfiniBand 40 Gb/s x4", 3_974.8),
            ("PCIe 4.0 x4", "PCIe 16.0 GT/s x4", 7_838.6),
            ("PCIe gen3 x8", "PCIe 8.0 GT/s x8", 7_838.6),
            ("PCIe5 x4", "PCIe 32.0 GT/s x4", 15_677.3),
            ("SATA 6Gb/s", "SATA 6.0 Gb/s", 598.8),
            ("SATA3", "SATA 6.0 Gb/s", 598.8),
            ("SAS 12Gb x4", "SAS 12 Gb/s x4", 4_637.0),
            ("4 x 12Gb SAS", "4 × SAS 12 Gb/s", 4_637.0),
            ("20 Gb", "20 Gb/s", 2_500.0),
            ("400 MB/s", "400 MB/s", 400.0),
        ];
        for (text, name, megabytes) in cases {
            let mut words = Words::of(text);
            let path = path(&mut words, true).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((path.to_string().as_str(), words.peek()), (name, None), "{text}");
            let carries = f64::from(path.count) * path.link.bytes_per_s() / 1e6;
            assert!((carries - megabytes).abs() < 1.0, "{text}: {carries}");
        }
        for text in ["FC", "PCIe 4.0", "PCIe 9 x4", "512 MB", "0x2Gb FC", "SATA9", "InfiniBand"] {
            assert_eq!(path(&mut Words::of(text), true), None, "{text}");
        }
    }
}
