//! Workloads of writes, reads and trims: parts, each with a region, a share and a pattern.

mod names;
mod pattern;

use blockstone_base::rng::Rng;

pub use names::WorkloadError;
pub use pattern::Pattern;

use pattern::State;

#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadPart {
    pub name: String,
    /// Share of the pages; all shares are relative to their sum.
    pub pages: f64,
    /// Share of the writes, likewise.
    pub writes: f64,
    /// Share of the reads, likewise.
    pub reads: f64,
    pub pattern: Pattern,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Parts; their regions follow each other.
    pub parts: Vec<WorkloadPart>,
    /// Fraction of the requests that read, 0 to 1.
    pub reads: f64,
    pub pages_per_request: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    #[default]
    Read,
    Write,
    Trim,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub action: Action,
    /// First page.
    pub page: u32,
    pub pages: u32,
    pub part: u32,
}

/// An endless stream of requests, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Requests {
    parts: Vec<Region>,
    reads: f64,
    pages_per_request: u32,
    rng: Rng,
    /// The request that follows a trim, to be returned next.
    trim: Option<Request>,
}

#[derive(Clone, Debug)]
struct Region {
    first: u32,
    pages: u32,
    /// Upper end of its share in the cumulative distribution of all writes.
    writes_below: f64,
    reads_below: f64,
    state: State,
}

impl Workload {
    /// Returns the first page and the number of pages of each part, on a device of `logical_pages`
    /// pages.
    pub fn regions(&self, logical_pages: u32) -> Vec<(u32, u32)> {
        let sum = self.sum(|part| part.pages);
        let mut below = 0.0;
        let mut first = 0;
        let mut regions = Vec::new();
        for part in &self.parts {
            below += part.pages / sum;
            let end = (f64::from(logical_pages) * below).round() as u32;
            regions.push((first, end - first));
            first = end;
        }
        regions
    }

    /// Returns whether the pages of a part are exchangeable, so that counting them suffices.
    pub fn is_exchangeable(&self) -> bool {
        self.parts.iter().all(|part| part.pattern == Pattern::Uniform)
    }

    /// Returns the requests on a device of `logical_pages` pages.
    pub fn requests(&self, logical_pages: u32, seed: u64) -> Result<Requests, WorkloadError> {
        self.check(logical_pages)?;
        let writes = self.sum(|part| part.writes).max(1e-300);
        let reads = self.sum(|part| part.reads).max(1e-300);
        let (mut writes_below, mut reads_below) = (0.0, 0.0);
        let mut parts = Vec::new();
        for (part, (first, pages)) in self.parts.iter().zip(self.regions(logical_pages)) {
            writes_below += part.writes / writes;
            reads_below += part.reads / reads;
            let state = State::new(part.pattern, pages, self.pages_per_request);
            parts.push(Region { first, pages, writes_below, reads_below, state });
        }
        let rng = Rng::new(seed, 5);
        let (reads, pages_per_request) = (self.reads, self.pages_per_request);
        Ok(Requests { parts, reads, pages_per_request, rng, trim: None })
    }

    fn sum(&self, share: fn(&WorkloadPart) -> f64) -> f64 {
        self.parts.iter().map(share).sum()
    }

    fn check(&self, logical_pages: u32) -> Result<(), WorkloadError> {
        let shares = |part: &WorkloadPart| [part.pages, part.writes, part.reads];
        if let Some(part) = self.parts.iter().find(|part| {
            shares(part).iter().any(|share| !share.is_finite() || *share < 0.0) || part.pages == 0.0
        }) {
            return Err(WorkloadError::Share { part: part.name.clone() });
        }
        if self.parts.is_empty() || !(0.0..=1.0).contains(&self.reads) {
            return Err(WorkloadError::Reads { reads: self.reads, parts: self.parts.len() });
        }
        if (self.reads < 1.0 && self.sum(|part| part.writes) <= 0.0)
            || (self.reads > 0.0 && self.sum(|part| part.reads) <= 0.0)
        {
            return Err(WorkloadError::Nothing);
        }
        for (part, (_, pages)) in self.parts.iter().zip(self.regions(logical_pages)) {
            if pages < self.pages_per_request.max(1) || self.pages_per_request == 0 {
                let (part, request) = (part.name.clone(), self.pages_per_request);
                return Err(WorkloadError::Small { part, pages, request });
            }
        }
        Ok(())
    }
}

