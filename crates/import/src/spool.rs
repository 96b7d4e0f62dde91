//! Restores a report from what a mail program or SQL*Plus made of it on its way into a file.

use std::borrow::Cow;
use std::ops::Range;

use crate::text::END_DASHES;

/// Heading of the column in which `dbms_workload_repository` returns a report.
const TITLE: &str = "OUTPUT";
/// Bytes that show how a file is encoded.
const HEAD_BYTES: usize = 32 << 10;
/// The first table of HTML begins within this many bytes.
const TABLE_BYTES: usize = 16 << 10;
/// The headers of a mail have no more bytes.
const MAIL_BYTES: usize = 8 << 10;
/// Lines of text reports have no more characters: in wider ones SQL*Plus wraps none.
const TEXT_WIDTH: usize = 80;
/// This many lines of the greatest length were wrapped there.
const WRAPPED_MIN: usize = 8;
/// Lines of HTML reports are wrapped at no more than this.
const HTML_WIDTH: usize = 4_000;
/// Maximum number of lines that are put together; no report has as many.
const LINES_MAX: usize = 1_000_000;
/// Maximum number of heading lines above dashes.
const HEADINGS: usize = 4;

/// Returns the text of a report as the database returned it: without the encoding of a mail,
/// without the page headings of SQL*Plus, and with its lines whole.
pub fn plain(text: &str) -> Cow<'_, str> {
    let text = unquoted(text);
    let pages = Pages::of(&text);
    let is_html = is_html(&text);
    let width =
        if is_html { widest(head(&text)) } else { pages.width.filter(|it| *it < TEXT_WIDTH) };
    let is_plain = pages.headings.is_empty() && width.is_none();
    if is_plain || text.lines().nth(LINES_MAX).is_some() {
        return text;
    }
    let lines = pages.without(&text);
    let whole = text.ends_with('\n');
    let mut plain = match width {
        Some(width) if is_html => unwrapped_html(&lines, width),
        Some(width) => unwrapped_text(&lines, width).join("\n"),
        None => lines.join("\n"),
    };
    if whole && !plain.ends_with('\n') {
        plain.push('\n');
    }
    Cow::Owned(plain)
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(HEAD_BYTES)]
}

/// Whether a text is HTML. A statement in a report as text may contain tags.
pub fn is_html(text: &str) -> bool {
    let head = head(text);
    let first = &head[..head.floor_char_boundary(TABLE_BYTES)];
    ["<html", "<HTML"].iter().any(|tag| head.contains(tag))
        || ["<table", "<TABLE"].iter().any(|tag| first.contains(tag))
}

/// Decodes the body of a mail in quoted-printable.
fn unquoted(text: &str) -> Cow<'_, str> {
    let head = &text.as_bytes()[..text.len().min(HEAD_BYTES)];
    if !says_quoted(head) && !is_quoted(head) {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some(at) = memchr(rest, b'=') {
        plain.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        rest = match escape(after) {
            Some(Escape::Byte(byte)) => {
                plain.push(byte);
                &after[2..]
            }
            Some(Escape::Break(length)) => &after[length..],
            None => {
                plain.push(b'=');
                after
            }
        };
    }
    plain.extend_from_slice(rest);
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

fn memchr(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|it| *it == byte)
}

enum Escape {
    Byte(u8),
    /// A line break that the mail program inserted, and its length.
    Break(usize),
}

/// Returns the meaning of what follows a `=`.
fn escape(after: &[u8]) -> Option<Escape> {
    let hex = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_lowercase());
    match *after {
        [b'\n', ..] => Some(Escape::Break(1)),
        [b'\r', b'\n', ..] => Some(Escape::Break(2)),
        [high, low, ..] => Some(Escape::Byte((hex(high)? * 16 + hex(low)?) as u8)),
        _ => None,
    }
}

fn says_quoted(head: &[u8]) -> bool {
    const SAYS: &[u8] = b"content-transfer-encoding: quoted-printable";
    let head = &head[..head.len().min(MAIL_BYTES)];
    let mut lines = head.split(|byte| *byte == b'\n');
    lines.any(|line| line.get(..SAYS.len()).is_some_and(|it| it.eq_ignore_ascii_case(SAYS)))
}

/// Returns whether a text without the headers of its mail is quoted: then every `=` is an escape.
fn is_quoted(head: &[u8]) -> bool {
    let mut rest = head;
    let mut escapes = 0;
    while let Some(at) = memchr(rest, b'=') {
        let after = &rest[at + 1..];
        // An escape that the head cuts.
        if after.len() < 2 {
            break;
        }
        if escape(after).is_none() {
            return false;
        }
        escapes += 1;
        rest = after;
    }
    escapes > 0
}

