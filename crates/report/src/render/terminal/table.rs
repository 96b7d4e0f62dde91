//! A table as text: names and values of a single row, or rows below headings, as wide as the
//! terminal.

use blockstone_base::table::{Heading, Measure, Row, Shape, Table, Value};

use super::columns::{Columns, visible_width, wrap};
use super::{Style, more};
use crate::format;

/// Maximum and minimum width to which text cells are cut if not all columns fit.
const TEXT_WIDTH: usize = 56;
const TEXT_LEAST: usize = 20;

/// Returns the title, the rows and the notes. At most as many rows as the table gives to a
/// screen or, if `all` are wanted, to the page.
pub fn lines(table: &Table, all: bool, style: &Style) -> Vec<String> {
    let table = &*table.without_blank_prose();
    let mut lines = Vec::new();
    if !table.title.is_empty() {
        lines.push(style.bold(&table.title));
    }
    lines.extend(match table.shape {
        Shape::Record => table.rows.iter().flat_map(|row| record(table, row, style)).collect(),
        Shape::Table => columns(table, all, style),
    });
    let notes = table.notes.iter().flat_map(|note| wrap(note, style.width, 2, 4));
    lines.extend(notes.map(|line| style.dim(&line)));
    lines
}

/// Lays out names and values side by side.
fn record(table: &Table, row: &Row, style: &Style) -> Vec<String> {
    let pairs = table.columns.iter().enumerate().map(|(index, column)| {
        let name = style.dim(&column.heading);
        // A pair stays on one line.
        format!("{name} {}", cell(table, row, index, style)).replace(' ', "\u{a0}")
    });
    joined(pairs, style.width)
}

/// Lays out texts side by side, three blanks apart; none is broken.
pub fn joined(parts: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if visible_width(line) + 3 + visible_width(&part) <= width => {
                line.push_str("   ");
                line.push_str(&part);
            }
            _ => lines.push(format!("  {part}")),
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// Lays out rows below headings. If not all columns fit, those with nothing but zeros go first,
/// then the rules that condemn a row move below it, then texts are shortened, then figures at the
/// right end go, which a last line names. Columns that name a row and those that a reader looks for
/// stay: if even they do not fit, they are folded into a second line.
fn columns(table: &Table, all: bool, style: &Style) -> Vec<String> {
    let wanted = if all { table.page_rows } else { table.screen_rows }.unwrap_or(usize::MAX);
    let active: Vec<&Row> = table.rows.iter().collect();
    let (idle, active) = folded(active, |row| table.folds_idle && !all && is_idle(row));
    let (unmeasured, active) = folded(active, |row| !all && is_unmeasured(row));
    let rows: Vec<&Row> = active.iter().take(wanted).copied().collect();
    let plan = Plan::of(table, &rows, style);
    let mut lines = plan.lines(style);
    let mut remarks = Vec::new();
    let hidden: Vec<String> = plan.hidden().map(named).collect();
    if !hidden.is_empty() {
        remarks.push(format!("columns not shown: {}", hidden.join(", ")));
    }
    for (folded, what) in [(idle, "idle"), (unmeasured, "without figures")] {
        if !folded.is_empty() {
            let names: Vec<String> = folded.iter().map(|row| table.name_of(row)).collect();
            remarks.push(format!("{} {what}: {}", folded.len(), names.join(", ")));
        }
    }
    if rows.len() < active.len() {
        remarks.push(more(active.len() - rows.len(), &table.name));
    }
    let remarks = remarks.iter().flat_map(|text| wrap(text, style.width, 2, 4));
    lines.extend(remarks.map(|line| style.dim(&line)));
    lines
}

/// Splits off the rows that are only named in a line below the table. A single row is kept: folding
/// it would not save a line.
fn folded(rows: Vec<&Row>, is_folded: impl Fn(&Row) -> bool) -> (Vec<&Row>, Vec<&Row>) {
    match rows.iter().filter(|row| is_folded(row)).count() {
        0 | 1 => (Vec::new(), rows),
        _ => rows.into_iter().partition(|row| is_folded(row)),
    }
}

/// Returns whether a row has a name but no figures.
fn is_unmeasured(row: &Row) -> bool {
    let is_text = |value: &&Value| matches!(value, Value::Text(_) | Value::Flag(_));
    let is_missing = |value: &Value| matches!(value, Value::Missing(_));
    let texts = row.cells.iter().filter(is_text).count();
    let missing = row.cells.iter().filter(|value| is_missing(value)).count();
    row.condemned_by.is_empty() && texts <= 1 && missing > 0 && texts + missing == row.cells.len()
}

/// Returns whether all numbers of a row are zero.
fn is_idle(row: &Row) -> bool {
    let mut numbers = row.cells.iter().filter_map(Value::number);
    row.condemned_by.is_empty() && numbers.all(|number| number == 0.0)
}

/// Returns a readable name of a column.
fn named(column: &Heading) -> String {
    if column.heading.is_empty() {
        column.key.replace('_', " ")
    } else {
        column.heading.to_string()
    }
}

/// Place where a condemned row names the rules.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reasons {
    Beside,
    Below,
}

