//! Tables of a report that was converted from HTML to Markdown, for a wiki or a chat.

use std::borrow::Cow;
use std::iter::Peekable;

use crate::table::{Table, joined};
use crate::text;

/// Returns whether a text has a table of Markdown.
pub fn is_markdown(text: &str) -> bool {
    text.lines().any(is_rule)
}

/// Returns the tables of the wanted sections, named by their headings, and those before the first
/// such section, without a name.
pub fn tables(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Table<'_>> {
    let mut found = Vec::new();
    let (mut section, mut is_wanted, mut is_before) = ("", false, true);
    // A line without an end may lack digits.
    let mut lines = text::lines(text).peekable();
    while let Some(line) = lines.next() {
        if let Some(name) = heading(line) {
            is_wanted = wanted(name);
            is_before &= !is_wanted;
            section = if is_wanted { name } else { "" };
        } else if let Some(rule) = lines.next_if(|next| is_rule(next)) {
            let is_framed = rule.trim_start().starts_with('|');
            let table = table(line, is_framed, &mut lines);
            if is_wanted || is_before {
                found.push(Table { name: Cow::Borrowed(section), ..table });
            }
        }
    }
    found
}

fn table<'a>(
    head: &'a str,
    is_framed: bool,
    lines: &mut Peekable<impl Iterator<Item = &'a str>>,
) -> Table<'a> {
    let head = cells(head, is_framed).iter().map(|cell| joined(cell)).collect();
    let mut rows = Vec::new();
    while let Some(line) = lines.next_if(|line| line.contains('|')) {
        rows.push(cells(line, is_framed));
    }
    Table { head, rows, is_whole: lines.peek().is_some(), ..Table::default() }
}

/// Returns the text of a heading: `### Time Model Statistics`.
fn heading(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('#')?;
    Some(name.trim_start_matches('#').trim_matches(|it: char| it == '*' || it.is_whitespace()))
}

/// Whether a line separates headings from rows: `---|---` or `| :--- | ---: |`.
fn is_rule(line: &str) -> bool {
    line.contains('|') && line.contains("---") && line.bytes().all(|it| b"|-: \t\r".contains(&it))
}

/// Splits a line at its bars. A frame is the bars at both ends.
fn cells(line: &str, is_framed: bool) -> Vec<Cow<'_, str>> {
    let mut line = line.trim();
    if is_framed {
        line = line.strip_prefix('|').unwrap_or(line);
        line = line.strip_suffix('|').unwrap_or(line);
    }
    let mut cells = Vec::new();
    let mut start = 0;
    for (at, _) in line.match_indices('|') {
        if !line[..at].ends_with('\\') {
            cells.push(plain(&line[start..at]));
            start = at + 1;
        }
    }
    cells.push(plain(&line[start..]));
    cells
}

/// Returns the text of a cell, without emphasis, link and escapes.
fn plain(cell: &str) -> Cow<'_, str> {
    let mut text = cell.trim();
    for mark in ["**", "__", "`"] {
        let inner = text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        text = inner.unwrap_or(text);
    }
    let link = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(')'));
    text = link.and_then(|link| link.rsplit_once("](")).map_or(text, |(text, _)| text).trim();
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut unescaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = |next: &char| character == '\\' && next.is_ascii_punctuation();
        unescaped.push(characters.next_if(escaped).unwrap_or(character));
    }
    Cow::Owned(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_and_without_a_frame_are_the_same() {
        let bare = "# R\n\nDB Name| DB Id  \n---|---  \nORCL| 7  \n  \n### Waits\n\n\
                    | Total|  \n---|---|---  \nSQL\\*Net \\| x|  1,2| [9bab](#9bab)  \n\nEnd\n";
        let framed = "# R\n\n| DB Name | DB Id |\n| --- | ---: |\n| ORCL | 7 |\n\n### **Waits**\n\n\
                      |  | Total |  |\n|:---|---|---|\n| SQL*Net \\| x | 1,2 | **9bab** |\n\nEnd\n";
        for text in [bare, framed] {
            let tables = tables(text, |name| name == "Waits");
            assert_eq!(tables.len(), 2, "{text}");
            assert_eq!((&*tables[0].name, &*tables[1].name), ("", "Waits"), "{text}");
            assert_eq!(tables[0].head, ["DB Name", "DB Id"]);
            assert_eq!(tables[0].rows, [["ORCL", "7"]]);
            assert_eq!(tables[1].head, ["", "Total", ""]);
            assert_eq!(tables[1].rows, [["SQL*Net | x", "1,2", "9bab"]]);
            assert!(tables[1].is_whole);
        }
    }

    #[test]
    fn any_text_is_read_without_harm() {
        for text in
            ["|", "---|", "a\n---|---", "|\n|---|\n|", "\\|\n---|---\n\\", "#", "[](\n-|---\n"]
        {
            tables(text, |_| true);
        }
    }
}