/// The headings that SQL*Plus printed above each page.
struct Pages {
    /// The lines of each heading.
    headings: Vec<Range<usize>>,
    /// Number of characters of the column, if it is underlined.
    width: Option<usize>,
}

impl Pages {
    fn of(text: &str) -> Self {
        let mut pages = Self { headings: Vec::new(), width: None };
        // The first page has a heading, too.
        if !head(text).contains(TITLE) {
            return pages;
        }
        let mut lines = text.lines().map(bare).enumerate().peekable();
        let mut is_above_empty = true;
        while let Some((index, line)) = lines.next() {
            if line.trim() != TITLE {
                is_above_empty = line.is_empty();
                continue;
            }
            let below = lines.next_if(|(_, line)| is_dashes(line));
            if let Some((_, dashes)) = below {
                pages.width = Some(dashes.len());
            } else if !is_above_empty {
                continue;
            }
            pages.headings.push(index..index + 1 + usize::from(below.is_some()));
            is_above_empty = false;
        }
        pages
    }

    /// Returns the lines outside of the headings, without trailing blanks.
    fn without<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let all: Vec<&str> = text.lines().map(bare).collect();
        // SQL*Plus prints the same number of empty lines above each page; the report has others.
        let empty = |heading: &Range<usize>| {
            all[..heading.start].iter().rev().take_while(|line| line.is_empty()).count()
        };
        let is_none = self.headings.iter().skip(1).any(|heading| empty(heading) == 0);
        let above = self.headings.iter().map(empty).filter(|lines| *lines > 0 && !is_none);
        let of_pages = above.min().unwrap_or(0);
        let mut lines = Vec::with_capacity(all.len());
        let mut from = 0;
        for heading in &self.headings {
            let end = heading.start - of_pages.min(empty(heading));
            lines.extend(&all[from..end.max(from)]);
            from = heading.end;
        }
        lines.extend(&all[from..]);
        lines
    }
}

/// A line without a page break and trailing blanks.
fn bare(line: &str) -> &str {
    line.trim_start_matches('\u{c}').trim_end()
}

fn is_dashes(line: &str) -> bool {
    line.len() >= TITLE.len() && line.bytes().all(|byte| byte == b'-')
}

fn length(line: &str) -> usize {
    if line.is_ascii() { line.len() } else { line.chars().count() }
}

/// Returns the length of the longest lines at the beginning of an HTML report, if so many are as
/// long that they were wrapped there.
fn widest(text: &str) -> Option<usize> {
    let (mut widest, mut count) = (0, 0);
    // No line has more characters than bytes.
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.len() < widest {
            continue;
        }
        let length = length(line.trim_end());
        if length > widest {
            (widest, count) = (length, 0);
        }
        count += usize::from(length == widest);
    }
    (count >= WRAPPED_MIN && (1..=HTML_WIDTH).contains(&widest)).then_some(widest)
}

/// Joins lines that are as long as the column with the next one. A shorter line ends where the
/// report had a blank or a line break, which are the same in HTML.
fn unwrapped_html(lines: &[&str], width: usize) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        text.push_str(line);
        if length(line) != width {
            text.push('\n');
        }
    }
    text
}

/// Joins the parts of wrapped lines of a text report. SQL*Plus prints an empty line behind each
/// wrapped line. A part that fills the column goes on in the next line. A part that is shorter may
/// have ended in blanks: whether it goes on is known in tables, whose dashes show the length of a
/// line.
fn unwrapped_text(lines: &[&str], width: usize) -> Vec<String> {
    let mut blocks: Vec<Block> = lines.split(|line| line.is_empty()).map(Block::of).collect();
    let full = blocks.iter().map(|block| block.full(width));
    let (full, at_ends) = full.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    let is_separated = 2 * at_ends >= full;
    let mut parts = 1;
    for index in 0..blocks.len() {
        let (above, rest) = blocks.split_at_mut(index);
        let Some(block) = rest.first_mut() else { break };
        if let Some(count) = block.end() {
            block.join(count, width);
            parts = 1;
            continue;
        }
        match block.columns(width) {
            Some(count) => {
                parts = count;
                // Headings stand directly above the dashes: an empty line between them is that of
                // a wrapped line.
                for (lines, above) in above.iter_mut().rev().take(HEADINGS).enumerate() {
                    let is_other = above.has_dashes || lines > 0 && above.lines.len() > parts;
                    if above.lines.is_empty() || is_other || !above.join(parts, width) {
                        break;
                    }
                    if above.lines.len() > 1 {
                        break;
                    }
                }
                block.join(parts, width);
            }
            None if block.has_dashes || block.lines.is_empty() => {
                parts = 1;
                block.join_full(width, is_separated);
            }
            None if parts > 1 => {
                block.join(parts, width);
            }
            None => block.join_full(width, is_separated),
        }
    }
    let mut text: Vec<String> = Vec::with_capacity(lines.len());
    for (index, block) in blocks.into_iter().enumerate() {
        if index > 0 {
            text.push(String::new());
        }
        text.extend(block.lines);
    }
    text
}

