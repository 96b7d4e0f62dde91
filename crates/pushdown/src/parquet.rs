//! The table of cards in Parquet files, sorted by card and as purchases came, and what a reader
//! fetches of them over HTTP.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_measure::claim::{self, ClaimError};
use blockstone_measure::scratch;
use blockstone_record::RecordError;
use blockstone_record::plain::{Group, PlainWriter, Values};
use blockstone_sys::scratch::ScratchDir;
use blockstone_sys::survey;

use crate::cards::{COLUMNS, Cards, OWN};
use crate::duckdb::{Answer, Duckdb, DuckdbError};
use crate::range::{RangeServer, Sent};

/// Row groups of a file, where it has rows enough.
const GROUPS: u64 = 128;
const GROUP_ROWS_MIN: u64 = 2_048;
/// What a row takes in a file, with some to spare.
const ROW_BYTES: u64 = 80;
/// 2025-01-01 in seconds since 1970.
const FIRST_SECOND: i64 = 1_735_689_600;

#[derive(Clone, Debug)]
pub struct Settings {
    pub dir: PathBuf,
    pub cards: Cards,
    /// DuckDB, or a Python that has its module; none looks for it.
    pub duckdb: Option<PathBuf>,
    pub id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By card, the column of the filter.
    Sorted,
    /// As purchases came: cards are where chance put them.
    Shuffled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    Full,
    Filtered,
    Count,
}

#[derive(Clone, Debug)]
pub struct Ran {
    pub order: Order,
    pub query: Query,
    pub file_bytes: u64,
    pub groups: u64,
    /// Row groups of which the reader fetched nothing.
    pub groups_skipped: u64,
    pub sent: Sent,
    pub answer: Answer,
}

#[derive(Clone, Debug)]
pub struct Measured {
    pub version: String,
    pub removed: Vec<PathBuf>,
    pub runs: Vec<Ran>,
    pub interrupted: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Survey(#[from] survey::SurveyError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Duckdb(#[from] DuckdbError),
    #[error("write {}: {source}\nhint: free some space, or name another directory", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("serve the files over HTTP: {0}\nhint: check that the interface lo is up")]
    Serve(std::io::Error),
    #[error(
        "{query:?} of the {order:?} file answered {found} rows, not {expected}\n\
         hint: please report it, with the version of DuckDB"
    )]
    Answer { query: Query, order: Order, found: String, expected: u64 },
}

pub const ALL: [(Order, Query); 6] = [
    (Order::Shuffled, Query::Full),
    (Order::Shuffled, Query::Filtered),
    (Order::Shuffled, Query::Count),
    (Order::Sorted, Query::Full),
    (Order::Sorted, Query::Filtered),
    (Order::Sorted, Query::Count),
];

impl Order {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sorted => "sorted",
            Self::Shuffled => "shuffled",
        }
    }
}

impl Query {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full ingest",
            Self::Filtered => "filtered ingest",
            Self::Count => "count",
        }
    }

    fn sql(self, url: &str) -> String {
        let ingest = COLUMNS.iter().map(|column| {
            let function = if column.sql == "integer" { "avg" } else { "max" };
            format!("{function}({})", column.name)
        });
        let columns = match self {
            Self::Count => String::new(),
            Self::Full | Self::Filtered => format!(", {}", ingest.collect::<Vec<_>>().join(", ")),
        };
        let filter = match self {
            Self::Full => String::new(),
            Self::Filtered | Self::Count => {
                let next = OWN[0].parse::<u32>().unwrap_or_default() + 1;
                format!(" WHERE card_no >= '{}' AND card_no < '{next}'", OWN[0])
            }
        };
        format!("SELECT count(*){columns} FROM read_parquet('{url}'){filter}")
    }
}

