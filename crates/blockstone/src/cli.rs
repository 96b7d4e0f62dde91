//! The command line: the options of all verbs are declared in [`crate::verb`], those of a single
//! verb next to that verb. Parsing, help, man pages and shell completions derive from them.

use std::error::Error as _;
use std::path::Path;
use std::{io, iter};

use blockstone_report::render::json::schema::Document;
use blockstone_servers::without_password;
use blockstone_sys::output;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

use crate::config::{Config, Places};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::{answer, complain};
use crate::store;
use crate::verb::{Context, Global, JsonVersion, Verb};
use crate::verbs;
use crate::{expect, failure, help};

pub struct Asked {
    pub verb: &'static Verb,
    pub options: ArgMatches,
    pub context: Context,
}

/// Reads the command line. Help and version go to standard output with exit code 0; an error is one
/// line that says what is wrong and one that says where to look.
pub fn parse() -> Result<Asked, Exit> {
    let words = store::spelled_out(std::env::args_os().collect());
    let texts: Vec<String> =
        words.iter().skip(1).filter_map(|it| it.clone().into_string().ok()).collect();
    let listed = expect::asks_for_names(&texts).map(expect::help);
    if let Some(list) = listed.or_else(|| store::asks_for_list(&words).then(store::list)) {
        return Err(answer(&list).map_or(Exit::CouldNotRun, |()| Exit::Done));
    }
    let config = Config::read(Places::of_process(), &Global::settable());
    let declared = match &config {
        Ok(config) => config.applied(declarations()),
        Err(_) => declarations(),
    };
    let matches = declared.try_get_matches_from(words).map_err(Refusal::from);
    // After the command line is read: --help works whatever the files say.
    let asked = matches.and_then(|matches| {
        let config = config?;
        let asked = asked(&matches)?;
        config.notes().for_each(|note| asked.context.printer.note(&note));
        Ok(Asked { context: Context { config, ..asked.context }, ..asked })
    });
    asked.map_err(|refusal| match refusal {
        Refusal::Parser(error) => explain(&error),
        Refusal::Ours { what, hint } => refuse(&format!("error: {what}"), hint),
    })
}

/// Why a command line is refused.
#[derive(Debug)]
enum Refusal {
    /// By the parser.
    Parser(clap::Error),
    /// By ourselves; without a hint it names the help.
    Ours { what: String, hint: Option<String> },
}

impl From<clap::Error> for Refusal {
    fn from(error: clap::Error) -> Self {
        Self::Parser(error)
    }
}

impl From<Failure> for Refusal {
    fn from(error: Failure) -> Self {
        let error = anyhow::Error::from(error);
        Self::Ours { what: format!("{error:#}"), hint: failure::hint(error.chain()) }
    }
}

impl Refusal {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Ours { what: what.into(), hint: Some(hint.into()) }
    }
}

