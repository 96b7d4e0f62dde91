//! A table in memory, stored by column, as buffered by a recorder and returned to a reader.

use std::collections::HashMap;

use blockstone_base::column::Kind;

/// Nanoseconds since the recording began.
pub(crate) const T_NS: &str = "t_ns";
/// Index into the manifest's phases, −1 between them.
pub(crate) const PHASE: &str = "phase";
/// Object that a row of a series describes.
pub(crate) const OBJECT: &str = "object";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A 64-bit number; empty cells allowed.
    Number,
    /// A 32-bit number, never empty.
    Index,
    /// True or false, never empty.
    Flag,
    /// UTF-8 text; empty cells allowed.
    Text,
    /// Bytes; cells are never empty.
    Bytes,
}

/// Type of the cells in a probe's column.
pub(crate) fn column_type(kind: Kind) -> Type {
    if kind == Kind::State { Type::Text } else { Type::Number }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: String,
    pub kind: Type,
    pub nullable: bool,
}

impl Field {
    pub fn new(name: &str, kind: Type) -> Self {
        Self { name: name.to_owned(), kind, nullable: false }
    }

    pub fn nullable(name: &str, kind: Type) -> Self {
        Self { name: name.to_owned(), kind, nullable: true }
    }
}

/// Code of an empty text cell.
const NO_WORD: u32 = u32::MAX;

/// Texts as codes for the distinct ones: object names and states repeat in every row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    codes: Vec<u32>,
    words: Vec<String>,
    code_of: HashMap<String, u32>,
}

impl Texts {
    pub fn push(&mut self, text: Option<&str>) {
        let code = text.map_or(NO_WORD, |text| self.intern(text));
        self.codes.push(code);
    }

    /// Repeats the text of the last row.
    pub fn push_again(&mut self) {
        self.codes.extend(self.codes.last().copied());
    }

    pub fn get(&self, row: usize) -> Option<&str> {
        self.words.get(self.codes[row] as usize).map(String::as_str)
    }

    /// Returns the code of a text, if it occurs in the column.
    pub fn code(&self, text: &str) -> Option<u32> {
        self.code_of.get(text).copied()
    }

    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }

    fn intern(&mut self, text: &str) -> u32 {
        if let Some(&code) = self.code_of.get(text) {
            return code;
        }
        let code = self.words.len() as u32;
        self.words.push(text.to_owned());
        self.code_of.insert(text.to_owned(), code);
        code
    }
}

/// 64-bit numbers with empty cells. An empty cell holds 0 in `values`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub values: Vec<i64>,
    pub valid: Vec<bool>,
}

impl Numbers {
    pub fn push(&mut self, value: Option<i64>) {
        self.values.push(value.unwrap_or(0));
        self.valid.push(value.is_some());
    }

    pub fn get(&self, row: usize) -> Option<i64> {
        self.valid[row].then(|| self.values[row])
    }
}

pub(crate) enum Value<'a> {
    Number(i64),
    Index(i32),
    Flag(bool),
    Text(&'a str),
    Bytes(Vec<u8>),
    /// An empty cell of a number or a text.
    Empty,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Number(Numbers),
    Index(Vec<i32>),
    Flag(Vec<bool>),
    Text(Texts),
    Bytes(Vec<Vec<u8>>),
}

