//! The top statements, from all tables that rank them.

use std::collections::BTreeMap;

use crate::report::Statement;
use crate::table::{Table, cell};
use crate::{Names, Source};

use super::facts::Facts;
use super::sections::{ReportSection, STATEMENT_TEXTS};

const ID: &[&str] = &["SQL Id", "Old Hash Value", "Hash Value"];
const EXECUTIONS: &[&str] = &["Executions", "Execs"];
const ELAPSED: &[&str] = &["Elapsed Time (s)", "Elapsd Time (s)", "Elapsed (s)"];
const CPU: &[&str] = &["CPU Time (s)", "CPU (s)"];
const READS: &[&str] = &["Physical Reads", "Physical Rds", "Reads"];
const READ_IOS: &[&str] = &["Physical Read Reqs", "Requests"];
const GETS: &[&str] = &["Buffer Gets", "Gets"];

impl Facts<'_> {
    pub fn statements(&self, section: &ReportSection, source: &Source<'_>) -> Vec<Statement> {
        let mut found: BTreeMap<String, Statement> = BTreeMap::new();
        for table in self.of(section) {
            let Some(id) = table.column(ID) else { continue };
            for row in &table.rows {
                let Some(name) = id_of(cell(row, Some(id))) else { continue };
                let Some(executions) = self.numbers.count(cell(row, table.column(EXECUTIONS)))
                else {
                    continue;
                };
                let statement = found.entry(name.to_owned()).or_default();
                name.clone_into(&mut statement.id);
                statement.executions.get_or_insert(executions);
                let number = |names| self.numbers.count(cell(row, table.column(names)));
                let columns = [
                    (&mut statement.elapsed_s, ELAPSED),
                    (&mut statement.cpu_s, CPU),
                    (&mut statement.physical_reads, READS),
                    (&mut statement.read_ios, READ_IOS),
                    (&mut statement.logical_reads, GETS),
                ];
                for (known, names) in columns {
                    *known = known.or_else(|| number(names));
                }
            }
        }
        if let Names::Kept = source.names {
            self.texts(&mut found);
        }
        found.into_values().collect()
    }

    fn texts(&self, found: &mut BTreeMap<String, Statement>) {
        let rows = |table: &Table<'_>| {
            let (id, text) = (table.column(ID), table.column(&["SQL Text"]));
            let row = |row: &Vec<_>| (cell(row, id).to_owned(), cell(row, text).to_owned());
            table.rows.iter().map(row).collect::<Vec<_>>()
        };
        for (id, text) in self.of(&STATEMENT_TEXTS).flat_map(rows) {
            if let Some(statement) = found.get_mut(&id) {
                statement.text = Some(text);
            }
        }
    }
}

/// An id consists of letters and digits: any other value in this column is the text of a statement.
fn id_of(text: &str) -> Option<&str> {
    let is_id = (6..=20).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_alphanumeric());
    (is_id && text.bytes().any(|it| it.is_ascii_digit())).then_some(text)
}
