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
}

impl Link for Session {
    fn member(&self) -> Option<Member> {
        self.member
    }

    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        let select = self.prepared(Kind::Select, schema)?;
        let last = first_key + u64::from(rows) - 1;
        self.count(&select, vec![Value::UInt(first_key), Value::UInt(last)])
    }

    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble> {
        let update = self.prepared(Kind::Update, schema)?;
        self.link.query_drop("BEGIN").attempting("update")?;
        let columns = change.columns().map(|column| Value::Bytes(column.to_vec()));
        let keys = [first_key, first_key + u64::from(rows) - 1].map(Value::UInt);
        let values: Vec<Value> = columns.chain(keys).collect();
        self.link.exec_drop(&update, values).attempting("update")?;
        Ok(self.link.affected_rows())
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