fn asked(matches: &ArgMatches) -> Result<Asked, Refusal> {
    let global = Global::from_arg_matches(matches)?;
    let missing = || clap::Error::new(ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    let (name, options) = matches.subcommand().ok_or_else(missing)?;
    let verb = verbs::find(name).ok_or_else(missing)?;
    if let Some(option) = global.asks_for_report().filter(|_| !verb.reports) {
        let what = format!("{option} does not apply to {name}, which prints no report");
        return Err(Refusal::Ours { what, hint: None });
    }
    let refusals = [
        ineffective(verb, matches, &global),
        unknown_table(verb, options, &global),
        unknown_version(verb, &global),
    ];
    if let Some(refusal) = refusals.into_iter().flatten().next() {
        return Err(refusal);
    }
    if let (true, Some(file)) = (global.json.is_some() || global.csv.is_some(), &global.html)
        && file.as_os_str() == "-"
    {
        let what = "--html - cannot be used with --json or --csv: both print on standard output";
        return Err(Refusal::Ours { what: what.to_owned(), hint: None });
    }
    // A recording may have been made for a store, whose limits `report` decides again.
    let has_limits = !global.expect.is_empty() || verb.name == "report" || store::is_named(options);
    if global.junit.is_some() && !has_limits {
        return Err(Refusal::new(
            "--junit: no limit is given by --expect or --for STORE",
            "add one, such as --expect 'commit.p99<2ms'",
        ));
    }
    for file in global.html.iter().chain(&global.junit) {
        let Some(why) = unwritable(file) else { continue };
        let what = format!("write {}: {why}", file.display());
        return Err(Refusal::new(what, "name another file, in a directory that exists"));
    }
    let expectations = expect::read(&global.expect, verb).map_err(|error| Refusal::Ours {
        what: format!("{error:#}"),
        hint: failure::hint(error.chain()),
    })?;
    Ok(Asked { verb, options: options.clone(), context: Context::new(global, expectations) })
}

/// Why a version of a document cannot be printed.
fn unknown_version(verb: &Verb, global: &Global) -> Option<Refusal> {
    let Some(JsonVersion::Of(version)) = global.json else { return None };
    let newest = verb.documents.iter().map(|document| document.version).max()?;
    let known = newest.saturating_sub(1).max(1)..=newest;
    (!known.contains(&version)).then(|| {
        let name = verb.name;
        Refusal::new(
            format!("--json={version}: {name} does not print that version"),
            format!(
                "--json prints version {newest}, --json={} the oldest that it knows",
                known.start()
            ),
        )
    })
}

/// Refuses a global option that has no effect on this verb.
fn ineffective(verb: &Verb, matches: &ArgMatches, global: &Global) -> Option<Refusal> {
    let name = verb.name;
    let is_given = matches.value_source("runs_dir") == Some(ValueSource::CommandLine);
    if is_given && !verb.finds_runs {
        let why = "which neither makes nor reads recordings";
        return Some(Refusal::new(
            format!("--runs-dir does not apply to {name}, {why}"),
            "omit --runs-dir",
        ));
    }
    let is_given = matches.value_source("share") == Some(ValueSource::CommandLine);
    (is_given && global.share && !verb.writes && global.html.is_none()).then(|| {
        Refusal::new(
            format!("--share does not apply to {name} without --html: it writes no file"),
            "omit --share",
        )
    })
}

/// Checks before any measurement whether the table named with `--csv` exists, and refuses it if
/// not. If a subcommand has a document of its own, such as `check-direct`, only the tables of
/// that document count, otherwise those of all documents of the verb.
fn unknown_table(verb: &Verb, options: &ArgMatches, global: &Global) -> Option<Refusal> {
    let table = global.csv.as_deref().filter(|name| !name.is_empty())?;
    // A verb with a `--csv` of its own, which may name a file, checks it by itself.
    let own = (verb.options)(clap::Command::new(""));
    if own.get_arguments().any(|option| option.get_id() == "csv") {
        return None;
    }
    let own = options.subcommand_name().map(|inner| format!("{}-{inner}", verb.name));
    let is_own = |document: &&Document| own.as_deref() == Some(document.name);
    let mut documents: Vec<&Document> = verb.documents.iter().filter(is_own).collect();
    if documents.is_empty() {
        documents = verb.documents.iter().collect();
    }
    if documents.is_empty() || documents.iter().any(|it| it.may_have_table(table)) {
        return None;
    }
    let mut names: Vec<&str> = documents.iter().flat_map(|it| it.table_names()).collect();
    names.sort_unstable();
    names.dedup();
    let what = "print {table} as CSV: the report has no such table";
    let what = what.replace("{table}", table);
    Some(Refusal::new(what, format!("its tables are {}", names.join(", "))))
}

/// Returns why a page cannot be written, as far as that can be known before an hour of measuring.
fn unwritable(file: &Path) -> Option<String> {
    if file.as_os_str() == "-" {
        return None;
    }
    output::check(file).err().map(|error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such directory".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    })
}

/// Prints help, version or an error message.
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
        .filter(|line| !line.starts_with("tip:"))
        .collect();
    let tips = lines.filter_map(|line| line.strip_prefix("tip: "));
    let tip = tips.filter(|tip| is_of_use(error, tip)).map(str::to_owned).next();
    let causes = iter::successors(error.source(), |&cause| cause.source());
    refuse(&[&[what][..], &names].concat().join(" "), tip.or_else(|| failure::hint(causes)))
}

/// Prints why the command line is refused; without a hint, it names the help of the verb.
fn refuse(what: &str, hint: Option<String>) -> Exit {
    let words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    let hint = hint.unwrap_or_else(|| hint_of_help(words));
    // A value that was refused may be an address with a password.
    let said: Vec<String> = what.split(' ').map(without_password).collect();
    complain(&format!("{}\nhint: {hint}", said.join(" ")));
    Exit::CouldNotRun
}

/// Whether a tip of the parser is helpful: it names an option whose name is close to the one that
/// was typed. The parser also suggests options that share a few letters with it, and ways to pass
/// it as a value.
fn is_of_use(error: &clap::Error, tip: &str) -> bool {
    if error.kind() != ErrorKind::UnknownArgument {
        return true;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.trim_start_matches('-').to_owned()),
        _ => None,
    };
    let typed = text(ContextKind::InvalidArg).unwrap_or_default();
    text(ContextKind::SuggestedArg).is_some_and(|meant| {
        let most = typed.len().div_ceil(4);
        tip.contains("similar")
            && (meant.starts_with(&typed) || strsim::osa_distance(&typed, &meant) <= most)
    })
}

