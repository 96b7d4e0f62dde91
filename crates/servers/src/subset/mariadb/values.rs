//! Comparing, reading and writing values by type.

/// Properties of a column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Decimal {
        has_fraction: bool,
    },
    Float,
    Bit,
    Text {
        charset: String,
        collation: String,
    },
    Binary,
    Geometry,
    /// Types represented by the server's own text: dates, times, UUIDs and addresses.
    Plain(String),
}

const TEXTS: [&str; 8] =
    ["char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"];
const INTEGERS: [&str; 6] = ["tinyint", "smallint", "mediumint", "int", "bigint", "year"];
const SHAPES: [&str; 9] = [
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
];

/// Representation of a value in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Hex,
    /// A bit value as a whole number.
    Bits,
}

impl Kind {
    pub fn new(
        data_type: &str,
        column_type: &str,
        charset: Option<String>,
        collation: Option<String>,
        scale: Option<u64>,
    ) -> Self {
        let name = data_type.to_ascii_lowercase();
        match (name.as_str(), charset.zip(collation)) {
            (name, _) if INTEGERS.contains(&name) => Self::Integer,
            ("decimal", _) => Self::Decimal { has_fraction: scale != Some(0) },
            ("float" | "double", _) => Self::Float,
            ("bit", _) => Self::Bit,
            (name, Some((charset, collation))) if TEXTS.contains(&name) => {
                Self::Text { charset, collation }
            }
            (name, _) if SHAPES.contains(&name) => Self::Geometry,
            (name, _) if name.ends_with("binary") || name.ends_with("blob") || name == "vector" => {
                Self::Binary
            }
            _ => Self::Plain(column_type.to_owned()),
        }
    }

    pub fn form(&self) -> Form {
        match self {
            Self::Binary | Self::Geometry => Form::Hex,
            Self::Bit => Form::Bits,
            _ => Form::Text,
        }
    }

    /// Returns a column in the form written to files.
    pub fn written(&self, column: &str) -> String {
        match self {
            Self::Binary | Self::Geometry => format!("HEX({column})"),
            Self::Bit => format!("({column} + 0)"),
            // As text, a FLOAT would have only six digits.
            Self::Float => format!("({column} + 0e0)"),
            _ => column.to_owned(),
        }
    }

    /// Returns a column of type `own` in the form for comparing it with this type: equal values
    /// have equal bytes.
    pub fn compared(&self, column: &str, own: &Self) -> String {
        match self {
            Self::Integer => match own {
                Self::Integer | Self::Bit => format!("({column} + 0)"),
                _ => format!("CAST({column} AS SIGNED)"),
            },
            Self::Bit => format!("({column} + 0)"),
            Self::Decimal { .. } => match own {
                Self::Integer | Self::Decimal { has_fraction: false } => {
                    format!("({column} + 0)")
                }
                Self::Decimal { has_fraction: true } => decimal(&format!("({column} + 0)")),
                _ => decimal(&format!("CAST({column} AS DECIMAL(65,30))")),
            },
            Self::Float => format!("({column} + 0e0)"),
            Self::Text { charset, collation } => text(column, own, charset, collation),
            Self::Binary | Self::Geometry => match own {
                Self::Binary | Self::Geometry => column.to_owned(),
                _ => format!("CAST({column} AS BINARY)"),
            },
            Self::Plain(type_name) if self != own && type_name.starts_with("timestamp") => {
                format!("CAST({column} AS DATETIME{})", &type_name["timestamp".len()..])
            }
            Self::Plain(type_name) if self != own => format!("CAST({column} AS {type_name})"),
            Self::Plain(_) => column.to_owned(),
        }
    }

    /// Returns a field of a key, in the form used for comparison, as SQL; `None` if its value
    /// cannot be restored from that form.
    pub fn literal(&self, value: &[u8]) -> Option<String> {
        match self {
            // Larger numbers are text, which is longer.
            Self::Integer if value.len() == size_of::<i64>() => {
                Some(i64::from_be_bytes(value.try_into().ok()?).to_string())
            }
            _ => self.literal_of(value),
        }
    }

    /// Returns the server's answer for a field of a key as SQL.
    pub fn literal_of(&self, value: &[u8]) -> Option<String> {
        match self {
            Self::Integer | Self::Decimal { .. } | Self::Float | Self::Bit => {
                let text = std::str::from_utf8(value).ok()?;
                let is_number = |it: char| it.is_ascii_digit() || "+-.eE".contains(it);
                (!text.is_empty() && text.chars().all(is_number)).then(|| text.to_owned())
            }
            Self::Text { collation, .. } => collation.ends_with("_bin").then(|| characters(value)),
            Self::Binary => Some(format!("X'{}'", hex(value))),
            Self::Plain(_) => Some(characters(value)),
            Self::Geometry => None,
        }
    }
}

/// Removes trailing zeros.
fn decimal(value: &str) -> String {
    format!("TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {value}))")
}

/// Returns text in the form in which its collation compares it.
fn text(column: &str, own: &Kind, charset: &str, collation: &str) -> String {
    let mut value = match own {
        Kind::Text { collation: own, .. } if own == collation => column.to_owned(),
        _ => format!("(CONVERT({column} USING {charset}) COLLATE {collation})"),
    };
    let pads = !collation.contains("nopad") && !collation.contains("_0900_");
    if pads {
        value = format!("RTRIM({value})");
    }
    if collation.ends_with("_bin") {
        format!("CONVERT({value} USING utf8mb4)")
    } else {
        format!("WEIGHT_STRING({value})")
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte)]).collect()
}

/// Returns text as SQL, whatever its characters and the server's modes.
pub fn characters(text: &[u8]) -> String {
    format!("_utf8mb4 X'{}'", hex(text))
}

/// Returns the condition that the column, as text, equals `is`.
pub fn condition(column: &str, is: &str) -> String {
    let text = format!("CAST({column} AS CHAR CHARACTER SET utf8mb4)");
    format!("{text} = {} COLLATE utf8mb4_bin", characters(is.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(data_type: &str) -> Kind {
        let collation = TEXTS.contains(&data_type).then(|| "utf8mb4_bin".to_owned());
        let charset = collation.as_ref().map(|_| "utf8mb4".to_owned());
        Kind::new(data_type, data_type, charset, collation, Some(2))
    }

    #[test]
    fn what_is_not_text_is_written_so_that_it_is_read_back() {
        assert_eq!(kind("longblob").written("`a`"), "HEX(`a`)");
        assert_eq!(kind("POINT").form(), Form::Hex);
        assert_eq!(kind("bit").written("`a`"), "(`a` + 0)");
        assert_eq!(kind("float").written("`a`"), "(`a` + 0e0)");
        assert_eq!(kind("datetime").written("`a`"), "`a`");
    }

    #[test]
    fn a_value_cannot_leave_its_literal() {
        assert_eq!(kind("int").literal(b"1 OR 1"), None);
        assert_eq!(kind("int").literal(&(-17_i64).to_be_bytes()).as_deref(), Some("-17"));
        let large = b"18446744073709551615";
        assert_eq!(kind("bigint").literal(large).as_deref(), Some("18446744073709551615"));
        assert_eq!(kind("varchar").literal(b"a'").as_deref(), Some("_utf8mb4 X'6127'"));
        assert_eq!(kind("binary").literal(b"\0\xff").as_deref(), Some("X'00FF'"));
        let folded = Kind::Text { charset: "latin1".into(), collation: "latin1_swedish_ci".into() };
        assert_eq!(folded.literal(b"A"), None);
    }
}
