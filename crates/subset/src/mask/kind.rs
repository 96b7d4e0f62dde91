//! The types that masking knows.

/// The type of a column, as far as masking distinguishes types.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Whole numbers from `min` to `max`.
    Integer {
        min: i64,
        max: i64,
    },
    Numeric,
    /// Text of at most `limit` characters.
    Text {
        limit: Option<u32>,
    },
    Uuid,
    Date,
    Timestamp,
    Other,
}

impl Kind {
    /// Returns the kind of a type name from PostgreSQL's `format_type` or MariaDB's `column_type`.
    pub fn of(type_name: &str) -> Self {
        let lower = type_name.trim().to_ascii_lowercase();
        if lower.ends_with(']') {
            return Self::Other;
        }
        let (unsigned, lower) = match lower.split_once(" unsigned") {
            Some((name, _)) => (true, name.to_owned()),
            None => (false, lower),
        };
        let (name, limit) = split_limit(&lower);
        let integer = |bits: u32| {
            let (min, max) = (-(1_i64 << (bits - 1)), i64::MAX >> (64 - bits));
            if unsigned {
                Self::Integer { min: 0, max: max - min }
            } else {
                Self::Integer { min, max }
            }
        };
        match name.as_str() {
            "smallint" | "int2" => integer(16),
            "integer" | "int" | "int4" => integer(32),
            // Unsigned values beyond the signed range are refused.
            "bigint" | "int8" => {
                Self::Integer { min: if unsigned { 0 } else { i64::MIN }, max: i64::MAX }
            }
            "mediumint" => integer(24),
            "tinyint" => integer(8),
            "numeric" | "decimal" => Self::Numeric,
            "character varying" | "varchar" | "character" | "char" | "bpchar" => {
                Self::Text { limit: limit.or((name.as_str() == "character").then_some(1)) }
            }
            "text" | "citext" | "name" | "tinytext" | "mediumtext" | "longtext" => {
                Self::Text { limit: None }
            }
            "uuid" => Self::Uuid,
            "date" => Self::Date,
            "datetime" => Self::Timestamp,
            other if other.starts_with("timestamp") => Self::Timestamp,
            _ => Self::Other,
        }
    }

    /// Returns the kind whose permutation fits both, if their values can be compared.
    pub fn joined(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Integer { min, max }, Self::Integer { min: low, max: high }) => {
                Some(Self::Integer { min: min.max(low), max: max.min(high) })
            }
            (Self::Text { limit: one }, Self::Text { limit: two }) => {
                Some(Self::Text { limit: one.into_iter().chain(two).min() })
            }
            (one, two) if one == two => Some(one),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer { .. } => "whole numbers",
            Self::Numeric => "decimal numbers",
            Self::Text { .. } => "text",
            Self::Uuid => "UUIDs",
            Self::Date => "dates",
            Self::Timestamp => "timestamps",
            Self::Other => "another type",
        }
    }
}

/// Splits `name(limit)rest` into name and limit.
fn split_limit(type_name: &str) -> (String, Option<u32>) {
    let Some((name, after)) = type_name.split_once('(') else {
        return (type_name.trim().to_owned(), None);
    };
    let (limit, _) = after.split_once(')').unwrap_or((after, ""));
    (name.trim().to_owned(), limit.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_both_servers_are_known() {
        let int4 = Kind::Integer { min: i32::MIN.into(), max: i32::MAX.into() };
        let cases = [
            ("integer", int4),
            ("int(11)", int4),
            ("int(10) unsigned", Kind::Integer { min: 0, max: u32::MAX.into() }),
            ("bigint", Kind::Integer { min: i64::MIN, max: i64::MAX }),
            ("tinyint(4)", Kind::Integer { min: -128, max: 127 }),
            ("mediumint(9)", Kind::Integer { min: -8_388_608, max: 8_388_607 }),
            ("numeric(10,2)", Kind::Numeric),
            ("character varying(20)", Kind::Text { limit: Some(20) }),
            ("character", Kind::Text { limit: Some(1) }),
            ("text", Kind::Text { limit: None }),
            ("timestamp(3) without time zone", Kind::Timestamp),
            ("timestamp with time zone", Kind::Timestamp),
            ("text[]", Kind::Other),
            ("double precision", Kind::Other),
            ("", Kind::Other),
        ];
        for (name, kind) in cases {
            assert_eq!(Kind::of(name), kind, "{name}");
        }
    }

    #[test]
    fn the_narrower_type_serves_both_ends_of_a_key() {
        assert_eq!(Kind::of("bigint").joined(Kind::of("integer")), Some(Kind::of("integer")));
        assert_eq!(Kind::of("text").joined(Kind::of("varchar(9)")), Some(Kind::of("varchar(9)")));
        assert_eq!(Kind::of("text").joined(Kind::of("integer")), None);
    }
}
