//! Destinations of output: the answer goes to standard output, everything else to standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use anyhow::{Result, bail};
use blockstone_report::render::terminal::{Style, visible};
use clap::ValueEnum;

use crate::failure::{self, Failure};

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How progress is shown on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A bar on a terminal, elsewhere a line every ten seconds.
    Auto,
    /// A JSON object on a line every second, for a program.
    Json,
    /// Not at all.
    None,
}

/// Form of progress that [`ProgressForm`] selects here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Bar,
    Lines,
    Json,
    Nothing,
}

const LINE_CHARS_MAX: usize = 2000;

/// Prints according to `--quiet`, `--progress`, `--color` and `NO_COLOR`.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    quiet: bool,
    progress: ProgressForm,
    color_out: bool,
    color_err: bool,
}

impl Printer {
    pub fn new(quiet: bool, progress: ProgressForm, color: Color) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let choose = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color,
        };
        Self {
            quiet,
            progress,
            color_out: choose(io::stdout().is_terminal()),
            color_err: choose(io::stderr().is_terminal()),
        }
    }

    pub fn style(self) -> Style {
        let width = terminal_width().unwrap_or(100).clamp(60, 140);
        Style { color: self.color_out, width }
    }

    /// Returns how progress is shown.
    pub fn progress(self) -> Shown {
        match self.progress {
            ProgressForm::Json => Shown::Json,
            ProgressForm::Auto if self.quiet => Shown::Nothing,
            ProgressForm::Auto if io::stderr().is_terminal() => Shown::Bar,
            ProgressForm::Auto => Shown::Lines,
            ProgressForm::None => Shown::Nothing,
        }
    }

    /// Prints a remark in addition to the answer, unless `--quiet`.
    pub fn note(self, text: &str) {
        if !self.quiet {
            complain(text);
        }
    }

    /// Prints the answer as text for people.
    pub fn answer(self, text: &str) -> Result<()> {
        answer(&visible(text, self.color_out))
    }

    /// Prints lines of an answer that is still growing.
    pub fn lines(self, lines: &[String]) -> Result<Reader> {
        write_out(&visible(&(lines.join("\n") + "\n"), self.color_out))
    }

    /// Prints an error with its causes on the same line and the hint below.
    pub fn error(self, error: &anyhow::Error) {
        let label = Style { color: self.color_err, width: 0 }.bad("error:");
        let what = said_once(error);
        let _ = writeln!(io::stderr(), "{label} {}", visible(&shortened(&what), false));
        if let Some(hint) = failure::hint(error.chain()) {
            complain(&format!("hint: {hint}"));
        }
    }
}

/// Returns the error with its causes in one line. The message of a library error already contains
/// its cause; only text that is not yet in the message is added.
fn said_once(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for text in error.chain().map(ToString::to_string) {
        let what = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        if said.is_empty() {
            said = what;
        } else if !said.contains(&what) {
            said = format!("{said}: {what}");
        }
    }
    said
}

/// Prints lines on standard error, without any sequence that a terminal would interpret.
pub fn complain(text: &str) {
    let lines: Vec<Cow<str>> = text.lines().map(shortened).collect();
    let _ = writeln!(io::stderr(), "{}", visible(&lines.join("\n"), false));
}

/// Cuts out the middle of a line that is too long to be read: it may quote a file that consists of
/// a single line.
fn shortened(line: &str) -> Cow<'_, str> {
    if line.chars().count() <= LINE_CHARS_MAX {
        return Cow::Borrowed(line);
    }
    let side = LINE_CHARS_MAX / 2;
    let chars: Vec<char> = line.chars().collect();
    let (start, end) = (&chars[..side], &chars[chars.len() - side..]);
    Cow::Owned(format!("{} … {}", String::from_iter(start), String::from_iter(end)))
}

/// Whether the program at the other end of a pipe is still reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Reads,
    Gone,
}

/// Prints the answer as a document for another program, byte by byte. A reader that has gone away
/// (`| head`) is not an error.
pub fn answer(text: &str) -> Result<()> {
    write_out(text).map(|_| ())
}

/// Prints a part of such a document while it is still growing.
pub fn piece(text: &str) -> Result<Reader> {
    write_out(text)
}

fn write_out(text: &str) -> Result<Reader> {
    const HINT: &str = "check where it leads; `blockstone report` prints a recording again";
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => bail!(Failure::new("write to standard output", HINT).because(error)),
        Ok(()) => Ok(Reader::Reads),
    }
}

fn terminal_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let cause = io::Error::other("disk on fire");
        let error = anyhow::Error::new(cause).context("open /x: disk on fire").context("report");
        assert_eq!(said_once(&error), "report: open /x: disk on fire");
        assert_eq!(failure::hint(error.chain()), None);
    }

    #[test]
    fn a_cause_below_a_hint_is_told_and_the_hint_stands_by_itself() {
        let cause = io::Error::other("disk on fire");
        let error = Failure::new("read /x", "is it there?").because(cause);
        let error = anyhow::Error::new(error).context("report");
        assert_eq!(said_once(&error), "report: read /x: disk on fire");
        assert_eq!(failure::hint(error.chain()).as_deref(), Some("is it there?"));
    }

    #[test]
    fn a_line_that_is_too_long_keeps_its_ends() {
        assert_eq!(shortened("read x: no"), "read x: no");
        let long = format!("read {}: no", "é".repeat(1 << 20));
        let short = shortened(&long);
        assert!(short.starts_with("read é") && short.ends_with("é: no"), "{short}");
        assert_eq!(short.chars().count(), LINE_CHARS_MAX + 3);
    }

    #[test]
    fn the_hint_nearest_to_the_cause_is_printed() {
        let within = Failure::new("open /x: no such file", "check the path");
        let carried = anyhow::Error::new(io::Error::other(within));
        let error = Failure::new("read the plan", "it is damaged").because(carried);
        let error = anyhow::Error::new(error);
        assert_eq!(said_once(&error), "read the plan: open /x: no such file");
        assert_eq!(failure::hint(error.chain()).as_deref(), Some("check the path"));
    }
}
