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
mod stated;
mod words;

use anyhow::{Result, bail};
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_base::{Bytes, Nanos};
use blockstone_report::render::json::schema::Document;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::verb::{Context, Verb};
use args::ClaimArgs;
use rows::{LinkRow, Summary};
use stated::Claim;
use words::{Quantity, Words};

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
        &[&[("figures", Summary::COLUMNS), ("links", LinkRow::COLUMNS)]],
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
    let bytes = |size: Option<Bytes>| size.map(|size| size.get() as f64);
    let rate = args.rate.as_deref().map(rate).transpose()?;
    let time_s = args.time.map(Nanos::as_secs_f64);
    for (option, slot, value) in [
        ("--rate", &mut claim.rate, rate),
        ("--iops", &mut claim.iops, args.iops),
        ("--io-size", &mut claim.io_bytes, bytes(args.io_size)),
        ("--moved", &mut claim.moved_bytes, bytes(args.moved)),
        ("--time", &mut claim.time_s, time_s),
        ("--data", &mut claim.data_bytes, bytes(args.data)),
        ("--memory", &mut claim.memory_bytes, bytes(args.memory)),
    ] {
        let Some(value) = value else { continue };
        if value <= 0.0 {
            bail!(Failure::new(
                format!("use {option}: it must be greater than zero"),
                "leave out what is not known"
            ));
        }
        if slot.replace(value).is_some() {
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
        claim.links.push(path);
    }
    claim.direct |= args.direct;
    claim.settle_links();
    Ok(claim)
}

fn rate(text: &str) -> Result<f64> {
    let mut words = Words::of(text);
    match (words.quantity(), words.peek()) {
        (Some(Quantity::BytesPerS(rate)), None) => Ok(rate),
        (Some(Quantity::BitsPerS(rate)), None) => Ok(rate / 8.0),
        _ => bail!(Failure::new(
            format!("use --rate {text}: it is not a rate"),
            "a unit belongs to it, as in 2GB/s"
        )),
    }
}
