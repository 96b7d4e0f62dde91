//! Text in columns, wrapped lines, sparklines. Cells may carry ANSI escapes, which have no width.

use unicode_width::UnicodeWidthChar;

/// Rows of cells that share column widths.
pub struct Columns {
    indent: usize,
    rows: Vec<Vec<(String, Align)>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
}

impl Columns {
    /// Creates columns without rows; each row will be indented by `indent`.
    pub fn new(indent: usize) -> Self {
        Self { indent, rows: Vec::new() }
    }

    pub fn left(&mut self, cells: Vec<String>) {
        self.rows.push(cells.into_iter().map(|cell| (cell, Align::Left)).collect());
    }

    /// Adds a row whose first cell is a text and whose others are numbers.
    pub fn numbers(&mut self, cells: Vec<String>) {
        let align = |index| if index == 0 { Align::Left } else { Align::Right };
        self.rows.push(cells.into_iter().enumerate().map(|(i, cell)| (cell, align(i))).collect());
    }

    /// Adds a row of texts and, where a cell is marked so, numbers.
    pub fn mixed(&mut self, cells: Vec<(String, bool)>) {
        let align = |number| if number { Align::Right } else { Align::Left };
        self.rows.push(cells.into_iter().map(|(cell, number)| (cell, align(number))).collect());
    }

    /// Returns the rows as lines, without trailing blanks.
    pub fn lines(&self) -> Vec<String> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count)
            .map(|i| self.rows.iter().filter_map(|r| r.get(i)).map(|c| visible_width(&c.0)).max())
            .map(|width| width.unwrap_or(0))
            .collect();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[(String, Align)], widths: &[usize]) -> String {
        let mut line = " ".repeat(self.indent);
        for (index, (cell, align)) in row.iter().enumerate() {
            let blanks = " ".repeat(widths[index] - visible_width(cell));
            // An empty column takes no gap either.
            let is_first = widths[..index].iter().all(|width| *width == 0);
            let gap = if is_first || widths[index] == 0 { "" } else { "  " };
            line.push_str(gap);
            match align {
                Align::Left => line.extend([cell.as_str(), &blanks]),
                Align::Right => line.extend([&blanks, cell.as_str()]),
            }
        }
        line.trim_end().to_owned()
    }
}

/// Returns the number of columns that a text takes on screen, without its escapes.
pub fn visible_width(text: &str) -> usize {
    let mut escaped = false;
    let mut width = 0;
    for c in text.chars() {
        match c {
            '\x1b' => escaped = true,
            'm' if escaped => escaped = false,
            _ if escaped => {}
            _ => width += c.width().unwrap_or(0),
        }
    }
    width
}

/// Wraps `text` in lines of at most `width` columns, the first indented by `first`, the others by
/// `rest`. A word longer than a line keeps its own line: paths stay whole, so that they can be
/// copied.
pub fn wrap(text: &str, width: usize, first: usize, rest: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if visible_width(line) + 1 + visible_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{}{word}", " ".repeat(rest))),
            None => lines.push(format!("{}{word}", " ".repeat(first))),
        }
    }
    lines
}

/// Draws values as a row of bars from zero to the greatest.
pub fn sparkline(values: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let greatest = values.iter().copied().fold(0.0, f64::max);
    if greatest <= 0.0 {
        return String::new();
    }
    values.iter().map(|v| BARS[((v / greatest * 7.0).round() as usize).min(7)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_accents_take_no_more_room_than_they_show() {
        assert_eq!(visible_width("\x1b[1;31m33 µs\x1b[22m"), 5);
        let mut columns = Columns::new(0);
        columns.numbers(vec!["a".into(), "\x1b[9m7\x1b[29m".into()]);
        columns.numbers(vec!["bb".into(), "100".into()]);
        assert_eq!(columns.lines(), ["a     \x1b[9m7\x1b[29m", "bb  100"]);
    }

    #[test]
    fn wrapped_lines_keep_to_the_width_and_words_stay_whole() {
        let lines = wrap("one two three /a/very/long/path four", 11, 0, 2);
        assert_eq!(lines, ["one two", "  three", "  /a/very/long/path", "  four"]);
    }

    proptest::proptest! {
        #[test]
        fn wrapping_loses_no_word_and_overruns_only_for_one(
            text in "[a-zµ→ ]{0,200}", width in 8_usize..40,
        ) {
            let lines = wrap(&text, width, 0, 4);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            proptest::prop_assert_eq!(words(&lines.join(" ")), words(&text));
            for line in lines {
                proptest::prop_assert!(visible_width(&line) <= width || words(&line).len() == 1);
            }
        }
    }

    #[test]
    fn sparklines_start_at_zero() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(sparkline(&[0.0]), "");
    }
}