/// Lines between two empty ones.
struct Block {
    lines: Vec<String>,
    has_dashes: bool,
    is_joined: bool,
}

impl Block {
    fn of(lines: &[&str]) -> Self {
        let has_dashes = lines.iter().any(|line| is_rule(line));
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Self { lines, has_dashes, is_joined: false }
    }

    /// Returns over how many lines the dashes of columns go on that it begins with.
    fn columns(&self, width: usize) -> Option<usize> {
        self.lines.first().filter(|line| is_rule(line) && line.len() + 1 >= width)?;
        let is_part = |line: &&String| line.bytes().all(|byte| matches!(byte, b'-' | b'~' | b' '));
        let count = self.lines.iter().take_while(is_part).count();
        (count > 1).then_some(count)
    }

    /// Returns over how many lines the dashes go on that end a table.
    fn end(&self) -> Option<usize> {
        let is_part = |line: &&String| line.trim_start().bytes().all(|byte| byte == b'-');
        let parts = self.lines.iter().rev().take_while(is_part).count();
        let parts = &self.lines[self.lines.len() - parts..];
        let dashes: usize = parts.iter().map(|line| line.trim_start().len()).sum();
        (parts.first()?.starts_with(' ') && dashes >= END_DASHES).then_some(parts.len())
    }

    /// Joins its last lines, which are the parts of one. Returns false if they are notes.
    fn join(&mut self, parts: usize, width: usize) -> bool {
        let from = self.lines.len().saturating_sub(parts);
        if self.lines[from..].iter().any(|line| line.starts_with("->")) {
            return false;
        }
        if std::mem::replace(&mut self.is_joined, true) {
            return true;
        }
        let mut whole = String::new();
        for (index, part) in self.lines.drain(from..).enumerate() {
            let missing = (index * width).saturating_sub(length(&whole));
            whole.extend(std::iter::repeat_n(' ', missing));
            whole.push_str(&part);
        }
        if !whole.is_empty() {
            self.lines.push(whole);
        }
        true
    }

    /// Returns how many full lines go on in the next one, and how many of these end the block, as
    /// the last part of a wrapped line does.
    fn full(&self, width: usize) -> (usize, usize) {
        let is_full = |line: &String| length(line) == width;
        let pairs = self.lines.windows(2).filter(|pair| is_full(&pair[0]) && !is_full(&pair[1]));
        let last = self.lines.last_chunk::<2>();
        let ends = last.is_some_and(|[line, end]| is_full(line) && !is_full(end));
        (pairs.count(), usize::from(ends))
    }

    /// Joins lines that fill the column with the next ones; where an empty line is printed behind
    /// a wrapped one, only at the end of the block.
    fn join_full(&mut self, width: usize, is_separated: bool) {
        let is_full = |line: &String| length(line) == width;
        let mut from = 0;
        if is_separated {
            let longest = TEXT_WIDTH.div_ceil(width);
            let body = self.lines.len().saturating_sub(1);
            let full =
                self.lines[..body].iter().rev().take(longest - 1).take_while(|it| is_full(it));
            from = body - full.count();
        }
        let mut whole: Vec<String> = self.lines.drain(..from).collect();
        let mut goes_on = false;
        for line in self.lines.drain(..) {
            let is_full = is_full(&line);
            match whole.last_mut().filter(|_| goes_on) {
                Some(before) => before.push_str(&line),
                None => whole.push(line),
            }
            goes_on = is_full;
        }
        self.lines = whole;
    }
}

