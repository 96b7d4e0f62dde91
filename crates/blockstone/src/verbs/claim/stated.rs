//! A statement by others about storage: a rate, over which link, from how much data, on how much
//! memory. Nothing is measured: [`rules`](super::rules) say whether arithmetic allows it.

use blockstone_base::link::{Carried, LinkKind};
use blockstone_base::named;

use super::units::Unit;

pub use super::span::Span;

/// The names of the figures that verdicts on a claim concern.
pub const RATE: &str = "rate_mbps";
pub const IOPS: &str = "iops";
pub const DISK_IOPS: &str = "disk_iops";
pub const DISK_MBPS: &str = "disk_mbps";
pub const RATIO: &str = "ratio";

/// A rate as it is stated: bytes or requests per second, and of which requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    pub of: Kind,
    pub span: Span,
    /// Whether `and` joins it to a figure before: that may be another measurement.
    pub is_listed: bool,
}

/// The requests of which a rate is stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub direction: Option<Direction>,
    pub pattern: Option<Pattern>,
}

named! {
    /// Direction of requests.
    Direction {
        Read = "read",
        Write = "written",
    }
}

named! {
    /// Order of the addresses of requests.
    Pattern {
        Sequential = "sequential",
        Random = "random",
    }
}

/// The disks over which a rate is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disks {
    pub count: f64,
    pub rotating: bool,
    /// Revolutions a minute.
    pub rpm: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Bytes per second, as stated.
    pub rates: Vec<Flow>,
    /// Requests per second, and bytes of each.
    pub iops: Vec<Flow>,
    pub io_bytes: Option<Span>,
    /// Requests in all.
    pub requests: Option<Span>,
    pub disks: Option<Disks>,
    /// Whether the rates are those of one disk, or of one link.
    pub per_disk: bool,
    pub per_link: bool,
    /// Two values that are compared.
    pub compared: Option<Compared>,
    /// Requests in flight, or readers that wait for one request each; and the time of one request.
    pub in_flight: Option<Span>,
    pub latency_s: Option<Span>,
    /// Bytes that were moved, and the time that took, in seconds.
    pub moved_bytes: Option<Span>,
    pub time_s: Option<Span>,
    /// Links used in parallel, and what those of Ethernet carry.
    pub links: Vec<Path>,
    pub carries: Carried,
    /// Whether a rate is the sum of both directions of the links.
    pub both_directions: bool,
    /// Size of the files or devices that were read.
    pub data_bytes: Option<Span>,
    /// Main memory of the host.
    pub memory_bytes: Option<Span>,
    /// Whether the page cache was bypassed, or answered.
    pub direct: bool,
    pub cached: bool,
    /// Words that are known and that arithmetic has no use for.
    pub mentioned: Vec<String>,
}

/// A value, the one that it is compared with, and their ratios as stated.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    pub unit: Unit,
    /// `None` while only a ratio was read.
    pub values: Option<(Span, Span)>,
    pub stated: Vec<Ratio>,
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
        /// More of each disk than its mechanics allow without help.
        Doubtful = "doubtful",
        /// Too little is stated to check anything.
        Unknown = "unknown",
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [self.pattern.map(Pattern::name), self.direction.map(Direction::name)];
        f.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

impl Kind {
    /// Whether a rate of this kind and one of another may be the same measurement. Bandwidth is
    /// measured with large sequential requests, and requests a second with small random ones.
    fn may_be(self, other: Self) -> bool {
        let same_direction = self.direction.is_none()
            || other.direction.is_none()
            || self.direction == other.direction;
        same_direction && self.pattern == other.pattern
    }
}

