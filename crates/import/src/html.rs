//! Tables of an HTML report. Only what these reports contain is supported: tables that do not nest,
//! with their `summary`, rows and cells, whose end tags may be missing.

use std::borrow::Cow;

use crate::table::{Table, joined};

/// Maximum number of rows of a table; no report has as many.
const ROWS_MAX: usize = 100_000;
/// Maximum number of cells of a row, and of all rows of a table; no report has as many. Anything
/// beyond is left out.
const ROW_CELLS_MAX: usize = 1_000;
const CELLS_MAX: usize = 2_000_000;

/// Returns the tables whose summary is wanted, in order.
pub fn tables(text: &str, mut wanted: impl FnMut(&str) -> bool) -> Vec<Table<'_>> {
    let mut tags = Tags { text, at: 0 };
    let mut found = Vec::new();
    while let Some(tag) = tags.next_tag() {
        if !tag.is("table") {
            continue;
        }
        let summary = joined(&decoded(tag.attribute("summary").unwrap_or_default()));
        if wanted(&summary) {
            found.push(table(&mut tags, summary));
        }
    }
    found
}

#[derive(Default)]
struct Rows<'a> {
    head: Vec<String>,
    done: Vec<Vec<Cow<'a, str>>>,
    row: Vec<Cow<'a, str>>,
    cells: usize,
    /// Whether the row has a heading, and whether it has other text: a blank heading cell may be a
    /// `td`.
    has: (bool, bool),
}

impl Rows<'_> {
    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let is_head = std::mem::take(&mut self.has) == (true, false);
        self.cells += row.len();
        if row.is_empty() || self.done.len() >= ROWS_MAX || self.cells > CELLS_MAX {
            return;
        }
        if is_head && self.done.is_empty() {
            self.head = row.iter().map(|cell| joined(cell)).collect();
        } else {
            self.done.push(row);
        }
    }
}

fn table<'a>(tags: &mut Tags<'a>, summary: String) -> Table<'a> {
    let mut rows = Rows::default();
    let mut cell: Option<(usize, bool)> = None;
    let mut is_whole = false;
    while let Some(tag) = tags.next_tag() {
        let (opens, closes) = (tag.is("td") || tag.is("th"), tag.is("/td") || tag.is("/th"));
        let breaks = tag.is("tr") || tag.is("/tr") || tag.is("/table") || tag.is("table");
        if !(opens || closes || breaks) {
            continue;
        }
        if let Some((start, is_heading)) = cell.take() {
            let text = contents(&tags.text[start..tag.start]);
            rows.has.0 |= is_heading;
            rows.has.1 |= !is_heading && !text.trim().is_empty();
            if rows.row.len() < ROW_CELLS_MAX {
                rows.row.push(text);
            }
        }
        if opens {
            cell = Some((tags.at, tag.is("th")));
        }
        if breaks {
            rows.end_row();
        }
        is_whole = tag.is("/table");
        if is_whole {
            break;
        }
        if tag.is("table") {
            tags.at = tag.start;
            break;
        }
    }
    let Rows { head, done: rows, .. } = rows;
    Table { name: Cow::Owned(summary), head, rows, is_whole, name_width: None }
}

/// Returns the text of a cell, with tags removed and entities replaced.
fn contents(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if !text.contains('<') {
        return decoded(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        plain.push_str(before);
        if after.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/') {
            rest = after.split_once('>').map_or("", |(_, after)| after);
        } else {
            plain.push('<');
            rest = after;
        }
    }
    plain.push_str(rest);
    Cow::Owned(decoded(plain.trim()).into_owned())
}

fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let (character, behind) = entity(after).unwrap_or(('&', after));
        plain.push(character);
        rest = behind;
    }
    plain.push_str(rest);
    Cow::Owned(plain.trim().to_owned())
}

/// Returns the character of an entity whose `&` is before this text, and the text behind it.
fn entity(text: &str) -> Option<(char, &str)> {
    const LONGEST: usize = 8;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let (name, behind) = (&text[..end], &text[end + 1..]);
    let number = name.strip_prefix('#').map(|digits| match digits.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => digits.parse(),
    });
    let character = match (name, number) {
        ("nbsp", _) => ' ',
        ("amp", _) => '&',
        ("lt", _) => '<',
        ("gt", _) => '>',
        ("quot", _) => '"',
        ("apos", _) => '\'',
        (_, Some(Ok(number))) => char::from_u32(number)?,
        _ => return None,
    };
    Some((character, behind))
}

struct Tags<'a> {
    text: &'a str,
    at: usize,
}

