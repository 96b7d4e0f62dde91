//! The catalogue of a database's tables and keys.

use std::collections::HashMap;

use crate::postgres::Client;
use blockstone_subset::{Catalogue, Column, ForeignKey, Table};

use super::qualified;
use super::types::ColumnType;
use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};

const TABLES: &str = include_str!("../../../sql/subset/postgres/tables.sql");
const PARTS: &str = include_str!("../../../sql/subset/postgres/parts.sql");
/// Columns with their types, for tables given by their OIDs.
pub const COLUMNS: &str = include_str!("../../../sql/subset/postgres/columns.sql");
const UNIQUE: &str = include_str!("../../../sql/subset/postgres/unique.sql");
const KEYS: &str = include_str!("../../../sql/subset/postgres/keys.sql");
/// Maximum number of partitions of a table, for which a locator has room.
const PARTS_MAX: usize = 1 << 15;

/// Table properties that only PostgreSQL's statements need, by position in the catalogue.
pub struct Known {
    pub tables: Vec<KnownTable>,
    /// OIDs of tables and their partitions.
    pub relations: Vec<u32>,
}

pub struct KnownTable {
    oid: u32,
    pub schema: String,
    pub name: String,
    pub partitioned: bool,
    is_heap: bool,
    pub parts: Vec<TableRelation>,
    /// Type of each column.
    pub types: Vec<ColumnType>,
    numbers: Vec<i16>,
}

/// A relation that holds rows: the table itself, or a partition.
pub struct TableRelation {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// Whether the server counts the rows that it reads from it.
    pub is_heap: bool,
}

/// Positions of tables by the OIDs of their relations.
type Places = HashMap<u32, usize>;

pub fn read(link: &mut Client, server: &str) -> Result<(Known, Catalogue), SqlError> {
    let mut known = Known { tables: Vec::new(), relations: Vec::new() };
    let mut catalogue = Catalogue::default();
    let (mut refused, mut hidden) = (Vec::new(), Vec::new());
    for row in link.query(TABLES, &[]).during("list the tables")? {
        let (schema, name): (String, String) = (value(&row, 1)?, value(&row, 2)?);
        if !value::<bool>(&row, 5)? {
            refused.push(qualified(&schema, &name));
        }
        if value::<bool>(&row, 6)? {
            hidden.push(qualified(&schema, &name));
        }
        catalogue.tables.push(Table {
            name: format!("{schema}.{name}"),
            estimated_rows: value::<Option<f64>>(&row, 4)?.map(|rows| rows as u64),
            bytes: value::<Option<i64>>(&row, 7)?.map(|bytes| bytes as u64),
            ..Table::default()
        });
        known.tables.push(KnownTable {
            oid: value(&row, 0)?,
            schema,
            name,
            partitioned: value(&row, 3)?,
            is_heap: value(&row, 8)?,
            parts: Vec::new(),
            types: Vec::new(),
            numbers: Vec::new(),
        });
    }
    if let Some(some) = and_more(&refused) {
        return Err(SqlError::unsuitable(
            server,
            format!("this user may not read {some}"),
            format!("GRANT SELECT ON {} TO this user", refused.join(", ")),
        ));
    }
    let mut places: Places = known.tables.iter().enumerate().map(|(at, it)| (it.oid, at)).collect();
    let mut found = Parts { places: &mut places, hidden: &mut hidden };
    let numbers = read_parts(link, server, &mut known, &mut catalogue, &mut found)?;
    if let Some(some) = and_more(&hidden) {
        return Err(SqlError::unsuitable(
            server,
            format!("row-level security may hide rows of {some} from this user"),
            "name a role with BYPASSRLS, or the owner of tables where it is not forced",
        ));
    }
    known.relations = places.keys().copied().collect();
    read_columns(link, &mut known, &mut catalogue)?;
    read_unique(link, &known, &places, &mut catalogue)?;
    read_keys(link, &known, (&places, &numbers), &mut catalogue)?;
    Ok((known, catalogue))
}

/// Returns the first of some tables, with the number of the others; `None` if there are none.
fn and_more(names: &[String]) -> Option<String> {
    let first = names.first()?;
    Some(match names.len() {
        1 => first.clone(),
        2 => format!("{first} and one more table"),
        count => format!("{first} and {} more tables", count - 1),
    })
}

fn oids(known: &Known) -> Vec<u32> {
    known.tables.iter().map(|table| table.oid).collect()
}

/// Columns of partitions by number, because a key may be declared on a partition.
type Numbers = HashMap<u32, HashMap<i16, String>>;

/// Facts on partitions.
struct Parts<'a> {
    places: &'a mut Places,
    /// Relations with rows that row-level security may hide.
    hidden: &'a mut Vec<String>,
}

