//! Layout of the help. `-h` fits on a screen: three examples, and the options that most people
//! need. `--help` has everything, the options of every verb last.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, ArgAction, Command};

use crate::documents::{self, TOPICS};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const ABOUT: &str = "Measure storage the way a database uses it, and show which results to trust";
const EXIT_CODES: &str = "Exit codes: 0 success, 1 a requirement is not met, 2 could not run, 3 \
                          ran but not trustworthy, 4 a required capability is missing, 130 \
                          interrupted.";

/// The parser's own template, with the examples below the usage.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Heading of the examples of a command, which its declaration has as `after_help`.
const EXAMPLES: &str = "Examples:";
/// How many of them `-h` shows.
const EXAMPLES_SHOWN: usize = 3;
/// Heading of the options of every verb.
pub const GLOBAL: &str = "Global options";
/// Those that `-h` shows.
const GLOBAL_SHOWN: [&str; 3] = ["json", "html", "help"];

/// Lays out the help of the program: its verbs below the questions that they answer.
pub fn of_program(command: Command, questions: &[(&str, &[&str])]) -> Command {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let names = |verb: &Command| {
        [verb.get_name()]
            .into_iter()
            .chain(verb.get_visible_aliases())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let width = command.get_subcommands().map(|verb| names(verb).len()).max().unwrap_or(0);
    let mut list = String::new();
    for (question, verbs) in questions {
        // The parser counts the columns of a line from its newline on, which it only sees beside
        // text, not before an escape sequence.
        let _ = write!(list, "{header}\n{question}{header:#}");
        for verb in verbs.iter().filter_map(|name| command.find_subcommand(name)) {
            let (names, about) = (names(verb), verb.get_about().cloned().unwrap_or_default());
            let _ = write!(list, "\n  {literal}{names:width$}{literal:#}  {about}");
        }
    }
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .help("Print what most people need; --help prints all")
        .long_help("Print everything; -h prints what most people need")
        .action(ArgAction::Help)
        .help_heading(GLOBAL)
        .global(true);
    // The list begins with a newline.
    let template = TEMPLATE.replace("\n\n{before-help}", "\n{before-help}");
    let options = format!("{header}{GLOBAL}:{header:#}\n{{options}}");
    command
        .about(ABOUT)
        .styles(STYLES)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .arg(help)
        .mut_args(|arg| {
            let is_shown = GLOBAL_SHOWN.contains(&arg.get_id().as_str());
            arg.hide_short_help(!is_shown)
        })
        .help_template(template.replace("{all-args}", &options))
        .before_help(list)
        .after_help("`blockstone VERB -h` is about one verb, `blockstone help topics` more.")
        .after_long_help(format!("{EXIT_CODES}\n\n{}", pointer(TOPICS)))
}

/// Layout of the help of a verb and of its subcommands.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Words of the command above, the first being `blockstone`.
    pub above: &'a str,
    /// Options that `-h` shows; a command that has none of them shows all of its own.
    pub common: &'a [&'a str],
    /// Number of options of every verb that apply to this one.
    pub globals: usize,
    /// Topic of `blockstone help` that says more.
    pub topic: &'a str,
}

impl Layout<'_> {
    pub fn apply(self, command: Command) -> Command {
        let words = format!("{} {}", self.above, command.get_name());
        let page = words.split(' ').skip(1).collect::<Vec<_>>().join("-");
        let page = documents::find(&page).map(|page| format!("{}.md", page.name));
        let topic = page.as_deref().unwrap_or(self.topic);
        let options = command.get_arguments().filter(|arg| !arg.is_positional());
        let count = options.filter(|arg| !arg.is_hide_set()).count() + self.globals;
        let is_common = |arg: &Arg| self.common.contains(&arg.get_id().as_str());
        let shows_all = !command.get_arguments().any(is_common);
        let examples = command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
        command
            .mut_args(|arg| {
                let is_shown = shows_all || arg.is_positional() || is_common(&arg);
                arg.hide_short_help(!is_shown)
            })
            .mut_subcommands(|inner| Layout { above: &words, topic, ..self }.apply(inner))
            .help_template(TEMPLATE)
            .before_help(styled(&first(&examples)))
            .before_long_help(styled(&examples))
            .after_help(format!("`{words} --help` lists all {count} options.\n{}", pointer(topic)))
            .after_long_help(pointer(topic))
    }
}

fn pointer(topic: &str) -> String {
    let what = if topic == TOPICS { "lists the documents" } else { "says more" };
    format!("`blockstone help {topic}` {what}.")
}

