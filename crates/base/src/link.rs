//! Capacity of links: payload bytes per second in one direction, after the line code and the
//! headers of full frames. It is an upper bound: shorter frames, commands and acknowledgements take
//! more.

use std::fmt;

use crate::named;

/// A link in the usual notation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkKind {
    /// Signals at 1.0625 `GBd` for each Gb/s of its name with 8b/10b, from 16GFC on at as many bits
    /// after 64b/66b or 256b/257b and forward error correction (FC-PI-2 to FC-PI-7); 10GFC alone is
    /// that of Ethernet (10GFC: 10.51875 `GBd`, 64b/66b). A frame of 2,148 bytes has 2,112 of
    /// payload, and 24 bytes of ordered sets come before the next (FC-FS).
    FibreChannel { gigabits: f64 },
    /// Named after the rate that remains after its line code (IEEE 802.3). A frame takes 38 bytes
    /// besides its payload: preamble 8, header 14, check sequence 4, gap 12.
    Ethernet { gigabits: f64, carries: Carried },
    /// Named after its signalling: 8b/10b up to 10 Gb/s per lane, 64b/66b beyond (architecture
    /// specification, volume 2). `gigabits` is over all lanes. A packet of 4,096 bytes has 26 of
    /// headers and checks (volume 1).
    InfiniBand { gigabits: f64, lanes: u32 },
    /// 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s (base specification, 4.2), and from 64 GT/s 236
    /// of every 256 bytes of a flit. A completion of 4,096 bytes, the longest, has 20 of headers
    /// and checks; devices that agree on 256 bytes lose 7 % more.
    PciExpress { gigatransfers: f64, lanes: u32 },
    /// 8b/10b; a frame of 8,192 bytes has 16 of its own (Serial ATA, data FIS).
    Sata { gigabits: f64 },
    /// 8b/10b up to 12 Gb/s per lane, 128b/150b at 22.5 Gb/s, which is sold as 24G. A frame of
    /// 1,024 bytes has 36 of its own (SAS, SSP).
    Sas { gigabits: f64, lanes: u32 },
    /// Bits per second of which nothing else is known.
    Plain { gigabits: f64 },
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

/// Megabytes per second for each Gb/s in the name of Fibre Channel, after the line code.
const FIBRE_CHANNEL_MB: f64 = 106.25;
/// The same for 10GFC, which has the line code of Ethernet.
const FIBRE_CHANNEL_10_MB: f64 = 127.5;
/// Bytes of an Ethernet frame, and around it, besides its payload.
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
        self.coded_bytes_per_s() * self.frame_share()
    }

    /// Returns the bytes that remain after the line code.
    fn coded_bytes_per_s(self) -> f64 {
        let (gigabits, payload) = match self {
            Self::FibreChannel { gigabits } => {
                let is_10 = (gigabits - 10.0).abs() < 0.1;
                let each = if is_10 { FIBRE_CHANNEL_10_MB } else { FIBRE_CHANNEL_MB };
                return gigabits * each * 1e6;
            }
            Self::Sata { gigabits } => (gigabits, 0.8),
            Self::Ethernet { gigabits, .. } | Self::Plain { gigabits } => (gigabits, 1.0),
            Self::InfiniBand { gigabits, lanes } => {
                let coded = if gigabits / f64::from(lanes) <= 10.0 { 0.8 } else { 64.0 / 66.0 };
                (infiniband_signalling(gigabits / f64::from(lanes)) * f64::from(lanes), coded)
            }
            Self::PciExpress { gigatransfers, lanes } => {
                let coded = match gigatransfers {
                    speed if speed <= 5.0 => 0.8,
                    speed if speed < 64.0 => 128.0 / 130.0,
                    _ => 236.0 / 256.0,
                };
                (gigatransfers * f64::from(lanes), coded)
            }
            Self::Sas { gigabits, lanes } if gigabits > 12.0 => {
                (22.5 * f64::from(lanes), 128.0 / 150.0)
            }
            Self::Sas { gigabits, lanes } => (gigabits * f64::from(lanes), 0.8),
        };
        gigabits * 1e9 * payload / 8.0
    }

    /// Returns the share of full frames that is payload.
    fn frame_share(self) -> f64 {
        match self {
            Self::FibreChannel { .. } => 2_112.0 / 2_172.0,
            Self::Ethernet { carries, .. } => {
                let mtu = carries.mtu.unwrap_or(JUMBO);
                let bare = || f64::from(mtu) / (f64::from(mtu) + ETHERNET_FRAME);
                carries.protocol.map_or_else(bare, |protocol| protocol.share(mtu))
            }
            Self::InfiniBand { .. } => 4_096.0 / 4_122.0,
            Self::PciExpress { .. } => 4_096.0 / 4_116.0,
            Self::Sata { .. } => 8_192.0 / 8_208.0,
            Self::Sas { .. } => 1_024.0 / 1_060.0,
            Self::Plain { .. } => 1.0,
        }
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

/// Returns the signalling rate of a lane from its rounded name: 14.0625 for 14 Gb/s, 25.78125 for
/// 25 and so on.
fn infiniband_signalling(gigabits: f64) -> f64 {
    match gigabits {
        lane if lane <= 10.0 => lane,
        lane if lane < 11.0 => 10.312_5,
        lane if lane < 20.0 => 14.062_5,
        lane => lane * 66.0 / 64.0,
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
            (pcie(64.0), 29_356.7),
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
