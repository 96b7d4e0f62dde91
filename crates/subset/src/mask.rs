//! Masking that preserves joins: columns connected by foreign keys are masked alike.
//!
//! `hash` permutes the values of a type, under a secret key: equal values stay equal in all columns
//! of a group, different ones stay different, and a value keeps its type, length and form. It hides
//! values, but not their frequencies. `fake` invents, `null` removes.

mod copy_text;
mod fake;
mod hash;
mod kind;
mod permute;
mod rule;

use std::collections::BTreeMap;

pub use fake::Fake;
pub use kind::Kind;
pub use rule::{Given, Method, Pattern, Rule, column_file, file, parse};

use crate::catalogue::Catalogue;
use crate::personal::{self, Personal};
use blockstone_base::hint::Hint;
use copy_text::NULL;
use permute::Keyed;

#[derive(Debug, thiserror::Error, Hint)]
pub enum MaskError {
    #[error("{given}: {why}")]
    #[hint("name columns and methods as in --mask customer.email=fake")]
    Rule { given: String, why: String },
    #[error("{place}: a value is not what hash masks as {kind}")]
    Value { place: String, kind: &'static str },
    #[error("{table}: a row has {found} fields, not {expected}")]
    Fields { table: String, found: usize, expected: usize },
}

impl MaskError {
    fn rule(given: String, why: &str) -> Self {
        Self::Rule { given, why: why.to_owned() }
    }
}

/// Changes rows between reading and writing. Rows are lines of COPY's text format, with the columns
/// of the table that are not generated, in order, without the newline.
pub trait Transform: Send + Sync {
    /// Whether it changes rows of this table.
    fn applies(&self, table: usize) -> bool;

    /// Appends the changed row to `out`, without a newline.
    fn line(&self, table: usize, line: &[u8], out: &mut Vec<u8>) -> Result<(), MaskError>;
}

/// The replacement of the values of a column.
enum Action {
    Hash(Kind),
    Fake(Fake, Option<u32>),
    Values(Vec<String>),
    Null,
}

struct Masked {
    place: String,
    method: &'static str,
    keyed: Keyed,
    action: Action,
}

/// A column as table and position.
type ColumnIndex = (usize, usize);

/// The masked columns of all tables.
pub struct Mask {
    tables: Vec<RowMask>,
}

/// Masks the rows of a table: one field per column that is not generated.
struct RowMask {
    table: String,
    fields: Vec<Option<Masked>>,
}

impl Mask {
    /// The permutations behind `hash`: subsets that share the method and the key mask alike.
    pub const METHOD: &str = "ff1-aes256";

    /// Creates a mask. `key` is secret: anyone who has it can undo `hash`.
    pub fn new(key: &[u8], rules: &[Rule], catalogue: &Catalogue) -> Result<Self, MaskError> {
        let groups = catalogue.connected_columns();
        let alone: BTreeMap<ColumnIndex, &Rule> = chosen(rules, catalogue, &groups)?;
        let mut tables = Vec::with_capacity(catalogue.tables.len());
        for (at, table) in catalogue.tables.iter().enumerate() {
            let mut fields = Vec::with_capacity(table.columns.len());
            for (position, column) in table.columns.iter().enumerate() {
                let place = (at, position);
                let masked = match alone.get(&place) {
                    Some(rule) if column.generated => {
                        let name = name(catalogue, place);
                        let why = format!("{name} is computed: mask what it is computed from");
                        return Err(MaskError::rule(rule.given.clone(), &why));
                    }
                    Some(rule) => Some(masked(key, rule, catalogue, place, &groups)?),
                    None => None,
                };
                if !column.generated {
                    fields.push(masked);
                }
            }
            tables.push(RowMask { table: table.name.clone(), fields });
        }
        Ok(Self { tables })
    }

    /// Returns each masked column and its method.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let all = self.tables.iter().flat_map(|table| table.fields.iter().flatten());
        all.map(|masked| (masked.place.as_str(), masked.method))
    }
}

impl Transform for Mask {
    fn applies(&self, table: usize) -> bool {
        self.tables.get(table).is_some_and(|table| table.fields.iter().any(Option::is_some))
    }

