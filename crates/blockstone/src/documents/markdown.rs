//! Markdown as the pages of docs/ use it, for a terminal: prose is wrapped, headings are bold;
//! tables and code stay as they are.

use std::fmt::Write as _;

use blockstone_report::render::terminal::Style;
use blockstone_report::render::terminal::columns::wrap;

/// A page for a terminal of this style.
pub fn for_terminal(page: &str, style: &Style) -> String {
    let mut flow = Flow { style, lines: Vec::new(), open: String::new(), indents: (0, 0) };
    let mut in_code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            flow.close();
            in_code = !in_code;
        } else if in_code {
            flow.lines.push(format!("  {line}"));
        } else if line.is_empty() || line.starts_with('|') {
            flow.push(line.to_owned());
        } else if line.starts_with('#') {
            flow.push(style.bold(line.trim_start_matches('#').trim_start()));
        } else if !line.starts_with("<!--") {
            flow.prose(line);
        }
    }
    flow.close();
    flow.lines.join("\n") + "\n"
}

struct Flow<'a> {
    style: &'a Style,
    lines: Vec<String>,
    /// Text of the paragraph or item of a list that is not complete yet.
    open: String,
    /// Columns before its first line, and before the others.
    indents: (usize, usize),
}

impl Flow<'_> {
    fn push(&mut self, line: String) {
        self.close();
        self.lines.push(line);
    }

    fn prose(&mut self, line: &str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(marker) = marker(text) {
            self.close();
            self.indents = (indent, indent + marker);
        } else if self.open.is_empty() {
            self.indents = (indent, indent);
        }
        self.open += text;
        self.open.push(' ');
    }

    fn close(&mut self) {
        let text = emphasized(&without_links(&self.open), self.style);
        let (first, rest) = self.indents;
        self.lines.extend(wrap(&text, self.style.width, first, rest));
        self.open.clear();
    }
}

/// Returns the length of the marker with which an item of a list begins: `- `, `10. `.
fn marker(text: &str) -> Option<usize> {
    if text.starts_with("- ") {
        return Some(2);
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    (digits > 0 && text[digits..].starts_with(". ")).then_some(digits + 2)
}

/// `[limits](expect.md)` becomes `limits (expect.md)`, and a link within the page its text.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (Some((ahead, words)), Some((target, then))) =
            (before.rsplit_once('['), after.split_once(')'))
        else {
            break;
        };
        // `!` is the mark of an image.
        out += ahead.trim_end_matches('!');
        out += words;
        if let Some(file) = target.split('#').next().filter(|file| !file.is_empty()) {
            let _ = write!(out, " ({file})");
        }
        rest = then;
    }
    out + rest
}

/// `**text**` becomes bold.
fn emphasized(text: &str, style: &Style) -> String {
    let parts = text.split("**").enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { style.bold(part) } else { part.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A page
<!-- Generated. -->
Prose that is **longer** than the width ([of limits](expect.md#names), [above](#a-page)).

1. The first item, which is long
   and goes on
- the second

| a table | stays as wide as it is |
|---|---|

```sh
blockstone watch --once --for 5s --times 5
```
![A picture](images/a.png)
";

    #[test]
    fn prose_is_wrapped_and_the_rest_stays() {
        let style = Style { color: false, width: 30 };
        let expected = "\
A page
Prose that is longer than the
width (of limits (expect.md),
above).

1. The first item, which is
   long and goes on
- the second

| a table | stays as wide as it is |
|---|---|

  blockstone watch --once --for 5s --times 5
A picture (images/a.png)
";
        assert_eq!(for_terminal(PAGE, &style), expected);
    }

    #[test]
    fn headings_and_emphasis_are_bold_where_colours_are_wanted() {
        let text = for_terminal(PAGE, &Style { color: true, width: 80 });
        assert!(
            text.starts_with("\x1b[1mA page\x1b[22m\nProse that is \x1b[1mlonger\x1b[22m "),
            "{text}"
        );
    }
}
