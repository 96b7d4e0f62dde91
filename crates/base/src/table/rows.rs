//! Rows as structs: one declaration is the heading for people, the key for scripts, the unit, the
//! rank of a column on narrow screens and its documentation; JSON, CSV and schema follow from it.

use std::borrow::Cow;

use super::{Heading, Row, Table};

/// A struct whose fields are the columns of a table. [`rows!`](crate::rows) declares it.
pub trait Rows: Into<Row> {
    const COLUMNS: &'static [Heading];

    /// Creates a table of these rows.
    fn table(
        name: &'static str,
        title: &'static str,
        rows: impl IntoIterator<Item = Self>,
    ) -> Table {
        Table::new(name, title, Cow::Borrowed(Self::COLUMNS)).with(rows)
    }
}

/// Returns the key of a field: its name, without the prefix of a raw identifier such as `r#while`.
pub const fn key(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Trims the documentation of a field, whose lines begin with a blank.
pub const fn sentence(doc: &'static str) -> &'static str {
    doc.trim_ascii()
}

/// Declares a struct whose fields are the columns of a table. The documentation of a field is that
/// of its column; its name is the key in JSON and CSV, unit last. The heading is created by one of
/// the functions for columns (`text`, `count`, `bytes`, `time`, …), which here take neither the key
/// nor the documentation.
///
/// ```
/// use blockstone_base::rows;
/// use blockstone_base::table::{Rows, bytes, text};
///
/// rows! {
///     /// Files that were copied.
///     pub struct FileRow {
///         /// The target.
///         file: String = text("file"),
///         /// Its size, holes included.
///         size_bytes: u64 = bytes("size").answer(),
///     }
/// }
///
/// let table = FileRow::table("files", "Files", [FileRow { file: "a".into(), size_bytes: 7 }]);
/// assert_eq!(table.columns[1].key, "size_bytes");
/// assert_eq!(table.columns[1].doc, "Its size, holes included.");
/// assert_eq!(serde_json::json!(table)[0]["size_bytes"], 7);
/// ```
#[macro_export]
macro_rules! rows {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty =
                    $make:ident($($part:expr),+) $(.$mark:ident($($argument:expr),*))*
            ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        $vis struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $crate::table::Rows for $name {
            const COLUMNS: &'static [$crate::table::Heading] = &[$(
                $crate::rows!(
                    @heading $make, $crate::table::rows::key(stringify!($field)),
                    $crate::table::rows::sentence(concat!($($doc),+)), $($part),+
                )$(.$mark($($argument),*))*
            ),+];
        }

        impl From<$name> for $crate::table::Row {
            fn from(row: $name) -> Self {
                Self::from([$($crate::table::Value::from(row.$field)),+])
            }
        }
    };
    (@heading $make:ident, $key:expr, $doc:expr, $heading:expr) => {
        $make($key, $heading, $doc)
    };
    (@heading $make:ident, $key:expr, $doc:expr, $heading:expr, $measure:expr) => {
        $make($key, $heading, $measure, $doc)
    };
}
