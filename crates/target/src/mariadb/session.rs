//! A session: statements that are prepared once and sent again and again.

use mysql::prelude::Queryable;
use mysql::{Conn, Statement, Value};

use super::{AGAIN, statement};
use crate::sql::content::Change;
use crate::sql::error::SqlError;
use crate::sql::{Link, Member, Texts, Trouble};

pub struct Session {
    pub(super) link: Conn,
    pub(super) member: Option<Member>,
    pub(super) texts: Texts,
    /// Select, update and scan of each schema, once sent.
    pub(super) prepared: [Vec<Option<Statement>>; 3],
}

impl Session {
    fn trouble(what: &str, error: &mysql::Error) -> Trouble {
        match error {
            mysql::Error::MySqlError(said) if AGAIN.contains(&said.code) => Trouble::Again,
            error => Trouble::Failed(statement(what, error)),
        }
    }

    fn prepared(&mut self, kind: usize, schema: u32) -> Result<Statement, Trouble> {
        let index = schema as usize;
        if let Some(statement) = &self.prepared[kind][index] {
            return Ok(statement.clone());
        }
        let texts = [&self.texts.select, &self.texts.update, &self.texts.scan][kind];
        let prepared =
            self.link.prep(&texts[index]).map_err(|error| Self::trouble("prepare", &error))?;
        self.prepared[kind][index] = Some(prepared.clone());
        Ok(prepared)
    }

    fn count(&mut self, statement: &Statement, keys: Vec<Value>) -> Result<u64, Trouble> {
        let counted = self.link.exec_first(statement, keys);
        let counted: Option<u64> = counted.map_err(|error| Self::trouble("select", &error))?;
        Ok(counted.unwrap_or_default())
    }
}

impl Link for Session {
    fn member(&self) -> Option<Member> {
        self.member
    }

    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        let select = self.prepared(0, schema)?;
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
        let failed = |error: mysql::Error| Self::trouble("update", &error);
        let update = self.prepared(1, schema)?;
        self.link.query_drop("BEGIN").map_err(failed)?;
        let columns = change.columns().map(|column| Value::Bytes(column.to_vec()));
        let keys = [first_key, first_key + u64::from(rows) - 1].map(Value::UInt);
        let values: Vec<Value> = columns.chain(keys).collect();
        self.link.exec_drop(&update, values).map_err(failed)?;
        Ok(self.link.affected_rows())
    }

    fn commit(&mut self) -> Result<(), Trouble> {
        self.link.query_drop("COMMIT").map_err(|error| Self::trouble("commit", &error))
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.link.query_drop("ROLLBACK").map_err(|error| statement("roll back", &error))
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Trouble> {
        let scan = self.prepared(2, schema)?;
        self.count(&scan, Vec::new())
    }
}
