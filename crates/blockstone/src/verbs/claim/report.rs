//! The report of `claim`.

use crate::verbs::claim::stated::{Answer, Claim, RATE};
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
        warnings: contradictions(claim).into_iter().chain(contradicts_little(claim)).collect(),
        verdicts,
        scalars: Some(figures),
        earlier: Some(earlier::keys),
        ..Report::default()
    }
}

fn words(claim: &Claim, answer: Answer) -> String {
    let rate = claim.bytes_per_s().map(rate).unwrap_or_default();
    match answer {
        Answer::Possible => format!("possible: nothing that is stated contradicts {rate}"),
        Answer::Memory => format!("memory: {rate} says nothing about the storage"),
        Answer::AboveLink => format!("above the link: {rate} cannot have passed through it"),
        Answer::WrongUnit => format!("wrong unit: {rate} is likely a number of bits"),
        Answer::Unknown if rate.is_empty() && claim.iops.is_some() => {
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
        claim.io_bytes.map(|bytes| format!("requests of {}", amount(bytes))),
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
    let size = claim.moved_bytes.or(claim.data_bytes);
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

/// Two rates or latencies of one claim that differ by more than a confusion of units.
fn contradictions(claim: &Claim) -> Vec<String> {
    let Some(stated) = claim.rate else { return Vec::new() };
    let others = [
        (claim.requested_bytes_per_s(), "requests × size"),
        (claim.moved_bytes_per_s(), "bytes ÷ time"),
    ];
    others
        .into_iter()
        .filter_map(|(other, name)| Some((other?, name)))
        .filter(|(other, _)| (stated / other - 1.0).abs() > 0.1)
        .map(|(other, name)| format!("{} is stated, {name} is {}", rate(stated), rate(other)))
        .collect()
}

/// A latency that differs from that of the requests in flight and their rate (Little's law).
fn contradicts_little(claim: &Claim) -> Option<String> {
    let (stated, other) = (claim.latency_s?, claim.latency_of_rate_s()?);
    let words = match claim.in_flight {
        Some(count) => format!("{} requests in flight ÷ IOPS", three_digits(count)),
        None => "1 ÷ IOPS".to_owned(),
    };
    // The number in flight may be unknown; then a longer latency means that there are more of them.
    let differs = match claim.in_flight {
        Some(_) => (stated / other - 1.0).abs() > 0.1,
        None => stated < 0.99 * other,
    };
    let time = |seconds: f64| format_ns(seconds * 1e9);
    differs.then(|| format!("{} is stated, {words} is {}", time(stated), time(other)))
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
