//! Tables in the format of RFC 4180: the JSON keys as heading, numbers in base units without
//! grouping.
//!
//! An estimate takes four fields: `key`, `key_low`, `key_high`, `key_samples`. A missing value is
//! an empty field. A table whose rows have different units ends in the column `unit`; one in which
//! rules condemn rows ends in the column `condemned_by`; if only some cells of a row are condemned,
//! `condemned_columns` names them.
//!
//! Names of processes, databases and files are chosen by others. A text that a spreadsheet would
//! take for a formula is prefixed with `'`, as OWASP recommends ("CSV Injection"), unless
//! [`Texts::Raw`] is asked for.

pub mod ticks;

use std::borrow::Cow;

use blockstone_base::table::{Row, Table, UNIT, Value};

use crate::report::Report;

const LINE_END: &str = "\r\n";

/// Characters at which a spreadsheet takes what follows for a formula, or for more than one cell;
/// the last four are full-width forms of the first.
const FORMULA_STARTS: [char; 11] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Form of texts that a spreadsheet would take for formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// Prefixed with `'`, for people.
    Guarded,
    /// Unchanged, for programs.
    Raw,
}

pub fn table(table: &Table, texts: Texts) -> String {
    let estimated: Vec<bool> =
        (0..table.columns.len()).map(|index| has_estimates(table, index)).collect();
    let judged = table.rows.iter().any(|row| !row.condemned_by.is_empty());
    let judged_in_part = table.rows.iter().any(|row| !row.condemned_columns.is_empty());
    let mut heading: Vec<Cow<'_, str>> = Vec::new();
    for (column, estimated) in table.columns.iter().zip(&estimated) {
        heading.push(Cow::Borrowed(&column.key));
        if *estimated {
            let parts = ["low", "high", "samples"];
            heading.extend(parts.map(|part| Cow::Owned(format!("{}_{part}", column.key))));
        }
    }
    let has_units = table.has_units_of_rows();
    heading.extend(has_units.then_some(Cow::Borrowed(UNIT)));
    heading.extend(judged.then_some(Cow::Borrowed("condemned_by")));
    heading.extend(judged_in_part.then_some(Cow::Borrowed("condemned_columns")));
    let mut text = line(&heading, texts);
    for row in &table.rows {
        let mut fields = fields(row, &estimated);
        fields.extend(has_units.then(|| Cow::Borrowed(row.unit())));
        fields.extend(judged.then(|| Cow::Owned(row.condemned_by.join(" "))));
        fields.extend(judged_in_part.then(|| Cow::Owned(row.condemned_columns.join(" "))));
        text.push_str(&line(&fields, texts));
    }
    text
}

/// Returns the names of a report's tables, for a choice among them.
pub fn names(report: &Report) -> Vec<&str> {
    report.tables().map(|table| &*table.name).collect()
}

fn has_estimates(table: &Table, column: usize) -> bool {
    table.rows.iter().any(|row| matches!(row[column], Value::Estimate(_)))
}

fn fields<'a>(row: &'a Row, estimated: &[bool]) -> Vec<Cow<'a, str>> {
    let mut fields: Vec<Cow<'a, str>> = Vec::new();
    for (value, estimated) in row.cells.iter().zip(estimated) {
        match value {
            Value::Text(text) => fields.push(Cow::Borrowed(text)),
            Value::Flag(is_so) => fields.push(Cow::Borrowed(if *is_so { "true" } else { "false" })),
            Value::Missing(_) => fields.push(Cow::Borrowed("")),
            Value::Number(number) => fields.push(number_field(*number)),
            Value::Estimate(estimate) => {
                let parts = [estimate.value, estimate.low, estimate.high];
                fields.extend(parts.map(number_field));
                fields.push(Cow::Owned(estimate.samples.to_string()));
                continue;
            }
        }
        if *estimated {
            fields.extend([const { Cow::Borrowed("") }; 3]);
        }
    }
    fields
}

fn number_field(number: f64) -> Cow<'static, str> {
    if number.is_finite() { Cow::Owned(number.to_string()) } else { Cow::Borrowed("") }
}

