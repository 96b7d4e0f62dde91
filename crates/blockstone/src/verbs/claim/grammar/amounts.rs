//! Numbers of things, bytes and times, and what they are the size of.

use anyhow::{Result, bail};

use super::{EXAMPLE, Figure, Parser, direction, once};
use crate::failure::Failure;
use crate::verbs::claim::links;
use crate::verbs::claim::stated::{Disks, Span};
use crate::verbs::claim::units::{self, Unit};
use crate::verbs::claim::vocabulary::{
    COUNTED, DATA, DISKS, HOSTS, KINDS, LATENCY, LINKS, MEAN, MEMORY, MOVED, QUANTILES, REQUESTS,
    ROTATING, WAITING,
};
use crate::verbs::claim::words::{TIMES, Words, is_one};

/// Sizes up to this are request sizes after `at`, `of` or `in`.
pub(super) const REQUEST_BYTES_MAX: f64 = 64.0 * 1024.0 * 1024.0;
/// Bytes that are `read` or `written` are those of a request up to this size.
const READ_BYTES_MAX: f64 = 4.0 * 1024.0 * 1024.0;

impl Parser<'_> {
    /// Assigns a number without a unit to what it is a number of.
    pub(super) fn count(&mut self, count: Span, digits: &str) -> Result<()> {
        if self.words.are_waiting(WAITING) {
            let sum = self.claim.in_flight.map_or(count, |before| before.plus(count));
            self.claim.in_flight = Some(sum);
            return Ok(());
        }
        if let Some(disks) = self.disks(count) {
            if self.claim.disks.replace(disks).is_some_and(|before| before != disks) {
                bail!(Failure::new("understand the claim: it states disks twice", EXAMPLE));
            }
            return Ok(());
        }
        if self.words.is_next(LINKS) && self.links(count) {
            return Ok(());
        }
        if self.words.take_if(HOSTS) {
            self.claim.mentioned.push(format!("{digits} {}", self.words.last()));
            return Ok(());
        }
        let times = self.words.take_if(TIMES);
        let before = self.words.clone();
        while self.words.take_if(KINDS) {}
        if self.words.is_next(DATA) {
            return once(&mut self.files, count, "a number of files");
        }
        self.words = before;
        if self.words.is_next(COUNTED) {
            return self.requests(count);
        }
        self.sized(count, times, digits)
    }

    /// Reads a number of disks and what is said of them: `65 x 15k SAS drives`.
    fn disks(&mut self, count: Span) -> Option<Disks> {
        self.words.attempt(|words| {
            words.take_if(TIMES);
            disks_of(words, count)
        })
    }

    /// Reads `per disk`, `a 7.2k disk`.
    pub(super) fn one_disk(&mut self) -> Option<Disks> {
        self.words.attempt(|words| {
            words.take_if(&["per", "a", "each", "every"]).then_some(())?;
            disks_of(words, Span::of(1.0))
        })
    }

    /// Reads a number of ports: `4 ports of 16Gb FC`, or those of the link before.
    fn links(&mut self, count: Span) -> bool {
        let number = count.value() as u32;
        self.words.next();
        self.words.take_if(&["of"]);
        if let Some(path) = links::path(&mut self.words, false) {
            self.claim.links.push(crate::verbs::claim::stated::Path {
                count: path.count.saturating_mul(number),
                ..path
            });
            return true;
        }
        match self.claim.links.last_mut() {
            Some(last) if last.count == 1 => last.count = number.max(1),
            _ => self.claim.mentioned.push(format!("{number} ports")),
        }
        true
    }

    /// Takes a number of requests in all, or per second.
    fn requests(&mut self, count: Span) -> Result<()> {
        let mut ahead = self.words.clone();
        let mut of = None;
        while ahead.is_next(COUNTED) {
            of = of.or(ahead.peek().and_then(|word| direction(&word.to_ascii_lowercase())));
            ahead.next();
        }
        if ahead.a_second() {
            self.words = ahead;
            self.kind.direction = self.kind.direction.or(of);
            self.flow(Figure::Iops, count);
            return Ok(());
        }
        self.words.take_if(&["random", "sequential"]);
        self.words.next();
        once(&mut self.claim.requests, count, "a number of requests")
    }

    /// Takes a number of things of a size: `49,395 × 32K`, `2,097,152 4K writes`, `6 x 512 MB`.
    fn sized(&mut self, count: Span, times: bool, digits: &str) -> Result<()> {
        let size = self.words.clone().quantity().filter(|size| size.unit == Unit::Bytes);
        let Some(size) = size else {
            bail!(Failure::new(
                format!("understand the claim: `{digits}` is a number of nothing that is known"),
                EXAMPLE
            ));
        };
        let mut ahead = self.words.clone();
        ahead.quantity();
        let of_requests = times || ahead.is_next(COUNTED);
        if size.span.high <= REQUEST_BYTES_MAX && !ahead.is_next(DATA) && of_requests {
            self.words = ahead;
            once(&mut self.claim.io_bytes, size.span, "the size of a request")?;
            return once(&mut self.claim.requests, count, "a number of requests");
        }
        once(&mut self.files, count, "a number of files")
    }

    /// Assigns a number of bytes to what it is the size of, judging by the words around it.
    pub(super) fn bytes(&mut self, bytes: Span) -> Result<()> {
        let before = self.words.before_quantity();
        if self.capacity() {
            return Ok(());
        }
        let words = &mut self.words;
        let of = words.take_if(&["of"]);
        words.take_if(&["main", "physical", "system", "page"]);
        if words.take_if(MEMORY) {
            return once(&mut self.claim.memory_bytes, bytes, "memory");
        }
        let claim = &mut self.claim;
        let small = bytes.high <= REQUEST_BYTES_MAX;
        if words.is_next(DATA) && !is_one(before, MOVED) {
            return once(&mut claim.data_bytes, bytes, "the size of the data");
        }
        let is_verb = words.is_next(&["read", "write", "written"]) && bytes.high > READ_BYTES_MAX;
        let of_request = words.is_next(REQUESTS) && !is_verb && !of;
        let at = is_one(before, &["at", "@"]);
        let counts = !claim.iops.is_empty() || claim.requests.is_some();
        if small
            && !is_one(before, MOVED)
            && (of_request || at || (counts && claim.io_bytes.is_none()))
        {
            return once(&mut claim.io_bytes, bytes, "the size of a request");
        }
        if is_one(before, &["from", "of"]) && claim.data_bytes.is_none() {
            return once(&mut claim.data_bytes, bytes, "the size of the data");
        }
        once(&mut claim.moved_bytes, bytes, "bytes that were moved")
    }

    /// Whether the bytes are the capacity of a disk: `1 TB NVMe SSD`.
    fn capacity(&mut self) -> bool {
        let size = self.words.last();
        let named = self.words.attempt(|words| {
            while words.take_if(KINDS) {}
            words.take_if(DISKS).then_some(())
        });
        if named.is_some() {
            match (rpm_of(size), &mut self.claim.disks) {
                (Some(rpm), Some(disks)) => (disks.rpm, disks.rotating) = (Some(rpm), true),
                _ => self.claim.mentioned.push(format!("a disk of {size}")),
            }
        }
        named.is_some()
    }

    /// Takes a time, or a latency if the words around it or its place say so.
    pub(super) fn time(&mut self, span: Span) -> Result<()> {
        let before = self.words.before_quantity();
        while self.words.take_if(MEAN) {}
        let is_quantile = std::mem::take(&mut self.is_quantile) || self.words.take_if(QUANTILES);
        let of_requests = !self.claim.iops.is_empty() || self.depth.is_some();
        let is_short = span.value() < 1.0 && of_requests && is_one(before, &["at", "@", "and"]);
        let after = self.words.attempt(|words| {
            words.take_if(&["read", "write"]);
            words.take_if(LATENCY).then_some(())
        });
        let is_latency = std::mem::take(&mut self.of_latency) || after.is_some();
        if !is_latency && !is_short && !is_quantile {
            return once(&mut self.claim.time_s, span, "a time");
        }
        self.words.take_if(&["time", "times"]);
        if is_quantile {
            self.claim.mentioned.push("a quantile of the latency".to_owned());
            return Ok(());
        }
        once(&mut self.claim.latency_s, span, "a latency")
    }

    /// Reads a number that is written as a word before what it counts: `two disks`.
    pub(super) fn spelled_count(&mut self) -> Option<u32> {
        self.words.attempt(|words| {
            let count = words.small_number()?;
            let mut ahead = words.clone();
            while ahead.take_if(KINDS) {}
            let nouns = [DISKS, WAITING, DATA, LINKS, HOSTS];
            let counts = nouns.iter().any(|nouns| ahead.is_next(nouns));
            let sized = ahead.clone().quantity().is_some_and(|next| next.unit == Unit::Bytes);
            (counts || sized).then_some(count)
        })
    }
}