/// Writes both files, has them read, and removes them. The reader is looked for first.
pub fn measure(
    settings: &Settings,
    tell: &mut dyn FnMut(f64, &str) -> bool,
) -> Result<Measured, ParquetError> {
    let duckdb = Duckdb::find(settings.duckdb.as_deref())?;
    check_space(settings)?;
    let removed = scratch::remove_orphans(&settings.dir, &[]);
    let dir = settings.dir.join(scratch::name(settings.id, "parquet"));
    let made = ScratchDir::create(&dir, None)
        .map_err(|source| ParquetError::File { path: dir.clone(), source })?;
    let measured = in_dir(settings, &duckdb, &dir, tell);
    // What cannot be removed now is removed by the next run in this directory.
    let _ = made.remove();
    let mut measured = measured?;
    measured.removed = removed;
    Ok(measured)
}

fn check_space(settings: &Settings) -> Result<(), ParquetError> {
    let dir = &settings.dir;
    let found = survey::target(Path::new("/"), dir)?;
    claim::directory(dir)?;
    let asked = settings.cards.rows().saturating_mul(2 * ROW_BYTES);
    if found.free_bytes < asked {
        let (asked, free) = (Bytes(asked), Bytes(found.free_bytes));
        return Err(ClaimError::NoSpace { path: dir.clone(), asked, free, less: "--scale" }.into());
    }
    Ok(())
}

fn in_dir(
    settings: &Settings,
    duckdb: &Duckdb,
    dir: &Path,
    tell: &mut dyn FnMut(f64, &str) -> bool,
) -> Result<Measured, ParquetError> {
    let mut measured = Measured {
        version: duckdb.version().to_owned(),
        removed: Vec::new(),
        runs: Vec::new(),
        interrupted: true,
    };
    let mut files = Vec::new();
    for (order, share) in [(Order::Shuffled, 0.0), (Order::Sorted, 0.3)] {
        let path = dir.join(format!("{}.parquet", order.name()));
        let mut go_on = |done: f64| tell(share + done * 0.3, "write");
        let Some(groups) = write(&path, &settings.cards, order, &mut go_on)? else {
            return Ok(measured);
        };
        files.push((order, path, groups));
    }
    for (at, &(order, query)) in ALL.iter().enumerate() {
        let Some((_, path, groups)) = files.iter().find(|file| file.0 == order) else { continue };
        let name = format!("{}.parquet", order.name());
        let server = RangeServer::start(&[(&name, path)]).map_err(ParquetError::Serve)?;
        let text = query.sql(&server.url(&name));
        let share = 0.6 + 0.4 * at as f64 / ALL.len() as f64;
        let asked = duckdb.ask(&text, &mut || tell(share, query.name()));
        let answer = match asked {
            Err(DuckdbError::Interrupted) => return Ok(measured),
            asked => asked?,
        };
        let sent = server.sent();
        check(&settings.cards, order, query, &answer)?;
        let file_bytes = std::fs::metadata(path).map_or(0, |found| found.len());
        let touched = |group: &&Group| {
            let ranges = sent.ranges.first().into_iter().flatten();
            ranges.into_iter().any(|(start, end)| *start < group.end && group.start < *end)
        };
        let fetched = groups.iter().filter(touched).count() as u64;
        measured.runs.push(Ran {
            order,
            query,
            file_bytes,
            groups: groups.len() as u64,
            groups_skipped: groups.len() as u64 - fetched,
            sent,
            answer,
        });
    }
    measured.interrupted = false;
    Ok(measured)
}

fn check(cards: &Cards, order: Order, query: Query, answer: &Answer) -> Result<(), ParquetError> {
    let found = answer.values.first().cloned().unwrap_or_default();
    let expected = match query {
        Query::Full => cards.rows(),
        Query::Filtered | Query::Count => cards.own_with(OWN[0]),
    };
    if found == expected.to_string() {
        return Ok(());
    }
    Err(ParquetError::Answer { query, order, found, expected })
}

