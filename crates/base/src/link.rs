//! Capacity of links: payload bytes per second after the line code, in one direction. Packet
//! headers take more, so no transfer reaches these rates.

/// A link in the usual notation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkKind {
    /// Each generation is named after its payload: nGFC carries n × 100 MB/s (FCIA speed map).
    FibreChannel { gigabits: f64 },
    /// Named after the rate that remains after its line code (IEEE 802.3).
    Ethernet { gigabits: f64 },
    /// Named after its signalling: 8b/10b up to 10 Gb/s per lane, 64b/66b beyond (architecture
    /// specification, volume 2). `gigabits` is over all lanes.
    InfiniBand { gigabits: f64, lanes: u32 },
    /// 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s (base specification, 4.2), and from 64 GT/s 242
    /// of every 256 bytes of a flit.
    PciExpress { gigatransfers: f64, lanes: u32 },
    /// 8b/10b: 6 Gb/s carry 600 MB/s.
    Sata { gigabits: f64 },
    /// 8b/10b up to 12 Gb/s per lane, 128b/150b at 22.5 Gb/s, which is sold as 24G.
    Sas { gigabits: f64, lanes: u32 },
    /// Bits per second of which nothing else is known.
    Plain { gigabits: f64 },
}

impl LinkKind {
    pub fn bytes_per_s(self) -> f64 {
        let (gigabits, payload) = match self {
            Self::FibreChannel { gigabits } | Self::Sata { gigabits } => (gigabits, 0.8),
            Self::Ethernet { gigabits } | Self::Plain { gigabits } => (gigabits, 1.0),
            Self::InfiniBand { gigabits, lanes } => {
                let coded = if gigabits / f64::from(lanes) <= 10.0 { 0.8 } else { 64.0 / 66.0 };
                (infiniband_signalling(gigabits / f64::from(lanes)) * f64::from(lanes), coded)
            }
            Self::PciExpress { gigatransfers, lanes } => {
                let coded = match gigatransfers {
                    speed if speed <= 5.0 => 0.8,
                    speed if speed < 64.0 => 128.0 / 130.0,
                    _ => 242.0 / 256.0,
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

    /// Returns the bits per second in its name, over all lanes. A figure in the wrong unit is
    /// derived from these.
    pub fn nominal_bits_per_s(self) -> f64 {
        let gigabits = match self {
            Self::FibreChannel { gigabits }
            | Self::Ethernet { gigabits }
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
        lane if lane < 20.0 => 14.062_5,
        lane => lane * 66.0 / 64.0,
    }
}

impl std::fmt::Display for LinkKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FibreChannel { gigabits } => write!(f, "Fibre Channel {gigabits} Gb/s"),
            Self::Ethernet { gigabits } if *gigabits < 1.0 => {
                write!(f, "Ethernet {:.0} Mb/s", gigabits * 1e3)
            }
            Self::Ethernet { gigabits } => write!(f, "Ethernet {gigabits} Gb/s"),
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
    use super::LinkKind;

    #[test]
    fn payloads_are_those_of_the_data_sheets() {
        let megabytes = |kind: LinkKind| (kind.bytes_per_s() / 1e6).round();
        let cases = [
            (LinkKind::FibreChannel { gigabits: 2.0 }, 200.0),
            (LinkKind::Ethernet { gigabits: 1.0 }, 125.0),
            (LinkKind::InfiniBand { gigabits: 20.0, lanes: 4 }, 2_000.0),
            (LinkKind::InfiniBand { gigabits: 56.0, lanes: 4 }, 6_818.0),
            (LinkKind::InfiniBand { gigabits: 100.0, lanes: 4 }, 12_500.0),
            (LinkKind::PciExpress { gigatransfers: 5.0, lanes: 4 }, 2_000.0),
            (LinkKind::PciExpress { gigatransfers: 8.0, lanes: 4 }, 3_938.0),
            (LinkKind::PciExpress { gigatransfers: 64.0, lanes: 4 }, 30_250.0),
            (LinkKind::Sata { gigabits: 6.0 }, 600.0),
            (LinkKind::Sas { gigabits: 12.0, lanes: 4 }, 4_800.0),
            (LinkKind::Sas { gigabits: 24.0, lanes: 1 }, 2_400.0),
        ];
        for (kind, expected) in cases {
            assert!((megabytes(kind) - expected).abs() < 0.5, "{kind}: {}", megabytes(kind));
        }
    }
}
