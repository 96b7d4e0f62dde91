//! Types of columns, and how the server converts their values to text without code of its users.
//!
//! A cast has no schema, so no search path excludes casts of users. A type's output function can
//! only be created by superusers, and COPY calls it as well.

use postgres::Row;

use crate::postgres::views::value;
use crate::sql::error::SqlError;

/// The first OID of objects created after the server was set up.
const FIRST_OF_USERS: u32 = 16_384;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// By a cast: the server's own type, or that of a superuser's extension.
    Cast,
    /// By this function of the server, which takes any type of its kind.
    Output(String),
    /// By a function that users may control.
    Unknown,
}

/// The type of a column, with domains resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// Name without length, and with the schema if it is not the server's own.
    pub name: String,
    oid: u32,
    form: Form,
    /// Whether a superuser or this user owns it.
    is_trusted: bool,
}

impl ColumnType {
    /// Creates a type from a row of `columns.sql`.
    pub fn of(row: &Row) -> Result<Self, SqlError> {
        let form = match value::<Option<String>>(row, 8)? {
            None => Form::Unknown,
            Some(form) if form == "cast" => Form::Cast,
            Some(output) => Form::Output(output),
        };
        Ok(Self { name: value(row, 6)?, oid: value(row, 7)?, form, is_trusted: value(row, 9)? })
    }

    /// Whether it is the server's own type.
    pub fn is_own(&self) -> bool {
        self.oid < FIRST_OF_USERS
    }

    /// Whether a condition on a column of this type calls no code of other users, unless the
    /// condition names it.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    pub fn has_text(&self) -> bool {
        self.form != Form::Unknown
    }

    /// Returns the text of a column of this type, as SQL.
    pub fn text(&self, column: &str) -> String {
        match &self.form {
            Form::Output(output) => format!("pg_catalog.textin({output}({column}))"),
            Form::Cast | Form::Unknown => format!("({column})::text"),
        }
    }

    /// Returns how values are compared with values of this type.
    pub fn kind(&self) -> Kind {
        match self.name.as_str() {
            _ if self.form != Form::Cast => Kind::Other,
            other if !self.is_own() && other.ends_with("citext") => Kind::Caseless,
            _ if !self.is_own() => Kind::Other,
            "smallint" | "integer" | "bigint" | "oid" => Kind::Integer,
            "uuid" => Kind::Uuid,
            "numeric" => Kind::Numeric,
            "real" | "double precision" => Kind::Float,
            "text" | "character varying" | "character" | "bpchar" | "name" => Kind::Text,
            _ => Kind::Other,
        }
    }

    /// Whether values of `own` can be compared with values of this type.
    pub fn takes(&self, own: &Self) -> bool {
        let is_same = self.oid == own.oid;
        let is_cast = self.is_own() || self.kind() == Kind::Caseless;
        self.has_text() && (is_same || is_cast && own.form == Form::Cast)
    }

    /// Returns a column of type `own` in the form for comparing it with this type: equal values
    /// have equal bytes.
    pub fn compared(&self, column: &str, own: &Self) -> String {
        match self.kind() {
            Kind::Integer => format!("({column})::bigint"),
            Kind::Uuid => format!("({column})::uuid"),
            Kind::Numeric => format!("trim_scale(({column})::numeric)::text"),
            Kind::Float => format!("(({column})::{} + 0.0)::text", self.name),
            Kind::Caseless => format!("lower({})", own.text(column)),
            Kind::Text => own.text(column),
            Kind::Other if self.oid == own.oid => own.text(column),
            Kind::Other => format!("({column})::{}::text", self.name),
        }
    }
}

/// Ways of comparing the values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Uuid,
    Numeric,
    Float,
    /// Text compared without case.
    Caseless,
    Text,
    /// Compared by the type's output.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_type(name: &str, oid: u32, form: Form) -> ColumnType {
        ColumnType { name: name.to_owned(), oid, form, is_trusted: false }
    }

    #[test]
    fn types_of_users_are_neither_cast_nor_named() {
        let output = Form::Output("pg_catalog.enum_out".to_owned());
        let theirs = a_type("evil.citext", 20_000, output);
        assert_eq!(theirs.kind(), Kind::Other);
        let text = "pg_catalog.textin(pg_catalog.enum_out(t.\"a\"))";
        assert_eq!(theirs.compared("t.\"a\"", &theirs), text);
        let (bigint, varchar) =
            (a_type("bigint", 20, Form::Cast), a_type("character varying", 1043, Form::Cast));
        let theirs_too = a_type("evil.base", 20_001, Form::Unknown);
        let extended = a_type("public.citext", 20_002, Form::Cast);
        let geometry = a_type("public.geometry", 20_003, Form::Cast);
        for (like, own, takes) in [
            (&bigint, &varchar, true),
            (&bigint, &theirs, false),
            (&theirs, &theirs, true),
            (&theirs, &bigint, false),
            (&theirs_too, &theirs_too, false),
            (&extended, &varchar, true),
            (&varchar, &extended, true),
            (&extended, &theirs, false),
            (&geometry, &geometry, true),
            (&geometry, &varchar, false),
        ] {
            assert_eq!(like.takes(own), takes, "{} {}", like.name, own.name);
        }
        assert_eq!(extended.compared("c", &varchar), "lower((c)::text)");
    }
}
