//! The pages of docs/, which the program carries: `blockstone help expect.md` prints one of them.

mod markdown;

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

impl Document {
    /// Returns the page as it is in docs/.
    pub fn text(&self) -> Result<String> {
        let mut text = String::new();
        GzDecoder::new(self.packed).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Returns the page for a terminal: prose wrapped to its width, headings in bold.
    pub fn for_terminal(&self, style: &Style) -> Result<String> {
        Ok(markdown::for_terminal(&self.text()?, style))
    }
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
    fn a_page_is_found_by_its_name_and_by_its_file() {
        for topic in ["expect", "expect.md", "docs/expect.md"] {
            assert_eq!(find(topic).unwrap().title, "Expectations: a limit, and yes or no");
        }
        for topic in ["", ".md", "../docs/expect.md", "docs/docs/expect.md", "expect.txt"] {
            assert!(find(topic).is_none(), "{topic}");
        }
    }
}
