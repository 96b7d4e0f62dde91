//! The pages of docs/, which the program carries: `blockstone help expect.md` prints one of them.

mod markdown;

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::Read as _;

use anyhow::Result;
use blockstone_report::render::terminal::Style;
use flate2::read::GzDecoder;

/// The topic that lists all pages.
pub const TOPICS: &str = "topics";

/// A page of docs/.
#[derive(Debug)]
pub struct Document {
    /// Name of its file, without `.md`.
    pub name: &'static str,
    /// Its first line.
    pub title: &'static str,
    packed: &'static [u8],
}

/// Pages with a section for each rule, and for each store.
const OF_SECTIONS: [&str; 2] = ["verdicts", "stores"];
/// The page with a row for each term.
const GLOSSARY: &str = "glossary";
/// How many pages and rows are listed that only mention a word.
const MENTIONS_MAX: usize = 5;

/// All pages, by name; build.rs lists them.
pub const ALL: &[Document] = include!(concat!(env!("OUT_DIR"), "/documents.rs"));

/// Returns the page of this name, or of this file: `expect`, `expect.md`, `docs/expect.md`.
pub fn find(topic: &str) -> Option<&'static Document> {
    let file = topic.strip_prefix("docs/").unwrap_or(topic);
    let name = file.strip_suffix(".md").unwrap_or(file);
    ALL.iter().find(|document| document.name == name)
}

/// Whether a topic can only be a page: it is written as the name of a file.
pub fn is_file(topic: &str) -> bool {
    topic.starts_with("docs/") || topic.strip_suffix(".md").is_some()
}

/// Returns what the pages say about a word, as Markdown: the section of a rule or of a store, and
/// the rows of the glossary. `None` if no page has it.
pub fn about(word: &str) -> Result<Option<String>> {
    let name = blockstone_stores::find(word).map_or(word, |store| &store.name);
    let name = name.to_lowercase();
    let mut found = Vec::new();
    for page in OF_SECTIONS.into_iter().filter_map(find) {
        let text = page.text()?;
        let of_heading = |(heading, _): &(&str, &str)| *heading == name.replace(' ', "-");
        found.extend(sections(&text).find(of_heading).map(|(heading, section)| {
            format!("## {heading}\n{section}\nFrom {}.md.\n", page.name)
        }));
    }
    if let Some(page) = find(GLOSSARY) {
        let text = page.text()?;
        let rows: Vec<String> = text.lines().filter_map(|line| term(line, &name)).collect();
        if !rows.is_empty() {
            found.push(format!("{}\nFrom {GLOSSARY}.md.\n", rows.concat()));
        }
    }
    Ok((!found.is_empty()).then(|| found.join("\n")))
}

/// Returns the rows of the glossary with this word in them, and the pages that mention it,
/// as Markdown. `None` if no page has it.
pub fn mentions(word: &str) -> Result<Option<String>> {
    let word = word.to_lowercase();
    let is_part = |c: char| c.is_alphanumeric();
    let is_whole = |text: &str, at: usize| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    };
    let count =
        |text: &str| text.match_indices(&word).filter(|(at, _)| is_whole(text, *at)).count();
    let (mut pages, mut rows) = (Vec::new(), String::new());
    for page in ALL {
        let text = page.text()?;
        match count(&text.to_lowercase()) {
            0 => {}
            times => pages.push((times, page)),
        }
        if page.name == GLOSSARY {
            let with_word = |line: &&str| count(&line.to_lowercase()) > 0;
            rows.extend(text.lines().filter(with_word).filter_map(item).take(MENTIONS_MAX));
        }
    }
    if word.is_empty() || pages.is_empty() {
        return Ok(None);
    }
    pages.sort_by_key(|(times, page)| (!page.name.contains(&word), Reverse(*times), page.name));
    let mut found = String::new();
    if !rows.is_empty() {
        let _ = writeln!(found, "{rows}\nFrom {GLOSSARY}.md.\n");
    }
    let _ = writeln!(found, "Pages that mention `{word}`:\n");
    for (times, page) in pages.iter().take(MENTIONS_MAX) {
        let (name, title) = (page.name, page.title);
        let _ = writeln!(found, "- `blockstone help {name}.md`: {times} ×, {title}");
    }
    Ok(Some(found))
}

