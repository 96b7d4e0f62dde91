//! A session: statements that are prepared once and sent again and again.

use postgres::error::SqlState;
use postgres::{Client, Statement};

use super::statement;
use crate::sql::content::Change;
use crate::sql::error::SqlError;
use crate::sql::{Link, Member, Texts, Trouble};

pub struct Session {
    pub(super) link: Client,
    pub(super) member: Option<Member>,
    pub(super) texts: Texts,
    /// Select, update and scan of each schema, once sent.
    pub(super) prepared: [Vec<Option<Statement>>; 3],
    pub(super) can_hand_over: bool,
}

impl Session {
    fn trouble(what: &str, error: &postgres::Error) -> Trouble {
        match error.code() {
            Some(code)
                if *code == SqlState::T_R_DEADLOCK_DETECTED
                    || *code == SqlState::T_R_SERIALIZATION_FAILURE =>
            {
                Trouble::Again
            }
            _ => Trouble::Failed(statement(what, error)),
        }
    }

    fn prepared(&mut self, kind: usize, schema: u32) -> Result<Statement, Trouble> {
        let index = schema as usize;
        if let Some(statement) = &self.prepared[kind][index] {
            return Ok(statement.clone());
        }
        let texts = [&self.texts.select, &self.texts.update, &self.texts.scan][kind];
        let prepared =
            self.link.prepare(&texts[index]).map_err(|error| Self::trouble("prepare", &error))?;
        self.prepared[kind][index] = Some(prepared.clone());
        Ok(prepared)
    }
}

impl Link for Session {
    const HOLDS_COUNTS: bool = true;

    fn member(&self) -> Option<Member> {
        self.member
    }

    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        let select = self.prepared(0, schema)?;
        let (first, last) = (first_key as i64, first_key as i64 + i64::from(rows) - 1);
        let row = self
            .link
            .query_one(&select, &[&first, &last])
            .map_err(|error| Self::trouble("select", &error))?;
        Ok(row.get::<_, i64>(0) as u64)
    }

    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble> {
        let failed = |error: postgres::Error| Self::trouble("update", &error);
        let update = self.prepared(1, schema)?;
        self.link.batch_execute("BEGIN").map_err(failed)?;
        let (first, last) = (first_key as i64, first_key as i64 + i64::from(rows) - 1);
        let columns: Vec<&[u8]> = change.columns().collect();
        let mut values: Vec<&(dyn postgres::types::ToSql + Sync)> = vec![&first, &last];
        values.extend(columns.iter().map(|column| column as &(dyn postgres::types::ToSql + Sync)));
        self.link.execute(&update, &values).map_err(failed)
    }

    fn commit(&mut self) -> Result<(), Trouble> {
        self.link.batch_execute("COMMIT").map_err(|error| Self::trouble("commit", &error))
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.link.batch_execute("ROLLBACK").map_err(|error| statement("roll back", &error))
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Trouble> {
        let scan = self.prepared(2, schema)?;
        let row = self.link.query_one(&scan, &[]).map_err(|error| Self::trouble("scan", &error))?;
        Ok(row.get::<_, i64>(0) as u64)
    }

    fn hand_over_counts(&mut self) -> Result<(), SqlError> {
        if !self.can_hand_over {
            return Ok(());
        }
        let asked = self.link.batch_execute("SELECT pg_stat_force_next_flush()");
        asked.map_err(|error| statement("hand over statistics", &error))
    }
}
