//! What differs between the databases whose servers are cells.

use std::ops::ControlFlow;

use blockstone_target::SqlError;
use blockstone_target::cells::{Cells, CellsSpec, GoOn, Moved, Session};
use blockstone_target::shards::Shards;

use super::query::{self, Query};
use super::{CHUNK, Settings};
use crate::cards::{Cards, SPAN_S, TABLE, sql_columns};

/// A database whose servers can be cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    Postgres,
    ClickHouse,
}

impl Product {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::ClickHouse => "ClickHouse",
        }
    }

    pub(super) fn start(
        self,
        spec: &CellsSpec,
        go_on: &mut GoOn<'_>,
    ) -> Result<Box<dyn Engine>, SqlError> {
        Ok(match self {
            Self::Postgres => Box::new(Cells::start(spec, go_on)?),
            Self::ClickHouse => Box::new(Shards::start(spec, go_on)?),
        })
    }
}

/// A host and its cells.
pub(super) trait Engine {
    fn release(&self) -> &str;

    /// Why its sockets cannot be compared with an interface; none if they can.
    fn not_apart(&self) -> Option<&'static str>;

    /// Spreads the table over the first `count` cells, by time, and names it to the host; `before`
    /// had it until now. Returns the size of its files in bytes.
    fn load(
        &mut self,
        settings: &Settings,
        count_before: (u32, u32),
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<u64, SqlError>;

    fn asker(&mut self, count: u32) -> Result<Box<dyn Asker + '_>, SqlError>;
}

/// A session of the host with connections to its cells.
pub(super) trait Asker {
    fn ask(
        &mut self,
        asked: (Query, bool),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Moved, SqlError>;

    /// What the host sends to the first cell.
    fn remote(&mut self, asked: (Query, bool)) -> Result<String, SqlError>;
}

/// Rows of the `at`th of `count` parts by time, in the order of time; `plain` numbers have no zeros
/// before them.
fn part<'a>(
    (cards, plain): (&'a Cards, bool),
    (at, count): (u64, u64),
    go_on: &'a mut dyn FnMut(f64) -> bool,
) -> impl FnMut(&mut Vec<u8>) -> ControlFlow<bool> + 'a {
    let bound = |at: u64| cards.first_since(at * SPAN_S / count);
    let (mut next, end) = (bound(at), bound(at + 1));
    move |chunk| {
        while chunk.len() < CHUNK && next < end {
            cards.row(next).write('\t', chunk);
            if plain {
                without_zeros(chunk);
            }
            next += 1;
        }
        if !go_on(next as f64 / cards.rows() as f64) {
            return ControlFlow::Break(false);
        }
        if next < end { ControlFlow::Continue(()) } else { ControlFlow::Break(true) }
    }
}

/// Of the last number of the last line: ClickHouse takes a zero for all of a number.
fn without_zeros(chunk: &mut Vec<u8>) {
    let at = chunk.iter().rposition(|byte| *byte == b'\t').map_or(0, |tab| tab + 1);
    while at + 2 < chunk.len() && chunk[at] == b'0' {
        chunk.remove(at);
    }
}

impl Engine for Cells {
    fn release(&self) -> &str {
        self.release()
    }

    fn not_apart(&self) -> Option<&'static str> {
        self.not_apart()
    }

    fn load(
        &mut self,
        settings: &Settings,
        (count, before): (u32, u32),
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<u64, SqlError> {
        for at in 0..before {
            self.on_cell(at as usize, &format!("DROP TABLE {TABLE}"))?;
        }
        let mut bytes = 0;
        for at in 0..u64::from(count) {
            let mut rows = part((&settings.cards, false), (at, u64::from(count)), go_on);
            bytes += self.fill(at as usize, (TABLE, &sql_columns()), &mut rows)?.1;
        }
        self.on_host(&query::host_tables(count))?;
        Ok(bytes)
    }

    fn asker(&mut self, count: u32) -> Result<Box<dyn Asker + '_>, SqlError> {
        Ok(Box::new(OfPostgres { session: self.session(count as usize)?, cells: count }))
    }
}

struct OfPostgres<'a> {
    session: Session<'a>,
    cells: u32,
}

impl Asker for OfPostgres<'_> {
    fn ask(
        &mut self,
        (query, pushdown): (Query, bool),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Moved, SqlError> {
        self.session.ask(&query.sql(pushdown, self.cells), go_on)
    }

    fn remote(&mut self, (query, pushdown): (Query, bool)) -> Result<String, SqlError> {
        Ok(query::remote(&self.session.plan(&query.sql(pushdown, self.cells))?))
    }
}

impl Engine for Shards {
    fn release(&self) -> &str {
        self.release()
    }

    fn not_apart(&self) -> Option<&'static str> {
        None
    }

    fn load(
        &mut self,
        settings: &Settings,
        (count, before): (u32, u32),
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<u64, SqlError> {
        for at in 0..before {
            self.on_shard(at as usize, &format!("DROP TABLE {TABLE}"))?;
        }
        let columns = query::shard_columns();
        let create = format!("({columns}) ENGINE = MergeTree ORDER BY purchase_dt");
        // Months would be parts of their own.
        let create = create.replace(" ORDER BY", " PARTITION BY tuple() ORDER BY");
        let mut bytes = 0;
        for at in 0..u64::from(count) {
            let mut rows = part((&settings.cards, true), (at, u64::from(count)), go_on);
            bytes += self.fill(at as usize, (TABLE, &create), &mut rows)?;
        }
        self.on_host(&format!(
            "CREATE TABLE {TABLE}_{count} ({columns}) ENGINE = Distributed(cells_{count}, \
             default, {TABLE})"
        ))?;
        Ok(bytes)
    }

    fn asker(&mut self, count: u32) -> Result<Box<dyn Asker + '_>, SqlError> {
        let mut asker = OfClickHouse { shards: self, count };
        // Connections are made with the first statement, and kept.
        asker.ask((Query::Count, true), &mut || true)?;
        Ok(Box::new(asker))
    }
}

struct OfClickHouse<'a> {
    shards: &'a mut Shards,
    count: u32,
}

impl Asker for OfClickHouse<'_> {
    fn ask(
        &mut self,
        (query, pushdown): (Query, bool),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Moved, SqlError> {
        let (settings, text) = query.of_shards(pushdown, self.count);
        self.shards.ask(self.count as usize, (settings, &text), go_on)
    }

    fn remote(&mut self, (query, pushdown): (Query, bool)) -> Result<String, SqlError> {
        let (settings, text) = query.of_shards(pushdown, self.count);
        self.shards.sent(settings, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_have_no_zeros_before_them() {
        for (line, plain) in [("a\t00501\n", "a\t501\n"), ("\t0\n", "\t0\n"), ("\t98\n", "\t98\n")]
        {
            let mut chunk = line.as_bytes().to_vec();
            without_zeros(&mut chunk);
            assert_eq!(chunk, plain.as_bytes());
        }
    }
}
