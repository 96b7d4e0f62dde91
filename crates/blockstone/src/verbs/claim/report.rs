//! The report of `claim`.

use crate::verbs::claim::stated::{Answer, Claim, RATE, RATIO};
use blockstone_base::table::Rows as _;
use blockstone_base::units::{format_ns, format_span, three_digits};
use blockstone_base::verdict::Verdict;
use blockstone_report::{Card, Headline, Report, Section, Tone};

use super::earlier;
use super::rows::{LinkRow, Summary};

const DAY_S: f64 = 86_400.0;
const YEAR_S: f64 = 365.2425 * DAY_S;

pub fn report(claim: &Claim, answer: Answer, verdicts: Vec<Verdict>) -> Report {
    let figures = Summary::table("figures", "", [Summary::of(claim, answer)]).record();
    let links = claim.links.iter().map(|link| LinkRow { link: link.to_string() });
    let links = LinkRow::table("links", "Links", links);
    let condemned_by: Vec<String> = verdicts
        .iter()
        .filter(|verdict| verdict.condemns())
        .map(|verdict| verdict.rule.clone())
        .collect();
    let tone = match answer {
        Answer::Possible => Tone::Plain,
        Answer::Unknown => Tone::Warning,
        _ => Tone::Bad,
    };
    Report {
        verb: "claim".into(),
        version: 2,
        headline: Headline { text: words(claim, answer), tone, ..Headline::default() },
        identity: vec![identity(claim)],
        cards: cards(claim, &condemned_by),
        sections: vec![Section::page("figures", "All figures").with([figures.clone(), links])],
        verdicts,
        scalars: Some(figures),
        earlier: Some(earlier::keys),
        ..Report::default()
    }
}

fn words(claim: &Claim, answer: Answer) -> String {
    let rate = claim.bytes_per_s().map(rate).unwrap_or_default();
    match answer {
        Answer::Possible if rate.is_empty() => {
            "possible: nothing that is stated contradicts it".to_owned()
        }
        Answer::Possible => format!("possible: nothing that is stated contradicts {rate}"),
        Answer::Memory => format!("memory: {rate} says nothing about the storage"),
        Answer::AboveLink => format!("above the link: {rate} cannot have passed through it"),
        Answer::WrongUnit => format!("wrong unit: {rate} is likely a number of bits"),
        Answer::Contradiction => "contradiction: the numbers of the claim do not agree".to_owned(),
        Answer::Unknown if rate.is_empty() && claim.requests_per_s().is_some() => {
            "unknown: the size of the requests is not stated".to_owned()
        }
        Answer::Unknown if rate.is_empty() => "unknown: no rate is stated".to_owned(),
        Answer::Unknown => {
            format!("unknown: to check {rate}, state the link, or the data and the memory")
        }
    }
}

