//! `blockstone offload`: what a storage that filters rows really saves. One file per verb.

mod account;
mod args;
mod charts;
mod engines;
mod generate;
mod input;
mod model;
mod rules;
mod tables;
mod words;

use anyhow::Result;
use blockstone_base::rule::listed;
use blockstone_report::render::json::schema::Document;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::verb::{Context, Verb};
use args::{OffloadArgs, OffloadVerb};

pub const VERB: Verb = Verb {
    name: "offload",
    about: "Account for the bytes of a storage that filters rows, from the plan to the client",
    options: OffloadArgs::augment_args,
    run: |options, context| run(&OffloadArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    writes: true,
    documents: &[
        Document::of::<account::AccountDocument>(
            "offload-account",
            "What became of the bytes that runs read",
        )
        .with_names(&[account::TABLES]),
        Document::of::<model::report::ModelDocument>(
            "offload-model",
            "Throughput against hosts and the part that binds",
        )
        .with_names(&[model::report::TABLES]),
        Document::of::<engines::report::EnginesDocument>(
            "offload-run",
            "What servers read, sent and computed with and without a filter at the storage",
        )
        .with_names(&[engines::report::TABLES]),
        Document::of::<generate::GenerateDocument>("offload-generate", "A table that was written")
            .with_names(&[&["columns"]]),
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
