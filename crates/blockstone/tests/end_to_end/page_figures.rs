//! Worked examples of a documentation page: each row of its table names a command and the figures
//! that it prints.

use std::path::Path;
use std::process::Command;

use blockstone_testkit::{blockstone_binary, run};

const OPENS: &str = "<!-- figures -->\n";
const CLOSES: &str = "<!-- end of figures -->";

/// Splits a row into the figures that its command prints, and the command.
fn row(line: &str) -> (Vec<&str>, &str) {
    let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").map(str::trim).collect();
    let [_, _, figures, command, _] = cells[..] else { panic!("five cells: {line}") };
    let command = command.strip_prefix("`blockstone ").and_then(|it| it.strip_suffix('`'));
    (figures.split(" · ").collect(), command.unwrap_or_else(|| panic!("a command: {line}")))
}

/// Splits a command into arguments, some of which are quoted.
fn arguments(command: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        match index % 2 {
            1 => arguments.push(part),
            _ => arguments.extend(part.split_whitespace()),
        }
    }
    arguments
}

/// Runs each command of the page in `dir` and checks that it prints its figures; there must be at
/// least `rows_min` commands.
pub fn are_printed(page: &str, rows_min: usize, dir: &Path) {
    let (_, table) = page.split_once(OPENS).unwrap();
    let (table, _) = table.split_once(CLOSES).unwrap();
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert!(rows.len() >= rows_min, "{} rows", rows.len());
    for line in rows {
        let (figures, command) = row(line);
        let mut program = Command::new(blockstone_binary());
        let ran = run(program.current_dir(dir).args(arguments(command)));
        // A figure that is struck through makes the exit code 3.
        assert!(matches!(ran.code, Some(0 | 3)), "{command}: {ran:#?}");
        let printed = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for figure in figures {
            assert!(printed.contains(figure), "{command} does not print {figure}:\n{printed}");
        }
    }
}
