//! The report of `claim`.

use crate::verbs::claim::stated::{
    Answer, Claim, Compared, DISK_IOPS, DISK_MBPS, Disks, IOPS, RATE, RATIO, Span,
};
use blockstone_base::table::Rows as _;
use blockstone_base::units::{format_ns, format_span, three_digits};
use blockstone_base::verdict::Verdict;
use blockstone_report::{Card, Headline, Report, Section, Tone};

use super::earlier;
use super::rows::{LinkRow, RateRow, Summary};
use super::units::Unit;

const DAY_S: f64 = 86_400.0;
const YEAR_S: f64 = 365.2425 * DAY_S;

pub fn report(claim: &Claim, answer: Answer, verdicts: Vec<Verdict>) -> Report {
    let figures = Summary::table("figures", "", [Summary::of(claim, answer)]).record();
    let links = claim.links.iter().map(|link| LinkRow { link: link.to_string() });
    let links = LinkRow::table("links", "Links", links);
    let rates = RateRow::table("rates", "Rates as stated", RateRow::all(claim));
    let tone = match answer {
        Answer::Possible => Tone::Plain,
        Answer::Doubtful | Answer::Unknown => Tone::Warning,
        _ => Tone::Bad,
    };
    Report {
        verb: "claim".into(),
        version: 2,
        headline: Headline { text: words(claim, answer), tone, ..Headline::default() },
        identity: vec![identity(claim)],
        cards: cards(claim, &verdicts),
        sections: vec![Section::page("figures", "All figures").with([
            figures.clone(),
            rates,
            links,
        ])],
        verdicts,
        scalars: Some(figures),
        earlier: Some(earlier::keys),
        ..Report::default()
    }
}

