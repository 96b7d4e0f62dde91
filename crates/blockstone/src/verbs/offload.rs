//! `blockstone offload`: what storage that filters rows really saves. One file per verb.

mod account;
mod args;
mod charts;
mod earlier;
mod engines;
mod generate;
mod input;
mod model;
mod rows;
mod rules;
mod tables;
mod words;

use anyhow::Result;
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_report::render::json::schema::Document;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::verb::{Context, Verb};
use args::{OffloadArgs, OffloadVerb};

pub const VERB: Verb = Verb {
    name: "offload",
    about: "Account for the bytes of storage that filters rows",
    options: OffloadArgs::augment_args,
    common: &[
        "fit",
        "unit",
        "link",
        "returned",
        "cells",
        "scan_rate",
        "hosts",
        "consume_rate",
        "scale",
        "repeat",
        "format",
    ],
    run: |options, context| run(&OffloadArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    writes: true,
    documents: &[
        Document::of_tables(
            ("offload-account", 2),
            "What became of the bytes that runs read",
            &[],
            &[account::TABLES],
        ),
        Document::of_tables(
            ("offload-model", 2),
            "Throughput against hosts and the part that binds",
            model::rows::Summary::COLUMNS,
            &[model::report::TABLES],
        ),
        Document::of_tables(
            ("offload-run", 2),
            "What servers read, sent and computed with and without a filter at the storage",
            engines::rows::Summary::COLUMNS,
            &[engines::report::TABLES],
        ),
        Document::of_tables(
            ("offload-generate", 2),
            "A table that was written",
            generate::Summary::COLUMNS,
            &[generate::TABLES],
        ),
    ],
    ..Verb::PLAIN
};

fn run(args: &OffloadArgs, context: &Context) -> Result<Exit> {
    match &args.verb {
        OffloadVerb::Account(args) => account::run(args, context),
        OffloadVerb::Model(args) => model::run(args, context),
        OffloadVerb::Run(args) => engines::run(args, context),
        OffloadVerb::Generate(args) => generate::run(args, context),
    }
}
