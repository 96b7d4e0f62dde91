//! What somebody else states about storage: a rate, over which link, from how much data, on how
//! much memory. Nothing is measured: [`rules`](super::rules) say whether arithmetic
//! allows it.

use blockstone_base::link::LinkKind;
use blockstone_base::named;

/// The name of the figure that verdicts on a claim concern.
pub const RATE: &str = "rate_mbps";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Bytes a second as stated.
    pub rate: Option<f64>,
    /// Requests a second, and bytes of each.
    pub iops: Option<f64>,
    pub io_bytes: Option<f64>,
    /// Requests in flight, or readers that wait for one each; and how long one takes.
    pub in_flight: Option<f64>,
    pub latency_s: Option<f64>,
    /// Bytes that were moved, and the seconds that took.
    pub moved_bytes: Option<f64>,
    pub time_s: Option<f64>,
    /// Links side by side.
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
    /// Bytes a second as stated.
    Stated(f64),
}

named! {
    /// What becomes of a claim.
    Answer {
        /// Nothing that was stated contradicts it.
        Possible = "possible",
        /// Main memory could have answered.
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
    /// Bytes a second: as stated, else from requests, else from bytes and time.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.rate.or(self.requested_bytes_per_s()).or(self.moved_bytes_per_s())
    }

    pub fn requested_bytes_per_s(&self) -> Option<f64> {
        Some(self.iops? * self.io_bytes?)
    }

    /// By bytes and time. Bytes that are not stated are those of the data.
    pub fn moved_bytes_per_s(&self) -> Option<f64> {
        Some(self.moved_bytes.or(self.data_bytes)? / self.time_s?)
    }

    /// How long a request takes on average (Little's law): requests in flight ÷ requests a second.
    /// One is in flight where it is not stated.
    pub fn latency_of_rate_s(&self) -> Option<f64> {
        Some(self.in_flight.unwrap_or(1.0) / self.iops?)
    }

    /// What all links carry, in bytes a second.
    pub fn link_bytes_per_s(&self) -> Option<f64> {
        let each = self.links.iter().map(|path| f64::from(path.count) * path.link.bytes_per_s());
        (!self.links.is_empty()).then(|| each.sum())
    }

    /// What all links are called, in bits a second.
    pub(crate) fn link_bits_per_s(&self) -> Option<f64> {
        let each = |path: &Path| match path.link {
            Speed::Of(kind) => Some(f64::from(path.count) * kind.nominal_bits_per_s()),
            Speed::Stated(_) => None,
        };
        let sum = self.links.iter().map(each).sum::<Option<f64>>()?;
        (!self.links.is_empty()).then_some(sum)
    }

    /// The links in words: `2 × Fibre Channel 2 Gb/s`.
    pub fn link(&self) -> String {
        self.links.iter().map(Path::to_string).collect::<Vec<_>>().join(" + ")
    }

    /// The size of the data; where it is not stated, the bytes that were moved.
    pub fn size_bytes(&self) -> Option<f64> {
        self.data_bytes.or(self.moved_bytes)
    }

    /// The part of the data that memory can hold; none without both.
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