fn words(claim: &Claim, answer: Answer) -> String {
    let requests = || claim.requests_per_s().map(|iops| format!("{} IOPS", three_digits(iops)));
    let rate = claim.bytes_per_s().map(rate);
    let rate = match answer {
        Answer::Memory => rate.or_else(requests).unwrap_or_else(|| "it".to_owned()),
        _ => rate.unwrap_or_default(),
    };
    match answer {
        Answer::Possible if rate.is_empty() => {
            "possible: nothing that is stated contradicts it".to_owned()
        }
        Answer::Possible => format!("possible: nothing that is stated contradicts {rate}"),
        Answer::Memory => format!("memory: {rate} says nothing about the storage"),
        Answer::AboveLink => format!("above the link: {rate} cannot have passed through it"),
        Answer::WrongUnit => format!("wrong unit: {rate} is likely a number of bits"),
        Answer::Contradiction => "contradiction: the numbers of the claim do not agree".to_owned(),
        Answer::Doubtful => "doubtful: a disk alone does not do that".to_owned(),
        Answer::Unknown if rate.is_empty() && claim.compared.is_some() => {
            "unknown: no ratio is stated to compare with that of the values".to_owned()
        }
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
    let amount = |bytes: Span| range(bytes, |bytes| decimal(bytes, "B"));
    let count = |span: Span| range(span, three_digits);
    let of = |of: String, rate: String| format!("{rate} {of}").trim_end().to_owned();
    let rates = claim.rates.iter().map(|flow| of(flow.of.to_string(), range(flow.span, rate)));
    let iops = claim.iops.iter();
    let iops = iops.map(|flow| of(flow.of.to_string(), format!("{} IOPS", count(flow.span))));
    let per = [(claim.per_disk, "a disk"), (claim.per_link, "a link")];
    let per = per.into_iter().filter(|(is_per, _)| *is_per).map(|(_, per)| per.to_owned());
    let parts = [
        claim.compared.as_ref().and_then(compared),
        claim.requests.map(|requests| format!("{} requests", count(requests))),
        claim.io_bytes.map(|bytes| format!("requests of {}", amount(bytes))),
        claim.disks.map(disks),
        claim.in_flight.map(|depth| format!("{} in flight", count(depth))),
        claim.latency_s.map(|s| format!("latency {}", range(s, |s| format_ns(s * 1e9)))),
        claim.moved_bytes.map(|bytes| format!("{} moved", amount(bytes))),
        claim.time_s.map(|s| format!("in {}", range(s, |s| format_span((s * 1e9) as u64)))),
        (!claim.links.is_empty()).then(|| format!("over {}", claim.link())),
        claim.carries.protocol.filter(|_| claim.links.is_empty()).map(|it| it.name().to_owned()),
        claim.data_bytes.map(|bytes| format!("{} of data", amount(bytes))),
        claim.memory_bytes.map(|bytes| format!("{} of memory", amount(bytes))),
        claim.direct.then(|| "direct I/O".to_owned()),
        claim.cached.then(|| "cached".to_owned()),
        (!claim.mentioned.is_empty()).then(|| format!("not used: {}", claim.mentioned.join(", "))),
    ];
    let parts = rates.chain(iops).chain(per).chain(parts.into_iter().flatten());
    parts.collect::<Vec<_>>().join(" · ")
}

/// Describes the values that are compared, and what is said of them.
fn compared(compared: &Compared) -> Option<String> {
    let text = |span: Span| {
        range(span, |value| match compared.unit {
            Unit::Bytes => decimal(value, "B"),
            Unit::Bits => decimal(value, "bit"),
            Unit::BytesPerS => rate(value),
            Unit::BitsPerS => decimal(value, "bit/s"),
            Unit::Iops => format!("{} IOPS", three_digits(value)),
            Unit::Seconds => format_ns(value * 1e9),
            Unit::Count | Unit::Percent | Unit::Times => three_digits(value),
        })
    };
    let (first, second) = compared.values?;
    let values = format!("{} against {}", text(first), text(second));
    let stated = compared.stated.iter().map(ToString::to_string);
    Some([values].into_iter().chain(stated).collect::<Vec<_>>().join(", "))
}

fn disks(disks: Disks) -> String {
    let rpm = disks.rpm.map(|rpm| format!(" of {} rpm", three_digits(rpm))).unwrap_or_default();
    format!("{} disks{rpm}", three_digits(disks.count))
}

/// Formats a value, a range or a bound.
fn range(span: Span, format: impl Fn(f64) -> String) -> String {
    if span.is_exact() {
        format(span.low)
    } else if span.high.is_infinite() {
        format!("at least {}", format(span.low))
    } else if span.low == 0.0 {
        format!("at most {}", format(span.high))
    } else {
        format!("{} to {}", format(span.low), format(span.high))
    }
}

fn cards(claim: &Claim, verdicts: &[Verdict]) -> Vec<Card> {
    let (stated, link) = (claim.bytes_per_s(), claim.link_bytes_per_s());
    let mut cards = Vec::new();
    cards.extend(stated.map(|rate| Card {
        condemned_by: condemning(verdicts, RATE),
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
    let size = claim.moved().or(claim.data_bytes).map(Span::least);
    let time_s = claim.time_s.map(Span::value);
    cards.extend(size.zip(stated).filter(|_| time_s.is_none()).map(|(bytes, rate)| {
        let source = format!("{} at the stated rate", decimal(bytes, "B"));
        Card::exact("time_s", "time", bytes / rate, "s").source(source)
    }));
    cards.extend(size.zip(link).map(|(bytes, link)| {
        let source = format!("{} over the link", decimal(bytes, "B"));
        Card::exact("link_time_s", "time at least", bytes / link, "s").source(source)
    }));
    cards.extend(time_s.zip(link).map(|(seconds, link)| {
        let source = format!("over the link in {}", format_span((seconds * 1e9) as u64));
        Card::exact("link_gb", "bytes at most", seconds * link / 1e9, "GB").source(source)
    }));
    cards.extend(counted(claim, verdicts));
    cards.extend(claim.latency_of_rate_s().map(|seconds| latency(claim, seconds.value())));
    let long = stated.filter(|_| time_s.is_some_and(|seconds| seconds >= DAY_S));
    cards.extend(long.map(|rate| {
        Card::exact("year_tb", "in a year", rate * YEAR_S / 1e12, "TB").source("at this rate")
    }));
    cards.extend(claim.memory_share().map(|share| {
        let source = "of the data".to_owned();
        Card::exact("memory_share", "memory can hold", share * 100.0, "%").source(source)
    }));
    cards
}

fn latency(claim: &Claim, seconds: f64) -> Card {
    let source = match claim.in_flight {
        Some(count) => format!("{} in flight ÷ IOPS", three_digits(count.value())),
        None => "1 ÷ IOPS: a latency only with one request in flight".to_owned(),
    };
    let card = if seconds < 1e-3 {
        Card::exact("latency_us", "latency", seconds * 1e6, "µs")
    } else {
        Card::exact("latency_ms", "latency", seconds * 1e3, "ms")
    };
    card.source(source)
}

/// Returns what follows from numbers of requests and disks, and from values that are compared.
fn counted(claim: &Claim, verdicts: &[Verdict]) -> Vec<Card> {
    let mut cards = Vec::new();
    let requests = claim.requests_per_s();
    let source = match (claim.iops.is_empty(), claim.requests.is_some()) {
        (false, _) => "stated",
        (true, true) => "requests ÷ time",
        (true, false) => "rate ÷ size of a request",
    };
    cards.extend(requests.map(|rate| Card::exact(IOPS, "requests", rate, "IOPS").source(source)));
    if let Some(disks) = claim.disks {
        let source = format!("each of {}", self::disks(disks));
        cards.extend(requests.map(|rate| {
            Card::exact(DISK_IOPS, "a disk", rate / disks.count, "IOPS").source(source.clone())
        }));
        cards.extend(claim.bytes_per_s().map(|rate| {
            Card::exact(DISK_MBPS, "a disk", rate / disks.count / 1e6, "MB/s").source(source)
        }));
    }
    let ratio = claim.compared.as_ref().and_then(Compared::ratio);
    cards.extend(ratio.map(|ratio| match ratio {
        ..1.0 => Card::exact(RATIO, "first ÷ second", ratio * 100.0, "%"),
        _ => Card::exact(RATIO, "first ÷ second", ratio, "times"),
    }));
    for card in &mut cards {
        card.condemned_by = condemning(verdicts, &card.name);
    }
    cards
}

/// Returns the rules that condemn a figure.
fn condemning(verdicts: &[Verdict], name: &str) -> Vec<String> {
    let condemns =
        |verdict: &&Verdict| verdict.condemns() && verdict.concerns.iter().any(|it| it == name);
    verdicts.iter().filter(condemns).map(|verdict| verdict.rule.clone()).collect()
}

/// Names the source of the rate, and the rest of a range.
fn origin(claim: &Claim) -> String {
    let (source, span) = if !claim.rates.is_empty() {
        ("stated", None)
    } else if let Some(requested) = claim.requested_bytes_per_s() {
        ("requests a second × their size", Some(requested))
    } else {
        ("bytes ÷ time", claim.moved_bytes_per_s())
    };
    let most = span.filter(|span| span.high.is_finite() && span.high > span.least());
    most.map_or(source.to_owned(), |span| format!("{source}; at most {}", rate(span.high)))
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
