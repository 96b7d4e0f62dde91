//! Statspack reports, 8i to 19c.

use crate::number::Numbers;
use crate::report::{Kind, Report};
use crate::{ImportError, Source, text};

use super::facts::Facts;
use super::parts::{
    ACTIVITY, ADVICE, FUNCTION_IO, OS, Part, STATEMENTS, TABLESPACE_IO, TIME_MODEL, WAITS,
};
use super::{Layout, awr, contains};

pub const TEXT: Layout = Layout { name: "Statspack report", recognises: is_it, read };

const SECTIONS: &[&Part] =
    &[&TIME_MODEL, &OS, &WAITS, &ACTIVITY, &FUNCTION_IO, &TABLESPACE_IO, &ADVICE, &STATEMENTS];

fn is_it(head: &str) -> bool {
    contains(head, "STATSPACK report for")
}

fn read(source: &Source<'_>) -> Result<Report, ImportError> {
    let wanted = |name: &str| SECTIONS.iter().any(|part| part.is_text(name));
    let tables = text::tables(source.text, wanted);
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    awr::read(source, &facts, Kind::Statspack)
}
