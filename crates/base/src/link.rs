//! Capacity of links: payload bytes per second in one direction, after the line code and the
//! headers of full frames. It is an upper bound: shorter frames, commands and acknowledgements take
//! more. The tables of this file are the only place where a limit and its source stand.

use std::fmt;

use crate::named;

/// A link in the usual notation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkKind {
    /// Gb/s in the name: 2GFC, 16GFC.
    FibreChannel {
        gigabits: f64,
    },
    /// Named after the rate that remains after its line code.
    Ethernet {
        gigabits: f64,
        carries: Carried,
    },
    /// Named after its signalling. `gigabits` is over all lanes.
    InfiniBand {
        gigabits: f64,
        lanes: u32,
    },
    PciExpress {
        gigatransfers: f64,
        lanes: u32,
    },
    Sata {
        gigabits: f64,
    },
    Sas {
        gigabits: f64,
        lanes: u32,
    },
    /// Bits per second of which nothing else is known.
    Plain {
        gigabits: f64,
    },
}

/// A kind of link: its generations, and the longest frame that they share.
#[derive(Debug)]
pub struct Family {
    pub name: &'static str,
    pub generations: &'static [Generation],
    /// Payload of a full frame, and the bytes that the frame and the gap before the next one take.
    pub payload: f64,
    pub frame: f64,
    /// Document and section that define the frame.
    pub source: &'static str,
}

/// A speed at which a link runs.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    pub name: &'static str,
    /// Gb/s in its name, GT/s of PCI Express; of one lane if the link may have several.
    pub named: f64,
    /// Gb/s on the wire.
    pub signalled: f64,
    pub code: Code,
    /// Document and section that define signalling and line code.
    pub source: &'static str,
}

/// A line code: how many bits of the wire are data.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    pub name: &'static str,
    data: f64,
    coded: f64,
}

impl Code {
    const fn new(name: &'static str, data: f64, coded: f64) -> Self {
        Self { name, data, coded }
    }
}

const B8_10: Code = Code::new("8b/10b", 8.0, 10.0);
const B64_66: Code = Code::new("64b/66b", 64.0, 66.0);
const B128_130: Code = Code::new("128b/130b", 128.0, 130.0);
const B128_150: Code = Code::new("128b/150b", 128.0, 150.0);
/// Transcoding to 256b/257b, and forward error correction by 14 or 30 of the symbols.
const RS_528: Code = Code::new("256b/257b, RS(528,514)", 256.0 * 514.0, 257.0 * 528.0);
const RS_544: Code = Code::new("256b/257b, RS(544,514)", 256.0 * 514.0, 257.0 * 544.0);
/// Bytes of a flit that are transaction layer packets.
const FLIT: Code = Code::new("flit, 236 of 256 bytes", 236.0, 256.0);

const fn of(
    name: &'static str,
    (named, signalled): (f64, f64),
    code: Code,
    source: &'static str,
) -> Generation {
    Generation { name, named, signalled, code, source }
}

/// A frame has start 4, header 24, payload 2,112, check 4 and end 4 bytes; six words of 4 bytes
/// come before the next.
pub const FIBRE_CHANNEL: Family = Family {
    name: "Fibre Channel",
    generations: &[
        of("1GFC", (1.0, 1.0625), B8_10, "FC-PI"),
        of("2GFC", (2.0, 2.125), B8_10, "FC-PI-2"),
        of("4GFC", (4.0, 4.25), B8_10, "FC-PI-2"),
        of("8GFC", (8.0, 8.5), B8_10, "FC-PI-4"),
        of("10GFC", (10.0, 10.518_75), B64_66, "10GFC"),
        of("16GFC", (16.0, 14.025), B64_66, "FC-PI-5"),
        of("20GFC", (20.0, 21.0375), B64_66, "10GFC-2"),
        of("32GFC", (32.0, 28.05), RS_528, "FC-PI-6"),
        of("64GFC", (64.0, 57.8), RS_544, "FC-PI-7"),
        of("128GFC", (128.0, 4.0 * 28.05), RS_528, "FC-PI-6P, four lanes"),
    ],
    payload: 2_112.0,
    frame: 2_172.0,
    source: "FC-FS-3, frame formats and primitive signals",
};