fn line(fields: &[Cow<'_, str>], texts: Texts) -> String {
    let fields: Vec<Cow<'_, str>> = fields.iter().map(|field| quoted(field, texts)).collect();
    fields.join(",") + LINE_END
}

/// Returns whether a spreadsheet would take the field for a formula; numbers and percentages with a
/// sign are not formulas.
fn is_formula(field: &str) -> bool {
    let number = field.strip_suffix(" %").unwrap_or(field);
    let is_number = number.parse().is_ok_and(f64::is_finite);
    field.starts_with(FORMULA_STARTS) && !is_number
}

fn quoted(field: &str, texts: Texts) -> Cow<'_, str> {
    if texts == Texts::Guarded && is_formula(field) {
        Cow::Owned(format!("\"'{}\"", field.replace('"', "\"\"")))
    } else if field.contains(['"', ',', '\r', '\n']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::stats::Estimate;
    use blockstone_base::table::{Heading, Measure, Missing, count, text};

    use super::*;

    #[test]
    fn quotes_estimates_gaps_and_condemned_rows_survive() {
        let columns = [text("disk", "disk", ""), count("read_iops", "IOPS", "")];
        let mut disks = Table::new("disks", "Disks", columns.to_vec());
        let estimate =
            Estimate { value: 1.5, low: 1.0, high: f64::INFINITY, samples: 9, duration_ns: 1 };
        disks.push([Value::from("a \"b\", c"), estimate.into()]);
        disks.push([Value::from("d"), Value::Missing(Missing::Off)]);
        disks.push(Row::from([Value::from("e"), 7.0.into()]).condemned_by(&["hole".to_owned()]));
        let expected = "disk,read_iops,read_iops_low,read_iops_high,read_iops_samples,\
                        condemned_by\r\n\
                        \"a \"\"b\"\", c\",1.5,1,,9,\r\nd,,,,,\r\ne,7,,,,hole\r\n";
        assert_eq!(table(&disks, Texts::Guarded), expected);
    }

    #[test]
    fn rows_of_different_units_say_theirs() {
        let amount = Heading::new("per_s", "per second", Measure::OfRow, "");
        let mut load = Table::new("load", "Load", vec![text("name", "name", ""), amount.clone()]);
        let rows = [("DB time", 5e9, Measure::Nanoseconds), ("Redo size", 7.0, Measure::BytesPerS)];
        for (name, number, measure) in rows {
            load.push(Row::from([Value::from(name), number.into()]).of(measure));
        }
        load.push([Value::from("Transactions"), 3.0.into()]);
        let expected = "name,per_s,unit\r\nDB time,5000000000,ns\r\nRedo size,7,bytes_per_s\r\n\
                        Transactions,3,count\r\n";
        assert_eq!(table(&load, Texts::Guarded), expected);
        // A table that has such a column keeps its own.
        let mut own = Table::new("own", "Own", vec![text("unit", "unit", ""), amount]);
        own.push([Value::from("IOPS"), 1.0.into()]);
        assert_eq!(table(&own, Texts::Guarded), "unit,per_s\r\nIOPS,1\r\n");
    }

    #[test]
    fn what_a_spreadsheet_would_execute_is_marked_as_text() {
        for (text, guarded) in [
            ("=2+5", "\"'=2+5\""),
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\""),
            ("-2+3", "\"'-2+3\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
            ("\n=1", "\"'\n=1\""),
            ("\u{ff1d}1", "\"'\u{ff1d}1\""),
            ("\u{ff0b}1", "\"'\u{ff0b}1\""),
            ("\u{ff0d}1", "\"'\u{ff0d}1\""),
            ("\u{ff20}A", "\"'\u{ff20}A\""),
            ("-inf", "\"'-inf\""),
            ("-5", "-5"),
            ("+3.2e4", "+3.2e4"),
            ("-24.5 %", "-24.5 %"),
            ("a=1", "a=1"),
            ("–", "–"),
            ("", ""),
        ] {
            assert_eq!(quoted(text, Texts::Guarded), guarded, "{text:?}");
            assert!(!quoted(text, Texts::Raw).contains("\"'"), "{text:?}");
        }
        let mut tables = Table::new("t", "T", vec![text("=name", "n", ""), count("n", "n", "")]);
        tables.push([Value::from("=1"), (-5.0).into()]);
        assert_eq!(table(&tables, Texts::Guarded), "\"'=name\",n\r\n\"'=1\",-5\r\n");
        assert_eq!(table(&tables, Texts::Raw), "=name,n\r\n=1,-5\r\n");
    }
}