    fn line(&self, table: usize, line: &[u8], out: &mut Vec<u8>) -> Result<(), MaskError> {
        if let Some(rows) = self.tables.get(table) {
            return rows.apply(line, out);
        }
        out.extend(line);
        Ok(())
    }
}

fn name(catalogue: &Catalogue, (table, column): ColumnIndex) -> String {
    let table = catalogue.tables.get(table);
    let column = table.and_then(|table| table.columns.get(column));
    let names = table.zip(column).map(|(table, column)| format!("{}.{}", table.name, column.name));
    names.unwrap_or_default()
}

/// Returns the columns connected with this one, including itself.
fn group_of(groups: &[Vec<ColumnIndex>], place: ColumnIndex) -> Vec<ColumnIndex> {
    groups.iter().find(|group| group.contains(&place)).cloned().unwrap_or_else(|| vec![place])
}

/// Returns the rule of each masked column: its own, or that of a connected column.
fn chosen<'a>(
    rules: &'a [Rule],
    catalogue: &Catalogue,
    groups: &[Vec<ColumnIndex>],
) -> Result<BTreeMap<ColumnIndex, &'a Rule>, MaskError> {
    let mut chosen: BTreeMap<ColumnIndex, &Rule> = BTreeMap::new();
    for rule in rules {
        let mut found = false;
        for (at, table) in catalogue.tables.iter().enumerate() {
            let (schema, short) = table.name.split_once('.').unwrap_or(("", &table.name));
            for (position, column) in table.columns.iter().enumerate() {
                if !rule.pattern.matches(schema, short, &column.name) {
                    continue;
                }
                found = true;
                let place = (at, position);
                let first = *chosen.get(&place).unwrap_or(&rule);
                if first.method != rule.method {
                    let (one, other) = (first.method.name(), rule.method.name());
                    let (name, given) = (name(catalogue, place), &first.given);
                    let why = format!(
                        "{name} or a column that keys connect with it is masked by {given}: \
                         {one} and {other} would break the join"
                    );
                    return Err(MaskError::rule(rule.given.clone(), &why));
                }
                chosen.extend(group_of(groups, place).into_iter().map(|member| (member, first)));
            }
        }
        if !found {
            return Err(MaskError::rule(rule.given.clone(), "there is no such column"));
        }
    }
    Ok(chosen)
}

fn masked(
    key: &[u8],
    rule: &Rule,
    catalogue: &Catalogue,
    place: ColumnIndex,
    groups: &[Vec<ColumnIndex>],
) -> Result<Masked, MaskError> {
    let group = group_of(groups, place);
    let refuse = |why: String| MaskError::rule(rule.given.clone(), &why);
    let action = action(rule, catalogue, place, &group).map_err(refuse)?;
    // The first name in the group: the same whichever column was named in the rule.
    let first = group.iter().map(|member| name(catalogue, *member)).min().unwrap_or_default();
    let (place, method) = (name(catalogue, place), rule.method.name());
    Ok(Masked { place, method, keyed: Keyed::new(key, &first), action })
}

/// Returns the action of `rule` on a column, or why it is not allowed.
fn action(
    rule: &Rule,
    catalogue: &Catalogue,
    place: ColumnIndex,
    group: &[ColumnIndex],
) -> Result<Action, String> {
    let table = catalogue.tables.get(place.0);
    let Some((table, column)) = table.and_then(|table| Some((table, table.columns.get(place.1)?)))
    else {
        return Err("there is no such column".to_owned());
    };
    let name = format!("{}.{}", table.name, column.name);
    let is_key = group.len() > 1 || table.identity.contains(&place.1);
    let is_unique = table.unique.iter().any(|unique| unique.contains(&place.1));
    let distinct =
        |what: &str| Err(format!("{name} is {what}, whose values stay different: use hash"));
    match &rule.method {
        Method::Hash => hash_kind(catalogue, place, group).map(Action::Hash),
        Method::Null if is_key => Err(format!("{name} is part of a key: use hash")),
        Method::Null if !column.nullable => Err(format!("{name} is NOT NULL: use hash or fake")),
        Method::Null => Ok(Action::Null),
        Method::Values(_) | Method::Fake(_) if is_key => distinct("part of a key"),
        Method::Values(_) if is_unique => distinct("unique"),
        Method::Values(values) => Ok(Action::Values(values.clone())),
        Method::Fake(fake) => {
            let fake = fake.or_else(|| meant(&table.name, &column.name)).ok_or_else(|| {
                format!(
                    "what to invent for {name} is not clear from its name: write kind in a file"
                )
            })?;
            let Kind::Text { limit } = Kind::of(&column.type_name) else {
                return Err(format!("{name} is not text: use hash or null"));
            };
            if is_unique && !fake.keeps_distinct() {
                return distinct("unique");
            }
            if let Some(limit) = limit.filter(|limit| *limit < fake.needs()) {
                let needs = fake.needs();
                return Err(format!("{name} holds {limit} characters, and fake needs {needs}"));
            }
            Ok(Action::Fake(fake, limit))
        }
    }
}