/// Reads what is said of disks, up to their name.
fn disks_of(words: &mut Words<'_>, count: Span) -> Option<Disks> {
    let (mut rpm, mut rotating) = (None, false);
    while !words.is_next(DISKS) {
        let is_kind = words.take_if(KINDS);
        if is_kind {
            continue;
        }
        if let Some(found) = words.attempt(|words| rpm_of(words.next()?)) {
            rpm = Some(found);
        } else if !words.take_if(&["rpm"]) {
            // Their capacity.
            let size = words.quantity()?;
            (size.unit == Unit::Bytes).then_some(())?;
        }
    }
    rotating |= rpm.is_some() || words.is_next(ROTATING);
    words.next();
    Some(Disks { count: count.value(), rotating, rpm })
}

/// Reads revolutions a minute: `15k`, `7.2k`, `10krpm`, `15,000`.
fn rpm_of(word: &str) -> Option<f64> {
    let (number, suffix) = units::number(word)?;
    let rpm = match suffix.to_ascii_lowercase().as_str() {
        "k" | "krpm" => number.low * 1e3,
        "rpm" => number.low,
        "" if number.low >= 1_000.0 => number.low,
        _ => return None,
    };
    [5_400.0, 5_900.0, 7_200.0, 10_000.0, 15_000.0].contains(&rpm).then_some(rpm)
}