impl Requests {
    #[inline]
    pub fn draw(&mut self) -> Request {
        if let Some(trim) = self.trim.take() {
            return trim;
        }
        let reads = self.reads > 0.0 && self.rng.unit() < self.reads;
        let part = if self.parts.len() == 1 { 0 } else { self.choose(reads) };
        let region = &mut self.parts[part as usize];
        if reads {
            let page = region.state.read(&mut self.rng) + region.first;
            return Request { action: Action::Read, page, pages: self.pages_per_request, part };
        }
        let step = region.state.write(&mut self.rng);
        let (pages, page) = (self.pages_per_request, region.first + step.page);
        let write = Request { action: Action::Write, page, pages, part };
        let Some((from, count)) = step.trim_first else { return write };
        // A segment is trimmed as a whole before its space is written again.
        let count = count.min(region.pages - from);
        self.trim = Some(write);
        Request { action: Action::Trim, page: region.first + from, pages: count, part }
    }

    fn choose(&mut self, reads: bool) -> u32 {
        let drawn = self.rng.unit();
        let below = |region: &Region| if reads { region.reads_below } else { region.writes_below };
        let last = self.parts.len() - 1;
        self.parts[..last].iter().take_while(|region| below(region) <= drawn).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(text: &str) -> Workload {
        Workload { parts: names::parts(text).unwrap(), reads: 0.0, pages_per_request: 1 }
    }

    #[test]
    fn shares_are_met() {
        let mut requests = workload("hot-cold=20/80").requests(1000, 1).unwrap();
        let hot = (0..100_000).filter(|_| requests.draw().page < 200).count();
        assert!((78_000..82_000).contains(&hot), "{hot} of 100,000 writes are hot");
    }

    #[test]
    fn every_page_stays_within_the_device() {
        for text in ["uniform", "sequential", "zipf=0.99", "hot-cold=10/90", "oltp", "lsm", "temp"]
        {
            for pages_per_request in [1, 3] {
                let workload = Workload { pages_per_request, reads: 0.3, ..workload(text) };
                let mut requests = workload.requests(10_000, 1).unwrap();
                for _ in 0..50_000 {
                    let request = requests.draw();
                    assert!(request.page + request.pages <= 10_000, "{text}: {request:?}");
                    assert!(request.pages > 0);
                }
            }
        }
    }

    #[test]
    fn lsm_trims_each_segment_before_it_writes_it_again() {
        let mut requests = workload("lsm").requests(10_000, 1).unwrap();
        let mut valid = vec![false; 10_000];
        for _ in 0..100_000 {
            let request = requests.draw();
            let range = request.page as usize..(request.page + request.pages) as usize;
            match request.action {
                Action::Trim => valid[range].fill(false),
                Action::Write => {
                    assert!(!valid[range.start], "page {} overwritten", range.start);
                    valid[range].fill(true);
                }
                Action::Read => {}
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = workload("uniform");
        for bad in [
            Workload { parts: vec![], ..good.clone() },
            Workload { reads: f64::NAN, ..good.clone() },
            Workload { reads: 2.0, ..good.clone() },
            Workload { pages_per_request: 0, ..good.clone() },
            Workload { pages_per_request: 5000, ..good.clone() },
            Workload {
                parts: vec![WorkloadPart { writes: 0.0, ..good.parts[0].clone() }],
                ..good.clone()
            },
            Workload {
                parts: vec![WorkloadPart { pages: f64::INFINITY, ..good.parts[0].clone() }],
                ..good
            },
        ] {
            assert!(bad.requests(1000, 1).is_err(), "{bad:?}");
        }
    }
}
