//! I/O by function and by tablespace, and the buffer pool advisory.

use crate::number::significant;
use crate::report::{Advice, Interval};
use crate::table::{Table, cell};

use super::facts::{Facts, MIB};
use super::sections::{ADVICE, FILE_IO, FUNCTION_IO, IO_PROFILE, TABLESPACE_IO};

/// Columns of a function: its name, then data, requests and data per second for reads and for
/// writes.
const COLUMNS_OF_FUNCTION: usize = 7;

/// Classes of tablespaces, with the beginnings and the ends of words in their names. The last one
/// is for all other names.
const CLASSES: [(&str, &[&str], &[&str]); 5] = [
    ("system_ios", &[], &[]),
    ("undo_ios", &["UNDO", "ROLLBACK", "RBS"], &["UNDO"]),
    ("temporary_ios", &["TEMP", "TMP"], &["TEMP", "TMP"]),
    ("index_ios", &["INDEX", "INDX", "IDX", "IX"], &["INDEX", "INDX", "IDX"]),
    ("data_ios", &[], &[]),
];

/// Returns the index of a tablespace's class, by its name.
fn class(name: &str) -> usize {
    let name = name.trim().to_ascii_uppercase();
    if name == "SYSTEM" || name == "SYSAUX" {
        return 0;
    }
    // Numbers at the end of a word distinguish it from others of its kind.
    let words =
        || name.split(['_', '$', '#']).map(|it| it.trim_end_matches(|c: char| c.is_ascii_digit()));
    let is_of = |&(_, begins, ends): &(&str, &[&str], &[&str])| {
        words().any(|word| {
            begins.iter().any(|begin| word.starts_with(begin))
                || ends.iter().any(|end| word.ends_with(end))
        })
    };
    CLASSES.iter().position(is_of).unwrap_or(CLASSES.len() - 1)
}

