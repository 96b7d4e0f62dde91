//! Tables of a text report: a line of dashes defines the columns, with headings above it. A table
//! may continue below the heading of the next page.

use std::borrow::Cow;
use std::ops::Range;

use crate::table::{Table, joined};

/// Maximum number of heading lines above a line of dashes.
const HEAD_LINES: usize = 4;
/// A line of at least this many dashes, and nothing else, ends a table.
pub const END_DASHES: usize = 40;
/// From this column on, text before the first dashes is a column too.
const INDENT: usize = 8;

/// Returns all tables of the wanted sections, and those before the first section, which have no
/// name.
pub fn tables(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Table<'_>> {
    let mut reader = Reader::default();
    for line in lines(text) {
        if let Some(name) = heading(line) {
            reader.leave();
            reader.section = name;
            reader.is_wanted = wanted(name);
        } else if reader.is_wanted || reader.section.is_empty() {
            reader.line(line);
        }
    }
    reader.leave();
    reader.tables
}

/// Returns the complete lines of the text, without page breaks.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| line.trim_start_matches('\u{c}').trim_end())
}

/// Returns the name of the section that begins with this line.
fn heading(line: &str) -> Option<&str> {
    let end = line.find("DB/Inst:").or_else(|| line.find(" for DB: "))?;
    let name = line[..end].trim();
    (!name.is_empty() && !name.starts_with("->")).then_some(name)
}

#[derive(Default)]
struct Reader<'a> {
    tables: Vec<Table<'a>>,
    section: &'a str,
    is_wanted: bool,
    /// Lines that may be headings of the next table.
    head: Vec<&'a str>,
    /// Lines above an empty one, which are headings if dashes follow it: a page may begin there.
    above: Vec<&'a str>,
    /// Columns of the current table.
    columns: Option<Vec<Range<usize>>>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) {
        if is_end(line) {
            if let Some(table) = self.tables.last_mut().filter(|_| self.columns.is_some()) {
                table.is_whole = true;
            }
            self.leave();
        } else if self.is_in_table(line) {
            // The lines below it are computed from the rows above.
        } else if is_rule(line) {
            if self.head.is_empty() {
                self.head = std::mem::take(&mut self.above);
            }
            match columns(line) {
                Some(columns) => self.begin(columns),
                None => self.head.clear(),
            }
        } else if line.trim().is_empty() {
            // Empty lines separate statements, and end tables before the first section.
            let above = std::mem::take(&mut self.head);
            if self.section.is_empty() && self.has_rows() {
                self.leave();
            }
            self.above = above;
        } else {
            if self.columns.is_some() {
                self.row(line);
            }
            if line.starts_with("->") {
                self.head.clear();
                return;
            }
            if self.head.len() == HEAD_LINES {
                self.head.remove(0);
            }
            self.head.push(line);
        }
    }

    fn has_rows(&self) -> bool {
        self.columns.is_none() || self.tables.last().is_some_and(|table| !table.rows.is_empty())
    }

    /// Returns whether this is a line of tildes inside a table, which precedes sums of its rows.
    fn is_in_table(&self, line: &str) -> bool {
        let is_tildes = line.contains('~') && line.bytes().all(|byte| matches!(byte, b'~' | b' '));
        is_tildes && !self.section.is_empty() && self.columns.is_some()
    }

    fn begin(&mut self, columns: Vec<Range<usize>>) {
        let mut head = vec![String::new(); columns.len()];
        for line in &self.head {
            for (name, part) in head.iter_mut().zip(cells(line, &columns)) {
                name.push(' ');
                name.push_str(&part);
            }
        }
        // The lines taken for rows of the previous table were these headings.
        if self.columns.is_some() {
            let lines = self.head.len();
            if let Some(table) = self.tables.last_mut() {
                table.rows.truncate(table.rows.len().saturating_sub(lines));
            }
        }
        let head: Vec<String> = head.iter().map(|name| joined(name)).collect();
        let continued = self.tables.last().is_some_and(|table| {
            !table.is_whole && table.name == self.section && table.head == head
        });
        if !continued || self.section.is_empty() {
            self.tables.push(Table {
                name: Cow::Borrowed(self.section),
                head,
                rows: Vec::new(),
                is_whole: self.section.is_empty(),
                name_width: columns.first().map(|first| first.end),
            });
        }
        self.columns = Some(columns);
        self.head.clear();
    }

    fn row(&mut self, line: &'a str) {
        let (Some(columns), Some(table)) = (&self.columns, self.tables.last_mut()) else { return };
        table.rows.push(cells(line, columns));
    }

    fn leave(&mut self) {
        self.columns = None;
        self.head.clear();
        self.above.clear();
    }
}

fn is_end(line: &str) -> bool {
    let dashes = line.trim_start();
    line.starts_with(' ') && dashes.len() >= END_DASHES && dashes.bytes().all(|byte| byte == b'-')
}

fn is_rule(line: &str) -> bool {
    line.trim().len() > 2 && line.bytes().all(|byte| matches!(byte, b'-' | b'~' | b' '))
}

