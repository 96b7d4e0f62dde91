//! Answers to single queries. What answers may be of a version that is not known, or no MariaDB: a
//! row that is not as it was asked for is an error.

use std::io;
use std::os::fd::AsRawFd;

use blockstone_base::units::Bytes;
use blockstone_sys::peer;
use mysql::prelude::{AsStatement, FromRow, Queryable};
use mysql::{Conn, Error, Params, Row, Value};

/// All rows that are kept of one answer.
const MOST: Bytes = Bytes::mib(256);
/// What the driver keeps for a row, and for a value in it, beside the bytes.
const ROW_BYTES: usize = 128;
const VALUE_BYTES: usize = 32;

/// All rows of an answer. Fails, and ends the connection, where they take more than [`MOST`].
pub fn rows<T: FromRow>(link: &mut Conn, query: &str) -> Result<Vec<T>, Error> {
    let socket = link.as_raw_fd();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for row in link.query_iter(query)? {
        let row = row?;
        bytes += kept_bytes(&row);
        if bytes as u64 > MOST.get() {
            // The driver would read the rest before it uses the connection again.
            peer::hang_up_socket(socket);
            let why = format!("the rows of an answer take more than {MOST}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
        }
        rows.push(T::from_row_opt(row)?);
    }
    Ok(rows)
}

fn kept_bytes(row: &Row) -> usize {
    let value = |at| match row.as_ref(at) {
        Some(Value::Bytes(bytes)) => VALUE_BYTES + bytes.len(),
        _ => VALUE_BYTES,
    };
    ROW_BYTES + (0..row.len()).map(value).sum::<usize>()
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