/// A packet has local route header 8, base transport header 12, payload 4,096, invariant check 4
/// and variant check 2 bytes.
pub const INFINIBAND: Family = Family {
    name: "InfiniBand",
    generations: &[
        of("SDR", (2.5, 2.5), B8_10, "IBA volume 2, 5"),
        of("DDR", (5.0, 5.0), B8_10, "IBA volume 2, 5"),
        of("QDR", (10.0, 10.0), B8_10, "IBA volume 2, 5"),
        of("FDR10", (10.3125, 10.3125), B64_66, "IBA volume 2, 5"),
        of("FDR", (14.0, 14.0625), B64_66, "IBA volume 2, 5"),
        of("EDR", (25.0, 25.781_25), B64_66, "IBA volume 2, 5"),
        of("HDR", (50.0, 53.125), RS_544, "IBA volume 2, 5"),
        of("NDR", (100.0, 106.25), RS_544, "IBA volume 2, 5"),
    ],
    payload: 4_096.0,
    frame: 4_122.0,
    source: "IBA volume 1, 7.7, 7.8 and 9.2",
};

/// A completion has framing and sequence number 4, header 12, payload 4,096 and check 4 bytes.
/// Devices that agree on 256 bytes lose 7 % more.
pub const PCI_EXPRESS: Family = Family {
    name: "PCIe",
    generations: &[
        of("PCIe 1", (2.5, 2.5), B8_10, "PCIe base 6.0, 4.2.1"),
        of("PCIe 2", (5.0, 5.0), B8_10, "PCIe base 6.0, 4.2.1"),
        of("PCIe 3", (8.0, 8.0), B128_130, "PCIe base 6.0, 4.2.2"),
        of("PCIe 4", (16.0, 16.0), B128_130, "PCIe base 6.0, 4.2.2"),
        of("PCIe 5", (32.0, 32.0), B128_130, "PCIe base 6.0, 4.2.2"),
    ],
    payload: 4_096.0,
    frame: 4_116.0,
    source: "PCIe base 6.0, 2.2 and 3.6",
};

/// In flits a packet has no framing and no check of its own.
pub const PCI_EXPRESS_FLIT: Family = Family {
    name: "PCIe in flits",
    generations: &[of("PCIe 6", (64.0, 64.0), FLIT, "PCIe base 6.0, 4.2.3")],
    payload: 4_096.0,
    frame: 4_108.0,
    source: "PCIe base 6.0, 2.2",
};

/// A frame has start 4, header 4, payload 8,192, check 4 and end 4 bytes.
pub const SATA: Family = Family {
    name: "SATA",
    generations: &[
        of("SATA 1", (1.5, 1.5), B8_10, "Serial ATA 3, physical layer"),
        of("SATA 2", (3.0, 3.0), B8_10, "Serial ATA 3, physical layer"),
        of("SATA 3", (6.0, 6.0), B8_10, "Serial ATA 3, physical layer"),
    ],
    payload: 8_192.0,
    frame: 8_208.0,
    source: "Serial ATA 3, Data FIS",
};

/// A frame has start 4, header 24, payload 1,024, check 4 and end 4 bytes.
pub const SAS: Family = Family {
    name: "SAS",
    generations: &[
        of("SAS-1", (3.0, 3.0), B8_10, "SAS, physical layer"),
        of("SAS-2", (6.0, 6.0), B8_10, "SAS-2, physical layer"),
        of("SAS-3", (12.0, 12.0), B8_10, "SAS-3, physical layer"),
        of("SAS-4", (24.0, 22.5), B128_150, "SAS-4, physical layer"),
    ],
    payload: 1_024.0,
    frame: 1_060.0,
    source: "SPL, SSP frame",
};