/// Describes the claim as it was understood.
fn identity(claim: &Claim) -> String {
    let amount = |bytes: f64| decimal(bytes, "B");
    let parts = [
        claim.rate.map(rate),
        claim.iops.map(|iops| format!("{} IOPS", three_digits(iops))),
        claim.requests.map(|count| format!("{} requests", three_digits(count))),
        claim.io_bytes.map(|bytes| format!("requests of {}", amount(bytes))),
        claim.disks.map(|count| format!("{} disks", three_digits(count))),
        claim.in_flight.map(|count| format!("{} in flight", three_digits(count))),
        claim.latency_s.map(|seconds| format!("latency {}", format_ns(seconds * 1e9))),
        claim.moved_bytes.map(|bytes| format!("{} moved", amount(bytes))),
        claim.time_s.map(|seconds| format!("in {}", format_span((seconds * 1e9) as u64))),
        (!claim.links.is_empty()).then(|| format!("over {}", claim.link())),
        claim.data_bytes.map(|bytes| format!("{} of data", amount(bytes))),
        claim.memory_bytes.map(|bytes| format!("{} of memory", amount(bytes))),
        claim.direct.then(|| "direct I/O".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn cards(claim: &Claim, condemned_by: &[String]) -> Vec<Card> {
    let (stated, link) = (claim.bytes_per_s(), claim.link_bytes_per_s());
    let mut cards = Vec::new();
    cards.extend(stated.map(|rate| Card {
        condemned_by: condemned_by.to_vec(),
        ..Card::exact(RATE, "rate", rate / 1e6, "MB/s").source(origin(claim))
    }));
    cards.extend(link.map(|link| {
        Card::exact("link_mbps", "link at most", link / 1e6, "MB/s").source(claim.link())
    }));
    cards.extend(
        stated
            .zip(link)
            .map(|(rate, link)| Card::exact("link_share", "rate ÷ link", rate / link * 100.0, "%")),
    );
    let size = claim.moved().or(claim.data_bytes);
    cards.extend(size.zip(stated).filter(|_| claim.time_s.is_none()).map(|(bytes, rate)| {
        let source = format!("{} at the stated rate", decimal(bytes, "B"));
        Card::exact("time_s", "time", bytes / rate, "s").source(source)
    }));
    cards.extend(size.zip(link).map(|(bytes, link)| {
        let source = format!("{} over the link", decimal(bytes, "B"));
        Card::exact("link_time_s", "time at least", bytes / link, "s").source(source)
    }));
    cards.extend(claim.time_s.zip(link).map(|(seconds, link)| {
        let source = format!("over the link in {}", format_span((seconds * 1e9) as u64));
        Card::exact("link_gb", "bytes at most", seconds * link / 1e9, "GB").source(source)
    }));
    cards.extend(counted(claim, condemned_by));
    cards.extend(claim.latency_of_rate_s().map(|seconds| {
        let source = match claim.in_flight {
            Some(count) => format!("{} in flight ÷ IOPS", three_digits(count)),
            None => "1 ÷ IOPS: a latency only with one request in flight".to_owned(),
        };
        let card = if seconds < 1e-3 {
            Card::exact("latency_us", "latency", seconds * 1e6, "µs")
        } else {
            Card::exact("latency_ms", "latency", seconds * 1e3, "ms")
        };
        card.source(source)
    }));
    let long = stated.filter(|_| claim.time_s.is_some_and(|seconds| seconds >= DAY_S));
    cards.extend(long.map(|rate| {
        Card::exact("year_tb", "in a year", rate * YEAR_S / 1e12, "TB").source("at this rate")
    }));
    cards.extend(claim.memory_share().map(|share| {
        let source = "of the data".to_owned();
        Card::exact("memory_share", "memory can hold", share * 100.0, "%").source(source)
    }));
    cards
}

/// Returns what follows from numbers of requests and disks, and from values that are compared.
fn counted(claim: &Claim, condemned_by: &[String]) -> Vec<Card> {
    let mut cards = Vec::new();
    let requests = claim.requests_per_s();
    if claim.iops.is_none() {
        cards.extend(
            requests.map(|rate| {
                Card::exact("iops", "requests", rate, "IOPS").source("requests ÷ time")
            }),
        );
    }
    cards.extend(claim.disks.zip(requests).map(|(disks, rate)| {
        let source = format!("each of {} disks", three_digits(disks));
        Card::exact("disk_iops", "a disk", rate / disks, "IOPS").source(source)
    }));
    cards.extend(claim.disks.zip(claim.bytes_per_s()).map(|(disks, rate)| {
        let source = format!("each of {} disks", three_digits(disks));
        Card::exact("disk_mbps", "a disk", rate / disks / 1e6, "MB/s").source(source)
    }));
    cards.extend(claim.compared.map(|compared| {
        let condemned = condemned_by.iter().filter(|rule| *rule == "contradiction").cloned();
        Card {
            condemned_by: condemned.collect(),
            ..Card::exact(RATIO, "first ÷ second", compared.ratio(), "times")
        }
    }));
    cards
}

/// Names the source of the rate.
fn origin(claim: &Claim) -> &'static str {
    if claim.rate.is_some() {
        "stated"
    } else if claim.requested_bytes_per_s().is_some() {
        "requests a second × their size"
    } else {
        "bytes ÷ time"
    }
}

fn rate(bytes_per_s: f64) -> String {
    decimal(bytes_per_s, "B/s")
}

/// Formats three digits with a decimal prefix, as rates and data sheets are written.
fn decimal(value: f64, unit: &str) -> String {
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let found = prefixes.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, ""));
    format!("{} {}{unit}", three_digits(value / found.0), found.1)
}
