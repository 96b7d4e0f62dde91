//! Answers to single queries. What answers may be of a version that is not known, or no MariaDB: a
//! row that is not as it was asked for is an error.

use mysql::prelude::{AsStatement, FromRow, Queryable};
use mysql::{Conn, Error, Params};

pub fn rows<T: FromRow>(link: &mut Conn, query: &str) -> Result<Vec<T>, Error> {
    link.query_opt(query)?.into_iter().map(|row| Ok(row?)).collect()
}

pub fn first<T: FromRow>(link: &mut Conn, query: &str) -> Result<Option<T>, Error> {
    Ok(link.query_first_opt(query)?.transpose()?)
}

/// The first row of a statement with parameters.
pub fn executed<T: FromRow>(
    link: &mut Conn,
    statement: impl AsStatement,
    parameters: impl Into<Params>,
) -> Result<Option<T>, Error> {
    Ok(link.exec_first_opt(statement, parameters)?.transpose()?)
}
