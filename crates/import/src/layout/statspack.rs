//! Statspack reports, 8i to 19c.

use crate::number::Numbers;
use crate::report::{Kind, Report};
use crate::{ImportError, Source, text};

use super::facts::Facts;
use super::{Head, Layout, awr};

pub const TEXT: Layout = Layout { name: "Statspack report", recognises: is_it, read };

const FIRSTS: [&str; 2] = ["STATSPACK report for", "STATSPACK Statistics Report for"];

fn is_it(head: &Head) -> bool {
    FIRSTS.iter().any(|first| head.contains(&first.to_ascii_lowercase()))
}

fn read(source: &Source<'_>) -> Result<Report, ImportError> {
    let source = &Source { text: super::only(source.text, &FIRSTS)?, ..*source };
    let tables = text::tables(source.text, awr::is_wanted);
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    awr::read(source, &facts, Kind::Statspack)
}
