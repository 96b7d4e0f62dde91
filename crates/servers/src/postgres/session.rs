//! A session, with statements that are prepared once and executed many times.

use postgres::Statement;
use postgres::error::SqlState;
use postgres::types::ToSql;

use super::Client;
use super::tls::Connector;
use super::views::value;
use crate::sql::content::Change;
use crate::sql::error::{DriverError, During, SqlError};
use crate::sql::{Kind, Link, Made, Member, Prepared, Table, Trouble, copy_text, table_name};
use crate::target::Canceller;

const COPY: &str = include_str!("../../sql/postgres/copy.sql");

pub struct Session {
    pub(super) link: Client,
    pub(super) tls: Connector,
    pub(super) member: Option<Member>,
    pub(super) prepared: Prepared<Statement>,
    pub(super) can_hand_over: bool,
}

impl Session {
    fn prepared(&mut self, kind: Kind, schema: u32) -> Result<Statement, Trouble> {
        self.prepared.get(kind, schema, |text| self.link.prepare(text))
    }

    /// Returns the count of `select` for the `rows` keys from `first_key`.
    fn count(&mut self, select: &Statement, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        let (first, last) = (first_key as i64, first_key as i64 + i64::from(rows) - 1);
        let row = self.link.query_one(select, &[&first, &last]).attempting("select")?;
        Ok(value::<i64>(&row, 0)? as u64)
    }
}

impl Link for Session {
    const HOLDS_COUNTS: bool = true;

    fn member(&self) -> Option<Member> {
        self.member
    }

    fn canceller(&self) -> Canceller {
        let (token, tls) = (self.link.cancel_token(), self.tls.clone());
        Canceller::new(move || {
            // The statement also ends if the server is gone.
            let _ = token.cancel_query(tls.clone());
        })
    }

    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        let select = self.prepared(Kind::Select, schema)?;
        self.count(&select, first_key, rows)
    }

    fn begin(&mut self, _writes: bool) -> Result<(), Trouble> {
        self.link.batch_execute("BEGIN").attempting("begin a transaction")
    }

    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble> {
        let update = self.prepared(Kind::Update, schema)?;
        let (first, last) = (first_key as i64, first_key as i64 + i64::from(rows) - 1);
        let columns: Vec<&[u8]> = change.columns().collect();
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&first, &last];
        values.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
        self.link.execute(&update, &values).attempting("update")
    }

    fn insert_order(&mut self, schema: u32, number: u64, order: &[u8]) -> Result<u64, Trouble> {
        let insert = self.prepared(Kind::InsertOrder, schema)?;
        self.link.execute(&insert, &[&(number as i64), &order]).attempting("insert")
    }

    fn orders(&mut self, schema: u32, first: u64, count: u32) -> Result<u64, Trouble> {
        let orders = self.prepared(Kind::Orders, schema)?;
        self.count(&orders, first, count)
    }

    fn delete_order(&mut self, schema: u32, number: u64) -> Result<u64, Trouble> {
        let delete = self.prepared(Kind::DeleteOrder, schema)?;
        self.link.execute(&delete, &[&(number as i64)]).attempting("delete")
    }

    fn commit(&mut self) -> Result<(), Trouble> {
        self.link.batch_execute("COMMIT").attempting("commit")
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.link.batch_execute("ROLLBACK").during("roll back")
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Trouble> {
        let scan = self.prepared(Kind::Scan, schema)?;
        let row = self.link.query_one(&scan, &[]).attempting("scan")?;
        Ok(value::<i64>(&row, 0)? as u64)
    }

    /// Starts each scan at the first page, even if another session is scanning the table.
    fn arrange_scans(&mut self, multiblock: Option<u32>) -> Result<(), SqlError> {
        const ARRANGE: &str = "arrange scans";
        self.link.batch_execute("SET synchronize_seqscans = off").during(ARRANGE)?;
        let Some(blocks) = multiblock else { return Ok(()) };
        let set = format!("SET io_combine_limit = {blocks}");
        self.link.batch_execute(&set).during(ARRANGE)
    }

    fn create_table(&mut self, schema: u32, table: u32) -> Result<Made, Trouble> {
        let text = copy_text(COPY, (schema, table), table_name);
        let rows = self.link.execute(text.as_str(), &[]).attempting("create a table")?;
        let name = table_name(schema, Table::Copy(table));
        let ask = "SELECT pg_relation_size($1::text::regclass)";
        let size = self.link.query_one(ask, &[&name]).attempting("query the size of a table")?;
        Ok(Made { rows, bytes: value::<i64>(&size, 0)? as u64 })
    }

    /// Issues a checkpoint, which flushes the files of all changed tables.
    fn flush_table(&mut self, _schema: u32, _table: u32) -> Result<(), Trouble> {
        match self.link.batch_execute("CHECKPOINT") {
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                Err(Trouble::Failed(SqlError::Statement {
                    what: "flush a table with CHECKPOINT".to_owned(),
                    why: error.words(),
                    hint: "GRANT pg_checkpoint TO this user (from PostgreSQL 15 on), or name a \
                           superuser"
                        .to_owned(),
                }))
            }
            done => done.attempting("flush a table with CHECKPOINT"),
        }
    }

    fn drop_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble> {
        let text = format!("DROP TABLE {}", table_name(schema, Table::Copy(table)));
        self.link.batch_execute(&text).attempting("drop a table")
    }

    fn hand_over_counts(&mut self) -> Result<(), SqlError> {
        if !self.can_hand_over {
            return Ok(());
        }
        let ask = "SELECT pg_stat_force_next_flush()";
        self.link.batch_execute(ask).during("hand over statistics")
    }
}