impl Facts<'_> {
    /// Sets requests and bytes from the table of I/O by function. Statspack leaves zeros blank, and
    /// may have no row for the database writers, in which case its writes are incomplete.
    pub fn functions(&self, interval: &mut Interval, seconds: f64, is_statspack: bool) {
        let is_table = |table: &&Table<'_>| table.head.len() >= COLUMNS_OF_FUNCTION;
        let Some(table) = self.of(&FUNCTION_IO).find(is_table) else { return };
        let is_total = |name: &str| name.eq_ignore_ascii_case("TOTAL:");
        let name = |row: &&Vec<_>| !is_total(cell(row, Some(0)));
        let has_writers = table.rows.iter().any(|row| cell(row, Some(0)) == "DBWR");
        let sum = |of: &dyn Fn(&[std::borrow::Cow<'_, str>]) -> Option<f64>| -> Option<f64> {
            let rows = table.rows.iter().filter(name);
            rows.map(|row| of(row)).sum::<Option<f64>>().filter(|_| !table.rows.is_empty())
        };
        let blank = is_statspack.then_some(0.0);
        let requests = |column: usize| {
            sum(&|row| match cell(row, Some(column)) {
                "" => blank,
                printed => Some(self.numbers.count(printed)? * seconds),
            })
        };
        let bytes = |column: usize| {
            sum(&|row| {
                self.function_bytes(cell(row, Some(column)), cell(row, Some(column + 2)), seconds)
                    .or(if cell(row, Some(column)).is_empty() { blank } else { None })
            })
        };
        interval.totals.set("function_read_ios", requests(2));
        interval.totals.set("function_read_bytes", bytes(1));
        if has_writers || !is_statspack {
            interval.totals.set("function_write_ios", requests(5));
            interval.totals.set("function_write_bytes", bytes(4));
        }
    }

    /// Sets the writes to the files of a pluggable database: its statistics do not count those of
    /// database writers.
    pub fn written_files(&self, interval: &mut Interval, seconds: f64) -> bool {
        let is_table = |table: &&Table<'_>| table.head.len() >= COLUMNS_OF_FUNCTION;
        let mut rows = self.of(&FILE_IO).filter(is_table).flat_map(|table| &table.rows);
        let is_total = |row: &&Vec<_>| cell(row, Some(0)).eq_ignore_ascii_case("TOTAL:");
        let Some(row) = rows.find(is_total) else { return false };
        let column = |index| cell(row, Some(index));
        let requests = self.numbers.count(column(5)).map(|rate| rate * seconds);
        interval.totals.remove("write_ios");
        interval.totals.remove("write_bytes");
        interval.totals.set("write_ios", requests);
        let bytes = self.function_bytes(column(4), column(6), seconds);
        interval.totals.set("write_bytes", bytes);
        requests.is_some()
    }

    /// Computes bytes from the data or from the data per second, whichever has more digits.
    fn function_bytes(&self, data: &str, per_s: &str, seconds: f64) -> Option<f64> {
        let rate = self.numbers.scaled(per_s, 1024.0, MIB).map(|rate| rate * seconds);
        let data_bytes = self.numbers.scaled(data, 1024.0, MIB);
        if significant(data) > significant(per_s) {
            data_bytes.or(rate)
        } else {
            rate.or(data_bytes)
        }
    }

    /// Sets the rates of the I/O profile, which lose little by rounding.
    pub fn profile(&self, interval: &mut Interval, seconds: f64) -> bool {
        let mut found = false;
        let rows = [
            ("Total Requests:", ["read_ios", "write_ios"], 1.0),
            ("Total (MB):", ["read_bytes", "write_bytes"], MIB),
        ];
        for (row, columns, unit) in rows {
            let names = [["Read per Second"], ["Write per Second"]];
            for (column, name) in columns.into_iter().zip(&names) {
                let rate = self.value(&IO_PROFILE, row, name);
                if interval.totals.get(column).is_none() && rate.is_some() {
                    interval.totals.set(column, rate.map(|rate| rate * unit * seconds));
                    found = true;
                }
            }
        }
        found
    }

    /// Returns reads and writes, in requests, of each tablespace with its name.
    fn each_tablespace(&self) -> Option<Vec<(String, f64, f64)>> {
        let table = self.of(&TABLESPACE_IO).find(|table| table.has(&["Reads", "Writes"]))?;
        let (reads, writes) = (table.column(&["Reads"]), table.column(&["Writes"]));
        let named = table.column(&["Tablespace"]).filter(|&column| Some(column) < reads);
        let (mut all, mut name) = (Vec::new(), String::new());
        for row in &table.rows {
            let of = |column| self.numbers.count(cell(row, column));
            match (of(reads), of(writes)) {
                (Some(read), Some(written)) => {
                    if named.is_some() {
                        cell(row, named).clone_into(&mut name);
                    }
                    all.push((std::mem::take(&mut name), read, written));
                }
                // In text, the name of a tablespace has its own line.
                _ if cell(row, writes).is_empty() => name = row.concat(),
                _ => return None,
            }
        }
        (!all.is_empty()).then_some(all)
    }

    /// Returns the reads and writes of all tablespaces together.
    pub fn tablespaces(&self) -> Option<(f64, f64)> {
        let all = self.each_tablespace()?;
        Some(all.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.1, sum.1 + it.2)))
    }

    /// Sets the requests of tablespaces by class.
    pub fn classes(&self, interval: &mut Interval) {
        let mut sums = CLASSES.map(|(column, ..)| (column, 0.0));
        let Some(all) = self.each_tablespace() else { return };
        if all.iter().any(|(name, ..)| name.trim().is_empty()) {
            return;
        }
        for (name, reads, writes) in all {
            sums[class(&name)].1 += reads + writes;
        }
        for (column, sum) in sums {
            interval.totals.set(column, sum);
        }
    }

    pub fn advice(&self) -> Vec<Advice> {
        let sizes = ["Size for Est (M)", "Size for Estimate (M)"];
        let Some(table) = self.of(&ADVICE).find(|table| table.column(&sizes).is_some()) else {
            return Vec::new();
        };
        let size = table.column(&sizes);
        let factor = table.column(&["Size Factor", "Size Factr"]);
        let is_reads = |head: &String| {
            let head = head.to_ascii_lowercase();
            head.starts_with("estimated phys")
        };
        let Some(reads) = table.head.iter().position(is_reads) else { return Vec::new() };
        let unit = if table.head[reads].contains("thousands") { 1_000.0 } else { 1.0 };
        let pool = table.column(&["P", "Pool"]);
        let row = |row: &Vec<_>| {
            Some(Advice {
                pool: cell(row, pool).to_owned(),
                size_bytes: self.numbers.count(cell(row, size))? * MIB,
                size_factor: self.numbers.count(cell(row, factor))?,
                physical_reads: self.numbers.count(cell(row, Some(reads)))? * unit,
            })
        };
        table.rows.iter().filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_class_of_a_tablespace() {
        for (name, column) in [
            ("SYSTEM", "system_ios"),
            ("sysaux ", "system_ios"),
            ("SYSTEM_APP", "data_ios"),
            ("UNDOTBS1", "undo_ios"),
            ("RBS", "undo_ios"),
            ("TEMP", "temporary_ios"),
            ("USER_TMP", "temporary_ios"),
            ("ORDERS_IDX", "index_ios"),
            ("INDX", "index_ios"),
            ("SALES_IX", "index_ios"),
            ("IDXDATA_01", "index_ios"),
            ("HERBS2", "data_ios"),
            ("ATTEMPTS", "data_ios"),
            ("USERS", "data_ios"),
        ] {
            assert_eq!(CLASSES[class(name)].0, column, "{name}");
        }
    }
}
