//! Tables as RFC 4180: the JSON keys as heading, numbers in base units without grouping.
//!
//! An estimate takes four fields: `key`, `key_low`, `key_high`, `key_samples`. A missing value is
//! an empty field; a table in which rules condemn rows ends in the column `condemned_by`.

pub mod ticks;

use std::borrow::Cow;

use blockstone_base::table::{Row, Table, Value};

use crate::report::Report;

const LINE_END: &str = "\r\n";

pub fn table(table: &Table) -> String {
    let estimated: Vec<bool> =
        (0..table.columns.len()).map(|index| has_estimates(table, index)).collect();
    let judged = table.rows.iter().any(|row| !row.condemned_by.is_empty());
    let mut heading: Vec<Cow<'_, str>> = Vec::new();
    for (column, estimated) in table.columns.iter().zip(&estimated) {
        heading.push(Cow::Borrowed(&column.key));
        if *estimated {
            let parts = ["low", "high", "samples"];
            heading.extend(parts.map(|part| Cow::Owned(format!("{}_{part}", column.key))));
        }
    }
    heading.extend(judged.then_some(Cow::Borrowed("condemned_by")));
    let mut text = line(&heading);
    for row in &table.rows {
        let mut fields = fields(row, &estimated);
        fields.extend(judged.then(|| Cow::Owned(row.condemned_by.join(" "))));
        text.push_str(&line(&fields));
    }
    text
}

/// The names of a report's tables, for a choice among them.
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

fn line(fields: &[Cow<'_, str>]) -> String {
    let fields: Vec<Cow<'_, str>> = fields.iter().map(|field| quoted(field)).collect();
    fields.join(",") + LINE_END
}

fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains(['"', ',', '\r', '\n']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::stats::Estimate;
    use blockstone_base::table::{Missing, count, text};

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
        assert_eq!(table(&disks), expected);
    }
}
