//! Comma-separated values, as SQL*Plus writes them.

/// Fields of records, each with its first line, from one.
pub type Records = Vec<(usize, Vec<String>)>;

/// The records of `text`. The error names the line.
pub fn records(text: &str) -> Result<Records, (usize, &'static str)> {
    let mut records = Vec::new();
    let mut fields: Vec<String> = Vec::new();
    let mut field = String::new();
    let (mut quoted, mut was_quoted) = (false, false);
    let (mut line, mut first) = (1, 1);
    let mut characters = text.chars().peekable();
    while let Some(at) = characters.next() {
        line += usize::from(at == '\n');
        match at {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            _ if quoted => field.push(at),
            '"' if field.is_empty() && !was_quoted => (quoted, was_quoted) = (true, true),
            '"' => return Err((line, "a quote stands inside a field")),
            ',' => {
                fields.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' => {
                end(&mut records, &mut fields, &mut field, first);
                (first, was_quoted) = (line, false);
            }
            _ if was_quoted => return Err((line, "text follows a quoted field")),
            other => field.push(other),
        }
    }
    if quoted {
        return Err((first, "a quote is not closed"));
    }
    end(&mut records, &mut fields, &mut field, first);
    Ok(records)
}

/// Empty lines are no records.
fn end(records: &mut Records, fields: &mut Vec<String>, field: &mut String, line: usize) {
    if fields.is_empty() && field.is_empty() {
        return;
    }
    fields.push(std::mem::take(field));
    records.push((line, std::mem::take(fields)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_and_lines_are_read() {
        let text = "\n\"A\",\"B,\"\"C\"\"\"\r\n1,\"two\nlines\"\n,\n";
        let read = records(text).unwrap();
        assert_eq!(read[0], (2, vec!["A".to_owned(), "B,\"C\"".to_owned()]));
        assert_eq!(read[1], (3, vec!["1".to_owned(), "two\nlines".to_owned()]));
        assert_eq!(read[2], (5, vec![String::new(), String::new()]));
        assert_eq!(records("a\"b").unwrap_err().0, 1);
        assert_eq!(records("x\n\"a").unwrap_err(), (2, "a quote is not closed"));
        assert_eq!(records("\"a\"b").unwrap_err().1, "text follows a quoted field");
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text: String) {
            let _ = records(&text);
        }
    }
}