struct Tag<'a> {
    start: usize,
    /// Text between the angle brackets.
    inside: &'a str,
}

impl<'a> Tags<'a> {
    /// Returns the next complete tag. A `<` that is not followed by a name is text.
    fn next_tag(&mut self) -> Option<Tag<'a>> {
        loop {
            let start = self.at + self.text[self.at..].find('<')?;
            let first = self.text.as_bytes().get(start + 1)?;
            if !first.is_ascii_alphabetic() && *first != b'/' {
                self.at = start + 1;
                continue;
            }
            let length = end_of_tag(&self.text.as_bytes()[start..])?;
            self.at = start + length;
            return Some(Tag { start, inside: &self.text[start + 1..self.at - 1] });
        }
    }
}

/// Length of a tag in bytes, with its brackets; a `>` inside quotes does not end it.
fn end_of_tag(bytes: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (index, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(index + 1),
            (None, b'"' | b'\'') if bytes[index - 1] == b'=' => quote = Some(*byte),
            (Some(open), _) if open == *byte => quote = None,
            _ => {}
        }
    }
    None
}

impl<'a> Tag<'a> {
    fn is(&self, name: &str) -> bool {
        let Some(start) = self.inside.as_bytes().get(..name.len()) else { return false };
        let next = self.inside.as_bytes().get(name.len());
        start.eq_ignore_ascii_case(name.as_bytes())
            && next.is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b'/')
    }

    fn attribute(&self, name: &str) -> Option<&'a str> {
        let at = self.inside.find(&format!("{name}="))?;
        let value = &self.inside[at + name.len() + 1..];
        match value.chars().next()? {
            quote @ ('"' | '\'') => value[1..].split(quote).next(),
            _ => value.split_whitespace().next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Table<'_>> {
        tables(text, |_| true)
    }

    #[test]
    fn a_table_is_read_with_and_without_end_tags() {
        let tidy = "<table border=\"0\" summary=\"a > b\"><tr><th>X &amp; Y</th><th>Z</th></tr>\
                    <tr><td><a href='#1'>1,2</a></td><td>&#160;</td></tr></table>";
        let bare =
            "<TABLE summary='a > b' border=0>\n<TR><TH>X &amp; Y<TH>Z\n<TR><TD>1,2<TD></TABLE>";
        for text in [tidy, bare] {
            let found = all(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].name, "a > b");
            assert_eq!(found[0].head, ["X & Y", "Z"]);
            assert_eq!(found[0].rows.len(), 1);
            assert_eq!(found[0].rows[0][0], "1,2");
            assert_eq!(found[0].rows[0][1].trim(), "");
            assert!(found[0].is_whole);
        }
    }

    #[test]
    fn entities_are_replaced() {
        let text = "<table><tr><td>1&#160;2&nbsp;3&#xA0;4&#8239;5&#39;6&apos;7</td>\
                    <td>a&b;c &amp; &#xffffffff; &#1114112; &</td></tr></table>";
        let row = &all(text)[0].rows[0];
        assert_eq!(row[0], "1\u{a0}2 3\u{a0}4\u{202f}5'6'7");
        assert_eq!(row[1], "a&b;c & &#xffffffff; &#1114112; &");
    }

    #[test]
    fn a_torn_row_is_no_row() {
        let text = "<table summary=s><tr><th>A</th></tr><tr><td>1</td></tr><tr><td>23</td><td>4";
        for end in text.len() - 20..text.len() {
            let found = all(&text[..end]);
            assert!(!found[0].is_whole);
            assert_eq!(found[0].rows, [["1"]]);
        }
    }

    #[test]
    fn rows_and_tables_of_endless_cells_are_cut() {
        let row = format!("<tr>{}</tr>", "<td>1".repeat(2 * ROW_CELLS_MAX));
        let text = format!("<table>{}</table>", row.repeat(2 * CELLS_MAX / ROW_CELLS_MAX));
        let found = all(&text);
        assert_eq!(found[0].rows[0].len(), ROW_CELLS_MAX);
        assert_eq!(found[0].rows.len(), CELLS_MAX / ROW_CELLS_MAX);
    }

    #[test]
    fn two_rows_of_headings_give_the_lower_one() {
        let text = "<table><tr><th colspan=2>Up</th></tr><tr><th>A</th><th>B</th></tr>\
                    <tr><td>1</td><td>< 2</td></tr></table>";
        let found = all(text);
        assert_eq!(found[0].head, ["A", "B"]);
        assert_eq!(found[0].rows, [["1", "< 2"]]);
    }
}
