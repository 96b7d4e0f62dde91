//! Tables of a report that was converted from HTML to Markdown, for a wiki or a chat.

use std::borrow::Cow;

use crate::table::{Table, joined};
use crate::text;

/// Returns whether a text has a table of Markdown.
pub fn is_markdown(text: &str) -> bool {
    text.lines().any(is_rule)
}

/// A heading or a row is wrapped over no more lines than this.
const WRAPPED_MAX: usize = 8;
/// Maximum numbers of rows of a table, and of cells of a row; no report has as many.
const ROWS_MAX: usize = 100_000;
const ROW_CELLS_MAX: usize = 1_000;

/// Returns the tables of the wanted sections, named by their headings, and those before the first
/// such section, without a name.
pub fn tables(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Table<'_>> {
    let mut found = Vec::new();
    let (mut section, mut is_wanted, mut is_before) = ("", false, true);
    // A line without an end may lack digits.
    let lines: Vec<&str> = text::lines(text).collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if let Some(name) = heading(line) {
            is_wanted = wanted(name);
            is_before &= !is_wanted;
            section = if is_wanted { name } else { "" };
        } else if line.contains('|')
            && let Some((table, end)) = table(&lines, at)
        {
            at = end;
            if is_wanted || is_before {
                found.push(Table { name: Cow::Borrowed(section), ..table });
            }
            continue;
        }
        at += 1;
    }
    found
}

/// Returns the table that begins in this line, and the line behind it. Long rows may be wrapped.
fn table<'a>(lines: &[&'a str], first: usize) -> Option<(Table<'a>, usize)> {
    let head = &lines[first..];
    let count = head.iter().take(WRAPPED_MAX).take_while(|line| is_part(line)).count();
    let rule = (1..=count).find(|at| head.get(*at).is_some_and(|line| is_rule(line)))?;
    let is_framed = head[rule].trim_start().starts_with('|');
    let columns = cells(head[rule], is_framed).len();
    let names = cells(&head[..rule].join(" "), is_framed).iter().map(|it| joined(it)).collect();
    let mut rows: Vec<Vec<Cow<'a, str>>> = Vec::new();
    // A line without a bar that belongs to the row behind it.
    let mut before = String::new();
    let mut at = first + rule + 1;
    while let Some(line) = lines.get(at).filter(|line| is_part(line)) {
        at += 1;
        if rows.len() >= ROWS_MAX {
            continue;
        }
        let own = cells(line, is_framed);
        let last = rows.last_mut().filter(|_| before.is_empty());
        match last {
            // The rest of the last cell, unless that is a number.
            Some(row) if !line.contains('|') => match row.last_mut() {
                Some(cell) if row_is_open(cell) => {
                    *cell = format!("{cell} {}", line.trim()).trim().to_owned().into();
                }
                _ => line.trim().clone_into(&mut before),
            },
            None if !line.contains('|') => line.trim().clone_into(&mut before),
            // The rest of a row that lacks cells, or its last bar.
            Some(row)
                if (row.len() < columns && own.len() < columns)
                    || (is_framed && !line.trim_start().starts_with('|')) =>
            {
                let mut own = own.into_iter().map(|it| Cow::Owned(it.into_owned()));
                let joined = [row.pop(), own.next()].into_iter().flatten();
                let joined = joined.collect::<Vec<_>>().join(" ");
                row.push(joined.trim().to_owned().into());
                let missing = columns.saturating_sub(row.len());
                row.extend(own.take(missing));
            }
            _ => {
                let mut row = own;
                if let (false, Some(name)) = (before.is_empty(), row.first_mut()) {
                    *name = format!("{} {name}", std::mem::take(&mut before)).into();
                }
                rows.push(row);
            }
        }
    }
    let is_whole = at < lines.len();
    Some((Table { head: names, rows, is_whole, ..Table::default() }, at))
}

/// Whether more text may follow in a cell: behind a number, the next row begins.
fn row_is_open(cell: &str) -> bool {
    !cell.chars().any(|it| it.is_ascii_digit())
        || cell.chars().any(|it| it.is_alphabetic() && !"KMGT".contains(it))
}

/// Whether a line may be a part of a row.
fn is_part(line: &str) -> bool {
    !line.trim().is_empty() && heading(line).is_none()
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
        if !line[..at].ends_with('\\') && cells.len() < ROW_CELLS_MAX {
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
    fn wrapped_rows_and_headings_are_whole() {
        let text = "### Waits\n\nStatistic| Total| per Second| per\nTrans  \n---|---|---|---  \n\
                    a| 1| 2| 3  \n\
                    memory max| 283,599,973,376| 931,643,214.58|\n2,215,624,824.00  \n\
                    b| 4|  |   \nshort| 5\nc| 6| 7| 8\nlong\nname| 9| 10| 11\n  \nEnd\n";
        let tables = tables(text, |name| name == "Waits");
        assert_eq!(tables[0].head, ["Statistic", "Total", "per Second", "per Trans"]);
        let max = ["memory max", "283,599,973,376", "931,643,214.58", "2,215,624,824.00"];
        let rows: Vec<Vec<&str>> =
            tables[0].rows.iter().map(|row| row.iter().map(|it| &**it).collect()).collect();
        assert_eq!(rows[..3], [["a", "1", "2", "3"], max, ["b", "4", "", ""]]);
        let long = ["long name", "9", "10", "11"];
        assert_eq!(rows[3..], [&["short", "5"][..], &["c", "6", "7", "8"], &long]);
    }

    #[test]
    fn the_text_of_a_last_cell_goes_on_in_the_next_line() {
        let text =
            "### S\n\n|Time|Id|Text|\n|---|---|---|\n|1|a|select x\nfrom t|\n|2|b|y|\n\nEnd\n";
        let rows = &tables(text, |name| name == "S")[0].rows;
        assert_eq!((rows.len(), &*rows[1][1]), (2, "b"), "{rows:?}");
        assert!(rows[0][2].starts_with("select x"), "{rows:?}");
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