pub const FAMILIES: [&Family; 6] =
    [&FIBRE_CHANNEL, &INFINIBAND, &PCI_EXPRESS, &PCI_EXPRESS_FLIT, &SATA, &SAS];

/// Protocols over Ethernet, each with the document and section that define its headers.
pub const PROTOCOLS: [(Protocol, &str); 7] = [
    (Protocol::Tcp, "RFC 791, 3.1; RFC 9293, 3.1"),
    (Protocol::Iscsi, "RFC 7143, 11.2"),
    (Protocol::Nfs, "RFC 5531, 9; RFC 7530, 16"),
    (Protocol::Smb, "MS-SMB2, 2.2"),
    (Protocol::NvmeTcp, "NVMe TCP transport, C2HData PDU"),
    (Protocol::Roce, "IBA volume 1, annex A17"),
    (Protocol::Fcoe, "FC-BB-5, FCoE frame format"),
];
/// Document that defines the frame of Ethernet and the gap after it.
pub const ETHERNET_SOURCE: &str = "IEEE 802.3, 3.1 and 4.4.2";

impl Generation {
    /// Returns the bytes per second that the line code leaves, of one lane.
    pub fn bytes_per_s(&self) -> f64 {
        self.signalled * 1e9 / 8.0 * self.code.data / self.code.coded
    }

    /// Whether a speed is this one, rounded as in the names of links.
    fn is_of(&self, gigabits: f64) -> bool {
        [self.named, self.signalled].iter().any(|own| (gigabits / own - 1.0).abs() < 0.01)
    }
}

impl Family {
    /// Returns the generation with this speed of a lane.
    pub fn generation(&self, gigabits: f64) -> Option<&'static Generation> {
        self.generations.iter().find(|generation| generation.is_of(gigabits))
    }

    /// Returns what remains in full frames.
    pub fn frame_share(&self) -> f64 {
        self.payload / self.frame
    }
}

/// The protocol in Ethernet frames, and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    pub protocol: Option<Protocol>,
    /// Payload of a frame, in bytes; that of jumbo frames if it is not known.
    pub mtu: Option<u32>,
}

named! {
    /// A protocol that moves storage over Ethernet.
    Protocol {
        Iscsi = "iSCSI",
        Nfs = "NFS",
        Smb = "SMB",
        NvmeTcp = "NVMe/TCP",
        Tcp = "TCP",
        Roce = "RoCE",
        Fcoe = "FCoE",
    }
}

/// Bytes of an Ethernet frame, and around it, besides its payload: preamble 8, header 14, check
/// sequence 4, gap 12.
const ETHERNET_FRAME: f64 = 38.0;
/// Largest frame of most networks, and the one that carries most.
const JUMBO: u32 = 9_000;
/// Headers of IPv4 and TCP without options.
const TCP_IP: f64 = 40.0;

impl Protocol {
    /// Returns the share of the wire that is data.
    fn share(self, mtu: u32) -> f64 {
        let mtu = f64::from(mtu);
        let tcp = (mtu - TCP_IP) / (mtu + ETHERNET_FRAME);
        let unit = |payload: f64, header: f64| payload / (payload + header);
        match self {
            Self::Tcp => tcp,
            // The headers of the longest usual units: a segment of iSCSI (RFC 7143), a unit of
            // NVMe/TCP, a READ of NFS or SMB.
            Self::Iscsi => tcp * unit(262_144.0, 48.0),
            Self::NvmeTcp => tcp * unit(131_072.0, 24.0),
            Self::Nfs | Self::Smb => tcp * unit(1_048_576.0, 128.0),
            // RoCE v2: the packets of InfiniBand, of powers of two, in UDP: IP 20, UDP 8, base
            // header 12, check 4.
            Self::Roce => {
                let packet = [4_096.0, 2_048.0, 1_024.0, 512.0, 256.0];
                let fits = packet.into_iter().find(|payload| payload + 44.0 <= mtu);
                unit(fits.unwrap_or(256.0), 44.0 + ETHERNET_FRAME)
            }
            // FC-BB-5: a Fibre Channel frame of 2,112 bytes in one with a tag.
            Self::Fcoe => 2_112.0 / 2_200.0,
        }
    }
}

