//! Answers to single queries. Answers may come from an unknown version, or from a server other than
//! MariaDB: a row of an unexpected form is an error.

use std::cell::Cell;
use std::io;
use std::os::fd::AsRawFd;

use blockstone_base::units::Bytes;
use blockstone_sys::{heap, peer};
use mysql::prelude::{AsStatement, FromRow, Queryable};
use mysql::{Conn, Error, Params, Row, Value};

use crate::sql::border::caught;

/// Limits on the rows kept from one answer, and on the memory for reading them.
const MOST: Bytes = Bytes::mib(256);
const MEMORY_MOST: Bytes = Bytes::mib(512);
/// Memory of the driver for a row, and for each value in it, in addition to their bytes.
const ROW_BYTES: usize = 128;
const VALUE_BYTES: usize = 32;

/// Reads an answer with the driver. If the driver panics or uses too much memory, this fails and
/// the connection is closed.
fn answered<T>(
    link: &mut Conn,
    read: impl FnOnce(&mut Conn) -> Result<T, Error>,
) -> Result<T, Error> {
    let socket = link.as_raw_fd();
    let exceeded = Cell::new(false);
    let excess = || {
        exceeded.set(true);
        peer::hang_up_socket(socket);
    };
    match caught(true, || heap::bounded(MEMORY_MOST, &excess, || read(link))) {
        _ if exceeded.get() => unfit(&format!("it takes more than {MEMORY_MOST} of memory")),
        Err(place) => unfit(&format!("the driver cannot read it ({place})")),
        Ok(answer) => answer,
    }
}

fn unfit<T>(why: &str) -> Result<T, Error> {
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("the answer: {why}")).into())
}

/// Returns all rows of an answer. If they take more than [`MOST`], it fails and closes the
/// connection.
pub fn rows<T: FromRow>(link: &mut Conn, query: &str) -> Result<Vec<T>, Error> {
    answered(link, |link| all_rows(link, query))
}

fn all_rows<T: FromRow>(link: &mut Conn, query: &str) -> Result<Vec<T>, Error> {
    let socket = link.as_raw_fd();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for row in link.query_iter(query)? {
        let row = row?;
        bytes += kept_bytes(&row);
        if bytes as u64 > MOST.get() {
            // Otherwise the driver would read the rest before it uses the connection again.
            peer::hang_up_socket(socket);
            return unfit(&format!("its rows take more than {MOST}"));
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
    answered(link, |link| Ok(link.query_first_opt(query)?.transpose()?))
}

/// Returns the first row of a statement with parameters.
pub fn executed<T: FromRow>(
    link: &mut Conn,
    statement: impl AsStatement,
    parameters: impl Into<Params>,
) -> Result<Option<T>, Error> {
    answered(link, |link| Ok(link.exec_first_opt(statement, parameters)?.transpose()?))
}
