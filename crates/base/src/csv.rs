//! Reader for comma-separated values from users.

pub use csv::StringRecord;
use csv::{ReaderBuilder, Trim};

/// Maximum number of commas in a line, far above the number of columns of any table.
const COMMAS_MAX: usize = 16 << 10;

/// Treatment of blanks and comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Blanks around fields are data, and so is a leading `#`.
    Strict,
    /// Blanks around fields and lines that begin with `#` are ignored.
    Loose,
}

/// Returns the records of `text`, each with the number of its first line, from 1. Empty lines are
/// skipped, and records may differ in length. Fails with the number of the line and the reason if a
/// quote is not closed or a line has too many fields.
pub fn records(
    text: &str,
    dialect: Dialect,
) -> Result<impl Iterator<Item = (usize, StringRecord)> + '_, (usize, &'static str)> {
    let is_loose = dialect == Dialect::Loose;
    let is_comment = move |line: &str| is_loose && line.starts_with('#');
    let lines = || text.lines().enumerate().filter(|(_, line)| !is_comment(line));
    let commas = |line: &str| line.bytes().filter(|byte| *byte == b',').count();
    if let Some((at, _)) = lines().find(|(_, line)| commas(line) > COMMAS_MAX) {
        return Err((at + 1, "it has too many fields"));
    }
    // An odd number of quotes means that one is not closed. The crate reports no error for that and
    // reads the rest of the file as one field.
    let odd =
        |(_, line): &(usize, &str)| line.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
    if lines().filter(odd).count() % 2 == 1 {
        let last = lines().filter(odd).last().map_or(1, |(at, _)| at + 1);
        return Err((last, "a quote is not closed"));
    }
    let trim = if is_loose { Trim::All } else { Trim::None };
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).trim(trim).comment(is_loose.then_some(b'#'));
    // Records cannot fail: the text is UTF-8, and their lengths may differ.
    let records = builder.from_reader(text.as_bytes()).into_records().map_while(Result::ok);
    Ok(records.filter_map(move |record| {
        let (byte, line) = record.position().map_or((0, 1), |it| (it.byte(), it.line()));
        // A position precedes the empty lines and comments before its record.
        let mut rest = text.get(byte as usize..).unwrap_or_default().lines();
        let skipped = rest.position(|line| !line.is_empty() && !is_comment(line));
        // The crate returns an empty record for a comment at the end of the text.
        Some((line as usize + skipped?, record))
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, dialect: Dialect) -> Vec<(usize, Vec<String>)> {
        let fields = |record: StringRecord| record.iter().map(str::to_owned).collect();
        records(text, dialect).unwrap().map(|(line, record)| (line, fields(record))).collect()
    }

    #[test]
    fn quotes_lines_and_blanks_are_read() {
        let text = "\n\"A\",\"B,\"\"C\"\"\"\r\n\r\n\n1, \"two\nlines\"\n,\n";
        let found = read(text, Dialect::Strict);
        let expected = [
            (2, vec!["A", "B,\"C\""]),
            (5, vec!["1", " \"two"]),
            (6, vec!["lines\""]),
            (7, vec!["", ""]),
        ];
        let expected = expected.map(|(line, fields)| {
            (line, fields.into_iter().map(str::to_owned).collect::<Vec<String>>())
        });
        assert_eq!(found, expected);
        let loose = read("# \"\n\n a , b\n#\n1\n", Dialect::Loose);
        assert_eq!((loose[0].0, loose[1].0), (3, 5));
        assert_eq!(loose[0].1, ["a", "b"]);
        assert_eq!(read("a\n#", Dialect::Loose).len(), 1);
        assert_eq!(read("1,\"two\nlines\"\n3\n", Dialect::Strict)[1].0, 3);
    }

    #[test]
    fn an_open_quote_and_a_line_of_commas_are_refused_with_their_line() {
        let refused = |text: &str| records(text, Dialect::Strict).err();
        assert_eq!(refused("x\n\"a\"\n\"b\nc\n"), Some((3, "a quote is not closed")));
        let commas = format!("a\n{}\n", ",".repeat(COMMAS_MAX + 1));
        assert_eq!(refused(&commas), Some((2, "it has too many fields")));
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text: String) {
            if let Ok(records) = records(&text, Dialect::Loose) {
                let lines: Vec<usize> = records.map(|(line, _)| line).collect();
                prop_assert!(lines.is_sorted(), "{lines:?}");
                prop_assert!(lines.last().is_none_or(|last| *last <= text.lines().count().max(1)));
            }
        }
    }
}
