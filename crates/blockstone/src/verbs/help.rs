//! `blockstone help`: the help of a verb, or a page of docs/.

use std::io::{self, IsTerminal as _};

use anyhow::{Result, bail};
use clap::builder::PossibleValue;
use clap::{Args, FromArgMatches};

use crate::documents::{self, TOPICS};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::{Printer, answer};
use crate::verb::{Context, Verb};
use crate::{cli, verbs};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone help run               the options of a verb
  blockstone help topics            all documents
  blockstone help memory-test       a rule, a store of --for, or a term
  blockstone help docs/expect.md    the document that a message names
  blockstone help flash.md | less   a document that has the name of a verb
  blockstone help check durability")]
struct HelpArgs {
    /// A verb with its subcommand, a document, a rule, a store, a term, or `topics`
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

pub const VERB: Verb = Verb {
    name: "help",
    about: "Print the help of a verb, a document, or what a word means",
    options: HelpArgs::augment_args,
    run: |options, context| run(&HelpArgs::from_arg_matches(options)?.topic, context),
    ..Verb::PLAIN
};

/// A verb takes precedence over a document of the same name, and that over a word that a page is
/// about, or only mentions; with `docs/` or `.md` it is the document.
fn run(topic: &[String], context: &Context) -> Result<Exit> {
    let names_file = matches!(topic, [file] if documents::is_file(file));
    if !names_file && cli::has_command(topic) {
        return Ok(cli::print_help(topic, &context.config));
    }
    let topic = topic.join(" ");
    if topic == TOPICS {
        answer(&documents::list())?;
    } else if let Some(document) = documents::find(&topic) {
        print(&document.text()?, context.printer)?;
    } else if let Some(text) = documents::about(&topic)? {
        print(&text, context.printer)?;
    } else if let Some(text) = documents::mentions(&topic)?.filter(|_| !names_file) {
        print(&text, context.printer)?;
    } else {
        bail!(unknown(&topic));
    }
    Ok(Exit::Done)
}

fn print(text: &str, printer: Printer) -> Result<()> {
    if io::stdout().is_terminal() {
        return printer.answer(&documents::for_terminal(text, &printer.style()));
    }
    answer(text)
}

fn unknown(topic: &str) -> Failure {
    let all = names().chain(documents::sections_of_pages());
    let near = all.filter(|name| strsim::osa_distance(name, topic) <= topic.len().div_ceil(4));
    let near = near.min_by_key(|name| strsim::osa_distance(name, topic));
    let lists = "blockstone help topics lists the documents, blockstone --help the verbs";
    let hint = near.map_or(lists.to_owned(), |name| format!("did you mean `{name}`? {lists}"));
    Failure::new(
        format!("help with `{topic}`: neither a verb, a document nor a word in them"),
        hint,
    )
}

/// Returns what can be asked for with one word.
fn names() -> impl Iterator<Item = String> {
    let verbs = verbs::ALL.iter().map(|verb| verb.name.to_owned());
    let documents = documents::ALL.iter().map(|document| format!("{}.md", document.name));
    verbs.chain([TOPICS.to_owned()]).chain(documents)
}

/// Returns the topics for completions.
pub fn topics() -> impl Iterator<Item = PossibleValue> {
    names().map(|name| {
        let verb = verbs::find(&name).map(|verb| verb.about);
        let document = documents::find(&name).map(|document| document.title);
        let about = verb.or(document).unwrap_or("List the documents");
        PossibleValue::new(name).help(about)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_topic_suggests_one_that_is_near() {
        let hint = |topic: &str| crate::failure::hint([&unknown(topic) as _]).unwrap();
        assert!(hint("calibrat").starts_with("did you mean `calibrate`?"), "{}", hint("calibrat"));
        assert!(hint("docs/verdict.md").contains("lists the documents"));
        assert!(hint("memory-tset").starts_with("did you mean `memory-test`?"));
        assert!(hint("verdict.md").starts_with("did you mean `verdicts.md`?"));
        assert!(hint("weather").starts_with("blockstone help topics"));
    }

    #[test]
    fn a_word_without_an_entry_leads_to_the_pages_that_have_it() {
        let found = documents::mentions("iostat").unwrap().unwrap();
        assert!(found.contains("- `blockstone help import.md`: "), "{found}");
        let exit = documents::mentions("exit").unwrap().unwrap();
        let first = exit.lines().find(|line| line.starts_with("- `blockstone help"));
        assert!(first.unwrap().contains("exit-codes.md"), "{exit}");
        assert!(documents::mentions("struck").unwrap().unwrap().contains("- **condemned, struck"));
        assert!(documents::about("inconclusive").unwrap().unwrap().contains("- **outcome, ✓"));
        assert_eq!(documents::mentions("").unwrap(), None);
        assert_eq!(documents::mentions("ostat").unwrap(), None, "a part of a word is none");
    }
}