/// Returns a hint with the `--help` command of the verb or subcommand that these words name.
fn hint_of_help(words: impl Iterator<Item = String>) -> String {
    let mut command = declarations();
    let mut path = vec!["blockstone".to_owned()];
    for word in words {
        if let Some(verb) = command.find_subcommand(&word).cloned() {
            path.push(verb.get_name().to_owned());
            command = verb;
        }
    }
    let listed = if path.len() > 1 { "lists its options" } else { "lists verbs and options" };
    format!("{} --help {listed}", path.join(" "))
}

/// Returns the declarations of all verbs, also for completions and man pages.
pub fn declarations() -> clap::Command {
    let command = clap::Command::new("blockstone")
        .version(env!("CARGO_PKG_VERSION"))
        // On the first screen, verbs matter more.
        .disable_version_flag(true)
        .arg(version().hide_short_help(true))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(verbs::ALL.iter().map(Verb::declaration));
    help::of_program(Global::augment_args(command), verbs::QUESTIONS)
}

fn version() -> Arg {
    let arg = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    arg.help("Print version").help_heading("Global options")
}

/// Whether these words are a verb, with its subcommand or without.
pub fn has_command(words: &[String]) -> bool {
    let mut command = &declarations();
    words.iter().all(|word| {
        let found = command.find_subcommand(word);
        command = found.unwrap_or(command);
        found.is_some()
    })
}

/// Prints what `--help` after these words prints.
pub fn print_help(words: &[String], config: &Config) -> Exit {
    let declared = config.applied(declarations());
    let line = ["blockstone"].into_iter().chain(words.iter().map(String::as_str));
    let printed = declared.try_get_matches_from(line.chain(["--help"])).map(|_| Exit::Done);
    printed.unwrap_or_else(|error| explain(&error))
}

#[cfg(test)]
mod documents;

#[cfg(test)]
mod tests {
    use blockstone_base::hint;

    use super::*;

    /// Returns the message with which these words are refused.
    fn refused(line: &str) -> String {
        let words = iter::once("blockstone").chain(line.split(' '));
        let matches = declarations().try_get_matches_from(words);
        let refused = matches.map_err(Refusal::from).and_then(|matches| asked(&matches));
        match refused.err() {
            None => String::new(),
            Some(Refusal::Parser(error)) => error.to_string(),
            Some(Refusal::Ours { what, hint }) => hint::told(&what, hint.as_deref()),
        }
    }

    #[test]
    fn a_hint_names_the_command_that_was_typed_and_no_unrelated_option() {
        let hint = |line: &str| hint_of_help(line.split(' ').map(str::to_owned));
        assert_eq!(hint("flash cliff"), "blockstone flash cliff --help lists its options");
        assert_eq!(hint("--json cal /data"), "blockstone calibrate --help lists its options");
        assert_eq!(hint("--nope"), "blockstone --help lists verbs and options");
        let is_kept = |line: &str| {
            let words = iter::once("blockstone").chain(line.split(' '));
            let error = declarations().try_get_matches_from(words).unwrap_err();
            let text = error.to_string();
            let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
            tip.map(|tip| is_of_use(&error, tip))
        };
        assert_eq!(is_kept("run --schema 2 ."), Some(true));
        assert_eq!(is_kept("run --update-pc 2 ."), Some(true));
        assert_ne!(is_kept("run --seconds 5 ."), Some(true), "not --json");
        assert_eq!(is_kept("run --dur 5 ."), Some(true), "--duration, not --rate");
    }

    #[test]
    fn a_version_that_a_document_does_not_have_is_refused_before_the_work() {
        for good in
            ["copy --json a b", "copy --json=1 a b", "copy --json=2 a b", "claim --json=1 x"]
        {
            assert_eq!(refused(good), "", "{good}");
        }
        for bad in ["copy --json=3 a b", "copy --json=0 a b", "run --json=3 ."] {
            let text = refused(bad);
            assert!(text.contains("does not print that version\nhint: --json prints"), "{text}");
        }
        assert!(refused("copy --json=new a b").contains("invalid value 'new'"));
    }

    #[test]
    fn what_is_the_same_has_the_same_name_everywhere() {
        for line in
            ["run --for 5s .", "run --run-time 5s .", "run --duration 5s .", "run --record r ."]
        {
            assert_eq!(refused(line), "", "{line}");
        }
        for line in
            ["calibrate --record r .", "calibrate --out r .", "noise --sessions 2 --for 5s ."]
        {
            assert_eq!(refused(line), "", "{line}");
        }
        assert_eq!(refused("flash sim --for 5s"), "");
    }