impl LinkKind {
    /// Returns Ethernet of which only the speed is known.
    pub fn ethernet(gigabits: f64) -> Self {
        Self::Ethernet { gigabits, carries: Carried::default() }
    }

    /// Returns what full frames carry.
    pub fn bytes_per_s(self) -> f64 {
        match self {
            Self::Plain { gigabits } => gigabits * 1e9 / 8.0,
            Self::Ethernet { gigabits, carries } => gigabits * 1e9 / 8.0 * carries.share(),
            _ => self.coded(),
        }
    }

    /// Returns the family of the link and the speed of a lane; Ethernet has a formula.
    fn family(self) -> Option<(&'static Family, f64, u32)> {
        Some(match self {
            Self::FibreChannel { gigabits } => (&FIBRE_CHANNEL, gigabits, 1),
            Self::InfiniBand { gigabits, lanes } => {
                (&INFINIBAND, gigabits / f64::from(lanes.max(1)), lanes)
            }
            Self::PciExpress { gigatransfers, lanes } if gigatransfers < 64.0 => {
                (&PCI_EXPRESS, gigatransfers, lanes)
            }
            Self::PciExpress { gigatransfers, lanes } => (&PCI_EXPRESS_FLIT, gigatransfers, lanes),
            Self::Sata { gigabits } => (&SATA, gigabits, 1),
            Self::Sas { gigabits, lanes } => (&SAS, gigabits, lanes),
            Self::Ethernet { .. } | Self::Plain { .. } => return None,
        })
    }

    /// Whether a document defines a link of this speed.
    pub fn is_defined(self) -> bool {
        self.family().is_none_or(|(family, speed, _)| family.generation(speed).is_some())
    }

    /// Returns the payload of full frames after the line code. A speed that no document defines
    /// counts in full, which is more than it can carry.
    fn coded(self) -> f64 {
        let Some((family, speed, lanes)) = self.family() else { return 0.0 };
        let lane = match family.generation(speed) {
            Some(generation) => generation.bytes_per_s() * family.frame_share(),
            None => speed * 1e9 / 8.0,
        };
        lane * f64::from(lanes)
    }

    /// Returns the bits per second in its name, over all lanes. A figure in the wrong unit is
    /// derived from these.
    pub fn nominal_bits_per_s(self) -> f64 {
        let gigabits = match self {
            Self::FibreChannel { gigabits }
            | Self::Ethernet { gigabits, .. }
            | Self::InfiniBand { gigabits, .. }
            | Self::Sata { gigabits }
            | Self::Plain { gigabits } => gigabits,
            Self::PciExpress { gigatransfers, lanes } => gigatransfers * f64::from(lanes),
            Self::Sas { gigabits, lanes } => gigabits * f64::from(lanes),
        };
        gigabits * 1e9
    }
}