/// Returns the names of all sections that [`about`] finds.
pub fn sections_of_pages() -> Vec<String> {
    let pages = OF_SECTIONS.into_iter().filter_map(find);
    let texts: Vec<String> = pages.filter_map(|page| page.text().ok()).collect();
    texts.iter().flat_map(|text| sections(text)).map(|(heading, _)| heading.to_owned()).collect()
}

/// Returns the sections of a page: heading and text.
fn sections(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'))
}

/// Returns a row of the glossary as an item of a list, if the row is about this term or name.
fn term(line: &str, wanted: &str) -> Option<String> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [terms, names, unit, _] = cells[..] else { return None };
    let is_wanted = |word: &str| word.trim_matches('`').to_lowercase() == wanted;
    if ![terms, names, unit].iter().flat_map(|cell| cell.split(", ")).any(is_wanted) {
        return None;
    }
    item(line)
}

/// Returns a row of the glossary as an item of a list.
fn item(line: &str) -> Option<String> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [terms, names, unit, meaning] = cells[..] else { return None };
    let aside: Vec<&str> =
        [names, unit].into_iter().filter(|it| !matches!(*it, "" | "–")).collect();
    let aside = if aside.is_empty() { String::new() } else { format!(" ({})", aside.join("; ")) };
    Some(format!("- **{terms}**{aside}: {meaning}\n"))
}

impl Document {
    /// Returns the page as it is in docs/.
    pub fn text(&self) -> Result<String> {
        let mut text = String::new();
        GzDecoder::new(self.packed).read_to_string(&mut text)?;
        Ok(text)
    }
}

/// Returns Markdown for a terminal: prose wrapped to its width, headings in bold.
pub fn for_terminal(text: &str, style: &Style) -> String {
    markdown::for_terminal(text, style)
}

/// Lists all pages with their first lines.
pub fn list() -> String {
    let width = ALL.iter().map(|document| document.name.len()).max().unwrap_or(0) + ".md".len();
    let line = |it: &Document| format!("  {:width$}  {}\n", format!("{}.md", it.name), it.title);
    let lines: String = ALL.iter().map(line).collect();
    format!("Documents; `blockstone help expect.md` prints one:\n\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_there_as_it_is_in_docs() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let files = std::fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path());
        let mut pages = 0;
        for file in files.filter(|file| file.extension().is_some_and(|it| it == "md")) {
            let name = file.file_name().unwrap().to_str().unwrap();
            let document = find(&format!("docs/{name}")).unwrap();
            assert_eq!(document.text().unwrap(), std::fs::read_to_string(&file).unwrap(), "{name}");
            pages += 1;
        }
        assert_eq!(ALL.len(), pages);
    }

    #[test]
    fn a_rule_a_store_and_a_term_are_found() {
        let found = |word: &str| about(word).unwrap().unwrap_or_default();
        assert!(found("memory-test").starts_with("## memory-test\nReads or writes that"));
        assert!(found("Noisy neighbour").starts_with("## noisy-neighbour\n"));
        assert!(found("pg").contains("| `commit.p99<10ms` |"), "an alias of postgresql");
        let term = found("psi_memory_some_ns");
        assert!(term.starts_with("- **memory pressure** (`psi_memory_some_ns`, "), "{term}");
        assert_eq!(term.lines().count(), 3, "{term}");
        let throttled = found("throttled");
        assert!(throttled.contains("From verdicts.md."), "{throttled}");
        assert!(about("weather").unwrap().is_none());
    }

    #[test]
    fn a_page_is_found_by_its_name_and_by_its_file() {
        for topic in ["expect", "expect.md", "docs/expect.md"] {
            assert_eq!(find(topic).unwrap().title, "Expectations: a limit, and yes or no");
        }
        for topic in ["", ".md", "../docs/expect.md", "docs/docs/expect.md", "expect.txt"] {
            assert!(find(topic).is_none(), "{topic}");
        }
    }
}
