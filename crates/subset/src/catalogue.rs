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
    /// Columns that are written as NULL in all rows.
    pub nulled: Vec<usize>,
    /// Partitions in each of which a row is looked up by key; 0 if there are none.
    pub parts: usize,
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
    /// Either all of its columns are NULL or none is: `MATCH FULL`.
    pub is_full: bool,
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
    #[error("{what}: {name} is ambiguous")]
    #[hint("name it with its table, as {example}")]
    AmbiguousKey { what: String, name: String, example: String },
    #[error("{what}: {table} has no column {name}")]
    #[hint("its columns are {columns}")]
    NoColumn { what: String, table: String, name: String, columns: String },
    #[error("{what}: there is no key {name}")]
    #[hint("keys are named as in {example}; the report lists them")]
    NoKey { what: String, name: String, example: String },
    #[error("{what}: the key {name} of {table} cannot be NULL: {why}")]
    #[hint("name a key whose columns may be NULL and belong to no other key")]
    NotNull { what: String, name: String, table: String, why: String },
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

    /// Finds a key by its name, which may follow that of its table.
    pub fn find_key(&self, name: &str, what: &str) -> Result<usize, CatalogueError> {
        let full = |key: &ForeignKey| {
            let table = self.tables.get(key.table).map_or("", |table| &table.name);
            format!("{table}.{}", key.name)
        };
        let is_it = |key: &ForeignKey| {
            let full = full(key);
            let short = full.split_once('.').map_or("", |(_, short)| short);
            key.name == name || full == name || short == name
        };
        let mut found = (0..self.keys.len()).filter(|&at| is_it(&self.keys[at]));
        let example = |at: Option<usize>| {
            let known = at.and_then(|at| self.keys.get(at)).or(self.keys.first());
            known.map_or_else(|| "public.orders.orders_customer_fkey".to_owned(), full)
        };
        let (what, name) = (what.to_owned(), name.to_owned());
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(CatalogueError::NoKey { what, name, example: example(None) }),
            (first, Some(_)) => {
                let example = example(first);
                Err(CatalogueError::AmbiguousKey { what, name, example })
            }
        }
    }

    /// Returns the columns that make a key reference nothing if they are NULL, or why none can be.
    /// The keys `nulled` are NULL as well.
    pub fn null_columns(&self, key: usize, nulled: &[usize]) -> Result<Vec<usize>, String> {
        let this = &self.keys[key];
        let is_shared = |column: usize| {
            self.keys.iter().enumerate().any(|(at, other)| {
                let is_followed = at != key && !nulled.contains(&at);
                let is_own = other.table == this.table && other.columns.contains(&column);
                let is_target = other.references == this.table;
                is_followed && is_own || is_target && other.referenced.contains(&column)
            })
        };
        let (mut free, mut why) = (Vec::new(), String::new());
        for &at in &this.columns {
            let column = &self.tables[this.table].columns[at];
            let reason = match () {
                () if column.generated => "is computed",
                () if !column.nullable => "is NOT NULL",
                () if is_shared(at) => "belongs to another key as well",
                () => {
                    free.push(at);
                    continue;
                }
            };
            why = format!("{} {reason}", column.name);
        }
        if free.is_empty() || this.is_full && free.len() < this.columns.len() {
            return Err(why);
        }
        Ok(free)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Orders of tenants: (tenant, customer) and (tenant, old) reference customers, (tenant, next)
    /// other orders, and code a table of codes under `MATCH FULL`.
    fn catalogue() -> Catalogue {
        let column = |(name, nullable): (&str, bool)| Column {
            name: name.into(),
            nullable,
            ..Column::default()
        };
        let table = |name: &str, columns: &[(&str, bool)]| Table {
            name: name.into(),
            columns: columns.iter().copied().map(column).collect(),
            identity: vec![0, 1],
            ..Table::default()
        };
        let orders = [
            ("tenant", false),
            ("id", false),
            ("customer", false),
            ("old", true),
            ("next", true),
            ("code", true),
            ("kind", false),
        ];
        let key = |name: &str, columns: &[usize], references| ForeignKey {
            name: name.into(),
            columns: columns.into(),
            references,
            referenced: vec![0, 1],
            ..ForeignKey::default()
        };
        let full = ForeignKey { is_full: true, ..key("code", &[5, 6], 2) };
        Catalogue {
            tables: vec![
                table("public.orders", &orders),
                table("public.customers", &[("tenant", false), ("id", false)]),
                table("public.codes", &[("kind", false), ("id", false)]),
            ],
            keys: vec![
                key("customer", &[0, 2], 1),
                key("old", &[0, 3], 1),
                key("next", &[0, 4], 0),
                full,
                ForeignKey { referenced: vec![0, 1], ..key("old_too", &[0, 3], 1) },
            ],
        }
    }

    #[test]
    fn columns_of_a_key_are_null_if_no_other_key_needs_them() {
        let catalogue = catalogue();
        assert_eq!(catalogue.null_columns(0, &[]), Err("customer is NOT NULL".into()));
        assert_eq!(
            catalogue.null_columns(1, &[]),
            Err("old belongs to another key as well".into())
        );
        assert_eq!(catalogue.null_columns(1, &[1, 4]), Ok(vec![3]));
        assert_eq!(catalogue.null_columns(2, &[]), Ok(vec![4]));
        assert_eq!(catalogue.null_columns(3, &[]), Err("kind is NOT NULL".into()));
    }

    #[test]
    fn keys_are_found_by_their_names() {
        let mut catalogue = catalogue();
        for name in ["next", "orders.next", "public.orders.next"] {
            assert_eq!(catalogue.find_key(name, "subset"), Ok(2));
        }
        let missing = catalogue.find_key("none", "subset").unwrap_err();
        assert!(missing.to_string().contains("no key none"), "{missing}");
        catalogue.keys[1] = ForeignKey { name: "next".into(), table: 1, ..ForeignKey::default() };
        let twice = catalogue.find_key("next", "subset").unwrap_err();
        assert!(twice.to_string().contains("ambiguous"), "{twice}");
        assert_eq!(catalogue.find_key("customers.next", "subset"), Ok(1));
    }
}