/// One file; none where `go_on` says no.
fn write(
    path: &Path,
    cards: &Cards,
    order: Order,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<Vec<Group>>, ParquetError> {
    let file = File::create_new(path)
        .map_err(|source| ParquetError::File { path: path.to_owned(), source })?;
    let columns: Vec<(&str, Values)> =
        COLUMNS.iter().map(|column| (column.name, Columns::empty(column.name))).collect();
    let mut out = BufWriter::new(file);
    let mut writer = PlainWriter::new(&mut out, path, &columns)?;
    let positions = match order {
        Order::Shuffled => None,
        Order::Sorted => {
            let mut keys: Vec<(u64, u64)> = Vec::with_capacity(cards.rows() as usize);
            for at in 0..cards.rows() {
                keys.push((sort_key(cards.row(at).card), at));
            }
            keys.sort_unstable();
            Some(keys)
        }
    };
    let group_rows = (cards.rows() / GROUPS).max(GROUP_ROWS_MIN);
    let mut next = 0;
    while next < cards.rows() {
        let end = (next + group_rows).min(cards.rows());
        let mut group = Columns::default();
        for at in next..end {
            group.push(cards, positions.as_ref().map_or(at, |keys| keys[at as usize].1));
        }
        writer.write(&group.values())?;
        next = end;
        if !go_on(next as f64 / cards.rows() as f64) {
            return Ok(None);
        }
    }
    let groups = writer.finish()?;
    out.flush().map_err(|source| ParquetError::File { path: path.to_owned(), source })?;
    Ok(Some(groups))
}

/// The order of card numbers as text: digits are compared from the left.
fn sort_key(card: u64) -> u64 {
    let digits = card.checked_ilog10().unwrap_or(0);
    card * 10_u64.pow(18 - digits.min(18))
}

/// A row group in the making.
#[derive(Default)]
struct Columns {
    texts: [Vec<String>; 4],
    numbers: [Vec<i64>; 5],
}

impl Columns {
    fn empty(column: &str) -> Values {
        match column {
            "card_no" | "card_type" | "merchant_city" | "merchant_state" => {
                Values::Texts(Vec::new())
            }
            _ => Values::Numbers(Vec::new()),
        }
    }

    fn push(&mut self, cards: &Cards, at: u64) {
        let row = cards.row(at);
        let texts = [&row.card.to_string(), row.card_type, row.city, row.state];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(text.to_owned());
        }
        let second = FIRST_SECOND + row.second as i64;
        let numbers = [row.mcc, row.amount, row.merchant, row.zip].map(i64::from);
        let [mcc, amount, merchant, zip] = numbers;
        for (column, number) in self.numbers.iter_mut().zip([mcc, amount, second, merchant, zip]) {
            column.push(number);
        }
    }

    /// In the order of the table's columns.
    fn values(self) -> Vec<Values> {
        let [card, card_type, city, state] = self.texts.map(Values::Texts);
        let [mcc, amount, second, merchant, zip] = self.numbers.map(Values::Numbers);
        vec![card, card_type, mcc, amount, second, merchant, city, state, zip]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_sorted_as_their_text_is() {
        let mut cards = [4777_0000_0000_0000_u64, 340_0000_0000_0000, 4776_9999_9999_9999, 3333];
        cards.sort_by_key(|card| sort_key(*card));
        let texts = cards.map(|card| card.to_string());
        assert!(texts.is_sorted(), "{texts:?}");
    }

    #[test]
    fn a_file_has_all_rows_whatever_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let cards = Cards::new(10_000, 1);
        for order in [Order::Sorted, Order::Shuffled] {
            let path = dir.path().join(order.name());
            let groups = write(&path, &cards, order, &mut |_| true).unwrap().unwrap();
            assert_eq!(groups.iter().map(|group| group.rows).sum::<u64>(), 10_000);
            assert_eq!(groups.len(), 5);
        }
        let never = write(&dir.path().join("none"), &cards, Order::Sorted, &mut |_| false);
        assert!(never.unwrap().is_none());
    }
}
