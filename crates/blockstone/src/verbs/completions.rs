//! `blockstone completions`: a completion script, from the declarations of the command line.

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Args, FromArgMatches, ValueHint};
use clap_complete::Shell;

use crate::cli;
use crate::exit::Exit;
use crate::expect;
use crate::printer::answer;
use crate::purpose::NamesRecording;
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
    let command = offering();
    let mut of_recordings = Vec::new();
    naming_recordings(&command, "", &mut of_recordings);
    clap_complete::generate(shell, &mut command.clone(), "blockstone", &mut script);
    let script = String::from_utf8(script)?;
    answer(&match shell {
        Shell::Bash => bash(&script, &of_recordings),
        Shell::Zsh => zsh(&script),
        Shell::Fish => script + &fish(&of_recordings),
        _ => script,
    })?;
    Ok(Exit::Done)
}

/// Prints the names of recordings at the moment of completion.
const NAMES: &str = "blockstone runs --names 2>/dev/null";
/// The completion that stands for recordings in the declarations, since the generators know none of
/// ours.
const IN_PLACE: ValueHint = ValueHint::Username;

/// Collects the words of all commands that take the name of a recording.
fn naming_recordings(command: &clap::Command, words: &str, found: &mut Vec<String>) {
    if command.get_arguments().any(|arg| arg.get::<NamesRecording>().is_some()) {
        found.push(words.to_owned());
    }
    for below in command.get_subcommands() {
        let words = format!("{words} {}", below.get_name());
        naming_recordings(below, words.trim_start(), found);
    }
}

/// Adds names of recordings to the completions of these commands. Not with `compgen -W`, which
/// would execute what a name contains.
fn bash(script: &str, of_recordings: &[String]) -> String {
    // A comparison and a number follow the name.
    let case = "--expect)\n";
    let script = script.replace(case, &format!("{case}{:20}compopt -o nospace\n", ""));
    let commands: Vec<String> = of_recordings.iter().map(|it| format!("*\" {it} \"*")).collect();
    let with_recordings = format!(
        "_blockstone_with_recordings() {{
    local before=\" ${{COMP_WORDS[*]:0:COMP_CWORD}} \" word=\"${{COMP_WORDS[COMP_CWORD]}}\" name
    _blockstone \"$@\"
    case \"$before\" in
        {})
            while [[ $word != -* ]] && IFS= read -r name; do
                if [[ $name == \"$word\"* ]]; then
                    printf -v name %q \"$name\"
                    COMPREPLY+=(\"$name\")
                fi
            done < <(echo last; {NAMES})
            ;;
    esac
}}

",
        commands.join("|")
    );
    match script.rfind("if [[ \"${BASH_VERSINFO") {
        Some(end) => {
            let (functions, registered) = script.split_at(end);
            let registered =
                registered.replace("-F _blockstone ", "-F _blockstone_with_recordings ");
            format!("{functions}{with_recordings}{registered}")
        }
        None => script,
    }
}

fn zsh(script: &str) -> String {
    let function = format!(
        "_blockstone_recordings() {{
    local -a recordings=(last ${{(f)\"$({NAMES})\"}})
    _describe 'recording' recordings
    _files -/
}}
"
    );
    let script = script.replace(":_users'", ":_blockstone_recordings'");
    match script.split_once("\n\n") {
        Some((first, rest)) => format!("{first}\n\n{function}\n{rest}"),
        None => script,
    }
}

fn fish(of_recordings: &[String]) -> String {
    let line = |words: &String| {
        let seen = words.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}"));
        let seen = seen.collect::<Vec<_>>().join("; and ");
        format!("complete -c blockstone -n \"{seen}\" -k -a \"last ({NAMES})\"\n")
    };
    of_recordings.iter().map(line).collect()
}

/// Returns the declarations with values to offer where the command line takes a text: names of
/// figures after `--expect`, of stores after `--for`, and topics after `help`; recordings are
/// marked.
fn offering() -> clap::Command {
    let declarations = marked(cli::declarations());
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

/// Marks what names a recording.
fn marked(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get::<NamesRecording>() {
        Some(_) => arg.value_hint(IN_PLACE),
        None => arg,
    });
    command.mut_subcommands(marked)
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
