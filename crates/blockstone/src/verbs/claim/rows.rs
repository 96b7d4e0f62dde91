//! Figures of a claim as it was understood. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{bytes, count, flag, flow, ratio, text, time};

use super::stated::{Answer, Claim, Compared, Kind, Span};

rows! {
    /// Single figures of a claim; those that were not stated are unknown.
    pub(super) struct Summary {
        /// `possible`, `memory`, `above-link`, `wrong-unit`, `contradiction`, `doubtful` or
        /// `unknown`.
        outcome: &'static str = text("outcome"),
        /// Bytes a second as stated, of requests, or of bytes and time.
        rate_bytes_per_s: Option<f64> = flow("rate"),
        /// Bytes a second that all links carry.
        link_bytes_per_s: Option<f64> = flow("link"),
        /// Rate ÷ link: above 1 the link cannot carry the rate.
        link_ratio: Option<f64> = ratio("rate ÷ link"),
        /// Requests a second as stated, requests ÷ time, or rate ÷ size.
        iops: Option<f64> = count("IOPS"),
        /// Requests in all as stated.
        requests: Option<f64> = count("requests"),
        /// Disks as stated.
        disks: Option<f64> = count("disks"),
        /// Requests a second of each disk.
        disk_iops: Option<f64> = count("IOPS of a disk"),
        /// First of two values that are compared ÷ the second.
        ratio: Option<f64> = ratio("first ÷ second"),
        /// Bytes of a request as stated.
        io_bytes: Option<f64> = bytes("request"),
        /// Requests in flight, or readers that wait for one request each.
        in_flight: Option<f64> = count("in flight"),
        /// Time of a request as stated.
        latency_ns: Option<f64> = time("latency"),
        /// Size of the data as stated.
        data_bytes: Option<f64> = bytes("data"),
        /// Bytes moved as stated.
        moved_bytes: Option<f64> = bytes("moved"),
        /// Time as stated.
        time_ns: Option<f64> = time("time"),
        /// Main memory as stated.
        memory_bytes: Option<f64> = bytes("memory"),
        /// Whether the page cache was bypassed.
        direct: bool = flag("direct"),
        /// Whether the claim says that a cache answered.
        cached: bool = flag("cached"),
    }
}

rows! {
    /// Rates as they are stated.
    pub(super) struct RateRow {
        /// Order and direction of the requests, as far as they are stated.
        requests: String = text("requests"),
        /// Bytes a second; of a range the upper end.
        rate_bytes_per_s: Option<f64> = flow("rate"),
        /// Requests a second; of a range the upper end.
        iops: Option<f64> = count("IOPS"),
    }
}

rows! {
    /// Links that are used in parallel.
    pub(super) struct LinkRow {
        /// One link, or several that are equal.
        link: String = text("link"),
    }
}

impl RateRow {
    /// Returns a row for each rate of a claim.
    pub fn all(claim: &Claim) -> Vec<Self> {
        let row = |of: Kind| Self { requests: of.to_string(), rate_bytes_per_s: None, iops: None };
        let rates = claim
            .rates
            .iter()
            .map(|rate| Self { rate_bytes_per_s: Some(rate.span.value()), ..row(rate.of) });
        let iops = claim.iops.iter();
        let iops = iops.map(|iops| Self { iops: Some(iops.span.value()), ..row(iops.of) });
        rates.chain(iops).collect()
    }
}

impl Summary {
    pub fn of(claim: &Claim, answer: Answer) -> Self {
        let (rate, link) = (claim.bytes_per_s(), claim.link_bytes_per_s());
        let value = |span: Option<Span>| span.map(Span::value);
        let ns = |span: Option<Span>| span.map(|seconds| seconds.value() * 1e9);
        let disks = claim.disks.map(|disks| disks.count);
        Self {
            outcome: answer.name(),
            rate_bytes_per_s: rate,
            link_bytes_per_s: link,
            link_ratio: rate.zip(link).map(|(rate, link)| rate / link),
            iops: claim.requests_per_s(),
            requests: value(claim.requests),
            disks,
            disk_iops: claim.requests_per_s().zip(disks).map(|(rate, disks)| rate / disks),
            ratio: claim.compared.as_ref().and_then(Compared::ratio),
            io_bytes: value(claim.io_bytes),
            in_flight: value(claim.in_flight),
            latency_ns: ns(claim.latency_s),
            data_bytes: value(claim.data_bytes),
            moved_bytes: value(claim.moved_bytes),
            time_ns: ns(claim.time_s),
            memory_bytes: value(claim.memory_bytes),
            direct: claim.direct,
            cached: claim.cached,
        }
    }
}
