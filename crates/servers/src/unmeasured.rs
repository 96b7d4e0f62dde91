//! Columns that were not measured, with reasons.

use blockstone_base::column::{Kind, Schema, Unmeasured};
use blockstone_base::database::{SESSION, SESSIONS};

/// Columns that were not measured: probe, column, reason.
pub type Missing = Vec<(&'static str, &'static str, Unmeasured)>;

/// Returns the columns of `schemas` that are not `known`, each with the reason from `why`.
pub fn absent(
    schemas: &[&'static Schema],
    known: impl Fn(&'static str) -> bool,
    why: impl Fn(&'static str) -> Unmeasured,
) -> Missing {
    let columns = schemas
        .iter()
        .flat_map(|schema| schema.columns.iter().map(|column| (schema.probe, column.name)));
    let absent = columns.filter(|(_, name)| !known(name));
    absent.map(|(probe, name)| (probe, name, why(name))).collect()
}

/// Returns the columns of sessions of users other than `user`.
pub fn others(user: &str, hint: &str) -> Missing {
    let why = Unmeasured::NotPermitted(format!("only sessions of {user} are seen: {hint}"));
    [all(&SESSION, &why), all(&SESSIONS, &why)].concat()
}

/// Returns all columns of `schema`, with one reason.
pub fn all(schema: &'static Schema, why: &Unmeasured) -> Missing {
    schema.columns.iter().map(|column| (schema.probe, column.name, why.clone())).collect()
}

/// Returns the numeric columns of `schema`, with one reason.
pub fn numbers(schema: &'static Schema, why: &Unmeasured) -> Missing {
    let counted = schema.columns.iter().filter(|column| column.kind != Kind::State);
    counted.map(|column| (schema.probe, column.name, why.clone())).collect()
}

pub fn some(schema: &'static Schema, names: &[&str], why: &Unmeasured) -> Missing {
    let wanted = schema.columns.iter().filter(|column| names.contains(&column.name));
    wanted.map(|column| (schema.probe, column.name, why.clone())).collect()
}
