//! Tables of consecutive slices of time, merged into the table of all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Heading, Merge, Missing, Row, Spread, Value};

/// Separator of the texts of several columns.
const BETWEEN: &str = "\u{1f}";

/// The row in each slice, with the length of the slice in seconds.
type Parts<'a> = [(f64, Option<&'a Row>)];

/// Merges the rows of all these slices, each with its length in seconds, as the columns specify.
/// Rows are the same if their [`Merge::Key`] cells are; they are in the order of first appearance.
/// A single slice stays as it is.
pub fn merge(columns: &[Heading], slices: &[(f64, &[Row])]) -> Vec<Row> {
    if let [(_, rows)] = slices {
        return rows.to_vec();
    }
    let mut order: Vec<Vec<(f64, Option<&Row>)>> = Vec::new();
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for (index, (_, rows)) in slices.iter().enumerate() {
        for row in *rows {
            let place = *places.entry(key(columns, row)).or_insert_with(|| {
                order.push(slices.iter().map(|(seconds, _)| (*seconds, None)).collect());
                order.len() - 1
            });
            order[place][index].1.get_or_insert(row);
        }
    }
    order.iter().map(|parts| merge_row(columns, parts, slices)).collect()
}

/// Returns the divisor of a [`Merge::ShareOf`] or [`Merge::Per`] column in a slice, by the text in
/// the column `within`, in the unit of `part`. Empty for other columns.
pub fn divisors(columns: &[Heading], index: usize, rows: &[Row]) -> BTreeMap<String, f64> {
    let (part, within, is_sum) = match columns[index].merge {
        Merge::ShareOf { part, within } => (part, within, true),
        Merge::Per { part, within } => (part, within, false),
        _ => return BTreeMap::new(),
    };
    let Some(part) = columns.iter().position(|column| column.key == part) else {
        return BTreeMap::new();
    };
    // The greatest quotient determines it most precisely.
    let mut found: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for row in rows {
        let quotient = match &row[index] {
            Value::Missing(Missing::Nothing) => 0.0,
            cell => cell.number().unwrap_or(f64::NAN),
        };
        let Some(amount) = row[part].number() else { continue };
        let (greatest, divisor) = found.entry(group(columns, within, row)).or_insert((-1.0, 0.0));
        if is_sum {
            *divisor += amount;
        } else if quotient > *greatest {
            (*greatest, *divisor) =
                (quotient, if quotient > 0.0 { amount / quotient } else { 0.0 });
        }
    }
    found.into_iter().map(|(group, (_, divisor))| (group, divisor)).collect()
}

fn group(columns: &[Heading], within: &str, row: &Row) -> String {
    let texts = within.split_whitespace().map(|key| {
        let column = columns.iter().position(|column| column.key == key);
        match column.map(|column| &row[column]) {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        }
    });
    texts.collect::<Vec<_>>().join(BETWEEN)
}

/// Returns the key of a row; a name may be missing too.
fn key(columns: &[Heading], row: &Row) -> Vec<String> {
    let cells = columns.iter().zip(&row.cells);
    let names = cells.filter(|(column, _)| column.merge == Merge::Key);
    names
        .map(|(_, cell)| match cell {
            Value::Text(text) => text.clone(),
            cell => format!("{cell:?}"),
        })
        .collect()
}

fn merge_row(columns: &[Heading], parts: &Parts<'_>, slices: &[(f64, &[Row])]) -> Row {
    let rows = || parts.iter().filter_map(|(_, row)| *row);
    let mut condemned_by: Vec<String> = rows().flat_map(|row| row.condemned_by.clone()).collect();
    condemned_by.sort_unstable();
    condemned_by.dedup();
    let condemned = || rows().filter(|row| !row.condemned_by.is_empty());
    let mut condemned_columns: BTreeSet<_> =
        condemned().flat_map(|row| row.condemned_columns.clone()).collect();
    if condemned().any(|row| row.condemned_columns.is_empty()) {
        condemned_columns.clear();
    }
    let mut spread = Spread::default();
    for row in rows() {
        spread.merge(&row.spread);
    }
    let mut merged = Row {
        cells: (0..columns.len()).map(|index| cell(columns, index, parts, slices)).collect(),
        measure: rows().find_map(|row| row.measure),
        condemned_by,
        condemned_columns: condemned_columns.into_iter().collect(),
        spread,
    };
    for (index, column) in columns.iter().enumerate() {
        merged.cells[index] = match column.merge {
            Merge::Quotient { part, by } => divided(columns, &merged, part, by),
            Merge::Quantile(share) => {
                let quantile = merged.spread.quantile(f64::from(share) / 1e4);
                quantile.ok_or(Missing::Nothing).into()
            }
            _ => continue,
        };
    }
    merged
}