fn read_parts(
    link: &mut Client,
    server: &str,
    known: &mut Known,
    catalogue: &mut Catalogue,
    found: &mut Parts<'_>,
) -> Result<Numbers, SqlError> {
    let roots: Vec<u32> =
        known.tables.iter().filter(|table| table.partitioned).map(|table| table.oid).collect();
    let mut partitions = Vec::new();
    for row in link.query(PARTS, &[&roots]).during("list the partitions")? {
        let (root, oid): (u32, u32) = (value(&row, 0)?, value(&row, 1)?);
        let (schema, name): (String, String) = (value(&row, 2)?, value(&row, 3)?);
        let Some(&at) = found.places.get(&root) else { continue };
        found.places.insert(oid, at);
        partitions.push(oid);
        if !value::<bool>(&row, 7)? {
            continue;
        }
        if !value::<bool>(&row, 4)? {
            return Err(SqlError::unsuitable(
                server,
                format!("the partition {} is a foreign table", qualified(&schema, &name)),
                "detach it, or name the server that has its rows",
            ));
        }
        if value::<bool>(&row, 8)? {
            found.hidden.push(qualified(&schema, &name));
        }
        let (rows, bytes): (Option<f64>, i64) = (value(&row, 5)?, value(&row, 6)?);
        let table = &mut catalogue.tables[at];
        let sum = table.bytes.unwrap_or(0).saturating_add(bytes as u64);
        table.bytes = Some(sum);
        table.estimated_rows = rows.map(|rows| table.estimated_rows.unwrap_or(0) + rows as u64);
        let is_heap = value(&row, 9)?;
        known.tables[at].parts.push(TableRelation { oid, schema, name, is_heap });
    }
    for (table, entry) in known.tables.iter_mut().zip(&mut catalogue.tables) {
        entry.parts = table.parts.len();
        entry.bytes.get_or_insert(0);
        if !table.partitioned {
            table.parts.push(TableRelation {
                oid: table.oid,
                schema: table.schema.clone(),
                name: table.name.clone(),
                is_heap: table.is_heap,
            });
        }
        if table.parts.len() > PARTS_MAX {
            return Err(SqlError::unsuitable(
                server,
                format!("{} has {} partitions", entry.name, table.parts.len()),
                format!("up to {PARTS_MAX} are supported"),
            ));
        }
    }
    let mut numbers = Numbers::new();
    for row in link.query(COLUMNS, &[&partitions]).during("list the columns")? {
        let of = numbers.entry(value(&row, 0)?).or_default();
        of.insert(value(&row, 1)?, value(&row, 2)?);
    }
    Ok(numbers)
}

fn read_columns(
    link: &mut Client,
    known: &mut Known,
    catalogue: &mut Catalogue,
) -> Result<(), SqlError> {
    let own: Places = known.tables.iter().enumerate().map(|(at, it)| (it.oid, at)).collect();
    for row in link.query(COLUMNS, &[&oids(known)]).during("list the columns")? {
        let Some(&at) = own.get(&value::<u32>(&row, 0)?) else { continue };
        known.tables[at].numbers.push(value(&row, 1)?);
        known.tables[at].types.push(ColumnType::of(&row)?);
        catalogue.tables[at].columns.push(Column {
            name: value(&row, 2)?,
            type_name: value(&row, 3)?,
            nullable: !value::<bool>(&row, 4)?,
            generated: value(&row, 5)?,
        });
    }
    Ok(())
}

/// Returns the positions of columns by number; `None` if one is not a user column.
fn positions(table: &KnownTable, numbers: &[i16]) -> Option<Vec<usize>> {
    let position = |number: &i16| table.numbers.iter().position(|known| known == number);
    numbers.iter().map(position).collect()
}

fn read_unique(
    link: &mut Client,
    known: &Known,
    places: &Places,
    catalogue: &mut Catalogue,
) -> Result<(), SqlError> {
    for row in link.query(UNIQUE, &[&oids(known)]).during("list the unique keys")? {
        let Some(&at) = places.get(&value::<u32>(&row, 0)?) else { continue };
        let numbers: Vec<i16> = value(&row, 1)?;
        let Some(columns) = positions(&known.tables[at], &numbers) else { continue };
        let table = &mut catalogue.tables[at];
        let is_whole = columns.iter().all(|&column| !table.columns[column].nullable);
        if table.identity.is_empty() && is_whole && !columns.is_empty() {
            table.identity.clone_from(&columns);
        }
        table.unique.push(columns);
    }
    Ok(())
}

fn read_keys(
    link: &mut Client,
    known: &Known,
    (places, numbers): (&Places, &Numbers),
    catalogue: &mut Catalogue,
) -> Result<(), SqlError> {
    for row in link.query(KEYS, &[]).during("list the foreign keys")? {
        let (child, parent): (u32, u32) = (value(&row, 1)?, value(&row, 3)?);
        // Of tables of extensions, which are not taken, or of the temporary ones of a session.
        let (Some(&table), Some(&references)) = (places.get(&child), places.get(&parent)) else {
            continue;
        };
        // Columns of a partition are found by their names in the whole table.
        let side = |oid: u32, at: usize, wanted: &[i16]| match numbers.get(&oid) {
            Some(names) if known.tables[at].oid != oid => {
                let columns = &catalogue.tables[at].columns;
                let position = |number: &i16| {
                    let name = names.get(number)?;
                    columns.iter().position(|column| column.name == *name)
                };
                wanted.iter().map(position).collect::<Option<Vec<_>>>()
            }
            _ => positions(&known.tables[at], wanted),
        };
        let name: String = value(&row, 0)?;
        let (mut own, mut other): (Vec<i16>, Vec<i16>) = (value(&row, 2)?, value(&row, 4)?);
        if value::<bool>(&row, 6)? {
            // Several rows together may cover a period: all with the same other columns are taken.
            own.pop();
            other.pop();
        }
        let sides = side(child, table, &own).zip(side(parent, references, &other));
        let Some((columns, others)) = sides.filter(|(columns, _)| !columns.is_empty()) else {
            return Err(SqlError::Statement {
                what: "list the foreign keys".to_owned(),
                why: format!("the columns of {name} are not understood"),
                hint: "please report it, with the schema of its tables".to_owned(),
            });
        };
        // A key of one partition says nothing about the rows of the others.
        let is_of_part = known.tables[table].oid != child || known.tables[references].oid != parent;
        catalogue.keys.push(ForeignKey {
            name,
            table,
            columns,
            references,
            referenced: others,
            is_valid: value::<bool>(&row, 5)? && !is_of_part,
            is_full: value(&row, 7)?,
            ..ForeignKey::default()
        });
    }
    Ok(())
}