fn styled(examples: &str) -> String {
    let header = STYLES.get_header();
    examples.replacen(EXAMPLES, &format!("{header}{EXAMPLES}{header:#}"), 1)
}

/// Returns the heading and the examples that `-h` shows. Lines that continue an example are
/// indented further.
fn first(examples: &str) -> String {
    let mut count = 0;
    let lines = examples.lines().take_while(|line| {
        count += usize::from(is_example(line));
        !line.is_empty() && count <= EXAMPLES_SHOWN
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_example(line: &str) -> bool {
    line.strip_prefix("  ").is_some_and(|rest| !rest.starts_with(' '))
}

/// Returns a command as manual pages show it: without a short form, the examples at the end.
pub fn for_man(command: &Command) -> Command {
    let examples = command.get_before_long_help().map(StyledStr::to_string).unwrap_or_default();
    command.clone().mut_args(|arg| arg.hide_short_help(false)).after_long_help(examples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{declarations, verbs};

    /// Calls `look` with each command, its words, and its help in both forms, 80 columns wide.
    fn each(look: &mut dyn FnMut(&str, &Command, &str, &str)) {
        fn visit(above: &str, command: &Command, look: &mut dyn FnMut(&str, &Command, &str, &str)) {
            let words = format!("{above} {}", command.get_name()).trim_start().to_owned();
            let mut at_80 = command.clone().term_width(80);
            let (short, long) = (at_80.render_help(), at_80.render_long_help());
            look(&words, command, &short.to_string(), &long.to_string());
            command.get_subcommands().for_each(|inner| visit(&words, inner, look));
        }
        let mut program = declarations();
        program.build();
        visit("", &program, look);
    }

    /// Returns the lines of the examples.
    fn examples(help: &str) -> Vec<&str> {
        let lines = help.lines().skip_while(|line| *line != EXAMPLES).skip(1);
        lines.take_while(|line| !line.is_empty()).collect()
    }

    #[test]
    fn short_help_fits_on_a_screen_and_names_the_long_one() {
        let mut commands = 0;
        each(&mut |words, _, short, _| {
            assert!(short.lines().count() <= 40, "{words} -h: {}\n{short}", short.lines().count());
            let long = short.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{words} -h");
            let names_long = short.contains(&format!("`{words} --help` lists all "));
            assert!(names_long || words == "blockstone", "{words} -h\n{short}");
            commands += 1;
        });
        assert!(commands > 35, "{commands}");
    }

    #[test]
    fn short_help_has_the_first_three_examples_and_long_help_all() {
        each(&mut |words, _, short, long| {
            if words == "blockstone" {
                return;
            }
            let [shown, all] = [short, long].map(examples);
            // An example that was too long would go on at the start of a line.
            let is_whole = |line: &&str| is_example(line) || line.starts_with("   ");
            assert!(all.iter().all(is_whole), "{words}: an example is too long\n{long}");
            let count = |lines: &[&str]| lines.iter().filter(|line| is_example(line)).count();
            assert_eq!(count(&shown), count(&all).min(EXAMPLES_SHOWN), "{words}");
            assert!(count(&shown) > 0 && all.starts_with(&shown), "{words}");
            let calls = shown.iter().any(|line| line.contains(words));
            assert!(calls, "{words}: no example calls it\n{short}");
        });
    }

    #[test]
    fn long_help_has_every_option_and_those_of_every_verb_last() {
        each(&mut |words, command, _, long| {
            let line = long.lines().find(|line| line.chars().count() > 80);
            assert_eq!(line, None, "{words} --help");
            let is_heading = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
            let last = long.lines().rfind(is_heading);
            assert_eq!(last, Some("Global options:"), "{words}");
            let (_, globals) = long.split_once("\nGlobal options:\n").unwrap();
            for option in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let name = option.get_long().map(|name| format!("--{name}"));
                let is_global = option.is_global_set();
                let there = if is_global { globals } else { long };
                assert!(name.is_none_or(|name| there.contains(&name)), "{words} {option}");
            }
        });
    }

    #[test]
    fn what_short_help_shows_exists() {
        for verb in verbs::ALL {
            let command = verb.declaration();
            let has = |command: &Command, name: &str| {
                command.get_arguments().any(|arg| arg.get_id() == name && !arg.is_hide_set())
            };
            for name in verb.common {
                let below = || command.get_subcommands().any(|inner| has(inner, name));
                assert!(has(&command, name) || below(), "{} has no {name}", verb.name);
            }
        }
    }
}
