//! Headings of columns, for constants.

use std::borrow::Cow;

use super::{Heading, Measure, Merge};

/// Makes a column of any measure and merge; for constants.
pub const fn column(
    key: &'static str,
    heading: &'static str,
    measure: Measure,
    merge: Merge,
    doc: &'static str,
) -> Heading {
    let (key, heading) = (Cow::Borrowed(key), Cow::Borrowed(heading));
    Heading {
        key,
        heading,
        measure,
        merge,
        doc: Cow::Borrowed(doc),
        is_answer: false,
        is_prose: false,
        is_path: false,
        is_plain: false,
    }
}

/// Makes a column of texts that name a row.
pub const fn text(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Text, Merge::Key, doc)
}

/// A column that says whether something is so.
pub const fn flag(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Flag, Merge::Never, doc)
}

/// A column of numbers of things, per second or as a mean over time.
pub const fn count(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Count, Merge::Mean, doc)
}

pub const fn bytes(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Bytes, Merge::Mean, doc)
}

pub const fn flow(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::BytesPerS, Merge::Mean, doc)
}

pub const fn time(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Nanoseconds, Merge::Mean, doc)
}

pub const fn share(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Share, Merge::Mean, doc)
}

/// Makes a column of levels or states, of which the last counts.
pub const fn level(
    key: &'static str,
    heading: &'static str,
    measure: Measure,
    doc: &'static str,
) -> Heading {
    column(key, heading, measure, Merge::Last, doc)
}

/// Makes a column of numbers or amounts in the whole interval, which add up.
pub const fn total(
    key: &'static str,
    heading: &'static str,
    measure: Measure,
    doc: &'static str,
) -> Heading {
    column(key, heading, measure, Merge::Sum, doc)
}

/// Makes a column of means per event, where the column `events` has their rate or their number.
pub const fn mean_of(
    events: &'static str,
    key: &'static str,
    heading: &'static str,
    measure: Measure,
    doc: &'static str,
) -> Heading {
    column(key, heading, measure, Merge::WeightedBy(events), doc)
}

/// Makes a column of shares of the column `part`, summed over all rows.
pub const fn share_of(
    part: &'static str,
    key: &'static str,
    heading: &'static str,
    doc: &'static str,
) -> Heading {
    column(key, heading, Measure::Share, Merge::ShareOf { part, within: "" }, doc)
}

/// Makes a column of the column `part` divided by the column `by` of the same row.
pub const fn quotient(
    part: &'static str,
    by: &'static str,
    key: &'static str,
    heading: &'static str,
    measure: Measure,
    doc: &'static str,
) -> Heading {
    column(key, heading, measure, Merge::Quotient { part, by }, doc)
}

/// Makes a column whose values can only be derived from the whole interval: the number of distinct
/// things, the most frequent observation, a quantile of rows without a [`Spread`](super::Spread).
pub const fn unmerged(
    key: &'static str,
    heading: &'static str,
    measure: Measure,
    doc: &'static str,
) -> Heading {
    column(key, heading, measure, Merge::Never, doc)
}

pub const fn ratio(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Ratio, Merge::Never, doc)
}
