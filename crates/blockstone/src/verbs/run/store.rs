//! `run --for STORE`: the load that a database or another store sends.

use std::ffi::OsString;

use anyhow::{Result, bail};
use blockstone_stores::{Load, Store, find};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};

use super::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::verb;
use crate::verbs::calibrate;

/// Options of a run that a calibration has too, by their identifiers here and their names there.
const OF_CALIBRATIONS: [(&str, &str); 5] = [
    ("path", ""),
    ("destroy", "--destroy"),
    ("out", "--record"),
    ("link_bytes_per_s", "--link-mbps"),
    ("require", "--require"),
];

/// Returns the store that the command line names.
pub fn of(options: &ArgMatches) -> Option<&'static Store> {
    find(options.get_one::<String>("store")?)
}

pub fn run(store: &Store, options: &ArgMatches, context: &verb::Context) -> Result<Exit> {
    match &store.load {
        Load::Instance(words) => super::run(&with_load(words, options)?, context),
        Load::Streams(streams) => {
            let mut words = of_calibration(store, options)?;
            // Streams have windows of their own; without any, the calibration is all there is.
            words.extend((!streams.is_empty()).then(|| "--quick".into()));
            calibrate::run_words(words, context)
        }
    }
}

/// Returns the arguments of the run: what the user gave, and the load of the store below it.
fn with_load(words: &[String], options: &ArgMatches) -> Result<RunArgs> {
    let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
    // Some options of a run conflict with some of the options of every verb.
    let command = verb::Global::augment_args(command);
    let load = RunArgs::from_arg_matches(&command.try_get_matches_from(words)?)?;
    let mut args = RunArgs::from_arg_matches(options)?;
    args.method = args.method.over(load.method);
    if !is_given(options, "block_bytes") {
        args.instance.options.block_bytes = load.instance.options.block_bytes;
    }
    if !is_given(options, "torn_protection") {
        args.instance.options.torn_protection = load.instance.options.torn_protection;
    }
    Ok(args)
}

fn is_given(options: &ArgMatches, id: &str) -> bool {
    options.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the command line of a calibration for the store. Refuses options that only a run of the
/// instance has.
fn of_calibration(store: &Store, options: &ArgMatches) -> Result<Vec<OsString>> {
    let command = RunArgs::augment_args(Command::new("run"));
    let mut words: Vec<OsString> = vec![format!("--store={}", store.name).into()];
    for option in
        command.get_arguments().filter(|option| is_given(options, option.get_id().as_str()))
    {
        let id = option.get_id().as_str();
        let Some((_, name)) = OF_CALIBRATIONS.iter().find(|(known, _)| *known == id) else {
            if id == "store" {
                continue;
            }
            bail!(Failure::new(
                format!(
                    "run for {}: --{} is an option of the miniature instance, which does not run",
                    store.title,
                    option.get_long().unwrap_or(id)
                ),
                format!(
                    "omit it; `blockstone calibrate --for {}` has options for the time that it \
                     takes",
                    store.name
                )
            ));
        };
        for value in options.get_raw(id).into_iter().flatten() {
            words.extend((!name.is_empty()).then(|| (*name).into()));
            words.push(value.to_owned());
        }
    }
    if !is_given(options, "path") {
        words.push(".".into());
    }
    Ok(words)
}