impl Claim {
    /// Bytes per second that are judged: the most as stated, else from requests, else from bytes
    /// and time. A stated range is judged at its upper end, one that follows at its lower.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.stated_bytes_per_s()
            .or_else(|| Some(self.requested_bytes_per_s()?.least()))
            .or_else(|| Some(self.moved_bytes_per_s()?.least()))
    }

    /// Most bytes per second of those that are stated, over all disks and links.
    pub fn stated_bytes_per_s(&self) -> Option<f64> {
        self.rates.iter().map(|rate| self.of_all(rate.span).value()).max_by(f64::total_cmp)
    }

    /// Returns a rate of all disks or links if it is stated of one.
    fn of_all(&self, span: Span) -> Span {
        let disks = self.disks.filter(|_| self.per_disk).map_or(1.0, |disks| disks.count);
        let links = || self.links.iter().map(|path| f64::from(path.count)).sum();
        span.times(disks * if self.per_link && !self.links.is_empty() { links() } else { 1.0 })
    }

    /// Most requests per second of those that are stated.
    pub fn stated_iops(&self) -> Option<Span> {
        let all = self.iops.iter().map(|iops| self.of_all(iops.span));
        all.max_by(|a, b| a.value().total_cmp(&b.value()))
    }

    pub fn requested_bytes_per_s(&self) -> Option<Span> {
        Some(self.stated_iops()?.by(self.io_bytes?))
    }

    /// Requests × their size beside each stated rate that may be of the same requests.
    pub fn requested_and_stated(&self) -> Vec<(Span, Span)> {
        let Some(size) = self.io_bytes else { return Vec::new() };
        let pairs = self.iops.iter().flat_map(|iops| {
            let same = self.rates.iter().filter(|rate| rate.of.may_be(iops.of));
            // A second measurement may be faster, of larger requests; it is not slower.
            let is_listed = |rate: &Flow| rate.is_listed || iops.is_listed;
            let is_other =
                move |rate: &Flow| is_listed(rate) && rate.span.low > iops.span.high * size.high;
            let same = same.filter(move |rate| !is_other(rate));
            same.map(move |rate| (iops.span.by(size), rate.span))
        });
        pairs.map(|(a, b)| (self.of_all(a), self.of_all(b))).collect()
    }

    /// Requests per second: as stated, else from requests and time, else from the rate and their
    /// size.
    pub fn requests_per_s(&self) -> Option<f64> {
        let counted = || Some(self.counted_requests_per_s()?.least());
        let of_rate = || Some(self.stated_bytes_per_s()? / self.io_bytes?.value());
        self.stated_iops().map(Span::value).or_else(counted).or_else(of_rate)
    }

    pub fn counted_requests_per_s(&self) -> Option<Span> {
        Some(self.requests?.over(self.time_s?))
    }

    /// Bytes that were moved: as stated, else those of the requests.
    pub fn moved(&self) -> Option<Span> {
        self.moved_bytes.or_else(|| Some(self.requests?.by(self.io_bytes?)))
    }

    /// Rate from bytes and time. If the bytes are not stated, those of the data are used.
    pub fn moved_bytes_per_s(&self) -> Option<Span> {
        Some(self.moved().or(self.data_bytes)?.over(self.time_s?))
    }

    /// Mean time of a request (Little's law): requests in flight ÷ requests per second. If not
    /// stated, one is in flight.
    pub fn latency_of_rate_s(&self) -> Option<Span> {
        let iops = self.stated_iops().or_else(|| self.counted_requests_per_s());
        let iops = iops.or_else(|| self.requests_per_s().map(Span::of))?;
        Some(self.in_flight.unwrap_or(Span::of(1.0)).over(iops))
    }

    /// Capacity of all links, in bytes per second; of both directions if the rate is of both.
    pub fn link_bytes_per_s(&self) -> Option<f64> {
        let each = self.links.iter().map(|path| f64::from(path.count) * path.link.bytes_per_s());
        let directions = if self.both_directions { 2.0 } else { 1.0 };
        (!self.links.is_empty()).then(|| directions * each.sum::<f64>())
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
        let links = self.links.iter().map(Path::to_string).collect::<Vec<_>>().join(" + ");
        if self.both_directions { format!("{links}, both directions") } else { links }
    }

    /// Size of the data; if it is not stated, the bytes that were moved.
    pub fn size_bytes(&self) -> Option<f64> {
        self.data_bytes.or(self.moved()).map(Span::value)
    }

    /// Applies what is said of Ethernet to the links that do not say it themselves.
    pub fn settle_links(&mut self) {
        for path in &mut self.links {
            if let (Speed::Of(LinkKind::Plain { gigabits }), Some(_)) =
                (path.link, self.carries.protocol)
            {
                path.link = Speed::Of(LinkKind::ethernet(gigabits));
            }
            if let Speed::Of(LinkKind::Ethernet { carries, .. }) = &mut path.link {
                carries.protocol = carries.protocol.or(self.carries.protocol);
                carries.mtu = carries.mtu.or(self.carries.mtu);
            }
        }
    }

    /// Share of the data that memory can hold; `None` unless both are known.
    pub fn memory_share(&self) -> Option<f64> {
        Some((self.memory_bytes?.least() / self.size_bytes()?).min(1.0))
    }
}

impl Compared {
    pub fn ratio(&self) -> Option<f64> {
        self.values.map(|(first, second)| first.value() / second.value())
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