impl Carried {
    /// Returns the share of the wire that is data.
    pub fn share(self) -> f64 {
        let mtu = self.mtu.unwrap_or(JUMBO);
        let bare = || f64::from(mtu) / (f64::from(mtu) + ETHERNET_FRAME);
        self.protocol.map_or_else(bare, |protocol| protocol.share(mtu))
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FibreChannel { gigabits } => write!(f, "Fibre Channel {gigabits} Gb/s"),
            Self::Ethernet { gigabits, carries } => {
                if *gigabits < 1.0 {
                    write!(f, "Ethernet {:.0} Mb/s", gigabits * 1e3)?;
                } else {
                    write!(f, "Ethernet {gigabits} Gb/s")?;
                }
                if let Some(protocol) = carries.protocol {
                    write!(f, " {}", protocol.name())?;
                }
                carries.mtu.map_or(Ok(()), |mtu| write!(f, " MTU {mtu}"))
            }
            Self::InfiniBand { gigabits, lanes } => {
                write!(f, "InfiniBand {gigabits} Gb/s x{lanes}")
            }
            Self::PciExpress { gigatransfers, lanes } => {
                write!(f, "PCIe {gigatransfers:.1} GT/s x{lanes}")
            }
            Self::Sata { gigabits } => write!(f, "SATA {gigabits:.1} Gb/s"),
            Self::Sas { gigabits, lanes: 1 } => write!(f, "SAS {gigabits} Gb/s"),
            Self::Sas { gigabits, lanes } => write!(f, "SAS {gigabits} Gb/s x{lanes}"),
            Self::Plain { gigabits } => write!(f, "{gigabits} Gb/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(gigabits: f64, protocol: Protocol, mtu: u32) -> LinkKind {
        let carries = Carried { protocol: Some(protocol), mtu: Some(mtu) };
        LinkKind::Ethernet { gigabits, carries }
    }

    #[test]
    fn links_carry_what_line_code_and_full_frames_leave() {
        let megabytes = |kind: LinkKind| kind.bytes_per_s() / 1e6;
        let fc = |gigabits| LinkKind::FibreChannel { gigabits };
        let infiniband = |gigabits| LinkKind::InfiniBand { gigabits, lanes: 4 };
        let pcie = |gigatransfers| LinkKind::PciExpress { gigatransfers, lanes: 4 };
        let cases = [
            (fc(1.0), 103.3),
            (fc(2.0), 206.6),
            (fc(4.0), 413.3),
            (fc(8.0), 826.5),
            (fc(10.0), 1_239.8),
            (fc(16.0), 1_653.0),
            (fc(32.0), 3_306.1),
            (fc(64.0), 6_612.2),
            (LinkKind::ethernet(1.0), 124.5),
            (ethernet(1.0, Protocol::Tcp, 1_500), 118.7),
            (ethernet(1.0, Protocol::Tcp, 9_000), 123.9),
            (ethernet(10.0, Protocol::Iscsi, 1_500), 1_186.4),
            (ethernet(10.0, Protocol::Nfs, 9_000), 1_239.1),
            (ethernet(25.0, Protocol::NvmeTcp, 9_000), 3_097.5),
            (ethernet(100.0, Protocol::Roce, 9_000), 12_254.7),
            (ethernet(100.0, Protocol::Roce, 1_500), 11_573.2),
            (ethernet(10.0, Protocol::Fcoe, 2_500), 1_200.0),
            (ethernet(400.0, Protocol::Tcp, 9_000), 49_568.5),
            (infiniband(10.0), 993.7),
            (infiniband(20.0), 1_987.4),
            (infiniband(40.0), 3_974.8),
            (infiniband(56.0), 6_775.2),
            (infiniband(100.0), 12_421.2),
            (infiniband(200.0), 24_842.3),
            (infiniband(400.0), 49_684.6),
            (pcie(2.5), 995.1),
            (pcie(5.0), 1_990.3),
            (pcie(8.0), 3_919.3),
            (pcie(16.0), 7_838.6),
            (pcie(32.0), 15_677.3),
            (pcie(64.0), 29_413.8),
            (LinkKind::Sata { gigabits: 1.5 }, 149.7),
            (LinkKind::Sata { gigabits: 6.0 }, 598.8),
            (LinkKind::Sas { gigabits: 3.0, lanes: 1 }, 289.8),
            (LinkKind::Sas { gigabits: 6.0, lanes: 4 }, 2_318.5),
            (LinkKind::Sas { gigabits: 12.0, lanes: 4 }, 4_637.0),
            (LinkKind::Sas { gigabits: 24.0, lanes: 1 }, 2_318.5),
        ];
        for (kind, expected) in cases {
            assert!((megabytes(kind) - expected).abs() < 0.06, "{kind}: {}", megabytes(kind));
        }
    }

    /// Megabytes a second of one lane in the documents, which round and leave out frames.
    const PUBLISHED: [(&str, f64); 30] = [
        ("1GFC", 100.0),
        ("2GFC", 200.0),
        ("4GFC", 400.0),
        ("8GFC", 800.0),
        ("10GFC", 1_200.0),
        ("16GFC", 1_600.0),
        ("20GFC", 2_400.0),
        ("32GFC", 3_200.0),
        ("64GFC", 6_400.0),
        ("128GFC", 12_800.0),
        ("SDR", 250.0),
        ("DDR", 500.0),
        ("QDR", 1_000.0),
        ("FDR10", 1_250.0),
        ("FDR", 1_704.5),
        ("EDR", 3_125.0),
        ("HDR", 6_250.0),
        ("NDR", 12_500.0),
        ("PCIe 1", 250.0),
        ("PCIe 2", 500.0),
        ("PCIe 3", 984.6),
        ("PCIe 4", 1_969.2),
        ("PCIe 5", 3_938.5),
        ("PCIe 6", 7_375.0),
        ("SATA 1", 150.0),
        ("SATA 2", 300.0),
        ("SATA 3", 600.0),
        ("SAS-1", 300.0),
        ("SAS-2", 600.0),
        ("SAS-3", 1_200.0),
    ];

    #[test]
    fn generations_are_those_of_their_documents() {
        let all = || FAMILIES.into_iter().flat_map(|family| family.generations);
        for (name, published) in PUBLISHED {
            let generation = all().find(|generation| generation.name == name).unwrap();
            let carries = generation.bytes_per_s() / 1e6;
            let above = carries / published;
            let is_rounded = name.ends_with("GFC");
            let most = if is_rounded { 1.0626 } else { 1.0001 };
            assert!((0.9999..=most).contains(&above), "{name}: {carries} of {published}");
        }
        for family in FAMILIES {
            assert!(!family.source.is_empty() && (0.9..1.0).contains(&family.frame_share()));
            for generation in family.generations {
                assert!(!generation.source.is_empty(), "{}", generation.name);
                assert_eq!(
                    family.generation(generation.named).unwrap().name,
                    generation.name,
                    "speeds are told apart"
                );
            }
        }
        for protocol in Protocol::ALL {
            assert!(
                PROTOCOLS.iter().any(|(named, source)| named == protocol && !source.is_empty())
            );
        }
    }

    #[test]
    fn speeds_that_no_document_defines_are_known_as_such() {
        let defined = |kind: LinkKind| kind.is_defined();
        assert!(defined(LinkKind::FibreChannel { gigabits: 16.0 }));
        assert!(!defined(LinkKind::FibreChannel { gigabits: 3.0 }));
        assert!(!defined(LinkKind::InfiniBand { gigabits: 70.0, lanes: 4 }));
        assert!(!defined(LinkKind::Sas { gigabits: 10.0, lanes: 4 }));
        assert!(defined(LinkKind::ethernet(12.5)), "what remains is its name");
        let unknown = LinkKind::FibreChannel { gigabits: 256.0 };
        assert!(unknown.bytes_per_s() >= 256e9 / 8.0, "never less than it can carry");
    }

    #[test]
    fn a_saturated_port_is_possible_and_five_percent_more_is_not() {
        for (gigabits, honest) in
            [(2.0, 206.0), (4.0, 412.0), (8.0, 824.0), (16.0, 1_650.0), (32.0, 3_300.0)]
        {
            let carries = LinkKind::FibreChannel { gigabits }.bytes_per_s() / 1e6;
            assert!(honest <= carries && honest * 1.05 > carries * 1.02, "{gigabits}: {carries}");
        }
    }
}
