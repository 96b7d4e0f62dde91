//! `blockstone claim`: whether a published number is possible, by arithmetic alone.

mod args;
mod earlier;
#[cfg(test)]
mod examples;
mod grammar;
mod links;
mod report;
mod rows;
mod rules;
mod span;
mod stated;
mod units;
mod vocabulary;
mod words;

use anyhow::{Result, bail};
use blockstone_base::Bytes;
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_report::render::json::schema::Document;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::verb::{Context, Verb};
use args::ClaimArgs;
use rows::{LinkRow, RateRow, Summary};
use stated::{Claim, Flow, Kind, Span};
use units::Unit;
use words::Words;

pub const VERB: Verb = Verb {
    name: "claim",
    about: "Check whether a published rate is possible: memory, link, unit",
    options: ClaimArgs::augment_args,
    run: |options, context| run(&ClaimArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    documents: &[Document::of_tables(
        ("claim", 2),
        "A stated rate and its faults",
        Summary::COLUMNS,
        &[&[
            ("figures", Summary::COLUMNS),
            ("rates", RateRow::COLUMNS),
            ("links", LinkRow::COLUMNS),
        ]],
    )],
    ..Verb::PLAIN
};

fn run(args: &ClaimArgs, context: &Context) -> Result<Exit> {
    let claim = stated(args)?;
    let (answer, verdicts) = rules::answer(&claim);
    finish(&report::report(&claim, answer, verdicts), context)
}

/// Combines the claim in words with what options add to it.
fn stated(args: &ClaimArgs) -> Result<Claim> {
    let text = args.words.join(" ");
    let mut claim = if text.is_empty() { Claim::default() } else { grammar::parse(&text)? };
    let rate = args.rate.as_deref().map(rate).transpose()?;
    let bytes = |size: Option<Bytes>| size.map(|size| Span::of(size.get() as f64));
    let time_s = args.time.map(|time| Span::of(time.as_secs_f64()));
    let flow = |span| Flow { of: Kind::default(), span, is_listed: false };
    let is_stated = [!claim.rates.is_empty(), !claim.iops.is_empty()];
    claim.rates.extend(rate.map(flow));
    claim.iops.extend(args.iops.map(Span::of).map(flow));
    let flows = [("--rate", is_stated[0], rate), ("--iops", is_stated[1], args.iops.map(Span::of))];
    let mut stated: Vec<_> = flows.into_iter().collect();
    for (option, slot, value) in [
        ("--io-size", &mut claim.io_bytes, bytes(args.io_size)),
        ("--moved", &mut claim.moved_bytes, bytes(args.moved)),
        ("--time", &mut claim.time_s, time_s),
        ("--data", &mut claim.data_bytes, bytes(args.data)),
        ("--memory", &mut claim.memory_bytes, bytes(args.memory)),
    ] {
        stated.push((option, slot.is_some(), value));
        *slot = value.or(*slot);
    }
    for (option, is_stated, value) in stated {
        let Some(value) = value else { continue };
        if value.low <= 0.0 {
            bail!(Failure::new(
                format!("use {option}: it must be greater than zero"),
                "leave out what is not known"
            ));
        }
        if is_stated {
            bail!(Failure::new(format!("use {option}: the words state it already"), "say it once"));
        }
    }
    for link in &args.link {
        let mut words = Words::of(link);
        let path = links::path(&mut words, true).filter(|_| words.peek().is_none());
        let Some(path) = path else {
            bail!(Failure::new(
                format!("use --link {link}: it is not understood"),
                "2x2Gb FC, 10GbE, QDR InfiniBand, PCIe 4.0 x4, SATA 6Gb/s, 400MB/s"
            ));
        };
        grammar::defined(&path)?;
        claim.links.push(path);
    }
    claim.direct |= args.direct;
    claim.settle_links();
    Ok(claim)
}

fn rate(text: &str) -> Result<Span> {
    let mut words = Words::of(text);
    let found = words.quantity().filter(|_| words.peek().is_none());
    match found.map(|found| (found.unit, found.span)) {
        Some((Unit::BytesPerS, rate)) => Ok(rate),
        Some((Unit::BitsPerS, rate)) => Ok(rate.times(1.0 / 8.0)),
        _ => bail!(Failure::new(
            format!("use --rate {text}: it is not a rate"),
            "a unit belongs to it, as in 2GB/s"
        )),
    }
}
