//! Large objects named by the subset's rows in a column of type `oid`, or of a domain over it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use blockstone_sys::held::HeldDir;
use postgres::error::SqlState;

use super::PostgresSource;
use super::rows::io_error;
use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};
use crate::sql::with;
use crate::subset::manifest::file_error;
use crate::subset::manifest::{DataFile, LargeObjects};

const PIECES: &str = include_str!("../../../sql/subset/postgres/large_objects.sql");
const FILE: &str = "large-objects.copy";
const BATCH: usize = 1000;
const WHAT: &str = "read the large objects";

/// The table for loading pieces, and the statements that build objects from them.
pub const TABLE: &str = "CREATE TEMPORARY TABLE blockstone_large_object \
    (oid oid, at bigint, data bytea) ON COMMIT DROP";
pub const COPIED: &str = "pg_temp.blockstone_large_object FROM";
pub const MAKE: &str = "SELECT pg_catalog.lo_from_bytea(oid, data) \
    FROM pg_temp.blockstone_large_object WHERE at = 0; \
    SELECT pg_catalog.lo_put(oid, at, data) FROM pg_temp.blockstone_large_object WHERE at > 0";

/// Collects the numbers in these columns from lines of COPY.
fn numbers(file: File, columns: &[usize], found: &mut BTreeSet<u32>) -> io::Result<()> {
    let mut input = BufReader::new(file);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let fields: Vec<&[u8]> =
            line.strip_suffix(b"\n").unwrap_or(&line).split(|&byte| byte == b'\t').collect();
        let field = |&at: &usize| std::str::from_utf8(fields.get(at)?).ok()?.parse::<u32>().ok();
        found.extend(columns.iter().filter_map(field));
        line.clear();
    }
    Ok(())
}

impl PostgresSource<'_> {
    /// Writes the objects named by the rows in `files`, each given with its table, to the same
    /// directory `data`.
    pub fn large_objects(
        &mut self,
        data: &HeldDir,
        files: &[(usize, DataFile)],
    ) -> Result<Option<LargeObjects>, SqlError> {
        let any = "SELECT EXISTS (SELECT FROM pg_largeobject_metadata)";
        let row = self.link.query_one(any, &[]).during("look for large objects")?;
        if !value::<bool>(&row, 0)? {
            return Ok(None);
        }
        let mut named = BTreeSet::new();
        for (table, file) in files {
            let types = self.catalogue.tables[*table].columns.iter();
            let types = types.zip(&self.known.tables[*table].types);
            let is_one = |name: &String| {
                types.clone().any(|(column, kind)| column.name == *name && kind.name == "oid")
            };
            let columns: Vec<usize> =
                (0..file.columns.len()).filter(|&at| is_one(&file.columns[at])).collect();
            if !columns.is_empty() {
                let read = data.read(Path::new(&file.file));
                let read = read.and_then(|file| numbers(file, &columns, &mut named));
                read.map_err(|error| file_error(&data.path().join(&file.file), error))?;
            }
        }
        let (path, named) = (data.path().join(FILE), named.into_iter().collect::<Vec<_>>());
        let mut output =
            data.create_new(Path::new(FILE)).map_err(|error| file_error(&path, error))?;
        let mut objects = LargeObjects { file: FILE.to_owned(), objects: 0, bytes: 0 };
        for batch in named.chunks(BATCH) {
            self.told("large objects", objects.objects)?;
            let oids = batch.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let query =
                format!("COPY ({}) TO STDOUT", with(PIECES, &[("oids", &format!("{{{oids}}}"))]));
            let reader = self.link.copy_out(&query).during(WHAT)?;
            for line in BufReader::new(reader).split(b'\n') {
                let line = line.map_err(|error| refused(&error))?;
                let is_first = line.split(|&byte| byte == b'\t').nth(1) == Some(b"0");
                objects.objects += u64::from(is_first);
                objects.bytes += line.len() as u64 + 1;
                let written = output.write_all(&line).and_then(|()| output.write_all(b"\n"));
                written.map_err(|error| file_error(&path, error))?;
            }
        }
        output.sync_data().map_err(|error| file_error(&path, error))?;
        Ok(Some(objects).filter(|it| it.objects > 0))
    }
}

fn refused(error: &io::Error) -> SqlError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<postgres::Error>());
    let denied = inner.and_then(postgres::Error::code) == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
    match io_error(WHAT, error) {
        SqlError::Statement { what, why, .. } if denied => SqlError::Statement {
            what,
            why,
            hint: "GRANT SELECT ON LARGE OBJECT … TO this user, or name their owner".to_owned(),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_these_columns_are_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\t17\t5\n\\N\t\\N\t6\nb\t4294967296\t7\nc\n").unwrap();
        let mut found = BTreeSet::new();
        numbers(file.reopen().unwrap(), &[1, 2], &mut found).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [5, 6, 7, 17]);
    }
}