/// Returns the columns of a line of several runs of dashes: each extends from the end of the
/// previous one to its own end, so that both left-aligned names and right-aligned numbers are
/// complete. The last one has no end.
fn columns(line: &str) -> Option<Vec<Range<usize>>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut before = b' ';
    for (index, byte) in line.bytes().enumerate() {
        match (before, byte) {
            (_, b' ') => {}
            (b' ', _) => runs.push(index..index + 1),
            _ => runs.last_mut()?.end = index + 1,
        }
        before = byte;
    }
    if runs.len() < 2 {
        return None;
    }
    if runs[0].start >= INDENT {
        runs.insert(0, 0..runs[0].start - 1);
    }
    let starts: Vec<usize> = runs.iter().map(|run| run.start).collect();
    let tilde = |run: &Range<usize>| line.as_bytes()[run.start] == b'~';
    let mut columns = Vec::with_capacity(runs.len());
    let mut from = 0;
    for (index, run) in runs.iter().enumerate() {
        // Headings underlined with tildes may be shorter than the text below.
        let next = starts.get(index + 1).map_or(usize::MAX, |next| next - 1);
        let end = if tilde(run) || index + 1 == runs.len() { next } else { run.end };
        columns.push(from..end);
        from = end;
    }
    Some(columns)
}

fn cells<'a>(line: &'a str, columns: &[Range<usize>]) -> Vec<Cow<'a, str>> {
    let at = |column: usize| -> usize {
        if line.is_ascii() {
            return column.min(line.len());
        }
        line.char_indices().nth(column).map_or(line.len(), |(index, _)| index)
    };
    let part = |range: &Range<usize>| &line[at(range.start)..at(range.end).max(at(range.start))];
    columns.iter().map(|range| Cow::Borrowed(part(range))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_PAGES: &str = "\
Activity    DB/Inst: A/a  Snaps: 1-2
-> in the order of names

Statistic                 Total     per Second
---------------- -------------- --------------
one                       1,000            1.0
\u{c}Activity    DB/Inst: A/a  Snaps: 1-2
-> in the order of names

Statistic                 Total     per Second
---------------- -------------- --------------
two                ############            2.0
          -------------------------------------------------------------

";

    #[test]
    fn a_table_goes_on_behind_the_next_page_s_heading() {
        let found = tables(TWO_PAGES, |name| name == "Activity");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].head, ["Statistic", "Total", "per Second"]);
        let rows: Vec<Vec<&str>> =
            found[0].rows.iter().map(|row| row.iter().map(|cell| cell.trim()).collect()).collect();
        assert_eq!(rows, [["one", "1,000", "1.0"], ["two", "############", "2.0"]]);
        assert!(found[0].is_whole);
        let torn = &TWO_PAGES[..TWO_PAGES.len() - 30];
        assert!(!tables(torn, |_| true)[0].is_whole);
    }

    #[test]
    fn a_page_may_begin_between_headings_and_dashes() {
        let text = "
Database    DB Id

~~~~~~~~ -----------

A               4711

Activity    DB/Inst: A/a  Snaps: 1-2

Statistic                 Total     per Second

---------------- -------------- --------------

one                       1,000            1.0

two                       2,000            2.0
          -------------------------------------------------------------
";
        let found = tables(text, |_| true);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].head[1].as_str(), found[0].rows[0][1].trim()), ("DB Id", "4711"));
        assert_eq!(found[1].head, ["Statistic", "Total", "per Second"]);
        assert_eq!(found[1].rows.len(), 2);
    }

    #[test]
    fn tildes_in_a_table_part_its_rows_from_their_sums() {
        let text = "\
Time Model      DB/Inst: A/a  Snaps: 1-2

  I#  DB time (s)
---- ------------
   1         10.5
 ~~~ ~~~~~~~~~~~~
 Sum         10.5
                     ----------------------------------------------------

";
        let found = tables(text, |_| true);
        assert_eq!((found.len(), found[0].rows.len(), found[0].is_whole), (1, 2, true));
        assert_eq!(found[0].head, ["I#", "DB time (s)"]);
    }

    #[test]
    fn columns_without_dashes_over_all_of_their_width_are_whole() {
        let text = "\
Snapshot       Snap Id     Snap Time
~~~~~~~~    ---------- ------------------
Begin Snap:        548 23-Apr-14 18:30:40

Database    DB Id    Instance
~~~~~~~~ ----------- ------------
          2532911053 DBM11203
";
        let found = tables(text, |_| true);
        let trimmed = |row: &[Cow<'_, str>]| -> Vec<String> {
            row.iter().map(|cell| cell.trim().to_owned()).collect()
        };
        assert_eq!(trimmed(&found[0].rows[0]), ["Begin Snap:", "548", "23-Apr-14 18:30:40"]);
        assert_eq!(found[1].head, ["Database", "DB Id", "Instance"]);
        assert_eq!(trimmed(&found[1].rows[0]), ["", "2532911053", "DBM11203"]);
    }
}
