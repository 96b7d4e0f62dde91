//! The command line: options of every verb here, those of each verb beside it. Parsing, `--help`,
//! man pages and shell completions derive from these declarations.

use std::path::Path;

use blockstone_sys::output;
use blockstone_target::without_password;
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, FromArgMatches};

use crate::exit::Exit;
use crate::printer::complain;
use crate::verb::{Context, Global, Verb};
use crate::verbs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const ABOUT: &str = "Measure storage the way a database uses it, and show which results to trust";
const EXIT_CODES: &str = "Exit codes: 0 success, 1 a requirement is not met, 2 could not run, 3 \
                          ran but not trustworthy, 4 a required capability is missing, 130 \
                          interrupted.";

pub struct Asked {
    pub verb: &'static Verb,
    pub options: ArgMatches,
    pub context: Context,
}

/// Reads the command line. Help and version go to standard output and end well; anything wrong is
/// one line that says what and one that says where to look.
pub fn parse() -> Result<Asked, Exit> {
    declarations().try_get_matches().and_then(|matches| asked(&matches)).map_err(|e| explain(&e))
}

fn asked(matches: &ArgMatches) -> Result<Asked, clap::Error> {
    let global = Global::from_arg_matches(matches)?;
    let missing = || clap::Error::new(ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    let (name, options) = matches.subcommand().ok_or_else(missing)?;
    let verb = verbs::find(name).ok_or_else(missing)?;
    if let Some(option) = global.asks_for_report().filter(|_| !verb.reports) {
        let text = format!("{option} does not apply to {name}, which prints no report\n");
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
    }
    if let (true, Some(file)) = (global.json || global.csv.is_some(), &global.html)
        && file.as_os_str() == "-"
    {
        let text = "--html - cannot be used with --json or --csv: both print on standard output\n";
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
    }
    if let Some(file) = &global.html
        && let Some(why) = unwritable(file)
    {
        let hint = "hint: name another file, in a directory that exists";
        let text = format!("write {}: {why}\n{hint}\n", file.display());
        return Err(clap::Error::raw(ErrorKind::ValueValidation, text));
    }
    Ok(Asked { verb, options: options.clone(), context: Context::new(global) })
}

/// Why a page cannot be written, as far as that can be known before an hour of measuring.
fn unwritable(file: &Path) -> Option<String> {
    if file.as_os_str() == "-" {
        return None;
    }
    output::check(file).err().map(|error| error.to_string())
}

/// Prints help or version, or what is wrong.
fn explain(error: &clap::Error) -> Exit {
    let missing_verb = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() || error.kind() == missing_verb {
        let _ = error.print();
        return if error.use_stderr() { Exit::CouldNotRun } else { Exit::Done };
    }
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines.next().unwrap_or("error: the command line cannot be read");
    // Names of missing arguments follow indented on lines of their own.
    let names: Vec<&str> = lines
        .clone()
        .take_while(|line| !line.starts_with("Usage") && !line.starts_with("For more"))
        .filter(|line| !line.starts_with("tip:") && !line.starts_with("hint:"))
        .collect();
    let tip = |line: &str| {
        line.strip_prefix("tip: ").or_else(|| line.strip_prefix("hint: ")).map(str::to_owned)
    };
    let hint = lines.find_map(tip).unwrap_or_else(help);
    let what = [&[what][..], &names].concat().join(" ");
    // A value that was refused may be an address.
    let said: Vec<String> = what.split(' ').map(without_password).collect();
    complain(&format!("{}\nhint: {hint}", said.join(" ")));
    Exit::CouldNotRun
}

/// Where the options of the given verb are described.
fn help() -> String {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.find_map(|argument| verbs::find(argument.to_str()?)) {
        Some(verb) => format!("blockstone {} --help lists its options", verb.name),
        None => "blockstone --help lists verbs and options".to_owned(),
    }
}

/// The declarations of all verbs, also for completions and man pages.
pub fn declarations() -> clap::Command {
    let command = clap::Command::new("blockstone")
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(EXIT_CODES)
        .styles(STYLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(verbs::ALL.iter().map(Verb::declaration));
    Global::augment_args(command).about(ABOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_sound() {
        declarations().debug_assert();
    }
}