/// Layout of a table in a given width.
struct Plan<'a> {
    table: &'a Table,
    rows: &'a [&'a Row],
    /// Columns of the first line of a row.
    shown: Vec<usize>,
    /// Columns of the second line.
    folded: Vec<usize>,
    /// Sentences below a row.
    prose: Vec<usize>,
    /// Texts are cut to this.
    text_width: usize,
    reasons: Reasons,
}

impl<'a> Plan<'a> {
    fn of(table: &'a Table, rows: &'a [&'a Row], style: &Style) -> Self {
        let widths = Widths::of(table, rows, style);
        let shown = (0..table.columns.len()).collect();
        let (folded, prose) = (Vec::new(), Vec::new());
        let (text_width, reasons) = (usize::MAX, Reasons::Beside);
        let mut plan = Self { table, rows, shown, folded, prose, text_width, reasons };
        let fits = |plan: &Self| widths.of_line(plan) <= style.width;
        if fits(&plan) {
            return plan;
        }
        let keys = keys(table);
        let stays = |index: usize| index < keys || table.columns[index].is_answer;
        let is_answer = |index: usize| table.columns[index].is_answer;
        plan.shown.retain(|&index| index == 0 || is_answer(index) || has_something(table, index));
        if fits(&plan) {
            return plan;
        }
        let is_prose = |index: &usize| table.columns[*index].is_prose;
        (plan.prose, plan.shown) = plan.shown.into_iter().partition(is_prose);
        if fits(&plan) {
            return plan;
        }
        plan.reasons = Reasons::Below;
        plan.text_width = TEXT_LEAST;
        while !fits(&plan) {
            let Some(last) = plan.shown.iter().rposition(|&index| !stays(index)) else { break };
            plan.shown.remove(last);
        }
        while !fits(&plan) && plan.shown.len() > 1 {
            plan.folded.extend(plan.shown.pop());
        }
        plan.folded.reverse();
        // A statement leaves room for its figures.
        let most = TEXT_WIDTH.min(style.width / 2);
        while plan.text_width < most && fits(&plan) {
            plan.text_width += 1;
        }
        if !fits(&plan) {
            plan.text_width = TEXT_LEAST.max(plan.text_width - 1);
        }
        plan
    }

    /// Returns the columns that have content but are not shown.
    fn hidden(&self) -> impl Iterator<Item = &'a Heading> {
        let is_shown = |index: &usize| {
            [&self.shown, &self.folded, &self.prose].iter().any(|part| part.contains(index))
        };
        let all = 0..self.table.columns.len();
        all.filter(move |index| !is_shown(index) && has_something(self.table, *index))
            .map(|index| &self.table.columns[index])
    }

    fn lines(&self, style: &Style) -> Vec<String> {
        if let ([name], [sentence], []) = (&self.shown[..], &self.prose[..], &self.folded[..]) {
            return self.list(*name, *sentence, style);
        }
        let mut columns = Columns::new(2);
        let measure = |index: usize| self.table.columns[index].measure;
        let is_number = |index| !matches!(measure(index), Measure::Text | Measure::Flag);
        let heading =
            |&index: &usize| (style.dim(&self.table.columns[index].heading), is_number(index));
        columns.mixed(self.shown.iter().map(heading).collect());
        for row in self.rows {
            let cell = |&index: &usize| (self.cell(row, index, style), is_number(index));
            let mut cells: Vec<(String, bool)> = self.shown.iter().map(cell).collect();
            if self.reasons == Reasons::Beside {
                cells.extend(reason(row).map(|reason| (reason, false)));
            }
            columns.mixed(cells);
        }
        let mut lines = columns.lines().into_iter();
        let mut all: Vec<String> = lines.next().into_iter().collect();
        for (index, (row, line)) in self.rows.iter().zip(lines).enumerate() {
            all.push(line);
            all.extend(self.second_line(row, style));
            for &index in &self.prose {
                if let Value::Text(text) = &row[index] {
                    all.extend(wrap(text, style.width, 4, 4));
                }
            }
            // A reason follows the last of the rows that share it.
            let next = self.rows.get(index + 1).map(|row| &row.condemned_by);
            if self.reasons == Reasons::Below && next != Some(&row.condemned_by) {
                all.extend(reason(row).map(|reason| format!("    {reason}")));
            }
        }
        all
    }