impl Data {
    pub fn new(kind: Type) -> Self {
        match kind {
            Type::Number => Self::Number(Numbers::default()),
            Type::Index => Self::Index(Vec::new()),
            Type::Flag => Self::Flag(Vec::new()),
            Type::Text => Self::Text(Texts::default()),
            Type::Bytes => Self::Bytes(Vec::new()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Number(numbers) => numbers.values.len(),
            Self::Index(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Text(texts) => texts.codes.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Number(cells), Value::Number(value)) => cells.push(Some(value)),
            (Self::Number(cells), Value::Empty) => cells.push(None),
            (Self::Index(cells), Value::Index(value)) => cells.push(value),
            (Self::Flag(cells), Value::Flag(value)) => cells.push(value),
            (Self::Text(cells), Value::Text(value)) => cells.push(Some(value)),
            (Self::Text(cells), Value::Empty) => cells.push(None),
            (Self::Bytes(cells), Value::Bytes(value)) => cells.push(value),
            _ => unreachable!("rows are checked against the fields before they are pushed"),
        }
    }

    fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => {
                a.values.extend_from_slice(&b.values);
                a.valid.extend_from_slice(&b.valid);
            }
            (Self::Index(a), Self::Index(b)) => a.extend_from_slice(b),
            (Self::Flag(a), Self::Flag(b)) => a.extend_from_slice(b),
            (Self::Text(a), Self::Text(b)) => {
                let codes: Vec<u32> = b.words.iter().map(|word| a.intern(word)).collect();
                let translate = |&code: &u32| codes.get(code as usize).copied().unwrap_or(NO_WORD);
                a.codes.extend(b.codes.iter().map(translate));
            }
            (Self::Bytes(a), Self::Bytes(b)) => a.extend_from_slice(b),
            _ => unreachable!("tables are only appended to tables of the same fields"),
        }
    }

    /// Returns the cells of these rows, in this order.
    fn picked(&self, rows: &[u32]) -> Self {
        fn pick<T: Clone>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&row| values[row as usize].clone()).collect()
        }
        match self {
            Self::Number(numbers) => Self::Number(Numbers {
                values: pick(&numbers.values, rows),
                valid: pick(&numbers.valid, rows),
            }),
            Self::Index(values) => Self::Index(pick(values, rows)),
            Self::Flag(values) => Self::Flag(pick(values, rows)),
            Self::Text(texts) => Self::Text(Texts {
                codes: pick(&texts.codes, rows),
                words: texts.words.clone(),
                code_of: texts.code_of.clone(),
            }),
            Self::Bytes(values) => Self::Bytes(pick(values, rows)),
        }
    }
}

/// A table: its fields and, in the same order, their cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub fields: Vec<Field>,
    pub columns: Vec<Data>,
}

impl Table {
    pub fn new(fields: Vec<Field>) -> Self {
        let columns = fields.iter().map(|field| Data::new(field.kind)).collect();
        Self { fields, columns }
    }

    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Data::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a row: one value of the right type for each field.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = Value<'a>>) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    pub fn append(&mut self, other: &Self) {
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            mine.append(theirs);
        }
    }

    /// Returns a table of the given rows.
    pub fn picked(&self, rows: &[u32]) -> Self {
        let columns = self.columns.iter().map(|column| column.picked(rows)).collect();
        Self { fields: self.fields.clone(), columns }
    }

    pub fn clear(&mut self) {
        self.columns = self.fields.iter().map(|field| Data::new(field.kind)).collect();
    }

    /// Returns the instant of each row of a series.
    pub fn instants(&self) -> impl Iterator<Item = u64> {
        let instants = match self.column(T_NS) {
            Some(Data::Number(numbers)) => numbers.values.as_slice(),
            _ => &[],
        };
        instants.iter().map(|&t| u64::try_from(t).unwrap_or(0))
    }

    pub fn column(&self, name: &str) -> Option<&Data> {
        let index = self.fields.iter().position(|field| field.name == name)?;
        self.columns.get(index)
    }

    /// Sorts the rows of a series by phase, object and time; rows of other tables and rows with
    /// equal keys keep their order. Consecutive values of one object's counter then differ by
    /// little: the encoding on disk and every look-up depend on this order.
    pub fn sort(&mut self) {
        let keys = (self.column(PHASE), self.column(OBJECT), self.column(T_NS));
        let (Some(Data::Index(phases)), Some(Data::Text(objects)), Some(Data::Number(instants))) =
            keys
        else {
            return;
        };
        let key = |row: u32| {
            let row = row as usize;
            (phases[row], objects.codes[row], instants.values[row])
        };
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        if order.is_sorted_by_key(|&row| key(row)) {
            return;
        }
        order.sort_by_key(|&row| key(row));
        for column in &mut self.columns {
            *column = column.picked(&order);
        }
    }
}
