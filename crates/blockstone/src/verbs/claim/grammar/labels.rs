//! Numbers after their names, as tools print them: `IOPS=23.1k`, `bs=4k`, `RAM: 16 GB`, `QD32`.

use anyhow::{Result, bail};

use super::{EXAMPLE, Figure, Parser, once};
use crate::failure::Failure;
use crate::verbs::claim::stated::Span;
use crate::verbs::claim::units::{self, Unit};
use crate::verbs::claim::words::{Quantity, is_one};

const NAMES: &[&str] = &[
    "iops",
    "bs",
    "blocksize",
    "io",
    "run",
    "ram",
    "memory",
    "dram",
    "iodepth",
    "depth",
    "qd",
    "numjobs",
    "jobs",
    "direct",
    "raid",
    "size",
];
/// Those whose number has no unit.
const COUNTS: &[&str] = &["iodepth", "depth", "qd", "numjobs", "jobs", "direct", "raid"];

impl Parser<'_> {
    /// Reads a name with its number.
    pub(super) fn label(&mut self) -> Result<bool> {
        let Some(word) = self.words.peek() else { return Ok(false) };
        let name = word.trim_start_matches("--").to_ascii_lowercase();
        if let Some((depth, jobs)) = depth_in_name(&name) {
            self.words.next();
            once(&mut self.depth, depth, "requests in flight")?;
            if let Some(jobs) = jobs {
                once(&mut self.jobs, jobs, "a number of jobs")?;
            }
            return Ok(true);
        }
        if !is_one(&name, NAMES) {
            return Ok(false);
        }
        let before = self.words.clone();
        self.words.next();
        let assigned = self.words.take_if(&["="]) || self.words.take_if(&["of", "is", "was"]);
        if name == "iops" {
            return self.labelled_iops();
        }
        if is_one(&name, COUNTS) {
            let count = self.words.attempt(|words| words.next()?.parse::<u32>().ok());
            let Some(count) = count else {
                self.words = before;
                return Ok(false);
            };
            return self.labelled_count(&name, count, assigned);
        }
        let found = self.words.quantity();
        let claim = &mut self.claim;
        match (name.as_str(), found.map(|found| (found.unit, found.span))) {
            ("bs" | "blocksize", Some((Unit::Bytes, size))) => {
                once(&mut claim.io_bytes, size, "the size of a request")?;
            }
            ("io", Some((Unit::Bytes, size))) if assigned => {
                once(&mut claim.moved_bytes, size, "bytes moved")?;
            }
            ("size", Some((Unit::Bytes, size))) => {
                once(&mut claim.data_bytes, size, "the size of the data")?;
            }
            ("run", Some((Unit::Seconds, time))) => once(&mut claim.time_s, time, "a time")?,
            ("ram" | "memory" | "dram", Some((Unit::Bytes, size))) => {
                once(&mut claim.memory_bytes, size, "memory")?;
            }
            _ => {
                self.words = before;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn labelled_count(&mut self, name: &str, count: u32, assigned: bool) -> Result<bool> {
        let span = Span::of(f64::from(count));
        match name {
            "numjobs" | "jobs" => once(&mut self.jobs, span, "a number of jobs")?,
            "raid" => self.claim.mentioned.push(format!("RAID {count}")),
            "direct" if assigned && count < 2 => self.claim.direct |= count == 1,
            "direct" => bail!(Failure::new("understand the claim: direct is 0 or 1", EXAMPLE)),
            _ if count == 0 => {
                bail!(Failure::new("understand the claim: no request in flight", EXAMPLE))
            }
            _ => once(&mut self.depth, span, "requests in flight")?,
        }
        Ok(true)
    }

    /// Reads the number after `IOPS`; `k` and `M` are decimal.
    fn labelled_iops(&mut self) -> Result<bool> {
        // `IOPS from 2,736 to 22,000`.
        let pair = self.words.attempt(|words| {
            words.take_if(&["went", "rose", "grew", "increased", "improved", "dropped", "fell"]);
            words.take_if(&["from"]).then_some(())?;
            let (first, first_suffix) = units::number(words.next()?)?;
            words.take_if(&["to", "→"]).then_some(())?;
            let (second, suffix) = units::number(words.next()?)?;
            let scale = units::thousands(suffix)?;
            let of_first =
                if first_suffix.is_empty() { scale } else { units::thousands(first_suffix)? };
            Some((second.times(scale), first.times(of_first)))
        });
        if let Some((second, first)) = pair {
            let iops = |span| Quantity { unit: Unit::Iops, span };
            self.compared(iops(second), iops(first));
            return Ok(true);
        }
        let number = self.words.attempt(|words| {
            words.take_if(&["up"]);
            words.take_if(&["to"]);
            let (number, suffix) = units::number(words.next()?)?;
            Some(number.times(units::thousands(suffix)?))
        });
        let Some(number) = number else {
            bail!(Failure::new("understand the claim: `IOPS` has no number", EXAMPLE));
        };
        self.flow(Figure::Iops, number);
        Ok(true)
    }
}

/// Reads requests in flight, and how many threads have as many, from `qd32` or `q32t1`.
fn depth_in_name(name: &str) -> Option<(Span, Option<Span>)> {
    let count = |text: &str| text.parse().ok().filter(|&count: &u32| count > 0).map(f64::from);
    let rest = name.strip_prefix("qd").or_else(|| name.strip_prefix('q'))?;
    match rest.split_once('t') {
        Some((depth, jobs)) => Some((Span::of(count(depth)?), Some(Span::of(count(jobs)?)))),
        None => Some((Span::of(count(rest)?), None)),
    }
}
