//! A session, with statements that are prepared once and executed many times.

use std::path::PathBuf;

use blockstone_sys::held;
use mysql::prelude::Queryable;
use mysql::{Conn, Statement, Value};

use super::{Address, DENIED, answer};
use crate::sql::content::Change;
use crate::sql::error::{DriverError, During, SqlError};
use crate::sql::host::ServerAddress;
use crate::sql::{
    Kind, Link, Made, Member, Prepared, SCHEMA, Table, Trouble, copy_text, table_name,
};
use crate::target::Canceller;

const COPY: &str = include_str!("../../sql/mariadb/copy.sql");
/// Rows per page, in the copied table and in its copy.
const ROWS_OF_A_PAGE: u64 = 2;

pub struct Session {
    pub(super) link: Conn,
    pub(super) address: Address,
    pub(super) page_bytes: u64,
    /// The directory of the server's files, if it is on this machine.
    pub(super) directory: Option<PathBuf>,
    pub(super) member: Option<Member>,
    pub(super) prepared: Prepared<Statement>,
}

impl Session {
    fn prepared(&mut self, kind: Kind, schema: u32) -> Result<Statement, Trouble> {
        self.prepared.get(kind, schema, |text| self.link.prep(text))
    }

    fn count(&mut self, statement: &Statement, keys: Vec<Value>) -> Result<u64, Trouble> {
        let counted: Option<u64> =
            answer::executed(&mut self.link, statement, keys).attempting("select")?;
        Ok(counted.unwrap_or_default())
    }

    fn change(&mut self, statement: &Statement, values: Vec<Value>) -> Result<u64, Trouble> {
        self.link.exec_drop(statement, values).attempting("write")?;
        Ok(self.link.affected_rows())
    }
}

/// Whether the user lacks the privilege.
fn is_denied(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(said) if DENIED.contains(&said.code))
}

/// Returns the first and the last key of `rows` rows.
fn range(first_key: u64, rows: u32) -> [Value; 2] {
    [first_key, first_key + u64::from(rows) - 1].map(Value::UInt)
}

impl Link for Session {
    const COMMITS_TABLES: bool = true;

    fn member(&self) -> Option<Member> {
        self.member
    }

    fn canceller(&self) -> Canceller {
        let (address, session) = (self.address.clone(), self.link.connection_id());
        Canceller::new(move || {
            // The statement also ends if the server is gone.
            let _ =
                address.connect().map(|mut link| link.query_drop(format!("KILL QUERY {session}")));
        })
    }

    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        let select = self.prepared(Kind::Select, schema)?;
        self.count(&select, range(first_key, rows).to_vec())
    }

    fn begin(&mut self, _writes: bool) -> Result<(), Trouble> {
        self.link.query_drop("BEGIN").attempting("begin a transaction")
    }

    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble> {
        let update = self.prepared(Kind::Update, schema)?;
        let columns = change.columns().map(|column| Value::Bytes(column.to_vec()));
        let values: Vec<Value> = columns.chain(range(first_key, rows)).collect();
        self.change(&update, values)
    }

    fn insert_order(&mut self, schema: u32, number: u64, order: &[u8]) -> Result<u64, Trouble> {
        let insert = self.prepared(Kind::InsertOrder, schema)?;
        self.change(&insert, vec![Value::UInt(number), Value::Bytes(order.to_vec())])
    }

    fn orders(&mut self, schema: u32, first: u64, count: u32) -> Result<u64, Trouble> {
        let orders = self.prepared(Kind::Orders, schema)?;
        self.count(&orders, range(first, count).to_vec())
    }

    fn delete_order(&mut self, schema: u32, number: u64) -> Result<u64, Trouble> {
        let delete = self.prepared(Kind::DeleteOrder, schema)?;
        self.change(&delete, vec![Value::UInt(number)])
    }

    fn commit(&mut self) -> Result<(), Trouble> {
        self.link.query_drop("COMMIT").attempting("commit")
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.link.query_drop("ROLLBACK").during("roll back")
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Trouble> {
        let scan = self.prepared(Kind::Scan, schema)?;
        self.count(&scan, Vec::new())
    }

    fn create_table(&mut self, schema: u32, table: u32) -> Result<Made, Trouble> {
        let text = copy_text(COPY, (schema, table), table_name);
        self.link.query_drop(text).attempting("create a table")?;
        let rows = self.link.affected_rows();
        // The server has no statistic of a new table's size before it has sampled it.
        let bytes = rows.div_ceil(ROWS_OF_A_PAGE) * self.page_bytes;
        Ok(Made { rows, bytes })
    }

    fn flush_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble> {
        let name = table_name(schema, Table::Copy(table));
        let flush = format!("FLUSH TABLES {name} FOR EXPORT");
        match self.link.query_drop(flush) {
            Err(error) if is_denied(&error) => {
                return Err(Trouble::Failed(SqlError::Statement {
                    what: format!("flush table {name}"),
                    why: error.words(),
                    hint: format!(
                        "GRANT RELOAD ON *.* TO this user, and LOCK TABLES and SELECT ON {SCHEMA}.*"
                    ),
                }));
            }
            done => done.attempting("flush a table")?,
        }
        self.link.query_drop("UNLOCK TABLES").attempting("unlock a table")?;
        // The version decides which flushes have reached the files at this point.
        let file = self.directory.as_ref().map(|directory| {
            directory.join(SCHEMA).join(format!("{}.ibd", Table::Copy(table).name(schema)))
        });
        if let Some(Ok(file)) = file.as_deref().map(held::open_file) {
            file.sync_all().map_err(|error| SqlError::Statement {
                what: format!("flush the file of table {name}"),
                why: error.to_string(),
                hint: "see the kernel's log".to_owned(),
            })?;
        }
        Ok(())
    }

    fn drop_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble> {
        let text = format!("DROP TABLE {}", table_name(schema, Table::Copy(table)));
        self.link.query_drop(text).attempting("drop a table")
    }
}
