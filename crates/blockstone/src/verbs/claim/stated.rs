//! A statement by others about storage: a rate, over which link, from how much data, on how much
//! memory. Nothing is measured: [`rules`](super::rules) say whether arithmetic allows it.

use blockstone_base::link::{Carried, LinkKind};
use blockstone_base::named;

/// The names of the figures that verdicts on a claim concern.
pub const RATE: &str = "rate_mbps";
pub const RATIO: &str = "ratio";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Bytes per second, as stated.
    pub rate: Option<f64>,
    /// Requests per second, and bytes of each.
    pub iops: Option<f64>,
    pub io_bytes: Option<f64>,
    /// Requests in all.
    pub requests: Option<f64>,
    /// Disks over which the rate is spread.
    pub disks: Option<f64>,
    /// Two values that are compared.
    pub compared: Option<Compared>,
    /// Requests in flight, or readers that wait for one request each; and the time of one request.
    pub in_flight: Option<f64>,
    pub latency_s: Option<f64>,
    /// Bytes that were moved, and the time that took, in seconds.
    pub moved_bytes: Option<f64>,
    pub time_s: Option<f64>,
    /// Links used in parallel, and what those of Ethernet carry.
    pub links: Vec<Path>,
    pub carries: Carried,
    /// Size of the files or devices that were read.
    pub data_bytes: Option<f64>,
    /// Main memory of the host.
    pub memory_bytes: Option<f64>,
    /// Whether the page cache was bypassed.
    pub direct: bool,
}

/// A value, the one that it is compared with, and their ratio as stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    pub first: f64,
    pub second: f64,
    pub stated: Option<Ratio>,
}

/// A ratio as it is written, which is rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub form: RatioForm,
    pub value: f64,
    /// Half of the last digit.
    pub rounding: f64,
}

named! {
    /// Form in which a ratio is stated.
    RatioForm {
        /// A multiple: `18x`.
        Times = "times",
        /// A percentage of the other value: `75 % of`.
        Share = "% of it",
        /// The excess over the other value: `70 % more`.
        More = "% more",
        /// The shortfall from the other value: `75 % less`.
        Less = "% less",
        /// A percentage that may be any of these.
        Percent = "%",
    }
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
        /// Two numbers of the claim contradict each other.
        Contradiction = "contradiction",
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

    /// Requests per second: as stated, else from requests and time.
    pub fn requests_per_s(&self) -> Option<f64> {
        self.iops.or(self.counted_requests_per_s())
    }

    pub fn counted_requests_per_s(&self) -> Option<f64> {
        Some(self.requests? / self.time_s?)
    }

    /// Bytes that were moved: as stated, else those of the requests.
    pub fn moved(&self) -> Option<f64> {
        self.moved_bytes.or_else(|| Some(self.requests? * self.io_bytes?))
    }

    /// Rate from bytes and time. If the bytes are not stated, those of the data are used.
    pub fn moved_bytes_per_s(&self) -> Option<f64> {
        Some(self.moved().or(self.data_bytes)? / self.time_s?)
    }

    /// Mean time of a request (Little's law): requests in flight ÷ requests per second. If not
    /// stated, one is in flight.
    pub fn latency_of_rate_s(&self) -> Option<f64> {
        Some(self.in_flight.unwrap_or(1.0) / self.requests_per_s()?)
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
        self.data_bytes.or(self.moved())
    }

    /// Applies what is said of Ethernet to the links that do not say it themselves.
    pub fn settle_links(&mut self) {
        for path in &mut self.links {
            if let Speed::Of(LinkKind::Ethernet { carries, .. }) = &mut path.link {
                carries.protocol = carries.protocol.or(self.carries.protocol);
                carries.mtu = carries.mtu.or(self.carries.mtu);
            }
        }
    }

    /// Share of the data that memory can hold; `None` unless both are known.
    pub fn memory_share(&self) -> Option<f64> {
        Some((self.memory_bytes? / self.size_bytes()?).min(1.0))
    }
}

impl Compared {
    pub fn ratio(self) -> f64 {
        self.first / self.second
    }
}

impl RatioForm {
    /// Returns the number of this form for two values with this ratio.
    fn number(self, ratio: f64) -> f64 {
        match self {
            Self::Times => ratio,
            Self::Share | Self::Percent => 100.0 * ratio,
            Self::More => 100.0 * (ratio - 1.0),
            Self::Less => 100.0 * (1.0 - ratio),
        }
    }
}

impl Ratio {
    /// Whether two values with this ratio have it, in either order: twice as fast is half the time.
    /// The values are rounded too, by a hundredth at most.
    pub fn is_of(self, ratio: f64) -> bool {
        let forms: &[RatioForm] = match self.form {
            RatioForm::Percent => &[RatioForm::Share, RatioForm::More, RatioForm::Less],
            _ => &[self.form],
        };
        let both = [ratio, 1.0 / ratio];
        both.iter().flat_map(|ratio| forms.iter().map(move |form| (*ratio, *form))).any(
            |(ratio, form)| {
                let off = (form.number(ratio) - self.value).abs();
                let scale = if form == RatioForm::Times { 1.0 } else { 100.0 };
                off <= self.rounding + 0.01 * scale * ratio.max(1.0 / scale)
            },
        )
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.value, self.form.name())
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
