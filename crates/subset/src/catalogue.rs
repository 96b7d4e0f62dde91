//! Tables, their columns and the keys between them.

/// Tables and keys of a source. A key refers to columns by their position in the table's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    pub tables: Vec<Table>,
    pub keys: Vec<ForeignKey>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The name including its schema: `public.orders`.
    pub name: String,
    pub columns: Vec<Column>,
    /// The columns that identify a row: its primary key, or a unique key without NULLs. If empty,
    /// the whole row identifies it.
    pub identity: Vec<usize>,
    /// Primary and unique keys, including the identity.
    pub unique: Vec<Vec<usize>>,
    /// Number of rows, from the source's statistics, like `bytes`.
    pub estimated_rows: Option<u64>,
    pub bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// The type as the source writes it: `numeric(10,2)`.
    pub type_name: String,
    pub nullable: bool,
    /// Computed from other columns, and therefore not written.
    pub generated: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignKey {
    pub name: String,
    pub table: usize,
    pub columns: Vec<usize>,
    pub references: usize,
    pub referenced: Vec<usize>,
    /// Declared by the user; the source does not know it.
    pub is_virtual: bool,
    /// The source has validated it for all rows.
    pub is_valid: bool,
    /// Condition for a row to have the key; `None` for all rows.
    pub when: Option<When>,
}

/// Equality of a column with a value, compared as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    pub column: usize,
    pub is: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, blockstone_base::hint::Hint)]
pub enum CatalogueError {
    #[error("{what}: there is no table {name}")]
    #[hint("tables are named as in {example}")]
    NoTable { what: String, name: String, example: String },
    #[error("{what}: {name} is ambiguous")]
    #[hint("name it with its schema, as {example}")]
    Ambiguous { what: String, name: String, example: String },
    #[error("{what}: {table} has no column {name}")]
    #[hint("its columns are {columns}")]
    NoColumn { what: String, table: String, name: String, columns: String },
    #[error("{what}, line {line}: {why}")]
    #[hint("{hint}")]
    VirtualKey { what: String, line: usize, why: String, hint: &'static str },
    #[error("read the keys: {why}")]
    #[hint("please report it, with the schema of the database")]
    Broken { why: String },
}

impl Catalogue {
    /// Finds a table by its name with its schema, or without it if only one schema has that name.
    pub fn find(&self, name: &str, what: &str) -> Result<usize, CatalogueError> {
        if let Some(found) = self.tables.iter().position(|table| table.name == name) {
            return Ok(found);
        }
        let is_short =
            |table: &Table| table.name.split_once('.').is_some_and(|(_, short)| short == name);
        let mut found = (0..self.tables.len()).filter(|&at| is_short(&self.tables[at]));
        let example = |at: Option<usize>| {
            let known = at.and_then(|at| self.tables.get(at)).or(self.tables.first());
            known.map_or_else(|| "public.orders".to_owned(), |table| table.name.clone())
        };
        let (what, name) = (what.to_owned(), name.to_owned());
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(CatalogueError::NoTable { what, name, example: example(None) }),
            (first, Some(_)) => {
                Err(CatalogueError::Ambiguous { what, name, example: example(first) })
            }
        }
    }

    /// Checks that all positions exist, so that the closure can use them.
    pub fn check(&self) -> Result<(), CatalogueError> {
        let has = |table: usize, columns: &[usize]| {
            let table = self.tables.get(table)?;
            columns.iter().all(|&column| column < table.columns.len()).then_some(())
        };
        let broken = |why: String| Err(CatalogueError::Broken { why });
        for key in &self.keys {
            let sides = has(key.table, &key.columns).zip(has(key.references, &key.referenced));
            if sides.is_none() || key.columns.len() != key.referenced.len() {
                return broken(format!("{} names columns that do not exist", key.name));
            }
            let when = key.when.as_ref().map(|when| [when.column]);
            if when.is_some_and(|column| has(key.table, &column).is_none()) {
                return broken(format!("the condition of {} names no column", key.name));
            }
            if key.columns.is_empty() {
                return broken(format!("{} has no columns", key.name));
            }
        }
        for (at, table) in self.tables.iter().enumerate() {
            if has(at, &table.identity).is_none() {
                return broken(format!("the key of {} names no column", table.name));
            }
        }
        Ok(())
    }

    /// Returns groups of columns, as table and column, that are connected by keys: a value in one
    /// of them occurs in the others of its group. A column without a key is not in any group.
    pub fn connected_columns(&self) -> Vec<Vec<(usize, usize)>> {
        let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
        for key in &self.keys {
            for (&column, &referenced) in key.columns.iter().zip(&key.referenced) {
                let mut group = vec![(key.table, column), (key.references, referenced)];
                let (same, rest): (Vec<_>, Vec<_>) = groups
                    .into_iter()
                    .partition(|known| known.iter().any(|place| group.contains(place)));
                group.extend(same.into_iter().flatten());
                group.sort_unstable();
                group.dedup();
                groups = rest;
                groups.push(group);
            }
        }
        groups.sort();
        groups
    }
}
