//! A statement by others about storage: a rate, over which link, from how much data, on how much
//! memory. Nothing is measured: [`rules`](super::rules) say whether arithmetic allows it.

use blockstone_base::link::LinkKind;
use blockstone_base::named;

/// The name of the figure that verdicts on a claim concern.
pub const RATE: &str = "rate_mbps";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Bytes per second, as stated.
    pub rate: Option<f64>,
    /// Requests per second, and bytes of each.
    pub iops: Option<f64>,
    pub io_bytes: Option<f64>,
    /// Requests in flight, or readers that wait for one request each; and the time of one request.
    pub in_flight: Option<f64>,
    pub latency_s: Option<f64>,
    /// Bytes that were moved, and the time that took, in seconds.
    pub moved_bytes: Option<f64>,
    pub time_s: Option<f64>,
    /// Links used in parallel.
    pub links: Vec<Path>,
    /// Size of the files or devices that were read.
    pub data_bytes: Option<f64>,
    /// Main memory of the host.
    pub memory_bytes: Option<f64>,
    /// Whether the page cache was bypassed.
    pub direct: bool,
}

/// A number of equal links.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub count: u32,
    pub link: Speed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    Of(LinkKind),
    /// Bytes per second, as stated.
    Stated(f64),
}

named! {
    /// Answer to a claim.
    Answer {
        /// Nothing that was stated contradicts it.
        Possible = "possible",
        /// Main memory could have served the data.
        Memory = "memory",
        /// More than the link carries.
        AboveLink = "above-link",
        /// Bits and bytes are confused.
        WrongUnit = "wrong-unit",
        /// Too little is stated to check anything.
        Unknown = "unknown",
    }
}

impl Claim {
    /// Bytes per second: as stated, else from requests, else from bytes and time.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.rate.or(self.requested_bytes_per_s()).or(self.moved_bytes_per_s())
    }

    pub fn requested_bytes_per_s(&self) -> Option<f64> {
        Some(self.iops? * self.io_bytes?)
    }

    /// Rate from bytes and time. If the bytes are not stated, those of the data are used.
    pub fn moved_bytes_per_s(&self) -> Option<f64> {
        Some(self.moved_bytes.or(self.data_bytes)? / self.time_s?)
    }

    /// Mean time of a request (Little's law): requests in flight ÷ requests per second. If not
    /// stated, one is in flight.
    pub fn latency_of_rate_s(&self) -> Option<f64> {
        Some(self.in_flight.unwrap_or(1.0) / self.iops?)
    }

    /// Capacity of all links, in bytes per second.
    pub fn link_bytes_per_s(&self) -> Option<f64> {
        let each = self.links.iter().map(|path| f64::from(path.count) * path.link.bytes_per_s());
        (!self.links.is_empty()).then(|| each.sum())
    }

    /// Nominal rate of all links, in bits per second.
    pub(crate) fn link_bits_per_s(&self) -> Option<f64> {
        let each = |path: &Path| match path.link {
            Speed::Of(kind) => Some(f64::from(path.count) * kind.nominal_bits_per_s()),
            Speed::Stated(_) => None,
        };
        let sum = self.links.iter().map(each).sum::<Option<f64>>()?;
        (!self.links.is_empty()).then_some(sum)
    }

    /// Describes the links: `2 × Fibre Channel 2 Gb/s`.
    pub fn link(&self) -> String {
        self.links.iter().map(Path::to_string).collect::<Vec<_>>().join(" + ")
    }

    /// Size of the data; if it is not stated, the bytes that were moved.
    pub fn size_bytes(&self) -> Option<f64> {
        self.data_bytes.or(self.moved_bytes)
    }

    /// Share of the data that memory can hold; `None` unless both are known.
    pub fn memory_share(&self) -> Option<f64> {
        Some((self.memory_bytes? / self.size_bytes()?).min(1.0))
    }
}

impl Speed {
    pub fn bytes_per_s(self) -> f64 {
        match self {
            Self::Of(kind) => kind.bytes_per_s(),
            Self::Stated(bytes_per_s) => bytes_per_s,
        }
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.count > 1 {
            write!(f, "{} × ", self.count)?;
        }
        match self.link {
            Speed::Of(kind) => kind.fmt(f),
            Speed::Stated(bytes_per_s) => write!(f, "{:.0} MB/s", bytes_per_s / 1e6),
        }
    }
}
