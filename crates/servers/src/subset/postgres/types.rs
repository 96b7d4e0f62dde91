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

/// How equal values of a type are recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Alike {
    /// They have the same text, or the type is one whose text [`ColumnType::compared`] folds.
    Text,
    /// This function of the server, or of a superuser's extension, hashes them alike.
    Hash(String),
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
    /// The collation of the column, quoted; `None` if it is the default or there is none.
    pub collation: Option<String>,
    /// Whether the collation takes different texts for equal.
    folds: bool,
    alike: Alike,
}

const DEFAULT_COLLATION: &str = "pg_catalog.\"default\"";
const BPCHAR: u32 = 1042;
const DATE: u32 = 1082;
const TIMESTAMP: u32 = 1114;
const TIMESTAMP_WITH_ZONE: u32 = 1184;
const VARBIT: u32 = 1562;
const BIT: u32 = 1560;
const OID: u32 = 26;
const NUMERIC: u32 = 1700;
const JSONB: u32 = 3802;

impl ColumnType {
    /// Creates a type from a row of `columns.sql`.
    pub fn of(row: &Row) -> Result<Self, SqlError> {
        let form = match value::<Option<String>>(row, 8)? {
            None => Form::Unknown,
            Some(form) if form == "cast" => Form::Cast,
            Some(output) => Form::Output(output),
        };
        let alike = match value::<Option<String>>(row, 12)? {
            None => Alike::Unknown,
            Some(alike) if alike == "text" => Alike::Text,
            Some(function) => Alike::Hash(function),
        };
        Ok(Self {
            name: value(row, 6)?,
            oid: value(row, 7)?,
            form,
            is_trusted: value(row, 9)?,
            collation: value(row, 10)?,
            folds: value(row, 11)?,
            alike,
        })
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
            _ if matches!(self.alike, Alike::Hash(_)) && !self.is_citext() => Kind::Hashed,
            _ if self.form != Form::Cast => Kind::Other,
            _ if self.is_citext() => Kind::Caseless,
            _ if !self.is_own() => Kind::Other,
            "smallint" | "integer" | "bigint" | "oid" => Kind::Integer,
            "uuid" => Kind::Uuid,
            "numeric" => Kind::Numeric,
            "real" | "double precision" => Kind::Float,
            "text" | "character varying" | "character" | "bpchar" | "name" if self.folds => {
                Kind::Hashed
            }
            "text" | "character varying" | "character" | "bpchar" | "name" => Kind::Text,
            _ => Kind::Other,
        }
    }

    fn is_citext(&self) -> bool {
        !self.is_own() && self.form == Form::Cast && self.name.ends_with("citext")
    }

    /// Returns why values of `own` cannot be compared with values of this type as the server does;
    /// `None` if they can.
    pub fn refusal(&self, own: &Self) -> Option<String> {
        let is_same = self.oid == own.oid;
        let is_cast = self.is_own() || self.kind() == Kind::Caseless;
        let is_zoned = |one: &Self, other: &Self| {
            one.oid == TIMESTAMP_WITH_ZONE && [DATE, TIMESTAMP].contains(&other.oid)
        };
        let is_taken = is_same || is_cast && own.form == Form::Cast;
        if !self.has_text() || !is_taken {
            Some(format!("would be cast to {} by code of users", self.name))
        } else if self.alike == Alike::Unknown {
            Some("has values that may be equal though they look different".to_owned())
        } else if is_zoned(self, own) || is_zoned(own, self) {
            Some(format!("is compared with {} by the time zone of a session", self.name))
        } else {
            None
        }
    }

    /// Returns a column of type `own` as a value of this type, if it is another that the server
    /// converts, with the collation by which the server compares it.
    pub fn converted(&self, column: &str, own: &Self) -> String {
        let is_other = self.oid != own.oid && [BPCHAR, BIT].contains(&self.oid);
        let value =
            if is_other { format!("({column})::{}", self.cast_name()) } else { column.to_owned() };
        self.collated(&value, own)
    }

    /// Returns a value from a column of type `own`, with the collation of this type.
    fn collated(&self, value: &str, own: &Self) -> String {
        match (&self.collation, &own.collation) {
            (None, None) => value.to_owned(),
            (collation, _) => {
                let collation = collation.as_deref().unwrap_or(DEFAULT_COLLATION);
                format!("({value}) COLLATE {collation}")
            }
        }
    }

    /// Returns the name without a length: by their usual names, two types have length one.
    fn cast_name(&self) -> &str {
        match self.oid {
            BPCHAR => "bpchar",
            BIT => "pg_catalog.\"bit\"",
            _ => &self.name,
        }
    }

    /// Returns a column of type `own` as the text of a value of this type.
    fn text_of(&self, column: &str, own: &Self) -> String {
        if self.oid == own.oid || self.kind() == Kind::Text && self.oid != BPCHAR {
            return own.text(column);
        }
        match self.oid {
            // Blanks at the end do not count.
            BPCHAR => format!("(({})::bpchar)::text", own.text(column)),
            BIT | VARBIT => format!("(({column})::varbit)::text"),
            _ => format!("({column})::{}::text", self.name),
        }
    }

    /// Returns the value that both sides of a comparison with this type have in common, as text,
    /// before anything that makes equal values alike.
    fn plain(&self, column: &str, own: &Self) -> String {
        match self.kind() {
            Kind::Hashed if self.folds => self.text_of(column, own),
            _ if self.oid == own.oid => column.to_owned(),
            _ => format!("({column})::{}", self.cast_name()),
        }
    }

    /// Returns a column of type `own` in the form for comparing it with this type: equal values
    /// have equal bytes.
    pub fn compared(&self, column: &str, own: &Self) -> String {
        match self.kind() {
            Kind::Integer if self.oid == OID && own.oid != OID => {
                format!("({column})::oid::bigint")
            }
            Kind::Integer => format!("({column})::bigint"),
            Kind::Uuid => format!("({column})::uuid"),
            Kind::Numeric => format!("trim_scale(({column})::numeric)::text"),
            Kind::Float => format!("(({column})::{} + 0.0)::text", self.name),
            Kind::Caseless => {
                format!("lower(({}) COLLATE {DEFAULT_COLLATION})", own.text(column))
            }
            Kind::Hashed => self.hashed(&self.collated(&self.plain(column, own), own)),
            Kind::Text | Kind::Other => self.text_of(column, own),
        }
    }

    /// Returns two hashes of a value, as one text of 128 bits.
    fn hashed(&self, value: &str) -> String {
        let function = match &self.alike {
            Alike::Hash(function) => function,
            Alike::Text | Alike::Unknown => "hashtextextended",
        };
        let hash = |seed: u8| format!("{function}({value}, {seed})::text");
        format!("({} || ' ' || {})", hash(0), hash(1))
    }

    /// Returns a hash of a column, not NULL, that is the same on all servers.
    pub fn drawn(&self, column: &str, seed: &str) -> String {
        let text = match self.kind() {
            // The same number has the same hash in each of these types.
            Kind::Integer => match self.name.as_str() {
                "smallint" => return format!("hashint2extended({column}, {seed})"),
                "integer" => return format!("hashint4extended({column}, {seed})"),
                _ => return format!("hashint8extended(({column})::bigint, {seed})"),
            },
            Kind::Uuid => return format!("uuid_hash_extended({column}, {seed})"),
            Kind::Text | Kind::Caseless => self.compared(column, self),
            // Of types whose text takes long: functions that all versions have.
            _ => match self.oid {
                NUMERIC => return format!("hash_numeric_extended({column}, {seed})"),
                JSONB => return format!("jsonb_hash_extended({column}, {seed})"),
                TIMESTAMP => return format!("timestamp_hash_extended({column}, {seed})"),
                TIMESTAMP_WITH_ZONE => {
                    return format!("timestamp_hash_extended(timezone('UTC', {column}), {seed})");
                }
                _ => self.text(column),
            },
        };
        format!("hashtextextended(({text}) COLLATE \"C\", {seed})")
    }

    /// Whether hashing a value takes about as long as reading it.
    pub fn is_drawn_fast(&self) -> bool {
        matches!(self.kind(), Kind::Integer | Kind::Uuid)
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
    /// Compared by hashes that the server makes: different texts may be equal.
    Hashed,
    /// Compared by the type's output.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_type(name: &str, oid: u32, form: Form) -> ColumnType {
        ColumnType {
            name: name.to_owned(),
            oid,
            form,
            is_trusted: false,
            collation: None,
            folds: false,
            alike: Alike::Text,
        }
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
            assert_eq!(like.refusal(own).is_none(), takes, "{} {}", like.name, own.name);
        }
        assert_eq!(
            extended.compared("c", &varchar),
            "lower(((c)::text) COLLATE pg_catalog.\"default\")"
        );
    }

    #[test]
    fn equal_values_are_made_alike_or_refused() {
        let text = a_type("text", 25, Form::Cast);
        let blank = a_type("character", BPCHAR, Form::Cast);
        assert_eq!(blank.compared("c", &text), "(((c)::text)::bpchar)::text");
        assert_eq!(blank.compared("c", &blank), "(c)::text");
        assert_eq!(text.compared("c", &blank), "(c)::text");
        assert_eq!(blank.converted("c", &text), "(c)::bpchar");
        let bits = a_type("bit", BIT, Form::Cast);
        assert_eq!(
            bits.compared("c", &a_type("bit varying", VARBIT, Form::Cast)),
            "((c)::varbit)::text"
        );
        let oid = a_type("oid", OID, Form::Cast);
        assert_eq!(oid.compared("c", &a_type("integer", 23, Form::Cast)), "(c)::oid::bigint");
        let span = ColumnType {
            alike: Alike::Hash("interval_hash_extended".to_owned()),
            ..a_type("interval", 1186, Form::Cast)
        };
        assert_eq!(
            span.compared("c", &span),
            "(interval_hash_extended(c, 0)::text || ' ' || interval_hash_extended(c, 1)::text)"
        );
        assert_eq!(span.drawn("c", "7"), "hashtextextended(((c)::text) COLLATE \"C\", 7)");
        let number = a_type("numeric", NUMERIC, Form::Cast);
        assert_eq!(number.drawn("c", "7"), "hash_numeric_extended(c, 7)");
        let folded =
            ColumnType { collation: Some("public.folded".to_owned()), folds: true, ..text.clone() };
        assert!(folded.compared("c", &text).contains("(((c)::text) COLLATE public.folded, 1)"));
        assert_eq!(folded.converted("c", &text), "(c) COLLATE public.folded");
        assert_eq!(text.converted("c", &folded), "(c) COLLATE pg_catalog.\"default\"");
        let made =
            ColumnType { alike: Alike::Unknown, ..a_type("public.pair", 20_000, Form::Cast) };
        assert!(made.refusal(&made).unwrap().contains("look different"));
        let zoned = a_type("timestamp with time zone", TIMESTAMP_WITH_ZONE, Form::Cast);
        assert!(zoned.refusal(&a_type("date", DATE, Form::Cast)).unwrap().contains("time zone"));
        assert_eq!(zoned.refusal(&zoned), None);
    }
}
