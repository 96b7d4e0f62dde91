//! Links as people write them: `2x2Gb FC`, `GbE`, `100BaseT`, `PCIe 4.0 x4`, `SATA 6Gb/s`, and the
//! protocols over them.

use crate::verbs::claim::stated::{Path, Speed};
use blockstone_base::link::{Carried, LinkKind, Protocol};

use super::units::{Unit, number};
use super::words::{Words, is_one};

const FIBRE_CHANNEL: &[&str] = &["fc", "gfc", "fcp", "fibrechannel", "fibre-channel"];
const ETHERNET: &[&str] = &["ethernet", "eth", "lan", "gbe", "gige", "network"];
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
const INFINIBAND_SPEEDS: [(&str, f64); 12] = [
    ("sdr", 10.0),
    ("ddr", 20.0),
    ("qdr", 40.0),
    ("fdr10", 41.25),
    ("fdr", 56.0),
    ("edr", 100.0),
    ("hdr", 200.0),
    ("ndr", 400.0),
    // Two lanes.
    ("hdr100", 100.0),
    ("hdr200", 200.0),
    ("ndr200", 200.0),
    ("ndr400", 400.0),
];
/// GT/s per lane, from generation 1 on.
const PCI_EXPRESS_SPEEDS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
/// Gb/s, from SAS-1 on.
const SAS_SPEEDS: [f64; 4] = [3.0, 6.0, 12.0, 24.0];
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
    "adapter",
    "adapters",
    "controller",
    "slot",
    "bus",
    "interface",
    "uplink",
    "uplinks",
    "switch",
];

/// Reads a link, or several equal ones. `expected` means that the word before calls for a link:
/// then bits or bytes per second alone count as one too.
pub fn path(words: &mut Words<'_>, expected: bool) -> Option<Path> {
    words.attempt(|words| {
        let count = words.times().or_else(|| words.small_number());
        words.take_if(&["x", "×"]);
        // The width of InfiniBand is written before its speed: `4x EDR`.
        if let Some(lanes @ (4 | 8 | 12)) = count
            && let Some(per_lane) = words.attempt(infiniband_lane)
        {
            words.take_if(INFINIBAND);
            words.take_if(THINGS);
            let gigabits = per_lane * f64::from(lanes);
            let link = Speed::Of(LinkKind::InfiniBand { gigabits, lanes });
            return Some(Path { count: 1, link });
        }
        let several = count.is_some_and(|count| count > 1);
        let link = named(words).map(Speed::Of).or_else(|| plain(words, expected || several))?;
        words.take_if(THINGS);
        let count = count.or_else(|| words.attempt(number_after)).unwrap_or(1);
        words.take_if(THINGS);
        Some(Path { count, link })
    })
}

/// Reads `x 2` or `2 ports` after a link.
fn number_after(words: &mut Words<'_>) -> Option<u32> {
    let signed = |words: &mut Words<'_>| words.next()?.strip_prefix(['x', '×'])?.parse().ok();
    if let Some(count) = words.attempt(signed) {
        return Some(count).filter(|count| (1..=1_024).contains(count));
    }
    let of_sign = words.take_if(&["x", "×"]);
    let count = words.next()?.parse().ok().filter(|count| (1..=1_024).contains(count))?;
    (of_sign || words.is_next(THINGS)).then_some(count)
}

/// Returns the reason why the next words are not a link although they name a kind.
pub fn incomplete(words: &Words<'_>) -> Option<String> {
    let mut words = words.clone();
    let name = words.next()?;
    let lower = name.to_ascii_lowercase();
    if PCI_EXPRESS.iter().any(|known| lower.starts_with(known)) {
        return Some(format!("`{name}` has no generation and number of lanes, as in PCIe 4.0 x4"));
    }
    let known = [FIBRE_CHANNEL, ETHERNET, INFINIBAND, &["fibre", "fiber", "sas", "sata"]];
    let is_known = known.iter().any(|names| is_one(name, names));
    is_known.then(|| format!("`{name}` has no speed, as in 8Gb FC or 10GbE"))
}