    /// Lays out names and sentences as a list, in which headings would say nothing: a sentence goes
    /// on below its beginning.
    fn list(&self, name: usize, sentence: usize, style: &Style) -> Vec<String> {
        let cell = |row: &Row, index| cell(self.table, row, index, style);
        let names = self.rows.iter().map(|row| visible_width(&cell(row, name)));
        let indent = (names.max().unwrap_or(0) + 4).min(style.width / 3);
        let item = |row: &&Row| {
            let mut lines = wrap(&cell(row, sentence), style.width, indent, indent);
            let name = cell(row, name);
            let gap = indent.saturating_sub(2 + visible_width(&name));
            if let (Some(first), 2..) = (lines.first_mut(), gap) {
                *first = format!("  {name}{}{}", " ".repeat(gap), first.trim_start());
            } else {
                lines.insert(0, format!("  {name}"));
            }
            lines.into_iter().chain(reason(row).map(|reason| format!("    {reason}")))
        };
        self.rows.iter().flat_map(item).collect()
    }

    fn cell(&self, row: &Row, index: usize, style: &Style) -> String {
        match &row[index] {
            Value::Text(text) if self.table.columns[index].is_path => {
                format::short_path(text, self.text_width)
            }
            Value::Text(text) => format::short(text, self.text_width),
            _ => cell(self.table, row, index, style),
        }
    }

    /// Returns the folded columns of a row: names and values side by side.
    fn second_line(&self, row: &Row, style: &Style) -> Vec<String> {
        let pair = |&index: &usize| {
            let name = style.dim(&named(&self.table.columns[index]));
            format!("{name} {}", self.cell(row, index, style)).replace(' ', "\u{a0}")
        };
        let lines = joined(self.folded.iter().map(pair), style.width.saturating_sub(2));
        lines.into_iter().map(|line| format!("  {line}")).collect()
    }
}

/// Returns the number of columns that name a row: its texts before the first number; one if all are
/// texts.
fn keys(table: &Table) -> usize {
    let number = table.columns.iter().position(|column| column.measure != Measure::Text);
    number.map_or(1, |first| first.max(1))
}

fn reason(row: &Row) -> Option<String> {
    let rules = row.condemned_by.join(", ");
    (!rules.is_empty()).then(|| format!("condemned: {rules}"))
}

/// Widths of a table's columns on a screen.
struct Widths {
    /// Width of the heading, width of the widest cell, and whether that is text.
    columns: Vec<(usize, usize, bool)>,
    reason: usize,
}

impl Widths {
    fn of(table: &Table, rows: &[&Row], style: &Style) -> Self {
        let column = |index: usize| {
            let column = &table.columns[index];
            let width = |row: &&Row| match &row[index] {
                Value::Text(text) => visible_width(text),
                _ => visible_width(&cell(table, row, index, style)),
            };
            let widest = rows.iter().map(width).max().unwrap_or(0);
            let is_text =
                rows.iter().any(|row| matches!(row[index], Value::Text(_) | Value::Flag(_)));
            (visible_width(&column.heading), widest, is_text)
        };
        let columns = (0..table.columns.len()).map(column).collect();
        let reasons =
            rows.iter().filter_map(|row| reason(row)).map(|reason| visible_width(&reason));
        Self { columns, reason: reasons.max().unwrap_or(0) }
    }

    /// Returns the width of the first line of a row.
    fn of_line(&self, plan: &Plan<'_>) -> usize {
        let column = |&index: &usize| {
            let (heading, widest, is_text) = self.columns[index];
            heading.max(if is_text { widest.min(plan.text_width) } else { widest })
        };
        let reason = if plan.reasons == Reasons::Beside { self.reason } else { 0 };
        let all = plan.shown.iter().map(column).chain([reason]);
        all.filter(|width| *width > 0).map(|width| width + 2).sum()
    }
}

/// Formats a cell: a condemned number struck through, an estimate with its interval.
fn cell(table: &Table, row: &Row, column: usize, style: &Style) -> String {
    let measure = row.measure(&table.columns[column]);
    let text = format::value(&row[column], measure);
    match &row[column] {
        _ if table.condemns(row, column) => style.struck(&text),
        Value::Estimate(estimate) if !table.columns[column].is_plain => {
            let interval = style.dim(&format::beside(estimate, measure));
            format!("{text} {interval}").trim_end().to_owned()
        }
        _ => text,
    }
}

