//! Workloads by name.

use std::str::FromStr;

use blockstone_base::hint::Hint;

use super::{Pattern, Workload, WorkloadPart};

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum WorkloadError {
    #[error("read workload: unknown workload `{text}`")]
    #[hint(
        "write uniform, sequential, zipf=0.99, hot-cold=20/80, oltp, lsm, or parts with their \
         share of the writes as in redo=20+datafile=70+undo=10"
    )]
    Name { text: String },
    #[error("part {part}: its shares are invalid")]
    #[hint("shares are numbers, that of pages above 0")]
    Share { part: String },
    #[error("{parts} parts with a share of {reads} reads make no workload")]
    #[hint("0 to 1")]
    Reads { reads: f64, parts: usize },
    #[error("no part receives the writes or the reads")]
    #[hint("give a part a share of them")]
    Nothing,
    #[error("part {part} has {pages} pages, a request {request}")]
    #[hint("at least one page a request, and a larger device or smaller requests")]
    Small { part: String, pages: u32, request: u32 },
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        Ok(Self { parts: parts(text)?, reads: 0.0, pages_per_request: 1 })
    }
}

/// Parts of a database: name, share of the pages, default share of the writes, share of the reads,
/// pattern. The shares are those of an order-entry load.
const DATABASE: [(&str, f64, f64, f64, Pattern); 5] = [
    ("redo", 0.02, 20.0, 0.0, Pattern::Circular),
    ("datafile", 0.83, 65.0, 95.0, Pattern::Zipf(0.8)),
    ("undo", 0.05, 10.0, 3.0, Pattern::Circular),
    ("temp", 0.10, 5.0, 2.0, Pattern::Temporary),
    ("lsm", 1.0, 100.0, 100.0, Pattern::Segments(1)),
];

pub(super) fn parts(text: &str) -> Result<Vec<WorkloadPart>, WorkloadError> {
    let fail = || WorkloadError::Name { text: text.to_owned() };
    let whole = |pattern| {
        let name = text.split('=').next().unwrap_or(text).to_owned();
        vec![WorkloadPart { name, pages: 1.0, writes: 1.0, reads: 1.0, pattern }]
    };
    let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
    match (name, value) {
        ("uniform", None) => Ok(whole(Pattern::Uniform)),
        ("sequential", None) => Ok(whole(Pattern::Circular)),
        ("zipf", theta) => {
            let theta: f64 = theta.unwrap_or("0.99").parse().map_err(|_| fail())?;
            let known = (0.01..=0.999).contains(&theta);
            if known { Ok(whole(Pattern::Zipf(theta))) } else { Err(fail()) }
        }
        ("hot-cold", value) => hot_cold(value.unwrap_or("20/80")).ok_or_else(fail),
        ("oltp", None) => database("redo+datafile+undo+temp").ok_or_else(fail),
        _ => database(text).ok_or_else(fail),
    }
}

/// Parses `F/R`: F percent of the pages get R percent of the writes.
fn hot_cold(value: &str) -> Option<Vec<WorkloadPart>> {
    let (f, r) = value.split_once('/')?;
    let (f, r): (f64, f64) = (f.parse().ok()?, r.parse().ok()?);
    let inside = |share: f64| share > 0.0 && share < 100.0;
    if !inside(f) || !inside(r) {
        return None;
    }
    let part = |name: &str, pages: f64, writes: f64| WorkloadPart {
        name: name.to_owned(),
        pages: pages / 100.0,
        writes: writes / 100.0,
        reads: writes / 100.0,
        pattern: Pattern::Uniform,
    };
    Some(vec![part("hot", f, r), part("cold", 100.0 - f, 100.0 - r)])
}

fn database(text: &str) -> Option<Vec<WorkloadPart>> {
    let mut parts: Vec<WorkloadPart> = Vec::new();
    for term in text.split('+') {
        let (name, share) = term.split_once('=').map_or((term, None), |(n, v)| (n, Some(v)));
        let &(name, pages, writes, reads, pattern) =
            DATABASE.iter().find(|(known, ..)| *known == name)?;
        let writes = match share {
            Some(share) => {
                share.parse().ok().filter(|share: &f64| *share > 0.0 && share.is_finite())?
            }
            None => writes,
        };
        if parts.iter().any(|part| part.name == name) {
            return None;
        }
        // If a part that is never read is the only one, its pages are read after all.
        let reads = if text == name { 1.0 } else { reads };
        parts.push(WorkloadPart { name: name.to_owned(), pages, writes, reads, pattern });
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known() {
        for (text, count) in [
            ("uniform", 1),
            ("zipf", 1),
            ("zipf=0.5", 1),
            ("hot-cold=5/95", 2),
            ("oltp", 4),
            ("redo", 1),
            ("redo=20+datafile=80", 2),
            ("lsm", 1),
        ] {
            assert_eq!(parts(text).unwrap().len(), count, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in [
            "",
            "unifrom",
            "zipf=1",
            "zipf=x",
            "hot-cold=0/80",
            "hot-cold=20",
            "redo=0",
            "redo=nan",
            "redo+redo",
            "redo=20+",
            "uniform=3",
        ] {
            assert!(parts(text).is_err(), "{text} is accepted");
        }
    }
}
