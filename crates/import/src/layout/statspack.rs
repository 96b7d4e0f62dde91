//! Statspack reports, 8i to 19c.

use crate::number::Numbers;
use crate::report::{Kind, Report};
use crate::{ImportError, Source, text};

use super::facts::Facts;
use super::{Layout, awr, contains};

pub const TEXT: Layout = Layout { name: "Statspack report", recognises: is_it, read };

fn is_it(head: &str) -> bool {
    contains(head, "STATSPACK report for")
}

fn read(source: &Source<'_>) -> Result<Report, ImportError> {
    let tables = text::tables(source.text, awr::is_wanted);
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    awr::read(source, &facts, Kind::Statspack)
}