/// Divides two cells of a row; `Missing::Nothing` if the row lacks either number or the divisor is
/// zero.
fn divided(columns: &[Heading], row: &Row, part: &str, by: &str) -> Value {
    let number = |key: &str| row[columns.iter().position(|column| column.key == key)?].number();
    let quotient = number(part).zip(number(by).filter(|by| *by != 0.0));
    quotient.map(|(part, by)| part / by).ok_or(Missing::Nothing).into()
}

fn cell(columns: &[Heading], index: usize, parts: &Parts<'_>, slices: &[(f64, &[Row])]) -> Value {
    let last = || parts.iter().rev().find_map(|(_, row)| row.map(|row| row[index].clone()));
    let merged = match columns[index].merge {
        Merge::Key | Merge::Last => return last().unwrap_or(Value::Missing(Missing::Unknown)),
        // Quotients and quantiles are computed from what is merged.
        Merge::Never | Merge::Quotient { .. } | Merge::Quantile(_) => Err(Missing::Unknown),
        Merge::Sum => numbers(index, parts).map(|numbers| numbers.iter().sum()),
        Merge::Greatest => {
            numbers(index, parts).map(|numbers| numbers.into_iter().fold(f64::MIN, f64::max))
        }
        Merge::Mean => numbers(index, parts).map(|numbers| {
            let whole: f64 = parts.iter().map(|(seconds, _)| seconds).sum();
            let weighted = numbers.iter().zip(parts).map(|(number, (seconds, _))| number * seconds);
            weighted.sum::<f64>() / whole
        }),
        Merge::WeightedBy(events) => match columns.iter().position(|column| column.key == events) {
            Some(events) => mean_of_events(columns, index, events, parts),
            None => Err(Missing::Unknown),
        },
        Merge::ShareOf { part, within } | Merge::Per { part, within } => {
            match columns.iter().position(|column| column.key == part) {
                Some(part) => quotient(columns, (index, part, within), parts, slices),
                None => Err(Missing::Unknown),
            }
        }
    };
    merged.into()
}

/// Returns the number in each slice. A slice without the row, or in which nothing happened, counts
/// as zero.
fn numbers(index: usize, parts: &Parts<'_>) -> Result<Vec<f64>, Missing> {
    has_numbers(index, parts)?;
    let number = |(place, (_, row)): (usize, &(f64, Option<&Row>))| match row.map(|row| &row[index])
    {
        None | Some(Value::Missing(Missing::Nothing)) => Ok(0.0),
        // It takes two rows of its counters to determine an increase.
        Some(Value::Missing(Missing::Unknown)) if came_or_went(place, parts) => Ok(0.0),
        Some(Value::Missing(missing)) => Err(*missing),
        Some(cell) => cell.number().ok_or(Missing::Unknown),
    };
    parts.iter().enumerate().map(number).collect()
}

/// Returns whether the row begins or ends with this slice, but not with the first or last of all.
fn came_or_went(place: usize, parts: &Parts<'_>) -> bool {
    let none = |parts: &Parts<'_>| !parts.is_empty() && parts.iter().all(|(_, row)| row.is_none());
    none(&parts[..place]) || none(&parts[place + 1..])
}

/// Succeeds if any slice has a number. If not, returns the first reason other than that nothing
/// happened or that the row appeared or disappeared.
fn has_numbers(index: usize, parts: &Parts<'_>) -> Result<(), Missing> {
    let mut otherwise = Missing::Unknown;
    let mut reason = None;
    for (place, (_, row)) in parts.iter().enumerate() {
        match row.map(|row| &row[index]) {
            Some(Value::Missing(Missing::Nothing)) => otherwise = Missing::Nothing,
            Some(Value::Missing(missing))
                if *missing != Missing::Unknown || !came_or_went(place, parts) =>
            {
                reason = reason.or(Some(*missing));
            }
            Some(cell) if cell.number().is_some() => return Ok(()),
            None | Some(_) => {}
        }
    }
    Err(reason.unwrap_or(otherwise))
}

/// Returns the mean over the events of all slices.
fn mean_of_events(
    columns: &[Heading],
    index: usize,
    events: usize,
    parts: &Parts<'_>,
) -> Result<f64, Missing> {
    has_numbers(index, parts)?;
    let is_number = columns[events].merge == Merge::Sum;
    let rates = numbers(events, parts)?;
    let (mut sum, mut whole) = (0.0, 0.0);
    for ((seconds, row), rate) in parts.iter().zip(rates) {
        let Some(cell) = row.map(|row| &row[index]) else { continue };
        let weight = if is_number { rate } else { rate * seconds };
        match cell {
            Value::Missing(Missing::Nothing) => {}
            Value::Missing(Missing::Unknown) if weight == 0.0 => {}
            Value::Missing(missing) => return Err(*missing),
            cell => {
                sum += weight * cell.number().ok_or(Missing::Unknown)?;
                whole += weight;
            }
        }
    }
    if whole == 0.0 { Err(Missing::Nothing) } else { Ok(sum / whole) }
}