    #[test]
    fn a_table_that_no_report_has_is_refused_before_anything_is_measured() {
        for line in [
            "calibrate .",
            "run .",
            "noise .",
            "reduce .",
            "copy a b",
            "trace a",
            "size a",
            "subset --from postgres://a/b c",
            "offload run",
            "offload account a",
            "offload model --cells 4",
            "offload generate a",
            "flash sim",
            "check .",
            "check direct .",
            "check durability .",
            "check coherence .",
            "claim 1MB/s",
            "runs",
        ] {
            let unknown = refused(&format!("{line} --csv=NOPE"));
            // A line that is wrong for another reason would prove nothing.
            let is_meant = unknown.contains("print NOPE as CSV") || unknown.contains("unexpected");
            assert!(is_meant && unknown.contains("hint: "), "{line}: {unknown}");
            assert_eq!(refused(&format!("{line} --csv")), refused(line), "the first table");
        }
        assert_eq!(refused("offload run --csv=engines"), "");
        assert!(refused("offload run --csv=gains").contains("hint: its tables are "));
        assert_eq!(refused("run --csv=load-profile ."), "");
        assert_eq!(refused("trace --csv=calls-abc a"), "");
        assert_eq!(refused("report --csv=anything last"), "", "which verb made it is not known");
    }

    #[test]
    fn global_options_that_mean_nothing_to_a_verb_are_refused() {
        for line in ["subset --from postgres://a/b c", "claim 1MB/s", "check .", "offload run"] {
            assert!(refused(&format!("{line} --runs-dir x")).contains("--runs-dir"), "{line}");
        }
        assert_eq!(refused("run --runs-dir x ."), "");
        for line in ["claim 1MB/s", "trace a", "runs", "man x", "check ."] {
            assert!(refused(&format!("{line} --share")).contains("--share"), "{line}");
        }
        assert_eq!(refused("run --share ."), "");
        assert_eq!(refused("trace --share --html page.html a"), "");
        assert!(refused("trace --csv-raw a").contains("--csv"));
    }

    #[test]
    fn help_lists_only_global_options_that_a_verb_heeds() {
        let help = |line: &str| {
            let words = iter::once("blockstone").chain(line.split(' ')).chain(["--help"]);
            declarations().try_get_matches_from(words).unwrap_err().to_string()
        };
        for line in ["check", "check direct", "claim", "offload account"] {
            assert!(!help(line).contains("--runs-dir") && help(line).contains("--json"), "{line}");
        }
        for line in ["completions", "man"] {
            assert!(!help(line).contains("--json") && !help(line).contains("--share"), "{line}");
        }
        assert!(help("run").contains("--runs-dir") && help("run").contains("--share"));
    }

    #[test]
    fn options_that_would_have_no_effect_are_refused() {
        for line in [
            "copy --check m --jobs 2 a",
            "copy --check m --method direct a",
            "copy --check m --request 1M a",
            "subset --from postgres://a/b --naive --readers 2",
            "subset oracle --query A --percent 5",
            "subset oracle --query A --lister B",
            "subset oracle --rows r --percent 5 k d",
            "offload generate --schema --scale 1G",
            "offload generate --schema --seed 2",
            "offload generate --schema --format copy",
            "check durability --log x .",
            "size --iops 100 --hours 9-17",
            "size --iops 100 --weekdays",
            "size --iops 100 --percentile p99",
            "trace --against b --top 3 a",
        ] {
            assert!(!refused(line).is_empty(), "{line}");
        }
    }

    /// If one option requires another, the parser does not enforce that once a given option
    /// conflicts with the required one: the first option would be accepted alone and have no
    /// effect.
    #[test]
    fn what_an_option_requires_cannot_be_missing() {
        fn look(command: &clap::Command, requiring: &mut usize, found: &mut Vec<String>) {
            for option in command.get_arguments() {
                let debug = format!("{option:?}");
                let of = debug.split_once("requires: [").and_then(|(_, rest)| rest.split_once(']'));
                let required = of.map_or("", |(list, _)| list);
                *requiring += usize::from(!required.is_empty());
                for other in command.get_arguments() {
                    if !required.contains(&format!("\"{}\"", other.get_id())) {
                        continue;
                    }
                    let own = command.get_arg_conflicts_with(option);
                    for rival in command.get_arg_conflicts_with(other) {
                        let is_own = own.iter().any(|it| it.get_id() == rival.get_id());
                        if !is_own && rival.get_id() != option.get_id() {
                            let ids = [option.get_id(), other.get_id(), rival.get_id()];
                            let [option, other, rival] = ids.map(clap::Id::as_str);
                            let name = command.get_name();
                            found.push(format!("{name}: {option} needs {other}, not {rival}"));
                        }
                    }
                }
            }
            command.get_subcommands().for_each(|inner| look(inner, requiring, found));
        }
        let mut command = declarations();
        command.build();
        let (mut requiring, mut found) = (0, Vec::new());
        look(&command, &mut requiring, &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
        assert!(requiring > 50, "clap shows what options require");
    }

    #[test]
    fn declarations_are_sound() {
        declarations().debug_assert();
    }
}
