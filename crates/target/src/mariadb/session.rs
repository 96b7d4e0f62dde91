//! A session: statements that are prepared once and sent again and again.

use mysql::prelude::Queryable;
use mysql::{Conn, Statement, Value};

use super::answer;
use crate::sql::content::Change;
use crate::sql::error::{During, SqlError};
use crate::sql::{Kind, Link, Member, Prepared, Trouble};

pub struct Session {
    pub(super) link: Conn,
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

/// The first key and the last of `rows`.
fn range(first_key: u64, rows: u32) -> [Value; 2] {
    [first_key, first_key + u64::from(rows) - 1].map(Value::UInt)
}

impl Link for Session {
    fn member(&self) -> Option<Member> {
        self.member
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
}
