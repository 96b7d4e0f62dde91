//! `blockstone completions`: a completion script, from the declarations of the command line.

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Args, FromArgMatches};
use clap_complete::Shell;

use crate::cli;
use crate::exit::Exit;
use crate::expect;
use crate::printer::answer;
use crate::verb::Verb;
use crate::verbs::{self, help};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone completions bash > /etc/bash_completion.d/blockstone
  blockstone completions zsh > ~/.zfunc/_blockstone
  blockstone completions fish > ~/.config/fish/completions/blockstone.fish")]
struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub const VERB: Verb = Verb {
    name: "completions",
    about: "Print a completion script for a shell",
    options: Completions::augment_args,
    run: |options, _| run(Completions::from_arg_matches(options)?.shell),
    ..Verb::PLAIN
};

fn run(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut offering(), "blockstone", &mut script);
    let mut script = String::from_utf8(script)?;
    if shell == Shell::Bash {
        // A comparison and a number follow the name.
        let case = "--expect)\n";
        script = script.replace(case, &format!("{case}{:20}compopt -o nospace\n", ""));
    }
    answer(&script)?;
    Ok(Exit::Done)
}

/// Returns the declarations with values to offer where the command line takes a text: names of
/// figures after `--expect`, of stores after `--for`, and topics after `help`.
fn offering() -> clap::Command {
    let declarations = cli::declarations();
    let expect = find(&declarations, |arg| arg.get_id() == "expect");
    let offering = |command: clap::Command, verb: &Verb| {
        let expect = expect.as_ref().filter(|_| verb.reports);
        command.mut_subcommand(verb.name, |sub| {
            with_stores(sub.args(expect.map(|expect| {
                let names = expect::known(verb).into_iter();
                let names = names.map(|it| PossibleValue::new(it.name).help(it.about));
                let help = PossibleValue::new("help").help("List the names");
                expect.clone().value_parser(PossibleValuesParser::new(names.chain([help])))
            })))
        })
    };
    let offered = verbs::ALL.iter().fold(declarations, offering);
    offered.mut_subcommand(help::VERB.name, |command| {
        command
            .mut_arg("topic", |topic| topic.value_parser(PossibleValuesParser::new(help::topics())))
    })
}

/// Offers the names of stores after `--for`, if the verb takes them there.
fn with_stores(command: clap::Command) -> clap::Command {
    let Some(store) = find(&command, |arg| arg.get_id() == "store") else { return command };
    let names = PossibleValuesParser::new(store.get_possible_values());
    match find(&command, |arg| arg.get_long() == Some("for")) {
        Some(time) => command.mut_arg(time.get_id(), |time| time.value_parser(names)),
        None => command.arg(Arg::new("for").long("for").value_name("STORE").value_parser(names)),
    }
}

fn find(command: &clap::Command, is_wanted: impl Fn(&Arg) -> bool) -> Option<Arg> {
    command.get_arguments().find(|&arg| is_wanted(arg)).cloned()
}