/// Returns the parts of all slices ÷ their divisors.
fn quotient(
    columns: &[Heading],
    (index, part, within): (usize, usize, &str),
    parts: &Parts<'_>,
    slices: &[(f64, &[Row])],
) -> Result<f64, Missing> {
    if let Err(missing) = numbers(index, parts)
        && missing != Missing::Nothing
    {
        return Err(missing);
    }
    let amounts = numbers(part, parts)?;
    let row = parts.iter().find_map(|(_, row)| *row);
    let group = row.map_or_else(String::new, |row| group(columns, within, row));
    let (mut sum, mut whole) = (0.0, 0.0);
    for (amount, (seconds, rows)) in amounts.iter().zip(slices) {
        let weight = if columns[part].merge == Merge::Sum { 1.0 } else { *seconds };
        let divisor = divisors(columns, index, rows).get(&group).copied();
        sum += amount * weight;
        whole += weight
            * match (divisor, columns[index].merge) {
                (Some(divisor), _) => divisor,
                (None, Merge::ShareOf { .. }) => 0.0,
                (None, _) => return Err(Missing::Unknown),
            };
    }
    if whole == 0.0 { Err(Missing::Nothing) } else { Ok(sum / whole) }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Measure, column, count, level, mean_of, quotient, text, time, total, unmerged,
    };
    use super::*;

    const COLUMNS: &[Heading] = &[
        text("disk", "", ""),
        count("reads_per_s", "", ""),
        mean_of("reads_per_s", "read_ns", "", Measure::Nanoseconds, ""),
        total("errors", "", Measure::Count, ""),
        mean_of("errors", "error_ns", "", Measure::Nanoseconds, ""),
        level("state", "", Measure::Text, ""),
        column("queue_max", "", Measure::Count, Merge::Greatest, ""),
        unmerged("read_ns_p99", "", Measure::Nanoseconds, ""),
    ];

    fn row(disk: &str, numbers: [f64; 4], state: &str, rest: [f64; 2]) -> Row {
        let mut cells = vec![Value::from(disk)];
        cells.extend(numbers.map(Value::Number));
        cells.push(state.into());
        cells.extend(rest.map(Value::Number));
        cells.into()
    }

    const UNKNOWN: Value = Value::Missing(Missing::Unknown);

    #[test]
    fn every_column_merges_by_its_own_rule() {
        let first = [row("a", [10.0, 5.0, 1.0, 8.0], "up", [3.0, 9.0])];
        let second = [
            row("b", [6.0, 2.0, 0.0, 0.0], "up", [1.0, 9.0]),
            row("a", [40.0, 20.0, 3.0, 4.0], "down", [2.0, 9.0]),
        ];
        let merged = merge(COLUMNS, &[(1.0, &first), (2.0, &second)]);
        // (10 × 1 + 40 × 2) ÷ 3 s; (5 × 10 + 20 × 80) ÷ 90 reads; (8 × 1 + 4 × 3) ÷ 4 errors.
        let mut a = row("a", [30.0, 1_650.0 / 90.0, 4.0, 5.0], "down", [3.0, 0.0]);
        a.cells[7] = UNKNOWN;
        let mut b = row("b", [4.0, 2.0, 0.0, 0.0], "up", [1.0, 0.0]);
        (b.cells[4], b.cells[7]) = (Value::Missing(Missing::Nothing), UNKNOWN);
        assert_eq!(merged, [a, b]);
        assert_eq!(merge(COLUMNS, &[(1.0, &first)]), first);
        assert!(merge(COLUMNS, &[]).is_empty());
    }

    #[test]
    fn shares_are_of_the_sum_of_all_slices() {
        let within = Merge::ShareOf { part: "sessions", within: "role" };
        let columns = [
            text("role", "", ""),
            text("wait", "", ""),
            count("sessions", "", ""),
            column("share", "", Measure::Share, within, ""),
        ];
        let row = |role: &str, wait: &str, sessions: f64, share: f64| -> Row {
            [role.into(), wait.into(), sessions.into(), share.into()].into()
        };
        let first = [row("a", "x", 3.0, 0.75), row("a", "y", 1.0, 0.25), row("b", "x", 9.0, 1.0)];
        let second = [row("a", "y", 2.0, 1.0)];
        let merged = merge(&columns, &[(1.0, &first), (2.0, &second)]);
        // For a: 3 and 1 sessions for a second, then 2 for two seconds: 8 session seconds.
        let shares: Vec<Option<f64>> = merged.iter().map(|row| row[3].number()).collect();
        assert_eq!(shares, [Some(0.375), Some(0.625), Some(1.0)]);
    }

    #[test]
    fn what_is_divided_by_transactions_needs_their_number_in_every_slice() {
        let per = Merge::Per { part: "amount", within: "" };
        let columns = [
            text("what", "", ""),
            count("amount", "", ""),
            column("each", "", Measure::Count, per, ""),
        ];
        let row = |what: &str, amount: f64, each: Value| -> Row {
            [what.into(), amount.into(), each].into()
        };
        // Ten transactions per second, none, then five for two seconds.
        let ten = [row("reads", 30.0, 3.0.into()), row("redo", 5.0, 0.5.into())];
        let none = [row("reads", 10.0, Value::Missing(Missing::Nothing))];
        let five = [row("reads", 0.0, 0.0.into()), row("redo", 10.0, 2.0.into())];
        let merged = merge(&columns, &[(1.0, &ten), (1.0, &none), (2.0, &five)]);
        assert_eq!((&merged[0][2], &merged[1][2]), (&2.0.into(), &1.25.into()));
        let merged = merge(&columns, &[(1.0, &ten), (1.0, &[])]);
        assert_eq!(merged[0][2], UNKNOWN, "how many there were is not known");
    }

    #[test]
    fn quotients_and_quantiles_are_of_all_slices() {
        let columns = [
            text("event", "", ""),
            total("waits", "", Measure::Count, ""),
            total("time_ns", "", Measure::Nanoseconds, ""),
            quotient("time_ns", "waits", "wait_ns_mean", "", Measure::Nanoseconds, ""),
            column("wait_ns_p90", "", Measure::Nanoseconds, Merge::Quantile(9_000), ""),
        ];
        let row = |waits: f64, time_ns: f64, spread: &[(u64, u64)]| {
            let cells: [Value; 5] =
                ["x".into(), waits.into(), time_ns.into(), Value::default(), Value::default()];
            Row::from(cells).spread(spread.iter().copied().collect())
        };
        // A wait that ends in the second slice was partly spent in the first.
        let first = [row(0.0, 500.0, &[])];
        let second = [row(20.0, 1_500.0, &[(10, 30), (41, 8), (60, 2)])];
        let third = [row(0.0, 0.0, &[])];
        let merged = merge(&columns, &[(1.0, &first), (1.0, &second), (1.0, &third)]);
        assert_eq!(merged[0][3], Value::Number(100.0));
        assert_eq!(merged[0][4], Value::Number(41.5), "the 36th of 40, in 40..42");
        let merged = merge(&columns, &[(1.0, &first), (1.0, &third)]);
        assert_eq!((&merged[0][3], &merged[0][4]), (&Value::default(), &Value::default()));
    }

    #[test]
    fn unknown_is_zero_only_where_the_row_comes_or_goes() {
        let known = [row("a", [10.0, 5.0, 1.0, 8.0], "", [3.0, 9.0])];
        let mut unknown = known.clone();
        unknown[0].cells[1] = UNKNOWN;
        unknown[0].cells[2] = UNKNOWN;
        let reads = |slices: [&[Row]; 3]| {
            let merged = merge(COLUMNS, &slices.map(|rows| (1.0, rows)));
            (merged[0][1].clone(), merged[0][2].clone())
        };
        assert_eq!(reads([&[], &unknown, &known]), (Value::Number(10.0 / 3.0), 5.0.into()));
        assert_eq!(reads([&known, &unknown, &[]]), (Value::Number(10.0 / 3.0), 5.0.into()));
        assert_eq!(reads([&known, &unknown, &known]), (UNKNOWN, UNKNOWN), "it was set back");
        assert_eq!(reads([&[], &unknown, &[]]), (UNKNOWN, UNKNOWN), "seen once");
    }

    #[test]
    fn reasons_and_rules_survive() {
        let columns = [text("disk", "", ""), count("a", "", ""), time("b", "", "")];
        let cells = |a: Missing| [Value::from("x"), Value::Missing(a), 1.0.into()];
        let one = [Row::from(cells(Missing::Off)).condemned_by(&["hole".to_owned()])];
        let other = [Row::from(cells(Missing::Nothing))];
        let merged = merge(&columns, &[(1.0, &other), (1.0, &one)]);
        assert_eq!(merged[0][1], Value::Missing(Missing::Off));
        assert_eq!(merged[0].condemned_by, ["hole"]);
    }
}