/// Returns the kind as which all columns of a group are hashed.
fn hash_kind(
    catalogue: &Catalogue,
    place: ColumnIndex,
    group: &[ColumnIndex],
) -> Result<Kind, String> {
    let kind_of = |(table, column): ColumnIndex| {
        let column = catalogue.tables.get(table).and_then(|table| table.columns.get(column));
        column.map_or(Kind::Other, |column| Kind::of(&column.type_name))
    };
    let own = kind_of(place);
    let mut kind = own;
    for member in group {
        let other = kind_of(*member);
        kind = kind.joined(other).ok_or_else(|| {
            let (one, two) = (name(catalogue, place), name(catalogue, *member));
            format!("{one} has {} and {two} {}: they need one type", own.name(), other.name())
        })?;
    }
    if kind == Kind::Other {
        let name = name(catalogue, place);
        return Err(format!("{name} has a type that hash does not mask: use null or values"));
    }
    Ok(kind)
}

/// Returns what to invent, by the name of a column.
fn meant(table: &str, column: &str) -> Option<Fake> {
    Some(match personal::personal(table, column)? {
        Personal::Name => Fake::Name,
        Personal::FirstName => Fake::FirstName,
        Personal::LastName => Fake::LastName,
        Personal::Email => Fake::Email,
        Personal::Phone => Fake::Phone,
        Personal::Address => Fake::Street,
        _ => return None,
    })
}

impl RowMask {
    fn apply(&self, row: &[u8], out: &mut Vec<u8>) -> Result<(), MaskError> {
        let mut fields = self.fields.iter();
        let mut value = Vec::new();
        let (mut found, expected) = (0, self.fields.len());
        // A table without columns has empty rows.
        if expected == 0 && row.is_empty() {
            return Ok(());
        }
        for field in row.split(|byte| *byte == b'\t') {
            if found > 0 {
                out.push(b'\t');
            }
            found += 1;
            match fields.next() {
                Some(Some(masked)) if field != NULL => masked.apply(field, &mut value, out)?,
                _ => out.extend(field),
            }
        }
        if found == expected {
            return Ok(());
        }
        Err(MaskError::Fields { table: self.table.clone(), found, expected })
    }
}

impl Masked {
    fn apply(&self, field: &[u8], value: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), MaskError> {
        copy_text::unescape(field, value);
        // A database without an encoding may contain any bytes.
        let text = String::from_utf8_lossy(value);
        match &self.action {
            Action::Hash(kind) => {
                let hashed = std::str::from_utf8(value)
                    .ok()
                    .and_then(|value| hash::hash(&self.keyed, *kind, value));
                let (place, kind) = (self.place.clone(), kind.name());
                let hashed = hashed.ok_or(MaskError::Value { place, kind })?;
                copy_text::escape(hashed.as_bytes(), out);
            }
            Action::Fake(fake, limit) => {
                copy_text::escape(fake.invent(&self.keyed, &text, *limit).as_bytes(), out);
            }
            Action::Values(values) => {
                let hash = self.keyed.number(&[value]);
                copy_text::escape(fake::pick(values, hash).as_bytes(), out);
            }
            Action::Null => out.extend(NULL),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
