//! Figures of a claim as it was understood. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{bytes, count, flag, flow, ratio, text, time};

use super::stated::{Answer, Claim, Compared};

rows! {
    /// Single figures of a claim; those that were not stated are unknown.
    pub(super) struct Summary {
        /// `possible`, `memory`, `above-link`, `wrong-unit`, `contradiction` or `unknown`.
        outcome: &'static str = text("outcome"),
        /// Bytes a second as stated, of requests, or of bytes and time.
        rate_bytes_per_s: Option<f64> = flow("rate"),
        /// Bytes a second that all links carry.
        link_bytes_per_s: Option<f64> = flow("link"),
        /// Rate ÷ link: above 1 the link cannot carry the rate.
        link_ratio: Option<f64> = ratio("rate ÷ link"),
        /// Requests a second as stated, or requests ÷ time.
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
    }
}

rows! {
    /// Links that are used in parallel.
    pub(super) struct LinkRow {
        /// One link, or several that are equal.
        link: String = text("link"),
    }
}

impl Summary {
    pub fn of(claim: &Claim, answer: Answer) -> Self {
        let (rate, link) = (claim.bytes_per_s(), claim.link_bytes_per_s());
        let ns = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e9);
        Self {
            outcome: answer.name(),
            rate_bytes_per_s: rate,
            link_bytes_per_s: link,
            link_ratio: rate.zip(link).map(|(rate, link)| rate / link),
            iops: claim.requests_per_s(),
            requests: claim.requests,
            disks: claim.disks,
            disk_iops: claim.requests_per_s().zip(claim.disks).map(|(rate, disks)| rate / disks),
            ratio: claim.compared.map(Compared::ratio),
            io_bytes: claim.io_bytes,
            in_flight: claim.in_flight,
            latency_ns: ns(claim.latency_s),
            data_bytes: claim.data_bytes,
            moved_bytes: claim.moved_bytes,
            time_ns: ns(claim.time_s),
            memory_bytes: claim.memory_bytes,
            direct: claim.direct,
        }
    }
}