/// Returns whether a column has anything but zeros.
fn has_something(table: &Table, index: usize) -> bool {
    table.rows.iter().any(|row| match &row[index] {
        Value::Text(text) => !text.is_empty(),
        Value::Flag(_) => true,
        value => value.number().is_some_and(|number| number != 0.0),
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::stats::Estimate;
    use blockstone_base::table::{count, flow, ratio, text};

    use super::*;

    fn style(width: usize) -> Style {
        Style { color: false, width }
    }

    /// Returns a table of two names, eight figures of which one is an answer, and a statement.
    fn table() -> Table {
        let mut columns = vec![text("role", "role", ""), text("file", "file", "")];
        let figures = ["r sync/s", "r async/s", "r ave", "r p99", "w sync/s", "w async/s"];
        columns.extend(figures.map(|name| count(name, name, "")));
        columns.push(flow("write", "write", "").answer());
        columns.push(ratio("ratio", "B ÷ A", ""));
        columns.push(text("statement", "statement", "").answer());
        columns.push(count("detail_of_it", "", ""));
        let mut table = Table::new("io", "I/O", columns);
        for n in 1..4 {
            let mut row: Vec<Value> = vec!["postgres/checkpointer".into(), "base/5/16384".into()];
            row.extend((0..6).map(|at| Value::from(f64::from(n * 1000 + at))));
            row.push(
                Estimate { value: 7e6, low: 6e6, high: 8e6, samples: 9, duration_ns: 1 }.into(),
            );
            row.push(1.5.into());
            row.push("SELECT abalance FROM pgbench_accounts WHERE aid = $1 ORDER BY 1".into());
            row.push(3.0.into());
            table.push(row);
        }
        table
    }

    #[test]
    fn a_sentence_stands_in_full_beside_its_row_or_below_it() {
        let columns = vec![
            text("method", "method", ""),
            count("files", "files", ""),
            text("why", "why", "").prose(),
        ];
        let mut table = Table::new("reasons", "Why", columns);
        let why = "no reflink: the files are on two file systems; no server has both files";
        table.push([Value::from("direct"), 2.0.into(), why.into()]);
        let shown = |width| lines(&table, false, &style(width));
        assert!(shown(100).iter().any(|line| line.contains("direct") && line.ends_with(why)));
        let narrow = shown(60);
        assert!(narrow.iter().all(|line| visible_width(line) <= 60), "{narrow:#?}");
        let below = narrow.iter().skip_while(|line| !line.contains("direct")).skip(1);
        let below: Vec<&str> = below.map(|line| line.trim()).collect();
        assert_eq!(below.join(" "), why);
    }

    #[test]
    fn names_with_sentences_are_a_list_where_they_do_not_fit_side_by_side() {
        let columns = vec![text("class", "class", ""), text("evidence", "evidence", "").prose()];
        let mut table = Table::new("classes", "", columns);
        table.push([Value::from("flat"), "a flush takes as long after no write as after 4".into()]);
        let shown = |width| lines(&table, false, &style(width));
        assert_eq!(shown(80)[0].split_whitespace().collect::<Vec<_>>(), ["class", "evidence"]);
        assert_eq!(
            shown(40),
            ["  flat  a flush takes as long after no", "        write as after 4"],
            "headings say nothing there"
        );
    }

    #[test]
    fn devices_that_do_nothing_are_named_in_one_line() {
        let columns = vec![text("device", "device", ""), count("reads", "r/s", "")];
        let mut table = Table::new("disks", "Disks", columns);
        for (name, reads) in [("vda", 9.0), ("loop0", 0.0), ("loop1", 0.0)] {
            table.push([Value::from(name), reads.into()]);
        }
        let text = |table: &Table, all| lines(table, all, &style(80)).join("\n");
        assert!(text(&table, false).contains("loop1     0"), "{}", text(&table, false));
        table.folds_idle = true;
        assert!(text(&table, false).ends_with("vda       9\n  2 idle: loop0, loop1"));
        assert!(text(&table, true).contains("loop1     0"), "with all rows");
        table.rows.remove(2);
        assert!(text(&table, false).contains("loop0     0"), "a single idle row is kept");
    }

    #[test]
    fn names_and_answers_stay_at_every_width() {
        let table = table();
        for width in 40..220 {
            let lines = lines(&table, true, &style(width));
            let text = lines.join("\n");
            for line in lines.iter().filter(|line| !line.contains("not shown")) {
                assert!(visible_width(line) <= width, "{width}: {line}");
            }
            for word in ["postgres/checkpoi", "base/5/16384", "7 MB/s", "SELECT abalance FR"] {
                assert_eq!(text.matches(word).count(), 3, "{width}: {word}\n{text}");
            }
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for column in table.columns.iter() {
                assert!(
                    flat.contains(&named(column)) || width > 130,
                    "{width}: {column:?}\n{text}"
                );
            }
        }
    }
}