/// Reads the name of a protocol: `iSCSI`, `NVMe/TCP`.
pub fn protocol(words: &mut Words<'_>) -> Option<Protocol> {
    words.attempt(|words| {
        let word = words.next()?;
        let found = PROTOCOLS.iter().find(|(names, _)| is_one(word, names))?.1;
        words.take_if(&["v3", "v4", "v4.0", "v4.1", "v4.2", "3.1.1"]);
        Some(found)
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

/// Reads `2Gb FC`, `10GbE`, `1000BaseT`, `20 Gb InfiniBand`, `QDR IB`, `gigabit LAN`, `Gen4 x4`.
fn with_speed_first(words: &mut Words<'_>) -> Option<LinkKind> {
    if let Some((value, rest)) = words.peek().and_then(number) {
        let (value, rest) = (value.low, rest.to_ascii_lowercase());
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
    if words.take_all(&["fast", "ethernet"]) {
        return Some(LinkKind::ethernet(0.1));
    }
    if let Some(gigabits) = words.attempt(infiniband_speed) {
        words.take_if(INFINIBAND);
        words.take_if(&["x4", "4x"]);
        return Some(LinkKind::InfiniBand { gigabits, lanes: 4 });
    }
    if let Some(gigatransfers) = words.attempt(generation) {
        let lanes = lanes(words)?;
        return Some(LinkKind::PciExpress { gigatransfers, lanes });
    }
    // `200Gb HDR InfiniBand`.
    let of_lanes = words.attempt(|words| Some((gigabits(words)?, infiniband_lane(words)?)));
    if let Some((gigabits, lane)) = of_lanes {
        words.take_if(INFINIBAND);
        let lanes = (gigabits / lane).round().max(1.0) as u32;
        return Some(LinkKind::InfiniBand { gigabits, lanes });
    }
    let is_word = words.is_next(&["gigabit"]);
    let gigabits = gigabits(words)?;
    words.attempt(|words| kind(words, Some(gigabits))).or_else(|| {
        // `over gigabit` is Ethernet.
        is_word.then(|| LinkKind::ethernet(gigabits))
    })
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
        words.take_if(&["x4", "4x"]);
        return Some(LinkKind::InfiniBand { gigabits: speed, lanes: 4 });
    }
    let lower = name.to_ascii_lowercase();
    if let Some(generation) = lower.strip_prefix("sas") {
        let at = ["-1", "-2", "-3", "-4"].iter().position(|it| it.ends_with(generation));
        let gigabits = match (generation, at) {
            ("", _) => speed(words)?,
            (_, Some(at)) => SAS_SPEEDS[at],
            _ => return None,
        };
        return Some(LinkKind::Sas { gigabits, lanes: lanes(words).unwrap_or(1) });
    }
    if let Some(generation) = lower.strip_prefix("sata") {
        let by_name = match generation.trim_start_matches('-') {
            "1" | "i" => Some(SATA_SPEEDS[0]),
            "2" | "ii" => Some(SATA_SPEEDS[1]),
            "3" | "iii" => Some(SATA_SPEEDS[2]),
            "" => None,
            _ => return None,
        };
        let gigabits = by_name.or_else(|| speed(words)).or_else(|| {
            let numeral = words.next()?;
            let names = [["1", "i"], ["2", "ii"], ["3", "iii"]];
            let at =
                names.iter().position(|names| is_one(numeral.trim_end_matches(".0"), names))?;
            Some(SATA_SPEEDS[at])
        });
        return Some(LinkKind::Sata { gigabits: gigabits? });
    }
    let rest = PCI_EXPRESS.iter().find_map(|name| lower.strip_prefix(name))?;
    let before = if rest.is_empty() { lanes(words) } else { None };
    let gigatransfers = match rest {
        "" => generation(words)?,
        rest => generation_of(rest)?,
    };
    Some(LinkKind::PciExpress { gigatransfers, lanes: before.or_else(|| lanes(words))? })
}

/// Reads the generation of PCI Express: `4.0`, `Gen4`, `Gen 4`.
fn generation(words: &mut Words<'_>) -> Option<f64> {
    let word = words.next()?.to_ascii_lowercase();
    if matches!(word.as_str(), "gen" | "generation") {
        return generation_of(words.next()?);
    }
    if word.starts_with("gen")
        || is_one(words.last_but(1), PCI_EXPRESS)
        || is_lanes(words.last_but(1))
    {
        return generation_of(&word);
    }
    None
}

fn generation_of(word: &str) -> Option<f64> {
    let word = word.to_ascii_lowercase();
    let digits = word.trim_start_matches("gen").trim_end_matches(".0");
    PCI_EXPRESS_SPEEDS.get(digits.parse::<usize>().ok()?.checked_sub(1)?).copied()
}

fn is_lanes(word: &str) -> bool {
    word.strip_prefix(['x', '×']).is_some_and(|lanes| lanes.parse::<u32>().is_ok())
}

fn infiniband_lane(words: &mut Words<'_>) -> Option<f64> {
    infiniband_speed(words).map(|four| four / 4.0)
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

/// Reads Gb/s as links are named: `2Gb`, `10 Gb/s`, `100Mb/s`, `8G`, `10 gig`, `gigabit`. Before or
/// after the name of a link, `1gb` is its speed too: no link is named after bytes.
fn gigabits(words: &mut Words<'_>) -> Option<f64> {
    const GIGA: &[&str] = &["g", "gb", "gb/s", "gbps", "gig", "gigabit", "gbit"];
    if words.take_if(&["gigabit", "gig"]) {
        return Some(1.0);
    }
    let (value, suffix) = words.peek().and_then(number)?;
    if is_one(suffix, GIGA) {
        words.next();
        return Some(value.low);
    }
    if suffix.is_empty()
        && words
            .attempt(|words| {
                words.next();
                words.take_if(&["g", "gig", "gigabit"]).then_some(())
            })
            .is_some()
    {
        return Some(value.low);
    }
    let found = words.quantity()?;
    let is_bits = matches!(found.unit, Unit::Bits | Unit::BitsPerS);
    (is_bits && found.span.is_exact()).then_some(found.span.low / 1e9)
}

/// Reads a speed without the name of a link.
fn plain(words: &mut Words<'_>, expected: bool) -> Option<Speed> {
    if !expected {
        return None;
    }
    let found = words.quantity()?;
    let speed = found.span.low;
    if !found.span.is_exact() {
        return None;
    }
    match found.unit {
        Unit::Bits | Unit::BitsPerS => Some(Speed::Of(LinkKind::Plain { gigabits: speed / 1e9 })),
        Unit::BytesPerS => Some(Speed::Stated(speed)),
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
            ("2x2Gb FC", "2 × Fibre Channel 2 Gb/s", 413.3),
            ("8x8Gb FCP adapters", "8 × Fibre Channel 8 Gb/s", 6_612.2),
            ("dual-port 16Gb FC HBA", "2 × Fibre Channel 16 Gb/s", 3_306.1),
            ("two 8Gb FC HBAs", "2 × Fibre Channel 8 Gb/s", 1_653.0),
            ("16Gb FC x 2", "2 × Fibre Channel 16 Gb/s", 3_306.1),
            ("10GbE x2", "2 × Ethernet 10 Gb/s", 2_489.5),
            ("8Gb FC 4 ports", "4 × Fibre Channel 8 Gb/s", 3_306.1),
            ("Gigabit Ethernet", "Ethernet 1 Gb/s", 124.5),
            ("gigabit LAN", "Ethernet 1 Gb/s", 124.5),
            ("gigabit", "Ethernet 1 Gb/s", 124.5),
            ("200Gb HDR InfiniBand", "InfiniBand 200 Gb/s x4", 24_842.3),
            ("10-gigabit Ethernet", "Ethernet 10 Gb/s", 1_244.7),
            ("10 gig network", "Ethernet 10 Gb/s", 1_244.7),
            ("25G Ethernet", "Ethernet 25 Gb/s", 3_111.9),
            ("Fast Ethernet", "Ethernet 100 Mb/s", 12.4),
            ("2.5GbE", "Ethernet 2.5 Gb/s", 311.2),
            ("4x QDR InfiniBand", "InfiniBand 40 Gb/s x4", 3_974.8),
            ("4x EDR", "InfiniBand 100 Gb/s x4", 12_421.2),
            ("2x HDR IB", "2 × InfiniBand 200 Gb/s x4", 49_684.6),
            ("HDR100 InfiniBand", "InfiniBand 100 Gb/s x4", 12_421.2),
            ("PCIe x4 Gen4", "PCIe 16.0 GT/s x4", 7_838.6),
            ("PCIe Gen 4.0 x4", "PCIe 16.0 GT/s x4", 7_838.6),
            ("Gen4 x4", "PCIe 16.0 GT/s x4", 7_838.6),
            ("4x PCIe 5.0 x4", "4 × PCIe 32.0 GT/s x4", 62_709.0),
            ("PCIe 6.0 x16", "PCIe 64.0 GT/s x16", 117_655.3),
            ("SATA III", "SATA 6.0 Gb/s", 598.8),
            ("SATA II", "SATA 3.0 Gb/s", 299.4),
            ("SAS-3", "SAS 12 Gb/s", 1_159.2),
            ("SAS4 x4", "SAS 24 Gb/s x4", 9_273.9),
        ];
        for (text, name, megabytes) in cases {
            let mut words = Words::of(text);
            let path = path(&mut words, true).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((path.to_string().as_str(), words.peek()), (name, None), "{text}");
            let carries = f64::from(path.count) * path.link.bytes_per_s() / 1e6;
            assert!((carries - megabytes).abs() < 1.0, "{text}: {carries}");
            let Speed::Of(kind) = path.link else { continue };
            assert!(kind.is_defined(), "{text}");
        }
        for text in ["FC", "PCIe 4.0", "PCIe 9 x4", "512 MB", "0x2Gb FC", "SATA9", "InfiniBand"] {
            assert_eq!(path(&mut Words::of(text), true), None, "{text}");
        }
    }
}
