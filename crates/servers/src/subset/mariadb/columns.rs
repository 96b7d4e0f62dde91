//! Columns of tables in SQL, for comparing and reading.

use super::values::Kind;
use super::{MariadbSource, quoted};

/// Returns a column in the form for comparing it with another.
pub fn compared(source: &MariadbSource<'_>, table: usize, column: usize, like: &Kind) -> String {
    let name = column_name(source, table, column);
    like.compared(&name, &source.known.tables[table].kinds[column])
}

pub fn column_name(source: &MariadbSource<'_>, table: usize, column: usize) -> String {
    format!("t.{}", quoted(&source.catalogue.tables[table].columns[column].name))
}

/// Returns a hash of all columns.
pub fn whole(source: &MariadbSource<'_>, table: usize) -> String {
    let columns = source.catalogue.tables[table].columns.iter().enumerate();
    let columns = columns.filter(|(_, column)| !column.generated);
    let hashed = |(at, _)| {
        let name = column_name(source, table, at);
        let written = source.known.tables[table].kinds[at].written(&name);
        format!("IFNULL(SHA1({written}), '-')")
    };
    format!("SHA1(CONCAT({}))", columns.map(hashed).collect::<Vec<_>>().join(", "))
}