fn is_rule(line: &str) -> bool {
    line.contains("--") && line.bytes().all(|byte| matches!(byte, b'-' | b'~' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
WORKLOAD REPOSITORY report for

DB Name         DB Id    Instance
------------ ----------- ------------
A                   4711 a

Instance     Inst Num
------------ --------
a                   1

Activity    DB/Inst: A/a  Snaps: 1-2
-> in the order of names

Statistic                 Total     per Second
---------------- -------------- --------------
one                       1,000            1.0
two                       2,000
          ----------------------------------------

Other       DB/Inst: A/a  Snaps: 1-2

End of Report
";

    /// Prints like SQL*Plus: `page` lines on a page, one empty line and a heading above each.
    fn spooled(text: &str, page: usize, width: usize, is_underlined: bool) -> String {
        let mut printed = Vec::new();
        for line in text.lines() {
            let parts: Vec<&[u8]> = line.as_bytes().chunks(width).collect();
            let is_wrapped = parts.len() > 1;
            let parts = parts.into_iter().map(|part| String::from_utf8_lossy(part).into_owned());
            printed.extend(parts.map(|part| part.trim_end().to_owned()));
            if is_wrapped || line.is_empty() {
                printed.push(String::new());
            }
        }
        let dashes = if is_underlined { "-".repeat(width) + "\n" } else { String::new() };
        let pages = printed.chunks(page).map(|lines| lines.join("\n"));
        let pages = pages.map(|lines| format!("\nOUTPUT\n{dashes}{lines}\n"));
        pages.collect::<Vec<_>>().concat()
    }

    fn lines(text: &str) -> Vec<&str> {
        text.lines().map(str::trim_end).skip_while(|line| line.is_empty()).collect()
    }

    #[test]
    fn pages_of_any_length_are_put_together() {
        for page in 2..20 {
            for is_underlined in [true, false] {
                let text = spooled(REPORT, page, 80, is_underlined);
                assert_eq!(lines(&plain(&text)), lines(REPORT), "{page}: {text}");
            }
        }
        let fed = spooled(REPORT, 5, 80, true).replace("\nOUTPUT", "\u{c}OUTPUT");
        assert_eq!(lines(&plain(&fed)), lines(REPORT), "{fed}");
        assert!(matches!(plain(REPORT), Cow::Borrowed(_)));
        let endless = fed + &"\n".repeat(LINES_MAX);
        assert!(matches!(plain(&endless), Cow::Borrowed(_)));
    }

    #[test]
    fn wrapped_lines_of_text_are_joined() {
        for width in 24..60 {
            let text = spooled(REPORT, 1_000, width, true);
            let tables = crate::text::tables(&plain(&text), |name| name == "Activity")
                .into_iter()
                .map(|table| {
                    let rows =
                        table.rows.iter().map(|row| row.iter().map(|it| it.trim().to_owned()));
                    (table.head, table.is_whole, rows.map(Iterator::collect).collect())
                })
                .collect::<Vec<(Vec<String>, bool, Vec<Vec<String>>)>>();
            let [.., instance, activity] = &tables[..] else { panic!("{width}: {text}") };
            let found = (&instance.0[..], &instance.2[..]);
            assert_eq!(found.0, ["Instance", "Inst Num"], "{width}: {text}");
            assert_eq!(found.1, [["a", "1"]], "{width}: {text}");
            assert_eq!(activity.0, ["Statistic", "Total", "per Second"], "{width}: {text}");
            assert_eq!(activity.2, [["one", "1,000", "1.0"], ["two", "2,000", ""]], "{width}");
            assert!(activity.1, "{width}");
        }
    }

    #[test]
    fn wrapped_lines_of_html_are_joined() {
        let row =
            "<tr><td class='awrc'>physical read total IO requests</td><td>1,800,250</td></tr>";
        let html = format!(
            "<html><table summary=\"a b\">\n{}</table>\n",
            (row.to_owned() + "\n").repeat(9)
        );
        for width in 20..60 {
            let text = plain(&spooled(&html, 14, width, true)).into_owned();
            let tables = crate::html::tables(&text, |name| name == "a b");
            assert_eq!(tables[0].rows.len(), 9, "{width}: {text}");
            for row in &tables[0].rows {
                let name = crate::table::joined(&row[0]);
                assert_eq!((&*name, &*row[1]), ("physical read total IO requests", "1,800,250"));
            }
        }
    }

    #[test]
    fn the_body_of_a_mail_is_decoded() {
        let body = "<td class=3D\"awrc\">1=A0000</td> physical re=\r\nad=20\r\n=E2=82=AC\n";
        let decoded = "<td class=\"awrc\">1\u{fffd}000</td> physical read \r\n\u{20ac}\n";
        assert_eq!(plain(body), decoded);
        let mail =
            format!("Subject: a report\nContent-Transfer-Encoding: Quoted-Printable\n\n{body}");
        assert!(plain(&mail).ends_with(decoded));
        for other in ["<td class=\"a\">=3D</td>", "where a =\n b = 1\n", "no sign", "=", "=A"] {
            assert_eq!(plain(other), other);
        }
    }
}
