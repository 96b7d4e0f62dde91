//! Statements in a file, in the format of the server's own client: each ends with a delimiter line
//! that occurs in none of them.

const WORD: &str = "DELIMITER ";

pub fn text(statements: &[String]) -> String {
    let mut end = ";;".to_owned();
    let occurs = |end: &str| statements.iter().any(|it| it.lines().any(|line| line.trim() == end));
    while occurs(&end) {
        end.push(';');
    }
    let all = statements.iter().map(|statement| format!("{statement}\n{end}\n"));
    format!("{WORD}{end}\n{}{WORD};\n", all.collect::<String>())
}

/// Splits a file into statements; `None` if it does not have this format.
pub fn split(text: &str) -> Option<Vec<String>> {
    let (first, rest) = text.split_once('\n')?;
    let end = first.strip_prefix(WORD)?;
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for line in rest.split('\n') {
        if line == end {
            all.push(std::mem::take(&mut one).join("\n"));
        } else {
            one.push(line);
        }
    }
    (one == ["DELIMITER ;", ""]).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_back() {
        for all in [&[][..], &["a;\nb", "c\n;;\n;;;\nd", "e"]] {
            let all: Vec<String> = all.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(split(&text(&all)), Some(all));
        }
        for broken in ["", "a", "DELIMITER ;;\na", "DELIMITER ;;\na\n;;\n"] {
            assert_eq!(split(broken), None);
        }
    }
}
